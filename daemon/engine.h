/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The engine turns what happens around this node into events of the core, and
 * the core's actions into deeds: messages of the group, answers to clients.
 * It is the only caller of belay_core_step().
 *
 * A turn is what one pass of the loop brings. While it lasts, ops and answers
 * gather; at its end they leave, in as few messages as they fit into.
 */
#ifndef BELAY_DAEMON_ENGINE_H
#define BELAY_DAEMON_ENGINE_H

#include <qb/qbloop.h>

#include "core/core.h"
#include "daemon/group.h"
#include "daemon/hint_port.h"
#include "daemon/histogram.h"
#include "daemon/outbox.h"

struct engine;

/* Why the engine has stopped for good. */
enum engine_end {
	ENGINE_LEFT,		/* left cleanly, as asked */
	ENGINE_ISOLATED,	/* must not go on, nor be restarted blindly */
	ENGINE_GROUP_LOST,	/* corosync is gone */
	ENGINE_FAILED,		/* out of memory; may be started again */
};

struct engine_handlers {
	/*
	 * REPLY, LOST, SYNCED, FROZEN and NODE_*: must only note them, for the core is
	 * in the middle of a step.
	 */
	void (*on_action)(void *context, const struct belay_action *action);
	/* The core is at rest: events that actions have asked for may be applied now. */
	void (*on_stepped)(void *context);
	/* The turn's frames are sent; now is the time to send what has gathered. */
	void (*on_turn_end)(void *context);
	/* Too much waits to be sent: cause no more until told so. */
	void (*on_pressure)(void *context, bool pressed);
	/* Called once, last, from the loop. @reason is static text. */
	void (*on_end)(void *context, enum engine_end end, const char *reason);
	void *context;
};

struct engine_settings {
	struct belay_limits limits;
	uint32_t requests_max, loans_max;
	uint32_t min_hold_us, idle_us, claim_streak, share_streak, lend_after;
	uint32_t linger_us;		/* an unlock waits so long for the next lock */
	bool fencing_none;
	uint64_t incarnation, token_base;
	size_t hold_bytes_max;
	size_t journal_bytes;
	const char *journal_path;	/* NULL: in memory only */
	bool debug;			/* log events and actions */
};

struct engine_stats {
	struct outbox_stats outbox;
	uint64_t messages, message_bytes;	/* delivered, of all nodes */
	uint64_t bad_messages;			/* could not be read */
	uint64_t foreign_messages;		/* of another protocol version */
	uint64_t journal_written, journal_dropped;
	uint64_t hold_bytes, hold_bytes_peak;
	uint64_t snapshots_sent, snapshot_bytes, snapshot_pending, snapshot_build_us_max;
	uint64_t lingered;			/* unlocks that waited for the next lock */
	bool hints;				/* there is a way for them */
	struct hint_stats hint;
};

/* Handlers and settings are copied, but not the path. -ENOMEM, or the timer's error. */
int engine_new(qb_loop_t *loop, const struct engine_settings *settings,
	       const struct engine_handlers *handlers, struct engine **ret_engine);

/* What the group has to call: for group_*_open(), before engine_start(). */
void engine_group_handlers(struct engine *e, struct group_handlers *ret_handlers);

/* What the port of hints has to call: for hint_port_open(), before engine_start(). */
void engine_hint_handlers(struct engine *e, struct hint_handlers *ret_handlers);
/* The way for hints, which must outlive the engine; before engine_start(). Without it there are none. */
void engine_set_hint_port(struct engine *e, struct hint_port *port);

/*
 * Make the core for this group, which must outlive the engine. 0, or a
 * negative errno with *ret_why a static text.
 */
int engine_start(struct engine *e, struct group *group, const char **ret_why);

/* NULL is allowed. */
void engine_free(struct engine *e);

/*
 * Apply a local event, now (now_us is filled in). Returns what
 * belay_core_step() says; -ESHUTDOWN once the engine has ended.
 */
int engine_step(struct engine *e, struct belay_event *event);

/*
 * The same for UNLOCK. @follows: this client usually asks for its next lock
 * within linger_us of an unlock, so the unlock may wait for it and both
 * leave in one message.
 */
int engine_unlock(struct engine *e, struct belay_event *event, bool follows);

/*
 * Until when it is worth waiting for that next lock before the turn ends; 0:
 * not at all, for nothing lingers, or something urgent is there, too.
 */
uint64_t engine_lingers(const struct engine *e);

/*
 * Who serves much at once says where that begins and ends; else a turn ends as
 * soon as the loop has dispatched what it has in hand. Does not nest.
 */
void engine_turn_begin(struct engine *e);
void engine_turn_end(struct engine *e);

/* See to it that on_turn_end() is called. */
void engine_turn(struct engine *e);

bool engine_pressed(const struct engine *e);
const struct belay_core *engine_core(const struct engine *e);
const struct group_info *engine_group_info(const struct engine *e);
void engine_stats(const struct engine *e, struct engine_stats *ret_stats);
/* How long a node that was asked to answer has sent nothing; 0: it owes no answer. */
uint64_t engine_unanswered_us(const struct engine *e, uint32_t node);
const struct histogram *engine_latency(const struct engine *e);

/* Copy the flight recorder to a new file. 0 or a negative errno. */
int engine_dump(const struct engine *e, const char *path);

#endif
