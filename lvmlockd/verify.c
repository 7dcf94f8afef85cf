/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lvmlockd/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lvmlockd/explain.h"

void verify_dm_uuid(const struct lvs_lv *lv, char ret_uuid[DM_TEXT_MAX + 1])
{
	size_t at = 4;

	memcpy(ret_uuid, "LVM-", at);
	for (const char *c = lv->vg_uuid; *c; c++)
		if (*c != '-')
			ret_uuid[at++] = *c;
	for (const char *c = lv->uuid; *c; c++)
		if (*c != '-')
			ret_uuid[at++] = *c;
	ret_uuid[at] = '\0';
}

/* A pool has no device of its own name, or one that nobody uses: its layers are what is active. */
static bool is_pool(const struct lvs_lv *lv)
{
	return strstr(lv->layout, "pool") != NULL;
}

bool verify_is_active(const struct dm_devices *devices, const struct lvs_lv *lv, enum ask_mode lock)
{
	return devices ? dm_is_active(devices, lv->uuid) : lock != ASK_UN;
}

__attribute__((format(printf, 2, 3)))
static void fail(struct ask_lv *lv, const char *format, ...)
{
	va_list args;

	lv->outcome = ASK_FAILED;
	va_start(args, format);
	(void)vsnprintf(lv->reason, sizeof(lv->reason), format, args);
	va_end(args);
}

static void fail_explained(const struct verify_case *c, struct ask_lv *lv)
{
	const struct explain_case e = {
		.lv = c->lv->name, .output = c->output ? c->output : "",
	};

	lv->outcome = ASK_FAILED;
	explain(&e, lv->reason, sizeof(lv->reason));
}

/* What device-mapper says of it, whatever was wanted. */
static void look(const struct verify_case *c, struct ask_lv *lv)
{
	char uuid[DM_TEXT_MAX + 1];
	const struct dm_device *device;

	if (!c->devices)
		return;
	verify_dm_uuid(c->lv, uuid);
	device = dm_find(c->devices, uuid);
	lv->dm = dm_is_active(c->devices, c->lv->uuid) ? ASK_DM_ACTIVE : ASK_DM_INACTIVE;
	if (!device)
		return;
	lv->open_count = device->open_count;
	lv->size_bytes = device->size_bytes;
	(void)snprintf(lv->targets, sizeof(lv->targets), "%s", device->targets);
	if (device->suspended)
		lv->dm = ASK_DM_SUSPENDED;
	else if (!device->live)
		lv->dm = ASK_DM_NO_TABLE;
	else if (strstr(device->targets, "error"))
		lv->dm = ASK_DM_ERROR;
}

static void unverified(const struct verify_case *c, struct ask_lv *lv)
{
	lv->outcome = ASK_UNVERIFIED;
	switch (c->dm_error) {
	case -ENODEV:
	case -ENXIO:
	case -ENOENT:
		(void)snprintf(lv->reason, sizeof(lv->reason),
			       "not verified: this machine has no device-mapper");
		break;
	case -ETIMEDOUT:
		(void)snprintf(lv->reason, sizeof(lv->reason),
			       "not verified: device-mapper does not answer");
		break;
	default:
		(void)snprintf(lv->reason, sizeof(lv->reason),
			       "not verified: device-mapper cannot be asked: %s", strerror(-c->dm_error));
	}
}

/* What a loss of quorum has made of it, nobody has to put right. */
static const char *policy_reason(const struct verify_case *c, const struct ask_lv *lv)
{
	if (!c->policy)
		return NULL;
	if (strcmp(c->policy, "frozen") == 0 && lv->dm == ASK_DM_SUSPENDED)
		return "it is suspended for want of quorum, until that is back";
	if (strcmp(c->policy, "failed") == 0 && lv->dm == ASK_DM_ERROR)
		return "it returns errors for want of quorum, until that is back";
	return NULL;
}

/* It is there, but not as LVM's metadata has it, or nobody can use it. */
static void want_usable(const struct verify_case *c, struct ask_lv *lv)
{
	const char *reason = policy_reason(c, lv);

	if (reason)
		fail(lv, "%s", reason);
	else if (lv->dm == ASK_DM_SUSPENDED)
		fail(lv, "it is suspended: nobody can read or write it. An lvm command is at work, or was "
		     "interrupted: dmsetup resume, if you know why");
	else if (lv->dm == ASK_DM_NO_TABLE)
		fail(lv, "it has a device, but no table: an lvm command was interrupted; belay lv deactivate");
	else if (lv->dm == ASK_DM_ERROR)
		fail(lv, "the error target stands in for it, or for a part: a disk is missing, or quorum was lost");
	/* Of a snapshot LVM tells what it may store, device-mapper what it shows. */
	else if (lv->dm == ASK_DM_ACTIVE && !is_pool(c->lv) && !strstr(c->lv->role, "thicksnapshot") &&
		 lv->size_bytes != 0 && lv->size_bytes != lv->lvm_size_bytes)
		fail(lv, "its live table has %" PRIu64 " bytes, LVM's metadata %" PRIu64 ": belay lv refresh",
		     lv->size_bytes, lv->lvm_size_bytes);
}

static void want_active(const struct verify_case *c, struct ask_lv *lv)
{
	if (lv->dm == ASK_DM_INACTIVE)
		fail_explained(c, lv);
	else if (lv->dm == ASK_DM_UNKNOWN)
		unverified(c, lv);
	else
		want_usable(c, lv);
}

/* An LV may be locked by the uuid of another one, which more than this may need: a pool's, an origin's. */
static bool is_locked_in_vain(const struct verify_case *c)
{
	return c->lock != ASK_UN && strcmp(c->lv->lock_uuid, c->lv->uuid) == 0;
}

/* Nothing was wanted: what would be wrong about any LV. */
static void want_sane(const struct verify_case *c, struct ask_lv *lv)
{
	if (c->lock_lost)
		fail(lv, "the lock on it is lost, and another node may have it: if it is active there, deactivate it");
	else if (c->lv->shared_vg && lv->dm == ASK_DM_INACTIVE && is_locked_in_vain(c))
		fail(lv, "it is inactive, but the node has its lock: others wait for it in vain. "
		     "belay lv deactivate gives it back");
	else if (c->lv->shared_vg && lv->dm != ASK_DM_INACTIVE && lv->dm != ASK_DM_UNKNOWN && c->lock == ASK_UN)
		fail(lv, "it is active without its lock: another node may activate it as well, and both would "
		     "write. belay lv deactivate it there");
	else
		want_usable(c, lv);
	lv->outcome = ASK_SHOWN;
}

static void want_lock(const struct verify_case *c, enum ask_mode mode, struct ask_lv *lv)
{
	if (lv->outcome == ASK_FAILED || !c->lv->shared_vg)
		return;
	if (mode == ASK_UN && is_locked_in_vain(c))
		fail(lv, "it is inactive, but this node still has its lock: lvchange -an gives it back");
	else if (c->lock < mode)
		fail(lv, "this node has no %s lock on it, though lvm says that all is well",
		     mode == ASK_EX ? "exclusive" : "shared");
}

static void want(const struct verify_case *c, struct ask_lv *lv)
{
	switch (c->verb) {
	case ASK_ACTIVATE:
		/* An older lock that is stronger than asked for is lvm's refusal. */
		if (lv->dm == ASK_DM_UNKNOWN && c->lvm_failed && c->lock < c->mode)
			fail_explained(c, lv);
		else
			want_active(c, lv);
		want_lock(c, c->mode, lv);
		break;
	case ASK_REFRESH:
		/* What is not active has no table to reload. */
		if (lv->dm == ASK_DM_UNKNOWN && c->lvm_failed)
			fail_explained(c, lv);
		else if (lv->dm != ASK_DM_INACTIVE || c->was_active)
			want_active(c, lv);
		break;
	case ASK_DEACTIVATE:
	case ASK_UNDO:
		if (lv->dm == ASK_DM_UNKNOWN && !(c->lvm_failed && c->lock != ASK_UN))
			unverified(c, lv);
		else if (lv->dm != ASK_DM_INACTIVE)
			fail_explained(c, lv);
		want_lock(c, ASK_UN, lv);
		break;
	case ASK_STATUS:
	case ASK_KEEP:
	case ASK_VERB_COUNT:
		want_sane(c, lv);
		break;
	}
}

void verify_lv(const struct verify_case *c, struct ask_lv *ret_lv)
{
	struct ask_lv lv = { .outcome = ASK_VERIFIED, .lock = c->lock, .since_s = c->since_s };
	bool is_active = verify_is_active(c->devices, c->lv, c->lock);

	(void)snprintf(lv.vg, sizeof(lv.vg), "%s", c->lv->vg);
	(void)snprintf(lv.name, sizeof(lv.name), "%s", c->lv->name);
	(void)snprintf(lv.uuid, sizeof(lv.uuid), "%s", c->lv->uuid);
	lv.lvm_size_bytes = c->lv->size_bytes;
	look(c, &lv);
	lv.changed = c->verb == ASK_REFRESH ? c->was_active : c->was_active != is_active;
	want(c, &lv);
	*ret_lv = lv;
}
