/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/histogram.h"

#include <assert.h>
#include <string.h>

/* Values below 8 have a bucket each; above, eight per power of two. */
static unsigned bucket_of(uint64_t us)
{
	unsigned octave, bucket;

	if (us < 8)
		return (unsigned)us;
	octave = 63 - (unsigned)__builtin_clzll(us);
	bucket = (octave - 2) * 8 + (unsigned)((us >> (octave - 3)) & 7);
	return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

/* The middle of a bucket: nearest to what was put in. */
static uint64_t value_of(unsigned bucket)
{
	unsigned octave = bucket / 8 + 2;
	uint64_t step;

	if (bucket < 8)
		return bucket;
	step = UINT64_C(1) << (octave - 3);
	return (8 + bucket % 8) * step + step / 2;
}

void histogram_add(struct histogram *h, uint64_t us)
{
	h->count[h->current][bucket_of(us)]++;
	h->total[h->current]++;
}

void histogram_rotate(struct histogram *h)
{
	h->current ^= 1;
	memset(h->count[h->current], 0, sizeof(h->count[h->current]));
	h->total[h->current] = 0;
}

uint64_t histogram_total(const struct histogram *h)
{
	return h->total[0] + h->total[1];
}

uint64_t histogram_permille(const struct histogram *h, unsigned permille)
{
	uint64_t rank, seen = 0;

	assert(permille <= 1000);
	if (histogram_total(h) == 0)
		return 0;
	rank = (histogram_total(h) * permille + 999) / 1000;
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += h->count[0][i] + h->count[1][i];
		if (seen >= rank && seen > 0)
			return value_of(i);
	}
	return value_of(HISTOGRAM_BUCKETS - 1);
}
