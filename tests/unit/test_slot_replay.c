/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What it costs to read a log that a client has made to cost as much as it
 * can: belayd serves nobody meanwhile. Each call of a function counts, inlined
 * ones, too; that is what the compiler's instrumentation is for here.
 */
#include "slot/ranges.c"
#include "slot/replay.c"

#include <time.h>

#include "tests/tap.h"

#define HALF (SLOT_HALF_ENTRIES / 2)
#define MANY (SLOT_ROOM_MAX - 2)	/* ranges */
/* An honest client's log costs less than half of that. */
#define CALLS_PER_ENTRY_MAX 200u

#define NOT_COUNTED __attribute__((no_instrument_function))

NOT_COUNTED static uint64_t *calls(void)
{
	static uint64_t count;

	return &count;
}

void __cyg_profile_func_enter(void *function, void *site) NOT_COUNTED;
void __cyg_profile_func_exit(void *function, void *site) NOT_COUNTED;

void __cyg_profile_func_enter(void *function, void *site)
{
	(void)function;
	(void)site;
	++*calls();
}

void __cyg_profile_func_exit(void *function, void *site)
{
	(void)function;
	(void)site;
}

static uint64_t cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* Read it; how many ranges are held then. */
static uint32_t replay(const struct slot_entry *log, const char *what, const char *reason)
{
	const struct slot_terms terms = {
		.mode = BELAY_MODE_EX, .range = { 0, BELAY_OFFSET_MAX }, .room = SLOT_ROOM_MAX,
	};
	struct slot_ranges set = { 0 };
	const char *said = NULL;
	uint64_t us = cpu_us();
	uint32_t held;
	int r;

	*calls() = 0;
	r = slot_replay(log, SLOT_HALF_ENTRIES, &terms, NULL, &set, &said);
	us = cpu_us() - us;
	ok_int(r, reason ? -EBADMSG : 0, "%s", what);
	ok_str(said ? said : "", reason ? reason : "", "and why");
	ok(*calls() <= (uint64_t)CALLS_PER_ENTRY_MAX * SLOT_HALF_ENTRIES, "it costs little");
	diag("%s: %" PRIu64 " calls an entry, %" PRIu64 " us (counted)", what, *calls() / SLOT_HALF_ENTRIES, us);
	held = set.count;
	slot_ranges_done(&set);
	return held;
}

static struct slot_entry entry(uint64_t start, uint64_t end, uint32_t handle, uint32_t action)
{
	return (struct slot_entry){ .start = start, .end = end, .handle = handle, .action = action };
}

static void test_owners(struct slot_entry *log)
{
	for (uint32_t i = 0; i < SLOT_HALF_ENTRIES; i++)
		log[i] = entry(0, 0, i % HALF, SLOT_LOCK_SH);
	(void)replay(log, "a log full of owners", "holds locks for more owners in its loan than it may");
	for (uint32_t i = 0; i < SLOT_HALF_ENTRIES; i++)
		log[i] = entry(0, 0, i % HALF, i < HALF ? SLOT_LOCK_SH : SLOT_UNLOCK);
	ok_int(replay(log, "they have all let go: as if they had never been", NULL), 0, "nothing is held");
	for (uint32_t i = 0; i < SLOT_HALF_ENTRIES; i++)
		log[i] = entry(0, 0, i % (BELAY_LOAN_OWNERS_MAX + 1), SLOT_LOCK_SH);
	(void)replay(log, "one owner too many", "holds locks for more owners in its loan than it may");
	for (uint32_t i = 0; i < SLOT_HALF_ENTRIES; i++)
		log[i] = entry(0, 0, i % BELAY_LOAN_OWNERS_MAX, SLOT_LOCK_SH);
	ok_int(replay(log, "as many as may be", NULL), BELAY_LOAN_OWNERS_MAX, "each holds its lock");
}

static void test_ranges(struct slot_entry *log)
{
	for (uint32_t i = 0; i < SLOT_HALF_ENTRIES; i++)
		log[i] = i < MANY ? entry(3 * i, 3 * i + 1, 77, SLOT_LOCK_SH) :
			 entry(0, BELAY_OFFSET_MAX, 78, i % 2 ? SLOT_UNLOCK : SLOT_LOCK_SH);
	ok_int(replay(log, "a reader of all among many", NULL), MANY, "has gone again");
	/* Scattered, and each owner's between those of the others. */
	for (uint32_t i = 0; i < SLOT_HALF_ENTRIES; i++) {
		uint64_t at = 2 * ((uint64_t)i * 12347 % MANY);

		log[i] = entry(at, at, (uint32_t)at / 2 % BELAY_LOAN_OWNERS_MAX, SLOT_LOCK_EX);
	}
	ok_int(replay(log, "writers among each other", NULL), MANY, "each has its ranges");
	log[SLOT_HALF_ENTRIES - 1] = entry(2, 2, 5, SLOT_LOCK_SH);
	(void)replay(log, "two of them in one place", "granted locks in its loan that conflict");
}

int main(void)
{
	struct slot_entry *log = calloc(SLOT_HALF_ENTRIES, sizeof(*log));

	if (!log)
		bail_out("no memory");
	test_owners(log);
	test_ranges(log);
	free(log);
	return done_testing();
}
