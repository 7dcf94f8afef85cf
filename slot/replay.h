/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a log says is held. */
#ifndef BELAY_SLOT_REPLAY_H
#define BELAY_SLOT_REPLAY_H

#include "slot/recall.h"

/*
 * Make @set what log[count] makes of nothing. Every entry is read once and
 * checked; the memory may belong to somebody hostile. judge NULL: every owner may do
 * everything. 0; -ENOMEM; -EBADMSG with *ret_reason, as slot_take().
 */
int slot_replay(const struct slot_entry *log, uint32_t count, const struct slot_terms *terms,
		const struct slot_judge *judge, struct slot_ranges *set, const char **ret_reason);

#endif
