/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Every limit says that it is reached, bothers nobody else, and is free again afterwards. */
#include <sys/resource.h>
#include <unistd.h>

#include "tests/ipc/raw.h"
#include "tests/tap.h"

#define POSIX BELAY_KIND_POSIX
#define EX BELAY_MODE_EX

static void test_clients(const struct belayd *d, struct raw *first)
{
	struct raw r[8], more;
	struct client_message m;

	for (unsigned i = 0; i < 7; i++)
		raw_open(&r[i], d->socket);
	raw_connect(&more, d->socket);
	ok(raw_refused(&more, -EUSERS, "clients_max"), "one client more than clients_max is refused");
	raw_close(&more);
	ok(raw_open_name(&r[6], "default", "n") > 0, "those that are there go on");
	raw_close(&r[6]);
	/* belayd hears of the end before it hears of what comes next on another connection. */
	do {
		raw_connect(&more, d->socket);
		m = (struct client_message){
			.type = CLIENT_HELLO, .magic = CLIENT_MAGIC, .version = CLIENT_VERSION,
		};
		(void)raw_send(&more, &m);
		if (raw_receive(&more, &m) == 1 && m.type == CLIENT_WELCOME)
			break;
		raw_close(&more);
	} while (m.type == CLIENT_ERROR);
	ok(m.type == CLIENT_WELCOME, "when one has gone, another may come");
	raw_close(&more);
	for (unsigned i = 0; i < 6; i++)
		raw_close(&r[i]);
	ok(raw_open_name(first, "default", "n") > 0, "the first client has not noticed");
	ok(belayd_logged(d, "clients_max"), "the log says why one was refused");
}

static void test_handles(const struct belayd *d)
{
	struct raw r;
	uint32_t handle[16];
	char name[16];

	raw_open(&r, d->socket);
	for (unsigned i = 0; i < 16; i++) {
		snprintf(name, sizeof(name), "handle %u", i);
		handle[i] = (uint32_t)raw_open_name(&r, "default", name);
	}
	ok_int(raw_open_name(&r, "default", "one more"), -EMFILE, "handles_per_client_max");
	ok_int(raw_try(&r, handle[15]), 0, "the others can be used");
	ok_int(raw_close_handle(&r, handle[3]), 0, "closing one");
	ok(raw_open_name(&r, "default", "one more") > 0, "makes room for another");
	raw_close(&r);
}

static void test_requests(const struct belayd *d, struct raw *first)
{
	struct raw r;
	struct client_message m;
	uint32_t handle, h, n[8], refused;
	unsigned granted = 0;

	raw_open(&r, d->socket);
	h = (uint32_t)raw_open_name(first, "default", "requests");
	ok_int(raw_try(first, h), 0, "somebody holds");
	handle = (uint32_t)raw_open_name(&r, "default", "requests");
	for (unsigned i = 0; i < 8; i++)
		n[i] = raw_ask_lock(&r, handle, POSIX, EX, true, i, i);
	refused = raw_ask_lock(&r, handle, POSIX, EX, true, 8, 8);
	ok_int(raw_result(&r, refused, NULL), -ENOLCK, "requests_per_client_max");
	refused = raw_ask_lock(&r, handle, POSIX, EX, false, 8, 8);
	ok_int(raw_result(&r, refused, NULL), -ENOLCK, "even for a try");
	raw_unlock(first, h, POSIX, 0, BELAY_OFFSET_MAX);
	for (unsigned i = 0; i < 8; i++)
		granted += raw_receive(&r, &m) == 1 && m.type == CLIENT_RESULT && m.result == 0 &&
			   m.number >= n[0] && m.number <= n[7];
	ok_uint(granted, 8, "those that wait are granted in the end");
	ok_int(raw_lock(&r, handle, POSIX, EX, true, 8, 8), 0, "and make room for more");
	raw_close(&r);
}

/* A limit of the table itself: the core's answer must reach the client. */
static void test_locks(const struct belayd *d)
{
	struct raw r;
	uint32_t handle;
	unsigned granted = 0;
	int result = 0;

	raw_open(&r, d->socket);
	handle = (uint32_t)raw_open_name(&r, "default", "ranges");
	for (uint64_t i = 0; i < 1000 && result == 0; i++) {
		result = raw_lock(&r, handle, POSIX, EX, false, 2 * i, 2 * i);
		granted += result == 0;
	}
	ok_int(result, -ENOLCK, "locks_max");
	/* A lock may need another one's room for a moment, when it splits it. */
	ok(granted >= 62 && granted <= 64, "of which a node may use half without asking the others");
	raw_unlock(&r, handle, POSIX, 0, 0);
	ok_int(raw_lock(&r, handle, POSIX, EX, false, 5000, 5000), 0, "after an unlock there is room");
	raw_close(&r);
}

/* Full of clients, one of which passes as many descriptors as it can, while others are stuck in threads. */
static void test_descriptors(void)
{
	struct rlimit before, limit;
	struct belayd d;

	if (getrlimit(RLIMIT_NOFILE, &before) < 0)
		bail_out("no limits");
	limit = before;
	limit.rlim_cur = 64;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		bail_out("limits stay as they are");
	belayd_start(&d, "clients_max = 100\n");
	(void)setrlimit(RLIMIT_NOFILE, &before);
	if (prlimit(d.pid, RLIMIT_NOFILE, NULL, &limit) < 0)
		bail_out("the limits of belayd are not known");
	ok(limit.rlim_cur >= 2 * 100 + 253 + 64 + (rlim_t)belayd_descriptors(&d),
	   "belayd raises its limit of descriptors to what it may need: %ju", (uintmax_t)limit.rlim_cur);
	ok_int(belayd_stop(&d), 0, "belayd leaves cleanly");
	belayd_remove(&d);
}

int main(void)
{
	struct belayd d;
	struct raw first;

	belayd_start(&d, "clients_max = 8\nhandles_per_client_max = 16\n"
		     "requests_per_client_max = 8\n[limits]\nlocks_max = 128\n");
	raw_open(&first, d.socket);
	test_clients(&d, &first);
	test_handles(&d);
	test_requests(&d, &first);
	test_locks(&d);
	raw_close(&first);
	ok_int(belayd_stop(&d), 0, "belayd leaves cleanly");
	if (tap_state()->failed > 0)
		belayd_show_log(&d);
	belayd_remove(&d);
	test_descriptors();
	return done_testing();
}
