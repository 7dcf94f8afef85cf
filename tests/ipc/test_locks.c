/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Locks between clients of one belayd: conflict, waiting, ends of all kinds. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/ipc/raw.h"
#include "tests/tap.h"

#define ALL 0, BELAY_OFFSET_MAX
#define POSIX BELAY_KIND_POSIX
#define OFD BELAY_KIND_OFD
#define FLOCK BELAY_KIND_FLOCK
#define SH BELAY_MODE_SH
#define EX BELAY_MODE_EX

static void test_conflict(const struct belayd *d)
{
	struct raw a, b;
	struct client_message m;
	uint32_t ha, hb, n;

	raw_open(&a, d->socket);
	raw_open(&b, d->socket);
	ha = (uint32_t)raw_open_name(&a, "default", "conflict");
	hb = (uint32_t)raw_open_name(&b, "default", "conflict");
	ok_int(raw_lock(&a, ha, POSIX, EX, false, 10, 19), 0, "a takes 10-19");
	ok_int(raw_lock(&b, hb, POSIX, EX, false, 20, 29), 0, "b takes what is free beside it");
	ok_int(raw_lock(&b, hb, POSIX, SH, false, 0, 10), -EAGAIN, "but not what overlaps");
	ok_int(raw_test(&b, hb, POSIX, SH, 0, 100, &m), 0, "b asks who is in the way");
	ok(m.held && m.owner.pid == (uint32_t)getpid() && m.mode == EX && m.range.start == 10 &&
	   m.range.end == 19 && m.owner.node == 1, "and hears of a");
	ok_int(raw_test(&a, ha, POSIX, EX, 10, 19, &m), 0, "a asks");
	ok(!m.held, "nobody is in its own way");
	n = raw_ask_lock(&b, hb, POSIX, EX, true, 15, 16);
	ok_int(raw_lock(&b, hb, POSIX, EX, false, 12, 12), -EAGAIN, "b waits, and may ask on");
	raw_unlock(&a, ha, POSIX, 12, 17);
	ok_int(raw_result(&b, n, &m), 0, "a unlocks, b has it");
	ok(m.token > 0, "with a token");
	ok_int(raw_lock(&a, ha, POSIX, SH, false, 10, 11), 0, "a keeps the rest, and may downgrade it");
	ok_int(raw_lock(&b, hb, POSIX, SH, false, 10, 11), 0, "which b then shares");
	ok_int(raw_lock(&a, ha, POSIX, EX, false, 10, 11), -EAGAIN, "so that a cannot upgrade");
	raw_close(&a);
	raw_close(&b);
}

/*
 * A process that locks, says so, and has a child that keeps its connection
 * open until @end is closed.
 */
static pid_t start_holder(const struct belayd *d, int said[2], int end[2])
{
	pid_t child = fork();
	struct raw a;
	char byte;

	if (child != 0)
		return child;
	close(end[1]);
	raw_open(&a, d->socket);
	byte = raw_try(&a, (uint32_t)raw_open_name(&a, "default", "ends")) == 0 ? 'y' : 'n';
	if (fork() == 0) {
		(void)!read(end[0], &byte, 1);
		_exit(0);
	}
	(void)!write(said[1], &byte, 1);
	pause();
	_exit(0);
}

static void test_ends(const struct belayd *d)
{
	struct raw a, b;
	struct client_message m;
	int said[2], end[2];
	uint32_t ha, hb, n;
	char byte = 0;
	pid_t holder;

	if (pipe(said) < 0 || pipe(end) < 0)
		bail_out("no pipe");
	holder = start_holder(d, said, end);
	(void)!read(said[0], &byte, 1);
	ok(byte == 'y', "a process locks");
	raw_open(&b, d->socket);
	hb = (uint32_t)raw_open_name(&b, "default", "ends");
	n = raw_wait_for(&b, hb);
	ok_int(raw_test(&b, hb, POSIX, EX, ALL, &m), 0, "another waits for it");
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);
	ok_int(raw_result(&b, n, NULL), 0, "killing it releases, whoever else has its connection");
	raw_unlock(&b, hb, POSIX, ALL);

	raw_open(&a, d->socket);
	ha = (uint32_t)raw_open_name(&a, "default", "ends");
	ok_int(raw_try(&a, ha), 0, "a client locks");
	n = raw_wait_for(&b, hb);
	raw_close(&a);
	ok_int(raw_result(&b, n, NULL), 0, "closing its socket releases");
	raw_close(&b);
	for (unsigned i = 0; i < 2; i++) {
		close(said[i]);
		close(end[i]);
	}
}

static void test_waiting(const struct belayd *d)
{
	struct raw a, b, c;
	struct client_message m;
	uint32_t ha, hb, hc, nb, nc;

	raw_open(&a, d->socket);
	raw_open(&b, d->socket);
	raw_open(&c, d->socket);
	ha = (uint32_t)raw_open_name(&a, "default", "waiting");
	hb = (uint32_t)raw_open_name(&b, "default", "waiting");
	hc = (uint32_t)raw_open_name(&c, "default", "waiting");
	ok_int(raw_try(&a, ha), 0, "a holds");
	nb = raw_wait_for(&b, hb);
	ok_int(raw_test(&b, hb, POSIX, EX, ALL, &m), 0, "b waits");
	nc = raw_wait_for(&c, hc);
	ok_int(raw_test(&c, hc, POSIX, EX, ALL, &m), 0, "c waits behind it");
	raw_cancel(&b, nb);
	ok_int(raw_result(&b, nb, NULL), -EINTR, "b withdraws");
	raw_cancel(&b, nb);
	raw_cancel(&b, 4711);
	ok_int(raw_test(&b, hb, POSIX, EX, ALL, &m), 0, "to withdraw nothing is no mistake");
	ok(raw_silent(&c), "c still waits");
	raw_unlock(&a, ha, POSIX, ALL);
	ok_int(raw_result(&c, nc, NULL), 0, "a unlocks, c has it");
	raw_cancel(&c, nc);
	ok_int(raw_test(&a, ha, POSIX, EX, ALL, &m), 0, "c withdraws too late");
	ok(m.held, "and keeps what it got");
	raw_close(&a);
	raw_close(&b);
	raw_close(&c);
}

static void test_deadlock(const struct belayd *d)
{
	struct raw a, b;
	struct client_message m;
	uint32_t ha, hb, n;

	raw_open(&a, d->socket);
	raw_open(&b, d->socket);
	ha = (uint32_t)raw_open_name(&a, "default", "deadlock");
	hb = (uint32_t)raw_open_name(&b, "default", "deadlock");
	ok_int(raw_lock(&a, ha, POSIX, EX, true, 0, 0), 0, "a has 0");
	ok_int(raw_lock(&b, hb, POSIX, EX, true, 1, 1), 0, "b has 1");
	n = raw_ask_lock(&a, ha, POSIX, EX, true, 1, 1);
	ok_int(raw_test(&a, ha, POSIX, EX, 0, 0, &m), 0, "a asks for 1");
	ok_int(raw_lock(&b, hb, POSIX, EX, true, 0, 0), -EDEADLK, "b asks for 0 while a waits for 1");
	raw_unlock(&b, hb, POSIX, 1, 1);
	ok_int(raw_result(&a, n, NULL), 0, "b gives way, a goes on");
	raw_close(&a);
	raw_close(&b);
}

static void test_kinds(const struct belayd *d)
{
	struct raw a;
	struct client_message m;
	uint32_t one, two;

	raw_open(&a, d->socket);
	one = (uint32_t)raw_open_name(&a, "default", "kinds");
	two = (uint32_t)raw_open_name(&a, "default", "kinds");
	ok(one != two, "two handles of one resource");
	ok_int(raw_lock(&a, one, POSIX, EX, false, ALL), 0, "POSIX: the process locks by one");
	ok_int(raw_lock(&a, two, POSIX, EX, false, ALL), 0, "and by the other");
	ok_int(raw_lock(&a, one, OFD, EX, false, ALL), -EAGAIN, "OFD: another owner");
	raw_unlock(&a, two, POSIX, ALL);
	ok_int(raw_lock(&a, one, OFD, EX, false, ALL), 0, "which gets it when it is free");
	ok_int(raw_lock(&a, two, OFD, EX, false, ALL), -EAGAIN, "OFD handles exclude each other");
	ok_int(raw_lock(&a, two, FLOCK, EX, false, ALL), 0, "flock is a world of its own");
	ok_int(raw_lock(&a, one, FLOCK, SH, false, ALL), -EAGAIN, "with its own conflicts");
	ok_int(raw_lock(&a, two, FLOCK, EX, false, 0, 10), -EINVAL, "and no ranges");
	ok_int(raw_close_handle(&a, one), 0, "closing a handle");
	ok_int(raw_test(&a, two, POSIX, EX, ALL, &m), 0, "who is in the way now?");
	ok(!m.held, "its owner's locks are gone");
	ok_int(raw_lock(&a, one, POSIX, SH, false, 0, 0), -EBADF, "and so is the handle");
	ok_int(raw_close_handle(&a, one), -EBADF, "which cannot be closed twice");
	raw_close(&a);
}

/* A handle with requests on their way: they are withdrawn, and nothing of them stays. */
static void test_close_while_waiting(const struct belayd *d)
{
	struct raw a, b;
	struct client_message m;
	uint32_t ha, hb, n[3], seen = 0, closed;

	raw_open(&a, d->socket);
	raw_open(&b, d->socket);
	ha = (uint32_t)raw_open_name(&a, "default", "closing");
	hb = (uint32_t)raw_open_name(&b, "default", "closing");
	ok_int(raw_lock(&a, ha, POSIX, EX, false, 0, 9), 0, "a holds");
	for (unsigned i = 0; i < 3; i++)
		n[i] = raw_ask_lock(&b, hb, OFD, EX, true, i, i);
	closed = ++b.number;
	m = (struct client_message){ .type = CLIENT_CLOSE, .number = closed, .handle = hb };
	(void)raw_send(&b, &m);
	for (unsigned i = 0; i < 3; i++)
		if (raw_receive(&b, &m) == 1 && m.result == -EINTR)
			seen += m.number == n[0] || m.number == n[1] || m.number == n[2];
	ok_uint(seen, 3, "b closes while three requests wait: all are withdrawn");
	ok_int(raw_result(&b, closed, NULL), 0, "then it is closed");
	raw_unlock(&a, ha, POSIX, ALL);
	ok_int(raw_lock(&a, ha, OFD, EX, false, ALL), 0, "and holds nothing");
	raw_close(&a);
	raw_close(&b);
}

/* What is asked in one packet is answered in order, and at once in one packet. */
static void test_packet(const struct belayd *d)
{
	struct client_message m = {
		.type = CLIENT_OPEN_NAME, .number = 101, .text = "default", .text_size = 7,
		.text2 = "packet", .text2_size = 6,
	};
	uint8_t buf[4096];
	size_t size = 0;
	struct raw r;
	uint32_t handle = 0, packets;

	raw_open(&r, d->socket);
	(void)client_put(buf, sizeof(buf), &size, &m);
	m.number = 102;
	m.text2 = "packed";
	(void)client_put(buf, sizeof(buf), &size, &m);
	/* The first handle of a client is 1, and it is open when this is read. */
	m = (struct client_message){
		.type = CLIENT_LOCK, .number = 103, .handle = 1, .mode = EX, .range = { 0, 9 },
	};
	(void)client_put(buf, sizeof(buf), &size, &m);
	m = (struct client_message){ .type = CLIENT_UNLOCK, .handle = 1, .range = { 0, 4 } };
	(void)client_put(buf, sizeof(buf), &size, &m);
	packets = r.packets;
	(void)raw_send_bytes(&r, buf, size, NULL, 0);
	ok(raw_result(&r, 101, &m) == 0 && (handle = m.handle) == 1, "a packet of four: the first");
	ok(raw_result(&r, 102, &m) == 0 && m.handle == 2, "the second");
	ok_uint(r.packets - packets, 1, "both answers come in one packet");
	ok_int(raw_result(&r, 103, &m), 0, "the third, which uses what the first opened");
	ok(raw_silent(&r), "an unlock without a number is not answered");
	ok_int(raw_close_handle(&r, handle), 0, "closed");
	raw_close(&r);
}

/* Stopped, belayd finds in its sockets what was said meanwhile, in whatever order it reads them. */
static void stop(const struct belayd *d)
{
	char path[64], line[256] = "";
	FILE *file;

	kill(d->pid, SIGSTOP);
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)d->pid);
	while (!strstr(line, ") T ")) {
		file = fopen(path, "re");
		if (!file || !fgets(line, sizeof(line), file))
			bail_out("belayd cannot be stopped");
		fclose(file);
	}
}

/* Who was told of an unlock does not meet that lock. */
static void test_told(const struct belayd *d)
{
	struct raw holder, other;
	uint32_t h, o, tried, again;

	raw_open(&holder, d->socket);
	raw_open(&other, d->socket);
	h = (uint32_t)raw_open_name(&holder, "default", "told");
	o = (uint32_t)raw_open_name(&other, "default", "told");
	ok_int(raw_lock(&holder, h, POSIX, EX, false, 0, 9), 0, "a lock");
	stop(d);
	/* Others come first, each in a packet of its own. */
	for (uint64_t i = 20; i < 26; i++)
		raw_unlock(&holder, h, POSIX, i, i);
	raw_unlock(&holder, h, POSIX, 0, 9);
	tried = raw_ask_lock(&other, o, POSIX, EX, false, 0, 4);
	again = raw_ask_lock(&other, o, POSIX, EX, false, 5, 9);
	kill(d->pid, SIGCONT);
	ok_int(raw_result(&other, tried, NULL), 0, "is unlocked before another tries it, who sees that");
	ok_int(raw_result(&other, again, NULL), 0, "with each try");
	raw_close(&holder);
	raw_close(&other);
}

int main(void)
{
	struct belayd d;

	belayd_start(&d, NULL);
	test_told(&d);
	test_conflict(&d);
	test_ends(&d);
	test_waiting(&d);
	test_deadlock(&d);
	test_kinds(&d);
	test_close_while_waiting(&d);
	test_packet(&d);
	ok_int(belayd_stop(&d), 0, "belayd leaves cleanly");
	if (tap_state()->failed > 0)
		belayd_show_log(&d);
	belayd_remove(&d);
	return done_testing();
}
