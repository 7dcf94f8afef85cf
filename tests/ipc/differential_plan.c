/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/ipc/differential.h"

/*
 * Locks stay in a process only while it is alone where it locks. So there are
 * times for all: everybody anywhere, one alone, each in his part, all reading.
 */
enum phase { PHASE_MIXED, PHASE_ALONE, PHASE_APART, PHASE_READING, PHASE_COUNT };

#define PART (UNITS / WORKERS)

const char *plan_kind(enum kind kind)
{
	static const char *const name[KIND_COUNT] = {
		[KIND_TRY] = "try", [KIND_LOCK] = "lock", [KIND_WAIT] = "wait", [KIND_JOIN] = "join",
		[KIND_UNLOCK] = "unlock", [KIND_GET] = "get", [KIND_REOPEN] = "reopen",
	};

	return name[kind];
}

static bool one_in(struct plan *plan, unsigned n)
{
	return random_below(&plan->random, n) == 0;
}

static void next_phase(struct plan *plan)
{
	static const unsigned steps[PHASE_COUNT] = {
		[PHASE_MIXED] = 100, [PHASE_ALONE] = 1000, [PHASE_APART] = 2000, [PHASE_READING] = 1000,
	};

	plan->phase = random_below(&plan->random, PHASE_COUNT);
	plan->left = 1 + random_below(&plan->random, steps[plan->phase]);
	plan->run = plan->phase == PHASE_ALONE ? plan->left : 0;
	plan->worker = random_below(&plan->random, WORKERS);
	plan->file = (plan->file + 1) % FILES;
}

static void next_worker(struct plan *plan)
{
	if (plan->run == 0) {
		plan->worker = random_below(&plan->random, WORKERS);
		plan->run = 1 + random_below(&plan->random, plan->phase == PHASE_MIXED ? 4 : 40);
	}
	plan->left--;
	plan->run--;
}

static unsigned pick_who(struct plan *plan)
{
	static const uint8_t who[] = {
		WHO_PROCESS, WHO_PROCESS, WHO_PROCESS, WHO_PROCESS, WHO_PROCESS,
		WHO_OFD, WHO_OFD, WHO_OFD_2, WHO_FLOCK, WHO_FLOCK_2,
	};

	return who[random_below(&plan->random, sizeof(who))];
}

static void pick_range(struct plan *plan, struct step *step)
{
	unsigned from = 0, count = UNITS, most;

	if (plan->phase == PHASE_APART) {
		from = step->worker * PART;
		count = PART;
	}
	most = one_in(plan, 3) ? 1 : one_in(plan, 3) ? count : 8;
	step->first = (uint8_t)(from + random_below(&plan->random, count));
	step->last = (uint8_t)(step->first + random_below(&plan->random, most));
	if (step->last >= from + count || one_in(plan, 16))
		step->last = (uint8_t)(from + count - 1);
	/* What is given back is more than what is taken, or all were full soon. */
	if (step->kind == KIND_UNLOCK && one_in(plan, 4)) {
		step->first = (uint8_t)from;
		step->last = (uint8_t)(from + count - 1);
	}
	if (is_flock(step->who)) {
		step->first = 0;
		step->last = LAST_UNIT;
	}
}

static uint8_t pick_kind(struct plan *plan)
{
	unsigned of_100 = random_below(&plan->random, 1000);

	return of_100 < 420 ? KIND_TRY : of_100 < 580 ? KIND_LOCK : of_100 < 880 ? KIND_UNLOCK :
	       of_100 < 997 ? KIND_GET : KIND_REOPEN;
}

/* Not in each step, or what a lie does would hide what the next one does; waits are few. */
static enum lie pick_lie(struct plan *plan, enum kind kind)
{
	static const bool matters[][KIND_COUNT] = {
		[LIE_NONE] = { false },
		[LIE_RANGE] = { [KIND_TRY] = true, [KIND_UNLOCK] = true },
		[LIE_TOKEN] = { [KIND_TRY] = true, [KIND_LOCK] = true },
		[LIE_HOLDER] = { [KIND_GET] = true },
		[LIE_EARLY] = { [KIND_WAIT] = true },
	};

	return matters[plan->lie][kind] && (kind == KIND_WAIT || one_in(plan, 16)) ? plan->lie : LIE_NONE;
}

static void add(struct plan *plan, struct board *board, const struct step *step)
{
	struct step *added = &board->step[board->steps++];

	(void)model_do(&plan->model[step->file], step);
	*added = *step;
	added->lie = (uint8_t)pick_lie(plan, (enum kind)step->kind);
}

/* All others give up what is in the way of the step, one after the other. */
static void make_way(struct plan *plan, struct board *board, const struct step *step, bool own)
{
	unsigned i;

	for (i = 0; i < OWNERS; i++) {
		struct step unlock = *step;

		unlock.worker = (uint8_t)(i / WHO_COUNT);
		unlock.who = (uint8_t)(i % WHO_COUNT);
		unlock.kind = KIND_UNLOCK;
		if ((unlock.worker == step->worker) == own && i != owner_of(step) &&
		    is_flock(unlock.who) == is_flock(step->who))
			add(plan, board, &unlock);
	}
}

/* A step that may have to wait, and what ends the wait. */
static void add_lock(struct plan *plan, struct board *board, struct step *step, uint32_t most)
{
	/* Who has told belayd a lie may have to wait where nobody should. */
	if (plan->lie == LIE_RANGE)
		step->kind = KIND_TRY;
	if (plan->lie == LIE_RANGE || !model_conflicts(&plan->model[step->file], step)) {
		add(plan, board, step);
		return;
	}
	if (board->steps + OWNERS + 2 > most || !one_in(plan, 4)) {
		step->kind = KIND_TRY;
		add(plan, board, step);
		return;
	}
	/* The worker waits: it cannot give up anything meanwhile. */
	make_way(plan, board, step, true);
	step->kind = KIND_WAIT;
	add(plan, board, step);
	make_way(plan, board, step, false);
	step->kind = KIND_JOIN;
	add(plan, board, step);
}

/* What others have left behind is in the way of who shall be alone. */
static void clear(struct plan *plan, struct board *board)
{
	unsigned i;

	for (i = 0; i < OWNERS; i++) {
		struct step unlock = {
			.worker = (uint8_t)(i / WHO_COUNT), .who = (uint8_t)(i % WHO_COUNT),
			.kind = KIND_UNLOCK, .file = (uint8_t)plan->file, .last = LAST_UNIT,
		};

		if (plan->phase != PHASE_ALONE || unlock.worker != plan->worker)
			add(plan, board, &unlock);
	}
}

uint32_t plan_make(struct plan *plan, struct board *board, uint32_t most)
{
	board->steps = 0;
	while (board->steps < most) {
		struct step step = { 0 };

		if (plan->left == 0) {
			next_phase(plan);
			if (plan->phase != PHASE_MIXED && board->steps + OWNERS < most)
				clear(plan, board);
		}
		next_worker(plan);
		step.file = (uint8_t)plan->file;
		step.worker = (uint8_t)plan->worker;
		step.who = (uint8_t)pick_who(plan);
		step.kind = pick_kind(plan);
		/* flock() has no F_GETLK. */
		if (step.kind == KIND_GET && is_flock(step.who))
			step.who = WHO_PROCESS;
		step.exclusive = plan->phase == PHASE_READING ? one_in(plan, 50) : !one_in(plan, 3);
		pick_range(plan, &step);
		if (step.kind == KIND_LOCK)
			add_lock(plan, board, &step, most);
		else
			add(plan, board, &step);
	}
	return board->steps;
}
