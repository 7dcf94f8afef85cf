/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What becomes of this node's active LVs when it loses quorum: [lvm] on_quorum_loss.
 *
 *	freeze	they are suspended: nothing is written, programs wait
 *	error	the error target takes their place: nothing is written, programs get EIO
 *	none	nothing; fencing has to end this node
 *
 * Only LVs of VGs that this node has started, and only those that programs use. Whatever is
 * suspended by somebody else is left alone, but watched: when it is resumed
 * while there is no quorum, it is our turn. When quorum is back and belayd has
 * the node's locks again, all that was done is undone; but for an LV whose lock another
 * node has by now: what waits in its queue must not reach the disk, so it gets the
 * error target.
 *
 * What was done is written down before it is done, so that a new belay-lvmlockd can undo it.
 * The text, one line for each device, fields separated by tabs:
 *
 *	belay-frozen 1
 *	suspended|error UUID NAME DEPTH LOCKED LV-UUID BENEATH TABLE
 */
#ifndef BELAY_LVMLOCKD_POLICY_H
#define BELAY_LVMLOCKD_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lvmlockd/dm.h"

/* How often, without quorum, it is looked whether all is still as it was made. */
#define POLICY_CHECK_MS 2000u

struct policy;

enum policy_action {
	POLICY_NONE,
	POLICY_FREEZE,
	POLICY_ERROR,
};
const char *policy_action_name(enum policy_action action);

enum policy_lock {
	POLICY_LOCK_NONE,	/* this node has no lock on it, nor had */
	POLICY_LOCK_HELD,
	POLICY_LOCK_LOST,	/* it had; another node has it now */
};

/* The surroundings. None calls back from inside. */
struct policy_port {
	const struct dm_port *dm;
	bool (*started)(void *context, const char *vg_name, const char *vg_uuid);
	/* As lvm writes uuids. Of what the node holds: as belayd, or the file, says. */
	enum policy_lock (*lock)(void *context, const char *lv_uuid);
	/* Keep @text over a restart, in place of what was kept; size 0: nothing. 0 or a negative errno. */
	int (*save)(void *context, const char *text, size_t size);
	/* lvm lvchange --refresh: makes the device what LVM's metadata say, and resumes it. 0 and done
	 * follows, or a negative errno. */
	int (*refresh)(void *context, const char *vg_name, const char *lv_name,
		       void (*done)(void *data, int result, const char *text), void *data);
	/* policy_on_timer() after @ms, once; in place of the former one. 0: not at all. */
	void (*timer)(void *context, uint32_t ms);
	uint64_t (*now_ms)(void *context);	/* monotonic */
	/* priority: syslog's. One line, no newline. */
	void (*log)(void *context, int priority, const char *text);
	void *context;
};

/*
 * @kept: what a former process saved, or NULL. Begins with quorum and locks unknown: nothing is done before
 * policy_on_quorum(). 0; -ENOMEM; -EBADMSG: @kept is no such text: nothing is undone, a person has to.
 */
int policy_new(enum policy_action action, const struct policy_port *port, const char *kept, size_t size,
	       struct policy **ret_policy);
/* Leaves the devices as they are. NULL is allowed. */
void policy_free(struct policy *policy);

/* @lost_ms: when it was lost, by port->now_ms; used if not @quorate. */
void policy_on_quorum(struct policy *policy, bool quorate, uint64_t lost_ms);
/*
 * All locks of the node are taken again, or refused; or that is no longer so. A loss of quorum
 * makes it so: they have to be asked for anew when it is back.
 */
void policy_on_locks(struct policy *policy, bool valid);
void policy_on_timer(struct policy *policy);

/*
 * The node is to be stopped without quorum: what is suspended gets the error target, so that programs
 * that wait for it can end, and file systems be unmounted; nothing is written.
 * -EALREADY: nothing is suspended by us.
 */
int policy_give_up(struct policy *policy);

enum policy_state {
	POLICY_QUIET,		/* quorum, or nothing known of it; nothing to undo */
	POLICY_APPLYING,
	POLICY_APPLIED,		/* without quorum; watched */
	POLICY_WAITING,		/* quorum is back; waits for the locks */
	POLICY_UNDOING,
};
const char *policy_state_name(enum policy_state state);

struct policy_count {
	unsigned frozen;	/* suspended by us */
	unsigned failed;	/* with the error target by us */
	unsigned hung;		/* of those, where I/O is still under way below */
	unsigned refused;	/* could not be done: I/O passes */
};
struct policy_status {
	enum policy_action action;
	enum policy_state state;
	struct policy_count count;
	uint64_t took_ms;	/* from the last loss until all was done */
};
void policy_status(const struct policy *policy, struct policy_status *ret_status);

/* Is that device as it is because of the policy? "" or "frozen", "failed". @uuid: of device-mapper. */
const char *policy_says(const struct policy *policy, const char *uuid);

#endif
