/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lock_gl, lock_vg: transient locks, of the connection. All queue in belayd, those of this node as well. */
#include <errno.h>
#include <qb/qblog.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lvmlockd/request.h"

#define GLOBAL_NAME "GL"

/* What lvm makes of it: a shared global lock it can do without, with a warning. */
#define NO_MANAGER_FLAGS "NO_GL_LS,NO_LM"

struct hold *hold_find(struct connection *connection, const char *vg_name)
{
	struct hold *hold;

	TAILQ_FOREACH(hold, connection_holds(connection), link)
		if (vg_name ? strcmp(hold->vg_name, vg_name) == 0 : hold->global)
			return hold;
	return NULL;
}

static void free_hold(struct hold *hold)
{
	TAILQ_REMOVE(connection_holds(hold->connection), hold, link);
	lock_close(hold->lock);
	free(hold);
}

void hold_release_all(struct connection *connection)
{
	struct hold *hold;

	while ((hold = TAILQ_FIRST(connection_holds(connection))))
		free_hold(hold);
}

void hold_lost(struct lvmlockd *lvmlockd)
{
	struct connection *c = NULL;
	struct hold *hold;

	while ((c = server_next(lvmlockd->server, c)))
		TAILQ_FOREACH(hold, connection_holds(c), link)
			if (hold->mode != MODE_UN)
				qb_log(LOG_WARNING, "process %d (%s) works under the %s lock%s%s, which is lost",
				       (int)connection_pid(c), connection_command(c),
				       hold->global ? "global" : "VG", hold->global ? "" : " of ", hold->vg_name);
}

static int new_hold(struct lvmlockd *lvmlockd, struct connection *connection, const char *vg_name,
		    struct hold **ret_hold)
{
	struct hold *hold = calloc(1, sizeof(*hold));
	char name[STATE_NAME_MAX + 8];
	int r;

	if (!hold)
		return -ENOMEM;
	hold->connection = connection;
	hold->global = !vg_name;
	if (vg_name)
		(void)snprintf(hold->vg_name, sizeof(hold->vg_name), "%s", vg_name);
	(void)snprintf(name, sizeof(name), "%s%s", vg_name ? "VG:" : GLOBAL_NAME, vg_name ? vg_name : "");
	r = lock_open(lvmlockd->locks, name, LOCK_TRANSIENT, hold, &hold->lock);
	if (r < 0) {
		free(hold);
		return r;
	}
	TAILQ_INSERT_TAIL(connection_holds(connection), hold, link);
	*ret_hold = hold;
	return 0;
}

/* The answer to a lock that did not come about; the hold is as before, or gone. */
static void refuse(struct hold *hold, int result)
{
	struct connection *c = hold->connection;
	bool global = hold->global;
	int error = request_lock_error(lock_name(hold->lock), result);

	hold->waiting = false;
	if (hold->mode == MODE_UN)
		free_hold(hold);
	if (error != LD_EMANAGER)
		(void)request_lock_result(c, error, NULL);
	else if (global)
		(void)request_lock_result(c, LD_ENOLS, NO_MANAGER_FLAGS);
	else
		(void)request_lock_result(c, LD_ESTARTING, NULL);
}

static void on_locked(void *context, int result)
{
	struct hold *hold = context;

	if (result < 0) {
		/* Without belayd nothing is held, what was there before neither. */
		hold->mode = lock_held(hold->lock);
		refuse(hold, result);
		return;
	}
	hold->waiting = false;
	hold->mode = hold->wanted;
	/* If it cannot be told, the connection is broken, and its end releases. */
	(void)request_lock_result(hold->connection, 0, NULL);
}

static void unlock(struct connection *connection, struct hold *hold)
{
	if (!hold) {
		(void)request_lock_result(connection, -ENOENT, NULL);
		return;
	}
	free_hold(hold);
	(void)request_lock_result(connection, 0, NULL);
}

static void lock(struct lvmlockd *lvmlockd, struct connection *connection, const char *vg_name,
		 enum lock_mode mode)
{
	struct hold *hold = hold_find(connection, vg_name);
	int r = 0;

	if (hold && hold->mode == mode) {
		(void)request_lock_result(connection, -EALREADY, NULL);
		return;
	}
	if (!hold)
		r = new_hold(lvmlockd, connection, vg_name, &hold);
	if (r < 0) {
		(void)request_lock_result(connection, request_lock_error(vg_name ? vg_name : GLOBAL_NAME, r), NULL);
		return;
	}
	hold->waiting = true;
	hold->wanted = mode;
	r = lock_take(hold->lock, mode, lvmlockd->config.lvm_wait_s * 1000, on_locked, hold);
	if (r < 0)
		refuse(hold, r);
}

/* MODE_COUNT: answered. */
static enum lock_mode asked_mode(struct connection *connection, const struct message *message)
{
	enum lock_mode mode = lock_mode_find(message_text(message, "mode"));

	if (mode == MODE_COUNT)
		(void)request_result(connection, -EINVAL);
	return mode;
}

void request_lock_gl(struct lvmlockd *lvmlockd, struct connection *connection, const struct message *message)
{
	enum lock_mode mode = asked_mode(connection, message);

	if (mode == MODE_COUNT)
		return;
	if (mode == MODE_UN)
		unlock(connection, hold_find(connection, NULL));
	else if (lvmlockd->phase == LVMLOCKD_CONNECTING)
		(void)request_lock_result(connection, LD_ENOLS, NO_MANAGER_FLAGS);
	else
		lock(lvmlockd, connection, NULL, mode);
}

void request_lock_vg(struct lvmlockd *lvmlockd, struct connection *connection, const struct message *message)
{
	const char *name = request_vg_name(connection, message);
	const struct vg *vg;
	struct hold *hold;
	enum lock_mode mode;

	if (!name)
		return;
	mode = asked_mode(connection, message);
	if (mode == MODE_COUNT)
		return;
	vg = state_vg(lvmlockd->state, name);
	hold = hold_find(connection, name);
	/* What was locked is unlocked, also after the VG was stopped or removed under the lock. */
	if (mode == MODE_UN && (vg || hold))
		unlock(connection, hold);
	else if (!vg)
		/* lvm asks for local VGs as well; then it goes on without. */
		(void)request_lock_result(connection, LD_ENOLS, NULL);
	else if (vg->killed)
		(void)request_lock_result(connection, LD_EVGKILLED, NULL);
	else if (vg->removed)
		(void)request_lock_result(connection, LD_EREMOVED, NULL);
	else if (vg->starting || lvmlockd->phase == LVMLOCKD_CONNECTING)
		(void)request_lock_result(connection, LD_ESTARTING, NULL);
	else
		lock(lvmlockd, connection, name, mode);
}

/* The strongest that any process of this node has. */
static void answer_query(struct lvmlockd *lvmlockd, struct connection *connection, const char *vg_name)
{
	struct connection *c = NULL;
	enum lock_mode mode = MODE_UN;
	struct answer answer = { .lock_type = "dlm" };

	while ((c = server_next(lvmlockd->server, c))) {
		const struct hold *hold = hold_find(c, vg_name);

		if (hold && hold->mode > mode)
			mode = hold->mode;
	}
	answer.mode = lock_mode_name(mode);
	(void)request_answer(connection, &answer);
}

void request_query_lock_gl(struct lvmlockd *lvmlockd, struct connection *connection,
			   const struct message *message)
{
	(void)message;
	answer_query(lvmlockd, connection, NULL);
}

void request_query_lock_vg(struct lvmlockd *lvmlockd, struct connection *connection,
			   const struct message *message)
{
	const struct vg *vg = request_vg(lvmlockd, connection, message);

	if (vg)
		answer_query(lvmlockd, connection, vg->name);
}
