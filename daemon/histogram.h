/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Histogram of durations, small enough to keep several: eight buckets to the
 * octave, so a percentile is off by at most 12 %. Old values fade: two halves
 * take turns, and a percentile looks at both.
 */
#ifndef BELAY_DAEMON_HISTOGRAM_H
#define BELAY_DAEMON_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BUCKETS 256

struct histogram {
	uint32_t count[2][HISTOGRAM_BUCKETS];
	uint64_t total[2];
	unsigned current;	/* the half that is written */
};

void histogram_add(struct histogram *h, uint64_t us);

/* Forget the older half. */
void histogram_rotate(struct histogram *h);

/* Values now remembered. */
uint64_t histogram_total(const struct histogram *h);

/* Value below which @permille of the remembered ones lie; 0 if there is none. */
uint64_t histogram_permille(const struct histogram *h, unsigned permille);

#endif
