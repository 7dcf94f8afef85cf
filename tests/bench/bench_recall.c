/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bench_recall CASE ROUNDS SAMPLES NAME: a client keeps locking bytes of the
 * named lock NAME; again and again another asks for one of them, so that what
 * the first decides by itself has to be taken back from it. Prints how long the
 * other waits for its answer when the first is
 *	running		at that moment
 *	stopped		by SIGSTOP
 *	preempted	one of many that want the CPUs
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tests/bench/bench.h"

#define BYTES 64u
#define PAUSE_NS 3000000u	/* for the busy one to get its loan again */
#define BUSY_PAIRS 300u		/* more in a pause than could be done by asking each time */
#define SAMPLES_MAX 100000u
#define SPINNERS_MAX 256

struct bench {
	_Atomic uint64_t *pairs;	/* of the busy one, shared */
	pid_t busy, spinner[SPINNERS_MAX];
	int spinners;
	bool stops;
	struct belay *belay;
	struct belay_handle *handle;
	uint64_t random;
	unsigned alone;			/* samples before which the busy one locked without asking */
};

static struct belay_handle *connect_to(const char *name, struct belay **ret_belay)
{
	struct belay_handle *handle;

	bench_check("belay_connect", belay_connect(ret_belay, NULL));
	bench_check(name, belay_open_name(*ret_belay, NULL, name, BELAY_OWNER_PROCESS, &handle));
	return handle;
}

_Noreturn static void be_busy(_Atomic uint64_t *pairs, const char *name)
{
	struct belay *belay;
	struct belay_handle *handle;
	uint64_t random = 88172645463325252u;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	handle = connect_to(name, &belay);
	for (;;) {
		uint64_t at = bench_random(&random) % BYTES;

		bench_check("belay_lock", belay_lock(handle, BELAY_EXCLUSIVE, at, 1, NULL));
		bench_check("belay_unlock", belay_unlock(handle, at, 1));
		atomic_fetch_add_explicit(pairs, 1, memory_order_relaxed);
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
	uint64_t pairs = atomic_load(b->pairs), begin, end;
	uint64_t at = bench_random(&b->random) % BYTES;
	siginfo_t info;
	int r;

	(void)nanosleep(&nap, NULL);
	b->alone += atomic_load(b->pairs) - pairs > BUSY_PAIRS;
	if (b->stops) {
		kill(b->busy, SIGSTOP);
		if (waitid(P_PID, (id_t)b->busy, &info, WSTOPPED) < 0)
			bench_die("the busy client has ended", 0);
	}
	begin = bench_now();
	/* That byte may be the one which is locked: an answer as well. */
	r = belay_trylock(b->handle, BELAY_EXCLUSIVE, at, 1, NULL);
	end = bench_now();
	if (r < 0 && r != -EAGAIN)
		bench_die("belay_trylock", r);
	bench_check("belay_unlock", belay_unlock(b->handle, at, 1));
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
	belay_handle_close(b->handle);
	belay_disconnect(b->belay);
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
	double median[ROUNDS_MAX], p99[ROUNDS_MAX], alone[ROUNDS_MAX], *us;
	unsigned rounds, samples, round, i;

	rounds = argc == 5 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	samples = argc == 5 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
	if (rounds == 0 || rounds > ROUNDS_MAX || samples == 0 || samples > SAMPLES_MAX)
		bench_die("usage: bench_recall running|stopped|preempted ROUNDS SAMPLES NAME", 0);
	us = calloc(samples, sizeof(*us));
	b.pairs = mmap(NULL, sizeof(*b.pairs), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!us || b.pairs == MAP_FAILED)
		bench_die("no memory", -errno);
	b.busy = fork();
	if (b.busy == 0)
		be_busy(b.pairs, argv[4]);
	b.handle = connect_to(argv[4], &b.belay);
	start_case(&b, argv[1]);
	for (round = 0; round < rounds; round++) {
		b.alone = 0;
		for (i = 0; i < samples; i++)
			us[i] = ask(&b);
		p99[round] = bench_permille(us, samples, 990);
		median[round] = bench_permille(us, samples, 500);
		alone[round] = (double)b.alone / samples;
	}
	end_case(&b);
	report("answer_p99_us", argv[1], p99, rounds);
	report("answer_p50_us", argv[1], median, rounds);
	report("loaned_share", argv[1], alone, rounds);
	free(us);
	return 0;
}
