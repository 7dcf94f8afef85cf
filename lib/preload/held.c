/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lib/preload/held.h"

#include <sched.h>

#define LAST ((uint64_t)INT64_MAX)

static void enter(struct held *held, bool shared)
{
	/* A few instructions are done under it. */
	while (shared && atomic_flag_test_and_set_explicit(&held->busy, memory_order_acquire))
		sched_yield();
}

static void leave(struct held *held, bool shared)
{
	if (shared)
		atomic_flag_clear_explicit(&held->busy, memory_order_release);
}

void held_add(struct held *held, bool shared, uint64_t start, uint64_t end)
{
	unsigned i;

	enter(held, shared);
	for (i = 0; i < held->count; i++)
		if (held->range[i].start <= start && end <= held->range[i].end)
			break;
	if (i == HELD_RANGES) {
		held->more = true;
	} else if (i == held->count) {
		held->range[i].start = start;
		held->range[i].end = end;
		held->count++;
	}
	leave(held, shared);
}

/* What sticks out at both ends stays whole: too much is remembered rather than too little. */
void held_remove(struct held *held, bool shared, uint64_t start, uint64_t end)
{
	unsigned i = 0;

	enter(held, shared);
	while (i < held->count) {
		if (start <= held->range[i].start && held->range[i].end <= end) {
			held->range[i] = held->range[--held->count];
			continue;
		}
		if (start <= held->range[i].start && end >= held->range[i].start)
			held->range[i].start = end + 1;
		else if (end >= held->range[i].end && start <= held->range[i].end)
			held->range[i].end = start - 1;
		i++;
	}
	if (start == 0 && end == LAST)
		held->more = false;
	leave(held, shared);
}
