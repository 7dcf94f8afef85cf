/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "slot/recall.h"

#include <assert.h>
#include <errno.h>

#include "slot/replay.h"

#define SLOT_FLAGS (SLOT_RECALL | SLOT_FROZEN | SLOT_HALF)

void slot_heads_init(struct slot_head *heads)
{
	uint32_t i;

	for (i = 0; i < SLOT_COUNT; i++)
		atomic_store_explicit(&heads[i].word, SLOT_RECALL, memory_order_relaxed);
}

void slot_lend(struct slot_head *head, struct slot_entry *log, const struct slot_terms *terms,
	       const struct slot_entry *held, uint32_t count, bool frozen)
{
	uint32_t i;

	assert(terms->epoch <= SLOT_EPOCH_MASK);
	assert(count <= terms->room && terms->room <= SLOT_ROOM_MAX);
	for (i = 0; i < count; i++)
		log[i] = held[i];
	atomic_store_explicit(&head->token, terms->token, memory_order_relaxed);
	atomic_store_explicit(&head->used_start, UINT64_MAX, memory_order_relaxed);
	atomic_store_explicit(&head->used_end, 0, memory_order_relaxed);
	atomic_store_explicit(&head->used_ex, 0, memory_order_relaxed);
	atomic_store_explicit(&head->word,
			      slot_word(terms->epoch, count) | (frozen ? SLOT_FROZEN : 0),
			      memory_order_release);
}

uint64_t slot_recall(struct slot_head *head)
{
	return SLOT_RECALL | atomic_fetch_or_explicit(&head->word, SLOT_RECALL, memory_order_acq_rel);
}

void slot_freeze(struct slot_head *head)
{
	(void)atomic_fetch_or_explicit(&head->word, SLOT_FROZEN, memory_order_acq_rel);
}

void slot_thaw(struct slot_head *head)
{
	(void)atomic_fetch_and_explicit(&head->word, ~SLOT_FROZEN, memory_order_acq_rel);
}

/* The client's own report: each word is read once. */
static struct slot_report report_of(const struct slot_head *head)
{
	struct slot_report report = {
		.range.start = atomic_load_explicit(&head->used_start, memory_order_relaxed),
		.range.end = atomic_load_explicit(&head->used_end, memory_order_relaxed),
		.used_ex = atomic_load_explicit(&head->used_ex, memory_order_relaxed) != 0,
		.token = atomic_load_explicit(&head->token, memory_order_relaxed),
	};

	report.used = report.range.start <= report.range.end;
	return report;
}

static const char *fault(const struct slot_report *report, uint64_t word,
			 const struct slot_terms *terms, uint64_t token_max)
{
	if (slot_word(slot_epoch(word), slot_count(word)) != (word & ~SLOT_FLAGS) ||
	    slot_epoch(word) != terms->epoch)
		return "wrote another word than its loan's into a slot";
	if (slot_count(word) > SLOT_HALF_ENTRIES)
		return "counts more operations in its loan than fit";
	if (report->token < terms->token || report->token > token_max)
		return "gave fencing tokens in its loan that nobody can have got";
	if (report->used && (report->range.start < terms->range.start ||
			     report->range.end > terms->range.end))
		return "says that it used bytes outside of its loan";
	return NULL;
}

int slot_take(const struct slot_head *head, const struct slot_entry *log, uint64_t word,
	      const struct slot_terms *terms, uint64_t token_max, const struct slot_judge *judge,
	      struct slot_ranges *set, struct slot_report *ret_report, const char **ret_reason)
{
	struct slot_report report = report_of(head);
	const char *reason = fault(&report, word, terms, token_max);
	int r;

	if (reason) {
		*ret_reason = reason;
		return -EBADMSG;
	}
	if (word & SLOT_HALF)
		log += SLOT_HALF_ENTRIES;
	r = slot_replay(log, slot_count(word), terms, judge, set, ret_reason);
	if (r < 0)
		return r;
	*ret_report = report;
	return 0;
}
