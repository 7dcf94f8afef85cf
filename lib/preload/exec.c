/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Another program in this process. The connection ends with the present one, and so do
 * its locks, which the kernel would keep; that is said, if there are any.
 *
 * A vfork()ed child comes by here, too: nothing may be written to but the stack.
 */
#include <alloca.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/preload/preload.h"

static struct {
	void *_Atomic execvpe;
} next;

void *next_find(void *_Atomic *place, const char *name)
{
	void *at = atomic_load_explicit(place, memory_order_relaxed);

	/* Whoever else is at it finds the same. */
	if (!at) {
		at = dlsym(RTLD_NEXT, name);
		atomic_store_explicit(place, at, memory_order_relaxed);
	}
	return at;
}

void exec_begin(void)
{
	(void)next_find(&next.execvpe, "execvpe");
}

/* All that is done when this library is loaded: a vfork()ed child, for one, must not look. */
__attribute__((constructor)) static void begin(void)
{
	exec_begin();
	close_begin();
	(void)kernel();
}

static void tell(void)
{
	struct calm calm;
	bool held;

	if (!atomic_load_explicit(&preload.link, memory_order_relaxed) || !link_is_self() ||
	    !atomic_load(&preload.link))
		return;
	calm_begin(&calm);
	pthread_mutex_lock(&preload.mutex);
	held = file_anything_held();
	pthread_mutex_unlock(&preload.mutex);
	if (held)
		say_once(ONCE_EXEC, "its locks end here, for it executes another program: belay's do "
			 "not survive that as the kernel's would. See belay-preload(7)");
	calm_end(&calm);
}

INTERPOSED int execve(const char *path, char *const argv[], char *const envp[])
{
	tell();
	return (int)syscall(SYS_execve, path, argv, envp);
}

INTERPOSED int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

INTERPOSED int execveat(int dir, const char *path, char *const argv[], char *const envp[], int flags)
{
	tell();
	return (int)syscall(SYS_execveat, dir, path, argv, envp, flags);
}

INTERPOSED int fexecve(int fd, char *const argv[], char *const envp[])
{
	return execveat(fd, "", argv, envp, AT_EMPTY_PATH);
}

INTERPOSED int execvpe(const char *file, char *const argv[], char *const envp[])
{
	int (*own)(const char *, char *const[], char *const[]);
	void *at = next_find(&next.execvpe, "execvpe");

	/* ISO C has no such conversion, POSIX wants it to work. */
	memcpy(&own, &at, sizeof(at));
	tell();
	return own(file, argv, envp);
}

INTERPOSED int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

/* How many words there are, the NULL behind them counted. */
static size_t count(va_list args)
{
	size_t n = 2;

	while (va_arg(args, char *))
		n++;
	return n;
}

static void fill(char **argv, const char *first, size_t n, va_list args)
{
	argv[0] = (char *)(uintptr_t)first;
	for (size_t i = 1; i < n; i++)
		argv[i] = va_arg(args, char *);
}

/* Into a vector on the stack, as the C library does: it is used between vfork() and exec. */
#define VECTOR(argv, args, first)			\
	do {						\
		size_t vector_size;			\
							\
		va_start(args, first);			\
		vector_size = count(args);		\
		va_end(args);				\
		argv = alloca(vector_size * sizeof(*argv)); \
		va_start(args, first);			\
		fill(argv, first, vector_size, args);	\
	} while (0)

INTERPOSED int execl(const char *path, const char *first, ...)
{
	char **argv;
	va_list args;

	VECTOR(argv, args, first);
	va_end(args);
	return execve(path, argv, environ);
}

INTERPOSED int execlp(const char *file, const char *first, ...)
{
	char **argv;
	va_list args;

	VECTOR(argv, args, first);
	va_end(args);
	return execvpe(file, argv, environ);
}

INTERPOSED int execle(const char *path, const char *first, ...)
{
	char **argv, *const *envp;
	va_list args;

	VECTOR(argv, args, first);
	envp = va_arg(args, char *const *);
	va_end(args);
	return execve(path, argv, envp);
}
