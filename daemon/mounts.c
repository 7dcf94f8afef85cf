/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Stuck in close(2) at one time; each costs a thread. */
#define STUCK_MAX 64u
#define STACK_SIZE (64u * 1024)
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

/* ---- the list ---- */

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

/* ---- descriptors ---- */

static bool find_number(const char *text, const char *name, int base, uint64_t *ret_number)
{
	const char *at = strstr(text, name);

	if (!at)
		return false;
	*ret_number = strtoull(at + strlen(name), NULL, base);
	return true;
}

int descriptor_look(int fd, struct descriptor *ret_descriptor)
{
	struct descriptor d = { 0 };
	char path[64], text[512];
	uint64_t flags;
	ssize_t size;
	int info, r = 0;

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = open(path, O_RDONLY | O_CLOEXEC);
	if (info < 0)
		return errno == ENOENT ? -EBADF : -errno;
	size = read(info, text, sizeof(text) - 1);
	if (size < 0)
		r = -errno;
	close(info);
	if (r < 0)
		return r;
	text[size] = '\0';
	if (!find_number(text, "flags:", 8, &flags) || !find_number(text, "mnt_id:", 10, &d.mount))
		return -EOPNOTSUPP;
	d.flags = (int)flags;
	d.has_inode = find_number(text, "\nino:", 10, &d.inode);
	*ret_descriptor = d;
	return 0;
}

/* Counts those at work and the one that set them to it; the last one frees it. */
struct closer {
	atomic_uint users;
};

struct closing {
	struct closer *closer;
	int fd;
};

static void closer_leave(struct closer *closer)
{
	if (closer && atomic_fetch_sub(&closer->users, 1) == 1)
		free(closer);
}

void mounts_done(struct mounts *m)
{
	forget(m);
	if (m->fd >= 0)
		close(m->fd);
	closer_leave(m->closer);
}

static void *close_slowly(void *data)
{
	struct closing *closing = data;

	close(closing->fd);
	closer_leave(closing->closer);
	free(closing);
	return NULL;
}

static int start_thread(struct closing *closing)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;
	int r = pthread_attr_init(&attributes);

	if (r != 0)
		return -r;
	(void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	(void)pthread_attr_setstacksize(&attributes, STACK_SIZE);
	/* Signals are the loop's. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&thread, &attributes, close_slowly, closing);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&attributes);
	return -r;
}

static int close_aside(struct mounts *m, int fd)
{
	struct closing *closing = malloc(sizeof(*closing));
	int r;

	if (closing && !m->closer) {
		m->closer = malloc(sizeof(*m->closer));
		if (m->closer)
			atomic_init(&m->closer->users, 1);
	}
	if (!closing || !m->closer) {
		free(closing);
		return -ENOMEM;
	}
	*closing = (struct closing){ .closer = m->closer, .fd = fd };
	atomic_fetch_add(&m->closer->users, 1);
	r = start_thread(closing);
	if (r < 0) {
		atomic_fetch_sub(&m->closer->users, 1);
		free(closing);
	}
	return r;
}

void descriptor_close(struct mounts *m, pid_t pid, int fd)
{
	const struct mount_entry *mount = NULL;
	struct descriptor d;

	mounts_refresh(m);
	if (descriptor_look(fd, &d) == 0)
		mount = mounts_find(m, d.mount, pid);
	/* Pipes and sockets are on no mount that is listed; they are closed aside, too. */
	if ((mount && !mount->foreign) || close_aside(m, fd) < 0)
		close(fd);
}

bool descriptor_crowded(const struct mounts *m)
{
	return m->closer && atomic_load(&m->closer->users) > STUCK_MAX;
}
