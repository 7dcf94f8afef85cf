/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Messages between a client and belayd: a head of four bytes, then the fields
 * that the table below gives their type, always in the same order.
 */
#include "wire/client.h"

#include <assert.h>

#include "wire/cursor.h"

enum field {
	MAGIC = 1 << 0,
	PROTOCOL = 1 << 1,	/* field version; VERSION is a macro of the build */
	NODE = 1 << 2,
	NUMBER = 1 << 3,
	HANDLE = 1 << 4,
	RESOURCE = 1 << 5,
	RESULT = 1 << 6,
	KIND = 1 << 7,
	MODE = 1 << 8,
	WAIT = 1 << 9,
	LEND = 1 << 10,
	HELD = 1 << 11,		/* and if it is false, MODE, RANGE and OWNER are zero */
	MORE = 1 << 12,
	CELL = 1 << 13,
	RANGE = 1 << 14,
	OWNER = 1 << 15,
	TOKEN = 1 << 16,
	SLOT = 1 << 17,
	EPOCH = 1 << 18,
	LOAN = 1 << 19,		/* behind SLOT, and only if that is not 0 */
	TEXT = 1 << 20,
	NAMES = 1 << 21,	/* two texts: lockspace, name */
};

static const uint32_t message_fields[CLIENT_TYPE_COUNT] = {
	[CLIENT_HELLO] = MAGIC | PROTOCOL,
	[CLIENT_OPEN_FD] = NUMBER | KIND,
	[CLIENT_OPEN_NAME] = NUMBER | KIND | NAMES,
	[CLIENT_CLOSE] = NUMBER | HANDLE,
	[CLIENT_LOCK] = NUMBER | HANDLE | KIND | MODE | WAIT | LEND | CELL | RANGE,
	[CLIENT_TEST] = NUMBER | HANDLE | KIND | MODE | CELL | RANGE,
	[CLIENT_UNLOCK] = NUMBER | HANDLE | KIND | RANGE,
	[CLIENT_CANCEL] = NUMBER,
	[CLIENT_COMMAND] = NUMBER | TEXT,
	[CLIENT_WELCOME] = PROTOCOL | NODE,
	[CLIENT_RESULT] = NUMBER | HANDLE | RESOURCE | RESULT | TOKEN | SLOT | LOAN,
	[CLIENT_TESTED] = NUMBER | RESULT | HELD | OWNER | RANGE | MODE,
	[CLIENT_TEXT] = NUMBER | RESULT | MORE | TEXT,
	[CLIENT_LOST] = 0,
	[CLIENT_ERROR] = RESULT | TEXT,
	[CLIENT_SHARE] = NUMBER,
	[CLIENT_RETURN] = SLOT | EPOCH,
};

#define HEAD_SIZE 4u
/* Errors of the kernel's kind: what errno can hold. */
#define ERRNO_MAX 4095

static bool text_valid(const char *text, size_t size, size_t max)
{
	return size <= max && (size == 0 || memchr(text, 0, size) == NULL);
}

static bool range_valid(const struct belay_range *range)
{
	return range->start <= range->end && range->end <= BELAY_OFFSET_MAX;
}

static bool loan_valid(const struct client_message *m)
{
	if (m->slot != 0)
		return m->result == 0 && m->mode < BELAY_MODE_COUNT && range_valid(&m->range);
	return m->epoch == 0 && m->mode == 0 && m->range.start == 0 && m->range.end == 0 &&
	       m->room == 0 && m->messages == 0;
}

static bool holder_valid(const struct client_message *m)
{
	const struct belay_owner *o = &m->owner;

	if (m->held)
		return o->node != 0 && o->kind < BELAY_KIND_COUNT;
	return m->mode == 0 && m->range.start == 0 && m->range.end == 0 && o->node == 0 &&
	       o->client == 0 && o->key == 0 && o->pid == 0 && o->kind == 0;
}

static bool message_valid(const struct client_message *m, uint32_t fields)
{
	if ((fields & MAGIC) && m->magic != CLIENT_MAGIC)
		return false;
	if ((fields & NODE) && m->node == 0)
		return false;
	if ((fields & RESULT) && (m->result > 0 || m->result < -ERRNO_MAX))
		return false;
	if ((fields & KIND) && m->kind >= BELAY_KIND_COUNT)
		return false;
	if ((fields & MODE) && m->mode >= BELAY_MODE_COUNT)
		return false;
	if ((fields & RANGE) && !range_valid(&m->range))
		return false;
	if ((fields & LOAN) && !loan_valid(m))
		return false;
	if ((fields & OWNER) && !holder_valid(m))
		return false;
	if ((fields & TEXT) && !text_valid(m->text, m->text_size, CLIENT_TEXT_MAX))
		return false;
	if ((fields & NAMES) &&
	    (!text_valid(m->text, m->text_size, CLIENT_NAME_MAX) ||
	     !text_valid(m->text2, m->text2_size, CLIENT_NAME_MAX) || m->text2_size == 0))
		return false;
	return true;
}

static void put_holder(struct writer *c, const struct belay_owner *owner)
{
	put_u32(c, owner->node);
	put_u32(c, owner->client);
	put_u64(c, owner->key);
	put_u32(c, owner->pid);
	put_u8(c, (uint8_t)owner->kind);
}

static void get_holder(struct reader *c, struct belay_owner *owner)
{
	owner->node = get_u32(c);
	owner->client = get_u32(c);
	owner->key = get_u64(c);
	owner->pid = get_u32(c);
	owner->kind = get_u8(c);
}

static void put_range(struct writer *c, const struct belay_range *range)
{
	put_u64(c, range->start);
	put_u64(c, range->end);
}

static void get_range(struct reader *c, struct belay_range *range)
{
	range->start = get_u64(c);
	range->end = get_u64(c);
}

static void put_loan(struct writer *c, const struct client_message *m)
{
	put_u32(c, m->epoch);
	put_u8(c, (uint8_t)m->mode);
	put_range(c, &m->range);
	put_u32(c, m->room);
	put_u32(c, m->messages);
}

static void get_loan(struct reader *c, struct client_message *m)
{
	m->epoch = get_u32(c);
	m->mode = get_u8(c);
	get_range(c, &m->range);
	m->room = get_u32(c);
	m->messages = get_u32(c);
}

static void put_text(struct writer *c, const char *text, uint16_t size)
{
	put_u16(c, size);
	put_bytes(c, text, size);
}

static const char *get_text(struct reader *c, uint16_t *ret_size)
{
	*ret_size = get_u16(c);
	return (const char *)get_bytes(c, *ret_size);
}

static void put_fields(struct writer *c, const struct client_message *m, uint32_t fields)
{
	if (fields & MAGIC)
		put_u32(c, m->magic);
	if (fields & PROTOCOL)
		put_u32(c, m->version);
	if (fields & NODE)
		put_u32(c, m->node);
	if (fields & NUMBER)
		put_u32(c, m->number);
	if (fields & HANDLE)
		put_u32(c, m->handle);
	if (fields & RESOURCE)
		put_u32(c, m->resource);
	if (fields & RESULT)
		put_u32(c, (uint32_t)m->result);
	if (fields & KIND)
		put_u8(c, (uint8_t)m->kind);
	if (fields & MODE)
		put_u8(c, (uint8_t)m->mode);
	if (fields & WAIT)
		put_u8(c, m->wait);
	if (fields & LEND)
		put_u8(c, m->lend);
	if (fields & HELD)
		put_u8(c, m->held);
	if (fields & MORE)
		put_u8(c, m->more);
	if (fields & CELL)
		put_u32(c, m->cell);
	if (fields & RANGE)
		put_range(c, &m->range);
	if (fields & OWNER)
		put_holder(c, &m->owner);
	if (fields & TOKEN)
		put_u64(c, m->token);
	if (fields & SLOT)
		put_u32(c, m->slot);
	if (fields & EPOCH)
		put_u32(c, m->epoch);
	if ((fields & LOAN) && m->slot != 0)
		put_loan(c, m);
	if (fields & (TEXT | NAMES))
		put_text(c, m->text, m->text_size);
	if (fields & NAMES)
		put_text(c, m->text2, m->text2_size);
}

static void get_fields(struct reader *c, struct client_message *m, uint32_t fields)
{
	if (fields & MAGIC)
		m->magic = get_u32(c);
	if (fields & PROTOCOL)
		m->version = get_u32(c);
	if (fields & NODE)
		m->node = get_u32(c);
	if (fields & NUMBER)
		m->number = get_u32(c);
	if (fields & HANDLE)
		m->handle = get_u32(c);
	if (fields & RESOURCE)
		m->resource = get_u32(c);
	if (fields & RESULT)
		m->result = (int32_t)get_u32(c);
	if (fields & KIND)
		m->kind = get_u8(c);
	if (fields & MODE)
		m->mode = get_u8(c);
	if (fields & WAIT)
		m->wait = get_bool(c);
	if (fields & LEND)
		m->lend = get_bool(c);
	if (fields & HELD)
		m->held = get_bool(c);
	if (fields & MORE)
		m->more = get_bool(c);
	if (fields & CELL)
		m->cell = get_u32(c);
	if (fields & RANGE)
		get_range(c, &m->range);
	if (fields & OWNER)
		get_holder(c, &m->owner);
	if (fields & TOKEN)
		m->token = get_u64(c);
	if (fields & SLOT)
		m->slot = get_u32(c);
	if (fields & EPOCH)
		m->epoch = get_u32(c);
	if ((fields & LOAN) && m->slot != 0)
		get_loan(c, m);
	if (fields & (TEXT | NAMES))
		m->text = get_text(c, &m->text_size);
	if (fields & NAMES)
		m->text2 = get_text(c, &m->text2_size);
}

int client_put(void *buf, size_t size, size_t *at, const struct client_message *m)
{
	uint8_t *bytes = buf;
	struct writer c = { .at = bytes + *at, .end = bytes + size };
	struct writer head = c;

	assert(*at <= size);
	assert(m->type < CLIENT_TYPE_COUNT);
	assert(message_valid(m, message_fields[m->type]));

	/* The size is known only when the fields are there. */
	put_u32(&c, 0);
	put_fields(&c, m, message_fields[m->type]);
	if (c.error != 0)
		return c.error;
	put_u16(&head, (uint16_t)(c.at - (bytes + *at)));
	put_u8(&head, (uint8_t)m->type);
	put_u8(&head, 0);
	*at = (size_t)(c.at - bytes);
	return 0;
}

int client_get(const void *buf, size_t size, size_t *at, struct client_message *ret_m)
{
	const uint8_t *bytes = buf;
	struct reader c = { .at = bytes + *at, .end = bytes + size };
	struct client_message m = { 0 };
	uint16_t message_size;
	uint8_t type, spare;

	assert(*at <= size);
	if (*at == size)
		return 0;
	message_size = get_u16(&c);
	type = get_u8(&c);
	spare = get_u8(&c);
	if (c.error != 0)
		return c.error;
	if (message_size < HEAD_SIZE || message_size > size - *at ||
	    type >= CLIENT_TYPE_COUNT || spare != 0)
		return -EBADMSG;

	m.type = type;
	c.end = bytes + *at + message_size;
	get_fields(&c, &m, message_fields[m.type]);
	if (c.error != 0)
		return c.error;
	if (c.at != c.end || !message_valid(&m, message_fields[m.type]))
		return -EBADMSG;
	*at += message_size;
	*ret_m = m;
	return 1;
}
