/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who owes an answer: a frame that asks is answered by every node at once, so
 * a member of which nothing comes after it hangs or is stopped.
 */
#ifndef BELAY_DAEMON_SILENCE_H
#define BELAY_DAEMON_SILENCE_H

#include "core/types.h"
#include "daemon/group.h"

/* All zero: nobody owes anything. */
struct silence {
	uint64_t since_us[BELAY_NODES_MAX];	/* by place in group_info.node; 0: owes nothing */
};

/* A frame of this node that asks was delivered. */
void silence_asked(struct silence *s, const struct group_info *info, uint64_t now_us);

/* Something of @node was delivered, or it has left. */
void silence_heard(struct silence *s, const struct group_info *info, uint32_t node);

/* When @node was first asked without an answer; 0: it owes none. */
uint64_t silence_since(const struct silence *s, const struct group_info *info, uint32_t node);

#endif
