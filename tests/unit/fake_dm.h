/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A device-mapper in memory behind struct dm_port: devices that can be suspended, given
 * tables, be made to hang or to fail. Answers come when the test says so: fake_dm_run().
 */
#ifndef BELAY_TESTS_FAKE_DM_H
#define BELAY_TESTS_FAKE_DM_H

#include "lvmlockd/dm.h"

#define FAKE_DEVICES_MAX 2000

struct fake_device {
	struct dm_device device;
	uint64_t below[4];
	char table[80];
	bool gone;
	bool hangs;		/* what would suspend it does not end */
	int fails[DM_ACTION_COUNT];	/* errno, negative */
	int io;			/* writes let through to the storage */
	int errors;		/* ... and made fail */
	int waiting;		/* ... and queued in it */
};

struct fake_answer;

struct fake_dm {
	struct dm_port port;
	struct fake_device *device;
	size_t count;
	int list_fails;		/* errno, negative */
	unsigned lists;
	struct fake_answer *answers;	/* to come, oldest first */
	char order[8192];	/* what was done: "suspend vg-a; " */
};

void fake_dm_init(struct fake_dm *dm);
void fake_dm_done(struct fake_dm *dm);

/* id: two letters that make the uuid, "va": VG v, LV a; layer "" or "-real". Returns it, to change. */
struct fake_device *fake_dm_add(struct fake_dm *dm, const char *id, const char *layer, const char *name,
				const char *targets);
struct fake_device *fake_dm_find(struct fake_dm *dm, const char *name);
void fake_dm_stack(struct fake_device *above, const struct fake_device *below);
/* As lvm writes that LV's uuid, by its id. */
const char *fake_lv_uuid(const char *id, char buffer[DM_LVM_UUID_MAX + 1]);
const char *fake_vg_uuid(const char *id, char buffer[DM_LVM_UUID_MAX + 1]);

/* Somebody writes to it. */
void fake_dm_write(struct fake_device *device);
/* What was hung on it ends well. */
void fake_dm_unhang(struct fake_dm *dm, struct fake_device *device);
/* Give all answers that are due, and those that are asked for meanwhile. True: there were some. */
bool fake_dm_run(struct fake_dm *dm);

#endif
