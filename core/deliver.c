/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ordered ops on resources. Every synced node runs these on the same ops in
 * the same order and ends with the same table; only what is said to this
 * node's own clients, and sent, differs.
 */
#include "core/internal.h"

static void full(struct belay_core *c)
{
	core_isolate(c, "the lock table is full on this node only: it is inconsistent");
}

/* The sender's request as a record: its own has one already. 0: cannot be. */
static uint32_t request_of(struct belay_core *c, const struct belay_op *op, uint32_t r)
{
	struct belay_owner id = op->owner;
	struct request *q;
	uint32_t o, i;

	id.node = c->node[c->from].id;
	if (index_request(c, c->from, op->request) != 0)
		return 0;
	o = index_owner(c, &id, true);
	i = o != 0 ? index_request_new(c, r, o, op->request) : 0;
	if (i == 0) {
		full(c);
		return 0;
	}
	q = request_at(c, i);
	q->start = op->range.start;
	q->end = op->range.end;
	q->mode = (uint8_t)op->mode;
	q->wait = op->wait;
	q->test = op->test;
	return i;
}

/* Decided at its own delivery: the requester can believe it when we acknowledge. */
static void decide(struct belay_core *c, uint32_t i, int result)
{
	stable_duty(c, c->from, c->place);
	if (result == -ENOLCK)
		c->stats.refused++;
	request_finish(c, i, result);
}

static void grant_now(struct belay_core *c, uint32_t i)
{
	struct belay_range range = range_of(request_at(c, i)->start, request_at(c, i)->end);
	uint32_t r = request_at(c, i)->resource, owner = request_at(c, i)->owner;

	stable_duty(c, c->from, c->place);
	queue_granted(c, r, owner, request_grant(c, i, false), range, false);
}

/* By its own delegation: the others need not know. */
static void leave_to_sender(struct belay_core *c, uint32_t i)
{
	if (request_at(c, i)->own)
		request_run(c, i);
	else
		index_request_free(c, i);
}

/* Does the node wait for a part of the range? */
static bool awaits(struct belay_core *c, uint32_t r, struct belay_range range, uint32_t node)
{
	uint32_t count = queue_collect(c, resource_at(c, r), range, false);

	for (uint32_t k = 0; k < count; k++)
		if (owner_at(c, request_at(c, c->scratch[k])->owner)->node == node)
			return true;
	return false;
}

/* One more reader, where others read already by delegation: so may it. */
static bool join_readers(struct belay_core *c, uint32_t i)
{
	const struct request *q = request_at(c, i);
	uint32_t r = q->resource, d;
	const struct resource *res = resource_at(c, r);
	struct belay_range range = range_of(q->start, q->end);

	for (d = res->delegations; d != 0; d = delegation_at(c, d)->next) {
		const struct delegation *e = delegation_at(c, d);

		if (within(range, e->start, e->end) && !e->recalled)
			break;
	}
	if (q->mode != BELAY_MODE_SH || d == 0)
		return false;
	range = range_of(delegation_at(c, d)->start, delegation_at(c, d)->end);
	for (d = delegation_any(c, res, range, 0); d != 0; d = delegation_any(c, res, range, d))
		if (delegation_at(c, d)->node == c->from ||
		    delegation_at(c, d)->mode == BELAY_MODE_EX)
			return false;
	if (awaits(c, r, range, c->from) ||
	    delegation_cuts(c, res, c->from, range, BELAY_MODE_SH) ||
	    delegation_begin(c, r, c->from, range, BELAY_MODE_SH) == 0)
		return false;
	stable_duty(c, c->from, c->place);
	leave_to_sender(c, i);
	return true;
}

static void arbitrate(struct belay_core *c, uint32_t i)
{
	struct request *q = request_at(c, i);
	struct belay_action flush = { .type = BELAY_ACTION_FLUSH };
	struct blocker b = queue_blocker(c, i);

	if (!q->test && !table_room(c, q->owner, 2, true)) {
		decide(c, i, -ENOLCK);
		return;
	}
	if (queue_answerable(q, &b)) {
		stable_duty(c, c->from, c->place);
		request_answer(c, i, &b);
		return;
	}
	if (!blocked(&b)) {
		if (q->test)
			decide(c, i, 0);
		else if (!join_readers(c, i))
			grant_now(c, i);
		return;
	}
	if (c->waiters_replicated >= c->config.limits.waiters_max) {
		decide(c, i, -ENOLCK);
		return;
	}
	queue_add(c, i, c->place, false);
	hint_queued(c, i);
	/* It may wait for a release that this node keeps back for company. */
	if (!q->own && c->flushed_seq < c->sent_seq)
		core_emit(c, &flush);
	if (!q->wait) {
		queue_confirm(c, i);
	} else if (deadlock_closes(c, i)) {
		stable_duty(c, c->from, c->place);
		deadlock_break(c, i);
	}
}

/* A test that one node alone can answer. */
static bool answerable(const struct belay_core *c, const struct request *q, uint32_t d)
{
	const struct delegation *e = delegation_at(c, d);
	struct belay_range range = range_of(q->start, q->end);

	return q->test && e->mode == BELAY_MODE_EX && !e->recalled &&
	       within(range, e->start, e->end) &&
	       delegation_any(c, resource_at(c, q->resource), range, d) == 0;
}

/* Sticky: a recall ends by RELINQ or the delegate's end, never because the request that
 * caused it went away. */
static void recall_all(struct belay_core *c, uint32_t r, uint32_t node, struct belay_range range,
		       enum belay_mode mode)
{
	uint32_t d = 0;

	/* Changing one puts it into the list anew, where it was. */
	while ((d = delegation_conflict(c, resource_at(c, r), node, range, mode, d)) != 0)
		delegation_recalled(c, d, true);
	while ((d = delegation_conflict(c, resource_at(c, r), node, range, mode, d)) != 0)
		if (delegation_own(c, delegation_at(c, d)))
			recall_begin(c, d);
}

static void meet_delegates(struct belay_core *c, uint32_t i, uint32_t d)
{
	struct request *q = request_at(c, i);
	struct belay_range range = range_of(q->start, q->end);

	if (c->waiters_replicated >= c->config.limits.waiters_max) {
		decide(c, i, -ENOLCK);
		return;
	}
	queue_add(c, i, c->place, false);
	if (answerable(c, q, d)) {
		if (delegation_own(c, delegation_at(c, d)))
			queue_answer(c, i);
		else
			queue_confirm(c, i);
		return;
	}
	if (!q->wait)
		queue_confirm(c, i);
	recall_all(c, q->resource, owner_at(c, q->owner)->node, range, (enum belay_mode)q->mode);
}

static void first_touch(struct belay_core *c, uint32_t i)
{
	struct request *q = request_at(c, i);

	if (q->test) {
		decide(c, i, 0);
	} else if (!resource_known(c, q->resource)) {
		decide(c, i, -ENOLCK);
	} else if (!resource_always_arbitrated(resource_at(c, q->resource)) &&
		   delegation_begin(c, q->resource, c->from, range_of(0, BELAY_OFFSET_MAX),
				    BELAY_MODE_EX) != 0) {
		stable_duty(c, c->from, c->place);
		leave_to_sender(c, i);
	} else {
		arbitrate(c, i);
	}
}

/* Where in the order's view of the resource the request belongs. */
static void place(struct belay_core *c, uint32_t i)
{
	const struct request *q = request_at(c, i);
	const struct resource *res = resource_at(c, q->resource);
	struct belay_range range = range_of(q->start, q->end);
	enum belay_mode mode = (enum belay_mode)q->mode;
	uint32_t d = delegation_covering(c, res, c->from, range, mode);

	if (!res->known) {
		first_touch(c, i);
	} else if (d != 0 && !delegation_at(c, d)->recalled) {
		leave_to_sender(c, i); /* sent before the sender knew that it is its own affair */
	} else if ((d = delegation_conflict(c, res, c->from, range, mode, 0)) != 0) {
		meet_delegates(c, i, d);
	} else {
		claim_count(c, q->resource, i);
		arbitrate(c, i);
	}
}

static void on_req(struct belay_core *c, const struct belay_op *op, const struct sent *sent)
{
	uint32_t r = index_resource(c, &op->key, true), i;
	struct resource *res;

	if (r == 0) {
		full(c);
		return;
	}
	res = resource_at(c, r);
	if (sent != NULL) {
		i = sent->request;
		local_at(c, res->local)->inflight--;
		request_at(c, i)->stable_at = request_at(c, i)->vouch_at = c->node[c->self].seq;
		request_at(c, i)->prefix = stable_prefix(c);
		hint_acknowledged(c);
	} else if ((i = request_of(c, op, r)) == 0) {
		return;
	}
	if (sent == NULL)
		hint_vouch(c, op->request);
	res->pins++; /* it outlives the request */
	place(c, i);
	if (sent != NULL && local_at(c, res->local)->inflight == 0)
		request_back(c, r);
	res->pins--;
	resource_touch(c, r);
	index_resource_release(c, r);
}

/* Has the owner a request in the resource's queue? Others it may have only its own node knows. */
static bool waits_on(const struct belay_core *c, uint32_t owner, uint32_t r)
{
	for (uint32_t i = owner_at(c, owner)->requests; i != 0; i = request_at(c, i)->owner_next)
		if (request_at(c, i)->resource == r && request_at(c, i)->queue != 0 &&
		    !request_at(c, i)->local)
			return true;
	return false;
}

/* A request that its owner took by a hint, and ends before its grant: as if it had been. */
static void end_early(struct belay_core *c, const struct belay_op *op)
{
	uint32_t i = op->request != 0 ? index_request(c, c->from, op->request) : 0;
	const struct request *q = i != 0 ? request_at(c, i) : NULL;

	/* It was told a token before the releases that it rested on moved the clock. */
	if (op->token >= c->token && op->token < UINT64_MAX)
		c->token = op->token + 1;
	if (q == NULL || q->queue == 0 || q->local ||
	    !within(range_of(q->start, q->end), op->range.start, op->range.end) ||
	    (q->own && !q->early))
		return;
	queue_drop(c, i);
	index_request_free(c, i);
}

static void on_rel(struct belay_core *c, const struct belay_op *op)
{
	uint32_t r = index_resource(c, &op->key, false), o;
	struct belay_owner id = op->owner;
	bool waits = false;

	/* In the sender's delegations the release took effect when it was sent. */
	if (r == 0 || !resource_at(c, r)->known)
		return;
	end_early(c, op);
	id.node = c->node[c->from].id;
	o = index_owner(c, &id, false);
	if (o != 0) {
		(void)table_clear(c, r, o, op->range, SIGHT_REPLICATED);
		waits = waits_on(c, o, r);
		index_owner_release(c, o);
	}
	queue_scan(c, r, op->range, false);
	/* What the owner's lock kept back may stand before the owner's own waits now. */
	if (waits)
		deadlock_resolve(c, r, false);
	resource_touch(c, r);
}

static void on_cancel(struct belay_core *c, const struct belay_op *op)
{
	uint32_t i = index_request(c, c->from, op->request), r;
	struct belay_range range;
	struct request *q;

	if (i == 0)
		return;
	q = request_at(c, i);
	if (q->queue == 0 || q->local)
		return; /* granted first: then it is held */
	r = q->resource;
	range = range_of(q->start, q->end);
	resource_at(c, r)->pins++;
	queue_drop(c, i);
	if (q->own && q->weakens)
		q->stable_at = c->node[c->self].seq;
	request_finish(c, i, -EINTR);
	resource_at(c, r)->pins--;
	queue_scan(c, r, range, false);
	index_resource_release(c, r);
}

static void on_busy(struct belay_core *c, const struct belay_op *op)
{
	uint32_t node = index_node(c, op->node), i, r;
	struct belay_range range;
	struct request *q;

	if (node == c->node_count || (i = index_request(c, node, op->request)) == 0)
		return;
	q = request_at(c, i);
	if (q->queue == 0 || q->local || q->wait)
		return;
	r = q->resource;
	range = range_of(q->start, q->end);
	q->held = op->held;
	q->holder = op->owner;
	q->holder_range = op->range;
	q->holder_mode = op->mode;
	c->stats.busy++;
	resource_at(c, r)->pins++;
	queue_drop(c, i);
	request_finish(c, i, q->test ? 0 : -EAGAIN);
	resource_at(c, r)->pins--;
	queue_scan(c, r, range, false);
	index_resource_release(c, r);
}

/* The sender's delegation that it is giving up a part of, or 0. */
static uint32_t given_up(struct belay_core *c, const struct belay_op *op)
{
	uint32_t r = index_resource(c, &op->key, false);

	return r == 0 ? 0 : delegation_covering(c, resource_at(c, r), c->from, op->range,
						BELAY_MODE_SH);
}

static void on_held(struct belay_core *c, const struct belay_op *op)
{
	uint32_t d = given_up(c, op), r, o, l;
	struct belay_owner id = op->owner;

	if (d == 0)
		return;
	r = delegation_at(c, d)->resource;
	id.node = c->node[c->from].id;
	o = index_owner(c, &id, true);
	if (o == 0) {
		full(c);
		return;
	}
	if (c->from == c->self) {
		/* The delegate has it already; the others take it in. */
		l = table_first(c, resource_at(c, r), o, op->range.start);
	} else if (table_blocks(c, resource_at(c, r), o, op->range, BELAY_MODE_EX, SIGHT_ALL) ||
		   table_conflict(c, resource_at(c, r), op->range, op->mode, o) != 0) {
		c->stats.ops_dropped++;
		l = 0;
	} else {
		l = table_add(c, r, o, op->range, op->mode, false);
	}
	if (l != 0)
		lock_at(c, l)->staged = true;
	index_owner_release(c, o);
}

static void on_waiting(struct belay_core *c, const struct belay_op *op)
{
	uint32_t d = given_up(c, op), i;

	if (d == 0)
		return;
	if (c->from == c->self) {
		i = index_request(c, c->self, op->request);
		if (i == 0 || request_at(c, i)->queue == 0)
			return;
		queue_drop(c, i);
	} else if ((i = request_of(c, op, delegation_at(c, d)->resource)) == 0) {
		return;
	}
	queue_add(c, i, c->place, false);
}

struct publishing {
	struct belay_core *core;
	uint32_t count;
};

static bool publish(void *context, uint32_t lock)
{
	struct publishing *p = context;
	const struct lock *l = lock_at(p->core, lock);

	if (!l->replicated && owner_at(p->core, l->owner)->node == p->core->from)
		p->core->lock_scratch[p->count++] = lock;
	return false;
}

/* What was private to the sender, or staged by it, is everybody's from here on. */
static void publish_locks(struct belay_core *c, uint32_t r, struct belay_range range)
{
	struct publishing p = { c, 0 };

	(void)table_each(c, resource_at(c, r), range, publish, &p);
	for (uint32_t k = 0; k < p.count; k++)
		table_publish(c, c->lock_scratch[k], true);
}

/*
 * A delegation has become smaller, or weaker, and what met it before may do so no
 * more: its own node's requests that it covers are its own affair again; the first one that it
 * is in the way of recalls it anew.
 */
static void meet_again(struct belay_core *c, uint32_t d)
{
	const struct delegation *e = delegation_at(c, d);
	uint32_t r = e->resource, count, k = 0;

	do {
		count = queue_collect(c, resource_at(c, r), range_of(e->start, e->end), false);
		for (k = 0; k < count; k++) {
			uint32_t i = c->scratch[k];
			const struct request *q = request_at(c, i);
			struct belay_range range = range_of(q->start, q->end);
			uint32_t node = owner_at(c, q->owner)->node;

			if (node == e->node && within(range, e->start, e->end) &&
			    e->mode >= q->mode) {
				queue_drop(c, i);
				leave_to_sender(c, i);
				break; /* that may have used the scratch */
			}
			if (node == e->node || conflicting(e->mode, q->mode)) {
				recall_all(c, r, node, range, (enum belay_mode)q->mode);
				return;
			}
		}
	} while (k < count);
}

static bool ends_rightly(const struct delegation *d, const struct belay_op *op)
{
	if (d->epoch != op->epoch)
		return false; /* of a delegation that is over */
	if (op->keep)
		return op->range.start == d->start && op->range.end == d->end;
	return op->range.start == d->start || op->range.end == d->end;
}

static void on_relinq(struct belay_core *c, const struct belay_op *op)
{
	uint32_t d = given_up(c, op), r;
	struct resource *res;
	bool part;

	if (d == 0 || !ends_rightly(delegation_at(c, d), op))
		return;
	r = delegation_at(c, d)->resource;
	res = resource_at(c, r);
	/* The largest is not to be believed: the clock would begin anew. */
	if (op->token >= c->token && op->token < UINT64_MAX)
		c->token = op->token + 1;
	res->pins++;
	part = op->keep || op->range.start != delegation_at(c, d)->start ||
	       op->range.end != delegation_at(c, d)->end;
	if (op->keep) {
		delegation_weaken(c, d);
	} else {
		claim_lost(c, r, delegation_at(c, d)->epoch);
		publish_locks(c, r, op->range);
		delegation_end(c, d, op->range);
	}
	request_settle(c);
	if (part)
		meet_again(c, d);
	/* All of it: what is known now may let others of the same owners pass elsewhere. */
	queue_scan(c, r, range_of(0, BELAY_OFFSET_MAX), false);
	deadlock_resolve(c, r, false);
	if (part && !op->keep)
		claim_yielded(c, r, op->range);
	res->pins--;
	if (res->locks == 0 && res->waiting == 0 && res->delegations == 0)
		resource_forget(c, r);
	else
		resource_touch(c, r);
}

static void on_idle(struct belay_core *c, const struct belay_op *op)
{
	uint32_t r = index_resource(c, &op->key, false);
	const struct resource *res;

	if (r == 0)
		return;
	res = resource_at(c, r);
	if (res->known && res->delegations == 0 && res->epoch == op->epoch && res->locks == 0 &&
	    res->waiting == 0)
		resource_forget(c, r);
}

static void on_client_gone(struct belay_core *c, const struct belay_op *op)
{
	uint32_t cl = index_client(c, c->from, op->owner.client);

	if (cl != 0)
		(void)client_release(c, cl, true);
	(void)queue_scan_run(c, false);
}

/* One's own op comes back: what it was sent for. False: nothing to do here. */
static bool own_delivered(struct belay_core *c, struct sent *ret_sent)
{
	uint32_t i = c->sent_head;

	if (i == 0 || sent_at(c, i)->seq != c->node[c->self].seq)
		return false;
	*ret_sent = *sent_at(c, i);
	c->sent_head = ret_sent->next;
	if (c->sent_head == 0)
		c->sent_tail = 0;
	pool_put(&c->sents, i);
	if (c->now_us > ret_sent->at_us)
		c->latency_us = c->latency_us == 0 ?
			c->now_us - ret_sent->at_us :
			(7 * c->latency_us + c->now_us - ret_sent->at_us) / 8;
	return true;
}

void deliver_op(struct belay_core *c, const struct belay_op *op)
{
	struct sent sent;
	bool own = c->from == c->self && own_delivered(c, &sent);

	switch (op->type) {
	case BELAY_OP_REQ:
		on_req(c, op, own ? &sent : NULL);
		break;
	case BELAY_OP_REL:
		on_rel(c, op);
		break;
	case BELAY_OP_CANCEL:
		on_cancel(c, op);
		break;
	case BELAY_OP_BUSY:
		on_busy(c, op);
		break;
	case BELAY_OP_HELD:
		on_held(c, op);
		break;
	case BELAY_OP_WAITING:
		on_waiting(c, op);
		break;
	case BELAY_OP_RELINQ:
		on_relinq(c, op);
		break;
	case BELAY_OP_CLAIM:
		claim_op(c, op);
		break;
	case BELAY_OP_IDLE:
		on_idle(c, op);
		break;
	case BELAY_OP_CLIENT_GONE:
		on_client_gone(c, op);
		break;
	case BELAY_OP_DIGEST:
		digest_compare(c, op);
		break;
	default:
		break;
	}
}
