/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bytes on lvm's socket that no lvm would send: each is answered by an error, or ends the
 * connection; nobody else notices.
 */
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/ipc/lvmlockd.h"
#include "tests/tap.h"

#define DLM "vg_lock_type = \"dlm\"\n"
#define LV_FIELDS "vg_name = \"vg0\"\nlv_name = \"lv0\"\nmode = \"ex\"\nopts = \"persistent\"\n"

static void send_bytes(int fd, const char *bytes, size_t size)
{
	/* What has closed already takes no more, and says so. */
	(void)!send(fd, bytes, size, MSG_NOSIGNAL);
}

/* The other end closes, whatever it says before. */
static bool is_closed(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char bytes[4096];
	ssize_t size;

	do {
		if (poll(&p, 1, PATIENCE_MS) != 1)
			return false;
		size = recv(fd, bytes, sizeof(bytes), 0);
	} while (size > 0);
	return true;
}

/* A command of lvm that does as it should. */
static void ok_serves(const struct lvmlockd_process *l, const char *after)
{
	int fd = lvm_connect(l);

	ok_int(lvm_ask(fd, "request = \"running_lm\"\n"), 2, "after %s others are served", after);
	close(fd);
}

/* Not what the protocol allows: answered, and the end of the connection. */
static void test_garbage(const struct lvmlockd_process *l)
{
	static const struct {
		const char *what, *bytes;
		size_t size;
	} table[] = {
#define BYTES(text) text, sizeof(text) - 1
		{ "no text", BYTES("\x01\x02\xff\xfe\n##\n") },
		{ "a key without a value", BYTES("request = \n##\n") },
		{ "a value without a key", BYTES("= \"hello\"\n##\n") },
		{ "a text without an end", BYTES("request = \"hello\n##\n") },
		{ "a section without an end", BYTES("request = \"hello\" x {\n##\n") },
		{ "an end of a section", BYTES("request = \"hello\" }\n##\n") },
		{ "a zero byte", BYTES("request = \"he\0llo\"\n##\n") },
		{ "a zero byte between fields", BYTES("request = hello\0x = 1\n##\n") },
		{ "brackets far too deep", BYTES("x = [[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]\n##\n") },
		{ "another protocol", BYTES("GET / HTTP/1.1\r\n\r\n\n##\n") },
#undef BYTES
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		int fd = lvm_connect(l);
		struct message answer;

		send_bytes(fd, table[i].bytes, table[i].size);
		if (ok(lvm_receive(fd, &answer), "%s is answered", table[i].what))
			ok_int(message_number(&answer, "op_result", 0), -EPROTO, "as an error");
		ok(is_closed(fd), "and the connection ends");
		close(fd);
	}
	ok_serves(l, "garbage");
}

/* Requests that read well and make no sense: answered, and the connection goes on. */
static void test_nonsense(const struct lvmlockd_process *l)
{
	static const struct {
		const char *what, *text;
		int want;
	} table[] = {
		{ "nothing at all", "", -EPROTO },
		{ "no request", "pid = 1\n", -EPROTO },
		{ "a number as request", "request = 5\n", -EPROTO },
		{ "an unknown request", "request = \"vg_status\"\n", -EPROTO },
		{ "one that only begins as one", "request = \"lock_vgx\"\n", -EPROTO },
		{ "a VG without a name", "request = \"lock_vg\"\nmode = \"ex\"\n", -EINVAL },
		{ "an empty name", "request = \"lock_vg\"\nmode = \"ex\"\nvg_name = \"\"\n", -EINVAL },
		{ "a number as name", "request = \"lock_vg\"\nmode = \"ex\"\nvg_name = 7\n", -EINVAL },
		{ "a name with a slash", "request = \"start_vg\"\nvg_name = \"a/b\"\n" DLM, -EINVAL },
		{ "a name with a newline", "request = \"start_vg\"\nvg_name = \"a\nb\"\n" DLM, -EINVAL },
		{ "a name with a blank", "request = \"start_vg\"\nvg_name = \"a b\"\n" DLM, -EINVAL },
		{ "a name like an option", "request = \"start_vg\"\nvg_name = \"-a\"\n" DLM, -EINVAL },
		{ "no mode", "request = \"lock_gl\"\n", -EINVAL },
		{ "another mode", "request = \"lock_gl\"\nmode = \"cw\"\n", -EINVAL },
		{ "no lock type", "request = \"init_vg\"\nvg_name = \"a\"\n", -EPROTONOSUPPORT },
		{ "a VG that is not there", "request = \"kill_vg\"\nvg_name = \"a\"\n", -210 },
		{ "an LV without a uuid", "request = \"lock_lv\"\n" LV_FIELDS, -EINVAL },
		{ "a uuid with a blank", "request = \"lock_lv\"\n" LV_FIELDS "lv_uuid = \"a b\"\n", -EINVAL },
		{ "a uuid that means none in a file", "request = \"lock_lv\"\n" LV_FIELDS "lv_uuid = \"-\"\n",
		  -EINVAL },
		{ "a name of an LV with a blank", "request = \"lock_lv\"\nmode = \"ex\"\nopts = \"persistent\"\n"
		  "vg_name = \"vg0\"\nlv_uuid = \"abc\"\nlv_name = \"a b\"\n", -EINVAL },
		{ "a VG's uuid with a newline", "request = \"start_vg\"\nvg_name = \"a\"\n" DLM
		  "vg_lock_args = \"" LVMLOCKD_MARKER "\"\nvg_uuid = \"a\nlv\"\n", -EINVAL },
		{ "lock_args with a newline", "request = \"start_vg\"\nvg_name = \"a\"\n" DLM
		  "vg_lock_args = \"1.\nlv x:standalone.belay\"\n", -212 },
		{ "a uuid that is too long", "request = \"lock_lv\"\n" LV_FIELDS
		  "lv_uuid = \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"\n", -EINVAL },
		{ "an LV without a mode", "request = \"lock_lv\"\nvg_name = \"vg0\"\nlv_uuid = \"abc\"\n", -EINVAL },
	};
	int fd = lvm_connect(l);

	ok_int(lvm_ask(fd, "request = \"start_vg\"\nvg_name = \"vg0\"\nvg_lock_type = \"dlm\"\n"
		       "vg_lock_args = \"" LVMLOCKD_MARKER "\"\n"), 0, "a VG");
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		ok_int(lvm_ask(fd, "%s", table[i].text), table[i].want, "%s", table[i].what);
	ok_int(lvm_ask(fd, "request = \"running_lm\"\n"), 2, "the same connection is served");
	close(fd);
}

static void test_sizes(const struct lvmlockd_process *l)
{
	char *long_text = malloc(MESSAGE_BYTES_MAX + 1);
	int fd = lvm_connect(l);

	if (!long_text)
		bail_out("no memory");
	memset(long_text, 'a', MESSAGE_BYTES_MAX);
	long_text[200] = '\0';
	ok_int(lvm_ask(fd, "request = \"lock_vg\"\nmode = \"ex\"\nvg_name = \"%s\"\n", long_text), -EINVAL,
	       "a name that is too long");
	ok_int(lvm_ask(fd, "request = \"start_vg\"\nvg_name = \"v\"\nvg_lock_type = \"dlm\"\nvg_lock_args = \"%s\"\n",
		       long_text), -EINVAL, "lock_args that are too long");
	ok_int(lvm_ask(fd, "request = \"start_vg\"\nvg_name = \"v\"\nvg_lock_type = \"dlm\"\nvg_lock_args = \"x\"\n"
		       "vg_uuid = \"%s\"\n", long_text), -EINVAL, "a VG's uuid that is too long");
	ok_int(lvm_ask(fd, "request = \"lock_lv\"\nmode = \"ex\"\nopts = \"persistent\"\nvg_name = \"vg0\"\n"
		       "lv_uuid = \"abc\"\nlv_name = \"%s\"\n", long_text), -EINVAL, "a name of an LV, too");
	ok_int(lvm_ask(fd, "request = \"lock_lv\"\nmode = \"ex\"\nopts = \"persistent\"\nvg_name = \"vg0\"\n"
		       "lv_uuid = \"abc\"\n"), 0, "an LV is known by its uuid");
	ok_int(lvm_ask(fd, "request = \"lock_lv\"\nmode = \"un\"\nopts = \"persistent\"\nvg_name = \"vg0\"\n"
		       "lv_uuid = \"abc\"\n"), 0, "only");
	long_text[200] = 'a';
	send_bytes(fd, long_text, MESSAGE_BYTES_MAX);
	ok_int(lvm_ask(fd, "x = 1\n"), -EMSGSIZE, "what has no end is answered when it cannot be a request any more");
	ok(is_closed(fd), "and ends the connection");
	close(fd);

	fd = lvm_connect(l);
	for (unsigned i = 0; i < MESSAGE_FIELDS_MAX + 1; i++) {
		char line[32];
		int size = snprintf(line, sizeof(line), "f%u = %u\n", i, i);

		send_bytes(fd, line, (size_t)size);
	}
	ok_int(lvm_ask(fd, "request = \"hello\"\n"), -EMSGSIZE, "so are too many fields");
	close(fd);
	free(long_text);
	ok_serves(l, "too much");
}

/* Packets need not be requests. */
static void test_pieces(const struct lvmlockd_process *l)
{
	static const char text[] = "request = \"running_lm\"\npid = 1\n\n##\n";
	int fd = lvm_connect(l), other = lvm_connect(l);
	struct message answer;
	unsigned good = 0;

	for (size_t i = 0; i < sizeof(text) - 1; i++) {
		send_bytes(fd, text + i, 1);
		/* Its turn has come when another's has. */
		if (i % 8 == 0)
			good += lvm_ask(other, "request = \"start_wait\"\n") == 0;
	}
	ok_uint(good, (sizeof(text) - 2) / 8 + 1, "while a request comes in pieces others are served");
	ok(lvm_receive(fd, &answer) && message_number(&answer, "op_result", 0) == 2, "and so is that one");

	for (unsigned i = 0; i < 3; i++)
		send_bytes(fd, text, sizeof(text) - 1);
	for (unsigned i = 0; i < 3; i++)
		ok(lvm_receive(fd, &answer) && message_number(&answer, "op_result", 0) == 2,
		   "of several in one piece each is answered");
	send_bytes(fd, text, 10);
	close(fd);
	ok_int(lvm_ask(other, "request = \"start_wait\"\n"), 0, "one that ends in the middle of a request is nothing");

	/* What may be added to requests one day. */
	ok_int(lvm_ask(other, "request = \"running_lm\"\nlater = [ \"a\", 2, [ 3 ] ]\n"
		       "more { x = 1\ny { z = \"}\" } }\n# a comment\nprev_lv_args = 'none'\n"
		       "align_mb = -1\nflag = yes\n"), 2,
	       "fields that are not known do no harm");
	close(other);
}

/* Who sends and does not read. */
static void test_deaf(const struct lvmlockd_process *l)
{
	static const char text[] = "request = \"running_lm\"\npid = 1\n\n##\n";
	int fd = lvm_connect(l);
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	unsigned sent = 0;

	/* Until either the connection takes no more, or it is closed. */
	while (sent < 200000 && poll(&p, 1, 200) == 1 && !(p.revents & (POLLERR | POLLHUP)) &&
	       send(fd, text, sizeof(text) - 1, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
		sent++;
	ok(sent > 100, "a client sends requests and reads no answer: %u", sent);
	ok_serves(l, "that");
	close(fd);
}

/* More connections than are served at a time have to wait, and are served then. */
static void test_many(const struct lvmlockd_process *l)
{
	int fds[1100];
	unsigned count = sizeof(fds) / sizeof(fds[0]);
	struct rlimit limit = { .rlim_cur = 2048, .rlim_max = 2048 };
	struct message answer;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 2048) {
		limit.rlim_cur = 2048;
		if (limit.rlim_max < 2048 || setrlimit(RLIMIT_NOFILE, &limit) < 0) {
			diag("no room for so many connections");
			return;
		}
	}
	for (unsigned i = 0; i < count; i++) {
		fds[i] = lvm_connect(l);
		lvm_send(fds[i], "request = \"running_lm\"\n");
	}
	ok(lvm_receive(fds[0], &answer), "the first of many is served");
	for (unsigned i = 0; i + 1 < count; i++)
		close(fds[i]);
	ok(lvm_receive(fds[count - 1], &answer) && message_number(&answer, "op_result", 0) == 2,
	   "the last one, when others have gone");
	close(fds[count - 1]);
}

int main(void)
{
	struct lvmlockd_process l;

	lvmlockd_start(&l, NULL);
	test_garbage(&l);
	test_nonsense(&l);
	test_sizes(&l);
	test_pieces(&l);
	test_deaf(&l);
	test_many(&l);
	ok(kill(l.pid, SIGTERM) == 0 && lvmlockd_wait(&l) == 0, "it ends in order");
	lvmlockd_remove(&l);
	return done_testing();
}
