/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The way to belayd. A thread that finds nobody sending sends at once; what
 * others add meanwhile leaves in one packet when it is through.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/private.h"

/*
 * belayd does not take more now. It may be waiting for us to read what it has
 * to say, and if no thread waits for an answer nobody else does. Mutex not held.
 */
static void wait_for_room(struct belay *belay)
{
	struct pollfd p = { .fd = belay->socket, .events = POLLIN | POLLOUT };

	if (poll(&p, 1, -1) <= 0 || !(p.revents & POLLIN))
		return;
	pthread_mutex_lock(&belay->mutex);
	if (belay->reading) {
		(void)sched_yield();	/* the leader is about to take it */
	} else {
		call_poll(belay);
		call_signal(belay);
	}
	pthread_mutex_unlock(&belay->mutex);
}

/* One packet. Mutex not held, belay->sending is ours. */
static int send_packet(struct belay *belay, const void *bytes, size_t size, int fd)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { .space = { 0 } };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		control.head.cmsg_len = CMSG_LEN(sizeof(int));
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control.space);
	}
	while (sendmsg(belay->socket, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
		if (errno == EAGAIN)
			wait_for_room(belay);
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

/* Send all that stands in the boxes. The mutex is dropped meanwhile. */
static void flush(struct belay *belay)
{
	assert(belay->sending);
	while (belay->box[belay->fill].size > 0 && !belay->lost) {
		struct outbox *box = &belay->box[belay->fill];
		int r;

		belay->fill = !belay->fill;
		pthread_mutex_unlock(&belay->mutex);
		r = send_packet(belay, box->bytes, box->size, -1);
		pthread_mutex_lock(&belay->mutex);
		box->size = 0;
		if (r < 0)
			call_lose(belay);
		pthread_cond_broadcast(&belay->room);
	}
}

int send_box(struct belay *belay)
{
	/* Whoever sends takes it along. */
	if (!belay->sending) {
		belay->sending = true;
		flush(belay);
		belay->sending = false;
		pthread_cond_broadcast(&belay->room);
	}
	return belay->lost ? -EIO : 0;
}

static int put(struct belay *belay, const struct client_message *m)
{
	struct outbox *box;

	for (;;) {
		if (belay->lost)
			return -EIO;
		box = &belay->box[belay->fill];
		if (client_put(box->bytes, sizeof(box->bytes), &box->size, m) == 0)
			return 0;
		/* Full: behind a sender, or under a cork. */
		if (belay->sending)
			pthread_cond_wait(&belay->room, &belay->mutex);
		else
			(void)send_box(belay);
	}
}

int send_message(struct belay *belay, const struct client_message *m)
{
	int r = put(belay, m);

	return r < 0 ? r : send_box(belay);
}

int send_later(struct belay *belay, const struct client_message *m)
{
	int r = put(belay, m);

	return r < 0 || belay->corked ? r : send_box(belay);
}

int send_descriptor(struct belay *belay, const struct client_message *m, int fd)
{
	uint8_t bytes[64];
	size_t size = 0;
	int r;

	r = client_put(bytes, sizeof(bytes), &size, m);
	assert(r == 0);
	while (belay->sending)
		pthread_cond_wait(&belay->room, &belay->mutex);
	if (belay->lost)
		return -EIO;
	belay->sending = true;
	flush(belay);	/* what stands under a cork was said before */
	pthread_mutex_unlock(&belay->mutex);
	r = send_packet(belay, bytes, size, fd);
	pthread_mutex_lock(&belay->mutex);
	flush(belay);	/* what others have added */
	belay->sending = false;
	pthread_cond_broadcast(&belay->room);
	if (r == -EPIPE || r == -ECONNRESET) {
		call_lose(belay);
		return -EIO;
	}
	return r;
}
