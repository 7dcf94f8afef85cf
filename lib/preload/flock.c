/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* flock(2). */
#include <errno.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/handle.h"
#include "lib/preload/preload.h"

/* Of other times; the kernel takes it and does nothing. */
#ifndef LOCK_MAND
#define LOCK_MAND 32
#endif

/* Each lock is noted as another one: whoever unlocks can tell if a handler, or a thread, locked meanwhile. */
static void note_lock(struct description *d, int kind)
{
	d->flock_held = (d->flock_held & ~FLOCK_KIND) + FLOCK_KIND + 1 + (uint64_t)kind;
}

static void note_unlock(struct description *d, uint64_t before)
{
	(void)atomic_compare_exchange_strong(&d->flock_held, &before, before & ~FLOCK_KIND);
}

static int unlock(struct description *d)
{
	uint64_t before = d->flock_held;
	int r = d->flock ? wait_unlock(d->flock, 0, BELAY_OFFSET_MAX) : 0;

	if (r == 0)
		note_unlock(d, before);
	return r;
}

/* As in fcntl.c: the last descriptor was closed meanwhile. */
static void is_closed(struct description *d)
{
	if (atomic_load(&d->dying))
		(void)unlock(d);
}

static bool is_other(const struct description *d, int kind)
{
	int held = file_flock_kind(d);

	return held != 0 && held != kind;
}

static int lock(const struct calm *calm, int fd, struct description *d, int kind, bool wait)
{
	enum belay_lock_mode mode = kind == LOCK_SH ? BELAY_SHARED : BELAY_EXCLUSIVE;
	struct belay_handle *handle;
	int r = file_handle(fd, d, BELAY_OWNER_FLOCK, mode, &handle);

	/* To convert is to unlock first, and then perhaps to come away with nothing. */
	if (r == 0 && is_other(d, kind))
		r = unlock(d);
	if (r == 0)
		r = wait_lock(calm, d, handle, mode, 0, BELAY_OFFSET_MAX, wait);
	if (r < 0)
		return r;
	note_lock(d, kind);
	is_closed(d);
	return link_is_valid(d->file->connection) ? 0 : -EIO;
}

static int ours(const struct calm *calm, int fd, struct description *d, int operation)
{
	int kind = operation & ~LOCK_NB, r;

	switch (kind) {
	case LOCK_UN:
		r = unlock(d);
		break;
	case LOCK_SH:
	case LOCK_EX:
		r = lock(calm, fd, d, kind, !(operation & LOCK_NB));
		break;
	default:
		return -EINVAL;
	}
	if (r == -EIO)
		r = link_lost(d->file->connection) < 0 ? -EIO : -WAIT_RESTART;
	return r == -ENOMEM ? -ENOLCK : r;
}

/* 1: it is the kernel's; 0, or a negative errno. */
static int once(int fd, int operation)
{
	struct description *d;
	struct calm calm;
	int r;

	calm_begin(&calm);
	r = file_enter(fd, &d);
	if (r == 0) {
		r = 1;
	} else if (r > 0) {
		r = ours(&calm, fd, d, operation);
		file_leave(d);
	}
	calm_end(&calm);
	return r;
}

/* Within a loan, as in fcntl.c. 1: not so. */
static int within_loan(struct description *d, int operation)
{
	static const struct belay_range all = { .start = 0, .end = BELAY_OFFSET_MAX };
	struct belay_handle *handle = d->flock;
	int kind = operation & ~LOCK_NB, r;
	uint64_t token, before;

	if (!handle)
		return 1;
	if (kind == LOCK_UN) {
		before = d->flock_held;
		if (loan_unlock(handle->resource, handle->owner, &all) != 0)
			return 1;
		note_unlock(d, before);
		return 0;
	}
	if ((kind != LOCK_SH && kind != LOCK_EX) || is_other(d, kind))
		return 1;
	r = handle_lock(handle, kind == LOCK_SH ? BELAY_MODE_SH : BELAY_MODE_EX, &all, &token);
	if (r != 0)
		return r == -EAGAIN && (operation & LOCK_NB) ? -EAGAIN : 1;
	note_lock(d, kind);
	is_closed(d);
	return link_is_valid(d->file->connection) ? 0 : 1;
}

INTERPOSED int flock(int fd, int operation)
{
	struct description *d;
	int r = 1;

	if (file_enter_quickly(fd, &d)) {
		r = within_loan(d, operation);
		file_leave(d);
	}
	if (r == 1 && table_get(fd) != TABLE_NOT_OURS && !(operation & LOCK_MAND))
		while ((r = once(fd, operation)) == -WAIT_RESTART)
			;
	if (r > 0)
		return (int)syscall(SYS_flock, fd, operation);
	if (r < 0) {
		errno = -r;
		return -1;
	}
	return 0;
}
