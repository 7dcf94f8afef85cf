/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/trace.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static const char *const modes[BELAY_MODE_COUNT] = {
	[BELAY_MODE_SH] = "SH",
	[BELAY_MODE_EX] = "EX",
};

static const char *const kinds[BELAY_KIND_COUNT] = {
	[BELAY_KIND_POSIX] = "posix",
	[BELAY_KIND_OFD] = "ofd",
	[BELAY_KIND_FLOCK] = "flock",
	[BELAY_KIND_NODE] = "node",
};

static const char *const states[BELAY_STATE_COUNT] = {
	[BELAY_STATE_UNOWNED] = "unowned",
	[BELAY_STATE_OWNED] = "owned",
	[BELAY_STATE_RECALL] = "recall",
	[BELAY_STATE_ARB] = "arbitrated",
	[BELAY_STATE_SHARED] = "shared",
};

static const char *const standings[BELAY_NODE_STANDING_COUNT] = {
	[BELAY_NODE_UNSEEN] = "unseen",
	[BELAY_NODE_MEMBER] = "member",
	[BELAY_NODE_LEFT] = "left",
	[BELAY_NODE_CLOSED] = "closed",
};

static const char *const events[BELAY_EVENT_COUNT] = {
	[BELAY_EVENT_LOCK] = "lock",
	[BELAY_EVENT_UNLOCK] = "unlock",
	[BELAY_EVENT_CANCEL] = "cancel",
	[BELAY_EVENT_CLIENT_GONE] = "client gone",
	[BELAY_EVENT_LOAN_HELD] = "loan held",
	[BELAY_EVENT_LOAN_BACK] = "loan back",
	[BELAY_EVENT_HINT] = "hint",
	[BELAY_EVENT_FENCE] = "fence",
	[BELAY_EVENT_LEAVE] = "leave",
	[BELAY_EVENT_QUORUM] = "quorum",
	[BELAY_EVENT_TICK] = "tick",
	[BELAY_EVENT_VIEW] = "view",
	[BELAY_EVENT_FRAME] = "frame",
	[BELAY_EVENT_OP] = "op",
	[BELAY_EVENT_RECORD] = "record",
};

static const char *const ops[BELAY_OP_COUNT] = {
	[BELAY_OP_REQ] = "REQ",
	[BELAY_OP_REL] = "REL",
	[BELAY_OP_CANCEL] = "CANCEL",
	[BELAY_OP_BUSY] = "BUSY",
	[BELAY_OP_HELD] = "HELD",
	[BELAY_OP_WAITING] = "WAITING",
	[BELAY_OP_RELINQ] = "RELINQ",
	[BELAY_OP_CLAIM] = "CLAIM",
	[BELAY_OP_IDLE] = "IDLE",
	[BELAY_OP_CLIENT_GONE] = "CLIENT_GONE",
	[BELAY_OP_HELLO] = "HELLO",
	[BELAY_OP_SYNCED] = "SYNCED",
	[BELAY_OP_START] = "START",
	[BELAY_OP_FENCED] = "FENCED",
	[BELAY_OP_LEAVE] = "LEAVE",
	[BELAY_OP_DIGEST] = "DIGEST",
	[BELAY_OP_AGAIN] = "AGAIN",
};

static const char *const records[BELAY_RECORD_COUNT] = {
	[BELAY_RECORD_CORE] = "CORE",
	[BELAY_RECORD_NODE] = "NODE",
	[BELAY_RECORD_OWNER] = "OWNER",
	[BELAY_RECORD_RESOURCE] = "RESOURCE",
	[BELAY_RECORD_DELEGATION] = "DELEGATION",
	[BELAY_RECORD_LOCK] = "LOCK",
	[BELAY_RECORD_WAITER] = "WAITER",
	[BELAY_RECORD_END] = "END",
};

static const char *const actions[BELAY_ACTION_COUNT] = {
	[BELAY_ACTION_SEND] = "send",
	[BELAY_ACTION_FLUSH] = "flush",
	[BELAY_ACTION_REPLY] = "reply",
	[BELAY_ACTION_LEND_HELD] = "lend held",
	[BELAY_ACTION_LEND] = "lend",
	[BELAY_ACTION_RECALL] = "recall",
	[BELAY_ACTION_HINT] = "hint",
	[BELAY_ACTION_LOST] = "lost",
	[BELAY_ACTION_SNAPSHOT] = "snapshot",
	[BELAY_ACTION_HOLD] = "hold",
	[BELAY_ACTION_REPLAY] = "replay",
	[BELAY_ACTION_FORGET] = "forget",
	[BELAY_ACTION_RESTART] = "restart",
	[BELAY_ACTION_SYNCED] = "synced",
	[BELAY_ACTION_FROZEN] = "frozen",
	[BELAY_ACTION_NODE_LEFT] = "node left",
	[BELAY_ACTION_NODE_CLOSED] = "node closed",
	[BELAY_ACTION_NODE_JOINED] = "node joined",
	[BELAY_ACTION_LEFT] = "left",
	[BELAY_ACTION_ISOLATE] = "isolate",
};

const char *trace_mode(enum belay_mode mode)
{
	assert(mode < BELAY_MODE_COUNT);
	return modes[mode];
}

const char *trace_kind(enum belay_kind kind)
{
	assert(kind < BELAY_KIND_COUNT);
	return kinds[kind];
}

const char *trace_state(enum belay_state state)
{
	assert(state < BELAY_STATE_COUNT);
	return states[state];
}

const char *trace_standing(enum belay_standing standing)
{
	assert(standing < BELAY_NODE_STANDING_COUNT);
	return standings[standing];
}

struct text {
	char *at;
	size_t left;
};

__attribute__((format(printf, 2, 3)))
static void add(struct text *t, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(t->at, t->left, format, args);
	va_end(args);
	if (n < 0)
		return;
	if ((size_t)n >= t->left)
		n = t->left > 0 ? (int)t->left - 1 : 0;
	t->at += n;
	t->left -= (size_t)n;
}

static void add_key(struct text *t, const struct belay_key *key)
{
	unsigned last = sizeof(key->id);

	while (last > 1 && key->id[last - 1] == 0)
		last--;
	add(t, " %" PRIx32 ":", key->lockspace);
	for (unsigned i = 0; i < last; i++)
		add(t, "%02x", key->id[i]);
}

static void add_range(struct text *t, const struct belay_range *range)
{
	if (range->end == BELAY_OFFSET_MAX)
		add(t, " [%" PRIu64 "-]", range->start);
	else
		add(t, " [%" PRIu64 "-%" PRIu64 "]", range->start, range->end);
}

static void add_owner(struct text *t, const struct belay_owner *owner)
{
	add(t, " owner %" PRIu32 ".%" PRIu32 ".%" PRIu64 " %s pid %" PRIu32, owner->node,
	    owner->client, owner->key, kinds[owner->kind], owner->pid);
}

static void add_want(struct text *t, enum belay_mode mode, bool wait, bool test)
{
	add(t, " %s%s", modes[mode], test ? " test" : wait ? " wait" : "");
}

static void add_op(struct text *t, const struct belay_op *op)
{
	add(t, "%s", ops[op->type]);
	switch (op->type) {
	case BELAY_OP_REQ:
	case BELAY_OP_WAITING:
		add(t, " %" PRIu32, op->request);
		add_key(t, &op->key);
		add_range(t, &op->range);
		add_want(t, op->mode, op->wait, op->test);
		add_owner(t, &op->owner);
		break;
	case BELAY_OP_HELD:
	case BELAY_OP_REL:
		add_key(t, &op->key);
		add_range(t, &op->range);
		if (op->type == BELAY_OP_HELD)
			add(t, " %s", modes[op->mode]);
		add_owner(t, &op->owner);
		if (op->request != 0)
			add(t, " request %" PRIu32 " token %" PRIu64, op->request, op->token);
		break;
	case BELAY_OP_CANCEL:
		add(t, " %" PRIu32, op->request);
		break;
	case BELAY_OP_BUSY:
		add(t, " %" PRIu32 ".%" PRIu32, op->node, op->request);
		if (op->held) {
			add_range(t, &op->range);
			add(t, " %s", modes[op->mode]);
			add_owner(t, &op->owner);
		}
		break;
	case BELAY_OP_RELINQ:
		add_key(t, &op->key);
		add_range(t, &op->range);
		add(t, " epoch %" PRIu64 " token %" PRIu64 "%s", op->epoch, op->token,
		    op->keep ? " keep" : "");
		break;
	case BELAY_OP_CLAIM:
		add_key(t, &op->key);
		add_range(t, &op->range);
		add(t, " %s", modes[op->mode]);
		break;
	case BELAY_OP_IDLE:
		add_key(t, &op->key);
		add(t, " epoch %" PRIu64, op->epoch);
		break;
	case BELAY_OP_CLIENT_GONE:
		add(t, " %" PRIu32, op->owner.client);
		break;
	case BELAY_OP_HELLO:
		add(t, " %ssynced token %" PRIu64, op->synced ? "" : "not ", op->token);
		break;
	case BELAY_OP_START:
		add(t, " members %" PRIu32 " token %" PRIu64, op->members, op->token);
		break;
	case BELAY_OP_FENCED:
	case BELAY_OP_AGAIN:
		add(t, " node %" PRIu32 " incarnation %" PRIu64, op->node, op->incarnation);
		break;
	case BELAY_OP_DIGEST:
		add(t, " place %" PRIu64 " hash %016" PRIx64, op->place, op->hash);
		break;
	default:
		break;
	}
}

static void add_nodes(struct text *t, const char *what, uint32_t count, const uint32_t *nodes)
{
	if (count == 0)
		return;
	add(t, " %s", what);
	for (uint32_t i = 0; i < count; i++)
		add(t, "%c%" PRIu32, i == 0 ? ' ' : ',', nodes[i]);
}

static void add_local(struct text *t, const struct belay_event *ev)
{
	add_key(t, &ev->lock.key);
	add_range(t, &ev->lock.range);
	if (ev->type == BELAY_EVENT_LOCK)
		add_want(t, ev->lock.mode, ev->lock.wait, ev->lock.test);
	add(t, " owner %" PRIu32 ".%" PRIu64 " %s pid %" PRIu32, ev->lock.owner.client,
	    ev->lock.owner.key, kinds[ev->lock.owner.kind], ev->lock.owner.pid);
	if (ev->type == BELAY_EVENT_LOCK)
		add(t, " cookie %" PRIu64 "%s", ev->lock.cookie, ev->lock.lend ? " lend" : "");
}

static void add_loan_held(struct text *t, uint32_t loan, const struct belay_range *range,
			  enum belay_mode mode, const struct belay_owner *owner)
{
	add(t, " %" PRIu32, loan);
	add_range(t, range);
	add(t, " %s owner %" PRIu64 " %s", modes[mode], owner->key, kinds[owner->kind]);
}

static void add_loan_back(struct text *t, const struct belay_event *ev)
{
	add(t, " %" PRIu32, ev->loan.loan);
	if (ev->loan.used) {
		add(t, " used");
		add_range(t, &ev->loan.range);
		add(t, " %s", modes[ev->loan.used_ex ? BELAY_MODE_EX : BELAY_MODE_SH]);
	}
	add(t, " token %" PRIu64, ev->loan.token);
}

static void add_hint(struct text *t, const struct belay_hint *hint)
{
	add(t, " of %" PRIu32 ".%" PRIu64 " to %" PRIu64 ".%" PRIu32 " behind %" PRIx64, hint->node,
	    hint->seq, hint->to_incarnation, hint->waiter, hint->prefix);
	add_key(t, &hint->key);
	add_range(t, &hint->range);
	add_owner(t, &hint->owner);
	add(t, " request %" PRIu32 " token %" PRIu64, hint->request, hint->token);
}

static void add_record(struct text *t, const struct belay_record *record)
{
	add(t, " %s", records[record->type]);
	if (record->type != BELAY_RECORD_DELEGATION)
		return;
	add(t, " of %" PRIu32 " node %" PRIu32, record->resource_number, record->node);
	add_range(t, &record->range);
	add(t, " %s epoch %" PRIu64 "%s", modes[record->mode], record->epoch,
	    record->recalled ? " recalled" : "");
}

/* What the local events have to tell; the ordered ones have trace_event(). */
static void add_local_event(struct text *t, const struct belay_event *ev)
{
	switch (ev->type) {
	case BELAY_EVENT_LOCK:
	case BELAY_EVENT_UNLOCK:
		add_local(t, ev);
		break;
	case BELAY_EVENT_CANCEL:
		add(t, " client %" PRIu32 " cookie %" PRIu64, ev->client.client, ev->client.cookie);
		break;
	case BELAY_EVENT_CLIENT_GONE:
		add(t, " client %" PRIu32, ev->client.client);
		break;
	case BELAY_EVENT_LOAN_HELD:
		add_loan_held(t, ev->loan.loan, &ev->loan.range, ev->loan.mode, &ev->loan.owner);
		break;
	case BELAY_EVENT_LOAN_BACK:
		add_loan_back(t, ev);
		break;
	case BELAY_EVENT_HINT:
		add_hint(t, ev->hint);
		break;
	case BELAY_EVENT_FENCE:
		add(t, " node %" PRIu32, ev->fence.node);
		break;
	case BELAY_EVENT_QUORUM:
		add(t, " %s", ev->quorum.quorate ? "yes" : "no");
		break;
	default:
		break;
	}
}

void trace_event(char *buf, size_t size, const struct belay_event *ev)
{
	struct text t = { .at = buf, .left = size };

	assert(size > 0 && ev->type < BELAY_EVENT_COUNT);
	add(&t, "%s", events[ev->type]);
	switch (ev->type) {
	case BELAY_EVENT_VIEW:
		add_nodes(&t, "members", ev->view.member_count, ev->view.member);
		add_nodes(&t, "joined", ev->view.joined_count, ev->view.joined);
		add_nodes(&t, "left", ev->view.left_count, ev->view.left);
		break;
	case BELAY_EVENT_FRAME:
		add(&t, " node %" PRIu32 " incarnation %" PRIu64 " seq %" PRIu64 "%s", ev->frame->node,
		    ev->frame->incarnation, ev->frame->seq, ev->frame->ask ? " ask" : "");
		for (uint32_t i = 0; i < ev->frame->ack_count; i++)
			add(&t, " ack %" PRIu32 ".%" PRIu64, ev->frame->ack[i].node,
			    ev->frame->ack[i].seq);
		break;
	case BELAY_EVENT_OP:
		add(&t, " ");
		add_op(&t, ev->op);
		break;
	case BELAY_EVENT_RECORD:
		add_record(&t, ev->record);
		break;
	default:
		add_local_event(&t, ev);
		break;
	}
}

static void add_reply(struct text *t, const struct belay_action *a)
{
	add(t, " client %" PRIu32 " cookie %" PRIu64 " result %d", a->client, a->cookie, a->result);
	if (a->result == 0 && a->token != 0)
		add(t, " token %" PRIu64, a->token);
	if (a->held) {
		add_range(t, &a->range);
		add(t, " %s", modes[a->mode]);
		add_owner(t, &a->holder);
	}
}

static void add_lend(struct text *t, const struct belay_action *a)
{
	add(t, " %" PRIu32 " client %" PRIu32 " cookie %" PRIu64, a->loan, a->client, a->cookie);
	add_key(t, &a->key);
	add_range(t, &a->range);
	add(t, " %s token %" PRIu64 " room %" PRIu32, modes[a->mode], a->token, a->room);
}

void trace_action(char *buf, size_t size, const struct belay_action *a)
{
	struct text t = { .at = buf, .left = size };

	assert(size > 0 && a->type < BELAY_ACTION_COUNT);
	add(&t, "%s", actions[a->type]);
	switch (a->type) {
	case BELAY_ACTION_SEND:
		add(&t, " ");
		add_op(&t, a->op);
		add(&t, "%s", a->urgent ? " urgent" : "");
		break;
	case BELAY_ACTION_FLUSH:
		add(&t, "%s", a->ask ? " ask" : "");
		break;
	case BELAY_ACTION_REPLY:
		add_reply(&t, a);
		break;
	case BELAY_ACTION_LEND_HELD:
		add_loan_held(&t, a->loan, &a->range, a->mode, &a->holder);
		break;
	case BELAY_ACTION_LEND:
		add_lend(&t, a);
		break;
	case BELAY_ACTION_RECALL:
		add(&t, " %" PRIu32 " client %" PRIu32, a->loan, a->client);
		break;
	case BELAY_ACTION_HINT:
		add(&t, " to %" PRIu32, a->node);
		add_hint(&t, a->hint);
		break;
	case BELAY_ACTION_LOST:
		add(&t, " client %" PRIu32, a->client);
		break;
	case BELAY_ACTION_FROZEN:
		add(&t, " %s", a->frozen ? "yes" : "no");
		break;
	case BELAY_ACTION_RESTART:
		add(&t, " incarnation %" PRIu64, a->incarnation);
		break;
	case BELAY_ACTION_SNAPSHOT:
	case BELAY_ACTION_NODE_LEFT:
	case BELAY_ACTION_NODE_CLOSED:
	case BELAY_ACTION_NODE_JOINED:
		add(&t, " node %" PRIu32 " incarnation %" PRIu64, a->node, a->incarnation);
		break;
	case BELAY_ACTION_ISOLATE:
		add(&t, ": %s", a->reason);
		break;
	default:
		break;
	}
}
