/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lib/preload/held.h"

#include <sched.h>

#define LAST ((uint64_t)INT64_MAX)

/* A thread that was just displaced comes back within that many turns, most often. */
#define TURNS 1000

static uint64_t get(const _Atomic uint64_t *number)
{
	return atomic_load_explicit(number, memory_order_relaxed);
}

/* False: it is not to be had, perhaps because this thread itself is at it further down its stack. */
static bool enter(struct held *held, bool shared)
{
	if (!shared) {
		/* Handlers that come between these two have left, or stuck, when they end. */
		if (atomic_load_explicit(&held->busy, memory_order_relaxed))
			return false;
		atomic_store_explicit(&held->busy, true, memory_order_relaxed);
		atomic_signal_fence(memory_order_seq_cst);
		return true;
	}
	for (int i = 0; i < TURNS; i++) {
		if (!atomic_exchange_explicit(&held->busy, true, memory_order_acquire))
			return true;
		if (atomic_load_explicit(&held->stuck, memory_order_relaxed))
			return false;
		sched_yield();
	}
	atomic_store_explicit(&held->stuck, true, memory_order_relaxed);
	return false;
}

static void leave(struct held *held)
{
	if (atomic_load_explicit(&held->stuck, memory_order_relaxed))
		atomic_store_explicit(&held->stuck, false, memory_order_relaxed);
	atomic_store_explicit(&held->busy, false, memory_order_release);
}

static uint64_t next_number(struct held *held, bool shared)
{
	uint64_t number;

	if (shared)
		return atomic_fetch_add(&held->adds, 1) + 1;
	number = get(&held->adds) + 1;
	atomic_store_explicit(&held->adds, number, memory_order_relaxed);
	return number;
}

void held_add(struct held *held, bool shared, uint64_t start, uint64_t end)
{
	uint64_t number = next_number(held, shared);
	unsigned i, count;

	if (!enter(held, shared)) {
		atomic_store(&held->more, number);
		return;
	}
	count = atomic_load_explicit(&held->count, memory_order_relaxed);
	for (i = 0; i < count; i++)
		if (held->range[i].start <= start && end <= held->range[i].end)
			break;
	if (i == HELD_RANGES) {
		atomic_store(&held->more, number);
	} else {
		if (i == count) {
			held->range[i].start = start;
			held->range[i].end = end;
			atomic_store_explicit(&held->count, (uint8_t)(count + 1), memory_order_relaxed);
		}
		held->range[i].number = number;
	}
	leave(held);
}

/* What sticks out at both ends stays whole: too much is remembered rather than too little. */
void held_remove(struct held *held, bool shared, uint64_t now, uint64_t start, uint64_t end)
{
	uint64_t more = atomic_load(&held->more);
	unsigned i = 0, count;

	if (start == 0 && end == LAST && more > 0 && more <= now)
		(void)atomic_compare_exchange_strong(&held->more, &more, 0);
	if (!enter(held, shared))
		return;
	count = atomic_load_explicit(&held->count, memory_order_relaxed);
	while (i < count) {
		if (held->range[i].number <= now) {
			if (start <= held->range[i].start && held->range[i].end <= end) {
				held->range[i] = held->range[--count];
				continue;
			}
			if (start <= held->range[i].start && end >= held->range[i].start)
				held->range[i].start = end + 1;
			else if (end >= held->range[i].end && start <= held->range[i].end)
				held->range[i].end = start - 1;
		}
		i++;
	}
	atomic_store_explicit(&held->count, (uint8_t)count, memory_order_relaxed);
	leave(held);
}
