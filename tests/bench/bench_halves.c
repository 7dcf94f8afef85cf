/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bench_halves KEY BEGIN ROUNDS HALF NAME OTHER: lock and unlock bytes, in turns
 * of a tenth of a second from the time BEGIN (nanoseconds of CLOCK_MONOTONIC, so
 * that several nodes of one machine take their turns together): of that HALF (0 or 1)
 * of the named lock NAME in the even turns, of OTHER in the odd ones. Prints KEY
 * and for each round the median of the rates in NAME over those in OTHER, then
 * KEY.pairs_per_sec of NAME and KEY.alone_pairs_per_sec of OTHER. Without
 * arguments it says the time.
 */
#include "tests/bench/bench.h"

#define TURNS 20u		/* of each kind, in a round */
#define TURN_NS 100000000u
#define SETTLE_NS 10000000u	/* of a turn: the other node has begun, too */
#define WARM_TURNS 10u		/* for the locks to find their place */
#define HALF_BYTES (UINT64_C(1) << 30)
#define BATCH 16u

static struct belay_handle *open_name(struct belay *belay, const char *name)
{
	struct belay_handle *handle;

	bench_check(name, belay_open_name(belay, NULL, name, BELAY_OWNER_PROCESS, &handle));
	return handle;
}

/* Pairs until that time. */
static uint64_t work(struct belay_handle *handle, uint64_t half, uint64_t *random, uint64_t end)
{
	uint64_t count = 0;

	do {
		for (unsigned i = 0; i < BATCH; i++) {
			uint64_t at = half * HALF_BYTES + bench_random(random) % HALF_BYTES;

			bench_check("belay_lock", belay_lock(handle, BELAY_EXCLUSIVE, at, 1, NULL));
			bench_check("belay_unlock", belay_unlock(handle, at, 1));
		}
		count += BATCH;
	} while (bench_now() < end);
	return count;
}

static double turn(struct belay_handle *handle, uint64_t half, uint64_t *random, uint64_t begin)
{
	uint64_t count, from;

	(void)work(handle, half, random, begin + SETTLE_NS);
	from = bench_now();
	count = work(handle, half, random, begin + TURN_NS);
	return (double)count * 1e9 / (double)(bench_now() - from);
}

struct halves {
	struct belay_handle *name, *other;
	uint64_t half, random, begin;
};

/* A turn of each kind. */
static void both(struct halves *h, double *ret_together, double *ret_alone)
{
	*ret_together = turn(h->name, h->half, &h->random, h->begin);
	*ret_alone = turn(h->other, h->half, &h->random, h->begin + TURN_NS);
	h->begin += 2 * TURN_NS;
}

static void measure(struct halves *h, const char *name, unsigned rounds)
{
	double together[ROUNDS_MAX], alone[ROUNDS_MAX], ratio[ROUNDS_MAX], t[TURNS], a[TURNS], r[TURNS];
	char key[96];

	for (unsigned i = 0; i < WARM_TURNS; i++)
		both(h, &t[0], &a[0]);
	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned i = 0; i < TURNS; i++) {
			both(h, &t[i], &a[i]);
			r[i] = t[i] / a[i];
		}
		ratio[round] = bench_permille(r, TURNS, 500);
		together[round] = bench_permille(t, TURNS, 500);
		alone[round] = bench_permille(a, TURNS, 500);
	}
	bench_print(name, ratio, rounds);
	snprintf(key, sizeof(key), "%s.pairs_per_sec", name);
	bench_print(key, together, rounds);
	snprintf(key, sizeof(key), "%s.alone_pairs_per_sec", name);
	bench_print(key, alone, rounds);
}

int main(int argc, char **argv)
{
	struct halves h;
	struct belay *belay;
	unsigned rounds;

	if (argc == 1)
		return printf("%llu\n", (unsigned long long)bench_now()) < 0;
	rounds = argc == 7 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
	if (rounds == 0 || rounds > ROUNDS_MAX)
		bench_die("usage: bench_halves KEY BEGIN ROUNDS HALF NAME OTHER", 0);
	h.begin = strtoull(argv[2], NULL, 10);
	h.half = strtoull(argv[4], NULL, 10);
	h.random = 88172645463325252u + h.half;
	bench_check("belay_connect", belay_connect(&belay, NULL));
	h.name = open_name(belay, argv[5]);
	h.other = open_name(belay, argv[6]);
	while (bench_now() < h.begin)
		usleep(1000);
	measure(&h, argv[1], rounds);
	belay_handle_close(h.name);
	belay_handle_close(h.other);
	belay_disconnect(belay);
	return 0;
}
