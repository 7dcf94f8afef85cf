/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bench_pair ROUNDS FILE: what a lock and an unlock of a byte that nobody else
 * wants cost, by the kernel's fcntl(2) on FILE and through libbelay. They take
 * turns of half a millisecond, so that whatever else the machine does meets
 * both; a round's ratio is the median over its turns.
 */
#include <pthread.h>
#include <stdbool.h>

#include "tests/bench/bench.h"

#define TURNS 201u
#define TURN_NS 500000u
#define BATCH 32u		/* pairs between two looks at the clock */
#define STRIDE 16u		/* a held byte in so many */

struct pair {
	int fd;
	struct belay_handle *handle;
	unsigned held;		/* other ranges that the process has meanwhile */
	uint64_t random;
};

static double kernel_turn(struct pair *p)
{
	/* Among many ranges one pair is as long as a turn. */
	unsigned i, count = 0, batch = p->held ? 1 : BATCH;
	uint64_t begin = bench_now(), now;

	do {
		for (i = 0; i < batch; i++) {
			uint64_t at = bench_random(&p->random) % (p->held ? p->held : 8) * STRIDE + 8;

			bench_check("F_SETLK", bench_fcntl(p->fd, F_SETLK, F_WRLCK, at, 1));
			bench_check("F_SETLK", bench_fcntl(p->fd, F_SETLK, F_UNLCK, at, 1));
		}
		count += batch;
		now = bench_now();
	} while (now - begin < TURN_NS);
	return (double)(now - begin) / count;
}

static double belay_turn(struct pair *p)
{
	uint64_t begin = bench_now(), now;
	unsigned i, count = 0;

	do {
		for (i = 0; i < BATCH; i++) {
			uint64_t at = bench_random(&p->random) % (p->held ? p->held : 8) * STRIDE + 8;

			bench_check("belay_trylock", belay_trylock(p->handle, BELAY_EXCLUSIVE, at, 1, NULL));
			bench_check("belay_unlock", belay_unlock(p->handle, at, 1));
		}
		count += BATCH;
		now = bench_now();
	} while (now - begin < TURN_NS);
	return (double)(now - begin) / count;
}

static void measure(struct pair *p, unsigned rounds, const char *name)
{
	double ratio[ROUNDS_MAX], kernel[ROUNDS_MAX], belay[ROUNDS_MAX];
	char key[96];

	/* The first locks tell belayd who uses what. */
	(void)belay_turn(p);
	for (unsigned round = 0; round < rounds; round++) {
		double k[TURNS], b[TURNS], r[TURNS];

		for (unsigned i = 0; i < TURNS; i++) {
			k[i] = kernel_turn(p);
			b[i] = belay_turn(p);
			r[i] = k[i] / b[i];
		}
		ratio[round] = bench_permille(r, TURNS, 500);
		kernel[round] = bench_permille(k, TURNS, 500);
		belay[round] = bench_permille(b, TURNS, 500);
	}
	snprintf(key, sizeof(key), "pair_vs_fcntl%s", name);
	bench_print(key, ratio, rounds);
	snprintf(key, sizeof(key), "pair_vs_fcntl%s.fcntl_ns", name);
	bench_print(key, kernel, rounds);
	snprintf(key, sizeof(key), "pair_vs_fcntl%s.belay_ns", name);
	bench_print(key, belay, rounds);
}

static void hold(struct pair *p, unsigned ranges)
{
	for (unsigned i = 0; i < ranges; i++) {
		bench_check("F_SETLK", bench_fcntl(p->fd, F_SETLK, F_WRLCK, (uint64_t)i * STRIDE, 1));
		bench_check("belay_lock", belay_lock(p->handle, BELAY_EXCLUSIVE, (uint64_t)i * STRIDE, 1, NULL));
	}
	p->held = ranges;
}

static void *idle(void *unused)
{
	(void)unused;
	for (;;)
		pause();
	return NULL;
}

int main(int argc, char **argv)
{
	struct pair p = { .random = 88172645463325252u };
	unsigned rounds = argc == 3 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	struct belay *belay;
	pthread_t thread;

	if (rounds == 0 || rounds > ROUNDS_MAX)
		bench_die("usage: bench_pair ROUNDS FILE", 0);
	p.fd = open(argv[2], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (p.fd < 0)
		bench_die(argv[2], -errno);
	bench_check("belay_connect", belay_connect(&belay, NULL));
	bench_check("belay_open_fd", belay_open_fd(belay, p.fd, BELAY_OWNER_PROCESS, &p.handle));
	measure(&p, rounds, "");
	hold(&p, 10000);
	measure(&p, rounds, ".10000_ranges");
	bench_check("F_SETLK", bench_fcntl(p.fd, F_SETLK, F_UNLCK, 0, 0));
	bench_check("belay_unlock", belay_unlock(p.handle, 0, 0));
	p.held = 0;
	/* From here on the process has threads, for libbelay and for the C library. */
	if (pthread_create(&thread, NULL, idle, NULL) != 0)
		bench_die("no thread", 0);
	measure(&p, rounds, ".threadsafe");
	belay_handle_close(p.handle);
	belay_disconnect(belay);
	return 0;
}
