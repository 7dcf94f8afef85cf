/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of a thread that does nothing but close. */
#define STACK_SIZE (64u * 1024)

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

/* ---- closing ---- */

/* Those that are stuck may outlive the owner: the last one frees it. */
struct closer {
	atomic_uint users;	/* its owner, and each thread at work */
};

struct closing {
	struct closer *closer;
	int fd;
};

int closer_new(struct closer **ret_closer)
{
	struct closer *closer = malloc(sizeof(*closer));

	if (!closer)
		return -ENOMEM;
	atomic_init(&closer->users, 1);
	*ret_closer = closer;
	return 0;
}

void closer_free(struct closer *closer)
{
	if (closer && atomic_fetch_sub(&closer->users, 1) == 1)
		free(closer);
}

static void *close_slowly(void *data)
{
	struct closing *closing = data;

	close(closing->fd);
	closer_free(closing->closer);
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

static int close_aside(struct closer *closer, int fd)
{
	struct closing *closing = malloc(sizeof(*closing));
	int r;

	if (!closing)
		return -ENOMEM;
	*closing = (struct closing){ .closer = closer, .fd = fd };
	atomic_fetch_add(&closer->users, 1);
	r = start_thread(closing);
	if (r < 0) {
		closer_free(closer);
		free(closing);
	}
	return r;
}

void descriptor_close(struct closer *closer, struct mounts *m, pid_t pid, int fd)
{
	const struct mount_entry *mount = NULL;
	struct descriptor d;

	mounts_refresh(m);
	if (descriptor_look(fd, &d) == 0)
		mount = mounts_find(m, d.mount, pid);
	/* Pipes and sockets are on no mount that is listed; they are closed aside, too. */
	if ((mount && !mount->foreign) || close_aside(closer, fd) < 0)
		close(fd);
}

bool closer_crowded(const struct closer *closer)
{
	return atomic_load(&closer->users) > CLOSER_STUCK_MAX;
}
