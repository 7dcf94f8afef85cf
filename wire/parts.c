/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "wire/parts.h"

#include <assert.h>

static const uint8_t magic[4] = { 'B', 'L', 'Y', 'G' };

/* Magic, version and type stay what and where they are in all versions. */
#define SIZE_AT (sizeof(magic) + 2)

int wire_message_type(const void *buf, size_t size, enum wire_message *ret_type)
{
	struct reader c = { .at = buf, .end = (const uint8_t *)buf + size };
	const uint8_t *foreign = get_bytes(&c, sizeof(magic));
	uint8_t version = get_u8(&c);
	uint8_t type = get_u8(&c);

	if (c.error != 0 || memcmp(foreign, magic, sizeof(magic)) != 0)
		return -EBADMSG;
	if (version != WIRE_VERSION)
		return -EPROTONOSUPPORT;
	if (type > WIRE_HINTS)
		return -EBADMSG;
	*ret_type = type;
	return 0;
}

struct writer wire_message_begin(void *buf, size_t size, enum wire_message type)
{
	struct writer c = {
		.at = buf,
		.end = (uint8_t *)buf + (size < WIRE_MESSAGE_MAX ? size : WIRE_MESSAGE_MAX),
	};

	put_bytes(&c, magic, sizeof(magic));
	put_u8(&c, WIRE_VERSION);
	put_u8(&c, (uint8_t)type);
	put_u16(&c, 0);
	return c;
}

int message_begun(struct wire_writer *ret_w, const struct writer *c, void *buf, uint32_t node)
{
	if (c->error != 0)
		return c->error;
	*ret_w = (struct wire_writer){
		.buf = buf,
		.size = (size_t)(c->end - (uint8_t *)buf),
		.node = node,
	};
	message_grow(ret_w, c);
	return 0;
}

void message_grow(struct wire_writer *w, const struct writer *c)
{
	struct writer size = { .at = w->buf + SIZE_AT, .end = w->buf + w->size };

	w->at = (size_t)(c->at - w->buf);
	put_u16(&size, (uint16_t)w->at);
}

int message_open(struct reader *ret_c, const void *buf, size_t size, enum wire_message type)
{
	struct reader c = { .at = buf, .end = (const uint8_t *)buf + size };
	enum wire_message found;
	int r = wire_message_type(buf, size, &found);

	if (r < 0)
		return r;
	(void)get_bytes(&c, SIZE_AT);
	if (found != type || get_u16(&c) != size || size > WIRE_MESSAGE_MAX)
		return -EBADMSG;
	*ret_c = c;
	return 0;
}

size_t wire_size(const struct wire_writer *w)
{
	return w->at;
}

void put_varint(struct writer *c, uint64_t value)
{
	uint8_t *at = c->at;

	while (value >= 0x80 && at < c->end) {
		*at++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	c->at = at;
	put_u8(c, (uint8_t)value);
}

uint64_t get_varint(struct reader *c, uint64_t max)
{
	const uint8_t *at = c->at;
	uint64_t value = 0;

	for (unsigned shift = 0; at < c->end && shift < 64; shift += 7) {
		uint8_t byte = *at++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			bool padded = byte == 0 && shift > 0;
			bool overflow = shift == 63 && byte > 1;

			if (padded || overflow || value > max)
				break;
			c->at = at;
			return value;
		}
	}
	get_failed(c);
	return 0;
}

uint32_t get_varint32(struct reader *c)
{
	return (uint32_t)get_varint(c, UINT32_MAX);
}

bool key_equal(const struct belay_key *a, const struct belay_key *b)
{
	return a->lockspace == b->lockspace && memcmp(a->id, b->id, sizeof(a->id)) == 0;
}

/* Lockspaces are hashes as a rule, so a varint would not save anything. */
void put_key(struct writer *c, const struct belay_key *key)
{
	put_u32(c, key->lockspace);
	put_bytes(c, key->id, sizeof(key->id));
}

struct belay_key get_key(struct reader *c)
{
	struct belay_key key = { .lockspace = get_u32(c) };
	const uint8_t *id = get_bytes(c, sizeof(key.id));

	if (id)
		memcpy(key.id, id, sizeof(key.id));
	return key;
}

bool range_valid(const struct belay_range *range)
{
	return range->start <= range->end && range->end <= BELAY_OFFSET_MAX;
}

/*
 * Start and length, where length 0 means to the end, as in fcntl(2): the
 * whole of a file, the commonest range, then takes two bytes and not ten.
 */
void put_range(struct writer *c, const struct belay_range *range)
{
	put_varint(c, range->start);
	put_varint(c, range->end == BELAY_OFFSET_MAX ? 0 : range->end - range->start + 1);
}

struct belay_range get_range(struct reader *c)
{
	struct belay_range range;
	uint64_t length;

	range.start = get_varint(c, BELAY_OFFSET_MAX);
	/* A length that reaches the end is not the form that put_range() gives. */
	length = get_varint(c, BELAY_OFFSET_MAX - range.start);
	range.end = length == 0 ? BELAY_OFFSET_MAX : range.start + length - 1;
	return range;
}

void put_owner(struct writer *c, const struct belay_owner *owner)
{
	put_varint(c, owner->client);
	put_varint(c, owner->key);
	put_varint(c, owner->pid);
}

void get_owner(struct reader *c, struct belay_owner *owner)
{
	owner->client = get_varint32(c);
	owner->key = get_varint(c, UINT64_MAX);
	owner->pid = get_varint32(c);
}
