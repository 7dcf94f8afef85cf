/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * At the limits: whoever asks for more is refused, by -ENOLCK, and that is all.
 * No node takes a full table for a broken one, and the replicas stay alike; also
 * where a search is cut short, and where a node was configured otherwise.
 */
#include "tests/tap.h"
#include "tests/unit/core_ring.h"

#define SH BELAY_MODE_SH
#define EX BELAY_MODE_EX
#define MS 1000
#define NOW 4000	/* cookie of a request whose answer is looked at right away */

/* Clients of file locks: a key is an open file, and none takes part in deadlocks. */
static struct ring_who ofd(unsigned node, uint32_t client, uint64_t key)
{
	return (struct ring_who){ node, client, key, BELAY_KIND_OFD };
}

static struct ring_who posix(unsigned node, uint32_t client)
{
	return (struct ring_who){ .node = node, .client = client };
}

/* The answer to a cookie: its result, or 1 if there is none yet. */
static int result(struct ring *ring, uint64_t cookie)
{
	struct ring_reply r = ring_reply(ring, cookie);

	return r.answered ? r.result : 1;
}

static int lock_now(struct ring *ring, struct ring_who who, unsigned resource, uint64_t start,
		    enum belay_mode mode, bool wait)
{
	(void)ring_lock(ring, who, resource, start, start, mode, wait, NOW);
	ring_pass(ring, 5 * MS);
	return result(ring, NOW);
}

/*
 * Two nodes read one byte, which the first has written to: the resource is arbitrated.
 * It is far off what tests lock.
 */
static void share(struct ring *ring, struct ring_who first, struct ring_who second, unsigned resource)
{
	int a = lock_now(ring, first, resource, 1000000, EX, false);
	int b = lock_now(ring, first, resource, 1000000, SH, false);
	int c = lock_now(ring, second, resource, 1000000, SH, false);

	if (a != 0 || b != 0 || c != 0)
		ok(false, "set up: resource %u is shared (%d, %d, %d)", resource, a, b, c);
}

static struct belay_limits limited(uint32_t resources, uint32_t locks, uint32_t waiters, uint32_t own)
{
	return (struct belay_limits){
		.resources_max = resources,
		.locks_max = locks,
		.waiters_max = waiters,
		.locks_per_owner_max = own,
	};
}

struct tally {
	unsigned granted, refused, other, silent;
};

static struct tally count(struct ring *ring, uint64_t first, unsigned n)
{
	struct tally t = { 0 };

	for (uint64_t cookie = first; cookie < first + n; cookie++) {
		struct ring_reply r = ring_reply(ring, cookie);

		t.silent += !r.answered;
		t.granted += r.answered && r.result == 0;
		t.refused += r.answered && r.result == -ENOLCK;
		t.other += r.answered && r.result != 0 && r.result != -ENOLCK;
	}
	return t;
}

static void ok_alike(struct ring *ring, unsigned n)
{
	unsigned isolated = 0;

	for (unsigned i = 1; i <= n; i++) {
		if (ring_isolated(ring, i) == NULL)
			continue;
		isolated++;
		diag("node %u isolated: %s", i, ring_isolated(ring, i));
	}
	ok_uint(isolated, 0, "no node isolates");
	ok(ring_agree(ring), "the replicas agree");
}

static struct belay_stats stats(struct ring *ring, unsigned node)
{
	struct belay_stats s;

	belay_core_stats(ring_core(ring, node), &s);
	return s;
}

/* Local waits get replicated after a while, and nobody can refuse them any more. */
static void test_published_waits(void)
{
	enum { NODES = 5, EACH = 62 };
	struct belay_limits limits = limited(64, 4096, 16, 1024);
	struct belay_core_config config = ring_config(NODES, BELAY_STABLE_MAJORITY, &limits);
	struct ring *ring;
	struct tally t;

	config.requests_max = EACH + 2;
	ring = ring_new_with(&config);
	for (unsigned n = 1; n <= NODES; n++) {
		(void)lock_now(ring, ofd(n, 1, 0), n, 0, EX, false);
		for (unsigned k = 0; k < EACH; k++)
			(void)ring_lock(ring, ofd(n, 2, k), n, 0, 0, SH, true, n * EACH + k);
	}
	ring_pass(ring, 500 * MS);
	ok_uint(stats(ring, 1).waiters_replicated, NODES * EACH, "all know the waits of all, above waiters_max");
	ok_alike(ring, NODES);
	ok_int(lock_now(ring, ofd(2, 3, 0), 1, 0, SH, true), -ENOLCK, "one more wait is refused");
	for (unsigned n = 1; n <= NODES; n++)
		(void)ring_client_gone(ring, n, 1);
	ring_pass(ring, 500 * MS);
	t = count(ring, EACH, NODES * EACH);
	ok_uint(t.granted, NODES * EACH, "each gets its lock when its turn comes");
	ok_alike(ring, NODES);
	(void)ring_free(ring);
}

enum { CLAIM_NODES = 3, CLAIM_LOCKS = 240, CLAIM_STREAK = 8, CLAIMABLE = 14, OTHERS = 40 };

static struct ring *claim_ring(void)
{
	struct belay_limits limits = limited(64, CLAIM_LOCKS, 16, 1024);
	struct belay_core_config config = ring_config(CLAIM_NODES, BELAY_STABLE_MAJORITY, &limits);

	config.claim_streak = CLAIM_STREAK;
	return ring_new_with(&config);
}

/* A resource that node 1 uses alone, one request before it may claim it. */
static void use_alone(struct ring *ring, unsigned resource)
{
	share(ring, ofd(2, 1, 0), ofd(1, 1, 0), resource);
	(void)ring_unlock(ring, ofd(2, 1, 0), resource, 0, BELAY_OFFSET_MAX);
	ring_pass(ring, 5 * MS);
	/* Twice the streak, for the first owner did not have it for long. */
	for (unsigned k = 0; k < 2 * CLAIM_STREAK - 1; k++)
		(void)lock_now(ring, ofd(1, 1, 0), resource, 2 * k, EX, false);
}

static void ok_claims(struct ring *ring)
{
	struct belay_stats s = stats(ring, 1);

	ok(s.claims > 0, "node 1 owns what it uses alone");
	ok(s.locks - s.locks_replicated <= CLAIM_LOCKS / 4 * 3 / CLAIM_NODES,
	   "but not more than its share: %u locks", s.locks - s.locks_replicated);
}

/* The table was full of what node 1 then claimed: others fill it again, and call it back. */
static void fill_and_recall(struct ring *ring)
{
	unsigned owned = stats(ring, 1).owned_here;
	struct tally t;

	share(ring, ofd(2, 1, 0), ofd(3, 1, 0), OTHERS);
	for (unsigned k = 0; k < CLAIM_LOCKS; k++)
		(void)ring_lock(ring, ofd(2 + k % 2, 1, 0), OTHERS, 2 * k, 2 * k, EX, false, k);
	ring_pass(ring, 50 * MS);
	t = count(ring, 0, CLAIM_LOCKS);
	ok(t.granted > 0 && t.refused > 0 && t.other == 0 && t.silent == 0,
	   "others take what is left: %u granted, %u refused", t.granted, t.refused);
	ok_alike(ring, CLAIM_NODES);
	for (unsigned r = 0; r < CLAIMABLE; r++)
		(void)ring_lock(ring, ofd(3, 1, 0), r, 1, 1, EX, true, r);
	ring_pass(ring, 50 * MS);
	t = count(ring, 0, CLAIMABLE);
	ok_uint(t.refused, CLAIMABLE - owned, "and no more, of what is everybody's");
	ok_uint(t.granted, owned, "who has waited for node 1 to be called back has a place");
	ok_uint(stats(ring, 1).owned_here, 0, "which it is from everywhere");
	ok_alike(ring, CLAIM_NODES);
}

static void test_claims_one_by_one(void)
{
	struct ring *ring = claim_ring();

	for (unsigned r = 0; r < CLAIMABLE; r++) {
		use_alone(ring, r);
		(void)lock_now(ring, ofd(1, 1, 0), r, 1000, EX, false);
	}
	ok_claims(ring);
	fill_and_recall(ring);
	(void)ring_free(ring);
}

static void test_claims_at_once(void)
{
	struct ring *ring = claim_ring();

	for (unsigned r = 0; r < CLAIMABLE; r++)
		use_alone(ring, r);
	for (unsigned r = 0; r < CLAIMABLE; r++)
		(void)ring_lock(ring, ofd(1, 1, 0), r, 1000, 1000, EX, false, r);
	ring_pass(ring, 50 * MS);
	ok_uint(count(ring, 0, CLAIMABLE).silent, 0, "requests on many resources at once are answered");
	ok_claims(ring);
	fill_and_recall(ring);
	(void)ring_free(ring);
}

/* What names a resource that cannot be had takes a place until it is refused. */
static void test_resources(void)
{
	enum { RESOURCES = 16, REQUESTS = 16 };
	struct belay_limits limits = limited(RESOURCES, 4096, 64, 1024);
	struct belay_core_config config = ring_config(3, BELAY_STABLE_MAJORITY, &limits);
	struct ring *ring;

	config.requests_max = REQUESTS;
	ring = ring_new_with(&config);
	for (unsigned r = 0; r < RESOURCES; r++)
		(void)ring_lock(ring, ofd(3, 1, 0), r, 0, 0, EX, true, r);
	(void)ring_run(ring);
	ok_uint(count(ring, 0, RESOURCES).granted, RESOURCES, "as many resources as there may be");
	(void)ring_lock(ring, ofd(2, 1, 0), 100, 0, 0, EX, true, 0);
	for (unsigned k = 0; k < REQUESTS; k++)
		(void)ring_lock(ring, ofd(1, 1, 0), 101 + k, 0, 0, EX, true, 1 + k);
	ring_pass(ring, 5 * MS);
	ok_uint(count(ring, 0, 1 + REQUESTS).refused, 1 + REQUESTS, "as many requests for others are refused");
	ok_alike(ring, 3);
	ok_int(lock_now(ring, ofd(1, 1, 0), 0, 9, EX, true), 0, "what is there can be used");
	ok_alike(ring, 3);
	(void)ring_free(ring);
}

/* Each lock has an owner of its own, and a client. */
static void test_owners(void)
{
	enum { LOCKS = 400 };
	struct belay_limits limits = limited(8, LOCKS, 4, 1024);
	struct belay_core_config config = ring_config(3, BELAY_STABLE_MAJORITY, &limits);
	struct ring *ring;
	struct tally t = { 0 };

	config.requests_max = 4;
	ring = ring_new_with(&config);
	share(ring, ofd(2, 1, 0), ofd(3, 1, 0), 1);
	for (unsigned k = 0; k < LOCKS + 9; k++) {
		int r = lock_now(ring, ofd(1 + k % 3, 2 + k, k), 1, 2 * k, EX, true);

		t.granted += r == 0;
		t.refused += r == -ENOLCK;
	}
	/* A request may need two, by a split; two are held by those who share. */
	ok_uint(t.granted, LOCKS - 3, "each lock an owner's only one, up to locks_max");
	ok_uint(t.refused, 12, "then all are refused");
	ok_alike(ring, 3);
	ring_kill(ring, 3);
	ring_start(ring, 3);
	ring_pass(ring, 5 * MS);
	ok(stats(ring, 3).synced, "a node that joins loads a full table");
	ok_alike(ring, 3);
	(void)ring_free(ring);
}

enum { FULL_NODES = 3, FULL_LOCKS = 1200, FULL_STREAK = 32 };

/* Locks of as many owners, until one is refused; returns how many there are then. */
static unsigned take(struct ring *ring, unsigned node, unsigned resource, unsigned first, unsigned n)
{
	for (unsigned k = first; k < first + n; k++) {
		(void)ring_lock(ring, ofd(node, 2 + k, k), resource, 2 * k, 2 * k, EX, false, NOW);
		(void)ring_run(ring);
		if (result(ring, NOW) != 0)
			return k - first;
	}
	return n;
}

/* As many private locks as a node can get: it goes on to grant while its claim is on the way. */
static unsigned take_private(struct ring *ring, unsigned node)
{
	unsigned claimed = node, owned = 10 + node, other = node % FULL_NODES + 1;
	unsigned n = 2 * FULL_STREAK - 1;

	share(ring, ofd(node, 1, 0), ofd(other, 1, 0), claimed);
	(void)ring_unlock(ring, ofd(other, 1, 0), claimed, 0, BELAY_OFFSET_MAX);
	if (take(ring, node, claimed, 0, n) != n || take(ring, node, owned, 0, 1) != 1)
		ok(false, "set up: locks of node %u", node);
	(void)ring_lock(ring, ofd(node, 1, 0), claimed, 1, 1, EX, false, 1);
	(void)ring_deliver(ring);	/* it meets with a CLAIM now, which nobody has yet */
	for (unsigned k = 1; k < FULL_LOCKS; k++) {
		(void)ring_lock(ring, ofd(node, 2 + k, k), owned, 2 * k, 2 * k, EX, false, NOW);
		if (result(ring, NOW) != 0)
			break;
	}
	(void)ring_run(ring);
	ok_int(result(ring, 1), 0, "node %u has the last of a streak", node);
	ok_uint(stats(ring, node).owned_here, 2, "and owns that resource, too");
	return stats(ring, node).locks - stats(ring, node).locks_replicated;
}

/* The table is full, and then all nodes have to publish what they had in private. */
static void test_all_published(void)
{
	struct belay_limits limits = limited(64, FULL_LOCKS, 16, 1024);
	struct belay_core_config config = ring_config(FULL_NODES, BELAY_STABLE_MAJORITY, &limits);
	unsigned held = 0;
	struct ring *ring;

	config.claim_streak = FULL_STREAK;
	config.requests_max = 16;
	ring = ring_new_with(&config);
	share(ring, ofd(1, 1, 0), ofd(2, 1, 0), OTHERS);
	for (unsigned n = 1; n <= FULL_NODES; n++)
		held += take_private(ring, n);
	ok(held > FULL_LOCKS / 2, "claims and local grants add up: %u private locks", held);
	held += 2 + take(ring, 1, OTHERS, 0, FULL_LOCKS);
	for (unsigned n = 1; n <= FULL_NODES; n++) {
		unsigned other = n % FULL_NODES + 1;

		(void)ring_lock(ring, ofd(other, 1, 0), n, 5, 5, EX, true, 2 * n);
		(void)ring_lock(ring, ofd(other, 1, 0), 10 + n, 5, 5, EX, true, 2 * n + 1);
	}
	ring_pass(ring, 50 * MS);
	ok_uint(count(ring, 2, 2 * FULL_NODES).granted, 2 * FULL_NODES, "called back by who had to wait for that");
	ok_uint(stats(ring, 1).locks_replicated, held + 2 * FULL_NODES,
		"all know all locks, far above locks_max");
	ok_alike(ring, FULL_NODES);
	ring_kill(ring, 3);
	ring_start(ring, 3);
	ring_pass(ring, 5 * MS);
	ok(stats(ring, 3).synced, "a node that joins loads them");
	ok_alike(ring, FULL_NODES);
	(void)ring_free(ring);
}

/* A node's own requests are its own affair: refused before anything is sent. */
static void test_requests(void)
{
	enum { REQUESTS = 8 };
	struct belay_core_config config = ring_config(2, BELAY_STABLE_ALL, NULL);
	struct ring *ring;
	unsigned frames, taken = 0;

	config.requests_max = REQUESTS;
	ring = ring_new_with(&config);
	share(ring, ofd(1, 1, 0), ofd(2, 1, 0), 1);
	(void)lock_now(ring, ofd(1, 1, 0), 1, 0, EX, false);
	for (unsigned k = 0; k < REQUESTS; k++)
		taken += ring_lock(ring, ofd(1, 2, k), 1, 0, 0, SH, true, k) == 0;
	ok_uint(taken, REQUESTS, "a node may have requests_max requests");
	frames = ring_frames(ring, 1);
	ok_int(ring_lock(ring, ofd(1, 3, 0), 2, 0, 0, SH, true, 200), -ENOLCK, "not one more, of whatever");
	ok_uint(ring_frames(ring, 1), frames, "which nobody else hears of");
	ring_pass(ring, 5 * MS);
	ok_int(ring_lock(ring, ofd(1, 3, 0), 2, 0, 0, SH, true, 201), -ENOLCK,
	       "neither when they wait in a queue");
	taken = 0;
	for (unsigned k = 0; k < REQUESTS; k++)
		taken += ring_lock(ring, ofd(2, 2, k), 1, 0, 0, SH, true, 100 + k) == 0;
	ok_uint(taken, REQUESTS, "nor do they count on another node");
	(void)ring_cancel(ring, ofd(1, 2, 0), 0);
	ring_pass(ring, 5 * MS);
	ok_int(result(ring, 0), -EINTR, "one gives up");
	ok_int(lock_now(ring, ofd(1, 3, 0), 2, 0, SH, true), 0, "and another has its place");
	(void)ring_unlock(ring, ofd(1, 1, 0), 1, 0, 0);
	ring_pass(ring, 5 * MS);
	ok(count(ring, 1, REQUESTS - 1).granted == REQUESTS - 1 &&
	   count(ring, 100, REQUESTS).granted == REQUESTS, "all that were taken are answered");
	ok_alike(ring, 2);
	(void)ring_free(ring);
}

/*
 * A search for deadlocks has its end, too: where it ends early, a circle stays
 * unnoticed, but by all alike. A process waits in two threads; one wait leads to
 * more locks than are looked at and was first known to its own node only, so it
 * stands elsewhere in that node's lists; the other one closes the circle.
 */
static void test_search_cut_short(unsigned node)
{
	enum { FAR = 12000 };	/* more than the edges that are followed */
	struct belay_limits limits = limited(64, 90000, 256, 20000);
	struct ring *ring = ring_new(3, BELAY_STABLE_MAJORITY, &limits);
	struct ring_who waits = posix(node, 1), far = posix(node, 2), circle = posix(3 - node, 5);
	unsigned granted = 0;

	share(ring, circle, posix(3, 9), 2);
	share(ring, waits, posix(3, 9), 3);
	(void)lock_now(ring, circle, 2, 0, EX, false);
	(void)lock_now(ring, waits, 3, 0, EX, false);
	for (unsigned k = 0; k < FAR; k++) {
		(void)ring_lock(ring, far, 1, 2 * k, 2 * k, EX, false, NOW);
		(void)ring_run(ring);
		granted += result(ring, NOW) == 0;
	}
	ok_uint(granted, FAR, "set up: node %u owns many locks", node);
	(void)ring_lock(ring, waits, 1, 0, BELAY_OFFSET_MAX, EX, true, 1);
	(void)ring_lock(ring, waits, 2, 0, 0, EX, true, 2);
	ring_pass(ring, 400 * MS);
	ok_alike(ring, 3);
	(void)ring_lock(ring, circle, 3, 0, 0, EX, true, 3);
	ring_pass(ring, 20 * MS);
	ok_int(result(ring, 3), 1, "a circle behind too many locks is not found");
	ok_alike(ring, 3);
	(void)ring_unlock(ring, waits, 3, 0, 0);
	ring_pass(ring, 20 * MS);
	ok_int(result(ring, 3), 0, "what is released is the other's");
	for (unsigned n = 1; n <= 3; n++) {
		(void)ring_lock(ring, posix(n, 20), 3, 0, 0, SH, false, 10 + n);
		ring_pass(ring, 20 * MS);
		ok_int(result(ring, 10 + n), -EAGAIN, "as node %u sees it, too", n);
	}
	(void)ring_client_gone(ring, 3 - node, 5);
	(void)ring_client_gone(ring, node, 2);
	ring_pass(ring, 20 * MS);
	ok(result(ring, 1) == 0 && result(ring, 2) == 0, "all waits are answered in the end");
	ok_alike(ring, 3);
	(void)ring_free(ring);
}

static void other_streak(struct belay_core_config *config)
{
	config->claim_streak *= 2;
}

static void other_requests(struct belay_core_config *config)
{
	config->requests_max++;
}

static void other_nodes(struct belay_core_config *config)
{
	config->node[config->node_count++] = 9;
}

static void strange_node(struct belay_core_config *config)
{
	config->node[1] = 9;
}

static void other_quorum(struct belay_core_config *config)
{
	config->stability = BELAY_STABLE_ALL;
}

struct difference {
	const char *key;		/* the reason names it */
	void (*make)(struct belay_core_config *config);
};

static bool names(const char *reason, const char *key)
{
	return reason != NULL && strstr(reason, key) != NULL;
}

/* Who comes with other rules does not take part; who was there does not mind. */
static void test_joins_with(const struct difference *d)
{
	struct ring *ring = ring_new(3, BELAY_STABLE_MAJORITY, NULL);
	struct belay_core_config right = *ring_node_config(ring, 3);

	share(ring, ofd(1, 1, 0), ofd(2, 1, 0), 1);
	ring_kill(ring, 3);
	d->make(ring_node_config(ring, 3));
	ring_start(ring, 3);
	ring_pass(ring, 5 * MS);
	ok(names(ring_isolated(ring, 3), d->key), "who joins with another %s isolates, and says so", d->key);
	ok(!stats(ring, 3).synced, "it has no state");
	ok_int(lock_now(ring, ofd(1, 2, 0), 1, 0, EX, true), 0, "node 1 goes on");
	ok_int(lock_now(ring, ofd(2, 2, 0), 1, 0, EX, false), -EAGAIN, "node 2 goes on");
	ok_int(lock_now(ring, ofd(2, 2, 0), 1, 1, EX, true), 0, "and gets what is free");
	ok_alike(ring, 2);
	ring_kill(ring, 3);
	*ring_node_config(ring, 3) = right;
	ring_start(ring, 3);
	ring_pass(ring, 5 * MS);
	ok(stats(ring, 3).synced, "set right, it joins");
	ok_int(lock_now(ring, ofd(3, 1, 0), 1, 2, EX, true), 0, "and locks");
	ok_alike(ring, 3);
	(void)ring_free(ring);
}

/* Where nobody has state, the lower id's rules count. */
static void test_starts_with(const struct difference *d)
{
	struct ring *ring = ring_new(2, BELAY_STABLE_MAJORITY, NULL);

	ring_kill(ring, 1);
	ring_kill(ring, 2);
	d->make(ring_node_config(ring, 2));
	ring_start(ring, 1);
	ring_start(ring, 2);
	ring_pass(ring, 5 * MS);
	ok(names(ring_isolated(ring, 2), d->key), "of two that start with another %s, the higher id isolates", d->key);
	ok(ring_isolated(ring, 1) == NULL, "the lower does not");
	ok(!stats(ring, 1).synced && !stats(ring, 2).synced, "and neither serves");
	(void)ring_free(ring);
}

static void test_differences(void)
{
	const struct difference all[] = {
		{ "claim_streak", other_streak },
		{ "requests_max", other_requests },
		{ "nodelist", other_nodes },
		{ "quorum options", other_quorum },
	};

	const struct difference strange = { "nodelist", strange_node };

	test_joins_with(&strange);
	for (unsigned k = 0; k < sizeof(all) / sizeof(*all); k++) {
		test_joins_with(&all[k]);
		test_starts_with(&all[k]);
	}
}

int main(void)
{
	test_published_waits();
	test_claims_one_by_one();
	test_claims_at_once();
	test_resources();
	test_owners();
	test_all_published();
	test_requests();
	test_search_cut_short(1);
	test_search_cut_short(2);
	test_differences();
	return done_testing();
}
