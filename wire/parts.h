/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What frames and snapshots have in common, private to wire/: the head of a
 * message, numbers, keys, ranges and owners.
 */
#ifndef BELAY_WIRE_PARTS_H
#define BELAY_WIRE_PARTS_H

#include "wire/cursor.h"
#include "wire/wire.h"

/*
 * A message is begun, its head follows, and what the cursor holds by then is
 * a message of its own; each part that is put behind it lets it grow.
 */
struct writer wire_message_begin(void *buf, size_t size, enum wire_message type);
int message_begun(struct wire_writer *ret_w, const struct writer *c, void *buf, uint32_t node);
void message_grow(struct wire_writer *w, const struct writer *c);

/* Start to read a message, which must be of that type and whole. */
int message_open(struct reader *ret_c, const void *buf, size_t size, enum wire_message type);

/*
 * LEB128: seven bits a byte, lowest first; the top bit says that more follow.
 * Only the shortest form is accepted: a value that had two encodings would
 * not encode again to the bytes it came from. What is above @max fails.
 */
void put_varint(struct writer *c, uint64_t value);
uint64_t get_varint(struct reader *c, uint64_t max);
uint32_t get_varint32(struct reader *c);

bool key_equal(const struct belay_key *a, const struct belay_key *b);
void put_key(struct writer *c, const struct belay_key *key);
struct belay_key get_key(struct reader *c);

bool range_valid(const struct belay_range *range);
void put_range(struct writer *c, const struct belay_range *range);
struct belay_range get_range(struct reader *c);

/* Client, key and pid; node and kind stand elsewhere. */
void put_owner(struct writer *c, const struct belay_owner *owner);
void get_owner(struct reader *c, struct belay_owner *owner);

#endif
