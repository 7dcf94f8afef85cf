/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ties the parts that reach other nodes to belay-lvmlockd: opens the group, and
 * again when it was lost; joins agent and coordinator to it, to the locks of this
 * node, and to lvm's socket.
 */
#ifndef BELAY_LVMLOCKD_COMMAND_H
#define BELAY_LVMLOCKD_COMMAND_H

#include "lvmlockd/ask.h"
#include "lvmlockd/dm.h"
#include "lvmlockd/lvmlockd.h"

struct command;

/*
 * When belayd has been reached the first time, for the node's id is its; worker and dm are
 * open. Fills in lvmlockd->group (NULL whenever there is none), ->agent and ->lv. Over corosync the
 * group is tried again every second. 0, -ENOMEM.
 */
int command_open(struct lvmlockd *lvmlockd, const struct dm_port *dm, struct command **ret_command);
/* The loop must not run any more. NULL is allowed. */
void command_close(struct command *command);

/* What this node's belay-lvmlockd is now, for the others; again after each change. */
void command_say(struct command *command, const struct ask_member *self);

/* Requests: belay lv, and lvextend of an LV that is active on several nodes. */
void request_belay_lv(struct lvmlockd *, struct connection *, const struct message *);
void request_refresh_lv(struct lvmlockd *, struct connection *, const struct message *);

#endif
