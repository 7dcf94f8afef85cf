/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What happens, for people: one line an event, its effects below it. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "tests/sim/sim.h"

void trace_line(struct sim *sim, const char *format, ...)
{
	va_list args;

	fprintf(sim->options.trace, "[%7" PRIu64 "us] ", sim->now_us);
	va_start(args, format);
	vfprintf(sim->options.trace, format, args);
	va_end(args);
	fputc('\n', sim->options.trace);
}

const char *trace_op_name(enum belay_op_type type)
{
	static const char *const name[BELAY_OP_COUNT] = {
		[BELAY_OP_REQ] = "REQ", [BELAY_OP_REL] = "REL", [BELAY_OP_CANCEL] = "CANCEL",
		[BELAY_OP_BUSY] = "BUSY", [BELAY_OP_HELD] = "HELD", [BELAY_OP_WAITING] = "WAITING",
		[BELAY_OP_RELINQ] = "RELINQ", [BELAY_OP_CLAIM] = "CLAIM", [BELAY_OP_IDLE] = "IDLE",
		[BELAY_OP_CLIENT_GONE] = "CLIENT_GONE", [BELAY_OP_HELLO] = "HELLO",
		[BELAY_OP_SYNCED] = "SYNCED", [BELAY_OP_START] = "START", [BELAY_OP_FENCED] = "FENCED",
		[BELAY_OP_LEAVE] = "LEAVE", [BELAY_OP_DIGEST] = "DIGEST", [BELAY_OP_AGAIN] = "AGAIN",
	};

	return type < BELAY_OP_COUNT && name[type] ? name[type] : "?";
}

static const char *result_name(int result)
{
	switch (result) {
	case 0:		return "granted";
	case -EAGAIN:	return "EAGAIN";
	case -EDEADLK:	return "EDEADLK";
	case -EINTR:	return "EINTR";
	case -ENOLCK:	return "ENOLCK";
	case -EIO:	return "EIO";
	default:	return "?";
	}
}

static char mode_letter(enum belay_mode mode)
{
	return mode == BELAY_MODE_EX ? 'X' : 'S';
}

struct word {
	char at[80];
};

struct text {
	char at[256];
};

static struct word range_text(const struct belay_key *key, struct belay_range range, enum belay_mode mode)
{
	struct word t;
	uint32_t k = sim_key(key);

	if (range.end == BELAY_OFFSET_MAX)
		snprintf(t.at, sizeof(t.at), "r%d %c[%" PRIu64 ",..]", (int)k, mode_letter(mode), range.start);
	else
		snprintf(t.at, sizeof(t.at), "r%d %c[%" PRIu64 ",%" PRIu64 "]", (int)k, mode_letter(mode), range.start,
			 range.end);
	return t;
}

static struct word owner_text(const struct belay_owner *owner)
{
	struct word t;

	if (owner->client == BELAY_CLIENT_NODE)
		snprintf(t.at, sizeof(t.at), "n%u itself", owner->node);
	else
		snprintf(t.at, sizeof(t.at), "n%u.c%u.%u%s", owner->node, owner->client, (unsigned)owner->key,
		 owner->kind == BELAY_KIND_POSIX ? "" : owner->kind == BELAY_KIND_OFD ? "(ofd)" : "(flock)");
	return t;
}

/* Of the node of the line. */
static struct word client_text(uint32_t client)
{
	struct word t = { "itself" };

	if (client != BELAY_CLIENT_NODE)
		snprintf(t.at, sizeof(t.at), "c%u", client);
	return t;
}

static struct text op_text(const struct belay_op *op)
{
	struct word range = range_text(&op->key, op->range, op->mode), owner = owner_text(&op->owner);
	const char *name = trace_op_name(op->type);
	struct text t;

	switch (op->type) {
	case BELAY_OP_REQ:
	case BELAY_OP_WAITING:
		snprintf(t.at, sizeof(t.at), "%s#%u %s %s%s", name, op->request, range.at, owner.at,
			 op->test ? " test" : op->wait ? "" : " try");
		break;
	case BELAY_OP_REL:
	case BELAY_OP_HELD:
		snprintf(t.at, sizeof(t.at), "%s %s %s", name, range.at, owner.at);
		break;
	case BELAY_OP_CANCEL:
		snprintf(t.at, sizeof(t.at), "%s#%u", name, op->request);
		break;
	case BELAY_OP_BUSY:
		snprintf(t.at, sizeof(t.at), "%s n%u#%u%s%s", name, op->node, op->request, op->held ? " held by " : "",
			 op->held ? owner.at : "");
		break;
	case BELAY_OP_RELINQ:
	case BELAY_OP_CLAIM:
	case BELAY_OP_IDLE:
		snprintf(t.at, sizeof(t.at), "%s r%d epoch %" PRIu64, name, (int)sim_key(&op->key), op->epoch);
		break;
	case BELAY_OP_CLIENT_GONE:
		snprintf(t.at, sizeof(t.at), "%s c%u", name, op->owner.client);
		break;
	case BELAY_OP_HELLO:
		snprintf(t.at, sizeof(t.at), "%s%s", name, op->synced ? " synced" : " unsynced");
		break;
	case BELAY_OP_FENCED:
	case BELAY_OP_AGAIN:
		snprintf(t.at, sizeof(t.at), "%s n%u incarnation %" PRIu64, name, op->node, op->incarnation);
		break;
	default:
		snprintf(t.at, sizeof(t.at), "%s", name);
	}
	return t;
}

static void list_text(char *buf, size_t size, const char *name, uint32_t count, const uint32_t *node)
{
	size_t at = strlen(buf);

	if (count == 0)
		return;
	at += (size_t)snprintf(buf + at, size - at, "%s%s", at ? ", " : "", name);
	for (uint32_t i = 0; i < count; i++)
		at += (size_t)snprintf(buf + at, size - at, " n%u", node[i]);
}

static void trace_local(struct sim *sim, const struct node *node, const struct belay_event *event)
{
	struct word range = range_text(&event->lock.key, event->lock.range, event->lock.mode);
	struct belay_owner id = event->lock.owner;
	struct word owner;

	id.node = node->id;
	owner = owner_text(&id);
	if (event->type == BELAY_EVENT_LOCK)
		trace_line(sim, "n%u %s %s (cookie %" PRIu64 ") by %s", node->id,
			   event->lock.test ? "test" : event->lock.wait ? "lock" : "try", range.at,
			   event->lock.cookie, owner.at);
	else
		trace_line(sim, "n%u unlock %s by %s", node->id, range.at, owner.at);
}

/* ---- loans and hints ---- */

static void trace_loan_back(struct sim *sim, const struct node *node, const struct belay_event *event)
{
	if (event->type == BELAY_EVENT_LOAN_HELD)
		trace_line(sim, "n%u   loan %u holds %c[%" PRIu64 ",%" PRIu64 "] of owner %u", node->id,
			   event->loan.loan, mode_letter(event->loan.mode), event->loan.range.start,
			   event->loan.range.end, (unsigned)event->loan.owner.key);
	else
		trace_line(sim, "n%u   loan %u is back%s", node->id, event->loan.loan,
			   event->loan.used ? "" : ", unused");
}

static void trace_lend(struct sim *sim, uint32_t node, const struct belay_action *action)
{
	struct word range;

	if (action->type == BELAY_ACTION_LEND_HELD)
		return;
	range = range_text(&action->key, action->range, action->mode);
	trace_line(sim, "n%u   lends c%u %s as loan %u, room %u", node, action->client, range.at, action->loan,
		   action->room);
}

static void trace_hint(struct sim *sim, const struct node *node, const char *what, const struct belay_hint *hint)
{
	struct word range = range_text(&hint->key, hint->range, BELAY_MODE_EX), owner = owner_text(&hint->owner);

	if (sim_key(&hint->key) == SIM_NONE) {
		trace_line(sim, "n%u %s request %u: n%u has it", node->id, what, hint->waiter, hint->node);
		return;
	}
	trace_line(sim, "n%u %s a release: %s %s", node->id, what, range.at + 3, owner.at);
}

void trace_call(struct sim *sim, const struct client *client, const struct call *call)
{
	static const char *const name[] = { "begins", "locks", "unlocks", "tests" };
	const struct request *what = &call->what;
	struct belay_key key;
	struct word range;

	if (!sim->options.trace)
		return;
	if (call->type == CALL_BEGIN) {
		trace_line(sim, "n%u c%u begins with slot %u: %s", client->node->id, client->id, call->loan->index,
			   call->result == 0 ? "yes" : "it is over");
		return;
	}
	sim_make_key(what->key, &key);
	range = range_text(&key, sim_range(what->first, what->last), what->mode);
	trace_line(sim, "n%u %s %s %s in a loan: %s", client->node->id, owner_text(&sim->owner[what->owner].id).at,
		   name[call->type], range.at, call->result == 0 ? "done" : call->result == -ESTALE ? "it is over" :
		   call->result == -ENOSPC ? "no room" : "busy");
}

/* What the core knows of the resource that an op is about. */
static struct word state_text(const struct node *node, const struct belay_op *op)
{
	static const char *const state[BELAY_STATE_COUNT] = { "UNOWNED", "OWNED", "RECALL", "ARB", "SHARED" };
	struct belay_cursor cursor = { 0 };
	struct belay_lock_info info;
	uint32_t held = 0, waiting = 0, key = sim_key(&op->key);
	const char *name = NULL;
	struct word t = { "" };

	while (key != SIM_NONE && belay_core_locks_next(node->core, &cursor, &info) == 1) {
		if (sim_key(&info.key) != key)
			continue;
		name = state[info.state];
		held += !info.waiting;
		waiting += info.waiting;
	}
	if (name)
		snprintf(t.at, sizeof(t.at), "r%u is %s: %u held, %u waiting", key, name, held, waiting);
	else if (key != SIM_NONE)
		snprintf(t.at, sizeof(t.at), "r%u: nothing held or waiting is known here", key);
	return t;
}

static void trace_op(struct sim *sim, const struct node *node, const struct belay_op *op)
{
	struct word before = state_text(node, op);

	snprintf(sim->state_before, sizeof(sim->state_before), "%s", before.at);
	trace_line(sim, "n%u deliver n%u %s", node->id, sim->delivering, op_text(op).at);
}

void trace_event(struct sim *sim, const struct node *node, const struct belay_event *event)
{
	char text[200] = "";

	if (!sim->options.trace)
		return;
	switch (event->type) {
	case BELAY_EVENT_LOCK:
	case BELAY_EVENT_UNLOCK:
		trace_local(sim, node, event);
		break;
	case BELAY_EVENT_CANCEL:
		trace_line(sim, "n%u cancel %s cookie %" PRIu64, node->id, client_text(event->client.client).at,
			   event->client.cookie);
		break;
	case BELAY_EVENT_CLIENT_GONE:
		trace_line(sim, "n%u client c%u is gone", node->id, event->client.client);
		break;
	case BELAY_EVENT_FENCE:
		trace_line(sim, "n%u hears that n%u has stopped", node->id, event->fence.node);
		break;
	case BELAY_EVENT_LEAVE:
		trace_line(sim, "n%u shall leave", node->id);
		break;
	case BELAY_EVENT_QUORUM:
		trace_line(sim, "n%u quorum: %s", node->id, event->quorum.quorate ? "yes" : "no");
		break;
	case BELAY_EVENT_LOAN_HELD:
	case BELAY_EVENT_LOAN_BACK:
		trace_loan_back(sim, node, event);
		break;
	case BELAY_EVENT_HINT:
		trace_hint(sim, node, "hears by a hint of", event->hint);
		break;
	case BELAY_EVENT_TICK:
		break;
	case BELAY_EVENT_VIEW:
		list_text(text, sizeof(text), "members", event->view.member_count, event->view.member);
		list_text(text, sizeof(text), "joined", event->view.joined_count, event->view.joined);
		list_text(text, sizeof(text), "left", event->view.left_count, event->view.left);
		trace_line(sim, "n%u view: %s", node->id, text);
		break;
	case BELAY_EVENT_FRAME:
		if (event->frame->ask)
			trace_line(sim, "n%u deliver n%u asks for acks", node->id, event->frame->node);
		break;
	case BELAY_EVENT_OP:
		trace_op(sim, node, event->op);
		break;
	case BELAY_EVENT_RECORD:
	case BELAY_EVENT_COUNT:
		break;
	}
}

void trace_state(struct sim *sim, const struct node *node, const struct belay_event *event)
{
	struct word after;

	if (!sim->options.trace || event->type != BELAY_EVENT_OP)
		return;
	after = state_text(node, event->op);
	if (strcmp(after.at, sim->state_before) != 0)
		trace_line(sim, "n%u   %s", node->id, after.at);
}

static void trace_reply(struct sim *sim, uint32_t node, const struct belay_action *action)
{
	struct word client = client_text(action->client);
	char token[40] = "";

	/* The judges watch the tokens; in a scenario's trace they would only change for no reason. */
	if (action->result == 0 && action->token != 0 && !sim->options.scenario)
		snprintf(token, sizeof(token), ", token %" PRIu64, action->token);
	if (action->result == 0 && action->token == 0)	/* a test */
		trace_line(sim, "n%u   reply %s cookie %" PRIu64 ": %s", node, client.at, action->cookie,
			   action->held ? "held" : "free");
	else
		trace_line(sim, "n%u   reply %s cookie %" PRIu64 ": %s%s", node, client.at, action->cookie,
			   result_name(action->result), token);
}

void trace_action(struct sim *sim, const struct node *node, const struct belay_action *action)
{
	uint32_t n = node->id;
	char text[40];

	if (!sim->options.trace)
		return;
	switch (action->type) {
	case BELAY_ACTION_SEND:
		trace_line(sim, "n%u   send %s%s", n, op_text(action->op).at, action->urgent ? "" : " (may wait)");
		break;
	case BELAY_ACTION_FLUSH:
		if (action->ask)
			trace_line(sim, "n%u   asks for acks", n);
		break;
	case BELAY_ACTION_REPLY:
		trace_reply(sim, n, action);
		break;
	case BELAY_ACTION_LOST:
		trace_line(sim, "n%u   c%u lost its locks", n, action->client);
		break;
	case BELAY_ACTION_LEND_HELD:
	case BELAY_ACTION_LEND:
		trace_lend(sim, n, action);
		break;
	case BELAY_ACTION_RECALL:
		trace_line(sim, "n%u   recalls loan %u of c%u", n, action->loan, action->client);
		break;
	case BELAY_ACTION_HINT:
		snprintf(text, sizeof(text), "  hints to n%u", action->node);
		trace_hint(sim, node, text, action->hint);
		break;
	case BELAY_ACTION_SNAPSHOT:
	case BELAY_ACTION_HOLD:
	case BELAY_ACTION_REPLAY:
	case BELAY_ACTION_FORGET:
		trace_line(sim, "n%u   %s", n, action->type == BELAY_ACTION_SNAPSHOT ? "snapshot" :
			   action->type == BELAY_ACTION_HOLD ? "hold" :
			   action->type == BELAY_ACTION_REPLAY ? "replay" : "forget");
		break;
	case BELAY_ACTION_RESTART:
		trace_line(sim, "n%u   new life %" PRIu64, n, action->incarnation);
		break;
	case BELAY_ACTION_SYNCED:
		trace_line(sim, "n%u   synced", n);
		break;
	case BELAY_ACTION_FROZEN:
		trace_line(sim, "n%u   %s", n, action->frozen ? "frozen" : "thawed");
		break;
	case BELAY_ACTION_NODE_LEFT:
	case BELAY_ACTION_NODE_CLOSED:
	case BELAY_ACTION_NODE_JOINED:
		trace_line(sim, "n%u   n%u (%" PRIu64 ") %s", n, action->node, action->incarnation,
			   action->type == BELAY_ACTION_NODE_LEFT ? "has left" :
			   action->type == BELAY_ACTION_NODE_CLOSED ? "is closed" : "has joined");
		break;
	case BELAY_ACTION_LEFT:
		trace_line(sim, "n%u   may leave the group", n);
		break;
	case BELAY_ACTION_ISOLATE:
		trace_line(sim, "n%u   ISOLATES ITSELF: %s", n, action->reason);
		break;
	case BELAY_ACTION_COUNT:
		break;
	}
}

/* What the clients believe and await of a resource, when a judge has doubts. */
void trace_beliefs(struct sim *sim, uint32_t key)
{
	struct belay_key name;

	if (!sim->options.trace)
		return;
	sim_make_key(key, &name);
	for (uint32_t i = 0; i < sim->owner_top; i++) {
		const struct owner *o = &sim->owner[i];

		for (uint32_t a = 0; o->used && a < SIM_ATOMS; a++)
			if (o->held[key][a] != HOLD_NONE)
				trace_line(sim, "    %s %s %s", owner_text(&o->id).at, o->believes ? "holds" : "held",
					   range_text(&name, sim_range(a, a), o->held[key][a] == HOLD_EX ?
						      BELAY_MODE_EX : BELAY_MODE_SH).at);
	}
	for (uint32_t i = 0; i < sim->request_top; i++) {
		const struct request *q = &sim->request[i];

		if (!q->used || q->key != key)
			continue;
		trace_line(sim, "    %s#%u %s%s %s, place %" PRIx64 "%s", owner_text(&sim->owner[q->owner].id).at,
			   q->number, q->answered ? "was answered" : q->orphan ? "is forgotten" : "awaits",
			   q->test ? " (test)" : q->wait ? "" : " (try)",
			   range_text(&name, sim_range(q->first, q->last), q->mode).at, q->order,
			   q->cancelled ? ", cancelled" : "");
	}
}
