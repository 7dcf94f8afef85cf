/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Clients that do what none should: each is told why and closed, all that it
 * had is given back, and a client beside it notices nothing.
 */
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/ipc/raw.h"
#include "tests/tap.h"

#define POSIX BELAY_KIND_POSIX
#define EX BELAY_MODE_EX

static size_t put(uint8_t *buf, size_t at, const struct client_message *m)
{
	if (client_put(buf, CLIENT_PACKET_MAX, &at, m) < 0)
		bail_out("a message of the test does not fit");
	return at;
}

static const struct client_message hello = {
	.type = CLIENT_HELLO, .magic = CLIENT_MAGIC, .version = CLIENT_VERSION,
};

/* ---- packets ---- */

static void test_first_words(const struct belayd *d)
{
	const struct client_message other_version = {
		.type = CLIENT_HELLO, .magic = CLIENT_MAGIC, .version = CLIENT_VERSION + 1,
	};
	const struct client_message early = {
		.type = CLIENT_COMMAND, .number = 1, .text = "status", .text_size = 6,
	};
	uint8_t wrong_magic[12] = { 12, 0, CLIENT_HELLO, 0, 'H', 'T', 'T', 'P', 1, 0, 0, 0 };
	struct raw r;

	raw_connect(&r, d->socket);
	(void)raw_send(&r, &early);
	ok(raw_refused(&r, -EPROTO, "hello"), "a request before hello");
	raw_close(&r);
	raw_connect(&r, d->socket);
	(void)raw_send(&r, &other_version);
	ok(raw_refused(&r, -EPROTONOSUPPORT, "version 2"), "another version: the text names it");
	raw_close(&r);
	raw_connect(&r, d->socket);
	(void)raw_send_bytes(&r, wrong_magic, sizeof(wrong_magic), NULL, 0);
	ok(raw_refused(&r, -EPROTO, "no sense"), "another protocol");
	raw_close(&r);
	raw_open(&r, d->socket);
	(void)raw_send(&r, &hello);
	ok(raw_refused(&r, -EPROTO, "twice"), "hello again");
	raw_close(&r);
}

static void test_messages(const struct belayd *d)
{
	const struct client_message result = { .type = CLIENT_RESULT, .number = 1 };
	const struct client_message no_number = {
		.type = CLIENT_CLOSE, .handle = 1,
	};
	struct client_message lock = {
		.type = CLIENT_LOCK, .number = 7, .mode = EX, .wait = true, .range = { 0, 9 },
	};
	uint8_t buf[CLIENT_PACKET_MAX];
	struct raw r, holder;
	uint32_t h;

	raw_open(&r, d->socket);
	(void)raw_send(&r, &result);
	ok(raw_refused(&r, -EPROTO, "only belayd"), "a message that only belayd may send");
	raw_close(&r);
	raw_open(&r, d->socket);
	(void)raw_send(&r, &no_number);
	ok(raw_refused(&r, -EPROTO, "number"), "a request without a number");
	raw_close(&r);

	raw_open(&holder, d->socket);
	h = (uint32_t)raw_open_name(&holder, "default", "twice");
	ok_int(raw_try(&holder, h), 0, "somebody holds");
	raw_open(&r, d->socket);
	lock.handle = (uint32_t)raw_open_name(&r, "default", "twice");
	(void)raw_send_bytes(&r, buf, put(buf, put(buf, 0, &lock), &lock), NULL, 0);
	ok(raw_refused(&r, -EPROTO, "same number"), "two requests of one number");
	raw_close(&r);
	raw_close(&holder);
}

static void test_cut(const struct belayd *d)
{
	const struct client_message open = {
		.type = CLIENT_OPEN_NAME, .number = 1, .text = "default", .text_size = 7,
		.text2 = "cut", .text2_size = 3,
	};
	uint8_t buf[CLIENT_PACKET_MAX];
	size_t whole = put(buf, 0, &open);
	unsigned wrong = 0;
	struct raw r;

	for (size_t size = 1; size < whole; size++) {
		raw_open(&r, d->socket);
		(void)raw_send_bytes(&r, buf, size, NULL, 0);
		wrong += !raw_refused(&r, -EPROTO, "no sense");
		raw_close(&r);
	}
	ok_uint(wrong, 0, "a message cut off after 1 to %zu bytes", whole - 1);
	raw_open(&r, d->socket);
	(void)raw_send_bytes(&r, buf, put(buf, whole, &open) - 1, NULL, 0);
	ok(raw_refused(&r, -EPROTO, "no sense"), "a whole one and a cut one in a packet");
	raw_close(&r);
}

static void test_giant(const struct belayd *d)
{
	static uint8_t buf[2 * CLIENT_PACKET_MAX];
	struct raw r;

	raw_open(&r, d->socket);
	ok_int(raw_send_bytes(&r, buf, sizeof(buf), NULL, 0), 0, "a packet of 128 KiB is sent");
	ok(raw_refused(&r, -EMSGSIZE, "larger"), "and refused");
	raw_close(&r);
}

/* A seed of its own, so that a failure comes again. */
static void test_random(const struct belayd *d)
{
	uint64_t state = 88172645463325252u;
	uint8_t buf[512];
	unsigned ended = 0;
	struct client_message m;
	struct raw r;

	for (unsigned i = 0; i < 500; i++) {
		size_t size;
		int n;

		for (size_t k = 0; k < sizeof(buf); k++) {
			state ^= state << 13;
			state ^= state >> 7;
			state ^= state << 17;
			buf[k] = (uint8_t)(state >> 32);
		}
		size = 1 + (state >> 8) % (sizeof(buf) - 1);
		/* Half of them with a head that fits, so that the fields are reached. */
		if (i % 2) {
			buf[0] = (uint8_t)size;
			buf[1] = (uint8_t)(size >> 8);
			buf[2] %= CLIENT_TYPE_COUNT;
			buf[3] = 0;
		}
		raw_open(&r, d->socket);
		(void)raw_send_bytes(&r, buf, size, NULL, 0);
		while ((n = raw_receive(&r, &m)) == 1 && m.type != CLIENT_ERROR)
			(void)shutdown(r.fd, SHUT_WR);
		ended += n == 1 || n == 0 || n == -ECONNRESET;
		raw_close(&r);
	}
	ok_uint(ended, 500, "500 packets of random bytes: each is refused, or answered until the client ends");
}

/* ---- descriptors ---- */

static void test_descriptors(const struct belayd *d)
{
	const struct client_message open_fd = { .type = CLIENT_OPEN_FD, .number = 1 };
	const struct client_message command = {
		.type = CLIENT_COMMAND, .number = 2, .text = "status", .text_size = 6,
	};
	uint8_t buf[CLIENT_PACKET_MAX];
	size_t size;
	int fds[3];
	struct raw r;

	for (unsigned i = 0; i < 3; i++)
		fds[i] = open(d->conf, O_RDWR | O_CLOEXEC);
	raw_open(&r, d->socket);
	(void)raw_send_bytes(&r, buf, put(buf, 0, &command), fds, 1);
	ok(raw_refused(&r, -EPROTO, "descriptor"), "a descriptor with what needs none");
	raw_close(&r);
	raw_open(&r, d->socket);
	(void)raw_send_bytes(&r, buf, put(buf, 0, &open_fd), fds, 3);
	ok(raw_refused(&r, -EPROTO, "more than one"), "three descriptors");
	raw_close(&r);
	raw_open(&r, d->socket);
	(void)raw_send(&r, &open_fd);
	ok(raw_refused(&r, -EPROTO, "no descriptor"), "none with what needs one");
	raw_close(&r);
	raw_open(&r, d->socket);
	size = put(buf, put(buf, 0, &open_fd), &open_fd);
	(void)raw_send_bytes(&r, buf, size, fds, 1);
	ok(raw_refused(&r, -EPROTO, "no descriptor"), "one for two messages that need one");
	raw_close(&r);
	raw_open(&r, d->socket);
	(void)raw_send_bytes(&r, "", 0, fds, 2);
	ok(raw_refused(&r, -EPROTO, "more than one"), "descriptors with nothing at all");
	raw_close(&r);
	for (unsigned i = 0; i < 3; i++)
		close(fds[i]);
}

/* ---- not reading ---- */

/* It asks and asks, and never reads an answer; what it holds comes free when it is closed. */
static void test_deaf(const struct belayd *d, struct raw *beside, uint32_t handle)
{
	struct client_message m;
	const struct client_message command = {
		.type = CLIENT_COMMAND, .number = 2, .text = "status", .text_size = 6,
	};
	uint8_t buf[CLIENT_PACKET_MAX];
	size_t size = 0;
	unsigned sent = 0;
	struct raw r;

	raw_open(&r, d->socket);
	while (size < 1024)
		size = put(buf, size, &command);
	while (sent < 10000 && send(r.fd, buf, size, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		sent++;
	ok(sent < 10000, "a client that never reads is not read for ever: %u packets", sent);
	ok_int(raw_test(beside, handle, POSIX, EX, 0, 0, &m), 0, "the one beside it is served");
	raw_close(&r);
}

static void test_overrun(const struct belayd *d)
{
	const struct client_message command = {
		.type = CLIENT_COMMAND, .number = 2, .text = "status", .text_size = 6,
	};
	uint8_t buf[CLIENT_PACKET_MAX];
	size_t size = 0;
	struct client_message m;
	int n = 1;
	struct raw r;

	/* One packet with more answers than may wait. */
	while (size < CLIENT_PACKET_MAX - 64)
		size = put(buf, size, &command);
	raw_open(&r, d->socket);
	(void)raw_send_bytes(&r, buf, size, NULL, 0);
	while ((n = raw_receive(&r, &m)) == 1)
		;
	ok(n == 0 || n == -ECONNRESET, "more answers than may wait end the connection");
	ok(belayd_logged(d, "does not read its answers"), "and the log says so");
	raw_close(&r);
}

int main(void)
{
	struct belayd d;
	struct raw beside;
	struct client_message m;
	uint32_t handle;
	int before;
	char *text;

	belayd_start(&d, NULL);
	raw_open(&beside, d.socket);
	handle = (uint32_t)raw_open_name(&beside, "default", "beside");
	ok_int(raw_try(&beside, handle), 0, "a client locks");
	before = belayd_descriptors(&d);
	test_first_words(&d);
	test_messages(&d);
	test_cut(&d);
	test_giant(&d);
	test_random(&d);
	test_descriptors(&d);
	test_deaf(&d, &beside, handle);
	test_overrun(&d);
	ok_int(raw_command(&beside, "status", &text), 0, "the client beside all this is served");
	ok(strstr(text, "\"clients\":{\"now\":1,"), "and alone again");
	free(text);
	ok_int(belayd_descriptors(&d), before, "no descriptor is left open");
	ok_int(raw_test(&beside, handle, POSIX, EX, 0, 0, &m), 0, "its lock");
	ok(!m.held && raw_silent(&beside), "is still its own");
	raw_close(&beside);
	ok_int(belayd_stop(&d), 0, "belayd leaves cleanly");
	if (tap_state()->failed > 0)
		belayd_show_log(&d);
	belayd_remove(&d);
	return done_testing();
}
