/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Locks: without asking where there is a loan, else by asking belayd. */
#include <unistd.h>

#include "lib/handle.h"
#include "lib/share.h"

/* Past the deadline the answer to the cancelled request decides: a grant may come first. */
static int wait_for(struct belay *belay, struct call *call, const struct timespec *deadline)
{
	struct client_message cancel = { .type = CLIENT_CANCEL, .number = call->number };
	bool late = false;
	int r;

	for (;;) {
		r = call->cell ? share_cell_wait(belay, call, deadline) : call_wait(belay, call, deadline);
		if (r == 0)
			break;
		late = true;
		deadline = NULL;
		r = send_message(belay, &cancel);
		if (r < 0)
			return r;
	}
	return late && call->result == -EINTR ? -ETIMEDOUT : call->result;
}

/* Ask belayd @m, about the handle's resource. */
static int ask(struct belay_handle *handle, struct client_message *m, enum client_type want,
	       const struct timespec *deadline, struct client_message *ret_answer)
{
	struct belay *belay = handle->belay;
	struct call call = { .resource = handle->resource, .mode = m->mode };
	int r;

	if (m->type == CLIENT_LOCK)
		call.modes = &handle->modes;
	enter(belay);
	share_cell_open(belay, &call);
	r = call.cell == 0 && call_nested(belay) ? -EDEADLK : call_open(belay, &call, want);
	if (r == 0) {
		m->number = call.number;
		m->cell = call.cell;
		m->lend = m->type == CLIENT_LOCK && belay->share;
		r = loan_yield(belay, handle->resource, &m->range);
		if (r == 0)
			r = send_message(belay, m);
		if (r == 0)
			r = wait_for(belay, &call, deadline);
		call_close(belay, &call);
	}
	share_cell_close(belay, &call);
	leave(belay);
	*ret_answer = call.answer;
	return r;
}

static __attribute__((noinline)) int lock_by_asking(struct belay_handle *handle, enum belay_mode mode,
						    struct belay_range range, bool wait,
						    const struct timespec *deadline, uint64_t *ret_token)
{
	struct client_message answer, m = handle_message(handle, CLIENT_LOCK, mode, &range);
	int r;

	m.wait = wait;
	r = ask(handle, &m, CLIENT_RESULT, deadline, &answer);
	if (r < 0)
		return r;
	if (ret_token)
		*ret_token = answer.token;
	return 0;
}

static inline int lock(struct belay_handle *handle, enum belay_lock_mode mode, uint64_t start,
		       uint64_t length, bool wait, uint64_t *ret_token)
{
	struct belay_range range;
	uint64_t token = 0;
	int r = handle_range(handle, mode, start, length, &range);

	if (!slot_likely(r == 0))
		return r;
	r = handle_lock(handle, handle_mode(mode), &range, &token);
	if (slot_likely(r == 0)) {
		if (ret_token)
			*ret_token = token;
		return 0;
	}
	if (r == -EAGAIN && !wait)
		return r;
	return lock_by_asking(handle, handle_mode(mode), range, wait, NULL, ret_token);
}

int belay_lock(struct belay_handle *handle, enum belay_lock_mode mode, uint64_t start,
	       uint64_t length, uint64_t *ret_token)
{
	return lock(handle, mode, start, length, true, ret_token);
}

int belay_trylock(struct belay_handle *handle, enum belay_lock_mode mode, uint64_t start,
		  uint64_t length, uint64_t *ret_token)
{
	return lock(handle, mode, start, length, false, ret_token);
}

static struct timespec deadline_after(unsigned int timeout_ms)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += timeout_ms / 1000;
	t.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000;
	}
	return t;
}

int belay_lock_timed(struct belay_handle *handle, enum belay_lock_mode mode, uint64_t start,
		     uint64_t length, unsigned int timeout_ms, uint64_t *ret_token)
{
	struct timespec deadline;
	struct belay_range range;
	uint64_t token = 0;
	int r;

	/* No time at all: a request withdrawn at once might miss a free lock that is far away. */
	if (timeout_ms == 0) {
		r = lock(handle, mode, start, length, false, ret_token);
		return r == -EAGAIN ? -ETIMEDOUT : r;
	}
	r = handle_range(handle, mode, start, length, &range);
	if (r < 0)
		return r;
	r = handle_lock(handle, handle_mode(mode), &range, &token);
	if (r == 0) {
		if (ret_token)
			*ret_token = token;
		return 0;
	}
	deadline = deadline_after(timeout_ms);
	return lock_by_asking(handle, handle_mode(mode), range, true, &deadline, ret_token);
}

static __attribute__((noinline)) int unlock_by_telling(struct belay_handle *handle,
						       struct belay_range range)
{
	struct belay *belay = handle->belay;
	struct client_message m = handle_message(handle, CLIENT_UNLOCK, BELAY_MODE_SH, &range);
	int r;

	enter(belay);
	/* Perhaps belayd has said that the locks are lost. Nobody else might read that before the unlock
	 * is taken for a sign that they were held until here. A cork is there to save calls. */
	if (!belay->corked) {
		call_poll(belay);
		call_signal(belay);
	}
	r = loan_yield(belay, handle->resource, &range);
	if (r == 0)
		r = send_later(belay, &m);
	leave(belay);
	return r;
}

int belay_unlock(struct belay_handle *handle, uint64_t start, uint64_t length)
{
	struct belay_range range;
	int r = handle_range(handle, BELAY_SHARED, start, length, &range);

	if (!slot_likely(r == 0))
		return r;
	if (slot_likely(loan_unlock(handle->resource, handle->owner, &range) == 0))
		return 0;
	return unlock_by_telling(handle, range);
}

/* Another owner of this process. */
static struct belay_lock_holder holder_here(const struct belay_handle *handle,
					    const struct slot_entry *held)
{
	const struct belay_range range = { .start = held->start, .end = held->end };
	enum belay_lock_owner owner = handle_owner(handle->kind);

	if (owner != BELAY_OWNER_FLOCK)
		owner = held->handle == 0 ? BELAY_OWNER_PROCESS : BELAY_OWNER_HANDLE;
	return (struct belay_lock_holder){
		.node = handle->belay->node,
		.pid = getpid(),
		.mode = slot_mode_of(held) == BELAY_MODE_SH ? BELAY_SHARED : BELAY_EXCLUSIVE,
		.start = held->start,
		.length = range_length(&range),
		.owner = owner,
	};
}

int belay_get(struct belay_handle *handle, enum belay_lock_mode mode, uint64_t start,
	      uint64_t length, struct belay_lock_holder *ret_holder)
{
	struct client_message answer, m;
	struct belay_range range;
	struct slot_entry held;
	int r = handle_range(handle, mode, start, length, &range);

	if (r < 0)
		return r;
	r = loan_test(handle->resource, handle->owner, handle_mode(mode), &range, &held);
	if (r == 1)
		*ret_holder = holder_here(handle, &held);
	if (r >= 0)
		return r;
	m = handle_message(handle, CLIENT_TEST, handle_mode(mode), &range);
	r = ask(handle, &m, CLIENT_TESTED, NULL, &answer);
	if (r < 0)
		return r;
	if (!answer.held)
		return 0;
	*ret_holder = (struct belay_lock_holder){
		.node = answer.owner.node,
		.pid = (pid_t)answer.owner.pid,
		.mode = answer.mode == BELAY_MODE_SH ? BELAY_SHARED : BELAY_EXCLUSIVE,
		.start = answer.range.start,
		.length = range_length(&answer.range),
		.owner = handle_owner(answer.owner.kind),
	};
	return 1;
}
