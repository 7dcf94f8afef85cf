/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "slot/commit_inline.h"

#include "slot/replay.h"

/* As many operations as locks: that costs one entry more for each, and keeps recalls short. */
static uint32_t compact_after(uint32_t held)
{
	uint32_t at = SLOT_COMPACT_MIN + 2 * held;

	return at < SLOT_HALF_ENTRIES ? at : SLOT_HALF_ENTRIES;
}

/* Write what is held to the other half, and go on there. */
static int compact(struct slot_loan *loan)
{
	uint64_t next = slot_word(slot_epoch(loan->word), loan->held.count) |
			((loan->word & SLOT_HALF) ^ SLOT_HALF);
	struct slot_entry *at = slot_half_of(loan, next);
	struct slot_cursor cursor = { 0 };
	const struct slot_entry *held;

	while ((held = slot_ranges_next(&loan->held, &cursor)))
		slot_put_entry(loan, at++, held->start, held->end, held->handle, held->action);
	if (!slot_swap(loan, next))
		return -ESTALE;
	loan->compact_at = compact_after(loan->held.count);
	return 0;
}

static struct slot_entry entry_of(uint64_t start, uint64_t end, uint32_t handle, uint32_t action)
{
	return (struct slot_entry){ .start = start, .end = end, .handle = handle, .action = action };
}

int slot_admit(const struct slot_loan *loan, uint64_t start, uint64_t end, uint32_t handle, uint32_t action)
{
	const struct slot_entry entry = entry_of(start, end, handle, action);

	if (slot_ranges_conflict(&loan->held, &entry, NULL))
		return -EAGAIN;
	return slot_ranges_full(&loan->held, handle) ? -ENOSPC : 0;
}

int slot_make_room(struct slot_loan *loan, uint64_t start, uint64_t end, uint32_t handle, uint32_t action)
{
	const struct slot_entry entry = entry_of(start, end, handle, action);
	struct slot_ranges *held = &loan->held;
	int r;

	if (held->count + 2 > loan->terms.room &&
	    held->count + slot_ranges_growth(held, &entry) > loan->terms.room)
		return -ENOSPC;
	r = slot_ranges_reserve(held);
	if (r == 0 && slot_count(loan->word) >= loan->compact_at)
		r = compact(loan);
	return r;
}

void slot_apply(struct slot_loan *loan, uint64_t start, uint64_t end, uint32_t handle, uint32_t action)
{
	const struct slot_entry entry = entry_of(start, end, handle, action);

	slot_ranges_apply(&loan->held, &entry);
}

void slot_note_more(struct slot_loan *loan, uint64_t start, uint64_t end, uint32_t action)
{
	struct slot_head *head = loan->head;

	if (start < loan->used.start) {
		loan->used.start = start;
		SLOT_STEP(loan);
		atomic_store_explicit(&head->used_start, start, memory_order_relaxed);
	}
	if (end > loan->used.end) {
		loan->used.end = end;
		SLOT_STEP(loan);
		atomic_store_explicit(&head->used_end, end, memory_order_relaxed);
	}
	if (action == SLOT_LOCK_EX && !loan->used_ex) {
		loan->used_ex = true;
		SLOT_STEP(loan);
		atomic_store_explicit(&head->used_ex, 1, memory_order_relaxed);
	}
}

int slot_lock(struct slot_loan *loan, uint32_t handle, enum belay_mode mode,
	      const struct belay_range *range, uint64_t *ret_token)
{
	int r = slot_lock_inline(loan, handle, mode, range->start, range->end);

	if (r == 0)
		*ret_token = loan->token;
	return r;
}

int slot_unlock(struct slot_loan *loan, uint32_t handle, const struct belay_range *range)
{
	return slot_unlock_inline(loan, handle, range->start, range->end);
}

int slot_test(struct slot_loan *loan, uint32_t handle, enum belay_mode mode,
	      const struct belay_range *range, struct slot_entry *ret_held)
{
	const struct slot_entry entry = entry_of(range->start, range->end, handle, slot_action_of(mode));

	assert(slot_covers(loan, mode, range));
	if (slot_ranges_conflict(&loan->held, &entry, ret_held))
		return 1;
	SLOT_STEP(loan);
	if (atomic_load_explicit(&loan->head->word, memory_order_acquire) != loan->word)
		return -ESTALE;
	return 0;
}

void slot_give_up(struct slot_loan *loan)
{
	SLOT_STEP(loan);
	(void)atomic_fetch_or_explicit(&loan->head->word, SLOT_RECALL, memory_order_acq_rel);
}

int slot_begin(struct slot_loan *loan, struct slot_head *head, struct slot_entry *log,
	       const struct slot_terms *terms)
{
	uint64_t word = atomic_load_explicit(&head->word, memory_order_acquire) & ~SLOT_FROZEN;
	const char *reason;
	int r;

	if (terms->room > SLOT_ROOM_MAX)
		return -EBADMSG;
	/* Nobody but us writes there; what is not the word of a new loan is that of one recalled. */
	if (word != slot_word(terms->epoch, slot_count(word)) || slot_count(word) > terms->room)
		return -ESTALE;
	loan->head = head;
	loan->log = log;
	loan->word = word;
	loan->terms = *terms;
	loan->token = atomic_load_explicit(&head->token, memory_order_relaxed);
	loan->used = (struct belay_range){ .start = UINT64_MAX, .end = 0 };
	loan->used_ex = false;
	loan->compact_at = compact_after(slot_count(word));
	r = slot_replay(log, slot_count(word), terms, NULL, &loan->held, &reason);
	return r < 0 ? r : slot_ranges_reserve(&loan->held);
}
