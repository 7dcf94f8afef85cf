/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The flight recorder: the last events that the core was given, in a ring.
 * It lies in a file of its own, mapped, so that it survives a belayd that
 * crashed or was killed. `belay replay` steps a core through it.
 *
 * The file: a head of JOURNAL_HEAD_SIZE bytes, then the ring. All integers
 * are little-endian, of fixed width. Positions count bytes written since the
 * journal began; a record lies at position modulo ring size, never wraps, and
 * starts at a multiple of 8.
 *
 *	head	char magic[8], u32 version, u32 ring_size, u64 first, u64 next,
 *		u64 dropped, u64 written, then the core's configuration
 *	record	u32 size (of all of it, padding included), u32 type, u64 now_us, fields
 */
#ifndef BELAY_DAEMON_JOURNAL_H
#define BELAY_DAEMON_JOURNAL_H

#include <stddef.h>

#include "core/core.h"
#include "wire/wire.h"

#define JOURNAL_MAGIC "BELAYJNL"
#define JOURNAL_VERSION 3u
#define JOURNAL_HEAD_SIZE 4096u
#define JOURNAL_RING_MIN (256u * 1024)

enum journal_type {
	JOURNAL_FILL = 1,	/* nothing: the rest of the ring's end */
	JOURNAL_LOCK,		/* lockspace id start end client key pid kind mode wait test lend cookie */
	JOURNAL_UNLOCK,		/* the same */
	JOURNAL_CANCEL,		/* client cookie */
	JOURNAL_CLIENT_GONE,	/* client */
	JOURNAL_LOAN_HELD,	/* loan start end client key pid kind mode */
	JOURNAL_LOAN_BACK,	/* loan start end used used_ex token */
	JOURNAL_HINT,		/* node incarnation to_incarnation waiter prefix seq lockspace id start end
				 * client key pid kind request token */
	JOURNAL_FENCE,		/* node */
	JOURNAL_LEAVE,
	JOURNAL_QUORUM,		/* quorate */
	JOURNAL_TICK,
	JOURNAL_VIEW,		/* three counts, then the nodes */
	JOURNAL_MESSAGE,	/* node skip limit size, then the message as delivered */
	JOURNAL_TYPE_COUNT
};

/* ---- writing ---- */

struct journal;

/*
 * Start a journal with a ring of @ring_size bytes. @path: its file; one that
 * is there is kept as PATH.old. NULL: plain memory. 0 or a negative errno.
 */
int journal_open(const char *path, size_t ring_size, const struct belay_core_config *config,
		 struct journal **ret_journal);
/* The file stays. NULL is allowed. */
void journal_close(struct journal *j);

/* Note an event that is about to be applied: any but FRAME, OP and RECORD. */
void journal_event(struct journal *j, const struct belay_event *event);

/*
 * Note a message of the group about to be applied: the frame's head and its
 * ops from number @skip up to @limit, not included, or the records of a chunk.
 */
void journal_message(struct journal *j, uint64_t now_us, uint32_t node, uint32_t skip,
		     uint32_t limit, const void *buf, size_t size);

/* Copy the journal to a new file at @path (mode 0600). 0 or a negative errno. */
int journal_copy(const struct journal *j, const char *path);

void journal_counts(const struct journal *j, uint64_t *ret_written, uint64_t *ret_dropped);

/* ---- reading: a journal may be damaged, whatever it holds ---- */

struct journal_reader {
	const uint8_t *ring;
	uint64_t ring_size, first, next;
	uint64_t dropped;		/* records lost; if not 0, a core cannot be stepped through */
	struct belay_core_config config;
	/* What the last event points to. */
	union {
		struct {
			struct wire_reader wire;
			struct belay_frame frame;
			struct belay_op op;
			uint32_t at, skip, limit;
			bool is_frame, head_due;
		} message;
		uint32_t nodes[3 * BELAY_NODES_MAX];
	};
	struct belay_record record;
	struct belay_hint hint;
	bool in_message;
	uint64_t now_us;
};

/* Read a journal of @size bytes at @buf, which must stay. 0, -EBADMSG, -EPROTONOSUPPORT. */
int journal_read(struct journal_reader *r, const void *buf, size_t size);

/*
 * The next event, as the core was given it; it points into the reader. 1, 0
 * at the end, -EBADMSG.
 */
int journal_next(struct journal_reader *r, struct belay_event *ret_event);

#endif
