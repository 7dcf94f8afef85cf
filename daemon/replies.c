/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/replies.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* A buffer that grew beyond this is given back once it is empty. */
#define KEEP_MAX 4096u

static int make_room(struct replies *r)
{
	size_t pending = r->next - r->first, size = r->size > 0 ? r->size : 512;
	uint8_t *buf;

	if (r->first > 0) {
		memmove(r->buf, r->buf + r->first, pending);
		r->fd_at -= r->fd_at > 0 ? r->first : 0;
		r->first = 0;
		r->next = pending;
		if (pending <= r->size / 2)
			return 0;
	}
	if (pending >= REPLIES_MAX)
		return -ENOBUFS;
	buf = realloc(r->buf, 2 * size);
	if (!buf)
		return -ENOMEM;
	r->buf = buf;
	r->size = 2 * size;
	return 0;
}

int replies_put(struct replies *r, const struct client_message *m)
{
	int error = r->buf ? 0 : make_room(r);

	while (error == 0 && client_put(r->buf, r->size, &r->next, m) < 0)
		error = make_room(r);
	return error;
}

int replies_put_descriptor(struct replies *r, const struct client_message *m, int fd)
{
	int error = replies_put(r, m);

	if (error < 0)
		return error;
	r->fd = fd;
	r->fd_at = r->next;
	return 0;
}

size_t replies_pending(const struct replies *r)
{
	return r->next - r->first;
}

/* As many whole messages as one packet holds; each begins with its size. */
static size_t packet_size(const struct replies *r)
{
	size_t pending = r->next - r->first, size = 0;

	if (pending <= CLIENT_PACKET_MAX)
		return pending;
	for (;;) {
		const uint8_t *head = r->buf + r->first + size;
		size_t next = (size_t)(head[0] | head[1] << 8);

		if (size + next > CLIENT_PACKET_MAX)
			return size;
		size += next;
	}
}

static ssize_t send_descriptor(const struct replies *r, int to, size_t size)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { .iov_base = r->buf + r->first, .iov_len = size };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &r->fd, sizeof(int));
	return sendmsg(to, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

int replies_send(struct replies *r, int fd)
{
	while (r->first < r->next) {
		size_t size = packet_size(r);
		bool passes = r->fd_at > r->first && r->fd_at <= r->first + size;
		ssize_t n = passes ? send_descriptor(r, fd, size) :
			    send(fd, r->buf + r->first, size, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		r->first += size;
		if (passes)
			r->fd_at = 0;
	}
	r->first = r->next = 0;
	if (r->size > KEEP_MAX)
		replies_done(r);
	return 0;
}

void replies_done(struct replies *r)
{
	free(r->buf);
	*r = (struct replies){ 0 };
}
