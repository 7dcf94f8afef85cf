/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a process holds of a file, roughly: enough to tell whether it is nothing.
 * A few ranges are remembered; of more it is only known that there were.
 *
 * A signal handler may come into any of this, do the same, and never return. So nobody
 * waits here without end: what cannot be noted is remembered as "something is held".
 */
#ifndef BELAY_PRELOAD_HELD_H
#define BELAY_PRELOAD_HELD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define HELD_RANGES 12

struct held {
	_Atomic bool busy;		/* somebody is at the ranges; perhaps for ever, then it is unknown */
	_Atomic bool stuck;		/* he did not end for long: do not wait for him again */
	_Atomic uint8_t count;
	_Atomic uint64_t adds;		/* locks noted so far: each has its number */
	_Atomic uint64_t more;		/* the number of the last that could not be remembered, or 0 */
	struct {
		uint64_t start, end;	/* both included */
		uint64_t number;	/* of the last lock in it */
	} range[HELD_RANGES];
};

/* After the lock. @shared: other threads may be at it, too. */
void held_add(struct held *held, bool shared, uint64_t start, uint64_t end);
/* After the unlock, with what held_now() was before it: a lock taken meanwhile stays noted. */
void held_remove(struct held *held, bool shared, uint64_t now, uint64_t start, uint64_t end);

static inline uint64_t held_now(const struct held *held)
{
	return atomic_load_explicit(&held->adds, memory_order_acquire);
}

static inline bool held_any(const struct held *held)
{
	return held->busy || held->count > 0 || held->more > 0;
}

#endif
