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

struct client *client_new(struct sim *sim, struct node *node, uint32_t index)
{
	struct client *client = &node->client[index];

	assert(!client->used);
	*client = (struct client){
		.used = true, .id = ++node->client_last, .sim = sim, .node = node,
		.serial = ++sim->client_serial, .process = node->process,
	};
	client->borrows = random_chance(&sim->random, sim->temper.borrow_percent);
	if (client->borrows)
		client->memory = loan_memory(sim, node, index);
	for (uint32_t i = 0; i < SIM_CLIENT_OWNERS; i++)
		client->owner[i] = SIM_NONE;
	return client;
}

int client_lock(struct sim *sim, struct client *client, uint32_t owner, const struct request *what)
{
	struct call call = { .type = what->test ? CALL_TEST : CALL_LOCK, .what = *what };

	call.what.owner = owner;
	return loan_call(sim, client, &call);
}

void client_unlock(struct sim *sim, struct client *client, uint32_t owner, uint32_t key, uint32_t first, uint32_t last)
{
	const struct call call = {
		.type = CALL_UNLOCK, .what = { .owner = owner, .key = key, .first = first, .last = last },
	};

	(void)loan_call(sim, client, &call);
}

void client_cancel(struct sim *sim, struct client *client, struct request *request)
{
	const struct letter letter = { .type = LETTER_CANCEL, .cookie = request->cookie };

	request->cancelled = true;
	if (client->process == client->node->process)
		(void)ipc_send(sim, client, &letter);
}

/* It ends at whatever point it is; belayd may see it later. */
void client_die(struct sim *sim, struct client *client, uint32_t known_us)
{
	struct node *node = client->node;

	if (sim->temper.ipc_us == 0) {
		ipc_client_gone(sim, client);
		return;
	}
	sim->tally.client_kills++;
	trace(sim, "n%u c%u is killed%s", node->id, client->id, client->in_call ? " in a call" : "");
	client->dead = true;
	belief_client_dies(sim, node, client->id);
	sim_due(sim, 1 + random_below(&sim->random, known_us), DUE_CLIENT_GONE, node->id, client->serial);
}

/* From now on it believes in nothing, and its memory is anybody's guess; it will end soon. */
static void client_go_mad(struct sim *sim, struct client *client)
{
	client_die(sim, client, 20000);
	sim->tally.mad++;
	client->mad = true;
	belief_client_mad(sim, client);
	for (uint32_t n = random_between(&sim->random, 1, 6); n > 0; n--)
		loan_scribble(sim, client);
}

/* Can it do anything at all? */
static bool client_free(const struct client *client)
{
	return client->used && !client->dead && !client->stopped && !client->in_call;
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

static uint32_t random_owner(struct sim *sim, struct client *client)
{
	uint32_t i = random_below(&sim->random, client->borrows ? SIM_CLIENT_OWNERS : 2);
	enum belay_kind kind;

	if (client->owner[i] == SIM_NONE && client->process == client->node->process) {
		kind = random_kind(sim);
		/* A slot knows one process, and open files. */
		if (client->borrows && i > 0 && kind == BELAY_KIND_POSIX)
			kind = BELAY_KIND_OFD;
		client->owner[i] = owner_new(sim, client->node, client->id, i, kind);
	}
	return client->owner[i];
}

/* Where this client works, if all stay apart: a block of the file, or every so manieth piece. */
static uint32_t own_atom(struct sim *sim, const struct client *client)
{
	uint32_t part = client->node->id - 1, n = sim->temper.atoms, parts = sim->nodes < n ? sim->nodes : n;
	uint32_t size = n / parts;

	part %= parts;
	return sim->temper.apart == 1 ? part * size + random_below(&sim->random, size) :
					part + parts * random_below(&sim->random, size);
}

static void random_atoms(struct sim *sim, const struct client *client, enum belay_kind kind, uint32_t *ret_first,
			 uint32_t *ret_last)
{
	uint32_t n = sim->temper.atoms, a = random_below(&sim->random, n), b;
	bool own = sim->temper.apart == 1 || sim->temper.apart == 2;

	if (own && random_chance(&sim->random, 95))
		a = own_atom(sim, client);
	b = a;
	if (sim->temper.apart == 1 && random_chance(&sim->random, 95))
		b = own_atom(sim, client);
	else if (random_chance(&sim->random, own ? 2 : sim->temper.wide_percent))
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

static void random_lock(struct sim *sim, struct client *client, uint32_t owner)
{
	const struct temper *t = &sim->temper;
	const struct owner *o = &sim->owner[owner];
	struct request what = { 0 };

	/* Skewed: the first resource is the hot one. */
	what.key = random_below(&sim->random, 1 + random_below(&sim->random, t->keys));
	if (t->apart == 3 && random_chance(&sim->random, 95))
		what.key = client->node->id % t->keys;
	if (t->volume_percent > 0 && o->id.kind == BELAY_KIND_OFD && random_chance(&sim->random, t->volume_percent) &&
	    volume_open(sim, client->node))
		what.key = SIM_FILES + random_below(&sim->random, t->volumes);
	what.mode = random_chance(&sim->random, t->exclusive_percent) ? BELAY_MODE_EX : BELAY_MODE_SH;
	what.wait = random_chance(&sim->random, t->wait_percent);
	what.test = !what.wait && random_chance(&sim->random, t->test_percent * 3);
	random_atoms(sim, client, o->id.kind, &what.first, &what.last);
	if (sim_is_volume(what.key)) {
		what.first = 0;
		what.last = SIM_ATOMS - 1;
	}
	/* flock(2) converts by giving up and asking anew. */
	if (o->id.kind == BELAY_KIND_FLOCK && !what.test)
		client_unlock(sim, client, owner, what.key, what.first, what.last);
	if (client_free(client))
		(void)client_lock(sim, client, owner, &what);
}

static void random_unlock(struct sim *sim, struct client *client, uint32_t owner)
{
	const struct owner *o = &sim->owner[owner];
	uint32_t key = held_key(o, random_below(&sim->random, SIM_FILES)), first, last;

	/* Any range may be unlocked, held or not. */
	if (key == SIM_NONE || random_chance(&sim->random, 5))
		key = random_below(&sim->random, sim->temper.keys);
	random_atoms(sim, client, o->id.kind, &first, &last);
	if (random_chance(&sim->random, 50) || sim_is_volume(key)) {
		first = 0;
		last = SIM_ATOMS - 1;
	}
	client_unlock(sim, client, owner, key, first, last);
}

static struct request *request_of(struct sim *sim, uint32_t owner)
{
	for (uint32_t i = 0; i < sim->request_top; i++)
		if (sim->request[i].used && !sim->request[i].orphan && sim->request[i].owner == owner)
			return &sim->request[i];
	return NULL;
}

static void owner_act(struct sim *sim, struct client *client, uint32_t owner)
{
	const struct owner *o = &sim->owner[owner];
	struct request *waiting = request_of(sim, owner);
	uint32_t held = held_key(o, 0);

	if (waiting && random_chance(&sim->random, sim->temper.cancel_percent)) {
		if (!waiting->cancelled)
			client_cancel(sim, client, waiting);
		return;
	}
	/* A thread of the process acts while another waits. */
	if (waiting && !random_chance(&sim->random, sim->temper.threads_percent))
		return;
	if (held != SIM_NONE && random_chance(&sim->random, 60))
		random_unlock(sim, client, owner);
	else
		random_lock(sim, client, owner);
}

static const struct loan *any_loan(const struct client *client, uint32_t start)
{
	for (uint32_t i = 0; i < SIM_SLOTS; i++)
		if (client->memory->loan[(start + i) % SIM_SLOTS].in_use)
			return &client->memory->loan[(start + i) % SIM_SLOTS];
	return NULL;
}

/* Many calls in no time, as only a client with a loan can make them. */
static void burst(struct sim *sim, struct client *client)
{
	uint32_t n = random_below(&sim->random, random_chance(&sim->random, 3) ? 300 : sim->temper.calls), owner, i;
	struct request what = { .wait = random_chance(&sim->random, 50) };
	const struct loan *loan;

	while (n-- > 0 && client_free(client) && !sim_failed(sim)) {
		i = random_below(&sim->random, SIM_CLIENT_OWNERS);
		owner = client->owner[i];
		loan = any_loan(client, random_below(&sim->random, SIM_SLOTS));
		if (!loan)
			return;
		if (owner == SIM_NONE || request_of(sim, owner))
			continue;
		what.key = loan->key;
		what.mode = loan->slot.terms.mode == BELAY_MODE_EX &&
			    random_chance(&sim->random, sim->temper.exclusive_percent) ? BELAY_MODE_EX : BELAY_MODE_SH;
		random_atoms(sim, client, sim->owner[owner].id.kind, &what.first, &what.last);
		if (held_key(&sim->owner[owner], loan->key) != SIM_NONE && random_chance(&sim->random, 60))
			client_unlock(sim, client, owner, what.key, what.first, what.last);
		else
			(void)client_lock(sim, client, owner, &what);
	}
}

/* What it has to do between two waits. */
static void client_work(struct sim *sim, struct client *client)
{
	uint32_t owner = random_owner(sim, client);

	if (owner != SIM_NONE)
		owner_act(sim, client, owner);
	if (client->borrows)
		burst(sim, client);
}

/* An answer has come: some are busy, and go on at once. */
void client_answered(struct sim *sim, struct client *client)
{
	/* An unlock is not answered. */
	for (uint32_t n = 0; n < 2 && !sim_failed(sim) && client_free(client); n++)
		if (sim->stage == STAGE_CHAOS && sim->acts > 0 && !client->node->quitting &&
		    random_chance(&sim->random, sim->temper.busy_percent))
			client_work(sim, client);
}

void client_intrude(struct sim *sim, const struct client *client)
{
	uint32_t i = random_below(&sim->random, sim->nodes) + 1, owner;
	struct node *node = random_chance(&sim->random, 60) ? client->node : &sim->node[i];
	struct client *other = &node->client[random_below(&sim->random, sim->temper.clients)];
	struct request what = { .key = client->call.loan->key, .wait = true, .mode = BELAY_MODE_EX };

	if (sim->stage != STAGE_CHAOS || !client_free(other) || other->process != node->process || node->quitting)
		return;
	owner = random_owner(sim, other);
	if (owner == SIM_NONE || request_of(sim, owner))
		return;
	random_atoms(sim, other, sim->owner[owner].id.kind, &what.first, &what.last);
	(void)client_lock(sim, other, owner, &what);
	if (node_runs(node) && !sim_failed(sim))
		node_end_turn(sim, node);
}

void client_act(struct sim *sim, struct node *node)
{
	uint32_t i = random_below(&sim->random, sim->temper.clients);
	struct client *client = &node->client[i];

	if (!client->used && node_runs(node))
		(void)client_new(sim, node, i);
	if (client->used && client->mad)
		loan_scribble(sim, client);
	if (!client->used || client->dead)
		return;
	if (random_chance(&sim->random, sim->temper.die_percent)) {
		client_die(sim, client, 1 + 2 * sim->temper.ipc_us);
	} else if (client->borrows && any_loan(client, 0) && random_chance(&sim->random, sim->temper.mad_percent)) {
		client_go_mad(sim, client);
	} else if (client_free(client)) {
		client_work(sim, client);
		if (client_free(client) && random_chance(&sim->random, sim->temper.step_percent))
			loan_stop(sim, client, 1 + random_below(&sim->random, 5000));
	}
	if (node_runs(node) && !sim_failed(sim))
		node_end_turn(sim, node);
}

static bool let_go(struct sim *sim, struct client *client, uint32_t owner, bool also_waiting)
{
	struct owner *o = &sim->owner[owner];

	if (!o->used || !o->believes || (o->pending > 0 && !also_waiting))
		return true;
	for (uint32_t k = 0; k < SIM_KEYS; k++) {
		if (!o->dirty[k])
			continue;
		if (!client_free(client))
			return false;
		client_unlock(sim, client, owner, k, 0, SIM_ATOMS - 1);
		o->dirty[k] = o->pending > 0;
	}
	return true;
}

/* Owners give back what they hold: those that do not wait, or all; then loans go as well. */
void client_let_go(struct sim *sim, struct node *node, bool also_waiting)
{
	const struct belay_range all = sim_range(0, SIM_ATOMS - 1);

	for (uint32_t i = 0; i < SIM_CLIENTS; i++) {
		struct client *client = &node->client[i];

		if (!client->used || client->process != node->process)
			continue;
		for (uint32_t k = 0; k < SIM_CLIENT_OWNERS; k++)
			if (client->owner[k] != SIM_NONE && client_free(client))
				(void)let_go(sim, client, client->owner[k], also_waiting);
		for (uint32_t key = 0; also_waiting && key < SIM_KEYS && client_free(client); key++)
			loan_give_up(sim, client, key, &all);
	}
	node_end_turn(sim, node);
}
