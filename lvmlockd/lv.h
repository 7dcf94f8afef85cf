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

/* 0, -ENOMEM. The group stays the caller's. */
int lv_open(qb_loop_t *loop, struct lvm_group *group, struct lv **ret_lv);
/* No sink is called any more. NULL is allowed. */
void lv_close(struct lv *lv);
/* The group was lost, and this is the new one (NULL: none yet): what ran has failed, and says so. */
void lv_regroup(struct lv *lv, struct lvm_group *group);

/*
 * The request "belay_lv" of the text protocol:
 *
 *	request = "belay_lv"
 *	verb = "activate" | "deactivate" | "refresh" | "status"
 *	vg = "NAME"			status: may be absent, all VGs
 *	lv = "NAME"			absent: all of the VG
 *	nodes = "1,n2"			ids or names; "*": all in the group; absent: this one
 *	mode = "ex" | "sh"		activate
 *	timeout_ms = N			activate: how long to wait for LV locks; absent: not at all
 *	keep_partial = 1		do not take back what was done
 *
 * It is answered by messages with these fields behind response = "OK"; the texts are for people:
 *
 *	kind = "nodes"		count, node.N ids, name.N: who is asked; first
 *	kind = "progress"	node, name, done, total
 *	kind = "lv"		node, name, lv, uuid, outcome, changed, lock, since, dm, open,
 *				size, lvm_size, targets, reason
 *	kind = "node"		node, name, op_result, text: that node is done
 *	kind = "undone"		node, name, op_result, text: what it did was taken back, or could not be
 *	kind = "end"		op_result, verified = 0 | 1, text
 *
 * Returns 0, and answers follow from the loop until one is the last; or a negative
 * errno, with nothing sent: -EINVAL, with *ret_why a static text; -ENOMEM; -ENOTCONN.
 */
int lv_request(struct lv *lv, const struct message *request, const struct lv_sink *sink,
	       struct lv_run **ret_run, const char **ret_why);
/* Who gave the command is gone: it is withdrawn, and what it did is taken back unless keep_partial. */
void lv_abandon(struct lv_run *run);

/*
 * refresh_lv: lvm has changed the table of "VG/LV", which it has locked, here;
 * reload it on all other nodes that have it active. done() follows from the
 * loop, with 0 or a negative errno and what to say of it. 0, -EINVAL, -ENOMEM, -ENOTCONN, -ENOBUFS.
 */
int lv_refresh_others(struct lv *lv, const char *path,
		      void (*done)(void *context, int result, const char *text), void *context);

#endif
