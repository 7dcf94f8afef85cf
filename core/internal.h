/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of core/ share: the tables of one node. Items live in pools
 * and name each other by index, 0 for none.
 *
 *   node ── client ── owner ── lock ──┐
 *     │        │         └── request ─┼── resource ── local (this node's part)
 *     │        └──────────── loan ────┤
 *     └───────────────── delegation ──┘
 *
 * A lock or request counts as replicated when every synced node has it: locks
 * outside of delegations, requests once they are queued by an ordered op. What
 * is decided for all nodes rests on what is replicated only.
 */
#ifndef BELAY_CORE_INTERNAL_H
#define BELAY_CORE_INTERNAL_H

#include <errno.h>

#include "core/core.h"
#include "core/pool.h"
#include "core/tree.h"

#define DIGEST_EVERY 1024u	/* ops between two digests */
#define DIGEST_KEPT 16u		/* places whose hash is remembered for comparison */
#define LOCAL_WAIT_US 200000u	/* I7: longer local waits become replicated */
#define ASK_MIN_US 2000u	/* S5: not stable after this: ask */
#define BACKOFF_MAX 7u		/* claim_streak << 7 */
#define QUIET_PLACES 65536u	/* a delegation that lasted longer was worth it */
#define SPARE 64u		/* places for what is only there to be refused */
#define SENT_SPARE 65536u	/* releases on their way need no lock or request to exist */
#define DEADLOCK_EDGES 10000u	/* search no further: no deadlock is reported then */
/* What a dead node may have issued unseen: it reports earlier than after half as many. */
#define TOKEN_UNSEEN (UINT64_C(1) << 34)
#define TOKENS_PRIVATE (TOKEN_UNSEEN / 2)
#define HINTS_KEPT 64u
#define TOKENS_PER_US 4295u	/* token_base is in 2^32 a second */

/* A held lock. */
struct lock {
	uint64_t start, end;
	uint64_t max_end;		/* of its subtree in the tree by range */
	struct link by_range, by_owner;
	uint32_t owner, resource;
	uint32_t owner_prev, owner_next;
	uint8_t mode;
	bool replicated;		/* else private to this node, or */
	bool staged;			/* its HELD was delivered, the RELINQ not yet */
};

enum request_state {
	REQUEST_NEW,		/* not sent: the node does not serve yet */
	REQUEST_BACK,		/* held back until own ops in flight have landed */
	REQUEST_SENT,		/* its REQ is on the way */
	REQUEST_QUEUED,		/* waits in the resource's queue */
	REQUEST_LATE,		/* awaits the grant of what its owner took early; number 0: a release */
	REQUEST_DONE,		/* decided, but what decided it is not stable yet (S3) */
};

/* A request: on its own node from LOCK to REPLY, on the others while queued. */
struct request {
	uint64_t start, end, max_end;
	struct link by_range;
	uint64_t queue;			/* order in the queue: the place of its op */
	uint64_t prefix;		/* what had been delivered of each member by its op; 0: not known */
	uint64_t vouch_at;		/* and how many own ops */
	uint32_t owner, resource;
	uint32_t number;		/* (node, number) names it in the cluster; 0: no request, LATE */
	uint32_t hash_next;
	uint32_t owner_prev, owner_next;
	uint32_t list_prev, list_next;	/* of the one struct list it is on */
	uint8_t state;
	uint8_t mode;
	bool wait, test;
	bool lend;			/* its client could take a loan */
	bool weakens;			/* its owner held more: others may go ahead when it is granted */
	bool early;			/* its client has it by a hint, the grant is still to come */
	bool ended;			/* and has given it back */
	bool own;			/* of this node */
	bool local;			/* queued on this node only, by its own authority */
	bool cancelled;			/* CANCEL is on the way */
	bool orphan;			/* client is gone, CLIENT_GONE on the way */
	bool confirmed;			/* this node has sent its BUSY */
	bool by_authority;		/* granted under this node's delegation (S4) */
	bool held;			/* test: answer */
	int result;
	uint64_t cookie;
	uint64_t stable_at;		/* believed when own op of this number is stable */
	uint64_t since_us;
	uint64_t token;
	struct belay_owner holder;	/* test: whose lock it is */
	struct belay_range holder_range;
	enum belay_mode holder_mode;
};

struct list {
	uint32_t head, tail;
};

struct owner {
	struct belay_owner id;
	uint32_t node;			/* index of id.node */
	uint32_t client;
	uint32_t hash_next;
	uint32_t client_prev, client_next;
	uint32_t locks, requests;	/* list heads */
	uint32_t held;			/* locks in all */
	uint32_t replicated;		/* of these, replicated */
	uint32_t waiting;		/* requests in queues ... */
	uint32_t queued;		/* ... that all know */
	uint32_t mark;			/* visited by the deadlock search of this number */
};

struct client {
	uint32_t node, id;
	uint32_t hash_next;
	uint32_t node_prev, node_next;
	uint32_t owners, loans;
};

struct resource {
	struct belay_key key;
	uint32_t hash_next;
	uint32_t sh, ex, by_owner;	/* trees of locks */
	uint32_t waiters;		/* tree of queued requests */
	uint32_t locks, waiting;	/* how many */
	uint32_t replicated;		/* of the locks */
	uint32_t tries;			/* of the waiting: parked tries and tests */
	uint64_t epoch;			/* place at which it last changed hands */
	uint32_t delegations;		/* list by start, then node */
	bool known;			/* replicated: used by some node */
	bool scan;
	bool gone;			/* the pool's item is not in use */
	uint8_t state;			/* as counted in the statistics */
	uint32_t local;
	uint32_t pins;			/* own requests that name it */
	uint32_t idle_prev, idle_next;	/* unused since, oldest first */
	uint32_t idle_ms;
	uint32_t scan_next;		/* chain of resources whose queue shall be scanned */
};

/* One node's right to grant on a range: all modes (EX), or SH only beside other nodes' (SH). */
struct delegation {
	uint64_t start, end;
	uint64_t epoch;			/* place at which it began */
	uint32_t resource, next;
	uint8_t node, mode;
	bool recalled;			/* a request has met it */
	/* Of this node's own: */
	bool giving;			/* a RELINQ of [give] is on its way: no authority there ... */
	bool keeping;			/* ... for writing, for it only makes it SH */
	bool gathering;			/* loans are on their way back first */
	bool used, used_ex;		/* since it began, in [hull] */
	struct belay_range give, hull;
	uint64_t authority_at;		/* own op whose stability makes the authority sure */
	uint64_t since_us;		/* authority began */
	uint64_t token, token_began;	/* last one given under it, and first */
	uint64_t due_us;		/* relinquish then; 0: not asked */
	uint32_t due_prev, due_next;
};

/* A range within one of this node's delegations that a client decides about by itself. */
struct loan {
	uint64_t start, end;
	uint64_t token, since_us;
	uint32_t resource, client;
	uint32_t next;			/* of the resource */
	uint32_t client_prev, client_next;
	uint32_t room;
	uint8_t mode;
	bool recalled;
};

#define USES_MAX 4u

/* What one client of this node has lately used of a resource: for whom to lend what. */
struct use {
	uint32_t client;		/* its id; 0: none */
	uint32_t count;			/* its requests */
	struct belay_range hull;
	bool ex;
	uint64_t at_us;
	uint64_t retry_us;		/* no loan before */
};

/* What a node that asks for a range to be delegated has seen while it was not. */
struct claim {
	uint32_t streak;		/* own requests since the last one of another node */
	uint32_t count;			/* own requests since hulls last met */
	uint32_t readers;		/* requests for reading since the last one for writing */
	uint8_t backoff;		/* each one doubles what the streak must be a multiple of */
	struct belay_range hull;	/* of own requests */
	bool others_below, others_above;
	uint64_t below, above;		/* nearest requests of others, if there are any */
};

/* This node's part in a resource that it uses. */
struct local {
	uint32_t inflight;		/* own REQs on the way */
	uint32_t loans;
	struct list back;		/* requests held back */
	struct claim claim;
	struct use use[USES_MAX];
};

/* An own op on the way, as far as its delivery matters here. */
struct sent {
	uint32_t next;
	uint8_t type;
	uint32_t resource, request, owner;
	struct belay_range range;
	uint64_t seq;
	uint64_t at_us;
};

struct node {
	uint32_t id;
	enum belay_standing standing;
	bool in_view;
	bool synced;
	bool hello;			/* unsynced HELLO seen in this view */
	bool heard;			/* any HELLO seen in this view */
	bool no_donor;			/* its HELLO met no node known to have state */
	uint64_t incarnation;
	uint64_t seq;			/* last op delivered */
	uint64_t acked;			/* last own op it has acknowledged */
	uint32_t clients;
	struct belay_record loaded;	/* the snapshot's word on it */
};

struct digest_place {
	uint64_t place, hash;
	uint32_t agree, differ;
};

struct belay_core {
	struct belay_core_config config;
	uint32_t self;				/* index of this node */
	uint64_t incarnation;
	struct node node[BELAY_NODES_MAX];	/* as configured, by id */
	uint32_t node_count;

	/* Replicated. */
	uint64_t place;				/* ordered ops applied */
	uint64_t token;				/* fencing clock */
	uint64_t digest;			/* sum of hashes of all replicated items */
	uint32_t locks_replicated, waiters_replicated, resources_replicated;

	/* This node's standing. */
	bool synced;
	bool stale;				/* was synced, lost quorum: only clients' beliefs are kept */
	bool frozen;				/* as last told by an action */
	bool quorate_flag;
	bool leaving, leave_sent, left;
	bool isolated;
	bool loading;
	bool start_sent;			/* in this view */
	bool hello_sent;
	uint64_t loaded_place, loaded_token;
	uint64_t loaded;			/* records of the snapshot so far */
	uint64_t sent_seq, stable;
	uint64_t flushed_seq;			/* own ops behind this one still wait for company */
	uint64_t last_send_place;		/* everything delivered up to here is acknowledged */
	uint64_t ask_us;			/* last time acks were asked for */
	uint64_t latency_us;			/* own delivery, smoothed */
	uint64_t now_us, first_us;
	uint64_t deadline_us;
	uint64_t claim_seq;			/* own CLAIM on its way; 0: none */
	uint32_t room_lent;			/* locks that loans may hold */
	uint64_t loan_check_us;
	uint64_t lend_us;			/* no loan of many locks before */
	uint32_t own_requests;
	uint32_t next_request;
	uint64_t next_local_queue;
	uint32_t mark;

	/* The frame whose ops are being delivered. */
	uint32_t from;				/* node index; node_count: drop */
	uint64_t from_incarnation;
	uint64_t from_seq;			/* number of the next op */
	bool from_new;				/* incarnation not agreed yet: HELLO only */

	struct list fresh;			/* requests in state NEW */
	struct list done;			/* requests in state DONE */
	struct list late;			/* requests in state LATE */
	struct belay_hint hint[HINTS_KEPT];
	uint32_t hint_next;
	uint64_t early_token;			/* last one given early */
	struct list local_waits;		/* locally queued requests, oldest first */
	struct { uint32_t head, tail; } idle, due;
	uint32_t sent_head, sent_tail;
	struct digest_place digests[DIGEST_KEPT];

	struct pool locks, requests, owners, clients, resources, locals, sents, delegations, loans;
	uint32_t *resource_hash, *owner_hash, *client_hash, *request_hash;
	uint32_t resource_mask, owner_mask, client_mask, request_mask;
	uint32_t scan_head;
	uint32_t *scratch;			/* as many as requests: a queue in order */
	uint32_t *stack;			/* likewise: search for deadlocks, and for what can be lent */
	uint32_t *order;			/* likewise: resources in order */
	uint32_t *lock_scratch;			/* as many as locks: those about to change */
	uint32_t *load_owner, *load_resource;	/* numbers of a snapshot -> indices */

	const struct belay_actions *out;	/* during a step */
	struct belay_stats stats;
};

static inline struct lock *lock_at(const struct belay_core *c, uint32_t i)
{
	return pool_at(&c->locks, i);
}

static inline struct request *request_at(const struct belay_core *c, uint32_t i)
{
	return pool_at(&c->requests, i);
}

static inline struct owner *owner_at(const struct belay_core *c, uint32_t i)
{
	return pool_at(&c->owners, i);
}

static inline struct client *client_at(const struct belay_core *c, uint32_t i)
{
	return pool_at(&c->clients, i);
}

static inline struct resource *resource_at(const struct belay_core *c, uint32_t i)
{
	return pool_at(&c->resources, i);
}

static inline struct delegation *delegation_at(const struct belay_core *c, uint32_t i)
{
	return pool_at(&c->delegations, i);
}

static inline struct loan *loan_at(const struct belay_core *c, uint32_t i)
{
	return pool_at(&c->loans, i);
}

static inline struct local *local_at(const struct belay_core *c, uint32_t i)
{
	return pool_at(&c->locals, i);
}

static inline struct sent *sent_at(const struct belay_core *c, uint32_t i)
{
	return pool_at(&c->sents, i);
}

static inline struct belay_range range_of(uint64_t start, uint64_t end)
{
	return (struct belay_range){ .start = start, .end = end };
}

static inline bool conflicting(enum belay_mode a, enum belay_mode b)
{
	return a == BELAY_MODE_EX || b == BELAY_MODE_EX;
}

static inline bool overlapping(uint64_t a_start, uint64_t a_end, struct belay_range r)
{
	return a_start <= r.end && r.start <= a_end;
}

static inline bool within(struct belay_range r, uint64_t start, uint64_t end)
{
	return r.start >= start && r.end <= end;
}

/* What two ranges that overlap have in common. */
static inline struct belay_range common(struct belay_range a, struct belay_range b)
{
	return range_of(a.start > b.start ? a.start : b.start, a.end < b.end ? a.end : b.end);
}

/*
 * Cut the range, which has all of @around, so that it ends before @other, or with @half in the
 * middle between the two. False, with the range unchanged: @other overlaps @around.
 */
static inline bool keep_off(struct belay_range *range, struct belay_range around,
			    struct belay_range other, bool half)
{
	uint64_t border;

	if (other.end < around.start) {
		border = other.end + 1;
		border += half ? (around.start - border) / 2 : 0;
		if (border > range->start)
			range->start = border;
		return true;
	}
	if (other.start > around.end) {
		border = other.start - 1;
		border -= half ? (border - around.end) / 2 : 0;
		if (border < range->end)
			range->end = border;
		return true;
	}
	return false;
}

/* core.c */
void core_emit(struct belay_core *c, const struct belay_action *a);
/* Send an op; for those whose own delivery matters, @resource, @request and @owner say of what. */
void core_send(struct belay_core *c, const struct belay_op *op, bool urgent, uint32_t resource,
	       uint32_t request, uint32_t owner);
void core_isolate(struct belay_core *c, const char *reason);
/* Wake up no later than @at_us. */
void core_wake(struct belay_core *c, uint64_t at_us);
/* May this node grant and send requests? */
bool core_serves(const struct belay_core *c);

/* index.c: owners, clients, resources and requests by their names */
uint64_t index_mix(uint64_t a, uint64_t b);
uint64_t index_key(const struct belay_key *key);
/* Of what somebody has on a resource. */
uint64_t index_owned(const struct belay_key *key, const struct belay_owner *owner);
uint32_t index_node(const struct belay_core *c, uint32_t id);	/* node_count if unknown */
uint32_t index_owner(struct belay_core *c, const struct belay_owner *id, bool make);
void index_owner_release(struct belay_core *c, uint32_t o);	/* frees it when nothing is left */
uint32_t index_client(const struct belay_core *c, uint32_t node, uint32_t id);
void index_client_release(struct belay_core *c, uint32_t client);	/* likewise */
uint32_t index_resource(struct belay_core *c, const struct belay_key *key, bool make);
void index_resource_release(struct belay_core *c, uint32_t r);
uint32_t index_request_new(struct belay_core *c, uint32_t resource, uint32_t owner, uint32_t number);
void index_request_free(struct belay_core *c, uint32_t q);
uint32_t index_request(const struct belay_core *c, uint32_t node, uint32_t number);
void list_push(struct belay_core *c, struct list *l, uint32_t q);
/* Into a list in order of stable_at; it nearly always belongs to the end. */
void list_sort_in(struct belay_core *c, struct list *l, uint32_t q);
void list_drop(struct belay_core *c, struct list *l, uint32_t q);

/* table.c: the locks held on a resource */

/* Which locks count: what is decided for all must not see what only this node knows. */
enum sight {
	SIGHT_REPLICATED,
	SIGHT_PRIVATE,
	SIGHT_ALL,
};

/* First lock by (start, owner) that another owner than @owner holds in conflict; 0: none. */
uint32_t table_conflict(const struct belay_core *c, const struct resource *r,
			struct belay_range range, enum belay_mode mode, uint32_t owner);
/* Call @each for every such lock until it returns true. */
bool table_each_conflict(const struct belay_core *c, const struct resource *r,
			 struct belay_range range, enum belay_mode mode, uint32_t owner,
			 bool (*each)(void *context, uint32_t lock), void *context);
/* Does @owner hold a lock in [range] that conflicts with @mode? */
bool table_blocks(const struct belay_core *c, const struct resource *r, uint32_t owner,
		  struct belay_range range, enum belay_mode mode, enum sight sight);
/* Does @owner hold all of the range at least as strongly as @mode? */
bool table_covers(const struct belay_core *c, const struct resource *r, uint32_t owner,
		  struct belay_range range, enum belay_mode mode, enum sight sight);
/* First lock of @owner that ends at @at or later; 0: none. */
uint32_t table_first(const struct belay_core *c, const struct resource *r, uint32_t owner,
		     uint64_t at);
/* May this owner's locks, replicated ones or private ones, grow by @more? The former alike
 * on every replica. */
bool table_room(const struct belay_core *c, uint32_t owner, uint32_t more, bool replicated);
/* How many private locks this node may have. */
uint32_t table_share(const struct belay_core *c);
/* And how many it has, with those that loans may hold. */
uint32_t table_private(const struct belay_core *c);
/*
 * Overwrite the range by a lock: a replicated one, or a private one, which merges with none
 * beyond @bounds (the delegation). Returns whether anything held became weaker.
 */
bool table_set(struct belay_core *c, uint32_t r, uint32_t owner, struct belay_range range,
	       enum belay_mode mode, bool replicated, struct belay_range bounds);
/* Release what can be seen in the range. Returns whether anything was held there. */
bool table_clear(struct belay_core *c, uint32_t r, uint32_t owner, struct belay_range range,
		 enum sight sight);
uint32_t table_add(struct belay_core *c, uint32_t r, uint32_t owner, struct belay_range range,
		   enum belay_mode mode, bool replicated);
void table_remove(struct belay_core *c, uint32_t lock);
/* The lock becomes replicated, or ceases to be. */
void table_publish(struct belay_core *c, uint32_t lock, bool replicated);
/* Call @each for every lock that overlaps the range, by (mode, start, owner), until it
 * returns true. It must not change the table. */
bool table_each(const struct belay_core *c, const struct resource *r, struct belay_range range,
		bool (*each)(void *context, uint32_t lock), void *context);

/* queue.c: requests that wait on a resource, and what lets them go */
void queue_add(struct belay_core *c, uint32_t q, uint64_t order, bool local);
void queue_drop(struct belay_core *c, uint32_t q);
/* What keeps a request from being granted now. */
struct blocker {
	uint32_t lock, request, delegation, loan;	/* one of them, or none */
};
struct blocker queue_blocker(const struct belay_core *c, uint32_t q);
/* Grant what waits on a part of the range, in this node's own queue or in that of all, and
 * may go now. */
void queue_scan(struct belay_core *c, uint32_t r, struct belay_range range, bool local);
/* What a grant outside a scan may let go: see request_grant() for @weaker. */
void queue_granted(struct belay_core *c, uint32_t r, uint32_t owner, bool weaker,
		   struct belay_range granted, bool local);
/* Queued requests of the resource in order into c->scratch; returns how many. */
uint32_t queue_collect(struct belay_core *c, const struct resource *r, struct belay_range range,
		       bool local);
/* The same in any order, for who may be called while the scratch is in use. */
uint32_t queue_peek(const struct belay_core *c, const struct resource *r, struct belay_range range,
		    bool local, uint32_t *ret_requests);
/* Scan all of the resource's queue at queue_scan_run(): once, after several changes.
 * Returns how many resources it has scanned; c->order lists them. */
void queue_scan_later(struct belay_core *c, uint32_t r);
uint32_t queue_scan_run(struct belay_core *c, bool local);
/* Has this node given up, by an op on its way, the lock that is in the request's way? */
bool queue_release_on_way(const struct belay_core *c, uint32_t q, uint32_t lock);
void queue_scan_forget(struct belay_core *c);
bool queue_less(const struct belay_core *c, uint32_t a, uint32_t b);
/* Sort indices by less(). */
void queue_sort(const struct belay_core *c, uint32_t *index, uint32_t count,
		bool (*less)(const struct belay_core *c, uint32_t a, uint32_t b));
/* The requester learns whether a parked try or test fails: say so if it is ours to say. */
void queue_confirm(struct belay_core *c, uint32_t q);
void queue_confirm_all(struct belay_core *c);
/* A test meets this node as the owner, who answers without giving anything up. */
void queue_answer(struct belay_core *c, uint32_t q);

static inline bool blocked(const struct blocker *b)
{
	return b->lock != 0 || b->request != 0 || b->delegation != 0 || b->loan != 0;
}

/* A test that only those in front of it in the queue are in the way of needs to ask nobody. */
static inline bool queue_answerable(const struct request *q, const struct blocker *b)
{
	return q->test && b->request != 0;
}

/* Does an overlapping request that stands earlier in the queue go before q? */
bool queue_goes_first(const struct belay_core *c, const struct resource *r, uint32_t q,
		      uint32_t earlier);

/* deadlock.c: does this queued request close a circle of waits? */
bool deadlock_closes(struct belay_core *c, uint32_t q);
/*
 * Fail a queued request that closes one. Even where only the queue's order is in
 * its way it must not pass: a node that left may have granted, by releases that only
 * it delivered, the request that would be passed (S6).
 */
void deadlock_break(struct belay_core *c, uint32_t q);
/* Judge all waits on a resource that has just become known: to all, or to this node. */
void deadlock_resolve(struct belay_core *c, uint32_t r, bool local);

/* resource.c: what is in use, and giving back what is not */
struct local *resource_local(struct belay_core *c, uint32_t r);	/* made if need be; NULL: no room */
/* It becomes known to all, at this place of the order; false: there is no room. */
bool resource_known(struct belay_core *c, uint32_t r);
/* Delegations have changed at this place. */
void resource_changed(struct belay_core *c, uint32_t r);
static inline bool resource_always_arbitrated(const struct resource *r)
{
	return r->key.lockspace == BELAY_LOCKSPACE_VOLUMES;
}
void resource_forget(struct belay_core *c, uint32_t r);
void resource_touch(struct belay_core *c, uint32_t r);
void resource_unidle(struct belay_core *c, uint32_t r);
void resource_tick(struct belay_core *c);
void resource_hash_out(struct belay_core *c, const struct resource *r);
void resource_hash_in(struct belay_core *c, struct resource *r);

/* delegation.c: who may grant where without asking */
/* At this place of the order; 0: there is no room. */
uint32_t delegation_begin(struct belay_core *c, uint32_t r, uint32_t node, struct belay_range range,
			  enum belay_mode mode);
/* From a snapshot. */
uint32_t delegation_load(struct belay_core *c, uint32_t r, uint32_t node,
			 const struct belay_record *rec);
/* It loses [range], a head or a tail of it, or all. */
void delegation_end(struct belay_core *c, uint32_t d, struct belay_range range);
void delegation_recalled(struct belay_core *c, uint32_t d, bool recalled);
void delegation_weaken(struct belay_core *c, uint32_t d);	/* EX to SH */
/* The node's delegation that has all of the range, and the mode; 0: none. */
uint32_t delegation_covering(const struct belay_core *c, const struct resource *r, uint32_t node,
			     struct belay_range range, enum belay_mode mode);
/* The first one after @after (0: from the start) that is in the way of a node's request. */
uint32_t delegation_conflict(const struct belay_core *c, const struct resource *r, uint32_t node,
			     struct belay_range range, enum belay_mode mode, uint32_t after);
/* The first one after @after that has a part of the range. */
uint32_t delegation_any(const struct belay_core *c, const struct resource *r,
			struct belay_range range, uint32_t after);
/* This node's, if it may grant by it now; 0: it may not. */
uint32_t delegation_authority(const struct belay_core *c, const struct resource *r,
			      struct belay_range range, enum belay_mode mode);
bool delegation_own(const struct belay_core *c, const struct delegation *d);
/* Has the node a lock there that a delegation of that range and mode would not have all of? */
bool delegation_cuts(const struct belay_core *c, const struct resource *r, uint32_t node,
		     struct belay_range range, enum belay_mode mode);
/* Is a part of the range what it is giving up? */
bool delegation_gives(const struct delegation *d, struct belay_range range);
/* What will be left of it then. */
struct belay_range delegation_left(const struct delegation *d);
/* The clock jumps, for all of this node's own as well. */
void delegation_tokens_jump(struct belay_core *c, uint64_t by);
/* A fencing token has been given under it. */
void delegation_token(struct belay_core *c, uint32_t d, uint64_t token);
void delegation_use(struct delegation *d, struct belay_range range, enum belay_mode mode);

/* recall.c: how this node gives up what others want */
/* Somebody's request has met this node's delegation. */
void recall_begin(struct belay_core *c, uint32_t d);
/* Give up what is wanted, as soon as loans are back. */
void recall_now(struct belay_core *c, uint32_t d);
/* Give up all of it, for nobody uses it. */
void recall_idle(struct belay_core *c, uint32_t d);
void recall_all_idle(struct belay_core *c);
/* Give up what a local wait needs to become known (I7). */
void recall_wait(struct belay_core *c, uint32_t d, struct belay_range range);
/* Give up now if its time has come; returns whether it had. */
bool recall_due(struct belay_core *c, uint32_t d);
/* Once what happens now is over. */
void recall_soon(struct belay_core *c, uint32_t d);
void recall_due_drop(struct belay_core *c, struct delegation *d);
void recall_tick(struct belay_core *c);

/* loan.c: what clients decide by themselves */
/* Its request has been granted: shall the client have a loan? Emits it. */
void loan_offer(struct belay_core *c, uint32_t q);
/* The loan in the way of this node's request; 0: none. */
uint32_t loan_conflict(const struct belay_core *c, const struct request *q);
void loan_recall_all(struct belay_core *c);
/* Recall all that are in its way. */
void loan_recall_conflicts(struct belay_core *c, const struct request *q);
/* Recall all that overlap; returns whether there are any. */
bool loan_recall_range(struct belay_core *c, uint32_t r, struct belay_range range);
int loan_held(struct belay_core *c, const struct belay_event *ev);
int loan_back(struct belay_core *c, const struct belay_event *ev);
/* A client is gone, or its locks are lost: nothing of it comes back. */
void loan_void(struct belay_core *c, uint32_t client);
void loan_use(struct belay_core *c, const struct request *q);
void loan_tick(struct belay_core *c);

/* claim.c: when to ask for a range to be delegated */
/* A request of c->from was delivered on a part of a resource that nobody has. */
void claim_count(struct belay_core *c, uint32_t r, uint32_t q);
/* A node has given up a range that it did not use, and this node's own request waits there. */
void claim_yielded(struct belay_core *c, uint32_t r, struct belay_range range);
void claim_lost(struct belay_core *c, uint32_t r, uint64_t epoch);
void claim_op(struct belay_core *c, const struct belay_op *op);

/* request.c: this node's requests */
int request_lock(struct belay_core *c, const struct belay_event *ev);
int request_unlock(struct belay_core *c, const struct belay_event *ev);
/* A release whose time has come. */
void request_release(struct belay_core *c, uint32_t r, uint32_t owner, struct belay_range range);
int request_cancel(struct belay_core *c, const struct belay_event *ev);
int request_client_gone(struct belay_core *c, uint32_t client);
void request_route(struct belay_core *c, uint32_t q);
void request_go(struct belay_core *c, uint32_t q);	/* its owner's other affairs are settled */
void request_run(struct belay_core *c, uint32_t q);
/* Take it off this node's lists and local queue; false: others know of it. */
bool request_withdraw(struct belay_core *c, uint32_t q);
void request_back(struct belay_core *c, uint32_t r);	/* those held back may go */
/* Put the lock of a request that nothing blocks into the table: the replicated one, or this
 * node's own. Returns whether anything held became weaker. */
bool request_grant(struct belay_core *c, uint32_t q, bool local);
struct blocker;
/* Answer a test by what is in its way, if anything. */
void request_answer(struct belay_core *c, uint32_t q, const struct blocker *b);
void request_finish(struct belay_core *c, uint32_t q, int result);
void request_settle(struct belay_core *c);
void request_resume(struct belay_core *c);	/* NEW ones may go */
void request_tick(struct belay_core *c);
/* The table is void: answer the request by -EIO if its client @lost locks, else let it start anew. */
void request_void(struct belay_core *c, uint32_t q, bool lost);

/* hint.c: taking early what others have released (S11) */
int hint_come(struct belay_core *c, const struct belay_hint *hint);
/* This node's stable point has moved. */
void hint_look(struct belay_core *c);
/* The request of another node is delivered here: tell it. */
void hint_vouch(struct belay_core *c, uint32_t number);
/* An own request has its place: others may have told that they have it. */
void hint_acknowledged(struct belay_core *c);
/* A request that all know waits from now on. */
void hint_queued(struct belay_core *c, uint32_t q);
/* The last op sent releases the range; @early: a request that was taken early and ends by it. */
void hint_released(struct belay_core *c, uint32_t r, uint32_t owner, struct belay_range range,
		   const struct request *early);
/* What the owner has taken early of the range, and not given back. */
struct request *hint_early(const struct belay_core *c, uint32_t r, uint32_t owner,
			   struct belay_range range);
/* What meets that before it is granted has to wait until it is: a request of the owner, or
 * the release of a part. */
void hint_defer(struct belay_core *c, uint32_t q);
void hint_defer_release(struct belay_core *c, uint32_t r, uint32_t owner, struct belay_range range);
/* Does such a request wait on a part of the range, or (@releases) such a release, too? */
bool hint_late(const struct belay_core *c, uint32_t r, uint32_t owner, struct belay_range range,
	       bool releases);
/* Such releases are void: all of the range is released. */
void hint_forget(struct belay_core *c, uint32_t r, uint32_t owner, struct belay_range range);
/* Do those that need not wait any more. */
void hint_settle(struct belay_core *c);

/* client.c: the end of a client */
/*
 * Drop what a client holds and awaits, as far as it is private to this node
 * (@ordered false) or replicated (true). Returns whether something of the other
 * sort is left. Queues are to be scanned by queue_scan_run().
 */
bool client_release(struct belay_core *c, uint32_t client, bool ordered);
/* All that a node had dies, but for what the node itself holds if it is not @fenced: ordered, hence
 * the same on every node. */
void client_release_node(struct belay_core *c, uint32_t node, bool fenced);
/* Has the node clients beside itself? */
bool client_others(const struct belay_core *c, uint32_t node);
/* How many locks the node itself has. */
uint32_t client_volumes(const struct belay_core *c, uint32_t node);

/* deliver.c: ordered ops on resources */
void deliver_op(struct belay_core *c, const struct belay_op *op);

/* stable.c: acknowledgements */
void stable_frame(struct belay_core *c, const struct belay_frame *f);
void stable_update(struct belay_core *c);
/* Is it this node's duty to acknowledge what @node asks for? (S5) */
bool stable_ours(const struct belay_core *c, uint32_t node);
/* A hash of the order's prefix here: how many ops of each member were delivered. */
uint64_t stable_prefix(const struct belay_core *c);
/* A grant to @node rests on an op delivered at @place: acknowledge if it is our duty (S5). */
void stable_duty(struct belay_core *c, uint32_t node, uint64_t place);
void stable_tick(struct belay_core *c);

/* member.c: membership, joining, failure */
void member_view(struct belay_core *c, const struct belay_event *ev);
bool member_op(struct belay_core *c, const struct belay_op *op);
int member_fence(struct belay_core *c, uint32_t id);
int member_leave(struct belay_core *c);
void member_leave_check(struct belay_core *c);
void member_quorum(struct belay_core *c, bool quorate);
void member_serve_check(struct belay_core *c);
bool member_lowest_synced(const struct belay_core *c);
bool member_quorate(const struct belay_core *c);
uint32_t member_majority(const struct belay_core *c);

/* digest.c */
void digest_place(struct belay_core *c);
void digest_compare(struct belay_core *c, const struct belay_op *op);
uint64_t digest_now(const struct belay_core *c);

/* snapshot.c */
void snapshot_record(struct belay_core *c, const struct belay_record *rec);
/* Forget the whole table but this node's requests that can start anew. */
void snapshot_clear(struct belay_core *c);

#endif
