/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What breaks, when it is mended, and who is fenced. A fencing device here is
 * honest: belayd is told that a node has stopped only after it has.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "tests/sim/sim.h"

enum fault {
	FAULT_SPLIT,		/* the network falls into two parts */
	FAULT_COROSYNC,		/* SIGSTOP of corosync: its node's clients go on */
	FAULT_POWER,
	FAULT_KILL,		/* SIGKILL of belayd: its node's clients go on */
	FAULT_BELAYD,		/* SIGSTOP of belayd */
	FAULT_LEAVE,		/* a clean stop of belayd */
	FAULT_BUSY,		/* CPG answers TRY_AGAIN for a while */
	FAULT_SLOW,		/* a node reads late */
	FAULT_COUNT
};

void fault_power_off(struct sim *sim, struct node *node)
{
	trace(sim, "n%u is switched off", node->id);
	sim->tally.offs++;
	belief_void(sim, node, 0);
	volume_host_ends(sim, node);
	node->process = 0;
	node_forget(node);
	node_forget_clients(node);
	cpg_power_off(sim, node);
}

void fault_kill(struct sim *sim, struct node *node)
{
	sim->tally.kills++;
	node_kill(sim, node);
}

static void boot(struct sim *sim, struct node *node)
{
	trace(sim, "n%u boots", node->id);
	cpg_boot(sim, node);
	sim_due(sim, random_below(&sim->random, sim->temper.boot_us), DUE_REPAIR, node->id, FAULT_KILL);
}

static void split(struct sim *sim)
{
	uint32_t part = 1 + random_below(&sim->random, SIM_NODES - 1);

	sim->tally.splits++;
	trace(sim, "the network splits");
	for (uint32_t i = 1; i <= sim->nodes; i++)
		if (random_chance(&sim->random, 40))
			sim->node[i].component = part;
	cpg_network_changed(sim);
}

static void ask_to_leave(struct sim *sim, struct node *node)
{
	struct belay_event event = { .type = BELAY_EVENT_LEAVE };
	int r = node_step(sim, node, &event);

	if (r < 0 && r != -EBUSY)
		sim_fail(sim, "n%u refuses LEAVE: %d", node->id, r);
	node->quitting = true;
	node_end_turn(sim, node);
}

/* When a ring breaks, messages shall be on their way: that is when it matters. */
static void crowd(struct sim *sim)
{
	for (uint32_t i = 1; i <= sim->nodes; i++) {
		struct node *node = &sim->node[i];

		for (uint32_t n = random_below(&sim->random, 3); n > 0 && node_runs(node) && !node->quitting; n--)
			client_act(sim, node);
		if (node_runs(node) && node->joined && random_chance(&sim->random, 70))
			node_flush(sim, node);
	}
}

static bool strike(struct sim *sim, struct node *node, enum fault fault)
{
	switch (fault) {
	case FAULT_SPLIT:
		split(sim);
		return true;
	case FAULT_COROSYNC:
		if (!node->powered || node->corosync_stopped)
			return false;
		trace(sim, "n%u: corosync stops", node->id);
		node->corosync_stopped = true;
		cpg_network_changed(sim);
		return true;
	case FAULT_POWER:
		if (!node->powered)
			return false;
		fault_power_off(sim, node);
		return true;
	case FAULT_KILL:
		if (!node->process)
			return false;
		fault_kill(sim, node);
		return true;
	case FAULT_BELAYD:
		if (!node_runs(node))
			return false;
		trace(sim, "n%u: belayd stops", node->id);
		node->stopped = true;
		return true;
	case FAULT_LEAVE:
		/* Who has not said yet what it has active must not be thought to have nothing. */
		if (!node_runs(node) || node->quitting || (node->adopting && volume_any(sim, node)))
			return false;
		ask_to_leave(sim, node);
		return true;
	case FAULT_BUSY:
		trace(sim, "n%u: CPG says TRY_AGAIN", node->id);
		node->busy_until_us = sim->now_us + random_below(&sim->random, 10000);
		return false;
	case FAULT_SLOW:
		node->slow = true;
		return true;
	case FAULT_COUNT:
		break;
	}
	assert(false && "no such fault");
	return false;
}

void fault_strike(struct sim *sim)
{
	uint32_t id = random_below(&sim->random, sim->nodes) + 1;
	/* Those that break rings come more often. */
	enum fault fault = (enum fault)random_below(&sim->random, random_chance(&sim->random, 50) ? FAULT_KILL :
						    FAULT_COUNT);

	if (sim->stage != STAGE_CHAOS)
		return;
	if (fault == FAULT_SPLIT || fault == FAULT_COROSYNC || fault == FAULT_POWER)
		crowd(sim);
	if (sim_failed(sim) || !strike(sim, &sim->node[id], fault))
		return;
	/* Most faults pass; some last until everything is healed. */
	if (random_chance(&sim->random, 70))
		sim_due(sim, random_below(&sim->random, 40000), DUE_REPAIR, id, fault);
}

void fault_repair(struct sim *sim, uint32_t id, uint32_t what)
{
	struct node *node = &sim->node[id];

	switch ((enum fault)what) {
	case FAULT_SPLIT:
		trace(sim, "the network is whole");
		for (uint32_t i = 1; i <= sim->nodes; i++)
			sim->node[i].component = 0;
		cpg_network_changed(sim);
		break;
	case FAULT_COROSYNC:
		if (!node->corosync_stopped)
			break;
		trace(sim, "n%u: corosync goes on", id);
		node->corosync_stopped = false;
		cpg_network_changed(sim);
		cpg_kick(sim, node);
		break;
	case FAULT_POWER:
		if (!node->powered && !(sim->doomed & bit(id)))
			boot(sim, node);
		break;
	case FAULT_KILL:
	case FAULT_LEAVE:
		if (node->powered && !node->process && !(sim->doomed & bit(id)))
			node_start(sim, node);
		break;
	case FAULT_BELAYD:
		if (!node->stopped)
			break;
		trace(sim, "n%u: belayd goes on", id);
		node->stopped = false;
		node_wake(sim, node);
		break;
	case FAULT_SLOW:
		node->slow = false;
		break;
	case FAULT_BUSY:
	case FAULT_COUNT:
		assert(false && "nothing to repair");
	}
}

/* ---- fencing ---- */

static bool life_over(const struct sim *sim, uint32_t victim, uint64_t incarnation)
{
	const struct node *v = &sim->node[victim];

	return !belief_any(sim, victim, incarnation) && !volume_any(sim, v) &&
	       !(v->incarnation <= incarnation && (v->process || ipc_may_believe(v)));
}

/* Would a fencing device obey this node? */
static bool may_fence(const struct sim *sim, const struct node *node)
{
	if (!node->ring || node->ring->broken || node->corosync_stopped)
		return false;
	return cpg_quorate(sim, node);
}

void fault_fence(struct sim *sim, uint32_t id, uint32_t victim)
{
	struct node *node = &sim->node[id];
	struct belay_event event = { .type = BELAY_EVENT_FENCE };
	struct belay_node_info info;
	int r;

	if (!node_runs(node) || !node_info(node, victim, &info) || info.standing == BELAY_NODE_MEMBER ||
	    (info.standing == BELAY_NODE_CLOSED && info.volumes == 0))
		return;
	if (!life_over(sim, victim, info.incarnation)) {
		if (sim->stage == STAGE_CHAOS && may_fence(sim, node) && sim->node[victim].powered) {
			trace(sim, "n%u has n%u fenced", id, victim);
			fault_power_off(sim, &sim->node[victim]);
			if (random_chance(&sim->random, 60))
				sim_due(sim, random_below(&sim->random, 20000), DUE_REPAIR, victim, FAULT_POWER);
		}
		if (sim->stage == STAGE_CHAOS)
			sim_due(sim, 1 + random_below(&sim->random, 5000), DUE_FENCE, id, victim);
		return;
	}
	sim->tally.fences++;
	event.fence.node = victim;
	r = node_step(sim, node, &event);
	if (r != 0 && r != -EAGAIN && r != -ENOENT && r != -EBUSY)
		sim_fail(sim, "n%u refuses FENCE: %d", id, r);
	node_end_turn(sim, node);
	if (r == -EAGAIN && sim->stage == STAGE_CHAOS)
		sim_due(sim, 1000 + random_below(&sim->random, 5000), DUE_FENCE, id, victim);
}

void fault_left(struct sim *sim, struct node *node, uint32_t left)
{
	if (sim->temper.fence_us > 0 && sim->stage == STAGE_CHAOS && random_chance(&sim->random, 60))
		sim_due(sim, 1 + random_below(&sim->random, sim->temper.fence_us), DUE_FENCE, node->id, left);
}

/* ---- beginning and end ---- */

void fault_begin(struct sim *sim)
{
	uint32_t span = sim->acts * sim->temper.think_us / sim->nodes + 20000;

	for (uint32_t i = 1; i <= sim->nodes; i++) {
		sim->node[i].component = 0;
		if (random_chance(&sim->random, 85))
			boot(sim, &sim->node[i]);
		else
			sim_due(sim, random_below(&sim->random, span), DUE_REPAIR, i, FAULT_POWER);
	}
	for (uint32_t i = 0; i < sim->temper.faults; i++)
		sim_due(sim, 3000 + random_below(&sim->random, span), DUE_FAULT, 0, 0);
}

/* One node may stay off for good, if the others can do without it. */
static void doom(struct sim *sim)
{
	uint32_t id = random_below(&sim->random, sim->nodes) + 1;
	const struct node *other = &sim->node[3 - (id < 3 ? id : 1)];

	if (!random_chance(&sim->random, 25))
		return;
	if (sim->nodes == 2 && !(other->powered && other->quorate && !other->corosync_stopped))
		return;
	sim->doomed = bit(id);
	if (sim->node[id].powered)
		fault_power_off(sim, &sim->node[id]);
}

void fault_heal(struct sim *sim)
{
	doom(sim);
	for (uint32_t i = 1; i <= sim->nodes; i++) {
		struct node *node = &sim->node[i];

		node->component = 0;
		node->slow = false;
		fault_repair(sim, i, FAULT_BELAYD);
		fault_repair(sim, i, FAULT_COROSYNC);
		fault_repair(sim, i, FAULT_POWER);
	}
	cpg_network_changed(sim);
}

/* While healing: who is down is started, who stays down is fenced. */
void fault_mend(struct sim *sim, struct node *node)
{
	fault_repair(sim, node->id, FAULT_KILL);
	for (uint32_t v = 1; v <= sim->nodes; v++)
		if (sim->doomed & bit(v))
			fault_fence(sim, node->id, v);
}

bool fault_all_well(const struct sim *sim)
{
	for (uint32_t i = 1; i <= sim->nodes; i++) {
		const struct node *node = &sim->node[i];

		if (sim->doomed & bit(i))
			continue;
		if (!node_runs(node) || !node->stats.synced || node->stats.frozen || node->quitting)
			return false;
		/* The last releases have arrived everywhere. */
		if (node->stats.locks || node->stats.waiters_replicated || node->stats.requests)
			return false;
	}
	return true;
}
