/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bytes of the group: frames of ops and chunks of snapshots, to structs and
 * back. Pure: no I/O, no allocation, no state. Everything that came from the
 * network ends here as -EBADMSG or -EPROTONOSUPPORT; nothing it holds can trip
 * an assert. What is accepted encodes again to the very same bytes.
 *
 * Integers are little-endian; those marked varint below are LEB128 in their
 * shortest form. doc/protocol.md has the layout field by field.
 */
#ifndef BELAY_WIRE_WIRE_H
#define BELAY_WIRE_WIRE_H

#include <stddef.h>
#include <sys/types.h>

#include "core/types.h"

#define WIRE_VERSION 2

/*
 * No message is longer, whatever the size of the buffer it is written to:
 * corosync stalls on messages above about 48 KB (measured, udpu).
 */
#define WIRE_MESSAGE_MAX (32u * 1024)

enum wire_message {
	WIRE_FRAME,
	WIRE_SNAPSHOT,
	WIRE_HINTS,	/* never in the group: wire/hint.h */
};

/* What the first bytes of a message say: which kind it is. 0 or -EBADMSG, -EPROTONOSUPPORT. */
int wire_message_type(const void *buf, size_t size, enum wire_message *ret_type);

/* Writer of one message into the caller's buffer. Treat as opaque. */
struct wire_writer {
	uint8_t *buf;
	size_t size;
	size_t at;
	uint32_t node;		/* the frame's sender, who must be every owner.node */
	struct belay_key key;	/* of the last op that had one */
	bool has_key;
};

/*
 * Begin a frame. -EMSGSIZE if it does not fit; then w is not usable.
 * wire_put_op() returns -EMSGSIZE with the writer unchanged when the op does
 * not fit: end this frame, begin the next. The op must be valid (asserted).
 */
int wire_frame_begin(struct wire_writer *w, void *buf, size_t size, const struct belay_frame *frame);
int wire_put_op(struct wire_writer *w, const struct belay_op *op);
/* Bytes of the message; it is complete at any time after begin. */
size_t wire_size(const struct wire_writer *w);

/* Reader of one message; buf must outlive it. Treat as opaque. */
struct wire_reader {
	const uint8_t *at, *end;
	uint32_t node;		/* the frame's sender, for owner.node */
	struct belay_key key;
	bool has_key;
};

/*
 * Read the head, then ops one at a time: wire_get_op() returns 1 with an op, 0
 * at the end of the message, -EBADMSG. A caller that must not act on half a
 * frame runs through it once before it acts.
 */
int wire_frame_open(struct wire_reader *r, const void *buf, size_t size, struct belay_frame *ret_frame);
int wire_get_op(struct wire_reader *r, struct belay_op *ret_op);

/* A chunk of a snapshot, addressed to one life of one node. */
struct wire_snapshot {
	uint32_t node;		/* sender */
	uint64_t incarnation;	/* sender's */
	uint32_t to;
	uint64_t to_incarnation;
	uint64_t place;		/* cut that the snapshot shows: names the snapshot */
	uint32_t part;		/* 0, 1, ... */
	bool last;
};
int wire_snapshot_begin(struct wire_writer *w, void *buf, size_t size, const struct wire_snapshot *head);
int wire_put_record(struct wire_writer *w, const struct belay_record *record);
int wire_snapshot_open(struct wire_reader *r, const void *buf, size_t size, struct wire_snapshot *ret_head);
int wire_get_record(struct wire_reader *r, struct belay_record *ret_record);

#endif
