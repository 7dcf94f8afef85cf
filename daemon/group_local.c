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
	bool job;			/* on_turn() is waiting in the loop */
	uint32_t head, count;		/* of the ring of messages under way */
	struct message message[UNDER_WAY_MAX];
};

static struct group_local *from_group(struct group *group)
{
	return (struct group_local *)group;
}

static void on_turn(void *data);

static int ask_for_turn(struct group_local *g)
{
	int r;

	if (g->job)
		return 0;
	r = qb_loop_job_add(g->loop, QB_LOOP_HIGH, g, on_turn);
	if (r < 0)
		return r;
	g->job = true;
	return 0;
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

static void on_turn(void *data)
{
	struct group_local *g = data;
	uint32_t count = g->count;

	g->job = false;
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
	if (g->count > 0 && !g->left && ask_for_turn(g) < 0) {
		g->left = true;
		g->handlers.on_lost(g->handlers.context, -ENOMEM);
	}
}

static int local_send(struct group *group, const void *buf, size_t size)
{
	struct group_local *g = from_group(group);
	struct message *m;

	assert(size > 0 && size <= GROUP_MESSAGE_MAX);
	if (g->left)
		return -ENOTCONN;
	if (!g->seen_view || g->count == UNDER_WAY_MAX || ask_for_turn(g) < 0)
		return -EAGAIN;
	m = &g->message[(g->head + g->count) % UNDER_WAY_MAX];
	memcpy(m->buf, buf, size);
	m->size = size;
	g->count++;
	return 0;
}

static void local_leave(struct group *group)
{
	from_group(group)->left = true;
}

static void local_close(struct group *group)
{
	struct group_local *g = from_group(group);

	if (g->job)
		(void)qb_loop_job_del(g->loop, QB_LOOP_HIGH, g, on_turn);
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
	if (ask_for_turn(g) < 0) {
		free(g);
		*ret_why = "out of memory";
		return -ENOMEM;
	}
	*ret_group = &g->group;
	return 0;
}
