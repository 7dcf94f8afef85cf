/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lvmlockd/dm.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LVM_PREFIX "LVM-"
#define LVM_ID_SIZE 32u			/* without hyphens */

/* ---- names and uuids ---- */

/* 32 characters as lvm writes them: groups of 6, 4, 4, 4, 4, 4, 6. */
static void hyphenate(const char *id, char ret_uuid[DM_LVM_UUID_MAX + 1])
{
	size_t to = 0;

	for (size_t i = 0; i < LVM_ID_SIZE; i++) {
		if (i >= 6 && i <= 26 && (i - 6) % 4 == 0)
			ret_uuid[to++] = '-';
		ret_uuid[to++] = id[i];
	}
	ret_uuid[to] = '\0';
	assert(to == DM_LVM_UUID_MAX);
}

/* "LVM-", 64 characters, perhaps "-layer". */
static bool is_lvm(const char *uuid)
{
	size_t prefix = sizeof(LVM_PREFIX) - 1;

	if (strncmp(uuid, LVM_PREFIX, prefix) != 0)
		return false;
	for (size_t i = prefix; i < prefix + 2 * LVM_ID_SIZE; i++)
		if (!isalnum((unsigned char)uuid[i]))
			return false;
	return uuid[prefix + 2 * LVM_ID_SIZE] == '\0' || uuid[prefix + 2 * LVM_ID_SIZE] == '-';
}

static const char *vg_id(const char *uuid)
{
	return uuid + sizeof(LVM_PREFIX) - 1;
}

static const char *lv_id(const char *uuid)
{
	return vg_id(uuid) + LVM_ID_SIZE;
}

static const char *layer_of(const char *uuid)
{
	const char *end = lv_id(uuid) + LVM_ID_SIZE;

	return *end == '-' ? end + 1 : "";
}

/* One component of a device's name: hyphens of names are doubled, a single one ends it. */
static bool take_name(const char **at, char ret_name[DM_LVM_NAME_MAX + 1])
{
	const char *c = *at;
	size_t size = 0;

	while (*c && (*c != '-' || c[1] == '-')) {
		if (size == DM_LVM_NAME_MAX)
			return false;
		if (*c == '-')
			c++;
		ret_name[size++] = *c++;
	}
	ret_name[size] = '\0';
	*at = *c == '-' ? c + 1 : c;
	return size > 0;
}

bool dm_lv_of(const struct dm_device *device, struct dm_lv *ret_lv)
{
	const char *at = device->name;
	struct dm_lv lv;

	if (!is_lvm(device->uuid))
		return false;
	hyphenate(vg_id(device->uuid), lv.vg_uuid);
	hyphenate(lv_id(device->uuid), lv.lv_uuid);
	if (!take_name(&at, lv.vg_name) || !take_name(&at, lv.lv_name))
		return false;
	(void)snprintf(lv.layer, sizeof(lv.layer), "%s", layer_of(device->uuid));
	*ret_lv = lv;
	return true;
}

/* ---- the list as a graph ---- */

const struct dm_device *dm_find(const struct dm_devices *devices, const char *uuid)
{
	for (size_t i = 0; i < devices->count; i++)
		if (uuid[0] != '\0' && strcmp(devices->device[i].uuid, uuid) == 0)
			return &devices->device[i];
	return NULL;
}

static int by_number(const void *a, const void *b)
{
	const struct dm_device *x = a, *y = b;
	uint64_t n = DM_NUMBER(x->major, x->minor), m = DM_NUMBER(y->major, y->minor);

	return n < m ? -1 : n > m;
}

static struct dm_device *at(const struct dm_devices *devices, uint64_t number)
{
	struct dm_device key = { .major = (uint32_t)(number >> 32), .minor = (uint32_t)number };

	if (devices->count == 0)
		return NULL;
	return bsearch(&key, devices->device, devices->count, sizeof(key), by_number);
}

static bool same_vg(const struct dm_device *a, const struct dm_device *b)
{
	return is_lvm(a->uuid) && is_lvm(b->uuid) && memcmp(vg_id(a->uuid), vg_id(b->uuid), LVM_ID_SIZE) == 0;
}

/* The device right below @device that is such a layer of an LV of the same VG. */
static const struct dm_device *layer_below(const struct dm_devices *devices, const struct dm_device *device,
					   const char *layer)
{
	for (size_t i = 0; i < device->below_count; i++) {
		const struct dm_device *below = at(devices, device->below[i]);

		if (below && same_vg(below, device) && strcmp(layer_of(below->uuid), layer) == 0)
			return below;
	}
	return NULL;
}

/* True: it was not that deep before. */
static bool lower(struct dm_device *below, const struct dm_device *above)
{
	if (below->depth > above->depth)
		return false;
	below->depth = above->depth + 1;
	return true;
}

/*
 * As if it stood on the snapshot: a write to an origin whose snapshot has no table at the time is not copied, and
 * the snapshot is spoilt. So the origin is stopped first, and goes on last.
 */
static bool lower_snapshot(const struct dm_devices *devices, struct dm_device *snapshot)
{
	const struct dm_device *real = layer_below(devices, snapshot, "real"), *origin = NULL;
	char uuid[DM_TEXT_MAX + 1];

	if (!real)
		return false;
	(void)snprintf(uuid, sizeof(uuid), "%.*s", (int)(layer_of(real->uuid) - 1 - real->uuid), real->uuid);
	origin = dm_find(devices, uuid);
	return origin && origin != snapshot && lower(snapshot, origin);
}

/* Device by device push down what is below. True: something moved. */
static bool push_down(struct dm_devices *devices)
{
	bool moved = false;

	for (size_t i = 0; i < devices->count; i++) {
		struct dm_device *above = &devices->device[i];

		for (size_t k = 0; k < above->below_count; k++) {
			struct dm_device *below = at(devices, above->below[k]);

			if (!below || below == above)
				continue;
			below->part = below->part || same_vg(above, below);
			moved = lower(below, above) || moved;
		}
		if (strcmp(above->targets, "snapshot") == 0)
			moved = lower_snapshot(devices, above) || moved;
	}
	return moved;
}

/* Stacks of devices are a handful high. The list is read one by one, and of changes meanwhile might have a loop. */
#define ROUNDS_MAX 64

void dm_relate(struct dm_devices *devices)
{
	if (devices->count > 0)
		qsort(devices->device, devices->count, sizeof(*devices->device), by_number);
	for (size_t i = 0; i < devices->count; i++) {
		devices->device[i].depth = 0;
		devices->device[i].part = false;
	}
	for (int round = 0; round < ROUNDS_MAX && push_down(devices); round++)
		;
}

bool dm_is_top(const struct dm_device *device)
{
	return is_lvm(device->uuid) && layer_of(device->uuid)[0] == '\0' && !device->part;
}

bool dm_lock_of(const struct dm_devices *devices, const struct dm_device *device,
		char ret_lv_uuid[DM_LVM_UUID_MAX + 1])
{
	/* clang-format off */
	static const struct {
		const char *target, *layer;
	} covers[] = {
		{ "thin",     "tpool" },
		{ "snapshot", "real"  },
		{ "vdo",      "vpool" },
	};
	/* clang-format on */
	const struct dm_device *owner = device, *below;

	if (!is_lvm(device->uuid))
		return false;
	for (size_t i = 0; i < sizeof(covers) / sizeof(covers[0]); i++) {
		if (strcmp(device->targets, covers[i].target) != 0)
			continue;
		below = layer_below(devices, device, covers[i].layer);
		if (below)
			owner = below;
	}
	hyphenate(lv_id(owner->uuid), ret_lv_uuid);
	return true;
}

bool dm_belongs(const struct dm_device *device, const char *lv_uuid)
{
	const char *id;

	if (!is_lvm(device->uuid))
		return false;
	id = lv_id(device->uuid);
	for (size_t i = 0; i < LVM_ID_SIZE; i++, lv_uuid++) {
		if (*lv_uuid == '-')
			lv_uuid++;
		if (*lv_uuid != id[i])
			return false;
	}
	return *lv_uuid == '\0';
}

bool dm_is_active(const struct dm_devices *devices, const char *lv_uuid)
{
	for (size_t i = 0; i < devices->count; i++)
		if (dm_belongs(&devices->device[i], lv_uuid))
			return true;
	return false;
}

bool dm_is_error(const struct dm_device *device)
{
	return device->live && strcmp(device->targets, "error") == 0;
}

bool dm_is_stateless(const char *table)
{
	static const char *const stateless[] = { "linear", "striped", "snapshot-origin" };
	const char *line = table;
	char target[32], kind[8];
	bool fine;

	for (; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		if (sscanf(line, "%*u %*u %31s", target) != 1)
			return false;
		/* All there is to know of a persistent snapshot is on its disk; and lvm cannot do it: it looks for
		 * the devices below in the live table. */
		fine = sscanf(line, "%*u %*u snapshot %*s %*s %7s", kind) == 1 && kind[0] == 'P';
		for (size_t i = 0; i < sizeof(stateless) / sizeof(stateless[0]); i++)
			fine = fine || strcmp(target, stateless[i]) == 0;
		if (!fine)
			return false;
	}
	return line != table;
}

const char *dm_action_name(enum dm_action action)
{
	static const char *const names[DM_ACTION_COUNT] = {
		[DM_SUSPEND] = "suspend",
		[DM_RESUME] = "resume",
		[DM_ERROR] = "replace by the error target",
		[DM_FAIL] = "make fail what waits in",
		[DM_RESTORE] = "put back the table of",
	};

	assert(action < DM_ACTION_COUNT);
	return names[action];
}
