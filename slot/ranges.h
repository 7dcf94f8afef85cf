/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The locks held within one loan, of one or more owners of one process: an
 * owner is a number, as in struct slot_entry. An owner's ranges are disjoint,
 * and adjacent ones of one mode are one. Different owners' ranges may overlap;
 * whether they conflict is asked before anything is added.
 *
 * One array, sorted by owner and start, in chunks, so that ten thousand ranges
 * cost little more than ten. An element is what a log would have to
 * say to make it: the array is the shortest log of the set.
 *
 * Memory comes from mmap(2), not malloc(3), so that all of this may
 * be called in a signal handler (which must not meet itself in the same set).
 */
#ifndef BELAY_SLOT_RANGES_H
#define BELAY_SLOT_RANGES_H

#include <stdbool.h>

#include "slot/slot.h"

#define SLOT_CHUNK_ENTRIES 42u
#define SLOT_CHUNKS_MAX 4096u

struct slot_chunk {
	uint32_t count;			/* at least 1 while in use */
	struct slot_entry entry[SLOT_CHUNK_ENTRIES];
};

/*
 * Zeroed, a set is empty and has no memory yet. Fields are for ranges.c and its inlines.
 *
 * Most often the next operation is where the last one was. And most often what was unlocked is
 * soon locked again: its entry stays as a ghost, which is not counted and locks nothing, until
 * something happens elsewhere.
 */
struct slot_ranges {
	uint32_t count;			/* of ranges */
	uint32_t owner;			/* whose they are, unless ... */
	bool mixed;			/* ... there may be others' */
	uint32_t ghost;			/* the entry at hot, index is one, of this action; or SLOT_UNLOCK */
	uint32_t used;			/* chunks in use */
	uint32_t chunks;		/* that there is memory for */
	uint32_t at, index;		/* where the last change was: chunk in order, entry in it */
	struct slot_chunk *hot;		/* that chunk; NULL: used is 0 */
	uint16_t *order;		/* chunk numbers: order[0..used) in use, sorted; then the free ones */
	struct slot_chunk *chunk;
};

/* Give the memory back; the set is empty. */
void slot_ranges_done(struct slot_ranges *set);
/* Make it empty; keeps memory. */
void slot_ranges_clear(struct slot_ranges *set);

/* What slot_ranges_reserve() does, if it has to. 0, -ENOMEM or -ENOSPC with the set unchanged. */
int slot_ranges_grow(struct slot_ranges *set);

/* See to it that the next slot_ranges_apply() finds memory, whatever it is. */
static inline int slot_ranges_reserve(struct slot_ranges *set)
{
	return set->used + 2 <= set->chunks ? 0 : slot_ranges_grow(set);
}

/*
 * Lock or unlock, as @entry says, for its owner: overwrites, splits and merges
 * what that owner has. Never fails; must have been reserved. @entry must be
 * valid, and what it locks not in conflict with another owner.
 */
void slot_ranges_apply(struct slot_ranges *set, const struct slot_entry *entry);

/* By how many ranges at most the set would grow. */
uint32_t slot_ranges_growth(struct slot_ranges *set, const struct slot_entry *entry);

/*
 * Is another owner than @entry's in the way of it? Then *ret_held (may be NULL) is what
 * that one holds, the first by start.
 */
bool slot_ranges_conflict(const struct slot_ranges *set, const struct slot_entry *entry,
			  struct slot_entry *ret_held);

/* Would a lock of that owner make one owner more than BELAY_LOAN_OWNERS_MAX hold something? */
bool slot_ranges_full(const struct slot_ranges *set, uint32_t handle);

/* Too many owners, or locks of different ones that conflict: says so; NULL: neither. */
const char *slot_ranges_fault(const struct slot_ranges *set);

/*
 * Walk over the set in order of owner and start. *cursor starts at 0; the set must not
 * change meanwhile. Returns the next range, or NULL.
 */
struct slot_cursor {
	uint32_t at, index;
};
const struct slot_entry *slot_ranges_next(const struct slot_ranges *set, struct slot_cursor *cursor);

static inline enum slot_action slot_action_of(enum belay_mode mode)
{
	return mode == BELAY_MODE_EX ? SLOT_LOCK_EX : SLOT_LOCK_SH;
}

static inline enum belay_mode slot_mode_of(const struct slot_entry *held)
{
	return held->action == SLOT_LOCK_EX ? BELAY_MODE_EX : BELAY_MODE_SH;
}

#endif
