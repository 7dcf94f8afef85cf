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
int ring_test(struct ring *ring, struct ring_who who, unsigned resource, uint64_t start,
	      uint64_t end, enum belay_mode mode, uint64_t cookie);
int ring_unlock(struct ring *ring, struct ring_who who, unsigned resource, uint64_t start,
		uint64_t end);
int ring_cancel(struct ring *ring, struct ring_who who, uint64_t cookie);
int ring_client_gone(struct ring *ring, unsigned node, uint32_t client);
int ring_fence(struct ring *ring, unsigned by, unsigned node);
int ring_leave(struct ring *ring, unsigned node);

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
