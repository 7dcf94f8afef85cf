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

static int unlock(struct description *d)
{
	int r = d->flock ? wait_unlock(d->flock, 0, BELAY_OFFSET_MAX) : 0;

	if (r == 0)
		d->flock_held = 0;
	return r;
}

static int lock(const struct calm *calm, int fd, struct description *d, int kind, bool wait)
{
	enum belay_lock_mode mode = kind == LOCK_SH ? BELAY_SHARED : BELAY_EXCLUSIVE;
	struct belay_handle *handle;
	int r = file_handle(fd, d, BELAY_OWNER_FLOCK, mode, &handle);

	/* To convert is to unlock first, and then perhaps to come away with nothing. */
	if (r == 0 && d->flock_held != 0 && d->flock_held != kind)
		r = unlock(d);
	if (r == 0)
		r = wait_lock(calm, d, handle, mode, 0, BELAY_OFFSET_MAX, wait);
	if (r == 0)
		d->flock_held = kind;
	return r;
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
	uint64_t token;

	if (!handle)
		return 1;
	if (kind == LOCK_UN) {
		if (loan_unlock(handle->resource, handle->owner, &all) != 0)
			return 1;
		d->flock_held = 0;
		return 0;
	}
	if ((kind != LOCK_SH && kind != LOCK_EX) || (d->flock_held != 0 && d->flock_held != kind))
		return 1;
	r = handle_lock(handle, kind == LOCK_SH ? BELAY_MODE_SH : BELAY_MODE_EX, &all, &token);
	if (r != 0)
		return r == -EAGAIN && (operation & LOCK_NB) ? -EAGAIN : 1;
	d->flock_held = kind;
	return 0;
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
