/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Port: the group of belayds. It multicasts bytes in one order to all members
 * and tells of membership in that same order. Implementations: group_cpg.c
 * (corosync), group_local.c (this node alone, no corosync).
 *
 * All functions run on the loop's thread, and none of them blocks: a group
 * that stops answering only stops delivering.
 */
#ifndef BELAY_DAEMON_GROUP_H
#define BELAY_DAEMON_GROUP_H

#include <qb/qbloop.h>
#include <stddef.h>

#include "core/core.h"

/* Longer messages stall corosync's udpu outright (about 48 KB, measured). */
#define GROUP_MESSAGE_MAX (32u * 1024)
#define GROUP_NAME_MAX 63u

struct group;

struct group_view {
	uint32_t member_count, joined_count, left_count;
	uint32_t member[BELAY_NODES_MAX], joined[BELAY_NODES_MAX], left[BELAY_NODES_MAX];
};

/* What the group tells. Called from the loop, never from inside send or open. */
struct group_handlers {
	void (*on_view)(void *context, const struct group_view *view);
	/* buf is valid during the call only. */
	void (*on_message)(void *context, uint32_t node, const void *buf, size_t size);
	/*
	 * corosync's quorum flag, when it changes; false until told. After each change
	 * of membership the former flag stands until corosync has judged the new
	 * one, some ms later; what it says of any other membership is not told. A
	 * loss that was over before this node could see it is in the views only.
	 */
	void (*on_quorum)(void *context, bool quorate);
	/*
	 * The group is gone for good; no other handler is called any more. error:
	 * -ENOTCONN corosync stopped; -EEXIST another belayd of this node is in the
	 * group; another negative errno: corosync failed in a way that is no state of it.
	 */
	void (*on_lost)(void *context, int error);
	/* What had come is told; follows any of the above, once for many. May be NULL. */
	void (*on_told)(void *context);
	void *context;
};

static inline void group_told(const struct group_handlers *handlers)
{
	if (handlers->on_told)
		handlers->on_told(handlers->context);
}

/* What the cluster's own configuration says. */
struct group_info {
	char cluster_name[64];
	uint32_t self;
	uint32_t node_count;
	uint32_t node[BELAY_NODES_MAX];
	char node_name[BELAY_NODES_MAX][64];	/* "" if unknown */
	/* Where a node is reached, beside the group: in numbers or by name; "" if unknown. */
	char node_address[BELAY_NODES_MAX][256];
	uint32_t expected_votes;
	enum belay_stability stability;
	bool encrypted;				/* corosync authenticates and encrypts ... */
	char key_file[256];			/* ... by the key in this file; "": it is not said */
};

struct group_ops {
	const char *name;
	/*
	 * Multicast one message of 1..GROUP_MESSAGE_MAX bytes (asserted). 0;
	 * -EAGAIN: not now (before the first view, or too much of this node is
	 * under way), try again after the next delivery or in a millisecond;
	 * other errors: on_lost follows. Never calls a handler.
	 */
	int (*send)(struct group *group, const void *buf, size_t size);
	/*
	 * Leave at once: what was sent and is not delivered here yet may be lost.
	 * No handler is called any more. The others learn it as from a crash.
	 */
	void (*leave)(struct group *group);
	/* leave(), and free the group. Not from a handler. */
	void (*close)(struct group *group);
};

struct group {
	const struct group_ops *ops;
	struct group_info info;
};

/*
 * Open the group and join it: fills info at once; the first view follows from
 * the loop. May block while it opens, before the daemon serves. handlers is copied.
 * 0, or a negative errno with *ret_why a static text that names cause and remedy.
 *
 * name: of the CPG group, 1..GROUP_NAME_MAX bytes. self: the id of the one node, not 0.
 */
int group_cpg_open(qb_loop_t *loop, const char *name, const struct group_handlers *handlers,
		   struct group **ret_group, const char **ret_why);
int group_local_open(qb_loop_t *loop, uint32_t self, const struct group_handlers *handlers,
		     struct group **ret_group, const char **ret_why);

#endif
