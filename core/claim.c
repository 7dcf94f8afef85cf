/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * When this node asks for a range to be delegated to it: once it is alone
 * there for long enough, alone on a part that nobody else's requests touch, or when
 * all have only read for a while. To ask is this node's own affair, and may rest on
 * what it alone remembers; whether it is given is decided alike by all.
 */
#include "core/internal.h"

static void forget_others(struct claim *l, struct belay_range own)
{
	l->count = 1;
	l->hull = own;
	l->others_below = l->others_above = false;
}

static void note_own(struct claim *l, struct belay_range range)
{
	l->streak++;
	if (l->count == 0) {
		forget_others(l, range);
		return;
	}
	l->count++;
	if (range.start < l->hull.start)
		l->hull.start = range.start;
	if (range.end > l->hull.end)
		l->hull.end = range.end;
	if ((l->others_below && l->below >= l->hull.start) ||
	    (l->others_above && l->above <= l->hull.end))
		forget_others(l, range);
}

static void note_other(struct claim *l, struct belay_range range)
{
	l->streak = 0;
	if (l->count == 0)
		return;
	if (range.end < l->hull.start) {
		if (!l->others_below || range.end > l->below)
			l->below = range.end;
		l->others_below = true;
	} else if (range.start > l->hull.end) {
		if (!l->others_above || range.start < l->above)
			l->above = range.start;
		l->others_above = true;
	} else {
		l->count = 0;
	}
}

/* A range around another that shrinks as things are found that stand in its way. */
struct gap {
	struct belay_core *core;
	struct belay_range around, gap;
	uint32_t node;
	enum belay_mode mode;
	bool none;
};

static void exclude(struct gap *g, uint64_t start, uint64_t end)
{
	g->none |= !keep_off(&g->gap, g->around, range_of(start, end), false);
}

static bool exclude_lock(void *context, uint32_t i)
{
	struct gap *g = context;
	const struct lock *l = lock_at(g->core, i);

	if (owner_at(g->core, l->owner)->node != g->node && conflicting(l->mode, g->mode))
		exclude(g, l->start, l->end);
	return g->none;
}

/* The part of the gap that could be delegated now; false: none. */
static bool find_gap(struct gap *g, uint32_t r)
{
	struct belay_core *c = g->core;
	const struct resource *res = resource_at(c, r);
	uint32_t d = 0, count;

	while ((d = delegation_any(c, res, g->gap, d)) != 0)
		if (delegation_at(c, d)->node == g->node ||
		    conflicting(delegation_at(c, d)->mode, g->mode))
			exclude(g, delegation_at(c, d)->start, delegation_at(c, d)->end);
	count = queue_collect(c, res, g->gap, false);
	for (uint32_t k = 0; k < count; k++)
		exclude(g, request_at(c, c->scratch[k])->start, request_at(c, c->scratch[k])->end);
	(void)table_each(c, res, g->gap, exclude_lock, g);
	return !g->none && !delegation_cuts(c, res, g->node, g->gap, g->mode);
}

static void ask(struct belay_core *c, uint32_t r, struct belay_range around,
		struct belay_range range, enum belay_mode mode)
{
	struct gap g = { .core = c, .around = around, .gap = range, .node = c->self, .mode = mode };
	struct belay_op op = {
		.type = BELAY_OP_CLAIM, .key = resource_at(c, r)->key, .mode = mode,
	};

	/* One at a time, and only what fits into this node's share. */
	if (c->claim_seq != 0 || c->leaving ||
	    table_private(c) + resource_at(c, r)->replicated > table_share(c) || !find_gap(&g, r))
		return;
	op.range = g.gap;
	core_send(c, &op, false, 0, 0, 0);
	c->claim_seq = c->sent_seq;
}

void claim_count(struct belay_core *c, uint32_t r, uint32_t i)
{
	const struct request *q = request_at(c, i);
	const struct resource *res = resource_at(c, r);
	struct belay_range range = range_of(q->start, q->end), part;
	struct claim *l;
	uint32_t need;

	if (res->local == 0 || q->test || resource_always_arbitrated(res))
		return;
	l = &local_at(c, res->local)->claim;
	l->readers = q->mode == BELAY_MODE_SH ? l->readers + 1 : 0;
	if (c->from != c->self) {
		note_other(l, range);
		return;
	}
	note_own(l, range);
	need = c->config.claim_streak << l->backoff;
	if (l->streak % need == 0) {
		ask(c, r, range, range_of(0, BELAY_OFFSET_MAX), BELAY_MODE_EX);
	} else if (l->readers != 0 && l->readers % c->config.share_streak == 0) {
		ask(c, r, range, range_of(0, BELAY_OFFSET_MAX), BELAY_MODE_SH);
	} else if (l->count % need == 0 && (l->others_below || l->others_above)) {
		part = range_of(0, BELAY_OFFSET_MAX);
		if (l->others_below)
			(void)keep_off(&part, l->hull, range_of(l->below, l->below), true);
		if (l->others_above)
			(void)keep_off(&part, l->hull, range_of(l->above, l->above), true);
		ask(c, r, range, part, BELAY_MODE_EX);
	}
}

struct hull {
	const struct belay_core *core;
	struct belay_range range;
	bool some;
};

static bool add_own(void *context, uint32_t i)
{
	struct hull *h = context;
	const struct lock *l = lock_at(h->core, i);

	if (owner_at(h->core, l->owner)->node != h->core->self)
		return false;
	if (!h->some || l->start < h->range.start)
		h->range.start = l->start;
	if (!h->some || l->end > h->range.end)
		h->range.end = l->end;
	h->some = true;
	return false;
}

void claim_yielded(struct belay_core *c, uint32_t r, struct belay_range range)
{
	struct hull h = { .core = c };

	if (c->from == c->self)
		return;
	(void)table_each(c, resource_at(c, r), range, add_own, &h);
	if (h.some && within(h.range, range.start, range.end))
		ask(c, r, h.range, range, BELAY_MODE_EX);
}

void claim_lost(struct belay_core *c, uint32_t r, uint64_t epoch)
{
	struct claim *l;

	if (resource_at(c, r)->local == 0)
		return;
	l = &local_at(c, resource_at(c, r)->local)->claim;
	/* It was worth it if it lasted; else the next claim has to be earned harder. */
	if (c->place - epoch >= QUIET_PLACES) {
		if (l->backoff > 0)
			l->backoff--;
	} else if (l->backoff < BACKOFF_MAX) {
		l->backoff++;
	}
	l->streak = l->count = l->readers = 0;
}

void claim_op(struct belay_core *c, const struct belay_op *op)
{
	uint32_t r = index_resource(c, &op->key, false);
	struct gap g = {
		.core = c, .around = op->range, .gap = op->range,
		.node = c->from, .mode = op->mode,
	};

	if (c->from == c->self)
		c->claim_seq = 0;
	/* What has come in its way since it was asked for makes it void: all of it or nothing. */
	if (r == 0 || !resource_at(c, r)->known || resource_always_arbitrated(resource_at(c, r)) ||
	    resource_at(c, r)->replicated > c->config.limits.locks_max / 4 / c->node_count ||
	    !find_gap(&g, r) || delegation_begin(c, r, c->from, op->range, op->mode) == 0)
		return;
	c->stats.claims++;
	stable_duty(c, c->from, c->place);
}
