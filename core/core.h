/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The lock engine of one node, as a pure state machine: what happened comes
 * in as an event, what must be done goes out as actions. belayd and the
 * simulator drive this same code.
 *
 * The core does no I/O: it opens nothing, reads no clock, draws no random
 * number, starts no thread, logs nothing and allocates nothing. Time is a
 * field of each event. Memory is given once, at belay_core_init(), zeroed; it
 * is touched only as it is needed, so a caller may reserve generously.
 *
 * Replicated state changes only on ordered events (VIEW, FRAME, OP), which
 * all members receive in the same order; every member computes the same table.
 * Rules S1..S12 and invariants I1..I12 are numbered in ARCHITECTURE.md.
 *
 * Not thread-safe: one core, one thread.
 */
#ifndef BELAY_CORE_CORE_H
#define BELAY_CORE_CORE_H

#include <stddef.h>

#include "core/types.h"

struct belay_core;

/* How many must have acknowledged before a grant is believed (S2). */
enum belay_stability {
	/* A majority of expected votes, one vote a node. */
	BELAY_STABLE_MAJORITY,
	/* Every configured node neither fenced nor cleanly left: where quorum
	 * is not a plain majority (two_node, qdevice, weighted votes ...). */
	BELAY_STABLE_ALL,
};

struct belay_core_config {
	uint32_t self;			/* this node's id, not 0 */
	uint64_t incarnation;		/* of this life; not 0, differs from all former ones */
	enum belay_stability stability;
	uint32_t node_count;		/* configured nodes, self among them */
	uint32_t node[BELAY_NODES_MAX];
	bool fencing_none;		/* a node that left counts as fenced: test beds only */
	struct belay_limits limits;
	uint32_t requests_max;		/* local requests at one time */
	uint32_t loans_max;		/* 0: nothing is lent to clients */
	bool hints;			/* take early what others have released (S11) */
	uint32_t min_hold_us;		/* what was delegated and used is kept at least this long */
	uint32_t idle_us;		/* unused resources are given up after this */
	uint32_t claim_streak;		/* requests in a row before a node asks to have it delegated; not 0 */
	uint32_t share_streak;		/* requests for reading in a row before readers ask to share; not 0 */
	uint32_t lend_after;		/* requests of a client before it is lent anything */
	uint64_t token_base;		/* fencing clock at the first event: time of day, 2^32 a second */
};

enum belay_event_type {
	/* Local events: what this node's clients, operator and clock do. */
	BELAY_EVENT_LOCK,
	BELAY_EVENT_UNLOCK,
	BELAY_EVENT_CANCEL,
	BELAY_EVENT_CLIENT_GONE,
	BELAY_EVENT_LOAN_HELD,	/* part of LOAN_BACK that follows: a lock in the loan */
	BELAY_EVENT_LOAN_BACK,	/* a loan is over: asked for by RECALL, or by itself */
	BELAY_EVENT_HINT,	/* a datagram of another node has come */
	BELAY_EVENT_FENCE,	/* this node knows that @node has stopped */
	BELAY_EVENT_LEAVE,	/* leave cleanly as soon as nothing is held */
	BELAY_EVENT_QUORUM,	/* corosync's own flag, for STABLE_ALL */
	BELAY_EVENT_TICK,	/* belay_core_deadline() has come */
	/* Ordered events: the same order on all members. */
	BELAY_EVENT_VIEW,	/* membership changed */
	BELAY_EVENT_FRAME,	/* head of a frame; its ops follow as OP events */
	BELAY_EVENT_OP,
	/* A record of a snapshot addressed to this node, in order of the stream. */
	BELAY_EVENT_RECORD,
	BELAY_EVENT_COUNT
};

struct belay_event {
	enum belay_event_type type;
	uint64_t now_us;	/* monotonic time; never used for replicated decisions */
	union {
		struct {
			struct belay_key key;
			struct belay_range range;
			struct belay_owner owner;	/* .node is filled in by the core */
			enum belay_mode mode;		/* LOCK */
			bool wait;			/* LOCK */
			bool test;			/* LOCK: F_GETLK */
			bool lend;			/* LOCK: its client can take a loan */
			uint64_t cookie;		/* LOCK: comes back in REPLY; unique per client */
		} lock;				/* LOCK, UNLOCK */
		struct {
			uint32_t client;
			uint64_t cookie;	/* CANCEL */
		} client;			/* CANCEL, CLIENT_GONE */
		struct {
			uint32_t loan;
			struct belay_range range;	/* HELD: of the lock; BACK: hull of what was used */
			struct belay_owner owner;	/* HELD: key kind */
			enum belay_mode mode;		/* HELD */
			bool used;			/* BACK: range is valid */
			bool used_ex;			/* BACK: not for reading only */
			uint64_t token;			/* BACK: the last one given under it */
		} loan;				/* LOAN_HELD LOAN_BACK */
		const struct belay_hint *hint;
		struct {
			uint32_t node;
		} fence;
		struct {
			bool quorate;
		} quorum;
		struct {
			/* Node ids. left: in the previous view, gone or in a new life.
			 * A node may stand in left and in joined. */
			uint32_t member_count, joined_count, left_count;
			const uint32_t *member, *joined, *left;
		} view;
		const struct belay_frame *frame;
		const struct belay_op *op;
		const struct belay_record *record;
	};
};

enum belay_action_type {
	/* Append the op to what this node multicasts, in order. If @urgent, a frame
	 * must leave at the end of this turn; else it may wait up to 1 ms for company. */
	BELAY_ACTION_SEND,
	/* A frame must leave at the end of this turn, even without ops; @ask: with its
	 * ask flag. An ack (not ask) must not wait for company. */
	BELAY_ACTION_FLUSH,
	/* Answer a LOCK: client cookie result token; for test also held, holder ... */
	BELAY_ACTION_REPLY,
	/* Part of LEND that follows: a lock of the client that is in the loan: loan owner range mode */
	BELAY_ACTION_LEND_HELD,
	/*
	 * From now on this client decides by itself about the range, for its own owners and
	 * in the mode, SH only or both: client cookie loan key range mode token room. The
	 * REPLY to cookie follows at once. Tokens it gives are larger than @token.
	 */
	BELAY_ACTION_LEND,
	/* Take it back, now: LOAN_HELD and LOAN_BACK must be fed before any other event
	 * of that client: client loan */
	BELAY_ACTION_RECALL,
	/* Send @hint to @node, now, if there is a way beside the group. */
	BELAY_ACTION_HINT,
	/* All that this client held or awaited is void, loans as well; its requests were answered. */
	BELAY_ACTION_LOST,
	/* Build a snapshot now (belay_core_snapshot_next()) and send it to @node. */
	BELAY_ACTION_SNAPSHOT,
	/* Remember all ordered events from here on, this one not included ... */
	BELAY_ACTION_HOLD,
	/* ... and feed the remembered ones again, now, in order; then forget them. */
	BELAY_ACTION_REPLAY,
	/* ... or forget them, they are void. */
	BELAY_ACTION_FORGET,
	/* A new life begins: drop every op not yet sent. @incarnation is the new one. */
	BELAY_ACTION_RESTART,
	/* This node now serves / serves no more. */
	BELAY_ACTION_SYNCED,
	BELAY_ACTION_FROZEN,	/* @frozen: grants nothing any more / thawed */
	/* What a person should hear of; @node, @incarnation. */
	BELAY_ACTION_NODE_LEFT,
	BELAY_ACTION_NODE_CLOSED,
	BELAY_ACTION_NODE_JOINED,
	/* LEAVE is complete: the group may be left. */
	BELAY_ACTION_LEFT,
	/* This node must stop at once and loudly: @reason says why. Its state is not to
	 * be trusted, or the cluster refuses it; it must not be restarted blindly. */
	BELAY_ACTION_ISOLATE,
	BELAY_ACTION_COUNT
};

struct belay_action {
	enum belay_action_type type;
	const struct belay_op *op;	/* SEND; valid during the call only */
	bool urgent;			/* SEND */
	bool ask;			/* FLUSH */
	bool frozen;			/* FROZEN */
	uint32_t client;		/* REPLY LOST LEND RECALL */
	uint64_t cookie;		/* REPLY LEND */
	uint32_t loan;			/* LEND_HELD LEND RECALL: numbers a loan while it lasts */
	uint32_t room;			/* LEND: so many locks may be in it at one time */
	struct belay_key key;		/* LEND */
	const struct belay_hint *hint;	/* HINT; valid during the call only */
	int result;			/* REPLY: 0, or a negative errno, see below */
	uint64_t token;			/* REPLY, result 0: fencing token, grows per resource; LEND */
	bool held;			/* REPLY to a test: conflicting lock below */
	struct belay_owner holder;	/* REPLY; LEND_HELD: key and kind of the owner */
	struct belay_range range;	/* also LEND LEND_HELD */
	enum belay_mode mode;		/* also LEND LEND_HELD */
	uint32_t node;			/* SNAPSHOT NODE_* HINT */
	uint64_t incarnation;		/* SNAPSHOT NODE_* RESTART */
	uint32_t volumes;		/* NODE_*: locks of the node itself, which stay */
	const char *reason;		/* ISOLATE: static text */
};

/*
 * Results of a REPLY: 0; -EAGAIN busy (try); -EDEADLK; -EINTR cancelled;
 * -ENOLCK a limit shared by the cluster is reached; -EIO the lock table was
 * lost with quorum (LOST follows; but not for the node itself, which asked for less than
 * it had: whether that was granted is not known, so it has no more than that).
 */

/* Where actions go. emit() must not call back into the core. */
struct belay_actions {
	void (*emit)(void *context, const struct belay_action *action);
	void *context;
};

/* Bytes belay_core_init() needs for @config; most of it untouched until used. 0: config is not valid. */
size_t belay_core_size(const struct belay_core_config *config);

/*
 * Make a core in @memory (belay_core_size() zeroed bytes, aligned to 64; the
 * caller's, must outlive the core). Returns it, or NULL if config is not valid.
 */
struct belay_core *belay_core_init(void *memory, const struct belay_core_config *config);

/*
 * Apply one event; actions are emitted, in order, before the call returns.
 * Ordered events must be fed as delivered, own ones included. While the node
 * is not synced they are fed at once AND remembered as HOLD/REPLAY say.
 *
 * Returns 0, or a negative errno with the core unchanged and nothing emitted:
 *   -EINVAL   a local event names an impossible range, mode, kind or node
 *   -ENOLCK   no room for one more local request or owner
 *   -ESHUTDOWN  LOCK: this node is leaving the cluster
 *   -ENOENT   CANCEL: no such request (it was answered already);
 *             FENCE: that node has not left, or has left nothing behind
 *   -EBUSY    FENCE: the node is a member; LEAVE: already leaving
 *   -EAGAIN   FENCE: this node is not quorate or not synced and cannot say so
 * Ordered events never fail: what makes no sense is dropped and counted.
 */
int belay_core_step(struct belay_core *core, const struct belay_event *event,
		    const struct belay_actions *actions);

/* When the next TICK is due, in the time of now_us; UINT64_MAX: never. */
uint64_t belay_core_deadline(const struct belay_core *core);

/*
 * Fill in the head of the next frame: node, incarnation, acks. The caller
 * counts seq: the ops emitted by SEND number 1, 2, ... from the last RESTART.
 * ask is left false.
 */
void belay_core_frame(const struct belay_core *core, struct belay_frame *ret_frame);

/*
 * Walk over the replicated state. *cursor starts at 0. Returns 1 and fills
 * @ret_record, or 0 after the END record. The core must not be stepped
 * between the first and the last call.
 */
struct belay_cursor {
	unsigned phase;
	uint32_t at;
	uint64_t count;
};
int belay_core_snapshot_next(const struct belay_core *core, struct belay_cursor *cursor,
			     struct belay_record *ret_record);

/*
 * Walk over what this node knows of locks and waiters: its own table for what
 * it owns, the replicated one for the rest. *cursor starts at 0 and may be
 * kept over steps (entries may then be missed or seen twice). Returns 1 or 0.
 */
struct belay_lock_info {
	struct belay_key key;
	enum belay_state state;		/* of the range that the lock is in */
	uint32_t owner_node;		/* OWNED, RECALL: who decides; else 0 */
	struct belay_range range;
	enum belay_mode mode;
	struct belay_owner owner;
	bool waiting;
	uint64_t queue;			/* waiting: order in the queue */
};
int belay_core_locks_next(const struct belay_core *core, struct belay_cursor *cursor,
			  struct belay_lock_info *ret_info);

struct belay_node_info {
	uint32_t node;
	enum belay_standing standing;
	bool synced;
	uint64_t incarnation;
	uint64_t seq;		/* last op delivered from it */
	uint64_t acked;		/* last of our ops it acknowledged */
	uint32_t volumes;	/* locks of the node itself */
};

/* Counters grow for ever within a life; gauges (first part) are of now. */
struct belay_stats {
	uint32_t nodes;
	bool synced, frozen, quorate, leaving;
	uint64_t incarnation, place, digest;
	uint64_t stable;		/* own ops up to this one are stable */
	uint32_t resources[BELAY_STATE_COUNT];
	uint32_t owned_here;
	uint32_t locks, locks_replicated, waiters_replicated, requests, owners;
	uint64_t local_grants, ordered_grants, busy, deadlocks, refused, cancelled;
	uint64_t recalls, relinquished, claims, idles;
	uint32_t loans;
	uint64_t lent, loans_recalled, hints_sent, hints_used;
	uint64_t ops_delivered, ops_dropped, digests_compared;
};
void belay_core_stats(const struct belay_core *core, struct belay_stats *ret_stats);
/* Returns 1 and fills @ret_info for node number @index (0..nodes-1), else 0. */
int belay_core_node(const struct belay_core *core, uint32_t index, struct belay_node_info *ret_info);

/* Check every structure and invariant that one node can check; asserts. For tests: slow. */
void belay_core_check(const struct belay_core *core);

#endif
