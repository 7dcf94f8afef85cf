/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One world: its queue of events, its temper, one run from seed to silence. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/sim/sim.h"

/* After healing, everything must be answered in this time, however slow the world is. */
#define LIVENESS_US 4000000
/* All that waits for a deadlock to be found, or for a holder that waits itself. */
#define CALM_US 1500000
/* A run that does more than this makes no progress. */
#define EVENTS_MAX 400000

static const uint64_t atom_start[SIM_ATOMS + 1] = {
	0, 1, 2, 10, 100, 4096, (uint64_t)1 << 20, (uint64_t)1 << 40, BELAY_OFFSET_MAX + 1
};

void sim_make_key(uint32_t key, struct belay_key *ret_key)
{
	*ret_key = (struct belay_key){
		.lockspace = sim_is_volume(key) ? BELAY_LOCKSPACE_VOLUMES : 1 + key % 2,
	};
	ret_key->id[0] = 'r';
	ret_key->id[15] = (uint8_t)key;
}

uint32_t sim_key(const struct belay_key *key)
{
	if (key->id[0] != 'r' || key->id[15] >= SIM_KEYS)
		return SIM_NONE;
	return key->id[15];
}

struct belay_range sim_range(uint32_t first, uint32_t last)
{
	assert(first <= last && last < SIM_ATOMS);
	return (struct belay_range){ .start = atom_start[first], .end = atom_start[last + 1] - 1 };
}

void sim_atoms(const struct belay_range *range, uint32_t *ret_first, uint32_t *ret_last)
{
	uint32_t first = 0, last;

	while (first + 1 < SIM_ATOMS && atom_start[first + 1] <= range->start)
		first++;
	last = first;
	while (last + 1 < SIM_ATOMS && atom_start[last + 1] <= range->end)
		last++;
	*ret_first = first;
	*ret_last = last;
}

void sim_fail(struct sim *sim, const char *format, ...)
{
	va_list args;

	if (sim_failed(sim))
		return;
	va_start(args, format);
	vsnprintf(sim->failure, sizeof(sim->failure), format, args);
	va_end(args);
	trace(sim, "FAILURE: %s", sim->failure);
}

/* ---- the queue: a binary heap by time, then by age ---- */

static bool due_before(const struct due_event *a, const struct due_event *b)
{
	return a->at_us != b->at_us ? a->at_us < b->at_us : a->number < b->number;
}

void sim_due(struct sim *sim, uint64_t in_us, enum due type, uint32_t node, uint32_t argument)
{
	struct due_event due = {
		.at_us = sim->now_us + in_us, .number = ++sim->due_number, .type = type,
		.node = node, .argument = argument,
	};
	struct due_event *heap;
	size_t i;

	if (type == DUE_TURN || type == DUE_FLUSH || type == DUE_TICK || type == DUE_OUTGOING || type == DUE_FENCE)
		due.process = sim->node[node].process;
	(void)vector_push(&sim->heap, sizeof(due), &due);
	heap = sim->heap.data;
	for (i = sim->heap.count - 1; i > 0 && due_before(&due, &heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = due;
}

static struct due_event due_pop(struct sim *sim)
{
	struct due_event *heap = sim->heap.data;
	struct due_event top = heap[0], last = heap[--sim->heap.count];
	size_t n = sim->heap.count, i = 0, child;

	while ((child = 2 * i + 1) < n) {
		if (child + 1 < n && due_before(&heap[child + 1], &heap[child]))
			child++;
		if (!due_before(&heap[child], &last))
			break;
		heap[i] = heap[child];
		i = child;
	}
	if (n > 0)
		heap[i] = last;
	return top;
}

static void next_stage(struct sim *sim)
{
	sim->stage++;
	sim_hash(sim, 0x5746u + sim->stage);
	switch (sim->stage) {
	case STAGE_HEAL:
		trace(sim, "==== heal ====");
		sim->heal_us = sim->now_us;
		fault_heal(sim);
		sim_due(sim, CALM_US, DUE_STAGE, 0, 0);
		break;
	case STAGE_DRAIN:
		trace(sim, "==== drain ====");
		judge_missed_deadlock(sim);
		judge_volumes(sim);
		judge_tries(sim);
		sim_due(sim, LIVENESS_US, DUE_STAGE, 0, 0);
		break;
	case STAGE_END:
		trace(sim, "==== end ====");
		break;
	case STAGE_CHAOS:
		assert(false && "the chaos comes first");
	}
}

/* In the chaos clients act; later they only give back, and when all is quiet time moves on. */
static void client_due(struct sim *sim, struct node *node)
{
	uint32_t in = 10000;

	if (sim->stage == STAGE_CHAOS) {
		in = 1 + random_below(&sim->random, 2 * sim->temper.think_us);
		if (sim->acts > 0 && --sim->acts == 0)
			sim_due(sim, random_below(&sim->random, 5000), DUE_STAGE, 0, 0);
		if ((node_runs(node) || sim->temper.ipc_us > 0) && node->powered && sim->acts > 0 && !node->quitting)
			client_act(sim, node);
		else if (node_runs(node) && node->quitting)
			client_let_go(sim, node, random_chance(&sim->random, 50));
		for (uint32_t n = 0; n < sim->temper.volume_acts && node->powered && sim->acts > 0; n++)
			if (!sim_failed(sim) && random_chance(&sim->random, 50))
				volume_act(sim, node);
	} else {
		fault_mend(sim, node);
		volume_let_go(sim, node, sim->stage >= STAGE_DRAIN);
		if (node_runs(node))
			client_let_go(sim, node, sim->stage >= STAGE_DRAIN || node->quitting);
		if (!sim_failed(sim) && fault_all_well(sim) && sim_quiet(sim))
			sim->stage = STAGE_END;
	}
	sim_due(sim, in, DUE_CLIENT, node->id, 0);
}

static void dispatch_client(struct sim *sim, struct node *node, const struct due_event *due)
{
	struct client *client = ipc_client(node, due->argument);

	if (!client)
		return;
	if (due->type == DUE_TO_BELAYD)
		ipc_to_belayd(sim, client);
	else if (due->type == DUE_TO_CLIENT)
		loan_read(sim, client);
	else if (due->type == DUE_CLIENT_GOES_ON)
		loan_go_on(sim, client);
	else
		ipc_client_gone(sim, client);
}

static void dispatch(struct sim *sim, const struct due_event *due)
{
	struct node *node = &sim->node[due->node];

	if (due->process != 0 && due->process != node->process)
		return;
	switch (due->type) {
	case DUE_ORDER:
		cpg_order(sim, node);
		break;
	case DUE_TURN:
		node_turn(sim, node);
		break;
	case DUE_FLUSH:
		node_flush(sim, node);
		break;
	case DUE_TICK:
		node_tick(sim, node);
		break;
	case DUE_OUTGOING:
		node_outgoing(sim, node);
		break;
	case DUE_QUORUM:
		node_quorum(sim, node);
		break;
	case DUE_REFORM:
		if (due->argument == sim->reform)
			cpg_reform(sim, due->node);
		break;
	case DUE_CLIENT:
		client_due(sim, node);
		break;
	case DUE_TO_BELAYD:
	case DUE_TO_CLIENT:
	case DUE_CLIENT_GOES_ON:
	case DUE_CLIENT_GONE:
		dispatch_client(sim, node, due);
		break;
	case DUE_HINT:
		hint_arrive(sim, node, due->argument);
		break;
	case DUE_FAULT:
		fault_strike(sim);
		break;
	case DUE_REPAIR:
		fault_repair(sim, due->node, due->argument);
		break;
	case DUE_FENCE:
		fault_fence(sim, due->node, due->argument);
		break;
	case DUE_STAGE:
		next_stage(sim);
		break;
	case DUE_COUNT:
		assert(false && "no such event");
	}
}

void sim_advance(struct sim *sim, uint64_t until_us)
{
	struct due_event *heap;

	while (!sim_failed(sim) && sim->heap.count > 0 && sim->stage < STAGE_END) {
		struct due_event due;

		heap = sim->heap.data;
		if (heap[0].at_us > until_us)
			break;
		due = due_pop(sim);
		assert(due.at_us >= sim->now_us);
		sim->now_us = due.at_us;
		sim->tally.events++;
		if (++sim->run_events == EVENTS_MAX)
			sim_fail(sim, "no end: more than %u events", EVENTS_MAX);
		dispatch(sim, &due);
	}
	if (until_us != UINT64_MAX && sim->now_us < until_us)
		sim->now_us = until_us;
}

/* ---- one run ---- */

/* Two worlds in three have clients that decide by themselves. */
static void draw_loans(struct sim *sim)
{
	static const uint32_t ipc[] = { 0, 1, 5, 30, 200, 2000 };
	/* By itself: the rest of a world is as it was before there were loans. */
	struct random own = { mix64(~sim->seed) }, *r = &own;
	struct temper *t = &sim->temper;

	t->ipc_us = ipc[random_below(r, 6)];
	t->borrow_percent = random_below(r, 5) * 25;
	t->step_percent = random_below(r, 4) * 10;
	t->calls = random_between(r, 1, 12);
	t->busy_percent = random_below(r, 4) * 28;
	t->apart = random_chance(r, 60) ? random_between(r, 1, 3) : 0;
	if (random_chance(r, 20))
		t->exclusive_percent = random_below(r, 4);
	t->cells = random_chance(r, 50);
	t->hints = random_chance(r, 60);
	t->hint_us = random_chance(r, 50) ? 50 : 5000;
	t->hint_loss_percent = random_below(r, 3) * 20;
	t->hint_twice_percent = random_below(r, 3) * 20;
	t->hint_leaks = random_chance(r, 50);
	t->mad_percent = random_chance(r, 25) ? 20 : 0;
	/* Few locks in all, or so few that loans have hardly any room. */
	t->small_locks = random_chance(r, 50) ? 6 : random_between(r, 100, 400);
	if (t->ipc_us == 0)
		t->borrow_percent = 0;
	/* What threads of one process ask for must not overtake each other. */
	if (t->hints && random_chance(r, 25))
		t->threads_percent = 35;
	/* Loans are for those who come again. */
	if (t->borrow_percent > 0 && random_chance(r, 60)) {
		t->keys = t->apart == 3 ? sim->nodes < SIM_FILES ? sim->nodes : SIM_FILES : random_between(r, 1, 2);
		t->clients = random_between(r, 1, 3);
	}
}

/* In half of the worlds nodes have volumes. */
static void draw_volumes(struct sim *sim)
{
	struct random own = { mix64(sim->seed ^ BELAY_LOCKSPACE_VOLUMES) }, *r = &own;
	struct temper *t = &sim->temper;

	/* Where there is no room, a node may be unable to say what it has. */
	if (t->small_limits || random_chance(r, 50))
		return;
	t->volumes = random_between(r, 1, SIM_VOLUMES);
	t->volume_percent = random_chance(r, 50) ? random_between(r, 5, 40) : 0;
	t->volume_acts = random_between(r, 1, 5);
	t->faults += random_below(r, 6);
	/* In some, nodes stay longer without belayd, and without being fenced. */
	if (random_chance(r, 40))
		t->fence_us = 0;
	if (random_chance(r, 40))
		t->ofd_percent = 80;
}

static void draw_temper(struct sim *sim)
{
	static const uint32_t slow[] = { 20, 100, 100, 400, 2000 };
	struct random *r = &sim->random;
	struct temper *t = &sim->temper;

	*t = (struct temper){
		.order_us = slow[random_below(r, 5)],
		.lag_us = slow[random_below(r, 5)],
		.burst = random_between(r, 1, 6),
		.linger_percent = random_below(r, 3) * 30,
		.linger_us = random_between(r, 1, 300),
		.think_us = random_between(r, 20, 1500),
		.gap_us = random_between(r, 200, 12000),
		.frame_ops = random_between(r, 1, 40),
		.late_us = random_chance(r, 50) ? 50 : 5000,
		.quorum_us = random_chance(r, 50) ? 100 : 15000,
		.faults = random_chance(r, 20) ? 0 : random_between(r, 1, 7),
		.wait_percent = random_between(r, 20, 95),
		.test_percent = random_below(r, 4) * 8,
		.exclusive_percent = random_between(r, 20, 100),
		.ofd_percent = random_below(r, 3) * 20,
		.flock_percent = random_chance(r, 25) ? 15 : 0,
		.cancel_percent = random_below(r, 4) * 5,
		.die_percent = random_below(r, 4) * 2,
		.threads_percent = random_chance(r, 25) ? 15 : 0,
		.wide_percent = random_below(r, 60),
		.keys = random_between(r, 1, SIM_FILES),
		.clients = random_between(r, 1, SIM_CLIENTS),
		.atoms = random_between(r, 1, SIM_ATOMS),
		.fence_us = random_chance(r, 30) ? 0 : random_between(r, 500, 30000),
		.record_batch = random_between(r, 1, 30),
		.hole_percent = random_below(r, 4) * 30,
		.private_ops = random_below(r, 8),
		.company_us = 1000,
		.outgoing_us = 500,
		.boot_us = 3000,
		.small_limits = random_chance(r, 10),
	};
	draw_loans(sim);
	draw_volumes(sim);
}

static void draw_config(struct sim *sim)
{
	struct random *r = &sim->random;
	struct belay_core_config *c = &sim->config;
	bool small = sim->temper.small_limits;

	*c = (struct belay_core_config){
		.stability = sim->stability,
		.node_count = sim->nodes,
		.limits = {
			.resources_max = small ? 2 : 16,
			.locks_max = small ? sim->temper.small_locks : 4096,
			.waiters_max = small ? 4 : 1024,
			/* A loan must not be refused for them. */
			.locks_per_owner_max = small && sim->temper.small_locks < 100 ? 2 : 4096,
		},
		.requests_max = 512,
		.loans_max = sim->temper.borrow_percent > 0 ? 64 : 0,
		.hints = sim->temper.hints,
		.min_hold_us = random_below(r, 3) * 1000,
		.idle_us = random_chance(r, 50) ? 2000 : 100000,
		.claim_streak = 1u << random_below(r, 5),
		.share_streak = 1 + random_below(r, 8),
		.lend_after = random_below(r, 4),
		.token_base = 1000,
	};
	for (uint32_t i = 0; i < sim->nodes; i++)
		c->node[i] = i + 1;
}

static void reset_node(struct node *node, uint32_t id)
{
	struct node old = *node;

	*node = (struct node){
		.id = id, .memory = old.memory, .memory_size = old.memory_size,
		.queue = old.queue, .inbox = old.inbox, .pending = old.pending, .held = old.held,
		.replaying = old.replaying, .outgoing = old.outgoing, .recalled = old.recalled,
		.lend_held = old.lend_held, .hole = SIM_NONE, .tick_us = UINT64_MAX,
	};
	for (uint32_t v = 0; v < SIM_VOLUMES; v++)
		node->volume[v].owner = SIM_NONE;
	node->queue.count = node->inbox.count = node->pending.count = 0;
	node->held.count = node->replaying.count = node->outgoing.count = 0;
	node->recalled.count = node->lend_held.count = 0;
}

void sim_reset(struct sim *sim, uint64_t seed)
{
	sim->random.state = seed;
	sim->seed = seed;
	sim->run++;
	sim->hash = sim->now_us = sim->due_number = sim->message_number = 0;
	sim->incarnation = 0;
	sim->stage = STAGE_CHAOS;
	sim->heap.count = sim->frames.count = sim->hints.count = 0;
	sim->ring_count = 0;
	sim->reform = 0;
	sim->doomed = 0;
	sim->token_node = 0;
	sim->ahead_us = 0;
	sim->request_top = sim->owner_top = sim->owner_serial = sim->client_serial = 0;
	sim->decisions = 0;
	sim->failure[0] = '\0';
	sim->run_events = 0;
	memset(sim->owner, 0, sizeof(sim->owner));
	memset(sim->request, 0, sizeof(sim->request));
	memset(sim->top, 0, sizeof(sim->top));
	for (uint32_t i = 1; i <= SIM_NODES; i++)
		reset_node(&sim->node[i], i);
	arena_reset(&sim->arena);
	sim->nodes = sim->options.nodes ? sim->options.nodes : random_between(&sim->random, 2, 5);
	sim->stability = sim->nodes == 2 ? BELAY_STABLE_ALL : BELAY_STABLE_MAJORITY;
	draw_temper(sim);
	draw_config(sim);
}

void script_world(struct sim *sim)
{
	sim_reset(sim, 1);
	sim->random.state = 7;	/* whatever a world draws before */
	sim->temper = (struct temper){
		.order_us = 1, .lag_us = 1, .burst = 1, .linger_us = 1, .think_us = 1, .gap_us = 1,
		.frame_ops = 40, .quorum_us = 1, .record_batch = 30, .company_us = 1, .outgoing_us = 1,
		.boot_us = 1, .hint_us = 1, .hint_leaks = true, .fixed_gap_us = 1000,
		.keys = SIM_FILES, .clients = SIM_CLIENTS, .atoms = SIM_ATOMS,
	};
	sim->config.limits = (struct belay_limits){
		.resources_max = 16, .locks_max = 512, .waiters_max = 256, .locks_per_owner_max = 64,
	};
	sim->config.loans_max = 0;
	sim->config.hints = false;
	sim->config.min_hold_us = 0;
	sim->config.idle_us = 1000000000;
	sim->config.claim_streak = 8;
	sim->config.share_streak = 8;
	sim->config.lend_after = 2;
}

const char *sim_run(struct sim *sim, uint64_t seed)
{
	sim_reset(sim, seed);
	sim->tally.runs++;
	sim->acts = sim->options.steps;
	trace(sim, "seed %" PRIu64 ": %u nodes, stable by %s", seed, sim->nodes,
	      sim->stability == BELAY_STABLE_ALL ? "all" : "majority");
	fault_begin(sim);
	for (uint32_t n = 1; n <= sim->nodes; n++)
		sim_due(sim, random_below(&sim->random, 1000), DUE_CLIENT, n, 0);
	sim_advance(sim, UINT64_MAX);
	if (!sim_failed(sim))
		judge_quiet(sim);
	for (uint32_t n = 1; n <= sim->nodes; n++)
		sim_hash(sim, sim->node[n].path);
	return sim_failed(sim) ? sim->failure : NULL;
}

struct sim *sim_new(const struct sim_options *options)
{
	struct sim *sim = calloc(1, sizeof(*sim));

	if (!sim || !(sim->verdict = calloc(SIM_VERDICTS, sizeof(*sim->verdict)))) {
		fputs("sim: out of memory\n", stderr);
		exit(EXIT_FAILURE);
	}
	sim->options = *options;
	return sim;
}

void sim_free(struct sim *sim)
{
	for (uint32_t i = 0; i <= SIM_NODES; i++) {
		struct node *node = &sim->node[i];

		vector_done(&node->queue);
		vector_done(&node->inbox);
		vector_done(&node->pending);
		vector_done(&node->held);
		vector_done(&node->replaying);
		vector_done(&node->outgoing);
		vector_done(&node->recalled);
		vector_done(&node->lend_held);
		for (uint32_t k = 0; k < SIM_CLIENTS; k++)
			loan_memory_free(sim->memory[i][k]);
		if (node->memory)
			munmap(node->memory, node->memory_size);
	}
	for (uint32_t i = 0; i < SIM_RINGS; i++)
		vector_done(&sim->ring[i].log);
	vector_done(&sim->heap);
	vector_done(&sim->frames);
	vector_done(&sim->hints);
	arena_done(&sim->arena);
	free(sim->verdict);
	free(sim);
}
