/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who locks: when an owner begins, and how long it may explain what others are told. */
#include "tests/sim/sim.h"

bool owner_left(const struct node *at, const struct owner *o)
{
	return node_life_left(at, o->id.node, o->incarnation) ||
	       (o->former != 0 && node_life_left(at, o->id.node, o->former));
}

/* May a decision that is still to come rest on this owner? */
static bool owner_matters(const struct sim *sim, const struct owner *o)
{
	if (o->believes)
		return true;
	if (o->gone && sim->now_us < o->void_us + SIM_GONE_US)
		return true;
	for (uint32_t n = 1; n <= sim->nodes; n++) {
		const struct node *node = &sim->node[n];

		if (!node->process)
			continue;
		if (o->gone ? owner_left(node, o) :
			      !node_life_closed(node, o->id.node, o->incarnation))
			return true;
	}
	return false;
}

static void sweep(struct sim *sim)
{
	for (uint32_t i = 0; i < sim->owner_top; i++) {
		struct owner *o = &sim->owner[i];

		if (!o->used || owner_matters(sim, o))
			continue;
		o->used = false;
		for (uint32_t k = 0; k < sim->request_top; k++)
			if (sim->request[k].used && sim->request[k].owner == i)
				sim->request[k].used = false;
	}
	while (sim->request_top > 0 && !sim->request[sim->request_top - 1].used)
		sim->request_top--;
	while (sim->owner_top > 0 && !sim->owner[sim->owner_top - 1].used)
		sim->owner_top--;
}

uint32_t owner_new(struct sim *sim, struct node *node, uint32_t client, uint64_t key, enum belay_kind kind)
{
	uint32_t i = 0;

	if (sim->owner_top > SIM_OWNERS / 16)
		sweep(sim);
	while (i < SIM_OWNERS && sim->owner[i].used)
		i++;
	if (i == SIM_OWNERS)
		return SIM_NONE;
	sim->owner[i] = (struct owner){
		.used = true, .believes = true, .serial = ++sim->owner_serial,
		.id = { .node = node->id, .client = client, .key = key, .pid = 100 * node->id + client, .kind = kind },
		.incarnation = node->incarnation, .process = node->process,
	};
	if (i + 1 > sim->owner_top)
		sim->owner_top = i + 1;
	return i;
}
