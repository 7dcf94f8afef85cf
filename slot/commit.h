/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A slot from the client's side: lock and unlock within a loan. The caller sees to it that
 * only one thread at a time is in here with one loan, and that no signal
 * handler re-enters it; slot_give_up() alone may be called at any time.
 *
 * Between any two accesses to the shared memory the client may be stopped for
 * ever. A build that wants to do that defines SLOT_STEP(loan), before it compiles
 * commit.c; it stands before each access.
 */
#ifndef BELAY_SLOT_COMMIT_H
#define BELAY_SLOT_COMMIT_H

#include "slot/ranges.h"
#include "slot/recall.h"
#include "slot/slot.h"

#ifndef SLOT_STEP
#define SLOT_STEP(loan) ((void)(loan))
#endif

/* A loan as its client sees it, in the client's own memory. */
struct slot_loan {
	struct slot_head *head;
	struct slot_entry *log;		/* both halves */
	uint64_t word;			/* what stands in the head unless it is recalled or frozen */
	uint64_t token;			/* the last one given */
	struct belay_range used;	/* as reported in the head */
	bool used_ex;
	uint32_t compact_at;		/* a log as long as this is rewritten */
	struct slot_terms terms;
	struct slot_ranges held;	/* what the log makes of nothing */
};

/*
 * Take a new loan into use. @loan: zeroed, or one that has ended before, whose
 * memory is used again. 0; -ESTALE: it is over already; -ENOMEM; -EBADMSG: belayd
 * wrote what makes no sense. On failure give it up and acknowledge.
 */
int slot_begin(struct slot_loan *loan, struct slot_head *head, struct slot_entry *log,
	       const struct slot_terms *terms);

/*
 * Lock within the loan for owner @handle. The range must lie in that of the loan and
 * the mode be one that it allows (asserted).
 *   0        done; *ret_token is its fencing token
 *   -EAGAIN  another owner of this process is in the way; that is so even if the
 *            loan is over
 *   -ESTALE  recalled or frozen: belayd has to be asked
 *   -ENOSPC  no room for one more lock, or one more owner; -ENOMEM: no memory: the same
 */
int slot_lock(struct slot_loan *loan, uint32_t handle, enum belay_mode mode,
	      const struct belay_range *range, uint64_t *ret_token);

/* Unlock what is held of the range, the same way. 0, -ESTALE, -ENOSPC, -ENOMEM. */
int slot_unlock(struct slot_loan *loan, uint32_t handle, const struct belay_range *range);

/*
 * Would that lock be refused? 1: *ret_held is in the way, the first by start; 0:
 * nothing is; -ESTALE: nothing in this process, but the loan is over.
 */
int slot_test(struct slot_loan *loan, uint32_t handle, enum belay_mode mode,
	      const struct belay_range *range, struct slot_entry *ret_held);

/* End the loan from the client's side. What is held in it stays held: belayd reads it. */
void slot_give_up(struct slot_loan *loan);

/* Does the loan have all of that? */
static inline bool slot_covers_bytes(const struct slot_loan *loan, enum belay_mode mode, uint64_t start,
				     uint64_t end)
{
	return start >= loan->terms.range.start && end <= loan->terms.range.end && mode <= loan->terms.mode;
}

static inline bool slot_covers(const struct slot_loan *loan, enum belay_mode mode,
			       const struct belay_range *range)
{
	return slot_covers_bytes(loan, mode, range->start, range->end);
}

#endif
