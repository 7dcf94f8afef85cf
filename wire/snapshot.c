/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Chunks of a snapshot: a head, then records. A record is a byte of type, a
 * byte of flags, and the fields that the table below gives its type, always
 * in the same order.
 */
#include <assert.h>

#include "wire/parts.h"
#include "wire/wire.h"

enum field {
	/* These live in the flags, by these very bits ... */
	MODE = 1 << 0,		/* set: EX */
	WAIT = 1 << 1,
	TEST = 1 << 2,
	STAGED = 1 << 3,
	SYNCED = 1 << 4,
	/* ... and these as FLAG_CHOICE: no record has two of them, or of OWNER. */
	STANDING = 1 << 5,
	/* These follow, in this order. */
	PLACE = 1 << 6,
	TOKEN = 1 << 7,
	NUMBER = 1 << 8,
	KEY = 1 << 9,
	NODE = 1 << 10,
	INCARNATION = 1 << 11,
	SEQ = 1 << 12,
	OWNER = 1 << 13,	/* node, client, key, pid; the kind lives in the flags: FLAG_CHOICE */
	EPOCH = 1 << 14,
	REFERENCES = 1 << 15,	/* the numbers of the resource and of the owner */
	RANGE = 1 << 16,
	REQUEST = 1 << 17,
	QUEUE = 1 << 18,
	HASH = 1 << 19,
	COUNT = 1 << 20,
	RESOURCE = 1 << 21,	/* the number of the resource alone */
	/* This one lives in the flags, too, as FLAG_RECALLED. */
	RECALLED = 1 << 22,
};

#define FLAGS (MODE | WAIT | TEST | STAGED | SYNCED)
#define FLAG_CHOICE 0xe0
#define FLAG_CHOICE_SHIFT 5

/* The bit of STAGED: no record has both. */
#define FLAG_RECALLED STAGED

#define SNAPSHOT_LAST 0x01

static const uint32_t record_fields[BELAY_RECORD_COUNT] = {
	[BELAY_RECORD_CORE] = PLACE | TOKEN,
	[BELAY_RECORD_NODE] = NODE | STANDING | SYNCED | INCARNATION | SEQ,
	[BELAY_RECORD_OWNER] = NUMBER | OWNER,
	[BELAY_RECORD_RESOURCE] = NUMBER | KEY | EPOCH,
	[BELAY_RECORD_DELEGATION] = RESOURCE | NODE | EPOCH | RANGE | MODE | RECALLED,
	[BELAY_RECORD_LOCK] = REFERENCES | RANGE | MODE | STAGED,
	[BELAY_RECORD_WAITER] = REFERENCES | RANGE | MODE | REQUEST | WAIT | TEST | QUEUE,
	[BELAY_RECORD_END] = HASH | COUNT,
};

static uint8_t flags_allowed(uint32_t fields)
{
	bool choice = fields & (OWNER | STANDING);

	return (uint8_t)((fields & FLAGS) | (choice ? FLAG_CHOICE : 0) |
			 (fields & RECALLED ? FLAG_RECALLED : 0));
}

static unsigned choice_of(const struct belay_record *record, uint32_t fields)
{
	if (fields & OWNER)
		return record->owner.kind;
	return record->standing;
}

static uint8_t flags_of(const struct belay_record *record, uint32_t fields)
{
	unsigned flags = (record->mode == BELAY_MODE_EX ? MODE : 0) |
			 (record->wait ? WAIT : 0) | (record->test ? TEST : 0) |
			 (fields & STAGED && record->staged ? STAGED : 0) |
			 (fields & RECALLED && record->recalled ? FLAG_RECALLED : 0) |
			 (record->synced ? SYNCED : 0) |
			 choice_of(record, fields) << FLAG_CHOICE_SHIFT;

	return (uint8_t)(flags & flags_allowed(fields));
}

static void get_flags(struct belay_record *record, uint32_t fields, uint8_t flags)
{
	unsigned choice = flags >> FLAG_CHOICE_SHIFT;

	record->mode = flags & MODE ? BELAY_MODE_EX : BELAY_MODE_SH;
	record->wait = flags & WAIT;
	record->test = flags & TEST;
	if (fields & RECALLED)
		record->recalled = flags & FLAG_RECALLED;
	else
		record->staged = flags & STAGED;
	record->synced = flags & SYNCED;
	if (fields & OWNER)
		record->owner.kind = choice;
	if (fields & STANDING)
		record->standing = choice;
}

/* What the encoding itself does not rule out; the rest is asserted where it is encoded. */
static bool record_valid(const struct belay_record *record)
{
	switch (record->type) {
	case BELAY_RECORD_NODE:
		return record->node != 0 && record->standing < BELAY_NODE_STANDING_COUNT;
	case BELAY_RECORD_OWNER:
		return record->owner.node != 0 && record->owner.kind < BELAY_KIND_COUNT;
	case BELAY_RECORD_DELEGATION:
		return record->node != 0;
	case BELAY_RECORD_WAITER:
		/* A test is answered at once. */
		return !record->test || !record->wait;
	default:
		return true;
	}
}

static void put_fields(struct writer *c, const struct belay_record *record, uint32_t fields)
{
	if (fields & PLACE)
		put_varint(c, record->place);
	if (fields & TOKEN)
		put_varint(c, record->token);
	if (fields & NUMBER)
		put_varint(c, record->number);
	if (fields & RESOURCE)
		put_varint(c, record->resource_number);
	if (fields & KEY)
		put_key(c, &record->key);
	if (fields & NODE)
		put_varint(c, record->node);
	if (fields & INCARNATION)
		put_u64(c, record->incarnation);
	if (fields & SEQ)
		put_varint(c, record->seq);
	if (fields & OWNER) {
		put_varint(c, record->owner.node);
		put_owner(c, &record->owner);
	}
	if (fields & EPOCH)
		put_varint(c, record->epoch);
	if (fields & REFERENCES) {
		put_varint(c, record->resource_number);
		put_varint(c, record->owner_number);
	}
	if (fields & RANGE)
		put_range(c, &record->range);
	if (fields & REQUEST)
		put_varint(c, record->request);
	if (fields & QUEUE)
		put_varint(c, record->queue);
	if (fields & HASH)
		put_u64(c, record->hash);
	if (fields & COUNT)
		put_varint(c, record->count);
}

static void get_fields(struct reader *c, struct belay_record *record, uint32_t fields)
{
	if (fields & PLACE)
		record->place = get_varint(c, UINT64_MAX);
	if (fields & TOKEN)
		record->token = get_varint(c, UINT64_MAX);
	if (fields & NUMBER)
		record->number = get_varint32(c);
	if (fields & RESOURCE)
		record->resource_number = get_varint32(c);
	if (fields & KEY)
		record->key = get_key(c);
	if (fields & NODE)
		record->node = get_varint32(c);
	if (fields & INCARNATION)
		record->incarnation = get_u64(c);
	if (fields & SEQ)
		record->seq = get_varint(c, UINT64_MAX);
	if (fields & OWNER) {
		record->owner.node = get_varint32(c);
		get_owner(c, &record->owner);
	}
	if (fields & EPOCH)
		record->epoch = get_varint(c, UINT64_MAX);
	if (fields & REFERENCES) {
		record->resource_number = get_varint32(c);
		record->owner_number = get_varint32(c);
	}
	if (fields & RANGE)
		record->range = get_range(c);
	if (fields & REQUEST)
		record->request = get_varint32(c);
	if (fields & QUEUE)
		record->queue = get_varint(c, UINT64_MAX);
	if (fields & HASH)
		record->hash = get_u64(c);
	if (fields & COUNT)
		record->count = get_varint(c, UINT64_MAX);
}

int wire_put_record(struct wire_writer *w, const struct belay_record *record)
{
	struct writer c = { .at = w->buf + w->at, .end = w->buf + w->size };
	uint32_t fields;

	assert(record->type < BELAY_RECORD_COUNT);
	fields = record_fields[record->type];
	assert(record_valid(record));
	assert(!(fields & MODE) || record->mode < BELAY_MODE_COUNT);
	assert(!(fields & RANGE) || range_valid(&record->range));

	put_u8(&c, (uint8_t)record->type);
	put_u8(&c, flags_of(record, fields));
	put_fields(&c, record, fields);
	if (c.error != 0)
		return c.error;
	message_grow(w, &c);
	return 0;
}

int wire_get_record(struct wire_reader *r, struct belay_record *ret_record)
{
	struct reader c = { .at = r->at, .end = r->end };
	struct belay_record record = { 0 };
	uint8_t type, flags;
	uint32_t fields;

	if (c.at == c.end)
		return 0;
	type = get_u8(&c);
	flags = get_u8(&c);
	if (type >= BELAY_RECORD_COUNT)
		return -EBADMSG;
	record.type = type;
	fields = record_fields[record.type];
	if (flags & ~flags_allowed(fields))
		return -EBADMSG;
	get_flags(&record, fields, flags);
	get_fields(&c, &record, fields);

	if (c.error != 0)
		return c.error;
	if (!record_valid(&record))
		return -EBADMSG;
	r->at = c.at;
	*ret_record = record;
	return 1;
}

static bool snapshot_valid(const struct wire_snapshot *head)
{
	return head->node != 0 && head->incarnation != 0 && head->to != 0 &&
	       head->to_incarnation != 0;
}

int wire_snapshot_begin(struct wire_writer *w, void *buf, size_t size,
			const struct wire_snapshot *head)
{
	struct writer c = wire_message_begin(buf, size, WIRE_SNAPSHOT);

	assert(snapshot_valid(head));
	put_varint(&c, head->node);
	put_u64(&c, head->incarnation);
	put_varint(&c, head->to);
	put_u64(&c, head->to_incarnation);
	put_varint(&c, head->place);
	put_varint(&c, head->part);
	put_u8(&c, head->last ? SNAPSHOT_LAST : 0);
	return message_begun(w, &c, buf, head->node);
}

int wire_snapshot_open(struct wire_reader *r, const void *buf, size_t size,
		       struct wire_snapshot *ret_head)
{
	struct wire_snapshot head;
	struct reader c;
	uint8_t flags;
	int error = message_open(&c, buf, size, WIRE_SNAPSHOT);

	if (error < 0)
		return error;
	head.node = get_varint32(&c);
	head.incarnation = get_u64(&c);
	head.to = get_varint32(&c);
	head.to_incarnation = get_u64(&c);
	head.place = get_varint(&c, UINT64_MAX);
	head.part = get_varint32(&c);
	flags = get_u8(&c);
	head.last = flags & SNAPSHOT_LAST;
	if (c.error != 0)
		return c.error;
	if ((flags & ~SNAPSHOT_LAST) || !snapshot_valid(&head))
		return -EBADMSG;

	*r = (struct wire_reader){ .at = c.at, .end = c.end, .node = head.node };
	*ret_head = head;
	return 0;
}
