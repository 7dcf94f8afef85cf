/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a node locks for itself: a volume that is active there, whoever asked for it.
 * It stays so through every end of belayd, until it is unlocked or the machine
 * stops. This file is what belayd does about such locks, and what
 * belay-lvmlockd does when it has found belayd: it says again what is active,
 * gives up what is not, and asks for nothing new before everybody has done so.
 */
#include <assert.h>
#include <errno.h>

#include "tests/sim/sim.h"

static enum hold held(const struct sim *sim, const struct volume *v, uint32_t key)
{
	return v->owner == SIM_NONE ? HOLD_NONE : (enum hold)sim->owner[v->owner].held[key][0];
}

bool volume_any(const struct sim *sim, const struct node *node)
{
	for (uint32_t i = 0; i < SIM_VOLUMES; i++)
		if (held(sim, &node->volume[i], SIM_FILES + i) != HOLD_NONE)
			return true;
	return false;
}

static struct request *pending(struct sim *sim, const struct volume *v)
{
	for (uint32_t i = 0; v->owner != SIM_NONE && i < sim->request_top; i++)
		if (sim->request[i].used && !sim->request[i].orphan && sim->request[i].owner == v->owner)
			return &sim->request[i];
	return NULL;
}

bool volume_open(const struct sim *sim, const struct node *node)
{
	struct belay_node_info info;

	if (!node_runs(node) || node->quitting || node->adopting || !node->stats.synced || node->stats.frozen)
		return false;
	for (uint32_t i = 0; belay_core_node(node->core, i, &info); i++)
		if (info.standing != BELAY_NODE_CLOSED && sim->node[info.node].adopted != node->start)
			return false;
	return true;
}

/* ---- what belayd does ---- */

int volume_lock(struct sim *sim, struct node *node, const struct request *what)
{
	struct volume *v = &node->volume[what->key - SIM_FILES];
	struct belay_event event = { .type = BELAY_EVENT_LOCK };
	struct request ask = *what, *q;
	int r;

	if (v->owner == SIM_NONE)
		v->owner = owner_new(sim, node, BELAY_CLIENT_NODE, 0, BELAY_KIND_NODE);
	ask.owner = v->owner;
	ask.first = 0;
	ask.last = SIM_ATOMS - 1;
	ask.cookie = ++node->volume_cookie;
	q = v->owner == SIM_NONE ? NULL : belief_invoke(sim, &ask);
	if (!q)
		return -ENOLCK;
	/* What was to be said of it before is void. */
	v->unlock &= ask.test;
	q->number = ++node->request_last;
	q->taken = true;
	q->taken_us = sim->now_us;
	sim_make_key(ask.key, &event.lock.key);
	event.lock.range = sim_range(ask.first, ask.last);
	event.lock.owner = sim->owner[ask.owner].id;
	event.lock.owner.node = 0;
	event.lock.mode = ask.mode;
	event.lock.wait = ask.wait;
	event.lock.test = ask.test;
	event.lock.cookie = ask.cookie;
	r = node_step(sim, node, &event);
	if (r < 0 && !sim_failed(sim)) {
		node->request_last--;
		belief_refused(sim, q);
		if (r != -ESHUTDOWN || !node->quitting)
			sim_fail(sim, "n%u refuses to be asked for volume r%u: %d", node->id, ask.key, r);
	}
	return r;
}

static void say_unlock(struct sim *sim, struct node *node, uint32_t key)
{
	struct volume *v = &node->volume[key - SIM_FILES];
	struct belay_event event = { .type = BELAY_EVENT_UNLOCK };

	v->unlock = node->stats.frozen;
	if (v->unlock)
		sim->tally.volumes_late++;
	else
		belief_unlock_taken(sim, v->owner, key, 0, SIM_ATOMS - 1);
	sim_make_key(key, &event.lock.key);
	event.lock.range = sim_range(0, SIM_ATOMS - 1);
	event.lock.owner = sim->owner[v->owner].id;
	event.lock.owner.node = 0;
	if (node_step(sim, node, &event) < 0 && !sim_failed(sim))
		sim_fail(sim, "n%u refuses to unlock volume r%u", node->id, key);
}

void volume_unlock(struct sim *sim, struct node *node, uint32_t key)
{
	struct volume *v = &node->volume[key - SIM_FILES];

	if (v->owner == SIM_NONE)
		return;
	trace(sim, "n%u has r%u active no more", node->id, key);
	belief_unlock(sim, v->owner, key, 0, SIM_ATOMS - 1);
	/* Without belayd nobody is told: the next one is, by adoption. */
	v->unlock = node->process != 0;
	if (node_runs(node))
		say_unlock(sim, node, key);
}

static void cancel(struct sim *sim, struct node *node, const struct request *q)
{
	struct belay_event event = { .type = BELAY_EVENT_CANCEL };
	int r;

	event.client.client = sim->owner[q->owner].id.client;
	event.client.cookie = q->cookie;
	r = node_step(sim, node, &event);
	if (r < 0 && !q->orphan && !sim_failed(sim))
		sim_fail(sim, "n%u does not know a request for a volume that it has not answered: %d", node->id, r);
}

bool volume_cancel(struct sim *sim, struct node *node, uint32_t key)
{
	struct request *q = pending(sim, &node->volume[key - SIM_FILES]);

	if (!q)
		return false;
	q->cancelled = true;
	cancel(sim, node, q);
	return true;
}

void volume_answered(struct sim *sim, struct node *node, const struct belay_action *action)
{
	struct request *q = request_find(sim, node->id, node->process, BELAY_CLIENT_NODE, action->cookie);

	if (q && q->again && !q->orphan && !q->cancelled && action->result != 0 && action->result != -EIO)
		sim_fail(sim, "n%u has r%u active, and belayd refuses to lock it again: %d", node->id, q->key,
			 action->result);
	if (q && !q->orphan) {
		sim->tally.volume_grants += action->result == 0 && !q->test;
		/* It may be another life's before it is heard of. */
		node->volume[q->key - SIM_FILES].again &= action->result == 0 || !q->again;
	}
	belief_decided(sim, node, action);
	if (!sim_failed(sim) && q && !q->orphan)
		belief_told(sim, q);
}

/*
 * The table may begin anew, and then who waits must not be there before those who
 * have something: in a new life belayd ends the connections of those who lock volumes.
 */
static void nobody_waits(struct sim *sim, struct node *node)
{
	for (uint32_t i = 0; i < sim->request_top && !sim_failed(sim); i++) {
		struct request *q = &sim->request[i];
		const struct owner *o = &sim->owner[q->owner];

		if (!q->used || q->decided || !q->taken || !sim_is_volume(q->key) || o->id.node != node->id ||
		    o->process != node->process || o->gone)
			continue;
		belief_given_up(q);
		cancel(sim, node, q);
	}
}

void volume_stepped(struct sim *sim, struct node *node)
{
	bool none = node->volumes_void;

	node->volumes_void = false;
	if (none)
		nobody_waits(sim, node);
	for (uint32_t i = 0; i < SIM_VOLUMES && node_runs(node) && !node->stats.frozen && !sim_failed(sim); i++)
		if (node->volume[i].unlock)
			say_unlock(sim, node, SIM_FILES + i);
}

/* ---- what befalls it ---- */

static void adopt_anew(struct node *node)
{
	node->adopting = true;
	for (uint32_t i = 0; i < SIM_VOLUMES; i++)
		node->volume[i].again = false;
}

void volume_new_life(struct sim *sim, struct node *node)
{
	belief_unsettled(sim, node);
	node->volumes_void = true;
	adopt_anew(node);
}

void volume_process_begins(struct sim *sim, struct node *node)
{
	for (uint32_t i = 0; i < SIM_VOLUMES; i++) {
		struct owner *o;

		if (node->volume[i].owner == SIM_NONE)
			continue;
		o = &sim->owner[node->volume[i].owner];
		o->process = node->process;
		o->former = o->incarnation;
		o->incarnation = node->incarnation;
	}
	adopt_anew(node);
}

void volume_process_ends(struct sim *sim, struct node *node)
{
	/* The next belayd counts requests anew. */
	for (uint32_t i = 0; i < SIM_VOLUMES; i++) {
		if (node->volume[i].owner != SIM_NONE)
			belief_forget_requests(sim, node->volume[i].owner);
		node->volume[i].unlock = false;
	}
	node->volumes_void = false;
	belief_unsettled(sim, node);
}

void volume_host_ends(struct sim *sim, struct node *node)
{
	volume_process_ends(sim, node);
	belief_host_ends(sim, node);
}

/* ---- what belay-lvmlockd does ---- */

static void forget(struct sim *sim, struct node *node)
{
	struct belay_cursor cursor = { 0 };
	struct belay_lock_info info;
	bool listed[SIM_VOLUMES] = { false };

	while (belay_core_locks_next(node->core, &cursor, &info) == 1)
		if (!info.waiting && info.owner.node == node->id && info.owner.kind == BELAY_KIND_NODE)
			listed[sim_key(&info.key) - SIM_FILES] = true;
	for (uint32_t i = 0; i < SIM_VOLUMES && !sim_failed(sim); i++) {
		uint32_t key = SIM_FILES + i;
		struct volume *v = &node->volume[i];

		if (held(sim, v, key) != HOLD_NONE)
			continue;
		if (v->owner == SIM_NONE && listed[i])
			sim_fail(sim, "n%u is said to have volume r%u, for which it never asked", node->id, key);
		else if (listed[i])
			say_unlock(sim, node, key);
		else if (v->owner != SIM_NONE)
			belief_unlock_taken(sim, v->owner, key, 0, SIM_ATOMS - 1);
	}
}

void volume_adopt(struct sim *sim, struct node *node)
{
	bool waits = !node->stats.synced || node->stats.frozen;

	for (uint32_t i = 0; i < SIM_VOLUMES && !sim_failed(sim); i++) {
		struct request what = { .key = SIM_FILES + i, .again = true };
		struct volume *v = &node->volume[i];
		enum hold hold = held(sim, v, what.key);

		if (hold != HOLD_NONE && !v->again && !pending(sim, v)) {
			what.mode = hold == HOLD_EX ? BELAY_MODE_EX : BELAY_MODE_SH;
			sim->tally.volumes_again++;
			v->again = true;
			if (volume_lock(sim, node, &what) < 0)
				v->again = false;
		}
		waits |= pending(sim, v) || (hold != HOLD_NONE && !v->again);
	}
	if (waits || sim_failed(sim))
		return;
	forget(sim, node);
	node->adopting = false;
	node->adopted = node->start;
	node->adopted_us = sim->now_us;
}

/* ---- at random ---- */

static void ask(struct sim *sim, struct node *node, uint32_t key)
{
	const struct temper *t = &sim->temper;
	struct request what = { .key = key };

	what.mode = random_chance(&sim->random, t->exclusive_percent) ? BELAY_MODE_EX : BELAY_MODE_SH;
	what.wait = random_chance(&sim->random, t->wait_percent);
	what.test = !what.wait && random_chance(&sim->random, t->test_percent * 3);
	(void)volume_lock(sim, node, &what);
}

void volume_act(struct sim *sim, struct node *node)
{
	uint32_t i = random_below(&sim->random, sim->temper.volumes), key = SIM_FILES + i;
	const struct volume *v = &node->volume[i];
	const struct request *q = pending(sim, v);
	bool active = held(sim, v, key) != HOLD_NONE;

	if (node_runs(node) && node->adopting && random_chance(&sim->random, 70))
		volume_adopt(sim, node);
	else if (q && q->wait && !q->cancelled && node_runs(node) &&
		 random_chance(&sim->random, 2 * sim->temper.cancel_percent))
		(void)volume_cancel(sim, node, key);
	else if (!q && active && random_chance(&sim->random, 30))
		volume_unlock(sim, node, key);
	else if (!q && volume_open(sim, node))
		ask(sim, node, key);
	if (node_runs(node) && !sim_failed(sim))
		node_end_turn(sim, node);
}

void volume_let_go(struct sim *sim, struct node *node, bool all)
{
	if (!node_runs(node))
		return;
	if (node->adopting)
		volume_adopt(sim, node);
	for (uint32_t i = 0; all && i < SIM_VOLUMES && !sim_failed(sim); i++) {
		uint32_t key = SIM_FILES + i;
		const struct volume *v = &node->volume[i];
		const struct request *q = pending(sim, v);

		if (q && !q->cancelled)
			(void)volume_cancel(sim, node, key);
		else if (!q && held(sim, v, key) != HOLD_NONE)
			volume_unlock(sim, node, key);
	}
	if (!sim_failed(sim))
		node_end_turn(sim, node);
}
