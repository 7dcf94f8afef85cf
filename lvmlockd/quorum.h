/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether this node's part of the cluster has quorum, as corosync says. Without an answer
 * of corosync there is none: it has ended, or cannot be reached.
 */
#ifndef BELAY_LVMLOCKD_QUORUM_H
#define BELAY_LVMLOCKD_QUORUM_H

#include <qb/qbloop.h>
#include <stdbool.h>

struct quorum;

/* Called from the loop, when it changes and once at first. @why: "corosync has ended", for the log. */
typedef void (*quorum_changed)(void *context, bool quorate, const char *why);

/* Connects from the loop, and tries again every second. 0 or -ENOMEM. */
int quorum_open(qb_loop_t *loop, quorum_changed changed, void *context, struct quorum **ret_quorum);
/* NULL is allowed. */
void quorum_close(struct quorum *quorum);

#endif
