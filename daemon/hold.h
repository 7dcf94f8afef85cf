/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ordered events remembered while this node waits for its snapshot: messages
 * as bytes, and views. Bounded, for a joiner that cannot keep up must start
 * again rather than eat the node's memory.
 */
#ifndef BELAY_DAEMON_HOLD_H
#define BELAY_DAEMON_HOLD_H

#include <stddef.h>

#include "daemon/group.h"

struct hold_entry {
	struct hold_entry *next;
	bool is_view;
	uint32_t node;		/* message: its sender */
	/* Message: the first ops to leave out, and the op before which to stop. */
	uint32_t skip, limit;
	size_t size;
	/* Message, or struct group_view. */
	_Alignas(8) unsigned char bytes[];
};

struct hold {
	struct hold_entry *first, *last;
	size_t bytes, bytes_max;
};

void hold_init(struct hold *h, size_t bytes_max);

/* -ENOMEM: no memory, or bytes_max is reached. */
int hold_add_view(struct hold *h, const struct group_view *view);
int hold_add_message(struct hold *h, uint32_t node, uint32_t skip, const void *buf, size_t size);

/* Take out the oldest entry, or NULL. The caller's, to free(). */
struct hold_entry *hold_take(struct hold *h);

/* The view of an entry that is one. */
static inline const struct group_view *hold_view(const struct hold_entry *entry)
{
	return (const void *)entry->bytes;
}

void hold_clear(struct hold *h);

#endif
