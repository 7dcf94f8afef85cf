/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lvmlockd/worker_child.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The loop's handlers would write into descriptors that are gone. */
static void default_signals(void)
{
	sigset_t none;

	for (int s = 1; s < SIGRTMAX; s++)
		(void)signal(s, SIG_DFL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/*
 * Nothing else stays open: a child that hangs for hours would keep the connections of clients, who wait for
 * their end, the claim on the pid file, and the membership of the group.
 */
static bool own_descriptors(int out, bool program, int *ret_out)
{
	int null = open("/dev/null", O_RDWR), high;

	if (null < 0)
		return false;
	high = fcntl(out, F_DUPFD, 10);
	if (high < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(program ? high : null, STDOUT_FILENO) < 0 ||
	    dup2(program ? high : null, STDERR_FILENO) < 0 || dup2(high, 3) < 0)
		return false;
	if (program)
		close(3);
	*ret_out = program ? STDERR_FILENO : 3;
	return close_range(program ? 3 : 4, ~0u, 0) == 0;
}

_Noreturn void worker_child_run(const struct worker_child *child)
{
	int out, r;

	(void)setpgid(0, 0);
	default_signals();
	if (!own_descriptors(child->out, child->argv, &out))
		_exit(errno & 255);
	if (!child->argv) {
		r = child->function(child->argument, child->size, out);
		_exit(r < 0 ? -r & 255 : 0);
	}
	/* What lvm says is read by belay, and lvm must not complain of, or speak to, what is ours. */
	(void)setenv("LC_ALL", "C", 1);
	(void)setenv("LVM_SUPPRESS_FD_WARNINGS", "1", 1);
	(void)unsetenv("NOTIFY_SOCKET");
	(void)execvp(child->argv[0], child->argv);
	(void)dprintf(out, "cannot run %s: %s\n", child->argv[0], strerror(errno));
	_exit(127);
}

/* A small file of /proc, NUL-terminated; "" if it cannot be read. */
static void read_proc(pid_t pid, const char *name, char *ret_text, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	ret_text[0] = '\0';
	(void)snprintf(path, sizeof(path), "/proc/%jd/%s", (intmax_t)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, ret_text, size - 1);
	ret_text[n > 0 ? n : 0] = '\0';
	close(fd);
}

void worker_child_where(pid_t pid, char *ret_where, size_t size)
{
	read_proc(pid, "wchan", ret_where, size);
	/* "0": it runs, or we may not know. */
	if (strcmp(ret_where, "0") == 0)
		ret_where[0] = '\0';
	for (char *c = ret_where; *c; c++)
		if (!isprint((unsigned char)*c))
			*c = '?';
}

bool worker_child_sleeps_deep(pid_t pid)
{
	char text[256];
	const char *end;

	read_proc(pid, "stat", text, sizeof(text));
	/* The program's name is in parentheses and may have some of its own. */
	end = strrchr(text, ')');
	return end && end[1] == ' ' && end[2] == 'D';
}
