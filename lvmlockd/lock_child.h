/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Locks of LVs for this node, asked for in lvmlockd's own protocol as lvm does;
 * but by a child that may wait, for any lock in its turn.
 */
#ifndef BELAY_LVMLOCKD_LOCK_CHILD_H
#define BELAY_LVMLOCKD_LOCK_CHILD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

#include "lvmlockd/ask.h"

struct lock_child_lv {
	char name[ASK_NAME_MAX + 1];
	char uuid[ASK_UUID_MAX + 1];	/* whose lock */
};

struct lock_child {
	char socket[sizeof(((struct sockaddr_un *)0)->sun_path)];
	char vg[ASK_NAME_MAX + 1];
	enum ask_mode mode;		/* UN: give them back */
	uint32_t wait_ms;		/* for all of them */
	uint32_t count;
	struct lock_child_lv lv[];
};

/*
 * A worker_function; @argument is a struct lock_child. Writes a line "INDEX RESULT" for each
 * LV whose lock was refused. 0, or a negative errno: belay-lvmlockd cannot be asked.
 */
int lock_child_run(const void *argument, size_t size, int out);

/* The next line of what it wrote: 1, or 0 behind the last. *at is 0 at first. */
int lock_child_next(const char *output, size_t *at, uint32_t *ret_index, int *ret_result);

#endif
