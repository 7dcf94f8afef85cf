/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lvmlockd/quorum.h"

#include <corosync/corotypes.h>
#include <corosync/quorum.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>

#define RETRY_NS 1000000000ull

struct quorum {
	qb_loop_t *loop;
	quorum_changed changed;
	void *context;
	bool open, told, quorate;
	quorum_handle_t handle;
	int fd;				/* -1: none watched */
	qb_loop_timer_handle timer;
	bool timer_set;
};

static void connect_again(void *data);

static void tell(struct quorum *quorum, bool quorate, const char *why)
{
	if (quorum->told && quorum->quorate == quorate)
		return;
	quorum->told = true;
	quorum->quorate = quorate;
	quorum->changed(quorum->context, quorate, why);
}

static void on_notify(quorum_handle_t handle, uint32_t quorate, struct quorum_ring_id ring,
		      uint32_t member_count, const uint32_t *member)
{
	const void *context;

	(void)ring;
	(void)member_count;
	(void)member;
	/* Of the ring it does not matter which: belayd keeps to the order of messages, here only the flag counts. */
	if (quorum_context_get(handle, &context) == CS_OK)
		tell((struct quorum *)(uintptr_t)context, quorate != 0, "corosync says so");
}

static void hang_up(struct quorum *quorum)
{
	if (!quorum->open)
		return;
	if (quorum->fd >= 0) {
		(void)qb_loop_poll_del(quorum->loop, quorum->fd);
		/* Shut, finalize waits for no answer of a corosync that is stopped. */
		(void)shutdown(quorum->fd, SHUT_RDWR);
	}
	(void)quorum_finalize(quorum->handle);
	quorum->open = false;
	quorum->fd = -1;
}

static void retry_later(struct quorum *quorum)
{
	quorum->timer_set = qb_loop_timer_add(quorum->loop, QB_LOOP_MED, RETRY_NS, quorum, connect_again,
					      &quorum->timer) == 0;
}

static int32_t on_readable(int32_t fd, int32_t revents, void *data)
{
	struct quorum *quorum = data;
	cs_error_t e;

	(void)fd;
	(void)revents;
	e = quorum_dispatch(quorum->handle, CS_DISPATCH_ALL);
	if (e == CS_OK || e == CS_ERR_TRY_AGAIN)
		return 0;
	/* Without corosync nobody here knows whether the others are still with us. */
	hang_up(quorum);
	tell(quorum, false, "corosync has ended");
	retry_later(quorum);
	return 0;
}

static cs_error_t open_quorum(struct quorum *quorum)
{
	quorum_model_v1_data_t model = { .model = QUORUM_MODEL_V1, .quorum_notify_fn = on_notify };
	uint32_t type;
	cs_error_t e;

	e = quorum_model_initialize(&quorum->handle, QUORUM_MODEL_V1, (quorum_model_data_t *)&model, &type, quorum);
	if (e != CS_OK)
		return e;
	quorum->open = true;
	/* Without a quorum provider corosync counts as having quorum, and belayd does not start on it. */
	e = quorum_fd_get(quorum->handle, &quorum->fd);
	if (e != CS_OK) {
		quorum->fd = -1;
		return e;
	}
	e = quorum_trackstart(quorum->handle, CS_TRACK_CURRENT | CS_TRACK_CHANGES);
	if (e == CS_OK && qb_loop_poll_add(quorum->loop, QB_LOOP_HIGH, quorum->fd, POLLIN, quorum, on_readable) < 0)
		e = CS_ERR_NO_MEMORY;
	return e;
}

static void connect_again(void *data)
{
	struct quorum *quorum = data;

	quorum->timer_set = false;
	if (open_quorum(quorum) == CS_OK)
		return;
	hang_up(quorum);
	tell(quorum, false, "corosync cannot be reached");
	retry_later(quorum);
}

int quorum_open(qb_loop_t *loop, quorum_changed changed, void *context, struct quorum **ret_quorum)
{
	struct quorum *quorum = calloc(1, sizeof(*quorum));

	if (!quorum)
		return -ENOMEM;
	quorum->loop = loop;
	quorum->changed = changed;
	quorum->context = context;
	quorum->fd = -1;
	/* From the loop: the caller is not ready for callbacks yet. */
	if (qb_loop_timer_add(loop, QB_LOOP_HIGH, 0, quorum, connect_again, &quorum->timer) < 0) {
		free(quorum);
		return -ENOMEM;
	}
	quorum->timer_set = true;
	*ret_quorum = quorum;
	return 0;
}

void quorum_close(struct quorum *quorum)
{
	if (!quorum)
		return;
	if (quorum->timer_set)
		(void)qb_loop_timer_del(quorum->loop, quorum->timer);
	hang_up(quorum);
	free(quorum);
}
