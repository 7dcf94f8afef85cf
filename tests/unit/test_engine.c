/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The engine between a group and clients: joining, refusals, pressure, bad messages, its end. */
#include "tests/tap.h"
#include "tests/unit/bus.h"
#include "wire/wire.h"

static bool all_synced(struct bus *bus)
{
	for (unsigned i = 0; i < BUS_NODES; i++)
		if (bus->node[i].joined && !bus->node[i].synced)
			return false;
	return true;
}

static bool first_ended(struct bus *bus) { return bus->node[0].ended; }
static bool second_ended(struct bus *bus) { return bus->node[1].ended; }
static bool third_ended(struct bus *bus) { return bus->node[2].ended; }

/* A node has had an answer to all it asked. */
static bool answered(const struct bus_node *node)
{
	struct belay_stats stats;

	belay_core_stats(engine_core(node->engine), &stats);
	return stats.requests == 0 && node->replies > 0;
}

static bool first_answered(struct bus *bus) { return answered(&bus->node[0]); }
static bool second_answered(struct bus *bus) { return answered(&bus->node[1]); }

/* Nothing is on its way any more, and the nodes say the same. */
static bool agreed(struct bus *bus)
{
	struct belay_stats a, b;

	if (bus->first || !all_synced(bus))
		return false;
	belay_core_stats(engine_core(bus->node[0].engine), &a);
	for (unsigned i = 1; i < BUS_NODES; i++) {
		struct engine_stats e;

		if (!bus->node[i].joined)
			continue;
		belay_core_stats(engine_core(bus->node[i].engine), &b);
		engine_stats(bus->node[i].engine, &e);
		if (a.place != b.place || a.digest != b.digest || e.outbox.queued > 0)
			return false;
	}
	return true;
}

/* A snapshot waits to be sent, so the joiner remembers what comes. */
static bool snapshot_waits(struct bus *bus)
{
	struct engine_stats e;

	engine_stats(bus->node[0].engine, &e);
	return e.snapshot_pending > 0;
}

static void start_three(struct bus *bus)
{
	bus_init(bus);
	for (unsigned i = 0; i < BUS_NODES; i++) {
		struct engine_settings settings = bus_settings(i);

		bus_start(bus, i, &settings);
	}
	if (!bus_run(bus, all_synced))
		bail_out("three nodes do not start");
}

/* Held locks on @count resources that two nodes have used, so that all nodes know them. */
static void fill(struct bus *bus, uint32_t count)
{
	for (uint32_t i = 1; i <= count; i++)
		if (bus_lock(&bus->node[1], 5, i, i, true) < 0)
			bail_out("a lock is refused");
	if (!bus_run(bus, second_answered))
		bail_out("the first locks are not granted");
	for (uint32_t i = 1; i <= count; i++)
		(void)bus_lock(&bus->node[0], 6, i, i, false);
	if (!bus_run(bus, first_answered) || !bus_run(bus, agreed))
		bail_out("the locks are not granted");
}

static void test_start(void)
{
	struct engine_stats e;
	struct bus bus;

	start_three(&bus);
	ok(all_synced(&bus), "three nodes start together");
	fill(&bus, 2000);
	ok_uint(bus.node[1].granted, 2000, "one of them is granted 2000 locks");
	ok_uint(bus.node[0].failed, 2000, "another hears that they are taken");
	engine_stats(bus.node[1].engine, &e);
	ok(e.outbox.ops > 4000 && e.outbox.frames < 200, "many operations leave in few frames: %u in %u",
	   (unsigned)e.outbox.ops, (unsigned)e.outbox.frames);
	bus_free(&bus);
}

/* What a step asks for is done when it is over; of a frame, not in its middle. */
static void test_stepped(void)
{
	struct belay_stats stats;
	unsigned before;
	struct bus bus;

	start_three(&bus);
	before = bus.node[0].stepped;
	(void)bus_lock(&bus.node[0], 6, 5000, 1, false);
	ok_uint(bus.node[0].stepped, before + 1, "a local event is a step");
	(void)bus_unlock(&bus.node[0], 6, 5000);
	ok_uint(bus.node[0].stepped, before + 2, "and so is an unlock");
	before = bus.node[2].stepped;
	fill(&bus, 2000);
	belay_core_stats(engine_core(bus.node[2].engine), &stats);
	ok(bus.node[2].stepped > before && 4 * (bus.node[2].stepped - before) < stats.ops_delivered,
	   "a frame is one, however many operations it has: %u for %u", bus.node[2].stepped - before,
	   (unsigned)stats.ops_delivered);
	bus_free(&bus);
}

static void test_join(void)
{
	struct engine_settings settings = bus_settings(2);
	struct engine_stats e;
	struct belay_stats stats;
	struct bus bus;

	start_three(&bus);
	fill(&bus, 5000);
	bus_stop(&bus, 2);
	(void)bus_run(&bus, agreed);
	settings.incarnation = 77777;
	bus.hold_snapshots = true;
	bus_start(&bus, 2, &settings);
	ok(bus_run(&bus, snapshot_waits), "a node joins");
	/* What happens while the snapshot is on its way must be on top of it. */
	for (uint32_t i = 1; i <= 2500; i++) {
		(void)bus_unlock(&bus.node[1], 5, i);
		(void)bus_lock(&bus.node[0], 6, i + 5000, i, true);
	}
	ok(bus_run(&bus, first_answered), "locking goes on while a node joins");
	ok(!bus.node[2].synced, "which waits for its snapshot");
	bus.hold_snapshots = false;
	bus_inject(&bus, 1, "wake", 4);
	ok(bus_run(&bus, all_synced), "it comes, and the node serves");
	ok(bus_run(&bus, agreed), "with the very same table");
	belay_core_stats(engine_core(bus.node[2].engine), &stats);
	ok(stats.locks_replicated >= 2500, "which has %u locks", stats.locks_replicated);
	engine_stats(bus.node[2].engine, &e);
	ok(e.hold_bytes == 0 && e.hold_bytes_peak > 1000, "what it remembered is forgotten");
	engine_stats(bus.node[0].engine, &e);
	ok(e.snapshots_sent >= 1 && e.snapshot_pending == 0, "the snapshot is sent");
	bus_free(&bus);
}

static void test_joiner_leaves(void)
{
	struct engine_settings settings = bus_settings(2);
	struct engine_stats e;
	struct bus bus;

	start_three(&bus);
	fill(&bus, 5000);
	bus_stop(&bus, 2);
	(void)bus_run(&bus, agreed);
	settings.incarnation = 77777;
	bus.hold_snapshots = true;
	bus_start(&bus, 2, &settings);
	ok(bus_run(&bus, snapshot_waits), "a snapshot waits to be sent");
	bus_stop(&bus, 2);
	bus.hold_snapshots = false;
	bus_inject(&bus, 1, "wake", 4);
	(void)bus_run(&bus, agreed);
	engine_stats(bus.node[0].engine, &e);
	ok_uint(e.snapshot_pending, 0, "the joiner leaves: it is dropped");
	bus_free(&bus);
}

static void test_hold_overflow(void)
{
	struct engine_settings settings = bus_settings(2);
	struct bus bus;

	start_three(&bus);
	/* More than one chunk, of which the first may be under way already. */
	fill(&bus, 5000);
	bus_stop(&bus, 2);
	(void)bus_run(&bus, agreed);
	settings.incarnation = 77777;
	settings.hold_bytes_max = 10000;
	bus.hold_snapshots = true;
	bus_start(&bus, 2, &settings);
	(void)bus_run(&bus, snapshot_waits);
	for (uint32_t i = 1; i <= 2000; i++)
		(void)bus_lock(&bus.node[0], 6, i + 5000, i, true);
	ok(bus_run(&bus, third_ended), "a joiner that would have to remember too much gives up");
	ok(bus.node[2].end == ENGINE_FAILED && strstr(bus.node[2].reason, "while joining"), "and says why");
	bus_free(&bus);
}

static void test_limits_differ(void)
{
	struct engine_settings settings = bus_settings(2);
	struct bus bus;

	start_three(&bus);
	bus_stop(&bus, 2);
	(void)bus_run(&bus, agreed);
	settings.incarnation = 77777;
	settings.limits.locks_max /= 2;
	bus_start(&bus, 2, &settings);
	ok(bus_run(&bus, third_ended), "a joiner whose limits are not the others' is refused");
	ok(bus.node[2].end == ENGINE_ISOLATED && strstr(bus.node[2].reason, "locks_max"),
	   "by name: %s", bus.node[2].reason);
	ok(!bus.node[0].ended && !bus.node[1].ended, "the others go on");
	bus_free(&bus);
}

/* ---- the group does not take it ---- */

static bool pressed(struct bus *bus) { return bus->node[0].pressed; }
static bool relieved(struct bus *bus) { return !bus->node[0].pressed; }

static void test_pressure(void)
{
	struct engine_stats e;
	struct bus bus;
	unsigned sends;

	start_three(&bus);
	bus.node[0].refuse = true;
	sends = bus.node[0].sends;
	for (uint32_t i = 1; i <= 30000; i++)
		if (bus_lock(&bus.node[0], 6, i, i, true) < 0)
			bail_out("a lock is refused");
	ok(bus_run(&bus, pressed), "the group takes nothing: clients have to wait");
	ok(bus.node[0].sends - sends < 100, "it is not asked again and again: %u times",
	   bus.node[0].sends - sends);
	bus.node[0].refuse = false;
	ok(bus_run(&bus, relieved), "it does again: clients may go on");
	ok(bus_run(&bus, first_answered), "all are answered");
	ok_uint(bus.node[0].granted, 30000, "and granted: nothing was lost");
	engine_stats(bus.node[0].engine, &e);
	ok(e.outbox.pressures == 1 && e.outbox.again > 0, "both are counted");
	ok(bus_run(&bus, agreed), "the nodes agree");
	bus_free(&bus);
}

/* ---- others stand still ---- */

static bool second_owes(struct bus *bus) { return engine_unanswered_us(bus->node[0].engine, 2) > 0; }
static bool second_is_gone(struct bus *bus) { return !bus->first && !second_owes(bus); }
static bool third_owes(struct bus *bus) { return engine_unanswered_us(bus->node[0].engine, 3) > 0; }

static bool third_has_answered(struct bus *bus) { return !third_owes(bus); }

static void test_standstill(void)
{
	struct bus bus;

	start_three(&bus);
	fill(&bus, 10);
	bus.node[1].stopped = bus.node[2].stopped = true;
	(void)bus_lock(&bus.node[0], 6, 4711, 4711, true);
	ok(bus_run(&bus, second_owes) && bus_run(&bus, third_owes),
	   "nobody acknowledges a request: it is told who owes an answer");
	ok(!answered(&bus.node[0]), "and the request waits");
	ok_uint(engine_unanswered_us(bus.node[0].engine, 1), 0, "this node owes itself none");
	bus_free(&bus);
}

/* The third node acknowledges, so nothing is unstable; but the second does not give up what it owns. */
static void test_owner_stands_still(void)
{
	struct bus bus;

	start_three(&bus);
	(void)bus_lock(&bus.node[1], 5, 1, 1, true);
	(void)bus_run(&bus, second_answered);
	(void)bus_run(&bus, agreed);
	bus.node[1].stopped = true;
	(void)bus_lock(&bus.node[0], 6, 1, 1, true);
	ok(bus_run(&bus, second_owes), "an owner that hangs is told from a lock that is held");
	ok(bus_run(&bus, third_has_answered), "and from a node that lives");
	bus_stop(&bus, 1);
	ok(bus_run(&bus, second_is_gone), "when it is gone it owes nothing");
	bus_free(&bus);
}

/* ---- bad messages ---- */

static uint64_t bad_of(const struct bus *bus, unsigned index)
{
	struct engine_stats e;

	engine_stats(bus->node[index].engine, &e);
	return e.bad_messages;
}

static size_t make_frame(uint8_t *buf, uint32_t node)
{
	const struct belay_frame frame = { .node = node, .incarnation = 3000, .seq = 1 };
	struct belay_op op = { .type = BELAY_OP_CLIENT_GONE, .owner = { .node = node, .client = 5 } };
	struct wire_writer w;

	if (wire_frame_begin(&w, buf, WIRE_MESSAGE_MAX, &frame) < 0 || wire_put_op(&w, &op) < 0 ||
	    wire_put_op(&w, &op) < 0)
		bail_out("no frame");
	return wire_size(&w);
}

static void test_bad_messages(void)
{
	uint8_t buf[WIRE_MESSAGE_MAX];
	uint64_t state = 88172645463325252u;
	struct engine_stats e;
	struct belay_stats before, after;
	struct bus bus;
	size_t size = make_frame(buf, 3);

	start_three(&bus);
	fill(&bus, 10);
	belay_core_stats(engine_core(bus.node[0].engine), &before);
	for (size_t cut = 1; cut < size; cut++)
		bus_inject(&bus, 3, buf, cut);
	(void)bus_run(&bus, agreed);
	ok_uint(bad_of(&bus, 0), size - 1, "a frame cut off anywhere is counted");
	bus_inject(&bus, 2, buf, size);
	(void)bus_run(&bus, agreed);
	ok_uint(bad_of(&bus, 0), size, "so is one that claims to be another node's");
	for (unsigned i = 0; i < 300; i++) {
		for (size_t k = 0; k < 64; k++) {
			state ^= state << 13;
			state ^= state >> 7;
			state ^= state << 17;
			buf[k] = (uint8_t)(state >> 32);
		}
		bus_inject(&bus, 3, buf, 1 + state % 64);
	}
	(void)bus_run(&bus, agreed);
	engine_stats(bus.node[0].engine, &e);
	ok(e.bad_messages + e.foreign_messages == size + 300, "and 300 of random bytes");
	belay_core_stats(engine_core(bus.node[0].engine), &after);
	ok(before.digest == after.digest && before.place == after.place && agreed(&bus),
	   "the table is what it was");
	for (unsigned i = 0; i < BUS_NODES; i++)
		belay_core_check(engine_core(bus.node[i].engine));
	(void)bus_lock(&bus.node[0], 6, 4711, 4711, true);
	ok(bus_run(&bus, first_answered), "and locks are granted");
	bus_free(&bus);
}

static void test_foreign_version(void)
{
	uint8_t buf[WIRE_MESSAGE_MAX], other[WIRE_MESSAGE_MAX];
	size_t size = make_frame(buf, 3);
	struct engine_stats e;
	enum wire_message type;
	struct bus bus;
	unsigned at = 0;

	/* Wherever the version stands: the byte whose change makes the message foreign. */
	do {
		memcpy(other, buf, size);
		other[at]++;
	} while (wire_message_type(other, size, &type) != -EPROTONOSUPPORT && ++at < size);
	start_three(&bus);
	bus_inject(&bus, 3, other, size);
	(void)bus_run(&bus, agreed);
	engine_stats(bus.node[0].engine, &e);
	ok(e.foreign_messages == 1 && e.bad_messages == 0, "another version is told apart from rubbish");
	ok(!bus.node[0].ended, "and ends nothing");
	bus_free(&bus);
}

/* ---- ends ---- */

static void test_ends(void)
{
	struct belay_event leave = { .type = BELAY_EVENT_LEAVE };
	struct belay_event late = { .type = BELAY_EVENT_CLIENT_GONE, .client.client = 6 };
	struct bus bus;

	start_three(&bus);
	(void)bus_lock(&bus.node[0], 6, 1, 1, true);
	(void)bus_run(&bus, first_answered);
	ok_int(engine_step(bus.node[0].engine, &leave), 0, "a node is to leave");
	(void)bus_unlock(&bus.node[0], 6, 1);
	ok(bus_run(&bus, first_ended), "it does when nothing is held");
	ok_int(bus.node[0].end, ENGINE_LEFT, "cleanly");
	ok_int(engine_step(bus.node[0].engine, &late), -ESHUTDOWN, "after the end nothing is done any more");
	bus.node[1].handlers.on_lost(bus.node[1].handlers.context, -ENOTCONN);
	group_told(&bus.node[1].handlers);
	ok(bus_run(&bus, second_ended), "corosync stops");
	ok(bus.node[1].end == ENGINE_GROUP_LOST && strstr(bus.node[1].reason, "corosync"), "and so does the engine");
	bus_free(&bus);
}

int main(void)
{
	test_start();
	test_stepped();
	test_join();
	test_joiner_leaves();
	test_hold_overflow();
	test_limits_differ();
	test_pressure();
	test_standstill();
	test_owner_stands_still();
	test_bad_messages();
	test_foreign_version();
	test_ends();
	return done_testing();
}
