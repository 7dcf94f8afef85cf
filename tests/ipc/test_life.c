/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How belayd starts, refuses to start, and ends; what is left behind each time. */
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/ipc/raw.h"
#include "tests/tap.h"

static int run(struct belayd *d, const char *option, const char *argument)
{
	const char *const options[] = { option, argument, NULL };

	belayd_spawn(d, options);
	return belayd_wait(d);
}

static void test_options(void)
{
	struct belayd d;

	belayd_prepare(&d, NULL);
	ok_int(run(&d, "--version", NULL), 0, "--version");
	ok(belayd_logged(&d, "belayd " PACKAGE_VERSION), "tells the version");
	ok_int(run(&d, "--help", NULL), 0, "--help");
	ok(belayd_logged(&d, "usage: belayd"), "tells the usage");
	ok_int(run(&d, "--nonsense", NULL), 2, "an unknown option");
	ok_int(run(&d, "argument", NULL), 2, "an argument");
	ok_int(run(&d, "--check", NULL), 0, "--check of a good configuration");
	ok_int(run(&d, "--config", "/nonexistent/belay.conf"), 3, "no configuration where one is named");
	ok(belayd_logged(&d, "/nonexistent/belay.conf"), "the log names it");
	ok(access(d.socket, F_OK) < 0, "none of these served");
	belayd_remove(&d);

	belayd_prepare(&d, "no_such_key = 1\nclients_max = many\n");
	ok_int(run(&d, "--check", NULL), 3, "--check of a bad configuration");
	ok(belayd_logged(&d, "belay.conf:4:"), "names the line");
	ok(belayd_logged(&d, "no_such_key"), "and the key");
	ok(belayd_logged(&d, "belay.conf:5:"), "and all others that are wrong");
	ok_int(run(&d, NULL, NULL), 3, "with it belayd does not start");
	belayd_remove(&d);
}

static void test_second(void)
{
	struct belayd d, second;
	struct raw r;

	belayd_start(&d, NULL);
	raw_open(&r, d.socket);
	second = d;
	ok_int(run(&second, NULL, NULL), 4, "a second belayd on one socket is refused");
	ok(belayd_logged(&d, "another belayd (process "), "the log names the first");
	ok(raw_open_name(&r, "default", "n") > 0, "the first serves on");
	raw_close(&r);
	ok_int(belayd_stop(&d), 0, "it leaves cleanly");
	ok(access(d.socket, F_OK) < 0, "and takes its socket away");
	belayd_remove(&d);
}

static void test_stale(void)
{
	struct belayd d;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct raw r;
	char old[128];
	unsigned errors;
	int fd;

	belayd_start(&d, NULL);
	kill(d.pid, SIGKILL);
	ok_int(belayd_wait(&d), 256 + SIGKILL, "belayd is killed");
	ok(access(d.socket, F_OK) == 0, "and leaves its socket behind");
	belayd_spawn(&d, NULL);
	ok(belayd_ready(&d), "the next one starts all the same");
	raw_open(&r, d.socket);
	raw_close(&r);
	snprintf(old, sizeof(old), "%s.old", d.journal);
	ok(access(old, F_OK) == 0, "and keeps what the one before recorded");
	ok_int(belayd_stop(&d), 0, "and leaves cleanly");

	fd = open(d.socket, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	close(fd);
	errors = belayd_log_lines(&d, "belayd: error:");
	ok_int(run(&d, NULL, NULL), 5, "a file where the socket should be");
	ok_uint(belayd_log_lines(&d, "belayd: error:"), errors + 1, "one failure is one error in the log");
	ok(belayd_logged(&d, "is no socket"), "the log says so");
	ok(access(d.socket, F_OK) == 0, "the file is not touched");
	unlink(d.socket);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", d.socket);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 1) < 0)
		bail_out("no socket");
	ok_int(run(&d, NULL, NULL), 5, "another program's socket");
	ok(belayd_logged(&d, "another program listens"), "the log says so");
	ok_uint(belayd_log_lines(&d, "belayd: error:"), errors + 2, "once");
	close(fd);
	belayd_remove(&d);
}

static void test_permissions(void)
{
	struct belayd d;
	struct stat st;
	char dir[128];

	belayd_start(&d, "socket_mode = 0606\n");
	ok(stat(d.socket, &st) == 0 && (st.st_mode & 0777) == 0606, "socket_mode");
	snprintf(dir, sizeof(dir), "%s/run", d.dir);
	ok(stat(dir, &st) == 0 && (st.st_mode & 0777) == 0755, "its directory is made, open to look into");
	ok(stat(d.journal, &st) == 0 && (st.st_mode & 0777) == 0600, "the journal is for root only");
	ok_int(belayd_stop(&d), 0, "belayd leaves cleanly");
	belayd_remove(&d);
}

/* It waits for what is held, and takes on nothing new meanwhile. */
static void test_patient_stop(void)
{
	struct belayd d;
	struct raw r, waiter;
	struct client_message m;
	uint32_t h, n;

	belayd_start(&d, NULL);
	raw_open(&r, d.socket);
	raw_open(&waiter, d.socket);
	h = (uint32_t)raw_open_name(&r, "default", "held");
	ok_int(raw_try(&r, h), 0, "a lock is held");
	n = raw_wait_for(&waiter, (uint32_t)raw_open_name(&waiter, "default", "held"));
	ok_int(raw_test(&waiter, 1, BELAY_KIND_POSIX, BELAY_MODE_EX, 0, 0, &m), 0, "and waited for");
	kill(d.pid, SIGTERM);
	ok_int(raw_result(&waiter, n, NULL), -EIO, "who waits is told at once");
	ok_int(raw_open_name(&r, "default", "new"), -EIO, "nothing new is opened");
	ok_int(raw_lock(&r, h, BELAY_KIND_POSIX, BELAY_MODE_SH, false, 0, 0), -EIO, "nor locked");
	ok_int(raw_test(&waiter, 1, BELAY_KIND_POSIX, BELAY_MODE_EX, 0, 0, &m), -EIO, "nor asked");
	ok(waitpid(d.pid, NULL, WNOHANG) == 0, "belayd waits for the lock");
	raw_unlock(&r, h, BELAY_KIND_POSIX, 0, BELAY_OFFSET_MAX);
	ok_int(belayd_wait(&d), 0, "and leaves when it is released");
	ok(raw_refused(&r, -EIO, "left the cluster"), "its clients are told");
	raw_close(&r);
	raw_close(&waiter);
	belayd_remove(&d);
}

static void test_unclean_stop(void)
{
	struct belayd d;
	struct raw r;

	belayd_start(&d, "stop_timeout_s = 0\n");
	raw_open(&r, d.socket);
	ok_int(raw_try(&r, (uint32_t)raw_open_name(&r, "default", "held")), 0, "a lock is held");
	kill(d.pid, SIGTERM);
	ok_int(belayd_wait(&d), 7, "after stop_timeout_s belayd ends although it is held");
	ok(belayd_logged(&d, "holds a lock"), "the log says by whom");
	ok(belayd_logged(&d, "fence-ack 1"), "and what is to be done");
	ok(raw_refused(&r, -EIO, "while locks were held"), "its client is told");
	raw_close(&r);
	belayd_remove(&d);
}

int main(void)
{
	test_options();
	test_second();
	test_stale();
	test_permissions();
	test_patient_stop();
	test_unclean_stop();
	return done_testing();
}
