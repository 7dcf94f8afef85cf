/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames: a head, then ops. An op is a byte of type, a byte of flags, and the
 * fields that the table below gives its type, always in the same order.
 */
#include <assert.h>

#include "wire/parts.h"
#include "wire/wire.h"

enum field {
	/* These live in the flags, by these very bits. */
	MODE = 1 << 0,		/* set: EX */
	WAIT = 1 << 1,
	TEST = 1 << 2,
	HELD = 1 << 3,		/* and if it is clear, HOLDER, OWNER, RANGE and MODE are left out */
	SYNCED = 1 << 4,
	/* These follow, in this order. */
	NODE = 1 << 5,
	REQUEST = 1 << 6,
	KEY = 1 << 7,		/* left out if it is the key of the op before: FLAG_SAME_KEY */
	HOLDER = 1 << 8,	/* node of an owner who is not the sender's */
	OWNER = 1 << 9,		/* client, key, pid; the kind lives in the flags: FLAG_KIND */
	CLIENT = 1 << 10,	/* client only */
	RANGE = 1 << 11,
	EPOCH = 1 << 12,
	LIMITS = 1 << 13,
	TOKEN = 1 << 14,
	MEMBERS = 1 << 15,
	PLACE = 1 << 16,
	HASH = 1 << 17,
	INCARNATION = 1 << 18,
	/* This one lives in the flags, too, as FLAG_KEEP. */
	KEEP = 1 << 19,
};

#define FLAGS (MODE | WAIT | TEST | HELD | SYNCED)
#define FLAG_SAME_KEY 0x20
#define FLAG_KIND 0xc0
#define FLAG_KIND_SHIFT 6
/* The bit of SYNCED: no op has both. */
#define FLAG_KEEP SYNCED

#define FRAME_ASK 0x01

static const uint32_t op_fields[BELAY_OP_COUNT] = {
	[BELAY_OP_REQ] = REQUEST | KEY | OWNER | RANGE | MODE | WAIT | TEST,
	[BELAY_OP_REL] = REQUEST | KEY | OWNER | RANGE | TOKEN,
	[BELAY_OP_CANCEL] = REQUEST,
	[BELAY_OP_BUSY] = NODE | REQUEST | HELD | HOLDER | OWNER | RANGE | MODE,
	[BELAY_OP_HELD] = KEY | OWNER | RANGE | MODE,
	[BELAY_OP_WAITING] = REQUEST | KEY | OWNER | RANGE | MODE | WAIT | TEST,
	[BELAY_OP_RELINQ] = KEY | RANGE | EPOCH | TOKEN | KEEP,
	[BELAY_OP_CLAIM] = KEY | RANGE | MODE,
	[BELAY_OP_IDLE] = KEY | EPOCH,
	[BELAY_OP_CLIENT_GONE] = CLIENT,
	[BELAY_OP_HELLO] = SYNCED | LIMITS | TOKEN,
	[BELAY_OP_SYNCED] = 0,
	[BELAY_OP_START] = TOKEN | MEMBERS,
	[BELAY_OP_FENCED] = NODE | INCARNATION,
	[BELAY_OP_LEAVE] = 0,
	[BELAY_OP_DIGEST] = PLACE | HASH,
	[BELAY_OP_AGAIN] = NODE | INCARNATION,
};

static uint32_t fields_of(enum belay_op_type type, bool held)
{
	uint32_t fields = op_fields[type];

	if ((fields & HELD) && !held)
		fields &= ~(uint32_t)(HOLDER | OWNER | RANGE | MODE);
	return fields;
}

static uint8_t flags_allowed(uint32_t fields)
{
	return (uint8_t)((fields & FLAGS) | (fields & KEY ? FLAG_SAME_KEY : 0) |
			 (fields & OWNER ? FLAG_KIND : 0) | (fields & KEEP ? FLAG_KEEP : 0));
}

static uint8_t flags_of(const struct belay_op *op, uint32_t fields, bool same_key)
{
	unsigned flags = (op->mode == BELAY_MODE_EX ? MODE : 0) | (op->wait ? WAIT : 0) |
			 (op->test ? TEST : 0) | (op->held ? HELD : 0) |
			 (fields & KEEP && op->keep ? FLAG_KEEP : 0) |
			 (fields & SYNCED && op->synced ? SYNCED : 0) |
			 (same_key ? FLAG_SAME_KEY : 0) |
			 (unsigned)op->owner.kind << FLAG_KIND_SHIFT;

	return (uint8_t)(flags & flags_allowed(fields));
}

static void get_flags(struct belay_op *op, uint32_t fields, uint8_t flags)
{
	op->mode = flags & MODE ? BELAY_MODE_EX : BELAY_MODE_SH;
	op->wait = flags & WAIT;
	op->test = flags & TEST;
	op->held = flags & HELD;
	if (fields & KEEP)
		op->keep = flags & FLAG_KEEP;
	else
		op->synced = flags & SYNCED;
	op->owner.kind = flags >> FLAG_KIND_SHIFT;
}

static bool limits_valid(const struct belay_limits *limits)
{
	return limits->resources_max != 0 && limits->locks_max != 0 &&
	       limits->waiters_max != 0 && limits->locks_per_owner_max != 0 &&
	       limits->requests_max != 0 && limits->claim_streak != 0;
}

/* What the encoding itself does not rule out; the rest is asserted where it is encoded. */
static bool op_valid(const struct belay_op *op, uint32_t fields)
{
	/* A test is answered at once. */
	if ((fields & TEST) && op->test && op->wait)
		return false;
	if ((fields & OWNER) && op->owner.kind >= BELAY_KIND_COUNT)
		return false;
	if ((fields & HOLDER) && op->owner.node == 0)
		return false;
	if ((fields & NODE) && op->node == 0)
		return false;
	if ((fields & MEMBERS) && (op->members == 0 || op->members > BELAY_NODES_MAX))
		return false;
	if ((fields & LIMITS) && !limits_valid(&op->limits))
		return false;
	return true;
}

static void put_limits(struct writer *c, const struct belay_limits *limits)
{
	put_varint(c, limits->resources_max);
	put_varint(c, limits->locks_max);
	put_varint(c, limits->waiters_max);
	put_varint(c, limits->locks_per_owner_max);
	put_varint(c, limits->requests_max);
	put_varint(c, limits->claim_streak);
	put_u64(c, limits->nodelist);
}

static void get_limits(struct reader *c, struct belay_limits *limits)
{
	limits->resources_max = get_varint32(c);
	limits->locks_max = get_varint32(c);
	limits->waiters_max = get_varint32(c);
	limits->locks_per_owner_max = get_varint32(c);
	limits->requests_max = get_varint32(c);
	limits->claim_streak = get_varint32(c);
	limits->nodelist = get_u64(c);
}

static void put_fields(struct writer *c, const struct belay_op *op, uint32_t fields)
{
	if (fields & NODE)
		put_varint(c, op->node);
	if (fields & REQUEST)
		put_varint(c, op->request);
	if (fields & KEY)
		put_key(c, &op->key);
	if (fields & HOLDER)
		put_varint(c, op->owner.node);
	if (fields & OWNER)
		put_owner(c, &op->owner);
	if (fields & CLIENT)
		put_varint(c, op->owner.client);
	if (fields & RANGE)
		put_range(c, &op->range);
	if (fields & EPOCH)
		put_varint(c, op->epoch);
	if (fields & LIMITS)
		put_limits(c, &op->limits);
	if (fields & TOKEN)
		put_varint(c, op->token);
	if (fields & MEMBERS)
		put_varint(c, op->members);
	if (fields & PLACE)
		put_varint(c, op->place);
	if (fields & HASH)
		put_u64(c, op->hash);
	if (fields & INCARNATION)
		put_u64(c, op->incarnation);
}

static void get_fields(struct reader *c, struct belay_op *op, uint32_t fields)
{
	if (fields & NODE)
		op->node = get_varint32(c);
	if (fields & REQUEST)
		op->request = get_varint32(c);
	if (fields & KEY)
		op->key = get_key(c);
	if (fields & HOLDER)
		op->owner.node = get_varint32(c);
	if (fields & OWNER)
		get_owner(c, &op->owner);
	if (fields & CLIENT)
		op->owner.client = get_varint32(c);
	if (fields & RANGE)
		op->range = get_range(c);
	if (fields & EPOCH)
		op->epoch = get_varint(c, UINT64_MAX);
	if (fields & LIMITS)
		get_limits(c, &op->limits);
	if (fields & TOKEN)
		op->token = get_varint(c, UINT64_MAX);
	if (fields & MEMBERS)
		op->members = get_varint32(c);
	if (fields & PLACE)
		op->place = get_varint(c, UINT64_MAX);
	if (fields & HASH)
		op->hash = get_u64(c);
	if (fields & INCARNATION)
		op->incarnation = get_u64(c);
}

int wire_put_op(struct wire_writer *w, const struct belay_op *op)
{
	struct writer c = { .at = w->buf + w->at, .end = w->buf + w->size };
	uint32_t fields;
	bool same_key;

	assert(op->type < BELAY_OP_COUNT);
	fields = fields_of(op->type, op->held);
	assert(op_valid(op, fields));
	assert(!(fields & MODE) || op->mode < BELAY_MODE_COUNT);
	assert(!(fields & RANGE) || range_valid(&op->range));
	assert(!(fields & OWNER) || (fields & HOLDER) || op->owner.node == w->node);

	same_key = (fields & KEY) && w->has_key && key_equal(&op->key, &w->key);
	put_u8(&c, (uint8_t)op->type);
	put_u8(&c, flags_of(op, fields, same_key));
	put_fields(&c, op, same_key ? fields & ~(uint32_t)KEY : fields);
	if (c.error != 0)
		return c.error;

	message_grow(w, &c);
	if (fields & KEY) {
		w->key = op->key;
		w->has_key = true;
	}
	return 0;
}

/* A key is spelled out if, and only if, it differs from the last one. */
static int check_key(struct wire_reader *r, struct belay_op *op, bool same_key)
{
	if (same_key) {
		if (!r->has_key)
			return -EBADMSG;
		op->key = r->key;
		return 0;
	}
	if (r->has_key && key_equal(&op->key, &r->key))
		return -EBADMSG;
	r->key = op->key;
	r->has_key = true;
	return 0;
}

int wire_get_op(struct wire_reader *r, struct belay_op *ret_op)
{
	struct reader c = { .at = r->at, .end = r->end };
	struct belay_op op = { 0 };
	uint8_t type, flags;
	uint32_t fields;
	bool same_key;

	if (c.at == c.end)
		return 0;
	type = get_u8(&c);
	flags = get_u8(&c);
	if (type >= BELAY_OP_COUNT)
		return -EBADMSG;
	op.type = type;
	fields = fields_of(op.type, flags & HELD);
	if (flags & ~flags_allowed(fields))
		return -EBADMSG;
	same_key = flags & FLAG_SAME_KEY;
	get_flags(&op, fields, flags);
	if (fields & (OWNER | CLIENT))
		op.owner.node = r->node;
	get_fields(&c, &op, same_key ? fields & ~(uint32_t)KEY : fields);

	if (c.error != 0)
		return c.error;
	if (!op_valid(&op, fields))
		return -EBADMSG;
	if ((fields & KEY) && check_key(r, &op, same_key) < 0)
		return -EBADMSG;
	r->at = c.at;
	*ret_op = op;
	return 1;
}

static bool frame_valid(const struct belay_frame *f)
{
	uint32_t last = 0;

	if (f->node == 0 || f->incarnation == 0 || f->seq == 0 ||
	    f->ack_count > BELAY_NODES_MAX)
		return false;
	for (uint32_t i = 0; i < f->ack_count; i++) {
		if (f->ack[i].node <= last)
			return false;
		last = f->ack[i].node;
	}
	return true;
}

int wire_frame_begin(struct wire_writer *w, void *buf, size_t size, const struct belay_frame *frame)
{
	struct writer c = wire_message_begin(buf, size, WIRE_FRAME);

	assert(frame_valid(frame));
	put_varint(&c, frame->node);
	put_u64(&c, frame->incarnation);
	put_u8(&c, frame->ask ? FRAME_ASK : 0);
	put_varint(&c, frame->seq);
	put_varint(&c, frame->ack_count);
	for (uint32_t i = 0; i < frame->ack_count; i++) {
		put_varint(&c, frame->ack[i].node);
		put_u64(&c, frame->ack[i].incarnation);
		put_varint(&c, frame->ack[i].seq);
	}
	return message_begun(w, &c, buf, frame->node);
}

int wire_frame_open(struct wire_reader *r, const void *buf, size_t size, struct belay_frame *ret_frame)
{
	struct belay_frame f;
	struct reader c;
	uint8_t flags;
	int error = message_open(&c, buf, size, WIRE_FRAME);

	if (error < 0)
		return error;
	f.node = get_varint32(&c);
	f.incarnation = get_u64(&c);
	flags = get_u8(&c);
	f.ask = flags & FRAME_ASK;
	f.seq = get_varint(&c, UINT64_MAX);
	f.ack_count = (uint32_t)get_varint(&c, BELAY_NODES_MAX);
	for (uint32_t i = 0; i < f.ack_count; i++) {
		f.ack[i].node = get_varint32(&c);
		f.ack[i].incarnation = get_u64(&c);
		f.ack[i].seq = get_varint(&c, UINT64_MAX);
	}
	if (c.error != 0)
		return c.error;
	if ((flags & ~FRAME_ASK) || !frame_valid(&f))
		return -EBADMSG;

	*r = (struct wire_reader){ .at = c.at, .end = c.end, .node = f.node };
	/* The acks are most of it, and most of them are not there. */
	memcpy(ret_frame, &f, offsetof(struct belay_frame, ack) + f.ack_count * sizeof(f.ack[0]));
	return 0;
}
