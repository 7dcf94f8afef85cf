/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

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
}

/* Attributes as the kernel has them at hand: a hung file system must not hang belayd. */
static int look_at(int dir, const char *path, int flags, struct statx *ret_stat)
{
	if (statx(dir, path, flags | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE | STATX_INO,
		  ret_stat) < 0)
		return -errno;
	return 0;
}

static dev_t device_of(const struct statx *st)
{
	return makedev(st->stx_dev_major, st->stx_dev_minor);
}

/* Where does the path lead now? What is mounted there may have changed. */
static void refresh(struct identity_map *map, uint32_t i)
{
	struct statx st;

	map->known[i] = map->config->lockspace[i].path[0] != '\0' &&
			look_at(AT_FDCWD, map->config->lockspace[i].path, 0, &st) == 0;
	if (map->known[i])
		map->device[i] = device_of(&st);
}

static bool is_on(struct identity_map *map, uint32_t i, dev_t device)
{
	if (!map->known[i] || map->device[i] != device)
		return false;
	refresh(map, i);
	return map->known[i] && map->device[i] == device;
}

static const struct config_lockspace *lockspace_on(struct identity_map *map, dev_t device)
{
	const struct config *c = map->config;

	for (uint32_t i = 0; i < c->lockspace_count; i++)
		if (is_on(map, i, device))
			return &c->lockspace[i];
	for (uint32_t i = 0; i < c->lockspace_count; i++) {
		refresh(map, i);
		if (map->known[i] && map->device[i] == device)
			return &c->lockspace[i];
	}
	return NULL;
}

static void put_le(uint8_t *bytes, uint64_t value, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		bytes[i] = (uint8_t)(value >> (8 * i));
}

int identity_of_file(struct identity_map *map, int fd, struct identity *ret_identity)
{
	struct identity id = { 0 };
	const struct config_lockspace *lockspace;
	struct statx st;
	int flags = fcntl(fd, F_GETFL), r;

	if (flags < 0)
		return -errno;
	if (flags & O_PATH)
		return -EBADF;
	r = look_at(fd, "", AT_EMPTY_PATH, &st);
	if (r < 0)
		return r;
	if (!S_ISREG(st.stx_mode))
		return -EINVAL;
	lockspace = lockspace_on(map, device_of(&st));
	if (!lockspace && !map->standalone)
		return -ENOLCK;
	id.may_read = (flags & O_ACCMODE) != O_WRONLY;
	id.may_write = (flags & O_ACCMODE) != O_RDONLY;
	put_le(id.key.id, st.stx_ino, 8);
	if (lockspace) {
		id.key.lockspace = lockspace->number;
	} else {
		id.key.lockspace = IDENTITY_LOCAL;
		/* Majors have 12 bits and minors 20, in this order of ages. */
		put_le(id.key.id + 8, st.stx_dev_major, 2);
		put_le(id.key.id + 10, st.stx_dev_minor, 4);
	}
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
