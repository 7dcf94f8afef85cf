/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Bounded cursors over bytes, for the codecs: wire/ and belayd's journal. A
 * cursor remembers its first failure: it then is at its end, where nothing can
 * be read or written, so that a codec lists its fields straight through and
 * asks for the error once, at the end.
 */
#ifndef BELAY_WIRE_CURSOR_H
#define BELAY_WIRE_CURSOR_H

#include <endian.h>
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
	if ((size_t)(w->end - w->at) < size) {
		w->error = -EMSGSIZE;
		w->at = w->end;
		return;
	}
	/* An empty text may be NULL, which memcpy() does not allow. */
	if (size > 0)
		memcpy(w->at, bytes, size);
	w->at += size;
}

static inline void put_u8(struct writer *w, uint8_t value)
{
	put_bytes(w, &value, sizeof(value));
}

static inline void put_u16(struct writer *w, uint16_t value)
{
	value = htole16(value);
	put_bytes(w, &value, sizeof(value));
}

static inline void put_u32(struct writer *w, uint32_t value)
{
	value = htole32(value);
	put_bytes(w, &value, sizeof(value));
}

static inline void put_u64(struct writer *w, uint64_t value)
{
	value = htole64(value);
	put_bytes(w, &value, sizeof(value));
}

static inline void get_failed(struct reader *r)
{
	r->error = -EBADMSG;
	r->at = r->end;
}

/* The next @size bytes, or NULL if there are fewer. */
static inline const uint8_t *get_bytes(struct reader *r, size_t size)
{
	const uint8_t *bytes = r->at;

	if ((size_t)(r->end - r->at) < size) {
		get_failed(r);
		return NULL;
	}
	r->at += size;
	return bytes;
}

static inline uint8_t get_u8(struct reader *r)
{
	const uint8_t *bytes = get_bytes(r, 1);

	return bytes ? *bytes : 0;
}

static inline bool get_bool(struct reader *r)
{
	uint8_t value = get_u8(r);

	if (value > 1)
		get_failed(r);
	return value == 1;
}

static inline uint16_t get_u16(struct reader *r)
{
	const uint8_t *bytes = get_bytes(r, 2);
	uint16_t value = 0;

	if (bytes)
		memcpy(&value, bytes, sizeof(value));
	return le16toh(value);
}

static inline uint32_t get_u32(struct reader *r)
{
	const uint8_t *bytes = get_bytes(r, 4);
	uint32_t value = 0;

	if (bytes)
		memcpy(&value, bytes, sizeof(value));
	return le32toh(value);
}

static inline uint64_t get_u64(struct reader *r)
{
	const uint8_t *bytes = get_bytes(r, 8);
	uint64_t value = 0;

	if (bytes)
		memcpy(&value, bytes, sizeof(value));
	return le64toh(value);
}

#endif
