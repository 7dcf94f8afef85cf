/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The group over corosync: CPG carries messages and membership, libquorum the
 * flag, cmap the configuration.
 *
 * No thread of its own: sending into a corosync that has stopped blocks only
 * when libqb's notification socket or its 1 MB ring is full. So this port
 * lets less than that be under way, sent and not yet delivered back
 * (doc/decisions/0001-cpg-from-the-loop.md has the measurements). All other
 * calls that wait for an answer are made while opening; hanging up asks nobody.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "daemon/cpg_parts.h"

/* Of the about 278 messages and 1 MB at which libqb blocks or refuses. */
#define UNDER_WAY_MAX 32u
#define UNDER_WAY_BYTES_MAX (512u * 1024)
/* The kernel accounts 768 bytes for each one-byte notification; be generous. */
#define NOTIFICATION_COST 4096u
/* Callbacks of one loop turn, so that a flood of messages does not starve clients. */
#define DISPATCH_MAX 256u

struct group_cpg {
	struct group group;		/* first: what the callers hold */
	qb_loop_t *loop;
	struct group_handlers handlers;
	cpg_handle_t handle;
	struct cpg_quorum quorum;
	struct cpg_ring_id ring;	/* of the last membership CPG told */
	int fd;
	uint32_t pid;			/* ours, as corosync knows it */
	bool polled;			/* in the loop: neither left nor lost */
	bool seen_view;
	bool told_quorate;
	int failed;			/* what fail_later() will tell */
	uint32_t window;
	uint32_t under_way;		/* own messages not yet delivered here */
	size_t bytes_under_way;
};

static struct group_cpg *from_group(struct group *group)
{
	return (struct group_cpg *)group;
}

/* Out of the loop, and gone for corosync, which sees the sockets close. Never waits. */
static void hang_up(struct group_cpg *g)
{
	if (!g->polled)
		return;
	g->polled = false;
	(void)qb_loop_poll_del(g->loop, g->fd);
	(void)qb_loop_poll_del(g->loop, g->quorum.fd);
	(void)shutdown(g->fd, SHUT_RDWR);
}

static void lost(struct group_cpg *g, int error)
{
	if (!g->polled)
		return;
	hang_up(g);
	g->handlers.on_lost(g->handlers.context, error);
}

static void on_fail_later(void *data)
{
	struct group_cpg *g = data;

	lost(g, g->failed);
	group_told(&g->handlers);
}

/* From where no handler may be called. */
static void fail_later(struct group_cpg *g, int error)
{
	if (g->failed != 0)
		return;
	g->failed = error;
	/* Without memory for the job, the descriptor will tell. */
	(void)qb_loop_job_add(g->loop, QB_LOOP_HIGH, g, on_fail_later);
}

static void tell_quorum(struct group_cpg *g)
{
	bool quorate = cpg_quorum_flag(&g->quorum, &g->ring, g->told_quorate);

	if (!g->polled || quorate == g->told_quorate)
		return;
	g->told_quorate = quorate;
	g->handlers.on_quorum(g->handlers.context, quorate);
}

/* ---- corosync's callbacks, from within cpg_dispatch() ---- */

static struct group_cpg *from_handle(cpg_handle_t handle)
{
	void *context;

	/* It was set when the handle was made. */
	return cpg_context_get(handle, &context) == CS_OK ? context : NULL;
}

static void on_deliver(cpg_handle_t handle, const struct cpg_name *name, uint32_t node,
		       uint32_t pid, void *buf, size_t size)
{
	struct group_cpg *g = from_handle(handle);

	(void)name;
	if (!g || !g->polled)
		return;
	if (node == g->group.info.self && pid == g->pid && g->under_way > 0) {
		g->under_way--;
		g->bytes_under_way -= size < g->bytes_under_way ? size : g->bytes_under_way;
	}
	g->handlers.on_message(g->handlers.context, node, buf, size);
}

static void on_confchg(cpg_handle_t handle, const struct cpg_name *name,
		       const struct cpg_address *member, size_t member_count,
		       const struct cpg_address *left, size_t left_count,
		       const struct cpg_address *joined, size_t joined_count)
{
	struct group_cpg *g = from_handle(handle);
	struct group_view view;

	(void)name;
	if (!g || !g->polled)
		return;
	/* Whoever comes second gives way, before it has sent anything. */
	if (!g->seen_view &&
	    cpg_view_has_other(member, member_count, g->group.info.self, g->pid)) {
		lost(g, -EEXIST);
		return;
	}
	g->seen_view = true;
	cpg_view_make(member, member_count, left, left_count, joined, joined_count, &view);
	g->handlers.on_view(g->handlers.context, &view);
}

/* Follows on_confchg(), and comes alone when a node without belayd comes or goes. */
static void on_totem(cpg_handle_t handle, struct cpg_ring_id ring, uint32_t member_count,
		     const uint32_t *member)
{
	struct group_cpg *g = from_handle(handle);

	(void)member_count;
	(void)member;
	if (!g || !g->polled)
		return;
	g->ring = ring;
	tell_quorum(g);
}

/* ---- the loop's callbacks ---- */

static int32_t on_cpg_ready(int32_t fd, int32_t revents, void *data)
{
	struct group_cpg *g = data;
	struct cpg_ring_id ring = g->ring;
	cs_error_t e = CS_OK;
	int r;

	(void)fd;
	for (unsigned i = 0; i < DISPATCH_MAX && e == CS_OK && g->polled; i++)
		e = cpg_dispatch(g->handle, CS_DISPATCH_ONE_NONBLOCKING);
	r = cs_errno(e);
	if (r == -EAGAIN)
		r = revents & (POLLHUP | POLLERR | POLLNVAL) ? -ENOTCONN : 0;
	/* What quorum says of the new membership may be there already. */
	if (r == 0 && g->polled && ring.seq != g->ring.seq)
		r = cpg_quorum_dispatch(&g->quorum);
	if (r < 0)
		lost(g, r);
	tell_quorum(g);
	group_told(&g->handlers);
	return 0;
}

static int32_t on_quorum_ready(int32_t fd, int32_t revents, void *data)
{
	struct group_cpg *g = data;
	int r;

	(void)fd;
	r = cpg_quorum_dispatch(&g->quorum);
	if (r == 0 && revents & (POLLHUP | POLLERR | POLLNVAL))
		r = -ENOTCONN;
	if (r < 0)
		lost(g, r);
	tell_quorum(g);
	group_told(&g->handlers);
	return 0;
}

/* ---- the port ---- */

static int cpg_send(struct group *group, const void *buf, size_t size)
{
	struct group_cpg *g = from_group(group);
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = size };
	int r;

	assert(size > 0 && size <= GROUP_MESSAGE_MAX);
	if (!g->polled)
		return -ENOTCONN;
	if (!g->seen_view || g->under_way >= g->window ||
	    g->bytes_under_way + size > UNDER_WAY_BYTES_MAX)
		return -EAGAIN;

	r = cs_errno(cpg_mcast_joined(g->handle, CPG_TYPE_AGREED, &iov, 1));
	if (r == 0) {
		g->under_way++;
		g->bytes_under_way += size;
	} else if (r != -EAGAIN) {
		fail_later(g, r);
	}
	return r;
}

static void cpg_hang_up(struct group *group)
{
	hang_up(from_group(group));
}

static void cpg_close(struct group *group)
{
	struct group_cpg *g = from_group(group);

	hang_up(g);
	if (g->failed != 0)
		(void)qb_loop_job_del(g->loop, QB_LOOP_HIGH, g, on_fail_later);
	cpg_quorum_close(&g->quorum);
	/* Waits for no answer either: the socket is shut down. */
	(void)cpg_finalize(g->handle);
	free(g);
}

static const struct group_ops ops = {
	.name = "corosync",
	.send = cpg_send,
	.leave = cpg_hang_up,
	.close = cpg_close,
};

/* ---- opening ---- */

static int connect_cpg(struct group_cpg *g, const char **ret_why)
{
	cpg_model_v1_data_t model = {
		.model = CPG_MODEL_V1,
		.cpg_deliver_fn = on_deliver,
		.cpg_confchg_fn = on_confchg,
		.cpg_totem_confchg_fn = on_totem,
		.flags = CPG_MODEL_V1_DELIVER_INITIAL_TOTEM_CONF,
	};
	unsigned tries = CS_TRIES_MAX;
	cs_error_t e;

	do
		e = cpg_model_initialize(&g->handle, CPG_MODEL_V1, (cpg_model_data_t *)&model, g);
	while (cs_again(e, &tries));
	switch (cs_errno(e)) {
	case 0:
		break;
	case -EACCES:
		*ret_why = "corosync refuses this user: run belayd as root";
		break;
	default:
		*ret_why = "corosync does not run on this node: systemctl start corosync "
			   "(or belayd --standalone, for one node without a cluster)";
	}
	return cs_errno(e);
}

/* The descriptor, our own id, and how much may be under way. */
static int measure(struct group_cpg *g, const char **ret_why)
{
	socklen_t length = sizeof(int);
	unsigned tries = CS_TRIES_MAX;
	uint32_t atomic_max;
	int room;
	cs_error_t e;
	int r;

	*ret_why = "corosync's CPG service does not answer as it should; see corosync's log";
	do
		e = cpg_local_get(g->handle, &g->group.info.self);
	while (cs_again(e, &tries));
	r = cs_errno(e);
	if (r == 0)
		r = cs_errno(cpg_fd_get(g->handle, &g->fd));
	if (r == 0)
		r = cs_errno(cpg_max_atomic_msgsize_get(g->handle, &atomic_max));
	if (r < 0)
		return r;
	if (atomic_max < GROUP_MESSAGE_MAX)
		return -EMSGSIZE;

	if (getsockopt(g->fd, SOL_SOCKET, SO_SNDBUF, &room, &length) < 0)
		return -errno;
	g->window = (uint32_t)room / NOTIFICATION_COST;
	if (g->window > UNDER_WAY_MAX)
		g->window = UNDER_WAY_MAX;
	if (g->window == 0) {
		*ret_why = "sockets may buffer too little: raise sysctl net.core.wmem_default to its usual 212992";
		return -ENOBUFS;
	}
	return 0;
}

static bool knows_self(const struct group_info *info)
{
	for (uint32_t i = 0; i < info->node_count; i++)
		if (info->node[i] == info->self)
			return true;
	return false;
}

/*
 * Wait until no other process of this node is in the group: corosync needs
 * some 50 ms to notice that a killed belayd is gone.
 */
static int await_alone(struct group_cpg *g, struct cpg_name *name, const char **ret_why)
{
	const struct timespec nap = { .tv_nsec = 20 * 1000 * 1000 };
	struct cpg_address member[CPG_MEMBERS_MAX];

	for (unsigned i = 0; i < 150; i++) {
		unsigned tries = CS_TRIES_MAX;
		int count = 0;
		cs_error_t e;

		do
			e = cpg_membership_get(g->handle, name, member, &count);
		while (cs_again(e, &tries));
		if (e != CS_OK) {
			*ret_why = "corosync does not tell who is in the group; see corosync's log";
			return cs_errno(e);
		}
		if (!cpg_view_has_other(member, (size_t)count, g->group.info.self, g->pid))
			return 0;
		(void)nanosleep(&nap, NULL);
	}
	*ret_why = "another belayd of this node is in the group: only one can run on a node";
	return -EEXIST;
}

static int join(struct group_cpg *g, const char *name, const char **ret_why)
{
	struct cpg_name cpg_name = { .length = (uint32_t)strlen(name) };
	unsigned tries = CS_TRIES_MAX;
	cs_error_t e;
	int r;

	memcpy(cpg_name.value, name, cpg_name.length);
	r = await_alone(g, &cpg_name, ret_why);
	if (r < 0)
		return r;
	do
		e = cpg_join(g->handle, &cpg_name);
	while (cs_again(e, &tries));
	if (e != CS_OK)
		*ret_why = "corosync does not let belayd join its group: is corosync still forming its membership?";
	return cs_errno(e);
}

static int add_to_loop(struct group_cpg *g, const char **ret_why)
{
	int r;

	*ret_why = "the event loop cannot watch corosync's descriptors";
	r = qb_loop_poll_add(g->loop, QB_LOOP_HIGH, g->fd, POLLIN, g, on_cpg_ready);
	if (r < 0)
		return r;
	r = qb_loop_poll_add(g->loop, QB_LOOP_HIGH, g->quorum.fd, POLLIN, g, on_quorum_ready);
	if (r < 0) {
		(void)qb_loop_poll_del(g->loop, g->fd);
		return r;
	}
	g->polled = true;
	return 0;
}

/* All of opening behind the connection to CPG. */
static int set_up(struct group_cpg *g, const char *name, const char **ret_why)
{
	int r;

	r = cpg_info_read(&g->group.info, ret_why);
	if (r < 0)
		return r;
	r = measure(g, ret_why);
	if (r < 0)
		return r;
	if (!knows_self(&g->group.info)) {
		*ret_why = "this node is not in corosync.conf's nodelist: add it, on all nodes";
		return -ENOENT;
	}
	r = cpg_quorum_open(&g->quorum, ret_why);
	if (r < 0)
		return r;
	r = join(g, name, ret_why);
	if (r == 0)
		r = add_to_loop(g, ret_why);
	if (r < 0)
		cpg_quorum_close(&g->quorum);
	return r;
}

int group_cpg_open(qb_loop_t *loop, const char *name, const struct group_handlers *handlers,
		   struct group **ret_group, const char **ret_why)
{
	struct group_cpg *g;
	int r;

	assert(name[0] != '\0' && strlen(name) <= GROUP_NAME_MAX);
	g = calloc(1, sizeof(*g));
	if (!g) {
		*ret_why = "out of memory";
		return -ENOMEM;
	}
	g->group.ops = &ops;
	g->loop = loop;
	g->handlers = *handlers;
	g->pid = (uint32_t)getpid();

	r = connect_cpg(g, ret_why);
	if (r < 0)
		goto fail_free;
	r = set_up(g, name, ret_why);
	if (r < 0)
		goto fail_finalize;
	*ret_group = &g->group;
	return 0;

fail_finalize:
	(void)cpg_finalize(g->handle);
fail_free:
	free(g);
	return r;
}
