/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "slot/replay.h"

#include <errno.h>

/* One read of each word: what is checked must be what is used. */
static struct slot_entry copy(const volatile struct slot_entry *e)
{
	return (struct slot_entry){
		.start = e->start,
		.end = e->end,
		.handle = e->handle,
		.action = e->action,
	};
}

/* NULL, or what is wrong with @e by itself. */
static const char *fault(const struct slot_entry *e, const struct slot_terms *terms,
			 const struct slot_judge *judge)
{
	if (e->action >= SLOT_ACTION_COUNT)
		return "did in its loan what is no operation";
	if (e->start > e->end || e->start < terms->range.start || e->end > terms->range.end)
		return "locked bytes outside of its loan";
	if (e->action == SLOT_LOCK_EX && terms->mode != BELAY_MODE_EX)
		return "locked exclusively in a loan for shared locks";
	if (judge && !judge->may(judge->context, e->handle, (enum slot_action)e->action))
		return "locked in its loan through a handle that may not";
	return NULL;
}

int slot_replay(const struct slot_entry *log, uint32_t count, const struct slot_terms *terms,
		const struct slot_judge *judge, struct slot_ranges *set, const char **ret_reason)
{
	const char *reason = NULL;
	uint32_t i;
	int r;

	slot_ranges_clear(set);
	for (i = 0; i < count && !reason; i++) {
		const struct slot_entry e = copy(&log[i]);

		reason = fault(&e, terms, judge);
		if (reason)
			break;
		if (set->count + 2 > terms->room &&
			 set->count + slot_ranges_growth(set, &e) > terms->room)
			reason = "holds more locks in its loan than it may";
		if (reason)
			break;
		r = slot_ranges_reserve(set);
		if (r < 0)
			return r;
		slot_ranges_apply(set, &e);
	}
	/*
	 * Only at the end. What owners of one process did to each other before harms nobody, but to look
	 * for it at each entry costs as much as all that the others hold: a log made for
	 * that would stop belayd for seconds.
	 */
	if (!reason)
		reason = slot_ranges_fault(set);
	if (!reason)
		return 0;
	*ret_reason = reason;
	return -EBADMSG;
}
