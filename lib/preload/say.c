/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/preload/preload.h"

/*
 * A program without stderr may have a file of its own as descriptor 2, and text
 * in a database is damage. What the shell's 2>FILE opens is for writing only.
 */
static bool may_say(void)
{
	struct stat st;

	if (fstat(STDERR_FILENO, &st) < 0)
		return false;
	if (S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode))
		return true;
	if (!S_ISREG(st.st_mode))
		return false;
	return (syscall(SYS_fcntl, STDERR_FILENO, F_GETFL, 0) & O_ACCMODE) == O_WRONLY;
}

void say_once(enum once what, const char *format, ...)
{
	char text[600];
	size_t size;
	va_list args;

	if (atomic_flag_test_and_set(&preload.said[what]) || !may_say())
		return;
	size = (size_t)snprintf(text, sizeof(text), "belay: %s[%d]: ", program_invocation_short_name,
				(int)getpid());
	if (size < sizeof(text)) {
		va_start(args, format);
		(void)vsnprintf(text + size, sizeof(text) - size, format, args);
		va_end(args);
	}
	size = strlen(text);
	if (size == sizeof(text) - 1)
		size--;
	text[size++] = '\n';
	while (write(STDERR_FILENO, text, size) < 0 && errno == EINTR)
		;
}
