/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Datagrams between nodes, beside the group: lost, late, twice, out of order, and
 * perhaps by another way than the one that corosync has lost.
 */
#include "tests/sim/sim.h"

struct datagram {
	struct belay_hint hint;
	uint32_t from;
};

void hint_send(struct sim *sim, struct node *node, const struct belay_action *action)
{
	struct datagram datagram = { *action->hint, node->id };
	uint32_t copies = 1, index = (uint32_t)sim->hints.count;

	sim->tally.hints_sent++;
	if (random_chance(&sim->random, sim->temper.hint_loss_percent))
		copies = 0;
	else if (random_chance(&sim->random, sim->temper.hint_twice_percent))
		copies = 2;
	if (copies == 0)
		return;
	if (sim->options.wire)
		codec_hint_trip(sim, &datagram.hint, action->node);
	(void)vector_push(&sim->hints, sizeof(datagram), &datagram);
	while (copies-- > 0)
		sim_due(sim, 1 + random_below(&sim->random, sim->temper.hint_us), DUE_HINT, action->node, index);
}

void hint_arrive(struct sim *sim, struct node *node, uint32_t index)
{
	const struct datagram *datagram = (struct datagram *)sim->hints.data + index;
	const struct belay_hint hint = datagram->hint;
	const struct node *from = &sim->node[datagram->from];
	struct belay_event event = { .type = BELAY_EVENT_HINT, .hint = &hint };

	if (!node_runs(node))
		return;
	if (from->component != node->component && !sim->temper.hint_leaks)
		return;
	sim->tally.hints_arrived++;
	if (node_step(sim, node, &event) < 0)
		sim_fail(sim, "n%u refuses a hint", node->id);
	if (!sim_failed(sim) && node->process)
		node_end_turn(sim, node);
}
