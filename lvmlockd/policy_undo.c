/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Quorum is back: take back what was done, LV by LV, where the lock is still this node's. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "lvmlockd/policy_private.h"

/* What could not be undone is tried again so often. */
#define RETRY_MS 30000u

/* The node had its lock, and has not now: another may have written since. */
static bool is_lost(const struct volume *volume)
{
	const struct policy_port *port = &volume->policy->port;

	return volume->locked && port->lock(port->context, volume->lv_uuid) != POLICY_LOCK_HELD;
}

/* To resume what another node has by now would let loose the writes that wait in the device: they are made fail. */
static void give_to_other(struct volume *volume)
{
	char label[POLICY_LABEL_MAX];

	if (!volume->errors) {
		policy_act(volume, DM_FAIL);
		return;
	}
	policy_log(volume->policy, LOG_CRIT, "%s: this node's lock was given away while it had no quorum, so this "
		   "node was declared fenced. What was waiting to be written here is discarded and its device "
		   "returns errors. End the programs that use it, then: dmsetup remove %s",
		   policy_label(volume, label, sizeof(label)), volume->name);
	policy_drop(volume);
}

static void undo_volume(struct volume *volume)
{
	if (is_lost(volume))
		give_to_other(volume);
	else
		policy_act(volume, volume->errors ? DM_RESTORE : DM_RESUME);
}

/* What needs nothing, or cannot wait. */
static void sort_out(struct policy *policy)
{
	struct volume *volume, *next;

	for (volume = TAILQ_FIRST(&policy->volumes); volume; volume = next) {
		next = TAILQ_NEXT(volume, link);
		switch (volume->state) {
		case VOLUME_PLANNED:
		case VOLUME_REFUSED:
		case VOLUME_FOREIGN:
		case VOLUME_OVERRULED:
			policy_drop(volume);
			break;
		case VOLUME_HUNG:
			/* Interrupted, what waits in it would pass: only if it may. */
			if (volume->interrupted || volume->doing == DM_RESUME || volume->doing == DM_RESTORE ||
			    is_lost(volume))
				break;
			volume->interrupted = true;
			policy->port.dm->interrupt(policy->port.dm->context, volume->ticket);
			break;
		default:
			break;
		}
	}
}

static bool is_left(const struct volume *volume)
{
	return volume->state == VOLUME_DONE || volume->state == VOLUME_KEPT;
}

static struct volume *deepest_left(struct policy *policy)
{
	struct volume *volume, *deepest = NULL;

	TAILQ_FOREACH(volume, &policy->volumes, link)
		if (is_left(volume) && (!deepest || volume->depth > deepest->depth))
			deepest = volume;
	return deepest;
}

/* What is below is resumed first: else the I/O of what is above would wait there. */
static void undo_deepest(struct policy *policy)
{
	struct volume *volume, *next, *deepest;
	unsigned depth;

	while (policy->acting == 0 && (deepest = deepest_left(policy))) {
		depth = deepest->depth;
		for (volume = TAILQ_FIRST(&policy->volumes); volume; volume = next) {
			next = TAILQ_NEXT(volume, link);
			if (is_left(volume) && volume->depth == depth)
				undo_volume(volume);
		}
	}
}

static void finish(struct policy *policy)
{
	uint64_t now_ms = policy->port.now_ms(policy->port.context);

	if (policy->state != POLICY_QUIET && policy->undone > 0)
		policy_log(policy, LOG_NOTICE, "quorum is back: %u LVs are in use again, %" PRIu64 " ms after it came",
			   policy->undone, now_ms - policy->returned_ms);
	/* What was kept is not needed any more. */
	if (policy->state != POLICY_QUIET)
		policy_keep(policy);
	policy->state = POLICY_QUIET;
	policy->given_up = false;
}

void policy_undo(struct policy *policy)
{
	const struct volume *volume;
	bool stuck = false;

	if (!TAILQ_EMPTY(&policy->volumes)) {
		if (!policy->locks) {
			if (policy->state != POLICY_WAITING)
				policy_log(policy, LOG_NOTICE, "quorum is back: LVs stay as they are until belayd "
					   "has the locks of this node again");
			policy->state = POLICY_WAITING;
			return;
		}
		policy->state = POLICY_UNDOING;
		sort_out(policy);
		undo_deepest(policy);
	}
	if (TAILQ_EMPTY(&policy->volumes)) {
		finish(policy);
		return;
	}
	TAILQ_FOREACH(volume, &policy->volumes, link)
		stuck = stuck || volume->state == VOLUME_STUCK;
	if (policy->acting == 0 && stuck)
		policy->port.timer(policy->port.context, RETRY_MS);
}

/* ---- done ---- */

/* It is in use again. */
static void settle(struct volume *volume)
{
	struct policy *policy = volume->policy;
	char label[POLICY_LABEL_MAX];

	if (volume->errors)
		policy_log(policy, LOG_WARNING, "%s works again, but programs have seen errors: check its file system, "
			   "and restart what uses it", policy_label(volume, label, sizeof(label)));
	policy->undone++;
	policy_drop(volume);
}

void policy_undone(struct volume *volume, int result, const char *where)
{
	char label[POLICY_LABEL_MAX];

	switch (result) {
	case 0:
		settle(volume);
		break;
	case -EALREADY:
		/* Somebody was faster. */
	case -ENXIO:
		policy_drop(volume);
		break;
	case -EINPROGRESS:
		volume->state = VOLUME_HUNG;
		policy_log(volume->policy, LOG_WARNING, "cannot yet %s %s: it hangs%s%s, its storage does not answer",
			   dm_action_name(volume->doing), policy_label(volume, label, sizeof(label)),
			   where[0] ? " in the kernel's " : "", where);
		break;
	default:
		/* Quorum is lost once more: the next list will say what it is. */
		if (volume->policy->lost)
			volume->state = VOLUME_KEPT;
		else
			policy_refresh(volume);
	}
}

void policy_refreshed(struct volume *volume, int result, const char *text)
{
	char label[POLICY_LABEL_MAX];

	if (result == 0) {
		settle(volume);
		return;
	}
	volume->state = VOLUME_STUCK;
	if (volume->told)
		return;
	volume->told = true;
	policy_log(volume->policy, LOG_ERR, "quorum is back, but %s still %s: lvm cannot refresh it: %s%s%s. It is "
		   "tried again every %u s; by hand: %s %s", policy_label(volume, label, sizeof(label)),
		   volume->errors ? "returns errors" : "is suspended", strerror(-result), text[0] ? ": " : "", text,
		   RETRY_MS / 1000, volume->errors ? "lvchange --refresh" : "dmsetup resume",
		   volume->errors ? label : volume->name);
}
