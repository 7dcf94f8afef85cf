/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Locks of the node itself: they stand for active volumes, and so outlive
 * whoever asked for them. What is unlocked while this node may not say so to the
 * others (no quorum, no lock table yet) is said when it may.
 */
#ifndef BELAY_DAEMON_NODE_LOCK_H
#define BELAY_DAEMON_NODE_LOCK_H

#include "core/core.h"

struct client;
struct server;

struct node_unlocks {
	struct belay_key *key;		/* still to be said */
	uint32_t count, size;
	bool doubtful;			/* those who lock for the node are still to be told */
};

void node_unlocks_done(struct node_unlocks *u);

/* The node wants it again: what was to be said of it before is void. */
void node_lock_wanted(struct node_unlocks *u, const struct belay_key *key);

/* As engine_unlock(). */
int node_unlock(struct server *s, struct belay_event *event);

/* Nothing is granted any more, and other nodes may fence this one: what the node had may be another's
 * when it is thawed. To be noted in a step of the core; node_locks_settle() tells. */
void node_locks_freeze(struct server *s);

/*
 * The core is at rest. Frozen: whoever locks for the node is told that its locks are lost, and has to
 * ask anew. Thawed: say what could not be said.
 */
void node_locks_settle(struct server *s);

/*
 * Unlock all that this node has and that no open handle of @c has locked: what is left over
 * from a process that has ended. Returns how many, or -ENOMEM.
 */
int node_locks_forget(struct server *s, const struct client *c);

#endif
