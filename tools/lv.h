/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * belay lv: what belay-lvmlockd is asked, what it answers, and how that reads. All
 * that is answered becomes one JSON object:
 *
 *	verb, vg, lv		what was asked
 *	nodes			array, of who was asked: node, name, op_result, text, lvs (counted), undone
 *	absent			array of node, name: nodes of the cluster without belay-lvmlockd
 *	lvs			array of lv ("vg/lv"), uuid, nodes: array of node, name, outcome, changed,
 *				lock, since, dm, open, size, lvm_size, targets, reason
 *	op_result, verified, text	of all
 */
#ifndef BELAY_TOOLS_LV_H
#define BELAY_TOOLS_LV_H

#include <stdio.h>

#include "tools/tool.h"

struct lv_options {
	bool help, json, all, shared, exclusive, keep_partial;
	const char *verb;
	const char *on;			/* NULL: not said */
	unsigned int timeout_ms;
	char vg[128], lv[128];
};

/* lv_options.c: 0 or the exit status. */
int lv_parse(const struct tool *tool, int argc, char **argv, struct lv_options *ret_options);

/* How far the nodes have come; to a terminal on one line. */
struct lv_progress {
	FILE *to;			/* NULL: nobody wants to know */
	bool terminal, shown;
	uint64_t told_ms;
	struct json_object *nodes;	/* name to "done of total" */
};

/* lv_ask.c: ask, and collect. 0, or the exit status; *ret_answer is the caller's. */
int lv_ask(const struct tool *tool, const struct lv_options *options, struct lv_progress *progress,
	   struct json_object **ret_answer);

/* lv_show.c: of activate, deactivate and refresh, for people. */
void lv_show(FILE *to, struct json_object *answer);

/*
 * lv_status.c: a table, and what is wrong. lv_judge() adds to each of lvs "wrong", an array
 * of sentences; and returns how many there are.
 */
unsigned lv_judge(struct json_object *answer);
void lv_show_status(FILE *to, struct json_object *answer);

/* lv_holders.c: what belayd knows of the locks: adds to each of lvs "elsewhere" and "waiters", arrays of
 * node, mode. Without belayd nothing is added. */
void lv_add_holders(const struct tool *tool, struct json_object *answer);

#endif
