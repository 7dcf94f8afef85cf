/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Locks without waiting, for poll loops. */
#include <errno.h>
#include <stdlib.h>

#include "lib/handle.h"

int belay_lock_start(struct belay_handle *handle, enum belay_lock_mode mode, uint64_t start,
		     uint64_t length, uint32_t *ret_request)
{
	struct belay *belay = handle->belay;
	struct client_message m;
	struct call *call;
	uint32_t number;
	int r;

	if (forked(belay))
		return -EPERM;
	r = handle_message(handle, CLIENT_LOCK, mode, start, length, &m);
	if (r < 0)
		return r;
	m.wait = true;
	call = calloc(1, sizeof(*call));
	if (!call)
		return -ENOMEM;
	call->async = true;

	pthread_mutex_lock(&belay->mutex);
	r = call_open(belay, call, CLIENT_RESULT);
	if (r < 0) {
		free(call);
	} else {
		/* Once sent, another thread's belay_next() may free the call. */
		m.number = number = call->number;
		r = send_later(belay, &m);
		if (r == 0)
			*ret_request = number;
	}
	pthread_mutex_unlock(&belay->mutex);
	return r;
}

int belay_lock_cancel(struct belay *belay, uint32_t request)
{
	struct client_message m = { .type = CLIENT_CANCEL, .number = request };
	struct call *call;
	int r = 0;

	if (forked(belay))
		return -EPERM;
	pthread_mutex_lock(&belay->mutex);
	call = call_find(belay, request);
	if (belay->lost)
		r = -EIO;
	else if (!call || !call->async)
		r = -ENOENT;
	else if (!call->done)
		r = send_later(belay, &m);
	pthread_mutex_unlock(&belay->mutex);
	return r;
}

int belay_next(struct belay *belay, struct belay_event_info *ret_event)
{
	struct call *call;
	int r = 0;

	if (forked(belay))
		return -EPERM;
	pthread_mutex_lock(&belay->mutex);
	/* One packet a round: if there is another, the descriptor stays readable. */
	if (TAILQ_EMPTY(&belay->events) && !belay->polled) {
		belay->polled = true;
		call_poll(belay);
	}
	call = TAILQ_FIRST(&belay->events);
	if (belay->lost) {
		r = -EIO;
	} else if (call) {
		TAILQ_REMOVE(&belay->events, call, link);
		call_close(belay, call);
		*ret_event = (struct belay_event_info){
			.request = call->number,
			.result = call->result,
			.token = call->result == 0 ? call->answer.token : 0,
		};
		free(call);
		r = 1;
	}
	belay->polled = belay->polled && r == 1;
	call_signal(belay);
	pthread_mutex_unlock(&belay->mutex);
	return r;
}

int belay_cork(struct belay *belay)
{
	if (forked(belay))
		return -EPERM;
	pthread_mutex_lock(&belay->mutex);
	belay->corked = true;
	pthread_mutex_unlock(&belay->mutex);
	return 0;
}

int belay_uncork(struct belay *belay)
{
	int r;

	if (forked(belay))
		return -EPERM;
	pthread_mutex_lock(&belay->mutex);
	belay->corked = false;
	r = send_box(belay);
	pthread_mutex_unlock(&belay->mutex);
	return r;
}
