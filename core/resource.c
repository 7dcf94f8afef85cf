/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ownership of resources: who may grant without messages, how that authority
 * begins (own), is called back (recall), given up (relinquish), and what an
 * unused resource becomes.
 *
 * Authority ends when RELINQ is sent, not when it is delivered: from then on
 * this node's table is what the RELINQ says (I4).
 */
#include "core/internal.h"

static uint64_t resource_hash(const struct belay_core *c, const struct resource *r)
{
	uint64_t h;

	if (r->state == BELAY_STATE_UNOWNED)
		return 0;
	h = index_mix(index_key(&r->key), r->epoch);
	h = index_mix(h, ((uint64_t)r->state << 56) | ((uint64_t)r->backoff << 32) | r->streak);
	h = index_mix(h, c->node[r->user].id);
	if (r->state == BELAY_STATE_OWNED || r->state == BELAY_STATE_RECALL)
		h = index_mix(h, c->node[r->owner].id);
	return h;
}

void resource_hash_out(struct belay_core *c, const struct resource *r)
{
	c->digest -= resource_hash(c, r);
	c->stats.resources[r->state]--;
}

void resource_hash_in(struct belay_core *c, const struct resource *r)
{
	c->digest += resource_hash(c, r);
	c->stats.resources[r->state]++;
}

bool resource_authority(const struct belay_core *c, const struct resource *r)
{
	return (r->state == BELAY_STATE_OWNED || r->state == BELAY_STATE_RECALL) &&
	       r->owner == c->self && !local_at(c, r->local)->relinquished;
}

struct local *resource_local(struct belay_core *c, uint32_t r)
{
	struct resource *res = resource_at(c, r);

	if (res->local == 0)
		res->local = pool_get(&c->locals);
	return res->local != 0 ? local_at(c, res->local) : NULL;
}

/* The list of unused resources, longest unused first. */

void resource_unidle(struct belay_core *c, uint32_t i)
{
	struct resource *r = resource_at(c, i);

	if (c->idle.head != i && r->idle_prev == 0)
		return;
	if (r->idle_prev != 0)
		resource_at(c, r->idle_prev)->idle_next = r->idle_next;
	else
		c->idle.head = r->idle_next;
	if (r->idle_next != 0)
		resource_at(c, r->idle_next)->idle_prev = r->idle_prev;
	else
		c->idle.tail = r->idle_prev;
	r->idle_prev = r->idle_next = 0;
}

static bool unused(const struct belay_core *c, const struct resource *r)
{
	if (r->locks != 0 || r->waiting != 0 || r->pins != 0)
		return false;
	if (r->local != 0 && local_at(c, r->local)->inflight != 0)
		return false;
	return r->state == BELAY_STATE_ARB ||
	       (r->state == BELAY_STATE_OWNED && resource_authority(c, r));
}

void resource_touch(struct belay_core *c, uint32_t i)
{
	struct resource *r = resource_at(c, i);

	resource_unidle(c, i);
	if (!unused(c, r))
		return;
	r->idle_ms = (uint32_t)(c->now_us / 1000);
	r->idle_prev = c->idle.tail;
	if (c->idle.tail != 0)
		resource_at(c, c->idle.tail)->idle_next = i;
	else
		c->idle.head = i;
	c->idle.tail = i;
	core_wake(c, c->now_us + c->config.idle_us);
}

/* The list of resources to relinquish when their minimum hold is over. */

static void due_drop(struct belay_core *c, struct local *l)
{
	if (l->due_us == 0)
		return;
	if (l->due_prev != 0)
		local_at(c, resource_at(c, l->due_prev)->local)->due_next = l->due_next;
	else
		c->due.head = l->due_next;
	if (l->due_next != 0)
		local_at(c, resource_at(c, l->due_next)->local)->due_prev = l->due_prev;
	else
		c->due.tail = l->due_prev;
	l->due_us = 0;
	l->due_prev = l->due_next = 0;
}

static void due_add(struct belay_core *c, struct local *l, uint32_t i, uint64_t at_us)
{
	l->due_us = at_us;
	l->due_prev = c->due.tail;
	if (c->due.tail != 0)
		local_at(c, resource_at(c, c->due.tail)->local)->due_next = i;
	else
		c->due.head = i;
	c->due.tail = i;
	core_wake(c, at_us);
}

/* What a client that is gone held of one resource. */
static void release_client(struct belay_core *c, uint32_t r, uint32_t client)
{
	uint32_t cl = index_client(c, c->self, client), o, next_o, i, next;

	for (o = cl != 0 ? client_at(c, cl)->owners : 0; o != 0; o = next_o) {
		next_o = owner_at(c, o)->client_next;
		for (i = owner_at(c, o)->locks; i != 0; i = next) {
			next = lock_at(c, i)->owner_next;
			if (lock_at(c, i)->resource == r)
				table_remove(c, i);
		}
		index_owner_release(c, o);
	}
}

/*
 * Releases sent while the resource was arbitrated and not delivered yet, by
 * unlock or by a client's end: now that the table is private, they take effect
 * at once, and their delivery will be ignored by everybody, this node
 * included. A lock taken in between could otherwise fall to the release of its
 * predecessor.
 */
static void apply_releases(struct belay_core *c, uint32_t r)
{
	for (uint32_t i = c->sent_head; i != 0; i = sent_at(c, i)->next) {
		const struct sent *s = sent_at(c, i);

		if (s->type == BELAY_OP_CLIENT_GONE) {
			release_client(c, r, s->owner);
		} else if (s->type == BELAY_OP_REL && s->resource == r &&
			   table_first(c, resource_at(c, r), s->owner, 0) != 0) {
			(void)table_clear(c, r, s->owner, s->range);
			index_owner_release(c, s->owner);
		}
	}
}

static void remove_all(struct belay_core *c, struct resource *r)
{
	uint32_t i;

	while ((i = table_any(r)) != 0) {
		uint32_t owner = lock_at(c, i)->owner;

		table_remove(c, i);
		index_owner_release(c, owner);
	}
}

/* At this place of the order @node becomes the owner. */
void resource_own(struct belay_core *c, uint32_t i, uint32_t node)
{
	struct resource *r = resource_at(c, i);
	struct local *l;

	resource_hash_out(c, r);
	if (r->state == BELAY_STATE_UNOWNED) {
		c->resources_replicated++;
	} else {
		assert(r->state == BELAY_STATE_ARB);
		table_publish(c, r, false);
	}
	r->state = BELAY_STATE_OWNED;
	r->owner = (uint8_t)node;
	r->epoch = c->place;
	resource_hash_in(c, r);
	if (node != c->self) {
		remove_all(c, r);
	} else {
		l = resource_local(c, i);
		assert(l != NULL); /* it has sent the op that is being delivered */
		l->relinquished = false;
		l->used = false;
		l->authority_at = c->node[c->self].seq;
		l->since_us = c->now_us;
		l->token = c->token;
		c->stats.owned_here++;
		apply_releases(c, i);
	}
	resource_touch(c, i);
}

static void end_ownership(struct belay_core *c, struct resource *r)
{
	struct local *l;

	if (r->owner != c->self || r->local == 0)
		return;
	l = local_at(c, r->local);
	due_drop(c, l);
	l->relinquished = false;
	c->stats.owned_here--;
}

/* At this place of the order everybody knows the resource's locks. */
void resource_arbitrate(struct belay_core *c, uint32_t i)
{
	struct resource *r = resource_at(c, i);

	assert(r->state == BELAY_STATE_OWNED || r->state == BELAY_STATE_RECALL);
	end_ownership(c, r);
	resource_hash_out(c, r);
	/* Owning was worth it if it lasted; else the next claim has to be earned harder. */
	if (c->place - r->epoch < QUIET_PLACES) {
		if (r->backoff < BACKOFF_MAX)
			r->backoff++;
	} else if (r->backoff > 0) {
		r->backoff--;
	}
	r->state = BELAY_STATE_ARB;
	r->epoch = c->place;
	r->streak = 0;
	table_publish(c, r, true);
	resource_hash_in(c, r);
	resource_touch(c, i);
}

/* Nothing is held or awaited: the replicas forget it. */
void resource_forget(struct belay_core *c, uint32_t i)
{
	struct resource *r = resource_at(c, i);

	assert(r->locks == 0);
	if (r->state == BELAY_STATE_OWNED || r->state == BELAY_STATE_RECALL)
		end_ownership(c, r);
	resource_hash_out(c, r);
	r->state = BELAY_STATE_UNOWNED;
	r->epoch = 0;
	r->streak = 0;
	r->backoff = 0;
	r->user = 0;
	resource_hash_in(c, r);
	c->resources_replicated--;
	resource_unidle(c, i);
	index_resource_release(c, i);
}

/* Somebody else wants what this node owns. */
void resource_recall(struct belay_core *c, uint32_t i)
{
	struct resource *r = resource_at(c, i);
	struct local *l = local_at(c, r->local);

	assert(resource_authority(c, r));
	if (l->due_us != 0)
		return;
	/* What was fetched and used keeps its worth a moment; idle goes at once. */
	if (l->used && c->now_us < l->since_us + c->config.min_hold_us)
		due_add(c, l, i, l->since_us + c->config.min_hold_us);
	else
		resource_relinquish(c, i);
}

static void send_held(struct belay_core *c, const struct resource *r, uint32_t i)
{
	struct belay_op op = { .type = BELAY_OP_HELD, .key = r->key };
	const struct lock *l;

	if (i == 0)
		return;
	l = lock_at(c, i);
	send_held(c, r, l->by_owner.left);
	op.range = range_of(l->start, l->end);
	op.owner = owner_at(c, l->owner)->id;
	op.mode = (enum belay_mode)l->mode;
	core_send(c, &op, true, 0, 0, 0);
	send_held(c, r, l->by_owner.right);
}

static void send_waiting(struct belay_core *c, const struct resource *r)
{
	uint32_t count = queue_collect(c, r, range_of(0, BELAY_OFFSET_MAX), true);

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

void resource_relinquish(struct belay_core *c, uint32_t i)
{
	struct resource *r = resource_at(c, i);
	struct local *l = local_at(c, r->local);
	struct belay_op op = { .type = BELAY_OP_RELINQ, .key = r->key, .epoch = r->epoch };

	assert(resource_authority(c, r));
	due_drop(c, l);
	/* Grants that are not believed yet are in the table, hence in held[] (S4). */
	send_held(c, r, r->by_owner);
	send_waiting(c, r);
	op.token = l->token;
	core_send(c, &op, true, 0, 0, 0);
	l->relinquished = true;
	c->stats.relinquished++;
	resource_unidle(c, i);
	request_back(c, i);
}

static void let_idle_go(struct belay_core *c, uint32_t i)
{
	struct resource *r = resource_at(c, i);
	struct belay_op op = { .type = BELAY_OP_IDLE, .key = r->key, .epoch = r->epoch };

	c->stats.idles++;
	if (r->state == BELAY_STATE_OWNED) {
		resource_relinquish(c, i);
		return;
	}
	/* Any one node may say it of an arbitrated resource: the lowest does. */
	if (member_lowest_synced(c))
		core_send(c, &op, false, 0, 0, 0);
	resource_touch(c, i);
}

void resource_tick(struct belay_core *c)
{
	uint64_t keep_us = c->config.idle_us;
	uint32_t i, budget = 64;

	for (i = c->due.head; i != 0;) {
		const struct local *l = local_at(c, resource_at(c, i)->local);
		uint32_t next = l->due_next;

		if (l->due_us > c->now_us)
			core_wake(c, l->due_us);
		else
			resource_relinquish(c, i);
		i = next;
	}
	/* When room gets short, the longest unused go early. */
	if (c->resources_replicated > c->config.limits.resources_max / 4 * 3)
		keep_us = 0;
	while ((i = c->idle.head) != 0 && budget-- > 0) {
		uint64_t age_us = ((uint32_t)(c->now_us / 1000) - resource_at(c, i)->idle_ms) *
				  UINT64_C(1000);

		if (age_us < keep_us) {
			core_wake(c, c->now_us + (keep_us - age_us));
			return;
		}
		let_idle_go(c, i);
	}
	if (c->idle.head != 0)
		core_wake(c, c->now_us + 1000);
}
