/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lock protocol on a perfect ring, step by step: reads as its description. */
#include "tests/tap.h"
#include "tests/unit/core_ring.h"

#define SH BELAY_MODE_SH
#define EX BELAY_MODE_EX
#define MS 1000

static struct ring_who at(unsigned node, uint32_t client)
{
	return (struct ring_who){ .node = node, .client = client };
}

static struct ring_who ofd(unsigned node, uint32_t client, uint64_t key)
{
	return (struct ring_who){ node, client, key, BELAY_KIND_OFD };
}

/* The answer to a cookie: its result, or 1 if there is none yet. */
static int result(struct ring *ring, uint64_t cookie)
{
	struct ring_reply r = ring_reply(ring, cookie);

	return r.answered ? r.result : 1;
}

static enum belay_state state_of(struct ring *ring, unsigned node)
{
	struct belay_stats s;

	belay_core_stats(ring_core(ring, node), &s);
	for (int i = BELAY_STATE_OWNED; i < BELAY_STATE_COUNT; i++)
		if (s.resources[i] != 0)
			return (enum belay_state)i;
	return BELAY_STATE_UNOWNED;
}

static int lock_now(struct ring *ring, struct ring_who who, uint64_t start, uint64_t end,
		    enum belay_mode mode, bool wait)
{
	(void)ring_lock(ring, who, 1, start, end, mode, wait, 99);
	ring_pass(ring, 5 * MS);
	return result(ring, 99);
}

/* Two nodes read one byte, which the first has written to: the resource is arbitrated. */
static void share(struct ring *ring, unsigned first, unsigned second, uint64_t byte)
{
	int a = lock_now(ring, at(first, 90), byte, byte, EX, false);
	int b = lock_now(ring, at(first, 90), byte, byte, SH, false);
	int c = lock_now(ring, at(second, 90), byte, byte, SH, false);

	if (a != 0 || b != 0 || c != 0 || state_of(ring, 1) != BELAY_STATE_ARB)
		ok(false, "set up: the resource is arbitrated (%d, %d, %d)", a, b, c);
}

static void test_ownership(void)
{
	struct ring *ring = ring_new(3, BELAY_STABLE_MAJORITY, NULL);
	unsigned frames;

	(void)ring_lock(ring, at(1, 1), 1, 0, 9, EX, true, 1);
	ok_int(result(ring, 1), 1, "a first touch is not believed before it is delivered");
	(void)ring_run(ring);
	ok_int(result(ring, 1), 0, "then it is granted");
	ok_int((int)state_of(ring, 2), BELAY_STATE_OWNED, "and all know that the node owns the resource");
	frames = ring_frames(ring, 1);
	ok_int(lock_now(ring, at(1, 2), 20, 29, EX, true), 0, "the owner grants by itself");
	ok_int(lock_now(ring, at(1, 2), 5, 5, SH, false), -EAGAIN, "and refuses by itself");
	ok_int((int)(ring_frames(ring, 1) - frames), 0, "without a message");

	(void)ring_lock(ring, at(2, 1), 1, 5, 5, EX, true, 2);
	ring_pass(ring, 5 * MS);
	ok_int((int)state_of(ring, 3), BELAY_STATE_ARB, "another node's request recalls it; now all know its locks");
	ok_int(result(ring, 2), 1, "and waits, for the byte was held");
	frames = ring_frames(ring, 1);
	(void)ring_unlock(ring, at(1, 1), 1, 0, 9);
	(void)ring_run(ring);
	ok_int(result(ring, 2), 0, "until the holder's release");
	ok_int((int)(ring_frames(ring, 1) - frames), 1, "which takes one message");
	ok_int(lock_now(ring, at(3, 1), 20, 20, SH, false), -EAGAIN, "what the former owner granted is held still");
	ok(ring_agree(ring), "the replicas agree");
	(void)ring_free(ring);
}

static void test_claim_and_idle(void)
{
	struct ring *ring = ring_new(2, BELAY_STABLE_ALL, NULL);

	ok_int(lock_now(ring, at(1, 1), 0, 0, EX, true), 0, "node 1 owns");
	ok_int(lock_now(ring, at(2, 1), 9, 9, EX, true), 0, "node 2 takes part: arbitrated");
	(void)ring_unlock(ring, at(1, 1), 1, 0, 0);
	for (int i = 0; i < 80; i++) {
		(void)lock_now(ring, at(2, 1), 0, 0, EX, true);
		(void)ring_unlock(ring, at(2, 1), 1, 0, 0);
		ring_pass(ring, 2 * MS);
	}
	ok_int((int)state_of(ring, 1), BELAY_STATE_OWNED, "alone for long enough, node 2 owns it");
	ok_int(lock_now(ring, at(1, 1), 9, 9, EX, false), -EAGAIN, "with what it holds");
	(void)ring_unlock(ring, at(2, 1), 1, 0, 100);
	ring_pass(ring, 70000 * MS);
	ok_int((int)state_of(ring, 1), BELAY_STATE_UNOWNED, "what nobody uses is forgotten");
	ok(ring_agree(ring), "the replicas agree");
	(void)ring_free(ring);
}

static void test_fairness(void)
{
	struct ring *ring = ring_new(3, BELAY_STABLE_MAJORITY, NULL);

	(void)lock_now(ring, at(1, 1), 0, 9, SH, true);
	(void)lock_now(ring, at(2, 1), 20, 20, SH, true);
	(void)ring_lock(ring, at(2, 2), 1, 0, 9, EX, true, 1);
	ring_pass(ring, 5 * MS);
	(void)ring_lock(ring, at(3, 3), 1, 4, 4, SH, true, 2);
	ring_pass(ring, 5 * MS);
	ok_int(result(ring, 2), 1, "a reader does not overtake a waiting writer");
	ok_int(lock_now(ring, at(1, 1), 2, 3, SH, true), 0, "an owner may take again what it holds");
	ok_int(lock_now(ring, at(1, 1), 2, 3, EX, true), 0, "and pass the writer that waits for it alone");
	(void)ring_unlock(ring, at(1, 1), 1, 0, 9);
	ring_pass(ring, 5 * MS);
	ok_int(result(ring, 1), 0, "the writer is next");
	ok_int(result(ring, 2), 1, "the reader waits on");
	ok_int(ring_cancel(ring, at(3, 3), 2), 0, "and loses patience");
	ring_pass(ring, 5 * MS);
	ok_int(result(ring, 2), -EINTR, "which is confirmed");
	ok_int(ring_cancel(ring, at(3, 3), 2), -ENOENT, "once");
	(void)ring_free(ring);
}

static void test_deadlock(void)
{
	struct ring *ring = ring_new(3, BELAY_STABLE_MAJORITY, NULL);

	share(ring, 1, 2, 100);
	(void)lock_now(ring, at(1, 1), 1, 1, EX, true);
	(void)lock_now(ring, at(2, 1), 2, 2, EX, true);
	(void)lock_now(ring, at(3, 1), 3, 3, EX, true);
	(void)ring_lock(ring, at(1, 1), 1, 2, 2, EX, true, 1);
	(void)ring_run(ring);
	(void)ring_lock(ring, at(2, 1), 1, 3, 3, EX, true, 2);
	(void)ring_run(ring);
	(void)ring_lock(ring, at(3, 1), 1, 1, 1, EX, true, 3);
	ring_pass(ring, 5 * MS);
	ok_int(result(ring, 3), -EDEADLK, "the request that closes a circle over three nodes fails");
	(void)ring_unlock(ring, at(3, 1), 1, 3, 3);
	ring_pass(ring, 5 * MS);
	ok_int(result(ring, 2), 0, "the others go on");
	(void)ring_free(ring);

	ring = ring_new(2, BELAY_STABLE_ALL, NULL);
	(void)lock_now(ring, at(1, 1), 1, 1, SH, true);
	(void)lock_now(ring, at(2, 1), 1, 1, SH, true);
	(void)ring_lock(ring, at(1, 1), 1, 1, 1, EX, true, 1);
	ring_pass(ring, 5 * MS);
	(void)ring_lock(ring, at(2, 1), 1, 1, 1, EX, true, 2);
	ring_pass(ring, 5 * MS);
	ok_int(result(ring, 2), -EDEADLK, "of two upgrades of one shared range the later fails");
	(void)ring_free(ring);

	ring = ring_new(1, BELAY_STABLE_MAJORITY, NULL);
	(void)lock_now(ring, ofd(1, 1, 1), 1, 1, EX, true);
	(void)lock_now(ring, ofd(1, 1, 2), 2, 2, EX, true);
	(void)ring_lock(ring, ofd(1, 1, 1), 1, 2, 2, EX, true, 1);
	(void)ring_lock(ring, ofd(1, 1, 2), 1, 1, 1, EX, true, 2);
	ring_pass(ring, 500 * MS);
	ok(result(ring, 1) == 1 && result(ring, 2) == 1, "OFD owners wait for each other, as in Linux");
	(void)ring_free(ring);
}

static void test_cross_resource_deadlock(void)
{
	struct ring *ring = ring_new(2, BELAY_STABLE_ALL, NULL);

	/* One edge is private to node 1, the other replicated. */
	(void)ring_lock(ring, at(1, 1), 1, 0, 0, EX, true, 1);
	(void)ring_lock(ring, at(1, 2), 2, 0, 0, SH, true, 2);
	(void)ring_run(ring);
	(void)ring_lock(ring, at(2, 9), 2, 0, 0, SH, true, 3);
	ring_pass(ring, 5 * MS);
	ok(result(ring, 1) == 0 && result(ring, 2) == 0 && result(ring, 3) == 0, "set up");
	(void)ring_lock(ring, at(1, 2), 1, 0, 0, EX, true, 4);
	(void)ring_lock(ring, at(1, 1), 2, 0, 0, EX, true, 5);
	ring_pass(ring, 500 * MS);
	ok((result(ring, 4) == -EDEADLK) != (result(ring, 5) == -EDEADLK),
	   "a circle of a local and a replicated wait is found, once");
	(void)ring_free(ring);
}

static void test_left_is_not_fenced(void)
{
	struct ring *ring = ring_new(3, BELAY_STABLE_MAJORITY, NULL);
	struct ring_reply r;

	(void)lock_now(ring, at(3, 1), 0, 9, EX, true);
	(void)lock_now(ring, at(2, 1), 20, 20, EX, true);
	ring_kill(ring, 3);
	(void)ring_run(ring);
	(void)ring_lock(ring, at(1, 1), 1, 5, 5, EX, true, 1);
	ring_pass(ring, 1000 * MS);
	ok_int(result(ring, 1), 1, "what a node that left holds stays locked");
	ok_int(lock_now(ring, at(1, 2), 5, 5, EX, false), -EAGAIN, "a try is answered all the same");
	(void)ring_test(ring, at(1, 2), 1, 5, 5, EX, 2);
	ring_pass(ring, 5 * MS);
	r = ring_reply(ring, 2);
	ok(r.answered && r.held && r.holder.node == 3, "and a test names the node");
	ok_int(lock_now(ring, at(1, 2), 30, 30, EX, true), 0, "other ranges go on");
	ok_int(ring_fence(ring, 1, 2), -EBUSY, "a member cannot be fenced");
	ok_int(ring_fence(ring, 1, 7), -EINVAL, "nor a stranger");
	ok_int(ring_fence(ring, 2, 3), 0, "node 3 has certainly stopped");
	ring_pass(ring, 5 * MS);
	ok_int(result(ring, 1), 0, "now its lock is free");
	ok_int(ring_fence(ring, 2, 3), -ENOENT, "it needs no second fence");
	ok(ring_agree(ring), "the replicas agree");
	(void)ring_free(ring);
}

static void test_owner_left(void)
{
	struct ring *ring = ring_new(2, BELAY_STABLE_ALL, NULL);

	(void)lock_now(ring, at(2, 1), 0, 9, EX, true);
	ring_kill(ring, 2);
	(void)ring_lock(ring, at(1, 1), 1, 50, 50, EX, true, 1);
	ring_pass(ring, 50 * MS);
	ok_int(result(ring, 1), 1, "an owner that left keeps all of its resource");
	ok_int(lock_now(ring, at(1, 2), 60, 60, EX, false), 1,
	       "with two nodes nothing ordered is believed before the fence");
	(void)ring_fence(ring, 1, 2);
	ring_pass(ring, 50 * MS);
	ok_int(result(ring, 1), 0, "the fence frees it");
	(void)ring_free(ring);
}

static void test_join(void)
{
	struct ring *ring = ring_new(3, BELAY_STABLE_MAJORITY, NULL);
	struct belay_stats s, others;

	for (unsigned k = 0; k < 20; k++) {
		(void)ring_lock(ring, at(1, 1 + k), 1 + k % 7, 10 * k, 10 * k + 5, k % 2 ? SH : EX,
				true, 200 + k);
		(void)ring_run(ring);
		(void)ring_lock(ring, at(2, 1 + k), 1 + k % 7, 10 * k + 6, 10 * k + 6, EX, true,
				300 + k);
		ring_pass(ring, 5 * MS);
	}
	(void)ring_lock(ring, at(2, 50), 1, 0, 0, EX, true, 400);
	(void)ring_lock(ring, at(1, 60), 8, 0, 9, EX, true, 401);
	ring_pass(ring, 5 * MS);
	(void)ring_unlock(ring, at(1, 60), 8, 0, 4);
	(void)ring_lock(ring, at(2, 60), 8, 0, 4, EX, true, 402);
	ring_pass(ring, 5 * MS);
	ring_kill(ring, 3);
	(void)ring_run(ring);
	ring_start(ring, 3);
	(void)ring_run(ring);
	belay_core_stats(ring_core(ring, 3), &s);
	ok(s.synced && !s.frozen, "a node that starts anew is synced from a snapshot");
	belay_core_stats(ring_core(ring, 1), &others);
	ok(s.resources[BELAY_STATE_OWNED] > 0 && s.resources[BELAY_STATE_ARB] > 0,
	   "with resources of which parts are delegated, and arbitrated ones");
	ok(s.locks > 0 && s.locks == others.locks_replicated && s.waiters_replicated == 1,
	   "with what the others have in common: locks and waiters");
	ok(others.locks > others.locks_replicated, "and without what a node has to itself");
	ok(ring_agree(ring), "the replicas agree");
	ok_int(lock_now(ring, at(3, 1), 0, 0, SH, false), -EAGAIN, "it respects them");
	ok_int(lock_now(ring, at(3, 1), 500, 500, EX, true), 0, "and locks");
	(void)ring_unlock(ring, at(1, 1), 1, 0, 5);
	ring_pass(ring, 5 * MS);
	ok_int(result(ring, 400), 0, "the waiter's turn comes");
	ok(ring_agree(ring), "the replicas agree");
	(void)ring_free(ring);
}

static void test_leave(void)
{
	struct ring *ring = ring_new(3, BELAY_STABLE_MAJORITY, NULL);

	(void)lock_now(ring, at(2, 1), 0, 0, EX, true);
	ok_int(ring_leave(ring, 2), 0, "a node wants to leave");
	ring_pass(ring, 5 * MS);
	ok(!ring_left(ring, 2), "not while its client holds a lock");
	ok_int(ring_lock(ring, at(2, 2), 1, 5, 5, EX, true, 1), -ESHUTDOWN, "new requests are refused");
	(void)ring_client_gone(ring, 2, 1);
	ring_pass(ring, 5 * MS);
	ok(ring_left(ring, 2), "then it is gone");
	ring_kill(ring, 2);
	ok_int(lock_now(ring, at(1, 1), 0, 0, EX, true), 0, "and needs no fence");
	(void)ring_free(ring);
}

static void test_tokens(void)
{
	struct ring *ring = ring_new(3, BELAY_STABLE_MAJORITY, NULL);
	uint64_t last = 0;
	bool grow = true;

	for (unsigned k = 0; k < 200; k++) {
		struct ring_who who = at(1 + (k / 3) % 3, 1 + k % 2);
		struct ring_reply r;

		(void)ring_lock(ring, who, 1, 0, 0, EX, true, 1);
		ring_pass(ring, 5 * MS);
		r = ring_reply(ring, 1);
		grow &= r.answered && r.result == 0 && r.token > last;
		last = r.token;
		(void)ring_unlock(ring, who, 1, 0, 0);
	}
	ok(grow, "tokens of one lock grow from grant to grant, whoever gets it");
	(void)ring_free(ring);
}

static void test_limits(void)
{
	struct belay_limits small = { .resources_max = 4, .locks_max = 64, .waiters_max = 4, .locks_per_owner_max = 8 };
	struct ring *ring = ring_new(2, BELAY_STABLE_ALL, &small);
	unsigned got = 0;

	share(ring, 2, 1, 0);
	(void)lock_now(ring, at(1, 1), 1, 1, EX, true);
	for (unsigned k = 2; k < 20; k++)
		got += lock_now(ring, at(1, 1), 2 * k, 2 * k, EX, true) == 0;
	ok_int((int)got, 6, "an owner's ranges are bounded");
	ok(ring_agree(ring), "alike on all nodes");
	for (unsigned k = 0; k < 6; k++)
		(void)ring_lock(ring, at(2, 20 + k), 1, 0, 0, EX, true, 10 + k);
	ring_pass(ring, 5 * MS);
	ok(result(ring, 13) == 1 && result(ring, 14) == -ENOLCK, "waiters are bounded");
	for (unsigned k = 0; k < 5; k++)
		(void)ring_lock(ring, at(1, 40), 2 + k, 0, 0, EX, true, 20 + k);
	ring_pass(ring, 5 * MS);
	ok(result(ring, 22) == 0 && result(ring, 23) == -ENOLCK, "resources are bounded");
	(void)ring_free(ring);
}

static void test_bad_events(void)
{
	struct ring *ring = ring_new(1, BELAY_STABLE_MAJORITY, NULL);

	ok_int(ring_lock(ring, at(1, 1), 1, 5, 4, EX, true, 1), -EINVAL, "an empty range");
	ok_int(ring_lock(ring, at(1, 1), 1, 0, BELAY_OFFSET_MAX + 1, EX, true, 1), -EINVAL, "a range too far");
	ok_int(ring_lock(ring, at(1, 1), 1, 0, 1, BELAY_MODE_COUNT, true, 1), -EINVAL, "a mode that is none");
	ok_int(ring_unlock(ring, at(1, 1), 1, 0, 1), 0, "to release what is not held is no error");
	ok_int(ring_cancel(ring, at(1, 1), 5), -ENOENT, "a cancel of nothing");
	ok_int(ring_client_gone(ring, 1, 77), 0, "a client that never was");
	ok(ring_agree(ring), "nothing has changed");
	(void)ring_free(ring);
}

int main(void)
{
	test_ownership();
	test_claim_and_idle();
	test_fairness();
	test_deadlock();
	test_cross_resource_deadlock();
	test_left_is_not_fenced();
	test_owner_left();
	test_join();
	test_leave();
	test_tokens();
	test_limits();
	test_bad_events();
	return done_testing();
}
