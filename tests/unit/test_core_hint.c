/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Early releases, step by step: when a hint lets a waiter in before the order does, when
 * it must not, and what becomes of a lock that was taken early.
 */
#include "tests/tap.h"
#include "tests/unit/core_ring.h"

#define SH BELAY_MODE_SH
#define EX BELAY_MODE_EX
#define MS 1000
#define NOW 99		/* cookie of a request whose answer is looked at right away */

static struct ring_who at(unsigned node, uint32_t client)
{
	return (struct ring_who){ .node = node, .client = client };
}

/* The answer to a cookie: its result, or 1 if there is none yet. */
static int result(struct ring *ring, uint64_t cookie)
{
	struct ring_reply r = ring_reply(ring, cookie);

	return r.answered ? r.result : 1;
}

static int lock_now(struct ring *ring, struct ring_who who, uint64_t start, uint64_t end,
		    enum belay_mode mode, bool wait)
{
	(void)ring_lock(ring, who, 1, start, end, mode, wait, NOW);
	ring_pass(ring, 5 * MS);
	return result(ring, NOW);
}

static struct belay_stats stats(struct ring *ring, unsigned node)
{
	struct belay_stats s;

	belay_core_stats(ring_core(ring, node), &s);
	return s;
}

/* Nodes with hints, and a resource that is arbitrated: bytes far off are read by two nodes. */
static struct ring *fight(unsigned nodes, bool hints)
{
	struct belay_core_config config = ring_config(nodes, BELAY_STABLE_MAJORITY, NULL);
	struct ring *ring;

	config.hints = hints;
	ring = ring_new_with(&config);
	if (lock_now(ring, at(1, 90), 1000, 1000, EX, false) != 0 ||
	    lock_now(ring, at(1, 90), 1000, 1000, SH, false) != 0 ||
	    lock_now(ring, at(2, 90), 1000, 1000, SH, false) != 0 ||
	    stats(ring, 1).resources[BELAY_STATE_ARB] != 1)
		ok(false, "set up: the resource is arbitrated");
	ring_hints_forget(ring);
	return ring;
}

/* Node 1 holds bytes 0 to 9 and nodes 2, 3 ... wait for them, in this order, with their number. */
static void hold_and_wait(struct ring *ring, unsigned nodes)
{
	if (lock_now(ring, at(1, 1), 0, 9, EX, true) != 0)
		ok(false, "set up: node 1 has the lock");
	for (unsigned n = 2; n <= nodes; n++) {
		(void)ring_lock(ring, at(n, 1), 1, 0, 9, EX, true, n);
		ring_pass(ring, 5 * MS);
	}
	ring_hints_forget(ring);
}

/* The first hint on its way to a node, or NULL. */
/* The first that tells that node of a release, not merely that its request is here. */
static struct ring_hint *hint_to(struct ring *ring, unsigned node)
{
	static const struct belay_key none;

	for (unsigned i = 0; i < ring_hints(ring); i++)
		if (ring_hint(ring, i)->to == node &&
		    memcmp(&ring_hint(ring, i)->hint.key, &none, sizeof(none)) != 0)
			return ring_hint(ring, i);
	return NULL;
}

static void ok_well(struct ring *ring, unsigned n)
{
	for (unsigned i = 1; i <= n; i++)
		if (ring_isolated(ring, i) != NULL)
			ok(false, "node %u isolated: %s", i, ring_isolated(ring, i));
	ok(ring_agree(ring), "the replicas agree");
}

static void test_early(void)
{
	struct ring *ring = fight(3, true);
	struct ring_reply r;
	struct ring_hint *h;
	uint64_t token;

	hold_and_wait(ring, 2);
	(void)ring_unlock(ring, at(1, 1), 1, 0, 9);
	h = hint_to(ring, 2);
	if (!ok(h != NULL, "a release is told to the node that waits"))
		return;
	token = h->hint.token;
	ok(hint_to(ring, 3) == NULL, "and to nobody else");
	ok_int(ring_hint_arrives(ring, h), 0, "it arrives before the release does");
	r = ring_reply(ring, 2);
	ok(r.answered && r.result == 0, "and the lock is taken");
	ok(r.token > token, "with a token behind those of who had it");
	ok_uint(stats(ring, 2).hints_used, 1, "by a hint");
	ok_uint(stats(ring, 2).waiters_replicated, 1, "while in the order it waits");
	ok_int(ring_hint_arrives(ring, h), 0, "the same hint again");
	ok(!ring_reply(ring, 2).answered, "does nothing");
	ring_pass(ring, 5 * MS);
	ok_uint(stats(ring, 2).waiters_replicated, 0, "then the order grants it, too");
	ok(!ring_reply(ring, 2).answered, "which its client knows already");
	ok_int(lock_now(ring, at(3, 1), 0, 0, SH, false), -EAGAIN, "others find it held");
	(void)ring_unlock(ring, at(2, 1), 1, 0, 9);
	ring_pass(ring, 5 * MS);
	(void)ring_lock(ring, at(3, 1), 1, 0, 9, EX, true, 3);
	ring_pass(ring, 5 * MS);
	r = ring_reply(ring, 3);
	ok(r.answered && r.result == 0 && r.token > token, "until it is released");
	ok_well(ring, 3);
	(void)ring_free(ring);
}

/* Taken early, given back early, and told on: the order has seen nothing of it yet. */
static void test_chain(void)
{
	struct ring *ring = fight(3, true);
	struct ring_hint *h;
	struct ring_reply r;
	uint64_t token;

	hold_and_wait(ring, 3);
	(void)ring_unlock(ring, at(1, 1), 1, 0, 9);
	h = hint_to(ring, 3);
	ok(h != NULL, "who waits second is told of the release, too");
	if (h != NULL)
		(void)ring_hint_arrives(ring, h);
	ok_int(result(ring, 3), 1, "but somebody stands before it");
	(void)ring_hint_arrives(ring, hint_to(ring, 2));
	r = ring_reply(ring, 2);
	ok(r.answered && r.result == 0, "who takes the lock");
	token = r.token;
	ring_hints_forget(ring);
	(void)ring_unlock(ring, at(2, 1), 1, 0, 9);
	h = hint_to(ring, 3);
	if (!ok(h != NULL && h->hint.request != 0, "and gives it back: the hint names the request"))
		return;
	(void)ring_hint_arrives(ring, h);
	r = ring_reply(ring, 3);
	ok(r.answered && r.result == 0 && r.token > token, "now it is the second one's, with a later token");
	ring_pass(ring, 5 * MS);
	ok_int(lock_now(ring, at(1, 2), 0, 9, SH, false), -EAGAIN, "as the order says in the end");
	ok_uint(stats(ring, 1).waiters_replicated, 0, "nobody waits any more");
	(void)ring_unlock(ring, at(3, 1), 1, 0, 9);
	(void)ring_lock(ring, at(1, 2), 1, 0, 9, EX, true, 4);
	ring_pass(ring, 5 * MS);
	ok(ring_reply(ring, 4).token > token, "and tokens go on behind those");
	ok_well(ring, 3);
	(void)ring_free(ring);
}

/* Lost, late, or of somebody who does not know: it costs time only. */
static void test_useless(void)
{
	struct ring *ring = fight(3, true);
	struct ring_hint late;

	hold_and_wait(ring, 2);
	(void)ring_unlock(ring, at(1, 1), 1, 0, 9);
	late = *hint_to(ring, 2);
	ring_pass(ring, 5 * MS);
	ok_int(result(ring, 2), 0, "a hint is lost: the order grants");
	(void)ring_lock(ring, at(3, 1), 1, 0, 9, EX, true, 3);
	ring_pass(ring, 5 * MS);
	late.to = 3;
	ok_int(ring_hint_arrives(ring, &late), 0, "a hint comes late, and to another");
	ok_int(result(ring, 3), 1, "the holder of now has not released");
	(void)ring_unlock(ring, at(2, 1), 1, 0, 9);
	late = *hint_to(ring, 3);
	late.hint.incarnation--;
	ok_int(ring_hint_arrives(ring, &late), 0, "a hint of a former life");
	ok_int(result(ring, 3), 1, "does not count");
	late.hint.incarnation++;
	late.hint.range.end = 5;
	ok_int(ring_hint_arrives(ring, &late), 0, "a hint of half of it");
	ok_int(result(ring, 3), 1, "is not enough");
	late.hint.range = (struct belay_range){ 9, 8 };
	ok_int(ring_hint_arrives(ring, &late), -EINVAL, "one of no range");
	late = *hint_to(ring, 3);
	late.hint.node = 3;
	ok_int(ring_hint_arrives(ring, &late), -EINVAL, "one that the node itself shall have sent");
	late.hint.node = 77;
	ok_int(ring_hint_arrives(ring, &late), 0, "or a stranger");
	ok_int(result(ring, 3), 1, "are none");
	ring_pass(ring, 5 * MS);
	ok_int(result(ring, 3), 0, "and then the order grants");
	ok_well(ring, 3);
	(void)ring_free(ring);

	ring = fight(2, false);
	hold_and_wait(ring, 2);
	(void)ring_unlock(ring, at(1, 1), 1, 0, 9);
	ok_uint(ring_hints(ring), 0, "without hints nobody is told");
	ring_hints_forget(ring);
	(void)ring_free(ring);
}

/* Who asks for more may have it before the release is delivered: then there is no hint. */
static void test_asks_for_more(void)
{
	struct ring *ring = fight(3, true);

	hold_and_wait(ring, 2);
	(void)ring_lock(ring, at(1, 1), 1, 100, 100, EX, true, 5);
	(void)ring_unlock(ring, at(1, 1), 1, 0, 9);
	ok(hint_to(ring, 2) == NULL, "an owner whose request is on its way hints at nothing");
	ring_pass(ring, 5 * MS);
	ok(result(ring, 5) == 0 && result(ring, 2) == 0, "the order does as ever");
	ok_well(ring, 3);
	(void)ring_free(ring);
}

/* What it rests on is that enough know of the request: the hint's sender, if it says so. */
static void test_stable(void)
{
	struct ring *ring = fight(3, true);
	struct ring_hint *h, wrong;

	(void)lock_now(ring, at(1, 1), 0, 9, EX, true);
	ring_hints_forget(ring);
	(void)ring_lock(ring, at(2, 1), 1, 0, 9, EX, true, 2);
	(void)ring_deliver(ring);
	(void)ring_unlock(ring, at(1, 1), 1, 0, 9);
	h = hint_to(ring, 2);
	if (!ok(h != NULL && h->hint.waiter != 0, "a hint says which request it is for"))
		return;
	wrong = *h;
	wrong.hint.prefix++;
	ok_int(ring_hint_arrives(ring, &wrong), 0, "one whose sender saw another order");
	ok_int(result(ring, 2), 1, "does not vouch for it");
	wrong = *h;
	wrong.hint.to_incarnation++;
	ok_int(ring_hint_arrives(ring, &wrong), 0, "nor does one to another life");
	ok_int(result(ring, 2), 1, "of the receiver");
	ok_int(ring_hint_arrives(ring, h), 0, "one whose sender has it in the same place");
	ok_int(result(ring, 2), 0, "does");
	ring_pass(ring, 5 * MS);
	ok_well(ring, 3);
	(void)ring_free(ring);
}

/* Nothing of its owner passes the grant that is still to come. */
static void test_owner_goes_on(void)
{
	struct ring *ring = fight(3, true);

	hold_and_wait(ring, 2);
	(void)ring_unlock(ring, at(1, 1), 1, 0, 9);
	(void)ring_hint_arrives(ring, hint_to(ring, 2));
	ok_int(result(ring, 2), 0, "set up: a lock is taken early");
	(void)ring_unlock(ring, at(2, 1), 1, 5, 9);
	(void)ring_lock(ring, at(2, 1), 1, 0, 4, SH, true, 3);
	ok_int(result(ring, 3), 1, "a part is released, the rest made weaker: that waits");
	(void)ring_lock(ring, at(3, 1), 1, 0, 9, SH, true, 4);
	ring_pass(ring, 20 * MS);
	ok_int(result(ring, 3), 0, "until the order has granted it");
	ok_int(result(ring, 4), 0, "then others may read");
	ok_int(lock_now(ring, at(3, 2), 5, 9, EX, false), -EAGAIN, "what they read");
	ok_int(lock_now(ring, at(1, 2), 0, 4, EX, false), -EAGAIN, "and what its owner still reads");
	(void)ring_client_gone(ring, 3, 1);
	ring_pass(ring, 5 * MS);
	ok_int(lock_now(ring, at(3, 2), 5, 9, EX, false), 0, "is held, and no more");
	ok_well(ring, 3);
	(void)ring_free(ring);
}

/* Its client, or its node, ends while the order has not granted it yet. */
static void test_ends(void)
{
	struct ring *ring = fight(3, true);

	hold_and_wait(ring, 3);
	(void)ring_unlock(ring, at(1, 1), 1, 0, 9);
	(void)ring_hint_arrives(ring, hint_to(ring, 2));
	ok_int(result(ring, 2), 0, "set up: a lock is taken early");
	(void)ring_client_gone(ring, 2, 1);
	ring_pass(ring, 5 * MS);
	ok_int(result(ring, 3), 0, "when its client is gone the next has it");
	ok_well(ring, 3);
	(void)ring_free(ring);

	ring = fight(3, true);
	hold_and_wait(ring, 3);
	(void)ring_unlock(ring, at(1, 1), 1, 0, 9);
	(void)ring_hint_arrives(ring, hint_to(ring, 2));
	ok_int(result(ring, 2), 0, "set up: a lock is taken early");
	ring_kill(ring, 2);
	ring_pass(ring, 500 * MS);
	ok_int(result(ring, 3), 1, "a node that left keeps what it took early");
	(void)ring_fence(ring, 1, 2);
	ring_pass(ring, 5 * MS);
	ok_int(result(ring, 3), 0, "until it is fenced");
	ok_well(ring, 3);
	(void)ring_free(ring);
}

int main(void)
{
	test_early();
	test_chain();
	test_useless();
	test_asks_for_more();
	test_stable();
	test_owner_goes_on();
	test_ends();
	return done_testing();
}
