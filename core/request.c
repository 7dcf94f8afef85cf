/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests of this node's clients, from LOCK to REPLY: run at once where this
 * node has authority, else multicast; and told to the client only when what
 * decided them is stable (S3, S12).
 */
#include "core/internal.h"

static bool range_valid(const struct belay_range *r)
{
	return r->start <= r->end && r->end <= BELAY_OFFSET_MAX;
}

static struct local *local_of(const struct belay_core *c, const struct request *q)
{
	const struct resource *r = resource_at(c, q->resource);

	return r->local != 0 ? local_at(c, r->local) : NULL;
}

static bool believed(const struct belay_core *c, const struct request *q)
{
	uint32_t i;

	if (!core_serves(c) || q->stable_at > c->stable)
		return false;
	/* S4: granted under an authority that has ended since; the RELINQ
	 * that lists it comes first. */
	for (i = q->by_authority ? resource_at(c, q->resource)->delegations : 0; i != 0;
	     i = delegation_at(c, i)->next) {
		const struct delegation *d = delegation_at(c, i);

		if (delegation_own(c, d) && delegation_gives(d, range_of(q->start, q->end)))
			return false;
	}
	return true;
}

static void reply(struct belay_core *c, uint32_t i)
{
	const struct request *q = request_at(c, i);
	struct belay_action a = {
		.type = BELAY_ACTION_REPLY,
		.client = owner_at(c, q->owner)->id.client,
		.cookie = q->cookie,
		.result = q->result,
		.token = q->token,
		.held = q->held,
		.holder = q->holder,
		.range = q->holder_range,
		.mode = q->holder_mode,
	};

	if (q->result == 0 && q->lend && q->by_authority)
		loan_offer(c, i);
	core_emit(c, &a);
	index_request_free(c, i);
}

/*
 * Some decisions count only when others know them, not the request alone. It asked to read what
 * its owner holds for writing, and was refused: where it was granted somebody else may write by
 * now. Or the node itself waited, and got it by a release that perhaps nobody else delivers: that
 * belief does not end with this life, as all others do. An op of one's own behind the
 * decision shows by its stability that it is known.
 */
static void mark_decision(struct belay_core *c, struct request *q)
{
	struct belay_op op = { .type = BELAY_OP_CANCEL, .request = q->number };

	if (q->by_authority)
		return;
	if (c->from == c->self) {
		q->stable_at = c->node[c->self].seq; /* by such an op */
		return;
	}
	core_send(c, &op, true, q->resource, 0, 0);
	q->stable_at = c->sent_seq;
}

void request_finish(struct belay_core *c, uint32_t i, int result)
{
	struct request *q = request_at(c, i);

	assert(q->queue == 0);
	/* Its client has been told. Nothing can refuse it: there was room when it was queued. */
	if (q->early && result < 0 && !q->ended)
		core_isolate(c, "a lock that was given early is refused: the lock table is inconsistent");
	if (!q->own || q->orphan || q->early) {
		index_request_free(c, i);
		return;
	}
	q->result = result;
	q->state = REQUEST_DONE;
	if (result < 0 ? q->weakens : !q->test && owner_at(c, q->owner)->id.kind == BELAY_KIND_NODE)
		mark_decision(c, q);
	if (believed(c, q)) {
		reply(c, i);
		return;
	}
	q->since_us = c->now_us;
	list_sort_in(c, &c->done, i);
	core_wake(c, c->now_us + ASK_MIN_US);
}

void request_settle(struct belay_core *c)
{
	uint32_t i = c->done.head, next;

	for (; i != 0 && request_at(c, i)->stable_at <= c->stable; i = next) {
		next = request_at(c, i)->list_next;
		if (!believed(c, request_at(c, i)))
			continue;
		list_drop(c, &c->done, i);
		reply(c, i);
	}
}

bool request_grant(struct belay_core *c, uint32_t i, bool local)
{
	struct request *q = request_at(c, i);
	struct belay_range range = range_of(q->start, q->end), bounds = { 0, BELAY_OFFSET_MAX };
	enum belay_mode mode = (enum belay_mode)q->mode;
	struct delegation *d;
	uint32_t own;
	bool weaker;

	if (local) {
		own = delegation_authority(c, resource_at(c, q->resource), range, mode);
		d = delegation_at(c, own);
		bounds = delegation_left(d);
		q->token = d->token + 1;
		delegation_token(c, own, q->token);
		q->stable_at = d->authority_at;
		delegation_use(d, range, mode);
		loan_use(c, q);
		c->stats.local_grants++;
	} else {
		q->token = ++c->token;
		c->stats.ordered_grants++;
	}
	weaker = table_set(c, q->resource, q->owner, range, mode, !local, bounds);
	request_finish(c, i, 0);
	return weaker;
}

/* Answer a test by the lock in its way, if any. */
void request_answer(struct belay_core *c, uint32_t i, const struct blocker *b)
{
	struct request *q = request_at(c, i);

	if (b->request != 0) {
		const struct request *e = request_at(c, b->request);

		q->held = true;
		q->holder = owner_at(c, e->owner)->id;
		q->holder_range = range_of(e->start, e->end);
		q->holder_mode = (enum belay_mode)e->mode;
	} else if (b->lock != 0) {
		const struct lock *l = lock_at(c, b->lock);

		q->held = true;
		q->holder = owner_at(c, l->owner)->id;
		q->holder_range = range_of(l->start, l->end);
		q->holder_mode = (enum belay_mode)l->mode;
	}
	request_finish(c, i, 0);
}

/* It waits for others of this node, or for a loan to come back. */
static void wait_here(struct belay_core *c, uint32_t i, const struct blocker *b)
{
	queue_add(c, i, ++c->next_local_queue, true);
	if (b->loan != 0) {
		loan_recall_conflicts(c, request_at(c, i));
	} else if (deadlock_closes(c, i)) {
		queue_drop(c, i);
		c->stats.deadlocks++;
		request_finish(c, i, -EDEADLK);
	}
}

/* Decide a request by this node's own authority. */
void request_run(struct belay_core *c, uint32_t i)
{
	struct request *q = request_at(c, i);
	uint32_t r = q->resource;
	struct belay_range range = range_of(q->start, q->end);
	uint32_t d = delegation_authority(c, resource_at(c, r), range, (enum belay_mode)q->mode);
	struct blocker b;

	assert(d != 0);
	q->by_authority = true;
	q->stable_at = delegation_at(c, d)->authority_at;
	if (q->cancelled || q->orphan) {
		request_finish(c, i, -EINTR);
		return;
	}
	q->local = true;	/* it competes with this node's own only */
	b = queue_blocker(c, i);
	q->local = false;
	if (b.loan != 0) {
		wait_here(c, i, &b);
	} else if (q->test) {
		request_answer(c, i, &b);
	} else if (!table_room(c, q->owner, 2, false)) {
		c->stats.refused++;
		request_finish(c, i, -ENOLCK);
	} else if (!blocked(&b)) {
		uint32_t owner = q->owner;

		queue_granted(c, r, owner, request_grant(c, i, true), range, true);
	} else if (!q->wait) {
		c->stats.busy++;
		request_finish(c, i, -EAGAIN);
	} else {
		wait_here(c, i, &b);
	}
}

/* Put it where it can make progress now. */
void request_go(struct belay_core *c, uint32_t i)
{
	struct request *q = request_at(c, i);
	struct resource *r = resource_at(c, q->resource);
	struct local *l = local_at(c, r->local);
	struct belay_op op = {
		.type = BELAY_OP_REQ,
		.key = r->key,
		.range = range_of(q->start, q->end),
		.owner = owner_at(c, q->owner)->id,
		.request = q->number,
		.mode = (enum belay_mode)q->mode,
		.wait = q->wait,
		.test = q->test,
	};
	uint32_t authority = delegation_authority(c, r, op.range, op.mode);

	/* Its time is over, though nobody has come to say so yet: others go first. */
	if (authority != 0 && recall_due(c, authority))
		authority = delegation_authority(c, r, op.range, op.mode);
	q->weakens = !q->test && q->mode == BELAY_MODE_SH &&
		     table_blocks(c, r, q->owner, op.range, BELAY_MODE_SH, SIGHT_ALL);
	if (!core_serves(c)) {
		q->state = REQUEST_NEW;
		list_push(c, &c->fresh, i);
	} else if (authority != 0 && l->inflight == 0) {
		request_run(c, i);
	} else if (authority != 0) {
		/* Own REQs sent before the delegation are still to come; to
		 * overtake them would break the order of one client's calls. */
		q->state = REQUEST_BACK;
		list_push(c, &l->back, i);
	} else {
		q->state = REQUEST_SENT;
		l->inflight++;
		core_send(c, &op, true, q->resource, i, q->owner);
	}
}

void request_route(struct belay_core *c, uint32_t i)
{
	const struct request *q = request_at(c, i);
	struct belay_range range = range_of(q->start, q->end);

	/* Not before what its owner has taken early is settled. */
	if (core_serves(c) && !q->test &&
	    (hint_early(c, q->resource, q->owner, range) != NULL ||
	     hint_late(c, q->resource, q->owner, range, true)))
		hint_defer(c, i);
	else
		request_go(c, i);
}

void request_back(struct belay_core *c, uint32_t r)
{
	struct resource *res = resource_at(c, r);
	struct local *l = local_at(c, res->local);
	struct list back = l->back;
	uint32_t i;

	/* The requests pin the resource, but the last one's end may free it: the
	 * list is taken off first. */
	l->back = (struct list){ 0 };
	while ((i = back.head) != 0) {
		list_drop(c, &back, i);
		request_route(c, i);
	}
}

void request_resume(struct belay_core *c)
{
	struct list fresh = c->fresh;
	uint32_t i;

	c->fresh = (struct list){ 0 };
	while ((i = fresh.head) != 0) {
		list_drop(c, &fresh, i);
		request_route(c, i);
	}
}

static uint32_t free_number(struct belay_core *c)
{
	do
		c->next_request++;
	while (c->next_request == 0 || index_request(c, c->self, c->next_request) != 0);
	return c->next_request;
}

int request_lock(struct belay_core *c, const struct belay_event *ev)
{
	struct belay_owner id = ev->lock.owner;
	uint32_t r, o, i;
	struct request *q;

	if (c->leaving)
		return -ESHUTDOWN;
	if (!range_valid(&ev->lock.range) || ev->lock.mode >= BELAY_MODE_COUNT ||
	    id.kind >= BELAY_KIND_COUNT)
		return -EINVAL;
	if (c->own_requests >= c->config.requests_max)
		return -ENOLCK;
	id.node = c->config.self;
	r = index_resource(c, &ev->lock.key, true);
	if (r == 0)
		return -ENOLCK;
	o = index_owner(c, &id, true);
	if (o == 0 || resource_local(c, r) == NULL ||
	    (i = index_request_new(c, r, o, free_number(c))) == 0) {
		if (o != 0)
			index_owner_release(c, o);
		index_resource_release(c, r);
		return -ENOLCK;
	}
	q = request_at(c, i);
	q->start = ev->lock.range.start;
	q->end = ev->lock.range.end;
	q->mode = (uint8_t)ev->lock.mode;
	q->wait = ev->lock.wait && !ev->lock.test;
	q->test = ev->lock.test;
	q->lend = ev->lock.lend;
	q->cookie = ev->lock.cookie;
	resource_unidle(c, r);
	request_route(c, i);
	return 0;
}

/* Release what this node may release by itself; returns whether others may have the rest. */
static bool unlock_here(struct belay_core *c, uint32_t r, uint32_t o, struct belay_range range)
{
	bool rest = false;
	uint32_t d, i;

	for (d = resource_at(c, r)->delegations; d != 0; d = delegation_at(c, d)->next) {
		const struct delegation *e = delegation_at(c, d);
		struct belay_range part;

		if (!delegation_own(c, e) || !overlapping(e->start, e->end, range))
			continue;
		part = common(range, range_of(e->start, e->end));
		/* What is being given up is what RELINQ says; locks lie in it or out of it. */
		if (!delegation_gives(e, part)) {
			(void)table_clear(c, r, o, part, SIGHT_PRIVATE);
			continue;
		}
		rest = true;
		if (part.start < e->give.start)
			(void)table_clear(c, r, o, range_of(part.start, e->give.start - 1),
					  SIGHT_PRIVATE);
		if (part.end > e->give.end)
			(void)table_clear(c, r, o, range_of(e->give.end + 1, part.end),
					  SIGHT_PRIVATE);
	}
	i = table_first(c, resource_at(c, r), o, range.start);
	rest |= i != 0 && lock_at(c, i)->start <= range.end;
	return rest || owner_at(c, o)->requests != 0;
}

/*
 * Releases that others must see. Ordered behind this owner's requests on their way.
 * Others wait for it? Then at once; else it may ride with the next request.
 */
static void unlock_ordered(struct belay_core *c, uint32_t r, uint32_t o, struct belay_range range)
{
	struct request *early = hint_early(c, r, o, range);
	struct belay_op op = {
		.type = BELAY_OP_REL, .key = resource_at(c, r)->key, .range = range,
		.owner = owner_at(c, o)->id,
	};

	do {
		op.request = early != NULL ? early->number : 0;
		op.token = early != NULL ? early->token : 0;
		core_send(c, &op, resource_at(c, r)->waiting != 0, r, 0, o);
		hint_released(c, r, o, range, early);
		if (early != NULL)
			early->ended = true;
		early = hint_early(c, r, o, range);
	} while (early != NULL);
}

/* This node's order is void: what it knows is what its clients believe. */
static void unlock_stale(struct belay_core *c, uint32_t r, const struct belay_owner *id,
			 struct belay_range range)
{
	uint32_t o = index_owner(c, id, false), i;
	struct request *early;

	(void)table_clear(c, r, o, range, SIGHT_ALL);
	/* What it keeps a part of stays: it must hear that the rest is lost. */
	while ((early = hint_early(c, r, o, range)) != NULL &&
	       within(range_of(early->start, early->end), range.start, range.end)) {
		i = index_request(c, c->self, early->number);
		queue_drop(c, i);
		index_request_free(c, i);
		o = index_owner(c, id, false);
		if (o == 0)
			return; /* that was all it had */
	}
	index_owner_release(c, o);
}

void request_release(struct belay_core *c, uint32_t r, uint32_t o, struct belay_range range)
{
	if (unlock_here(c, r, o, range))
		unlock_ordered(c, r, o, range);
	else
		index_owner_release(c, o);
	queue_scan(c, r, range, true);
}

int request_unlock(struct belay_core *c, const struct belay_event *ev)
{
	struct belay_owner id = ev->lock.owner;
	const struct request *early;
	uint32_t r, o;

	if (!range_valid(&ev->lock.range) || id.kind >= BELAY_KIND_COUNT)
		return -EINVAL;
	id.node = c->config.self;
	r = index_resource(c, &ev->lock.key, false);
	o = r != 0 ? index_owner(c, &id, false) : 0;
	if (o == 0)
		return 0;
	if (!c->stale && !core_serves(c))
		return 0; /* nothing is held yet */
	resource_at(c, r)->pins++;
	early = hint_early(c, r, o, ev->lock.range);
	if (c->stale) {
		unlock_stale(c, r, &id, ev->lock.range);
	} else if (hint_late(c, r, o, ev->lock.range, false) ||
		   (early != NULL && !within(range_of(early->start, early->end),
					     ev->lock.range.start, ev->lock.range.end))) {
		hint_defer_release(c, r, o, ev->lock.range);
	} else {
		hint_forget(c, r, o, ev->lock.range);
		request_release(c, r, o, ev->lock.range);
	}
	resource_at(c, r)->pins--;
	resource_touch(c, r);
	index_resource_release(c, r);
	return 0;
}

static uint32_t find(const struct belay_core *c, uint32_t client, uint64_t cookie)
{
	uint32_t cl = index_client(c, c->self, client), o, i;

	if (cl == 0)
		return 0;
	for (o = client_at(c, cl)->owners; o != 0; o = owner_at(c, o)->client_next)
		for (i = owner_at(c, o)->requests; i != 0; i = request_at(c, i)->owner_next)
			if (request_at(c, i)->cookie == cookie && !request_at(c, i)->orphan &&
			    !request_at(c, i)->early && request_at(c, i)->number != 0)
				return i;
	return 0;
}

bool request_withdraw(struct belay_core *c, uint32_t i)
{
	struct request *q = request_at(c, i);

	switch (q->state) {
	case REQUEST_NEW:
		list_drop(c, &c->fresh, i);
		return true;
	case REQUEST_BACK:
		list_drop(c, &local_of(c, q)->back, i);
		return true;
	case REQUEST_DONE:
		list_drop(c, &c->done, i);
		return true;
	case REQUEST_LATE:
		list_drop(c, &c->late, i);
		return true;
	case REQUEST_QUEUED:
		/* What this node only knows of an order it has lost is void (S10). */
		if (!c->stale &&
		    !(q->local && delegation_authority(c, resource_at(c, q->resource),
						       range_of(q->start, q->end),
						       (enum belay_mode)q->mode) != 0))
			return false;
		queue_drop(c, i);
		return true;
	default:
		return c->stale;
	}
}

int request_cancel(struct belay_core *c, const struct belay_event *ev)
{
	uint32_t i = find(c, ev->client.client, ev->client.cookie), r;
	struct belay_op op = { .type = BELAY_OP_CANCEL };
	struct belay_range range;
	struct request *q;

	if (i == 0)
		return -ENOENT;
	q = request_at(c, i);
	r = q->resource;
	range = range_of(q->start, q->end);
	if (!c->stale && (q->state == REQUEST_DONE || q->cancelled))
		return 0;
	/* It may have been granted already, and what its owner held before be another's:
	 * to say that it was withdrawn could be wrong. It is answered with the rest. */
	if (c->stale && q->weakens && q->state != REQUEST_NEW)
		return 0;
	c->stats.cancelled++;
	if (!request_withdraw(c, i)) {
		/* Takes effect at send: a RELINQ no longer lists it. */
		q->cancelled = true;
		op.request = q->number;
		core_send(c, &op, true, r, i, 0);
		return 0;
	}
	q->result = -EINTR;
	resource_at(c, r)->pins++;
	reply(c, i);
	resource_at(c, r)->pins--;
	if (!c->stale)
		queue_scan(c, r, range, true);
	resource_touch(c, r);
	index_resource_release(c, r);
	return 0;
}

/* The tokens of what its client has taken early must be known before others get it. */
static void give_back_early(struct belay_core *c, uint32_t cl)
{
	for (uint32_t o = client_at(c, cl)->owners; o != 0; o = owner_at(c, o)->client_next)
		for (uint32_t i = owner_at(c, o)->requests; i != 0; i = request_at(c, i)->owner_next) {
			const struct request *q = request_at(c, i);

			if (q->early && !q->ended)
				unlock_ordered(c, q->resource, o, range_of(q->start, q->end));
		}
}

int request_client_gone(struct belay_core *c, uint32_t client)
{
	uint32_t cl = index_client(c, c->self, client);
	struct belay_op op = { .type = BELAY_OP_CLIENT_GONE };
	bool tell;

	if (cl == 0)
		return 0;
	loan_void(c, cl);
	/* Its loans may have been all it had. */
	cl = index_client(c, c->self, client);
	if (cl != 0 && core_serves(c))
		give_back_early(c, cl);
	tell = cl != 0 && client_release(c, cl, false);
	(void)queue_scan_run(c, true);
	if (!tell)
		return 0;
	op.owner.node = c->config.self;
	op.owner.client = client;
	core_send(c, &op, true, 0, 0, client);
	return 0;
}

void request_void(struct belay_core *c, uint32_t i, bool lost)
{
	struct request *q = request_at(c, i);

	if (q->state == REQUEST_NEW && !lost)
		return;
	if (!request_withdraw(c, i))
		return;
	/* What the node itself has it keeps: but it must not go on as if it had not asked for less. */
	lost |= q->weakens && owner_at(c, q->owner)->id.kind == BELAY_KIND_NODE;
	if (q->orphan || q->early || q->number == 0) {
		index_request_free(c, i);
	} else if (lost || q->cancelled) {
		q->result = lost ? -EIO : -EINTR;
		reply(c, i);
	} else {
		q->state = REQUEST_NEW;
		q->confirmed = q->by_authority = q->held = false;
		q->stable_at = q->prefix = 0;
		list_push(c, &c->fresh, i);
	}
}

void request_tick(struct belay_core *c)
{
	uint32_t i, d;

	/* I7: a long local wait may be part of a circle through other nodes. */
	while ((i = c->local_waits.head) != 0) {
		struct request *q = request_at(c, i);

		if (q->since_us + LOCAL_WAIT_US > c->now_us) {
			core_wake(c, q->since_us + LOCAL_WAIT_US);
			return;
		}
		d = delegation_authority(c, resource_at(c, q->resource),
					 range_of(q->start, q->end), (enum belay_mode)q->mode);
		if (d != 0)
			recall_wait(c, d, range_of(q->start, q->end));
		/* It leaves the list when its WAITING is delivered. */
		list_drop(c, &c->local_waits, i);
		q->since_us = c->now_us;
		list_push(c, &c->local_waits, i);
	}
}
