/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * All of this lives from one thing: belayd may set SLOT_RECALL between any two
 * lines, and from then on no swap succeeds. Whatever was written before that
 * was not counted, and whoever cannot swap has not done it.
 */
#include "slot/commit.h"

#include <assert.h>
#include <errno.h>

#include "slot/replay.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define COUNT_ONE (UINT64_C(1) << SLOT_COUNT_SHIFT)

static struct slot_entry *half_of(const struct slot_loan *loan, uint64_t word)
{
	return loan->log + (word & SLOT_HALF ? SLOT_HALF_ENTRIES : 0);
}

static void put_entry(struct slot_loan *loan, struct slot_entry *at, const struct slot_entry *entry)
{
	SLOT_STEP(loan);
	at->start = entry->start;
	SLOT_STEP(loan);
	at->end = entry->end;
	SLOT_STEP(loan);
	at->handle = entry->handle;
	SLOT_STEP(loan);
	at->action = entry->action;
}

/* The moment at which what was written counts. */
static int swap(struct slot_loan *loan, uint64_t next)
{
	uint64_t expected = loan->word;

	SLOT_STEP(loan);
	if (!atomic_compare_exchange_strong_explicit(&loan->head->word, &expected, next,
						     memory_order_acq_rel, memory_order_relaxed))
		return -ESTALE;
	loan->word = next;
	return 0;
}

/* Write what is held to the other half, and go on there. */
static int compact(struct slot_loan *loan)
{
	uint64_t next = slot_word(slot_epoch(loan->word), loan->held.count) |
			((loan->word & SLOT_HALF) ^ SLOT_HALF);
	struct slot_entry *at = half_of(loan, next);
	struct slot_cursor cursor = { 0 };
	const struct slot_entry *held;
	int r;

	while ((held = slot_ranges_next(&loan->held, &cursor)))
		put_entry(loan, at++, held);
	r = swap(loan, next);
	if (r < 0)
		return r;
	/* As many operations as locks: that costs one entry more for each, and keeps recalls short. */
	loan->compact_at = SLOT_COMPACT_MIN + 2 * loan->held.count;
	if (loan->compact_at > SLOT_HALF_ENTRIES)
		loan->compact_at = SLOT_HALF_ENTRIES;
	return 0;
}

static __attribute__((noinline)) int make_room(struct slot_loan *loan, const struct slot_entry *entry)
{
	struct slot_ranges *held = &loan->held;
	int r;

	if (held->count + 2 > loan->terms.room &&
	    held->count + slot_ranges_growth(held, entry) > loan->terms.room)
		return -ENOSPC;
	r = slot_ranges_reserve(&loan->held);
	if (r == 0 && slot_count(loan->word) >= loan->compact_at)
		r = compact(loan);
	return r;
}

static inline int commit(struct slot_loan *loan, const struct slot_entry *entry)
{
	int r;

	put_entry(loan, half_of(loan, loan->word) + slot_count(loan->word), entry);
	r = swap(loan, loan->word + COUNT_ONE);
	if (likely(r == 0))
		slot_ranges_apply(&loan->held, entry);
	return r;
}

static inline bool has_room(const struct slot_loan *loan)
{
	return loan->held.count + 2 <= loan->terms.room &&
	       loan->held.used + 2 <= loan->held.chunks &&
	       slot_count(loan->word) < loan->compact_at;
}

/* Before the swap, so that belayd never misses what was used; it may see a little more. */
static inline void note_use(struct slot_loan *loan, const struct belay_range *range,
			    enum belay_mode mode)
{
	struct slot_head *head = loan->head;

	if (range->start < loan->used.start) {
		loan->used.start = range->start;
		SLOT_STEP(loan);
		atomic_store_explicit(&head->used_start, range->start, memory_order_relaxed);
	}
	if (range->end > loan->used.end) {
		loan->used.end = range->end;
		SLOT_STEP(loan);
		atomic_store_explicit(&head->used_end, range->end, memory_order_relaxed);
	}
	if (mode == BELAY_MODE_EX && !loan->used_ex) {
		loan->used_ex = true;
		SLOT_STEP(loan);
		atomic_store_explicit(&head->used_ex, 1, memory_order_relaxed);
	}
}

int slot_lock(struct slot_loan *loan, uint32_t handle, enum belay_mode mode,
	      const struct belay_range *range, uint64_t *ret_token)
{
	const struct slot_entry entry = {
		.start = range->start, .end = range->end,
		.handle = handle, .action = slot_action_of(mode),
	};
	uint64_t token = loan->token + 1;
	int r = 0;

	assert(slot_covers(loan, mode, range));
	if (slot_ranges_conflict(&loan->held, &entry, NULL))
		return -EAGAIN;
	if (!likely(has_room(loan)))
		r = make_room(loan, &entry);
	if (r < 0)
		return r;
	note_use(loan, range, mode);
	SLOT_STEP(loan);
	atomic_store_explicit(&loan->head->token, token, memory_order_relaxed);
	r = commit(loan, &entry);
	if (r < 0)
		return r;
	loan->token = token;
	*ret_token = token;
	return 0;
}

int slot_unlock(struct slot_loan *loan, uint32_t handle, const struct belay_range *range)
{
	const struct slot_entry entry = {
		.start = range->start, .end = range->end,
		.handle = handle, .action = SLOT_UNLOCK,
	};
	int r = 0;

	assert(slot_covers(loan, BELAY_MODE_SH, range));
	if (!likely(has_room(loan)))
		r = make_room(loan, &entry);
	return r < 0 ? r : commit(loan, &entry);
}

int slot_test(struct slot_loan *loan, uint32_t handle, enum belay_mode mode,
	      const struct belay_range *range, struct slot_entry *ret_held)
{
	const struct slot_entry entry = {
		.start = range->start, .end = range->end,
		.handle = handle, .action = slot_action_of(mode),
	};

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
	loan->compact_at = SLOT_COMPACT_MIN + 2 * slot_count(word);
	if (loan->compact_at > SLOT_HALF_ENTRIES)
		loan->compact_at = SLOT_HALF_ENTRIES;
	r = slot_replay(log, slot_count(word), terms, NULL, &loan->held, &reason);
	return r < 0 ? r : slot_ranges_reserve(&loan->held);
}
