/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the group delivers, in its order: views, frames of ops, chunks of
 * snapshots. While this node waits for its snapshot, all of it is remembered
 * as well, to be applied again on top of the snapshot.
 */
#include <errno.h>
#include <inttypes.h>
#include <qb/qblog.h>
#include <stdlib.h>

#include "daemon/clock.h"
#include "daemon/engine_private.h"

#define TOO_MUCH_HELD \
	"cannot keep up while joining: more was locked meanwhile than belayd has room " \
	"to remember; start it again, at a quieter time"

static void remember_view(struct engine *e, const struct group_view *view)
{
	if (!e->holding)
		return;
	if (hold_add_view(&e->hold, view) < 0)
		engine_finish(e, ENGINE_FAILED, TOO_MUCH_HELD);
}

static void remember_message(struct engine *e, uint32_t node, uint32_t skip, const void *buf,
			     size_t size)
{
	if (!e->holding)
		return;
	if (hold_add_message(&e->hold, node, skip, buf, size) < 0)
		engine_finish(e, ENGINE_FAILED, TOO_MUCH_HELD);
	if (e->hold.bytes > e->hold_peak)
		e->hold_peak = e->hold.bytes;
}

static void apply_view(struct engine *e, const struct group_view *view)
{
	struct belay_event ev = {
		.type = BELAY_EVENT_VIEW,
		.view = {
			.member_count = view->member_count, .member = view->member,
			.joined_count = view->joined_count, .joined = view->joined,
			.left_count = view->left_count, .left = view->left,
		},
	};

	(void)engine_apply(e, &ev, true);
}

/*
 * The head and the ops skip..limit-1 of a frame that has been checked. The
 * core may wish to remember, or to replay, in the middle of it: current
 * says how far we are.
 */
static void apply_frame(struct engine *e, uint32_t node, uint32_t skip, uint32_t limit,
			const void *buf, size_t size)
{
	struct engine_current outer = e->current;
	struct belay_frame frame;
	struct wire_reader reader;
	struct belay_op op;
	struct belay_event ev = { .type = BELAY_EVENT_FRAME, .frame = &frame };

	if (wire_frame_open(&reader, buf, size, &frame) < 0)
		return;
	e->now_us = clock_now_us();
	journal_message(e->journal, e->now_us, node, skip, limit, buf, size);
	e->current = (struct engine_current){ .buf = buf, .size = size, .node = node };
	frame.seq += skip;
	(void)engine_apply(e, &ev, false);
	ev.type = BELAY_EVENT_OP;
	ev.op = &op;
	while (!e->ending && e->current.next_op < limit && wire_get_op(&reader, &op) == 1) {
		e->current.next_op++;
		if (e->current.next_op > skip)
			(void)engine_apply(e, &ev, false);
	}
	e->current = outer;
}

/* Apply again what was remembered; some of it may have to be remembered again. */
static void replay(struct engine *e)
{
	struct hold old = e->hold;
	struct hold_entry *entry;

	/* The rest of the present frame is applied when we are back. */
	if (e->current.buf && old.last && !old.last->is_view)
		old.last->limit = e->current.next_op;
	e->holding = false;
	hold_init(&e->hold, old.bytes_max);
	while ((entry = hold_take(&old))) {
		if (e->ending) {
			/* Only to be freed. */
		} else if (entry->is_view) {
			remember_view(e, hold_view(entry));
			apply_view(e, hold_view(entry));
		} else {
			remember_message(e, entry->node, entry->skip, entry->bytes, entry->size);
			apply_frame(e, entry->node, entry->skip, entry->limit, entry->bytes,
				    entry->size);
		}
		free(entry);
	}
}

void engine_grant_wish(struct engine *e)
{
	enum engine_wish wish = e->wish;

	e->wish = WISH_NONE;
	switch (wish) {
	case WISH_NONE:
		break;
	case WISH_HOLD:
		hold_clear(&e->hold);
		e->holding = true;
		if (e->current.buf)
			remember_message(e, e->current.node, e->current.next_op, e->current.buf,
					 e->current.size);
		break;
	case WISH_REPLAY:
		replay(e);
		break;
	case WISH_FORGET:
		e->holding = false;
		hold_clear(&e->hold);
		break;
	}
}

void engine_on_view(void *context, const struct group_view *view)
{
	struct engine *e = context;

	if (e->ending)
		return;
	engine_turn_enter(e);
	for (uint32_t i = 0; i < view->left_count; i++)
		snapshots_drop(&e->snapshots, view->left[i]);
	for (uint32_t i = 0; i < view->left_count; i++)
		silence_heard(&e->silence, &e->group->info, view->left[i]);
	remember_view(e, view);
	apply_view(e, view);
	engine_stepped(e);
}

/* One line for each bad message, unless they come thick. */
static void on_bad(struct engine *e, uint32_t node, size_t size, int error, const char *what)
{
	uint64_t held_back;

	if (error == -EPROTONOSUPPORT)
		e->foreign_messages++;
	else
		e->bad_messages++;
	if (!limit_pass(&e->bad_limit, clock_now_us(), &held_back))
		return;
	if (error == -EPROTONOSUPPORT)
		qb_log(LOG_ERR, "node %" PRIu32 " speaks another version of the group protocol than "
		       "this belayd (version %d); its messages are ignored. Bring all nodes to the "
		       "same version of belay", node, WIRE_VERSION);
	else
		qb_log(LOG_ERR, "ignored a message of %zu bytes from node %" PRIu32 ": %s; another "
		       "program in belay's group, or a fault of memory or network", size, node, what);
	if (held_back > 0)
		qb_log(LOG_ERR, "%" PRIu64 " more such messages were not logged", held_back);
}

static void on_frame(struct engine *e, uint32_t node, const void *buf, size_t size)
{
	struct belay_frame frame;
	struct wire_reader reader;
	struct belay_op op;
	uint32_t ops = 0;
	int r = wire_frame_open(&reader, buf, size, &frame);

	/* All of it, before any of it is acted upon: half a frame would split the table. */
	while (r >= 0 && (r = wire_get_op(&reader, &op)) == 1)
		ops++;
	if (r < 0) {
		on_bad(e, node, size, r, "it is damaged");
		return;
	}
	if (frame.node != node) {
		on_bad(e, node, size, -EBADMSG, "it claims to be from another node");
		return;
	}
	if (node == e->group->info.self && frame.incarnation == e->incarnation)
		outbox_delivered(e->outbox, ops > 0, clock_now_us());
	if (node == e->group->info.self && frame.ask)
		silence_asked(&e->silence, &e->group->info, clock_now_us());
	remember_message(e, node, 0, buf, size);
	apply_frame(e, node, 0, UINT32_MAX, buf, size);
}

/* Is this the chunk we wait for? A first chunk always is: its sender begins (again). */
static bool expected(struct engine *e, const struct wire_snapshot *head)
{
	struct engine_incoming *in = &e->incoming;

	if (head->part == 0)
		*in = (struct engine_incoming){
			.active = true, .node = head->node,
			.incarnation = head->incarnation, .place = head->place,
		};
	return in->active && in->node == head->node && in->incarnation == head->incarnation &&
	       in->place == head->place && in->part == head->part;
}

static void apply_snapshot(struct engine *e, uint32_t node, const void *buf, size_t size)
{
	struct wire_snapshot head;
	struct wire_reader reader;
	struct belay_record record;
	struct belay_event ev = { .type = BELAY_EVENT_RECORD, .record = &record };

	if (wire_snapshot_open(&reader, buf, size, &head) < 0)
		return;
	e->now_us = clock_now_us();
	journal_message(e->journal, e->now_us, node, 0, UINT32_MAX, buf, size);
	while (!e->ending && wire_get_record(&reader, &record) == 1)
		(void)engine_apply(e, &ev, false);
}

static void on_snapshot(struct engine *e, uint32_t node, const void *buf, size_t size)
{
	struct wire_snapshot head;
	struct wire_reader reader;
	struct belay_record record;
	int r = wire_snapshot_open(&reader, buf, size, &head);

	if (r == 0 && head.node != node) {
		on_bad(e, node, size, -EBADMSG, "it is part of another node's snapshot");
		return;
	}
	if (r == 0 && node == e->group->info.self)
		snapshots_delivered(&e->snapshots);
	/* What is for others is theirs to check: it is long. */
	if (r == 0 && (head.to != e->group->info.self || head.to_incarnation != e->incarnation))
		return;
	while (r >= 0 && (r = wire_get_record(&reader, &record)) == 1)
		;
	if (r < 0) {
		on_bad(e, node, size, r, "it is a damaged part of a snapshot");
		return;
	}
	if (!expected(e, &head))
		return;
	e->incoming.part++;
	e->incoming.active = !head.last;
	apply_snapshot(e, node, buf, size);
}

void engine_on_message(void *context, uint32_t node, const void *buf, size_t size)
{
	struct engine *e = context;
	enum wire_message type;
	int r;

	if (e->ending)
		return;
	engine_turn_enter(e);
	e->messages++;
	e->message_bytes += size;
	silence_heard(&e->silence, &e->group->info, node);
	r = wire_message_type(buf, size, &type);
	if (r < 0)
		on_bad(e, node, size, r, "it is not one of belay's");
	else if (type == WIRE_FRAME)
		on_frame(e, node, buf, size);
	else
		on_snapshot(e, node, buf, size);
	/* Not between the ops of a frame: the journal has it as one piece. */
	engine_stepped(e);
}
