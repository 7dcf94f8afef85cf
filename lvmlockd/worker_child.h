/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The child's side of the worker, and what /proc says of a child. */
#ifndef BELAY_LVMLOCKD_WORKER_CHILD_H
#define BELAY_LVMLOCKD_WORKER_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "lvmlockd/worker.h"

struct worker_child {
	char **argv;			/* or else */
	worker_function function;
	const void *argument;
	size_t size;
	int out;
};

/* In the child, after fork(). */
_Noreturn void worker_child_run(const struct worker_child *child);

/* The kernel function in which @pid sleeps, or "". Reads what does not wait for the process. */
void worker_child_where(pid_t pid, char *ret_where, size_t size);

/* Does it sleep where no signal wakes it (state D)? */
bool worker_child_sleeps_deep(pid_t pid);

#endif
