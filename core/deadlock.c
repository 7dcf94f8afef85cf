/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * EDEADLK: does a request that is about to wait close a circle of owners, each
 * waiting for the next? Edges lead from an owner, by each of its waiting
 * requests, to the owners that hold a lock in its way and to those whose
 * conflicting requests stand earlier in the queue. A replicated request is
 * judged by replicated edges only, so that every node judges alike.
 *
 * As in Linux only POSIX owners take part.
 */
#include "core/internal.h"

struct hunt {
	struct belay_core *core;
	uint32_t target;	/* owner that must not be reached */
	bool local;		/* look at this node's own waits too */
	uint32_t mark;
	uint32_t edges;
	uint32_t depth;		/* requests on the stack in core->stack */
	uint32_t request;	/* being followed */
	bool found;
};

/* Put the owner's waiting requests on the stack, once. */
static bool reach(struct hunt *h, uint32_t owner)
{
	struct belay_core *c = h->core;
	struct owner *o = owner_at(c, owner);
	uint32_t first;

	if (++h->edges > DEADLOCK_EDGES)
		return true;
	if (o->id.kind != BELAY_KIND_POSIX)
		return false;
	if (owner == h->target) {
		h->found = true;
		return true;
	}
	if (o->mark == h->mark)
		return false;
	o->mark = h->mark;
	first = h->depth;
	for (uint32_t i = o->requests; i != 0; i = request_at(c, i)->owner_next) {
		const struct request *q = request_at(c, i);

		if (q->queue != 0 && q->wait && (h->local ? !(q->own && q->early) : !q->local))
			c->stack[h->depth++] = i;
	}
	/* The search may end early, so it must go the same way on every node. */
	queue_sort(c, c->stack + first, h->depth - first, queue_less);
	return false;
}

static bool on_lock(void *context, uint32_t lock)
{
	struct hunt *h = context;

	/* Ordered decisions come behind the release; a local one must not overtake it. */
	if (h->local && queue_release_on_way(h->core, h->request, lock))
		return false;
	return reach(h, lock_at(h->core, lock)->owner);
}

static bool on_waiters(struct hunt *h, const struct resource *r, uint32_t i)
{
	const struct request *q = request_at(h->core, h->request), *e;

	while (i != 0) {
		e = request_at(h->core, i);
		if (e->max_end < q->start)
			return false;
		if (on_waiters(h, r, e->by_range.left))
			return true;
		if (e->start > q->end)
			return false;
		/* A parked try is answered by a message; it keeps nobody for long. */
		if (e->end >= q->start && e->local == q->local && e->queue < q->queue && e->wait &&
		    !(h->local && e->own && e->early && e->ended) &&
		    queue_goes_first(h->core, r, h->request, i) && reach(h, e->owner))
			return true;
		i = e->by_range.right;
	}
	return false;
}

/* Follow the edges of one waiting request; true ends the search. */
static bool follow(struct hunt *h, uint32_t i)
{
	const struct request *q = request_at(h->core, i);
	const struct resource *r = resource_at(h->core, q->resource);

	/* What is held under a delegation is not known to all. */
	if (!q->local && delegation_conflict(h->core, r, owner_at(h->core, q->owner)->node,
					     range_of(q->start, q->end), (enum belay_mode)q->mode,
					     0) != 0)
		return false;
	h->request = i;
	if (table_each_conflict(h->core, r, range_of(q->start, q->end), (enum belay_mode)q->mode,
				q->owner, on_lock, h))
		return true;
	return on_waiters(h, r, r->waiters);
}

bool deadlock_closes(struct belay_core *c, uint32_t i)
{
	const struct request *q = request_at(c, i);
	struct hunt h = {
		.core = c,
		.target = q->owner,
		.local = q->local,
		.mark = ++c->mark,
	};

	assert(q->queue != 0);
	if (owner_at(c, q->owner)->id.kind != BELAY_KIND_POSIX)
		return false;
	if (follow(&h, i))
		return h.found;
	while (h.depth > 0)
		if (follow(&h, c->stack[--h.depth]))
			return h.found;
	return false;
}

void deadlock_break(struct belay_core *c, uint32_t i)
{
	struct request *q = request_at(c, i);
	struct belay_range range = range_of(q->start, q->end);
	uint32_t r = q->resource;
	bool local = q->local;

	queue_drop(c, i);
	c->stats.deadlocks++;
	request_finish(c, i, -EDEADLK);
	queue_scan(c, r, range, local);
}

void deadlock_resolve(struct belay_core *c, uint32_t r, bool local)
{
	struct resource *res = resource_at(c, r);
	uint64_t judged = 0;
	bool again = true;

	while (again) {
		uint32_t count = queue_collect(c, res, range_of(0, BELAY_OFFSET_MAX), local);

		again = false;
		for (uint32_t k = 0; k < count && !again; k++) {
			uint32_t i = c->scratch[k];
			struct request *q = request_at(c, i);

			if (q->queue <= judged || !q->wait)
				continue;
			judged = q->queue;
			if (!deadlock_closes(c, i))
				continue;
			deadlock_break(c, i);
			again = true; /* that used c->scratch, and may have granted */
		}
	}
}
