/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hints, which nodes send each other beside the group: several in one message,
 * all from one life of one node to one life of another. As with frames: pure,
 * and what is accepted encodes again to the very same bytes.
 */
#ifndef BELAY_WIRE_HINT_H
#define BELAY_WIRE_HINT_H

#include "wire/wire.h"

/* Whose hints they are, and for whom. */
struct wire_hints {
	uint32_t node;			/* sender; not 0 */
	uint64_t incarnation;		/* not 0 */
	uint32_t to;			/* receiver; not 0 */
	uint64_t to_incarnation;	/* the receiver's ack_incarnation */
};

/*
 * Begin a message; -EMSGSIZE if it does not fit. wire_put_hint() returns -EMSGSIZE
 * with the writer unchanged when the hint does not fit. The hint must be valid,
 * and of that sender and for that life (asserted). wire_size() is the size.
 */
int wire_hints_begin(struct wire_writer *w, void *buf, size_t size, const struct wire_hints *head);
int wire_put_hint(struct wire_writer *w, const struct wire_hints *head, const struct belay_hint *hint);

/*
 * Read the head, then hints one at a time: wire_get_hint() returns 1 with a hint,
 * 0 at the end, -EBADMSG.
 */
int wire_hints_open(struct wire_reader *r, const void *buf, size_t size, struct wire_hints *ret_head);
int wire_get_hint(struct wire_reader *r, const struct wire_hints *head, struct belay_hint *ret_hint);

#endif
