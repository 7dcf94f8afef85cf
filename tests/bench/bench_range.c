/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a lock plus an unlock costs in the engine while many ranges are held on
 * the resource, over what it costs with few. Prints a line "KEY VALUE..." for
 * tests/bench/run: in each round the worst ratio over whose the held ranges are
 * and how they are held.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/unit/core_ring.h"

#define FEW 10u
#define MANY 10000u
#define PAIRS 20000u		/* locks and unlocks of one measurement */
#define REPEAT 5u		/* the fastest of so many counts: others were disturbed */
#define STRIDE 16u		/* a held range in so many bytes */

struct load {
	const char *name;
	unsigned owners;		/* the held ranges are spread over so many clients */
	bool own;			/* ... and the one that is measured is the first of them */
	enum belay_mode held, mode;
};

static const struct load loads[] = {
	{ "own, exclusive", 1, true, BELAY_MODE_EX, BELAY_MODE_EX },
	{ "own, shared", 1, true, BELAY_MODE_SH, BELAY_MODE_SH },
	{ "another's, exclusive", 1, false, BELAY_MODE_EX, BELAY_MODE_EX },
	{ "100 others', exclusive", 100, false, BELAY_MODE_EX, BELAY_MODE_EX },
	{ "100 others', shared", 100, false, BELAY_MODE_SH, BELAY_MODE_EX },
	{ "100 others', shared, to read", 100, false, BELAY_MODE_SH, BELAY_MODE_SH },
};
#define LOADS (sizeof(loads) / sizeof(loads[0]))

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "bench_range: %s\n", what);
	exit(1);
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static struct ring_who client(uint32_t id)
{
	return (struct ring_who){ .node = 1, .client = id, .kind = BELAY_KIND_POSIX };
}

static void lock(struct ring *ring, struct ring_who who, uint64_t start, uint64_t end,
		 enum belay_mode mode)
{
	struct ring_reply reply;

	if (ring_lock(ring, who, 1, start, end, mode, false, 1) < 0)
		die("a lock is refused");
	/* The first touch of the resource is answered by order. */
	(void)ring_run(ring);
	reply = ring_reply(ring, 1);
	if (!reply.answered || reply.result != 0)
		die("a lock is not granted");
}

static struct ring *filled(const struct load *load, unsigned ranges)
{
	static const struct belay_limits limits = {
		.resources_max = 64, .locks_max = 262144,
		.waiters_max = 256, .locks_per_owner_max = 131072,
	};
	struct ring *ring = ring_new(1, BELAY_STABLE_MAJORITY, &limits);
	uint32_t first = load->own ? 1 : 2;
	unsigned i;

	for (i = 0; i < ranges; i++)
		lock(ring, client(first + i % load->owners), (uint64_t)i * STRIDE,
		     (uint64_t)i * STRIDE + 3, load->held);
	return ring;
}

/* Nanoseconds of a lock plus an unlock between held ranges, anywhere among them. */
static double measure(struct ring *ring, const struct load *load, unsigned ranges)
{
	uint64_t random = 88172645463325252u;
	double begin, best = 0, ns;
	unsigned i, round;

	for (round = 0; round < REPEAT; round++) {
		begin = now_ns();
		for (i = 0; i < PAIRS; i++) {
			uint64_t at = next_random(&random) % ranges * STRIDE + 8;

			if (ring_lock(ring, client(1), 1, at, at + 3, load->mode, false, 1) < 0 ||
			    !ring_reply(ring, 1).answered)
				die("a lock is not granted at once");
			if (ring_unlock(ring, client(1), 1, at, at + 3) < 0)
				die("an unlock is refused");
		}
		ns = (now_ns() - begin) / PAIRS;
		if (round == 0 || ns < best)
			best = ns;
	}
	return best;
}

static double ratio(const struct load *load, bool tell)
{
	struct ring *few = filled(load, FEW), *many = filled(load, MANY);
	double few_ns = measure(few, load, FEW), many_ns = measure(many, load, MANY);

	if (tell)
		fprintf(stderr, "   %-30s %6.0f ns with %u ranges, %6.0f ns with %u\n", load->name, few_ns,
			FEW, many_ns, MANY);
	ring_free(few);
	ring_free(many);
	return many_ns / few_ns;
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 3, round, i;

	printf("range.cost_10000_over_10");
	for (round = 0; round < rounds; round++) {
		double worst = 0, r;

		for (i = 0; i < LOADS; i++) {
			r = ratio(&loads[i], round == 0);
			if (r > worst)
				worst = r;
		}
		printf(" %.4f", worst);
	}
	printf("\n");
	return 0;
}
