/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Scenarios: one command a line, played in a world without chance. README.md
 * lists the commands. What happens is the trace, which the test compares.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"

#define WORDS_MAX 16
/* "quiet" ends when nothing is due in this time, or after so long. */
#define CALM_US 20000
#define PATIENCE_US 30000

struct line {
	struct sim *sim;
	const char *name;
	unsigned number;
	uint32_t count;
	char *word[WORDS_MAX];
	bool failed;
	bool expects;		/* the judges must find fault */
};

static void wrong(struct line *l, const char *what)
{
	if (!l->failed)
		fprintf(stderr, "%s:%u: %s\n", l->name, l->number, what);
	l->failed = true;
}

static const char *word(const struct line *l, uint32_t i)
{
	return i < l->count ? l->word[i] : "";
}

static uint32_t number(struct line *l, uint32_t i, uint32_t low, uint32_t high)
{
	char *end;
	unsigned long n = strtoul(word(l, i), &end, 10);

	if (word(l, i)[0] == '\0' || *end != '\0' || n < low || n > high) {
		wrong(l, "a number is missing or out of range");
		return low;
	}
	return (uint32_t)n;
}

/* "n3" */
static struct node *node_word(struct line *l, uint32_t i)
{
	const char *w = word(l, i);
	unsigned long id = w[0] == 'n' ? strtoul(w + 1, NULL, 10) : 0;

	if (id < 1 || id > l->sim->nodes) {
		wrong(l, "a node is missing: n1, n2 ...");
		id = 1;
	}
	return &l->sim->node[id];
}

/* "r0" */
static uint32_t key_word(struct line *l, uint32_t i)
{
	const char *w = word(l, i);
	unsigned long key = w[0] == 'r' ? strtoul(w + 1, NULL, 10) : SIM_KEYS;

	if (key >= SIM_KEYS) {
		wrong(l, "a resource is missing: r0 .. r5");
		key = 0;
	}
	return (uint32_t)key;
}

/* "c1" or "c1.0": a client, made when it is first named, and its owner. */
static struct client *client_word(struct line *l, struct node *node, uint32_t i, uint32_t *ret_owner)
{
	const char *w = word(l, i);
	char *dot = NULL;
	unsigned long c = w[0] == 'c' ? strtoul(w + 1, &dot, 10) : 0;
	unsigned long o = dot && *dot == '.' ? strtoul(dot + 1, NULL, 10) : 0;
	enum belay_kind kind = BELAY_KIND_POSIX;
	struct client *client;

	if (c < 1 || c > SIM_CLIENTS || o >= SIM_CLIENT_OWNERS) {
		wrong(l, "an owner is missing: c1.0");
		c = 1;
		o = 0;
	}
	client = &node->client[c - 1];
	if (!client->used)
		(void)client_new(l->sim, node, (uint32_t)c - 1);
	for (uint32_t k = i + 1; k < l->count; k++)
		if (strcmp(l->word[k], "ofd") == 0)
			kind = BELAY_KIND_OFD;
	if (client->owner[o] == SIM_NONE)
		client->owner[o] = owner_new(l->sim, node, client->id, o, kind);
	*ret_owner = client->owner[o];
	return client;
}

/* ---- time ---- */

static void quiet(struct sim *sim)
{
	uint64_t patience = sim->now_us + PATIENCE_US;

	while (!sim_failed(sim) && sim->heap.count > 0) {
		const struct due_event *next = sim->heap.data;

		if (next->at_us > sim->now_us + CALM_US || next->at_us > patience)
			return;
		sim_advance(sim, next->at_us);
	}
}

/* All that belongs to a good start is not worth a line, but for who is synced at its end. */
static void start(struct line *l)
{
	FILE *trace = l->sim->options.trace;

	l->sim->options.trace = NULL;
	for (uint32_t i = 1; i <= l->sim->nodes; i++) {
		bool named = l->count == 1;

		for (uint32_t k = 1; k < l->count; k++)
			named |= node_word(l, k)->id == i;
		if (named && !l->sim->node[i].powered)
			cpg_boot(l->sim, &l->sim->node[i]);
	}
	quiet(l->sim);
	for (uint32_t i = 1; i <= l->sim->nodes; i++)
		if (l->sim->node[i].powered && !l->sim->node[i].process)
			node_start(l->sim, &l->sim->node[i]);
	quiet(l->sim);
	l->sim->options.trace = trace;
	for (uint32_t i = 1; i <= l->sim->nodes; i++)
		if (l->sim->node[i].process)
			trace(l->sim, "n%u is up, %s", i, l->sim->node[i].stats.synced ? "synced" : "not synced");
}

static void split(struct line *l)
{
	uint32_t part = 0;

	for (uint32_t i = 1; i <= l->sim->nodes; i++)
		if (l->sim->node[i].component > part)
			part = l->sim->node[i].component;
	for (uint32_t k = 1; k < l->count; k++)
		node_word(l, k)->component = part + 1;
	l->sim->token_node = node_word(l, 1)->id;
	cpg_network_changed(l->sim);
}

static void join(struct sim *sim)
{
	for (uint32_t i = 1; i <= sim->nodes; i++)
		sim->node[i].component = 0;
	cpg_network_changed(sim);
}

static void set(struct line *l)
{
	struct belay_core_config *c = &l->sim->config;
	const struct {
		const char *name;
		uint32_t *value;
	} known[] = {
		{ "min_hold_us", &c->min_hold_us }, { "idle_us", &c->idle_us },
		{ "claim_streak", &c->claim_streak }, { "waiters_max", &c->limits.waiters_max },
		{ "locks_max", &c->limits.locks_max },
		{ "frame_ops", &l->sim->temper.frame_ops }, { "loans", &c->loans_max },
		{ "share_streak", &c->share_streak }, { "lend_after", &c->lend_after },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(word(l, 1), known[i].name) == 0) {
			*known[i].value = number(l, 2, 0, 1000000000);
			/* Then messages to belayd take a microsecond, and all clients take loans. */
			l->sim->temper.ipc_us = c->loans_max > 0;
			l->sim->temper.borrow_percent = c->loans_max > 0 ? 100 : 0;
			l->sim->temper.small_limits |= &c->limits.locks_max == known[i].value;
			return;
		}
	if (strcmp(word(l, 1), "hints") == 0)
		c->hints = number(l, 2, 0, 1) == 1;
	else
		wrong(l, "set what?");
}

/* ---- what a node's clients do ---- */

/* nK lock|try|test rR S|X FIRST LAST OWNER */
static void ask(struct line *l, struct node *node)
{
	struct request what = { .key = key_word(l, 2) };
	struct client *client;
	uint32_t owner;

	what.wait = strcmp(word(l, 1), "lock") == 0;
	what.test = strcmp(word(l, 1), "test") == 0;
	what.mode = strcmp(word(l, 3), "X") == 0 ? BELAY_MODE_EX : BELAY_MODE_SH;
	what.first = number(l, 4, 0, SIM_ATOMS - 1);
	what.last = number(l, 5, what.first, SIM_ATOMS - 1);
	client = client_word(l, node, 6, &owner);
	if (!l->failed && (client->dead || client->stopped))
		wrong(l, "it is dead, or stopped");
	if (l->failed)
		return;
	if (client_lock(l->sim, client, owner, &what) < 0)
		wrong(l, "the request is refused");
	node_end_turn(l->sim, node);
}

/* nK unlock rR FIRST LAST OWNER */
static void unlock(struct line *l, struct node *node)
{
	uint32_t key = key_word(l, 2), first = number(l, 3, 0, SIM_ATOMS - 1);
	uint32_t last = number(l, 4, first, SIM_ATOMS - 1), owner;
	struct client *client;

	client = client_word(l, node, 5, &owner);
	if (!l->failed && (client->dead || client->stopped))
		wrong(l, "it is dead, or stopped");
	if (l->failed)
		return;
	client_unlock(l->sim, client, owner, key, first, last);
	node_end_turn(l->sim, node);
}

/* nK node lock|try|test|unlock|cancel rR [S|X]; nK node adopt: what the node itself does about a volume */
static void volume(struct line *l, struct node *node)
{
	const char *w = word(l, 2);
	struct request what = { 0 };

	if (strcmp(w, "adopt") == 0) {
		volume_adopt(l->sim, node);
		node_end_turn(l->sim, node);
		return;
	}
	what.key = key_word(l, 3);
	what.wait = strcmp(w, "lock") == 0;
	what.test = strcmp(w, "test") == 0;
	what.mode = strcmp(word(l, 4), "X") == 0 ? BELAY_MODE_EX : BELAY_MODE_SH;
	if (!sim_is_volume(what.key))
		wrong(l, "that is no volume: r4, r5");
	else if (strcmp(w, "unlock") == 0)
		volume_unlock(l->sim, node, what.key);
	else if (!node->process || node->stopped)
		wrong(l, "there is no belayd");
	else if (strcmp(w, "cancel") == 0 && !volume_cancel(l->sim, node, what.key))
		wrong(l, "the node awaits nothing");
	else if ((what.wait || what.test || strcmp(w, "try") == 0) && volume_lock(l->sim, node, &what) < 0)
		wrong(l, "the request is refused");
	if (node_runs(node))
		node_end_turn(l->sim, node);
}

static void cancel(struct line *l, struct node *node)
{
	uint32_t owner;
	struct client *client = client_word(l, node, 2, &owner);

	for (uint32_t i = 0; i < l->sim->request_top; i++) {
		struct request *q = &l->sim->request[i];

		if (q->used && !q->orphan && q->owner == owner) {
			client_cancel(l->sim, client, q);
			node_end_turn(l->sim, node);
			return;
		}
	}
	wrong(l, "that owner awaits nothing");
}

static void die(struct line *l, struct node *node)
{
	uint32_t owner;
	struct client *client = client_word(l, node, 2, &owner);

	client_die(l->sim, client, 1);
	node_end_turn(l->sim, node);
}

/* nK halt cC [STEP]: it stops, now, or in its next call in a loan, before so many accesses */
static void halt(struct line *l, struct node *node)
{
	uint32_t owner, steps = l->count > 3 ? number(l, 3, 1, 1000) : 0;
	struct client *client = client_word(l, node, 2, &owner);

	if (steps > 0)
		client->steps = steps;
	else
		loan_stop(l->sim, client, 0);
}

/* It writes what makes no sense into the slots of its loans, and does not believe in anything any more. */
static void garbage(struct line *l, struct node *node)
{
	uint32_t owner;
	struct client *client = client_word(l, node, 2, &owner);

	client->dead = client->mad = true;
	belief_client_dies(l->sim, node, client->id);
	for (uint32_t i = 0; client->memory && i < SIM_SLOTS; i++)
		client->memory->loan[i].head->token = 1;
}

static void go(struct line *l, struct node *node)
{
	uint32_t owner;
	struct client *client = client_word(l, node, 2, &owner);

	if (!client->stopped)
		wrong(l, "it is not stopped");
	else
		loan_go_on(l->sim, client);
	node_end_turn(l->sim, node);
}

/* ---- what befalls a node ---- */

static void fence(struct line *l, struct node *node)
{
	struct belay_event event = { .type = BELAY_EVENT_FENCE };
	int r;

	event.fence.node = node_word(l, 2)->id;
	r = node_step(l->sim, node, &event);
	if (r != 0)
		trace(l->sim, "n%u   refuses: %s", node->id, strerror(-r));
	node_end_turn(l->sim, node);
}

static void leave(struct line *l, struct node *node)
{
	struct belay_event event = { .type = BELAY_EVENT_LEAVE };

	if (node_step(l->sim, node, &event) < 0)
		wrong(l, "it is leaving already");
	node_end_turn(l->sim, node);
}

static void suffer(struct line *l, struct node *node)
{
	struct sim *sim = l->sim;
	const char *w = word(l, 1);

	if (strcmp(w, "off") == 0) {
		fault_power_off(sim, node);
	} else if (strcmp(w, "boot") == 0) {
		cpg_boot(sim, node);
		node_start(sim, node);
	} else if (strcmp(w, "kill") == 0) {
		fault_kill(sim, node);
	} else if (strcmp(w, "run") == 0) {
		node_start(sim, node);
	} else if (strcmp(w, "stop") == 0 || strcmp(w, "cont") == 0) {
		node->stopped = w[0] == 's';
		if (!node->stopped)
			node_wake(sim, node);
	} else if (strcmp(w, "corosync-stop") == 0 || strcmp(w, "corosync-cont") == 0) {
		node->corosync_stopped = w[9] == 's';
		if (node->corosync_stopped)
			sim->token_node = node->id;
		cpg_network_changed(sim);
	} else if (strcmp(w, "mute") == 0 || strcmp(w, "speak") == 0) {
		node->muted = w[0] == 'm';
		cpg_kick(sim, node);
	} else if (strcmp(w, "lag") == 0 || strcmp(w, "read") == 0) {
		node->lagging = w[0] == 'l';
		cpg_kick(sim, node);
	} else if (strcmp(w, "deliver") == 0) {
		node_read(sim, node, number(l, 2, 1, 1000));
	} else if (strcmp(w, "order") == 0) {
		cpg_order_now(sim, node, number(l, 2, 1, 1000));
	} else if (strcmp(w, "lose") == 0) {
		node->lose = number(l, 2, 0, 1000);
	} else if (strcmp(w, "corrupt") == 0) {
		node->corrupt = true;
	} else if (strcmp(w, "busy") == 0) {
		node->busy_until_us = sim->now_us + number(l, 2, 0, 1000000);
	} else {
		wrong(l, "no such command");
	}
}

static void node_command(struct line *l)
{
	struct node *node = node_word(l, 0);
	const char *w = word(l, 1);

	if (!node->process && strcmp(w, "boot") != 0 && strcmp(w, "run") != 0 &&
	    !(strcmp(w, "node") == 0 && strcmp(word(l, 2), "unlock") == 0))
		wrong(l, "there is no belayd");
	else if (strcmp(w, "lock") == 0 || strcmp(w, "try") == 0 || strcmp(w, "test") == 0)
		ask(l, node);
	else if (strcmp(w, "unlock") == 0)
		unlock(l, node);
	else if (strcmp(w, "node") == 0)
		volume(l, node);
	else if (strcmp(w, "cancel") == 0)
		cancel(l, node);
	else if (strcmp(w, "die") == 0)
		die(l, node);
	else if (strcmp(w, "halt") == 0)
		halt(l, node);
	else if (strcmp(w, "go") == 0)
		go(l, node);
	else if (strcmp(w, "garbage") == 0)
		garbage(l, node);
	else if (strcmp(w, "fence") == 0)
		fence(l, node);
	else if (strcmp(w, "leave") == 0)
		leave(l, node);
	else
		suffer(l, node);
}

static void command(struct line *l)
{
	const char *w = word(l, 0);
	struct sim *sim = l->sim;

	if (strcmp(w, "nodes") == 0) {
		sim->options.nodes = number(l, 1, 1, SIM_NODES);
		script_world(sim);
	} else if (strcmp(w, "set") == 0) {
		set(l);
	} else if (strcmp(w, "start") == 0) {
		start(l);
	} else if (strcmp(w, "split") == 0) {
		split(l);
	} else if (strcmp(w, "join") == 0) {
		join(sim);
	} else if (strcmp(w, "expect-fault") == 0) {
		l->expects = true;
	} else if (strcmp(w, "quiet") == 0) {
		quiet(sim);
	} else if (strcmp(w, "advance") == 0) {
		sim_advance(sim, sim->now_us + number(l, 1, 1, 100000000));
	} else {
		node_command(l);
	}
}

static void summary(struct sim *sim)
{
	for (uint32_t i = 1; i <= sim->nodes; i++) {
		const struct node *n = &sim->node[i];

		if (!n->process) {
			trace(sim, "n%u: no belayd", i);
			continue;
		}
		belay_core_check(n->core);
		trace(sim, "n%u: %s%s, %u locks, %u waiting, %u requests", i, n->stats.synced ? "synced" : "not synced",
		      n->stats.frozen ? ", frozen" : "", n->stats.locks_replicated, n->stats.waiters_replicated,
		      n->stats.requests);
	}
}

bool script_play(struct sim *sim, FILE *script, const char *name)
{
	struct line l = { .sim = sim, .name = name };
	char text[256];

	while (!l.failed && !sim_failed(sim) && fgets(text, sizeof(text), script)) {
		l.number++;
		l.count = 0;
		text[strcspn(text, "\n")] = '\0';
		if (text[0] == '\0')
			continue;
		fprintf(sim->options.trace, "%s%s\n", text[0] == '#' ? "" : "> ", text);
		if (text[0] == '#')
			continue;
		for (char *w = strtok(text, " \t"); w && l.count < WORDS_MAX; w = strtok(NULL, " \t"))
			l.word[l.count++] = w;
		command(&l);
	}
	if (!l.failed && !sim_failed(sim))
		summary(sim);
	return !l.failed && sim_failed(sim) == l.expects;
}
