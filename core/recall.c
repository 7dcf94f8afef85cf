/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How this node gives up what it was delegated and another node wants: after
 * a moment, all or a part, or all but the right to read.
 *
 * Authority ends when RELINQ is sent, not when it is delivered: from then on
 * this node's table is what the RELINQ says (I4).
 */
#include "core/internal.h"

/* The list of delegations to relinquish when their minimum hold is over. */

void recall_due_drop(struct belay_core *c, struct delegation *d)
{
	if (d->due_us == 0)
		return;
	if (d->due_prev != 0)
		delegation_at(c, d->due_prev)->due_next = d->due_next;
	else
		c->due.head = d->due_next;
	if (d->due_next != 0)
		delegation_at(c, d->due_next)->due_prev = d->due_prev;
	else
		c->due.tail = d->due_prev;
	d->due_us = 0;
	d->due_prev = d->due_next = 0;
}

static void due_add(struct belay_core *c, uint32_t i, uint64_t at_us)
{
	struct delegation *d = delegation_at(c, i);

	d->due_us = at_us;
	d->due_prev = c->due.tail;
	if (c->due.tail != 0)
		delegation_at(c, c->due.tail)->due_next = i;
	else
		c->due.head = i;
	c->due.tail = i;
	core_wake(c, at_us);
}

static struct belay_range all_of(const struct delegation *d)
{
	return range_of(d->start, d->end);
}

/* In order of their ranges: RELINQ's parts need one order, the receivers any. */
static bool send_lock(void *context, uint32_t i)
{
	struct belay_core *c = context;
	const struct lock *l = lock_at(c, i);
	struct belay_op op = {
		.type = BELAY_OP_HELD,
		.key = resource_at(c, l->resource)->key,
		.range = range_of(l->start, l->end),
		.owner = owner_at(c, l->owner)->id,
		.mode = (enum belay_mode)l->mode,
	};

	if (owner_at(c, l->owner)->node == c->self && !l->replicated)
		core_send(c, &op, true, 0, 0, 0);
	return false;
}

static void send_waiting(struct belay_core *c, const struct resource *r, struct belay_range range)
{
	uint32_t count = queue_collect(c, r, range, true);

	for (uint32_t k = 0; k < count; k++) {
		const struct request *q = request_at(c, c->scratch[k]);
		struct belay_op op = {
			.type = BELAY_OP_WAITING,
			.key = r->key,
			.range = range_of(q->start, q->end),
			.owner = owner_at(c, q->owner)->id,
			.request = q->number,
			.mode = (enum belay_mode)q->mode,
			.wait = q->wait,
			.test = q->test,
		};

		core_send(c, &op, true, 0, 0, 0);
	}
}

/* What overlaps a range and sticks out of it must go with it. */
struct closure {
	const struct belay_core *core;
	struct belay_range range;
	bool grown;
};

static bool grow(struct closure *g, uint64_t start, uint64_t end)
{
	if (start < g->range.start) {
		g->range.start = start;
		g->grown = true;
	}
	if (end > g->range.end) {
		g->range.end = end;
		g->grown = true;
	}
	return false;
}

static bool grow_by_lock(void *context, uint32_t i)
{
	struct closure *g = context;
	const struct lock *l = lock_at(g->core, i);

	return l->replicated || owner_at(g->core, l->owner)->node != g->core->self ?
		false : grow(g, l->start, l->end);
}

static void grow_by_waiters(struct belay_core *c, const struct resource *r, struct closure *g)
{
	uint32_t count = queue_collect(c, r, g->range, true);

	for (uint32_t k = 0; k < count; k++)
		(void)grow(g, request_at(c, c->scratch[k])->start,
			   request_at(c, c->scratch[k])->end);
}

/* Widen to a head or a tail of the delegation (or all) that cuts nothing apart. */
static struct belay_range close_over(struct belay_core *c, const struct delegation *d,
				     struct belay_range range)
{
	struct closure g = { .core = c, .range = range };
	const struct resource *r = resource_at(c, d->resource);

	do {
		g.grown = false;
		(void)table_each(c, r, g.range, grow_by_lock, &g);
		grow_by_waiters(c, r, &g);
	} while (g.grown);
	return g.range.start <= d->start || g.range.end >= d->end ? g.range : all_of(d);
}

/* The hull of what others ask for within the delegation, and whether all only want to read. */
static bool wanted(struct belay_core *c, const struct delegation *d, struct belay_range *ret_hull,
		   bool *ret_readers)
{
	uint32_t count = queue_collect(c, resource_at(c, d->resource), all_of(d), false);
	bool some = false;

	*ret_readers = true;
	for (uint32_t k = 0; k < count; k++) {
		const struct request *q = request_at(c, c->scratch[k]);
		struct belay_range part = common(range_of(q->start, q->end), all_of(d));

		if (owner_at(c, q->owner)->node != c->self && !conflicting(d->mode, q->mode))
			continue;
		if (!some || part.start < ret_hull->start)
			ret_hull->start = part.start;
		if (!some || part.end > ret_hull->end)
			ret_hull->end = part.end;
		some = true;
		*ret_readers &= q->mode == BELAY_MODE_SH && owner_at(c, q->owner)->node != c->self;
	}
	return some;
}

static bool exclusive(void *context, uint32_t i)
{
	const struct belay_core *c = context;

	return lock_at(c, i)->mode == BELAY_MODE_EX;
}

static bool reads_only(struct belay_core *c, const struct delegation *d)
{
	const struct resource *r = resource_at(c, d->resource);

	if (d->mode == BELAY_MODE_SH || d->used_ex || queue_collect(c, r, all_of(d), true) != 0)
		return false;
	return !table_each(c, r, all_of(d), exclusive, c);
}

/*
 * Where this node and the others use parts that lie apart, each keeps its own:
 * the border is drawn in the middle between them.
 */
static struct belay_range part_with(struct belay_core *c, const struct delegation *d,
				    struct belay_range want)
{
	struct belay_range give = all_of(d);

	if (!d->used || d->mode == BELAY_MODE_SH)
		return give;
	if (!keep_off(&give, want, d->hull, true))
		return give;
	return close_over(c, d, give);
}

static void relinquish(struct belay_core *c, uint32_t i, struct belay_range give, bool keep)
{
	struct delegation *d = delegation_at(c, i);
	uint32_t r = d->resource;
	struct belay_op op = {
		.type = BELAY_OP_RELINQ,
		.key = resource_at(c, r)->key,
		.epoch = d->epoch,
		.range = give,
		.keep = keep,
		.token = d->token,
	};

	recall_due_drop(c, d);
	if (!keep) {
		/* Grants that are not believed yet are in the table, hence in held[] (S4). */
		(void)table_each(c, resource_at(c, r), give, send_lock, c);
		send_waiting(c, resource_at(c, r), give);
	}
	core_send(c, &op, true, 0, 0, 0);
	d->giving = true;
	d->keeping = keep;
	d->give = give;
	c->stats.relinquished++;
	resource_unidle(c, r);
	if (resource_at(c, r)->local != 0)
		request_back(c, r);
}

void recall_now(struct belay_core *c, uint32_t i)
{
	struct delegation *d = delegation_at(c, i);
	struct belay_range want, give;
	bool readers;

	if (d->giving)
		return;
	recall_due_drop(c, d);
	d->gathering = false;
	if (!wanted(c, d, &want, &readers)) {
		want = all_of(d); /* who wanted it is gone; the recall stands */
		readers = false;
	}
	/* What clients use of it is known when their loans are back. */
	if (loan_recall_range(c, d->resource, want)) {
		d->gathering = true;
		return;
	}
	if (readers && reads_only(c, d)) {
		if (loan_recall_range(c, d->resource, all_of(d)))
			d->gathering = true;
		else
			relinquish(c, i, all_of(d), true);
		return;
	}
	give = part_with(c, d, want);
	if (loan_recall_range(c, d->resource, give))
		d->gathering = true;
	else
		relinquish(c, i, give, false);
}

void recall_begin(struct belay_core *c, uint32_t i)
{
	struct delegation *d = delegation_at(c, i);

	if (d->giving || d->gathering || d->due_us != 0)
		return;
	/* What was fetched and used keeps its worth a moment; idle goes at once. */
	if (d->used && c->now_us < d->since_us + c->config.min_hold_us)
		due_add(c, i, d->since_us + c->config.min_hold_us);
	else
		recall_now(c, i);
}

void recall_idle(struct belay_core *c, uint32_t i)
{
	struct delegation *d = delegation_at(c, i);

	if (!d->giving && !d->gathering)
		relinquish(c, i, all_of(d), false);
}

bool recall_due(struct belay_core *c, uint32_t i)
{
	const struct delegation *d = delegation_at(c, i);

	if (!core_serves(c) || d->due_us == 0 || d->due_us > c->now_us)
		return false;
	recall_now(c, i);
	return true;
}

void recall_soon(struct belay_core *c, uint32_t i)
{
	struct delegation *d = delegation_at(c, i);

	d->gathering = false;
	if (d->due_us == 0)
		due_add(c, i, c->now_us);
}

void recall_wait(struct belay_core *c, uint32_t i, struct belay_range range)
{
	struct delegation *d = delegation_at(c, i);
	struct belay_range give;

	if (d->giving || d->gathering)
		return;
	give = close_over(c, d, range);
	if (loan_recall_range(c, d->resource, give))
		d->gathering = true;
	else
		relinquish(c, i, give, false);
}

void recall_all_idle(struct belay_core *c)
{
	for (uint32_t i = 1; i < c->delegations.fresh; i++)
		if (delegation_at(c, i)->resource != 0 && delegation_own(c, delegation_at(c, i)))
			recall_idle(c, i);
}

void recall_tick(struct belay_core *c)
{
	uint32_t i, next;

	for (i = c->due.head; i != 0; i = next) {
		next = delegation_at(c, i)->due_next;
		if (!recall_due(c, i))
			core_wake(c, delegation_at(c, i)->due_us);
	}
}
