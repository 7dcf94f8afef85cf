/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Resources: known to all from the first request on, forgotten when nobody
 * uses them any more. Who may grant on which part of one is delegation.c's.
 */
#include "core/internal.h"

static uint64_t resource_hash(const struct resource *r)
{
	return r->known ? index_mix(index_key(&r->key), r->epoch) : 0;
}

static enum belay_state state_of(const struct belay_core *c, const struct resource *r)
{
	enum belay_state state = BELAY_STATE_ARB;

	if (!r->known)
		return BELAY_STATE_UNOWNED;
	for (uint32_t i = r->delegations; i != 0; i = delegation_at(c, i)->next) {
		const struct delegation *d = delegation_at(c, i);

		if (d->recalled)
			return BELAY_STATE_RECALL;
		state = d->mode == BELAY_MODE_EX ? BELAY_STATE_OWNED : BELAY_STATE_SHARED;
	}
	return state;
}

void resource_hash_out(struct belay_core *c, const struct resource *r)
{
	c->digest -= resource_hash(r);
	c->stats.resources[r->state]--;
}

void resource_hash_in(struct belay_core *c, struct resource *r)
{
	r->state = (uint8_t)state_of(c, r);
	c->digest += resource_hash(r);
	c->stats.resources[r->state]++;
}

struct local *resource_local(struct belay_core *c, uint32_t r)
{
	struct resource *res = resource_at(c, r);

	if (res->local == 0) {
		res->local = pool_get(&c->locals);
		if (res->local != 0)
			local_at(c, res->local)->claim.above = BELAY_OFFSET_MAX;
	}
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

/* Could this node give up what it has of it, or have it forgotten? */
static bool unused(const struct belay_core *c, const struct resource *r)
{
	const struct local *l = r->local != 0 ? local_at(c, r->local) : NULL;
	bool own = false;

	if (!r->known || r->locks != 0 || r->waiting != 0 || r->pins != 0)
		return false;
	if (l != NULL && (l->inflight != 0 || l->loans != 0))
		return false;
	for (uint32_t i = r->delegations; i != 0; i = delegation_at(c, i)->next) {
		const struct delegation *d = delegation_at(c, i);

		if (delegation_own(c, d) && (d->giving || d->recalled))
			return false;
		own |= delegation_own(c, d);
	}
	return own || r->delegations == 0;
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

bool resource_known(struct belay_core *c, uint32_t i)
{
	struct resource *r = resource_at(c, i);

	if (r->known)
		return true;
	if (c->resources_replicated >= c->config.limits.resources_max)
		return false;
	resource_hash_out(c, r);
	r->known = true;
	r->epoch = c->place;
	resource_hash_in(c, r);
	c->resources_replicated++;
	return true;
}

void resource_changed(struct belay_core *c, uint32_t i)
{
	struct resource *r = resource_at(c, i);

	resource_hash_out(c, r);
	r->epoch = c->place;
	resource_hash_in(c, r);
	resource_touch(c, i);
}

/* Nothing is held or awaited, and nobody has a part of it: the replicas forget it. */
void resource_forget(struct belay_core *c, uint32_t i)
{
	struct resource *r = resource_at(c, i);

	assert(r->locks == 0 && r->delegations == 0);
	resource_hash_out(c, r);
	r->known = false;
	r->epoch = 0;
	resource_hash_in(c, r);
	c->resources_replicated--;
	if (r->local != 0)
		local_at(c, r->local)->claim = (struct claim){ .above = BELAY_OFFSET_MAX };
	resource_unidle(c, i);
	index_resource_release(c, i);
}

static void let_idle_go(struct belay_core *c, uint32_t i)
{
	struct resource *r = resource_at(c, i);
	struct belay_op op = { .type = BELAY_OP_IDLE, .key = r->key, .epoch = r->epoch };
	uint32_t d, next;

	c->stats.idles++;
	if (r->delegations == 0) {
		/* Any one node may say it of an arbitrated resource: the lowest does. */
		if (member_lowest_synced(c))
			core_send(c, &op, false, 0, 0, 0);
		resource_touch(c, i);
		return;
	}
	for (d = r->delegations; d != 0; d = next) {
		next = delegation_at(c, d)->next;
		if (delegation_own(c, delegation_at(c, d)))
			recall_idle(c, d);
	}
	resource_unidle(c, i);
}

void resource_tick(struct belay_core *c)
{
	uint64_t keep_us = c->config.idle_us;
	uint32_t i, budget = 64;

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
