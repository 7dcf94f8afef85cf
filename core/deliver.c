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
	queue_granted(c, r, owner, request_grant(c, i), range);
}

/* The same node again and again: it may ask to own the resource. */
static void count_user(struct belay_core *c, uint32_t r)
{
	struct resource *res = resource_at(c, r);
	struct belay_op op = { .type = BELAY_OP_CLAIM, .key = res->key, .epoch = res->epoch };

	resource_hash_out(c, res);
	if (res->user != c->from)
		res->streak = 0;
	res->user = (uint8_t)c->from;
	res->streak++;
	resource_hash_in(c, res);
	/* One at a time, and only what fits into this node's share. */
	if (c->from == c->self && res->waiting == 0 && c->claim_seq == 0 &&
	    res->streak % (c->config.claim_streak << res->backoff) == 0 &&
	    c->locks.count - c->locks_replicated + res->locks <= table_share(c)) {
		core_send(c, &op, false, 0, 0, 0);
		c->claim_seq = c->sent_seq;
	}
}

static void arbitrate(struct belay_core *c, uint32_t i)
{
	struct request *q = request_at(c, i);
	struct resource *res = resource_at(c, q->resource);
	struct belay_action flush = { .type = BELAY_ACTION_FLUSH };
	struct blocker b = queue_blocker(c, i);

	if (!q->test && !table_room(c, res, q->owner, 2)) {
		decide(c, i, -ENOLCK);
		return;
	}
	if (b.lock == 0 && b.request == 0) {
		if (q->test)
			decide(c, i, 0);
		else
			grant_now(c, i);
		return;
	}
	if (c->waiters_replicated >= c->config.limits.waiters_max) {
		decide(c, i, -ENOLCK);
		return;
	}
	queue_add(c, i, c->place, false);
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

static void meet_owner(struct belay_core *c, uint32_t i)
{
	struct request *q = request_at(c, i);
	uint32_t r = q->resource;
	struct resource *res = resource_at(c, r);
	bool ours = resource_authority(c, res);

	if (c->waiters_replicated >= c->config.limits.waiters_max) {
		decide(c, i, -ENOLCK);
		return;
	}
	queue_add(c, i, c->place, false);
	if (q->test) {
		if (ours)
			queue_answer(c, i);
		else
			queue_confirm(c, i);
		return;
	}
	/* Sticky: a recall ends by RELINQ or the owner's end, never because the
	 * request that caused it went away. */
	if (res->state == BELAY_STATE_OWNED) {
		resource_hash_out(c, res);
		res->state = BELAY_STATE_RECALL;
		resource_hash_in(c, res);
		c->stats.recalls++;
	}
	if (!q->wait)
		queue_confirm(c, i);
	if (ours)
		resource_recall(c, r);
}

static void first_touch(struct belay_core *c, uint32_t i)
{
	struct request *q = request_at(c, i);
	uint32_t r = q->resource;

	if (q->test) {
		decide(c, i, 0);
	} else if (c->resources_replicated >= c->config.limits.resources_max) {
		decide(c, i, -ENOLCK);
	} else {
		resource_own(c, r, c->from);
		stable_duty(c, c->from, c->place);
		if (q->own)
			request_run(c, i);
		else
			index_request_free(c, i);
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
		request_at(c, i)->stable_at = c->node[c->self].seq;
	} else if ((i = request_of(c, op, r)) == 0) {
		return;
	}
	res->pins++; /* it outlives the request */
	if (!op->test && res->state == BELAY_STATE_ARB)
		count_user(c, r);
	if (res->state == BELAY_STATE_UNOWNED)
		first_touch(c, i);
	else if (res->state == BELAY_STATE_ARB)
		arbitrate(c, i);
	else if (res->state != BELAY_STATE_OWNED || res->owner != c->from)
		meet_owner(c, i);
	else if (sent != NULL)
		request_run(c, i); /* sent before this node knew that it owns it */
	else
		index_request_free(c, i);
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
		if (request_at(c, i)->resource == r && request_at(c, i)->queue != 0)
			return true;
	return false;
}

static void on_rel(struct belay_core *c, const struct belay_op *op)
{
	uint32_t r = index_resource(c, &op->key, false), o;
	struct belay_owner id = op->owner;
	bool waits = false;

	/* While the sender owned it, the release took effect when it was sent. */
	if (r == 0 || resource_at(c, r)->state != BELAY_STATE_ARB)
		return;
	id.node = c->node[c->from].id;
	o = index_owner(c, &id, false);
	if (o != 0) {
		(void)table_clear(c, r, o, op->range);
		waits = waits_on(c, o, r);
		index_owner_release(c, o);
	}
	queue_scan(c, r, op->range);
	/* What the owner's lock kept back may stand before the owner's own waits now. */
	if (waits)
		deadlock_resolve(c, r);
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
	request_finish(c, i, -EINTR);
	resource_at(c, r)->pins--;
	queue_scan(c, r, range);
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
	queue_scan(c, r, range);
	index_resource_release(c, r);
}

/* The resource that the sender owns and is giving up, or 0. */
static uint32_t given_up(struct belay_core *c, const struct belay_op *op)
{
	uint32_t r = index_resource(c, &op->key, false);
	const struct resource *res;

	if (r == 0)
		return 0;
	res = resource_at(c, r);
	if ((res->state != BELAY_STATE_OWNED && res->state != BELAY_STATE_RECALL) ||
	    res->owner != c->from)
		return 0;
	return r;
}

static void on_held(struct belay_core *c, const struct belay_op *op)
{
	uint32_t r = given_up(c, op), o, l;
	struct belay_owner id = op->owner;

	if (r == 0)
		return;
	id.node = c->node[c->from].id;
	o = index_owner(c, &id, true);
	if (o == 0) {
		full(c);
		return;
	}
	/* The owner has it already; the others take it in. */
	if (c->from != c->self)
		(void)table_set(c, r, o, op->range, op->mode);
	l = table_first(c, resource_at(c, r), o, op->range.start);
	if (l != 0)
		lock_at(c, l)->staged = true;
	index_owner_release(c, o);
}

static void on_waiting(struct belay_core *c, const struct belay_op *op)
{
	uint32_t r = given_up(c, op), i;

	if (r == 0)
		return;
	if (c->from == c->self) {
		i = index_request(c, c->self, op->request);
		if (i == 0 || request_at(c, i)->queue == 0)
			return;
		queue_drop(c, i);
	} else if ((i = request_of(c, op, r)) == 0) {
		return;
	}
	queue_add(c, i, c->place, false);
}

static void on_relinq(struct belay_core *c, const struct belay_op *op)
{
	uint32_t r = given_up(c, op);
	struct resource *res;

	if (r == 0 || resource_at(c, r)->epoch != op->epoch)
		return; /* of an ownership that is over */
	res = resource_at(c, r);
	/* The largest is not to be believed: the clock would begin anew. */
	if (op->token >= c->token && op->token < UINT64_MAX)
		c->token = op->token + 1;
	if (res->locks == 0 && res->waiting == 0) {
		resource_forget(c, r);
		return;
	}
	resource_arbitrate(c, r);
	request_settle(c);
	queue_scan(c, r, range_of(0, BELAY_OFFSET_MAX));
	deadlock_resolve(c, r);
}

static bool foreign(const struct belay_core *c, uint32_t i, uint32_t node)
{
	const struct lock *l;

	if (i == 0)
		return false;
	l = lock_at(c, i);
	return owner_at(c, l->owner)->node != node || foreign(c, l->by_owner.left, node) ||
	       foreign(c, l->by_owner.right, node);
}

static void on_claim(struct belay_core *c, const struct belay_op *op)
{
	uint32_t r = index_resource(c, &op->key, false);
	const struct resource *res;

	if (c->from == c->self)
		c->claim_seq = 0;
	if (r == 0)
		return;
	res = resource_at(c, r);
	if (res->state != BELAY_STATE_ARB || res->epoch != op->epoch || res->waiting != 0 ||
	    res->user != c->from || res->streak < c->config.claim_streak << res->backoff ||
	    res->locks > c->config.limits.locks_max / 4 / c->node_count ||
	    foreign(c, res->by_owner, c->from))
		return;
	c->stats.claims++;
	resource_own(c, r, c->from);
	stable_duty(c, c->from, c->place);
}

static void on_idle(struct belay_core *c, const struct belay_op *op)
{
	uint32_t r = index_resource(c, &op->key, false);
	const struct resource *res;

	if (r == 0)
		return;
	res = resource_at(c, r);
	if (res->state == BELAY_STATE_ARB && res->epoch == op->epoch && res->locks == 0 &&
	    res->waiting == 0)
		resource_forget(c, r);
}

static void on_client_gone(struct belay_core *c, const struct belay_op *op)
{
	uint32_t cl = index_client(c, c->from, op->owner.client);

	if (cl != 0)
		(void)client_release(c, cl, true);
	(void)queue_scan_run(c);
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
		on_claim(c, op);
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
