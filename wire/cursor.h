/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Bounded cursors over bytes, private to wire/. A cursor remembers its first
 * failure: after it, reads return 0 and writes do nothing, so that a codec
 * lists its fields straight through and asks for the error once, at the end.
 */
#ifndef BELAY_WIRE_CURSOR_H
#define BELAY_WIRE_CURSOR_H

#include <errno.h>
#include <string.h>

#include "core/types.h"

struct writer {
	uint8_t *at, *end;
	int error;		/* 0 or -EMSGSIZE */
};

struct reader {
	const uint8_t *at, *end;
	int error;		/* 0 or -EBADMSG */
};

static inline void put_bytes(struct writer *w, const void *bytes, size_t size)
{
	if (w->error == 0 && (size_t)(w->end - w->at) < size)
		w->error = -EMSGSIZE;
	if (w->error != 0)
		return;
	/* An empty text may be NULL, which memcpy() does not allow. */
	if (size > 0)
		memcpy(w->at, bytes, size);
	w->at += size;
}

static inline void put_u8(struct writer *w, uint8_t value)
{
	put_bytes(w, &value, 1);
}

/* Little-endian, in @size bytes. */
static inline void put_fixed(struct writer *w, uint64_t value, size_t size)
{
	uint8_t bytes[8];

	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(value >> (8 * i));
	put_bytes(w, bytes, size);
}

static inline void put_u16(struct writer *w, uint16_t value)
{
	put_fixed(w, value, 2);
}

static inline void put_u32(struct writer *w, uint32_t value)
{
	put_fixed(w, value, 4);
}

static inline void put_u64(struct writer *w, uint64_t value)
{
	put_fixed(w, value, 8);
}

/* LEB128: seven bits a byte, lowest first; the top bit says that more follow. */
static inline void put_varint(struct writer *w, uint64_t value)
{
	while (value >= 0x80) {
		put_u8(w, (uint8_t)(value | 0x80));
		value >>= 7;
	}
	put_u8(w, (uint8_t)value);
}

/* The next @size bytes, or NULL if there are fewer. */
static inline const uint8_t *get_bytes(struct reader *r, size_t size)
{
	const uint8_t *bytes = r->at;

	if (r->error == 0 && (size_t)(r->end - r->at) < size)
		r->error = -EBADMSG;
	if (r->error != 0)
		return NULL;
	r->at += size;
	return bytes;
}

static inline uint8_t get_u8(struct reader *r)
{
	const uint8_t *bytes = get_bytes(r, 1);

	return bytes ? *bytes : 0;
}

static inline uint64_t get_fixed(struct reader *r, size_t size)
{
	const uint8_t *bytes = get_bytes(r, size);
	uint64_t value = 0;

	for (size_t i = 0; bytes && i < size; i++)
		value |= (uint64_t)bytes[i] << (8 * i);
	return value;
}

static inline uint16_t get_u16(struct reader *r)
{
	return (uint16_t)get_fixed(r, 2);
}

static inline uint32_t get_u32(struct reader *r)
{
	return (uint32_t)get_fixed(r, 4);
}

static inline uint64_t get_u64(struct reader *r)
{
	return get_fixed(r, 8);
}

/*
 * Only the shortest form is accepted: a value that had two encodings would
 * not encode again to the bytes it came from.
 */
static inline uint64_t get_varint(struct reader *r, uint64_t max)
{
	uint64_t value = 0;
	uint8_t byte = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		byte = get_u8(r);
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			bool padded = byte == 0 && shift > 0;
			bool overflow = shift == 63 && byte > 1;

			if (padded || overflow || value > max)
				break;
			return value;
		}
	}
	r->error = -EBADMSG;
	return 0;
}

static inline uint32_t get_varint32(struct reader *r)
{
	return (uint32_t)get_varint(r, UINT32_MAX);
}

#endif
