/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The set of ranges of a loan against a model that knows each byte: random
 * operations of several owners, in worlds of few and of many ranges.
 */
#include "slot/ranges.h"

#include "tests/tap.h"

#define BYTES 4000u
#define OWNERS 4u

struct world {
	struct slot_ranges set;
	uint8_t held[OWNERS][BYTES];	/* 0, or the slot_action of what is held there */
	uint64_t seed;
	uint32_t bytes, longest, owners;
	unsigned unlocks;		/* of 8 operations */
};

static uint32_t draw(struct world *w, uint32_t below)
{
	w->seed = w->seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)(w->seed >> 33) % below;
}

/* Owners need not follow each other. */
static uint32_t handle_of(uint32_t owner)
{
	return owner == OWNERS - 1 ? UINT32_MAX : owner * 7;
}

static bool model_conflicts(const struct world *w, uint32_t owner, const struct slot_entry *e)
{
	for (uint32_t o = 0; o < w->owners; o++)
		for (uint64_t b = e->start; o != owner && b <= e->end; b++)
			if (w->held[o][b] && (w->held[o][b] == SLOT_LOCK_EX || e->action == SLOT_LOCK_EX))
				return true;
	return false;
}

/* Add what was found to conflict to a set of the same: that is found, too. */
static bool finds(const struct world *w, const struct slot_entry *e)
{
	struct slot_ranges set = { 0 };
	struct slot_cursor cursor = { 0 };
	const struct slot_entry *held;
	bool found;

	while ((held = slot_ranges_next(&w->set, &cursor))) {
		if (slot_ranges_reserve(&set) < 0)
			bail_out("no memory");
		slot_ranges_apply(&set, held);
	}
	if (slot_ranges_reserve(&set) < 0)
		bail_out("no memory");
	slot_ranges_apply(&set, e);
	found = slot_ranges_fault(&set) != NULL;
	slot_ranges_done(&set);
	return found;
}

/* NULL, or what is wrong with the set. */
static const char *fault(const struct world *w)
{
	struct slot_cursor cursor = { 0 };
	const struct slot_entry *e = slot_ranges_next(&w->set, &cursor);
	uint32_t count = 0;

	for (uint32_t o = 0; o < w->owners; o++)
		for (uint32_t b = 0; b < w->bytes; ) {
			uint32_t end = b;

			if (w->held[o][b] == 0) {
				b++;
				continue;
			}
			while (end + 1 < w->bytes && w->held[o][end + 1] == w->held[o][b])
				end++;
			if (!e || e->handle != handle_of(o) || e->start != b || e->end != end ||
			    e->action != w->held[o][b])
				return "a range is not what the bytes say";
			count++;
			b = end + 1;
			e = slot_ranges_next(&w->set, &cursor);
		}
	if (e)
		return "there are ranges too many";
	if (count != w->set.count)
		return "the count is wrong";
	for (uint32_t i = 0; i < w->set.used; i++) {
		uint32_t n = w->set.chunk[w->set.order[i]].count;

		if (n == 0 || n > SLOT_CHUNK_ENTRIES)
			return "a chunk is empty or too full";
		if (i > 0 && n < SLOT_CHUNK_ENTRIES / 3 &&
		    w->set.chunk[w->set.order[i - 1]].count < SLOT_CHUNK_ENTRIES / 3)
			return "two sparse chunks stand side by side";
	}
	return NULL;
}

static const char *step(struct world *w)
{
	uint32_t owner = draw(w, w->owners), start = draw(w, w->bytes);
	uint32_t length = 1 + draw(w, draw(w, 50) == 0 ? w->bytes : w->longest), before = w->set.count, growth;
	struct slot_entry held, e = {
		.start = start,
		.end = start + length > w->bytes ? w->bytes - 1 : start + length - 1,
		.handle = handle_of(owner),
		.action = draw(w, 8) < w->unlocks ? SLOT_UNLOCK : SLOT_LOCK_SH + draw(w, 2),
	};

	if (e.action != SLOT_UNLOCK) {
		bool conflict = model_conflicts(w, owner, &e);

		if (slot_ranges_conflict(&w->set, &e, NULL) != conflict)
			return "whether it conflicts";
		if (slot_ranges_conflict(&w->set, &e, &held) != conflict)
			return "whether it conflicts, and with what";
		if (conflict) {
			/* The first is the one before which nothing is in the way. */
			struct slot_entry less = e;

			if (held.start > e.end || held.end < e.start || held.handle == e.handle)
				return "what it conflicts with";
			if (draw(w, 16) == 0 && !finds(w, &e))
				return "that it conflicts, afterwards";
			less.end = held.start - 1;
			return held.start > e.start && model_conflicts(w, owner, &less) ?
			       "that it conflicts with something earlier" : NULL;
		}
	}
	if (slot_ranges_fault(&w->set))
		return "that all of it is as it should be";
	if (slot_ranges_reserve(&w->set) < 0)
		return "that there is memory";
	growth = slot_ranges_growth(&w->set, &e);
	slot_ranges_apply(&w->set, &e);
	if (w->set.count > before + growth || (growth > 0 && w->set.count != before + growth))
		return "how much it grows";
	memset(&w->held[owner][e.start], e.action, e.end - e.start + 1);
	return NULL;
}

static void run(const char *what, uint32_t bytes, uint32_t longest, uint32_t owners, unsigned unlocks,
		uint32_t steps)
{
	struct world *w = calloc(1, sizeof(*w));
	const char *why = NULL;
	uint32_t i, most = 0;

	if (!w)
		bail_out("no memory");
	*w = (struct world){ .bytes = bytes, .longest = longest, .owners = owners, .unlocks = unlocks, .seed = bytes };
	for (i = 0; i < steps && !why; i++) {
		why = step(w);
		if (!why && (i < 1000 || i % 64 == 0))
			why = fault(w);
		most = w->set.count > most ? w->set.count : most;
	}
	if (!ok(!why, "%s", what))
		diag("step %" PRIu32 ": %s", i, why);
	diag("up to %" PRIu32 " ranges", most);
	slot_ranges_done(&w->set);
	free(w);
}

static struct slot_entry one(uint64_t at, enum slot_action action)
{
	return (struct slot_entry){ .start = at, .end = at, .action = action };
}

/* As many as a loan may hold, in an order that is hard on chunks; then all at once, or one by one, undone. */
static void test_many(uint64_t stride)
{
	struct slot_ranges set = { 0 };
	const uint32_t many = 16384;
	bool good = true;
	struct slot_entry e;

	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < many && good; i++) {
			e = one(i * stride % many * 2, SLOT_LOCK_EX);
			good = slot_ranges_reserve(&set) == 0;
			slot_ranges_apply(&set, &e);
		}
		ok(good && set.count == many, "stride %" PRIu64 ": %" PRIu32 " ranges", stride, many);
		for (uint32_t i = 0; i < many && round == 0; i++) {
			e = one(i * 7919ull % many * 2, SLOT_UNLOCK);
			slot_ranges_apply(&set, &e);
		}
		e = one(0, SLOT_UNLOCK);
		e.end = BELAY_OFFSET_MAX;
		slot_ranges_apply(&set, &e);
		ok_uint(set.count, 0, "and none");
	}
	slot_ranges_done(&set);
}

static void test_edges(void)
{
	struct slot_ranges set = { 0 };
	struct slot_entry all = { .start = 0, .end = BELAY_OFFSET_MAX, .action = SLOT_LOCK_EX };
	struct slot_entry last = one(BELAY_OFFSET_MAX, SLOT_UNLOCK), first = one(0, SLOT_LOCK_SH);

	ok(slot_ranges_reserve(&set) == 0, "memory");
	slot_ranges_apply(&set, &all);
	slot_ranges_apply(&set, &last);
	slot_ranges_apply(&set, &first);
	ok(set.count == 2, "the first and the last byte");
	all.handle = 1;
	all.start = BELAY_OFFSET_MAX;
	ok(!slot_ranges_conflict(&set, &all, NULL), "another owner may have what was unlocked");
	slot_ranges_clear(&set);
	ok(!slot_ranges_conflict(&set, &first, NULL) && set.count == 0, "nothing is left after a clear");
	slot_ranges_done(&set);
}

int main(void)
{
	test_edges();
	run("one owner, few bytes", 24, 6, 1, 3, 100000);
	run("owners among few bytes", 24, 4, OWNERS, 4, 100000);
	run("many short ranges of one owner", BYTES, 2, 1, 1, 60000);
	run("many short ranges of several owners", BYTES, 2, OWNERS, 2, 60000);
	run("ranges of all lengths", BYTES, 64, 3, 3, 60000);
	test_many(1);
	test_many(16383);
	test_many(5);
	return done_testing();
}
