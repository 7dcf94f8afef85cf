/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The connection to corosync's quorum service. It speaks on a descriptor of its own,
 * in no order with CPG: a flag belongs to the membership whose ring id it
 * names, and says nothing about any other.
 */
#include <errno.h>
#include <sys/socket.h>

#include "daemon/cpg_parts.h"

static void on_notify(quorum_handle_t handle, uint32_t quorate, struct quorum_ring_id ring,
		      uint32_t member_count, const uint32_t *member)
{
	const void *context;

	(void)member_count;
	(void)member;
	if (quorum_context_get(handle, &context) == CS_OK) {
		struct cpg_quorum *quorum = (struct cpg_quorum *)(uintptr_t)context;

		quorum->quorate = quorate != 0;
		quorum->ring = ring;
	}
}

int cpg_quorum_open(struct cpg_quorum *quorum, const char **ret_why)
{
	quorum_model_v1_data_t model = {
		.model = QUORUM_MODEL_V1,
		.quorum_notify_fn = on_notify,
	};
	unsigned tries = CS_TRIES_MAX;
	uint32_t type;
	cs_error_t e;
	int r;

	*quorum = (struct cpg_quorum){ .fd = -1 };
	do
		e = quorum_model_initialize(&quorum->handle, QUORUM_MODEL_V1,
					    (quorum_model_data_t *)&model, &type, quorum);
	while (cs_again(e, &tries));
	if (e != CS_OK) {
		*ret_why = "cannot reach corosync's quorum service; it must be corosync 3.1 or later";
		return cs_errno(e);
	}

	r = -ENOTSUP;
	*ret_why = "corosync has no quorum provider: set quorum { provider: corosync_votequorum } "
		   "in corosync.conf on all nodes";
	if (type != QUORUM_SET)
		goto fail;

	*ret_why = "corosync's quorum service does not answer as it should; see corosync's log";
	r = cs_errno(quorum_fd_get(quorum->handle, &quorum->fd));
	if (r < 0)
		goto fail;
	do
		e = quorum_trackstart(quorum->handle, CS_TRACK_CURRENT | CS_TRACK_CHANGES);
	while (cs_again(e, &tries));
	r = cs_errno(e);
	if (r < 0)
		goto fail;
	*ret_why = NULL;
	return 0;

fail:
	cpg_quorum_close(quorum);
	return r;
}

int cpg_quorum_dispatch(struct cpg_quorum *quorum)
{
	int r = cs_errno(quorum_dispatch(quorum->handle, CS_DISPATCH_ALL));

	return r == -EAGAIN ? 0 : r;
}

void cpg_quorum_close(struct cpg_quorum *quorum)
{
	/* Hung up first, finalize waits for no answer of a corosync that stopped. */
	if (quorum->fd >= 0)
		(void)shutdown(quorum->fd, SHUT_RDWR);
	(void)quorum_finalize(quorum->handle);
	quorum->fd = -1;
}

bool cpg_quorum_flag(const struct cpg_quorum *quorum, const struct cpg_ring_id *ring, bool former)
{
	/* Not yet, or of one that has passed: to take this for a loss would cost all locks at every join. */
	if (ring->seq == 0 || quorum->ring.nodeid != ring->nodeid || quorum->ring.seq != ring->seq)
		return former;
	return quorum->quorate;
}
