/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Looking at the tables: for people, for statistics, and for tests. */
#include "core/internal.h"

static void describe(const struct belay_core *c, uint32_t r, uint32_t owner,
		     struct belay_lock_info *info)
{
	const struct resource *res = resource_at(c, r);
	uint32_t i = delegation_any(c, res, info->range, 0);

	info->key = res->key;
	info->owner = owner_at(c, owner)->id;
	info->state = res->known ? BELAY_STATE_ARB : BELAY_STATE_UNOWNED;
	if (i != 0) {
		const struct delegation *d = delegation_at(c, i);

		info->state = d->mode == BELAY_MODE_SH ? BELAY_STATE_SHARED :
			      d->recalled ? BELAY_STATE_RECALL : BELAY_STATE_OWNED;
		if (d->mode == BELAY_MODE_EX)
			info->owner_node = c->node[d->node].id;
	}
}

static bool lock_info(const struct belay_core *c, uint32_t i, struct belay_lock_info *info)
{
	const struct lock *l = lock_at(c, i);

	if (l->owner == 0)
		return false;
	*info = (struct belay_lock_info){
		.range = range_of(l->start, l->end), .mode = (enum belay_mode)l->mode,
	};
	describe(c, l->resource, l->owner, info);
	return true;
}

static bool waiter_info(const struct belay_core *c, uint32_t i, struct belay_lock_info *info)
{
	const struct request *q = request_at(c, i);

	if (q->owner == 0 || q->queue == 0 || !q->wait)
		return false;
	*info = (struct belay_lock_info){
		.range = range_of(q->start, q->end),
		.mode = (enum belay_mode)q->mode,
		.waiting = true,
		.queue = q->queue,
	};
	describe(c, q->resource, q->owner, info);
	return true;
}

int belay_core_locks_next(const struct belay_core *c, struct belay_cursor *cursor,
			  struct belay_lock_info *ret_info)
{
	struct belay_lock_info info;

	for (; cursor->phase < 2; cursor->phase++, cursor->at = 0) {
		const struct pool *p = cursor->phase == 0 ? &c->locks : &c->requests;

		if (cursor->at == 0)
			cursor->at = 1;
		while (cursor->at < p->fresh) {
			uint32_t i = cursor->at++;

			if (!(cursor->phase == 0 ? lock_info : waiter_info)(c, i, &info))
				continue;
			cursor->count++;
			*ret_info = info;
			return 1;
		}
	}
	return 0;
}

void belay_core_stats(const struct belay_core *c, struct belay_stats *ret_stats)
{
	*ret_stats = c->stats;
	ret_stats->nodes = c->node_count;
	ret_stats->synced = c->synced;
	ret_stats->frozen = c->frozen;
	ret_stats->quorate = member_quorate(c);
	ret_stats->leaving = c->leaving;
	ret_stats->incarnation = c->incarnation;
	ret_stats->place = c->place;
	ret_stats->digest = digest_now(c);
	ret_stats->stable = c->stable;
	ret_stats->locks = c->locks.count;
	ret_stats->locks_replicated = c->locks_replicated;
	ret_stats->waiters_replicated = c->waiters_replicated;
	ret_stats->requests = c->requests.count;
	ret_stats->owners = c->owners.count;
}

int belay_core_node(const struct belay_core *c, uint32_t index, struct belay_node_info *ret_info)
{
	const struct node *n;

	if (index >= c->node_count)
		return 0;
	n = &c->node[index];
	*ret_info = (struct belay_node_info){
		.node = n->id,
		.standing = n->standing,
		.synced = n->synced,
		.incarnation = n->incarnation,
		.seq = n->seq,
		.acked = n->acked,
		.volumes = client_volumes(c, index),
	};
	return 1;
}

/* Every lock of a resource against every other: for tests. */
static void check_locks(const struct belay_core *c, uint32_t r)
{
	const struct resource *res = resource_at(c, r);
	uint32_t seen = 0;

	for (uint32_t i = 1; i < c->locks.fresh; i++) {
		const struct lock *l = lock_at(c, i);

		if (l->owner == 0 || l->resource != r)
			continue;
		seen++;
		assert(l->start <= l->end && l->end <= BELAY_OFFSET_MAX);
		/* I1 within one table, and an owner's ranges are disjoint. */
		assert(table_conflict(c, res, range_of(l->start, l->end),
				      (enum belay_mode)l->mode, l->owner) == 0);
		assert(table_first(c, res, l->owner, l->start) == i);
		assert(table_first(c, res, l->owner, l->end) == i);
		assert(!(l->staged && l->replicated));
		if (!l->replicated) {
			/* Private and staged locks lie within a delegation of their node. */
			assert(delegation_covering(c, res, owner_at(c, l->owner)->node,
						   range_of(l->start, l->end),
						   (enum belay_mode)l->mode) != 0);
		}
	}
	assert(seen == res->locks);
}

/* Nothing waits that could go. */
static void check_queue(const struct belay_core *c, uint32_t r)
{
	const struct resource *res = resource_at(c, r);
	uint32_t seen = 0;

	for (uint32_t i = 1; i < c->requests.fresh; i++) {
		const struct request *q = request_at(c, i);
		struct blocker b;

		if (q->owner == 0 || q->queue == 0 || q->resource != r)
			continue;
		seen++;
		b = queue_blocker(c, i);
		if (!q->local || delegation_authority(c, res, range_of(q->start, q->end),
						      (enum belay_mode)q->mode) != 0)
			assert(blocked(&b));
	}
	assert(seen == res->waiting);
}

void belay_core_check(const struct belay_core *c)
{
	uint32_t replicated = 0;

	for (uint32_t i = 1; i < c->resources.fresh; i++) {
		const struct resource *r = resource_at(c, i);

		if (r->gone)
			continue;
		assert(!r->scan);
		replicated += r->known;
		if (!r->known)
			assert(r->locks == 0 && r->waiting == 0 && r->delegations == 0);
		if (c->stale || c->loading)
			continue;
		check_locks(c, i);
		check_queue(c, i);
	}
	assert(replicated == c->resources_replicated);
	assert(c->stable <= c->node[c->self].seq || c->stale || !c->synced);
}
