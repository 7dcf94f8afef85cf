/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The group as corosync really gives it. A ring orders messages; each member
 * delivers a prefix of that order, at its own pace. When a ring breaks, each
 * side has a first hole of its own: what lies before it is delivered as usual;
 * behind it, a side delivers its own members' messages and steps over the
 * rest; then comes the view. The side with the token may order some more that
 * only it will ever see. What was sent and not ordered goes into the next ring.
 */
#include <assert.h>
#include <string.h>

#include "tests/sim/sim.h"

static struct message *log_at(const struct ring *ring, size_t at)
{
	return ((struct message **)ring->log.data)[at];
}

static struct message *queue_head(struct node *node)
{
	if (node->queue_at == node->queue.count) {
		node->queue.count = node->queue_at = 0;
		return NULL;
	}
	return ((struct message **)node->queue.data)[node->queue_at];
}

static bool responds(const struct node *node)
{
	return node->powered && !node->corosync_stopped;
}

static void turn_due(struct sim *sim, struct node *node)
{
	uint32_t lag = sim->temper.lag_us;

	if (node->turn_due || !node->powered || node->lagging)
		return;
	node->turn_due = true;
	if (node->slow)
		lag *= 20;
	sim_due(sim, 1 + random_below(&sim->random, lag), DUE_TURN, node->id, 0);
}

static void order_due(struct sim *sim, struct node *node)
{
	if (node->order_due || !queue_head(node) || node->muted)
		return;
	node->order_due = true;
	sim_due(sim, 1 + random_below(&sim->random, sim->temper.order_us), DUE_ORDER, node->id, 0);
}

/* ---- sending and ordering ---- */

static void append(struct sim *sim, struct ring *ring, struct message *message)
{
	struct node *sender = &sim->node[message->node];

	(void)vector_push(&ring->log, sizeof(message), &message);
	message->order = ((uint64_t)ring->id << 32) | ring->log.count;
	sim_hash(sim, message->number ^ message->order);
	if (message->kind == MESSAGE_JOIN)
		sender->registered = message->process;
	else if (message->kind == MESSAGE_LEAVE && sender->registered == message->process)
		sender->registered = 0;
	judge_ordered(sim, message);
}

/* The oldest message that this node sent gets its place. */
static void order_one(struct sim *sim, struct node *node)
{
	struct message *message = queue_head(node);

	assert(message);
	node->queue_at++;
	append(sim, node->ring, message);
}

void cpg_order_now(struct sim *sim, struct node *node, uint32_t count)
{
	while (count-- > 0 && queue_head(node))
		order_one(sim, node);
	for (uint32_t i = 1; i <= sim->nodes; i++)
		if (sim->node[i].ring == node->ring)
			turn_due(sim, &sim->node[i]);
}

void cpg_order(struct sim *sim, struct node *node)
{
	uint32_t n = random_between(&sim->random, 1, sim->temper.burst);

	node->order_due = false;
	if (!responds(node) || node->ring->broken || node->muted)
		return;
	cpg_order_now(sim, node, n);
	order_due(sim, node);
}

void cpg_kick(struct sim *sim, struct node *node)
{
	if (cpg_waiting(node))
		turn_due(sim, node);
	order_due(sim, node);
}

void cpg_send(struct sim *sim, struct node *node, struct message *message)
{
	message->number = ++sim->message_number;
	message->node = node->id;
	message->process = node->process;
	(void)vector_push(&node->queue, sizeof(message), &message);
	order_due(sim, node);
}

/* ---- delivery ---- */

/*
 * The corosync of @node delivers @message. Returns whether that gives its own
 * process something to read.
 */
static bool deliver(struct sim *sim, struct node *node, struct message *message, struct item *ret_item)
{
	struct item item = { .message = message, .identity = message->number, .view = mix64(message->number) };
	bool read = node->joined;

	if (message->kind == MESSAGE_JOIN || message->kind == MESSAGE_LEAVE) {
		bool join = message->kind == MESSAGE_JOIN;

		if (!join && node->known[message->node] != message->process)
			return false;
		node->known[message->node] = join ? message->process : 0;
		if (join && message->node == node->id && message->process == node->process)
			read = node->joined = true;
		if (join)
			item.joined = bit(message->node);
		else
			item.left = bit(message->node);
		item.message = NULL;
		for (uint32_t i = 1; i <= sim->nodes; i++)
			if (node->known[i])
				item.members |= bit(i);
	}
	*ret_item = item;
	return read;
}

static bool skips(const struct node *node, const struct message *message, size_t at)
{
	return at >= node->hole && !(node->side & bit(message->node));
}

bool cpg_waiting(const struct node *node)
{
	size_t end;

	if (node->inbox_at < node->inbox.count)
		return true;
	if (!node->ring || node->corosync_stopped)
		return false;
	end = node->ring->log.count;
	/* What lies behind the hole comes with the next view, not before. */
	return node->at < (end < node->hole ? end : node->hole);
}

bool cpg_next(struct sim *sim, struct node *node, struct item *ret_item)
{
	while (cpg_waiting(node)) {
		if (node->inbox_at < node->inbox.count) {
			*ret_item = ((struct item *)node->inbox.data)[node->inbox_at++];
			if (node->inbox_at == node->inbox.count)
				node->inbox.count = node->inbox_at = 0;
			return true;
		}
		if (deliver(sim, node, log_at(node->ring, node->at++), ret_item))
			return true;
	}
	return false;
}

/* ---- the network ---- */

/* The nodes of a ring that leave it together with @node, as things stand. */
static node_mask side_of(const struct sim *sim, const struct node *node)
{
	node_mask side = 0;

	for (uint32_t i = 1; i <= sim->nodes; i++) {
		const struct node *other = &sim->node[i];

		if (other->ring != node->ring || !other->powered || other->side != node->side)
			continue;
		if (other == node ||
		    (responds(other) && responds(node) && other->component == node->component))
			side |= bit(i);
	}
	return side;
}

/* A place that @side may have lost: nothing it delivered, nothing it sent. */
static void choose_hole(struct sim *sim, struct ring *ring, node_mask side, uint32_t old_hole)
{
	uint32_t low = 0, high = (uint32_t)ring->log.count, hole;

	if (old_hole < high)
		high = old_hole;
	for (uint32_t i = 1; i <= sim->nodes; i++)
		if ((side & bit(i)) && sim->node[i].at > low)
			low = sim->node[i].at;
	if (low > high)
		low = high;
	hole = high;
	if (random_chance(&sim->random, sim->temper.hole_percent))
		hole = random_between(&sim->random, low, high);
	for (uint32_t i = 1; i <= sim->nodes; i++)
		if ((side & bit(i)) && sim->node[i].lose <= high - low && hole > high - sim->node[i].lose)
			hole = high - sim->node[i].lose;
	while (hole < ring->log.count && (side & bit(log_at(ring, hole)->node)))
		hole++;
	if (hole < ring->log.count)
		sim->tally.holes++;
	else if (side == ring->token)
		hole = SIM_NONE;	/* what it orders privately follows without a gap */
	for (uint32_t i = 1; i <= sim->nodes; i++)
		if (side & bit(i))
			sim->node[i].hole = hole;
	trace(sim, "ring %u breaks: side %02x, hole at %d", ring->id, side, (int)hole);
}

/* The nodes of @side order some of what they have sent; perhaps nobody else will see it. */
static void order_privately(struct sim *sim, struct ring *ring, node_mask side)
{
	for (uint32_t i = 1; i <= sim->nodes; i++) {
		struct node *node = &sim->node[i];
		uint32_t n = random_below(&sim->random, sim->temper.private_ops + 1);

		if (!(side & bit(i)) || node->ring != ring || !responds(node) || node->muted)
			continue;
		turn_due(sim, node);
		while (n-- > 0 && queue_head(node)) {
			trace(sim, "n%u orders #%u as the ring breaks", i, (unsigned)queue_head(node)->number);
			order_one(sim, node);
			sim->tally.privates++;
		}
	}
}

static void break_ring(struct sim *sim, struct ring *ring)
{
	node_mask old[SIM_NODES + 1] = { 0 }, side[SIM_NODES + 1] = { 0 }, here = 0;
	bool broke = false;

	for (uint32_t i = 1; i <= sim->nodes; i++) {
		struct node *node = &sim->node[i];

		if (node->ring != ring)
			continue;
		here |= bit(i);
		old[i] = node->side;
		side[i] = side_of(sim, node);
	}
	for (uint32_t i = 1; i <= sim->nodes; i++)
		if (side[i] && side[i] != old[i])
			broke = true;
	if (!broke)
		return;
	if (!ring->broken) {
		uint32_t holder = random_below(&sim->random, sim->nodes) + 1;

		if (sim->token_node)
			holder = sim->token_node;
		/* The last round of the token: some of this will not reach everybody. */
		order_privately(sim, ring, here);
		ring->broken = true;
		ring->token = side[holder];
		order_privately(sim, ring, ring->token);
	}
	for (uint32_t i = 1; i <= sim->nodes; i++)
		if (side[i])
			sim->node[i].side = side[i];
	for (uint32_t i = 1; i <= sim->nodes; i++)
		if (side[i] && side[i] != old[i] && (side[i] & (bit(i) - 1)) == 0)
			choose_hole(sim, ring, side[i], sim->node[i].hole);
}

void cpg_network_changed(struct sim *sim)
{
	for (uint32_t i = 0; i < sim->ring_count; i++)
		break_ring(sim, &sim->ring[i]);
	sim->reform++;
	for (uint32_t c = 0; c <= SIM_NODES; c++)
		sim_due(sim, sim->temper.fixed_gap_us ? sim->temper.fixed_gap_us :
			sim->temper.gap_us + random_below(&sim->random, sim->temper.gap_us),
			DUE_REFORM, c, sim->reform);
}

/* ---- a new ring ---- */

static void hand_over(struct sim *sim, struct node *node, const struct item *item)
{
	if (!node->joined)
		return;
	(void)vector_push(&node->inbox, sizeof(*item), item);
	turn_due(sim, node);
}

/* What this side still gets of its old ring, behind the hole too. */
static void finish_ring(struct sim *sim, struct node *node)
{
	for (; node->at < node->ring->log.count; node->at++) {
		struct message *message = log_at(node->ring, node->at);
		struct item item;

		if (!skips(node, message, node->at) && deliver(sim, node, message, &item))
			hand_over(sim, node, &item);
	}
}

/* One callback tells who left and who joined; a node may stand in both. */
static void new_view(struct sim *sim, struct node *node, node_mask side, const struct ring *ring)
{
	struct item item = { .view = ring->id };

	for (uint32_t i = 1; i <= sim->nodes; i++) {
		uint32_t process = (ring->members & bit(i)) ? sim->node[i].registered : 0;

		if (node->known[i] && (!(side & bit(i)) || node->known[i] != process))
			item.left |= bit(i);
		if (process && (!(side & bit(i)) || node->known[i] != process))
			item.joined |= bit(i);
		if (process)
			item.members |= bit(i);
		node->known[i] = process;
	}
	item.identity = mix64(((uint64_t)ring->id << 32) ^ ((uint64_t)item.left << 16) ^ item.joined);
	if (item.left || item.joined)
		hand_over(sim, node, &item);
}

static struct ring *ring_new(struct sim *sim, node_mask members)
{
	struct ring *ring;

	if (sim->ring_count == SIM_RINGS) {
		sim_fail(sim, "simulator: more than %u rings", SIM_RINGS);
		return NULL;
	}
	ring = &sim->ring[sim->ring_count++];
	ring->id = sim->ring_count;
	ring->members = members;
	ring->token = 0;
	ring->broken = false;
	ring->log.count = 0;
	return ring;
}

void cpg_reform(struct sim *sim, uint32_t component)
{
	node_mask members = 0, side[SIM_NODES + 1] = { 0 };
	const struct ring *same = NULL;
	struct ring *ring;
	bool needed = false;

	for (uint32_t i = 1; i <= sim->nodes; i++)
		if (responds(&sim->node[i]) && sim->node[i].component == component)
			members |= bit(i);
	for (uint32_t i = 1; i <= sim->nodes; i++) {
		if (!(members & bit(i)))
			continue;
		same = same ? same : sim->node[i].ring;
		needed |= !same || sim->node[i].ring != same || same->broken || same->members != members;
	}
	if (!needed || !(ring = ring_new(sim, members)))
		return;
	for (uint32_t i = 1; i <= sim->nodes; i++)
		if ((members & bit(i)) && sim->node[i].ring && sim->node[i].ring->broken &&
		    sim->node[i].ring->token == bit(i))
			order_privately(sim, sim->node[i].ring, bit(i));
	/* A node that CPG has not left behind yet must not see the new ring as its old one. */
	for (uint32_t i = 1; i <= sim->nodes; i++) {
		struct node *node = &sim->node[i];

		if (!(members & bit(i)))
			continue;
		side[i] = node->ring ? node->side & members : bit(i);
		if (node->ring)
			finish_ring(sim, node);
	}
	trace(sim, "ring %u forms: %02x", ring->id, members);
	for (uint32_t i = 1; i <= sim->nodes; i++) {
		struct node *node = &sim->node[i];

		if (!(members & bit(i)))
			continue;
		new_view(sim, node, side[i], ring);
		node->ring = ring;
		node->at = 0;
		node->hole = SIM_NONE;
		node->side = members;
		if (!node->quorum_due) {
			node->quorum_due = true;
			sim_due(sim, 1 + random_below(&sim->random, sim->temper.quorum_us), DUE_QUORUM, i, 0);
		}
		order_due(sim, node);
		turn_due(sim, node);
	}
}

/* ---- machines ---- */

void cpg_power_off(struct sim *sim, struct node *node)
{
	node->powered = false;
	node->ring = NULL;
	node->registered = 0;
	node->queue.count = node->queue_at = 0;
	node->inbox.count = node->inbox_at = 0;
	memset(node->known, 0, sizeof(node->known));
	cpg_network_changed(sim);
}

void cpg_boot(struct sim *sim, struct node *node)
{
	assert(!node->powered);
	node->powered = true;
	node->corosync_stopped = false;
	node->at = 0;
	node->hole = SIM_NONE;
	/* Alone at first; corosync then finds the others. */
	node->side = bit(node->id);
	node->ring = ring_new(sim, bit(node->id));
	node->quorate = false;
	cpg_network_changed(sim);
}

bool cpg_quorate(const struct sim *sim, const struct node *node)
{
	uint32_t members;

	if (!node->ring)
		return false;
	members = mask_count(node->ring->members);
	/* two_node with wait_for_all: alone it stays quorate if it ever was. */
	if (sim->stability == BELAY_STABLE_ALL && sim->nodes == 2)
		return members == 2 || node->quorate;
	return members >= sim_majority(sim);
}
