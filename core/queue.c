/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests that wait on a resource. First come, first served among those that
 * conflict (I6), with one exception that POSIX programs need: a request may
 * pass an earlier one that is itself blocked by a lock of the requester's own
 * owner, for that one could never go first: on no node, not even one that has
 * left and delivered more of its own (S6).
 *
 * A try or a test that conflicts is parked here too: only the node of the
 * lock in its way knows whether the unlock is on its way already (the
 * asynchronous-unlock trap), and says BUSY if it is not.
 */
#include "core/internal.h"

static struct link *waiter_link(const struct belay_core *c, uint32_t i)
{
	return &request_at(c, i)->by_range;
}

static bool waiter_less(const struct belay_core *c, uint32_t a, uint32_t b)
{
	const struct request *x = request_at(c, a), *y = request_at(c, b);

	if (x->start != y->start)
		return x->start < y->start;
	if (x->local != y->local)
		return x->local;
	return x->queue < y->queue;
}

static void waiter_update(const struct belay_core *c, uint32_t i)
{
	struct request *q = request_at(c, i);
	uint64_t max = q->end;

	if (q->by_range.left != 0 && request_at(c, q->by_range.left)->max_end > max)
		max = request_at(c, q->by_range.left)->max_end;
	if (q->by_range.right != 0 && request_at(c, q->by_range.right)->max_end > max)
		max = request_at(c, q->by_range.right)->max_end;
	q->max_end = max;
}

TREE(waiters, waiter_link, waiter_less, waiter_update)

static uint64_t queue_hash(const struct belay_core *c, const struct request *q)
{
	uint64_t h = index_owned(&resource_at(c, q->resource)->key, &owner_at(c, q->owner)->id);

	h = index_mix(index_mix(h, q->start), (q->end << 1) | q->mode);
	h = index_mix(h, q->queue);
	return index_mix(h, ((uint64_t)q->number << 2) | (q->wait ? 2u : 0) | (q->test ? 1u : 0));
}

void queue_add(struct belay_core *c, uint32_t i, uint64_t order, bool local)
{
	struct request *q = request_at(c, i);
	struct resource *r = resource_at(c, q->resource);

	assert(q->queue == 0 && order != 0);
	q->queue = order;
	q->local = local;
	q->state = REQUEST_QUEUED;
	waiters_insert(c, &r->waiters, i);
	r->waiting++;
	owner_at(c, q->owner)->waiting++;
	if (!q->wait)
		r->tries++;
	if (!local) {
		c->digest += queue_hash(c, q);
		c->waiters_replicated++;
		owner_at(c, q->owner)->queued++;
		q->prefix = stable_prefix(c);
		q->vouch_at = c->node[c->self].seq;
	} else {
		q->since_us = c->now_us;
		list_push(c, &c->local_waits, i);
		core_wake(c, c->now_us + LOCAL_WAIT_US);
	}
	resource_touch(c, q->resource);
}

void queue_drop(struct belay_core *c, uint32_t i)
{
	struct request *q = request_at(c, i);
	struct resource *r = resource_at(c, q->resource);

	assert(q->queue != 0);
	if (!q->local) {
		c->digest -= queue_hash(c, q);
		c->waiters_replicated--;
		owner_at(c, q->owner)->queued--;
	} else {
		list_drop(c, &c->local_waits, i);
	}
	waiters_remove(c, &r->waiters, i);
	r->waiting--;
	owner_at(c, q->owner)->waiting--;
	if (!q->wait)
		r->tries--;
	q->queue = 0;
	q->local = false;
}

bool queue_goes_first(const struct belay_core *c, const struct resource *r, uint32_t i,
		      uint32_t earlier)
{
	const struct request *q = request_at(c, i), *e = request_at(c, earlier);

	if (e->test || e->owner == q->owner || !conflicting(e->mode, q->mode))
		return false;
	return !table_blocks(c, r, q->owner, range_of(e->start, e->end), (enum belay_mode)e->mode,
			     q->local ? SIGHT_PRIVATE : SIGHT_REPLICATED);
}

struct first {
	const struct belay_core *core;
	const struct resource *resource;
	const struct request *q;
	uint32_t self;		/* index of q */
	uint32_t best;
};

/* The first in the queue of those that go before q. */
static void find_first(struct first *f, uint32_t i)
{
	const struct request *e;

	while (i != 0) {
		e = request_at(f->core, i);
		if (e->max_end < f->q->start)
			return;
		find_first(f, e->by_range.left);
		if (e->start > f->q->end)
			return;
		if (e->end >= f->q->start && e != f->q && e->local == f->q->local &&
		    (f->q->queue == 0 || e->queue < f->q->queue) &&
		    (f->best == 0 || e->queue < request_at(f->core, f->best)->queue) &&
		    queue_goes_first(f->core, f->resource, f->self, i))
			f->best = i;
		i = e->by_range.right;
	}
}

struct blocker queue_blocker(const struct belay_core *c, uint32_t i)
{
	const struct request *q = request_at(c, i);
	const struct resource *r = resource_at(c, q->resource);
	struct belay_range range = range_of(q->start, q->end);
	struct first f = { c, r, q, i, 0 };
	struct blocker b = { 0 };

	if (q->local && delegation_authority(c, r, range, (enum belay_mode)q->mode) == 0)
		b.delegation = delegation_any(c, r, range, 0); /* it goes with its RELINQ */
	else if (q->local)
		b.loan = loan_conflict(c, q);
	else
		b.delegation = delegation_conflict(c, r, owner_at(c, q->owner)->node, range,
						   (enum belay_mode)q->mode, 0);
	if (blocked(&b))
		return b;
	/* What gives an owner nothing new neither conflicts nor overtakes. */
	if (r->locks != 0 && table_covers(c, r, q->owner, range, (enum belay_mode)q->mode,
					  q->local ? SIGHT_PRIVATE : SIGHT_REPLICATED))
		return b;
	if (r->locks != 0)
		b.lock = table_conflict(c, r, range, (enum belay_mode)q->mode, q->owner);
	if (b.lock != 0)
		return b;
	/* Who waits may have it already, by a hint; nobody of this node's own may. */
	if (!(q->test && q->local) && r->waiting != 0)
		find_first(&f, r->waiters);
	b.request = f.best;
	return b;
}

static void collect(const struct belay_core *c, uint32_t i, struct belay_range range, bool local,
		    uint32_t *into, uint32_t *count)
{
	const struct request *q;

	while (i != 0) {
		q = request_at(c, i);
		if (q->max_end < range.start)
			return;
		collect(c, q->by_range.left, range, local, into, count);
		if (q->start > range.end)
			return;
		if (q->end >= range.start && q->local == local)
			into[(*count)++] = i;
		i = q->by_range.right;
	}
}

bool queue_less(const struct belay_core *c, uint32_t a, uint32_t b)
{
	return request_at(c, a)->queue < request_at(c, b)->queue;
}

static void sift(const struct belay_core *c, uint32_t *heap, uint32_t at, uint32_t count,
		 bool (*less)(const struct belay_core *c, uint32_t a, uint32_t b))
{
	for (;;) {
		uint32_t child = 2 * at + 1, swap;

		if (child >= count)
			return;
		if (child + 1 < count && less(c, heap[child], heap[child + 1]))
			child++;
		if (!less(c, heap[at], heap[child]))
			return;
		swap = heap[at];
		heap[at] = heap[child];
		heap[child] = swap;
		at = child;
	}
}

void queue_sort(const struct belay_core *c, uint32_t *index, uint32_t count,
		bool (*less)(const struct belay_core *c, uint32_t a, uint32_t b))
{
	uint32_t i, last;

	for (i = count / 2; i-- > 0;)
		sift(c, index, i, count, less);
	for (i = count; i-- > 1;) {
		last = index[i];
		index[i] = index[0];
		index[0] = last;
		sift(c, index, 0, i, less);
	}
}

uint32_t queue_collect(struct belay_core *c, const struct resource *r, struct belay_range range,
		       bool local)
{
	uint32_t count = 0;

	collect(c, r->waiters, range, local, c->scratch, &count);
	queue_sort(c, c->scratch, count, queue_less);
	return count;
}

uint32_t queue_peek(const struct belay_core *c, const struct resource *r, struct belay_range range,
		    bool local, uint32_t *ret_requests)
{
	uint32_t count = 0;

	collect(c, r->waiters, range, local, ret_requests, &count);
	return count;
}

static void widen(struct belay_range *range, bool *some, uint64_t start, uint64_t end)
{
	if (!*some || start < range->start)
		range->start = start;
	if (!*some || end > range->end)
		range->end = end;
	*some = true;
}

/*
 * A grant may free others: it may have made the owner's own lock weaker, and
 * the owner's other requests may now pass what waits for the owner.
 */
static void after_grant(struct belay_core *c, uint32_t r, uint32_t owner, bool weaker,
			struct belay_range granted, bool local, struct belay_range *again,
			bool *more)
{
	uint32_t i;

	if (weaker)
		widen(again, more, granted.start, granted.end);
	if (owner_at(c, owner)->waiting == 0)
		return; /* perhaps it was refused, and all that its owner had */
	for (i = owner_at(c, owner)->requests; i != 0; i = request_at(c, i)->owner_next) {
		const struct request *q = request_at(c, i);

		if (q->resource == r && q->queue != 0 && q->local == local)
			widen(again, more, q->start, q->end);
	}
}

/*
 * Grant or refuse one queued request that nothing blocks any more. Returns
 * whether others, outside the range that was freed, may go for it.
 */
static bool let_go(struct belay_core *c, uint32_t i, const struct blocker *b)
{
	struct request *q = request_at(c, i);
	uint64_t place = q->queue;
	bool local = q->local;

	queue_drop(c, i);
	if (!local)
		stable_duty(c, owner_at(c, q->owner)->node, place);
	if (q->test) {
		request_answer(c, i, b);
		return false;
	}
	/* What all wait for had its room kept when it was queued. */
	if (local && !table_room(c, q->owner, 2, false)) {
		c->stats.refused++;
		request_finish(c, i, -ENOLCK);
		return true;
	}
	return request_grant(c, i, local);
}

/* One of this node's own that would have waited for a loan only. */
static void refuse_here(struct belay_core *c, uint32_t i, const struct blocker *b)
{
	queue_drop(c, i);
	if (request_at(c, i)->test) {
		request_answer(c, i, b);
		return;
	}
	c->stats.busy++;
	request_finish(c, i, -EAGAIN);
}

/* Whether its refusal may let others go. */
static bool still_blocked(struct belay_core *c, uint32_t i, const struct blocker *b)
{
	const struct request *q = request_at(c, i);

	if (b->loan != 0)
		loan_recall_conflicts(c, q);
	else if (b->delegation != 0 && q->local)
		return false;
	else if (!q->wait && !q->local)
		queue_confirm(c, i);
	else if (!q->wait)
		refuse_here(c, i, b);
	else
		return false;
	return b->loan == 0 && q->local;
}

void queue_scan(struct belay_core *c, uint32_t r, struct belay_range range, bool local)
{
	struct resource *res = resource_at(c, r);
	bool more = true, judge = false;

	while (more && res->waiting != 0) {
		uint32_t count = queue_collect(c, res, range, local);
		struct belay_range again = range;

		more = false;
		for (uint32_t k = 0; k < count; k++) {
			uint32_t i = c->scratch[k];
			struct request q = *request_at(c, i);
			struct blocker b = queue_blocker(c, i);
			struct belay_range granted = range_of(q.start, q.end);
			bool frees;

			if (blocked(&b) && !queue_answerable(&q, &b)) {
				if (still_blocked(c, i, &b))
					widen(&again, &more, q.start, q.end);
				continue;
			}
			frees = let_go(c, i, &b);
			judge |= frees || (!q.wait && !q.test);
			after_grant(c, r, q.owner, frees, granted, local, &again, &more);
			/* An exclusive lock on all of it: nobody behind can go. */
			if (q.mode == BELAY_MODE_EX && !q.test && !more && res->tries == 0 &&
			    granted.start <= range.start && granted.end >= range.end)
				break;
		}
		range = again;
	}
	resource_touch(c, r);
	/* Edges that no request brought: a try was none until it got its lock, and what
	 * an owner's lock kept back may stand before the owner's own waits now. */
	if (judge && !local)
		deadlock_resolve(c, r, false);
}

void queue_granted(struct belay_core *c, uint32_t r, uint32_t owner, bool weaker,
		   struct belay_range granted, bool local)
{
	struct belay_range again = granted;
	bool more = false;

	after_grant(c, r, owner, weaker, granted, local, &again, &more);
	if (more)
		queue_scan(c, r, again, local);
	/* Who waited for the owner's place in the queue now waits for a lock of an owner who
	 * may wait elsewhere. */
	if (!local && (weaker || owner_at(c, owner)->queued != 0))
		deadlock_resolve(c, r, false);
}

void queue_scan_later(struct belay_core *c, uint32_t r)
{
	struct resource *res = resource_at(c, r);

	/* A table that is not all there yet decides nothing. */
	if (res->scan || res->waiting == 0 || c->loading)
		return;
	res->scan = true;
	res->scan_next = c->scan_head;
	c->scan_head = r;
}

static bool key_less(const struct belay_core *c, uint32_t a, uint32_t b)
{
	return memcmp(&resource_at(c, a)->key, &resource_at(c, b)->key,
		      sizeof(struct belay_key)) < 0;
}

/* By key: tokens are counted over all resources, and replicas must count alike. */
uint32_t queue_scan_run(struct belay_core *c, bool local)
{
	uint32_t count = 0;

	for (uint32_t r = c->scan_head; r != 0; r = resource_at(c, r)->scan_next)
		c->order[count++] = r;
	queue_sort(c, c->order, count, key_less);
	queue_scan_forget(c);
	for (uint32_t k = 0; k < count; k++) {
		queue_scan(c, c->order[k], range_of(0, BELAY_OFFSET_MAX), local);
		index_resource_release(c, c->order[k]);
	}
	return count;
}

void queue_scan_forget(struct belay_core *c)
{
	uint32_t r;

	while ((r = c->scan_head) != 0) {
		struct resource *res = resource_at(c, r);

		c->scan_head = res->scan_next;
		res->scan_next = 0;
		res->scan = false;
	}
}

/* It waits for the grant of what its owner has taken early: given back all the same. */
static bool late_release(const struct belay_core *c, uint32_t owner, uint32_t r, struct belay_range range)
{
	for (uint32_t i = owner_at(c, owner)->requests; i != 0; i = request_at(c, i)->owner_next) {
		const struct request *q = request_at(c, i);

		if (q->state == REQUEST_LATE && q->number == 0 && q->resource == r &&
		    overlapping(q->start, q->end, range))
			return true;
	}
	return false;
}

bool queue_release_on_way(const struct belay_core *c, uint32_t i, uint32_t lock)
{
	const struct request *q = request_at(c, i);
	const struct lock *l = lock_at(c, lock);
	struct belay_range part = common(range_of(l->start, l->end), range_of(q->start, q->end));

	for (uint32_t k = c->sent_head; k != 0; k = sent_at(c, k)->next) {
		const struct sent *s = sent_at(c, k);

		if (s->type == BELAY_OP_REL && s->resource == q->resource &&
		    s->owner == l->owner && overlapping(part.start, part.end, s->range))
			return true;
		if (s->type == BELAY_OP_CLIENT_GONE &&
		    s->owner == owner_at(c, l->owner)->id.client)
			return true;
	}
	return late_release(c, l->owner, q->resource, part);
}

/* The answer to a try or a test; @holder NULL: nobody is in its way. */
static void say_busy(struct belay_core *c, uint32_t i, const struct belay_owner *holder,
		     struct belay_range range, enum belay_mode mode)
{
	struct request *q = request_at(c, i);
	struct belay_op op = {
		.type = BELAY_OP_BUSY,
		.node = owner_at(c, q->owner)->id.node,
		.request = q->number,
		.held = holder != NULL,
	};

	if (holder != NULL) {
		op.owner = *holder;
		op.range = range;
		op.mode = mode;
	}
	q->confirmed = true;
	core_send(c, &op, true, 0, 0, 0);
}

static void say_lock(struct belay_core *c, uint32_t i, uint32_t lock)
{
	const struct lock *l = lock_at(c, lock);

	say_busy(c, i, &owner_at(c, l->owner)->id, range_of(l->start, l->end),
		 (enum belay_mode)l->mode);
}

void queue_answer(struct belay_core *c, uint32_t i)
{
	const struct request *q = request_at(c, i);
	struct belay_range range = range_of(q->start, q->end);
	uint32_t lock;

	/* Clients may hold what is in its way: again when they have said so. */
	if (q->confirmed || loan_recall_range(c, q->resource, range))
		return;
	lock = table_conflict(c, resource_at(c, q->resource), range, (enum belay_mode)q->mode,
			      q->owner);
	if (lock != 0)
		say_lock(c, i, lock);
	else
		say_busy(c, i, NULL, range_of(0, 0), BELAY_MODE_SH);
}

/* Has this node withdrawn it, or given back what it took by it early? */
static bool withdrawn(const struct belay_core *c, const struct request *q, uint32_t i)
{
	const struct request *e = request_at(c, i);

	return e->cancelled || e->orphan || e->ended ||
	       late_release(c, e->owner, e->resource,
			    common(range_of(e->start, e->end), range_of(q->start, q->end)));
}

void queue_confirm(struct belay_core *c, uint32_t i)
{
	const struct request *q = request_at(c, i);
	struct belay_owner gone = { 0 };
	struct blocker b;
	uint32_t owner, node;

	if (q->confirmed || q->local)
		return;
	b = queue_blocker(c, i);
	if (b.delegation != 0) {
		node = delegation_at(c, b.delegation)->node;
		/* The delegate answers or gives it up; if it is gone, nobody else can. */
		if (!q->own || c->node[node].in_view)
			return;
		gone.node = c->node[node].id;
		say_busy(c, i, &gone, range_of(q->start, q->end), BELAY_MODE_EX);
		return;
	}
	if (!blocked(&b))
		return;
	owner = b.lock != 0 ? lock_at(c, b.lock)->owner : request_at(c, b.request)->owner;
	node = owner_at(c, owner)->node;
	if (node == c->self) {
		if (b.lock != 0 ? queue_release_on_way(c, i, b.lock) :
				  withdrawn(c, q, b.request))
			return;
	} else if (!q->own || c->node[node].in_view) {
		return;
	}
	if (b.lock != 0) {
		say_lock(c, i, b.lock);
	} else {
		const struct request *e = request_at(c, b.request);

		say_busy(c, i, &owner_at(c, owner)->id, range_of(e->start, e->end),
			 (enum belay_mode)e->mode);
	}
}

/* Whoever would have answered may be gone, and another be the one now. */
void queue_confirm_all(struct belay_core *c)
{
	for (uint32_t i = 1; i < c->requests.fresh; i++) {
		const struct request *q = request_at(c, i);

		if (q->owner != 0 && q->queue != 0 && !q->wait)
			queue_confirm(c, i);
	}
}
