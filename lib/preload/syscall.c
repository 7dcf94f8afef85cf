/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * syscall(2), by which some programs close, copy and lock: libuv's close() is made of it, and with
 * that each one of Node.js. What is done here by other names is done for it, too; all else
 * goes on to the C library's.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/preload/preload.h"

#define ARGS 6

kernel_call *_Atomic kernel_found;

kernel_call *kernel_find(void)
{
	void *_Atomic place = NULL;
	void *at = next_find(&place, "syscall");
	kernel_call *found;

	memcpy(&found, &at, sizeof(at));
	atomic_store_explicit(&kernel_found, found, memory_order_relaxed);
	return found;
}

static void *pointer(long arg)
{
	void *at;

	memcpy(&at, &arg, sizeof(at));
	return at;
}

static long forward(long number, const long *arg)
{
	return kernel()(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}

/* More arguments may be read than there are, as the C library does it, too. */
#define READ_ARGS(arg, last)				\
	do {						\
		va_list read_args;			\
							\
		va_start(read_args, last);		\
		for (int i = 0; i < ARGS; i++)		\
			arg[i] = va_arg(read_args, long); \
		va_end(read_args);			\
	} while (0)

/* What syscall() is within libbelay's sources. */
#undef syscall
long preload_syscall(long number, ...)
{
	long arg[ARGS];

	READ_ARGS(arg, number);
	return forward(number, arg);
}

/* Here the program's are meant. */
#undef close
int close(int fd);
INTERPOSED long syscall(long number, ...);
INTERPOSED long syscall(long number, ...)
{
	long arg[ARGS];

	READ_ARGS(arg, number);
	switch (number) {
	case SYS_close:
		return close((int)arg[0]);
	case SYS_close_range:
		return close_range((unsigned)arg[0], (unsigned)arg[1], (int)arg[2]);
	case SYS_dup:
		return dup((int)arg[0]);
#ifdef SYS_dup2
	case SYS_dup2:
		return dup2((int)arg[0], (int)arg[1]);
#endif
	case SYS_dup3:
		return dup3((int)arg[0], (int)arg[1], (int)arg[2]);
	case SYS_fcntl:
		/* F_GETOWN is not the same: the C library's tells groups from errors. */
		if ((int)arg[1] != F_GETOWN)
			return fcntl((int)arg[0], (int)arg[1], pointer(arg[2]));
		break;
	case SYS_flock:
		return flock((int)arg[0], (int)arg[1]);
	case SYS_execve:
		return execve(pointer(arg[0]), pointer(arg[1]), pointer(arg[2]));
	case SYS_execveat:
		return execveat((int)arg[0], pointer(arg[1]), pointer(arg[2]), pointer(arg[3]), (int)arg[4]);
	default:
		break;
	}
	return forward(number, arg);
}
