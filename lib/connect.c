/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "lib/share.h"

/*
 * A byte that is 1 here and 0 in every child: no handler to register, nothing
 * to look up, and no state of the process outside of the connection.
 */
static int life_begin(struct belay *belay)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	char *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int r;

	if (page == MAP_FAILED)
		return -errno;
	if (madvise(page, size, MADV_WIPEONFORK) < 0) {
		r = -errno;
		munmap(page, size);
		return r;
	}
	page[0] = 1;
	belay->life = page;
	return 0;
}

static void life_end(struct belay *belay)
{
	munmap((void *)(uintptr_t)belay->life, (size_t)sysconf(_SC_PAGESIZE));
}

/* It sleeps while belayd has too many to accept; the time for that is all that is limited. */
static int connect_within(int fd, const struct sockaddr_un *address)
{
	struct timeval limit = { .tv_sec = ANSWER_S };
	int r = 0;

	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0)
		return -errno;
	while (r == 0 && connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
		if (errno != EINTR)
			r = errno == EAGAIN ? -ETIMEDOUT : -errno;
	limit.tv_sec = 0;
	if (r == 0 && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0)
		return -errno;
	return r;
}

static int socket_connect(struct belay *belay, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length;

	if (!path) {
		path = secure_getenv("BELAY_SOCKET");
		if (!path || !*path)
			path = BELAY_SOCKET_PATH;
	}
	length = strlen(path);
	if (length == 0)
		return -ENOENT;
	if (length >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, length);

	belay->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (belay->socket < 0)
		return -errno;
	return connect_within(belay->socket, &address);
}

/* One descriptor for poll loops: a leader may have read the socket empty. */
static int events_open(struct belay *belay)
{
	struct epoll_event in = { .events = EPOLLIN };

	belay->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (belay->event_fd < 0)
		return -errno;
	belay->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (belay->epoll_fd < 0)
		return -errno;
	if (epoll_ctl(belay->epoll_fd, EPOLL_CTL_ADD, belay->event_fd, &in) < 0 ||
	    epoll_ctl(belay->epoll_fd, EPOLL_CTL_ADD, belay->socket, &in) < 0)
		return -errno;
	return 0;
}

/* What belayd answered to HELLO, as the result of belay_connect(). */
static int welcome(struct belay *belay, size_t size)
{
	struct client_message m;
	size_t at = 0;

	if (client_get(belay->in, size, &at, &m) <= 0)
		return -EPROTONOSUPPORT;
	if (m.type == CLIENT_ERROR)
		return m.result < 0 ? m.result : -EIO;
	if (m.type != CLIENT_WELCOME || m.version != CLIENT_VERSION || at != size)
		return -EPROTONOSUPPORT;
	belay->node = m.node;
	return 0;
}

/* 0 when there is something to receive. */
static int await_greeting(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct timespec deadline = answer_deadline();
	int r;

	for (;;) {
		r = poll(&p, 1, time_left(&deadline));
		if (r > 0)
			return 0;
		if (r < 0 && errno != EINTR)
			return -errno;
		if (time_left(&deadline) == 0)
			return -ETIMEDOUT;
	}
}

static int hello(struct belay *belay)
{
	struct client_message m = {
		.type = CLIENT_HELLO, .magic = CLIENT_MAGIC, .version = CLIENT_VERSION,
	};
	struct outbox *box = &belay->box;
	ssize_t size;
	int r;

	r = client_put(box->bytes, sizeof(box->bytes), &box->size, &m);
	if (r < 0)
		return r;
	do {
		size = send(belay->socket, box->bytes, box->size, MSG_NOSIGNAL);
	} while (size < 0 && errno == EINTR);
	box->size = 0;
	/* Refused at once and closed: the reason still stands in the socket. */
	if (size < 0 && errno != EPIPE && errno != ECONNRESET)
		return -errno;
	r = await_greeting(belay->socket);
	if (r < 0)
		return r;
	do {
		size = recv(belay->socket, belay->in, sizeof(belay->in), 0);
	} while (size < 0 && errno == EINTR);
	if (size < 0)
		return errno == ECONNRESET ? -ECONNREFUSED : -errno;
	if (size == 0)
		return -ECONNREFUSED;
	return welcome(belay, (size_t)size);
}

/* In a child another thread's work on the rest may stand half done for ever. */
static void close_all(struct belay *belay, bool child)
{
	share_close(belay, child);
	if (belay->epoll_fd >= 0)
		close(belay->epoll_fd);
	if (belay->event_fd >= 0)
		close(belay->event_fd);
	if (belay->socket >= 0)
		close(belay->socket);
	life_end(belay);
	free(belay);
}

int belay_connect(struct belay **ret_belay, const char *path)
{
	struct belay *belay = calloc(1, sizeof(*belay));
	int r;

	if (!belay)
		return -ENOMEM;
	belay->socket = belay->event_fd = belay->epoll_fd = -1;
	TAILQ_INIT(&belay->followers);
	TAILQ_INIT(&belay->events);
	LIST_INIT(&belay->resources);
	r = life_begin(belay);
	if (r < 0) {
		free(belay);
		return r;
	}
	r = socket_connect(belay, path);
	if (r == 0)
		r = hello(belay);
	if (r == 0)
		r = events_open(belay);
	if (r == 0)
		r = calls_init(belay);
	if (r < 0) {
		close_all(belay, false);
		return r;
	}
	pthread_mutex_init(&belay->mutex, NULL);
	*ret_belay = belay;
	return 0;
}

void belay_disconnect(struct belay *belay)
{
	struct resource *resource;
	uint32_t i;

	if (!belay)
		return;
	if (forked(belay)) {
		close_all(belay, true);
		return;
	}
	pthread_mutex_destroy(&belay->mutex);
	/* No thread waits: what is left was started by belay_lock_start(). */
	for (i = 1; i < belay->pending_count; i++)
		if (belay->pending[i].call && belay->pending[i].call->async)
			free(belay->pending[i].call);
	free(belay->pending);
	/* Of handles that were closed when there was no connection any more. */
	while ((resource = LIST_FIRST(&belay->resources))) {
		LIST_REMOVE(resource, link);
		free(resource);
	}
	close_all(belay, false);
}

int belay_fd(const struct belay *belay)
{
	return belay->epoll_fd;
}

uint32_t belay_node(const struct belay *belay)
{
	return belay->node;
}
