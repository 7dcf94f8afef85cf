/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What locks do, as a program sees it: it tries each rule of fcntl(2), flock(2) and
 * lockf(3) on the file it is given, and prints what came of it. shim.sh runs
 * it by the kernel and by belay and compares; it checks nothing itself.
 *
 *	lock_rules RULE FILE
 *
 * Another process, made before anything is locked, tells what it finds locked.
 */
#include "tests/ipc/lock_rules.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

const char *rules_path;
static struct {
	int ask, hear;
} other;

int rules_open(int flags)
{
	int fd = open(rules_path, flags | O_CREAT | O_CLOEXEC, 0666);

	if (fd < 0) {
		perror(rules_path);
		exit(2);
	}
	return fd;
}

const char *rules_error(int r)
{
	return r < 0 ? strerrorname_np(errno) : "ok";
}

int rules_lock(int fd, int cmd, int type, off_t start, off_t length)
{
	struct flock l = { .l_type = (short)type, .l_whence = SEEK_SET, .l_start = start, .l_len = length };

	return fcntl(fd, cmd, &l);
}

void rules_say(const char *what, int r)
{
	printf("%s: %s\n", what, rules_error(r));
	fflush(stdout);
}

/* ---- the other process ---- */

struct request {
	char what;			/* l lock, w wait, u unlock, f flock, c close, g get, b get bytes */
	int type;
	off_t start, length;
};

static void answer(int fd, const struct request *q, char *text, size_t size)
{
	struct flock l = { .l_type = (short)q->type, .l_start = q->start, .l_len = q->length };
	int r = 0;

	switch (q->what) {
	case 'l':
		r = fcntl(fd, F_SETLK, &l);
		break;
	case 'w':
		r = fcntl(fd, F_SETLKW, &l);
		break;
	case 'f':
		r = flock(fd, q->type);
		break;
	case 'g':
		r = fcntl(fd, F_GETLK, &l);
		if (r == 0 && l.l_type != F_UNLCK) {
			snprintf(text, size, "%s %lld %lld by %s", l.l_type == F_RDLCK ? "SH" : "EX",
				 (long long)l.l_start, (long long)l.l_len,
				 l.l_pid == -1 ? "an open file" : l.l_pid == getppid() ? "the first" : "whom?");
			return;
		}
		break;
	}
	snprintf(text, size, "%s", rules_error(r));
}

static void serve(int hear, int tell)
{
	int fd = rules_open(O_RDWR);
	struct request q;
	char text[128];

	while (read(hear, &q, sizeof(q)) == sizeof(q)) {
		memset(text, 0, sizeof(text));
		if (q.what == 'c') {
			close(fd);
			fd = rules_open(O_RDWR);
			strcpy(text, "ok");
		} else {
			answer(fd, &q, text, sizeof(text));
		}
		if (write(tell, text, sizeof(text)) != sizeof(text))
			break;
	}
	_exit(0);
}

void rules_other_begin(void)
{
	int to[2], from[2];

	if (pipe(to) < 0 || pipe(from) < 0)
		exit(2);
	fflush(stdout);
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(to[1]);
		close(from[0]);
		serve(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	/* Out of the way of what the tests close and open. */
	other.ask = fcntl(to[1], F_DUPFD_CLOEXEC, 900);
	other.hear = fcntl(from[0], F_DUPFD_CLOEXEC, 900);
	close(to[1]);
	close(from[0]);
}

void rules_ask(char what, int type, off_t start, off_t length)
{
	const struct request q = { .what = what, .type = type, .start = start, .length = length };

	if (write(other.ask, &q, sizeof(q)) != sizeof(q))
		exit(2);
}

void rules_hear(const char *what)
{
	char text[128];

	if (read(other.hear, text, sizeof(text)) != sizeof(text))
		exit(2);
	printf("%s: the other: %s\n", what, text);
	fflush(stdout);
}

void rules_other(const char *what, char op, int type, off_t start, off_t length)
{
	rules_ask(op, type, start, length);
	rules_hear(what);
}

/* What the other would find locked, byte by byte of the first dozen. */
void rules_map(const char *what)
{
	char map[14] = "", text[128];

	for (int i = 0; i < 12; i++) {
		rules_ask('g', F_RDLCK, i, 1);
		if (read(other.hear, text, sizeof(text)) != sizeof(text))
			exit(2);
		map[i] = 'X';
		if (strcmp(text, "ok") == 0) {
			rules_ask('g', F_WRLCK, i, 1);
			if (read(other.hear, text, sizeof(text)) != sizeof(text))
				exit(2);
			map[i] = strcmp(text, "ok") == 0 ? '.' : 'r';
		}
	}
	printf("%s: %s\n", what, map);
	fflush(stdout);
}

/* ---- arguments ---- */

static const int commands[] = { F_SETLK, F_SETLKW, F_GETLK, F_OFD_SETLK, F_OFD_SETLKW, F_OFD_GETLK };
static const short types[] = { F_RDLCK, F_WRLCK, F_UNLCK, 3, -1 };
static const short whences[] = { SEEK_SET, SEEK_CUR, SEEK_END, 3, -1 };
static const off_t starts[] = { 0, 7, -7, -5, INT64_MAX, INT64_MAX - 5, INT64_MIN };
static const off_t lengths[] = { 0, 1, 6, -1, -7, -20, INT64_MAX, INT64_MAX - 7, INT64_MIN };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void one(const char *name, int fd, int cmd, struct flock l)
{
	struct flock all = { .l_type = F_UNLCK };
	int r;

	/* Newer kernels tell there what the open file itself holds, and check in another order; belay does not. */
	if (cmd == F_OFD_GETLK && l.l_type != F_RDLCK && l.l_type != F_WRLCK)
		return;
	r = fcntl(fd, cmd, &l);
	printf("%s %d %d %d %lld %lld %d: %s", name, cmd, l.l_type, l.l_whence, (long long)l.l_start,
	       (long long)l.l_len, (int)l.l_pid, rules_error(r));
	rules_ask('g', F_WRLCK, 0, 0);
	rules_hear("");
	(void)fcntl(fd, F_SETLK, &all);
	(void)fcntl(fd, F_OFD_SETLK, &all);
}

static void all_of(const char *name, int fd)
{
	for (size_t c = 0; c < COUNT(commands); c++)
		for (size_t t = 0; t < COUNT(types); t++)
			for (size_t w = 0; w < COUNT(whences); w++)
				for (size_t s = 0; s < COUNT(starts); s++)
					for (size_t n = 0; n < COUNT(lengths); n++)
						one(name, fd, commands[c], (struct flock){
							.l_type = types[t], .l_whence = whences[w],
							.l_start = starts[s], .l_len = lengths[n],
							.l_pid = s + n == 3 });
}

void rule_arguments(void)
{
	int fd = rules_open(O_RDWR);

	if (ftruncate(fd, 10) < 0)
		exit(2);
	lseek(fd, 5, SEEK_SET);
	all_of("rw", fd);
	close(fd);
	fd = rules_open(O_RDONLY);
	lseek(fd, 5, SEEK_SET);
	all_of("r", fd);
	close(fd);
	fd = rules_open(O_WRONLY);
	lseek(fd, 5, SEEK_SET);
	all_of("w", fd);
	close(fd);
	fd = open(rules_path, O_PATH | O_CLOEXEC);
	rules_say("O_PATH, fcntl", rules_lock(fd, F_SETLK, F_WRLCK, 0, 0));
	rules_say("O_PATH, flock", flock(fd, LOCK_EX));
	close(fd);
	rules_say("closed, fcntl", rules_lock(fd, F_SETLK, F_WRLCK, 0, 0));
	rules_say("closed, flock", flock(fd, LOCK_EX));
	rules_say("closed, lockf", lockf(fd, F_TLOCK, 0));
	rules_say("-1, fcntl", rules_lock(-1, F_SETLK, F_WRLCK, 0, 0));
	fd = rules_open(O_RDWR);
	rules_say("no address", fcntl(fd, F_SETLK, NULL));
	rules_say("flock: nothing", flock(fd, 0));
	rules_say("flock: too much", flock(fd, LOCK_SH | LOCK_EX));
	rules_say("lockf: no command", lockf(fd, 17, 0));
	close(fd);
}

/* ---- main ---- */

static const struct {
	const char *name;
	void (*run)(void);
} rules[] = {
	{ "arguments", rule_arguments }, { "random", rule_random }, { "close", rule_close },
	{ "copies", rule_copies }, { "streams", rule_streams }, { "children", rule_children },
	{ "flock", rule_flock }, { "ofd", rule_ofd }, { "lockf", rule_lockf }, { "holder", rule_holder },
	{ "wait", rule_wait }, { "signals", rule_signals }, { "jump", rule_jump },
	{ "deadlock", rule_deadlock }, { "threads", rule_threads }, { "handler", rule_handler },
	{ "handler-of-two", rule_handler_of_two }, { "jump-busy", rule_jump_busy },
	{ "tidy", rule_tidy }, { "many", rule_many },
};

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		for (size_t i = 0; i < COUNT(rules); i++)
			puts(rules[i].name);
		return 0;
	}
	if (argc != 3) {
		fprintf(stderr, "usage: lock_rules RULE FILE\n");
		return 2;
	}
	rules_path = argv[2];
	close(rules_open(O_RDWR));
	alarm(60);
	rules_other_begin();
	for (size_t i = 0; i < COUNT(rules); i++)
		if (strcmp(rules[i].name, argv[1]) == 0) {
			rules[i].run();
			return 0;
		}
	return 2;
}
