/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loans, step by step: what a client is lent, what it may say of it when it is over,
 * and who may want it back.
 */
#include "tests/tap.h"
#include "tests/unit/core_ring.h"

#define SH BELAY_MODE_SH
#define EX BELAY_MODE_EX
#define MS 1000
#define END BELAY_OFFSET_MAX
#define NOW 99		/* cookie of a request whose answer is looked at right away */
#define AFTER 4		/* lend_after of the ring */

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

static struct ring_reply lock_reply(struct ring *ring, struct ring_who who, uint64_t start,
				    uint64_t end, enum belay_mode mode, bool wait)
{
	(void)ring_lock_lend(ring, who, 1, start, end, mode, wait, NOW);
	ring_pass(ring, 5 * MS);
	return ring_reply(ring, NOW);
}

static int lock_now(struct ring *ring, struct ring_who who, uint64_t start, uint64_t end,
		    enum belay_mode mode, bool wait)
{
	struct ring_reply r = lock_reply(ring, who, start, end, mode, wait);

	return r.answered ? r.result : 1;
}

static void unlock(struct ring *ring, struct ring_who who, uint64_t start, uint64_t end)
{
	(void)ring_unlock(ring, who, 1, start, end);
	ring_pass(ring, 5 * MS);
}

static struct belay_stats stats(struct ring *ring, unsigned node)
{
	struct belay_stats s;

	belay_core_stats(ring_core(ring, node), &s);
	return s;
}

/* Locks of a client until it is lent something; it holds the last one. */
static struct ring_loan *borrow(struct ring *ring, struct ring_who who, uint64_t start, uint64_t end,
				enum belay_mode mode)
{
	for (unsigned k = 1; k <= 100; k++) {
		struct ring_reply r = lock_reply(ring, who, start, end, mode, true);

		if (r.answered && r.loan != 0)
			return ring_loan(ring, r.loan);
		unlock(ring, who, start, end);
	}
	bail_out("no loan");
}

static void ok_loan(const struct ring_loan *l, uint64_t start, uint64_t end, enum belay_mode mode,
		    const char *what)
{
	if (!ok(l->live && l->range.start == start && l->range.end == end && l->mode == mode, "%s", what))
		diag("live %d, %" PRIu64 "-%" PRIu64 ", mode %d", l->live, l->range.start, l->range.end,
		     (int)l->mode);
}

static void test_lend(void)
{
	struct ring *ring = ring_new(1, BELAY_STABLE_MAJORITY, NULL);
	struct ring_reply r;
	struct ring_loan *l;

	for (unsigned k = 1; k < AFTER; k++)
		if (lock_reply(ring, at(1, 1), 10 * k, 10 * k + 5, k % 2 ? SH : EX, true).loan != 0)
			ok(false, "a loan after %u requests", k);
	ok_uint(stats(ring, 1).locks, AFTER - 1, "a client's first locks are belayd's affair");
	r = lock_reply(ring, ofd(1, 1, 7), 100, 109, EX, true);
	if (!ok(r.answered && r.result == 0 && r.loan == 1, "after lend_after requests it is lent"))
		return;
	l = ring_loan(ring, r.loan);
	ok_loan(l, 0, END, EX, "all that is in nobody's way");
	ok_uint(l->count, AFTER, "with all it holds");
	ok(l->held[AFTER - 1].range.start == 100 && l->held[AFTER - 1].key == 7 &&
	   l->held[AFTER - 1].kind == BELAY_KIND_OFD, "whoever of its owners holds it");
	ok(l->token >= r.token, "and a token to count on from");
	ok_uint(stats(ring, 1).locks, 0, "the table knows nothing of it any more");
	ok(stats(ring, 1).loans == 1 && stats(ring, 1).lent == 1, "but that it is lent");
	ok(ring_agree(ring), "the table is in order");

	ring_loan_lock(l, at(1, 1), 200, 209, SH);
	ok_int(lock_now(ring, at(1, 2), 200, 209, EX, false), -EAGAIN, "another client's request recalls it");
	ok(!l->live, "so it is over");
	ok_uint(stats(ring, 1).loans, 0, "the table says so, too");
	ok_uint(stats(ring, 1).locks, AFTER + 1, "and knows what is held");
	ok_int(lock_now(ring, at(1, 2), 30, 35, SH, false), 0, "what is not in the way is granted");
	(void)ring_free(ring);
}

/* The range ends where others' locks, waits, loans and uses begin. */
static void test_range(void)
{
	struct ring *ring = ring_new(1, BELAY_STABLE_MAJORITY, NULL);
	struct ring_loan *l, *other;

	(void)lock_now(ring, at(1, 8), 0, 0, EX, true);
	(void)lock_now(ring, at(1, 9), 1000, 1009, SH, true);
	ring_pass(ring, 200 * MS);	/* then their uses are forgotten, their locks are not */
	l = borrow(ring, at(1, 1), 100, 109, EX);
	ok_loan(l, 1, 999, EX, "between the locks of others");
	(void)ring_lock(ring, at(1, 1), 1, 2000, 2000, SH, true, 1);
	ok(l->live, "a request elsewhere leaves it alone");
	ok_int(result(ring, 1), 0, "and is granted");
	ring_pass(ring, 200 * MS);
	other = borrow(ring, at(1, 2), 3000, 3009, EX);
	ok_loan(other, 2001, END, EX, "beside it is room for another");
	ok(l->live, "which leaves it alone");
	ring_loan_lock(l, at(1, 1), 999, 999, EX);
	(void)ring_lock(ring, at(1, 3), 1, 500, 4000, SH, true, 2);
	ring_pass(ring, 5 * MS);
	ok(!l->live && !other->live, "a request over both recalls both");
	ok_int(result(ring, 2), 1, "and waits for what is held there");
	unlock(ring, at(1, 1), 0, END);
	ok_int(result(ring, 2), 1, "in the one");
	unlock(ring, at(1, 2), 0, END);
	ok_int(result(ring, 2), 0, "and in the other");
	ok(ring_agree(ring), "the table is in order");
	(void)ring_free(ring);
}

/* Clients that use parts that lie apart have their loans beside each other; others none. */
static void test_uses(void)
{
	struct ring *ring = ring_new(1, BELAY_STABLE_MAJORITY, NULL);
	struct ring_loan *l = NULL, *other = NULL;

	for (unsigned k = 0; k < 10; k++) {
		for (unsigned n = 1; n <= 2; n++) {
			struct ring_who who = at(1, n);
			struct ring_reply r;

			(void)ring_lock_lend(ring, who, 1, 1000 * n, 1000 * n + 9, EX, true, NOW);
			ring_pass(ring, 1 * MS);
			r = ring_reply(ring, NOW);
			if (r.loan == 0)
				(void)ring_unlock(ring, who, 1, 1000 * n, 1000 * n + 9);
			else if (n == 1)
				l = ring_loan(ring, r.loan);
			else
				other = ring_loan(ring, r.loan);
		}
	}
	ok(l != NULL && other != NULL && l->live && other->live, "two clients, apart: each has its loan");
	if (l != NULL && other != NULL)
		ok(l->range.end < other->range.start && l->range.end > 1009 && other->range.start < 2000,
		   "with a border between them");
	(void)ring_free(ring);

	ring = ring_new(1, BELAY_STABLE_MAJORITY, NULL);
	for (unsigned k = 0; k < 40; k++) {
		(void)ring_lock_lend(ring, at(1, 1 + k % 2), 1, 10, 10, EX, true, NOW);
		ring_pass(ring, 1 * MS);
		(void)ring_reply(ring, NOW);
		(void)ring_unlock(ring, at(1, 1 + k % 2), 1, 10, 10);
	}
	ok_uint(ring_loans(ring), 0, "two that fight for a byte get none");
	(void)ring_free(ring);
}

static void test_readers(void)
{
	struct ring *ring = ring_new(2, BELAY_STABLE_ALL, NULL);
	struct ring_loan *l, *other;

	(void)lock_now(ring, at(1, 9), 0, 9, SH, true);
	l = borrow(ring, at(1, 1), 0, 9, SH);
	ok_loan(l, 0, END, SH, "who reads beside a reader gets a loan for reading");
	other = borrow(ring, at(1, 2), 0, 9, SH);
	ok_loan(other, 0, END, SH, "so does another");
	ok(l->live, "beside it");
	ok_int(lock_now(ring, at(1, 3), 0, 9, SH, true), 0, "readers without one leave them alone");
	ok(l->live && other->live, "both");

	(void)lock_now(ring, at(2, 1), 0, 9, SH, true);
	ok_uint(stats(ring, 2).resources[BELAY_STATE_SHARED], 1, "a reader of another node makes the node share");
	(void)lock_now(ring, at(2, 1), 5, 9, SH, true);
	l = borrow(ring, at(1, 1), 0, 9, SH);
	other = borrow(ring, at(2, 2), 0, 9, SH);
	ok(l->live && other->live, "loans for reading lie beside each other on all nodes");
	ring_loan_lock(other, at(2, 2), 50, 59, SH);
	(void)ring_lock(ring, at(1, 4), 1, 55, 55, EX, true, 1);
	ring_pass(ring, 5 * MS);
	ok(!l->live && !other->live, "until somebody writes");
	ok_int(result(ring, 1), 1, "who waits for a lock in a loan");
	unlock(ring, at(2, 2), 0, END);
	ok_int(result(ring, 1), 0, "until it is given back");
	ok(ring_agree(ring), "the replicas agree");
	(void)ring_free(ring);
}

/* Who gets none, though asking often enough. */
static void test_none(void)
{
	struct belay_core_config config = ring_config(1, BELAY_STABLE_MAJORITY, NULL);
	struct ring *ring = ring_new_with(&config);

	for (unsigned k = 0; k < 10; k++) {
		(void)ring_lock(ring, at(1, 1), 1, k, k, EX, true, NOW);
		ring_pass(ring, 1 * MS);
		(void)ring_reply(ring, NOW);
	}
	ok_uint(ring_loans(ring), 0, "who did not ask for a loan gets none");
	for (unsigned k = 0; k < 10; k++) {
		ok_int(lock_now(ring, at(1, 2), 5, 5, EX, false), -EAGAIN, "a try that fails");
		(void)ring_test(ring, at(1, 2), 1, 5, 5, EX, NOW);
		(void)ring_reply(ring, NOW);
	}
	ok_uint(ring_loans(ring), 0, "brings none, neither does a test");
	(void)ring_free(ring);

	config.loans_max = 0;
	ring = ring_new_with(&config);
	for (unsigned k = 0; k < 10; k++)
		(void)lock_now(ring, at(1, 1), k, k, EX, true);
	ok_uint(ring_loans(ring), 0, "loans_max = 0: nobody gets one");
	(void)ring_free(ring);

	config.loans_max = 2;
	ring = ring_new_with(&config);
	for (unsigned n = 1; n <= 4; n++) {
		for (unsigned k = 0; k < AFTER; k++) {
			(void)ring_lock_lend(ring, at(1, n), n, k, k, EX, true, NOW);
			ring_pass(ring, 1 * MS);
			(void)ring_reply(ring, NOW);
		}
	}
	ok_uint(stats(ring, 1).loans, 2, "loans_max = 2: two get one");
	(void)ring_free(ring);

	ring = ring_new(2, BELAY_STABLE_ALL, NULL);
	(void)lock_now(ring, at(1, 1), 0, 0, EX, true);
	(void)lock_now(ring, at(1, 1), 0, 0, SH, true);
	(void)lock_now(ring, at(2, 1), 0, 0, SH, true);
	for (unsigned k = 0; k < 10; k++)
		(void)lock_now(ring, at(1, 2), 5 + k, 5 + k, EX, true);
	ok_uint(ring_loans(ring), 0, "where all nodes decide nothing can be lent");
	(void)ring_free(ring);
}

static struct ring_held held(uint64_t start, uint64_t end, enum belay_mode mode, uint64_t key,
			     enum belay_kind kind)
{
	return (struct ring_held){ { start, end }, mode, key, kind };
}

static int say(struct ring *ring, const struct ring_loan *l, struct ring_held h)
{
	return ring_loan_held(ring, l, &h);
}

/* A client can say what it likes; what cannot be is refused, and changes nothing. */
static void test_lies(void)
{
	struct ring *ring = ring_new(1, BELAY_STABLE_MAJORITY, NULL);
	struct ring_loan *l, wrong;

	(void)lock_now(ring, at(1, 8), 1000, 1009, SH, true);
	ring_pass(ring, 200 * MS);
	l = borrow(ring, at(1, 1), 100, 109, EX);
	ok_loan(l, 0, 999, EX, "set up: a loan");
	l->keep = true;
	wrong = *l;
	wrong.number = 0;
	ok_int(say(ring, &wrong, held(0, 0, EX, 0, BELAY_KIND_POSIX)), -ENOENT, "loan 0");
	ok_int(ring_loan_end(ring, &wrong), -ENOENT, "which cannot end");
	wrong.number = l->number + 1;
	ok_int(say(ring, &wrong, held(0, 0, EX, 0, BELAY_KIND_POSIX)), -ENOENT, "a loan that is none");
	ok_int(ring_loan_end(ring, &wrong), -ENOENT, "which cannot end");
	wrong.number = UINT32_MAX;
	ok_int(ring_loan_end(ring, &wrong), -ENOENT, "nor can one of any number");

	ok_int(say(ring, l, held(5, 4, EX, 0, BELAY_KIND_POSIX)), -EINVAL, "a lock of no bytes");
	ok_int(say(ring, l, held(990, 1000, SH, 0, BELAY_KIND_POSIX)), -EINVAL, "a lock beyond the loan");
	ok_int(say(ring, l, held(0, END + 1, SH, 0, BELAY_KIND_POSIX)), -EINVAL, "a lock beyond the end");
	ok_int(say(ring, l, held(0, 0, BELAY_MODE_COUNT, 0, BELAY_KIND_POSIX)), -EINVAL, "a mode that is none");
	ok_int(say(ring, l, held(0, 0, EX, 0, BELAY_KIND_COUNT)), -EINVAL, "a kind that is none");
	ok_int(say(ring, l, held(0, 9, EX, 0, BELAY_KIND_POSIX)), 0, "what can be is taken");
	ok_int(say(ring, l, held(9, 9, SH, 0, BELAY_KIND_POSIX)), -EINVAL, "the same byte twice");
	ok_int(say(ring, l, held(9, 12, SH, 7, BELAY_KIND_OFD)), -EINVAL, "two owners of one byte");
	ok_int(say(ring, l, held(10, 12, SH, 7, BELAY_KIND_OFD)), 0, "beside each other they are taken");
	ok_int(say(ring, l, held(11, 20, SH, 8, BELAY_KIND_OFD)), 0, "and two readers of one byte");
	ok(ring_agree(ring), "the table is in order");

	wrong = *l;
	wrong.used = true;
	wrong.hull = (struct belay_range){ 9, 8 };
	ok_int(ring_loan_end(ring, &wrong), -EINVAL, "what was used is no range");
	wrong.hull = (struct belay_range){ 0, 1000 };
	ok_int(ring_loan_end(ring, &wrong), -EINVAL, "or lies beyond the loan");
	ok_uint(stats(ring, 1).loans, 1, "then the loan is not over");
	ok_int(ring_loan_end(ring, l), 0, "said rightly it is");
	ok_int(ring_loan_end(ring, l), -ENOENT, "once");
	ok_uint(stats(ring, 1).locks, 4, "what was taken is held");
	ok_int(lock_now(ring, at(1, 2), 0, 9, SH, false), -EAGAIN, "against others");
	(void)ring_free(ring);
}

static void test_lies_of_readers(void)
{
	struct ring *ring = ring_new(1, BELAY_STABLE_MAJORITY, NULL);
	struct ring_loan *l;

	(void)lock_now(ring, at(1, 8), 0, 9, SH, true);
	l = borrow(ring, at(1, 1), 0, 9, SH);
	l->keep = true;
	ok_int(say(ring, l, held(100, 109, EX, 0, BELAY_KIND_POSIX)), -EINVAL,
	       "a loan for reading holds no lock for writing");
	ok_int(say(ring, l, held(0, 9, SH, 0, BELAY_KIND_POSIX)), 0, "but one for reading");
	ok_int(ring_loan_end(ring, l), 0, "and is over");
	ok(ring_agree(ring), "the table is in order");
	(void)ring_free(ring);
}

/* A client may hold so many; what it does not hold others may. */
static void test_room(void)
{
	struct belay_limits limits = { .resources_max = 64, .locks_max = 400, .waiters_max = 64,
				       .locks_per_owner_max = 1000 };
	struct ring *ring = ring_new(1, BELAY_STABLE_MAJORITY, &limits);
	struct ring_loan *l = borrow(ring, at(1, 1), 0, 0, EX);
	unsigned room = l->room, taken = 0, refused = 0;

	l->keep = true;
	ok(room > 8 && room <= 200, "a loan has room for %u locks, of a share of 200", room);
	while (taken < room + 1 && say(ring, l, held(2 * taken, 2 * taken, EX, 0, BELAY_KIND_POSIX)) == 0)
		taken++;
	ok_uint(taken, room, "and not for one more");
	ok_int(say(ring, l, held(5000, 5000, EX, 0, BELAY_KIND_POSIX)), -EINVAL, "which is refused");
	ok_int(ring_loan_end(ring, l), 0, "it is over");
	ok_uint(stats(ring, 1).locks, room, "with what it had");
	unlock(ring, at(1, 1), 0, END);

	/* What is lent is as good as held, but half is left for those who ask. */
	for (unsigned n = 1; n <= 20; n++) {
		for (unsigned k = 0; k < AFTER; k++) {
			(void)ring_lock_lend(ring, at(1, n), n, k, k, EX, true, NOW);
			ring_pass(ring, 1 * MS);
			refused += result(ring, NOW) != 0;
		}
	}
	ok_uint(refused, 0, "with %u loans nobody is refused", stats(ring, 1).loans);
	for (taken = 0; taken < 400; taken++) {
		(void)ring_lock(ring, at(1, 50), 50, 2 * taken, 2 * taken, EX, true, NOW);
		ring_pass(ring, 1 * MS);
		if (result(ring, NOW) != 0)
			break;
	}
	ok(taken >= 60, "who asks gets %u locks beside them", taken);
	ok(stats(ring, 1).locks <= 200, "all in all not more than the share");
	ok(ring_agree(ring), "the table is in order");
	(void)ring_free(ring);
}

static void test_client_gone(void)
{
	struct ring *ring = ring_new(2, BELAY_STABLE_ALL, NULL);
	struct ring_loan *l = borrow(ring, at(1, 1), 0, 9, EX);
	struct ring_reply before, after;

	ring_loan_lock(l, at(1, 1), 100, 109, EX);
	l->keep = true;
	(void)ring_lock(ring, at(1, 2), 1, 0, 200, EX, true, 1);
	ok(l->recalled, "a waiter has the loan called back");
	ok_int(result(ring, 1), 1, "and waits for it");
	(void)ring_client_gone(ring, 1, 1);
	before = ring_reply(ring, 1);
	ok(before.answered && before.result == 0, "when the client is gone, all it held is free");
	ok_uint(stats(ring, 1).loans, 0, "the loan as well");
	ok_int(ring_loan_end(ring, l), -ENOENT, "of which nothing comes back");
	ok(before.token > l->token + 1000, "tokens go on beyond all that it can have given");
	(void)ring_client_gone(ring, 1, 2);

	l = borrow(ring, at(1, 3), 0, 9, EX);
	(void)ring_client_gone(ring, 1, 3);
	ok_uint(stats(ring, 1).loans, 0, "a loan that nobody wants ends with its client, too");
	(void)ring_lock(ring, at(2, 1), 1, 0, 9, EX, true, 2);
	ring_pass(ring, 5 * MS);
	after = ring_reply(ring, 2);
	ok(after.answered && after.result == 0 && after.token > before.token,
	   "other nodes' tokens come behind, though nobody has said how far it went");
	ok(ring_agree(ring), "the replicas agree");
	(void)ring_free(ring);
}

static void test_leave(void)
{
	struct ring *ring = ring_new(2, BELAY_STABLE_ALL, NULL);
	struct ring_loan *l = borrow(ring, at(1, 1), 0, 9, EX);
	struct ring_reply r;
	uint64_t token;

	l->token += 50;
	token = l->token;
	ok_int(ring_leave(ring, 1), 0, "a node wants to leave");
	ring_pass(ring, 5 * MS);
	ok(!l->live, "what it has lent is called back");
	ok(!ring_left(ring, 1), "and it stays while its client holds a lock");
	ok_int(ring_lock_lend(ring, at(1, 1), 1, 5, 5, EX, true, 1), -ESHUTDOWN, "new requests are refused");
	unlock(ring, at(1, 1), 0, END);
	ok(ring_left(ring, 1), "then it goes");
	ring_kill(ring, 1);
	r = lock_reply(ring, at(2, 1), 0, 9, EX, true);
	ok(r.answered && r.result == 0, "another node needs no fence");
	ok(r.token > token, "and counts on from where the loan ended");
	(void)ring_free(ring);
}

/* Tokens of a resource grow from holder to holder, also of those that no belayd gave. */
static void test_tokens(void)
{
	struct ring *ring = ring_new(2, BELAY_STABLE_ALL, NULL);
	struct ring_loan *l = borrow(ring, at(1, 1), 0, 9, EX);
	uint64_t token;
	struct ring_reply r;

	for (unsigned k = 0; k < 20; k++)
		ring_loan_lock(l, at(1, 1), 100 + k, 100 + k, EX);
	token = l->token;
	r = lock_reply(ring, at(1, 2), 50, 50, EX, true);
	ok(r.result == 0 && r.token > token, "within the node");
	unlock(ring, at(1, 1), 0, END);
	unlock(ring, at(1, 2), 0, END);

	ring_pass(ring, 200 * MS);
	l = borrow(ring, at(1, 1), 0, 9, EX);
	ok(l->token > r.token, "a loan begins behind what was given before");
	l->token += 30;
	token = l->token;
	r = lock_reply(ring, at(2, 1), 5, 5, EX, false);
	ok_int(r.result, -EAGAIN, "what it holds is held on other nodes");
	r = lock_reply(ring, at(2, 1), 20, 20, EX, true);
	ok(r.result == 0 && r.token > token, "whose tokens come behind, too");
	token = r.token;
	(void)ring_client_gone(ring, 1, 1);
	(void)ring_client_gone(ring, 2, 1);
	ring_pass(ring, 5 * MS);
	(void)ring_free(ring);

	/* A client that lies about its last token cannot use them up. */
	ring = ring_new(2, BELAY_STABLE_ALL, NULL);
	l = borrow(ring, at(1, 1), 0, 9, EX);
	token = l->token;
	l->token = UINT64_MAX;
	r = lock_reply(ring, at(1, 2), 50, 50, EX, true);
	ok(r.result == 0 && r.token > token && r.token < token + (UINT64_C(1) << 32),
	   "a token too large is not believed");
	unlock(ring, at(1, 2), 50, 50);
	ring_pass(ring, 200 * MS);
	l = borrow(ring, at(1, 1), 0, 9, EX);
	token = r.token;
	l->token = 0;
	r = lock_reply(ring, at(1, 2), 50, 50, EX, true);
	ok(r.result == 0 && r.token > token, "one too small does not count back");
	(void)ring_free(ring);
}

/* Other nodes find in the table what was lent; part of it may be enough. */
static void test_other_node(void)
{
	struct ring *ring = ring_new(2, BELAY_STABLE_ALL, NULL);
	struct ring_loan *l = borrow(ring, at(1, 1), 0, 9, EX);
	struct ring_reply r;
	unsigned relinquished;

	ring_loan_lock(l, at(1, 1), 20, 29, EX);
	relinquished = (unsigned)stats(ring, 1).relinquished;
	(void)ring_test(ring, at(2, 1), 1, 25, 40, SH, NOW);
	ring_pass(ring, 5 * MS);
	r = ring_reply(ring, NOW);
	ok(r.answered && r.held && r.range.start == 20 && r.holder.node == 1 && r.holder.client == 1,
	   "a test of another node is answered by what was in the loan");
	ok(!l->live, "which is over for it");
	ok_uint(stats(ring, 1).relinquished, relinquished, "but the node keeps all of it");

	unlock(ring, at(1, 1), 0, END);
	l = borrow(ring, at(1, 1), 0, 9, EX);
	ring_loan_lock(l, at(1, 1), 25, 29, EX);
	ok_int(lock_now(ring, at(2, 1), 25, 25, EX, false), -EAGAIN, "a try is refused by a lock in a loan");
	ok(ring_agree(ring), "the replicas agree");
	unlock(ring, at(1, 1), 0, END);
	(void)ring_client_gone(ring, 1, 1);
	(void)ring_client_gone(ring, 2, 1);
	ring_pass(ring, 130000 * MS);

	l = borrow(ring, at(1, 1), 0, 9, EX);
	ring_loan_lock(l, at(1, 1), 50, 59, SH);
	ok_int(lock_now(ring, at(2, 1), 1059, 1069, EX, true), 0, "a node that wants a part far off");
	ok_uint(stats(ring, 1).owned_here, 1, "leaves the part that was used in the loan");
	ok_uint(stats(ring, 2).locks, 1, "and hears nothing of its locks");
	unlock(ring, at(1, 1), 0, END);
	l = borrow(ring, at(1, 1), 0, 9, EX);
	ok_loan(l, 0, 558, EX, "of that part there is a loan again");
	(void)lock_now(ring, at(2, 2), 2000, 2000, EX, true);
	ok(l->live, "which what the other node does leaves alone");
	ok(ring_agree(ring), "the replicas agree");
	(void)ring_free(ring);
}

/* A request in an order: nothing else of the client's comes between. */
static void test_own_request(void)
{
	struct ring *ring = ring_new(1, BELAY_STABLE_MAJORITY, NULL);
	struct ring_loan *l = borrow(ring, at(1, 1), 0, 9, EX);
	struct ring_reply r;

	ring_loan_lock(l, at(1, 1), 20, 29, EX);
	l->keep = true;
	(void)ring_lock_lend(ring, at(1, 1), 1, 0, 100, SH, true, 1);
	ok(l->recalled, "a client's own request recalls its loan");
	ok_int(result(ring, 1), 1, "and waits for it");
	(void)ring_lock_lend(ring, at(1, 1), 1, 200, 300, EX, false, 2);
	ok_int(result(ring, 2), 1, "so does a try");
	ok_int(ring_loan_back(ring, l), 0, "it is back");
	ok_int(result(ring, 1), 0, "the request is granted");
	r = ring_reply(ring, 2);
	ok(r.answered && r.result == 0, "and the try");
	ok(ring_agree(ring), "the table is in order");
	(void)ring_free(ring);
}

/* Nobody hears how far tokens have gone while a loan lasts, so none lasts for ever. */
static void test_age(void)
{
	struct ring *ring = ring_new(1, BELAY_STABLE_MAJORITY, NULL);
	struct ring_loan *l = borrow(ring, at(1, 1), 0, 9, EX);

	ring_pass(ring, 20000 * MS);
	ok(l->live, "a loan that is in nobody's way lasts");
	ring_pass(ring, 25000 * MS);
	ok(!l->live, "half a minute or so");
	ok_int(lock_now(ring, at(1, 2), 0, 9, EX, false), -EAGAIN, "what it held is held");
	(void)ring_free(ring);
}

/* Outside of the majority nothing that was lent counts. */
static void test_minority(void)
{
	struct ring *ring = ring_new(3, BELAY_STABLE_MAJORITY, NULL);
	struct ring_loan *l = borrow(ring, at(1, 1), 0, 9, EX);

	ring_kill(ring, 2);
	ring_pass(ring, 5 * MS);
	ok(l->live, "with the majority a loan stays");
	ring_kill(ring, 3);
	ring_pass(ring, 5 * MS);
	ok(stats(ring, 1).frozen, "without it the node freezes");
	ring_start(ring, 2);
	ring_start(ring, 3);
	ring_pass(ring, 50 * MS);
	(void)ring_fence(ring, 1, 2);
	(void)ring_fence(ring, 1, 3);
	ring_pass(ring, 50 * MS);
	ok_uint(ring_lost(ring), 1, "a client that had a loan only hears that it has lost");
	ok(!l->live, "the loan is void");
	ok_uint(stats(ring, 1).loans, 0, "on both sides");
	ok_int(lock_now(ring, at(2, 1), 0, 9, EX, true), 0, "others start anew");
	(void)ring_free(ring);
}

int main(void)
{
	test_lend();
	test_range();
	test_uses();
	test_readers();
	test_none();
	test_lies();
	test_lies_of_readers();
	test_room();
	test_client_gone();
	test_leave();
	test_tokens();
	test_other_node();
	test_own_request();
	test_age();
	test_minority();
	return done_testing();
}
