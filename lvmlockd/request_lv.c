/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Locks of LVs. The persistent lock is the node's, and so is the one in belayd, which is
 * as strong as the persistent and all transient locks of processes of this node together.
 *
 * What is asked about one LV is done one after the other, each as a struct task: some
 * wait for belayd.
 */
#include <assert.h>
#include <errno.h>
#include <qb/qblog.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lvmlockd/request.h"
#include "lvmlockd/volume.h"

struct task {
	struct volume *volume;
	uint64_t ticket;		/* 0: of nobody who withdraws */
	struct connection *connection;	/* NULL: it is gone, or the task is not of one */
	volume_done done;
	void *context;
	bool persistent;
	bool asked;			/* belayd is asked */
	bool withdrawn;			/* undo what comes of it */
	enum lock_mode mode;
	uint32_t wait_ms;
	TAILQ_ENTRY(task) link;
};

/* A transient lock of a process. */
struct client {
	struct connection *connection;
	enum lock_mode mode;
	TAILQ_ENTRY(client) link;
};

struct volume_clients {
	struct lvmlockd *lvmlockd;
	TAILQ_HEAD(, client) clients;
	TAILQ_HEAD(, task) tasks;	/* the first is being done */
	bool lowering;			/* belayd is being told that less is needed */
	bool running;			/* in run(): do not enter it again */
};

static void run(struct volume *volume);

/* ---- who has it ---- */

static struct client *find_client(const struct volume *volume, const struct connection *connection)
{
	struct client *client;

	TAILQ_FOREACH(client, &volume->clients->clients, link)
		if (client->connection == connection)
			return client;
	return NULL;
}

/* The strongest transient lock, but for one process's. */
static enum lock_mode clients_mode(const struct volume *volume, const struct connection *but)
{
	enum lock_mode mode = MODE_UN;
	const struct client *client;

	TAILQ_FOREACH(client, &volume->clients->clients, link)
		if (client->connection != but && client->mode > mode)
			mode = client->mode;
	return mode;
}

static enum lock_mode needed_mode(const struct volume *volume)
{
	enum lock_mode mode = clients_mode(volume, NULL);

	return volume->mode > mode ? volume->mode : mode;
}

static bool conflicts(enum lock_mode a, enum lock_mode b)
{
	return a != MODE_UN && b != MODE_UN && (a == MODE_EX || b == MODE_EX);
}

int volume_prepare(struct lvmlockd *lvmlockd, struct volume *volume)
{
	volume->clients = calloc(1, sizeof(*volume->clients));
	if (!volume->clients)
		return -ENOMEM;
	volume->clients->lvmlockd = lvmlockd;
	TAILQ_INIT(&volume->clients->clients);
	TAILQ_INIT(&volume->clients->tasks);
	return 0;
}

static int new_volume(struct lvmlockd *lvmlockd, struct vg *vg, const char *uuid, const char *name,
		      struct volume **ret_volume)
{
	struct volume *volume;
	int r = state_add_volume(lvmlockd->state, lvmlockd->locks, vg, uuid, name, &volume);

	if (r < 0)
		return r;
	r = volume_prepare(lvmlockd, volume);
	if (r < 0) {
		state_remove_volume(volume);
		return r;
	}
	*ret_volume = volume;
	return 0;
}

static void forget_volume(struct volume *volume)
{
	assert(TAILQ_EMPTY(&volume->clients->tasks) && TAILQ_EMPTY(&volume->clients->clients));
	free(volume->clients);
	state_remove_volume(volume);
}

/* ---- what is written down ---- */

/* 0, or a negative errno with all as it was. */
static int set_persistent(struct volume *volume, enum lock_mode mode, const struct connection *by)
{
	struct lvmlockd *lvmlockd = volume->clients->lvmlockd;
	enum lock_mode before = volume->mode;
	int64_t since = volume->since;
	int r;

	volume->mode = mode;
	volume->since = mode == MODE_UN ? 0 : (int64_t)time(NULL);
	process_name(by ? connection_pid(by) : 0, volume->by);
	r = state_save(lvmlockd->state);
	if (r < 0) {
		volume->mode = before;
		volume->since = since;
		qb_log(LOG_ERR, "the lock of LV %s/%s is not changed, for that could not be written down: %s. "
		       "Make room where belayd's socket is", volume->vg->name, volume->name, strerror(-r));
		return r;
	}
	volume->lost = false;
	lvmlockd_note_lock(lvmlockd, volume);
	return 0;
}

/* ---- tasks ---- */

static void end_task(struct task *task, int result, bool is_new)
{
	TAILQ_REMOVE(&task->volume->clients->tasks, task, link);
	/* Locked before lvm was run for it: now lvm has come to it. */
	if (task->connection && task->persistent && result == -EALREADY)
		lvmlockd_note_lock(task->volume->clients->lvmlockd, task->volume);
	if (task->done && !task->withdrawn)
		task->done(task->context, result == -EALREADY && !task->connection ? 0 : result, is_new);
	free(task);
}

static int unlock_persistent(struct task *task)
{
	struct volume *volume = task->volume;

	if (volume->mode == MODE_UN)
		return -ENOENT;
	return set_persistent(volume, MODE_UN, NULL);
}

static int unlock_transient(struct task *task)
{
	struct client *client = find_client(task->volume, task->connection);

	if (!client)
		return -ENOENT;
	TAILQ_REMOVE(&task->volume->clients->clients, client, link);
	free(client);
	return 0;
}

/*
 * What can be said without asking belayd: 1, belayd has to be asked; 0 or negative: the answer.
 */
static int judge(const struct task *task)
{
	const struct volume *volume = task->volume;
	const struct client *own = task->persistent ? NULL : find_client(volume, task->connection);
	enum lock_mode others = clients_mode(volume, task->connection);

	if (task->persistent) {
		if (volume->mode == task->mode && !volume->lost)
			return -EALREADY;
	} else {
		if (own && own->mode == task->mode)
			return -EALREADY;
		/* Whoever works on an LV that is active here is covered by the node's lock ... */
		if (volume->mode >= task->mode && !volume->lost)
			return 0;
		/* ... but changes need more than a shared one: lvm knows what to do about that. */
		if (volume->mode == MODE_SH)
			return -EEXIST;
	}
	return conflicts(others, task->mode) ? -EAGAIN : 1;
}

/* The lock is there: note whose it is. */
static int take_note(struct task *task, bool *ret_new)
{
	struct volume *volume = task->volume;
	struct client *client;

	if (task->persistent) {
		*ret_new = volume->mode == MODE_UN;
		return set_persistent(volume, task->mode, task->connection);
	}
	client = find_client(volume, task->connection);
	if (!client) {
		client = calloc(1, sizeof(*client));
		if (!client)
			return -ENOMEM;
		client->connection = task->connection;
		TAILQ_INSERT_TAIL(&volume->clients->clients, client, link);
	}
	client->mode = task->mode;
	*ret_new = true;
	return 0;
}

static void on_taken(void *context, int result)
{
	struct task *task = context;
	struct volume *volume = task->volume;
	bool is_new = false;

	task->asked = false;
	result = request_lock_error(lock_name(volume->lock), result);
	if (result == 0 && !task->withdrawn)
		result = take_note(task, &is_new);
	/* Who is told may unlock it at once, after which the volume would be gone. */
	volume->clients->running = true;
	end_task(task, result, is_new);
	volume->clients->running = false;
	run(volume);
}

static void on_lowered(void *context, int result)
{
	struct volume *volume = context;

	(void)result;
	volume->clients->lowering = false;
	run(volume);
}

/* Nothing is under way: belayd is told if it holds more than is needed. True: that is under way. */
static bool lower(struct volume *volume)
{
	enum lock_mode needed = needed_mode(volume), held = lock_held(volume->lock);

	if (held <= needed)
		return false;
	if (needed == MODE_UN) {
		lock_release(volume->lock);
		return false;
	}
	volume->clients->lowering = lock_take(volume->lock, needed, 0, on_lowered, volume) == 0;
	return volume->clients->lowering;
}

/* False: belayd is asked, and the task goes on when it has answered. */
static bool do_task(struct task *task)
{
	struct volume *volume = task->volume;
	int r;

	if (task->withdrawn) {
		r = -ECANCELED;
	} else if (task->mode == MODE_UN) {
		r = task->persistent ? unlock_persistent(task) : unlock_transient(task);
		/* Before it is told, so that who is told finds it so. */
		(void)lower(volume);
	} else {
		r = judge(task);
	}
	if (r == 1) {
		r = lock_take(volume->lock, task->mode, task->wait_ms, on_taken, task);
		if (r == 0) {
			task->asked = true;
			return false;
		}
		r = request_lock_error(lock_name(volume->lock), r);
	}
	end_task(task, r, false);
	return true;
}

/*
 * Go on with what is asked about the LV, until that waits for belayd, or nothing is left. The
 * volume may be gone afterwards.
 */
static void run(struct volume *volume)
{
	struct volume_clients *clients = volume->clients;
	struct task *task;

	if (clients->running)
		return;
	clients->running = true;
	while (!clients->lowering && !lock_busy(volume->lock)) {
		task = TAILQ_FIRST(&clients->tasks);
		if (task ? !do_task(task) : !lower(volume))
			break;
	}
	clients->running = false;
	if (TAILQ_EMPTY(&clients->tasks) && TAILQ_EMPTY(&clients->clients) && volume->mode == MODE_UN &&
	    !clients->lowering && !lock_busy(volume->lock))
		forget_volume(volume);
}

static struct task *add_task(struct volume *volume, const struct task *model)
{
	struct task *task = malloc(sizeof(*task));

	if (!task)
		return NULL;
	*task = *model;
	task->volume = volume;
	TAILQ_INSERT_TAIL(&volume->clients->tasks, task, link);
	return task;
}

/* Find or make the volume of a request or a caller. */
static int get_volume(struct lvmlockd *lvmlockd, const char *vg_name, const char *uuid, const char *name,
		      struct volume **ret_volume)
{
	struct vg *vg = state_vg(lvmlockd->state, vg_name);
	struct volume *volume = state_volume(lvmlockd->state, uuid);

	if (!vg)
		return LD_ENOLS;
	if (volume) {
		if (strlen(name) <= STATE_NAME_MAX && name[0] != '\0')
			(void)strcpy(volume->name, name);
		*ret_volume = volume;
		return 0;
	}
	return new_volume(lvmlockd, vg, uuid, name, ret_volume);
}

/* ---- requests ---- */

/* What cannot be sent is as if it had not been granted: lvm would not activate the LV, nor unlock it. */
static void on_request_done(void *context, int result, bool is_new)
{
	struct connection *c = context;
	const struct message *message = connection_message(c);
	bool persistent = request_has_opt(message, "persistent");
	const char *uuid = request_text(message, "lv_uuid", "");

	if (result == 0 && persistent && strcmp(request_text(message, "mode", ""), "un") == 0)
		connection_set_unlocked(c, uuid);
	if (!request_lock_result(c, result, result == -EEXIST ? "SH_EXISTS" : NULL) && result == 0 &&
	    is_new && persistent)
		volume_unlock(connection_lvmlockd(c), uuid);
}

/* NULL: answered. */
static const char *asked_uuid(struct connection *connection, const struct message *message)
{
	const char *uuid = request_text(message, "lv_uuid", "");

	if (request_is_uuid(uuid))
		return uuid;
	(void)request_result(connection, -EINVAL);
	return NULL;
}

/* 0: it may be locked now. */
static int may_lock(struct lvmlockd *lvmlockd, const struct vg *vg)
{
	if (vg->killed)
		return LD_EVGKILLED;
	if (vg->removed)
		return LD_EREMOVED;
	if (vg->starting || !lvmlockd_may_lock(lvmlockd))
		return LD_ESTARTING;
	return 0;
}

void request_lock_lv(struct lvmlockd *lvmlockd, struct connection *connection, const struct message *message)
{
	const struct vg *vg = request_vg(lvmlockd, connection, message);
	struct task model = {
		.connection = connection, .done = on_request_done, .context = connection,
		.mode = lock_mode_find(message_text(message, "mode")),
		.persistent = request_has_opt(message, "persistent"),
	};
	const char *name = request_text(message, "lv_name", "");
	struct volume *volume;
	const char *uuid;
	int r = 0;

	if (!vg)
		return;
	uuid = asked_uuid(connection, message);
	if (!uuid)
		return;
	model.wait_ms = 1000 * (model.persistent && request_has_opt(message, "wait") ? lvmlockd->config.lvm_wait_s :
				lvmlockd->config.lvm_lv_wait_s);
	if (model.mode == MODE_COUNT || (name[0] != '\0' && !request_is_name(name)))
		r = -EINVAL;
	else if (model.mode != MODE_UN)
		r = may_lock(lvmlockd, vg);
	else if (!state_volume(lvmlockd->state, uuid))
		r = -ENOENT;
	if (r == 0)
		r = get_volume(lvmlockd, vg->name, uuid, name, &volume);
	if (r == 0 && !add_task(volume, &model))
		r = -ENOMEM;
	if (r < 0)
		(void)request_lock_result(connection, r, NULL);
	else
		run(volume);
}

void request_query_lock_lv(struct lvmlockd *lvmlockd, struct connection *connection,
			   const struct message *message)
{
	const struct vg *vg = request_vg(lvmlockd, connection, message);
	const char *uuid = vg ? asked_uuid(connection, message) : NULL;
	const struct volume *volume;
	struct answer answer = { .lock_type = "dlm", .result = -ENOENT, .mode = "un" };
	enum lock_mode mode = MODE_UN;

	if (!uuid)
		return;
	volume = state_volume(lvmlockd->state, uuid);
	if (volume)
		mode = volume->lost ? clients_mode(volume, NULL) : needed_mode(volume);
	if (mode != MODE_UN) {
		answer.result = 0;
		answer.mode = lock_mode_name(mode);
	}
	(void)request_answer(connection, &answer);
}

/* Nothing has to be made where a lock is to be. */
void request_init_lv(struct lvmlockd *lvmlockd, struct connection *connection, const struct message *message)
{
	const struct answer answer = { .lv_lock_args = "dlm" };

	if (request_vg(lvmlockd, connection, message))
		(void)request_answer(connection, &answer);
}

/* The LV is removed; lvremove has unlocked it just before, and an LV without locks is not kept here. */
void request_free_lv(struct lvmlockd *lvmlockd, struct connection *connection, const struct message *message)
{
	struct task model = {
		.connection = connection, .done = on_request_done, .context = connection,
		.mode = MODE_UN, .persistent = true,
	};
	const struct vg *vg = request_vg(lvmlockd, connection, message);
	const char *uuid = vg ? asked_uuid(connection, message) : NULL;
	struct volume *volume;

	if (!uuid)
		return;
	volume = state_volume(lvmlockd->state, uuid);
	if (!volume) {
		(void)request_result(connection, strcmp(connection_unlocked(connection), uuid) == 0 ? 0 : -ENOENT);
	} else if (!add_task(volume, &model)) {
		(void)request_result(connection, -ENOMEM);
	} else {
		run(volume);
	}
}

static void withdraw(struct task *task)
{
	task->withdrawn = true;
	task->connection = NULL;
	if (task->asked)
		lock_cancel(task->volume->lock);
}

void volume_release_all(struct connection *connection)
{
	struct lvmlockd *lvmlockd = connection_lvmlockd(connection);
	struct volume *volume, *next;
	struct client *client;
	struct task *task;
	struct vg *vg;

	TAILQ_FOREACH(vg, state_vgs(lvmlockd->state), link) {
		for (volume = TAILQ_FIRST(&vg->volumes); volume; volume = next) {
			next = TAILQ_NEXT(volume, link);
			client = find_client(volume, connection);
			if (client) {
				TAILQ_REMOVE(&volume->clients->clients, client, link);
				free(client);
			}
			TAILQ_FOREACH(task, &volume->clients->tasks, link)
				if (task->connection == connection)
					withdraw(task);
			run(volume);
		}
	}
}

/* ---- for others ---- */

/* What volume_lock() has left to be done: callers are not called back from inside. */
static void on_turn(void *data)
{
	struct lvmlockd *lvmlockd = data;
	struct volume *volume;
	struct task *task;
	struct vg *vg;

	lvmlockd->volumes_turn.due = false;
again:
	TAILQ_FOREACH(vg, state_vgs(lvmlockd->state), link) {
		TAILQ_FOREACH(volume, &vg->volumes, link) {
			task = TAILQ_FIRST(&volume->clients->tasks);
			if (!task || task->asked || volume->clients->lowering || lock_busy(volume->lock))
				continue;
			/* Whoever is told may change all lists. */
			run(volume);
			goto again;
		}
	}
}

void volume_go_on(struct lvmlockd *lvmlockd)
{
	turn_drop(&lvmlockd->volumes_turn, lvmlockd->loop);
	on_turn(lvmlockd);
}

int volume_lock(struct lvmlockd *lvmlockd, const char *vg_name, const char *lv, const char *uuid,
		enum lock_mode mode, uint32_t wait_ms, volume_done done, void *context, uint64_t *ret_ticket)
{
	const struct task model = {
		.ticket = ++lvmlockd->last_ticket, .done = done, .context = context,
		.persistent = true, .mode = mode, .wait_ms = wait_ms,
	};
	const struct vg *vg = state_vg(lvmlockd->state, vg_name);
	struct volume *volume;
	int r = vg ? may_lock(lvmlockd, vg) : LD_ENOLS;

	if (r < 0)
		return r;
	if (!request_is_uuid(uuid) || (lv[0] != '\0' && !request_is_name(lv)))
		return -EINVAL;
	r = get_volume(lvmlockd, vg_name, uuid, lv, &volume);
	if (r < 0)
		return r;
	if (!turn_ask(&lvmlockd->volumes_turn, lvmlockd->loop, lvmlockd, on_turn) ||
	    !add_task(volume, &model)) {
		run(volume);
		return -ENOMEM;
	}
	*ret_ticket = model.ticket;
	return 0;
}

void volume_withdraw(struct lvmlockd *lvmlockd, uint64_t ticket)
{
	struct volume *volume;
	struct task *task;
	struct vg *vg;

	TAILQ_FOREACH(vg, state_vgs(lvmlockd->state), link) {
		TAILQ_FOREACH(volume, &vg->volumes, link) {
			TAILQ_FOREACH(task, &volume->clients->tasks, link) {
				if (task->ticket == ticket) {
					withdraw(task);
					return;
				}
			}
		}
	}
}

void volume_unlock(struct lvmlockd *lvmlockd, const char *uuid)
{
	const struct task model = { .persistent = true, .mode = MODE_UN };
	struct volume *volume = state_volume(lvmlockd->state, uuid);

	if (!volume)
		return;
	if (!add_task(volume, &model))
		qb_log(LOG_ERR, "out of memory: LV %s/%s stays locked until it is activated and deactivated",
		       volume->vg->name, volume->name);
	run(volume);
}

void volume_done_all(struct lvmlockd *lvmlockd)
{
	struct volume *volume;
	struct client *client;
	struct task *task;
	struct vg *vg;

	turn_drop(&lvmlockd->volumes_turn, lvmlockd->loop);
	TAILQ_FOREACH(vg, state_vgs(lvmlockd->state), link) {
		TAILQ_FOREACH(volume, &vg->volumes, link) {
			if (!volume->clients)
				continue;
			while ((task = TAILQ_FIRST(&volume->clients->tasks))) {
				TAILQ_REMOVE(&volume->clients->tasks, task, link);
				free(task);
			}
			while ((client = TAILQ_FIRST(&volume->clients->clients))) {
				TAILQ_REMOVE(&volume->clients->clients, client, link);
				free(client);
			}
			free(volume->clients);
			volume->clients = NULL;
		}
	}
}
