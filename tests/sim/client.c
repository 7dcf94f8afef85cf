/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Clients: what programs do to a lock manager, at random. */
#include <assert.h>
#include <errno.h>

#include "tests/sim/sim.h"

struct client *client_find(struct node *node, uint32_t id)
{
	for (uint32_t i = 0; i < SIM_CLIENTS; i++)
		if (node->client[i].used && node->client[i].id == id)
			return &node->client[i];
	return NULL;
}

struct client *client_new(struct sim *sim, struct node *node)
{
	struct client *client = NULL;

	for (uint32_t i = 0; i < SIM_CLIENTS && !client; i++)
		if (!node->client[i].used)
			client = &node->client[i];
	if (!client)
		return NULL;
	*client = (struct client){ .used = true, .id = ++node->client_last };
	for (uint32_t i = 0; i < SIM_CLIENT_OWNERS; i++)
		client->owner[i] = SIM_NONE;
	(void)sim;
	return client;
}

static void lock_event(const struct sim *sim, uint32_t owner, uint32_t key, uint32_t first, uint32_t last,
		       struct belay_event *ret_event)
{
	*ret_event = (struct belay_event){ .type = BELAY_EVENT_LOCK };
	sim_make_key(key, &ret_event->lock.key);
	ret_event->lock.range = sim_range(first, last);
	ret_event->lock.owner = sim->owner[owner].id;
	/* The core knows on which node it runs. */
	ret_event->lock.owner.node = 0;
}

int client_lock(struct sim *sim, struct node *node, struct client *client, uint32_t owner,
		const struct request *what)
{
	struct belay_event event;
	struct request *q, ask = *what;
	int r;

	ask.owner = owner;
	ask.cookie = ++client->cookie;
	ask.number = ++node->request_last;
	q = belief_invoke(sim, &ask);
	if (!q) {
		node->request_last--;
		return -ENOLCK;
	}
	lock_event(sim, owner, ask.key, ask.first, ask.last, &event);
	event.lock.mode = ask.mode;
	event.lock.wait = ask.wait;
	event.lock.test = ask.test;
	event.lock.cookie = ask.cookie;
	sim->tally.waits += ask.wait;
	r = node_step(sim, node, &event);
	if (r < 0 && !sim_failed(sim)) {
		node->request_last--;
		sim->owner[owner].pending--;
		request_drop(sim, q);
		if (r != -ENOLCK || !sim->temper.small_limits)
			sim_fail(sim, "n%u refuses a valid LOCK: %d", node->id, r);
	}
	return r;
}

void client_unlock(struct sim *sim, struct node *node, uint32_t owner, uint32_t key, uint32_t first, uint32_t last)
{
	struct belay_event event;

	belief_unlock(sim, owner, key, first, last);
	lock_event(sim, owner, key, first, last, &event);
	event.type = BELAY_EVENT_UNLOCK;
	if (node_step(sim, node, &event) < 0)
		sim_fail(sim, "n%u refuses a valid UNLOCK", node->id);
}

int client_cancel(struct sim *sim, struct node *node, struct request *request)
{
	struct belay_event event = { .type = BELAY_EVENT_CANCEL };
	int r;

	request->cancelled = true;
	event.client.client = sim->owner[request->owner].id.client;
	event.client.cookie = request->cookie;
	r = node_step(sim, node, &event);
	if (r < 0)
		sim_fail(sim, "n%u does not know the request it has not answered: CANCEL gives %d", node->id, r);
	return r;
}

void client_die(struct sim *sim, struct node *node, struct client *client)
{
	struct belay_event event = { .type = BELAY_EVENT_CLIENT_GONE };

	event.client.client = client->id;
	client->used = false;
	belief_client_gone(sim, node, event.client.client);
	if (node_step(sim, node, &event) < 0)
		sim_fail(sim, "n%u refuses CLIENT_GONE", node->id);
}

/* ---- at random ---- */

static enum belay_kind random_kind(struct sim *sim)
{
	if (random_chance(&sim->random, sim->temper.ofd_percent))
		return BELAY_KIND_OFD;
	if (random_chance(&sim->random, sim->temper.flock_percent))
		return BELAY_KIND_FLOCK;
	return BELAY_KIND_POSIX;
}

static uint32_t random_owner(struct sim *sim, struct node *node, struct client *client)
{
	uint32_t i = random_below(&sim->random, SIM_CLIENT_OWNERS);

	if (client->owner[i] == SIM_NONE)
		client->owner[i] = owner_new(sim, node, client->id, i, random_kind(sim));
	return client->owner[i];
}

static void random_atoms(struct sim *sim, enum belay_kind kind, uint32_t *ret_first, uint32_t *ret_last)
{
	uint32_t n = sim->temper.atoms, a = random_below(&sim->random, n), b = a;

	if (random_chance(&sim->random, sim->temper.wide_percent))
		b = random_below(&sim->random, n);
	*ret_first = a < b ? a : b;
	*ret_last = a < b ? b : a;
	if (kind == BELAY_KIND_FLOCK) {
		*ret_first = 0;
		*ret_last = SIM_ATOMS - 1;
	}
}

/* Something the owner holds; SIM_NONE if it holds nothing. */
static uint32_t held_key(const struct owner *o, uint32_t start)
{
	for (uint32_t i = 0; i < SIM_KEYS; i++) {
		uint32_t key = (start + i) % SIM_KEYS;

		for (uint32_t a = 0; a < SIM_ATOMS; a++)
			if (o->held[key][a] != HOLD_NONE)
				return key;
	}
	return SIM_NONE;
}

static void random_lock(struct sim *sim, struct node *node, struct client *client, uint32_t owner)
{
	const struct temper *t = &sim->temper;
	const struct owner *o = &sim->owner[owner];
	struct request what = { 0 };

	/* Skewed: the first resource is the hot one. */
	what.key = random_below(&sim->random, 1 + random_below(&sim->random, t->keys));
	what.mode = random_chance(&sim->random, t->exclusive_percent) ? BELAY_MODE_EX : BELAY_MODE_SH;
	what.wait = random_chance(&sim->random, t->wait_percent);
	what.test = !what.wait && random_chance(&sim->random, t->test_percent * 3);
	random_atoms(sim, o->id.kind, &what.first, &what.last);
	/* flock(2) converts by giving up and asking anew. */
	if (o->id.kind == BELAY_KIND_FLOCK && !what.test)
		client_unlock(sim, node, owner, what.key, what.first, what.last);
	(void)client_lock(sim, node, client, owner, &what);
}

static void random_unlock(struct sim *sim, struct node *node, uint32_t owner)
{
	const struct owner *o = &sim->owner[owner];
	uint32_t key = held_key(o, random_below(&sim->random, SIM_KEYS)), first, last;

	/* Any range may be unlocked, held or not. */
	if (key == SIM_NONE || random_chance(&sim->random, 5))
		key = random_below(&sim->random, sim->temper.keys);
	random_atoms(sim, o->id.kind, &first, &last);
	if (random_chance(&sim->random, 50)) {
		first = 0;
		last = SIM_ATOMS - 1;
	}
	client_unlock(sim, node, owner, key, first, last);
}

static struct request *request_of(struct sim *sim, uint32_t owner)
{
	for (uint32_t i = 0; i < sim->request_top; i++)
		if (sim->request[i].used && !sim->request[i].orphan && sim->request[i].owner == owner)
			return &sim->request[i];
	return NULL;
}

static void owner_act(struct sim *sim, struct node *node, struct client *client, uint32_t owner)
{
	const struct owner *o = &sim->owner[owner];
	struct request *waiting = request_of(sim, owner);
	uint32_t held = held_key(o, 0);

	if (waiting && random_chance(&sim->random, sim->temper.cancel_percent)) {
		if (!waiting->cancelled)
			(void)client_cancel(sim, node, waiting);
		return;
	}
	/* A thread of the process acts while another waits. */
	if (waiting && !random_chance(&sim->random, sim->temper.threads_percent))
		return;
	if (held != SIM_NONE && random_chance(&sim->random, 60))
		random_unlock(sim, node, owner);
	else
		random_lock(sim, node, client, owner);
}

void client_act(struct sim *sim, struct node *node)
{
	uint32_t i = random_below(&sim->random, sim->temper.clients), owner;
	struct client *client = &node->client[i];

	if (!client->used)
		client = client_new(sim, node);
	assert(client);
	if (random_chance(&sim->random, sim->temper.die_percent)) {
		client_die(sim, node, client);
	} else {
		owner = random_owner(sim, node, client);
		if (owner != SIM_NONE)
			owner_act(sim, node, client, owner);
	}
	node_end_turn(sim, node);
}

/* Owners give back what they hold: those that do not wait, or all. */
void client_let_go(struct sim *sim, struct node *node, bool also_waiting)
{
	for (uint32_t i = 0; i < sim->owner_top; i++) {
		struct owner *o = &sim->owner[i];

		if (!o->used || !o->believes || o->id.node != node->id || o->incarnation != node->incarnation ||
		    (o->pending > 0 && !also_waiting))
			continue;
		for (uint32_t k = 0; k < SIM_KEYS; k++)
			if (o->dirty[k]) {
				client_unlock(sim, node, i, k, 0, SIM_ATOMS - 1);
				o->dirty[k] = o->pending > 0;
			}
	}
	node_end_turn(sim, node);
}
