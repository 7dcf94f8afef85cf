/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "lib/handle.h"
#include "lib/share.h"

static const enum belay_kind kind_of[] = {
	[BELAY_OWNER_PROCESS] = BELAY_KIND_POSIX,
	[BELAY_OWNER_HANDLE]  = BELAY_KIND_OFD,
	[BELAY_OWNER_FLOCK]   = BELAY_KIND_FLOCK,
	[BELAY_OWNER_NODE]    = BELAY_KIND_NODE,
};

/* And back; belayd's word is not trusted to be one of them. */
enum belay_lock_owner handle_owner(enum belay_kind kind)
{
	switch (kind) {
	case BELAY_KIND_OFD:
		return BELAY_OWNER_HANDLE;
	case BELAY_KIND_FLOCK:
		return BELAY_OWNER_FLOCK;
	case BELAY_KIND_NODE:
		return BELAY_OWNER_NODE;
	default:
		return BELAY_OWNER_PROCESS;
	}
}

static bool owner_valid(enum belay_lock_owner owner)
{
	return (unsigned)owner < sizeof(kind_of) / sizeof(kind_of[0]);
}

struct client_message handle_message(const struct belay_handle *handle, enum client_type type,
				     enum belay_mode mode, const struct belay_range *range)
{
	return (struct client_message){
		.type = type,
		.handle = handle->id,
		.kind = handle->kind,
		.mode = mode,
		.range = *range,
	};
}

/*
 * Send OPEN_FD or OPEN_NAME; the answer makes the handle. Programs that lock files would not know what to do
 * without an answer; those that lock names may have other things to do.
 */
static int ask(struct belay *belay, struct call *call, struct client_message *m, int fd)
{
	const struct timespec soon = answer_deadline(), *deadline = fd < 0 ? &soon : NULL;
	int r = 0;

	if (call_nested(belay))
		return -EDEADLK;
	if (!belay->share_asked)
		r = share_open(belay, deadline);
	/* Without memory that is shared it goes as well, but slower. */
	if (r != -ETIMEDOUT)
		r = call_open(belay, call, CLIENT_RESULT);
	if (r < 0)
		return r;
	m->number = call->number;
	r = fd < 0 ? send_message(belay, m) : send_descriptor(belay, m, fd);
	if (r == 0)
		r = call_await(belay, call, deadline);
	call_close(belay, call);
	return r < 0 ? r : call->result;
}

/* What may be locked through the descriptor, without being told. */
static uint8_t modes_of(int fd, enum belay_kind kind)
{
	int flags = fd < 0 ? -1 : fcntl(fd, F_GETFL);
	uint8_t modes = 0;

	if (flags < 0 || (flags & O_PATH))
		return 0;
	if (kind == BELAY_KIND_FLOCK || (flags & O_ACCMODE) != O_WRONLY)
		modes |= 1u << BELAY_MODE_SH;
	if (kind == BELAY_KIND_FLOCK || (flags & O_ACCMODE) != O_RDONLY)
		modes |= 1u << BELAY_MODE_EX;
	return modes;
}

static int open_run(struct belay *belay, struct client_message *m, int fd,
		    enum belay_lock_owner owner, struct belay_handle **ret_handle)
{
	struct belay_handle *handle = malloc(sizeof(*handle));
	struct resource *resource = resource_new();
	struct call call = { 0 };
	int r = -ENOMEM;

	if (!handle || !resource)
		goto fail;
	m->kind = kind_of[owner];
	enter(belay);
	r = ask(belay, &call, m, fd);
	if (r == 0)
		resource = resource_get(belay, call.answer.resource, resource);
	leave(belay);
	if (r < 0)
		goto fail;
	*handle = (struct belay_handle){
		.belay = belay,
		.resource = resource,
		.life = belay->life,
		.owner = m->kind == BELAY_KIND_POSIX ? 0 : call.answer.handle,
		.id = call.answer.handle,
		.kind = m->kind,
		.named = fd < 0,
		.modes = modes_of(fd, m->kind),
	};
	*ret_handle = handle;
	return 0;

fail:
	free(resource);
	free(handle);
	return r;
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

/* belayd releases at a CLOSE what the handle's messages have asked for; the rest it has to be told. */
static int unlock_lent(struct belay_handle *handle, const struct belay_range *all)
{
	struct client_message m = handle_message(handle, CLIENT_UNLOCK, BELAY_MODE_SH, all);
	int r;

	if (!atomic_load_explicit(&handle->lent, memory_order_relaxed))
		return 0;
	r = loan_yield(handle->belay, handle->resource, all);
	return r < 0 ? r : send_later(handle->belay, &m);
}

/* It was its last use, so nobody is in its loans. */
static void close_run(struct belay_handle *handle)
{
	static const struct belay_range all = { .start = 0, .end = BELAY_OFFSET_MAX };
	struct belay *belay = handle->belay;
	struct client_message m = { .type = CLIENT_CLOSE, .handle = handle->id };
	const struct timespec soon = answer_deadline();
	struct call call = { 0 };
	int r;

	r = call_open(belay, &call, CLIENT_RESULT);
	if (r < 0)
		return;
	m.number = call.number;
	r = unlock_lent(handle, &all);
	if (r == 0)
		r = loan_yield(belay, handle->resource, &all);
	if (r == 0)
		r = send_message(belay, &m);
	if (r == 0)
		r = call_await(belay, &call, handle->named ? &soon : NULL);
	if (r == 0 && call.result == 0 && call.answer.resource == handle->resource->number)
		resource_free(belay, handle->resource);
	call_close(belay, &call);
}

void belay_handle_close(struct belay_handle *handle)
{
	if (!handle)
		return;
	/* A failure means that the connection is gone, and the locks with it. */
	if (!forked(handle->belay)) {
		enter(handle->belay);
		close_run(handle);
		leave(handle->belay);
	}
	free(handle);
}
