/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Locks of volumes: always arbitrated, so that all know of them; those of a node
 * outlive its belayd, and end by being unlocked or by a fence.
 */
#include "tests/tap.h"
#include "tests/unit/core_ring.h"

#define SH BELAY_MODE_SH
#define EX BELAY_MODE_EX
#define MS 1000
#define LV RING_VOLUMES
#define END BELAY_OFFSET_MAX
#define NOW 99		/* cookie of a request whose answer is looked at right away */

static struct ring_who node(unsigned n)
{
	return (struct ring_who){ .node = n, .client = BELAY_CLIENT_NODE, .kind = BELAY_KIND_NODE };
}

static struct ring_who client(unsigned n, uint32_t number)
{
	return (struct ring_who){ .node = n, .client = number, .kind = BELAY_KIND_OFD };
}

static int result(struct ring *ring, uint64_t cookie)
{
	struct ring_reply r = ring_reply(ring, cookie);

	return r.answered ? r.result : 1;
}

static int lock(struct ring *ring, struct ring_who who, unsigned volume, enum belay_mode mode)
{
	(void)ring_lock(ring, who, LV + volume, 0, END, mode, false, NOW);
	ring_pass(ring, 5 * MS);
	return result(ring, NOW);
}

static void unlock(struct ring *ring, struct ring_who who, unsigned volume)
{
	(void)ring_unlock(ring, who, LV + volume, 0, END);
	ring_pass(ring, 5 * MS);
}

/* Locks of the node as @seen_by knows them. */
static unsigned held(struct ring *ring, unsigned seen_by, unsigned n)
{
	struct belay_cursor cursor = { 0 };
	struct belay_lock_info info;
	unsigned count = 0;

	while (belay_core_locks_next(ring_core(ring, seen_by), &cursor, &info) == 1)
		count += !info.waiting && info.owner.node == n && info.owner.kind == BELAY_KIND_NODE;
	return count;
}

static enum belay_standing standing(struct ring *ring, unsigned seen_by, unsigned n)
{
	struct belay_node_info info;

	for (uint32_t i = 0; belay_core_node(ring_core(ring, seen_by), i, &info) == 1; i++)
		if (info.node == n)
			return info.standing;
	return BELAY_NODE_UNSEEN;
}

static void all_well(struct ring *ring, unsigned n)
{
	ok(ring_agree(ring), "the replicas agree");
	for (unsigned i = 1; i <= n; i++)
		if (ring_isolated(ring, i) != NULL)
			ok(false, "node %u isolated: %s", i, ring_isolated(ring, i));
}

static void test_modes(void)
{
	struct ring *ring = ring_new(3, BELAY_STABLE_MAJORITY, NULL);
	struct belay_stats stats;

	ok_int(lock(ring, node(1), 0, EX), 0, "a node has a volume for itself");
	ok_uint(held(ring, 3, 1), 1, "which all know");
	ok_int(lock(ring, node(2), 0, SH), -EAGAIN, "another may not");
	ok_int(lock(ring, node(1), 0, EX), 0, "what it has it gets again");
	ok_int(lock(ring, node(1), 0, SH), 0, "and less of it");
	ok_int(lock(ring, node(2), 0, SH), 0, "then another may share it");
	ok_int(lock(ring, node(1), 0, EX), -EAGAIN, "not more, while it is shared");
	ok_uint(held(ring, 2, 1), 1, "but what it had it has");
	unlock(ring, node(1), 0);
	ok_int(lock(ring, node(2), 0, EX), 0, "the last one may have all of it");
	for (unsigned k = 0; k < 200; k++) {
		unlock(ring, node(2), 0);
		(void)lock(ring, node(2), 0, EX);
	}
	belay_core_stats(ring_core(ring, 2), &stats);
	ok_uint(stats.owned_here, 0, "however often it is used, it is never delegated");
	ok_uint(held(ring, 1, 2), 1, "and all know");
	all_well(ring, 3);
	(void)ring_free(ring);
}

static void test_outlives_client(void)
{
	struct ring *ring = ring_new(3, BELAY_STABLE_MAJORITY, NULL);

	(void)lock(ring, node(1), 0, EX);
	ok_int(lock(ring, client(1, 7), 1, EX), 0, "a lock of a process of that node");
	(void)ring_client_gone(ring, 1, 7);
	ring_pass(ring, 5 * MS);
	ok_int(lock(ring, client(2, 8), 1, EX), 0, "ends with the process");
	ok_int(lock(ring, node(2), 0, EX), -EAGAIN, "the node's does not");
	all_well(ring, 3);
	(void)ring_free(ring);
}

/* belayd is killed and comes back. */
static void test_outlives_belayd(void)
{
	struct ring *ring = ring_new(3, BELAY_STABLE_MAJORITY, NULL);

	(void)lock(ring, node(1), 0, EX);
	(void)lock(ring, client(1, 7), 1, EX);
	(void)lock(ring, node(2), 2, EX);
	(void)ring_lock(ring, node(1), LV + 2, 0, END, EX, true, 5);
	ring_pass(ring, 5 * MS);
	ring_kill(ring, 1);
	ring_pass(ring, 5 * MS);
	ok_int(lock(ring, node(2), 0, EX), -EAGAIN, "while it is away its volume is its own");
	ok_int(lock(ring, node(2), 1, EX), -EAGAIN, "and its client's lock stays");
	ring_start(ring, 1);
	ring_pass(ring, 50 * MS);
	ok_int(lock(ring, node(2), 0, EX), -EAGAIN, "it is back: the volume still is its own");
	ok_int(lock(ring, node(2), 1, EX), 0, "its client's lock has ended");
	unlock(ring, node(2), 2);
	ok_int(lock(ring, node(3), 2, EX), 0, "what it waited for it waits for no more");
	ok_uint(held(ring, 1, 1), 1, "it knows what it has");
	ok_int(lock(ring, node(1), 0, EX), 0, "gets it again");
	unlock(ring, node(1), 0);
	ok_int(lock(ring, node(2), 0, EX), 0, "and can give it up");
	all_well(ring, 3);
	(void)ring_free(ring);
}

static void test_fence(void)
{
	struct ring *ring = ring_new(3, BELAY_STABLE_MAJORITY, NULL);

	(void)lock(ring, node(1), 0, EX);
	ring_kill(ring, 1);
	ring_pass(ring, 5 * MS);
	ok_int(lock(ring, node(2), 0, EX), -EAGAIN, "a node that left keeps its volume");
	ok_int(ring_fence(ring, 2, 1), 0, "until it is fenced");
	ring_pass(ring, 5 * MS);
	ok_int(lock(ring, node(2), 0, EX), 0, "then another may have it");
	ring_start(ring, 1);
	ring_pass(ring, 50 * MS);
	ok_uint(held(ring, 1, 1), 0, "and it comes back without");
	all_well(ring, 3);
	(void)ring_free(ring);
}

static void test_leave(void)
{
	struct ring *ring = ring_new(3, BELAY_STABLE_MAJORITY, NULL);

	(void)lock(ring, node(1), 0, EX);
	(void)lock(ring, node(2), 1, SH);
	unlock(ring, node(2), 1);
	ok_int(ring_leave(ring, 1), 0, "a node leaves with an active volume");
	ok_int(ring_leave(ring, 2), 0, "another one without");
	ring_pass(ring, 50 * MS);
	ok(ring_left(ring, 1) && ring_left(ring, 2), "neither has to wait");
	ok_int(standing(ring, 3, 1), BELAY_NODE_CLOSED, "nothing more comes of the one");
	ok_int(standing(ring, 3, 2), BELAY_NODE_CLOSED, "nor of the other");
	ok_uint(held(ring, 3, 1), 1, "but its volume is its own");
	(void)ring_free(ring);
}

/* Where all must know, nobody waits for who has left in order. */
static void test_leave_two(void)
{
	struct ring *ring = ring_new(2, BELAY_STABLE_ALL, NULL);

	(void)lock(ring, node(1), 0, EX);
	(void)ring_leave(ring, 1);
	ring_pass(ring, 50 * MS);
	ring_kill(ring, 1);
	ring_pass(ring, 50 * MS);
	ok_int(lock(ring, node(2), 1, EX), 0, "the other goes on");
	ok_int(lock(ring, node(2), 0, EX), -EAGAIN, "without the volume of the one that has left");
	ok_int(ring_fence(ring, 2, 1), 0, "which can be fenced");
	ring_pass(ring, 50 * MS);
	ok_int(lock(ring, node(2), 0, EX), 0, "and then the volume is free");
	ok_int(ring_fence(ring, 2, 1), -ENOENT, "once");
	(void)ring_free(ring);
}

int main(void)
{
	test_modes();
	test_outlives_client();
	test_outlives_belayd();
	test_fence();
	test_leave();
	test_leave_two();
	return done_testing();
}
