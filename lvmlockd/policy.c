/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lvmlockd/policy.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "lvmlockd/policy_private.h"

static void advance(struct policy *policy);

/* ---- calls of the port ---- */

static void settle(struct volume *volume, int result, const char *where)
{
	if (volume->doing == DM_RESUME || volume->doing == DM_RESTORE)
		policy_undone(volume, result, where);
	else
		policy_applied(volume, result, where);
}

static void on_acted(void *data, int result, const char *where)
{
	struct volume *volume = data;
	struct policy *policy = volume->policy;

	/* What is hung is not waited for. */
	if (volume->state == VOLUME_ACTING)
		policy->acting--;
	if (result != -EINPROGRESS)
		volume->ticket = NULL;
	settle(volume, result, where);
	advance(policy);
}

void policy_act(struct volume *volume, enum dm_action action)
{
	struct policy *policy = volume->policy;
	struct dm_order order = { .action = action, .table = volume->table, .beneath = volume->beneath };
	int r;

	memcpy(order.uuid, volume->uuid, sizeof(order.uuid));
	memcpy(order.name, volume->name, sizeof(order.name));
	volume->doing = action;
	volume->state = VOLUME_ACTING;
	volume->interrupted = false;
	policy->acting++;
	r = policy->port.dm->act(policy->port.dm->context, &order, on_acted, volume, &volume->ticket);
	if (r < 0) {
		policy->acting--;
		settle(volume, r, "");
	}
}

static void on_refreshed(void *data, int result, const char *text)
{
	struct policy_refresh *call = data;
	struct policy *policy = call->policy;
	struct volume *volume = call->volume;

	free(call);
	if (!policy)
		return;
	volume->refresh = NULL;
	policy->acting--;
	policy_refreshed(volume, result, text);
	advance(policy);
}

void policy_refresh(struct volume *volume)
{
	struct policy *policy = volume->policy;
	struct dm_device device = { .uuid = "" };
	struct dm_lv lv;
	int r = -EINVAL;

	memcpy(device.uuid, volume->uuid, sizeof(device.uuid));
	memcpy(device.name, volume->name, sizeof(device.name));
	volume->refresh = calloc(1, sizeof(*volume->refresh));
	if (!volume->refresh) {
		r = -ENOMEM;
	} else if (dm_lv_of(&device, &lv)) {
		*volume->refresh = (struct policy_refresh){ .policy = policy, .volume = volume };
		r = policy->port.refresh(policy->port.context, lv.vg_name, lv.lv_name, on_refreshed, volume->refresh);
	}
	if (r < 0) {
		free(volume->refresh);
		volume->refresh = NULL;
		policy_refreshed(volume, r, "");
		return;
	}
	volume->state = VOLUME_REFRESHING;
	policy->acting++;
}

static void on_listed(void *data, int result, const struct dm_devices *devices)
{
	static const struct dm_devices none;
	struct policy *policy = data;

	policy->listing = false;
	/* Quorum may have come back meanwhile. */
	if (policy->lost) {
		policy->stale = false;
		if (result == 0 || result == -ENODEV)
			policy_compare(policy, result == 0 ? devices : &none);
		else if (!policy->unreadable)
			policy_log(policy, LOG_ERR, "device-mapper does not say what is active (%s): LVs of this "
				   "node may still be written without quorum; it is asked again every %u s",
				   strerror(-result), POLICY_CHECK_MS / 1000);
		policy->unreadable = result != 0 && result != -ENODEV;
	}
	advance(policy);
}

static void look(struct policy *policy)
{
	int r;

	r = policy->port.dm->list(policy->port.dm->context, policy_wants_errors(policy), on_listed, policy);
	policy->listing = r == 0;
	if (r == 0)
		return;
	if (!policy->unreadable)
		policy_log(policy, LOG_ERR, "device-mapper cannot be asked (%s): LVs of this node may still be "
			   "written without quorum", strerror(-r));
	policy->unreadable = true;
	policy->port.timer(policy->port.context, POLICY_CHECK_MS);
}

/* ---- what comes next ---- */

bool policy_wants_errors(const struct policy *policy)
{
	return policy->action == POLICY_ERROR || policy->given_up;
}

void policy_keep(struct policy *policy)
{
	int r = policy_save(policy);

	if (r < 0)
		policy_log(policy, LOG_ERR, "cannot write down which LVs are suspended (%s): after a restart of "
			   "belay-lvmlockd they must be resumed by hand", strerror(-r));
}

static void advance(struct policy *policy)
{
	if (!policy->known || policy->listing || policy->acting > 0)
		return;
	if (!policy->lost)
		policy_undo(policy);
	else if (policy->action == POLICY_NONE)
		policy->state = POLICY_QUIET;
	else if (policy->stale)
		look(policy);
	else
		policy_apply(policy);
}

/* ---- the interface ---- */

int policy_new(enum policy_action action, const struct policy_port *port, const char *kept, size_t size,
	       struct policy **ret_policy)
{
	struct policy *policy = calloc(1, sizeof(*policy));
	int r;

	if (!policy)
		return -ENOMEM;
	policy->action = action;
	policy->port = *port;
	TAILQ_INIT(&policy->volumes);
	r = policy_load(policy, kept, kept ? size : 0);
	if (r < 0) {
		policy_free(policy);
		return r;
	}
	*ret_policy = policy;
	return 0;
}

void policy_free(struct policy *policy)
{
	struct volume *volume;

	if (!policy)
		return;
	if (policy->listing)
		policy->port.dm->unlist(policy->port.dm->context, policy);
	while ((volume = TAILQ_FIRST(&policy->volumes))) {
		if (volume->ticket)
			policy->port.dm->forget(policy->port.dm->context, volume->ticket);
		if (volume->refresh)
			volume->refresh->policy = NULL;
		policy_drop(volume);
	}
	free(policy);
}

static void begin_loss(struct policy *policy, uint64_t lost_ms)
{
	policy->lost_ms = lost_ms;
	policy->stale = true;
	/* The others may fence this node, and give its locks away: what was known of them counts no more. */
	policy->locks = false;
	policy->state = POLICY_APPLYING;
	policy->took_ms = 0;
	switch (policy->action) {
	case POLICY_FREEZE:
		policy_log(policy, LOG_WARNING, "quorum is lost: this node's active LVs are suspended until it is back "
			   "([lvm] on_quorum_loss = freeze)");
		break;
	case POLICY_ERROR:
		policy_log(policy, LOG_WARNING, "quorum is lost: this node's active LVs return errors until it is back "
			   "([lvm] on_quorum_loss = error)");
		break;
	default:
		policy_log(policy, LOG_WARNING, "quorum is lost: this node's active LVs stay as they are, and may be "
			   "written until it is fenced ([lvm] on_quorum_loss = none)");
	}
}

void policy_on_quorum(struct policy *policy, bool quorate, uint64_t lost_ms)
{
	if (policy->known && policy->lost == !quorate)
		return;
	policy->known = true;
	policy->lost = !quorate;
	policy->port.timer(policy->port.context, 0);
	if (policy->lost) {
		begin_loss(policy, lost_ms);
	} else {
		policy->returned_ms = policy->port.now_ms(policy->port.context);
		policy->undone = 0;
	}
	advance(policy);
}

void policy_on_locks(struct policy *policy, bool valid)
{
	policy->locks = valid;
	advance(policy);
}

void policy_on_timer(struct policy *policy)
{
	struct volume *volume;

	policy->stale = policy->lost;
	if (!policy->lost)
		TAILQ_FOREACH(volume, &policy->volumes, link)
			if (volume->state == VOLUME_STUCK)
				volume->state = VOLUME_KEPT;
	advance(policy);
}

int policy_give_up(struct policy *policy)
{
	struct policy_status status;

	policy_status(policy, &status);
	if (!policy->lost || status.count.frozen == 0)
		return -EALREADY;
	policy_log(policy, LOG_WARNING, "this node is to be stopped without quorum: %u suspended LVs return "
		   "errors from now on", status.count.frozen);
	policy->given_up = true;
	policy->stale = true;
	advance(policy);
	return 0;
}

/* ---- status ---- */

static bool is_made(const struct volume *volume)
{
	return volume->state == VOLUME_DONE || volume->state == VOLUME_HUNG || volume->state == VOLUME_STUCK;
}

void policy_status(const struct policy *policy, struct policy_status *ret_status)
{
	struct policy_status status = { .action = policy->action, .state = policy->state, .took_ms = policy->took_ms };
	const struct volume *volume;

	TAILQ_FOREACH(volume, &policy->volumes, link) {
		if (is_made(volume) && volume->errors)
			status.count.failed++;
		else if (is_made(volume))
			status.count.frozen++;
		if (volume->state == VOLUME_HUNG)
			status.count.hung++;
		if (volume->state == VOLUME_REFUSED || volume->state == VOLUME_OVERRULED)
			status.count.refused++;
	}
	*ret_status = status;
}

const char *policy_says(const struct policy *policy, const char *uuid)
{
	const struct volume *volume = policy_find(policy, uuid);

	if (!volume || !is_made(volume))
		return "";
	return volume->errors ? "failed" : "frozen";
}
