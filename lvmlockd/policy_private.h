/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What policy*.c share. */
#ifndef BELAY_LVMLOCKD_POLICY_PRIVATE_H
#define BELAY_LVMLOCKD_POLICY_PRIVATE_H

#include <sys/queue.h>

#include "lvmlockd/policy.h"

enum volume_state {
	VOLUME_PLANNED,		/* written down, and to be acted on */
	VOLUME_ACTING,		/* the port is at it */
	VOLUME_HUNG,		/* it is, and its deadline has passed */
	VOLUME_DONE,		/* it is as we made it: suspended, or with the error target */
	VOLUME_KEPT,		/* a former process meant to; not looked at yet */
	VOLUME_REFUSED,		/* could not be done; tried again at the next check */
	VOLUME_FOREIGN,		/* suspended by somebody else; watched */
	VOLUME_OVERRULED,	/* somebody has resumed it again and again: left alone */
	VOLUME_REFRESHING,	/* lvm is at it */
	VOLUME_STUCK,		/* could not be undone; a person has been told, and it is tried again */
	VOLUME_STATE_COUNT,
};

struct volume {
	struct policy *policy;
	char uuid[DM_TEXT_MAX + 1];
	char name[DM_TEXT_MAX + 1];
	char lv_uuid[DM_LVM_UUID_MAX + 1];	/* whose lock covers it; "" if it is not known */
	bool locked;				/* it did, when this was written down */
	bool errors;				/* by the error target, not suspended */
	unsigned depth;
	char *table, *beneath;			/* or NULL */
	enum volume_state state;
	enum dm_action doing;			/* ACTING, HUNG */
	void *ticket;				/* ACTING, HUNG */
	struct policy_refresh *refresh;		/* REFRESHING */
	bool interrupted;			/* HUNG: it was killed */
	bool told;				/* REFUSED, STUCK: it was said */
	unsigned resumed;			/* how often by others */
	TAILQ_ENTRY(volume) link;
};
TAILQ_HEAD(volume_list, volume);

/* lvm under way; the policy may have gone (NULL) when it ends. */
struct policy_refresh {
	struct policy *policy;
	struct volume *volume;
};

struct policy {
	enum policy_action action;
	struct policy_port port;
	struct volume_list volumes;
	enum policy_state state;
	bool lost, known;		/* quorum; whether anything is known of it */
	bool locks;			/* they are valid */
	bool given_up;			/* errors instead of waiting, until quorum is back */
	bool stale;			/* the list has to be seen before it is known what to do */
	bool unreadable;		/* device-mapper could not be asked; it was said */
	bool listing;			/* under way */
	unsigned acting;		/* volumes ACTING or REFRESHING */
	uint64_t lost_ms, returned_ms, took_ms;
	unsigned undone;
};

/* ---- policy_text.c ---- */

struct volume *policy_add(struct policy *policy, const char *uuid, const char *name);
void policy_drop(struct volume *volume);
struct volume *policy_find(const struct policy *policy, const char *uuid);
/* Write down what is meant to be, or is, as the policy wants it. 0 or a negative errno. */
int policy_save(struct policy *policy);
/* 0, -ENOMEM, -EBADMSG. */
int policy_load(struct policy *policy, const char *text, size_t size);
/* "vg/lv", or the device's name if it is not LVM's. */
const char *policy_label(const struct volume *volume, char *buffer, size_t size);
#define POLICY_LABEL_MAX (2 * DM_LVM_NAME_MAX + 2)
__attribute__((format(printf, 3, 4)))
void policy_log(const struct policy *policy, int priority, const char *format, ...);

/* ---- policy.c ---- */

/* Order @action for the volume. */
void policy_act(struct volume *volume, enum dm_action action);
/* Have lvm put it right. */
void policy_refresh(struct volume *volume);
void policy_keep(struct policy *policy);
/* Does it take errors, for what is done from now on? */
bool policy_wants_errors(const struct policy *policy);

/* ---- policy_apply.c: without quorum ---- */

/* What the list says of each volume, and which are new. */
void policy_compare(struct policy *policy, const struct dm_devices *devices);
/* Order what can be ordered next; nothing is under way. */
void policy_apply(struct policy *policy);
/* @result of DM_SUSPEND, DM_ERROR, DM_FAIL. May drop the volume. */
void policy_applied(struct volume *volume, int result, const char *where);

/* ---- policy_undo.c: with quorum ---- */

/* Order what can be undone next; nothing is under way. */
void policy_undo(struct policy *policy);
/* @result of DM_RESUME, DM_RESTORE. May drop the volume. */
void policy_undone(struct volume *volume, int result, const char *where);
void policy_refreshed(struct volume *volume, int result, const char *text);

#endif
