/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The belay-lvmlockds of the cluster as one group: who is in it, what each
 * says of itself, notices to all, and requests to some with answers of each.
 * On corosync's CPG group "belay-lvmlockd", or of this node alone.
 *
 * All on the loop's thread; nothing blocks but lvm_group_open() over corosync.
 * What cannot be sent now is queued, and leaves a few messages at a time.
 */
#ifndef BELAY_LVMLOCKD_GROUP_H
#define BELAY_LVMLOCKD_GROUP_H

#include <qb/qbloop.h>

#include "daemon/group.h"
#include "lvmlockd/ask.h"

#define LVM_GROUP_NAME "belay-lvmlockd"

struct lvm_group;

/* Called from the loop, never from within a function of this header. NULL ones are left out. */
struct lvm_group_handlers {
	/* A member came, went, or says something new of itself. */
	void (*on_members)(void *context);
	void (*on_notice)(void *context, uint32_t node, enum ask_notice what, const char *vg,
			  const char *vg_uuid);
	/* @node asks this one: answer by lvm_group_answer(), the last time with ASK_END. */
	void (*on_request)(void *context, uint32_t node, uint64_t id, const struct ask_request *request);
	/* It does not want that any more; it still awaits the last answer. */
	void (*on_cancel)(void *context, uint32_t node, uint64_t id);
	/* @node has left the group, in order or not. */
	void (*on_left)(void *context, uint32_t node);
	/*
	 * The group is gone for good: close it, but not from here, and open a new one.
	 * What was asked has ended. error as in daemon/group.h.
	 */
	void (*on_lost)(void *context, int error);
	void *context;
};

/*
 * Open and join. standalone: of this node, whose id is @self; else over corosync,
 * which tells the id. 0, or a negative errno with *ret_why, a static text for people.
 */
int lvm_group_open(qb_loop_t *loop, bool standalone, uint32_t self,
		   const struct lvm_group_handlers *handlers,
		   struct lvm_group **ret_group, const char **ret_why);
/* Leaves it. No handler is called any more; what was asked gets no answer. Not from a handler. NULL is allowed. */
void lvm_group_close(struct lvm_group *group);

/* Ids, names and the cluster's name, as corosync.conf has them. */
const struct group_info *lvm_group_info(const struct lvm_group *group);
/* By id or name; 0: there is none. */
uint32_t lvm_group_find(const struct lvm_group *group, const char *node);
/* "n2", or "node 2" if it has no name. Valid until the next call with the same buffer. */
const char *lvm_group_name(const struct lvm_group *group, uint32_t node, char *buf, size_t size);

struct lvm_member {
	uint32_t node;
	bool told;		/* it has said something of itself */
	struct ask_member said;
};
/* The members by node id, at most @max; returns how many there are. 0 before the first view. */
size_t lvm_group_members(const struct lvm_group *group, struct lvm_member *ret_member, size_t max);
bool lvm_group_has(const struct lvm_group *group, uint32_t node);
/* All members have said that they have adopted. False before the first view. */
bool lvm_group_all_adopted(const struct lvm_group *group);

/* Say this of this node, now and to who comes. */
void lvm_group_say(struct lvm_group *group, const struct ask_member *self);

/* To all members, this one too. vg_uuid may be "". 0, -ENOBUFS (too much is queued), -ENOTCONN. */
int lvm_group_notify(struct lvm_group *group, enum ask_notice what, const char *vg,
		     const char *vg_uuid);

/*
 * An answer of @node; the last one is of kind ASK_END. If it does not come from there:
 * result -ENOTCONN, the node is not in the group or left it; -ETIMEDOUT, for so long none of
 * those that were asked said anything; -ENOBUFS, it could not be asked.
 */
typedef void (*lvm_group_on_answer)(void *context, uint32_t node, const struct ask_answer *answer);

/*
 * Ask @count nodes (1 to BELAY_NODES_MAX, this one may be among them). *ret_id names it. The deadline
 * is for the next answer of any of them, be it progress: all of them may take long.
 * 0, -ENOBUFS (too much is asked or queued), -ENOTCONN. After each of the nodes has ended, the
 * request is over.
 */
int lvm_group_ask(struct lvm_group *group, const struct ask_request *request, uint32_t deadline_ms,
		  const uint32_t *node, size_t count, lvm_group_on_answer on_answer, void *context,
		  uint64_t *ret_id);
/* Tell those that have not ended that it is not wanted any more; their answers still come. */
void lvm_group_cancel(struct lvm_group *group, uint64_t id);

/* To @node for its request @id. 0, or with the answer lost: -ENOBUFS (never for ASK_END), -ENOTCONN, -ENOMEM. */
int lvm_group_answer(struct lvm_group *group, uint32_t node, uint64_t id, const struct ask_answer *answer);

#endif
