/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lvmlockd/adopt.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

/* Locks asked for at a time. */
#define WINDOW 64u

enum entry_state {
	ENTRY_IDLE,		/* inactive: to be dropped */
	ENTRY_WANTED,
	ENTRY_UNSURE,		/* it is not known yet whether its VG carries our marker */
	ENTRY_ASKED,
	ENTRY_DONE,
};

struct entry {
	struct adopt *adopt;
	struct adopt_lv lv;
	bool recorded;
	enum entry_state state;
};

struct adopt {
	struct adopt_port port;
	struct entry *entry;
	size_t count, room, next;
	unsigned asked;
	bool listing;
	bool blind;			/* no list: nothing may be forgotten */
	int unsure;			/* no markers: what is on record is locked, but that is not all */
	int result;			/* the first that ends it */
	bool over;
	struct adopt_count counts;
};

static void advance(struct adopt *adopt);

__attribute__((format(printf, 3, 4)))
static void say(const struct adopt *adopt, int priority, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	adopt->port.log(adopt->port.context, priority, text);
}

/* ---- which LVs there are ---- */

static int add(struct adopt *adopt, const struct adopt_lv *lv, bool recorded, enum entry_state state)
{
	struct entry *grown;

	if (adopt->count == adopt->room) {
		adopt->room = adopt->room ? adopt->room * 2 : 64;
		grown = reallocarray(adopt->entry, adopt->room, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		adopt->entry = grown;
	}
	adopt->entry[adopt->count++] = (struct entry){
		.adopt = adopt, .lv = *lv, .recorded = recorded, .state = state,
	};
	return 0;
}

static bool is_known(const struct adopt *adopt, const char *lv_uuid)
{
	for (size_t i = 0; i < adopt->count; i++)
		if (strcmp(adopt->entry[i].lv.lv_uuid, lv_uuid) == 0)
			return true;
	return false;
}

static int take_recorded(struct adopt *adopt, const struct dm_devices *devices)
{
	struct adopt_lv lv;
	bool active;
	int r = 0;

	for (size_t i = 0; r == 0 && adopt->port.recorded(adopt->port.context, i, &lv); i++) {
		active = adopt->blind || lv.coming || dm_is_active(devices, lv.lv_uuid);
		r = add(adopt, &lv, true, active ? ENTRY_WANTED : ENTRY_IDLE);
	}
	return r;
}

/* What the LV is called, of which only a layer or another LV's device may be active. */
static void find_name(const struct dm_devices *devices, struct adopt_lv *lv)
{
	struct dm_lv of;

	for (size_t i = 0; i < devices->count; i++) {
		if (!dm_belongs(&devices->device[i], lv->lv_uuid) || !dm_lv_of(&devices->device[i], &of))
			continue;
		memcpy(lv->lv_name, of.lv_name, sizeof(lv->lv_name));
		return;
	}
}

static int take_active(struct adopt *adopt, const struct dm_devices *devices)
{
	struct adopt_lv lv;
	struct dm_lv of;
	bool started;
	int r = 0;

	for (size_t i = 0; r == 0 && i < devices->count; i++) {
		const struct dm_device *device = &devices->device[i];

		lv = (struct adopt_lv){ .mode = ADOPT_EXCLUSIVE };
		if (!dm_is_top(device) || !dm_lv_of(device, &of) || !dm_lock_of(devices, device, lv.lv_uuid) ||
		    is_known(adopt, lv.lv_uuid))
			continue;
		memcpy(lv.vg_uuid, of.vg_uuid, sizeof(lv.vg_uuid));
		memcpy(lv.vg_name, of.vg_name, sizeof(lv.vg_name));
		find_name(devices, &lv);
		started = adopt->port.started(adopt->port.context, lv.vg_name, lv.vg_uuid);
		r = add(adopt, &lv, false, started ? ENTRY_WANTED : ENTRY_UNSURE);
	}
	return r;
}

static void finish(struct adopt *adopt, int result)
{
	if (adopt->over)
		return;
	adopt->over = true;
	adopt->port.done(adopt->port.context, result);
}

/* ---- locks ---- */

static void lose(struct entry *entry)
{
	struct adopt *adopt = entry->adopt;
	const struct adopt_lv *lv = &entry->lv;

	adopt->counts.lost++;
	entry->state = ENTRY_DONE;
	say(adopt, LOG_CRIT, "%s/%s is active on this node, but another node has its lock: BOTH MAY "
	    "WRITE TO IT. End the programs that use it here, then: lvchange -an %s/%s; or fence this node", lv->vg_name,
	    lv->lv_name[0] ? lv->lv_name : lv->lv_uuid, lv->vg_name, lv->lv_name);
	adopt->port.lost(adopt->port.context, lv);
}

static void on_locked(void *data, int result)
{
	struct entry *entry = data;
	struct adopt *adopt = entry->adopt;

	adopt->asked--;
	if (result == 0) {
		entry->state = ENTRY_DONE;
		if (entry->recorded)
			adopt->counts.kept++;
		else
			adopt->counts.found++;
		if (!entry->recorded)
			say(adopt, LOG_WARNING, "%s/%s is active without a lock on record: locked %s",
			    entry->lv.vg_name, entry->lv.lv_name,
			    entry->lv.mode == ADOPT_EXCLUSIVE ? "exclusively" : "shared");
	} else if (result == -EAGAIN && !entry->recorded && entry->lv.mode == ADOPT_EXCLUSIVE) {
		entry->lv.mode = ADOPT_SHARED;
		entry->state = ENTRY_WANTED;
		adopt->next = 0;
	} else if (result == -EAGAIN) {
		lose(entry);
	} else {
		entry->state = ENTRY_DONE;
		adopt->result = adopt->result ? adopt->result : result;
	}
	advance(adopt);
}

static void ask(struct entry *entry)
{
	struct adopt *adopt = entry->adopt;
	int r;

	entry->state = ENTRY_ASKED;
	r = adopt->port.lock(adopt->port.context, &entry->lv, on_locked, entry);
	if (r < 0) {
		entry->state = ENTRY_DONE;
		adopt->result = adopt->result ? adopt->result : r;
		return;
	}
	adopt->asked++;
}

static void drop(struct entry *entry)
{
	struct adopt *adopt = entry->adopt;

	entry->state = ENTRY_DONE;
	adopt->counts.dropped++;
	say(adopt, LOG_NOTICE, "%s/%s is not active any more: its lock is released", entry->lv.vg_name,
	    entry->lv.lv_name[0] ? entry->lv.lv_name : entry->lv.lv_uuid);
	adopt->port.drop(adopt->port.context, &entry->lv);
}

static void advance(struct adopt *adopt)
{
	int r = 0;

	while (adopt->result == 0 && adopt->asked < WINDOW && adopt->next < adopt->count) {
		struct entry *entry = &adopt->entry[adopt->next++];

		if (entry->state == ENTRY_WANTED)
			ask(entry);
		else if (entry->state == ENTRY_IDLE)
			drop(entry);
	}
	if (adopt->asked > 0 || adopt->over)
		return;
	if (adopt->result < 0 || adopt->unsure < 0) {
		finish(adopt, adopt->result < 0 ? adopt->result : adopt->unsure);
		return;
	}
	if (!adopt->blind)
		r = adopt->port.forget(adopt->port.context);
	finish(adopt, r);
}

/* ---- the list, and whose VGs they are ---- */

static void on_marked(void *data, int result, const char *const *vg_uuid, size_t count)
{
	struct adopt *adopt = data;

	if (result < 0) {
		adopt->unsure = result;
		say(adopt, LOG_ERR, "lvm does not say which VGs are this cluster's (%s), and LVs are active here that "
		    "are on no record: they may be without a lock, so that other nodes must not lock any now. "
		    "See whether vgs works", strerror(-result));
	}
	for (size_t i = 0; i < adopt->count; i++) {
		if (adopt->entry[i].state != ENTRY_UNSURE)
			continue;
		adopt->entry[i].state = ENTRY_DONE;
		for (size_t k = 0; result == 0 && k < count; k++)
			if (strcmp(vg_uuid[k], adopt->entry[i].lv.vg_uuid) == 0)
				adopt->entry[i].state = ENTRY_WANTED;
	}
	advance(adopt);
}

static void on_listed(void *data, int result, const struct dm_devices *devices)
{
	struct adopt *adopt = data;
	bool unsure = false;
	int r;

	adopt->listing = false;
	adopt->blind = result != 0;
	/* Without any device-mapper, as in a test bed, nothing is active and nothing amiss. */
	if (result < 0 && result != -ENODEV)
		say(adopt, LOG_ERR, "device-mapper does not say what is active (%s): all LV locks on record are kept",
		    strerror(-result));
	r = take_recorded(adopt, devices);
	if (r == 0 && devices)
		r = take_active(adopt, devices);
	for (size_t i = 0; i < adopt->count; i++)
		unsure = unsure || adopt->entry[i].state == ENTRY_UNSURE;
	if (r == 0 && unsure) {
		r = adopt->port.marked(adopt->port.context, on_marked, adopt);
		if (r < 0)
			on_marked(adopt, r, NULL, 0);
		return;
	}
	adopt->result = r;
	advance(adopt);
}

/* ---- the interface ---- */

int adopt_start(const struct adopt_port *port, struct adopt **ret_adopt)
{
	struct adopt *adopt = calloc(1, sizeof(*adopt));
	int r;

	if (!adopt)
		return -ENOMEM;
	adopt->port = *port;
	adopt->listing = true;
	r = port->dm->list(port->dm->context, false, on_listed, adopt);
	if (r < 0) {
		free(adopt);
		return r;
	}
	*ret_adopt = adopt;
	return 0;
}

void adopt_free(struct adopt *adopt)
{
	if (!adopt)
		return;
	if (adopt->listing)
		adopt->port.dm->unlist(adopt->port.dm->context, adopt);
	free(adopt->entry);
	free(adopt);
}

struct adopt_count adopt_count(const struct adopt *adopt)
{
	return adopt->counts;
}
