/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The words of the lock protocol, as structs: what is locked (key, range),
 * for whom (owner), and the operations that nodes multicast to each other
 * (op). wire/ turns an op into bytes and back; core/ gives it its meaning.
 *
 * Everything here is plain data: no pointers, no ownership, safe to copy.
 */
#ifndef BELAY_CORE_TYPES_H
#define BELAY_CORE_TYPES_H

#include <stdbool.h>
#include <stdint.h>

/* Most nodes a cluster can have; every array that is indexed by node has this size. */
#define BELAY_NODES_MAX 128

/* Last byte that can be locked: POSIX offsets are signed 64-bit. */
#define BELAY_OFFSET_MAX ((uint64_t)INT64_MAX)

/* What is locked: an inode, a named lock, later an LV. Ids are opaque to core/. */
struct belay_key {
	uint32_t lockspace;
	uint8_t id[16];
};

/* Bytes start..end, both included; start <= end <= BELAY_OFFSET_MAX. */
struct belay_range {
	uint64_t start;
	uint64_t end;
};

enum belay_mode {
	BELAY_MODE_SH,
	BELAY_MODE_EX,
	BELAY_MODE_COUNT
};

/*
 * The lockspace of volumes. Its resources are always arbitrated, never delegated: all
 * nodes know who holds what, and when a node is gone nothing but that is frozen.
 */
#define BELAY_LOCKSPACE_VOLUMES 0x564f4c53u

/*
 * Kind of an owner. POSIX owners are processes and take part in deadlock
 * detection; OFD and FLOCK owners are open files and, as in Linux, do not.
 * NODE is the node itself: there is one, of client BELAY_CLIENT_NODE. What it holds
 * outlives belayd, for what it stands for (an active volume) does, too: only
 * unlocking ends it, or a fence.
 */
enum belay_kind {
	BELAY_KIND_POSIX,
	BELAY_KIND_OFD,
	BELAY_KIND_FLOCK,
	BELAY_KIND_NODE,
	BELAY_KIND_COUNT
};

/* No connection has this number. */
#define BELAY_CLIENT_NODE UINT32_MAX

/*
 * Who holds or wants a lock. (node, client, key, kind) is the identity; pid
 * is for people and for F_GETLK. client numbers a connection to one belayd
 * and is not reused within that node's incarnation.
 */
struct belay_owner {
	uint32_t node;
	uint32_t client;
	uint64_t key;
	uint32_t pid;
	enum belay_kind kind;
};

/*
 * What nodes multicast. The sender (node, incarnation) stands in the frame;
 * owner.node is always the sender's, except in BUSY where it is the holder's.
 * The fields an op uses are listed behind it; the others are zero.
 */
enum belay_op_type {
	/* A lock is wanted: key range owner request mode wait test */
	BELAY_OP_REQ,
	/* A range is given back: key range owner; request token: of a request that was taken
	 * early by a hint and ends by this (else 0) */
	BELAY_OP_REL,
	/* A request is withdrawn, if it still waits: request */
	BELAY_OP_CANCEL,
	/* Answer to a try or a test: node request held; if held: owner range mode of the holder */
	BELAY_OP_BUSY,
	/* Part of a RELINQ that follows: a held lock: key range owner mode */
	BELAY_OP_HELD,
	/* Part of a RELINQ that follows: a waiting request: key range owner request mode wait test */
	BELAY_OP_WAITING,
	/* Part of its delegation is given up by the sender, all HELD and WAITING in the range
	 * sent: key range epoch token; or, if keep, only made SH */
	BELAY_OP_RELINQ,
	/* The sender, sole user of an arbitrated range, wants it delegated: key range mode */
	BELAY_OP_CLAIM,
	/* An empty arbitrated resource is forgotten: key epoch */
	BELAY_OP_IDLE,
	/* All that a client held or awaited is void: owner (client only) */
	BELAY_OP_CLIENT_GONE,
	/* After each change of membership: synced limits token.
	 * From an unsynced node it also ends all its former lives (RESET). */
	BELAY_OP_HELLO,
	/* The sender has loaded the snapshot and serves: (nothing) */
	BELAY_OP_SYNCED,
	/* No member has any state: all start with empty tables: token members */
	BELAY_OP_START,
	/* A node that left has certainly stopped: node incarnation */
	BELAY_OP_FENCED,
	/* The sender leaves and holds nothing: (nothing) */
	BELAY_OP_LEAVE,
	/* Hash of the replicated state at a place in the order: place hash */
	BELAY_OP_DIGEST,
	/* The HELLO of that life met no node known to have state; say it again: node incarnation */
	BELAY_OP_AGAIN,
	BELAY_OP_COUNT
};

/* Owners of one client that may hold something in a loan: it looks through them one by one. */
#define BELAY_LOAN_OWNERS_MAX 16u

/* Limits that all members must share, compared at join (0 is not valid). */
struct belay_limits {
	uint32_t resources_max;		/* replicated resources */
	uint32_t locks_max;		/* replicated locks */
	uint32_t waiters_max;		/* replicated waiting requests */
	uint32_t locks_per_owner_max;	/* locks of one owner, over all resources */
	/* In HELLO only, filled in by the core from its configuration: */
	uint32_t requests_max;		/* a node's own requests: others hold them, too, once published */
	uint32_t claim_streak;		/* how soon a node claims */
	uint64_t nodelist;		/* hash of the configured nodes and of how many must agree */
};

struct belay_op {
	enum belay_op_type type;
	enum belay_mode mode;
	bool wait;			/* queue if it conflicts; else EAGAIN */
	bool test;			/* F_GETLK: answer only, take nothing */
	bool held;			/* BUSY: a holder is named */
	bool synced;			/* HELLO */
	bool keep;			/* RELINQ: the range stays the sender's, for readers */
	uint32_t node;			/* FENCED AGAIN: who; BUSY: whose request */
	uint32_t request;		/* number of the request, per node */
	uint32_t members;		/* START: how many the view has */
	struct belay_key key;
	struct belay_range range;
	struct belay_owner owner;
	uint64_t epoch;			/* RELINQ IDLE */
	uint64_t token;			/* REL RELINQ HELLO START: fencing clock */
	uint64_t place;			/* DIGEST */
	uint64_t hash;			/* DIGEST */
	uint64_t incarnation;		/* FENCED AGAIN */
	struct belay_limits limits;	/* HELLO */
};

/* What one member had delivered of another member when it built a frame. */
struct belay_ack {
	uint32_t node;
	uint64_t incarnation;
	uint64_t seq;			/* last op delivered */
};

/*
 * The head of a frame: who sends, and what it has delivered so far. Ops of a
 * node are numbered 1, 2, ... within an incarnation; seq is the number of the
 * first op of this frame, and the next op's number if the frame has none.
 */
struct belay_frame {
	uint32_t node;
	uint64_t incarnation;
	uint64_t seq;
	bool ask;			/* every member shall send its acks now */
	uint32_t ack_count;
	struct belay_ack ack[BELAY_NODES_MAX];
};

/*
 * Beside the order, by datagram: the sender has given back a range by its op number
 * seq, which is still on its way. Losing one costs time only. S11 says who may
 * act upon it.
 */
struct belay_hint {
	uint32_t node;			/* sender */
	uint64_t incarnation;
	uint64_t to_incarnation;	/* of the receiver */
	/* A request of the receiver that waits for it at the sender, and a hash of what the
	 * sender had delivered of each member before it. */
	uint32_t waiter;
	uint64_t prefix;
	uint64_t seq;			/* of the REL */
	struct belay_key key;
	struct belay_range range;
	struct belay_owner owner;	/* client key kind; node is the sender */
	uint32_t request;		/* as in the REL: a request that was taken early, or 0 */
	uint64_t token;			/* largest fencing token of what was given back */
};

/*
 * One record of a snapshot: the replicated state of a node at one place in
 * the order, as a stream. Resources and owners are named by numbers that are
 * valid within the stream only. Order of a stream: one CORE, then NODEs,
 * OWNERs, RESOURCEs, DELEGATIONs, LOCKs, WAITERs, one END.
 */
enum belay_record_type {
	BELAY_RECORD_CORE,
	BELAY_RECORD_NODE,
	BELAY_RECORD_OWNER,
	BELAY_RECORD_RESOURCE,
	BELAY_RECORD_DELEGATION,
	BELAY_RECORD_LOCK,
	BELAY_RECORD_WAITER,
	BELAY_RECORD_END,
	BELAY_RECORD_COUNT
};

/* State of a resource, or of a range of one; what each means stands in ARCHITECTURE.md. */
enum belay_state {
	BELAY_STATE_UNOWNED,
	BELAY_STATE_OWNED,
	BELAY_STATE_RECALL,
	BELAY_STATE_ARB,
	BELAY_STATE_SHARED,
	BELAY_STATE_COUNT
};

/* Standing of a node in the cluster. */
enum belay_standing {
	BELAY_NODE_UNSEEN,	/* configured, never met: may be alive */
	BELAY_NODE_MEMBER,
	BELAY_NODE_LEFT,	/* gone, perhaps still writing */
	BELAY_NODE_CLOSED,	/* certainly holds nothing: fenced or left cleanly */
	BELAY_NODE_STANDING_COUNT
};

struct belay_record {
	enum belay_record_type type;
	/* CORE: place, token; END: hash, count of records before it */
	uint64_t place;
	uint64_t token;
	uint64_t hash;
	uint64_t count;
	/* NODE: node standing synced incarnation seq (last op delivered) */
	uint32_t node;
	enum belay_standing standing;
	bool synced;
	uint64_t incarnation;
	uint64_t seq;
	/* OWNER: number owner */
	uint32_t number;
	struct belay_owner owner;
	/* RESOURCE: number key epoch
	 * DELEGATION: resource number, node range mode epoch recalled */
	struct belay_key key;
	uint64_t epoch;
	bool recalled;
	/* LOCK: resource number, owner number, range mode staged
	 * WAITER: the same but staged, request wait test queue */
	uint32_t resource_number;
	uint32_t owner_number;
	struct belay_range range;
	enum belay_mode mode;
	uint32_t request;
	bool wait;
	bool test;
	bool staged;		/* sent by an owner whose RELINQ is not complete yet */
	uint64_t queue;		/* its place in the queue */
};

#endif
