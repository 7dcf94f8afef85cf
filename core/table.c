/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The locks held on one resource. Each lock is in two trees: by range, one
 * tree a mode, each node knowing the largest end below it, so that a conflict
 * is found in logarithmic time and readers never look at readers; and by
 * owner, for an owner's own ranges are disjoint and change by split and merge.
 */
#include "core/internal.h"

static bool owner_before(const struct belay_owner *a, const struct belay_owner *b)
{
	if (a->node != b->node)
		return a->node < b->node;
	if (a->client != b->client)
		return a->client < b->client;
	if (a->key != b->key)
		return a->key < b->key;
	return a->kind < b->kind;
}

static struct link *range_link(const struct belay_core *c, uint32_t i)
{
	return &lock_at(c, i)->by_range;
}

/* By (start, owner's name): the same order on every node, for F_GETLK shows it. */
static bool range_less(const struct belay_core *c, uint32_t a, uint32_t b)
{
	const struct lock *x = lock_at(c, a), *y = lock_at(c, b);

	if (x->start != y->start)
		return x->start < y->start;
	return owner_before(&owner_at(c, x->owner)->id, &owner_at(c, y->owner)->id);
}

static void range_update(const struct belay_core *c, uint32_t i)
{
	struct lock *l = lock_at(c, i);
	uint64_t max = l->end;

	if (l->by_range.left != 0 && lock_at(c, l->by_range.left)->max_end > max)
		max = lock_at(c, l->by_range.left)->max_end;
	if (l->by_range.right != 0 && lock_at(c, l->by_range.right)->max_end > max)
		max = lock_at(c, l->by_range.right)->max_end;
	l->max_end = max;
}

TREE(by_range, range_link, range_less, range_update)

static struct link *owner_link(const struct belay_core *c, uint32_t i)
{
	return &lock_at(c, i)->by_owner;
}

static bool owner_less(const struct belay_core *c, uint32_t a, uint32_t b)
{
	const struct lock *x = lock_at(c, a), *y = lock_at(c, b);

	return x->owner != y->owner ? x->owner < y->owner : x->start < y->start;
}

static void owner_update(const struct belay_core *c, uint32_t i)
{
	(void)c;
	(void)i;
}

TREE(by_owner, owner_link, owner_less, owner_update)

static uint64_t lock_hash(const struct belay_core *c, const struct lock *l)
{
	uint64_t h = index_owned(&resource_at(c, l->resource)->key, &owner_at(c, l->owner)->id);

	return index_mix(index_mix(h, l->start), (l->end << 1) | l->mode);
}

static void count_in(struct belay_core *c, struct lock *l)
{
	l->replicated = true;
	l->staged = false;
	c->digest += lock_hash(c, l);
	c->locks_replicated++;
	resource_at(c, l->resource)->replicated++;
	owner_at(c, l->owner)->replicated++;
}

static void count_out(struct belay_core *c, struct lock *l)
{
	l->replicated = false;
	c->digest -= lock_hash(c, l);
	c->locks_replicated--;
	resource_at(c, l->resource)->replicated--;
	owner_at(c, l->owner)->replicated--;
}

uint32_t table_add(struct belay_core *c, uint32_t r, uint32_t owner, struct belay_range range,
		   enum belay_mode mode, bool replicated)
{
	struct resource *res = resource_at(c, r);
	struct owner *o = owner_at(c, owner);
	uint32_t i = pool_get(&c->locks);
	struct lock *l;

	assert(range.start <= range.end);
	if (i == 0) {
		/* The limits make this impossible unless replicas differ. */
		core_isolate(c, "more locks than the limits allow: the lock table is inconsistent");
		return 0;
	}
	l = lock_at(c, i);
	l->start = range.start;
	l->end = range.end;
	l->mode = (uint8_t)mode;
	l->owner = owner;
	l->resource = r;
	l->owner_next = o->locks;
	if (l->owner_next != 0)
		lock_at(c, l->owner_next)->owner_prev = i;
	o->locks = i;
	o->held++;
	by_range_insert(c, mode == BELAY_MODE_EX ? &res->ex : &res->sh, i);
	by_owner_insert(c, &res->by_owner, i);
	res->locks++;
	if (replicated)
		count_in(c, l);
	return i;
}

void table_remove(struct belay_core *c, uint32_t i)
{
	struct lock *l = lock_at(c, i);
	struct resource *res = resource_at(c, l->resource);
	struct owner *o = owner_at(c, l->owner);

	by_range_remove(c, l->mode == BELAY_MODE_EX ? &res->ex : &res->sh, i);
	by_owner_remove(c, &res->by_owner, i);
	res->locks--;
	if (l->replicated)
		count_out(c, l);
	if (l->owner_prev != 0)
		lock_at(c, l->owner_prev)->owner_next = l->owner_next;
	else
		o->locks = l->owner_next;
	if (l->owner_next != 0)
		lock_at(c, l->owner_next)->owner_prev = l->owner_prev;
	o->held--;
	l->owner = 0;
	pool_put(&c->locks, i);
}

void table_publish(struct belay_core *c, uint32_t lock, bool replicated)
{
	struct lock *l = lock_at(c, lock);

	if (l->replicated == replicated)
		return;
	if (replicated)
		count_in(c, l);
	else
		count_out(c, l);
}

struct search {
	const struct belay_core *core;
	struct belay_range range;
	uint32_t owner;
	bool (*each)(void *context, uint32_t lock);
	void *context;
};

/* In order of the tree, so the first hit is the first by (start, owner). */
static bool search(const struct search *s, uint32_t i)
{
	const struct lock *l;

	while (i != 0) {
		l = lock_at(s->core, i);
		if (l->max_end < s->range.start)
			return false;
		if (search(s, l->by_range.left))
			return true;
		if (l->start > s->range.end)
			return false;
		if (l->end >= s->range.start && l->owner != s->owner && s->each(s->context, i))
			return true;
		i = l->by_range.right;
	}
	return false;
}

bool table_each_conflict(const struct belay_core *c, const struct resource *r,
			 struct belay_range range, enum belay_mode mode, uint32_t owner,
			 bool (*each)(void *context, uint32_t lock), void *context)
{
	struct search s = { c, range, owner, each, context };

	if (search(&s, r->ex))
		return true;
	return mode == BELAY_MODE_EX && search(&s, r->sh);
}

bool table_each(const struct belay_core *c, const struct resource *r, struct belay_range range,
		bool (*each)(void *context, uint32_t lock), void *context)
{
	struct search s = { c, range, 0, each, context };

	return search(&s, r->sh) || search(&s, r->ex);
}

static bool take_first(void *context, uint32_t lock)
{
	*(uint32_t *)context = lock;
	return true;
}

uint32_t table_conflict(const struct belay_core *c, const struct resource *r,
			struct belay_range range, enum belay_mode mode, uint32_t owner)
{
	uint32_t ex = 0, sh = 0;
	struct search s = { c, range, owner, take_first, &ex };

	(void)search(&s, r->ex);
	if (mode == BELAY_MODE_SH || r->sh == 0)
		return ex;
	s.context = &sh;
	(void)search(&s, r->sh);
	if (ex == 0 || sh == 0)
		return ex | sh;
	return range_less(c, ex, sh) ? ex : sh;
}

uint32_t table_first(const struct belay_core *c, const struct resource *r, uint32_t owner,
		     uint64_t at)
{
	uint32_t i = r->by_owner, best = 0;

	while (i != 0) {
		const struct lock *l = lock_at(c, i);

		if (l->owner < owner || (l->owner == owner && l->end < at)) {
			i = l->by_owner.right;
			continue;
		}
		if (l->owner == owner)
			best = i;
		i = l->by_owner.left;
	}
	return best;
}

static bool seen(const struct lock *l, enum sight sight)
{
	return sight == SIGHT_ALL || l->replicated == (sight == SIGHT_REPLICATED);
}

bool table_blocks(const struct belay_core *c, const struct resource *r, uint32_t owner,
		  struct belay_range range, enum belay_mode mode, enum sight sight)
{
	uint32_t i = table_first(c, r, owner, range.start);

	while (i != 0 && lock_at(c, i)->start <= range.end) {
		const struct lock *l = lock_at(c, i);

		if (conflicting(l->mode, mode) && seen(l, sight))
			return true;
		i = table_first(c, r, owner, l->end + 1);
	}
	return false;
}

bool table_covers(const struct belay_core *c, const struct resource *r, uint32_t owner,
		  struct belay_range range, enum belay_mode mode, enum sight sight)
{
	uint64_t at = range.start;

	for (;;) {
		uint32_t i = table_first(c, r, owner, at);

		if (i == 0 || lock_at(c, i)->start > at || lock_at(c, i)->mode < (uint8_t)mode ||
		    !seen(lock_at(c, i), sight))
			return false;
		if (lock_at(c, i)->end >= range.end)
			return true;
		at = lock_at(c, i)->end + 1;
	}
}

uint32_t table_share(const struct belay_core *c)
{
	return c->config.limits.locks_max / 2 / c->node_count;
}

uint32_t table_private(const struct belay_core *c)
{
	return c->locks.count - c->locks_replicated + c->room_lent;
}

bool table_room(const struct belay_core *c, uint32_t owner, uint32_t more, bool replicated)
{
	uint32_t max = c->config.limits.locks_max, own_max = c->config.limits.locks_per_owner_max;

	if (replicated)
		/* Who waits has its place already. */
		return c->locks_replicated + 2 * c->waiters_replicated + more <= max &&
		       owner_at(c, owner)->replicated + 2 * owner_at(c, owner)->queued + more <= own_max;
	/* Own authority: what is private here must still fit when it becomes
	 * replicated, with what every other node may have in private. */
	return c->locks_replicated + more <= max && owner_at(c, owner)->held + more <= own_max &&
	       table_private(c) + more <= table_share(c);
}

/* Give an existing lock another range. */
static void reshape(struct belay_core *c, uint32_t i, uint64_t start, uint64_t end)
{
	struct lock old = *lock_at(c, i);
	uint32_t made;

	table_remove(c, i);
	made = table_add(c, old.resource, old.owner, range_of(start, end),
			 (enum belay_mode)old.mode, old.replicated);
	if (made != 0)
		lock_at(c, made)->staged = old.staged;
}

/* Take [range] out of lock i, which overlaps it. */
static void carve(struct belay_core *c, uint32_t i, struct belay_range range)
{
	struct lock old = *lock_at(c, i);
	bool left = old.start < range.start, right = old.end > range.end;

	if (left)
		reshape(c, i, old.start, range.start - 1);
	else if (right)
		reshape(c, i, range.end + 1, old.end);
	else
		table_remove(c, i);
	if (left && right)
		(void)table_add(c, old.resource, old.owner, range_of(range.end + 1, old.end),
				(enum belay_mode)old.mode, old.replicated);
}

bool table_set(struct belay_core *c, uint32_t r, uint32_t owner, struct belay_range range,
	       enum belay_mode mode, bool replicated, struct belay_range bounds)
{
	struct resource *res = resource_at(c, r);
	struct belay_range merged = range;
	uint64_t at = range.start > bounds.start ? range.start - 1 : range.start;
	bool weaker = false;
	uint32_t i;

	/* Neighbours of the same mode merge, so the search reaches one byte further. */
	while ((i = table_first(c, res, owner, at)) != 0) {
		const struct lock *l = lock_at(c, i);

		if (l->start > range.end + 1 || l->start > bounds.end)
			break;
		at = l->end + 1;
		if (l->replicated != replicated)
			continue;
		if (l->mode == (uint8_t)mode) {
			if (l->start <= merged.start && l->end >= merged.end)
				return false; /* nothing was merged before it */
			if (l->start < merged.start)
				merged.start = l->start;
			if (l->end > merged.end)
				merged.end = l->end;
			table_remove(c, i);
		} else if (overlapping(l->start, l->end, range)) {
			weaker |= l->mode > (uint8_t)mode;
			carve(c, i, range);
		}
	}
	(void)table_add(c, r, owner, merged, mode, replicated);
	return weaker;
}

bool table_clear(struct belay_core *c, uint32_t r, uint32_t owner, struct belay_range range,
		 enum sight sight)
{
	struct resource *res = resource_at(c, r);
	uint64_t at = range.start;
	bool any = false, last = false;
	uint32_t i;

	while (!last && (i = table_first(c, res, owner, at)) != 0) {
		const struct lock *l = lock_at(c, i);

		if (l->start > range.end)
			break;
		last = l->end >= range.end;
		at = l->end + 1;
		if (!seen(l, sight))
			continue;
		/* At the limit a hole cannot be cut: the range stays locked, which is safe. */
		if (l->start < range.start && l->end > range.end &&
		    !table_room(c, owner, 1, l->replicated)) {
			c->stats.refused++;
			return any;
		}
		carve(c, i, range);
		any = true;
	}
	return any;
}
