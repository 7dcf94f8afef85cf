/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process, named so that no later one of the same number is taken for it: "PID:START". */
#ifndef BELAY_LVMLOCKD_PROCESS_H
#define BELAY_LVMLOCKD_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#define PROCESS_NAME_MAX 47u

/* "" if there is no such process. */
void process_name(pid_t pid, char ret_name[PROCESS_NAME_MAX + 1]);
/* Is it still there? "" is not. */
bool process_lives(const char *name);

#endif
