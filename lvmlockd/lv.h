/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One command for all nodes: belay lv activate, deactivate, refresh, status.
 * This node asks the agents of the nodes, tells whoever gave the command what
 * each of them answers as it comes, and takes back what was done if it
 * could not be done everywhere.
 */
#ifndef BELAY_LVMLOCKD_LV_H
#define BELAY_LVMLOCKD_LV_H

#include "lvmlockd/group.h"

struct lv;
struct lv_refresh;
struct lv_run;
struct message;

/* Who gave the command. */
struct lv_sink {
	/*
	 * One message in lvmlockd's text protocol, terminated, @size bytes. last:
	 * it was the last one, and the run is over.
	 */
	void (*send)(void *context, const char *text, size_t size, bool last);
	void *context;
};

/* command_timeout_ms: as the agents have it. There is no group yet: lv_regroup(). 0, -ENOMEM. */
int lv_open(uint32_t command_timeout_ms, struct lv **ret_lv);
/* No sink is called any more. The group, if it is open, must be closed first. NULL is allowed. */
void lv_close(struct lv *lv);
/* The group was lost, which has ended what was asked; this is the new one, or NULL: none yet. */
void lv_regroup(struct lv *lv, struct lvm_group *group);

/*
 * The request "belay_lv" of the text protocol:
 *
 *	request = "belay_lv"
 *	verb = "activate" | "deactivate" | "refresh" | "status"
 *	vg = "NAME"			status: may be absent, all that are shared
 *	lv = "NAME"			absent: all of the VG
 *	nodes = "1,n2"			ids or names; "*": all in the group; absent: this one
 *	mode = "ex" | "sh"		activate; absent: exclusively on one node, shared on several
 *	timeout_ms = N			activate: how long to wait for LV locks; absent: not at all, or 3 s
 *					if several nodes are to share it
 *	keep_partial = 1		do not take back what was done
 *
 * It is answered by messages with these fields behind response = "OK"; the texts are for people:
 *
 *	kind = "asked"		node, name: one of those that are asked
 *	kind = "absent"		node, name: one of the cluster that is not in the group, of "*"
 *	kind = "progress"	node, name, done, total
 *	kind = "lv"		node, name, vg, lv, uuid, outcome, changed, lock, since, dm, open,
 *				size, lvm_size, targets, reason
 *	kind = "node"		node, name, op_result, text: that node is done
 *	kind = "undone"		node, name, op_result, text: what it did was taken back, or could not be
 *	kind = "end"		op_result, verified = 0 | 1, done, failed, unverified (LVs), text
 *
 * Returns 0, and answers follow from the loop until one is the last; or a negative
 * errno, with nothing sent: -EINVAL, with *ret_why a static text; -ENOMEM; -ENOTCONN.
 */
int lv_request(struct lv *lv, const struct message *request, const struct lv_sink *sink,
	       struct lv_run **ret_run, const char **ret_why);
/*
 * Who gave the command is gone: it is withdrawn. Nodes that have not ended then take back what they did, unless
 * keep_partial.
 */
void lv_abandon(struct lv_run *run);

/*
 * refresh_lv: lvm has changed the table of "VG/LV" or "/dev/VG/LV", and has the VG
 * locked; reload it on all other nodes that have it active. 0: done() follows from the loop, with
 * 0 or a negative errno and what to say of it. 1: there is no other node, nothing follows.
 * -EINVAL, -ENOMEM, -ENOTCONN, -ENOBUFS.
 */
typedef void (*lv_refreshed)(void *context, int result, const char *text);
int lv_refresh_others(struct lv *lv, const char *path, lv_refreshed done, void *context,
		      struct lv_refresh **ret_refresh);
/* done() is not called any more. */
void lv_refresh_abandon(struct lv_refresh *refresh);

#endif
