/* SPDX-License-Identifier: GPL-2.0-or-later */
/* [lvm] on_quorum_loss in this process: joins policy.c to corosync's quorum, the state, the worker and a file. */
#ifndef BELAY_LVMLOCKD_GUARD_H
#define BELAY_LVMLOCKD_GUARD_H

#include <stdbool.h>

struct guard;
struct lvmlockd;

/*
 * The state is loaded, the worker and dm are open. Fills in lvmlockd->policy. What a former process did to LVs
 * is in a file beside that of the state. 0, or a negative errno, logged.
 */
int guard_open(struct lvmlockd *lvmlockd, struct guard **ret_guard);
/* Leaves the LVs as they are. NULL is allowed. */
void guard_close(struct guard *guard);

/* belayd is reached, in a cluster: from here on, if not before, corosync is asked about quorum. */
void guard_watch(struct guard *guard);
/* policy_on_locks(). */
void guard_locks(struct guard *guard, bool valid);

#endif
