/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Locks of LVs, for those parts of belay-lvmlockd that take them beside lvm; request_lv.c has them. */
#ifndef BELAY_LVMLOCKD_VOLUME_H
#define BELAY_LVMLOCKD_VOLUME_H

#include "lvmlockd/lvmlockd.h"

/* is_new: there was no persistent lock on it before. result as lock_done()'s, in lvm's errnos. */
typedef void (*volume_done)(void *context, int result, bool is_new);

/*
 * The persistent lock of an LV, in a VG that is started. Waits in the queue for wait_ms at most; 0: not at
 * all. 0, and done follows from the loop, with 0 also if the node has that lock already; or
 * a negative errno: -210 the VG is not started, -211 not now. *ret_ticket names it until then.
 */
int volume_lock(struct lvmlockd *lvmlockd, const char *vg, const char *lv, const char *uuid,
		enum lock_mode mode, uint32_t wait_ms, volume_done done, void *context, uint64_t *ret_ticket);
/* done does not follow any more, and what comes of it is undone. */
void volume_withdraw(struct lvmlockd *lvmlockd, uint64_t ticket);
/* Release the persistent lock, if there is one. */
void volume_unlock(struct lvmlockd *lvmlockd, const char *uuid);

/* For adoption: a volume of the state file gets what this file keeps of it; then its lock is
 * taken as @volume->mode says. prepare: 0 or -ENOMEM. */
int volume_prepare(struct lvmlockd *lvmlockd, struct volume *volume);
/* Locks that were under way for others than requests are answered: requests go on. */
void volume_go_on(struct lvmlockd *lvmlockd);
/* Everything ends: nobody is answered any more. */
void volume_done_all(struct lvmlockd *lvmlockd);

#endif
