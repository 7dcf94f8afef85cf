/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rules about descriptors: whose a lock is, and when it goes. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/ipc/lock_rules.h"

static int lock(int fd, off_t start, off_t length)
{
	return rules_lock(fd, F_SETLK, F_WRLCK, start, length);
}

/* ---- anything, in any order ---- */

static unsigned next_random(void)
{
	static unsigned long long seed = 4711;

	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned)(seed >> 33);
}

static void random_step(int *fd, int i)
{
	static const int cmds[] = { F_SETLK, F_SETLK, F_OFD_SETLK };
	static const int flocks[] = { LOCK_SH, LOCK_EX, LOCK_UN };
	static const int modes[] = { F_RDLCK, F_WRLCK, F_UNLCK };
	unsigned which = next_random() % 4, start = next_random() % 10, kind = next_random() % 12;
	char what[64];

	if (kind < 8) {
		int cmd = cmds[next_random() % 3], type = modes[next_random() % 3];

		snprintf(what, sizeof(what), "%d: %d %d by %u at %u", i, cmd, type, which, start);
		rules_say(what, rules_lock(fd[which], cmd, type, start, 1 + next_random() % 5));
	} else if (kind < 9) {
		rules_say("flock", flock(fd[which], flocks[next_random() % 3] | LOCK_NB));
	} else if (kind < 11) {
		rules_other("locks", 'l', modes[next_random() % 3], start, 1 + next_random() % 5);
	} else if (next_random() % 3 == 0) {
		close(fd[which]);
		fd[which] = which < 3 ? rules_open(O_RDWR) : dup(fd[0]);
	}
	rules_map("now");
}

void rule_random(void)
{
	int fd[4] = { rules_open(O_RDWR), rules_open(O_RDWR), rules_open(O_RDWR) };

	fd[3] = dup(fd[0]);
	for (int i = 0; i < 1500; i++)
		random_step(fd, i);
}

/* ---- descriptors ---- */

void rule_close(void)
{
	int a = rules_open(O_RDWR), b = rules_open(O_RDONLY), c, d;
	struct rlimit limit, low;

	rules_say("lock", lock(a, 2, 3));
	rules_map("locked");
	close(b);
	rules_map("another descriptor of the file is closed");
	rules_say("lock", lock(a, 2, 3));
	b = open("/dev/null", O_RDONLY);
	close(b);
	rules_map("one of another file is closed");
	b = open(rules_path, O_PATH | O_CLOEXEC);
	close(b);
	rules_map("one that only tells where it is");
	b = open(rules_path, O_PATH | O_CLOEXEC);
	d = open("/dev/null", O_RDONLY);
	dup2(d, b);
	close(b);
	close(d);
	rules_map("and is replaced");
	getrlimit(RLIMIT_NOFILE, &limit);
	low = limit;
	low.rlim_cur = (rlim_t)a;
	setrlimit(RLIMIT_NOFILE, &low);
	rules_say("a copy to a number that is too large", dup2(0, a));
	setrlimit(RLIMIT_NOFILE, &limit);
	rules_map("what was there stays");
	b = dup(a);
	close(b);
	rules_map("a copy is closed");
	rules_say("lock", lock(a, 0, 1));
	b = rules_open(O_RDWR);
	rules_say("by another descriptor", rules_lock(b, F_SETLK, F_RDLCK, 1, 1));
	rules_map("both are the process's");
	rules_say("unlock the one's by the other", rules_lock(b, F_SETLK, F_UNLCK, 0, 1));
	rules_map("unlocked");
	rules_say("a second time", rules_lock(b, F_SETLK, F_UNLCK, 0, 1));
	close(a);
	rules_map("closed");
	a = rules_open(O_RDWR);
	c = rules_open(O_WRONLY);
	d = rules_open(O_RDONLY);
	rules_say("read by who may write", rules_lock(c, F_SETLK, F_RDLCK, 0, 1));
	rules_say("write by who may read", rules_lock(d, F_SETLK, F_WRLCK, 0, 1));
	rules_say("read by who may", rules_lock(d, F_SETLK, F_RDLCK, 0, 4));
	rules_say("write by who may", rules_lock(c, F_SETLK, F_WRLCK, 1, 1));
	rules_map("one process's, by three descriptors");
	close(a);
	rules_map("closed");
	rules_say("and again", lock(c, 5, 0));
	rules_map("to the end");
	close(c);
	rules_map("closed");
	rules_say("close what is closed", close(c));
}

void rule_copies(void)
{
	int a = rules_open(O_RDWR), b = rules_open(O_RDWR), n;

	rules_say("lock", lock(a, 2, 3));
	n = open("/dev/null", O_RDONLY | O_CLOEXEC);
	rules_say("dup2() over another descriptor of the file", dup2(n, b));
	rules_map("that closes it");
	rules_say("lock", lock(a, 2, 3));
	rules_say("dup2() of nothing", dup2(800, a));
	rules_map("that fails, and closes nothing");
	rules_say("dup2() over itself", dup2(a, a));
	rules_map("that does nothing");
	rules_say("dup3() over itself", dup3(a, a, 0));
	rules_say("dup3() of a flag that is none", dup3(n, a, O_APPEND));
	rules_map("they do nothing");
	rules_say("dup3()", dup3(n, a, O_CLOEXEC));
	rules_map("that closes it");
	close(a);
	close(b);
	a = rules_open(O_RDWR);
	rules_say("F_OFD lock", rules_lock(a, F_OFD_SETLK, F_WRLCK, 1, 1));
	b = fcntl(a, F_DUPFD, 50);
	n = fcntl(a, F_DUPFD_CLOEXEC, 60);
	rules_say("lock", lock(b, 3, 1));
	rules_say("of one open file it is", rules_lock(n, F_OFD_SETLK, F_RDLCK, 1, 1));
	close(a);
	rules_map("one of three descriptors is closed");
	close(b);
	rules_map("two");
	close(n);
	rules_map("three");
	/* A copy made before the first lock. */
	a = rules_open(O_RDWR);
	b = dup(a);
	rules_say("flock", flock(a, LOCK_EX));
	close(a);
	rules_other("one is closed", 'f', LOCK_EX | LOCK_NB, 0, 0);
	rules_say("unlock by the copy", flock(b, LOCK_UN));
	rules_other("now", 'f', LOCK_EX | LOCK_NB, 0, 0);
	rules_other("and back", 'f', LOCK_UN, 0, 0);
	rules_say("flock", flock(b, LOCK_EX));
	rules_say("close_range()", close_range((unsigned)b, UINT_MAX, CLOSE_RANGE_CLOEXEC));
	rules_other("only marked", 'f', LOCK_EX | LOCK_NB, 0, 0);
	rules_say("close_range()", close_range((unsigned)b, (unsigned)b + 20, 0));
	rules_other("closed", 'f', LOCK_EX | LOCK_NB, 0, 0);
	a = rules_open(O_RDWR);
	b = rules_open(O_RDWR);
	rules_say("lock", lock(a, 0, 2));
	rules_say("close_range() of one never locked", close_range((unsigned)b, (unsigned)b, 0));
	rules_map("closed");
}

void rule_streams(void)
{
	int a = rules_open(O_RDWR);
	FILE *f = fopen(rules_path, "r+e");
	char buf[16] = "";

	rules_say("lock", lock(a, 0, 1));
	fclose(f);
	rules_map("fclose() of another descriptor");
	f = fdopen(a, "r+");
	rules_say("lock", lock(a, 0, 1));
	fputs("flushed", f);
	fclose(f);
	rules_map("fclose() of its own");
	a = rules_open(O_RDWR);
	printf("%zd written\n", read(a, buf, sizeof(buf) - 1) > 0 ? strlen(buf) : 0);
	f = fopen(rules_path, "r+e");
	rules_say("flock", flock(fileno(f), LOCK_EX));
	rules_say("lock", lock(a, 0, 1));
	f = freopen("/dev/null", "r", f);
	rules_map("freopen()");
	rules_other("flock", 'f', LOCK_EX | LOCK_NB, 0, 0);
	fclose(f);
	close(a);
}

/* ---- children ---- */

static void reap(pid_t pid)
{
	int status = 0;

	waitpid(pid, &status, 0);
	printf("child: %d\n", status);
	fflush(stdout);
}

static void spawn(void)
{
	char *argv[] = { (char *)"true", NULL };
	posix_spawn_file_actions_t actions;
	pid_t pid;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addclosefrom_np(&actions, 3);
	rules_say("posix_spawn", posix_spawnp(&pid, "true", &actions, NULL, argv, environ) ? -1 : 0);
	reap(pid);
	posix_spawn_file_actions_destroy(&actions);
}

void rule_children(void)
{
	int a = rules_open(O_RDWR);
	pid_t pid;

	rules_say("lock", lock(a, 2, 3));
	pid = fork();
	if (pid == 0) {
		rules_say("a child has none of it", lock(a, 2, 1));
		rules_say("but may lock for itself", lock(a, 8, 1));
		rules_map("both");
		close(a);
		rules_map("and closes its own");
		_exit(0);
	}
	reap(pid);
	rules_map("the parent's are untouched");
	pid = fork();
	if (pid == 0) {
		closefrom(3);
		_exit(0);
	}
	reap(pid);
	rules_map("a child closes all");
	pid = fork();
	if (pid == 0) {
		a = rules_open(O_RDWR);
		rules_say("a child locks, and ends", lock(a, 9, 1));
		_exit(0);
	}
	reap(pid);
	rules_map("it is gone");
	pid = vfork();
	if (pid == 0) {
		close(a);
		dup2(0, a);
		execlp("true", "true", NULL);
		_exit(1);
	}
	reap(pid);
	rules_map("a vfork()ed child closes it, and executes");
	spawn();
	rules_map("so does one of posix_spawn()");
	if (system("true") != 0)
		printf("system\n");
	rules_map("and of system()");
	rules_say("lock", lock(a, 3, 5));
	rules_map("it is still the parent's");
}

/* ---- kinds ---- */

void rule_flock(void)
{
	int a = rules_open(O_RDWR), b = rules_open(O_RDONLY), c = rules_open(O_WRONLY), d = dup(b);

	rules_say("shared", flock(a, LOCK_SH));
	rules_say("shared, by another open file", flock(b, LOCK_SH | LOCK_NB));
	rules_say("exclusive", flock(c, LOCK_EX | LOCK_NB));
	rules_say("to convert is to lose it", flock(b, LOCK_EX | LOCK_NB));
	rules_say("so now", flock(a, LOCK_EX | LOCK_NB));
	rules_say("none is left", flock(d, LOCK_SH | LOCK_NB));
	rules_say("back to shared", flock(a, LOCK_SH));
	rules_say("room", flock(d, LOCK_SH | LOCK_NB));
	rules_say("unlock", flock(a, LOCK_UN));
	rules_say("unlock again", flock(a, LOCK_UN));
	rules_say("exclusive through what may only read", flock(b, LOCK_EX | LOCK_NB));
	rules_say("by its copy the same", flock(d, LOCK_EX | LOCK_NB));
	rules_other("others", 'f', LOCK_SH | LOCK_NB, 0, 0);
	rules_say("fcntl is another world", lock(a, 0, 0));
	rules_map("there");
	close(a);
	rules_other("closing one open file", 'f', LOCK_SH | LOCK_NB, 0, 0);
	close(b);
	rules_other("one of two copies", 'f', LOCK_SH | LOCK_NB, 0, 0);
	close(d);
	rules_other("both", 'f', LOCK_SH | LOCK_NB, 0, 0);
	rules_say("exclusive through what may only write", flock(c, LOCK_EX | LOCK_NB));
	rules_other("the other unlocks", 'f', LOCK_UN, 0, 0);
	rules_say("and again", flock(c, LOCK_EX | LOCK_NB));
	rules_ask('f', LOCK_EX, 0, 0);
	close(c);
	rules_hear("who waits gets it");
}

void rule_ofd(void)
{
	int a = rules_open(O_RDWR), b = rules_open(O_RDWR);

	rules_say("one open file", rules_lock(a, F_OFD_SETLK, F_WRLCK, 0, 4));
	rules_say("excludes another", rules_lock(b, F_OFD_SETLK, F_WRLCK, 2, 4));
	rules_say("and the process", lock(b, 3, 1));
	rules_say("even by itself", lock(a, 3, 1));
	rules_say("the process", lock(a, 6, 2));
	rules_say("excludes it", rules_lock(a, F_OFD_SETLK, F_WRLCK, 7, 1));
	rules_map("all");
	close(b);
	rules_map("closing another leaves it, but not the process's");
	b = dup(a);
	close(a);
	rules_map("so does closing a copy");
	close(b);
	rules_map("but not the last one");
}

void rule_lockf(void)
{
	int a = rules_open(O_RDWR);

	lseek(a, 4, SEEK_SET);
	rules_say("lock", lockf(a, F_TLOCK, 3));
	rules_map("from where it stands");
	rules_say("before it", lockf(a, F_LOCK, -2));
	rules_map("backwards");
	rules_say("test one's own", lockf(a, F_TEST, 0));
	rules_say("unlock", lockf(a, F_ULOCK, 1));
	rules_map("unlocked");
	rules_other("the other locks", 'l', F_WRLCK, 4, 1);
	rules_say("test", lockf(a, F_TEST, 1));
	rules_say("try", lockf(a, F_TLOCK, 1));
	rules_say("all", lockf(a, F_ULOCK, 0));
	rules_map("the rest");
}

static void get(const char *what, int fd, int cmd, int type, off_t start, off_t length)
{
	struct flock l = { .l_type = (short)type, .l_whence = SEEK_END, .l_start = start, .l_len = length };
	int r = fcntl(fd, cmd, &l);

	printf("%s: %s %d %d %lld %lld %s\n", what, rules_error(r), l.l_type, l.l_whence,
	       (long long)l.l_start, (long long)l.l_len,
	       l.l_pid == 0 ? "-" : l.l_pid == -1 ? "an open file" : l.l_pid == getpid() ? "I" : "it");
	fflush(stdout);
}

void rule_holder(void)
{
	int a = rules_open(O_RDWR);

	if (ftruncate(a, 100) < 0)
		exit(2);
	rules_other("the other locks", 'l', F_WRLCK, 10, 5);
	get("read", a, F_GETLK, F_RDLCK, -100, 0);
	get("write", a, F_GETLK, F_WRLCK, -88, 1);
	get("beside", a, F_GETLK, F_WRLCK, -85, 1);
	get("an open file asks", a, F_OFD_GETLK, F_WRLCK, -100, 0);
	rules_other("read, to the end", 'l', F_RDLCK, 0, 0);
	get("read", a, F_GETLK, F_RDLCK, -100, 0);
	get("write", a, F_GETLK, F_WRLCK, -100, 50);
	rules_other("away", 'l', F_UNLCK, 0, 0);
	rules_say("an open file locks", rules_lock(a, F_OFD_SETLK, F_WRLCK, 3, 4));
	get("by the process", a, F_GETLK, F_WRLCK, -100, 0);
	get("by itself", a, F_OFD_GETLK, F_WRLCK, -100, 0);
	rules_other("and the other", 'g', F_RDLCK, 0, 0);
	rules_say("the process locks", lock(a, 20, 1));
	rules_other("the other", 'g', F_RDLCK, 20, 0);
	get("by an open file", a, F_OFD_GETLK, F_WRLCK, -100, 0);
}

/* ---- programs that close all they do not know ---- */

void rule_tidy(void)
{
	int a = rules_open(O_RDWR);

	rules_say("lock", lock(a, 2, 3));
	for (int fd = 3; fd < 1024; fd++)
		if (fd < 900 || fd > 910)
			close(fd);
	rules_map("all are closed");
	a = rules_open(O_RDWR);
	rules_say("lock", lock(a, 2, 3));
	rules_map("locked");
	(void)close_range(3, 899, 0);
	(void)close_range(911, ~0u, 0);
	rules_map("all are closed");
	a = rules_open(O_RDWR);
	rules_say("flock", flock(a, LOCK_EX));
	rules_other("others", 'f', LOCK_SH | LOCK_NB, 0, 0);
	closefrom(911);
	rules_other("others still", 'f', LOCK_SH | LOCK_NB, 0, 0);
	rules_say("unlock", flock(a, LOCK_UN));
	rules_other("others", 'f', LOCK_SH | LOCK_NB, 0, 0);
}

void rule_many(void)
{
	struct rlimit limit = { 2000, 2000 };
	static int fd[1500];
	int bad = 0;

	setrlimit(RLIMIT_NOFILE, &limit);
	for (int i = 0; i < 1500; i++) {
		fd[i] = rules_open(O_RDWR);
		bad += rules_lock(fd[i], F_OFD_SETLK, F_RDLCK, 0, 1) < 0;
	}
	printf("%d of 1500 open files failed\n", bad);
	rules_map("each has a lock");
	for (int i = 1; i < 1500; i++)
		close(fd[i]);
	rules_map("one has");
	close(fd[0]);
	rules_map("none has");
}
