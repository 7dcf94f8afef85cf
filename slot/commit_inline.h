/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * slot_lock() and slot_unlock(), for who cannot spare a call. Ranges come as
 * numbers, to stay in registers.
 *
 * All of this lives from one thing: belayd may set SLOT_RECALL between any two
 * lines, and from then on no swap succeeds. Whatever was written before that
 * was not counted, and whoever cannot swap has not done it.
 */
#ifndef BELAY_SLOT_COMMIT_INLINE_H
#define BELAY_SLOT_COMMIT_INLINE_H

#include <assert.h>
#include <errno.h>

#include "slot/commit.h"
#include "slot/ranges_inline.h"

#define slot_likely(x) __builtin_expect(!!(x), 1)
#define SLOT_COUNT_ONE (UINT64_C(1) << SLOT_COUNT_SHIFT)

static inline struct slot_entry *slot_half_of(const struct slot_loan *loan, uint64_t word)
{
	return loan->log + (word & SLOT_HALF ? SLOT_HALF_ENTRIES : 0);
}

static inline void slot_put_entry(struct slot_loan *loan, struct slot_entry *at, uint64_t start,
				  uint64_t end, uint32_t handle, uint32_t action)
{
	SLOT_STEP(loan);
	at->start = start;
	SLOT_STEP(loan);
	at->end = end;
	SLOT_STEP(loan);
	at->handle = handle;
	SLOT_STEP(loan);
	at->action = action;
}

/* The moment at which what was written counts. */
static inline bool slot_swap(struct slot_loan *loan, uint64_t next)
{
	uint64_t expected = loan->word;

	SLOT_STEP(loan);
	if (!slot_likely(atomic_compare_exchange_strong_explicit(&loan->head->word, &expected, next,
								 memory_order_acq_rel, memory_order_relaxed)))
		return false;
	loan->word = next;
	return true;
}

/* ---- what is not usual: the same as numbers ---- */

/* There are other owners. 0; -EAGAIN: one is in the way; -ENOSPC: this one would be too many. */
int slot_admit(const struct slot_loan *loan, uint64_t start, uint64_t end, uint32_t handle, uint32_t action);
/* There is no room for a lock more, or in memory, or in the log: make some. 0, -ENOSPC, -ENOMEM, -ESTALE. */
int slot_make_room(struct slot_loan *loan, uint64_t start, uint64_t end, uint32_t handle, uint32_t action);
void slot_apply(struct slot_loan *loan, uint64_t start, uint64_t end, uint32_t handle, uint32_t action);
/* As slot_note_use(), if there is something to note. */
void slot_note_more(struct slot_loan *loan, uint64_t start, uint64_t end, uint32_t action);

/* ---- what is ---- */

static inline bool slot_has_room(const struct slot_loan *loan)
{
	return loan->held.count + 2 <= loan->terms.room &&
	       loan->held.used + 2 <= loan->held.chunks &&
	       slot_count(loan->word) < loan->compact_at;
}

/* Before the swap, so that belayd never misses what was used; it may see a little more. */
static inline void slot_note_use(struct slot_loan *loan, uint64_t start, uint64_t end, uint32_t action)
{
	if (!slot_likely(start >= loan->used.start && end <= loan->used.end &&
			 (action != SLOT_LOCK_EX || loan->used_ex)))
		slot_note_more(loan, start, end, action);
}

/* As slot_lock(); the token is loan->token then. */
static inline int slot_lock_inline(struct slot_loan *loan, uint32_t handle, enum belay_mode mode,
				   uint64_t start, uint64_t end)
{
	const uint32_t action = slot_action_of(mode);
	const uint64_t token = loan->token + 1;
	int r = 0;

	assert(slot_covers_bytes(loan, mode, start, end));
	if (!slot_likely(slot_ranges_alone(&loan->held, handle)))
		r = slot_admit(loan, start, end, handle, action);
	if (slot_likely(r == 0) && !slot_likely(slot_has_room(loan)))
		r = slot_make_room(loan, start, end, handle, action);
	if (r < 0)
		return r;
	slot_note_use(loan, start, end, action);
	SLOT_STEP(loan);
	atomic_store_explicit(&loan->head->token, token, memory_order_relaxed);
	slot_put_entry(loan, slot_half_of(loan, loan->word) + slot_count(loan->word), start, end, handle, action);
	if (!slot_swap(loan, loan->word + SLOT_COUNT_ONE))
		return -ESTALE;
	loan->token = token;
	if (!slot_likely(slot_lock_quickly(&loan->held, start, end, handle, action)))
		slot_apply(loan, start, end, handle, action);
	return 0;
}

static inline int slot_unlock_inline(struct slot_loan *loan, uint32_t handle, uint64_t start, uint64_t end)
{
	int r = 0;

	assert(slot_covers_bytes(loan, BELAY_MODE_SH, start, end));
	if (!slot_likely(slot_has_room(loan)))
		r = slot_make_room(loan, start, end, handle, SLOT_UNLOCK);
	if (r < 0)
		return r;
	slot_put_entry(loan, slot_half_of(loan, loan->word) + slot_count(loan->word), start, end, handle,
		       SLOT_UNLOCK);
	if (!slot_swap(loan, loan->word + SLOT_COUNT_ONE))
		return -ESTALE;
	if (!slot_likely(slot_unlock_quickly(&loan->held, start, end, handle)))
		slot_apply(loan, start, end, handle, SLOT_UNLOCK);
	return 0;
}

#endif
