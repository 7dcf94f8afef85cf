/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a process holds of a file, roughly: enough to tell whether it is nothing.
 * A few ranges are remembered; of more it is only known that there were.
 */
#ifndef BELAY_PRELOAD_HELD_H
#define BELAY_PRELOAD_HELD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define HELD_RANGES 12

struct held {
	atomic_flag busy;
	bool more;			/* there was no room */
	uint8_t count;
	struct {
		uint64_t start, end;	/* both included */
	} range[HELD_RANGES];
};

/* @shared: other threads may be at it, too. */
void held_add(struct held *held, bool shared, uint64_t start, uint64_t end);
void held_remove(struct held *held, bool shared, uint64_t start, uint64_t end);

static inline bool held_any(const struct held *held)
{
	return held->count > 0 || held->more;
}

#endif
