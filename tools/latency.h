/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Histogram of durations: 32 buckets to the octave, so a percentile is off by
 * at most 3 %. Small enough that each thread has its own; add them afterwards.
 */
#ifndef BELAY_TOOLS_LATENCY_H
#define BELAY_TOOLS_LATENCY_H

#include <stdint.h>

#define LATENCY_STEPS 32	/* buckets of an octave */
#define LATENCY_BUCKETS (LATENCY_STEPS * 40)

struct latency {
	uint64_t count;
	uint64_t max_ns;
	uint64_t bucket[LATENCY_BUCKETS];
};

void latency_add(struct latency *l, uint64_t ns);
void latency_merge(struct latency *into, const struct latency *from);
/* Duration that @permille of them do not exceed, in microseconds; 0 if there is none. */
double latency_us(const struct latency *l, unsigned permille);

#endif
