/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Descriptors that clients pass: looked at without asking their file system,
 * and closed without waiting for it.
 */
#ifndef BELAY_DAEMON_DESCRIPTOR_H
#define BELAY_DAEMON_DESCRIPTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/mounts.h"

/* What the kernel tells of an open file by itself. */
struct descriptor {
	int flags;			/* as for open(2) */
	uint64_t mount;
	bool has_inode;			/* from Linux 5.14 on */
	uint64_t inode;
};

/* 0, -EBADF, or an error of /proc. */
int descriptor_look(int fd, struct descriptor *ret_descriptor);

/* Threads that close, one for each descriptor. */
struct closer;

/* 0 or -ENOMEM. */
int closer_new(struct closer **ret_closer);
/* Waits for none of them: those that are stuck go on. NULL is allowed. */
void closer_free(struct closer *closer);

/* So many may be stuck in close(2); each costs a thread. */
#define CLOSER_STUCK_MAX 64u
/* As many are: no more descriptors should be taken. */
bool closer_crowded(const struct closer *closer);

/*
 * Close a descriptor that process @pid has passed. One of a foreign file system is
 * closed by a thread that does nothing else and shares nothing, for close(2)
 * can wait for a server that never answers.
 */
void descriptor_close(struct closer *closer, struct mounts *m, pid_t pid, int fd);

#endif
