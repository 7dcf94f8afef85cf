/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The same operations by the kernel's locks and through libbelay: what the
 * parts of test_differential share.
 *
 * The test makes a plan of some thousand steps, each of one worker process,
 * puts it on a board in shared memory, and lets the workers run it, one at a
 * time: who has done the steps that are his in a row wakes whose step is next.
 * Every step is done by the kernel, on a file, and by belayd, on the same
 * file; both answers stand on the board, and the test compares them.
 *
 * There are many files, in turns: belayd lends a file to who is alone with it,
 * and not at once when others have just been there.
 */
#ifndef BELAY_TESTS_IPC_DIFFERENTIAL_H
#define BELAY_TESTS_IPC_DIFFERENTIAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* In a worker: itself (POSIX), two open file descriptions, two with flock(). */
enum who { WHO_PROCESS, WHO_OFD, WHO_OFD_2, WHO_FLOCK, WHO_FLOCK_2, WHO_COUNT };

#define WORKERS 4u
#define OWNERS (WORKERS * WHO_COUNT)
/* The lockable world: bytes BASE to BASE + 62 one by one, then all that follows as one. */
#define UNITS 64u
#define LAST_UNIT (UNITS - 1u)
#define BASE 1000u
#define FILES 64u
#define CHUNK 8192u		/* steps of one plan */

enum kind {
	KIND_TRY,		/* F_SETLK */
	KIND_LOCK,		/* F_SETLKW, where nobody is in the way */
	KIND_WAIT,		/* F_SETLKW behind others; only unlocks come until ... */
	KIND_JOIN,		/* ... it has been granted */
	KIND_UNLOCK,
	KIND_GET,		/* F_GETLK */
	KIND_REOPEN,		/* close, and open again */
	KIND_COUNT
};

/* What a worker can do wrong, to show that it is seen. */
enum lie {
	LIE_NONE,
	LIE_RANGE,		/* belayd is told another range, or mode, than the kernel */
	LIE_TOKEN,		/* a token is not the one that came */
	LIE_HOLDER,		/* who is in the way is said to be elsewhere */
	LIE_EARLY,		/* a wait is said to have been none */
};

struct step {
	uint8_t worker, who, kind, file;
	bool exclusive;
	uint8_t first, last;	/* units, both included */
	uint8_t lie;
};

struct answer {
	int result;		/* 0, 1 (F_GETLK: this one is in the way) or a negative errno */
	bool exclusive;
	pid_t pid;
	uint64_t start, length;
};

struct outcome {
	struct answer kernel, belay;
	uint64_t token;
	uint32_t granted_at;	/* of KIND_WAIT: the step that ran when the answer came */
};

struct board {
	_Atomic uint32_t at;		/* the step that runs */
	_Atomic uint32_t go[WORKERS + 1];	/* futexes: it is your turn; the last is the test's */
	_Atomic bool ended;
	pid_t pid[WORKERS];
	uint32_t steps;
	struct step step[CHUNK];
	struct outcome outcome[CHUNK];
};

/* ---- differential_model.c: what locks of one file are, in a few lines ---- */

struct model {
	uint64_t shared[OWNERS], exclusive[OWNERS];	/* a bit for each unit */
	/* Fencing tokens: the last of each owner on each unit. */
	uint64_t token[2][OWNERS][UNITS];
};

static inline uint64_t units(unsigned first, unsigned last)
{
	return UINT64_MAX << first & UINT64_MAX >> (LAST_UNIT - last);
}

static inline unsigned owner_of(const struct step *step)
{
	return step->worker * WHO_COUNT + step->who;
}

static inline bool is_flock(unsigned who)
{
	return who == WHO_FLOCK || who == WHO_FLOCK_2;
}

/* Which units of the step's range others hold against it. */
uint64_t model_conflicts(const struct model *model, const struct step *step);
/* What the step must answer; and it is done. */
int model_do(struct model *model, const struct step *step);
/*
 * May this lock be said to be in the way of that step? @pid is the workers'. It may be a
 * part of what the holder has: what is lent to a process ends somewhere.
 */
bool model_has(const struct model *model, const struct step *step, const struct answer *holder,
	       const pid_t *pid);
/* A grant's token: larger than of all grants before that conflict with it? It is noted. */
bool model_token(struct model *model, const struct step *step, uint64_t token);

/* ---- differential_plan.c ---- */

struct plan {
	uint64_t random;
	struct model model[FILES];	/* as they will be after the steps so far */
	unsigned phase, left;	/* its kind, and how many steps more */
	unsigned file;		/* where */
	unsigned worker, run;	/* who is on, for so many steps more */
	enum lie lie;		/* now and then, in steps where it matters */
};

/* Fill the board. Returns how many steps, at most @most. */
uint32_t plan_make(struct plan *plan, struct board *board, uint32_t most);
const char *plan_kind(enum kind kind);

/* ---- differential_work.c ---- */

/* The path of a file, in a buffer of PATH_MAX bytes. */
void file_path(char *path, const char *directory, unsigned file);
/* A worker process: it never returns. */
_Noreturn void work(struct board *board, unsigned worker, const char *socket, const char *directory);
/* One more client, which disturbs: it asks for locks at any moment, and changes no answer. */
_Noreturn void intrude(struct board *board, const char *socket, const char *directory, uint64_t random);

/* Let the next one on, from step @at: its worker, or at the end the test. */
void board_pass(struct board *board, uint32_t at);
/* Wait for one's turn; false: it did not come in @timeout_ms (-1: for ever). */
bool board_wait(struct board *board, unsigned who, int timeout_ms);

static inline uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static inline unsigned random_below(uint64_t *state, unsigned n)
{
	return (unsigned)((random_next(state) >> 32) * n >> 32);
}

#endif
