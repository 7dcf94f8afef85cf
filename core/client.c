/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The end of a client, or of all clients of a node: what it holds and awaits
 * goes first, all of it, and only then may others go ahead. In which order
 * the pieces go is then of no consequence, and replicas need not agree on it.
 */
#include "core/internal.h"

/* May this node drop the lock now? */
static bool droppable(const struct belay_core *c, const struct lock *l, bool ordered)
{
	if (c->stale)
		return true;
	if (l->replicated || owner_at(c, l->owner)->node != c->self)
		return ordered; /* staged ones, too */
	/* What this node is giving up is what its RELINQ says. */
	return !ordered && delegation_authority(c, resource_at(c, l->resource),
						range_of(l->start, l->end), BELAY_MODE_SH) != 0;
}

static bool drop_locks(struct belay_core *c, uint32_t o, bool ordered)
{
	bool left = false;
	uint32_t i, next;

	for (i = owner_at(c, o)->locks; i != 0; i = next) {
		uint32_t r = lock_at(c, i)->resource;

		next = lock_at(c, i)->owner_next;
		if (!droppable(c, lock_at(c, i), ordered)) {
			left = true;
			continue;
		}
		table_remove(c, i);
		queue_scan_later(c, r);
		resource_touch(c, r);
	}
	return left;
}

/* The owner may be gone when this returns. */
static bool drop_requests(struct belay_core *c, uint32_t o, bool ordered)
{
	bool left = false;
	uint32_t i, next;

	for (i = owner_at(c, o)->requests; i != 0; i = next) {
		struct request *q = request_at(c, i);
		uint32_t r = q->resource;

		next = q->owner_next;
		if (ordered ? q->queue == 0 || q->local : !request_withdraw(c, i)) {
			q->orphan = true;
			left = true;
			continue;
		}
		if (ordered)
			queue_drop(c, i);
		queue_scan_later(c, r);
		index_request_free(c, i);
	}
	return left;
}

bool client_release(struct belay_core *c, uint32_t client, bool ordered)
{
	uint32_t o, next;
	bool left = false;

	for (o = client_at(c, client)->owners; o != 0; o = next) {
		next = owner_at(c, o)->client_next;
		left |= drop_locks(c, o, ordered);
		if (owner_at(c, o)->requests != 0)
			left |= drop_requests(c, o, ordered);
		else
			index_owner_release(c, o);
	}
	return left;
}

bool client_others(const struct belay_core *c, uint32_t node)
{
	uint32_t cl = c->node[node].clients;

	while (cl != 0 && client_at(c, cl)->id == BELAY_CLIENT_NODE)
		cl = client_at(c, cl)->node_next;
	return cl != 0;
}

uint32_t client_volumes(const struct belay_core *c, uint32_t node)
{
	uint32_t cl = index_client(c, node, BELAY_CLIENT_NODE), o, count = 0;

	for (o = cl != 0 ? client_at(c, cl)->owners : 0; o != 0; o = owner_at(c, o)->client_next)
		for (uint32_t i = owner_at(c, o)->locks; i != 0; i = lock_at(c, i)->owner_next)
			count++;
	return count;
}

/* What was delegated to @node is nobody's any more. */
static void disown(struct belay_core *c, uint32_t node)
{
	for (uint32_t i = 1; i < c->delegations.fresh; i++) {
		struct delegation *d = delegation_at(c, i);
		uint32_t r = d->resource;

		if (r == 0 || d->node != node)
			continue;
		delegation_end(c, i, range_of(d->start, d->end));
		if (resource_at(c, r)->waiting != 0)
			queue_scan_later(c, r);
		else if (resource_at(c, r)->locks == 0 && resource_at(c, r)->delegations == 0)
			resource_forget(c, r);
	}
}

/* What the node itself waits for goes with the process that asked; what it holds stays. */
static void node_wait_no_more(struct belay_core *c, uint32_t client)
{
	uint32_t o, next;

	for (o = client_at(c, client)->owners; o != 0; o = next) {
		next = owner_at(c, o)->client_next;
		if (owner_at(c, o)->requests != 0)
			(void)drop_requests(c, o, true);
	}
}

void client_release_node(struct belay_core *c, uint32_t node, bool fenced)
{
	uint32_t count, cl, next;

	for (cl = c->node[node].clients; cl != 0; cl = next) {
		next = client_at(c, cl)->node_next;
		if (client_at(c, cl)->id == BELAY_CLIENT_NODE && !fenced)
			node_wait_no_more(c, cl);
		else
			(void)client_release(c, cl, true);
	}
	disown(c, node);
	count = queue_scan_run(c, false);
	/* What waited for a recall was not judged before, for its edges were not known. */
	for (uint32_t k = 0; k < count; k++)
		if (resource_at(c, c->order[k])->known)
			deadlock_resolve(c, c->order[k], false);
}
