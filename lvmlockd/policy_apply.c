/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Without quorum: make the LVs what the policy wants, and see that they stay so. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "lvmlockd/policy_private.h"

/* ---- what the list says ---- */

static void replace(char **text, const char *by)
{
	free(*text);
	*text = by ? strdup(by) : NULL;
}

static void plan(struct volume *volume, const struct dm_devices *devices, const struct dm_device *device)
{
	struct policy *policy = volume->policy;

	memcpy(volume->name, device->name, sizeof(volume->name));
	volume->errors = policy_wants_errors(policy);
	volume->depth = device->depth;
	replace(&volume->table, device->table);
	replace(&volume->beneath, device->beneath);
	/* What was locked when it was written down first is what counts when it is undone. */
	if (volume->lv_uuid[0] == '\0' && dm_lock_of(devices, device, volume->lv_uuid))
		volume->locked = policy->port.lock(policy->port.context, volume->lv_uuid) == POLICY_LOCK_HELD;
	volume->state = VOLUME_PLANNED;
}

static bool holds(const struct volume *volume, const struct dm_device *device)
{
	return volume->errors ? dm_is_error(device) : device->suspended;
}

/*
 * It is not as we made it. Most likely a command of lvm that was already under way when quorum was lost has
 * resumed it: that gives way. Whoever does it twice means it.
 */
static void resumed_by_other(struct volume *volume, const struct dm_devices *devices, const struct dm_device *device)
{
	const char *was = volume->errors ? "given another table" : "resumed";
	char label[POLICY_LABEL_MAX];

	/* Somebody is at it: let him finish. */
	if (device->suspended)
		return;
	if (volume->resumed++ == 0) {
		policy_log(volume->policy, LOG_WARNING, "%s was %s by another program without quorum: it is %s again; "
			   "do it once more to overrule that", policy_label(volume, label, sizeof(label)), was,
			   policy_wants_errors(volume->policy) ? "made return errors" : "suspended");
		plan(volume, devices, device);
		return;
	}
	policy_log(volume->policy, LOG_ERR, "%s was %s by another program a second time without quorum: it is left "
		   "alone now, and MAY BE WRITTEN HERE AND ELSEWHERE. Fence this node before another uses it",
		   policy_label(volume, label, sizeof(label)), was);
	volume->state = VOLUME_OVERRULED;
}

static void leave_to_other(struct volume *volume)
{
	char label[POLICY_LABEL_MAX];

	if (volume->state == VOLUME_FOREIGN)
		return;
	volume->state = VOLUME_FOREIGN;
	policy_log(volume->policy, LOG_NOTICE, "%s was already suspended by another program: it is left so, and will "
		   "not be resumed by belay", policy_label(volume, label, sizeof(label)));
}

static void compare_volume(struct volume *volume, const struct dm_devices *devices)
{
	const struct dm_device *device = dm_find(devices, volume->uuid);

	switch (volume->state) {
	case VOLUME_ACTING:
	case VOLUME_HUNG:
	case VOLUME_REFRESHING:
	case VOLUME_OVERRULED:
		return;
	default:
		break;
	}
	if (!device || !device->live) {
		policy_drop(volume);
		return;
	}
	switch (volume->state) {
	case VOLUME_DONE:
		if (!holds(volume, device))
			resumed_by_other(volume, devices, device);
		break;
	case VOLUME_KEPT:
	case VOLUME_STUCK:
		if (holds(volume, device))
			volume->state = VOLUME_DONE;
		else if (device->suspended)
			leave_to_other(volume);
		else
			plan(volume, devices, device);
		break;
	default:
		if (device->suspended)
			leave_to_other(volume);
		else
			plan(volume, devices, device);
	}
}

static void compare_device(struct policy *policy, const struct dm_devices *devices, const struct dm_device *device)
{
	struct volume *volume;
	struct dm_lv lv;

	if (!dm_is_top(device) || !device->live || !dm_lv_of(device, &lv) ||
	    !policy->port.started(policy->port.context, lv.vg_name, lv.vg_uuid) || policy_find(policy, device->uuid))
		return;
	/* It returns errors already, by LVM's own will. */
	if (policy_wants_errors(policy) && dm_is_error(device))
		return;
	volume = policy_add(policy, device->uuid, device->name);
	if (!volume) {
		policy_log(policy, LOG_ERR, "out of memory: %s/%s may still be written without quorum", lv.vg_name,
			   lv.lv_name);
		return;
	}
	volume->state = VOLUME_PLANNED;
	if (device->suspended)
		leave_to_other(volume);
	else
		plan(volume, devices, device);
}

void policy_compare(struct policy *policy, const struct dm_devices *devices)
{
	struct volume *volume, *next;

	for (volume = TAILQ_FIRST(&policy->volumes); volume; volume = next) {
		next = TAILQ_NEXT(volume, link);
		compare_volume(volume, devices);
	}
	for (size_t i = 0; i < devices->count; i++)
		compare_device(policy, devices, &devices->device[i]);
}

/* ---- to do ---- */

static struct volume *first_planned(struct policy *policy)
{
	struct volume *volume, *first = NULL;

	TAILQ_FOREACH(volume, &policy->volumes, link)
		if (volume->state == VOLUME_PLANNED && (!first || volume->depth < first->depth))
			first = volume;
	return first;
}

/* All of one depth at a time: what stands on what is suspended before it. True: something is under way. */
static bool act_on_planned(struct policy *policy)
{
	struct volume *volume, *next, *first = first_planned(policy);
	unsigned depth;

	/* Before anything is done: whoever comes after us has to know. */
	if (first)
		policy_keep(policy);
	while (first && policy->acting == 0) {
		depth = first->depth;
		for (volume = TAILQ_FIRST(&policy->volumes); volume; volume = next) {
			next = TAILQ_NEXT(volume, link);
			if (volume->state == VOLUME_PLANNED && volume->depth == depth)
				policy_act(volume, volume->errors ? DM_ERROR : DM_SUSPEND);
		}
		first = first_planned(policy);
	}
	return policy->acting > 0;
}

static void fail_suspended(struct policy *policy)
{
	struct volume *volume, *next;

	for (volume = TAILQ_FIRST(&policy->volumes); volume; volume = next) {
		next = TAILQ_NEXT(volume, link);
		if (volume->state == VOLUME_DONE && !volume->errors)
			policy_act(volume, DM_FAIL);
	}
}

static void tell_applied(struct policy *policy)
{
	struct policy_status status;
	unsigned made;

	policy->took_ms = policy->port.now_ms(policy->port.context) - policy->lost_ms;
	policy_status(policy, &status);
	made = status.count.frozen + status.count.failed;
	if (made > 0 || status.count.refused == 0)
		policy_log(policy, LOG_NOTICE, "on_quorum_loss = %s: done, %u LVs %s, %" PRIu64 " ms after "
			   "quorum was lost", policy_action_name(policy->action), made,
			   policy_wants_errors(policy) ? "return errors" : "are suspended", policy->took_ms);
	if (status.count.hung > 0)
		policy_log(policy, LOG_WARNING, "%u of them have I/O under way that their storage does not answer; "
			   "nothing new passes", status.count.hung);
	if (status.count.refused > 0)
		policy_log(policy, LOG_ERR, "%u active LVs could not be stopped and may be written without quorum",
			   status.count.refused);
}

void policy_apply(struct policy *policy)
{
	if (policy->given_up)
		fail_suspended(policy);
	if (policy->acting > 0 || act_on_planned(policy))
		return;
	policy_keep(policy);
	if (policy->state == POLICY_APPLYING && !policy->unreadable) {
		policy->state = POLICY_APPLIED;
		tell_applied(policy);
	}
	policy->port.timer(policy->port.context, POLICY_CHECK_MS);
}

/* ---- done ---- */

static void tell_hung(const struct volume *volume, const char *where)
{
	char label[POLICY_LABEL_MAX];

	policy_log(volume->policy, LOG_WARNING, "%s: nothing new is written, but I/O that was under way has no end "
		   "yet%s%s: its storage does not answer. It will end when that does; see multipath -ll, or dmsetup "
		   "ls --tree, for what is beneath %s", policy_label(volume, label, sizeof(label)),
		   where[0] ? ", in the kernel's " : "", where, volume->name);
}

static void refuse(struct volume *volume, int result)
{
	char label[POLICY_LABEL_MAX];

	/* With quorum it has to fail because another node has it: it must not be forgotten. */
	volume->state = volume->policy->lost ? VOLUME_REFUSED : VOLUME_STUCK;
	if (volume->told)
		return;
	volume->told = true;
	policy_log(volume->policy, LOG_ERR, "cannot %s %s: %s. It may be written without quorum until this node is "
		   "fenced; it is tried again every %u s", dm_action_name(volume->doing),
		   policy_label(volume, label, sizeof(label)), strerror(-result), POLICY_CHECK_MS / 1000);
}

void policy_applied(struct volume *volume, int result, const char *where)
{
	bool suspended = volume->doing == DM_SUSPEND;

	/* What came of a child that was killed shows when it is undone. */
	if (volume->interrupted && result == -EINTR)
		result = 0;
	switch (result) {
	case 0:
		volume->state = VOLUME_DONE;
		volume->errors = !suspended;
		volume->told = false;
		break;
	case -EINPROGRESS:
		volume->state = VOLUME_HUNG;
		tell_hung(volume, where);
		break;
	case -ENXIO:
	case -ENODATA:
		policy_drop(volume);
		break;
	case -EALREADY:
		/* The list was older than that. */
		if (volume->doing == DM_FAIL)
			volume->state = VOLUME_REFUSED;
		else
			leave_to_other(volume);
		break;
	case -ESTALE:
		/* It got another table since the list: the next list will have it. */
		volume->state = VOLUME_REFUSED;
		break;
	default:
		refuse(volume, result);
	}
}
