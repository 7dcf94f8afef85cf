/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * POSIX byte ranges against a model that cannot be wrong: an array of bytes,
 * each with its holders. Random locks, unlocks, tries and tests of a few owners,
 * on one node by its own authority and on three nodes by the order.
 */
#include "tests/tap.h"
#include "tests/unit/core_ring.h"

#define BYTES 48
#define OWNERS 5

struct model {
	int8_t mode[OWNERS][BYTES + 1];	/* -1 none; the last byte stands for all behind */
};

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static struct ring_who who_of(unsigned owner, unsigned nodes)
{
	return (struct ring_who){
		.node = 1 + owner % nodes,
		.client = 1 + owner,
		.kind = owner == 4 ? BELAY_KIND_OFD : BELAY_KIND_POSIX,
		.key = owner == 4 ? 7 : 0,
	};
}

/* First byte that another owner holds in conflict, or -1. */
static int conflict(const struct model *m, unsigned owner, unsigned start, unsigned end, int mode)
{
	for (unsigned b = start; b <= end; b++)
		for (unsigned o = 0; o < OWNERS; o++)
			if (o != owner && m->mode[o][b] >= 0 &&
			    (mode == BELAY_MODE_EX || m->mode[o][b] == BELAY_MODE_EX))
				return (int)b;
	return -1;
}

static void set(struct model *m, unsigned owner, unsigned start, unsigned end, int mode)
{
	for (unsigned b = start; b <= end; b++)
		m->mode[owner][b] = (int8_t)mode;
}

static uint64_t real_end(unsigned end)
{
	return end == BYTES ? BELAY_OFFSET_MAX : end;
}

/* How many separate ranges the model's locks make. */
static unsigned ranges(const struct model *m)
{
	unsigned count = 0;

	for (unsigned o = 0; o < OWNERS; o++)
		for (unsigned b = 0; b <= BYTES; b++)
			count += m->mode[o][b] >= 0 && (b == 0 || m->mode[o][b - 1] != m->mode[o][b]);
	return count;
}

/* Does this node know exactly the model's locks? All do, or the owner alone. */
static bool table_is(struct ring *ring, unsigned node, const struct model *m)
{
	struct belay_cursor cursor = { 0 };
	struct belay_lock_info info;
	unsigned seen = 0;

	while (belay_core_locks_next(ring_core(ring, node), &cursor, &info) == 1) {
		unsigned owner = info.owner.client - 1;
		unsigned end = info.range.end > BYTES ? BYTES : (unsigned)info.range.end;

		seen++;
		for (unsigned b = (unsigned)info.range.start; b <= end; b++)
			if (m->mode[owner][b] != (int8_t)info.mode)
				return false;
	}
	return seen == ranges(m);
}

static bool some_table_is(struct ring *ring, unsigned nodes, const struct model *m)
{
	for (unsigned i = 1; i <= nodes; i++)
		if (table_is(ring, i, m))
			return true;
	return false;
}

static bool one_op(struct ring *ring, struct model *m, uint64_t *random, unsigned nodes)
{
	unsigned owner = (unsigned)(next_random(random) % OWNERS);
	unsigned start = (unsigned)(next_random(random) % (BYTES + 1));
	unsigned length = (unsigned)(next_random(random) % 12);
	unsigned end = next_random(random) % 8 == 0 || start + length > BYTES ? BYTES : start + length;
	enum belay_mode mode = next_random(random) % 2 ? BELAY_MODE_EX : BELAY_MODE_SH;
	struct ring_who who = who_of(owner, nodes);
	int busy = conflict(m, owner, start, end, mode);
	struct ring_reply reply;

	switch (next_random(random) % 4) {
	case 0:
		(void)ring_unlock(ring, who, 1, start, real_end(end));
		set(m, owner, start, end, -1);
		ring_pass(ring, 3000);
		return true;
	case 1:
		(void)ring_test(ring, who, 1, start, real_end(end), mode, 1);
		ring_pass(ring, 3000);
		reply = ring_reply(ring, 1);
		return reply.answered && reply.result == 0 && reply.held == (busy >= 0) &&
		       (busy < 0 ||
			(reply.range.start <= (uint64_t)busy && reply.range.end >= (uint64_t)busy));
	default:
		(void)ring_lock(ring, who, 1, start, real_end(end), mode, false, 1);
		ring_pass(ring, 3000);
		reply = ring_reply(ring, 1);
		if (busy < 0)
			set(m, owner, start, end, mode);
		return reply.answered && reply.result == (busy < 0 ? 0 : -EAGAIN);
	}
}

static bool differential(unsigned nodes, uint64_t seed, unsigned count)
{
	struct ring *ring = ring_new(nodes, BELAY_STABLE_MAJORITY, NULL);
	struct model *m = malloc(sizeof(*m));
	bool good = true;

	memset(m, -1, sizeof(*m));
	for (unsigned k = 0; good && k < count; k++) {
		good = one_op(ring, m, &seed, nodes) && ring_agree(ring) && some_table_is(ring, nodes, m);
		if (!good)
			diag("differs at operation %u", k);
	}
	(void)ring_free(ring);
	free(m);
	return good;
}

int main(void)
{
	bool alone = true, three = true;

	for (uint64_t seed = 1; seed <= 20; seed++) {
		alone &= differential(1, seed * 7919, 1500);
		three &= differential(3, seed * 104729, 500);
	}
	ok(alone, "30,000 operations by own authority answer as an array of bytes does");
	ok(three, "10,000 operations by the order answer as an array of bytes does, on all nodes");
	return done_testing();
}
