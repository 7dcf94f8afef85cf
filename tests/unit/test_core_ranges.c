/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * POSIX byte ranges against a model that cannot be wrong: an array of bytes,
 * each with its holders. Random locks, unlocks, tries and tests of a few owners,
 * on one node by its own authority, on three nodes that take ranges from each other, and
 * by clients that have ranges on loan.
 */
#include "tests/tap.h"
#include "tests/unit/core_ring.h"

#define BYTES 48
#define OWNERS 5

struct run {
	unsigned nodes;
	bool apart;	/* owners mostly keep to their own parts */
	bool loans;	/* and each owner works for a while, so that it gets one */
	uint64_t random;
	unsigned owner;
	unsigned in_loans;	/* operations that no core saw */
};

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

static unsigned model_end(uint64_t end)
{
	return end > BYTES ? BYTES : (unsigned)end;
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

/*
 * What a node knows of the locks: of its own owners' all, of others' what all know. Adds
 * the former to @own; false if anything is not so in the model.
 */
static bool table_is_part_of(struct ring *ring, unsigned node, const struct model *m, struct model *own,
			     unsigned *pieces)
{
	struct belay_cursor cursor = { 0 };
	struct belay_lock_info info;

	while (belay_core_locks_next(ring_core(ring, node), &cursor, &info) == 1) {
		unsigned owner = info.owner.client - 1;
		unsigned end = model_end(info.range.end);

		for (unsigned b = (unsigned)info.range.start; b <= end; b++)
			if (m->mode[owner][b] != (int8_t)info.mode)
				return false;
		if (info.owner.node != node)
			continue;
		set(own, owner, (unsigned)info.range.start, end, (int)info.mode);
		(*pieces)++;
	}
	return true;
}

/* The nodes, and clients with loans, together know exactly the model's locks; in one piece
 * each, where one knows all. */
static bool tables_are(struct ring *ring, const struct run *run, const struct model *m)
{
	unsigned pieces = 0;
	struct model own;

	memset(&own, -1, sizeof(own));
	for (unsigned i = 1; i <= run->nodes; i++)
		if (!table_is_part_of(ring, i, m, &own, &pieces))
			return false;
	for (unsigned i = 1; i <= ring_loans(ring); i++) {
		const struct ring_loan *l = ring_loan(ring, i);

		for (unsigned k = 0; l->live && k < l->count; k++)
			set(&own, l->client - 1, (unsigned)l->held[k].range.start,
			    model_end(l->held[k].range.end), (int)l->held[k].mode);
	}
	return memcmp(&own, m, sizeof(own)) == 0 &&
	       (run->nodes > 1 || run->loans || pieces == ranges(m));
}

static struct ring_loan *loan_of(struct ring *ring, struct ring_who who, unsigned start, unsigned end)
{
	for (unsigned i = 1; i <= ring_loans(ring); i++) {
		struct ring_loan *l = ring_loan(ring, i);

		if (l->live && l->client == who.client && l->range.start <= start &&
		    l->range.end >= real_end(end))
			return l;
	}
	return NULL;
}

/* The client's locks in its loan are what the model says. */
static void refresh_loan(struct ring_loan *l, const struct model *m, struct ring_who who, unsigned owner)
{
	unsigned last = model_end(l->range.end);

	l->count = 0;
	for (unsigned b = (unsigned)l->range.start; b <= last; b++) {
		unsigned start = b;

		while (b < last && m->mode[owner][b + 1] == m->mode[owner][start])
			b++;
		if (m->mode[owner][start] >= 0)
			ring_loan_lock(l, who, start, real_end(b), (enum belay_mode)m->mode[owner][start]);
	}
}

struct op {
	unsigned owner, start, end;
	enum belay_mode mode;
	unsigned what;		/* 0 unlock, 1 test, else try */
};

static struct op random_op(struct run *run)
{
	uint64_t *random = &run->random;
	unsigned owner = run->owner;
	unsigned start = (unsigned)(next_random(random) % (BYTES + 1));
	unsigned length = (unsigned)(next_random(random) % 12);
	bool far = next_random(random) % 8 == 0;

	if (run->apart && next_random(random) % 16 != 0) {
		start = owner * BYTES / OWNERS + start % (BYTES / OWNERS);
		length %= 1 + (owner + 1) * BYTES / OWNERS - start;
		far = false;
	}
	return (struct op){
		.owner = owner,
		.start = start,
		.end = far || start + length > BYTES ? BYTES : start + length,
		.mode = next_random(random) % 2 ? BELAY_MODE_EX : BELAY_MODE_SH,
		.what = (unsigned)(next_random(random) % 4),
	};
}

/* By the client itself, which decides rightly only if what it was lent is in nobody's way. */
static bool op_in_loan(struct ring_loan *l, struct model *m, const struct op *op, struct ring_who who)
{
	if (op->what == 0)
		set(m, op->owner, op->start, op->end, -1);
	else if (conflict(m, op->owner, op->start, op->end, op->mode) >= 0)
		return false;
	else if (op->what > 1)
		set(m, op->owner, op->start, op->end, (int)op->mode);
	refresh_loan(l, m, who, op->owner);
	return true;
}

static bool op_by_core(struct ring *ring, const struct run *run, struct model *m, const struct op *op,
		       struct ring_who who)
{
	int busy = conflict(m, op->owner, op->start, op->end, op->mode);
	struct ring_reply reply;

	switch (op->what) {
	case 0:
		(void)ring_unlock(ring, who, 1, op->start, real_end(op->end));
		set(m, op->owner, op->start, op->end, -1);
		ring_pass(ring, 3000);
		return true;
	case 1:
		(void)ring_test(ring, who, 1, op->start, real_end(op->end), op->mode, 1);
		ring_pass(ring, 3000);
		reply = ring_reply(ring, 1);
		return reply.answered && reply.result == 0 && reply.held == (busy >= 0) &&
		       (busy < 0 ||
			(reply.range.start <= (uint64_t)busy && reply.range.end >= (uint64_t)busy));
	default:
		(void)(run->loans ? ring_lock_lend : ring_lock)(ring, who, 1, op->start, real_end(op->end),
								op->mode, false, 1);
		ring_pass(ring, 3000);
		reply = ring_reply(ring, 1);
		if (busy < 0)
			set(m, op->owner, op->start, op->end, (int)op->mode);
		return reply.answered && reply.result == (busy < 0 ? 0 : -EAGAIN);
	}
}

/* Another owner's turn. With loans, what was used before then is out of its way. */
static void next_owner(struct ring *ring, struct run *run, struct model *m)
{
	struct op op = { .owner = run->owner, .end = BYTES };

	if (run->loans && next_random(&run->random) % 32 != 0)
		return;
	if (run->loans && next_random(&run->random) % 2 == 0)
		(void)op_by_core(ring, run, m, &op, who_of(op.owner, run->nodes));
	if (run->loans)
		ring_pass(ring, 120000);
	run->owner = (unsigned)(next_random(&run->random) % OWNERS);
}

static bool one_op(struct ring *ring, struct run *run, struct model *m)
{
	struct ring_who who;
	struct ring_loan *l;
	struct op op;

	next_owner(ring, run, m);
	op = random_op(run);
	who = who_of(op.owner, run->nodes);
	l = loan_of(ring, who, op.start, op.end);
	if (l == NULL || l->mode < op.mode || next_random(&run->random) % 8 == 0)
		return op_by_core(ring, run, m, &op, who);
	run->in_loans++;
	return op_in_loan(l, m, &op, who);
}

static bool differential(struct run *run, unsigned count)
{
	struct ring *ring = ring_new(run->nodes, BELAY_STABLE_MAJORITY, NULL);
	struct model *m = malloc(sizeof(*m));
	bool good = true;

	memset(m, -1, sizeof(*m));
	for (unsigned k = 0; good && k < count; k++) {
		good = one_op(ring, run, m) && ring_agree(ring) && tables_are(ring, run, m);
		if (!good)
			diag("differs at operation %u", k);
	}
	(void)ring_free(ring);
	free(m);
	return good;
}

/* 20 runs that differ by their seeds. */
static bool differentials(struct run run, unsigned count, unsigned *in_loans)
{
	bool good = true;

	*in_loans = 0;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		run.random = seed * 104729;
		run.in_loans = 0;
		good &= differential(&run, count);
		*in_loans += run.in_loans;
	}
	return good;
}

int main(void)
{
	unsigned in_loans;

	ok(differentials((struct run){ .nodes = 1 }, 1500, &in_loans),
	   "30,000 operations by own authority answer as an array of bytes does");
	ok(differentials((struct run){ .nodes = 3 }, 500, &in_loans),
	   "10,000 operations on three nodes answer as an array of bytes does");
	ok(differentials((struct run){ .nodes = 3, .apart = true }, 500, &in_loans),
	   "so do 10,000, mostly on ranges that lie apart");
	ok(differentials((struct run){ .nodes = 1, .apart = true, .loans = true }, 1000, &in_loans),
	   "so do 20,000 by clients with loans");
	ok(in_loans > 500, "of which %u no core saw", in_loans);
	ok(differentials((struct run){ .nodes = 3, .apart = true, .loans = true }, 1000, &in_loans),
	   "so do 20,000 by clients with loans of three nodes");
	ok(in_loans > 500, "of which %u no core saw", in_loans);
	return done_testing();
}
