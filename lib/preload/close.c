/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The ends and the copies of descriptors. Of a file that was never locked they cost
 * a look into the table. Locks go before the descriptor does: behind it there may
 * be another file at once.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/preload/preload.h"

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC 4u
#endif

/* The C library's own. They flush what is buffered, which nobody else can. */
static struct {
	void *_Atomic fclose, *_Atomic freopen, *_Atomic freopen64, *_Atomic closedir;
} next;

void close_begin(void)
{
	(void)next_find(&next.fclose, "fclose");
	(void)next_find(&next.freopen, "freopen");
	(void)next_find(&next.freopen64, "freopen64");
	(void)next_find(&next.closedir, "closedir");
}

/* What libbelay's own close() is within this library. The connection may end while the mutex is held. */
int preload_close(int fd)
{
	return (int)syscall(SYS_close, fd);
}

#undef close
INTERPOSED int close(int fd);
INTERPOSED int close(int fd)
{
	int r;

	if (file_concerns(fd))
		file_closing(fd);
	if (link_owns(fd)) {
		/* It is none of the program's; those who close all there are take that for an answer. */
		errno = EBADF;
		return -1;
	}
	r = (int)syscall(SYS_close, fd);
	/* Another thread may have looked at it at the last moment. */
	if (table_get(fd) == TABLE_NOT_OURS)
		(void)table_set(fd, NULL);
	return r;
}

INTERPOSED int __close(int fd);
INTERPOSED int __close(int fd)
{
	return close(fd);
}

INTERPOSED int dup(int fd)
{
	int copy = (int)syscall(SYS_dup, fd);

	if (copy >= 0)
		file_copied(fd, copy);
	return copy;
}

static bool below_limit(int fd)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) < 0 || (rlim_t)fd < limit.rlim_cur;
}

static int copy_to(int fd, int to, int flags)
{
	int r;

	/* Only if it is going to be done. */
	if (to != fd && to >= 0 && below_limit(to) && !(flags & ~O_CLOEXEC) &&
	    syscall(SYS_fcntl, fd, F_GETFD, 0) >= 0) {
		if (file_concerns(to))
			file_closing(to);
		if (link_owns(to)) {
			errno = EBUSY;
			return -1;
		}
	}
	r = (int)syscall(SYS_dup3, fd, to, flags);
	if (r >= 0)
		file_copied(fd, to);
	return r;
}

INTERPOSED int dup2(int fd, int to)
{
	/* dup3() does not take it. */
	if (fd == to)
		return syscall(SYS_fcntl, fd, F_GETFD, 0) < 0 ? -1 : to;
	return copy_to(fd, to, 0);
}

INTERPOSED int __dup2(int fd, int to);
INTERPOSED int __dup2(int fd, int to)
{
	return dup2(fd, to);
}

INTERPOSED int dup3(int fd, int to, int flags)
{
	return copy_to(fd, to, flags);
}

/* ---- many at once ---- */

/* Call for each open descriptor in [first, last]. */
static void each_open(unsigned first, unsigned last, void (*call)(int fd))
{
	char buf[2048];
	int dir = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long size;

	if (dir < 0)
		return;
	while ((size = syscall(SYS_getdents64, dir, buf, sizeof(buf))) > 0) {
		for (long at = 0; at < size; ) {
			/* struct linux_dirent64: inode 8, offset 8, size 2, type 1, name */
			const char *name = buf + at + 19;
			unsigned fd = 0;
			uint16_t step;

			memcpy(&step, buf + at + 16, sizeof(step));
			at += step;
			for (; *name >= '0' && *name <= '9'; name++)
				fd = fd * 10 + (unsigned)(*name - '0');
			if (*name == '\0' && fd >= first && fd <= last && fd != (unsigned)dir)
				call((int)fd);
		}
	}
	syscall(SYS_close, dir);
}

static long close_some(unsigned first, unsigned last, unsigned flags)
{
	return first <= last ? syscall(SYS_close_range, first, last, flags) : 0;
}

INTERPOSED int close_range(unsigned first, unsigned last, int flags)
{
	unsigned at = first;
	long r;

	if (flags & (int)CLOSE_RANGE_CLOEXEC)
		return (int)syscall(SYS_close_range, first, last, flags);
	if (atomic_load(&preload.posix_files) > 0)
		each_open(first, last, file_closing);
	table_each(first, last, file_closing);
	/* Around what is not the program's. */
	for (unsigned fd = first; fd <= last && fd < 65536; fd++) {
		if (!link_owns((int)fd))
			continue;
		r = fd > at ? close_some(at, fd - 1, (unsigned)flags) : 0;
		if (r < 0)
			return -1;
		at = fd + 1;
	}
	return (int)close_some(at, last, (unsigned)flags);
}

static void close_quietly(int fd)
{
	(void)close(fd);
}

INTERPOSED void closefrom(int first)
{
	unsigned from = first > 0 ? (unsigned)first : 0;
	int error = errno;

	if (close_range(from, UINT_MAX, 0) < 0)
		each_open(from, UINT_MAX, close_quietly);
	errno = error;
}

/* ---- streams, and directories ---- */

/* What is buffered is written under the lock that protects it. */
static void stream_closing(FILE *stream)
{
	int fd = fileno(stream);

	if (fd < 0 || !file_concerns(fd))
		return;
	(void)fflush(stream);
	file_closing(fd);
}

INTERPOSED int fclose(FILE *stream)
{
	int (*own)(FILE *);
	void *at = next_find(&next.fclose, "fclose");

	/* ISO C has no such conversion, POSIX wants it to work. */
	memcpy(&own, &at, sizeof(at));
	stream_closing(stream);
	return own(stream);
}

static FILE *reopen(void *at, const char *path, const char *mode, FILE *stream)
{
	FILE *(*own)(const char *, const char *, FILE *);

	memcpy(&own, &at, sizeof(at));
	stream_closing(stream);
	return own(path, mode, stream);
}

INTERPOSED FILE *freopen(const char *path, const char *mode, FILE *stream)
{
	return reopen(next_find(&next.freopen, "freopen"), path, mode, stream);
}

INTERPOSED FILE *freopen64(const char *path, const char *mode, FILE *stream)
{
	return reopen(next_find(&next.freopen64, "freopen64"), path, mode, stream);
}

/* Programs lock directories, too; and what its number is next must not be taken for one. */
INTERPOSED int closedir(DIR *dir)
{
	int (*own)(DIR *);
	void *at = next_find(&next.closedir, "closedir");
	/* The C library takes NULL for an error, though its header has it that there is none. */
	DIR *volatile given = dir;
	int fd = given ? dirfd(dir) : -1;

	memcpy(&own, &at, sizeof(at));
	if (fd >= 0 && file_concerns(fd))
		file_closing(fd);
	return own(dir);
}
