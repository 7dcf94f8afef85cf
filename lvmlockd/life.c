/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lvmlockd/life.h"

#include <errno.h>
#include <qb/qblog.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/clock.h"
#include "daemon/notify.h"
#include "lvmlockd/about.h"
#include "lvmlockd/agent.h"
#include "lvmlockd/command.h"
#include "lvmlockd/group.h"
#include "lvmlockd/guard.h"
#include "lvmlockd/request.h"
#include "lvmlockd/volume.h"
#include "lvmlockd/worker.h"

/* How often it is told who keeps belayd from being connected to, in attempts of a second each. */
#define TELL_EACH 10u

/* How long nodes that run no belay-lvmlockd are waited for. */
#define GRACE_US 5000000u

/* ---- belayd comes and goes ---- */

/* What is no part of LVM's lock_args is left out of the cluster's name. */
static void make_marker(struct lvmlockd *d, const char *cluster)
{
	char name[STATE_ARGS_MAX + 1];
	size_t size = 0;

	for (; *cluster && size < 64; cluster++)
		name[size++] = strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+", *cluster) ?
			       *cluster : '_';
	name[size] = '\0';
	(void)snprintf(d->marker, sizeof(d->marker), "1.0.0:%.64s.belay", name);
}

static void say(struct lvmlockd *d)
{
	const struct ask_member self = { .adopted = d->phase == LVMLOCKD_SERVING };

	if (d->command)
		command_say(d->command, &self);
}

void life_serve(struct lvmlockd *d)
{
	d->phase = LVMLOCKD_SERVING;
	d->serving_since_us = clock_now_us();
	notify("STATUS=serving");
	say(d);
	guard_locks(d->guard, true);
}

static void on_connected(void *context, const char *cluster, uint32_t node)
{
	struct lvmlockd *d = context;

	make_marker(d, cluster);
	d->standalone = locks_standalone(d->locks);
	d->phase = LVMLOCKD_ADOPTING;
	if (!d->standalone)
		guard_watch(d->guard);
	qb_log(LOG_NOTICE, "belayd is there: node %u of cluster %s; lock_args of its VGs are %s", node, cluster,
	       d->marker);
	/* Only now this node's id is known. */
	if (!d->command && command_open(d, dm_port(d->dm), &d->command) < 0)
		qb_log(LOG_ERR, "out of memory: commands for several nodes cannot be run");
	say(d);
}

static void on_regained(void *context)
{
	adoption_begin(context);
}

static void on_lost(void *context)
{
	struct lvmlockd *d = context;

	d->phase = LVMLOCKD_CONNECTING;
	d->all_adopted = false;
	qb_log(LOG_ERR, "the connection to belayd is lost: nothing can be locked until it is back");
	notify("STATUS=waiting for belayd");
	adoption_stop(d);
	hold_lost(d);
	say(d);
	guard_locks(d->guard, false);
}

static void on_refused(void *context, struct lock *lock, int result)
{
	struct lvmlockd *d = context;
	struct volume *volume;
	struct vg *vg;

	TAILQ_FOREACH(vg, state_vgs(d->state), link) {
		if (vg->started == lock)
			qb_log(LOG_ERR, "VG %s: belayd does not take again that it is started here (%s): other nodes "
			       "may have removed it, see vgs. It is asked once more", vg->name, strerror(-result));
		TAILQ_FOREACH(volume, &vg->volumes, link) {
			if (volume->lock != lock || volume->mode == MODE_UN)
				continue;
			volume->lost = true;
			qb_log(LOG_ALERT, "LV %s/%s (%s): this node has lost its lock, which it had in mode %s "
			       "(%s). If the LV is active here, two nodes may write it: deactivate it",
			       vg->name, volume->name, volume->uuid, lock_mode_name(volume->mode), strerror(-result));
		}
	}
}

/*
 * As long as we do not connect again after its crash, belayd keeps the locks from others that
 * its former clients had. So commands that work under locks of VGs may end first.
 */
static bool may_connect(void *context)
{
	struct lvmlockd *d = context;
	struct connection *c = NULL;
	const struct hold *hold;

	while ((c = server_next(d->server, c))) {
		TAILQ_FOREACH(hold, connection_holds(c), link) {
			if (hold->mode == MODE_UN)
				continue;
			if (d->waited++ % TELL_EACH == 0)
				qb_log(LOG_WARNING, "waiting for process %d (%s), which works under a lock that is "
				       "lost, to end: until then nothing can be locked here. If it hangs, end it",
				       (int)connection_pid(c), connection_command(c));
			return false;
		}
	}
	d->waited = 0;
	return true;
}

/* ---- for the others ---- */

/*
 * After a restart of all belayds at once, a node that has LVs active may be some moments later than this
 * one. Those that are members of belayd's group and not of ours are waited for that long.
 */
static bool somebody_may_come(struct lvmlockd *d)
{
	struct about about;

	if (d->standalone || clock_now_us() - d->serving_since_us >= GRACE_US)
		return false;
	if (!locks_belay(d->locks) || about_belayd(locks_belay(d->locks), &about) < 0)
		return true;
	for (size_t i = 0; i < about.member_count; i++)
		if (!lvm_group_has(d->group, about.member[i]))
			return true;
	return false;
}

/*
 * Once all nodes have told belayd what they have, it is in the tables of all, and stays there when one
 * of them is gone; until our belayd is, which may then begin with an empty table.
 */
bool lvmlockd_may_lock(struct lvmlockd *d)
{
	if (!d->all_adopted)
		d->all_adopted = d->phase == LVMLOCKD_SERVING && d->group &&
				 lvm_group_all_adopted(d->group) && !somebody_may_come(d);
	return d->all_adopted;
}

void lvmlockd_note_lock(struct lvmlockd *d, const struct volume *volume)
{
	if (d->agent)
		agent_note_lock(d->agent, volume->vg->name, volume->mode == MODE_UN ? ASK_UN : ASK_SH);
}

void lvmlockd_notify_removed(struct lvmlockd *d, const struct vg *vg)
{
	if (d->group && lvm_group_notify(d->group, ASK_VG_REMOVED, vg->name, vg->uuid) < 0)
		qb_log(LOG_ERR, "the other nodes are not told that VG %s is removed: vgchange --lock-stop %s, "
		       "or lvmlockctl --drop %s, where it is started", vg->name, vg->name, vg->name);
}

void lvmlockd_stop(struct lvmlockd *d)
{
	qb_loop_stop(d->loop);
}

/* ---- start and end ---- */

static int32_t on_signal(int32_t signal, void *data)
{
	struct lvmlockd *d = data;

	qb_log(LOG_NOTICE, "ends because of signal %d: what is active stays locked", signal);
	lvmlockd_stop(d);
	return 0;
}

/* Beside belayd's socket, so that both go with the same tmpfs. */
static int open_state(struct lvmlockd *d)
{
	const char *socket = d->config.socket;
	char directory[sizeof(d->config.socket)], path[sizeof(directory) + 16];
	int r;

	(void)snprintf(directory, sizeof(directory), "%.*s", (int)(strrchr(socket, '/') - socket), socket);
	(void)snprintf(path, sizeof(path), "%s/volumes", directory);
	(void)mkdir(directory, 0755);
	r = state_new(path, &d->state);
	if (r == 0)
		r = state_load(d->state, d->locks);
	if (r < 0)
		qb_log(LOG_ERR, "cannot start: %s, which says what this node has locked, cannot be used (%s). If "
		       "no LV of a shared VG is active here, remove it", path, strerror(-r));
	return r;
}

static int prepare_volumes(struct lvmlockd *d)
{
	struct volume *volume;
	struct vg *vg;
	int r;

	TAILQ_FOREACH(vg, state_vgs(d->state), link) {
		TAILQ_FOREACH(volume, &vg->volumes, link) {
			r = volume_prepare(d, volume);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

int life_begin(struct lvmlockd *d)
{
	const struct locks_handlers handlers = {
		.on_connected = on_connected, .on_lost = on_lost, .on_refused = on_refused,
		.on_regained = on_regained, .may_connect = may_connect, .context = d,
	};
	qb_loop_signal_handle term, interrupt;
	int r = -ENOMEM;

	d->loop = qb_loop_create();
	if (!d->loop || qb_loop_signal_add(d->loop, QB_LOOP_HIGH, SIGTERM, d, on_signal, &term) < 0 ||
	    qb_loop_signal_add(d->loop, QB_LOOP_HIGH, SIGINT, d, on_signal, &interrupt) < 0)
		goto fail;
	r = worker_new(d->loop, &d->worker);
	if (r == 0)
		r = dm_open(d->worker, DM_DEADLINE_MS, &d->dm);
	if (r < 0)
		goto fail;
	r = locks_new(d->loop, d->config.socket, &handlers, &d->locks);
	if (r < 0)
		goto fail;
	/* First of all: who has no right to serve must not touch the state. */
	r = server_open(d, &d->server);
	if (r < 0)
		return r;
	r = open_state(d);
	if (r < 0)
		return r;
	r = guard_open(d, &d->guard);
	if (r < 0)
		return r;
	r = prepare_volumes(d);
	if (r == 0)
		return 0;

fail:
	qb_log(LOG_ERR, "cannot start: %s", strerror(-r));
	return r;
}

/*
 * A node that ends in order holds nothing that others would have to wait for, unless LVs of it are
 * locked: what it had started is in the file, and locked again by the next one.
 */
static void release_idle(struct lvmlockd *d)
{
	struct vg *vg;

	TAILQ_FOREACH(vg, state_vgs(d->state), link)
		if (TAILQ_EMPTY(&vg->volumes) && !lock_busy(vg->started))
			lock_release(vg->started);
}

void life_end(struct lvmlockd *d)
{
	server_close(d->server);
	command_close(d->command);
	if (d->locks)
		adoption_stop(d);
	guard_close(d->guard);
	if (d->state) {
		release_idle(d);
		volume_done_all(d);
		state_free(d->state);
	}
	locks_free(d->locks);
	dm_close(d->dm);
	worker_free(d->worker);
	if (d->loop)
		qb_loop_destroy(d->loop);
}
