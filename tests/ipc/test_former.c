/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * belayd is killed and started anew: it serves only when those who had locks
 * under the one before have ended or connected anew.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/ipc/raw.h"
#include "tests/tap.h"

/* A process that holds a lock, and then does what it is told. */
struct holder {
	pid_t pid;
	int to, from;
};

enum order {
	ORDER_RECONNECT = 'r',	/* connect anew, lock, say 'l' */
	ORDER_CLOSE = 'c',	/* end the connection, go on, say 'c' */
};

static void say(int fd, char what)
{
	if (write(fd, &what, 1) != 1)
		_exit(3);
}

static char hear(int fd)
{
	struct pollfd in = { .fd = fd, .events = POLLIN };
	char what = '?';

	return poll(&in, 1, PATIENCE_MS) == 1 && read(fd, &what, 1) == 1 ? what : '?';
}

/* Connect, and say 'l': the lock is held. */
static void take(struct raw *r, const struct belayd *d, int to)
{
	raw_open(r, d->socket);
	if (raw_try(r, (uint32_t)raw_open_name(r, "default", "name")) != 0)
		_exit(2);
	say(to, 'l');
}

static _Noreturn void hold(const struct belayd *d, int from, int to)
{
	struct raw r;
	char order;

	take(&r, d, to);
	while (read(from, &order, 1) == 1) {
		raw_close(&r);
		if (order == ORDER_RECONNECT)
			take(&r, d, to);
		else
			say(to, 'c');
	}
	_exit(0);
}

static void start_holder(struct holder *h, const struct belayd *d)
{
	int to[2], from[2];

	if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0)
		bail_out("no pipes");
	h->pid = fork();
	if (h->pid == 0) {
		close(to[1]);
		close(from[0]);
		hold(d, to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	h->to = to[1];
	h->from = from[0];
	ok_int(hear(h->from), 'l', "a process holds a lock");
}

static void end_holder(struct holder *h)
{
	kill(h->pid, SIGKILL);
	waitpid(h->pid, NULL, 0);
	close(h->to);
	close(h->from);
}

/* ---- records ---- */

static void records_path(const struct belayd *d, char *buf, size_t size)
{
	snprintf(buf, size, "%s.clients", d->socket);
}

static int records(const struct belayd *d)
{
	char path[128];
	DIR *dir;
	int count = 0;

	records_path(d, path, sizeof(path));
	dir = opendir(path);
	if (!dir)
		return -1;
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2;	/* . and .. */
}

static void plant(const struct belayd *d, const char *name)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s.clients/%s", d->socket, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		bail_out("cannot plant a record");
	close(fd);
}

/* ---- belayd ---- */

static void crash(struct belayd *d)
{
	kill(d->pid, SIGKILL);
	ok_int(belayd_wait(d), 256 + SIGKILL, "belayd is killed");
}

static bool starts_waiting(struct belayd *d)
{
	belayd_spawn(d, NULL);
	return belayd_says(d, "STATUS=belayd waits for process");
}

/* belay status: its exit status, with what it says in the test's log. */
static int tool_status(const struct belayd *d, char *buf, size_t size)
{
	const char *top = getenv("top_builddir");
	char command[512];
	size_t n;
	FILE *p;
	int status;

	snprintf(command, sizeof(command), "%s/tools/belay --socket %s status 2>&1", top ? top : ".",
		 d->socket);
	p = popen(command, "re");
	if (!p)
		bail_out("no shell");
	n = fread(buf, 1, size - 1, p);
	buf[n] = '\0';
	status = pclose(p);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_end_of_holder(void)
{
	struct belayd d;
	struct holder a;
	struct raw other;
	char said[1024], who[32];

	belayd_start(&d, NULL);
	ok_int(records(&d), 0, "no client, no record");
	start_holder(&a, &d);
	ok_int(records(&d), 1, "which is recorded");
	raw_open(&other, d.socket);
	ok_int(records(&d), 1, "a client that has opened nothing is not");
	raw_close(&other);
	crash(&d);

	ok(starts_waiting(&d), "the next belayd waits");
	snprintf(who, sizeof(who), "waiting for process %d (", (int)a.pid);
	ok(belayd_logged(&d, who), "the log says for whom");
	raw_connect(&other, d.socket);
	ok(raw_refused(&other, -EAGAIN, "which held locks under the belayd before"),
	   "nobody else is served");
	raw_close(&other);
	ok_int(tool_status(&d, said, sizeof(said)), 3, "belay status does not reach it");
	snprintf(who, sizeof(who), "waits for process %d (", (int)a.pid);
	if (!ok(strstr(said, who), "and says why"))
		diag("%s", said);
	ok_int(records(&d), 1, "the record is still there");
	end_holder(&a);
	ok(belayd_ready(&d), "the process ends, and belayd serves");
	ok_int(records(&d), 0, "its record is gone");
	ok(belayd_logged(&d, "has ended"), "which is logged");
	raw_open(&other, d.socket);
	ok_int(raw_try(&other, (uint32_t)raw_open_name(&other, "default", "name")), 0,
	       "and its lock is free");
	raw_close(&other);
	ok_int(belayd_stop(&d), 0, "belayd leaves");
	belayd_remove(&d);
}

static void test_reconnect(void)
{
	struct belayd d;
	struct holder a, b;
	struct raw r;
	int before;

	belayd_start(&d, NULL);
	start_holder(&a, &d);
	before = belayd_descriptors(&d);
	crash(&d);
	ok(starts_waiting(&d), "the next belayd waits");
	say(a.to, ORDER_RECONNECT);
	ok(belayd_ready(&d), "the process connects anew, and belayd serves");
	ok_int(hear(a.from), 'l', "first of all the process, which has its lock again");
	ok_int(records(&d), 1, "it has a record again");
	raw_open(&r, d.socket);
	ok_int(raw_try(&r, (uint32_t)raw_open_name(&r, "default", "name")), -EAGAIN, "and excludes others");
	raw_close(&r);

	say(a.to, ORDER_CLOSE);
	ok_int(hear(a.from), 'c', "it ends the connection and lives on");
	start_holder(&b, &d);
	ok_int(records(&d), 1, "then it is forgotten");
	end_holder(&b);
	raw_open(&r, d.socket);
	ok_int(raw_lock(&r, (uint32_t)raw_open_name(&r, "default", "name"), BELAY_KIND_POSIX,
			BELAY_MODE_EX, true, 0, 1), 0, "b's end is noticed");
	raw_close(&r);
	raw_open(&r, d.socket);
	ok_int(raw_open_name(&r, "nowhere", "name"), -ENOENT, "what cannot be opened");
	ok_int(records(&d), 0, "needs no record");
	ok_int(belayd_descriptors(&d), before, "nothing is left open of the wait");
	raw_close(&r);
	crash(&d);
	belayd_spawn(&d, NULL);
	ok(belayd_ready(&d), "a process that held nothing is not waited for");
	end_holder(&a);
	belayd_remove(&d);
}

static void test_names(void)
{
	struct belayd d;
	char name[64];

	belayd_start(&d, NULL);
	crash(&d);
	snprintf(name, sizeof(name), "%d.1.16", (int)getpid());
	plant(&d, name);
	plant(&d, "garbage");
	plant(&d, "1.2");
	belayd_spawn(&d, NULL);
	ok(belayd_ready(&d), "a process of that number but another start is not waited for");
	ok(belayd_logged(&d, "garbage, which is no record"), "what is no record is told");
	ok(belayd_logged(&d, "1.2, which is no record"), "each");
	ok_int(records(&d), 0, "and all are removed");
	crash(&d);

	plant(&d, "0.0.16");
	belayd_spawn(&d, NULL);
	ok(belayd_says(&d, "STATUS=belayd waits"), "a process that cannot be seen is waited for");
	ok(belayd_logged(&d, ".clients/0.0.16, and start belayd again"), "until somebody knows more");
	ok_int(belayd_stop(&d), 7, "belayd ends at once when told to");
	ok(access(d.socket, F_OK) < 0, "and takes its socket away");
	ok_int(records(&d), 1, "but not the record");
	belayd_remove(&d);
}

/* Two connections of this process, and another process; and a belayd that is stopped meanwhile. */
static void test_several(void)
{
	struct client_message m = {
		.type = CLIENT_HELLO, .magic = CLIENT_MAGIC, .version = CLIENT_VERSION,
	};
	struct belayd d;
	struct holder a;
	struct raw r[2];
	uint32_t h;

	belayd_start(&d, NULL);
	start_holder(&a, &d);
	for (unsigned i = 0; i < 2; i++) {
		raw_open(&r[i], d.socket);
		h = (uint32_t)raw_open_name(&r[i], "default", i ? "one" : "two");
		ok_int(raw_try(&r[i], h), 0, "this process holds lock %u", i);
	}
	ok_int(records(&d), 3, "each connection has its record");
	crash(&d);
	ok(starts_waiting(&d), "belayd waits for both processes");
	ok_int(belayd_stop(&d), 7, "it is stopped");
	ok(belayd_logged(&d, "stopping (Terminated) while"), "and says what that means");
	ok_int(records(&d), 3, "all records are kept");

	ok(starts_waiting(&d), "started again, it waits again");
	end_holder(&a);
	for (unsigned i = 0; i < 2; i++) {
		raw_close(&r[i]);
		raw_connect(&r[i], d.socket);
	}
	ok(belayd_ready(&d), "one ends, the other connects, and belayd serves");
	ok_int(records(&d), 0, "no record is left");
	raw_close(&r[0]);
	ok_int(raw_send(&r[1], &m), 0, "who connected during the wait");
	ok(raw_receive(&r[1], &m) == 1 && m.type == CLIENT_WELCOME, "is served");
	raw_close(&r[1]);
	ok_int(belayd_stop(&d), 0, "belayd leaves");
	belayd_remove(&d);
}

/* The ends of belayd itself. */
static void test_stops(void)
{
	struct belayd d;
	struct raw r;
	uint32_t h;

	belayd_start(&d, "stop_timeout_s = 1\n");
	raw_open(&r, d.socket);
	h = (uint32_t)raw_open_name(&r, "default", "name");
	ok_int(raw_try(&r, h), 0, "a lock is held");
	raw_unlock(&r, h, BELAY_KIND_POSIX, 0, BELAY_OFFSET_MAX);
	ok_int(raw_try(&r, h), 0, "again");
	kill(d.pid, SIGTERM);
	ok_int(belayd_wait(&d), 7, "and belayd stopped all the same");
	ok_int(records(&d), 1, "the record stays, for the process was only told");
	ok(starts_waiting(&d), "so that the next belayd waits");
	raw_close(&r);
	raw_open(&r, d.socket);
	ok(belayd_ready(&d), "until the process connects anew");
	ok(raw_open_name(&r, "default", "name") > 0, "something is open, nothing held");
	ok_int(records(&d), 1, "and recorded");
	ok_int(belayd_stop(&d), 0, "belayd leaves cleanly");
	ok_int(records(&d), 0, "and no record stays");
	raw_close(&r);
	belayd_remove(&d);
}

/* What goes wrong while it waits is logged once, too. */
static void test_no_socket(void)
{
	struct belayd d;
	struct holder h;
	unsigned errors;
	int fd;

	belayd_start(&d, NULL);
	start_holder(&h, &d);
	kill(d.pid, SIGKILL);
	belayd_wait(&d);
	unlink(d.socket);
	fd = open(d.socket, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		bail_out("no file");
	close(fd);
	errors = belayd_log_lines(&d, "belayd: error:");
	belayd_spawn(&d, NULL);
	ok_int(belayd_wait(&d), 5, "a file where the socket should be, and somebody to wait for");
	ok(belayd_logged(&d, "is no socket"), "the log says so");
	ok_uint(belayd_log_lines(&d, "belayd: error:"), errors + 1, "once");
	ok_int(records(&d), 1, "the record is kept");
	end_holder(&h);
	belayd_remove(&d);
}

int main(void)
{
	test_end_of_holder();
	test_reconnect();
	test_names();
	test_several();
	test_stops();
	test_no_socket();
	return done_testing();
}
