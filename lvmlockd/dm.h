/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Device-mapper, as belay-lvmlockd sees it: a list of devices, of which some
 * are LVM's, and four things to do to one of them. This header and dm.c are pure; who
 * decides (policy, adopt) reaches the kernel through struct dm_port, which
 * dm_worker.c provides by libdevmapper in children of the worker.
 *
 * A device is always named by its uuid: names change (lvrename), numbers are used again.
 */
#ifndef BELAY_LVMLOCKD_DM_H
#define BELAY_LVMLOCKD_DM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DM_TEXT_MAX 127u		/* the kernel's limit for uuids and names */
#define DM_TARGETS_MAX 63u
#define DM_LVM_UUID_MAX 38u		/* 32 characters, 6 hyphens */
#define DM_LVM_NAME_MAX 127u
/* More devices, or a longer table of one, are not read: -E2BIG. */
#define DM_DEVICES_MAX 65536u
#define DM_TABLE_MAX (1024u * 1024)

struct dm_device {
	char uuid[DM_TEXT_MAX + 1];	/* "" if it has none */
	char name[DM_TEXT_MAX + 1];
	uint32_t major, minor;
	bool suspended, read_only;
	bool live, inactive;		/* it has such a table */
	uint32_t open_count;
	uint64_t size_bytes;		/* of the live table */
	char targets[DM_TARGETS_MAX + 1];	/* of the live table: "linear", "striped,linear" */
	uint64_t *below;		/* the devices below it: DM_NUMBER(major, minor) */
	size_t below_count;
	/* dm_relate()'s: */
	unsigned depth;			/* of the longest chain of what stands on it, or has to be stopped first */
	bool part;			/* a device of the same VG stands on it */
	/* Only if asked for, and only of LVM's; else NULL. */
	char *table;			/* as dmsetup table has it, one line for each target */
	char *beneath;			/* "8:16/17 253:3/21": what is below, and its diskseq */
};
#define DM_NUMBER(major, minor) ((uint64_t)(major) << 32 | (uint32_t)(minor))

struct dm_devices {
	struct dm_device *device;
	size_t count, room;
};

/* ---- pure ---- */

/* Which LV a device belongs to. */
struct dm_lv {
	char vg_uuid[DM_LVM_UUID_MAX + 1];	/* as lvm writes it, with hyphens */
	char lv_uuid[DM_LVM_UUID_MAX + 1];
	char vg_name[DM_LVM_NAME_MAX + 1];
	char lv_name[DM_LVM_NAME_MAX + 1];
	char layer[16];			/* "" or "real", "cow", "tpool", "tdata" ...: not the LV itself */
};
/* False: it is not LVM's, or not named as LVM does. */
bool dm_lv_of(const struct dm_device *device, struct dm_lv *ret_lv);

/* By uuid; NULL: it is not there. */
const struct dm_device *dm_find(const struct dm_devices *devices, const char *uuid);

/*
 * Sort by number, and find out what stands on what. Devices are suspended by rising depth:
 * one that is suspended while I/O of one above is on its way holds that I/O, and the
 * suspension of the one above waits for it for ever.
 */
void dm_relate(struct dm_devices *devices);

/*
 * Is it an LV that programs use: LVM's, no layer of another, and not a part (an image of a
 * mirror, data of a pool ...) on which a device of the same VG stands? Only such may be
 * suspended from outside: LVM suspends the others in an order of its own, from the top.
 */
bool dm_is_top(const struct dm_device *device);

/*
 * The LV whose lock covers it: its own, but for a thin LV that of its pool, for a
 * snapshot that of its origin, for a VDO LV that of its pool.
 */
bool dm_lock_of(const struct dm_devices *devices, const struct dm_device *device,
		char ret_lv_uuid[DM_LVM_UUID_MAX + 1]);

/* Is it that LV's, be it a layer? @lv_uuid as lvm writes it. */
bool dm_belongs(const struct dm_device *device, const char *lv_uuid);
/* Is anything of that LV active? */
bool dm_is_active(const struct dm_devices *devices, const char *lv_uuid);

/* Is its whole live table the error target? */
bool dm_is_error(const struct dm_device *device);
/* May that table be put back as it was written down, without lvm? Only tables whose targets have no state. */
bool dm_is_stateless(const char *table);

/* Cut a line without its newline at tabs into exactly so many fields, within it. 0 or -EBADMSG. */
int dm_split(char *line, char **ret_field, unsigned count);

/*
 * The list as bytes, and back. format appends one device to a buffer, all zero at first, whose text is from malloc; 0
 * or -ENOMEM. parse also relates: 0, -ENOMEM or -EBADMSG, with nothing in *ret_devices.
 */
struct dm_buffer {
	char *text;
	size_t size, room;
};
int dm_format(struct dm_buffer *buffer, const struct dm_device *device);
int dm_parse(const char *text, size_t size, struct dm_devices *ret_devices);
void dm_devices_done(struct dm_devices *devices);

/* ---- the port ---- */

enum dm_action {
	/*
	 * No new I/O passes; what is under way ends, if the storage answers. File systems are not asked to write
	 * anything first. -EALREADY: it is suspended, by somebody else.
	 */
	DM_SUSPEND,
	/* -EALREADY: it is not suspended. -EBUSY: a table is loaded; who did that says what becomes of it. */
	DM_RESUME,
	/*
	 * The error target of the same size takes the place of the live table: all I/O fails, that under
	 * way still ends as it does. -ESTALE: the live table is not @table. -EALREADY: it is
	 * suspended; who did that would resume what we put there.
	 */
	DM_ERROR,
	/* The same of a device that we have suspended: what is queued in it fails. -EALREADY: it is not suspended. */
	DM_FAIL,
	/*
	 * @table instead of the error target. -EALREADY: its table is not the error target.
	 * -ESTALE: what is @beneath is not there, or that number is another device now. -EOPNOTSUPP: tables
	 * of that kind have state, only lvm can make them.
	 */
	DM_RESTORE,
	DM_ACTION_COUNT,
};
const char *dm_action_name(enum dm_action action);

struct dm_order {
	enum dm_action action;
	char uuid[DM_TEXT_MAX + 1];
	char name[DM_TEXT_MAX + 1];	/* for people */
	const char *table, *beneath;	/* ERROR, RESTORE: as listed */
};

/* result: 0, or a negative errno; -ETIMEDOUT: device-mapper does not answer. *devices is the callback's only. */
typedef void (*dm_listed)(void *data, int result, const struct dm_devices *devices);

/*
 * result: 0; those of the action; -ENXIO: there is no such device (any more); other negative
 * errnos. -EINPROGRESS: the deadline has passed and it is still under way, in @where of
 * the kernel; it will be called again when it has ended. Then it must not be killed: a
 * suspension that is interrupted is taken back by the kernel, and I/O passes again.
 */
typedef void (*dm_acted)(void *data, int result, const char *where);

struct dm_port {
	/* All devices; @tables: LVM's with table and beneath. 0 and done follows from the loop, or a negative errno. */
	int (*list)(void *context, bool tables, dm_listed done, void *data);
	/* 0 and done follows from the loop, or a negative errno. *ret_ticket is valid until the last call of done. */
	int (*act)(void *context, const struct dm_order *order, dm_acted done, void *data, void **ret_ticket);
	/* Kill who is at it: a suspension that is under way is taken back by the kernel. done follows, with 0 if it was
	 * done before. Only for what has answered -EINPROGRESS. */
	void (*interrupt)(void *context, void *ticket);
	/* done is not called any more; what is under way goes on. unlist: a list, by its data. */
	void (*forget)(void *context, void *ticket);
	void (*unlist)(void *context, void *data);
	void *context;
};

/* ---- the real one ---- */

struct dm;
struct worker;

/* What one action may take until it counts as hung; each is a few milliseconds when all is well. */
#define DM_DEADLINE_MS 5000u

/* 0, -ENOMEM. deadline_ms: of an action; a list, of many devices, has longer. */
int dm_open(struct worker *worker, uint32_t deadline_ms, struct dm **ret_dm);
/* Before worker_free(). Calls that are under way are forgotten. NULL is allowed. */
void dm_close(struct dm *dm);
const struct dm_port *dm_port(const struct dm *dm);

#endif
