/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The way to belayd. What is to be said stands in the box, and whoever can
 * sends it all, in one packet. When belayd takes no more, one thread waits for that;
 * what others add meanwhile it takes along.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/private.h"

/* So that one waits who has the socket read by another thread. */
#define LOOK_MS 200

/*
 * belayd does not take more now. It may be waiting for us to read what it has
 * to say, and if no thread waits for an answer nobody else does.
 */
static void wait_for_room(struct belay *belay)
{
	bool read = !belay->reading, first = !belay->sending;
	struct pollfd p = { .fd = belay->socket, .events = read ? POLLIN | POLLOUT : POLLOUT };

	if (first) {
		belay->sending = true;
		belay->sender = pthread_self();
	}
	leave(belay);
	(void)poll(&p, 1, LOOK_MS);
	enter(belay);
	if (first)
		belay->sending = false;
	if (read && (p.revents & (POLLIN | POLLHUP | POLLERR))) {
		call_poll(belay);
		call_signal(belay);
	}
}

/* Another thread does, that is: a signal handler must not rely on whom it interrupted. */
static bool another_waits(const struct belay *belay)
{
	return belay->sending && !pthread_equal(belay->sender, pthread_self());
}

/* One packet. 0, -EAGAIN, or another error of sendmsg(2). */
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
	return sendmsg(belay->socket, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int send_box(struct belay *belay)
{
	struct outbox *box = &belay->box;
	int r;

	while (box->size > 0 && !belay->lost) {
		r = send_packet(belay, box->bytes, box->size, -1);
		if (r == 0)
			box->size = 0;
		else if (r == -EAGAIN && another_waits(belay))
			return 0;
		else if (r == -EAGAIN)
			wait_for_room(belay);
		else if (r != -EINTR)
			call_lose(belay);
	}
	return belay->lost ? -EIO : 0;
}

int send_put(struct belay *belay, const struct client_message *m)
{
	struct outbox *box = &belay->box;

	while (!belay->lost) {
		if (client_put(box->bytes, sizeof(box->bytes), &box->size, m) == 0)
			return 0;
		/* Full: belayd takes no more, or there is a cork. */
		if (another_waits(belay))
			wait_for_room(belay);
		else
			(void)send_box(belay);
	}
	return -EIO;
}

int send_message(struct belay *belay, const struct client_message *m)
{
	int r = send_put(belay, m);

	return r < 0 ? r : send_box(belay);
}

int send_later(struct belay *belay, const struct client_message *m)
{
	int r = send_put(belay, m);

	return r < 0 || belay->corked ? r : send_box(belay);
}

int send_descriptor(struct belay *belay, const struct client_message *m, int fd)
{
	uint8_t bytes[64];
	size_t size = 0;
	int r;

	r = client_put(bytes, sizeof(bytes), &size, m);
	assert(r == 0);
	/* What stands under a cork was said before. */
	while ((r = send_box(belay)) == 0) {
		r = belay->box.size == 0 ? send_packet(belay, bytes, size, fd) : -EAGAIN;
		if (r == -EAGAIN)
			wait_for_room(belay);
		else if (r != -EINTR)
			break;
	}
	if (r == -EPIPE || r == -ECONNRESET) {
		call_lose(belay);
		return -EIO;
	}
	return r;
}
