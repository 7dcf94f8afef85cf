/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* fcntl(2) and lockf(3). Checks are made in the kernel's order. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/handle.h"
#include "lib/preload/extent.h"
#include "lib/preload/preload.h"

/* One struct flock, one set of commands: there would be more where off_t had 32 bits. */
_Static_assert(sizeof(off_t) == 8 && F_SETLK64 == F_SETLK, "for 64-bit systems only");

static bool is_ofd(int cmd)
{
	return cmd == F_OFD_SETLK || cmd == F_OFD_SETLKW || cmd == F_OFD_GETLK;
}

static bool is_get(int cmd)
{
	return cmd == F_GETLK || cmd == F_OFD_GETLK;
}

static bool is_wait(int cmd)
{
	return cmd == F_SETLKW || cmd == F_OFD_SETLKW;
}

static int extent_of(int fd, const struct flock *l, struct extent *ret_extent)
{
	struct stat st;
	off_t base = 0;

	switch (l->l_whence) {
	case SEEK_SET:
		break;
	case SEEK_CUR:
		base = lseek(fd, 0, SEEK_CUR);
		break;
	case SEEK_END:
		base = fstat(fd, &st) < 0 ? -1 : st.st_size;
		break;
	default:
		return -EINVAL;
	}
	return base < 0 ? -errno : extent_from(l, base, ret_extent);
}

/* What the kernel has against the arguments, before it looks at any lock. */
static int check(int fd, const struct description *d, int cmd, const struct flock *l,
		 struct extent *ret_extent)
{
	int r;

	if (is_get(cmd) && l->l_type != F_RDLCK && l->l_type != F_WRLCK)
		return -EINVAL;
	r = extent_of(fd, l, ret_extent);
	if (r < 0)
		return r;
	if (l->l_type != F_RDLCK && l->l_type != F_WRLCK && l->l_type != F_UNLCK)
		return -EINVAL;
	if (!is_get(cmd) && ((l->l_type == F_RDLCK && !d->may_read) ||
			     (l->l_type == F_WRLCK && !d->may_write)))
		return -EBADF;
	return is_ofd(cmd) && l->l_pid != 0 ? -EINVAL : 0;
}

static struct held *held_by(struct description *d, int cmd)
{
	return is_ofd(cmd) ? &d->held : &d->file->held;
}

/* A handle that was opened before, whose owner it is; or NULL. To unlock, any one will do. */
static struct belay_handle *opened(struct description *d, int cmd, short type)
{
	struct file *file = d->file;
	enum belay_lock_mode mode = type == F_WRLCK ? BELAY_EXCLUSIVE : BELAY_SHARED;
	struct belay_handle *handle;

	if (is_ofd(cmd))
		return atomic_load_explicit(&d->ofd, memory_order_acquire);
	handle = atomic_load_explicit(&file->posix[mode], memory_order_acquire);
	if (!handle && type == F_UNLCK)
		handle = atomic_load_explicit(&file->posix[BELAY_EXCLUSIVE], memory_order_acquire);
	return handle;
}

static int unlock(struct description *d, int cmd, const struct extent *e)
{
	struct belay_handle *handle = opened(d, cmd, F_UNLCK);
	uint64_t now = held_now(held_by(d, cmd));
	int r;

	/* What was never locked from here need not be unlocked. */
	if (!handle)
		return 0;
	r = wait_unlock(handle, e->start, e->end);
	if (r == 0)
		held_remove(held_by(d, cmd), !__libc_single_threaded, now, e->start, e->end);
	return r;
}

/*
 * As the kernel does: a lock that was waited for on a descriptor closed meanwhile is none, and one of
 * an open file ends with the call. Who closed has unlocked before, if he saw this call at work.
 */
static int is_closed(int fd, struct description *d, int cmd)
{
	static const struct extent all = { 0, EXTENT_LAST };

	if (is_ofd(cmd) ? !atomic_load(&d->dying) : table_get(fd) == d)
		return 0;
	(void)unlock(d, cmd, &all);
	return is_ofd(cmd) ? 0 : -EBADF;
}

static int lock(const struct calm *calm, int fd, struct description *d, int cmd,
		const struct flock *l, const struct extent *e)
{
	enum belay_lock_owner owner = is_ofd(cmd) ? BELAY_OWNER_HANDLE : BELAY_OWNER_PROCESS;
	enum belay_lock_mode mode = l->l_type == F_RDLCK ? BELAY_SHARED : BELAY_EXCLUSIVE;
	struct belay_handle *handle;
	int r = file_handle(fd, d, owner, mode, &handle);

	if (r == 0)
		r = wait_lock(calm, d, handle, mode, e->start, e->end, is_wait(cmd));
	if (r < 0)
		return r;
	held_add(held_by(d, cmd), !__libc_single_threaded, e->start, e->end);
	return link_is_valid(d->file->connection) ? is_closed(fd, d, cmd) : -EIO;
}

/* The process's number as Linux tells it: open files have none, and those of other nodes are negative. */
static pid_t pid_of(const struct belay *belay, const struct belay_lock_holder *holder)
{
	if (holder->owner == BELAY_OWNER_HANDLE)
		return -1;
	return holder->node == belay_node(belay) ? holder->pid : -holder->pid;
}

static int get(int fd, struct description *d, int cmd, struct flock *l, const struct extent *e)
{
	enum belay_lock_owner owner = is_ofd(cmd) ? BELAY_OWNER_HANDLE : BELAY_OWNER_PROCESS;
	enum belay_lock_mode mode = l->l_type == F_RDLCK ? BELAY_SHARED : BELAY_EXCLUSIVE;
	struct belay_lock_holder holder;
	struct belay_handle *handle;
	int r = file_handle(fd, d, owner, d->may_read ? BELAY_SHARED : BELAY_EXCLUSIVE, &handle);

	if (r == 0)
		r = belay_get(handle, mode, e->start, extent_length(e), &holder);
	if (r < 0)
		return r;
	if (r == 0) {
		l->l_type = F_UNLCK;
		return 0;
	}
	l->l_pid = pid_of(d->file->connection->belay, &holder);
	l->l_start = (off_t)holder.start;
	l->l_len = (off_t)holder.length;
	l->l_whence = SEEK_SET;
	l->l_type = holder.mode == BELAY_SHARED ? F_RDLCK : F_WRLCK;
	return 0;
}

static int ours(const struct calm *calm, int fd, struct description *d, int cmd, struct flock *l)
{
	struct extent e;
	int r = check(fd, d, cmd, l, &e);

	if (r < 0)
		return r;
	if (is_get(cmd))
		r = get(fd, d, cmd, l, &e);
	else if (l->l_type == F_UNLCK)
		r = unlock(d, cmd, &e);
	else
		r = lock(calm, fd, d, cmd, l, &e);
	if (r == -EIO)
		r = link_lost(d->file->connection) < 0 ? -EIO : -WAIT_RESTART;
	return r == -ENOMEM ? -ENOLCK : r;
}

/* Within a loan: no system call, and nothing that a signal handler must not come into. 1: not so. */
static int within_loan(int fd, struct description *d, int cmd, const struct flock *l)
{
	struct belay_handle *handle = opened(d, cmd, l->l_type);
	struct belay_range range;
	struct extent e;
	uint64_t token, now;
	int r;

	if (!handle || l->l_whence != SEEK_SET || is_get(cmd))
		return 1;
	r = check(fd, d, cmd, l, &e);
	if (r < 0)
		return r;
	range = (struct belay_range){ .start = e.start, .end = e.end };
	if (l->l_type == F_UNLCK) {
		now = held_now(held_by(d, cmd));
		if (loan_unlock(handle->resource, handle->owner, &range) != 0)
			return 1;
		held_remove(held_by(d, cmd), !__libc_single_threaded, now, e.start, e.end);
		return 0;
	}
	r = handle_lock(handle, l->l_type == F_RDLCK ? BELAY_MODE_SH : BELAY_MODE_EX, &range, &token);
	if (r != 0)
		return r == -EAGAIN && !is_wait(cmd) ? -EAGAIN : 1;
	held_add(held_by(d, cmd), !__libc_single_threaded, e.start, e.end);
	return link_is_valid(d->file->connection) ? is_closed(fd, d, cmd) : 1;
}

/* 1: it is the kernel's; 0, or a negative errno. */
static int once(int fd, int cmd, struct flock *l)
{
	struct description *d;
	struct calm calm;
	int r;

	calm_begin(&calm);
	r = file_enter(fd, &d);
	if (r == 0) {
		r = 1;
	} else if (r > 0) {
		r = ours(&calm, fd, d, cmd, l);
		file_leave(d);
	}
	calm_end(&calm);
	return r;
}

static int result(int r)
{
	if (r == 0)
		return 0;
	errno = -r;
	return -1;
}

int fcntl_lock(int fd, int cmd, struct flock *l)
{
	struct description *d;
	int r = 1;

	/* The kernel says what it says to no address at all. */
	if (table_get(fd) == TABLE_NOT_OURS || !l)
		return (int)syscall(SYS_fcntl, fd, cmd, l);
	if (file_enter_quickly(fd, &d)) {
		r = within_loan(fd, d, cmd, l);
		file_leave(d);
	}
	if (r <= 0)
		return result(r);
	while ((r = once(fd, cmd, l)) == -WAIT_RESTART)
		;
	return r > 0 ? (int)syscall(SYS_fcntl, fd, cmd, l) : result(r);
}

/* As the C library: a process group's number would look like an error. */
static int get_owner(int fd)
{
	struct f_owner_ex owner;

	if (syscall(SYS_fcntl, fd, F_GETOWN_EX, &owner) < 0)
		return -1;
	return owner.type == F_OWNER_PGRP ? -owner.pid : owner.pid;
}

static int dispatch(int fd, int cmd, void *arg)
{
	int r;

	switch (cmd) {
	case F_SETLK:
	case F_SETLKW:
	case F_GETLK:
	case F_OFD_SETLK:
	case F_OFD_SETLKW:
	case F_OFD_GETLK:
		return fcntl_lock(fd, cmd, arg);
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		r = (int)syscall(SYS_fcntl, fd, cmd, arg);
		if (r >= 0)
			file_copied(fd, r);
		return r;
	case F_GETOWN:
		return get_owner(fd);
	default:
		return (int)syscall(SYS_fcntl, fd, cmd, arg);
	}
}

/* The third argument is a number, an address or not there, which is all the same to a register. */
#define DEFINE(name)					\
	INTERPOSED int name(int fd, int cmd, ...);	\
	INTERPOSED int name(int fd, int cmd, ...)	\
	{						\
		va_list args;				\
		void *arg;				\
							\
		va_start(args, cmd);			\
		arg = va_arg(args, void *);		\
		va_end(args);				\
		return dispatch(fd, cmd, arg);		\
	}
#pragma GCC diagnostic ignored "-Wredundant-decls"
DEFINE(fcntl)
DEFINE(fcntl64)
DEFINE(__fcntl)

INTERPOSED int lockf(int fd, int cmd, off_t length)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_CUR, .l_len = length };

	switch (cmd) {
	case F_TEST:
		l.l_type = F_RDLCK;
		if (fcntl_lock(fd, F_GETLK, &l) < 0)
			return -1;
		if (l.l_type == F_UNLCK || l.l_pid == getpid())
			return 0;
		errno = EACCES;
		return -1;
	case F_ULOCK:
		l.l_type = F_UNLCK;
		return fcntl_lock(fd, F_SETLK, &l);
	case F_LOCK:
		return fcntl_lock(fd, F_SETLKW, &l);
	case F_TLOCK:
		return fcntl_lock(fd, F_SETLK, &l);
	default:
		errno = EINVAL;
		return -1;
	}
}

INTERPOSED int lockf64(int fd, int cmd, off64_t length)
{
	return lockf(fd, cmd, length);
}
