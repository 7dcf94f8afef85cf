/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The group of one node that needs no corosync: what is sent is delivered
 * from the loop, in order, and nobody else ever comes or goes.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/group.h"

/* As many as corosync lets be under way, so that back-pressure works alike. */
#define UNDER_WAY_MAX 32u

struct message {
	size_t size;
	uint8_t buf[GROUP_MESSAGE_MAX];
};

struct group_local {
	struct group group;		/* first: what the callers hold */
	qb_loop_t *loop;
	struct group_handlers handlers;
	bool seen_view;
	bool left;
	int turn_fd;			/* eventfd: readable when on_turn() has something to do */
	uint32_t head, count;		/* of the ring of messages under way */
	struct message message[UNDER_WAY_MAX];
};

static struct group_local *from_group(struct group *group)
{
	return (struct group_local *)group;
}

/*
 * A descriptor, for libqb's jobs may wait up to 50 ms. Writing it cannot fail:
 * it is written no more often than there are messages.
 */
static void ask_for_turn(struct group_local *g)
{
	const uint64_t one = 1;

	(void)!write(g->turn_fd, &one, sizeof(one));
}

static void tell_first(struct group_local *g)
{
	const struct group_view view = {
		.member_count = 1, .member = { g->group.info.self },
		.joined_count = 1, .joined = { g->group.info.self },
	};

	g->seen_view = true;
	g->handlers.on_view(g->handlers.context, &view);
	if (!g->left)
		g->handlers.on_quorum(g->handlers.context, true);
}

static int32_t on_turn(int32_t fd, int32_t revents, void *data)
{
	struct group_local *g = data;
	uint32_t count = g->count;
	uint64_t times;

	(void)revents;
	if (read(fd, &times, sizeof(times)) < 0)
		return 0;
	if (!g->seen_view)
		tell_first(g);
	/* Only those sent before this turn: what their handlers send comes in the next. */
	for (; count > 0 && !g->left; count--) {
		const struct message *m = &g->message[g->head];

		g->handlers.on_message(g->handlers.context, g->group.info.self, m->buf, m->size);
		/* The slot was the message's until here. */
		g->head = (g->head + 1) % UNDER_WAY_MAX;
		g->count--;
	}
	group_told(&g->handlers);
	/* What was sent meanwhile has asked for its own turn. */
	return 0;
}

static int local_send(struct group *group, const void *buf, size_t size)
{
	struct group_local *g = from_group(group);
	struct message *m;

	assert(size > 0 && size <= GROUP_MESSAGE_MAX);
	if (g->left)
		return -ENOTCONN;
	if (!g->seen_view || g->count == UNDER_WAY_MAX)
		return -EAGAIN;
	m = &g->message[(g->head + g->count) % UNDER_WAY_MAX];
	memcpy(m->buf, buf, size);
	m->size = size;
	g->count++;
	ask_for_turn(g);
	return 0;
}

static void local_leave(struct group *group)
{
	from_group(group)->left = true;
}

static void local_close(struct group *group)
{
	struct group_local *g = from_group(group);

	(void)qb_loop_poll_del(g->loop, g->turn_fd);
	close(g->turn_fd);
	free(g);
}

static const struct group_ops ops = {
	.name = "standalone",
	.send = local_send,
	.leave = local_leave,
	.close = local_close,
};

int group_local_open(qb_loop_t *loop, uint32_t self, const struct group_handlers *handlers,
		     struct group **ret_group, const char **ret_why)
{
	struct group_local *g;
	int r;

	assert(self != 0);
	/* The ring is a megabyte; what is never used of it is never touched. */
	g = calloc(1, sizeof(*g));
	if (!g) {
		*ret_why = "out of memory";
		return -ENOMEM;
	}
	g->group.ops = &ops;
	g->group.info.self = self;
	g->group.info.node_count = 1;
	g->group.info.node[0] = self;
	g->group.info.expected_votes = 1;
	g->group.info.stability = BELAY_STABLE_MAJORITY;
	/* Nothing leaves the machine, so there is nothing to encrypt. */
	g->group.info.encrypted = true;
	if (gethostname(g->group.info.node_name[0], sizeof(g->group.info.node_name[0]) - 1) < 0)
		g->group.info.node_name[0][0] = '\0';
	(void)snprintf(g->group.info.cluster_name, sizeof(g->group.info.cluster_name), "standalone");
	g->loop = loop;
	g->handlers = *handlers;
	g->turn_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	r = g->turn_fd < 0 ? -errno : qb_loop_poll_add(loop, QB_LOOP_HIGH, g->turn_fd, POLLIN, g, on_turn);
	if (r < 0) {
		if (g->turn_fd >= 0)
			close(g->turn_fd);
		free(g);
		*ret_why = "no descriptor for the loop";
		return r;
	}
	ask_for_turn(g);
	*ret_group = &g->group;
	return 0;
}
