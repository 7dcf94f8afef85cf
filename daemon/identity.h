/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a client names, as a key that is the same on all nodes:
 *
 *	file in a lockspace	inode (8 bytes), zeros
 *	file outside of all	inode (8 bytes), device (6 bytes): standalone only
 *	name of 1..14 bytes	the name, padded with zeros; byte 14: its length
 *	longer name		112 bits of its SipHash; byte 14: 0xff
 *
 * Byte 15 tells apart what must not conflict: 1 for flock, which is a
 * world of its own, 0 for POSIX and OFD locks, which share theirs.
 *
 * The hash has a fixed key, for all nodes must agree. Whoever finds two names
 * with one hash makes their users wait for each other; exclusion is never lost.
 */
#ifndef BELAY_DAEMON_IDENTITY_H
#define BELAY_DAEMON_IDENTITY_H

#include <stddef.h>
#include <sys/types.h>

#include "core/types.h"
#include "daemon/config.h"
#include "daemon/mounts.h"

/* Lockspace number of files outside of every configured path. */
#define IDENTITY_LOCAL 0u

struct identity {
	struct belay_key key;
	bool may_read, may_write;	/* lock shared, lock exclusive */
	bool may_flock;			/* either: flock(2) wants a file open, no matter for what */
};

/* The configured lockspaces, and what is mounted. */
struct identity_map {
	const struct config *config;
	bool standalone;
	struct mounts mounts;
	/* Paths of the lockspaces, links followed when belayd started. */
	char path[CONFIG_LOCKSPACES_MAX][CONFIG_PATH_MAX + 1];
};

/* config must outlive the map. May wait for the file systems of the paths. */
void identity_map_init(struct identity_map *map, const struct config *config, bool standalone);
void identity_map_done(struct identity_map *map);

/*
 * The file behind an open descriptor that process @pid has passed. -EINVAL: not a regular file; -EBADF:
 * not open for reading nor writing (O_PATH proves no right to the file);
 * -ENOLCK: it lies under no lockspace's path.
 *
 * A file is in a lockspace if it is on the file system that is mounted at the
 * lockspace's path, by whatever way it was opened; if the path is no mount
 * point, the file has to be below it.
 *
 * Of a file in a lockspace the file system is asked nothing: on a cluster file
 * system even fstat(2) waits for other nodes.
 */
int identity_of_file(struct identity_map *map, int fd, pid_t pid, struct identity *ret_identity);

struct peer;
/* A named lock. -ENOENT: no such lockspace; -EACCES: not for this peer; -EINVAL: no name. */
int identity_of_name(const struct identity_map *map, const struct peer *peer,
		     const char *lockspace, size_t lockspace_size,
		     const char *name, size_t name_size, struct identity *ret_identity);

/* The key under which locks of that kind stand. */
struct belay_key identity_key(const struct belay_key *key, enum belay_kind kind);
/* And back: do flock locks stand under it? */
bool identity_is_flock(const struct belay_key *key);
/* The same resource, whatever the kind: what names are remembered by. */
struct belay_key identity_base(const struct belay_key *key);

#define IDENTITY_NAME_MAX 40
/* What the key alone tells: "name", "inode 17". False: nothing (a long name). */
bool identity_describe(const struct belay_key *key, char *buf, size_t size);

#endif
