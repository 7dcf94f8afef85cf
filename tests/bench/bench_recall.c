/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bench_recall CASE ROUNDS SAMPLES NAME: a client keeps locking bytes of the
 * named locks NAME.0, NAME.1, ...; again and again another asks for a byte of one of
 * them, so that what the first decides by itself has to be taken back from it.
 * There are many, for nothing is lent again soon after two have met. Prints how
 * long the other waits for its answer when the first is
 *	running		at that moment
 *	stopped		by SIGSTOP
 *	preempted	one of many that want the CPUs
 */
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tests/bench/bench.h"

#define NAMES 128u
#define BYTES 64u
#define PAUSE_NS 3000000u	/* between two that ask: the same name's turn is NAMES times that */
#define STAY_NS 50000u		/* how long the busy one stays at a name */
#define SAMPLES_MAX 100000u
#define SPINNERS_MAX 256

struct bench {
	pid_t busy, spinner[SPINNERS_MAX];
	int spinners;
	bool stops;
	struct belay *belay;
	struct belay_handle *handle[NAMES];
	uint64_t random;
	unsigned next;			/* name to ask for */
};

static void connect_to(const char *name, struct belay **ret_belay, struct belay_handle **ret_handle)
{
	char text[256];

	bench_check("belay_connect", belay_connect(ret_belay, NULL));
	for (unsigned i = 0; i < NAMES; i++) {
		snprintf(text, sizeof(text), "%s.%u", name, i);
		bench_check(text, belay_open_name(*ret_belay, NULL, text, BELAY_OWNER_PROCESS, &ret_handle[i]));
	}
}

_Noreturn static void be_busy(const char *name)
{
	struct belay *belay;
	struct belay_handle *handle[NAMES];
	uint64_t random = 88172645463325252u, begin;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	connect_to(name, &belay, handle);
	for (unsigned i = 0;; i = (i + 1) % NAMES) {
		begin = bench_now();
		do {
			uint64_t at = bench_random(&random) % BYTES;

			bench_check("belay_lock", belay_lock(handle[i], BELAY_EXCLUSIVE, at, 1, NULL));
			bench_check("belay_unlock", belay_unlock(handle[i], at, 1));
		} while (bench_now() - begin < STAY_NS);
	}
}

_Noreturn static void spin(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		;
}

/* Microseconds until the answer. */
static double ask(struct bench *b)
{
	const struct timespec nap = { 0, PAUSE_NS };
	struct belay_handle *handle = b->handle[b->next++ % NAMES];
	uint64_t at = bench_random(&b->random) % BYTES, begin, end;
	siginfo_t info;
	int r;

	(void)nanosleep(&nap, NULL);
	if (b->stops) {
		kill(b->busy, SIGSTOP);
		if (waitid(P_PID, (id_t)b->busy, &info, WSTOPPED) < 0)
			bench_die("the busy client has ended", 0);
	}
	begin = bench_now();
	/* That byte may be the one which is locked: an answer as well. */
	r = belay_trylock(handle, BELAY_EXCLUSIVE, at, 1, NULL);
	end = bench_now();
	if (r < 0 && r != -EAGAIN)
		bench_die("belay_trylock", r);
	bench_check("belay_unlock", belay_unlock(handle, at, 1));
	if (b->stops)
		kill(b->busy, SIGCONT);
	return (double)(end - begin) / 1000;
}

static void start_case(struct bench *b, const char *name)
{
	if (strcmp(name, "stopped") == 0) {
		b->stops = true;
	} else if (strcmp(name, "preempted") == 0) {
		b->spinners = 2 * (int)sysconf(_SC_NPROCESSORS_ONLN);
		if (b->spinners > SPINNERS_MAX)
			b->spinners = SPINNERS_MAX;
		for (int i = 0; i < b->spinners; i++) {
			b->spinner[i] = fork();
			if (b->spinner[i] == 0)
				spin();
		}
	} else if (strcmp(name, "running") != 0) {
		bench_die("the cases are running, stopped and preempted", 0);
	}
}

static void end_case(struct bench *b)
{
	kill(b->busy, SIGKILL);
	for (int i = 0; i < b->spinners; i++)
		kill(b->spinner[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	for (unsigned i = 0; i < NAMES; i++)
		belay_handle_close(b->handle[i]);
	belay_disconnect(b->belay);
}

/*
 * The one who asks gets the CPU when his answer is there, if that is allowed: how
 * long the machine's other load would keep him from it is not the question.
 */
static void be_prompt(void)
{
	const struct sched_param p = { .sched_priority = 1 };

	(void)sched_setscheduler(0, SCHED_RR, &p);
}

static void report(const char *what, const char *name, const double *value, unsigned rounds)
{
	char key[96];

	snprintf(key, sizeof(key), "recall.%s.%s", what, name);
	bench_print(key, value, rounds);
}

int main(int argc, char **argv)
{
	struct bench b = { .random = 362436069362436069u };
	double median[ROUNDS_MAX], p99[ROUNDS_MAX], *us;
	unsigned rounds, samples, round, i;

	rounds = argc == 5 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	samples = argc == 5 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
	if (rounds == 0 || rounds > ROUNDS_MAX || samples == 0 || samples > SAMPLES_MAX)
		bench_die("usage: bench_recall running|stopped|preempted ROUNDS SAMPLES NAME", 0);
	us = calloc(samples, sizeof(*us));
	if (!us)
		bench_die("no memory", -ENOMEM);
	b.busy = fork();
	if (b.busy == 0)
		be_busy(argv[4]);
	connect_to(argv[4], &b.belay, b.handle);
	start_case(&b, argv[1]);
	be_prompt();
	for (round = 0; round < rounds; round++) {
		for (i = 0; i < samples; i++)
			us[i] = ask(&b);
		p99[round] = bench_permille(us, samples, 990);
		median[round] = bench_permille(us, samples, 500);
	}
	end_case(&b);
	report("answer_p99_us", argv[1], p99, rounds);
	report("answer_p50_us", argv[1], median, rounds);
	free(us);
	return 0;
}
