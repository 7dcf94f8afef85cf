/* SPDX-License-Identifier: GPL-2.0-or-later */
/* VGs: made known, started, stopped, renamed, removed. */
#include <errno.h>
#include <inttypes.h>
#include <qb/qblog.h>
#include <stdlib.h>
#include <string.h>

#include "lvmlockd/policy.h"
#include "lvmlockd/request.h"

/* lvmlockd's number for the kind of VG that we serve; LVM knows no other word for it than dlm. */
#define LM_DLM 2

static bool is_dlm(const struct message *message)
{
	return strcmp(request_text(message, "vg_lock_type", ""), "dlm") == 0;
}

void request_running_lm(struct lvmlockd *lvmlockd, struct connection *connection,
			const struct message *message)
{
	(void)message;
	(void)request_result(connection, lvmlockd->phase == LVMLOCKD_CONNECTING ? -ENOLCK : LM_DLM);
}

void request_init_vg(struct lvmlockd *lvmlockd, struct connection *connection,
		     const struct message *message)
{
	const char *name = request_vg_name(connection, message);
	struct answer answer = { .vg_lock_args = lvmlockd->marker, .lv_lock_args = "none" };

	if (!name)
		return;
	if (!is_dlm(message))
		(void)request_result(connection, -EPROTONOSUPPORT);
	else if (lvmlockd->phase == LVMLOCKD_CONNECTING)
		(void)request_result(connection, LD_EMANAGER);
	else if (state_vg(lvmlockd->state, name))
		(void)request_result(connection, -EEXIST);
	else
		(void)request_answer(connection, &answer);
}

/* ---- start ---- */

static bool has_volumes(const struct vg *vg)
{
	return !TAILQ_EMPTY(&vg->volumes);
}

/* What answers when the lock "started:" has come; the VG may be gone before. */
struct start {
	struct lvmlockd *lvmlockd;
	struct connection *connection;	/* NULL: it is gone */
	struct vg *vg;
};

static void on_gone(void *context)
{
	struct start *start = context;

	start->connection = NULL;
}

/* Who waits until no VG is starting. */
static void answer_start_waits(struct lvmlockd *lvmlockd)
{
	struct connection *c = NULL;
	const struct vg *vg;

	TAILQ_FOREACH(vg, state_vgs(lvmlockd->state), link)
		if (vg->starting)
			return;
	while ((c = server_next(lvmlockd->server, c)))
		if (connection_waits(c) && connection_request(c) &&
		    connection_request(c)->handle == request_start_wait)
			(void)request_result(c, 0);
}

static void on_started(void *context, int result)
{
	struct start *start = context;
	struct lvmlockd *d = start->lvmlockd;
	struct vg *vg = start->vg;
	int r;

	vg->starting = false;
	if (result == 0) {
		r = state_save(d->state);
		if (r < 0) {
			qb_log(LOG_ERR, "VG %s is not started, for that could not be written down: %s. Make "
			       "room where belayd's socket is", vg->name, strerror(-r));
			lock_release(vg->started);
			result = r;
		}
	} else {
		result = request_lock_error(lock_name(vg->started), result);
	}
	if (result == 0)
		qb_log(LOG_INFO, "VG %s is started", vg->name);
	else
		state_remove_vg(d->state, vg);
	if (start->connection)
		(void)request_lock_result(start->connection, result, NULL);
	free(start);
	answer_start_waits(d);
}

/* "1.MINOR.PATCH:CLUSTER.belay": what is behind the colon is ours, the first number is the format. */
bool vg_args_are_ours(const struct lvmlockd *lvmlockd, const char *args)
{
	const char *cluster = strchr(args, ':'), *own = strchr(lvmlockd->marker, ':');

	return strncmp(args, "1.", 2) == 0 && cluster && own && strcmp(cluster, own) == 0 &&
	       args + strspn(args, "0123456789.") == cluster;
}

static void tell_foreign(const struct lvmlockd *lvmlockd, const char *name, const char *args)
{
	qb_log(LOG_ERR, "VG %s is not started: its lock_args are \"%s\", those of VGs locked by belay in this "
	       "cluster are \"%s\". Nodes that lock it otherwise would not see our locks. To convert it, "
	       "deactivate all its LVs on all nodes and stop it everywhere; then, on one node: "
	       "vgchange --lock-type none --lock-opt force %s, and vgchange --lock-type dlm %s",
	       name, args, lvmlockd->marker, name, name);
}

static int begin(struct lvmlockd *lvmlockd, struct connection *connection, const char *name,
		 const struct message *message)
{
	const char *uuid = request_text(message, "vg_uuid", "none");
	struct start *start = calloc(1, sizeof(*start));
	struct vg *vg;
	int r;

	if (!start)
		return -ENOMEM;
	r = state_add_vg(lvmlockd->state, lvmlockd->locks, name, strcmp(uuid, "none") == 0 ? "" : uuid,
			 request_text(message, "vg_lock_args", ""), &vg);
	if (r < 0) {
		free(start);
		return r;
	}
	*start = (struct start){ .lvmlockd = lvmlockd, .connection = connection, .vg = vg };
	vg->starting = true;
	vg->version = (uint32_t)message_number(message, "version", 0);
	r = lock_take(vg->started, MODE_SH, lvmlockd->config.lvm_wait_s * 1000, on_started, start);
	if (r < 0) {
		state_remove_vg(lvmlockd->state, vg);
		free(start);
		return r == -ENOTCONN ? LD_EMANAGER : r;
	}
	connection_on_close(connection, on_gone, start);
	return 0;
}

void request_start_vg(struct lvmlockd *lvmlockd, struct connection *connection,
		      const struct message *message)
{
	const char *name = request_vg_name(connection, message);
	const char *args = request_text(message, "vg_lock_args", "none");
	const char *uuid = request_text(message, "vg_uuid", "none");
	struct vg *vg;
	int r = 0;

	if (!name)
		return;
	vg = state_vg(lvmlockd->state, name);
	if (!is_dlm(message))
		r = -EPROTONOSUPPORT;
	else if (lvmlockd->phase == LVMLOCKD_CONNECTING)
		r = LD_EMANAGER;
	else if (strlen(args) > STATE_ARGS_MAX || !request_is_uuid(uuid))
		r = -EINVAL;
	else if (!vg_args_are_ours(lvmlockd, args))
		r = LD_EARGS;
	/* One that was removed elsewhere may have come again, under the same name. */
	else if (vg && (!vg->removed || has_volumes(vg)) && !vg->starting)
		r = -EEXIST;
	else if (vg && (vg->starting || lock_busy(vg->started)))
		r = LD_ESTARTING;
	if (r == LD_EARGS)
		tell_foreign(lvmlockd, name, args);
	if (r == 0 && vg) {
		lock_release(vg->started);
		state_remove_vg(lvmlockd->state, vg);
	}
	if (r == 0)
		r = begin(lvmlockd, connection, name, message);
	if (r < 0)
		(void)request_lock_result(connection, r, NULL);
}

void request_start_wait(struct lvmlockd *lvmlockd, struct connection *connection,
			const struct message *message)
{
	(void)connection;
	(void)message;
	answer_start_waits(lvmlockd);
}

/* ---- stop ---- */

/* Under way is its start, or the question of busy_vg. */
static bool in_use(const struct vg *vg)
{
	return vg->starting || lock_busy(vg->started) || has_volumes(vg);
}

static void stop(struct lvmlockd *lvmlockd, struct vg *vg)
{
	int r;

	qb_log(LOG_INFO, "VG %s is stopped", vg->name);
	lock_release(vg->started);
	state_remove_vg(lvmlockd->state, vg);
	r = state_save(lvmlockd->state);
	/* It is stopped all the same; a new belay-lvmlockd would take it for started, which harms nothing. */
	if (r < 0)
		qb_log(LOG_WARNING, "that a VG is stopped could not be written down: %s", strerror(-r));
}

void request_stop_vg(struct lvmlockd *lvmlockd, struct connection *connection,
		     const struct message *message)
{
	struct vg *vg = request_vg(lvmlockd, connection, message);

	if (!vg)
		return;
	/* LVs that are active must keep their locks: not even "force" takes them away. */
	if (in_use(vg)) {
		(void)request_result(connection, -EBUSY);
		return;
	}
	stop(lvmlockd, vg);
	(void)request_result(connection, 0);
}

void request_stop_all(struct lvmlockd *lvmlockd, struct connection *connection,
		      const struct message *message)
{
	struct vg *vg, *next;
	int result = 0;

	/* The node is to stop. What is suspended without quorum would keep programs from ending. */
	if (request_has_opt(message, "force") && lvmlockd->policy && policy_give_up(lvmlockd->policy) == 0)
		qb_log(LOG_WARNING, "process %d (%s) gives up the LVs that are suspended without quorum: they fail "
		       "from now on", (int)connection_pid(connection), connection_command(connection));
	for (vg = TAILQ_FIRST(state_vgs(lvmlockd->state)); vg; vg = next) {
		next = TAILQ_NEXT(vg, link);
		if (in_use(vg))
			result = -EBUSY;
		else
			stop(lvmlockd, vg);
	}
	(void)request_result(connection, result);
}

void request_kill_vg(struct lvmlockd *lvmlockd, struct connection *connection,
		     const struct message *message)
{
	struct vg *vg = request_vg(lvmlockd, connection, message);

	if (!vg)
		return;
	vg->killed = true;
	qb_log(LOG_WARNING, "VG %s grants no locks here any more, as lvmlockctl --kill wants it. Deactivate its "
	       "LVs; then lvmlockctl --drop %s", vg->name, vg->name);
	(void)request_result(connection, 0);
}

/* ---- removal and new names ---- */

/*
 * Has another node started the VG? Then our shared lock on its having been started cannot
 * become exclusive.
 */
struct question {
	struct lvmlockd *lvmlockd;
	struct connection *connection;	/* NULL: it is gone */
	struct vg *vg;
	bool rename;			/* if not, it is stopped here, too, so that it gets another name */
	int result;
};

static void on_asker_gone(void *context)
{
	struct question *q = context;

	q->connection = NULL;
}

static void answer_question(struct question *q)
{
	struct connection *c = q->connection;

	if (c) {
		if (q->result == 0 && q->rename) {
			/* An LV may have been locked while belayd was asked. */
			if (has_volumes(q->vg))
				q->result = -EBUSY;
			else
				stop(q->lvmlockd, q->vg);
		}
		(void)request_result(c, q->result);
	}
	free(q);
}

/* Back to shared. */
static void on_shared(void *context, int result)
{
	struct question *q = context;

	if (result < 0)
		qb_log(LOG_WARNING, "VG %s: that it is started here is not told to belayd now (%s): other "
		       "nodes may remove it. vgchange --lock-stop %s, and --lock-start", q->vg->name, strerror(-result),
		       q->vg->name);
	answer_question(q);
}

static void on_exclusive(void *context, int result)
{
	struct question *q = context;

	q->result = result == -EAGAIN ? -EBUSY : request_lock_error(lock_name(q->vg->started), result);
	if (result == 0 && lock_take(q->vg->started, MODE_SH, 0, on_shared, q) == 0)
		return;
	answer_question(q);
}

static void ask_others(struct lvmlockd *lvmlockd, struct connection *connection, struct vg *vg, bool rename)
{
	struct question *q;
	int r = lock_busy(vg->started) ? -EBUSY : 0;

	if (rename && has_volumes(vg))
		r = -EBUSY;
	if (r < 0) {
		(void)request_result(connection, r);
		return;
	}
	q = calloc(1, sizeof(*q));
	if (!q) {
		(void)request_result(connection, -ENOMEM);
		return;
	}
	*q = (struct question){ .lvmlockd = lvmlockd, .connection = connection, .vg = vg, .rename = rename };
	r = lock_take(vg->started, MODE_EX, 0, on_exclusive, q);
	if (r < 0) {
		free(q);
		(void)request_result(connection, request_lock_error(lock_name(vg->started), r));
		return;
	}
	connection_on_close(connection, on_asker_gone, q);
}

void request_busy_vg(struct lvmlockd *lvmlockd, struct connection *connection,
		     const struct message *message)
{
	struct vg *vg = request_vg(lvmlockd, connection, message);

	if (vg)
		ask_others(lvmlockd, connection, vg, false);
}

void request_rename_vg_before(struct lvmlockd *lvmlockd, struct connection *connection,
			      const struct message *message)
{
	struct vg *vg = request_vg(lvmlockd, connection, message);

	if (vg)
		ask_others(lvmlockd, connection, vg, true);
}

void request_free_vg(struct lvmlockd *lvmlockd, struct connection *connection,
		     const struct message *message)
{
	struct vg *vg = request_vg(lvmlockd, connection, message);

	if (!vg)
		return;
	if (in_use(vg)) {
		(void)request_result(connection, -EBUSY);
		return;
	}
	lvmlockd_notify_removed(lvmlockd, vg);
	stop(lvmlockd, vg);
	(void)request_result(connection, 0);
}

void vg_note_removed(struct lvmlockd *lvmlockd, const char *name, const char *uuid)
{
	struct vg *vg = state_vg_is(lvmlockd->state, name, uuid);

	if (!vg)
		return;
	vg->removed = true;
	qb_log(LOG_NOTICE, "VG %s was removed by another node", name);
}

/* ---- versions ---- */

/* Only to be shown by lvmlockctl: lvm keeps no metadata from one command to the next. */
void request_vg_update(struct lvmlockd *lvmlockd, struct connection *connection,
		       const struct message *message)
{
	struct vg *vg = request_vg(lvmlockd, connection, message);
	int64_t version = message_number(message, "version", -1);
	const struct hold *hold;

	if (!vg)
		return;
	hold = hold_find(connection, vg->name);
	if (!hold || version < 0 || version > UINT32_MAX) {
		(void)request_lock_result(connection, hold ? -EINVAL : -ENOENT, NULL);
		return;
	}
	if (hold->mode != MODE_EX) {
		(void)request_lock_result(connection, -EINVAL, NULL);
		return;
	}
	vg->version = (uint32_t)version;
	(void)request_lock_result(connection, 0, NULL);
}
