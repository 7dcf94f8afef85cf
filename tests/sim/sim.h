/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A cluster in one process: real cores, a simulated CPG, machines that fail,
 * clients that lock, and judges that watch what the clients believe. Virtual
 * time, one queue of events, one source of chance: a seed is a world, and the
 * same seed is the same world again.
 *
 *	cpg.c     the group: rings, one order per ring, holes, views
 *	node.c    what belayd's engine does around a core
 *	client.c  random clients
 *	ipc.c     between a client and its belayd: messages on their way, loans
 *	loan.c    what a client decides by itself, and where it may be stopped
 *	fiber.c   a client's thread, stopped anywhere
 *	hint.c    datagrams between nodes
 *	volume.c  volumes: what a node locks for itself, and believes in as long as its machine runs
 *	owner.c   who locks, as long as it matters
 *	belief.c  what clients believe; exclusion, tokens, answers
 *	judge.c   fairness, deadlocks, stability, agreement, quiescence
 *	fault.c   random faults, fencing, healing
 *	script.c  scenarios: the same world, told step by step
 *	trace.c   all of that, readable
 *	world.c   memory, the queue of events, one run
 */
#ifndef BELAY_SIM_H
#define BELAY_SIM_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/core.h"
#include "slot/commit.h"
#include "tests/sim/fiber.h"
#include "tests/sim/random.h"
#include "wire/wire.h"

#define SIM_NODES 7		/* at most; nodes are numbered from 1 */
#define SIM_FILES 4		/* resources: files ... */
#define SIM_VOLUMES 2		/* ... and volumes, which come behind them */
#define SIM_KEYS (SIM_FILES + SIM_VOLUMES)
#define SIM_ATOMS 8		/* pieces of the file that are locked as a whole */
#define SIM_CLIENTS 4		/* connections of a node at one time */
#define SIM_CLIENT_OWNERS 3	/* owners of a client */
#define SIM_SLOTS 4		/* loans of a client at one time */
#define SIM_OWNERS 1024
#define SIM_REQUESTS 1024
#define SIM_RINGS 256
#define SIM_VERDICTS 65536	/* places whose digest is remembered, a power of two */
#define SIM_GONE_US 2000000	/* so long an owner that is gone may still explain a decision made before */
#define SIM_NONE UINT32_MAX

typedef uint32_t node_mask;	/* bit n: node n */

/* ---- memory of one run, given back all at once ---- */

struct arena_block;
struct arena {
	struct arena_block *first, *current;
};
void *arena_alloc(struct arena *arena, size_t size);	/* zeroed; never NULL */
void arena_reset(struct arena *arena);
void arena_done(struct arena *arena);

/* A growing array of pointers or structs; its memory is kept from run to run. */
struct vector {
	void *data;
	size_t count, room, size;
};
void *vector_push(struct vector *v, size_t size, const void *element);
void vector_done(struct vector *v);

/* ---- the simulated CPG ---- */

enum message_kind {
	MESSAGE_FRAME,		/* belayd's: ops */
	MESSAGE_SNAPSHOT,	/* belayd's: records */
	MESSAGE_JOIN,		/* corosync's: a process joined the group */
	MESSAGE_LEAVE,		/* ... left it, or died */
};

struct message {
	enum message_kind kind;
	uint32_t node, process;	/* sender */
	uint64_t number;	/* names the message */
	uint64_t order;		/* its ring and place; 0 until ordered */
	uint64_t incarnation, seq;
	bool ask;
	uint32_t ack_count, op_count, record_count;
	const struct belay_ack *ack;
	struct belay_op *op;
	struct belay_record *record;
	struct wire_snapshot head;
	node_mask delivered;	/* cores that have taken all of it */
	node_mask copied;	/* nodes on the way to which a snapshot shows its effect */
	uint64_t path;		/* SNAPSHOT: history of the donor at the cut */
	uint64_t start;		/* ... and the START it began with */
};

struct ring {
	uint32_t id;
	node_mask members;	/* whose corosync formed it */
	node_mask token;	/* the side that can still order when it breaks */
	bool broken;		/* members were lost: nothing is ordered any more */
	struct vector log;	/* of struct message * */
};

/* What CPG hands to a process: a message or a view. */
struct item {
	struct message *message;	/* NULL: a view */
	node_mask members, joined, left;
	uint64_t identity;	/* the same for all to whom the same nodes left and joined */
	uint64_t view;		/* the same for all who have this view */
};

/* A place in the history of one node: which item, and what of it. */
struct ordered {
	struct item item;
	uint32_t op;		/* SIM_NONE: the view, or the head of the frame */
};

/* ---- a machine: its corosync, its belayd, its clients ---- */

/* What a client asks of its belayd. */
struct request {
	bool used;
	bool orphan;		/* nobody awaits the answer, but others may still queue behind it */
	bool answered;		/* an orphan because it has its answer: it explains earlier decisions */
	uint64_t orphan_us;	/* since when */
	uint32_t owner;
	uint64_t cookie;
	uint32_t key, first, last;	/* atoms first..last */
	enum belay_mode mode;
	bool wait, test;
	uint64_t invoked_us;
	bool saw_busy, saw_free;	/* at some moment since it was invoked */
	bool cancelled;
	bool lend;		/* its client can take a loan */
	bool again;		/* a node locks what it has */
	uint64_t life;		/* of its node, when it was invoked */
	bool taken;		/* it has arrived at its belayd ... */
	uint64_t taken_us;
	bool decided;		/* ... is answered there: result, granted_token, decision ... */
	int result;
	uint64_t granted_token, decision;
	bool told;		/* ... and its client has heard of it */
	uint32_t unlocks;	/* of the owner, when it was invoked */
	uint8_t unlocked;	/* atoms given back while it waited */
	uint8_t lowered;	/* atoms whose EX it gave up for SH */
	uint32_t number;	/* the core's: it counts them */
	bool sent;		/* it has left its node */
	bool stable;		/* nobody else had to have it */
	uint64_t passed_us;	/* a later one was granted then; 0: none */
	uint32_t passed_node, passed_client;
	uint64_t order;		/* place of the op that put it into the queue */
	uint64_t first_order;	/* its REQ's, if it was local then and became WAITING later */
	node_mask delivered;	/* cores that have seen that op */
	node_mask copied;	/* as in a message */
	uint64_t delivered_us[SIM_NODES + 1];
};

enum letter_type {
	LETTER_LOCK,		/* a test, too */
	LETTER_UNLOCK,
	LETTER_CANCEL,
	LETTER_RETURN,
	LETTER_RESULT,
	LETTER_LOST,
};

/* Between a client and its belayd, on its way. */
struct letter {
	struct letter *next;
	uint64_t due_us;
	enum letter_type type;
	uint32_t owner, serial;		/* LOCK UNLOCK: the owner, and its serial */
	uint64_t cookie;		/* LOCK CANCEL RESULT */
	uint32_t key, first, last;	/* LOCK UNLOCK */
	uint32_t slot;			/* RETURN; RESULT: 0, or one more than its number */
	uint32_t messages;		/* RESULT */
	struct slot_terms terms;	/* RESULT; RETURN: epoch */
};

struct mailbox {
	struct letter *first;
	uint64_t due_us;		/* of the last one that keeps its place */
};

enum lent_state {
	LENT_FREE,
	LENT_OUT,
	LENT_BACK,			/* until the client says that it has seen it */
};

/* One slot of a client's memory, from both sides. */
struct loan {
	struct slot_head *head;
	struct slot_entry *log;
	uint32_t index;
	struct client *client;
	/* The client's side: */
	struct slot_loan slot;
	bool in_use;
	uint32_t key;
	/* belayd's side: */
	enum lent_state state;
	uint32_t number;		/* the core's; 0: it knows of none */
	uint32_t epoch;			/* the last one given */
	uint32_t lent_key;
	uint64_t lent_us, cookie;	/* cookie: the RESULT will tell of it */
	struct slot_terms terms;
	struct slot_ranges set;
};

/* What a client does in a loan. */
enum call_type {
	CALL_BEGIN,
	CALL_LOCK,
	CALL_UNLOCK,
	CALL_TEST,
};
struct call {
	enum call_type type;
	struct request what;		/* LOCK TEST; UNLOCK: owner key first last */
	struct loan *loan;
	struct slot_terms terms;	/* BEGIN */
	int result;
	uint64_t token;
	struct slot_entry held;
};

struct client {
	bool used;
	uint32_t id;
	uint64_t cookie;
	uint32_t owner[SIM_CLIENT_OWNERS];
	/* Where clients talk to belayd by messages: */
	struct sim *sim;
	struct node *node;
	uint32_t serial;		/* never used twice */
	uint32_t process;		/* of its belayd */
	bool borrows;			/* takes loans */
	bool dead;			/* belayd does not know it yet */
	bool lost;			/* belayd has told it so, or is about to */
	bool mad;			/* it writes what it likes, and believes in nothing */
	bool stopped;			/* SIGSTOP, or preempted */
	bool in_call;			/* a thread is within a loan, and stopped there */
	uint32_t steps;			/* scenarios: stop the next call before this access */
	struct mailbox up, down;
	uint32_t sent[SIM_KEYS], taken[SIM_KEYS];	/* messages about each resource */
	struct call call;
	struct memory *memory;		/* shared with belayd */
};

/* Kept from run to run. */
struct memory {
	unsigned char *base;
	struct loan loan[SIM_SLOTS];
	struct fiber fiber;
};

/*
 * In which life of the node an op that can give it a right to a resource was
 * with itself, and with a majority.
 */
struct evidence {
	uint64_t alone, majority;
};

/* An active volume does not end with belayd. */
struct volume {
	uint32_t owner;		/* the node as an owner there, for the whole run; or SIM_NONE */
	bool again;		/* belayd, or its new life, has been asked for it again */
	bool unlock;		/* unlocked, and not said to the others yet */
};

struct node {
	uint32_t id;

	/* The machine and its corosync. */
	bool powered, corosync_stopped;
	uint32_t component;	/* who can hear whom */
	struct ring *ring;
	uint32_t at;		/* next entry of the ring's log */
	uint32_t hole;		/* first entry that this side lost, or SIM_NONE */
	node_mask side;		/* with whom this node leaves a broken ring */
	uint32_t registered;	/* process in the group, as ordered */
	uint32_t known[SIM_NODES + 1];	/* processes in the group, as delivered here */
	struct vector queue;	/* sent, not yet ordered: struct message * */
	size_t queue_at;
	struct vector inbox;	/* struct item, handed over, not yet read */
	size_t inbox_at;
	bool order_due, turn_due;

	/* belayd. */
	uint32_t process;	/* 0: not running */
	uint32_t processes;	/* how many there have been */
	bool stopped, joined, slow, quitting, leaving;
	/* Scenarios: nothing it sends is ordered; it reads nothing; what its side loses of a broken ring. */
	bool muted, lagging;
	bool corrupt;		/* its next request is delivered to it with other bytes than it has */
	uint32_t lose;
	struct belay_core *core;
	void *memory;
	size_t memory_size;
	uint64_t incarnation;
	uint64_t path;		/* hash of all ordered events so far */
	struct vector pending;	/* struct belay_op, not yet in a frame */
	uint64_t seq;		/* number of the first of them */
	bool urgent, flush, ask;
	bool flush_due, synced, frozen, quorate, quorum_due;
	uint64_t tick_us;	/* when the next TICK is due, UINT64_MAX: none */
	uint64_t busy_until_us;	/* CPG answers TRY_AGAIN until then */
	bool holding, replay;
	struct vector held, replaying;	/* struct ordered */
	bool heard_left;	/* in the step under way, that a node has left */
	uint32_t fenced;	/* by the step under way */
	uint64_t fenced_incarnation;
	node_mask snapshot_to;
	uint64_t snapshot_incarnation[SIM_NODES + 1];
	struct vector outgoing;	/* struct message *: parts of snapshots */
	size_t outgoing_at;
	bool outgoing_due;
	struct wire_snapshot incoming;
	uint32_t incoming_part;	/* next part expected */
	struct belay_stats stats;
	struct evidence evidence[SIM_KEYS];
	/* How much its table says that a departed life holds. */
	struct departed {
		uint64_t incarnation, own_incarnation;
		uint32_t held;
	} departed[SIM_NODES + 1];
	uint64_t closed_us;	/* when it last closed a life */

	/* Volumes. */
	struct volume volume[SIM_VOLUMES];
	uint64_t volume_cookie;
	uint64_t start;		/* the START that its table began with */
	uint64_t adopted;	/* the one after which it last said which volumes it has active */
	uint64_t adopted_us;
	bool adopting;		/* it has to say so (again) */
	bool volumes_void;	/* in the step under way, a new life: nobody waits for a volume any more */
	/* Modes (enum hold) in which its table says that nodes have volumes. */
	uint8_t listed[SIM_NODES + 1][SIM_VOLUMES];

	/* Clients. */
	struct vector recalled;	/* struct recall: what the core wants back */
	bool taking_back;
	struct vector lend_held;	/* struct slot_entry, for the LEND to come */
	uint32_t client_last;
	uint32_t request_last;	/* number of the last request */
	struct client client[SIM_CLIENTS];
};

/* ---- what is believed ---- */

enum hold {
	HOLD_NONE,
	HOLD_SH,
	HOLD_EX,
};

struct owner {
	bool used;
	bool believes;		/* its client lives and was not told LOST */
	bool dead;		/* its client died; its belayd may not know it yet */
	bool gone;		/* its client died and belayd knows: it is about to be forgotten */
	uint64_t void_us;	/* since when it does not believe */
	uint32_t serial;	/* never used twice */
	struct belay_owner id;
	uint64_t incarnation;	/* of the node, when the client connected, or went on */
	uint64_t former;	/* the one before */
	uint32_t process;	/* of its belayd */
	uint32_t pending;	/* requests without an answer */
	uint32_t unlocks;	/* calls so far */
	bool touched[SIM_KEYS];	/* asked for a lock there */
	bool dirty[SIM_KEYS];	/* ... and has not given all back since */
	uint8_t held[SIM_KEYS][SIM_ATOMS];	/* enum hold */
	/* No less than what a table can say: threads of one owner may ask and give back at once. */
	uint8_t maybe[SIM_KEYS][SIM_ATOMS];
	uint64_t token[SIM_KEYS][SIM_ATOMS];	/* of the last grant, and when it was decided */
	uint64_t decision[SIM_KEYS][SIM_ATOMS];
	uint32_t lowered_by[SIM_KEYS][SIM_ATOMS];	/* the last request for SH that was granted */
	/* What was held last and when that ended: a decision may be older than its news. */
	uint8_t ended[SIM_KEYS][SIM_ATOMS];
	uint64_t ended_us[SIM_KEYS][SIM_ATOMS];
};

/* Fencing tokens: the highest of two different owners is all that matters. */
struct token_top {
	uint64_t token[2];
	uint32_t owner[2];	/* serial */
};

struct verdict {
	uint64_t path, digest, place;
	uint32_t run, node;
};

/* ---- the queue of events ---- */

enum due {
	DUE_ORDER,		/* a node has the token */
	DUE_TURN,		/* a node reads what CPG delivered */
	DUE_FLUSH,		/* a node's loop turn ends */
	DUE_TICK,
	DUE_OUTGOING,		/* a node sends a part of a snapshot */
	DUE_QUORUM,		/* votequorum tells a node */
	DUE_REFORM,		/* a component forms its ring */
	DUE_CLIENT,		/* a client of a node acts */
	DUE_TO_BELAYD,		/* a message has arrived: argument names the client */
	DUE_TO_CLIENT,
	DUE_CLIENT_GOES_ON,	/* a client that was stopped */
	DUE_CLIENT_GONE,	/* belayd sees that a client is dead */
	DUE_HINT,		/* a datagram arrives */
	DUE_FAULT,		/* something breaks */
	DUE_REPAIR,		/* ... and is mended: what, which node */
	DUE_FENCE,		/* node tells its belayd that argument has stopped */
	DUE_STAGE,		/* the run enters its next stage */
	DUE_COUNT
};

struct due_event {
	uint64_t at_us, number;
	enum due type;
	uint32_t node, argument;
	uint32_t process;	/* void if belayd is another by then; 0: any */
};

/* Chaos, then healing, then letting go, then all must be quiet. */
enum stage {
	STAGE_CHAOS,
	STAGE_HEAL,		/* all is mended; owners that do not wait give up what they hold */
	STAGE_DRAIN,		/* all owners give up what they hold */
	STAGE_END,
};

/* How this world behaves; drawn from the seed, or fixed for a scenario. */
struct temper {
	uint32_t order_us, lag_us, burst, linger_us, think_us, gap_us;
	uint32_t linger_percent, frame_ops, late_us, quorum_us;
	uint32_t hole_percent, private_ops;
	uint32_t faults, wait_percent, test_percent, exclusive_percent, ofd_percent, flock_percent;
	uint32_t cancel_percent, die_percent, threads_percent, wide_percent;
	uint32_t keys, clients, atoms;
	uint32_t fence_us;	/* 0: no fencing before healing */
	uint32_t record_batch;
	uint32_t company_us, outgoing_us, boot_us;
	uint32_t fixed_gap_us;	/* scenarios: in place of a random one */
	bool small_limits;
	uint32_t small_locks;
	uint32_t ipc_us;	/* between a client and belayd; 0: no time at all, and no loans */
	uint32_t borrow_percent, step_percent, calls, busy_percent, mad_percent;
	bool cells;		/* answers overtake each other */
	uint32_t volumes, volume_acts, volume_percent;	/* percent: clients lock volumes, too */
	uint32_t apart;		/* 0: anywhere; else each node has its part: 1 blocks, 2 interleaved, 3 resources */
	bool hints;
	uint32_t hint_us, hint_loss_percent, hint_twice_percent;
	bool hint_leaks;	/* what cuts the ring does not cut the datagrams' way */
};

/* What the runs did: a test that never gets there proves nothing. */
struct tally {
	uint64_t runs, events, steps, ops[BELAY_OP_COUNT], replies, grants, waits, busy, deadlocks;
	uint64_t interrupted, refused, lost, snapshots, restarts, fences, views, splits, kills, offs;
	uint64_t holes, privates, stale, free_tests, held_tests, leaves;
	uint64_t lent, loans_used, loans_refused, recalls, loan_grants, loan_unlocks, loan_busy;
	uint64_t stops, client_kills, mad, cast_out;
	uint64_t shared, apart;	/* steps of nodes that know of readers who share; snapshots of resources in parts */
	uint64_t hints_sent, hints_arrived, hints_used;
	/* late: unlocked when it could not be said */
	uint64_t volume_grants, volumes_again, volumes_late, volumes_compared;
};

struct sim_options {
	uint32_t nodes;		/* 0: drawn */
	uint32_t steps;		/* client acts in the chaos */
	bool wire;		/* frames and snapshots go through wire/ */
	bool scenario;
	FILE *trace;		/* NULL: none */
};

struct sim {
	struct sim_options options;
	struct random random;
	struct arena arena;
	struct temper temper;
	struct tally tally;
	uint64_t now_us, seed, hash, due_number, message_number, incarnation, run_events;
	uint32_t delivering;	/* whose frame is being fed */
	uint32_t ending;	/* the op being fed ends the lives of this node */
	uint32_t run;		/* counts runs: marks what is of this one */
	uint32_t nodes;
	enum belay_stability stability;
	struct belay_core_config config;
	enum stage stage;
	uint32_t acts;		/* clients' acts left in the chaos */
	uint64_t heal_us;
	node_mask doomed;	/* stay off for good */
	struct vector heap;	/* struct due_event */
	struct vector frames;	/* struct message *: all that were ordered */
	uint32_t ring_count;
	struct ring ring[SIM_RINGS];
	uint32_t reform;	/* counts changes of the network */
	uint32_t token_node;	/* scenarios: whose side has the token when a ring breaks */
	struct node node[SIM_NODES + 1];
	struct owner owner[SIM_OWNERS];
	struct request request[SIM_REQUESTS];
	uint32_t request_top;	/* none is used from here on */
	uint32_t owner_top, owner_serial, client_serial;
	uint64_t decisions;
	struct memory *memory[SIM_NODES + 1][SIM_CLIENTS];
	struct vector hints;	/* struct datagram */
	uint64_t ahead_us;	/* until then the token clock may be ahead of the time of day */
	struct token_top top[SIM_KEYS][SIM_ATOMS][2];
	struct verdict *verdict;
	char failure[512];
	char state_before[80];	/* the trace's */
};

/* ---- world.c ---- */

struct sim *sim_new(const struct sim_options *options);
void sim_free(struct sim *sim);
/* One whole run; returns NULL if all went well, else what did not. */
const char *sim_run(struct sim *sim, uint64_t seed);
/* An empty world, for a scenario. */
void sim_reset(struct sim *sim, uint64_t seed);
/* Let time pass until @until_us, or (false) until nothing is due that changes anything. */
void sim_advance(struct sim *sim, uint64_t until_us);
void sim_due(struct sim *sim, uint64_t in_us, enum due type, uint32_t node, uint32_t argument);
__attribute__((format(printf, 2, 3)))
void sim_fail(struct sim *sim, const char *format, ...);
static inline bool sim_failed(const struct sim *sim)
{
	return sim->failure[0] != '\0';
}
static inline void sim_hash(struct sim *sim, uint64_t value)
{
	sim->hash = mix64(sim->hash ^ value) + 0x9e3779b97f4a7c15u;
}
static inline node_mask bit(uint32_t node)
{
	return (node_mask)1 << node;
}
static inline uint32_t mask_count(node_mask mask)
{
	return (uint32_t)__builtin_popcount(mask);
}
static inline uint32_t sim_majority(const struct sim *sim)
{
	return sim->nodes / 2 + 1;
}
void sim_make_key(uint32_t key, struct belay_key *ret_key);
uint32_t sim_key(const struct belay_key *key);		/* or SIM_NONE */
static inline bool sim_is_volume(uint32_t key)
{
	return key >= SIM_FILES && key < SIM_KEYS;
}
struct belay_range sim_range(uint32_t first, uint32_t last);
/* Atoms that @range touches: first and last. */
void sim_atoms(const struct belay_range *range, uint32_t *ret_first, uint32_t *ret_last);

/* ---- cpg.c ---- */

void cpg_send(struct sim *sim, struct node *node, struct message *message);
void cpg_order(struct sim *sim, struct node *node);
/* Order what it has sent, at most @count messages, in whatever ring it is, broken or not. */
void cpg_order_now(struct sim *sim, struct node *node, uint32_t count);
/* The next thing CPG has for the process of @node; false: nothing now. */
bool cpg_next(struct sim *sim, struct node *node, struct item *ret_item);
bool cpg_waiting(const struct node *node);
/* Something that held the node up is over: let it order and read again. */
void cpg_kick(struct sim *sim, struct node *node);
/* A machine or a link failed or came back. */
void cpg_network_changed(struct sim *sim);
void cpg_reform(struct sim *sim, uint32_t component);
void cpg_power_off(struct sim *sim, struct node *node);
void cpg_boot(struct sim *sim, struct node *node);
/* Does corosync call this node quorate? */
bool cpg_quorate(const struct sim *sim, const struct node *node);

/* ---- node.c ---- */

void node_start(struct sim *sim, struct node *node);
void node_kill(struct sim *sim, struct node *node);
void node_forget(struct node *node);		/* what died with the process */
void node_forget_clients(struct node *node);	/* they end, or another belayd will serve them */
void node_wake(struct sim *sim, struct node *node);	/* SIGCONT */
int node_step(struct sim *sim, struct node *node, struct belay_event *event);
void node_turn(struct sim *sim, struct node *node);
/* Reads up to @count things, even if it lags. */
void node_read(struct sim *sim, struct node *node, uint32_t count);
void node_tick(struct sim *sim, struct node *node);
void node_flush(struct sim *sim, struct node *node);
void node_outgoing(struct sim *sim, struct node *node);
void node_quorum(struct sim *sim, struct node *node);
void node_end_turn(struct sim *sim, struct node *node);
static inline bool node_runs(const struct node *node)
{
	return node->powered && node->process != 0 && !node->stopped;
}
/* What the core of @at knows of @of; false if it never met it. */
bool node_info(const struct node *at, uint32_t of, struct belay_node_info *ret_info);
/* Is the life (node, incarnation) certainly over in the eyes of @at's core? */
bool node_life_closed(const struct node *at, uint32_t of, uint64_t incarnation);

/* Has that life left, in the eyes of @at, and is perhaps not over? */
bool node_life_left(const struct node *at, uint32_t of, uint64_t incarnation);

/* ---- codec.c: the same message after a trip through wire/ ---- */

void codec_trip(struct sim *sim, struct message *message);
void codec_hint_trip(struct sim *sim, struct belay_hint *hint, uint32_t to);

/* ---- client.c ---- */

/* Makes node->client[index]. */
struct client *client_new(struct sim *sim, struct node *node, uint32_t index);
struct client *client_find(struct node *node, uint32_t id);
/* Somebody else asks for what this one is about to lock in a loan. */
void client_intrude(struct sim *sim, const struct client *client);
void client_answered(struct sim *sim, struct client *client);
void client_act(struct sim *sim, struct node *node);
void client_let_go(struct sim *sim, struct node *node, bool also_waiting);
int client_lock(struct sim *sim, struct client *client, uint32_t owner, const struct request *what);
void client_unlock(struct sim *sim, struct client *client, uint32_t owner, uint32_t key, uint32_t first, uint32_t last);
void client_cancel(struct sim *sim, struct client *client, struct request *request);
/* Its belayd sees it in so many us at most. */
void client_die(struct sim *sim, struct client *client, uint32_t known_us);

/* ---- owner.c ---- */

uint32_t owner_new(struct sim *sim, struct node *node, uint32_t client, uint64_t key, enum belay_kind kind);
/* Has a life in which it may have held something left, in the eyes of @at, and is not over? */
bool owner_left(const struct node *at, const struct owner *o);

/* ---- ipc.c ---- */

struct recall {
	uint32_t client, loan;
};
/* 0, or, where messages take no time, what the core says to it. */
int ipc_send(struct sim *sim, struct client *client, const struct letter *letter);
void ipc_to_belayd(struct sim *sim, struct client *client);
struct letter *ipc_next_letter(const struct sim *sim, struct mailbox *box);	/* that has arrived; or NULL */
void ipc_wake(struct sim *sim, struct node *node);	/* belayd goes on */
struct client *ipc_client(struct node *node, uint32_t serial);
/* What the core wants done. */
void ipc_reply(struct sim *sim, struct node *node, const struct belay_action *action);
void ipc_lost(struct sim *sim, struct node *node, uint32_t id);
void ipc_lend_held(struct node *node, const struct belay_action *action);
void ipc_lend(struct sim *sim, struct node *node, const struct belay_action *action);
void ipc_frozen(struct node *node);
/* All that the core has recalled: now. */
void ipc_take_back(struct sim *sim, struct node *node);
void ipc_client_gone(struct sim *sim, struct client *client);
/* Is any loan of this node's clients not over? */
bool ipc_any_loan(const struct node *node);
/* Can one of them come to believe in a lock, whether belayd lives or not? */
bool ipc_may_believe(const struct node *node);

/* ---- loan.c ---- */

/* Do it in a loan, or send a message. */
int loan_call(struct sim *sim, struct client *client, const struct call *call);
/* The client writes what it likes into its memory. */
void loan_scribble(struct sim *sim, struct client *client);
/* The client reads what has arrived, if it can. */
void loan_read(struct sim *sim, struct client *client);
void loan_step(struct slot_loan *slot);
void loan_go_on(struct sim *sim, struct client *client);
void loan_stop(struct sim *sim, struct client *client, uint64_t for_us);
/* belayd is in the middle of a recall: perhaps the client does something. */
void loan_meddle(struct sim *sim, struct loan *loan);
/* End those of the client that overlap, and say so. */
void loan_give_up(struct sim *sim, struct client *client, uint32_t key, const struct belay_range *range);
struct loan *loan_find(struct client *client, uint32_t key, enum belay_mode mode, const struct belay_range *range);
struct memory *loan_memory(struct sim *sim, struct node *node, uint32_t index);
void loan_memory_free(struct memory *memory);
static inline uint32_t loan_handle(const struct belay_owner *owner)
{
	return owner->kind == BELAY_KIND_POSIX ? 0 : (uint32_t)owner->key + 1;
}

/* ---- hint.c ---- */

void hint_send(struct sim *sim, struct node *node, const struct belay_action *action);
void hint_arrive(struct sim *sim, struct node *node, uint32_t index);

/* ---- volume.c ---- */

void volume_act(struct sim *sim, struct node *node);
/* All is mended: it says what it has active; @all: and gives that up. */
void volume_let_go(struct sim *sim, struct node *node, bool all);
/* 0, or what the core says to it. */
int volume_lock(struct sim *sim, struct node *node, const struct request *what);
void volume_unlock(struct sim *sim, struct node *node, uint32_t key);
bool volume_cancel(struct sim *sim, struct node *node, uint32_t key);
/* As belay-lvmlockd does when it has found belayd: one step of it. */
void volume_adopt(struct sim *sim, struct node *node);
/* May volumes be locked here? Not before all who can have one active have said so. */
bool volume_open(const struct sim *sim, const struct node *node);
/* belayd has answered the node itself. */
void volume_answered(struct sim *sim, struct node *node, const struct belay_action *action);
/* After each step of the core. */
void volume_stepped(struct sim *sim, struct node *node);
void volume_new_life(struct sim *sim, struct node *node);
void volume_process_begins(struct sim *sim, struct node *node);
void volume_process_ends(struct sim *sim, struct node *node);
void volume_host_ends(struct sim *sim, struct node *node);
bool volume_any(const struct sim *sim, const struct node *node);	/* is one active? */

/* ---- belief.c ---- */

struct request *belief_invoke(struct sim *sim, const struct request *what);
/* belayd has answered, and will tell. */
void belief_decided(struct sim *sim, struct node *node, const struct belay_action *reply);
/* The client has read the answer. */
void belief_told(struct sim *sim, struct request *q);
/* belayd does not take it. */
void belief_refused(struct sim *sim, struct request *q);
void belief_unlock(struct sim *sim, uint32_t owner, uint32_t key, uint32_t first, uint32_t last);
/* belayd has heard of it. */
void belief_unlock_taken(struct sim *sim, uint32_t owner, uint32_t key, uint32_t first, uint32_t last);
/* In a loan. */
void belief_loan_lock(struct sim *sim, struct node *node, const struct request *what, uint64_t token);
void belief_loan_unlock(struct sim *sim, uint32_t owner, uint32_t key, uint32_t first, uint32_t last);
void belief_loan_busy(struct sim *sim, struct node *node, const struct request *what);
void belief_loan_free(struct sim *sim, struct node *node, const struct request *what);
/* Whatever belayd believes of it from now on. */
void belief_client_mad(struct sim *sim, const struct client *client);
void belief_client_dies(struct sim *sim, struct node *node, uint32_t client);
/* The client is gone, and its death is known to a belayd that lives. */
void belief_client_gone(struct sim *sim, struct node *node, uint32_t client);
/* The clients of this node hold nothing any more, but the cluster may not know it. */
void belief_void(struct sim *sim, struct node *node, uint32_t client);
/* Another node has left, for this one: what it asked for may stand in the way. */
void belief_left(struct sim *sim, const struct node *node);
/* Owners that lost nothing, and requests that still wait, go on in the node's new life. */
void belief_new_life(struct sim *sim, struct node *node);
/* Do its clients believe in anything? Not counting the node itself. */
bool belief_any(const struct sim *sim, uint32_t node, uint64_t incarnation);
/* Whatever it has said of volumes, the others may or may not have heard. */
void belief_unsettled(struct sim *sim, struct node *node);
/* It runs no more: nothing is active. */
void belief_host_ends(struct sim *sim, struct node *node);
/* All that it asked for, answered or not; what that would have lowered is given up. */
void belief_forget_requests(struct sim *sim, uint32_t owner);
/* The client will not wait for it any more, whatever it has come to. */
void belief_given_up(struct request *q);
struct request *request_find(struct sim *sim, uint32_t node, uint32_t process, uint32_t client, uint64_t cookie);
void request_drop(struct sim *sim, struct request *request);
bool request_conflicts(const struct sim *sim, const struct request *a, const struct request *b);
/* Does @owner believe in what conflicts with @request? */
bool owner_holds(const struct owner *owner, const struct request *request);
/* May a core have thought so, now or since @since_us? */
bool owner_may_block(const struct owner *owner, const struct request *request, uint64_t since_us);
bool sim_quiet(const struct sim *sim);		/* no request awaits an answer, nothing is held */
static inline enum hold hold_of(enum belay_mode mode)
{
	return mode == BELAY_MODE_EX ? HOLD_EX : HOLD_SH;
}
static inline bool holds_conflict(enum hold a, enum hold b)
{
	return a != HOLD_NONE && b != HOLD_NONE && (a == HOLD_EX || b == HOLD_EX);
}

/* ---- judge.c ---- */

void judge_sent(struct sim *sim, struct node *node, const struct belay_op *op);
void judge_ordered(struct sim *sim, struct message *message);
/* Around each ordered event that a core takes. */
struct judge_before {
	uint64_t digest, dropped;
	bool closed;		/* the sender's life was over before */
	bool member;		/* the sender is a member that serves */
	bool synced;
};
void judge_before(struct sim *sim, struct node *node, const struct ordered *o, struct judge_before *ret_before);
void judge_after(struct sim *sim, struct node *node, const struct ordered *o, const struct judge_before *before);
/* @donor writes a snapshot for @to; @to has loaded it, and knows what the donor knew. */
void judge_copied(struct sim *sim, uint32_t donor, uint32_t to);
void judge_loaded(struct sim *sim, struct node *node);
/* A life is over for somebody: the token clock jumps ahead of the time of day. */
void judge_closed(struct sim *sim, struct node *node);
void judge_grant(struct sim *sim, struct node *node, const struct request *request);
/* A table that says who has which volume has been loaded. */
void judge_volumes_loaded(struct sim *sim, struct node *node);
/* All is mended: the tables say what the nodes believe. */
void judge_volumes(struct sim *sim);
void judge_loan_grant(struct sim *sim, const struct node *node, const struct request *what);
void judge_deadlock(struct sim *sim, const struct request *request);
void judge_missed_deadlock(struct sim *sim);
void judge_tries(struct sim *sim);
void judge_quiet(struct sim *sim);

/* ---- fault.c ---- */

void fault_begin(struct sim *sim);
void fault_strike(struct sim *sim);
void fault_repair(struct sim *sim, uint32_t node, uint32_t what);
void fault_fence(struct sim *sim, uint32_t node, uint32_t victim);
void fault_heal(struct sim *sim);
void fault_power_off(struct sim *sim, struct node *node);
void fault_kill(struct sim *sim, struct node *node);
/* The core of @node says that @left has left. */
void fault_left(struct sim *sim, struct node *node, uint32_t left);
void fault_mend(struct sim *sim, struct node *node);
bool fault_all_well(const struct sim *sim);

/* ---- script.c ---- */

/* A world of options.nodes nodes in which nothing is left to chance. */
void script_world(struct sim *sim);
/* Plays a scenario and writes its trace; returns whether it made sense. */
bool script_play(struct sim *sim, FILE *script, const char *name);

/* ---- trace.c ---- */

void trace_line(struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define trace(sim, ...) ((sim)->options.trace ? trace_line((sim), __VA_ARGS__) : (void)0)
const char *trace_op_name(enum belay_op_type type);
void trace_event(struct sim *sim, const struct node *node, const struct belay_event *event);
void trace_state(struct sim *sim, const struct node *node, const struct belay_event *event);
void trace_call(struct sim *sim, const struct client *client, const struct call *call);
void trace_beliefs(struct sim *sim, uint32_t key);
void trace_action(struct sim *sim, const struct node *node, const struct belay_action *action);

#endif
