/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "include/belay.h"
#include "tests/ipc/differential.h"

/* ---- whose turn it is ---- */

void board_pass(struct board *board, uint32_t at)
{
	unsigned next = at < board->steps ? board->step[at].worker : WORKERS;

	atomic_store(&board->at, at);
	atomic_store(&board->go[next], 1);
	(void)syscall(SYS_futex, &board->go[next], FUTEX_WAKE, 1, NULL, NULL, 0);
}

bool board_wait(struct board *board, unsigned who, int timeout_ms)
{
	const struct timespec limit = { timeout_ms / 1000, timeout_ms % 1000 * 1000000L };

	while (atomic_exchange(&board->go[who], 0) == 0)
		if (syscall(SYS_futex, &board->go[who], FUTEX_WAIT, 0, timeout_ms < 0 ? NULL : &limit,
			    NULL, 0) < 0 && errno == ETIMEDOUT)
			return false;
	return true;
}

/* ---- a worker ---- */

struct worker {
	struct board *board;
	const char *directory;
	struct belay *belay;
	struct both {
		int fd;
		struct belay_handle *handle;
		enum flocked { FREE, SHARED, EXCLUSIVE } flocked;	/* by flock(), through belay */
	} both[FILES][WHO_COUNT];
};

static _Noreturn void die(const char *what, int error)
{
	printf("# %s: %s\n", what, strerror(error));
	fflush(stdout);
	_exit(1);
}

void file_path(char *path, const char *directory, unsigned file)
{
	snprintf(path, PATH_MAX, "%s/%u", directory, file);
}

static void open_both(struct worker *w, unsigned file, unsigned who)
{
	static const enum belay_lock_owner owner[WHO_COUNT] = {
		[WHO_PROCESS] = BELAY_OWNER_PROCESS, [WHO_OFD] = BELAY_OWNER_HANDLE,
		[WHO_OFD_2] = BELAY_OWNER_HANDLE, [WHO_FLOCK] = BELAY_OWNER_FLOCK,
		[WHO_FLOCK_2] = BELAY_OWNER_FLOCK,
	};
	struct both *both = &w->both[file][who];
	char path[PATH_MAX];
	int r;

	file_path(path, w->directory, file);
	*both = (struct both){ .fd = open(path, O_RDWR | O_CLOEXEC) };
	if (both->fd < 0)
		die(path, errno);
	r = belay_open_fd(w->belay, both->fd, owner[who], &both->handle);
	if (r < 0)
		die("belay_open_fd", -r);
}

static uint64_t start_of(const struct step *step)
{
	return BASE + step->first;
}

static uint64_t length_of(const struct step *step)
{
	return step->last == LAST_UNIT ? 0 : step->last - step->first + 1u;
}

static int by_flock(int fd, const struct step *step)
{
	int operation = step->kind == KIND_UNLOCK ? LOCK_UN : step->exclusive ? LOCK_EX : LOCK_SH;

	if (step->kind == KIND_TRY)
		operation |= LOCK_NB;
	return flock(fd, operation) < 0 ? -errno : 0;
}

static int by_fcntl(int fd, const struct step *step, struct answer *ret)
{
	static const int process[KIND_COUNT] = {
		[KIND_TRY] = F_SETLK, [KIND_LOCK] = F_SETLKW, [KIND_JOIN] = F_SETLKW,
		[KIND_UNLOCK] = F_SETLK, [KIND_GET] = F_GETLK,
	}, ofd[KIND_COUNT] = {
		[KIND_TRY] = F_OFD_SETLK, [KIND_LOCK] = F_OFD_SETLKW, [KIND_JOIN] = F_OFD_SETLKW,
		[KIND_UNLOCK] = F_OFD_SETLK, [KIND_GET] = F_OFD_GETLK,
	};
	struct flock range = {
		.l_type = step->kind == KIND_UNLOCK ? F_UNLCK : step->exclusive ? F_WRLCK : F_RDLCK,
		.l_whence = SEEK_SET, .l_start = (off_t)start_of(step), .l_len = (off_t)length_of(step),
	};

	if (fcntl(fd, (step->who == WHO_PROCESS ? process : ofd)[step->kind], &range) < 0)
		return -errno;
	if (step->kind != KIND_GET || range.l_type == F_UNLCK)
		return 0;
	ret->exclusive = range.l_type == F_WRLCK;
	ret->pid = range.l_pid;
	ret->start = (uint64_t)range.l_start;
	ret->length = (uint64_t)range.l_len;
	return 1;
}

static void by_kernel(struct worker *w, const struct step *step, struct answer *ret)
{
	int fd = w->both[step->file][step->who].fd;

	ret->result = is_flock(step->who) ? by_flock(fd, step) : by_fcntl(fd, step, ret);
}

/*
 * flock() is no atomic conversion: it gives back, then asks. Who makes a flock()
 * of libbelay has to do so as well, or two that hold it shared and both want it
 * exclusively would wait for ever.
 */
static int before_flock(struct both *both, const struct step *step, bool exclusive)
{
	bool converts = step->kind != KIND_UNLOCK && both->flocked == (exclusive ? SHARED : EXCLUSIVE);

	if (step->kind == KIND_UNLOCK || converts)
		both->flocked = FREE;
	return converts ? belay_unlock(both->handle, 0, 0) : 0;
}

static void by_belay(struct worker *w, const struct step *step, struct outcome *ret)
{
	struct both *both = &w->both[step->file][step->who];
	struct belay_handle *handle = both->handle;
	bool ranges = !is_flock(step->who), lie = step->lie == LIE_RANGE;
	bool exclusive = step->exclusive ^ (lie && !ranges);
	uint64_t start = ranges ? start_of(step) + lie : 0;
	uint64_t length = ranges ? length_of(step) : 0;
	enum belay_lock_mode mode = exclusive ? BELAY_EXCLUSIVE : BELAY_SHARED;
	struct belay_lock_holder holder = { 0 };

	if (!ranges && before_flock(both, step, exclusive) < 0)
		die("belay_unlock", EIO);
	if (step->kind == KIND_TRY) {
		ret->belay.result = belay_trylock(handle, mode, start, length, &ret->token);
	} else if (step->kind == KIND_UNLOCK) {
		ret->belay.result = belay_unlock(handle, start, length);
	} else if (step->kind == KIND_GET) {
		ret->belay.result = belay_get(handle, mode, start, length, &holder);
		ret->belay.exclusive = holder.mode == BELAY_EXCLUSIVE;
		ret->belay.pid = holder.pid;
		ret->belay.start = holder.start;
		ret->belay.length = holder.length;
	} else {
		ret->belay.result = belay_lock(handle, mode, start, length, &ret->token);
	}
	if (!ranges && step->kind != KIND_UNLOCK && ret->belay.result == 0)
		both->flocked = exclusive ? EXCLUSIVE : SHARED;
}

/* Any close in a process takes its POSIX locks, in the kernel. libbelay leaves that to its user. */
static void reopen(struct worker *w, unsigned file, unsigned who)
{
	close(w->both[file][who].fd);
	belay_handle_close(w->both[file][who].handle);
	if (who != WHO_PROCESS)
		(void)belay_unlock(w->both[file][WHO_PROCESS].handle, 0, 0);
	open_both(w, file, who);
}

static void lie(struct outcome *outcome, enum lie lie, uint32_t at)
{
	if (lie == LIE_TOKEN)
		outcome->token = 1;
	else if (lie == LIE_HOLDER)
		outcome->belay.start++;
	else if (lie == LIE_EARLY)
		outcome->granted_at = at;
}

static void do_step(struct worker *w, uint32_t at)
{
	const struct step *step = &w->board->step[at];
	struct outcome *outcome = &w->board->outcome[at];

	memset(outcome, 0, sizeof(*outcome));
	switch (step->kind) {
	case KIND_WAIT:
		/* The others go on, or it would wait for ever. */
		board_pass(w->board, at + 1);
		by_belay(w, step, outcome);
		outcome->granted_at = atomic_load(&w->board->at);
		break;
	case KIND_JOIN:
		by_kernel(w, step, &outcome->kernel);
		break;
	case KIND_REOPEN:
		reopen(w, step->file, step->who);
		break;
	default:
		by_kernel(w, step, &outcome->kernel);
		by_belay(w, step, outcome);
	}
	lie(outcome, (enum lie)step->lie, at);
}

_Noreturn void work(struct board *board, unsigned worker, const char *socket, const char *directory)
{
	struct worker w = { .board = board, .directory = directory };
	uint32_t at;
	int r;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	r = belay_connect(&w.belay, socket);
	if (r < 0)
		die("belay_connect", -r);
	for (unsigned file = 0; file < FILES; file++)
		for (unsigned who = 0; who < WHO_COUNT; who++)
			open_both(&w, file, who);
	while (board_wait(board, worker, -1) && !atomic_load(&board->ended)) {
		at = atomic_load(&board->at);
		while (at < board->steps && board->step[at].worker == worker) {
			atomic_store(&board->at, at);
			do_step(&w, at);
			if (board->step[at].kind == KIND_WAIT)
				break;
			at++;
		}
		if (at == board->steps || board->step[at].worker != worker)
			board_pass(board, at);
	}
	_exit(0);
}

/* ---- the one who disturbs ---- */

#define PAUSE_NS 6000000u	/* at most, between two of its requests */

/* To ask who has what changes nothing, and the bytes before BASE are its own. */
static int disturb(struct belay_handle *handle, uint64_t *random)
{
	unsigned first = random_below(random, UNITS), below = random_below(random, BASE);
	struct belay_lock_holder holder;
	int r;

	if (random_below(random, 2) == 0)
		return belay_get(handle, BELAY_EXCLUSIVE, BASE + first, 1 + random_below(random, 8), &holder);
	r = belay_trylock(handle, BELAY_EXCLUSIVE, below, BASE - below, NULL);
	return r < 0 ? r : belay_unlock(handle, below, BASE - below);
}

_Noreturn void intrude(struct board *board, const char *socket, const char *directory, uint64_t random)
{
	struct belay_handle *handle[FILES] = { NULL };
	struct belay *belay;
	char path[PATH_MAX];
	int fd, r;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	r = belay_connect(&belay, socket);
	for (unsigned i = 0; i < FILES && r == 0; i++) {
		file_path(path, directory, i);
		fd = open(path, O_RDWR | O_CLOEXEC);
		r = belay_open_fd(belay, fd, BELAY_OWNER_HANDLE, &handle[i]);
	}
	while (r >= 0 && !atomic_load(&board->ended)) {
		struct timespec pause = { 0, random_below(&random, PAUSE_NS) };
		uint32_t at = atomic_load(&board->at);

		/* Where the others are. */
		if (at < CHUNK && board->step[at].file < FILES)
			r = disturb(handle[board->step[at].file], &random);
		(void)nanosleep(&pause, NULL);
	}
	if (r < 0)
		die("who disturbs was refused", -r);
	_exit(0);
}
