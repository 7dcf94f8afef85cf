/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ways to lock one byte: through belay, and through the kernel's three kinds of lock. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "tools/bench.h"

/* ---- belay ---- */

static enum belay_lock_mode belay_mode(const struct lane *lane)
{
	return lane->bench->o->shared ? BELAY_SHARED : BELAY_EXCLUSIVE;
}

static int via_belay_open(struct lane *lane)
{
	const struct bench *bench = lane->bench;
	/* Threads must exclude each other; a lone one is a process, as in the original. */
	enum belay_lock_owner owner =
		bench->o->threads > 1 ? BELAY_OWNER_HANDLE : BELAY_OWNER_PROCESS;

	if (bench->o->name)
		return belay_open_name(bench->belay, NULL, bench->o->name, owner, &lane->handle);
	return belay_open_fd(bench->belay, bench->file, owner, &lane->handle);
}

/*
 * The next lock follows its unlock at once; a lone lane lets both travel in one
 * packet. Threads share the connection, and one must not keep back another's unlock.
 */
static int via_belay_lock(struct lane *lane, uint64_t at)
{
	int r = belay_lock(lane->handle, belay_mode(lane), at, 1, NULL);

	if (lane->bench->o->threads == 1)
		(void)belay_uncork(lane->bench->belay);
	return r;
}

static int via_belay_unlock(struct lane *lane, uint64_t at)
{
	if (lane->bench->o->threads == 1)
		(void)belay_cork(lane->bench->belay);
	return belay_unlock(lane->handle, at, 1);
}

static int via_belay_check(struct lane *lane, uint64_t at)
{
	struct belay_lock_holder holder;

	return belay_get(lane->handle, belay_mode(lane), at, 1, &holder);
}

static void via_belay_close(struct lane *lane)
{
	belay_handle_close(lane->handle);
}

/* ---- fcntl(2): of the process, or of the open file ---- */

/* FILE, or FILE.0, FILE.1, ... */
static int open_files(struct lane *lane, unsigned count, bool numbered)
{
	const char *file = lane->bench->o->file;
	char path[4096];
	unsigned i;
	int n;

	lane->fd = calloc(count, sizeof(*lane->fd));
	if (!lane->fd)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		n = numbered ? snprintf(path, sizeof(path), "%s.%u", file, i)
			     : snprintf(path, sizeof(path), "%s", file);
		if ((size_t)n >= sizeof(path))
			return -ENAMETOOLONG;
		lane->fd[i] = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
		if (lane->fd[i] < 0)
			return -errno;
		lane->fd_count++;
	}
	return 0;
}

static void close_files(struct lane *lane)
{
	while (lane->fd_count > 0)
		close(lane->fd[--lane->fd_count]);
	free(lane->fd);
	lane->fd = NULL;
}

static int via_fcntl_open(struct lane *lane)
{
	return open_files(lane, 1, false);
}

static int kernel_lock(struct lane *lane, int command, short type, uint64_t at, struct flock *lock)
{
	*lock = (struct flock){
		.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)at, .l_len = 1,
	};
	while (fcntl(lane->fd[0], command, lock) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

static short kernel_type(const struct lane *lane)
{
	return lane->bench->o->shared ? F_RDLCK : F_WRLCK;
}

static int via_fcntl_lock(struct lane *lane, uint64_t at)
{
	struct flock lock;

	return kernel_lock(lane, F_SETLKW, kernel_type(lane), at, &lock);
}

static int via_fcntl_unlock(struct lane *lane, uint64_t at)
{
	struct flock lock;

	return kernel_lock(lane, F_SETLK, F_UNLCK, at, &lock);
}

static int via_fcntl_check(struct lane *lane, uint64_t at)
{
	struct flock lock;
	int r = kernel_lock(lane, F_GETLK, kernel_type(lane), at, &lock);

	return r < 0 ? r : lock.l_type != F_UNLCK;
}

static int via_ofd_lock(struct lane *lane, uint64_t at)
{
	struct flock lock;

	return kernel_lock(lane, F_OFD_SETLKW, kernel_type(lane), at, &lock);
}

static int via_ofd_unlock(struct lane *lane, uint64_t at)
{
	struct flock lock;

	return kernel_lock(lane, F_OFD_SETLK, F_UNLCK, at, &lock);
}

static int via_ofd_check(struct lane *lane, uint64_t at)
{
	struct flock lock;
	int r = kernel_lock(lane, F_OFD_GETLK, kernel_type(lane), at, &lock);

	return r < 0 ? r : lock.l_type != F_UNLCK;
}

/* ---- flock(2) knows no bytes: a file for each ---- */

static int via_flock_open(struct lane *lane)
{
	return open_files(lane, lane->bench->o->locks, true);
}

static int flock_byte(struct lane *lane, uint64_t at, int operation)
{
	if (at >= lane->fd_count)
		return -EINVAL;
	while (flock(lane->fd[at], operation) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

static int via_flock_lock(struct lane *lane, uint64_t at)
{
	return flock_byte(lane, at, lane->bench->o->shared ? LOCK_SH : LOCK_EX);
}

static int via_flock_unlock(struct lane *lane, uint64_t at)
{
	return flock_byte(lane, at, LOCK_UN);
}

static int via_flock_check(struct lane *lane, uint64_t at)
{
	/* There is no such question to the kernel; to take it again must succeed. */
	int r = flock_byte(lane, at, (lane->bench->o->shared ? LOCK_SH : LOCK_EX) | LOCK_NB);

	return r == -EWOULDBLOCK ? 1 : r;
}

const struct via_ops bench_vias[BENCH_VIA_COUNT] = {
	[BENCH_VIA_BELAY] = { via_belay_open, via_belay_lock, via_belay_unlock, via_belay_check,
			      via_belay_close },
	[BENCH_VIA_FCNTL] = { via_fcntl_open, via_fcntl_lock, via_fcntl_unlock, via_fcntl_check,
			      close_files },
	[BENCH_VIA_OFD] = { via_fcntl_open, via_ofd_lock, via_ofd_unlock, via_ofd_check, close_files },
	[BENCH_VIA_FLOCK] = { via_flock_open, via_flock_lock, via_flock_unlock, via_flock_check,
			      close_files },
};
