/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Requests and their answers: numbers, the reading of the socket, the waiting. */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/private.h"

#define INDEX_BITS 20
#define INDEX_MASK ((1u << INDEX_BITS) - 1)

static int grow(struct belay *belay)
{
	uint32_t i, count = belay->slot_count ? belay->slot_count * 2 : 16;
	struct slot *slot;

	if (count > INDEX_MASK + 1)
		return -ENOLCK;
	slot = realloc(belay->slot, count * sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	belay->slot = slot;
	/* Index 0 is never given away: number 0 asks for no answer. */
	for (i = count - 1; i >= belay->slot_count && i > 0; i--) {
		slot[i] = (struct slot){ .number = i, .next_free = belay->free_slot };
		belay->free_slot = i;
	}
	slot[0] = (struct slot){ 0 };
	belay->slot_count = count;
	return 0;
}

int call_open(struct belay *belay, struct call *call, enum client_type want)
{
	struct slot *slot;
	int r;

	if (belay->lost)
		return -EIO;
	if (belay->free_slot == 0) {
		r = grow(belay);
		if (r < 0)
			return r;
	}
	slot = &belay->slot[belay->free_slot];
	belay->free_slot = slot->next_free;
	slot->call = call;
	call->number = slot->number;
	call->want = want;
	return 0;
}

void call_close(struct belay *belay, struct call *call)
{
	uint32_t index = call->number & INDEX_MASK;
	struct slot *slot = &belay->slot[index];

	assert(slot->call == call);
	slot->call = NULL;
	slot->number += INDEX_MASK + 1;
	slot->next_free = belay->free_slot;
	belay->free_slot = index;
}

struct call *call_find(const struct belay *belay, uint32_t number)
{
	uint32_t index = number & INDEX_MASK;

	if (index >= belay->slot_count || belay->slot[index].number != number)
		return NULL;
	return belay->slot[index].call;
}

static void finish(struct belay *belay, struct call *call, int result)
{
	call->result = result;
	call->done = true;
	if (call->async)
		TAILQ_INSERT_TAIL(&belay->events, call, link);
	else
		pthread_cond_signal(&call->wake);
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
	/* Wakes a leader out of its receive, and poll loops. */
	(void)shutdown(belay->socket, SHUT_RDWR);
	for (i = 1; i < belay->slot_count; i++)
		if (belay->slot[i].call && !belay->slot[i].call->done)
			finish(belay, belay->slot[i].call, -EIO);
	pthread_cond_broadcast(&belay->room);
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

/* 0, or -EBADMSG: belayd says what it must not. */
static int take_answer(struct belay *belay, const struct client_message *m)
{
	struct call *call = call_find(belay, m->number);

	if (!call || call->done || call->want != m->type || m->result > 0)
		return -EBADMSG;
	if (m->type == CLIENT_TEXT) {
		add_text(call, m);
		if (m->more)
			return 0;
	}
	call->answer = *m;
	finish(belay, call, m->result);
	return 0;
}

static int take_message(struct belay *belay, const struct client_message *m)
{
	switch (m->type) {
	case CLIENT_RESULT:
	case CLIENT_TESTED:
	case CLIENT_TEXT:
		return take_answer(belay, m);
	case CLIENT_LOST:
	case CLIENT_ERROR:
		return -EIO;
	default:
		return -EBADMSG;
	}
}

/* A packet of @size bytes stands in belay->in; negative: none will come any more. */
static void take_packet(struct belay *belay, ssize_t size)
{
	struct client_message m;
	size_t at = 0;
	int r = size > 0 ? 1 : -EIO;

	while (r > 0) {
		r = client_get(belay->in, (size_t)size, &at, &m);
		if (r > 0 && take_message(belay, &m) < 0)
			r = -EIO;
	}
	if (r < 0)
		call_lose(belay);
}

void call_poll(struct belay *belay)
{
	ssize_t size;

	if (belay->reading || belay->lost)
		return;
	do {
		size = recv(belay->socket, belay->in, sizeof(belay->in), MSG_DONTWAIT);
	} while (size < 0 && errno == EINTR);
	if (size < 0 && errno == EAGAIN)
		return;
	take_packet(belay, size);
}

int time_left(const struct timespec *deadline)
{
	struct timespec now;
	int64_t ns;

	clock_gettime(CLOCK_MONOTONIC, &now);
	ns = (deadline->tv_sec - now.tv_sec) * INT64_C(1000000000) +
	     (deadline->tv_nsec - now.tv_nsec);
	if (ns <= 0)
		return 0;
	ns = (ns + 999999) / 1000000;
	return ns > INT32_MAX ? INT32_MAX : (int)ns;
}

/* Mutex not held, belay->reading is ours. Size of the packet, -ETIMEDOUT, or another errno: lost. */
static ssize_t receive(struct belay *belay, const struct timespec *deadline)
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
		size = recv(belay->socket, belay->in, sizeof(belay->in),
			    deadline ? MSG_DONTWAIT : 0);
		if (size > 0)
			return size;
		if (size == 0)
			return -EPIPE;
		if (errno != EINTR && errno != EAGAIN)
			return -errno;
	}
}

static int lead(struct belay *belay, struct call *call, const struct timespec *deadline)
{
	ssize_t size = 0;

	belay->reading = true;
	while (!call->done && size != -ETIMEDOUT) {
		pthread_mutex_unlock(&belay->mutex);
		size = receive(belay, deadline);
		pthread_mutex_lock(&belay->mutex);
		if (size != -ETIMEDOUT)
			take_packet(belay, size);
		call_signal(belay);
	}
	belay->reading = false;
	return size == -ETIMEDOUT ? -ETIMEDOUT : 0;
}

static int follow(struct belay *belay, struct call *call, const struct timespec *deadline)
{
	int r = 0;

	TAILQ_INSERT_TAIL(&belay->followers, call, link);
	if (deadline)
		r = pthread_cond_timedwait(&call->wake, &belay->mutex, deadline);
	else
		pthread_cond_wait(&call->wake, &belay->mutex);
	TAILQ_REMOVE(&belay->followers, call, link);
	return -r;
}

/* A leader goes: one of those who still wait must read. */
static void pass_lead(struct belay *belay)
{
	struct call *call;

	if (belay->reading)
		return;
	TAILQ_FOREACH(call, &belay->followers, link)
		if (!call->done) {
			pthread_cond_signal(&call->wake);
			return;
		}
}

int call_wait(struct belay *belay, struct call *call, const struct timespec *deadline)
{
	int r = 0;

	while (!call->done && r == 0)
		r = belay->reading ? follow(belay, call, deadline)
				   : lead(belay, call, deadline);
	/* Also when we never led: we may have been asked to and got the answer first. */
	pass_lead(belay);
	return call->done ? 0 : r;
}

int call_run(struct belay *belay, struct call *call, enum client_type want,
	     struct client_message *m, int fd)
{
	int r;

	pthread_cond_init(&call->wake, &belay->monotonic);
	pthread_mutex_lock(&belay->mutex);
	r = call_open(belay, call, want);
	if (r < 0)
		goto out;
	m->number = call->number;
	r = fd < 0 ? send_message(belay, m) : send_descriptor(belay, m, fd);
	if (r == 0)
		r = call_wait(belay, call, NULL);
	if (r == 0)
		r = call->result;
	call_close(belay, call);
out:
	pthread_mutex_unlock(&belay->mutex);
	pthread_cond_destroy(&call->wake);
	return r;
}
