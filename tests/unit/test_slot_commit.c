/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A loan from both sides: what the client did counts for belayd exactly if
 * the client was told that it was done, wherever it was stopped; and what no
 * honest client writes is found out.
 */
struct slot_loan;
void step(const struct slot_loan *loan);
#define SLOT_STEP(loan) step(loan)
#include "slot/commit.c"

#include "tests/tap.h"

#define TOKEN UINT64_C(1000)
#define TOKEN_MAX (TOKEN + 1000000)

struct world {
	struct slot_head head;
	struct slot_entry *log;
	struct slot_loan loan;
	struct slot_terms terms;
	struct slot_ranges taken;
	struct slot_report report;
	const char *reason;
	uint32_t stop_in;		/* belayd recalls before that access; 0: never */
	uint64_t word;			/* that it got */
};

/* What stops the client in between: one world at a time. */
static struct world *stopped(struct world *set)
{
	static struct world *world;

	if (set)
		world = set;
	return world;
}

void step(const struct slot_loan *loan)
{
	struct world *w = stopped(NULL);

	if (&w->loan == loan && w->stop_in > 0 && --w->stop_in == 0)
		w->word = slot_recall(&w->head);
}

static bool may(void *context, uint32_t handle, enum slot_action action)
{
	(void)context;
	/* Owners 0 to 3; the last is open for reading only. */
	return handle < 3 || (handle == 3 && action != SLOT_LOCK_EX);
}

static int take(struct world *w)
{
	const struct slot_judge judge = { .may = may };

	w->reason = "";
	return slot_take(&w->head, w->log, w->word, &w->terms, TOKEN_MAX, &judge, &w->taken,
			 &w->report, &w->reason);
}

static int lend(struct world *w, const struct slot_entry *held, uint32_t count)
{
	w->word = 0;
	w->terms.epoch++;
	w->terms.token = TOKEN;
	w->stop_in = 0;
	slot_lend(&w->head, w->log, &w->terms, held, count, false);
	return slot_begin(&w->loan, &w->head, w->log, &w->terms);
}

static void begin(struct world *w)
{
	memset(w, 0, sizeof(*w));
	w->log = calloc(1, SLOT_LOG_BYTES);
	if (!w->log)
		bail_out("no memory");
	w->terms = (struct slot_terms){
		.mode = BELAY_MODE_EX, .range = { 100, 1000000 }, .room = SLOT_ROOM_MAX,
	};
	atomic_store(&w->head.word, SLOT_RECALL);
	stopped(w);
}

static void done(struct world *w)
{
	slot_ranges_done(&w->taken);
	slot_ranges_done(&w->loan.held);
	free(w->log);
}

static bool equal(const struct slot_ranges *a, const struct slot_ranges *b)
{
	struct slot_cursor at = { 0 }, bt = { 0 };
	const struct slot_entry *x, *y;

	do {
		x = slot_ranges_next(a, &at);
		y = slot_ranges_next(b, &bt);
	} while (x && y && memcmp(x, y, sizeof(*x)) == 0);
	return !x && !y;
}

static int lock(struct world *w, uint32_t handle, enum belay_mode mode, uint64_t start, uint64_t end,
		uint64_t *ret_token)
{
	const struct belay_range range = { start, end };

	return slot_lock(&w->loan, handle, mode, &range, ret_token);
}

static int unlock(struct world *w, uint32_t handle, uint64_t start, uint64_t end)
{
	const struct belay_range range = { start, end };

	return slot_unlock(&w->loan, handle, &range);
}

static void test_random(void)
{
	struct world w;
	uint64_t seed = 1, token = 0, last = TOKEN;
	uint32_t compacted = 0, conflicts = 0, halves = 0;
	bool good = true, grows = true;

	begin(&w);
	good = lend(&w, NULL, 0) == 0;
	for (uint32_t i = 0; i < 200000 && good && grows; i++) {
		uint64_t word = w.loan.word, start;
		int r;

		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
		start = 100 + (seed >> 33) % (i < 100000 ? 20 : 5000);
		if (seed >> 61 < (i % 20000 < 10000 ? 3u : 5u)) {
			r = unlock(&w, (uint32_t)(seed >> 40) % 3, start, start + (seed >> 50) % 4);
		} else {
			r = lock(&w, (uint32_t)(seed >> 40) % 3, (seed >> 57) & 1, start, start, &token);
			grows = r != 0 || token > last;
			last = r == 0 ? token : last;
		}
		conflicts += r == -EAGAIN;
		good = r == 0 || r == -EAGAIN;
		halves += ((w.loan.word ^ word) & SLOT_HALF) != 0;
		compacted += slot_count(w.loan.word) < slot_count(word);
		if (i % 500 == 0) {
			w.word = slot_recall(&w.head);
			good = good && take(&w) == 0 && equal(&w.taken, &w.loan.held) &&
			       w.report.token == last;
			atomic_fetch_and(&w.head.word, ~SLOT_RECALL);	/* as if nobody had asked */
		}
	}
	ok(good, "what is held is what belayd reads, at any time");
	ok(grows, "each token is larger than the last");
	ok(conflicts > 100, "owners were in each other's way: %" PRIu32 " times", conflicts);
	ok(compacted > 100 && halves == compacted, "logs went from half to half: %" PRIu32 " times", halves);
	ok(w.report.used && w.report.range.start == 100 && w.report.range.end >= 5000, "the hull of all of it");
	done(&w);
}

/* One operation of every kind; with a log as long as @length before it. */
static int operate(struct world *w, unsigned what, uint64_t *ret_token)
{
	switch (what) {
	case 0:
		return lock(w, 0, BELAY_MODE_EX, 200, 300, ret_token);
	case 1:
		return lock(w, 1, BELAY_MODE_SH, 5000, 6000, ret_token);
	case 2:
		return unlock(w, 0, 130, 140);
	default:
		return unlock(w, 0, 0 + w->terms.range.start, w->terms.range.end);
	}
}

/* Recalled before access number @stop of an operation. 0: it has fewer, and got through. */
static int stop_at(struct world *w, unsigned what, uint32_t length, uint32_t stop, bool *ret_good)
{
	struct slot_ranges none = { 0 };
	uint64_t token = 0;
	uint32_t before;
	bool good;
	int r;

	good = lend(w, NULL, 0) == 0 && lock(w, 0, BELAY_MODE_SH, 120, 150, &token) == 0;
	while (good && slot_count(w->loan.word) < length)
		good = lock(w, 2, BELAY_MODE_SH, 100, 110, &token) == 0;
	before = w->loan.held.count;
	w->stop_in = stop;
	r = operate(w, what, &token);
	if (w->stop_in > 0) {
		*ret_good = good && r == 0;
		return 0;
	}
	good = good && (r == 0 || r == -ESTALE) && take(w) == 0 && equal(&w->taken, &w->loan.held);
	/* Done or not done: it must not have been done if the answer says so. */
	good = good && (r == -ESTALE ? w->taken.count == before : true);
	good = good && w->report.token >= w->loan.token && w->report.token <= w->loan.token + 1;
	good = good && operate(w, what, &token) == -ESTALE;
	*ret_good = good && !equal(&none, &w->taken);
	return 1;
}

static void test_stopped(void)
{
	static const uint32_t lengths[] = { 1, SLOT_COMPACT_MIN - 1, SLOT_COMPACT_MIN };
	struct world w;

	begin(&w);
	for (unsigned what = 0; what < 4; what++)
		for (unsigned l = 0; l < 3; l++) {
			uint32_t stop = 1;
			bool good = true, so_far = true;

			while (stop < 1000 && stop_at(&w, what, lengths[l], stop, &good)) {
				so_far = so_far && good;
				stop++;
			}
			ok(so_far && good && stop > 5 && stop < 1000,
			   "operation %u, log of %" PRIu32 ": recalled before each of %" PRIu32 " accesses",
			   what, lengths[l], stop - 1);
		}
	done(&w);
}

static void test_ends(void)
{
	struct world w;
	uint64_t token;
	struct slot_entry held[] = {
		{ 200, 200, 0, SLOT_LOCK_EX }, { 300, 400, 1, SLOT_LOCK_SH }, { 300, 400, 2, SLOT_LOCK_SH },
	}, found;
	const struct belay_range both = { 200, 400 }, free_range = { 600, 700 };

	begin(&w);
	ok_int(slot_begin(&w.loan, &w.head, w.log, &w.terms), -ESTALE, "a slot without a loan");
	ok_int(lend(&w, held, 3), 0, "a loan with three locks in it");
	ok(w.loan.held.count == 3 && w.loan.token == TOKEN, "which the client has");
	ok_int(lock(&w, 1, BELAY_MODE_SH, 200, 210, &token), -EAGAIN, "another owner is in the way");
	ok_int(lock(&w, 1, BELAY_MODE_EX, 350, 360, &token), -EAGAIN, "a reader, too, if one writes");
	ok_int(lock(&w, 0, BELAY_MODE_SH, 350, 360, &token), 0, "not if one reads");
	ok_int(slot_test(&w.loan, 0, BELAY_MODE_EX, &both, &found), 1, "a test finds who is in the way");
	ok(found.handle == 1 && found.start == 300, "the first of them");
	ok_int(slot_test(&w.loan, 0, BELAY_MODE_EX, &free_range, &found), 0, "nothing is in the way elsewhere");

	slot_freeze(&w.head);
	ok_int(lock(&w, 1, BELAY_MODE_EX, 500, 500, &token), -ESTALE, "frozen: no lock");
	ok_int(slot_test(&w.loan, 0, BELAY_MODE_EX, &free_range, &found), -ESTALE, "and no promise");
	slot_thaw(&w.head);
	ok_int(lock(&w, 1, BELAY_MODE_EX, 500, 500, &token), 0, "thawed: it goes on");
	slot_freeze(&w.head);
	slot_give_up(&w.loan);
	w.word = slot_recall(&w.head);
	ok_int(take(&w), 0, "frozen and given up: belayd takes it back");
	ok_uint(w.taken.count, 5, "with all that was held");
	ok(w.report.used && w.report.used_ex && w.report.range.start == 350 && w.report.range.end == 500,
	   "and what was used");
	ok_int(lock(&w, 1, BELAY_MODE_SH, 200, 210, &token), -EAGAIN, "who is in the way still is");
	ok_int(slot_test(&w.loan, 0, BELAY_MODE_EX, &free_range, &found), -ESTALE, "what is free may not be");

	w.terms.mode = BELAY_MODE_SH;
	ok_int(lend(&w, NULL, 0), 0, "a loan to readers");
	ok_int(lock(&w, 3, BELAY_MODE_SH, 350, 360, &token), 0, "one reads");
	w.word = slot_recall(&w.head);
	ok(take(&w) == 0 && w.report.used && !w.report.used_ex, "nobody wrote");
	slot_lend(&w.head, w.log, &w.terms, NULL, 0, true);
	ok_int(slot_begin(&w.loan, &w.head, w.log, &w.terms), 0, "a loan that begins frozen");
	ok_int(lock(&w, 0, BELAY_MODE_SH, 350, 360, &token), -ESTALE, "gives nothing");
	slot_thaw(&w.head);
	ok_int(lock(&w, 0, BELAY_MODE_SH, 350, 360, &token), 0, "before it is thawed");
	ok_int(take(&w), 0, "an old word is read like any");
	done(&w);
}

static void test_room(void)
{
	struct world w;
	uint64_t token;

	begin(&w);
	w.terms.room = 3;
	ok_int(lend(&w, NULL, 0), 0, "a loan with room for three");
	ok(lock(&w, 0, BELAY_MODE_EX, 100, 199, &token) == 0 && lock(&w, 1, BELAY_MODE_EX, 300, 399, &token) == 0,
	   "two locks");
	ok_int(lock(&w, 0, BELAY_MODE_SH, 150, 160, &token), -ENOSPC, "a split in three has no room");
	ok_int(lock(&w, 0, BELAY_MODE_SH, 150, 199, &token), 0, "one in two has");
	ok_int(lock(&w, 0, BELAY_MODE_SH, 500, 500, &token), -ENOSPC, "a fourth has no room");
	ok_int(unlock(&w, 0, 120, 120), -ENOSPC, "nor has an unlock that leaves four");
	ok_int(lock(&w, 0, BELAY_MODE_EX, 100, 199, &token), 0, "what makes it less has");
	w.word = slot_recall(&w.head);
	ok_int(take(&w), 0, "and belayd agrees");

	w.terms.room = SLOT_ROOM_MAX;
	ok_int(lend(&w, NULL, 0), 0, "a loan with all the room there is");
	for (uint32_t i = 0; i < SLOT_ROOM_MAX - 1; i++)
		if (lock(&w, 0, BELAY_MODE_EX, 100 + 2 * i, 100 + 2 * i, &token) < 0)
			bail_out("no room");
	for (uint32_t i = 0; i < 100000; i++) {
		uint64_t at = 100 + (i * 7919ull % (SLOT_ROOM_MAX - 1)) * 2;

		if (unlock(&w, 0, at, at) < 0 || lock(&w, 0, BELAY_MODE_EX, at, at, &token) < 0)
			bail_out("no log");
	}
	w.word = slot_recall(&w.head);
	ok(take(&w) == 0 && equal(&w.taken, &w.loan.held) && w.taken.count == SLOT_ROOM_MAX - 1,
	   "used to the last log entry, and again");
	done(&w);
}

/* One loan with @count entries at @log that no client has checked. */
static void hostile(struct world *w, const char *what, const struct slot_entry *log, uint32_t count,
		    const char *reason)
{
	w->terms.epoch++;
	slot_lend(&w->head, w->log, &w->terms, NULL, 0, false);
	memcpy(w->log, log, count * sizeof(*log));
	atomic_store(&w->head.word, slot_word(w->terms.epoch, count));
	w->word = slot_recall(&w->head);
	ok_int(take(w), reason ? -EBADMSG : 0, "%s", what);
	ok_str(w->reason, reason ? reason : "", "and why");
}

static void test_hostile_logs(void)
{
	struct world w;

	begin(&w);
	w.terms.room = 2;
#define LOG(...) (const struct slot_entry[]){ __VA_ARGS__ }
	hostile(&w, "two owners apart", LOG({ 200, 300, 0, SLOT_LOCK_EX }, { 301, 301, 1, SLOT_LOCK_EX }), 2, NULL);
	hostile(&w, "no such action", LOG({ 200, 300, 0, SLOT_ACTION_COUNT }), 1,
		"did in its loan what is no operation");
	hostile(&w, "all bits of an action", LOG({ 200, 300, 0, UINT32_MAX }), 1,
		"did in its loan what is no operation");
	hostile(&w, "a range backwards", LOG({ 300, 200, 0, SLOT_LOCK_EX }), 1,
		"locked bytes outside of its loan");
	hostile(&w, "a byte before", LOG({ 99, 200, 0, SLOT_LOCK_EX }), 1, "locked bytes outside of its loan");
	hostile(&w, "a byte behind", LOG({ 200, 1000001, 0, SLOT_UNLOCK }), 1,
		"locked bytes outside of its loan");
	hostile(&w, "the end of the world", LOG({ 200, UINT64_MAX, 0, SLOT_LOCK_EX }), 1,
		"locked bytes outside of its loan");
	hostile(&w, "a handle that is not open", LOG({ 200, 300, 4, SLOT_LOCK_EX }), 1,
		"locked in its loan through a handle that may not");
	hostile(&w, "a handle that may only read", LOG({ 200, 300, 3, SLOT_LOCK_EX }), 1,
		"locked in its loan through a handle that may not");
	hostile(&w, "it reads", LOG({ 200, 300, 3, SLOT_LOCK_SH }), 1, NULL);
	hostile(&w, "owners in conflict", LOG({ 200, 300, 0, SLOT_LOCK_SH }, { 300, 300, 1, SLOT_LOCK_EX }), 2,
		"granted locks in its loan that conflict");
	hostile(&w, "three locks, for a moment",
		LOG({ 200, 300, 0, SLOT_LOCK_SH }, { 250, 250, 0, SLOT_UNLOCK }, { 400, 400, 0, SLOT_LOCK_EX },
		    { 100, 1000000, 0, SLOT_UNLOCK }), 4, "holds more locks in its loan than it may");
	hostile(&w, "a split in three", LOG({ 200, 300, 0, SLOT_LOCK_SH }, { 250, 250, 0, SLOT_LOCK_EX }), 2,
		"holds more locks in its loan than it may");
	w.terms.mode = BELAY_MODE_SH;
	hostile(&w, "a writer among readers", LOG({ 200, 300, 0, SLOT_LOCK_EX }), 1,
		"locked exclusively in a loan for shared locks");
#undef LOG
	done(&w);
}

/* Owners 4 and above, for all purposes. */
static bool may_all(void *context, uint32_t handle, enum slot_action action)
{
	(void)handle;
	(void)action;
	(void)context;
	return true;
}

static int take_all(struct world *w)
{
	const struct slot_judge judge = { .may = may_all };

	w->word = slot_recall(&w->head);
	return slot_take(&w->head, w->log, w->word, &w->terms, TOKEN_MAX, &judge, &w->taken, &w->report,
			 &w->reason);
}

/* An owner more than there may be is told to ask, and belayd finds what was granted. */
static void test_owners(void)
{
	uint64_t token;
	struct world w;
	uint32_t i;
	int r = 0;

	begin(&w);
	if (lend(&w, NULL, 0) < 0)
		bail_out("no loan");
	for (i = 0; i < BELAY_LOAN_OWNERS_MAX && r == 0; i++)
		r = lock(&w, 10 + i, BELAY_MODE_SH, 200, 300 + i, &token);
	ok_int(r, 0, "as many owners as may be");
	ok_int(lock(&w, 5, BELAY_MODE_SH, 200, 300, &token), -ENOSPC, "one more is one too many");
	ok_int(lock(&w, 99, BELAY_MODE_EX, 250, 250, &token), -EAGAIN, "in conflict that is said first");
	ok_int(lock(&w, 12, BELAY_MODE_SH, 500, 600, &token), 0, "one of them may lock more");
	ok_int(unlock(&w, 10, 100, 1000000), 0, "the first lets go");
	ok_int(lock(&w, 5, BELAY_MODE_SH, 200, 300, &token), 0, "and makes room for another");
	ok_int(lock(&w, 10, BELAY_MODE_SH, 200, 300, &token), -ENOSPC, "but not for two");
	ok_int(take_all(&w), 0, "belayd believes it");
	ok(equal(&w.taken, &w.loan.held), "and finds the same");
	done(&w);
}

static void spoil(struct world *w, const char *what, const char *reason, uint64_t word, uint64_t token,
		  uint64_t start, uint64_t end)
{
	w->word = word;
	atomic_store(&w->head.token, token);
	atomic_store(&w->head.used_start, start);
	atomic_store(&w->head.used_end, end);
	ok_int(take(w), reason ? -EBADMSG : 0, "%s", what);
	ok_str(w->reason, reason ? reason : "", "and why");
}

static void test_hostile_heads(void)
{
	static const char words[] = "wrote another word than its loan's into a slot";
	static const char hull[] = "says that it used bytes outside of its loan";
	static const char tokens[] = "gave fencing tokens in its loan that nobody can have got";
	struct world w;
	uint64_t word;

	begin(&w);
	if (lend(&w, NULL, 0) < 0)
		bail_out("no loan");
	word = slot_word(w.terms.epoch, 0) | SLOT_RECALL;
	spoil(&w, "an honest head", NULL, word, TOKEN, UINT64_MAX, 0);
	spoil(&w, "the other half, frozen", NULL, word | SLOT_HALF | SLOT_FROZEN, TOKEN_MAX, 100, 1000000);
	spoil(&w, "flags that do not exist", words, word | 8, TOKEN, UINT64_MAX, 0);
	spoil(&w, "another epoch", words, slot_word(w.terms.epoch + 1, 0) | SLOT_RECALL, TOKEN, UINT64_MAX, 0);
	spoil(&w, "no epoch", words, SLOT_RECALL, TOKEN, UINT64_MAX, 0);
	spoil(&w, "more than a half holds", "counts more operations in its loan than fit",
	      slot_word(w.terms.epoch, SLOT_HALF_ENTRIES + 1), TOKEN, UINT64_MAX, 0);
	spoil(&w, "all ones", words, UINT64_MAX, TOKEN, UINT64_MAX, 0);
	spoil(&w, "an older token", tokens, word, TOKEN - 1, UINT64_MAX, 0);
	spoil(&w, "a token of the future", tokens, word, TOKEN_MAX + 1, UINT64_MAX, 0);
	spoil(&w, "a hull that begins early", hull, word, TOKEN, 99, 100);
	spoil(&w, "a hull that ends late", hull, word, TOKEN, 100, 1000001);
	done(&w);
}

int main(void)
{
	test_random();
	test_stopped();
	test_ends();
	test_room();
	test_hostile_logs();
	test_hostile_heads();
	test_owners();
	return done_testing();
}
