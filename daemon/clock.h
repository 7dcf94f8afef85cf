/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The daemon's clock: monotonic microseconds, the time of core events. */
#ifndef BELAY_DAEMON_CLOCK_H
#define BELAY_DAEMON_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_us(clockid_t clock)
{
	struct timespec t;

	(void)clock_gettime(clock, &t);	/* cannot fail for the clocks used here */
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static inline uint64_t clock_now_us(void)
{
	return clock_us(CLOCK_MONOTONIC);
}

#endif
