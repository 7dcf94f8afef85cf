/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stable grants. corosync delivers a node's own message to it even when no
 * survivor will ever see it; so a node believes in what raises its rights only
 * when enough others are known to have the request, too (S2). Every frame
 * carries how far its sender has delivered each member's ops (S1); ops are
 * delivered in order, so one number a member says it all.
 */
#include "core/internal.h"

static uint64_t majority_point(const struct belay_core *c)
{
	uint32_t others = member_majority(c) - 1;
	uint64_t own = c->node[c->self].seq, point = others == 0 ? own : 0;

	/* The furthest point that @others nodes besides this one have reached. */
	for (uint32_t i = 0; i < c->node_count; i++) {
		uint32_t as_far = 0;

		if (i == c->self || c->node[i].acked <= point)
			continue;
		for (uint32_t k = 0; k < c->node_count; k++)
			as_far += k != c->self && c->node[k].acked >= c->node[i].acked;
		if (as_far >= others)
			point = c->node[i].acked;
	}
	return point < own ? point : own;
}

/* Where all must know, must this one? A member without state cannot go on alone. */
static bool needed(const struct belay_core *c, uint32_t i)
{
	const struct node *n = &c->node[i];

	return i != c->self && n->standing != BELAY_NODE_CLOSED &&
	       !(n->standing == BELAY_NODE_MEMBER && !n->synced);
}

static uint64_t everybody_point(const struct belay_core *c)
{
	uint64_t point = c->node[c->self].seq;

	for (uint32_t i = 0; i < c->node_count; i++) {
		const struct node *n = &c->node[i];

		if (needed(c, i) && n->acked < point)
			point = n->acked;
	}
	return point;
}

void stable_update(struct belay_core *c)
{
	uint64_t point;

	if (!core_serves(c))
		return;
	point = c->config.stability == BELAY_STABLE_ALL ? everybody_point(c) : majority_point(c);
	if (point > c->stable) {
		c->stable = point; /* stable once is stable for good */
		hint_look(c);
	}
	request_settle(c);
}

uint64_t stable_prefix(const struct belay_core *c)
{
	uint64_t h = 0;

	for (uint32_t i = 0; i < c->node_count; i++) {
		const struct node *n = &c->node[i];

		if (n->standing == BELAY_NODE_MEMBER || n->standing == BELAY_NODE_LEFT)
			h = index_mix(index_mix(index_mix(h, n->id), n->incarnation), n->seq);
	}
	return h | 1;
}

bool stable_ours(const struct belay_core *c, uint32_t node)
{
	uint32_t members = 0, distance = 0;

	if (node == c->self || !core_serves(c))
		return false;
	for (uint32_t k = 1; k < c->node_count; k++) {
		uint32_t i = (node + k) % c->node_count;

		if (!c->node[i].in_view || !c->node[i].synced)
			continue;
		members++;
		if (i == c->self)
			distance = members;
	}
	/* S5: the next half of the members after the requester; all where all must. */
	return c->config.stability != BELAY_STABLE_MAJORITY || distance <= member_majority(c) - 1;
}

void stable_duty(struct belay_core *c, uint32_t node, uint64_t place)
{
	struct belay_action flush = { .type = BELAY_ACTION_FLUSH };

	if (place > c->last_send_place && stable_ours(c, node))
		core_emit(c, &flush);
}

/* The head of a frame is delivered: who speaks, and what it has of ours. */
void stable_frame(struct belay_core *c, const struct belay_frame *f)
{
	uint32_t from = index_node(c, f->node);
	struct belay_action flush = { .type = BELAY_ACTION_FLUSH };
	struct node *n;

	c->from = c->node_count;
	if (from == c->node_count || !c->node[from].in_view)
		return;
	n = &c->node[from];
	c->from = from;
	c->from_incarnation = f->incarnation;
	c->from_seq = f->seq;
	/* S8: of a life that is over, or has not begun in this order, nothing counts. */
	c->from_new = n->standing != BELAY_NODE_MEMBER || n->incarnation != f->incarnation;
	if (c->from_new)
		return;
	if (c->synced && f->seq != n->seq + 1) {
		core_isolate(c, "messages of a member are missing: the lock table is not to be trusted");
		return;
	}
	for (uint32_t i = 0; i < f->ack_count; i++)
		if (f->ack[i].node == c->config.self && f->ack[i].incarnation == c->incarnation &&
		    f->ack[i].seq > n->acked && f->ack[i].seq <= c->sent_seq)
			n->acked = f->ack[i].seq;
	stable_update(c);
	if (f->ask && c->synced && from != c->self)
		core_emit(c, &flush);
}

/* S5: a decision that stays unstable for long: ask everybody. */
void stable_tick(struct belay_core *c)
{
	uint64_t patience = 3 * c->latency_us > ASK_MIN_US ? 3 * c->latency_us : ASK_MIN_US;
	struct belay_action ask = { .type = BELAY_ACTION_FLUSH, .ask = true };
	uint64_t since;

	if (c->done.head == 0 || !core_serves(c))
		return;
	since = request_at(c, c->done.head)->since_us;
	if (c->ask_us > since)
		since = c->ask_us;
	if (c->now_us >= since + patience) {
		c->ask_us = c->now_us;
		core_emit(c, &ask);
		since = c->now_us;
	}
	core_wake(c, since + patience);
}
