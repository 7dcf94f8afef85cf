/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rules about waiting: who waits, what interrupts him, and threads. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/ipc/lock_rules.h"

static _Atomic int handled;
static sigjmp_buf back;
static int handler_fd;

static void count(int number)
{
	(void)number;
	handled++;
}

static void on(int number, void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

	sigaction(number, &action, NULL);
}

/* Once, or again and again, by SIGALRM or whatever the timer sends. */
static void timer(int which, int ms, bool again)
{
	struct itimerval t = { .it_value.tv_usec = ms * 1000 };

	if (again)
		t.it_interval = t.it_value;
	setitimer(which, &t, NULL);
}

static int take(int fd, int cmd)
{
	return rules_lock(fd, cmd, F_WRLCK, 0, 1);
}

/* In so many milliseconds the other process gives up what it has, without being waited for. */
static void *give_up(void *arg)
{
	poll(NULL, 0, (int)(intptr_t)arg);
	rules_ask('l', F_UNLCK, 0, 0);
	return NULL;
}

static pthread_t later(int ms)
{
	pthread_t thread;

	pthread_create(&thread, NULL, give_up, (void *)(intptr_t)ms);
	return thread;
}

void rule_wait(void)
{
	int a = rules_open(O_RDWR);

	rules_say("lock", take(a, F_SETLK));
	rules_ask('w', F_WRLCK, 0, 1);
	poll(NULL, 0, 100);
	rules_say("unlock", rules_lock(a, F_SETLK, F_UNLCK, 0, 1));
	rules_hear("who waited has it");
	rules_say("try", take(a, F_SETLK));
	rules_other("unlock", 'l', F_UNLCK, 0, 1);
	rules_say("wait for what is free", take(a, F_SETLKW));
	/* Many times, so that each way of waiting comes up. */
	for (int i = 0; i < 40; i++) {
		rules_ask('w', F_WRLCK, 0, 1);
		poll(NULL, 0, i % 4);
		rules_say("unlock", rules_lock(a, F_SETLK, F_UNLCK, 0, 1));
		rules_hear("has it");
		rules_ask('l', F_UNLCK, 0, 1);
		rules_say("wait", take(a, F_SETLKW));
		rules_hear("unlocked");
	}
	rules_say("flock", flock(a, LOCK_EX));
	rules_ask('f', LOCK_SH, 0, 0);
	poll(NULL, 0, 50);
	rules_say("unlock", flock(a, LOCK_UN));
	rules_hear("who waited has it");
}

static void interrupted(const char *what, int fd, int cmd, bool restart)
{
	pthread_t thread;

	handled = 0;
	on(SIGALRM, count, restart ? SA_RESTART : 0);
	rules_other("the other locks", 'l', F_WRLCK, 0, 1);
	timer(ITIMER_REAL, 50, false);
	if (restart) {
		sigset_t set;

		/* The handler has to run here, not in the other thread. */
		sigemptyset(&set);
		sigaddset(&set, SIGALRM);
		pthread_sigmask(SIG_BLOCK, &set, NULL);
		thread = later(200);
		pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	}
	rules_say(what, take(fd, cmd));
	printf("handled %d\n", handled);
	if (restart) {
		pthread_join(thread, NULL);
		rules_hear("gave up");
		rules_say("unlock", rules_lock(fd, cmd, F_UNLCK, 0, 1));
	} else {
		rules_other("gives up", 'l', F_UNLCK, 0, 0);
	}
	rules_map("nothing is left");
}

void rule_signals(void)
{
	int a = rules_open(O_RDWR), b = rules_open(O_RDWR);

	interrupted("a handler ends it", a, F_SETLKW, false);
	interrupted("a handler ends it", a, F_OFD_SETLKW, false);
	interrupted("or not", a, F_SETLKW, true);
	interrupted("or not", a, F_OFD_SETLKW, true);
	on(SIGALRM, SIG_IGN, 0);
	on(SIGCHLD, SIG_DFL, 0);
	rules_other("the other locks", 'l', F_WRLCK, 0, 1);
	timer(ITIMER_REAL, 20, true);
	pthread_t thread = later(150);
	rules_say("what is ignored does not", take(a, F_SETLKW));
	pthread_join(thread, NULL);
	rules_hear("gave up");
	timer(ITIMER_REAL, 0, false);
	on(SIGALRM, count, 0);
	rules_say("flock", flock(a, LOCK_EX));
	timer(ITIMER_REAL, 50, false);
	rules_say("flock is interrupted", flock(b, LOCK_EX));
	rules_say("and has nothing", flock(a, LOCK_EX | LOCK_NB));
	alarm(60);
}

static void jump(int number)
{
	(void)number;
	siglongjmp(back, 1);
}

void rule_jump(void)
{
	int a = rules_open(O_RDWR);

	on(SIGALRM, jump, SA_RESTART);
	for (int i = 0; i < 5; i++) {
		rules_other("the other locks", 'l', F_WRLCK, 0, 1);
		if (sigsetjmp(back, 1) == 0) {
			timer(ITIMER_REAL, 20, false);
			rules_say("this never comes back", take(a, F_SETLKW));
		}
		rules_other("gives up", 'l', F_UNLCK, 0, 0);
		rules_map("who jumped away waits no more");
		rules_say("lock", take(a, F_SETLKW));
		rules_map("it is locked");
		close(a);
		rules_map("and closed");
		a = rules_open(O_RDWR);
	}
	on(SIGALRM, SIG_DFL, 0);
	alarm(60);
}

void rule_deadlock(void)
{
	int a = rules_open(O_RDWR);

	rules_say("mine", rules_lock(a, F_SETLK, F_WRLCK, 0, 1));
	rules_other("its", 'l', F_WRLCK, 1, 1);
	rules_ask('w', F_WRLCK, 0, 1);
	poll(NULL, 0, 100);
	rules_say("each would wait for the other", rules_lock(a, F_SETLKW, F_WRLCK, 1, 1));
	rules_say("unlock", rules_lock(a, F_SETLK, F_UNLCK, 0, 0));
	rules_hear("it goes on");
}

/* ---- threads ---- */

#define THREADS 4
static int counter, inside;
static _Atomic int both;

static void *work(void *arg)
{
	int fd = rules_open(O_RDWR);

	for (int i = 0; i < 300; i++) {
		/* Threads exclude each other by open files only. */
		int r = i % 2 ? flock(fd, LOCK_EX) : rules_lock(fd, F_OFD_SETLKW, F_WRLCK, 0, 0);

		if (r < 0)
			*(int *)arg += 1;
		/* Each kind by itself. */
		if (i % 2 == 0) {
			both += inside++;
			counter++;
			inside--;
		}
		if ((i % 2 ? flock(fd, LOCK_UN) : rules_lock(fd, F_OFD_SETLK, F_UNLCK, 0, 0)) < 0)
			*(int *)arg += 1;
		if (i % 50 == 49) {
			close(fd);
			fd = rules_open(O_RDWR);
		}
	}
	close(fd);
	return NULL;
}

/* The result, as errno or 0. */
static void *waits(void *arg)
{
	return (void *)(intptr_t)(take(*(int *)arg, F_SETLKW) < 0 ? errno : 0);
}

void rule_threads(void)
{
	pthread_t thread[THREADS];
	int failed[THREADS] = { 0 }, bad = 0, fd;
	void *result = NULL;

	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, work, &failed[i]);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		bad += failed[i];
	}
	printf("%d of %d, %d inside together, %d failed\n", counter, THREADS * 150, both, bad);
	rules_map("nothing is left");

	fd = rules_open(O_RDWR);
	rules_other("the other locks", 'l', F_WRLCK, 0, 1);
	pthread_create(&thread[0], NULL, waits, &fd);
	poll(NULL, 0, 100);
	close(fd);
	rules_other("it gives up", 'l', F_UNLCK, 0, 0);
	pthread_join(thread[0], &result);
	printf("on a descriptor closed meanwhile: %s\n", strerrorname_np((int)(intptr_t)result));
	rules_map("nothing is left");

	fd = rules_open(O_RDWR);
	rules_other("the other locks", 'l', F_WRLCK, 0, 1);
	pthread_create(&thread[0], NULL, waits, &fd);
	poll(NULL, 0, 100);
	pthread_cancel(thread[0]);
	pthread_join(thread[0], NULL);
	rules_other("it gives up", 'l', F_UNLCK, 0, 0);
	rules_map("who was cancelled has nothing");
}

/* ---- handlers that lock ---- */

static _Atomic int wrong;

static void locks_too(int number)
{
	int fd = handler_fd, r;

	(void)number;
	handled++;
	r = rules_lock(fd, F_SETLK, F_WRLCK, 100, 1);
	wrong += r < 0;
	r = rules_lock(fd, F_SETLK, F_UNLCK, 100, 1);
	wrong += r < 0;
	/* And what was never seen before; its end takes the process's locks along. */
	if (handled % 16 == 0) {
		fd = open(rules_path, O_RDWR | O_CLOEXEC);
		wrong += rules_lock(fd, F_OFD_SETLK, F_RDLCK, 200, 1) < 0;
		close(fd);
	}
}

static void locks_meanwhile(int times)
{
	int a = rules_open(O_RDWR), b = rules_open(O_RDWR), bad = 0;

	handler_fd = b;
	on(SIGPROF, locks_too, SA_RESTART);
	timer(ITIMER_PROF, 1, true);
	/* While it is busy, not while it waits: hence the time of the processor. */
	for (int i = 0; handled < times && i < 100000000; i++) {
		bad += rules_lock(a, F_SETLK, F_WRLCK, i % 7, 2) < 0;
		bad += rules_lock(a, F_SETLK, F_UNLCK, i % 7, 2) < 0;
	}
	timer(ITIMER_PROF, 0, false);
	printf("%s, %d failed, %d of the handler's\n", handled >= times ? "enough" : "too few", bad, wrong);
	rules_map("nothing is left");
	rules_say("lock", rules_lock(a, F_SETLK, F_WRLCK, 3, 2));
	rules_map("it still works");
}

void rule_handler(void)
{
	locks_meanwhile(100);
}

static void *idle(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* What one thread need not do may need to be done where there are two. */
static pthread_t second_thread(void)
{
	sigset_t all, before;
	pthread_t thread;

	/* Handlers are for the first one. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_create(&thread, NULL, idle, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return thread;
}

static void join(pthread_t thread)
{
	pthread_cancel(thread);
	pthread_join(thread, NULL);
}

void rule_handler_of_two(void)
{
	pthread_t thread = second_thread();

	locks_meanwhile(300);
	join(thread);
}

/* ---- handlers that jump out of a lock which needs not wait ---- */

#define JUMPS 15

static int one_of(int fd, int kind, bool lock)
{
	if (kind == 0)
		return flock(fd, (lock ? LOCK_EX : LOCK_UN) | LOCK_NB);
	return rules_lock(fd, kind == 1 ? F_OFD_SETLK : F_SETLK, lock ? F_WRLCK : F_UNLCK, 0, 1);
}

static void jump_away(int kind, unsigned *ret_locked)
{
	static volatile int left;
	int fd = rules_open(O_RDWR), again;

	for (int i = 0; i < 300; i++) {
		one_of(fd, kind, true);
		one_of(fd, kind, false);
	}
	for (left = JUMPS; left > 0; left--) {
		struct itimerval t = { .it_value.tv_usec = 300 + left * 37 };

		if (sigsetjmp(back, 1) == 0) {
			setitimer(ITIMER_REAL, &t, NULL);
			for (;;)
				one_of(fd, kind, true);
		}
	}
	one_of(fd, kind, true);
	close(fd);
	/* By another open file, it is free. */
	again = rules_open(O_RDWR);
	*ret_locked += one_of(again, kind == 0 ? 0 : 1, true) < 0;
	close(again);
}

static void jumps(void)
{
	static const char *const name[] = { "flock", "OFD", "POSIX" };
	unsigned locked;

	on(SIGALRM, jump, 0);
	for (int kind = 0; kind < 3; kind++) {
		locked = 0;
		for (int i = 0; i < 20; i++)
			jump_away(kind, &locked);
		printf("%s: %u times closed and locked still\n", name[kind], locked);
		rules_map("nothing is left");
	}
	on(SIGALRM, SIG_DFL, 0);
	alarm(60);
}

void rule_jump_busy(void)
{
	pthread_t thread;

	jumps();
	thread = second_thread();
	jumps();
	join(thread);
}
