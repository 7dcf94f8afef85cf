/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Between clients and belayd: messages that take their time, and belayd's side
 * of loans. It does what daemon/ does around a core, with the real slot/recall.c.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "tests/sim/sim.h"

/* As core/: more tokens cannot be given in a microsecond. */
#define TOKENS_PER_US 4295u

struct client *ipc_client(struct node *node, uint32_t serial)
{
	for (uint32_t i = 0; i < SIM_CLIENTS; i++)
		if (node->client[i].used && node->client[i].serial == serial)
			return &node->client[i];
	return NULL;
}

/* ---- messages ---- */

/* @cell: awaited by itself, where it overtakes and is overtaken. */
static void post(struct sim *sim, struct client *client, struct mailbox *box, enum due type, const struct letter *what,
		 bool cell)
{
	struct letter *letter = arena_alloc(&sim->arena, sizeof(*letter)), **at = &box->first;
	uint64_t due_us = sim->now_us + 1 + random_below(&sim->random, sim->temper.ipc_us);

	*letter = *what;
	if (!cell && due_us < box->due_us)
		due_us = box->due_us;
	if (!cell)
		box->due_us = due_us;
	letter->due_us = due_us;
	while (*at && (*at)->due_us <= due_us)
		at = &(*at)->next;
	letter->next = *at;
	*at = letter;
	sim_due(sim, due_us - sim->now_us, type, client->node->id, client->serial);
}

struct letter *ipc_next_letter(const struct sim *sim, struct mailbox *box)
{
	struct letter *letter = box->first;

	if (!letter || letter->due_us > sim->now_us)
		return NULL;
	box->first = letter->next;
	return letter;
}

/* ---- loans that end ---- */

/* Is the owner with this handle open? As the daemon would ask for a handle of the resource. */
static bool may(void *context, uint32_t handle, enum slot_action action)
{
	const struct client *client = context;

	(void)action;
	for (uint32_t i = 0; i < SIM_CLIENT_OWNERS; i++)
		if (client->owner[i] != SIM_NONE && loan_handle(&client->sim->owner[client->owner[i]].id) == handle)
			return true;
	return false;
}

static struct belay_owner owner_of_handle(const struct client *client, uint32_t handle)
{
	for (uint32_t i = 0; i < SIM_CLIENT_OWNERS; i++) {
		const struct owner *o = client->owner[i] != SIM_NONE ? &client->sim->owner[client->owner[i]] : NULL;

		if (o && loan_handle(&o->id) == handle) {
			struct belay_owner id = o->id;

			id.node = 0;
			return id;
		}
	}
	assert(false && "judged before");
	return (struct belay_owner){ 0 };
}

static int feed_back(struct sim *sim, struct node *node, struct loan *loan, const struct slot_report *report)
{
	struct belay_event event = { .type = BELAY_EVENT_LOAN_HELD, .loan = { .loan = loan->number } };
	struct slot_cursor cursor = { 0 };
	const struct slot_entry *held;
	int r;

	while ((held = slot_ranges_next(&loan->set, &cursor))) {
		event.loan.range = (struct belay_range){ held->start, held->end };
		event.loan.owner = owner_of_handle(loan->client, held->handle);
		event.loan.mode = slot_mode_of(held);
		r = node_step(sim, node, &event);
		if (r < 0)
			return r;
	}
	event = (struct belay_event){
		.type = BELAY_EVENT_LOAN_BACK,
		.loan = {
			.loan = loan->number, .used = report->used, .range = report->range,
			.used_ex = report->used_ex, .token = report->token,
		},
	};
	return node_step(sim, node, &event);
}

/* A client that is not in the midst of a call must think the same of what it holds. */
static void check_set(struct sim *sim, const struct loan *loan)
{
	const struct slot_ranges *set = &loan->slot.held;
	struct slot_cursor own = { 0 }, cursor = { 0 };
	const struct slot_entry *a, *b;

	if (!loan->in_use || loan->client->in_call || loan->slot.terms.epoch != loan->terms.epoch)
		return;
	do {
		a = slot_ranges_next(set, &own);
		b = slot_ranges_next(&loan->set, &cursor);
		if (!a != !b || (a && (a->start != b->start || a->end != b->end || a->handle != b->handle ||
				       a->action != b->action)))
			sim_fail(sim, "n%u client %u holds in its loan something else than its log says",
				 loan->client->node->id, loan->client->id);
	} while (a && b);
}

static void take_back(struct sim *sim, struct node *node, struct loan *loan)
{
	const struct slot_judge judge = { may, loan->client };
	uint64_t max = loan->terms.token + (sim->now_us - loan->lent_us) * TOKENS_PER_US, word;
	struct slot_report report;
	const char *reason = "?";
	int r;

	assert(loan->state == LENT_OUT && loan->number != 0);
	sim->tally.recalls++;
	loan->state = LENT_BACK;
	word = slot_recall(loan->head);
	loan_meddle(sim, loan);
	r = slot_take(loan->head, loan->log, word, &loan->terms, max, &judge, &loan->set, &report, &reason);
	if (r == 0 && !loan->client->mad)
		check_set(sim, loan);
	if (r == 0) {
		reason = "has in its loan what the core does not take";
		r = feed_back(sim, node, loan, &report);
	}
	if (r < 0 && loan->client->mad) {
		sim->tally.cast_out++;
		trace(sim, "n%u casts out c%u: it %s", node->id, loan->client->id, reason);
		ipc_client_gone(sim, loan->client);
		return;
	}
	if (r < 0)
		sim_fail(sim, "n%u client %u: it %s (%d)", node->id, loan->client->id, reason, r);
	loan->number = 0;
}

void ipc_take_back(struct sim *sim, struct node *node)
{
	/* What the core recalls meanwhile has its turn after this one. */
	if (node->taking_back)
		return;
	node->taking_back = true;
	for (size_t i = 0; i < node->recalled.count && !sim_failed(sim); i++) {
		struct recall recall = ((struct recall *)node->recalled.data)[i];
		struct client *client = client_find(node, recall.client);

		/* It may have been cast out for another of its loans. */
		for (uint32_t k = 0; client && client->used && client->memory && k < SIM_SLOTS; k++)
			if (client->memory->loan[k].state == LENT_OUT && client->memory->loan[k].number == recall.loan)
				take_back(sim, node, &client->memory->loan[k]);
	}
	node->recalled.count = 0;
	node->taking_back = false;
}

static bool overlaps(const struct belay_range *a, const struct belay_range *b)
{
	return a->start <= b->end && b->start <= a->end;
}

/* belayd is about to act on a message of the client: what is lent to it there comes back first. */
static void take_back_range(struct sim *sim, struct node *node, struct client *client, uint32_t key,
			    const struct belay_range *range)
{
	for (uint32_t k = 0; client->used && client->memory && k < SIM_SLOTS; k++) {
		struct loan *loan = &client->memory->loan[k];

		if (loan->state == LENT_OUT && loan->number != 0 && loan->lent_key == key &&
		    overlaps(&loan->terms.range, range))
			take_back(sim, node, loan);
	}
}

static void end_all(struct client *client)
{
	for (uint32_t k = 0; client->memory && k < SIM_SLOTS; k++) {
		struct loan *loan = &client->memory->loan[k];

		if (loan->state != LENT_OUT)
			continue;
		(void)slot_recall(loan->head);
		loan->state = LENT_BACK;
		loan->number = 0;
	}
}

bool ipc_any_loan(const struct node *node)
{
	for (uint32_t i = 0; i < SIM_CLIENTS; i++) {
		const struct client *client = &node->client[i];

		for (uint32_t k = 0; client->used && !client->dead && client->memory && k < SIM_SLOTS; k++)
			if (client->memory->loan[k].state == LENT_OUT)
				return true;
	}
	return false;
}

bool ipc_may_believe(const struct node *node)
{
	for (uint32_t i = 0; i < SIM_CLIENTS; i++) {
		const struct client *client = &node->client[i];

		if (client->used && !client->dead && client->down.first)
			return true;
	}
	return ipc_any_loan(node);
}

void ipc_frozen(struct node *node)
{
	for (uint32_t i = 0; i < SIM_CLIENTS; i++) {
		struct client *client = &node->client[i];

		for (uint32_t k = 0; client->used && client->memory && k < SIM_SLOTS; k++) {
			struct loan *loan = &client->memory->loan[k];

			if (loan->state != LENT_OUT)
				continue;
			if (node->frozen)
				slot_freeze(loan->head);
			else
				slot_thaw(loan->head);
		}
	}
}

/* ---- loans that begin ---- */

void ipc_lend_held(struct node *node, const struct belay_action *action)
{
	struct slot_entry held = {
		.start = action->range.start, .end = action->range.end,
		.handle = loan_handle(&action->holder), .action = slot_action_of(action->mode),
	};

	(void)vector_push(&node->lend_held, sizeof(held), &held);
}

/* What is lent to one is not lent to another, nor twice. */
static void check_lend(struct sim *sim, const struct node *node, const struct client *client,
		       const struct belay_action *action)
{
	for (uint32_t i = 0; i < SIM_CLIENTS; i++) {
		const struct client *other = &node->client[i];

		for (uint32_t k = 0; other->used && other->memory && k < SIM_SLOTS; k++) {
			const struct loan *loan = &other->memory->loan[k];

			if (loan->state != LENT_OUT || loan->lent_key != sim_key(&action->key) ||
			    !overlaps(&loan->terms.range, &action->range))
				continue;
			if (other == client || loan->terms.mode == BELAY_MODE_EX || action->mode == BELAY_MODE_EX)
				sim_fail(sim, "n%u lends client %u what it has lent to client %u already", node->id,
					 client->id, other->id);
		}
	}
}

void ipc_lend(struct sim *sim, struct node *node, const struct belay_action *action)
{
	struct client *client = client_find(node, action->client);
	struct loan *loan = NULL;

	if (sim_is_volume(sim_key(&action->key)))
		sim_fail(sim, "n%u lends a volume", node->id);
	if (!client || !client->borrows) {
		sim_fail(sim, "n%u lends to client %u, which did not ask for it", node->id, action->client);
		return;
	}
	check_lend(sim, node, client, action);
	for (uint32_t k = 0; k < SIM_SLOTS && !loan; k++)
		if (client->memory->loan[k].state == LENT_FREE)
			loan = &client->memory->loan[k];
	if (!loan) {
		sim_fail(sim, "n%u: client %u has no free slot", node->id, client->id);
		return;
	}
	loan->epoch = (loan->epoch + 1) & SLOT_EPOCH_MASK;
	loan->state = LENT_OUT;
	loan->number = action->loan;
	loan->lent_key = sim_key(&action->key);
	loan->lent_us = sim->now_us;
	loan->cookie = action->cookie;
	loan->terms = (struct slot_terms){
		.epoch = loan->epoch, .mode = action->mode, .range = action->range,
		.room = action->room < SLOT_ROOM_MAX ? action->room : SLOT_ROOM_MAX, .token = action->token,
	};
	slot_lend(loan->head, loan->log, &loan->terms, node->lend_held.data, (uint32_t)node->lend_held.count,
		  node->frozen);
	node->lend_held.count = 0;
	sim->tally.lent++;
}

/* ---- belayd reads ---- */

/* Is there a slot for it, and for all that were promised one? */
static bool may_lend(const struct sim *sim, const struct client *client)
{
	uint32_t free = 0;

	for (uint32_t k = 0; client->borrows && k < SIM_SLOTS; k++)
		free += client->memory->loan[k].state == LENT_FREE;
	for (uint32_t i = 0; free > 0 && i < sim->request_top; i++) {
		const struct request *q = &sim->request[i];
		const struct owner *o = &sim->owner[q->owner];

		free -= q->used && q->lend && !q->decided && o->id.node == client->node->id &&
			o->id.client == client->id && o->process == client->process;
	}
	return free > 0;
}

static void lock_event(const struct sim *sim, const struct letter *letter, struct belay_event *ret_event)
{
	*ret_event = (struct belay_event){ .type = BELAY_EVENT_LOCK };
	sim_make_key(letter->key, &ret_event->lock.key);
	ret_event->lock.range = sim_range(letter->first, letter->last);
	ret_event->lock.owner = sim->owner[letter->owner].id;
	/* The core knows on which node it runs. */
	ret_event->lock.owner.node = 0;
}

static void refuse(struct sim *sim, struct node *node, struct request *q, int result)
{
	belief_refused(sim, q);
	if (result == -ESHUTDOWN && node->quitting)
		return;
	/* It has not served for long, and they all wait. */
	if (result == -ENOLCK && node->stats.requests >= sim->config.requests_max)
		return;
	if (result != -ENOLCK || !sim->temper.small_limits)
		sim_fail(sim, "n%u refuses a valid LOCK: %d", node->id, result);
}

static int take_lock(struct sim *sim, struct node *node, struct client *client, const struct letter *letter)
{
	struct request *q = request_find(sim, node->id, node->process, client->id, letter->cookie);
	struct belay_event event;
	int r;

	if (!q)
		return 0;
	lock_event(sim, letter, &event);
	take_back_range(sim, node, client, letter->key, &event.lock.range);
	if (!client->used)
		return 0;
	/* Who asks for a volume does not do so over a new life of the node. */
	if (sim_is_volume(q->key) && q->life != node->incarnation) {
		belief_refused(sim, q);
		return 0;
	}
	q->lend = may_lend(sim, client);
	q->number = ++node->request_last;
	q->taken = true;
	q->taken_us = sim->now_us;
	event.lock.mode = q->mode;
	event.lock.wait = q->wait;
	event.lock.test = q->test;
	event.lock.lend = q->lend;
	event.lock.cookie = q->cookie;
	sim->tally.waits += q->wait;
	r = node_step(sim, node, &event);
	if (r < 0 && !sim_failed(sim)) {
		node->request_last--;
		refuse(sim, node, q, r);
	}
	return r;
}

static void take_unlock(struct sim *sim, struct node *node, struct client *client, const struct letter *letter)
{
	struct belay_event event;

	lock_event(sim, letter, &event);
	event.type = BELAY_EVENT_UNLOCK;
	take_back_range(sim, node, client, letter->key, &event.lock.range);
	if (!client->used)
		return;
	belief_unlock_taken(sim, letter->owner, letter->key, letter->first, letter->last);
	if (node_step(sim, node, &event) < 0)
		sim_fail(sim, "n%u refuses a valid UNLOCK", node->id);
}

static void take_cancel(struct sim *sim, struct node *node, struct client *client, const struct letter *letter)
{
	struct request *q = request_find(sim, node->id, node->process, client->id, letter->cookie);
	struct belay_event event = { .type = BELAY_EVENT_CANCEL };
	int r;

	/* The answer may have been faster. */
	if (!q || q->decided)
		return;
	event.client.client = client->id;
	event.client.cookie = letter->cookie;
	r = node_step(sim, node, &event);
	if (r < 0)
		sim_fail(sim, "n%u does not know the request it has not answered: CANCEL gives %d", node->id, r);
}

static void take_return(struct sim *sim, struct node *node, struct client *client, const struct letter *letter)
{
	struct loan *loan = &client->memory->loan[letter->slot];

	if (loan->epoch != letter->terms.epoch)
		return;
	if (loan->state == LENT_OUT)
		take_back(sim, node, loan);
	loan->state = LENT_FREE;
}

/* A message is counted when belayd takes it. */
static int take(struct sim *sim, struct node *node, struct client *client, const struct letter *letter)
{
	bool counts = letter->type == LETTER_LOCK || letter->type == LETTER_UNLOCK;

	/* It was said to the life before: its client is dead, or it is the answer to that which is lost. */
	if (client->lost || (counts && (sim->owner[letter->owner].serial != letter->serial ||
					sim->owner[letter->owner].incarnation != node->incarnation))) {
		struct request *q = request_find(sim, node->id, node->process, client->id, letter->cookie);

		if (letter->type == LETTER_LOCK && q)
			belief_refused(sim, q);
		return 0;
	}
	client->taken[letter->key] += counts;
	switch (letter->type) {
	case LETTER_LOCK:
		return take_lock(sim, node, client, letter);
	case LETTER_UNLOCK:
		take_unlock(sim, node, client, letter);
		break;
	case LETTER_CANCEL:
		take_cancel(sim, node, client, letter);
		break;
	case LETTER_RETURN:
		take_return(sim, node, client, letter);
		break;
	case LETTER_RESULT:
	case LETTER_LOST:
		assert(false && "belayd says that");
	}
	return 0;
}

int ipc_send(struct sim *sim, struct client *client, const struct letter *letter)
{
	if (letter->type == LETTER_LOCK || letter->type == LETTER_UNLOCK)
		client->sent[letter->key]++;
	if (sim->temper.ipc_us == 0)
		return take(sim, client->node, client, letter);
	post(sim, client, &client->up, DUE_TO_BELAYD, letter, false);
	return 0;
}

void ipc_to_belayd(struct sim *sim, struct client *client)
{
	struct node *node = client->node;
	uint32_t serial = client->serial;
	const struct letter *letter;

	while (client->used && client->serial == serial && client->process == node->process && node_runs(node) &&
	       !sim_failed(sim) && (letter = ipc_next_letter(sim, &client->up)))
		(void)take(sim, node, client, letter);
	if (node_runs(node) && !sim_failed(sim))
		node_end_turn(sim, node);
}

/* ---- belayd answers ---- */

void ipc_reply(struct sim *sim, struct node *node, const struct belay_action *action)
{
	struct client *client = client_find(node, action->client);
	struct letter letter = { .type = LETTER_RESULT, .cookie = action->cookie };
	struct request *q;

	if (action->client == BELAY_CLIENT_NODE) {
		volume_answered(sim, node, action);
		return;
	}
	belief_decided(sim, node, action);
	if (sim_failed(sim) || !client)
		return;
	q = request_find(sim, node->id, node->process, action->client, action->cookie);
	if (sim->temper.ipc_us == 0) {
		if (q)
			belief_told(sim, q);
		return;
	}
	for (uint32_t k = 0; client->memory && k < SIM_SLOTS; k++) {
		struct loan *loan = &client->memory->loan[k];

		if (loan->state == LENT_FREE || loan->cookie != action->cookie)
			continue;
		letter.slot = k + 1;
		letter.key = loan->lent_key;
		letter.terms = loan->terms;
		letter.messages = client->taken[loan->lent_key];
		loan->cookie = 0;
	}
	post(sim, client, &client->down, DUE_TO_CLIENT, &letter, sim->temper.cells);
}

void ipc_lost(struct sim *sim, struct node *node, uint32_t id)
{
	struct client *client = client_find(node, id);
	struct letter letter = { .type = LETTER_LOST };

	/* Its loans end before it is told. */
	if (client)
		end_all(client);
	belief_void(sim, node, id);
	for (uint32_t o = 0; client && o < SIM_CLIENT_OWNERS; o++)
		client->owner[o] = SIM_NONE;
	if (!client || sim->temper.ipc_us == 0)
		return;		/* the connection stays; its owners begin anew */
	client->lost = true;
	post(sim, client, &client->down, DUE_TO_CLIENT, &letter, false);
}

void ipc_client_gone(struct sim *sim, struct client *client)
{
	struct belay_event event = { .type = BELAY_EVENT_CLIENT_GONE };
	struct node *node = client->node;

	if (client->process != node->process) {
		client->used = false;
		return;
	}
	if (!node_runs(node))
		return;		/* it sees that when it goes on */
	end_all(client);
	client->used = false;
	belief_client_gone(sim, node, client->id);
	event.client.client = client->id;
	if (node_step(sim, node, &event) < 0)
		sim_fail(sim, "n%u refuses CLIENT_GONE", node->id);
	if (!sim_failed(sim) && node->process)
		node_end_turn(sim, node);
}

void ipc_wake(struct sim *sim, struct node *node)
{
	for (uint32_t i = 0; i < SIM_CLIENTS && !sim_failed(sim); i++) {
		struct client *client = &node->client[i];

		if (client->used)
			ipc_to_belayd(sim, client);
		if (client->used && client->dead)
			ipc_client_gone(sim, client);
	}
}
