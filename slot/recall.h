/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A slot from belayd's side: lend, freeze, take back. @head and @log point
 * into belayd's own mapping of the client's memory (heads at SLOT_HEADS_AT;
 * the log of slot n at SLOT_LOGS_AT + n * SLOT_LOG_BYTES). Nothing here waits
 * for the client or believes what it wrote before it was copied and checked.
 */
#ifndef BELAY_SLOT_RECALL_H
#define BELAY_SLOT_RECALL_H

#include "slot/ranges.h"
#include "slot/slot.h"

/* What a loan is, as belayd and its client agreed. */
struct slot_terms {
	uint32_t epoch;			/* SLOT_EPOCH_MASK is the largest */
	enum belay_mode mode;		/* SH: for shared locks only */
	struct belay_range range;
	uint32_t room;			/* locks that may be held at one time; SLOT_ROOM_MAX is the most */
	uint64_t token;			/* of the last grant before it */
};

/* A log must be able to hold all of a set and as many operations again. */
#define SLOT_ROOM_MAX (SLOT_HALF_ENTRIES / 2)

/* In new, zeroed memory: no slot holds a loan. */
void slot_heads_init(struct slot_head *heads);

/*
 * A new loan for a slot that holds none: never used, or acknowledged by
 * CLIENT_RETURN, or after the client's death. held[count] are the locks in
 * it that the client has already, count <= terms->room. Frozen: it begins so.
 */
void slot_lend(struct slot_head *head, struct slot_entry *log, const struct slot_terms *terms,
	       const struct slot_entry *held, uint32_t count, bool frozen);

/* The loan is over, from this moment. Returns the word that counts. May be called again, at any time. */
uint64_t slot_recall(struct slot_head *head);

void slot_freeze(struct slot_head *head);
void slot_thaw(struct slot_head *head);

/*
 * May the client's owner @handle (0: the process) do that on the resource of
 * the loan: is it open, and for this action?
 */
struct slot_judge {
	bool (*may)(void *context, uint32_t handle, enum slot_action action);
	void *context;
};

/* What the client reports of a loan besides what is held. */
struct slot_report {
	bool used, used_ex;		/* used: range is valid, a hull of what was locked */
	struct belay_range range;
	uint64_t token;			/* of the last grant, within the limits */
};

/*
 * After slot_recall(), whose result is @word: make @set what is held. @set's former
 * content is dropped, its memory used again. @token_max: largest token that it can have given.
 *
 * 0; -ENOMEM; or -EBADMSG: the client has written what it must not, *ret_reason says
 * what (static text, to follow "it "). Then @set is of no use and *ret_report unchanged.
 */
int slot_take(const struct slot_head *head, const struct slot_entry *log, uint64_t word,
	      const struct slot_terms *terms, uint64_t token_max, const struct slot_judge *judge,
	      struct slot_ranges *set, struct slot_report *ret_report, const char **ret_reason);

#endif
