/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The core's surface: memory, events in, actions out, and what may be asked. */
#include "core/internal.h"

static bool config_valid(const struct belay_core_config *config)
{
	bool self = false;

	if (config->self == 0 || config->incarnation == 0 || config->node_count == 0 ||
	    config->node_count > BELAY_NODES_MAX || config->requests_max == 0 ||
	    config->limits.resources_max == 0 || config->limits.locks_max == 0 ||
	    config->limits.waiters_max == 0 || config->limits.locks_per_owner_max == 0 ||
	    config->claim_streak == 0 || config->share_streak == 0 ||
	    config->loans_max > UINT32_MAX / 8 || config->limits.resources_max > UINT32_MAX / 4 ||
	    config->limits.locks_max > UINT32_MAX / 8 ||
	    config->limits.waiters_max > UINT32_MAX / 8 ||
	    config->requests_max > UINT32_MAX / 8 / (config->node_count + 1))
		return false;
	for (uint32_t i = 0; i < config->node_count; i++) {
		if (config->node[i] == 0)
			return false;
		for (uint32_t k = 0; k < i; k++)
			if (config->node[i] == config->node[k])
				return false;
		self |= config->node[i] == config->self;
	}
	return self;
}

/* Cuts one block of memory into parts; with base NULL it only adds them up. */
struct layout {
	uint8_t *base;
	size_t at;
};

static void *take(struct layout *l, size_t item, size_t count)
{
	size_t at = l->at;

	l->at = (at + item * count + 63) & ~(size_t)63;
	return l->base != NULL ? l->base + at : NULL;
}

static void take_pool(struct layout *l, struct pool *p, uint32_t item, uint32_t count)
{
	pool_init(p, take(l, item, (size_t)count + 1), item, count + 1);
}

static uint32_t *take_hash(struct layout *l, uint32_t *ret_mask, uint32_t count)
{
	uint32_t size = 64;

	while (size < count)
		size *= 2;
	*ret_mask = size - 1;
	return take(l, sizeof(uint32_t), size);
}

/*
 * Limits bound what is replicated, and new locks end there. What is private on
 * a node, or staged by one, comes on top when it is published: an equal share
 * of half the limit each (table_room), and of a quarter for what it claims, one
 * claim at a time (deliver.c). Waits that are published were some node's own
 * requests. Each lock and each request may have an owner of its own, and what is
 * refused takes a place until it is.
 */
static size_t lay_out(struct belay_core *c, void *memory, const struct belay_core_config *config)
{
	struct layout l = { memory, 0 };
	uint32_t locks = config->limits.locks_max * 2 +
			 2 * config->requests_max * (config->node_count + 1) + SPARE;
	uint32_t requests = config->limits.waiters_max +
			    config->requests_max * (config->node_count + 1) + SPARE;
	uint32_t resources = config->limits.resources_max + config->requests_max + SPARE;
	uint32_t owners = locks + requests;
	uint32_t delegations = config->limits.resources_max * 2 + SPARE;

	(void)take(&l, sizeof(*c), 1);
	take_pool(&l, &c->locks, sizeof(struct lock), locks);
	take_pool(&l, &c->requests, sizeof(struct request), requests);
	take_pool(&l, &c->owners, sizeof(struct owner), owners);
	take_pool(&l, &c->clients, sizeof(struct client), owners);
	take_pool(&l, &c->resources, sizeof(struct resource), resources);
	take_pool(&l, &c->locals, sizeof(struct local), resources);
	take_pool(&l, &c->delegations, sizeof(struct delegation), delegations);
	take_pool(&l, &c->loans, sizeof(struct loan), config->loans_max);
	take_pool(&l, &c->sents, sizeof(struct sent), locks + requests + SENT_SPARE);
	c->resource_hash = take_hash(&l, &c->resource_mask, config->limits.resources_max);
	c->owner_hash = take_hash(&l, &c->owner_mask, owners / 4);
	c->client_hash = take_hash(&l, &c->client_mask, owners / 16);
	c->request_hash = take_hash(&l, &c->request_mask, requests / 2);
	c->scratch = take(&l, sizeof(uint32_t), requests);
	c->stack = take(&l, sizeof(uint32_t), requests);
	c->order = take(&l, sizeof(uint32_t), requests);
	c->lock_scratch = take(&l, sizeof(uint32_t), (size_t)locks + 1);
	c->load_owner = take(&l, sizeof(uint32_t), (size_t)owners + 1);
	c->load_resource = take(&l, sizeof(uint32_t), (size_t)resources + 1);
	return l.at;
}

size_t belay_core_size(const struct belay_core_config *config)
{
	struct belay_core c;

	return config_valid(config) ? lay_out(&c, NULL, config) : 0;
}

struct belay_core *belay_core_init(void *memory, const struct belay_core_config *config)
{
	struct belay_core *c = memory;

	if (!config_valid(config))
		return NULL;
	(void)lay_out(c, memory, config);
	c->config = *config;
	c->incarnation = config->incarnation;
	c->token = config->token_base;
	c->frozen = true;
	c->deadline_us = UINT64_MAX;
	c->node_count = config->node_count;
	for (uint32_t i = 0; i < config->node_count; i++) {
		uint32_t at = i;

		/* By id: index order is then the same on every node. */
		for (; at > 0 && c->node[at - 1].id > config->node[i]; at--)
			c->node[at] = c->node[at - 1];
		c->node[at] = (struct node){ .id = config->node[i] };
	}
	c->self = index_node(c, config->self);
	c->node[c->self].standing = BELAY_NODE_MEMBER;
	c->node[c->self].incarnation = c->incarnation;
	c->from = c->node_count;
	return c;
}

void core_emit(struct belay_core *c, const struct belay_action *a)
{
	if (a->type == BELAY_ACTION_FLUSH ||
	    (a->type == BELAY_ACTION_SEND && a->urgent)) {
		c->last_send_place = c->place;
		c->flushed_seq = c->sent_seq;
	}
	c->out->emit(c->out->context, a);
}

void core_send(struct belay_core *c, const struct belay_op *op, bool urgent, uint32_t resource,
	       uint32_t request, uint32_t owner)
{
	struct belay_action a = { .type = BELAY_ACTION_SEND, .op = op, .urgent = urgent };
	struct sent *s;
	uint32_t i;

	/* Behind its LEAVE a node has nothing to say any more. */
	if (c->stale || c->isolated || c->left ||
	    (c->leave_sent && op->type != BELAY_OP_LEAVE))
		return;
	c->sent_seq++;
	if (op->type == BELAY_OP_REQ || op->type == BELAY_OP_REL || op->type == BELAY_OP_CANCEL ||
	    op->type == BELAY_OP_CLIENT_GONE) {
		i = pool_get(&c->sents);
		if (i == 0) {
			core_isolate(c, "too many operations on their way: the group does not deliver");
			return;
		}
		s = sent_at(c, i);
		*s = (struct sent){
			.type = (uint8_t)op->type,
			.resource = resource,
			.request = request,
			.owner = owner,
			.range = op->range,
			.seq = c->sent_seq,
			.at_us = c->now_us,
		};
		if (c->sent_tail != 0)
			sent_at(c, c->sent_tail)->next = i;
		else
			c->sent_head = i;
		c->sent_tail = i;
	}
	core_emit(c, &a);
}

void core_isolate(struct belay_core *c, const char *reason)
{
	struct belay_action a = { .type = BELAY_ACTION_ISOLATE, .reason = reason };

	if (c->isolated)
		return;
	c->isolated = true;
	core_emit(c, &a);
}

void core_wake(struct belay_core *c, uint64_t at_us)
{
	if (at_us < c->deadline_us)
		c->deadline_us = at_us;
}

bool core_serves(const struct belay_core *c)
{
	return c->synced && !c->stale && !c->isolated && !c->left;
}

/*
 * What counts even from a life that this order does not know, or has closed:
 * how a new life begins, what is said to this node about its own, and that a
 * former life of its own has made the others start.
 */
static bool heeded(const struct belay_core *c, const struct belay_op *op)
{
	if (c->from == c->self && c->from_incarnation != c->incarnation)
		return op->type == BELAY_OP_START;
	return op->type == BELAY_OP_HELLO ||
	       ((op->type == BELAY_OP_FENCED || op->type == BELAY_OP_AGAIN) &&
		op->node == c->config.self);
}

/* An op of the present frame, in its place of the order. */
static void on_op(struct belay_core *c, const struct belay_op *op)
{
	struct node *n;
	uint64_t seq = c->from_seq++;

	if (c->from == c->node_count || ((c->from_new || c->stale) && !heeded(c, op))) {
		c->stats.ops_dropped++;
		return;
	}
	n = &c->node[c->from];
	/* S8: from a life that is over, it may be answered but takes no place. */
	if (!c->from_new || (op->type == BELAY_OP_HELLO && !op->synced)) {
		c->place++;
		c->token++;
		c->stats.ops_delivered++;
	}
	if (c->from_new) {
		(void)member_op(c, op);
		if (c->from == c->node_count)
			return; /* this node has discarded its state */
		c->from_new = n->standing != BELAY_NODE_MEMBER ||
			      n->incarnation != c->from_incarnation;
		if (!c->from_new)
			n->seq = seq;
	} else {
		n->seq = seq;
		if (c->from == c->self)
			stable_update(c);
		if (!member_op(c, op) && c->synced)
			deliver_op(c, op);
		c->from_new |= op->type == BELAY_OP_LEAVE;
	}
	digest_place(c);
}

static void on_tick(struct belay_core *c)
{
	c->deadline_us = UINT64_MAX;
	if (!core_serves(c))
		return;
	recall_tick(c);
	loan_tick(c);
	resource_tick(c);
	request_tick(c);
	stable_tick(c);
}

int belay_core_step(struct belay_core *c, const struct belay_event *ev,
		    const struct belay_actions *actions)
{
	int r = 0;

	c->out = actions;
	c->now_us = ev->now_us;
	if (c->first_us == 0)
		c->first_us = ev->now_us;
	switch (ev->type) {
	case BELAY_EVENT_LOCK:
		r = request_lock(c, ev);
		break;
	case BELAY_EVENT_UNLOCK:
		r = request_unlock(c, ev);
		break;
	case BELAY_EVENT_CANCEL:
		r = request_cancel(c, ev);
		break;
	case BELAY_EVENT_CLIENT_GONE:
		r = request_client_gone(c, ev->client.client);
		break;
	case BELAY_EVENT_LOAN_HELD:
		r = loan_held(c, ev);
		break;
	case BELAY_EVENT_LOAN_BACK:
		r = loan_back(c, ev);
		break;
	case BELAY_EVENT_HINT:
		r = hint_come(c, ev->hint);
		break;
	case BELAY_EVENT_FENCE:
		r = member_fence(c, ev->fence.node);
		break;
	case BELAY_EVENT_LEAVE:
		r = member_leave(c);
		break;
	case BELAY_EVENT_QUORUM:
		member_quorum(c, ev->quorum.quorate);
		break;
	case BELAY_EVENT_TICK:
		on_tick(c);
		break;
	case BELAY_EVENT_VIEW:
		member_view(c, ev);
		break;
	case BELAY_EVENT_FRAME:
		stable_frame(c, ev->frame);
		break;
	case BELAY_EVENT_OP:
		on_op(c, ev->op);
		break;
	case BELAY_EVENT_RECORD:
		snapshot_record(c, ev->record);
		break;
	default:
		r = -EINVAL;
		break;
	}
	if (c->late.head != 0)
		hint_settle(c);
	member_leave_check(c);
	c->out = NULL;
	return r;
}

uint64_t belay_core_deadline(const struct belay_core *c)
{
	return c->deadline_us;
}

void belay_core_frame(const struct belay_core *c, struct belay_frame *ret_frame)
{
	*ret_frame = (struct belay_frame){
		.node = c->config.self, .incarnation = c->incarnation,
	};
	/* Without state there is nothing this node could vouch for. */
	if (!core_serves(c))
		return;
	for (uint32_t i = 0; i < c->node_count; i++) {
		const struct node *n = &c->node[i];

		if (i == c->self || n->standing != BELAY_NODE_MEMBER || !n->in_view)
			continue;
		ret_frame->ack[ret_frame->ack_count++] = (struct belay_ack){
			.node = n->id, .incarnation = n->incarnation, .seq = n->seq,
		};
	}
}
