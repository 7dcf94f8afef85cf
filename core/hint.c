/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Early release (S11): beside the order, who releases tells those who wait next,
 * and who waits for nothing but releases it was told of takes the lock before
 * they are delivered. Its request is stable and stays in every queue until they
 * are, so that it keeps its place whatever becomes of its node.
 *
 * A hint names the release by its number among its sender's ops: until that one is
 * delivered here, what the owner holds in the table is what it has given back, for it had
 * nothing asked for by then that it did not have. Losing a hint costs time; a stale one
 * names a release that has been delivered, and means nothing.
 */
#include "core/internal.h"

#define TOLD_MAX 4u			/* who is farther behind will be told by others */

/* Of a living member's present life? */
static bool present(const struct belay_core *c, const struct belay_hint *h)
{
	uint32_t i = h->seq != 0 ? index_node(c, h->node) : c->node_count;

	return i != c->node_count && c->node[i].in_view &&
	       c->node[i].standing == BELAY_NODE_MEMBER &&
	       c->node[i].incarnation == h->incarnation;
}

/* Is its release still on its way? */
static bool live(const struct belay_core *c, const struct belay_hint *h)
{
	return present(c, h) && c->node[index_node(c, h->node)].seq < h->seq;
}

static bool about(const struct belay_hint *h, const struct belay_key *key,
		  const struct belay_owner *owner, struct belay_range range)
{
	return h->node == owner->node && h->owner.client == owner->client &&
	       h->owner.key == owner->key && h->owner.kind == owner->kind &&
	       within(range, h->range.start, h->range.end) &&
	       memcmp(&h->key, key, sizeof(*key)) == 0;
}

struct look {
	const struct belay_core *core;
	const struct request *q;
	uint64_t token;			/* largest of what was given back */
};

/* Has the holder of a part of what q wants given it back? */
static bool still_held(void *context, uint32_t lock)
{
	struct look *k = context;
	const struct belay_core *c = k->core;
	const struct lock *l = lock_at(c, lock);
	struct belay_range part = common(range_of(l->start, l->end),
					 range_of(k->q->start, k->q->end));

	for (uint32_t i = 0; i < HINTS_KEPT; i++) {
		const struct belay_hint *h = &c->hint[i];

		/* At the limit a hole is not cut: it stays locked. */
		if (l->start < h->range.start && l->end > h->range.end)
			continue;
		if (!live(c, h) || (h->waiter != 0 && h->waiter != k->q->number) ||
		    !about(h, &resource_at(c, l->resource)->key, &owner_at(c, l->owner)->id, part))
			continue;
		if (h->token > k->token)
			k->token = h->token;
		return false;
	}
	return true;
}

/* Was an earlier request taken early, too, and given back? */
static bool still_wanted(struct look *k, const struct request *e)
{
	const struct belay_core *c = k->core;

	for (uint32_t i = 0; i < HINTS_KEPT; i++) {
		const struct belay_hint *h = &c->hint[i];

		if (!live(c, h) || h->request != e->number ||
		    (h->waiter != 0 && h->waiter != k->q->number) ||
		    !about(h, &resource_at(c, e->resource)->key, &owner_at(c, e->owner)->id,
			   range_of(e->start, e->end)))
			continue;
		if (h->token > k->token)
			k->token = h->token;
		return false;
	}
	return true;
}

/* Requests of one owner that meet are granted one behind the other, or it could not know what
 * it has. */
static bool alone(const struct belay_core *c, const struct request *q)
{
	for (uint32_t i = owner_at(c, q->owner)->requests; i != 0; i = request_at(c, i)->owner_next) {
		const struct request *e = request_at(c, i);

		if (e != q && e->resource == q->resource && !e->test &&
		    overlapping(e->start, e->end, range_of(q->start, q->end)))
			return false;
	}
	return true;
}

/* All that stands before it must be known to be over: not the holder alone. */
static bool free_early(struct belay_core *c, uint32_t i, uint64_t *ret_token)
{
	const struct request *q = request_at(c, i);
	const struct resource *r = resource_at(c, q->resource);
	struct belay_range range = range_of(q->start, q->end);
	struct look k = { .core = c, .q = q };
	uint32_t count;

	if (delegation_conflict(c, r, c->self, range, (enum belay_mode)q->mode, 0) != 0 ||
	    table_each_conflict(c, r, range, (enum belay_mode)q->mode, q->owner, still_held, &k))
		return false;
	count = queue_peek(c, r, range, false, c->stack);
	for (uint32_t n = 0; n < count; n++) {
		const struct request *e = request_at(c, c->stack[n]);

		/* Nobody passes another early, not even whom that one waits for: its hints
		 * would not say so. */
		if (e->queue < q->queue && !e->test && e->owner != q->owner &&
		    conflicting(e->mode, q->mode) && still_wanted(&k, e))
			return false;
	}
	*ret_token = k.token;
	return true;
}

static void take_early(struct belay_core *c, uint32_t i, uint64_t token)
{
	struct request *q = request_at(c, i);
	struct belay_action a = {
		.type = BELAY_ACTION_REPLY,
		.client = owner_at(c, q->owner)->id.client,
		.cookie = q->cookie,
	};

	/* Its real grant comes behind the releases, and each op advances the clock. This node
	 * may be far behind the clock of who gave it back. */
	if (token < c->token)
		token = c->token;
	if (token < c->early_token)
		token = c->early_token;
	q->token = c->early_token = token + 1;
	q->early = true;
	a.token = q->token;
	c->stats.hints_used++;
	core_emit(c, &a);
}

/*
 * The sender of a hint has the request, too, and in the same place: behind the
 * same ops of the same members. That is as good as its acknowledgement in the order
 * of all own ops up to that place.
 */
static void acknowledge(struct belay_core *c, const struct belay_hint *h)
{
	uint32_t i = h->waiter != 0 ? index_request(c, c->self, h->waiter) : 0;
	const struct request *q = i != 0 ? request_at(c, i) : NULL;
	struct node *n;

	if (q == NULL || !q->own || q->prefix == 0 || q->prefix != h->prefix ||
	    h->to_incarnation != c->incarnation || !present(c, h))
		return;
	n = &c->node[index_node(c, h->node)];
	if (n->acked >= q->vouch_at)
		return;
	n->acked = q->vouch_at;
	stable_update(c);
}

void hint_acknowledged(struct belay_core *c)
{
	for (uint32_t i = 0; c->config.hints && i < HINTS_KEPT; i++)
		acknowledge(c, &c->hint[i]);
}

static void try_early(struct belay_core *c, uint32_t i)
{
	const struct request *q = request_at(c, i);
	uint64_t token;

	/* The node's own would be forgotten with a belayd that ends before the grant. */
	if (q->own && q->wait && !q->early && !q->cancelled && !q->orphan && !q->weakens &&
	    owner_at(c, q->owner)->id.kind != BELAY_KIND_NODE &&
	    alone(c, q) && q->stable_at <= c->stable && free_early(c, i, &token))
		take_early(c, i, token);
}

/* Own requests that a hint may help. */
static void look(struct belay_core *c, const struct belay_hint *h)
{
	uint32_t r = index_resource(c, &h->key, false), count;

	if (r == 0 || resource_at(c, r)->waiting == 0)
		return;
	count = queue_collect(c, resource_at(c, r), h->range, false);
	for (uint32_t k = 0; k < count; k++)
		try_early(c, c->scratch[k]);
}

void hint_look(struct belay_core *c)
{
	if (!c->config.hints || !core_serves(c))
		return;
	for (uint32_t i = 0; i < HINTS_KEPT; i++)
		if (live(c, &c->hint[i]))
			look(c, &c->hint[i]);
}

static void keep(struct belay_core *c, const struct belay_hint *h)
{
	c->hint[c->hint_next] = *h;
	c->hint_next = (c->hint_next + 1) % HINTS_KEPT;
}

int hint_come(struct belay_core *c, const struct belay_hint *h)
{
	if (!c->config.hints || h->node == c->config.self || h->range.start > h->range.end)
		return -EINVAL;
	/* One about a request not delivered here yet is good later. */
	if (!core_serves(c) || !present(c, h))
		return 0;
	keep(c, h);
	acknowledge(c, h);
	if (live(c, h))
		look(c, h);
	return 0;
}

struct rest {
	struct look look;
	uint32_t owner;
};

static bool still_holds(void *context, uint32_t lock)
{
	struct rest *k = context;

	return lock_at(k->look.core, lock)->owner == k->owner && still_held(&k->look, lock);
}

/*
 * Tell the node of a waiting request, and that it waits here, too. Not while the owner
 * still holds something else in its way: what it asked for behind the request may have been granted
 * before it, and the waiter's node need not know yet.
 */
static void tell(struct belay_core *c, const struct belay_hint *hint, uint32_t i)
{
	const struct request *q = request_at(c, i);
	const struct node *n = &c->node[owner_at(c, q->owner)->node];
	struct belay_hint h = *hint;
	struct belay_action a = { .type = BELAY_ACTION_HINT, .hint = &h, .node = n->id };
	struct rest rest = { { .core = c, .q = q }, index_owner(c, &hint->owner, false) };

	if (q->own || !q->wait || !n->in_view)
		return;
	if (table_each_conflict(c, resource_at(c, q->resource), range_of(q->start, q->end),
				(enum belay_mode)q->mode, q->owner, still_holds, &rest))
		return;
	h.to_incarnation = n->incarnation;
	h.waiter = q->number;
	h.prefix = q->prefix;
	c->stats.hints_sent++;
	core_emit(c, &a);
}

/* A hint that announces nothing: no resource has this key. */
void hint_vouch(struct belay_core *c, uint32_t number)
{
	const struct node *n = &c->node[c->from];
	struct belay_hint h = {
		.node = c->config.self, .incarnation = c->incarnation, .seq = c->sent_seq,
		.to_incarnation = n->incarnation, .waiter = number, .prefix = stable_prefix(c),
		.owner = { .node = c->config.self },
	};
	struct belay_action a = { .type = BELAY_ACTION_HINT, .hint = &h, .node = n->id };

	if (!c->config.hints || h.seq == 0 || !n->in_view || !stable_ours(c, c->from))
		return;
	c->stats.hints_sent++;
	core_emit(c, &a);
}

void hint_queued(struct belay_core *c, uint32_t i)
{
	const struct request *q = request_at(c, i);
	const struct belay_key *key = &resource_at(c, q->resource)->key;

	if (!c->config.hints || !core_serves(c))
		return;
	if (q->own) {
		hint_acknowledged(c);
		try_early(c, i);
		return;
	}
	/* It has come too late to be told when the range was released. */
	for (uint32_t k = 0; k < HINTS_KEPT; k++)
		if (c->hint[k].node == c->config.self && live(c, &c->hint[k]) &&
		    overlapping(q->start, q->end, c->hint[k].range) &&
		    memcmp(&c->hint[k].key, key, sizeof(*key)) == 0)
			tell(c, &c->hint[k], i);
}

void hint_released(struct belay_core *c, uint32_t r, uint32_t owner, struct belay_range range,
		   const struct request *early)
{
	struct belay_hint h = {
		.node = c->config.self,
		.incarnation = c->incarnation,
		.seq = c->sent_seq,
		.key = resource_at(c, r)->key,
		.range = range,
		.owner = owner_at(c, owner)->id,
		.request = early != NULL ? early->number : 0,
		.token = early != NULL && early->token > c->token ? early->token : c->token,
	};
	uint32_t count;

	if (!c->config.hints || !core_serves(c))
		return;
	/* Who asks for more, anywhere, may be given it before this release is delivered. What
	 * was taken early has been given: its holders asked for nothing, either, so that no
	 * circle of waits leads through it. */
	for (uint32_t i = owner_at(c, owner)->requests; i != 0; i = request_at(c, i)->owner_next)
		if (!request_at(c, i)->early)
			return;
	keep(c, &h);
	count = queue_collect(c, resource_at(c, r), range, false);
	for (uint32_t k = 0; k < count && k < TOLD_MAX; k++)
		tell(c, &h, c->scratch[k]);
	look(c, &h);
}

/* ---- what an early holder does before its grant is delivered ---- */

struct request *hint_early(const struct belay_core *c, uint32_t r, uint32_t owner,
			   struct belay_range range)
{
	for (uint32_t i = owner_at(c, owner)->requests; i != 0; i = request_at(c, i)->owner_next) {
		struct request *q = request_at(c, i);

		if (q->early && !q->ended && q->resource == r &&
		    overlapping(q->start, q->end, range))
			return q;
	}
	return NULL;
}

static bool is_release(const struct request *q)
{
	return q->number == 0;
}

bool hint_late(const struct belay_core *c, uint32_t r, uint32_t owner, struct belay_range range,
	       bool releases)
{
	for (uint32_t i = owner_at(c, owner)->requests; i != 0; i = request_at(c, i)->owner_next) {
		const struct request *q = request_at(c, i);

		if (q->state == REQUEST_LATE && (releases || !is_release(q)) && q->resource == r &&
		    overlapping(q->start, q->end, range))
			return true;
	}
	return false;
}

void hint_defer(struct belay_core *c, uint32_t i)
{
	request_at(c, i)->state = REQUEST_LATE;
	list_push(c, &c->late, i);
}

void hint_defer_release(struct belay_core *c, uint32_t r, uint32_t owner, struct belay_range range)
{
	uint32_t i = index_request_new(c, r, owner, 0);

	/* No room to remember it: the range stays locked, which is safe. */
	if (i == 0)
		return;
	request_at(c, i)->start = range.start;
	request_at(c, i)->end = range.end;
	hint_defer(c, i);
}

void hint_forget(struct belay_core *c, uint32_t r, uint32_t owner, struct belay_range range)
{
	uint32_t i, next;

	for (i = owner_at(c, owner)->requests; i != 0; i = next) {
		const struct request *q = request_at(c, i);

		next = q->owner_next;
		if (q->state != REQUEST_LATE || !is_release(q) || q->resource != r ||
		    !within(range_of(q->start, q->end), range.start, range.end))
			continue;
		list_drop(c, &c->late, i);
		index_request_free(c, i);
	}
}

static void settle(struct belay_core *c, uint32_t i)
{
	const struct request *q = request_at(c, i);
	uint32_t r = q->resource;
	struct belay_owner id = owner_at(c, q->owner)->id;
	struct belay_range range = range_of(q->start, q->end);

	list_drop(c, &c->late, i);
	if (!is_release(q)) {
		request_go(c, i);
		return;
	}
	resource_at(c, r)->pins++;
	index_request_free(c, i);
	if (index_owner(c, &id, false) != 0)
		request_release(c, r, index_owner(c, &id, false), range);
	resource_at(c, r)->pins--;
	resource_touch(c, r);
	index_resource_release(c, r);
}

/* Nothing of one owner passes what it asked for before. */
static bool may_go(const struct belay_core *c, uint32_t i)
{
	const struct request *q = request_at(c, i);
	struct belay_range range = range_of(q->start, q->end);

	if (hint_early(c, q->resource, q->owner, range) != NULL)
		return false;
	for (uint32_t k = c->late.head; k != i; k = request_at(c, k)->list_next)
		if (request_at(c, k)->owner == q->owner && request_at(c, k)->resource == q->resource &&
		    overlapping(request_at(c, k)->start, request_at(c, k)->end, range))
			return false;
	return true;
}

/* The first that need not wait any more; 0: none. */
static uint32_t due(const struct belay_core *c)
{
	uint32_t i = core_serves(c) ? c->late.head : 0;

	while (i != 0 && !may_go(c, i))
		i = request_at(c, i)->list_next;
	return i;
}

void hint_settle(struct belay_core *c)
{
	uint32_t i;

	/* One may bring the end of others. */
	while ((i = due(c)) != 0)
		settle(c, i);
}
