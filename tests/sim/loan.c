/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A client with loans, as lib/ is one, with the real slot/commit.c: what it
 * decides by itself, what it sends instead, and where it may be stopped or killed.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/sim/sim.h"

#define MEMORY_BYTES (SLOT_LOGS_AT + SIM_SLOTS * SLOT_LOG_BYTES)
/* No log gets longer than this: slot_commit.c. What a mad client makes belayd read must be the same each time. */
#define LOG_BYTES (256 * sizeof(struct slot_entry))

/* ---- memory ---- */

struct memory *loan_memory(struct sim *sim, struct node *node, uint32_t index)
{
	struct memory *m = sim->memory[node->id][index];
	uint32_t epoch = random_chance(&sim->random, 50) ? 0 : SLOT_EPOCH_MASK - 1;

	if (!m) {
		m = calloc(1, sizeof(*m));
		assert(m);
		m->base = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			       -1, 0);
		assert(m->base != MAP_FAILED);
		sim->memory[node->id][index] = m;
	}
	memset(m->base + SLOT_HEADS_AT, 0, SIM_SLOTS * sizeof(struct slot_head));
	slot_heads_init((struct slot_head *)(void *)(m->base + SLOT_HEADS_AT));
	m->fiber.running = false;
	for (uint32_t i = 0; i < SIM_SLOTS; i++) {
		struct loan *loan = &m->loan[i];
		struct loan old = *loan;

		*loan = (struct loan){ .slot = old.slot, .set = old.set, .index = i, .epoch = epoch };
		loan->head = (struct slot_head *)(void *)(m->base + SLOT_HEADS_AT) + i;
		loan->log = (struct slot_entry *)(void *)(m->base + SLOT_LOGS_AT + i * SLOT_LOG_BYTES);
		memset(loan->log, 0, LOG_BYTES);
		memset(loan->log + SLOT_HALF_ENTRIES, 0, LOG_BYTES);
		loan->slot.head = loan->head;
		loan->client = &node->client[index];
	}
	return m;
}

void loan_memory_free(struct memory *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; i < SIM_SLOTS; i++) {
		slot_ranges_done(&m->loan[i].slot.held);
		slot_ranges_done(&m->loan[i].set);
	}
	fiber_done(&m->fiber);
	munmap(m->base, MEMORY_BYTES);
	free(m);
}

struct loan *loan_find(struct client *client, uint32_t key, enum belay_mode mode, const struct belay_range *range)
{
	for (uint32_t i = 0; client->memory && i < SIM_SLOTS; i++) {
		struct loan *loan = &client->memory->loan[i];

		if (loan->in_use && loan->key == key && slot_covers(&loan->slot, mode, range))
			return loan;
	}
	return NULL;
}

/* ---- stops ---- */

void loan_stop(struct sim *sim, struct client *client, uint64_t for_us)
{
	sim->tally.stops++;
	client->stopped = true;
	if (for_us > 0)
		sim_due(sim, for_us, DUE_CLIENT_GOES_ON, client->node->id, client->serial);
}

/* A moment, or long enough for others to ask for what it has. */
static uint64_t stop_us(struct sim *sim)
{
	uint32_t kind = random_below(&sim->random, 10);

	return 1 + random_below(&sim->random, kind < 5 ? 20 : kind < 9 ? 1000 + 2 * sim->temper.ipc_us : 20000);
}

/* Before each access to shared memory that slot/commit.c makes. */
void loan_step(struct slot_loan *slot)
{
	struct loan *loan = (struct loan *)(void *)((char *)slot - offsetof(struct loan, slot));
	struct client *client = loan->client;
	struct fiber *fiber = &client->memory->fiber;
	struct sim *sim = client->sim;

	if (!fiber->running)
		return;
	if (client->steps > 0 && --client->steps == 0)
		loan_stop(sim, client, 0);
	else if (client->steps == 0 && random_chance(&sim->random, sim->temper.step_percent))
		loan_stop(sim, client, stop_us(sim));
	else
		return;
	fiber_yield(fiber);
}

/* ---- calls ---- */

static bool has_belayd(const struct client *client)
{
	return client->process == client->node->process;
}

static void say_returned(struct sim *sim, struct client *client, struct loan *loan, uint32_t epoch)
{
	struct letter letter = { .type = LETTER_RETURN, .slot = loan->index, .terms = { .epoch = epoch } };

	if (has_belayd(client))
		(void)ipc_send(sim, client, &letter);
}

void loan_give_up(struct sim *sim, struct client *client, uint32_t key, const struct belay_range *range)
{
	for (uint32_t i = 0; client->memory && i < SIM_SLOTS; i++) {
		struct loan *loan = &client->memory->loan[i];
		const struct belay_range *own = &loan->slot.terms.range;

		if (!loan->in_use || loan->key != key || own->start > range->end || range->start > own->end)
			continue;
		slot_give_up(&loan->slot);
		loan->in_use = false;
		trace(sim, "n%u   c%u gives up slot %u", client->node->id, client->id, i);
		say_returned(sim, client, loan, loan->slot.terms.epoch);
	}
}

/* By a message. What it is about must not be decided in a loan any more: nothing may pass it. */
static int send_call(struct sim *sim, struct client *client, const struct call *call)
{
	struct request ask = call->what, *q;
	struct belay_range range = sim_range(ask.first, ask.last);
	struct letter letter = {
		.type = call->type == CALL_UNLOCK ? LETTER_UNLOCK : LETTER_LOCK, .owner = ask.owner,
		.serial = sim->owner[ask.owner].serial, .key = ask.key, .first = ask.first, .last = ask.last,
	};

	/* It has lost its locks meanwhile. */
	if (!sim->owner[ask.owner].believes)
		return -EIO;
	if (call->type == CALL_UNLOCK)
		belief_unlock(sim, ask.owner, ask.key, ask.first, ask.last);
	if (!has_belayd(client))
		return -EIO;
	loan_give_up(sim, client, ask.key, &range);
	if (call->type != CALL_UNLOCK) {
		letter.cookie = ask.cookie = ++client->cookie;
		q = belief_invoke(sim, &ask);
		if (!q)
			return -ENOLCK;
	}
	return ipc_send(sim, client, &letter);
}

static void run(void *context)
{
	struct client *client = context;
	struct call *call = &client->call;
	const struct request *what = &call->what;
	struct belay_range range = sim_range(what->first, what->last);
	uint32_t handle = loan_handle(&client->sim->owner[what->owner].id);

	switch (call->type) {
	case CALL_BEGIN:
		call->result = slot_begin(&call->loan->slot, call->loan->head, call->loan->log, &call->terms);
		break;
	case CALL_LOCK:
		call->result = slot_lock(&call->loan->slot, handle, what->mode, &range, &call->token);
		break;
	case CALL_UNLOCK:
		call->result = slot_unlock(&call->loan->slot, handle, &range);
		break;
	case CALL_TEST:
		call->result = slot_test(&call->loan->slot, handle, what->mode, &range, &call->held);
		break;
	}
}

static void began(struct sim *sim, struct client *client, const struct call *call)
{
	struct loan *loan = call->loan;

	loan->in_use = call->result == 0;
	if (loan->in_use) {
		sim->tally.loans_used++;
		return;
	}
	if (call->result != -ESTALE)
		sim_fail(sim, "n%u client %u cannot begin a loan: %d", client->node->id, client->id, call->result);
	slot_give_up(&loan->slot);
	say_returned(sim, client, loan, call->terms.epoch);
}

/* What it has decided is so; else belayd is asked. */
static int finish(struct sim *sim, struct client *client)
{
	struct call call = client->call;
	struct node *node = client->node;
	const struct request *what = &call.what;

	client->in_call = false;
	sim_hash(sim, ((uint64_t)call.type << 32) ^ (uint32_t)call.result ^ (call.token << 4));
	trace_call(sim, client, &call);
	if (call.type == CALL_BEGIN) {
		began(sim, client, &call);
		return 0;
	}
	if (call.type == CALL_LOCK && call.result == 0)
		belief_loan_lock(sim, node, what, call.token);
	else if (call.type == CALL_UNLOCK && call.result == 0)
		belief_loan_unlock(sim, what->owner, what->key, what->first, what->last);
	else if (call.type == CALL_TEST && call.result == 0)
		belief_loan_free(sim, node, what);
	else if (call.type == CALL_TEST && call.result == 1)
		belief_loan_busy(sim, node, what);
	else if (call.type == CALL_LOCK && call.result == -EAGAIN && !what->wait)
		belief_loan_busy(sim, node, what);
	else
		return send_call(sim, client, &call);
	return 0;
}

static int start(struct sim *sim, struct client *client)
{
	struct fiber *fiber = &client->memory->fiber;
	bool watched = client->steps > 0 || random_chance(&sim->random, sim->temper.step_percent);
	bool done = true;

	client->in_call = true;
	if (watched)
		done = fiber_start(fiber, run, client);
	else
		run(client);
	if (done)
		return finish(sim, client);
	/* The best moment for others to ask. */
	if (!sim->options.scenario && random_chance(&sim->random, 40))
		client_intrude(sim, client);
	return 0;
}

int loan_call(struct sim *sim, struct client *client, const struct call *call)
{
	struct belay_range range = sim_range(call->what.first, call->what.last);
	enum belay_mode mode = call->type == CALL_UNLOCK ? BELAY_MODE_SH : call->what.mode;
	struct loan *loan = loan_find(client, call->what.key, mode, &range);

	assert(!client->in_call && !client->stopped && !client->dead);
	if (!loan)
		return send_call(sim, client, call);
	client->call = *call;
	client->call.loan = loan;
	return start(sim, client);
}

/* ---- what belayd says ---- */

static void read_loan(struct sim *sim, struct client *client, const struct letter *letter)
{
	struct loan *loan = &client->memory->loan[letter->slot - 1];

	/* What is still on its way to belayd ends the loan when it arrives. */
	if (client->sent[letter->key] != letter->messages) {
		sim->tally.loans_refused++;
		trace(sim, "n%u   c%u does not take slot %u: messages are under way", client->node->id, client->id,
		      letter->slot - 1);
		slot_give_up(&loan->slot);
		say_returned(sim, client, loan, letter->terms.epoch);
		return;
	}
	loan->key = letter->key;
	client->call = (struct call){ .type = CALL_BEGIN, .loan = loan, .terms = letter->terms };
	(void)start(sim, client);
}

static void read_letter(struct sim *sim, struct client *client, const struct letter *letter)
{
	struct request *q;

	if (letter->type == LETTER_LOST) {
		client->dead = true;	/* it ends, or connects anew */
		belief_client_dies(sim, client->node, client->id);
		sim_due(sim, 1 + random_below(&sim->random, sim->temper.ipc_us), DUE_CLIENT_GONE, client->node->id,
			client->serial);
		return;
	}
	q = request_find(sim, client->node->id, client->process, client->id, letter->cookie);
	if (q && q->decided && !q->orphan)
		belief_told(sim, q);
	if (letter->slot > 0)
		read_loan(sim, client, letter);
}

void loan_read(struct sim *sim, struct client *client)
{
	struct letter *letter;

	while (!sim_failed(sim) && client->used && !client->dead && !client->stopped && !client->in_call &&
	       (letter = ipc_next_letter(sim, &client->down)))
		read_letter(sim, client, letter);
	if (client->used && !sim_failed(sim))
		client_answered(sim, client);
}

void loan_go_on(struct sim *sim, struct client *client)
{
	client->stopped = false;
	if (client->dead)
		return;
	if (client->in_call && fiber_resume(&client->memory->fiber))
		(void)finish(sim, client);
	loan_read(sim, client);
}

/* ---- clients that are mad ---- */

static uint64_t scribble_number(struct sim *sim)
{
	switch (random_below(&sim->random, 4)) {
	case 0:
		return random_below(&sim->random, 12);
	case 1:
		return UINT64_MAX - random_below(&sim->random, 3);
	case 2:
		return sim_range(0, random_below(&sim->random, SIM_ATOMS)).end;
	default:
		return random_next(&sim->random);
	}
}

void loan_scribble(struct sim *sim, struct client *client)
{
	struct loan *loan = &client->memory->loan[random_below(&sim->random, SIM_SLOTS)];
	struct slot_entry *entry = &loan->log[random_below(&sim->random, 8) +
					      random_below(&sim->random, 2) * SLOT_HALF_ENTRIES];
	uint64_t word = loan->head->word;

	switch (random_below(&sim->random, 7)) {
	case 0:
		/* Not less: who lies about tokens that it has used disturbs whoever fences by them. */
		loan->head->token = loan->head->token + random_below(&sim->random, 3);
		break;
	case 1:
		loan->head->used_start = scribble_number(sim);
		break;
	case 2:
		loan->head->used_end = scribble_number(sim);
		break;
	case 3:
		loan->head->word = random_chance(&sim->random, 30) ? scribble_number(sim) :
				   word ^ ((uint64_t)1 << random_below(&sim->random, 64));
		break;
	case 4:
		*entry = (struct slot_entry){
			.start = scribble_number(sim), .end = scribble_number(sim),
			.handle = random_below(&sim->random, 5), .action = random_below(&sim->random, 4),
		};
		break;
	default:
		/* One that is in order, perhaps, but for what else is held. */
		*entry = (struct slot_entry){
			.start = loan->terms.range.start, .end = loan->terms.range.end,
			.handle = random_below(&sim->random, SIM_CLIENT_OWNERS), .action = SLOT_LOCK_EX,
		};
		loan->head->word = word + ((uint64_t)1 << SLOT_COUNT_SHIFT);
	}
}

/* ---- in the middle of a recall ---- */

void loan_meddle(struct sim *sim, struct loan *loan)
{
	struct client *client = loan->client;
	struct call call = { .type = random_chance(&sim->random, 60) ? CALL_LOCK : CALL_UNLOCK, .loan = loan };
	struct belay_range range;
	uint32_t owner;

	if (sim->options.scenario || !client->used || !random_chance(&sim->random, 30))
		return;
	if (client->mad)
		loan_scribble(sim, client);
	if (client->dead)
		return;
	/* Stopped within the call it may take some more steps; it must not be stopped by the others' signal. */
	if (client->in_call) {
		loan_go_on(sim, client);
		return;
	}
	owner = client->owner[random_below(&sim->random, SIM_CLIENT_OWNERS)];
	if (client->stopped || !loan->in_use || owner == SIM_NONE || sim->owner[owner].pending > 0)
		return;
	call.what.owner = owner;
	call.what.key = loan->key;
	call.what.mode = loan->slot.terms.mode;
	call.what.first = call.what.last = random_below(&sim->random, SIM_ATOMS);
	range = sim_range(call.what.first, call.what.last);
	if (!slot_covers(&loan->slot, call.what.mode, &range))
		return;
	client->call = call;
	(void)start(sim, client);
}
