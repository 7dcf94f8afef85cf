/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/mounts.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Bytes of another process's list that are read at most. */
#define LIST_MAX (256u * 1024)

/* File systems of which it is known that close(2) waits for nobody. */
static const char *const own_file_systems[] = {
	"btrfs", "ext2", "ext3", "ext4", "f2fs", "gfs2", "ocfs2", "ramfs", "tmpfs", "xfs", "zfs",
};

static bool is_foreign(const char *type)
{
	for (size_t i = 0; i < sizeof(own_file_systems) / sizeof(own_file_systems[0]); i++)
		if (strcmp(type, own_file_systems[i]) == 0)
			return false;
	return true;
}

void mounts_init(struct mounts *m)
{
	*m = (struct mounts){ .fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC) };
	mounts_refresh(m);
}

static void forget(struct mounts *m)
{
	for (uint32_t i = 0; i < m->count; i++)
		free(m->entry[i].point);
	free(m->entry);
	m->entry = NULL;
	m->count = 0;
}

void mounts_done(struct mounts *m)
{
	forget(m);
	if (m->fd >= 0)
		close(m->fd);
}

/* Blanks and the like are written as \040. */
static void unescape(char *text)
{
	char *to = text;

	for (; *text; to++) {
		if (text[0] == '\\' && text[1] >= '0' && text[1] <= '3' && text[2] >= '0' &&
		    text[2] <= '7' && text[3] >= '0' && text[3] <= '7') {
			*to = (char)((text[1] - '0') << 6 | (text[2] - '0') << 3 | (text[3] - '0'));
			text += 4;
		} else {
			*to = *text++;
		}
	}
	*to = '\0';
}

/* "27 1 254:0 / /mnt rw,relatime shared:1 - ext4 /dev/vda rw" */
static bool parse_line(char *line, struct mount_entry *ret_entry)
{
	unsigned dev_major, dev_minor;
	uint64_t id;
	char *point, *end, *type;
	int at = 0;

	if (sscanf(line, "%" SCNu64 " %*u %u:%u %*s %n", &id, &dev_major, &dev_minor, &at) != 3 || at == 0)
		return false;
	point = line + at;
	end = strchr(point, ' ');
	type = end ? strstr(end, " - ") : NULL;
	if (!type)
		return false;
	*end = '\0';
	type += 3;
	type[strcspn(type, " ")] = '\0';
	unescape(point);
	*ret_entry = (struct mount_entry){
		.id = id, .device = makedev(dev_major, dev_minor),
		.point = strdup(point), .foreign = is_foreign(type),
	};
	return ret_entry->point;
}

static void read_list(struct mounts *m, FILE *file)
{
	struct mount_entry entry;
	uint32_t room = 0;
	size_t size = 0;
	char *line = NULL;

	while (getline(&line, &size, file) > 0) {
		if (!parse_line(line, &entry))
			continue;
		if (m->count == room) {
			struct mount_entry *more;

			room = room > 0 ? 2 * room : 32;
			more = realloc(m->entry, room * sizeof(*more));
			if (!more) {
				free(entry.point);
				break;
			}
			m->entry = more;
		}
		m->entry[m->count++] = entry;
	}
	free(line);
}

void mounts_refresh(struct mounts *m)
{
	struct pollfd changed = { .fd = m->fd, .events = POLLPRI };
	FILE *file;

	if (m->fd < 0 || (m->count > 0 && poll(&changed, 1, 0) != 1))
		return;
	/* Its own descriptor: a stream would read ahead, and close ours. */
	file = fopen("/proc/self/mountinfo", "re");
	if (!file)
		return;
	forget(m);
	read_list(m, file);
	(void)fclose(file);
}

/*
 * Never remembered: numbers are given again after an unmount, and what stood
 * for a file system once must not stand for it now.
 */
static bool find_in_list(pid_t pid, uint64_t id, struct mount_entry *ret_entry)
{
	struct mount_entry entry;
	char path[64], *line = NULL;
	size_t size = 0, seen = 0;
	bool found = false;
	ssize_t length;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)pid);
	file = fopen(path, "re");
	/* A list without end would keep everybody else waiting. */
	while (file && !found && seen < LIST_MAX && (length = getline(&line, &size, file)) > 0) {
		seen += (size_t)length;
		if (!parse_line(line, &entry))
			continue;
		free(entry.point);
		entry.point = NULL;
		found = entry.id == id;
	}
	free(line);
	if (file)
		(void)fclose(file);
	if (found)
		*ret_entry = entry;
	return found;
}

const struct mount_entry *mounts_find(struct mounts *m, uint64_t id, pid_t pid)
{
	for (uint32_t i = 0; i < m->count; i++)
		if (m->entry[i].id == id)
			return &m->entry[i];
	if (pid <= 0 || !find_in_list(pid, id, &m->other))
		return NULL;
	return &m->other;
}

const struct mount_entry *mounts_of_path(const struct mounts *m, const char *path)
{
	const struct mount_entry *best = NULL;
	size_t best_size = 0;

	for (uint32_t i = 0; i < m->count; i++) {
		size_t size = strlen(m->entry[i].point);

		/* The root's is "/", which every path begins with. */
		if (size == 1)
			size = 0;
		if (size < best_size || strncmp(path, m->entry[i].point, size) != 0 ||
		    (path[size] != '/' && path[size] != '\0'))
			continue;
		best = &m->entry[i];
		best_size = size;
	}
	return best;
}
