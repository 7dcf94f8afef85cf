/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The LVs of a VG, as "lvm lvs" tells them in JSON. Pure but for allocation. */
#ifndef BELAY_LVMLOCKD_LVS_H
#define BELAY_LVMLOCKD_LVS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lvmlockd/ask.h"

#define LVS_WORDS_MAX 127u
#define LVS_MAX 65536u
#define LVS_ARGV_MAX 16u

struct lvs_lv {
	char vg[ASK_NAME_MAX + 1];
	char name[ASK_NAME_MAX + 1];
	char uuid[ASK_UUID_MAX + 1];
	char vg_uuid[ASK_UUID_MAX + 1];
	/* Of the LV whose lock LVM takes for this one: a thin volume's is its pool's. */
	char lock_uuid[ASK_UUID_MAX + 1];
	uint64_t size_bytes;
	bool shared_vg;			/* its VG is locked by lvmlockd */
	bool skip;			/* LVM leaves it out unless it is told -K */
	char layout[LVS_WORDS_MAX + 1];	/* "linear", "thin,sparse" */
	char role[LVS_WORDS_MAX + 1];	/* "public,origin" */
};

struct lvs {
	size_t count;
	struct lvs_lv *lv;		/* by name */
};

/*
 * The command's arguments, NULL at the end, for all (vg "") or a VG (lv "") or one LV. @target: where
 * "VG/LV" is put. no_lock: without the VG's lock, which somebody else has, or need not have.
 */
#define LVS_TARGET_MAX (2 * ASK_NAME_MAX + 2)
void lvs_argv(const char *lvm_path, const char *vg, const char *lv, bool no_lock,
	      char target[LVS_TARGET_MAX], const char *ret_argv[LVS_ARGV_MAX]);

/* 0; -EBADMSG: it is no such report; -E2BIG: too many; -ENOMEM. */
int lvs_parse(const char *text, struct lvs *ret_lvs);
void lvs_done(struct lvs *lvs);
const struct lvs_lv *lvs_find(const struct lvs *lvs, const char *name);

#endif
