/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Is an LV what it was meant to become? By device-mapper, its lock, and LVM's
 * metadata; never by what lvm says of itself. Pure.
 */
#ifndef BELAY_LVMLOCKD_VERIFY_H
#define BELAY_LVMLOCKD_VERIFY_H

#include "lvmlockd/ask.h"
#include "lvmlockd/dm.h"
#include "lvmlockd/lvs.h"

struct verify_case {
	enum ask_verb verb;			/* ACTIVATE, DEACTIVATE, REFRESH, STATUS, UNDO */
	enum ask_mode mode;			/* ACTIVATE */
	const struct lvs_lv *lv;
	bool was_active;			/* before; without device-mapper: was locked */
	enum ask_mode lock;			/* the node's lock now */
	bool lock_lost;				/* it had one, which another node may have now */
	uint64_t since_s;
	const struct dm_devices *devices;	/* NULL: device-mapper could not be asked */
	int dm_error;				/* ... and why */
	bool lvm_failed;			/* lvm did not end with success */
	const char *output;			/* what lvm wrote */
	const char *policy;			/* "frozen", "failed": by on_quorum_loss; else "" or NULL */
};

void verify_lv(const struct verify_case *c, struct ask_lv *ret_lv);

/* Is it active by device-mapper, or if that is not known by its lock? */
bool verify_is_active(const struct dm_devices *devices, const struct lvs_lv *lv, enum ask_mode lock);

/* "LVM-", the VG's and the LV's uuid without hyphens: device-mapper's for it. */
void verify_dm_uuid(const struct lvs_lv *lv, char ret_uuid[DM_TEXT_MAX + 1]);

#endif
