/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "daemon/descriptor.h"
#include "daemon/peer.h"
#include "daemon/siphash.h"

enum {
	NAME_INLINE = 14,
	AT_LENGTH = 14,
	AT_WORLD = 15,
	HASHED = 0xff,
};

void identity_map_init(struct identity_map *map, const struct config *config, bool standalone)
{
	*map = (struct identity_map){ .config = config, .standalone = standalone };
	mounts_init(&map->mounts);
	for (uint32_t i = 0; i < config->lockspace_count; i++) {
		char *real = realpath(config->lockspace[i].path, NULL);
		const char *path = real && strlen(real) <= CONFIG_PATH_MAX ? real :
				   config->lockspace[i].path;

		memcpy(map->path[i], path, strlen(path) + 1);
		free(real);
	}
}

void identity_map_done(struct identity_map *map)
{
	mounts_done(&map->mounts);
}

static bool is_below(int fd, const char *path)
{
	char link[64], target[PATH_MAX];
	size_t size = strlen(path);
	ssize_t length;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, target, sizeof(target) - 1);
	return length > (ssize_t)size && memcmp(target, path, size) == 0 && target[size] == '/';
}

static const struct config_lockspace *lockspace_of(const struct identity_map *map, int fd,
						   dev_t device)
{
	const struct config *c = map->config;

	for (uint32_t i = 0; i < c->lockspace_count; i++) {
		const char *path = map->path[i];
		const struct mount_entry *mount;

		if (path[0] == '\0')
			continue;
		mount = mounts_of_path(&map->mounts, path);
		if (mount && mount->device == device &&
		    (strcmp(mount->point, path) == 0 || is_below(fd, path)))
			return &c->lockspace[i];
	}
	return NULL;
}

/*
 * Neither directory nor pipe; whatever was opened for writing is no directory.
 * A device's node on a cluster file system passes, for it takes fstat(2) to
 * know it. It is as good a name as any.
 */
static bool may_be_regular(int fd, int flags)
{
	int probe;

	if (fcntl(fd, F_GETPIPE_SZ) >= 0)
		return false;
	if ((flags & O_ACCMODE) != O_RDONLY)
		return true;
	probe = openat(fd, ".", O_PATH | O_CLOEXEC);
	if (probe >= 0)
		close(probe);
	return probe < 0 && errno == ENOTDIR;
}

static void put_le(uint8_t *bytes, uint64_t value, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		bytes[i] = (uint8_t)(value >> (8 * i));
}

/*
 * By its attributes: for files of a mount that cannot be found, of an old
 * kernel, and for those in no lockspace. What the kernel has at hand will do.
 */
static int ask_file_system(const struct identity_map *map, int fd, struct belay_key *ret_key)
{
	const struct config_lockspace *lockspace;
	struct belay_key key = { .lockspace = IDENTITY_LOCAL };
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &st) < 0)
		return -errno;
	if (!S_ISREG(st.stx_mode))
		return -EINVAL;
	lockspace = lockspace_of(map, fd, makedev(st.stx_dev_major, st.stx_dev_minor));
	if (!lockspace && !map->standalone)
		return -ENOLCK;
	put_le(key.id, st.stx_ino, 8);
	if (lockspace) {
		key.lockspace = lockspace->number;
	} else {
		/* Majors have 12 bits and minors 20. */
		put_le(key.id + 8, st.stx_dev_major, 2);
		put_le(key.id + 10, st.stx_dev_minor, 4);
	}
	*ret_key = key;
	return 0;
}

int identity_of_file(struct identity_map *map, int fd, pid_t pid, struct identity *ret_identity)
{
	const struct config_lockspace *lockspace = NULL;
	const struct mount_entry *mount;
	struct identity id = { 0 };
	struct descriptor d;
	int flags = fcntl(fd, F_GETFL), r;

	if (flags < 0)
		return -errno;
	if (flags & O_PATH)
		return -EBADF;
	mounts_refresh(&map->mounts);
	r = descriptor_look(fd, &d);
	mount = r == 0 && d.has_inode ? mounts_find(&map->mounts, d.mount, pid) : NULL;
	if (mount)
		lockspace = lockspace_of(map, fd, mount->device);
	if (lockspace) {
		if (!may_be_regular(fd, flags))
			return -EINVAL;
		id.key.lockspace = lockspace->number;
		put_le(id.key.id, d.inode, 8);
	} else if (mount && !map->standalone) {
		return -ENOLCK;
	} else {
		r = ask_file_system(map, fd, &id.key);
		if (r < 0)
			return r;
	}
	id.may_read = (flags & O_ACCMODE) != O_WRONLY;
	id.may_write = (flags & O_ACCMODE) != O_RDONLY;
	id.may_flock = true;
	*ret_identity = id;
	return 0;
}

static void key_of_name(const char *name, size_t size, struct belay_key *key)
{
	static const uint8_t hash_key[16] = "belay named lock";
	uint8_t hash[16];

	if (size <= NAME_INLINE) {
		memcpy(key->id, name, size);
		key->id[AT_LENGTH] = (uint8_t)size;
		return;
	}
	siphash128(hash_key, name, size, hash);
	memcpy(key->id, hash, AT_LENGTH);
	key->id[AT_LENGTH] = HASHED;
}

int identity_of_name(const struct identity_map *map, const struct peer *peer,
		     const char *lockspace, size_t lockspace_size,
		     const char *name, size_t name_size, struct identity *ret_identity)
{
	const struct config_lockspace *l =
		config_lockspace_find(map->config, lockspace, lockspace_size);
	struct identity id = { 0 };
	unsigned access;

	if (name_size == 0)
		return -EINVAL;
	if (!l)
		return -ENOENT;
	access = peer_access(peer, l->owner, l->group, l->mode);
	if (access == 0)
		return -EACCES;
	id.may_read = access & 4;
	id.may_write = access & 2;
	id.key.lockspace = l->number;
	key_of_name(name, name_size, &id.key);
	*ret_identity = id;
	return 0;
}

struct belay_key identity_key(const struct belay_key *key, enum belay_kind kind)
{
	struct belay_key k = *key;

	k.id[AT_WORLD] = kind == BELAY_KIND_FLOCK;
	return k;
}

bool identity_is_flock(const struct belay_key *key)
{
	return key->id[AT_WORLD] != 0;
}

struct belay_key identity_base(const struct belay_key *key)
{
	return identity_key(key, BELAY_KIND_POSIX);
}

bool identity_describe(const struct belay_key *key, char *buf, size_t size)
{
	uint64_t inode = 0;

	if (key->id[AT_LENGTH] == HASHED)
		return false;
	if (key->id[AT_LENGTH] > 0 && key->id[AT_LENGTH] <= NAME_INLINE) {
		(void)snprintf(buf, size, "%.*s", key->id[AT_LENGTH], (const char *)key->id);
		return true;
	}
	for (unsigned i = 8; i-- > 0; )
		inode = inode << 8 | key->id[i];
	(void)snprintf(buf, size, "inode %" PRIu64, inode);
	return true;
}
