/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is mounted where, as the kernel lists it: to know a descriptor's file
 * system without asking the file system, which may answer late or never (a
 * cluster file system during recovery, a FUSE server that means harm).
 */
#ifndef BELAY_DAEMON_MOUNTS_H
#define BELAY_DAEMON_MOUNTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct mount_entry {
	uint64_t id;
	dev_t device;
	char *point;
	/* Closing a file there may take as long as it likes. */
	bool foreign;
};

struct mounts {
	int fd;				/* /proc/self/mountinfo; -1: there is none */
	struct mount_entry *entry;	/* in the kernel's order: later ones cover earlier ones */
	struct mount_entry other;	/* found in another process's list */
	uint32_t count;
};

/* Never fails; without /proc nothing is known. */
void mounts_init(struct mounts *m);
void mounts_done(struct mounts *m);

/* Read the list again if it has changed. Entries are valid until then. */
void mounts_refresh(struct mounts *m);

/*
 * By the kernel's number, which is unique in the system: a mount of ours, or
 * one that process @pid sees (0: nobody), as a container does. Its point is
 * NULL then. NULL: not known. Valid until the next call.
 */
const struct mount_entry *mounts_find(struct mounts *m, uint64_t id, pid_t pid);
/* Where the path leads, if no part of it is a link. NULL: nothing is known. */
const struct mount_entry *mounts_of_path(const struct mounts *m, const char *path);

#endif
