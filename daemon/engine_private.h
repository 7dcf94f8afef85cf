/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the engine share: engine.c (life, turns, actions),
 * engine_order.c (what the group delivers).
 */
#ifndef BELAY_DAEMON_ENGINE_PRIVATE_H
#define BELAY_DAEMON_ENGINE_PRIVATE_H

#include "daemon/engine.h"
#include "daemon/hold.h"
#include "daemon/journal.h"
#include "daemon/limit.h"
#include "daemon/silence.h"
#include "daemon/snapshot.h"

/* What an action asked for that must wait until the step is over. */
enum engine_wish {
	WISH_NONE,
	WISH_HOLD,
	WISH_REPLAY,
	WISH_FORGET,
};

/* A life of a node that waits for a snapshot. */
struct engine_joiner {
	uint32_t node;
	uint64_t incarnation;
};

/* The snapshot that this node is loading: what the next chunk must be. */
struct engine_incoming {
	bool active;
	uint32_t node;
	uint64_t incarnation, place;
	uint32_t part;
};

/* The message of which ops are being applied. */
struct engine_current {
	const void *buf;
	size_t size;
	uint32_t node;
	uint32_t next_op;
};

struct engine {
	qb_loop_t *loop;
	struct engine_settings settings;
	struct engine_handlers handlers;
	struct group *group;
	struct belay_core *core;
	size_t core_size;
	struct belay_actions actions;
	uint64_t incarnation;
	uint64_t now_us;		/* of the event being applied */

	struct outbox_port port;
	struct outbox *outbox;
	bool unlocking, follows;	/* a local UNLOCK is being applied; it may linger */
	uint64_t linger_us;		/* until then, the last one that did */
	struct hint_port *hints;	/* NULL: off */
	struct snapshots snapshots;
	uint64_t snapshot_retry_us;
	struct journal *journal;

	bool holding;
	struct hold hold;
	uint64_t hold_peak;
	struct engine_current current;
	struct engine_incoming incoming;

	enum engine_wish wish;
	uint32_t joiner_count;
	struct engine_joiner joiner[BELAY_NODES_MAX];

	int timer_fd;
	uint64_t timer_us;		/* when the timer goes off; UINT64_MAX: never */
	int turn_fd;			/* eventfd: readable when a turn has to end */
	bool turn_due;			/* it is */
	/* Between engine_turn_begin() or _enter() and _end(). */
	bool in_turn;
	bool pressed;			/* as the handler was last told */
	uint64_t rotate_us;

	bool ending, ended;
	enum engine_end end;
	const char *end_reason;

	struct silence silence;
	uint64_t ask_us;		/* when all are asked whether they live; UINT64_MAX: never */

	uint64_t messages, message_bytes, bad_messages, foreign_messages;
	uint64_t lingered;
	struct limit bad_limit;
};

/* Step the core, note the event first if @note, and do what the step wished for. */
int engine_apply(struct engine *e, struct belay_event *event, bool note);

/* A step from outside the core's own is over: what it has asked for comes next. */
void engine_stepped(struct engine *e);

/* The group tells something: the turn that this may begin lasts up to on_told(). */
void engine_turn_enter(struct engine *e);

/* Stop: on_end() follows from the loop. */
void engine_finish(struct engine *e, enum engine_end end, const char *reason);

/* engine_order.c */
void engine_on_view(void *context, const struct group_view *view);
void engine_on_message(void *context, uint32_t node, const void *buf, size_t size);
/* HOLD, REPLAY, FORGET. */
void engine_grant_wish(struct engine *e);

#endif
