/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/latency.h"

/* Below one octave of steps each value has its bucket; then each octave has STEPS. */
static unsigned bucket_of(uint64_t ns)
{
	unsigned octave, bucket;

	if (ns < LATENCY_STEPS)
		return (unsigned)ns;
	octave = 63 - (unsigned)__builtin_clzll(ns) - 5;	/* 2^5 steps */
	bucket = (octave + 1) * LATENCY_STEPS + (unsigned)(ns >> octave) - LATENCY_STEPS;
	return bucket < LATENCY_BUCKETS ? bucket : LATENCY_BUCKETS - 1;
}

/* The largest duration of that bucket. */
static uint64_t bucket_end(unsigned bucket)
{
	unsigned octave;

	if (bucket < LATENCY_STEPS)
		return bucket;
	octave = bucket / LATENCY_STEPS - 1;
	return (((uint64_t)(bucket % LATENCY_STEPS) + LATENCY_STEPS + 1) << octave) - 1;
}

void latency_add(struct latency *l, uint64_t ns)
{
	l->bucket[bucket_of(ns)]++;
	l->count++;
	if (ns > l->max_ns)
		l->max_ns = ns;
}

void latency_merge(struct latency *into, const struct latency *from)
{
	unsigned i;

	for (i = 0; i < LATENCY_BUCKETS; i++)
		into->bucket[i] += from->bucket[i];
	into->count += from->count;
	if (from->max_ns > into->max_ns)
		into->max_ns = from->max_ns;
}

double latency_us(const struct latency *l, unsigned permille)
{
	/* Rank of the wanted one, counted from 1 and rounded up. */
	uint64_t rank = l->count / 1000 * permille + (l->count % 1000 * permille + 999) / 1000;
	uint64_t seen = 0, end;
	unsigned i;

	if (l->count == 0)
		return 0;
	for (i = 0; i < LATENCY_BUCKETS - 1; i++) {
		seen += l->bucket[i];
		if (seen >= rank)
			break;
	}
	end = bucket_end(i);
	return (double)(end < l->max_ns ? end : l->max_ns) / 1000;
}
