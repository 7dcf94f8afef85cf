/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The usual cases of slot_ranges_apply() and slot_ranges_conflict(), for who cannot spare a
 * call. Entries come as numbers, to stay in registers.
 */
#ifndef BELAY_SLOT_RANGES_INLINE_H
#define BELAY_SLOT_RANGES_INLINE_H

#include <string.h>

#include "slot/ranges.h"

/* No owner's but @handle's are here: nothing can be in its way. */
static inline bool slot_ranges_alone(const struct slot_ranges *set, uint32_t handle)
{
	return set->count == 0 || (!set->mixed && set->owner == handle);
}

/*
 * Nothing touches that range if it stands between the entries before @low and at @high of the
 * hot chunk.
 */
static inline bool slot_between(const struct slot_ranges *set, uint32_t low, uint32_t high, uint64_t start,
				uint64_t end, uint32_t handle)
{
	const struct slot_chunk *c = set->hot;
	const struct slot_entry *e;

	if (low > 0) {
		e = &c->entry[low - 1];
		if (e->handle > handle || (e->handle == handle && e->end + 1 >= start))
			return false;
	} else if (set->at > 0) {
		return false;
	}
	if (high < c->count) {
		e = &c->entry[high];
		return handle < e->handle || (handle == e->handle && end + 1 < e->start);
	}
	return set->at + 1 == set->used;
}

static inline bool slot_lock_quickly(struct slot_ranges *set, uint64_t start, uint64_t end,
				     uint32_t handle, uint32_t action)
{
	struct slot_chunk *c = set->hot;
	uint32_t i = set->index;
	struct slot_entry *e;

	if (!c || set->owner != handle)
		return false;
	e = &c->entry[i];
	if (set->ghost != SLOT_UNLOCK) {
		/* Just as it was before it touches nothing, as it did then. */
		if (!(set->ghost == action && e->start == start && e->end == end && e->handle == handle)) {
			if (!slot_between(set, i, i + 1, start, end, handle))
				return false;
			e->start = start;
			e->end = end;
			e->handle = handle;
		}
		set->ghost = SLOT_UNLOCK;
		e->action = action;
		set->count++;
		return true;
	}
	if (i < c->count && e->end + 1 == start && e->handle == handle && e->action == action) {
		if (i + 1 < c->count ? !(handle < e[1].handle || (handle == e[1].handle && end + 1 < e[1].start))
				     : set->at + 1 != set->used)
			return false;
		e->end = end;
		return true;
	}
	if (c->count == SLOT_CHUNK_ENTRIES || !slot_between(set, i, i, start, end, handle))
		return false;
	memmove(e + 1, e, (c->count - i) * sizeof(*e));
	*e = (struct slot_entry){ .start = start, .end = end, .handle = handle, .action = action };
	c->count++;
	set->count++;
	return true;
}

static inline bool slot_unlock_quickly(struct slot_ranges *set, uint64_t start, uint64_t end, uint32_t handle)
{
	struct slot_chunk *c = set->hot;
	struct slot_entry *e;

	if (!c || set->ghost != SLOT_UNLOCK || set->index >= c->count)
		return false;
	e = &c->entry[set->index];
	if (e->start != start && set->index + 1 < c->count) {
		set->index++;
		e++;
	}
	if (e->start != start || e->handle != handle || e->end < end)
		return false;
	if (e->end > end) {
		e->start = end + 1;
		return true;
	}
	set->ghost = e->action;
	e->action = SLOT_UNLOCK;
	set->count--;
	return true;
}

#endif
