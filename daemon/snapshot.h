/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Snapshots on their way to joining nodes. The replicated state is packed
 * into messages in one go, so that it shows one place in the order and the
 * core may move on; the messages then leave one at a time, behind
 * everything else that has to be sent, so that locking does not stall.
 */
#ifndef BELAY_DAEMON_SNAPSHOT_H
#define BELAY_DAEMON_SNAPSHOT_H

#include <stddef.h>

#include "core/core.h"
#include "daemon/group.h"

struct snapshot;

struct snapshots {
	struct snapshot *first;		/* the one that is being sent */
	bool in_flight;			/* one of our chunks is not delivered yet */
	uint64_t sent, bytes;		/* whole snapshots, and bytes of chunks */
	uint64_t build_us_max;
};

/*
 * Pack the core's state for that life of @node. A snapshot already queued for
 * the node is dropped: it shows an older place. 0 or -ENOMEM.
 */
int snapshots_add(struct snapshots *s, const struct belay_core *core, uint32_t node,
		  uint64_t incarnation);

/* The node left: nobody waits for its snapshot. */
void snapshots_drop(struct snapshots *s, uint32_t node);

/* Something could be sent now. */
bool snapshots_ready(const struct snapshots *s);
/* Send the next chunk. 0, or the group's error with the chunk still to be sent. */
int snapshots_send(struct snapshots *s, struct group *group);
/* A chunk of ours was delivered. */
void snapshots_delivered(struct snapshots *s);

/* Bytes waiting to be sent. */
size_t snapshots_pending(const struct snapshots *s);

void snapshots_clear(struct snapshots *s);

#endif
