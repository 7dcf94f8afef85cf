/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Requests and their answers: numbers, the reading of the socket, the waiting. */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/share.h"

#define INDEX_BITS 20
#define INDEX_MASK ((1u << INDEX_BITS) - 1)
/* Enough that a signal handler's call will hardly ever need memory. */
#define PENDING_FIRST 128

static int grow(struct belay *belay)
{
	uint32_t i, count = belay->pending_count ? belay->pending_count * 2 : PENDING_FIRST;
	struct pending *p;

	if (count > INDEX_MASK + 1)
		return -ENOLCK;
	p = realloc(belay->pending, count * sizeof(*p));
	if (!p)
		return -ENOMEM;
	belay->pending = p;
	/* Index 0 is never given away: number 0 asks for no answer. */
	for (i = count - 1; i >= belay->pending_count && i > 0; i--) {
		p[i] = (struct pending){ .number = i, .next_free = belay->free_pending };
		belay->free_pending = i;
	}
	p[0] = (struct pending){ 0 };
	belay->pending_count = count;
	return 0;
}

int calls_init(struct belay *belay)
{
	return grow(belay);
}

int call_open(struct belay *belay, struct call *call, enum client_type want)
{
	struct pending *p;
	int r;

	if (belay->lost)
		return -EIO;
	if (belay->free_pending == 0) {
		r = grow(belay);
		if (r < 0)
			return r;
	}
	p = &belay->pending[belay->free_pending];
	belay->free_pending = p->next_free;
	p->call = call;
	call->number = p->number;
	call->want = want;
	call->fd = -1;
	return 0;
}

void call_close(struct belay *belay, struct call *call)
{
	uint32_t index = call->number & INDEX_MASK;
	struct pending *p = &belay->pending[index];

	assert(p->call == call);
	p->call = NULL;
	p->number += INDEX_MASK + 1;
	p->next_free = belay->free_pending;
	belay->free_pending = index;
}

struct call *call_find(const struct belay *belay, uint32_t number)
{
	uint32_t index = number & INDEX_MASK;

	if (index >= belay->pending_count || belay->pending[index].number != number)
		return NULL;
	return belay->pending[index].call;
}

static bool is_done(const struct call *call)
{
	return atomic_load_explicit(&call->state, memory_order_acquire) == CALL_DONE;
}

void call_finish(struct belay *belay, struct call *call, int result)
{
	call->result = result;
	atomic_store_explicit(&call->state, CALL_DONE, memory_order_release);
	if (call->async)
		TAILQ_INSERT_TAIL(&belay->events, call, link);
	else if (call->cell == 0)
		futex_wake(&call->state, false);
	else
		share_wake(belay, call->cell);
}

void call_signal(struct belay *belay)
{
	uint64_t count = 1;
	bool want = !TAILQ_EMPTY(&belay->events);

	if (want && !belay->signalled)
		belay->signalled = write(belay->event_fd, &count, sizeof(count)) > 0;
	else if (!want && belay->signalled)
		belay->signalled = read(belay->event_fd, &count, sizeof(count)) < 0;
}

void call_lose(struct belay *belay)
{
	uint32_t i;

	if (belay->lost)
		return;
	belay->lost = true;
	share_lose(belay);
	/* Wakes a leader out of its receive, and poll loops. */
	(void)shutdown(belay->socket, SHUT_RDWR);
	for (i = 1; i < belay->pending_count; i++)
		if (belay->pending[i].call && !is_done(belay->pending[i].call))
			call_finish(belay, belay->pending[i].call, -EIO);
}

static void add_text(struct call *call, const struct client_message *m)
{
	char *text = realloc(call->text, call->text_size + m->text_size + 1);

	if (!text) {
		call->text_error = -ENOMEM;
		return;
	}
	memcpy(text + call->text_size, m->text, m->text_size);
	call->text = text;
	call->text_size += m->text_size;
	text[call->text_size] = '\0';
}

int call_answer(struct belay *belay, struct call *call, const struct client_message *m)
{
	if (is_done(call) || call->want != m->type || m->number != call->number)
		return -EBADMSG;
	if (m->type == CLIENT_TEXT) {
		add_text(call, m);
		if (m->more)
			return 0;
	}
	call->answer = *m;
	if (call->modes && m->result == 0)
		atomic_fetch_or_explicit(call->modes, (uint8_t)(1u << call->mode), memory_order_relaxed);
	if (m->type == CLIENT_RESULT && m->slot != 0 && share_adopt(belay, call->resource, m) < 0)
		return -EBADMSG;
	call_finish(belay, call, m->result);
	return 0;
}

/* 0, or negative: the connection is of no use any more. *fd came with the packet; who needs it takes it. */
static int take_message(struct belay *belay, const struct client_message *m, int *fd)
{
	struct call *call;

	switch (m->type) {
	case CLIENT_RESULT:
	case CLIENT_TESTED:
	case CLIENT_TEXT:
		call = call_find(belay, m->number);
		/* Where an answer was asked for is where it has to come. */
		if (!call || call->cell != 0)
			return -EBADMSG;
		if (call->want_fd && m->result == 0) {
			call->fd = *fd;
			*fd = -1;
		}
		return call_answer(belay, call, m);
	case CLIENT_LOST:
	case CLIENT_ERROR:
		return -EIO;
	default:
		return -EBADMSG;
	}
}

/* A packet of @size bytes stands in belay->in; negative: none will come any more. */
static void take_packet(struct belay *belay, ssize_t size, int fd)
{
	struct client_message m;
	size_t at = 0;
	int r = size > 0 ? 1 : -EIO;

	while (r > 0) {
		r = client_get(belay->in, (size_t)size, &at, &m);
		if (r > 0 && take_message(belay, &m, &fd) < 0)
			r = -EIO;
	}
	if (fd >= 0)
		close(fd);
	if (r < 0)
		call_lose(belay);
}

/* A leader goes: one of those who still wait must read. */
static void pass_lead(struct belay *belay)
{
	struct call *call;

	if (belay->reading)
		return;
	TAILQ_FOREACH(call, &belay->followers, link)
		if (!is_done(call)) {
			atomic_store_explicit(&call->state, CALL_LEAD, memory_order_relaxed);
			futex_wake(&call->state, false);
			return;
		}
}

/* Size of a packet, or a negative errno. */
static ssize_t receive_packet(struct belay *belay, int flags, int *ret_fd)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = belay->in, .iov_len = sizeof(belay->in) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	const struct cmsghdr *c;
	ssize_t size;

	size = recvmsg(belay->socket, &msg, flags | MSG_CMSG_CLOEXEC);
	if (size < 0)
		return -errno;
	c = CMSG_FIRSTHDR(&msg);
	*ret_fd = -1;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_fd, CMSG_DATA(c), sizeof(*ret_fd));
	return size;
}

void call_poll(struct belay *belay)
{
	ssize_t size;
	int fd = -1;

	if (belay->reading || belay->lost)
		return;
	do {
		size = receive_packet(belay, MSG_DONTWAIT, &fd);
	} while (size == -EINTR);
	if (size == -EAGAIN)
		return;
	/* What it says may have to be acknowledged, and that may take time: nobody must read the next over it. */
	belay->reading = true;
	belay->reader = pthread_self();
	take_packet(belay, size, fd);
	belay->reading = false;
	pass_lead(belay);
}

/* Not entered, belay->reading is ours. Size of the packet, -ETIMEDOUT, or another errno: lost. */
static ssize_t receive(struct belay *belay, const struct timespec *deadline, int *ret_fd)
{
	struct pollfd p = { .fd = belay->socket, .events = POLLIN };
	ssize_t size;
	int left;

	for (;;) {
		if (deadline) {
			left = time_left(deadline);
			if (left == 0)
				return -ETIMEDOUT;
			if (poll(&p, 1, left) <= 0)
				continue;
		}
		size = receive_packet(belay, deadline ? MSG_DONTWAIT : 0, ret_fd);
		if (size == 0)
			return -EPIPE;
		if (size != -EINTR && size != -EAGAIN)
			return size;
	}
}

static int lead(struct belay *belay, struct call *call, const struct timespec *deadline)
{
	ssize_t size = 0;
	int fd = -1;

	belay->reading = true;
	belay->reader = pthread_self();
	while (!is_done(call) && size != -ETIMEDOUT) {
		leave(belay);
		size = receive(belay, deadline, &fd);
		enter(belay);
		if (size != -ETIMEDOUT)
			take_packet(belay, size, fd);
		call_signal(belay);
	}
	belay->reading = false;
	return size == -ETIMEDOUT ? -ETIMEDOUT : 0;
}

static int follow(struct belay *belay, struct call *call, const struct timespec *deadline)
{
	int left = deadline ? time_left(deadline) : -1;

	if (left == 0)
		return -ETIMEDOUT;
	TAILQ_INSERT_TAIL(&belay->followers, call, link);
	atomic_store_explicit(&call->state, CALL_WAITING, memory_order_relaxed);
	leave(belay);
	futex_sleep(&call->state, CALL_WAITING, left, false);
	enter(belay);
	TAILQ_REMOVE(&belay->followers, call, link);
	return 0;
}

int call_wait(struct belay *belay, struct call *call, const struct timespec *deadline)
{
	int r = 0;

	while (!is_done(call) && r == 0)
		r = belay->reading ? follow(belay, call, deadline)
				   : lead(belay, call, deadline);
	/* Also when we never led: we may have been asked to and got the answer first. */
	pass_lead(belay);
	return is_done(call) ? 0 : r;
}

int call_await(struct belay *belay, struct call *call, const struct timespec *deadline)
{
	int r = call_wait(belay, call, deadline);

	if (r == -ETIMEDOUT)
		call_lose(belay);
	return r;
}

bool call_nested(const struct belay *belay)
{
	return belay->reading && pthread_equal(belay->reader, pthread_self());
}

int call_run(struct belay *belay, struct call *call, enum client_type want,
	     struct client_message *m, int fd)
{
	int r;

	enter(belay);
	r = call_nested(belay) ? -EDEADLK : call_open(belay, call, want);
	if (r == 0) {
		m->number = call->number;
		r = fd < 0 ? send_message(belay, m) : send_descriptor(belay, m, fd);
		if (r == 0)
			r = call_wait(belay, call, NULL);
		if (r == 0)
			r = call->result;
		call_close(belay, call);
	}
	leave(belay);
	return r;
}
