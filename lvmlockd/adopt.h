/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * At start: what this node has active gets its locks
 * again, what it had locked and is not active is given back. In order:
 *
 *	the list of devices
 *	recorded and active, or about to be: locked again in its mode; recorded and not active: unlocked
 *	active in a marked VG, but not recorded: exclusively if possible, or else shared
 *	all of the node's locks that are in neither are forgotten
 *
 * A lock that is refused is told loudly: two nodes have that LV active. If the list
 * cannot be had, nothing is unlocked and nothing forgotten: all that is recorded is locked again.
 */
#ifndef BELAY_LVMLOCKD_ADOPT_H
#define BELAY_LVMLOCKD_ADOPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lvmlockd/dm.h"

struct adopt;

enum adopt_mode {
	ADOPT_SHARED,
	ADOPT_EXCLUSIVE,
};

struct adopt_lv {
	char vg_uuid[DM_LVM_UUID_MAX + 1];	/* "" if not recorded */
	char vg_name[DM_LVM_NAME_MAX + 1];
	char lv_uuid[DM_LVM_UUID_MAX + 1];
	char lv_name[DM_LVM_NAME_MAX + 1];	/* "" if not recorded */
	enum adopt_mode mode;
	bool coming;			/* recorded, and who locked it still runs: it may be about to activate it */
};

typedef void (*adopt_answered)(void *data, int result);
/* @vg_uuid: those that carry our marker, as lvm writes them. The callback's only. */
typedef void (*adopt_marked)(void *data, int result, const char *const *vg_uuid, size_t count);

/* The surroundings; none calls back from inside. */
struct adopt_port {
	const struct dm_port *dm;
	/* The @index'th LV of the file; false: there are no more. Must not change while locks are asked for. */
	bool (*recorded)(void *context, size_t index, struct adopt_lv *ret_lv);
	/* Has the file that VG as started? */
	bool (*started)(void *context, const char *vg_name, const char *vg_uuid);
	/* Which VGs carry our marker, by lvm. Only asked if LVs of VGs are active that are not started. */
	int (*marked)(void *context, adopt_marked done, void *data);
	/* Try to lock for the node. 0 and done follows (0; -EAGAIN: refused; others), or a negative errno. */
	int (*lock)(void *context, const struct adopt_lv *lv, adopt_answered done, void *data);
	/* Release, and strike it off the file. */
	void (*drop)(void *context, const struct adopt_lv *lv);
	/* Is active, but its lock is refused: it stays in the file, as lost. */
	void (*lost)(void *context, const struct adopt_lv *lv);
	/* All locks of the node that nobody here has open. 0 or a negative errno. */
	int (*forget)(void *context);
	/* priority: syslog's. One line. */
	void (*log)(void *context, int priority, const char *text);
	/*
	 * It is over. 0: all is adopted, or told; -EIO and others: the connection to belayd was lost, or lvm does
	 * not say whose VGs there are; begin again.
	 */
	void (*done)(void *context, int result);
	void *context;
};

/* 0, and port->done follows; or -ENOMEM, or what port->dm->list returned. */
int adopt_start(const struct adopt_port *port, struct adopt **ret_adopt);
/*
 * Also in the middle, but not from a callback: nothing is called any more. What the port's marked and lock
 * have under way must not answer any more either. NULL is allowed.
 */
void adopt_free(struct adopt *adopt);

struct adopt_count {
	unsigned kept, dropped, found, lost;
};
struct adopt_count adopt_count(const struct adopt *adopt);

#endif
