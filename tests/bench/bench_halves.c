/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bench_halves KEY BEGIN TURNS HALF NAME OTHER: lock and unlock bytes, in turns
 * of half a second from the time BEGIN (nanoseconds of CLOCK_MONOTONIC, so that
 * several nodes of one machine take their turns together): of that HALF (0 or 1)
 * of the named lock NAME in the even turns, of OTHER in the odd ones. Prints KEY
 * and the rates in NAME over those in OTHER, then KEY.pairs_per_sec of NAME and
 * KEY.alone_pairs_per_sec of OTHER. Without arguments it says the time.
 */
#include "tests/bench/bench.h"

#define TURN_NS 500000000u
#define SETTLE_NS 50000000u	/* of a turn: the other node has begun, too */
#define HALF_BYTES (UINT64_C(1) << 30)
#define BATCH 64u

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

int main(int argc, char **argv)
{
	double together[ROUNDS_MAX], alone[ROUNDS_MAX], ratio[ROUNDS_MAX];
	struct belay *belay;
	struct belay_handle *name, *other;
	uint64_t begin, half, random;
	unsigned turns, i;
	char key[96];

	if (argc == 1)
		return printf("%llu\n", (unsigned long long)bench_now()) < 0;
	turns = argc == 7 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
	if (turns == 0 || turns > ROUNDS_MAX)
		bench_die("usage: bench_halves KEY BEGIN TURNS HALF NAME OTHER", 0);
	begin = strtoull(argv[2], NULL, 10);
	half = strtoull(argv[4], NULL, 10);
	random = 88172645463325252u + half;
	bench_check("belay_connect", belay_connect(&belay, NULL));
	name = open_name(belay, argv[5]);
	other = open_name(belay, argv[6]);
	while (bench_now() < begin)
		usleep(1000);
	/* Once for the locks to find their place. */
	(void)turn(name, half, &random, begin);
	(void)turn(other, half, &random, begin + TURN_NS);
	for (i = 0; i < turns; i++) {
		begin += 2 * TURN_NS;
		together[i] = turn(name, half, &random, begin);
		alone[i] = turn(other, half, &random, begin + TURN_NS);
		ratio[i] = together[i] / alone[i];
	}
	bench_print(argv[1], ratio, turns);
	snprintf(key, sizeof(key), "%s.pairs_per_sec", argv[1]);
	bench_print(key, together, turns);
	snprintf(key, sizeof(key), "%s.alone_pairs_per_sec", argv[1]);
	bench_print(key, alone, turns);
	belay_handle_close(name);
	belay_handle_close(other);
	belay_disconnect(belay);
	return 0;
}
