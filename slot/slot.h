/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The memory that one client and belayd share, so that the client can lock
 * without asking (a loan, see core/core.h). It is one sealed memfd: heads,
 * cells, then the logs of the slots. A slot holds one loan: a range of one
 * resource within which this client decides, for its own owners.
 *
 * All of a loan's state is a log of operations; what is held is what the log
 * makes of nothing. The head's word says which half of the log counts and how
 * much of it. To lock, the client writes an entry behind the counted ones and
 * then moves the word by compare-and-swap: that is the moment the lock is taken or
 * given back. belayd takes a loan back by one fetch_or of SLOT_RECALL, after which
 * no such swap can succeed; the counted entries do not change any more, so that it can copy
 * them at leisure. It never waits for the client, wherever that one was
 * stopped, and believes nothing it has not copied and checked.
 *
 * When a half is full, the client writes into the other half the shortest log
 * that leads to the same state, and swaps to that.
 *
 * Only the client increases the count, one thread at a time; only belayd gives
 * a slot a new loan, and only after the client has said that it saw the end of
 * the old one, or is dead.
 */
#ifndef BELAY_SLOT_SLOT_H
#define BELAY_SLOT_SLOT_H

#include <stdatomic.h>
#include <stddef.h>

#include "core/types.h"

#define SLOT_COUNT 256u			/* loans of one client at one time */
#define SLOT_CELLS 64u			/* answers that can be awaited at one time */
#define SLOT_HALF_ENTRIES 32768u
#define SLOT_COMPACT_MIN 64u		/* shorter logs are not rewritten */

/* Bits of the word, from below: flags, epoch (24), number of counted entries (32). */
#define SLOT_RECALL UINT64_C(1)		/* the loan is over */
#define SLOT_FROZEN UINT64_C(2)		/* quorum is lost: nothing may be taken */
#define SLOT_HALF UINT64_C(4)		/* which half counts */
#define SLOT_EPOCH_SHIFT 8
#define SLOT_EPOCH_MASK UINT64_C(0xffffff)
#define SLOT_COUNT_SHIFT 32

/* One cache line a slot. All but the word is the client's own report: plain hints to belayd. */
struct slot_head {
	_Alignas(64) _Atomic uint64_t word;
	_Atomic uint64_t token;		/* the last fencing token given under the loan */
	_Atomic uint64_t used_start;	/* hull of what was locked under it; start > end: nothing */
	_Atomic uint64_t used_end;
	_Atomic uint64_t used_ex;	/* not 0: exclusive locks among it */
};

enum slot_action {
	SLOT_UNLOCK,
	SLOT_LOCK_SH,
	SLOT_LOCK_EX,
	SLOT_ACTION_COUNT
};

struct slot_entry {
	uint64_t start, end;		/* both included */
	uint32_t handle;		/* the owner: 0 the process, else the handle's number */
	uint32_t action;
};

/*
 * Where the answer to a request is awaited, by a futex in place of the socket,
 * so that exactly the thread that waits for it wakes. The answer is what the
 * socket would have carried, see wire/client.h.
 */
enum slot_cell_state {
	SLOT_CELL_PENDING,		/* the client spins */
	SLOT_CELL_SLEEPING,		/* the client sleeps on the word: wake it */
	SLOT_CELL_ANSWERED,
};
struct slot_cell {
	_Alignas(64) _Atomic uint32_t state;
	uint32_t size;			/* of bytes: one message */
	uint8_t bytes[184];
};

/*
 * A belayd that was killed takes nothing back. Its clients would go on within their
 * loans for ever, and never learn that it has gone; and the next belayd waits for
 * just that. So here stands its thread's number while it lives; the kernel
 * adds FUTEX_OWNER_DIED when it ends, however it ends. Whoever decides in a loan looks here, too.
 */
struct slot_belayd {
	_Alignas(64) _Atomic uint32_t thread;
};
#define SLOT_BELAYD_DIED UINT32_C(0x40000000)	/* FUTEX_OWNER_DIED */

#define SLOT_HEADS_AT 0u
#define SLOT_CELLS_AT (SLOT_COUNT * sizeof(struct slot_head))
#define SLOT_BELAYD_AT (SLOT_CELLS_AT + SLOT_CELLS * sizeof(struct slot_cell))
#define SLOT_LOGS_AT 65536u		/* what stands before it is mapped by both */
#define SLOT_HALF_BYTES (SLOT_HALF_ENTRIES * sizeof(struct slot_entry))
#define SLOT_LOG_BYTES (2u * SLOT_HALF_BYTES)
#define SLOT_MEMORY_BYTES (SLOT_LOGS_AT + (size_t)SLOT_COUNT * SLOT_LOG_BYTES)
_Static_assert(SLOT_BELAYD_AT + sizeof(struct slot_belayd) <= SLOT_LOGS_AT,
	       "heads and cells have to fit before the logs");
_Static_assert(SLOT_LOG_BYTES % 65536u == 0, "a slot's log has to be mappable by itself");

static inline uint64_t slot_word(uint32_t epoch, uint32_t count)
{
	return (epoch & SLOT_EPOCH_MASK) << SLOT_EPOCH_SHIFT | (uint64_t)count << SLOT_COUNT_SHIFT;
}

static inline uint32_t slot_count(uint64_t word)
{
	return (uint32_t)(word >> SLOT_COUNT_SHIFT);
}

static inline uint32_t slot_epoch(uint64_t word)
{
	return (uint32_t)(word >> SLOT_EPOCH_SHIFT & SLOT_EPOCH_MASK);
}

/* Where the half that the word names begins in the memory. */
static inline size_t slot_half_at(uint32_t slot, uint64_t word)
{
	return SLOT_LOGS_AT + (size_t)slot * SLOT_LOG_BYTES +
	       (word & SLOT_HALF ? SLOT_HALF_BYTES : 0);
}

#endif
