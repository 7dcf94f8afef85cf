/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/handle.h"

static const enum belay_kind kind_of[] = {
	[BELAY_OWNER_PROCESS] = BELAY_KIND_POSIX,
	[BELAY_OWNER_HANDLE]  = BELAY_KIND_OFD,
	[BELAY_OWNER_FLOCK]   = BELAY_KIND_FLOCK,
};

/* And back; belayd's word is not trusted to be one of them. */
static enum belay_lock_owner owner_of(enum belay_kind kind)
{
	switch (kind) {
	case BELAY_KIND_OFD:
		return BELAY_OWNER_HANDLE;
	case BELAY_KIND_FLOCK:
		return BELAY_OWNER_FLOCK;
	default:
		return BELAY_OWNER_PROCESS;
	}
}

static bool owner_valid(enum belay_lock_owner owner)
{
	return (unsigned)owner < sizeof(kind_of) / sizeof(kind_of[0]);
}

int handle_message(const struct belay_handle *handle, enum client_type type,
		   enum belay_lock_mode mode, uint64_t start, uint64_t length,
		   struct client_message *ret_m)
{
	struct belay_range range;
	int r;

	if (mode != BELAY_SHARED && mode != BELAY_EXCLUSIVE)
		return -EINVAL;
	r = range_from(start, length, &range);
	if (r < 0)
		return r;
	/* flock(2) knows no ranges. */
	if (handle->kind == BELAY_KIND_FLOCK && (start != 0 || range.end != BELAY_OFFSET_MAX))
		return -EINVAL;
	*ret_m = (struct client_message){
		.type = type,
		.handle = handle->id,
		.kind = handle->kind,
		.mode = mode == BELAY_SHARED ? BELAY_MODE_SH : BELAY_MODE_EX,
		.range = range,
	};
	return 0;
}

/* Send OPEN_FD or OPEN_NAME; the answer makes the handle. */
static int open_run(struct belay *belay, struct client_message *m, int fd,
		    enum belay_lock_owner owner, struct belay_handle **ret_handle)
{
	struct belay_handle *handle = malloc(sizeof(*handle));
	struct call call = { 0 };
	int r;

	if (!handle)
		return -ENOMEM;
	r = call_run(belay, &call, CLIENT_RESULT, m, fd);
	if (r < 0) {
		free(handle);
		return r;
	}
	*handle = (struct belay_handle){
		.belay = belay,
		.id = call.answer.handle,
		.kind = kind_of[owner],
	};
	*ret_handle = handle;
	return 0;
}

int belay_open_fd(struct belay *belay, int fd, enum belay_lock_owner owner,
		  struct belay_handle **ret_handle)
{
	struct client_message m = { .type = CLIENT_OPEN_FD };

	if (forked(belay))
		return -EPERM;
	if (!owner_valid(owner))
		return -EINVAL;
	if (fd < 0)
		return -EBADF;
	return open_run(belay, &m, fd, owner, ret_handle);
}

int belay_open_name(struct belay *belay, const char *lockspace, const char *name,
		    enum belay_lock_owner owner, struct belay_handle **ret_handle)
{
	struct client_message m = { .type = CLIENT_OPEN_NAME };
	size_t lockspace_size, name_size;

	if (forked(belay))
		return -EPERM;
	if (!lockspace)
		lockspace = "default";
	lockspace_size = strlen(lockspace);
	name_size = strlen(name);
	if (!owner_valid(owner) || name_size == 0 || name_size > CLIENT_NAME_MAX ||
	    lockspace_size == 0 || lockspace_size > CLIENT_NAME_MAX)
		return -EINVAL;
	m.text = lockspace;
	m.text_size = (uint16_t)lockspace_size;
	m.text2 = name;
	m.text2_size = (uint16_t)name_size;
	return open_run(belay, &m, -1, owner, ret_handle);
}

void belay_handle_close(struct belay_handle *handle)
{
	struct client_message m = { .type = CLIENT_CLOSE };
	struct call call = { 0 };

	if (!handle)
		return;
	m.handle = handle->id;
	/* A failure means that the connection is gone, and the locks with it. */
	if (!forked(handle->belay))
		(void)call_run(handle->belay, &call, CLIENT_RESULT, &m, -1);
	free(handle);
}

static int lock_run(struct belay_handle *handle, enum belay_lock_mode mode, uint64_t start,
		    uint64_t length, bool wait, uint64_t *ret_token)
{
	struct client_message m;
	struct call call = { 0 };
	int r;

	if (forked(handle->belay))
		return -EPERM;
	r = handle_message(handle, CLIENT_LOCK, mode, start, length, &m);
	if (r < 0)
		return r;
	m.wait = wait;
	r = call_run(handle->belay, &call, CLIENT_RESULT, &m, -1);
	if (r == 0 && ret_token)
		*ret_token = call.answer.token;
	return r;
}

int belay_lock(struct belay_handle *handle, enum belay_lock_mode mode, uint64_t start,
	       uint64_t length, uint64_t *ret_token)
{
	return lock_run(handle, mode, start, length, true, ret_token);
}

int belay_trylock(struct belay_handle *handle, enum belay_lock_mode mode, uint64_t start,
		  uint64_t length, uint64_t *ret_token)
{
	return lock_run(handle, mode, start, length, false, ret_token);
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

/* Mutex held. Past the deadline the answer to the cancelled request decides: a grant may come first. */
static int timed_wait(struct belay *belay, struct call *call, const struct timespec *deadline)
{
	struct client_message cancel = { .type = CLIENT_CANCEL, .number = call->number };
	int r = call_wait(belay, call, deadline);

	if (r == 0)
		return call->result;
	r = send_message(belay, &cancel);
	if (r == 0)
		r = call_wait(belay, call, NULL);
	if (r == 0)
		r = call->result;
	return r == -EINTR ? -ETIMEDOUT : r;
}

int belay_lock_timed(struct belay_handle *handle, enum belay_lock_mode mode, uint64_t start,
		     uint64_t length, unsigned int timeout_ms, uint64_t *ret_token)
{
	struct belay *belay = handle->belay;
	struct timespec deadline = deadline_after(timeout_ms);
	struct client_message m;
	struct call call = { 0 };
	int r;

	/* No time at all: a request withdrawn at once might miss a free lock that is far away. */
	if (timeout_ms == 0) {
		r = lock_run(handle, mode, start, length, false, ret_token);
		return r == -EAGAIN ? -ETIMEDOUT : r;
	}
	if (forked(belay))
		return -EPERM;
	r = handle_message(handle, CLIENT_LOCK, mode, start, length, &m);
	if (r < 0)
		return r;
	m.wait = true;
	pthread_cond_init(&call.wake, &belay->monotonic);
	pthread_mutex_lock(&belay->mutex);
	r = call_open(belay, &call, CLIENT_RESULT);
	if (r == 0) {
		m.number = call.number;
		r = send_message(belay, &m);
		if (r == 0)
			r = timed_wait(belay, &call, &deadline);
		call_close(belay, &call);
	}
	pthread_mutex_unlock(&belay->mutex);
	pthread_cond_destroy(&call.wake);
	if (r == 0 && ret_token)
		*ret_token = call.answer.token;
	return r;
}

int belay_unlock(struct belay_handle *handle, uint64_t start, uint64_t length)
{
	struct belay *belay = handle->belay;
	struct client_message m;
	int r;

	if (forked(belay))
		return -EPERM;
	r = handle_message(handle, CLIENT_UNLOCK, BELAY_SHARED, start, length, &m);
	if (r < 0)
		return r;
	pthread_mutex_lock(&belay->mutex);
	r = send_later(belay, &m);
	pthread_mutex_unlock(&belay->mutex);
	return r;
}

int belay_get(struct belay_handle *handle, enum belay_lock_mode mode, uint64_t start,
	      uint64_t length, struct belay_lock_holder *ret_holder)
{
	struct client_message m;
	struct call call = { 0 };
	const struct client_message *answer = &call.answer;
	int r;

	if (forked(handle->belay))
		return -EPERM;
	r = handle_message(handle, CLIENT_TEST, mode, start, length, &m);
	if (r < 0)
		return r;
	r = call_run(handle->belay, &call, CLIENT_TESTED, &m, -1);
	if (r < 0)
		return r;
	if (!answer->held)
		return 0;
	*ret_holder = (struct belay_lock_holder){
		.node = answer->owner.node,
		.pid = (pid_t)answer->owner.pid,
		.mode = answer->mode == BELAY_MODE_SH ? BELAY_SHARED : BELAY_EXCLUSIVE,
		.start = answer->range.start,
		.length = range_length(&answer->range),
		.owner = owner_of(answer->owner.kind),
	};
	return 1;
}
