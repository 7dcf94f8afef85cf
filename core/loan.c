/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loans: within this node's delegations a client may decide about a range by
 * itself, for its own owners. Its locks there are in its own memory, not in
 * the table; so whatever needs to know them calls the loan back first. That is
 * quick: the caller of the core takes it without waiting for the client.
 */
#include "core/internal.h"

#define USE_FRESH_US 25000u		/* longer unused: out of the way */
#define USE_HULL 256u			/* requests after which the hull begins anew */
#define ROOM_MIN 256u
#define ROOM_MAX 16384u
#define LOAN_US 30000000u		/* then it is called back, and the tokens are counted */
#define CHECK_US 10000000u
#define HELD_CHEAP 64u			/* locks that are moved without a thought */
#define MOVE_US 10u			/* between two loans, for each lock beyond: it costs a tenth of that */
#define RETRY_US 1000u			/* to look for an offer costs time, too */
#define GRANTS_PER_US 64u		/* more than any client can give */

static uint32_t client_of(const struct belay_core *c, const struct request *q)
{
	return owner_at(c, q->owner)->client;
}

/* ---- who uses what ---- */

static struct use *find_use(struct local *l, uint32_t client)
{
	for (uint32_t k = 0; k < USES_MAX; k++)
		if (l->use[k].client == client)
			return &l->use[k];
	return NULL;
}

/* Its end makes room for the next one. */
static void forget_use(struct local *l, uint32_t client)
{
	struct use *u = find_use(l, client);

	if (u != NULL)
		*u = (struct use){ 0 };
}

static void add_use(struct belay_core *c, struct local *l, uint32_t client,
		    struct belay_range range, bool ex)
{
	struct use *u = find_use(l, client);

	if (u == NULL) {
		u = &l->use[0];
		for (uint32_t k = 1; k < USES_MAX; k++)
			if (l->use[k].at_us < u->at_us)
				u = &l->use[k];
		*u = (struct use){ .client = client, .hull = range };
	}
	if (u->count % USE_HULL == 0) {
		u->hull = range;
		u->ex = false;
	}
	if (range.start < u->hull.start)
		u->hull.start = range.start;
	if (range.end > u->hull.end)
		u->hull.end = range.end;
	u->count++;
	u->ex |= ex;
	u->at_us = c->now_us;
}

void loan_use(struct belay_core *c, const struct request *q)
{
	add_use(c, local_at(c, resource_at(c, q->resource)->local),
		owner_at(c, q->owner)->id.client, range_of(q->start, q->end),
		q->mode == BELAY_MODE_EX);
}

/* ---- what could be lent ---- */

struct offer {
	struct belay_core *core;
	uint32_t client;		/* index */
	enum belay_mode mode;
	struct belay_range use;		/* what it uses */
	struct belay_range range;	/* what it could get */
	bool none;
	uint32_t held, owners;
};

static void exclude(struct offer *f, struct belay_range other, bool half)
{
	f->none |= !keep_off(&f->range, f->use, other, half);
}

static bool exclude_lock(void *context, uint32_t i)
{
	struct offer *f = context;
	const struct lock *l = lock_at(f->core, i);

	if (owner_at(f->core, l->owner)->client != f->client && conflicting(l->mode, f->mode))
		exclude(f, range_of(l->start, l->end), false);
	return f->none;
}

static bool count_own(void *context, uint32_t i)
{
	struct offer *f = context;
	const struct lock *l = lock_at(f->core, i);

	if (owner_at(f->core, l->owner)->client != f->client)
		return false;
	f->held++;
	f->none |= !within(range_of(l->start, l->end), f->range.start, f->range.end) ||
		   l->mode > (uint8_t)f->mode;
	return f->none;
}

static void exclude_uses(struct offer *f, const struct local *l, uint32_t id)
{
	for (uint32_t k = 0; k < USES_MAX; k++) {
		const struct use *u = &l->use[k];

		if (u->client != 0 && u->client != id &&
		    f->core->now_us - u->at_us < USE_FRESH_US &&
		    (u->ex || f->mode == BELAY_MODE_EX))
			exclude(f, u->hull, true);
	}
}

/* The largest range around what the client uses that is in nobody's way; false: none. */
static bool find_offer(struct offer *f, uint32_t r, const struct delegation *d)
{
	struct belay_core *c = f->core;
	const struct resource *res = resource_at(c, r);
	const struct local *l = local_at(c, res->local);
	uint32_t count;

	f->range = range_of(d->start, d->end);
	f->held = f->owners = 0;
	f->none = false;
	for (uint32_t i = l->loans; i != 0; i = loan_at(c, i)->next)
		if (loan_at(c, i)->client != f->client && conflicting(loan_at(c, i)->mode, f->mode))
			exclude(f, range_of(loan_at(c, i)->start, loan_at(c, i)->end), false);
	exclude_uses(f, l, client_at(c, f->client)->id);
	count = queue_peek(c, res, f->range, true, c->stack);
	for (uint32_t k = 0; k < count && !f->none; k++)
		exclude(f, range_of(request_at(c, c->stack[k])->start,
				    request_at(c, c->stack[k])->end), false);
	if (!f->none)
		(void)table_each(c, res, f->range, exclude_lock, f);
	if (!f->none)
		(void)table_each(c, res, f->range, count_own, f);
	for (uint32_t o = client_at(c, f->client)->owners; o != 0 && f->owners <= BELAY_LOAN_OWNERS_MAX;
	     o = owner_at(c, o)->client_next)
		f->owners += table_first(c, res, o, 0) != 0;
	return !f->none && f->owners <= BELAY_LOAN_OWNERS_MAX;
}

/* How many locks the client may have in the loan; 0: there is no room for one. */
static uint32_t room_for(const struct belay_core *c, uint32_t held)
{
	uint32_t used = table_private(c), share = table_share(c);
	uint32_t left = share > used ? (share - used) / 2 : 0;
	/* All loans together must leave as much for those who ask. */
	uint32_t lendable = share / 2 > c->room_lent ? share / 2 - c->room_lent : 0;
	uint32_t most = c->config.limits.locks_per_owner_max, more = 3 * held + ROOM_MIN;

	if (most > ROOM_MAX)
		most = ROOM_MAX;
	if (most < held)
		return 0;
	if (more > most - held)
		more = most - held;
	if (more > left)
		more = left;
	if (held + more > lendable)
		more = lendable > held ? lendable - held : 0;
	return more >= held / 4 + 8 ? held + more : 0;
}

/* ---- lending ---- */

struct moving {
	struct belay_core *core;
	uint32_t client, loan, count;
};

static bool move_lock(void *context, uint32_t i)
{
	struct moving *m = context;
	struct belay_core *c = m->core;
	const struct lock *l = lock_at(c, i);
	struct belay_action a = {
		.type = BELAY_ACTION_LEND_HELD,
		.loan = m->loan,
		.range = range_of(l->start, l->end),
		.mode = (enum belay_mode)l->mode,
	};

	if (owner_at(c, l->owner)->client != m->client)
		return false;
	a.client = client_at(c, m->client)->id;
	a.holder = owner_at(c, l->owner)->id;
	core_emit(c, &a);
	c->lock_scratch[m->count++] = i;
	return false;
}

static void link_in(struct belay_core *c, uint32_t i)
{
	struct loan *l = loan_at(c, i);
	struct local *local = local_at(c, resource_at(c, l->resource)->local);
	struct client *cl = client_at(c, l->client);

	l->next = local->loans;
	local->loans = i;
	l->client_next = cl->loans;
	if (l->client_next != 0)
		loan_at(c, l->client_next)->client_prev = i;
	cl->loans = i;
	c->room_lent += l->room;
	c->stats.loans++;
}

static void lend(struct belay_core *c, uint32_t q, const struct offer *f, uint32_t room)
{
	uint32_t r = request_at(c, q)->resource, i = pool_get(&c->loans);
	struct delegation *d;
	struct loan *l;
	struct moving m = { c, f->client, i, 0 };
	struct belay_action a = {
		.type = BELAY_ACTION_LEND,
		.client = client_at(c, f->client)->id,
		.cookie = request_at(c, q)->cookie,
		.loan = i,
		.key = resource_at(c, r)->key,
		.range = f->range,
		.mode = f->mode,
		.room = room,
	};

	assert(i != 0);
	d = delegation_at(c, delegation_authority(c, resource_at(c, r), f->range, f->mode));
	a.token = d->token;
	l = loan_at(c, i);
	*l = (struct loan){
		.start = f->range.start, .end = f->range.end, .mode = (uint8_t)f->mode,
		.token = d->token, .since_us = c->now_us, .resource = r, .client = f->client,
		.room = room,
	};
	link_in(c, i);
	(void)table_each(c, resource_at(c, r), f->range, move_lock, &m);
	for (uint32_t k = 0; k < m.count; k++) {
		uint32_t o = lock_at(c, c->lock_scratch[k])->owner;

		table_remove(c, c->lock_scratch[k]);
		index_owner_release(c, o);
	}
	core_emit(c, &a);
	c->stats.lent++;
	resource_unidle(c, r);
	core_wake(c, c->now_us + CHECK_US);
}

static void loan_recall(struct belay_core *c, uint32_t i)
{
	struct loan *l = loan_at(c, i);
	struct belay_action a = {
		.type = BELAY_ACTION_RECALL, .client = client_at(c, l->client)->id, .loan = i,
	};

	if (l->recalled)
		return;
	l->recalled = true;
	c->stats.loans_recalled++;
	core_emit(c, &a);
}

/* Calls back what the client has on loan of a range already, to lend it all in one piece. */
static bool recall_own(struct belay_core *c, const struct offer *f, uint32_t r)
{
	bool any = false;

	for (uint32_t i = local_at(c, resource_at(c, r)->local)->loans; i != 0;
	     i = loan_at(c, i)->next) {
		if (loan_at(c, i)->client != f->client ||
		    !overlapping(loan_at(c, i)->start, loan_at(c, i)->end, f->range))
			continue;
		any = true;
		loan_recall(c, i);
	}
	return any;
}

void loan_offer(struct belay_core *c, uint32_t i)
{
	const struct request *q = request_at(c, i);
	struct belay_range range = range_of(q->start, q->end);
	uint32_t d = delegation_authority(c, resource_at(c, q->resource), range,
					  (enum belay_mode)q->mode);
	struct local *l = local_at(c, resource_at(c, q->resource)->local);
	struct use *u = find_use(l, owner_at(c, q->owner)->id.client);
	struct offer f = { .core = c, .client = client_of(c, q), .use = range };
	uint32_t room;

	if (c->loans.count + 1 >= c->loans.max || c->leaving || d == 0 || u == NULL ||
	    u->count < c->config.lend_after || c->now_us < u->retry_us ||
	    delegation_at(c, d)->recalled || delegation_at(c, d)->gathering)
		return;
	u->retry_us = c->now_us + RETRY_US;
	if (u->hull.start < f.use.start)
		f.use.start = u->hull.start;
	if (u->hull.end > f.use.end)
		f.use.end = u->hull.end;
	f.mode = (enum belay_mode)delegation_at(c, d)->mode;
	if (!find_offer(&f, q->resource, delegation_at(c, d))) {
		f.mode = BELAY_MODE_SH;
		if (u->ex || !find_offer(&f, q->resource, delegation_at(c, d)))
			return;
	}
	/* What was used lies in the delegation no longer? */
	room = room_for(c, f.held);
	if (room == 0 || f.range.start > range.start || f.range.end < range.end)
		return;
	/* The next request finds it back. */
	if (recall_own(c, &f, q->resource)) {
		u->retry_us = 0;
		return;
	}
	/* Who gives a loan of many locks back again and again would keep this node busy. */
	if (f.held > HELD_CHEAP) {
		if (c->now_us < c->lend_us)
			return;
		c->lend_us = c->now_us + (uint64_t)f.held * MOVE_US;
	}
	u->retry_us = 0;
	lend(c, i, &f, room);
}

/* ---- calling back ---- */

/* The first loan in the way of the request from loan @i on. */
static uint32_t next_conflict(const struct belay_core *c, const struct request *q, uint32_t i)
{
	for (; i != 0; i = loan_at(c, i)->next) {
		const struct loan *l = loan_at(c, i);

		if (overlapping(l->start, l->end, range_of(q->start, q->end)) &&
		    (l->client == client_of(c, q) || conflicting(l->mode, q->mode)))
			return i;
	}
	return 0;
}

uint32_t loan_conflict(const struct belay_core *c, const struct request *q)
{
	return next_conflict(c, q, local_at(c, resource_at(c, q->resource)->local)->loans);
}

bool loan_recall_range(struct belay_core *c, uint32_t r, struct belay_range range)
{
	const struct resource *res = resource_at(c, r);
	uint32_t i = res->local != 0 ? local_at(c, res->local)->loans : 0;
	bool any = false;

	for (; i != 0; i = loan_at(c, i)->next) {
		if (!overlapping(loan_at(c, i)->start, loan_at(c, i)->end, range))
			continue;
		any = true;
		loan_recall(c, i);
	}
	return any;
}

void loan_recall_all(struct belay_core *c)
{
	for (uint32_t i = 1; i < c->loans.fresh; i++)
		if (loan_at(c, i)->resource != 0)
			loan_recall(c, i);
}

void loan_recall_conflicts(struct belay_core *c, const struct request *q)
{
	uint32_t i = loan_conflict(c, q);

	for (; i != 0; i = next_conflict(c, q, loan_at(c, i)->next))
		loan_recall(c, i);
}

/* ---- the end of a loan ---- */

static struct loan *find(const struct belay_core *c, uint32_t i)
{
	if (i == 0 || i >= c->loans.fresh || loan_at(c, i)->resource == 0)
		return NULL;
	return loan_at(c, i);
}

int loan_held(struct belay_core *c, const struct belay_event *ev)
{
	struct loan *l = find(c, ev->loan.loan);
	struct belay_owner id = ev->loan.owner;
	struct belay_range range = ev->loan.range;
	const struct resource *r;
	uint32_t o;

	if (l == NULL)
		return -ENOENT;
	r = resource_at(c, l->resource);
	if (range.start > range.end || !within(range, l->start, l->end) ||
	    ev->loan.mode > (enum belay_mode)l->mode || id.kind >= BELAY_KIND_COUNT ||
	    l->room == 0)
		return -EINVAL;
	id.node = c->config.self;
	id.client = client_at(c, l->client)->id;
	o = index_owner(c, &id, true);
	if (o == 0)
		return -ENOLCK;
	if (table_conflict(c, r, range, ev->loan.mode, o) != 0 ||
	    table_blocks(c, r, o, range, BELAY_MODE_EX, SIGHT_ALL)) {
		index_owner_release(c, o);
		return -EINVAL;
	}
	(void)table_add(c, l->resource, o, range, ev->loan.mode, false);
	l->room--;
	c->room_lent--;
	return 0;
}

static void end(struct belay_core *c, uint32_t i)
{
	struct loan *l = loan_at(c, i);
	uint32_t client = l->client;
	uint32_t *at = &local_at(c, resource_at(c, l->resource)->local)->loans;

	while (*at != i)
		at = &loan_at(c, *at)->next;
	*at = l->next;
	if (l->client_prev != 0)
		loan_at(c, l->client_prev)->client_next = l->client_next;
	else
		client_at(c, client)->loans = l->client_next;
	if (l->client_next != 0)
		loan_at(c, l->client_next)->client_prev = l->client_prev;
	c->room_lent -= l->room;
	c->stats.loans--;
	l->resource = 0;
	pool_put(&c->loans, i);
	index_client_release(c, client);
}

/* The largest fencing token that a client can have given. */
static uint64_t token_max(const struct belay_core *c, const struct loan *l)
{
	return l->token + (c->now_us - l->since_us + 1000) * GRANTS_PER_US;
}

/* Tests of other nodes that only waited to know what this loan holds. */
static void answer_tests(struct belay_core *c, uint32_t r, struct belay_range range)
{
	uint32_t count = queue_collect(c, resource_at(c, r), range, false);

	for (uint32_t k = 0; k < count; k++) {
		const struct request *q = request_at(c, c->scratch[k]);
		uint32_t d = delegation_authority(c, resource_at(c, r),
						  range_of(q->start, q->end), BELAY_MODE_SH);

		if (q->test && d != 0 && !delegation_at(c, d)->recalled)
			queue_answer(c, c->scratch[k]);
	}
}

int loan_back(struct belay_core *c, const struct belay_event *ev)
{
	struct loan *found = find(c, ev->loan.loan), l;
	struct belay_range range, used = ev->loan.range;
	uint32_t d;

	if (found == NULL)
		return -ENOENT;
	l = *found;
	range = range_of(l.start, l.end);
	if (ev->loan.used && (used.start > used.end || !within(used, l.start, l.end)))
		return -EINVAL;
	resource_at(c, l.resource)->pins++;
	d = delegation_covering(c, resource_at(c, l.resource), c->self, range, BELAY_MODE_SH);
	if (d != 0)
		delegation_token(c, d, ev->loan.token < token_max(c, &l) ? ev->loan.token :
									   token_max(c, &l));
	if (d != 0 && ev->loan.used) {
		delegation_use(delegation_at(c, d), used,
			       ev->loan.used_ex ? BELAY_MODE_EX : BELAY_MODE_SH);
		add_use(c, local_at(c, resource_at(c, l.resource)->local),
			client_at(c, l.client)->id, used, ev->loan.used_ex);
	}
	end(c, ev->loan.loan);
	if (!c->stale && d != 0) {
		queue_scan(c, l.resource, range, true);
		deadlock_resolve(c, l.resource, true);
		answer_tests(c, l.resource, range);
		if (delegation_at(c, d)->gathering)
			recall_now(c, d);
	}
	resource_at(c, l.resource)->pins--;
	resource_touch(c, l.resource);
	index_resource_release(c, l.resource);
	return 0;
}

void loan_void(struct belay_core *c, uint32_t client)
{
	uint32_t id = client_at(c, client)->id, i, next;
	struct belay_range range;

	/* The last one's end may free the client, when it has nothing else. */
	for (i = client_at(c, client)->loans; i != 0; i = next) {
		const struct loan *l = loan_at(c, i);
		uint32_t r = l->resource, d;

		next = l->client_next;
		d = delegation_covering(c, resource_at(c, r), c->self, range_of(l->start, l->end),
					BELAY_MODE_SH);
		/* Nobody says how far it has counted. */
		if (d != 0)
			delegation_token(c, d, token_max(c, l));
		range = range_of(l->start, l->end);
		forget_use(local_at(c, resource_at(c, r)->local), id);
		end(c, i);
		if (!c->stale && d != 0)
			answer_tests(c, r, range);
		queue_scan_later(c, r);
		if (d != 0 && delegation_at(c, d)->gathering)
			recall_soon(c, d);
		resource_touch(c, r);
	}
}

void loan_tick(struct belay_core *c)
{
	if (c->stats.loans == 0)
		return;
	if (c->now_us >= c->loan_check_us) {
		for (uint32_t i = 1; i < c->loans.fresh; i++)
			if (loan_at(c, i)->resource != 0 &&
			    loan_at(c, i)->since_us + LOAN_US <= c->now_us)
				loan_recall(c, i);
		c->loan_check_us = c->now_us + CHECK_US;
	}
	core_wake(c, c->loan_check_us);
}
