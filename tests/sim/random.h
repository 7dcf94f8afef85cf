/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The one source of chance in the simulator: a seed is a world. splitmix64,
 * because it is four lines, fast, and any seed is a good one.
 */
#ifndef BELAY_SIM_RANDOM_H
#define BELAY_SIM_RANDOM_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

struct random {
	uint64_t state;
};

static inline uint64_t mix64(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static inline uint64_t random_next(struct random *r)
{
	r->state += 0x9e3779b97f4a7c15u;
	return mix64(r->state);
}

/* 0 .. n-1, n > 0; the bias of n against 2^32 does not matter here. */
static inline uint32_t random_below(struct random *r, uint32_t n)
{
	assert(n > 0);
	return (uint32_t)(((random_next(r) >> 32) * n) >> 32);
}

/* True with a chance of @percent in a hundred. */
static inline bool random_chance(struct random *r, uint32_t percent)
{
	return percent > 0 && random_below(r, 100) < percent;
}

/* low .. high, both included. */
static inline uint32_t random_between(struct random *r, uint32_t low, uint32_t high)
{
	assert(low <= high);
	return low + random_below(r, high - low + 1);
}

#endif
