/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the core lends to clients, and takes back: between its actions and
 * events (core/core.h) and the memory that a client shares (slot/slot.h).
 *
 * An action is emitted in the middle of a step. So a RECALL only
 * ends the loan at once; what the client held in it is told to the core by
 * loan_feed(), when the step is over. The same for what comes from the client's own side.
 */
#ifndef BELAY_DAEMON_LOAN_H
#define BELAY_DAEMON_LOAN_H

#include "daemon/resource.h"
#include "daemon/share.h"
#include "slot/recall.h"

struct server;
struct client;
struct belay_action;

enum loan_state {
	LOAN_NONE,		/* the slot is free */
	LOAN_LENT,
	LOAN_TAKEN,		/* over; loan_feed() has to tell the core */
	LOAN_OVER,		/* and it was told; the client has not returned the slot yet */
};

/* A slot of a client, with the loan that it has now. */
struct loan {
	enum loan_state state;
	struct client *client;
	struct resource *resource;	/* while LENT or TAKEN */
	uint32_t number;		/* the core's */
	uint32_t slot;
	struct slot_terms terms;	/* the epoch goes on from loan to loan */
	uint64_t lent_us;
	uint64_t word;			/* TAKEN: the last one */
	uint64_t recalled_us;		/* TAKEN: when the core wanted it back; 0: it did not */
	int error;			/* TAKEN: it could not even be lent */
	TAILQ_ENTRY(loan) link;		/* LENT: of its resource; TAKEN: of those to feed */
};

/* A client's slots. */
struct client_loans {
	struct share *share;		/* NULL: it shares no memory */
	struct loan *loan[SLOT_COUNT];
	uint64_t used[SLOT_COUNT / 64];	/* bit per slot that is not free */
	uint32_t made;			/* slots there are; the rest of the array is NULL */
	uint32_t count;			/* of them not free */
	uint32_t wanted;		/* requests that may bring a loan */
};

/* All of the server's. */
struct loans {
	uint32_t per_client_max;
	struct loan_list taken;		/* to feed */
	bool feeding, frozen;
	struct loan *answer;		/* goes with the REPLY that follows */
	struct slot_entry *held;	/* LEND_HELD, for the LEND that follows */
	uint32_t held_count, held_size;
	int held_error;
	struct slot_entry *log;		/* copy of the log that is being read */
	struct slot_ranges set;
};

/* -ENOMEM */
int loans_init(struct loans *loans, uint32_t per_client_max);
void loans_done(struct loans *loans);

/* ---- what the core wants ---- */

void loan_on_held(struct server *s, const struct belay_action *action);
void loan_on_lend(struct server *s, const struct belay_action *action);
void loan_on_recall(struct server *s, const struct belay_action *action);
void loan_on_frozen(struct server *s, bool frozen);

/* Tell the core what the loans held that are over. May end clients. */
void loan_feed(struct server *s);

/* ---- what clients want ---- */

/*
 * Make the memory. -EEXIST: it has it already; -EUSERS: its process has as many as one
 * may; else what share_new() says.
 */
int loan_share(struct server *s, struct client *c);

/* Keep a slot for a request that may bring a loan, until that is answered. False: there is none. */
bool loan_want(struct server *s, struct client *c);

/* If a loan goes with this RESULT, say so in it. */
void loan_answer(struct server *s, struct client *c, struct client_message *m);

/*
 * The client has said something about that range of the resource: its loans
 * there are over, first. The client may be dead afterwards.
 */
void loan_take_back(struct server *s, const struct resource *resource, const struct belay_range *range);

/* RETURN: the slot may be used again. The client may be dead afterwards. -ENOENT: it has no such loan. */
int loan_return(struct server *s, struct client *c, uint32_t slot, uint32_t epoch);

/* Has it a loan, or had one of which the core does not know yet that it is over? */
bool loan_any(const struct client *c);

/* Its loans are void, and the core knows: it has gone, or its locks are lost. */
void loan_end_all(struct server *s, struct client *c);

/* Free what it has of loans; after loan_end_all(). */
void loan_done(struct client *c);

#endif
