/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A few cores on a perfect ring, for unit tests: what one sends, all get, in
 * one order, when the test says so. No faults, no lag of its own: those are the
 * simulator's (tests/sim).
 */
#ifndef BELAY_TESTS_CORE_RING_H
#define BELAY_TESTS_CORE_RING_H

#include "core/core.h"

#define RING_NODES 5
#define RING_REPLIES 4096
#define RING_LOANS 4096
#define RING_HELD 64
#define RING_HINTS 64
/* Resources from here on are volumes. */
#define RING_VOLUMES 200u

struct ring;

/* What became of a LOCK. */
struct ring_reply {
	bool answered;
	int result;
	uint64_t token;
	bool held;
	struct belay_owner holder;
	struct belay_range range;
	enum belay_mode mode;
	unsigned loan;			/* with it came the loan of this number, or 0 */
};

struct ring_held {
	struct belay_range range;
	enum belay_mode mode;
	uint64_t key;
	enum belay_kind kind;
};

/*
 * A loan as its client has it. A test plays the client and changes held, used and token as it
 * likes; they are what the core is told when it calls the loan back, at the end of the step,
 * and when the client itself asks about the range.
 */
struct ring_loan {
	unsigned node;
	uint32_t client, number;	/* number: what the core calls it */
	bool live;
	bool keep;			/* called back, it stays for the test to give it back */
	bool recalled;
	uint8_t resource;
	struct belay_range range;
	enum belay_mode mode;
	uint32_t room;
	uint64_t token;			/* the last one given */
	bool used, used_ex;
	struct belay_range hull;
	struct ring_held held[RING_HELD];
	unsigned count;
};

/* n nodes, ids 1..n, joined and synced. limits NULL: small ones. */
struct ring *ring_new(unsigned n, enum belay_stability stability, const struct belay_limits *limits);
/* The same in two steps, for a test that wants another configuration. */
struct belay_core_config ring_config(unsigned n, enum belay_stability stability,
				     const struct belay_limits *limits);
struct ring *ring_new_with(const struct belay_core_config *config);
/* What a node begins its next life with; self and incarnation are filled in. */
struct belay_core_config *ring_node_config(struct ring *ring, unsigned node);
struct ring *ring_free(struct ring *ring);
struct belay_core *ring_core(struct ring *ring, unsigned node);

/* Local events of a node; all return what the core returned. cookie < RING_REPLIES. */
struct ring_who {
	unsigned node;
	uint32_t client;
	uint64_t key;
	enum belay_kind kind;
};
int ring_lock(struct ring *ring, struct ring_who who, unsigned resource, uint64_t start,
	      uint64_t end, enum belay_mode mode, bool wait, uint64_t cookie);
/* The same for a client that can take a loan. */
int ring_lock_lend(struct ring *ring, struct ring_who who, unsigned resource, uint64_t start,
		   uint64_t end, enum belay_mode mode, bool wait, uint64_t cookie);
int ring_test(struct ring *ring, struct ring_who who, unsigned resource, uint64_t start,
	      uint64_t end, enum belay_mode mode, uint64_t cookie);
int ring_unlock(struct ring *ring, struct ring_who who, unsigned resource, uint64_t start,
		uint64_t end);
int ring_cancel(struct ring *ring, struct ring_who who, uint64_t cookie);
int ring_client_gone(struct ring *ring, unsigned node, uint32_t client);
int ring_fence(struct ring *ring, unsigned by, unsigned node);
int ring_leave(struct ring *ring, unsigned node);

/* Loans are numbered 1, 2, ... in the order in which they were lent. */
unsigned ring_loans(const struct ring *ring);
struct ring_loan *ring_loan(struct ring *ring, unsigned loan);
/* The client locks in its loan; the test knows that nothing is in the way. */
void ring_loan_lock(struct ring_loan *loan, struct ring_who who, uint64_t start, uint64_t end,
		    enum belay_mode mode);
/* What a client says of one lock in its loan, and that it is over; both return what the core returned. */
int ring_loan_held(struct ring *ring, const struct ring_loan *loan, const struct ring_held *held);
int ring_loan_end(struct ring *ring, struct ring_loan *loan);
/* Both, for all it holds. Returns the first error. */
int ring_loan_back(struct ring *ring, struct ring_loan *loan);

/* Hints are kept until a test has them arrive, or forgets them: none is lost by itself. */
struct ring_hint {
	struct belay_hint hint;
	unsigned to;
};
unsigned ring_hints(const struct ring *ring);
struct ring_hint *ring_hint(struct ring *ring, unsigned i);	/* from 0 */
/* Returns what the core returned. */
int ring_hint_arrives(struct ring *ring, const struct ring_hint *hint);
void ring_hints_forget(struct ring *ring);

/* Take node off the ring, unclean; tell the others. It is not stepped any more. */
void ring_kill(struct ring *ring, unsigned node);
/* A node that was killed starts anew. */
void ring_start(struct ring *ring, unsigned node);

/* Deliver one frame, if there is one. */
bool ring_deliver(struct ring *ring);
/* Deliver everything that was sent, and what follows from it. Returns frames delivered. */
unsigned ring_run(struct ring *ring);
/* Let time pass, with its ticks, and deliver. */
void ring_pass(struct ring *ring, uint64_t us);

/* The answer to a cookie; forgets it. */
struct ring_reply ring_reply(struct ring *ring, uint64_t cookie);
/* Clients that were told LOST, since the last call. */
unsigned ring_lost(struct ring *ring);
const char *ring_isolated(const struct ring *ring, unsigned node);
bool ring_left(const struct ring *ring, unsigned node);
/* Frames with ops / frames without that this node has sent. */
unsigned ring_frames(const struct ring *ring, unsigned node);
unsigned ring_acks(const struct ring *ring, unsigned node);
/* Do all running nodes have the same digest at the same place? Checks each core, too. */
bool ring_agree(struct ring *ring);

#endif
