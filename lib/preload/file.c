/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "lib/preload/preload.h"

#define ALL 0, INT64_MAX

/* linux/kcmp.h is not everywhere. */
#define KCMP_FILE_TYPE 0

/* What the kernel has at hand will do: on a cluster file system the rest may wait for other nodes. */
static int look(int fd, dev_t *ret_device, ino_t *ret_inode)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &st) < 0)
		return -errno;
	if (!S_ISREG(st.stx_mode))
		return -EINVAL;
	*ret_device = makedev(st.stx_dev_major, st.stx_dev_minor);
	*ret_inode = st.stx_ino;
	return 0;
}

/* Two descriptors of one open file description? Where that may not be asked: no. */
static bool same_description(int a, int b)
{
	return syscall(SYS_kcmp, preload.pid, preload.pid, KCMP_FILE_TYPE, (unsigned long)a, (unsigned long)b) == 0;
}

/* ---- files; mutex held ---- */

/* What is closed has users perhaps, but its inode's number may be another file's by now. */
static bool is_open(const struct file *file)
{
	const struct description *d;

	LIST_FOREACH(d, &file->descriptions, link)
		if (!d->dying)
			return true;
	return false;
}

static struct file *find_file(dev_t device, ino_t inode)
{
	struct file *file;

	LIST_FOREACH(file, &preload.files, link)
		if (file->device == device && file->inode == inode && !file->connection->gone && is_open(file))
			return file;
	return NULL;
}

static int add_file(dev_t device, ino_t inode, struct file **ret_file)
{
	struct link *connection;
	struct file *file;
	int r = link_get(&connection);

	if (r != 0)
		return r;
	file = calloc(1, sizeof(*file));
	if (!file)
		return -ENOLCK;
	file->device = device;
	file->inode = inode;
	file->connection = connection;
	connection->files++;
	LIST_INIT(&file->descriptions);
	LIST_INSERT_HEAD(&preload.files, file, link);
	*ret_file = file;
	return 0;
}

static void end_file(struct file *file)
{
	if (file->posix[0] || file->posix[1])
		atomic_fetch_sub(&preload.posix_files, 1);
	belay_handle_close(file->posix[0]);
	if (file->posix[1] != file->posix[0])
		belay_handle_close(file->posix[1]);
	LIST_REMOVE(file, link);
	link_put(file->connection);
	free(file);
}

/* ---- descriptions; mutex held ---- */

static struct description *find_description(const struct file *file, int fd)
{
	struct description *d;

	LIST_FOREACH(d, &file->descriptions, link)
		if (!d->dying && same_description(d->fd, fd))
			return d;
	return NULL;
}

static int add_description(struct file *file, int fd, int flags, struct description **ret_description)
{
	struct description *d = LIST_FIRST(&preload.free);

	if (d) {
		LIST_REMOVE(d, link);
	} else {
		d = calloc(1, sizeof(*d));
		if (!d)
			return -ENOLCK;
	}
	/* All but the users. */
	d->file = file;
	d->fd = fd;
	d->fds = 0;
	d->may_read = (flags & O_ACCMODE) != O_WRONLY;
	d->may_write = (flags & O_ACCMODE) != O_RDONLY;
	d->dying = false;
	d->ofd = d->flock = NULL;
	d->flock_held = 0;
	d->busy = 0;
	held_remove(&d->held, false, held_now(&d->held), ALL);
	LIST_INSERT_HEAD(&file->descriptions, d, link);
	*ret_description = d;
	return 0;
}

static void end_description(struct description *d)
{
	struct file *file = d->file;

	belay_handle_close(d->ofd);
	belay_handle_close(d->flock);
	LIST_REMOVE(d, link);
	d->file = NULL;
	d->dying = false;
	LIST_INSERT_HEAD(&preload.free, d, link);
	if (LIST_EMPTY(&file->descriptions))
		end_file(file);
}

/* A failure is the loss of all, which the next lock will tell. */
static void drop(struct belay_handle *handle, struct held *held)
{
	uint64_t now = held_now(held);

	if (wait_unlock(handle, ALL) == 0)
		held_remove(held, !__libc_single_threaded, now, ALL);
}

/*
 * No descriptor is left: it ends now, or with its last user. Its locks do not wait for that
 * one, who may have been left by a jump; what he locks from here on he unlocks himself.
 */
static void let_go(struct description *d)
{
	d->fds = 0;
	d->dying = true;
	if (atomic_load(&d->users) == 0) {
		end_description(d);
		return;
	}
	if (d->ofd)
		drop(d->ofd, &d->held);
	if (d->flock && wait_unlock(d->flock, ALL) == 0)
		d->flock_held &= ~FLOCK_KIND;
}

void file_end(struct description *d)
{
	struct calm calm;

	calm_begin(&calm);
	pthread_mutex_lock(&preload.mutex);
	if (d->dying && atomic_load(&d->users) == 0)
		end_description(d);
	pthread_mutex_unlock(&preload.mutex);
	calm_end(&calm);
}

/* ---- looking up ---- */

/* Mutex held. As file_enter(). */
static int take_up(int fd, int flags, struct description **ret_description)
{
	struct description *d = table_get(fd);
	struct file *file;
	dev_t device;
	ino_t inode;
	int r;

	if (d == TABLE_NOT_OURS)
		return 0;
	if (d)
		goto found;
	r = look(fd, &device, &inode);
	if (r == -EINVAL)
		(void)table_set(fd, TABLE_NOT_OURS);
	if (r < 0)
		return r == -EINVAL || r == -EBADF ? 0 : -ENOLCK;
	file = find_file(device, inode);
	if (!file) {
		r = place_has(fd);
		if (r == 0)
			(void)table_set(fd, TABLE_NOT_OURS);
		if (r <= 0)
			return r;
		r = add_file(device, inode, &file);
		if (r != 0)
			return r > 0 ? 0 : r;
	}
	d = find_description(file, fd);
	r = d ? 0 : add_description(file, fd, flags, &d);
	if (r == 0) {
		d->fds++;
		r = table_set(fd, d);
		if (r < 0) {
			say_once(ONCE_TABLE, "descriptor %d is too large a number to lock by", fd);
			if (--d->fds == 0)
				let_go(d);
		}
	} else if (LIST_EMPTY(&file->descriptions)) {
		end_file(file);
	}
	if (r < 0)
		return r;
found:
	(void)file_users_add(d, 1);
	*ret_description = d;
	return 1;
}

int file_enter(int fd, struct description **ret_description)
{
	enum place_mode mode;
	int flags, r;

	link_renew();
	mode = place_mode();
	if (mode != PLACE_BELAY)
		return 0;
	/* A vfork()ed child of one that has not begun anew: what is here is of no process that lives. */
	if (preload.life && !link_is_alive())
		return place_has(fd) == 0 ? 0 : -ENOLCK;
	flags = (int)syscall(SYS_fcntl, fd, F_GETFL, 0);
	/* What it says to a descriptor that is none, or may not be used, is said by the kernel. */
	if (flags < 0 || flags & O_PATH)
		return 0;
	pthread_mutex_lock(&preload.mutex);
	r = take_up(fd, flags, ret_description);
	pthread_mutex_unlock(&preload.mutex);
	return r;
}

/* Mutex held. */
static int open_handle(int fd, struct description *d, enum belay_lock_owner owner,
		       struct belay_handle **ret_handle)
{
	int r = belay_open_fd(d->file->connection->belay, fd, owner, ret_handle);

	link_look(d->file->connection);
	if (r == -ENOLCK)
		say_once(ONCE_REFUSED, "belayd has no lockspace for a file below BELAY_PRELOAD_PATHS, or "
			 "a limit is reached: its locks fail with ENOLCK. See path in belay.conf(5)");
	return r == -EMFILE || r == -ENOMEM ? -ENOLCK : r;
}

/* Mutex held. One handle does for both modes if the descriptor may do both. */
static int open_posix(int fd, struct description *d, struct belay_handle **ret_handle)
{
	struct file *file = d->file;
	bool first = !file->posix[BELAY_SHARED] && !file->posix[BELAY_EXCLUSIVE];
	struct belay_handle *handle;
	int r = open_handle(fd, d, BELAY_OWNER_PROCESS, &handle);

	if (r < 0)
		return r;
	if (d->may_read && !file->posix[BELAY_SHARED])
		file->posix[BELAY_SHARED] = handle;
	if (d->may_write && !file->posix[BELAY_EXCLUSIVE])
		file->posix[BELAY_EXCLUSIVE] = handle;
	if (first)
		atomic_fetch_add(&preload.posix_files, 1);
	*ret_handle = handle;
	return 0;
}

int file_handle(int fd, struct description *d, enum belay_lock_owner owner,
		enum belay_lock_mode mode, struct belay_handle **ret_handle)
{
	struct belay_handle *_Atomic *place = owner == BELAY_OWNER_PROCESS ? &d->file->posix[mode] :
					      owner == BELAY_OWNER_HANDLE ? &d->ofd : &d->flock;
	struct belay_handle *handle = *place;
	int r = 0;

	if (!handle) {
		pthread_mutex_lock(&preload.mutex);
		handle = *place;
		if (!handle && owner == BELAY_OWNER_PROCESS) {
			r = open_posix(fd, d, &handle);
		} else if (!handle) {
			r = open_handle(fd, d, owner, &handle);
			if (r == 0)
				*place = handle;
		}
		pthread_mutex_unlock(&preload.mutex);
	}
	if (r == 0)
		*ret_handle = handle;
	return r;
}

/* ---- closing and copying ---- */

bool file_concerns(int fd)
{
	return table_get(fd) || atomic_load_explicit(&preload.posix_files, memory_order_relaxed) > 0;
}

/* Mutex held. Somebody may have locked, and not noted it yet. */
static bool is_used(const struct file *file)
{
	const struct description *d;

	LIST_FOREACH(d, &file->descriptions, link)
		if (atomic_load(&d->users) > 0)
			return true;
	return false;
}

/* Mutex held. As POSIX wants it, whichever of the file's descriptors is closed. */
static void drop_posix(struct file *file)
{
	struct belay_handle *handle = file->posix[BELAY_SHARED] ? file->posix[BELAY_SHARED] :
				      file->posix[BELAY_EXCLUSIVE];

	if (handle && (held_any(&file->held) || is_used(file)))
		drop(handle, &file->held);
}

/* A descriptor of which nothing is known, and that has the description of @fd, too; or -1. */
static int find_sharer(int fd)
{
	char buf[2048];
	int dir = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int found = -1;
	long size;

	if (dir < 0)
		return -1;
	while (found < 0 && (size = syscall(SYS_getdents64, dir, buf, sizeof(buf))) > 0) {
		for (long at = 0; at < size && found < 0; ) {
			/* struct linux_dirent64: inode 8, offset 8, size 2, type 1, name */
			const char *name = buf + at + 19;
			uint16_t step;
			int other = 0;

			memcpy(&step, buf + at + 16, sizeof(step));
			at += step;
			for (; *name >= '0' && *name <= '9'; name++)
				other = other * 10 + (*name - '0');
			/* What is known has another one. */
			if (*name == '\0' && other != fd && other != dir && !table_get(other) &&
			    same_description(fd, other))
				found = other;
		}
	}
	syscall(SYS_close, dir);
	return found;
}

/* Mutex held. Its locks stay if a descriptor is left that was made when nobody looked. */
static void last_known_closes(struct description *d, int fd)
{
	int other = d->ofd || d->flock ? find_sharer(fd) : -1;

	if (other >= 0 && table_set(other, d) == 0) {
		d->fd = other;
		d->fds = 1;
		return;
	}
	let_go(d);
}

static void close_known(int fd)
{
	struct description *d = table_get(fd);

	(void)table_set(fd, NULL);
	if (d == TABLE_NOT_OURS)
		return;
	drop_posix(d->file);
	if (--d->fds == 0)
		last_known_closes(d, fd);
	else if (d->fd == fd)
		d->fd = table_find(d);
}

static void close_unknown(int fd)
{
	struct file *file;
	dev_t device;
	ino_t inode;

	if (look(fd, &device, &inode) < 0)
		return;
	file = find_file(device, inode);
	/* To the kernel one of O_PATH is no descriptor of the file. */
	if (file && !((int)syscall(SYS_fcntl, fd, F_GETFL, 0) & O_PATH))
		drop_posix(file);
}

void file_closing(int fd)
{
	struct calm calm;

	if (table_get(fd) == TABLE_NOT_OURS) {
		(void)table_set(fd, NULL);
		return;
	}
	calm_begin(&calm);
	/* A vfork()ed child has descriptors of its own, and the parent's memory. */
	if (link_is_self()) {
		pthread_mutex_lock(&preload.mutex);
		if (table_get(fd))
			close_known(fd);
		else
			close_unknown(fd);
		pthread_mutex_unlock(&preload.mutex);
	}
	calm_end(&calm);
}

void file_copied(int fd, int copy)
{
	struct description *d = table_get(fd);
	struct calm calm;

	if (!d && !table_get(copy))
		return;
	calm_begin(&calm);
	if (link_is_self()) {
		pthread_mutex_lock(&preload.mutex);
		d = table_get(fd);
		if (table_set(copy, d) == 0 && d && d != TABLE_NOT_OURS)
			d->fds++;
		pthread_mutex_unlock(&preload.mutex);
	}
	calm_end(&calm);
}

/* ---- all of them; mutex held ---- */

bool file_anything_held(void)
{
	const struct file *file;
	const struct description *d;

	LIST_FOREACH(file, &preload.files, link) {
		if (held_any(&file->held))
			return true;
		LIST_FOREACH(d, &file->descriptions, link)
			if (held_any(&d->held) || file_flock_kind(d))
				return true;
	}
	return false;
}

static void forget_description(const struct description *d)
{
	int fd;

	while ((fd = table_find(d)) >= 0)
		(void)table_set(fd, NULL);
}

void file_forget(const struct link *link)
{
	struct file *file, *next_file;
	struct description *d, *next;

	for (file = LIST_FIRST(&preload.files); file; file = next_file) {
		next_file = LIST_NEXT(file, link);
		if (file->connection != link)
			continue;
		/* The file goes with its last description. */
		for (d = LIST_FIRST(&file->descriptions); d; d = next) {
			next = LIST_NEXT(d, link);
			forget_description(d);
			if (!d->dying)
				let_go(d);
		}
	}
}

void file_abandon(void)
{
	LIST_INIT(&preload.files);
	LIST_INIT(&preload.free);
	atomic_store(&preload.posix_files, 0);
}
