/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Locks without waiting, for poll loops. */
#include <errno.h>
#include <stdlib.h>

#include "lib/handle.h"

/* The call is open. 0: there is an answer, or will be. */
static int start(struct belay_handle *handle, struct call *call, enum belay_mode mode,
		 const struct belay_range *range, bool wait)
{
	struct client_message m = handle_message(handle, CLIENT_LOCK, mode, range);
	struct belay *belay = handle->belay;
	int r = handle_lock(handle, mode, range, &call->answer.token);

	if (r == 0 || (r == -EAGAIN && !wait)) {
		call_finish(belay, call, r);
		call_signal(belay);
		return 0;
	}
	m.wait = wait;
	m.lend = belay->share != NULL;
	m.number = call->number;
	r = loan_yield(belay, handle->resource, range);
	return r < 0 ? r : send_later(belay, &m);
}

static int begin(struct belay_handle *handle, enum belay_lock_mode mode, uint64_t start_at,
		 uint64_t length, bool wait, uint32_t *ret_request)
{
	struct belay *belay = handle->belay;
	struct belay_range range;
	struct call *call;
	uint32_t number;
	int r;

	r = handle_range(handle, mode, start_at, length, &range);
	if (r < 0)
		return r;
	call = calloc(1, sizeof(*call));
	if (!call)
		return -ENOMEM;
	call->async = true;
	call->resource = handle->resource;
	call->modes = &handle->modes;
	call->mode = handle_mode(mode);

	enter(belay);
	r = call_open(belay, call, CLIENT_RESULT);
	if (r < 0) {
		free(call);
	} else {
		/* Once sent, another thread's belay_next() may free the call. */
		number = call->number;
		r = start(handle, call, handle_mode(mode), &range, wait);
		if (r == 0)
			*ret_request = number;
	}
	leave(belay);
	return r;
}

int belay_lock_start(struct belay_handle *handle, enum belay_lock_mode mode, uint64_t start_at,
		     uint64_t length, uint32_t *ret_request)
{
	return begin(handle, mode, start_at, length, true, ret_request);
}

int belay_trylock_start(struct belay_handle *handle, enum belay_lock_mode mode, uint64_t start_at,
			uint64_t length, uint32_t *ret_request)
{
	return begin(handle, mode, start_at, length, false, ret_request);
}

int belay_lock_cancel(struct belay *belay, uint32_t request)
{
	struct client_message m = { .type = CLIENT_CANCEL, .number = request };
	struct call *call;
	int r = 0;

	if (forked(belay))
		return -EPERM;
	enter(belay);
	call = call_find(belay, request);
	if (belay->lost)
		r = -EIO;
	else if (!call || !call->async)
		r = -ENOENT;
	else if (atomic_load_explicit(&call->state, memory_order_relaxed) != CALL_DONE)
		r = send_later(belay, &m);
	leave(belay);
	return r;
}

int belay_next(struct belay *belay, struct belay_event_info *ret_event)
{
	struct call *call;
	int r = 0;

	if (forked(belay))
		return -EPERM;
	enter(belay);
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
	leave(belay);
	return r;
}

int belay_cork(struct belay *belay)
{
	if (forked(belay))
		return -EPERM;
	enter(belay);
	belay->corked = true;
	leave(belay);
	return 0;
}

int belay_uncork(struct belay *belay)
{
	int r;

	if (forked(belay))
		return -EPERM;
	enter(belay);
	belay->corked = false;
	r = send_box(belay);
	leave(belay);
	return r;
}
