/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Delegations: which node may grant on which range of a resource without
 * asking. Those for all modes exclude every other; those for readers lie beside
 * each other. They begin by an op of the node that gets them, for only its
 * own op can be known to be stable, and end by its RELINQ or by its fence.
 *
 * No lock and no local wait reaches over the end of its delegation.
 */
#include "core/internal.h"

static uint64_t delegation_hash(const struct belay_core *c, const struct delegation *d)
{
	uint64_t h = index_mix(index_key(&resource_at(c, d->resource)->key), d->epoch);

	h = index_mix(index_mix(h, d->start), (d->end << 1) | d->mode);
	return index_mix(h, ((uint64_t)c->node[d->node].id << 1) | d->recalled);
}

bool delegation_own(const struct belay_core *c, const struct delegation *d)
{
	return d->node == c->self;
}

bool delegation_gives(const struct delegation *d, struct belay_range range)
{
	return d->giving && !d->keeping && overlapping(d->give.start, d->give.end, range);
}

struct belay_range delegation_left(const struct delegation *d)
{
	struct belay_range left = { d->start, d->end };

	if (!d->giving || d->keeping)
		return left;
	if (d->give.start > d->start)
		left.end = d->give.start - 1;
	else
		left.start = d->give.end + 1;
	return left;
}

static bool before(const struct delegation *a, const struct delegation *b)
{
	return a->start != b->start ? a->start < b->start : a->node < b->node;
}

static void link_in(struct belay_core *c, uint32_t i)
{
	struct delegation *d = delegation_at(c, i);
	struct resource *r = resource_at(c, d->resource);
	uint32_t *at = &r->delegations;

	while (*at != 0 && before(delegation_at(c, *at), d))
		at = &delegation_at(c, *at)->next;
	resource_hash_out(c, r);
	d->next = *at;
	*at = i;
	resource_hash_in(c, r);
	c->digest += delegation_hash(c, d);
}

static void link_out(struct belay_core *c, uint32_t i)
{
	struct delegation *d = delegation_at(c, i);
	struct resource *r = resource_at(c, d->resource);
	uint32_t *at = &r->delegations;

	c->digest -= delegation_hash(c, d);
	while (*at != i)
		at = &delegation_at(c, *at)->next;
	resource_hash_out(c, r);
	*at = d->next;
	resource_hash_in(c, r);
}

struct taking {
	struct belay_core *core;
	struct belay_range range;
	uint32_t node;
	uint32_t count;
};

/* Into scratch: a table must not change while it is walked. */
static bool take_lock(void *context, uint32_t lock)
{
	struct taking *t = context;
	const struct lock *l = lock_at(t->core, lock);

	if (owner_at(t->core, l->owner)->node == t->node && l->replicated)
		t->core->lock_scratch[t->count++] = lock;
	return false;
}

/* The new delegate's locks in the range become its own affair. */
static void take_locks(struct belay_core *c, struct delegation *d)
{
	struct belay_range range = { d->start, d->end };
	uint32_t r = d->resource, node = d->node;
	struct taking t = { c, range, node, 0 };

	(void)table_each(c, resource_at(c, r), range, take_lock, &t);
	for (uint32_t k = 0; k < t.count; k++) {
		uint32_t i = c->lock_scratch[k], owner = lock_at(c, i)->owner;

		if (node == c->self) {
			table_publish(c, i, false);
			delegation_use(d, range_of(lock_at(c, i)->start, lock_at(c, i)->end),
				       (enum belay_mode)lock_at(c, i)->mode);
			continue;
		}
		table_remove(c, i);
		index_owner_release(c, owner);
	}
}

/*
 * Releases sent while nobody had the range and not delivered yet, by unlock or
 * by a client's end: now that the locks are private, they take effect
 * at once, and their delivery will find nothing. A lock taken in between
 * could otherwise fall to the release of its predecessor.
 */
static void apply_releases(struct belay_core *c, uint32_t r, struct belay_range range)
{
	for (uint32_t i = c->sent_head; i != 0; i = sent_at(c, i)->next) {
		const struct sent *s = sent_at(c, i);
		uint32_t cl, o, next;

		if (s->type == BELAY_OP_CLIENT_GONE) {
			cl = index_client(c, c->self, s->owner);
			for (o = cl != 0 ? client_at(c, cl)->owners : 0; o != 0; o = next) {
				next = owner_at(c, o)->client_next;
				(void)table_clear(c, r, o, range, SIGHT_PRIVATE);
				index_owner_release(c, o);
			}
		} else if (s->type == BELAY_OP_REL && s->resource == r &&
			   overlapping(range.start, range.end, s->range) &&
			   table_first(c, resource_at(c, r), s->owner, 0) != 0) {
			(void)table_clear(c, r, s->owner, common(range, s->range), SIGHT_PRIVATE);
			index_owner_release(c, s->owner);
		}
	}
}

static uint32_t make(struct belay_core *c, uint32_t r, uint32_t node, struct belay_range range,
		     enum belay_mode mode, uint64_t epoch, bool recalled)
{
	uint32_t i = pool_get(&c->delegations);

	if (i == 0)
		return 0;
	*delegation_at(c, i) = (struct delegation){
		.start = range.start, .end = range.end, .epoch = epoch, .resource = r,
		.node = (uint8_t)node, .mode = (uint8_t)mode, .recalled = recalled,
	};
	link_in(c, i);
	return i;
}

uint32_t delegation_load(struct belay_core *c, uint32_t r, uint32_t node,
			 const struct belay_record *rec)
{
	return make(c, r, node, rec->range, rec->mode, rec->epoch, rec->recalled);
}

uint32_t delegation_begin(struct belay_core *c, uint32_t r, uint32_t node, struct belay_range range,
			  enum belay_mode mode)
{
	uint32_t i = make(c, r, node, range, mode, c->place, false);
	struct delegation *d;

	if (i == 0)
		return 0;
	d = delegation_at(c, i);
	take_locks(c, d);
	resource_changed(c, r);
	if (node == c->self) {
		d->authority_at = c->node[c->self].seq;
		d->since_us = c->now_us;
		d->token = d->token_began = c->token;
		c->stats.owned_here++;
		apply_releases(c, r, range);
	}
	return i;
}

/* What was used of the part that is left. */
static void clip_use(struct delegation *d)
{
	if (!d->used || !overlapping(d->start, d->end, d->hull)) {
		d->used = d->used_ex = false;
		return;
	}
	d->hull = common(d->hull, range_of(d->start, d->end));
}

void delegation_end(struct belay_core *c, uint32_t i, struct belay_range range)
{
	struct delegation *d = delegation_at(c, i);
	uint32_t r = d->resource;

	assert(range.start == d->start || range.end == d->end);
	if (delegation_own(c, d)) {
		recall_due_drop(c, d);
		d->giving = d->keeping = false;
	}
	link_out(c, i);
	if (range.start <= d->start && range.end >= d->end) {
		if (delegation_own(c, d))
			c->stats.owned_here--;
		d->resource = 0;
		pool_put(&c->delegations, i);
	} else {
		if (range.start == d->start)
			d->start = range.end + 1;
		else
			d->end = range.start - 1;
		d->recalled = false;
		clip_use(d);
		link_in(c, i);
	}
	resource_changed(c, r);
}

void delegation_recalled(struct belay_core *c, uint32_t i, bool recalled)
{
	struct delegation *d = delegation_at(c, i);

	if (d->recalled == recalled)
		return;
	link_out(c, i);
	d->recalled = recalled;
	link_in(c, i);
	c->stats.recalls += recalled;
}

void delegation_weaken(struct belay_core *c, uint32_t i)
{
	struct delegation *d = delegation_at(c, i);

	link_out(c, i);
	d->mode = BELAY_MODE_SH;
	d->recalled = false;
	link_in(c, i);
	if (delegation_own(c, d)) {
		recall_due_drop(c, d);
		d->giving = d->keeping = false;
	}
	resource_changed(c, d->resource);
}

uint32_t delegation_covering(const struct belay_core *c, const struct resource *r, uint32_t node,
			     struct belay_range range, enum belay_mode mode)
{
	for (uint32_t i = r->delegations; i != 0; i = delegation_at(c, i)->next) {
		const struct delegation *d = delegation_at(c, i);

		if (d->node == node && within(range, d->start, d->end) && d->mode >= mode)
			return i;
	}
	return 0;
}

uint32_t delegation_conflict(const struct belay_core *c, const struct resource *r, uint32_t node,
			     struct belay_range range, enum belay_mode mode, uint32_t after)
{
	uint32_t i = after != 0 ? delegation_at(c, after)->next : r->delegations;

	for (; i != 0; i = delegation_at(c, i)->next) {
		const struct delegation *d = delegation_at(c, i);

		/* A node's own that does not have all of it is in its way like any other:
		 * an owner's locks would be part private, part not. */
		if (overlapping(d->start, d->end, range) &&
		    (d->node == node || conflicting(d->mode, mode)))
			return i;
	}
	return 0;
}

struct cut {
	const struct belay_core *core;
	struct belay_range range;
	uint32_t node;
	enum belay_mode mode;
};

static bool is_cut(void *context, uint32_t lock)
{
	const struct cut *t = context;
	const struct lock *l = lock_at(t->core, lock);

	return owner_at(t->core, l->owner)->node == t->node &&
	       (!within(range_of(l->start, l->end), t->range.start, t->range.end) ||
		l->mode > (uint8_t)t->mode);
}

bool delegation_cuts(const struct belay_core *c, const struct resource *r, uint32_t node,
		     struct belay_range range, enum belay_mode mode)
{
	return table_each(c, r, range, is_cut, &(struct cut){ c, range, node, mode });
}

uint32_t delegation_any(const struct belay_core *c, const struct resource *r,
			struct belay_range range, uint32_t after)
{
	uint32_t i = after != 0 ? delegation_at(c, after)->next : r->delegations;

	while (i != 0 && !overlapping(delegation_at(c, i)->start, delegation_at(c, i)->end, range))
		i = delegation_at(c, i)->next;
	return i;
}

uint32_t delegation_authority(const struct belay_core *c, const struct resource *r,
			      struct belay_range range, enum belay_mode mode)
{
	uint32_t i = delegation_covering(c, r, c->self, range, mode);
	const struct delegation *d = i != 0 ? delegation_at(c, i) : NULL;

	if (d == NULL || delegation_gives(d, range) ||
	    (d->giving && d->keeping && mode == BELAY_MODE_EX))
		return 0;
	return i;
}

void delegation_use(struct delegation *d, struct belay_range range, enum belay_mode mode)
{
	if (!d->used || range.start < d->hull.start)
		d->hull.start = range.start;
	if (!d->used || range.end > d->hull.end)
		d->hull.end = range.end;
	d->used = true;
	d->used_ex |= mode == BELAY_MODE_EX;
}

void delegation_tokens_jump(struct belay_core *c, uint64_t by)
{
	for (uint32_t i = 1; i < c->delegations.fresh; i++) {
		struct delegation *d = delegation_at(c, i);

		if (d->resource == 0 || !delegation_own(c, d))
			continue;
		d->token += by;
		d->token_began += by;
	}
}

void delegation_token(struct belay_core *c, uint32_t i, uint64_t token)
{
	struct delegation *d = delegation_at(c, i);

	if (token > d->token)
		d->token = token;
	/* Others must be able to guess how far it has gone, should this node die. */
	if (d->token - d->token_began > TOKENS_PRIVATE && !d->giving && d->due_us == 0)
		recall_soon(c, i);
}
