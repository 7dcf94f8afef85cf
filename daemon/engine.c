/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/engine.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <qb/qblog.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "daemon/clock.h"
#include "daemon/engine_private.h"
#include "daemon/trace.h"

/* Latencies are of the last one to two of these. */
#define ROTATE_US 10000000u
/* A chunk of a snapshot that the group refused is tried again after this. */
#define SNAPSHOT_RETRY_US 2000u
/* While clients wait, so often all nodes are asked whether they live. */
#define ASK_US 5000000u

/* ---- actions ---- */

static void send_op(struct engine *e, const struct belay_action *a)
{
	uint64_t due_us = a->urgent ? 0 : e->now_us + OUTBOX_COMPANY_US;

	if (a->urgent && e->unlocking && e->follows && a->op->type == BELAY_OP_REL) {
		due_us = e->linger_us = e->now_us + e->settings.linger_us;
		e->lingered++;
	}
	if (outbox_push(e->outbox, a->op, e->now_us, due_us) < 0)
		engine_finish(e, ENGINE_FAILED, "out of memory for what has to be sent");
}

/* A new life: nothing of the old one may be sent any more. */
static void restart(struct engine *e, uint64_t incarnation)
{
	e->incarnation = incarnation;
	outbox_restart(e->outbox, e->now_us);
	snapshots_clear(&e->snapshots);
	e->joiner_count = 0;
	e->incoming.active = false;
	qb_log(LOG_NOTICE, "starting anew as incarnation %" PRIu64, incarnation);
}

static const char *node_name(const struct engine *e, uint32_t node)
{
	const struct group_info *info = &e->group->info;

	for (uint32_t i = 0; i < info->node_count; i++)
		if (info->node[i] == node && info->node_name[i][0] != '\0')
			return info->node_name[i];
	return "unnamed";
}

static void log_node(const struct engine *e, const struct belay_action *a)
{
	const char *name = node_name(e, a->node);

	if (a->type == BELAY_ACTION_NODE_JOINED)
		qb_log(LOG_NOTICE, "node %" PRIu32 " (%s) joined", a->node, name);
	else if (a->type == BELAY_ACTION_NODE_CLOSED && a->volumes > 0)
		qb_log(LOG_WARNING, "node %" PRIu32 " (%s) left in order, but %" PRIu32 " locks of "
		       "volumes are its own until belayd is back there. If it has certainly stopped: "
		       "belay fence-ack %" PRIu32, a->node, name, a->volumes, a->node);
	else if (a->type == BELAY_ACTION_NODE_CLOSED)
		qb_log(LOG_NOTICE, "node %" PRIu32 " (%s) certainly holds nothing any more: what it "
		       "had locked is free", a->node, name);
	else
		qb_log(LOG_WARNING, "node %" PRIu32 " (%s) is gone and may still be writing: what it "
		       "has locked stays locked until it is fenced. When it has certainly stopped: "
		       "belay fence-ack %" PRIu32, a->node, name, a->node);
}

static void log_frozen(bool frozen)
{
	if (frozen)
		qb_log(LOG_WARNING, "frozen: no quorum, or no table yet; nothing is granted");
	else
		qb_log(LOG_NOTICE, "thawed: locks are granted");
}

static void want_snapshot(struct engine *e, const struct belay_action *a)
{
	if (e->joiner_count == BELAY_NODES_MAX)
		return;
	e->joiner[e->joiner_count].node = a->node;
	e->joiner[e->joiner_count].incarnation = a->incarnation;
	e->joiner_count++;
}

static void tell(struct engine *e, const struct belay_action *a)
{
	e->handlers.on_action(e->handlers.context, a);
}

static void on_action(void *context, const struct belay_action *a)
{
	struct engine *e = context;
	char text[TRACE_TEXT_MAX];

	if (e->settings.debug) {
		trace_action(text, sizeof(text), a);
		qb_log(LOG_DEBUG, "action: %s", text);
	}
	switch (a->type) {
	case BELAY_ACTION_SEND:
		send_op(e, a);
		break;
	case BELAY_ACTION_FLUSH:
		outbox_want_frame(e->outbox, a->ask);
		break;
	case BELAY_ACTION_LEND_HELD:
	case BELAY_ACTION_LEND:
	case BELAY_ACTION_RECALL:
	case BELAY_ACTION_REPLY:
	case BELAY_ACTION_LOST:
	case BELAY_ACTION_SYNCED:
		tell(e, a);
		break;
	case BELAY_ACTION_SNAPSHOT:
		want_snapshot(e, a);
		break;
	case BELAY_ACTION_HOLD:
		e->wish = WISH_HOLD;
		break;
	case BELAY_ACTION_REPLAY:
		e->wish = WISH_REPLAY;
		break;
	case BELAY_ACTION_FORGET:
		e->wish = WISH_FORGET;
		break;
	case BELAY_ACTION_RESTART:
		restart(e, a->incarnation);
		break;
	case BELAY_ACTION_FROZEN:
		log_frozen(a->frozen);
		tell(e, a);
		break;
	case BELAY_ACTION_NODE_LEFT:
	case BELAY_ACTION_NODE_CLOSED:
	case BELAY_ACTION_NODE_JOINED:
		log_node(e, a);
		tell(e, a);
		break;
	case BELAY_ACTION_LEFT:
		engine_finish(e, ENGINE_LEFT, a->volumes > 0 ?
			      "left the cluster; its locks of volumes stay" :
			      "left the cluster with nothing held");
		break;
	case BELAY_ACTION_ISOLATE:
		engine_finish(e, ENGINE_ISOLATED, a->reason);
		break;
	case BELAY_ACTION_HINT:
		if (e->hints)
			hint_port_send(e->hints, a->node, a->hint);
		break;
	case BELAY_ACTION_COUNT:
		break;
	}
}

void engine_finish(struct engine *e, enum engine_end end, const char *reason)
{
	/* The first cause counts: what comes after it may be its consequence. */
	if (e->ending)
		return;
	e->ending = true;
	e->end = end;
	e->end_reason = reason;
	engine_turn(e);
}

/* ---- steps ---- */

/* Snapshots show the place of the event that asked for them: now, before the next one. */
static void build_snapshots(struct engine *e)
{
	for (uint32_t i = 0; i < e->joiner_count; i++) {
		const struct engine_joiner *j = &e->joiner[i];
		int r = snapshots_add(&e->snapshots, e->core, j->node, j->incarnation);

		if (r < 0)
			qb_log(LOG_ERR, "cannot send the lock table to node %" PRIu32 ", which stays "
			       "out until it is started again: %s", j->node, strerror(-r));
		else
			qb_log(LOG_INFO, "sending the lock table to node %" PRIu32 " (%zu bytes to "
			       "send)", j->node, snapshots_pending(&e->snapshots));
	}
	e->joiner_count = 0;
}

int engine_apply(struct engine *e, struct belay_event *event, bool note)
{
	char text[TRACE_TEXT_MAX];
	int r;

	if (note)
		e->now_us = clock_now_us();
	event->now_us = e->now_us;
	if (e->settings.debug) {
		trace_event(text, sizeof(text), event);
		qb_log(LOG_DEBUG, "event: %s", text);
	}
	if (note)
		journal_event(e->journal, event);
	r = belay_core_step(e->core, event, &e->actions);
	/* At once, for the turn may be long, and what is not early need not be hinted at. */
	if (e->hints)
		hint_port_flush(e->hints);
	if (event->type == BELAY_EVENT_LOCK && e->ask_us == UINT64_MAX)
		e->ask_us = e->now_us + ASK_US;
	if (e->joiner_count > 0)
		build_snapshots(e);
	if (e->wish != WISH_NONE)
		engine_grant_wish(e);
	return r;
}

void engine_stepped(struct engine *e)
{
	e->handlers.on_stepped(e->handlers.context);
}

int engine_step(struct engine *e, struct belay_event *event)
{
	int r;

	if (e->ending)
		return -ESHUTDOWN;
	engine_turn(e);
	r = engine_apply(e, event, true);
	engine_stepped(e);
	return r;
}

int engine_unlock(struct engine *e, struct belay_event *event, bool follows)
{
	int r;

	if (e->ending)
		return -ESHUTDOWN;
	engine_turn(e);
	e->unlocking = true;
	e->follows = follows && e->settings.linger_us > 0;
	r = engine_apply(e, event, true);
	e->unlocking = false;
	engine_stepped(e);
	return r;
}

uint64_t engine_lingers(const struct engine *e)
{
	return !e->ending && outbox_deadline(e->outbox) == e->linger_us ? e->linger_us : 0;
}

/* ---- turns ---- */

static void arm(struct engine *e)
{
	uint64_t due_us = belay_core_deadline(e->core), outbox_us = outbox_deadline(e->outbox);
	struct itimerspec at = { 0 };

	if (outbox_us < due_us)
		due_us = outbox_us;
	if (e->ask_us < due_us)
		due_us = e->ask_us;
	if (e->snapshot_retry_us != 0 && e->snapshot_retry_us < due_us)
		due_us = e->snapshot_retry_us;
	/* A timer that goes off too early costs less than setting it each turn. */
	if (due_us >= e->timer_us)
		return;
	e->timer_us = due_us;
	at.it_value.tv_sec = (time_t)(due_us / 1000000);
	/* Zero would disarm it. */
	at.it_value.tv_nsec = (long)(due_us % 1000000) * 1000 + 1;
	(void)timerfd_settime(e->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

static void send_snapshots(struct engine *e)
{
	e->snapshot_retry_us = 0;
	if (!outbox_empty(e->outbox) || !snapshots_ready(&e->snapshots))
		return;
	if (snapshots_send(&e->snapshots, e->group) < 0)
		e->snapshot_retry_us = clock_now_us() + SNAPSHOT_RETRY_US;
}

/*
 * The core asks only when it misses acknowledgements. A node may also keep a
 * resource that it should give up, or locks whose holders have let go: the
 * answers tell patience from a node that hangs.
 */
static void ask_all(struct engine *e, uint64_t now_us)
{
	struct belay_stats stats;

	if (now_us < e->ask_us)
		return;
	belay_core_stats(e->core, &stats);
	e->ask_us = UINT64_MAX;
	if (stats.requests == 0 || e->group->info.node_count == 1)
		return;
	e->ask_us = now_us + ASK_US;
	outbox_want_frame(e->outbox, true);
}

static void tell_pressure(struct engine *e)
{
	bool pressed = outbox_pressure(e->outbox);

	if (pressed == e->pressed)
		return;
	e->pressed = pressed;
	e->handlers.on_pressure(e->handlers.context, pressed);
}

static void log_end(const struct engine *e)
{
	switch (e->end) {
	case ENGINE_LEFT:
		qb_log(LOG_NOTICE, "%s", e->end_reason);
		break;
	case ENGINE_ISOLATED:
		qb_log(LOG_EMERG, "belayd stops, for its locks are not to be trusted any more: %s",
		       e->end_reason);
		break;
	case ENGINE_GROUP_LOST:
	case ENGINE_FAILED:
		qb_log(LOG_CRIT, "belayd stops: %s", e->end_reason);
		break;
	}
}

static void end_turn(struct engine *e)
{
	struct belay_event tick = { .type = BELAY_EVENT_TICK };
	uint64_t now_us = clock_now_us();

	if (e->ended)
		return;
	if (!e->ending) {
		if (belay_core_deadline(e->core) <= now_us)
			(void)engine_apply(e, &tick, true);
		engine_stepped(e);
		ask_all(e, now_us);
		outbox_flush(e->outbox, now_us);
		send_snapshots(e);
		tell_pressure(e);
		if (now_us >= e->rotate_us) {
			histogram_rotate(outbox_latency(e->outbox));
			e->rotate_us = now_us + ROTATE_US;
		}
	}
	e->handlers.on_turn_end(e->handlers.context);
	if (!e->ending) {
		arm(e);
		return;
	}
	e->ended = true;
	log_end(e);
	e->handlers.on_end(e->handlers.context, e->end, e->end_reason);
}

static int32_t on_turn(int32_t fd, int32_t revents, void *data)
{
	struct engine *e = data;
	uint64_t times;

	(void)revents;
	if (read(fd, &times, sizeof(times)) < 0)
		return 0;
	e->turn_due = false;
	end_turn(e);
	return 0;
}

/*
 * The descriptor is seen in the loop's next pass, so after all that this one
 * has dispatched. (libqb's own jobs would do the same, but it sleeps up to
 * 50 ms before it runs them.)
 */
void engine_turn(struct engine *e)
{
	const uint64_t one = 1;

	if (e->in_turn || e->turn_due || e->ended)
		return;
	/* Cannot fail: the counter is 0 or 1. */
	e->turn_due = write(e->turn_fd, &one, sizeof(one)) == sizeof(one);
}

void engine_turn_enter(struct engine *e)
{
	e->in_turn = true;
}

void engine_turn_begin(struct engine *e)
{
	assert(!e->in_turn);
	engine_turn_enter(e);
}

void engine_turn_end(struct engine *e)
{
	end_turn(e);
	e->in_turn = false;
}

static int32_t on_timer(int32_t fd, int32_t revents, void *data)
{
	struct engine *e = data;
	uint64_t times;

	(void)revents;
	if (read(fd, &times, sizeof(times)) < 0)
		return 0;
	e->timer_us = UINT64_MAX;
	engine_turn_begin(e);
	engine_turn_end(e);
	return 0;
}

/* ---- the group ---- */

static void on_quorum(void *context, bool quorate)
{
	struct engine *e = context;
	struct belay_event ev = { .type = BELAY_EVENT_QUORUM, .quorum.quorate = quorate };

	engine_turn_enter(e);
	qb_log(LOG_INFO, "corosync says: %squorate", quorate ? "" : "not ");
	(void)engine_step(e, &ev);
}

static void on_lost(void *context, int error)
{
	struct engine *e = context;
	const char *reason = "corosync failed; see its log";

	if (error == -ENOTCONN)
		reason = "corosync stopped";
	else if (error == -EEXIST)
		reason = "another belayd of this node is in the group; stop it first";
	engine_turn_enter(e);
	engine_finish(e, ENGINE_GROUP_LOST, reason);
}

/* The group has told all that had come: that was the turn. */
static void on_told(void *context)
{
	engine_turn_end(context);
}

void engine_group_handlers(struct engine *e, struct group_handlers *ret_handlers)
{
	*ret_handlers = (struct group_handlers){
		.on_view = engine_on_view,
		.on_message = engine_on_message,
		.on_quorum = on_quorum,
		.on_lost = on_lost,
		.on_told = on_told,
		.context = e,
	};
}

/* ---- hints ---- */

static void on_hint(void *context, const struct belay_hint *hint)
{
	struct engine *e = context;
	struct belay_event ev = { .type = BELAY_EVENT_HINT, .hint = hint };

	engine_turn_enter(e);
	(void)engine_step(e, &ev);
}

void engine_hint_handlers(struct engine *e, struct hint_handlers *ret_handlers)
{
	*ret_handlers = (struct hint_handlers){ .on_hint = on_hint, .on_told = on_told, .context = e };
}

void engine_set_hint_port(struct engine *e, struct hint_port *port)
{
	assert(!e->core);
	e->hints = port;
}

/* ---- what the outbox asks for ---- */

static int port_send(void *context, const void *buf, size_t size)
{
	struct engine *e = context;

	return e->group->ops->send(e->group, buf, size);
}

static void port_head(void *context, struct belay_frame *ret_frame)
{
	struct engine *e = context;

	belay_core_frame(e->core, ret_frame);
}

/* ---- life ---- */

int engine_new(qb_loop_t *loop, const struct engine_settings *settings,
	       const struct engine_handlers *handlers, struct engine **ret_engine)
{
	struct engine *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return -ENOMEM;
	e->loop = loop;
	e->settings = *settings;
	e->handlers = *handlers;
	e->incarnation = settings->incarnation;
	e->timer_us = e->ask_us = UINT64_MAX;
	e->port = (struct outbox_port){ .send = port_send, .head = port_head, .context = e };
	e->actions = (struct belay_actions){ .emit = on_action, .context = e };
	hold_init(&e->hold, settings->hold_bytes_max);
	r = outbox_new(&e->port, &e->outbox);
	if (r < 0)
		goto fail_free;
	e->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	e->turn_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (e->timer_fd < 0 || e->turn_fd < 0) {
		r = -errno;
		goto fail_descriptors;
	}
	r = qb_loop_poll_add(loop, QB_LOOP_HIGH, e->timer_fd, POLLIN, e, on_timer);
	if (r < 0)
		goto fail_descriptors;
	r = qb_loop_poll_add(loop, QB_LOOP_HIGH, e->turn_fd, POLLIN, e, on_turn);
	if (r < 0)
		goto fail_timer;
	*ret_engine = e;
	return 0;

fail_timer:
	(void)qb_loop_poll_del(loop, e->timer_fd);
fail_descriptors:
	if (e->timer_fd >= 0)
		close(e->timer_fd);
	if (e->turn_fd >= 0)
		close(e->turn_fd);
	outbox_free(e->outbox);
fail_free:
	free(e);
	return r;
}

static void make_config(const struct engine *e, struct belay_core_config *ret_config)
{
	const struct engine_settings *s = &e->settings;
	const struct group_info *info = &e->group->info;

	*ret_config = (struct belay_core_config){
		.self = info->self,
		.incarnation = s->incarnation,
		.stability = info->stability,
		.node_count = info->node_count,
		.fencing_none = s->fencing_none,
		.limits = s->limits,
		.requests_max = s->requests_max,
		.loans_max = s->loans_max,
		.hints = e->hints != NULL,
		.min_hold_us = s->min_hold_us,
		.idle_us = s->idle_us,
		.claim_streak = s->claim_streak,
		.share_streak = s->share_streak,
		.lend_after = s->lend_after,
		.token_base = s->token_base,
	};
	memcpy(ret_config->node, info->node, sizeof(ret_config->node));
}

/* The file is a convenience; a belayd without it is better than none. */
static int open_journal(struct engine *e, const struct belay_core_config *config)
{
	const struct engine_settings *s = &e->settings;
	int r = journal_open(s->journal_path, s->journal_bytes, config, &e->journal);

	if (r < 0 && s->journal_path) {
		qb_log(LOG_WARNING, "the flight recorder stays in memory, for its file %s cannot be "
		       "made: %s", s->journal_path, strerror(-r));
		r = journal_open(NULL, s->journal_bytes, config, &e->journal);
	}
	return r;
}

int engine_start(struct engine *e, struct group *group, const char **ret_why)
{
	struct belay_core_config config;
	void *memory;
	int r;

	assert(!e->core);
	e->group = group;
	make_config(e, &config);
	e->core_size = belay_core_size(&config);
	if (e->core_size == 0) {
		*ret_why = "the limits in the configuration are not possible together";
		return -EINVAL;
	}
	/* Room for all that the limits allow; a page costs nothing until it is used. */
	memory = mmap(NULL, e->core_size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED) {
		*ret_why = "no address space for the lock table: lower the limits in the "
			   "configuration, or raise ulimit -v";
		return -ENOMEM;
	}
	e->core = belay_core_init(memory, &config);
	assert(e->core);
	r = open_journal(e, &config);
	if (r < 0) {
		(void)munmap(memory, e->core_size);
		e->core = NULL;
		*ret_why = "no memory for the flight recorder";
	}
	return r;
}

void engine_free(struct engine *e)
{
	if (!e)
		return;
	(void)qb_loop_poll_del(e->loop, e->timer_fd);
	(void)qb_loop_poll_del(e->loop, e->turn_fd);
	close(e->timer_fd);
	close(e->turn_fd);
	hold_clear(&e->hold);
	snapshots_clear(&e->snapshots);
	journal_close(e->journal);
	outbox_free(e->outbox);
	if (e->core)
		(void)munmap(e->core, e->core_size);
	free(e);
}

/* ---- what others may know ---- */

bool engine_pressed(const struct engine *e)
{
	return outbox_pressure(e->outbox);
}

const struct belay_core *engine_core(const struct engine *e)
{
	return e->core;
}

const struct group_info *engine_group_info(const struct engine *e)
{
	return &e->group->info;
}

uint64_t engine_unanswered_us(const struct engine *e, uint32_t node)
{
	uint64_t since_us = silence_since(&e->silence, &e->group->info, node);

	return since_us == 0 ? 0 : clock_now_us() - since_us;
}

const struct histogram *engine_latency(const struct engine *e)
{
	return outbox_latency(e->outbox);
}

int engine_dump(const struct engine *e, const char *path)
{
	return journal_copy(e->journal, path);
}

void engine_stats(const struct engine *e, struct engine_stats *ret_stats)
{
	struct engine_stats s = {
		.messages = e->messages,
		.message_bytes = e->message_bytes,
		.bad_messages = e->bad_messages,
		.foreign_messages = e->foreign_messages,
		.hold_bytes = e->hold.bytes,
		.hold_bytes_peak = e->hold_peak,
		.snapshots_sent = e->snapshots.sent,
		.snapshot_bytes = e->snapshots.bytes,
		.snapshot_pending = snapshots_pending(&e->snapshots),
		.snapshot_build_us_max = e->snapshots.build_us_max,
		.lingered = e->lingered,
	};

	if (e->hints) {
		s.hints = true;
		hint_port_stats(e->hints, &s.hint);
	}
	outbox_stats(e->outbox, clock_now_us(), &s.outbox);
	journal_counts(e->journal, &s.journal_written, &s.journal_dropped);
	*ret_stats = s;
}
