/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/bus.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/tap.h"
#include "wire/wire.h"

#define PATIENCE_S 60

struct bus_message {
	struct bus_message *next;
	bool is_view;
	uint32_t node;
	size_t size;
	_Alignas(8) unsigned char bytes[];	/* message, or struct group_view */
};

static void add(struct bus *bus, const struct bus_message *head, const void *bytes)
{
	struct bus_message *m = malloc(sizeof(*m) + head->size);
	const uint64_t one = 1;

	*m = *head;
	m->next = NULL;
	memcpy(m->bytes, bytes, head->size);
	if (bus->last)
		bus->last->next = m;
	else
		bus->first = m;
	bus->last = m;
	(void)!write(bus->fd, &one, sizeof(one));
}

void bus_inject(struct bus *bus, uint32_t node, const void *buf, size_t size)
{
	const struct bus_message head = { .node = node, .size = size };

	add(bus, &head, buf);
}

static int bus_send(struct group *group, const void *buf, size_t size)
{
	struct bus_node *node = (struct bus_node *)group;

	node->sends++;
	if (node->refuse)
		return -EAGAIN;
	bus_inject(node->bus, node->id, buf, size);
	return 0;
}

static void bus_leave(struct group *group)
{
	((struct bus_node *)group)->joined = false;
}

static const struct group_ops ops = {
	.name = "bus", .send = bus_send, .leave = bus_leave, .close = bus_leave,
};

static void check_done(struct bus *bus)
{
	if (bus->done && bus->done(bus))
		qb_loop_stop(bus->loop);
}

static bool held_back(const struct bus *bus, const struct bus_message *m)
{
	enum wire_message type;

	return bus->hold_snapshots && !m->is_view &&
	       wire_message_type(m->bytes, m->size, &type) == 0 && type == WIRE_SNAPSHOT;
}

static void deliver(struct bus *bus, const struct bus_message *m)
{
	const struct group_view *view = (const void *)m->bytes;

	for (unsigned i = 0; i < BUS_NODES; i++) {
		struct bus_node *node = &bus->node[i];

		if (!node->joined || node->stopped)
			continue;
		if (m->is_view) {
			node->handlers.on_view(node->handlers.context, view);
			node->handlers.on_quorum(node->handlers.context, view->member_count > BUS_NODES / 2);
		} else {
			node->handlers.on_message(node->handlers.context, m->node, m->bytes, m->size);
		}
		group_told(&node->handlers);
	}
}

static int32_t on_bus(int32_t fd, int32_t revents, void *data)
{
	struct bus *bus = data;
	struct bus_message **at = &bus->first, *m;
	const struct bus_message *end = bus->last;
	uint64_t times;

	(void)revents;
	(void)!read(fd, &times, sizeof(times));
	/* What is sent meanwhile comes in the next turn. */
	while ((m = *at)) {
		bool is_end = m == end;

		if (held_back(bus, m)) {
			at = &m->next;
		} else {
			*at = m->next;
			if (bus->last == m)
				bus->last = NULL;
			deliver(bus, m);
			free(m);
		}
		if (is_end)
			break;
	}
	/* The end may have been taken out while others stay. */
	bus->last = bus->first;
	while (bus->last && bus->last->next)
		bus->last = bus->last->next;
	check_done(bus);
	return 0;
}

static void send_view(struct bus *bus, uint32_t joined, uint32_t left)
{
	const struct bus_message head = { .is_view = true, .size = sizeof(struct group_view) };
	struct group_view view = { 0 };

	for (unsigned i = 0; i < BUS_NODES; i++)
		if (bus->node[i].joined)
			view.member[view.member_count++] = bus->node[i].id;
	if (joined)
		view.joined[view.joined_count++] = joined;
	if (left)
		view.left[view.left_count++] = left;
	add(bus, &head, &view);
}

/* ---- engines ---- */

static void on_action(void *context, const struct belay_action *a)
{
	struct bus_node *node = context;

	if (a->type == BELAY_ACTION_SYNCED)
		node->synced = true;
	if (a->type != BELAY_ACTION_REPLY)
		return;
	node->replies++;
	node->granted += a->result == 0;
	node->failed += a->result < 0;
}

static void on_stepped(void *context)
{
	((struct bus_node *)context)->stepped++;
}

static void on_turn_end(void *context)
{
	check_done(((struct bus_node *)context)->bus);
}

static void on_pressure(void *context, bool pressed)
{
	((struct bus_node *)context)->pressed = pressed;
}

static void on_end(void *context, enum engine_end end, const char *reason)
{
	struct bus_node *node = context;

	node->ended = true;
	node->end = end;
	node->reason = reason;
	check_done(node->bus);
}

struct engine_settings bus_settings(unsigned index)
{
	return (struct engine_settings){
		.limits = {
			.resources_max = 65536, .locks_max = 262144,
			.waiters_max = 65536, .locks_per_owner_max = 65536,
		},
		.requests_max = 65536,
		.min_hold_us = 1000, .idle_us = 60000000, .claim_streak = 32, .share_streak = 64, .lend_after = 4,
		.incarnation = 1000 * (index + 1), .token_base = 1,
		.hold_bytes_max = 16 << 20, .journal_bytes = 1 << 20,
	};
}

void bus_start(struct bus *bus, unsigned index, const struct engine_settings *settings)
{
	struct bus_node *node = &bus->node[index];
	const struct engine_handlers handlers = {
		.on_action = on_action, .on_stepped = on_stepped, .on_turn_end = on_turn_end,
		.on_pressure = on_pressure, .on_end = on_end, .context = node,
	};
	const char *why = "";

	*node = (struct bus_node){ .bus = bus, .id = index + 1 };
	node->group.ops = &ops;
	node->group.info.self = node->id;
	node->group.info.node_count = BUS_NODES;
	for (unsigned i = 0; i < BUS_NODES; i++)
		node->group.info.node[i] = i + 1;
	node->group.info.expected_votes = BUS_NODES;
	node->group.info.stability = BELAY_STABLE_MAJORITY;
	if (engine_new(bus->loop, settings, &handlers, &node->engine) < 0)
		bail_out("no engine");
	engine_group_handlers(node->engine, &node->handlers);
	if (engine_start(node->engine, &node->group, &why) < 0)
		bail_out(why);
	node->joined = true;
	send_view(bus, node->id, 0);
}

void bus_stop(struct bus *bus, unsigned index)
{
	struct bus_node *node = &bus->node[index];

	node->joined = false;
	engine_free(node->engine);
	node->engine = NULL;
	send_view(bus, 0, node->id);
}

static struct belay_event event_of(enum belay_event_type type, uint32_t client, uint32_t resource)
{
	return (struct belay_event){
		.type = type,
		.lock = {
			.key = { .lockspace = 1, .id = { (uint8_t)resource, (uint8_t)(resource >> 8),
							 (uint8_t)(resource >> 16) } },
			.range = { 0, BELAY_OFFSET_MAX },
			.owner = { .client = client, .pid = 1 },
			.mode = BELAY_MODE_EX,
		},
	};
}

int bus_lock(struct bus_node *node, uint32_t client, uint32_t resource, uint64_t cookie, bool wait)
{
	struct belay_event ev = event_of(BELAY_EVENT_LOCK, client, resource);

	ev.lock.wait = wait;
	ev.lock.cookie = cookie;
	return engine_step(node->engine, &ev);
}

int bus_unlock(struct bus_node *node, uint32_t client, uint32_t resource)
{
	struct belay_event ev = event_of(BELAY_EVENT_UNLOCK, client, resource);

	return engine_unlock(node->engine, &ev, false);
}

/* ---- the loop ---- */

static void on_patience(void *data)
{
	struct bus *bus = data;

	bus->timed_out = true;
	qb_loop_stop(bus->loop);
}

bool bus_run(struct bus *bus, bool (*done)(struct bus *bus))
{
	qb_loop_timer_handle timer;

	bus->done = done;
	bus->timed_out = false;
	if (done(bus))
		return true;
	qb_loop_timer_add(bus->loop, QB_LOOP_HIGH, PATIENCE_S * UINT64_C(1000000000), bus,
			  on_patience, &timer);
	qb_loop_run(bus->loop);
	if (!bus->timed_out)
		qb_loop_timer_del(bus->loop, timer);
	bus->done = NULL;
	return !bus->timed_out;
}

void bus_init(struct bus *bus)
{
	*bus = (struct bus){ .loop = qb_loop_create() };
	bus->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	qb_loop_poll_add(bus->loop, QB_LOOP_HIGH, bus->fd, POLLIN, bus, on_bus);
}

void bus_free(struct bus *bus)
{
	struct bus_message *m;

	for (unsigned i = 0; i < BUS_NODES; i++)
		engine_free(bus->node[i].engine);
	while ((m = bus->first)) {
		bus->first = m->next;
		free(m);
	}
	qb_loop_poll_del(bus->loop, bus->fd);
	close(bus->fd);
	qb_loop_destroy(bus->loop);
}
