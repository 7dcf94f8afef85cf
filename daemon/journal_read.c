/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "daemon/journal.h"
#include "wire/cursor.h"

static void get_config(struct reader *c, struct belay_core_config *config)
{
	uint32_t stability;

	config->self = get_u32(c);
	config->incarnation = get_u64(c);
	stability = get_u32(c);
	config->node_count = get_u32(c);
	if (stability > BELAY_STABLE_ALL || config->node_count > BELAY_NODES_MAX) {
		get_failed(c);
		return;
	}
	config->stability = stability;
	for (uint32_t i = 0; i < config->node_count; i++)
		config->node[i] = get_u32(c);
	config->fencing_none = get_bool(c);
	config->limits.resources_max = get_u32(c);
	config->limits.locks_max = get_u32(c);
	config->limits.waiters_max = get_u32(c);
	config->limits.locks_per_owner_max = get_u32(c);
	config->requests_max = get_u32(c);
	config->loans_max = get_u32(c);
	config->hints = get_bool(c);
	config->min_hold_us = get_u32(c);
	config->idle_us = get_u32(c);
	config->claim_streak = get_u32(c);
	config->share_streak = get_u32(c);
	config->lend_after = get_u32(c);
	config->token_base = get_u64(c);
}

int journal_read(struct journal_reader *r, const void *buf, size_t size)
{
	struct reader c = { .at = buf, .end = (const uint8_t *)buf + JOURNAL_HEAD_SIZE };
	struct journal_reader j = { 0 };
	uint32_t version;

	if (size < JOURNAL_HEAD_SIZE || memcmp(get_bytes(&c, 8), JOURNAL_MAGIC, 8) != 0)
		return -EBADMSG;
	version = get_u32(&c);
	if (version != JOURNAL_VERSION)
		return -EPROTONOSUPPORT;
	j.ring_size = get_u32(&c);
	j.first = get_u64(&c);
	j.next = get_u64(&c);
	j.dropped = get_u64(&c);
	(void)get_u64(&c);
	get_config(&c, &j.config);
	if (c.error < 0)
		return c.error;
	if (j.ring_size != size - JOURNAL_HEAD_SIZE || j.ring_size < JOURNAL_RING_MIN ||
	    j.ring_size % 8 != 0 || j.first % 8 != 0 || j.next % 8 != 0 ||
	    j.next < j.first || j.next - j.first > j.ring_size)
		return -EBADMSG;
	j.ring = (const uint8_t *)buf + JOURNAL_HEAD_SIZE;
	*r = j;
	return 0;
}

static struct belay_key get_key(struct reader *c)
{
	struct belay_key key = { .lockspace = get_u32(c) };
	const uint8_t *id = get_bytes(c, sizeof(key.id));

	if (id)
		memcpy(key.id, id, sizeof(key.id));
	return key;
}

static struct belay_range get_range(struct reader *c)
{
	uint64_t start = get_u64(c);

	return (struct belay_range){ start, get_u64(c) };
}

static void get_owner(struct reader *c, struct belay_owner *owner)
{
	uint8_t kind;

	owner->client = get_u32(c);
	owner->key = get_u64(c);
	owner->pid = get_u32(c);
	kind = get_u8(c);
	if (kind >= BELAY_KIND_COUNT) {
		get_failed(c);
		kind = 0;
	}
	owner->kind = kind;
}

static enum belay_mode get_mode(struct reader *c)
{
	uint8_t mode = get_u8(c);

	if (mode < BELAY_MODE_COUNT)
		return mode;
	get_failed(c);
	return BELAY_MODE_SH;
}

static void get_lock(struct reader *c, struct belay_event *ev)
{
	ev->lock.key = get_key(c);
	ev->lock.range = get_range(c);
	get_owner(c, &ev->lock.owner);
	ev->lock.mode = get_mode(c);
	ev->lock.wait = get_bool(c);
	ev->lock.test = get_bool(c);
	ev->lock.lend = get_bool(c);
	ev->lock.cookie = get_u64(c);
}

static void get_loan_held(struct reader *c, struct belay_event *ev)
{
	ev->loan.loan = get_u32(c);
	ev->loan.range = get_range(c);
	get_owner(c, &ev->loan.owner);
	ev->loan.mode = get_mode(c);
}

static void get_loan_back(struct reader *c, struct belay_event *ev)
{
	ev->loan.loan = get_u32(c);
	ev->loan.range = get_range(c);
	ev->loan.used = get_bool(c);
	ev->loan.used_ex = get_bool(c);
	ev->loan.token = get_u64(c);
}

static void get_hint(struct journal_reader *r, struct reader *c, struct belay_event *ev)
{
	struct belay_hint *hint = &r->hint;

	hint->node = get_u32(c);
	hint->incarnation = get_u64(c);
	hint->to_incarnation = get_u64(c);
	hint->waiter = get_u32(c);
	hint->prefix = get_u64(c);
	hint->seq = get_u64(c);
	hint->key = get_key(c);
	hint->range = get_range(c);
	hint->owner.node = hint->node;
	get_owner(c, &hint->owner);
	hint->request = get_u32(c);
	hint->token = get_u64(c);
	ev->hint = hint;
}

static void get_view(struct journal_reader *r, struct reader *c, struct belay_event *ev)
{
	uint32_t counts[3], at = 0;

	for (unsigned i = 0; i < 3; i++) {
		counts[i] = get_u32(c);
		if (counts[i] > BELAY_NODES_MAX)
			get_failed(c);
	}
	if (c->error < 0)
		return;
	for (unsigned i = 0; i < 3; i++)
		for (uint32_t n = 0; n < counts[i]; n++)
			r->nodes[at++] = get_u32(c);
	ev->view.member_count = counts[0];
	ev->view.joined_count = counts[1];
	ev->view.left_count = counts[2];
	ev->view.member = r->nodes;
	ev->view.joined = r->nodes + counts[0];
	ev->view.left = r->nodes + counts[0] + counts[1];
}

static const enum belay_event_type event_types[JOURNAL_TYPE_COUNT] = {
	[JOURNAL_LOCK] = BELAY_EVENT_LOCK,
	[JOURNAL_UNLOCK] = BELAY_EVENT_UNLOCK,
	[JOURNAL_CANCEL] = BELAY_EVENT_CANCEL,
	[JOURNAL_CLIENT_GONE] = BELAY_EVENT_CLIENT_GONE,
	[JOURNAL_LOAN_HELD] = BELAY_EVENT_LOAN_HELD,
	[JOURNAL_LOAN_BACK] = BELAY_EVENT_LOAN_BACK,
	[JOURNAL_HINT] = BELAY_EVENT_HINT,
	[JOURNAL_FENCE] = BELAY_EVENT_FENCE,
	[JOURNAL_LEAVE] = BELAY_EVENT_LEAVE,
	[JOURNAL_QUORUM] = BELAY_EVENT_QUORUM,
	[JOURNAL_TICK] = BELAY_EVENT_TICK,
	[JOURNAL_VIEW] = BELAY_EVENT_VIEW,
};

static int get_event(struct journal_reader *r, enum journal_type type, struct reader *c,
		     struct belay_event *ev)
{
	ev->type = event_types[type];
	switch (type) {
	case JOURNAL_LOCK:
	case JOURNAL_UNLOCK:
		get_lock(c, ev);
		break;
	case JOURNAL_CANCEL:
		ev->client.client = get_u32(c);
		ev->client.cookie = get_u64(c);
		break;
	case JOURNAL_CLIENT_GONE:
		ev->client.client = get_u32(c);
		break;
	case JOURNAL_LOAN_HELD:
		get_loan_held(c, ev);
		break;
	case JOURNAL_LOAN_BACK:
		get_loan_back(c, ev);
		break;
	case JOURNAL_HINT:
		get_hint(r, c, ev);
		break;
	case JOURNAL_FENCE:
		ev->fence.node = get_u32(c);
		break;
	case JOURNAL_QUORUM:
		ev->quorum.quorate = get_bool(c);
		break;
	case JOURNAL_VIEW:
		get_view(r, c, ev);
		break;
	default:
		break;
	}
	return c->error < 0 ? c->error : 1;
}

static int start_message(struct journal_reader *r, struct reader *c)
{
	uint32_t node = get_u32(c), skip = get_u32(c), limit = get_u32(c), size = get_u32(c);
	const uint8_t *bytes = get_bytes(c, size);
	struct wire_snapshot head;
	enum wire_message type;
	int error;

	(void)node;
	if (!bytes)
		return -EBADMSG;
	error = wire_message_type(bytes, size, &type);
	if (error < 0)
		return error;
	r->message.is_frame = r->message.head_due = type == WIRE_FRAME;
	if (type == WIRE_FRAME)
		error = wire_frame_open(&r->message.wire, bytes, size, &r->message.frame);
	else
		error = wire_snapshot_open(&r->message.wire, bytes, size, &head);
	if (error < 0)
		return error;
	r->message.frame.seq += skip;
	r->message.at = 0;
	r->message.skip = skip;
	r->message.limit = limit;
	r->in_message = true;
	return 0;
}

/* 1 with an event, 0 at the end of the message. */
static int next_of_message(struct journal_reader *r, struct belay_event *ev)
{
	int more;

	ev->now_us = r->now_us;
	if (r->message.head_due) {
		r->message.head_due = false;
		ev->type = BELAY_EVENT_FRAME;
		ev->frame = &r->message.frame;
		return 1;
	}
	if (!r->message.is_frame) {
		ev->type = BELAY_EVENT_RECORD;
		ev->record = &r->record;
		return wire_get_record(&r->message.wire, &r->record);
	}
	ev->type = BELAY_EVENT_OP;
	ev->op = &r->message.op;
	do {
		if (r->message.at >= r->message.limit)
			return 0;
		more = wire_get_op(&r->message.wire, &r->message.op);
	} while (more == 1 && r->message.at++ < r->message.skip);
	return more;
}

int journal_next(struct journal_reader *r, struct belay_event *ret_event)
{
	for (;;) {
		const uint8_t *at = r->ring + r->first % r->ring_size;
		uint64_t room = r->ring_size - r->first % r->ring_size;
		struct belay_event ev = { 0 };
		struct reader c = { .at = at, .end = at + room };
		uint32_t size, type;
		int more;

		if (r->in_message) {
			more = next_of_message(r, &ev);
			if (more == 1)
				*ret_event = ev;
			if (more != 0)
				return more;
			r->in_message = false;
		}
		if (r->first == r->next)
			return 0;
		size = get_u32(&c);
		type = get_u32(&c);
		if (size % 8 != 0 || size < 8 || size > room || size > r->next - r->first ||
		    type < JOURNAL_FILL || type >= JOURNAL_TYPE_COUNT)
			return -EBADMSG;
		r->first += size;
		if (type == JOURNAL_FILL)
			continue;
		c.end = at + size;
		r->now_us = ev.now_us = get_u64(&c);
		if (type != JOURNAL_MESSAGE) {
			more = get_event(r, type, &c, &ev);
			if (more == 1)
				*ret_event = ev;
			return more;
		}
		more = start_message(r, &c);
		if (more < 0)
			return more;
	}
}
