/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Delegations, step by step: nodes that use parts of a resource which lie apart,
 * nodes that only read, and what takes such parts away again.
 */
#include "tests/tap.h"
#include "tests/unit/core_ring.h"

#define SH BELAY_MODE_SH
#define EX BELAY_MODE_EX
#define MS 1000
#define END BELAY_OFFSET_MAX
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

/* Frames with ops that all nodes have sent. */
static unsigned messages(const struct ring *ring, unsigned n)
{
	unsigned sum = 0;

	for (unsigned i = 1; i <= n; i++)
		sum += ring_frames(ring, i);
	return sum;
}

static int by_start(const void *a, const void *b)
{
	const struct belay_record *x = a, *y = b;

	if (x->range.start != y->range.start)
		return x->range.start < y->range.start ? -1 : 1;
	return x->node < y->node ? -1 : 1;
}

/* The delegations as a node sees them: "1:EX[0-54] 2:EX[55-]", a '!' behind one that is recalled. */
static const char *delegations(struct ring *ring, unsigned node, char *ret_text, size_t size)
{
	struct belay_cursor cursor = { 0 };
	struct belay_record found[16], r;
	unsigned count = 0;
	size_t used = 0;

	while (belay_core_snapshot_next(ring_core(ring, node), &cursor, &r) == 1)
		if (r.type == BELAY_RECORD_DELEGATION && count < 16)
			found[count++] = r;
	qsort(found, count, sizeof(found[0]), by_start);
	ret_text[0] = '\0';
	for (unsigned k = 0; k < count; k++) {
		const struct belay_record *d = &found[k];
		char end[24] = "";

		if (d->range.end != END)
			(void)snprintf(end, sizeof(end), "%" PRIu64, d->range.end);
		used += (size_t)snprintf(ret_text + used, size - used, "%s%" PRIu32 ":%s[%" PRIu64 "-%s]%s",
					 k == 0 ? "" : " ", d->node, d->mode == EX ? "EX" : "SH",
					 d->range.start, end, d->recalled ? "!" : "");
	}
	return ret_text;
}

static void ok_delegations(struct ring *ring, unsigned n, const char *want, const char *what)
{
	char text[512];

	ok_str(delegations(ring, 1, text, sizeof(text)), want, "%s", what);
	ok(ring_agree(ring), "the replicas agree");
	for (unsigned i = 1; i <= n; i++)
		if (ring_isolated(ring, i) != NULL)
			ok(false, "node %u isolated: %s", i, ring_isolated(ring, i));
}

/* How many pieces an owner's locks make, as a node knows them. */
static unsigned pieces(struct ring *ring, unsigned node, struct ring_who who)
{
	struct belay_cursor cursor = { 0 };
	struct belay_lock_info info;
	unsigned count = 0;

	while (belay_core_locks_next(ring_core(ring, node), &cursor, &info) == 1)
		count += !info.waiting && info.owner.node == who.node && info.owner.client == who.client;
	return count;
}

/* Two nodes read one byte, which the first has written to: the resource is arbitrated. */
static void share(struct ring *ring, unsigned first, unsigned second, uint64_t byte)
{
	int a = lock_now(ring, at(first, 90), byte, byte, EX, false);
	int b = lock_now(ring, at(first, 90), byte, byte, SH, false);
	int c = lock_now(ring, at(second, 90), byte, byte, SH, false);

	if (a != 0 || b != 0 || c != 0 || stats(ring, 1).resources[BELAY_STATE_ARB] != 1)
		ok(false, "set up: the resource is arbitrated (%d, %d, %d)", a, b, c);
}

/* Requests of a node that is alone, until it has a delegation; returns how many, or 0. */
static unsigned claim(struct ring *ring, struct ring_who who, uint64_t start, uint64_t end,
		      enum belay_mode mode)
{
	unsigned before = stats(ring, who.node).owned_here;

	for (unsigned k = 1; k <= 1000; k++) {
		(void)lock_now(ring, who, start, end, mode, true);
		unlock(ring, who, start, end);
		if (stats(ring, who.node).owned_here > before)
			return k;
	}
	return 0;
}

static void test_parts(void)
{
	struct ring *ring = ring_new(3, BELAY_STABLE_MAJORITY, NULL);
	unsigned before;

	(void)lock_now(ring, at(1, 1), 0, 9, EX, true);
	ok_delegations(ring, 3, "1:EX[0-]", "who comes first has all of it");
	before = messages(ring, 3);
	ok_int(lock_now(ring, at(2, 1), 100, 109, EX, true), 0, "another node wants a part far off");
	/* The border is in the middle between 9 and 100. */
	ok_delegations(ring, 3, "1:EX[0-54] 2:EX[55-]", "each keeps its own");
	ok_uint(messages(ring, 3) - before, 3, "by one exchange: REQ, RELINQ and CLAIM");

	before = messages(ring, 3);
	for (unsigned k = 0; k < 10; k++) {
		unlock(ring, at(1, 1), 0, 9);
		unlock(ring, at(2, 1), 100, 109);
		if (lock_now(ring, at(1, 1), k, k + 5, EX, true) != 0 ||
		    lock_now(ring, at(2, 1), 100 + k, 109, EX, true) != 0)
			ok(false, "step %u", k);
		unlock(ring, at(1, 1), k, k + 5);
	}
	ok_uint(messages(ring, 3) - before, 0, "and locks there without a message");
	ok_uint(stats(ring, 3).locks, 0, "of which others know nothing");
	ok_int(lock_now(ring, at(1, 2), 119, 119, SH, false), 0, "a byte of the other's");
	ok(ring_agree(ring), "the replicas agree");
	(void)ring_free(ring);
}

static void test_parts_below(void)
{
	struct ring *ring = ring_new(2, BELAY_STABLE_ALL, NULL);

	(void)lock_now(ring, at(1, 1), 100, 109, EX, true);
	ok_int(lock_now(ring, at(2, 1), 0, 9, EX, true), 0, "a part below");
	ok_delegations(ring, 2, "2:EX[0-54] 1:EX[55-]", "is split off as well");
	ok_int(lock_now(ring, at(2, 2), 109, 109, EX, false), -EAGAIN, "what is held in the other's is refused");
	ok_int(lock_now(ring, at(1, 1), 100, 109, EX, true), 0, "for its owner has it still");
	(void)ring_free(ring);
}

/* Where uses meet, all of it goes; and a part is all that its node used, locks or not. */
static void test_parts_meet(void)
{
	struct ring *ring = ring_new(2, BELAY_STABLE_ALL, NULL);

	(void)lock_now(ring, at(1, 1), 0, 9, EX, true);
	unlock(ring, at(1, 1), 0, 9);
	(void)lock_now(ring, at(1, 1), 200, 209, EX, true);
	ok_int(lock_now(ring, at(2, 1), 100, 100, EX, true), 0, "between what a node has used");
	ok_delegations(ring, 2, "", "nothing is left to it");
	ok_int(lock_now(ring, at(2, 1), 205, 205, EX, false), -EAGAIN, "but what it holds is known");
	(void)ring_free(ring);

	ring = ring_new(2, BELAY_STABLE_ALL, NULL);
	(void)lock_now(ring, at(1, 1), 0, 9, EX, true);
	(void)lock_now(ring, at(1, 2), 20, 29, EX, true);
	(void)ring_lock(ring, at(1, 1), 1, 25, 200, EX, true, 1);	/* waits for client 2 */
	ok_int(lock_now(ring, at(2, 1), 100, 100, EX, true), 0, "where a wait reaches over");
	ok_delegations(ring, 2, "1:EX[0-19]", "what it waits for goes with it");
	unlock(ring, at(1, 2), 20, 29);
	ok_int(result(ring, 1), 1, "it waits for the new lock now");
	unlock(ring, at(2, 1), 100, 100);
	ok_int(result(ring, 1), 0, "and gets its range in the end");
	ok(ring_agree(ring), "the replicas agree");
	(void)ring_free(ring);
}

/* Between what is delegated and what is not, an owner's locks are apart, too. */
static void test_border(void)
{
	struct ring *ring = ring_new(2, BELAY_STABLE_ALL, NULL);

	(void)lock_now(ring, at(1, 1), 0, 9, EX, true);
	(void)ring_lock(ring, at(2, 1), 1, 100, 109, EX, true, 1);
	(void)ring_client_gone(ring, 2, 1);
	ring_pass(ring, 5 * MS);
	ok_delegations(ring, 2, "1:EX[0-54]", "who wanted the rest is gone, and nobody has it");
	ok_int(lock_now(ring, at(1, 1), 50, 54, EX, true), 0, "a lock below the border");
	ok_int(lock_now(ring, at(1, 1), 55, 60, EX, true), 0, "and next to it one above");
	ok_uint(pieces(ring, 1, at(1, 1)), 3, "do not merge, for the others know only one");
	ok_uint(pieces(ring, 2, at(1, 1)), 1, "the one above");
	ok_int(lock_now(ring, at(2, 2), 54, 54, SH, false), -EAGAIN, "both are respected");
	ok_int(lock_now(ring, at(2, 2), 55, 55, SH, false), -EAGAIN, "by others");
	ok(ring_agree(ring), "the replicas agree");
	(void)ring_free(ring);

	ring = ring_new(2, BELAY_STABLE_ALL, NULL);
	(void)lock_now(ring, at(1, 1), 0, 9, EX, true);
	(void)ring_lock(ring, at(2, 1), 1, 100, 109, EX, true, 1);
	(void)ring_client_gone(ring, 2, 1);
	ring_pass(ring, 5 * MS);
	(void)lock_now(ring, at(1, 1), 50, 54, EX, true);
	(void)lock_now(ring, at(1, 1), 55, 60, EX, true);
	ok_int(lock_now(ring, at(1, 1), 54, 56, SH, true), 0, "over the border the node's own part is in the way");
	ok_delegations(ring, 2, "", "so it goes");
	ok_uint(pieces(ring, 2, at(1, 1)), 4, "and all is known: before, below, within and above");
	unlock(ring, at(1, 1), 0, END);
	ok_uint(stats(ring, 1).locks + stats(ring, 2).locks, 0, "it is unlocked as one");
	ok(ring_agree(ring), "the replicas agree");
	(void)ring_free(ring);
}

static void test_unlock_over_border(void)
{
	struct ring *ring = ring_new(2, BELAY_STABLE_ALL, NULL);

	(void)lock_now(ring, at(1, 1), 0, 9, EX, true);
	(void)lock_now(ring, at(1, 1), 20, 29, EX, true);
	(void)ring_lock(ring, at(2, 1), 1, 200, 200, EX, true, 1);
	(void)ring_client_gone(ring, 2, 1);
	ring_pass(ring, 5 * MS);
	(void)lock_now(ring, at(1, 1), 300, 309, EX, true);
	ok_uint(pieces(ring, 2, at(1, 1)), 1, "set up: a lock outside of the part");
	unlock(ring, at(1, 1), 25, END);
	ok_uint(pieces(ring, 1, at(1, 1)), 2, "an unlock over the border");
	ok_uint(pieces(ring, 2, at(1, 1)), 0, "takes effect on both sides");
	ok_int(lock_now(ring, at(1, 2), 25, 29, EX, false), 0, "at once here");
	ok_int(lock_now(ring, at(2, 2), 300, 309, EX, false), 0, "and there for all");
	ok(ring_agree(ring), "the replicas agree");
	(void)ring_free(ring);
}

/* From RELINQ's sending on its part is as RELINQ says, whatever its node does beside it. */
static void test_while_given(void)
{
	struct ring *ring = ring_new(2, BELAY_STABLE_ALL, NULL);

	(void)lock_now(ring, at(1, 1), 0, 9, EX, true);
	(void)lock_now(ring, at(1, 2), 20, 29, EX, true);
	(void)ring_lock(ring, at(1, 1), 1, 25, 200, EX, true, 1);	/* waits for client 2 */
	(void)ring_lock(ring, at(2, 1), 1, 100, 100, EX, true, 2);
	(void)ring_deliver(ring);
	ok_delegations(ring, 2, "1:EX[0-]!", "RELINQ of all from 20 on is on its way");
	(void)ring_lock(ring, at(1, 2), 1, 15, 19, EX, false, 3);
	ok_int(result(ring, 3), 0, "the rest is its node's");
	ok_uint(pieces(ring, 1, at(1, 2)), 2, "a lock there merges with none that RELINQ lists");
	(void)ring_lock(ring, at(1, 3), 1, 15, 22, SH, false, 4);
	ok_int(result(ring, 4), 1, "what is given up has to be asked for");
	(void)ring_unlock(ring, at(1, 2), 1, 28, END);
	(void)ring_lock(ring, at(1, 3), 1, 28, 28, SH, false, 5);
	ok_int(result(ring, 5), 1, "and an unlock there comes behind the RELINQ");
	ring_pass(ring, 5 * MS);
	ok_delegations(ring, 2, "", "what was asked for has taken the rest as well");
	ok_int(result(ring, 2), 0, "node 2 has its lock");
	ok_int(result(ring, 4), -EAGAIN, "what was held is refused");
	ok_int(result(ring, 5), -EAGAIN, "so is what another waits for");
	ok_uint(pieces(ring, 2, at(1, 2)), 2, "node 2 knows both locks");
	(void)ring_client_gone(ring, 1, 1);
	ring_pass(ring, 5 * MS);
	ok_int(lock_now(ring, at(2, 2), 28, 29, EX, false), 0, "what was unlocked is free");
	ok_int(lock_now(ring, at(2, 2), 27, 27, EX, false), -EAGAIN, "what was not is held");
	ok_int(lock_now(ring, at(2, 2), 19, 19, EX, false), -EAGAIN, "so is its neighbour");
	ok(ring_agree(ring), "the replicas agree");
	(void)ring_free(ring);
}

/* What a node counts in private goes on where another node counts. */
static void test_tokens(void)
{
	struct ring *ring = ring_new(3, BELAY_STABLE_MAJORITY, NULL);
	struct ring_reply r = { 0 };
	uint64_t last;

	(void)lock_now(ring, at(1, 1), 0, 9, EX, true);
	for (unsigned k = 0; k < 1000; k++) {
		(void)ring_lock(ring, at(1, 2), 1, 10, 10, EX, true, NOW);
		r = ring_reply(ring, NOW);
		(void)ring_unlock(ring, at(1, 2), 1, 10, 10);
	}
	last = r.token;
	(void)ring_lock(ring, at(2, 1), 1, 10, 10, EX, true, NOW);
	ring_pass(ring, 5 * MS);
	r = ring_reply(ring, NOW);
	ok(r.answered && r.result == 0 && r.token > last, "behind a thousand that nobody else has seen");
	last = r.token;
	(void)ring_client_gone(ring, 1, 1);
	(void)ring_client_gone(ring, 2, 1);
	ring_pass(ring, 130000 * MS);
	(void)ring_lock(ring, at(3, 1), 1, 10, 10, EX, true, NOW);
	(void)ring_run(ring);
	r = ring_reply(ring, NOW);
	ok(r.answered && r.token > last, "and when the resource was forgotten");
	for (unsigned k = 0; k < 1000; k++) {
		last = r.token;
		(void)ring_unlock(ring, at(3, 1), 1, 10, 10);
		(void)ring_lock(ring, at(3, 1), 1, 10, 10, EX, true, NOW);
		r = ring_reply(ring, NOW);
	}
	ring_kill(ring, 3);
	(void)ring_fence(ring, 1, 3);
	ring_pass(ring, 5 * MS);
	(void)ring_lock(ring, at(1, 1), 1, 10, 10, EX, true, NOW);
	ring_pass(ring, 5 * MS);
	last = r.token;
	r = ring_reply(ring, NOW);
	ok(r.answered && r.token > last, "and when its node died with what it had counted");
	(void)ring_free(ring);
}

/* Two nodes that fight about nothing, on an arbitrated resource, each get their part. */
static void test_claim_of_parts(void)
{
	struct ring *ring = ring_new(2, BELAY_STABLE_ALL, NULL);
	unsigned k;

	share(ring, 1, 2, 1000);
	unlock(ring, at(1, 90), 1000, 1000);
	unlock(ring, at(2, 90), 1000, 1000);
	for (k = 0; k < 500 && stats(ring, 1).owned_here + stats(ring, 2).owned_here < 2; k++) {
		(void)lock_now(ring, at(1, 1), 0, 9, EX, true);
		(void)lock_now(ring, at(2, 1), 100, 109, EX, true);
		unlock(ring, at(1, 1), 0, 9);
		unlock(ring, at(2, 1), 100, 109);
	}
	ok(k < 500, "after %u locks each, of parts that lie apart", k);
	ok_delegations(ring, 2, "1:EX[0-54] 2:EX[55-]", "each node has claimed its own");
	ok_uint(stats(ring, 1).claims, 2, "by two claims");
	(void)ring_free(ring);
}

/* A claim is of what lies between others' locks, waits and parts. */
static void test_claim_between(void)
{
	struct ring *ring = ring_new(3, BELAY_STABLE_MAJORITY, NULL);
	unsigned n;

	share(ring, 2, 3, 1000);
	(void)lock_now(ring, at(3, 1), 50, 59, SH, true);
	n = claim(ring, at(1, 1), 10, 19, EX);
	ok(n != 0, "after %u requests in a row", n);
	ok_delegations(ring, 3, "1:EX[0-49]", "a node has the gap between the locks of others");
	ok_int(lock_now(ring, at(2, 1), 50, 59, SH, true), 0, "on the rest they go on");
	ok_delegations(ring, 3, "1:EX[0-49]", "and leave it alone");
	ok_int(lock_now(ring, at(1, 1), 45, 55, SH, true), 0, "where it reaches out it asks as others do");
	ok_delegations(ring, 3, "1:EX[0-31]", "and gives up what it has not used there");
	(void)ring_free(ring);
}

static void test_readers(void)
{
	struct ring *ring = ring_new(3, BELAY_STABLE_MAJORITY, NULL);
	unsigned before;

	(void)lock_now(ring, at(1, 1), 0, 9, SH, true);
	ok_int(lock_now(ring, at(2, 1), 5, 5, SH, true), 0, "a reader meets a reader's delegation");
	ok_delegations(ring, 3, "1:SH[0-]", "which becomes one for readers");
	ok_int((int)stats(ring, 3).resources[BELAY_STATE_SHARED], 1, "the resource is shared");
	ok_int(lock_now(ring, at(3, 1), 0, 100, SH, true), 0, "one more reader");
	ok_delegations(ring, 3, "1:SH[0-] 3:SH[0-]", "joins");
	ok_int(lock_now(ring, at(2, 2), 7, 7, SH, true), 0, "so does the first one");
	ok_delegations(ring, 3, "1:SH[0-] 2:SH[0-] 3:SH[0-]", "when it reads again");
	for (unsigned n = 1; n <= 3; n++)
		ok_uint(stats(ring, n).locks, n == 2 ? 2 : 1, "node %u needs to know its own locks only", n);

	before = messages(ring, 3);
	for (unsigned n = 1; n <= 3; n++) {
		ok_int(lock_now(ring, at(n, 2), 7 * n, 50, SH, false), 0, "node %u reads", n);
		unlock(ring, at(n, 2), 0, END);
		(void)ring_test(ring, at(n, 2), 1, 0, END, SH, NOW);
		ring_pass(ring, 5 * MS);
		ok(!ring_reply(ring, NOW).held, "and sees no writer");
	}
	ok_uint(messages(ring, 3) - before, 0, "without a message");

	(void)ring_lock(ring, at(2, 3), 1, 60, 70, EX, true, 1);
	ring_pass(ring, 5 * MS);
	ok_delegations(ring, 3, "", "a writer recalls all");
	ok_int(result(ring, 1), 1, "waits");
	ok_int(lock_now(ring, at(1, 2), 65, 65, SH, false), -EAGAIN, "keeps new readers out");
	unlock(ring, at(3, 1), 0, 100);
	ok_int(result(ring, 1), 0, "and writes when the last one has gone");
	ok(ring_agree(ring), "the replicas agree");
	(void)ring_free(ring);
}

/* Who has written, or wants to, is asked for all of it. */
static void test_writers_do_not_share(void)
{
	struct ring *ring = ring_new(2, BELAY_STABLE_ALL, NULL);

	(void)lock_now(ring, at(1, 1), 0, 9, EX, true);
	(void)lock_now(ring, at(1, 1), 0, 9, SH, true);
	ok_int(lock_now(ring, at(2, 1), 5, 5, SH, true), 0, "a reader meets who has written");
	ok_delegations(ring, 2, "", "and takes all");
	(void)ring_free(ring);

	ring = ring_new(2, BELAY_STABLE_ALL, NULL);
	(void)lock_now(ring, at(1, 1), 0, 9, SH, true);
	(void)ring_lock(ring, at(1, 2), 1, 0, 0, EX, true, 1);
	(void)ring_lock(ring, at(2, 1), 1, 5, 5, SH, true, 2);
	ring_pass(ring, 5 * MS);
	ok_delegations(ring, 2, "", "so it does where a writer waits");
	ok_int(result(ring, 2), 0, "whom it is not in the way of");
	ok_int(result(ring, 1), 1, "the writer waits on");
	unlock(ring, at(1, 1), 0, 9);
	ok_int(result(ring, 1), 0, "for the readers of its own byte");
	ok(ring_agree(ring), "the replicas agree");
	(void)ring_free(ring);
}

/* Without an owner, when all only read. */
static void test_readers_claim(void)
{
	struct ring *ring = ring_new(3, BELAY_STABLE_MAJORITY, NULL);
	unsigned k, before;

	share(ring, 1, 2, 1000);
	for (k = 0; k < 100 && stats(ring, 1).resources[BELAY_STATE_SHARED] == 0; k++)
		(void)lock_now(ring, at(1 + k % 3, 1), k, k, SH, true);
	ok(k >= 62 && k <= 66, "after %u locks of readers, about share_streak", k);
	for (unsigned n = 1; n <= 3; n++)
		(void)lock_now(ring, at(n, 2), 0, 9, SH, true);
	ok_delegations(ring, 3, "1:SH[0-] 2:SH[0-] 3:SH[0-]", "all nodes share it");
	before = messages(ring, 3);
	for (unsigned n = 1; n <= 3; n++)
		ok_int(lock_now(ring, at(n, 3), 5, 500, SH, true), 0, "node %u reads", n);
	ok_uint(messages(ring, 3) - before, 0, "without a message");
	ok_int(lock_now(ring, at(1, 2), 2000, 2000, EX, true), 0, "until somebody writes");
	ok_delegations(ring, 3, "", "then nobody does");
	(void)ring_free(ring);
}

/* Who leaves in disorder keeps his parts, and others theirs. */
static void test_left(void)
{
	struct ring *ring = ring_new(3, BELAY_STABLE_MAJORITY, NULL);

	(void)lock_now(ring, at(1, 1), 0, 9, EX, true);
	(void)lock_now(ring, at(2, 1), 100, 109, EX, true);
	ring_kill(ring, 1);
	ok_int(lock_now(ring, at(2, 2), 200, 209, EX, true), 0, "a part's node goes on when another is lost");
	(void)ring_lock(ring, at(3, 1), 1, 20, 20, EX, true, 1);
	ring_pass(ring, 1000 * MS);
	ok_int(result(ring, 1), 1, "what the lost one has stays its own, used or not");
	ok_int(lock_now(ring, at(3, 2), 20, 20, EX, false), -EAGAIN, "a try is answered");
	(void)ring_fence(ring, 2, 1);
	ring_pass(ring, 5 * MS);
	ok_int(result(ring, 1), 0, "until it is fenced");
	ok_int(lock_now(ring, at(3, 2), 100, 109, EX, false), -EAGAIN, "the others' locks are where they were");
	ok(ring_agree(ring), "the replicas agree");
	(void)ring_free(ring);
}

/* A test is answered by who knows, and costs nobody anything. */
static void test_tests(void)
{
	struct ring *ring = ring_new(3, BELAY_STABLE_MAJORITY, NULL);
	struct ring_reply r;

	(void)lock_now(ring, at(1, 1), 0, 9, EX, true);
	(void)lock_now(ring, at(2, 1), 100, 109, EX, true);
	(void)ring_test(ring, at(3, 1), 1, 0, 50, SH, 1);
	ring_pass(ring, 5 * MS);
	r = ring_reply(ring, 1);
	ok(r.answered && r.held && r.holder.node == 1 && r.range.end == 9, "what is held in a part");
	(void)ring_test(ring, at(3, 1), 1, 10, 50, SH, 1);
	ring_pass(ring, 5 * MS);
	r = ring_reply(ring, 1);
	ok(r.answered && !r.held, "what is not");
	ok_delegations(ring, 3, "1:EX[0-54] 2:EX[55-]", "is told, and no more");
	(void)ring_test(ring, at(3, 1), 1, 50, 200, SH, 1);
	ring_pass(ring, 5 * MS);
	r = ring_reply(ring, 1);
	ok(r.answered && r.held && r.holder.node == 2, "over the border both are asked to tell all");
	ok(ring_agree(ring), "the replicas agree");
	(void)ring_free(ring);
}

static void test_min_hold_and_idle(void)
{
	struct ring *ring = ring_new(2, BELAY_STABLE_ALL, NULL);

	(void)ring_lock(ring, at(1, 1), 1, 0, 9, EX, true, 1);
	(void)ring_run(ring);
	(void)ring_lock(ring, at(1, 2), 1, 10, 19, EX, true, 2);
	(void)ring_lock(ring, at(2, 1), 1, 10, 10, EX, true, 3);
	ring_pass(ring, 1 * MS);
	ok_delegations(ring, 2, "1:EX[0-]!", "what was fetched just now");
	ring_pass(ring, 2 * MS);
	ok_delegations(ring, 2, "", "is kept for a moment");
	(void)ring_client_gone(ring, 1, 1);
	(void)ring_client_gone(ring, 1, 2);
	(void)ring_client_gone(ring, 2, 1);
	ring_pass(ring, 130000 * MS);
	ok_uint(stats(ring, 1).resources[BELAY_STATE_ARB], 0, "what nobody uses is forgotten");

	(void)lock_now(ring, at(1, 1), 0, 9, EX, true);
	(void)lock_now(ring, at(2, 1), 100, 109, EX, true);
	unlock(ring, at(2, 1), 0, END);
	ring_pass(ring, 70000 * MS);
	ok_delegations(ring, 2, "1:EX[0-54]", "so is a part");
	unlock(ring, at(1, 1), 0, END);
	ring_pass(ring, 130000 * MS);
	ok_delegations(ring, 2, "", "and the last one");
	ok_uint(stats(ring, 2).resources[BELAY_STATE_ARB], 0, "and what is left then");
	(void)ring_free(ring);
}

/* Deadlocks over parts are found when waits make them known to all. */
static void test_deadlock(void)
{
	struct ring *ring = ring_new(3, BELAY_STABLE_MAJORITY, NULL);
	unsigned failed = 0, waiting = 0;

	for (unsigned n = 1; n <= 3; n++)
		(void)lock_now(ring, at(n, 1), 100 * n, 100 * n, EX, true);
	for (unsigned n = 1; n <= 3; n++)
		(void)ring_lock(ring, at(n, 1), 1, 100 * (n % 3 + 1), 100 * (n % 3 + 1), EX, true, n);
	ring_pass(ring, 500 * MS);
	for (unsigned n = 1; n <= 3; n++) {
		int r = result(ring, n);

		failed += r == -EDEADLK;
		waiting += r == 1;
	}
	ok(failed == 1 && waiting == 2, "of a circle through three nodes' parts one request fails");
	ok(ring_agree(ring), "the replicas agree");
	(void)ring_free(ring);
}

int main(void)
{
	test_parts();
	test_parts_below();
	test_parts_meet();
	test_border();
	test_unlock_over_border();
	test_while_given();
	test_tokens();
	test_claim_of_parts();
	test_claim_between();
	test_readers();
	test_writers_do_not_share();
	test_readers_claim();
	test_left();
	test_tests();
	test_min_hold_and_idle();
	test_deadlock();
	return done_testing();
}
