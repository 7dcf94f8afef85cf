/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Adoption, from this process's side: first that VGs are started is locked again, then adopt.c
 * decides about LVs. Only once in the life of the process: after that locks.c takes
 * again what was held, when belayd comes back. (An LV that lvm has just locked and not yet
 * activated would else be taken for one that has become inactive.)
 */
#include <assert.h>
#include <errno.h>
#include <qb/qbdefs.h>
#include <qb/qblog.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lvmlockd/adopt.h"
#include "lvmlockd/life.h"
#include "lvmlockd/request.h"
#include "lvmlockd/volume.h"
#include "lvmlockd/worker.h"

#define RETRY_NS QB_TIME_NS_IN_SEC

/* A lock that is asked for; outlives the adoption that asked, if that is stopped. */
struct asked {
	struct adoption *adoption;	/* NULL: it was stopped */
	struct volume *volume;		/* NULL: that a VG is started */
	enum lock_mode mode;
	adopt_answered done;
	void *data;
	TAILQ_ENTRY(asked) link;
};

struct adoption {
	struct lvmlockd *lvmlockd;
	struct adopt *adopt;
	struct adopt_port port;
	TAILQ_HEAD(, asked) asked;
	struct worker_job *marked_job;	/* NULL: lvm does not run */
	adopt_marked marked_done;
	void *marked_data;
	unsigned starting;		/* locks of VGs that are not answered yet */
	int result;
	bool over;			/* adopt.c has finished; to be dealt with from the loop */
	bool waiting;
	qb_loop_timer_handle timer;
};

/* ---- locks ---- */

static void on_answered(void *context, int result)
{
	struct asked *asked = context;
	struct adoption *a = asked->adoption;
	adopt_answered done = asked->done;
	void *data = asked->data;

	if (a)
		TAILQ_REMOVE(&a->asked, asked, link);
	if (a && asked->volume && result == 0) {
		struct volume *volume = asked->volume;

		/* Not on record before: written down by state_save() below, at the end of all. */
		if (volume->mode == MODE_UN)
			volume->since = (int64_t)time(NULL);
		volume->mode = asked->mode;
		volume->lost = false;
	}
	free(asked);
	if (a)
		done(data, result);
}

static int ask(struct adoption *a, struct lock *lock, const struct asked *model)
{
	struct asked *asked = malloc(sizeof(*asked));
	int r;

	if (!asked)
		return -ENOMEM;
	*asked = *model;
	asked->adoption = a;
	r = lock_take(lock, model->mode, 0, on_answered, asked);
	if (r < 0) {
		free(asked);
		return r == -ENOTCONN ? -EIO : r;
	}
	TAILQ_INSERT_TAIL(&a->asked, asked, link);
	return 0;
}

/* ---- the port: what is on record ---- */

static struct volume *nth_volume(struct state *state, size_t index)
{
	struct volume *volume;
	struct vg *vg;

	TAILQ_FOREACH(vg, state_vgs(state), link)
		TAILQ_FOREACH(volume, &vg->volumes, link)
			if (volume->mode != MODE_UN && index-- == 0)
				return volume;
	return NULL;
}

static bool recorded(void *context, size_t index, struct adopt_lv *ret_lv)
{
	struct adoption *a = context;
	const struct volume *volume = nth_volume(a->lvmlockd->state, index);

	if (!volume)
		return false;
	*ret_lv = (struct adopt_lv){ .mode = volume->mode == MODE_EX ? ADOPT_EXCLUSIVE : ADOPT_SHARED };
	ret_lv->coming = process_lives(volume->by);
	(void)snprintf(ret_lv->vg_uuid, sizeof(ret_lv->vg_uuid), "%s", volume->vg->uuid);
	(void)snprintf(ret_lv->vg_name, sizeof(ret_lv->vg_name), "%s", volume->vg->name);
	(void)snprintf(ret_lv->lv_uuid, sizeof(ret_lv->lv_uuid), "%s", volume->uuid);
	(void)snprintf(ret_lv->lv_name, sizeof(ret_lv->lv_name), "%s", volume->name);
	return true;
}

static bool started(void *context, const char *vg_name, const char *vg_uuid)
{
	struct adoption *a = context;

	return state_vg_is(a->lvmlockd->state, vg_name, vg_uuid) != NULL;
}

/* An LV that is active although its VG was not started: then it is now. */
static int get_vg(struct lvmlockd *d, const struct adopt_lv *lv, struct vg **ret_vg)
{
	struct vg *vg = state_vg(d->state, lv->vg_name);
	int r;

	if (!vg) {
		r = state_add_vg(d->state, d->locks, lv->vg_name, lv->vg_uuid, d->marker, &vg);
		if (r < 0)
			return r;
	}
	*ret_vg = vg;
	return 0;
}

static int get_volume(struct lvmlockd *d, const struct adopt_lv *lv, struct volume **ret_volume)
{
	struct volume *volume = state_volume(d->state, lv->lv_uuid);
	struct vg *vg;
	int r;

	if (!volume) {
		r = get_vg(d, lv, &vg);
		if (r == 0)
			r = state_add_volume(d->state, d->locks, vg, lv->lv_uuid, lv->lv_name, &volume);
		if (r < 0)
			return r;
		r = volume_prepare(d, volume);
		if (r < 0) {
			state_remove_volume(volume);
			return r;
		}
	}
	*ret_volume = volume;
	return 0;
}

static enum lock_mode mode_of(const struct adopt_lv *lv)
{
	return lv->mode == ADOPT_EXCLUSIVE ? MODE_EX : MODE_SH;
}

static int lock(void *context, const struct adopt_lv *lv, adopt_answered done, void *data)
{
	struct adoption *a = context;
	struct asked model = { .mode = mode_of(lv), .done = done, .data = data };
	int r = get_volume(a->lvmlockd, lv, &model.volume);

	return r < 0 ? r : ask(a, model.volume->lock, &model);
}

static void drop(void *context, const struct adopt_lv *lv)
{
	struct adoption *a = context;

	volume_unlock(a->lvmlockd, lv->lv_uuid);
}

static void lost(void *context, const struct adopt_lv *lv)
{
	struct adoption *a = context;
	struct volume *volume = state_volume(a->lvmlockd->state, lv->lv_uuid);

	if (!volume)
		return;
	volume->mode = mode_of(lv);
	volume->lost = true;
}

static int forget(void *context)
{
	struct adoption *a = context;

	return locks_forget_rest(a->lvmlockd->locks);
}

static void log_text(void *context, int priority, const char *text)
{
	(void)context;
	qb_log((uint8_t)priority, "%s", text);
}

/* ---- the port: whose VGs there are ---- */

/* Lines of "UUID LOCK_ARGS". *ret_uuid, of pointers into the text, is to be freed. */
static int parse_marked(const struct lvmlockd *d, char *text, const char ***ret_uuid, size_t *ret_count)
{
	char *line, *uuid, *args;
	size_t lines = 1, count = 0;
	const char **found;

	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	found = calloc(lines, sizeof(*found));
	if (!found)
		return -ENOMEM;
	while ((line = strsep(&text, "\n"))) {
		line += strspn(line, " \t");
		uuid = strsep(&line, " ");
		args = line ? line + strspn(line, " \t") : NULL;
		if (!args)
			continue;
		args[strcspn(args, " \t")] = '\0';
		if (vg_args_are_ours(d, args))
			found[count++] = uuid;
	}
	*ret_uuid = found;
	*ret_count = count;
	return 0;
}

static void on_marked(void *context, const struct worker_result *result)
{
	struct adoption *a = context;
	const char **uuid = NULL;
	char *text = NULL;
	size_t count = 0;
	int r = result->truncated ? -E2BIG : worker_errno(result);

	a->marked_job = NULL;
	if (r == 0)
		r = (text = strdup(result->output)) ? 0 : -ENOMEM;
	if (r == 0)
		r = parse_marked(a->lvmlockd, text, &uuid, &count);
	a->marked_done(a->marked_data, r, uuid, count);
	free(uuid);
	free(text);
}

/* Without locks: whether they are to be had is what is found out here. */
static int marked(void *context, adopt_marked done, void *data)
{
	struct adoption *a = context;
	const struct config *config = &a->lvmlockd->config;
	const char *const argv[] = {
		config->lvm_path, "vgs", "--nolocking", "--readonly", "--shared", "--quiet", "--noheadings",
		"--options", "vg_uuid,vg_lock_args", NULL,
	};
	const struct worker_task task = {
		.what = "list the VGs", .argv = argv, .deadline_ms = config->lvm_command_timeout_s * 1000,
		.done = on_marked, .context = a,
	};

	a->marked_done = done;
	a->marked_data = data;
	return worker_start(a->lvmlockd->worker, &task, &a->marked_job);
}

/* ---- from begin to end ---- */

static void begin_volumes(struct adoption *a);

static void end(struct adoption *a)
{
	struct lvmlockd *d = a->lvmlockd;
	struct asked *asked;

	TAILQ_FOREACH(asked, &a->asked, link)
		asked->adoption = NULL;
	if (a->marked_job)
		worker_cancel(a->marked_job);
	if (a->waiting)
		(void)qb_loop_timer_del(d->loop, a->timer);
	adopt_free(a->adopt);
	d->adoption = NULL;
	free(a);
}

static void on_started_again(void *context, int result)
{
	(void)context;
	if (result < 0 && result != -EIO)
		qb_log(LOG_ERR, "that a VG is started here is not told to belayd (%s): other nodes may remove it. "
		       "Restart belay-lvmlockd", strerror(-result));
}

/*
 * A VG that adoption has found started, or whose lock was exclusive for the moment of busy_vg
 * when belayd went, and refused that.
 */
static void take_started(struct lvmlockd *d)
{
	struct vg *vg;

	TAILQ_FOREACH(vg, state_vgs(d->state), link)
		if (lock_held(vg->started) != MODE_SH && !lock_busy(vg->started))
			(void)lock_take(vg->started, MODE_SH, 0, on_started_again, NULL);
}

static void on_timer(void *data)
{
	struct adoption *a = data;
	struct lvmlockd *d = a->lvmlockd;
	struct adopt_count count;
	int r;

	a->waiting = false;
	if (!a->over) {
		begin_volumes(a);
		return;
	}
	if (a->result < 0) {
		adopt_free(a->adopt);
		a->adopt = NULL;
		a->over = false;
		begin_volumes(a);
		return;
	}
	count = adopt_count(a->adopt);
	qb_log(count.lost > 0 ? LOG_ALERT : LOG_INFO, "of the LVs here %u are locked again, %u were on no record, "
	       "%u are not active any more, %u have lost their lock", count.kept, count.found, count.dropped,
	       count.lost);
	end(a);
	r = state_save(d->state);
	if (r < 0)
		qb_log(LOG_ERR, "what is locked could not be written down: %s", strerror(-r));
	d->has_adopted = true;
	take_started(d);
	life_serve(d);
	volume_go_on(d);
}

/* Not from a callback of adopt.c, which is still in it. */
static void go_on(struct adoption *a, uint64_t ns)
{
	a->waiting = qb_loop_timer_add(a->lvmlockd->loop, QB_LOOP_MED, ns, a, on_timer, &a->timer) == 0;
	if (!a->waiting)
		qb_log(LOG_CRIT, "out of memory: LVs cannot be locked here. Restart belay-lvmlockd");
}

static void on_over(void *context, int result)
{
	struct adoption *a = context;

	a->over = true;
	a->result = result;
	if (result == 0) {
		go_on(a, 0);
		return;
	}
	qb_log(LOG_ERR, "not all that is active could be locked again (%s): once more in a second. Until then no "
	       "LV can be locked here", strerror(-result));
	go_on(a, RETRY_NS);
}

static void begin_volumes(struct adoption *a)
{
	int r = adopt_start(&a->port, &a->adopt);

	if (r == 0)
		return;
	a->adopt = NULL;
	qb_log(LOG_ERR, "cannot look what is active here (%s): once more in a second", strerror(-r));
	go_on(a, RETRY_NS);
}

static void on_started(void *data, int result)
{
	struct adoption *a = data;

	if (result < 0)
		qb_log(LOG_ERR, "that a VG is started here is not told to belayd (%s): other nodes may remove it. "
		       "Restart belay-lvmlockd", strerror(-result));
	if (--a->starting == 0)
		begin_volumes(a);
}

static void begin_vgs(struct adoption *a)
{
	struct vg *vg;

	/* One more than there are, so that it does not end before all are asked for. */
	a->starting = 1;
	TAILQ_FOREACH(vg, state_vgs(a->lvmlockd->state), link) {
		const struct asked model = { .mode = MODE_SH, .done = on_started, .data = a };

		if (!lock_busy(vg->started) && ask(a, vg->started, &model) == 0)
			a->starting++;
	}
	if (--a->starting == 0)
		begin_volumes(a);
}

/* All that was held is held again; what was released meanwhile is told now. */
static void resume(struct lvmlockd *d)
{
	int r = locks_forget_rest(d->locks);

	take_started(d);
	if (r < 0 && r != -EIO)
		qb_log(LOG_WARNING, "locks that were released without belayd are still in it: %s", strerror(-r));
	life_serve(d);
}

void adoption_begin(struct lvmlockd *d)
{
	struct adoption *a;

	if (d->has_adopted) {
		resume(d);
		return;
	}
	assert(!d->adoption);
	a = calloc(1, sizeof(*a));
	if (!a) {
		qb_log(LOG_CRIT, "out of memory: LVs cannot be locked here. Restart belay-lvmlockd");
		return;
	}
	a->lvmlockd = d;
	a->port = (struct adopt_port){
		.dm = dm_port(d->dm), .recorded = recorded, .started = started, .marked = marked, .lock = lock,
		.drop = drop, .lost = lost, .forget = forget, .log = log_text, .done = on_over, .context = a,
	};
	TAILQ_INIT(&a->asked);
	d->adoption = a;
	begin_vgs(a);
}

void adoption_stop(struct lvmlockd *d)
{
	if (d->adoption)
		end(d->adoption);
}
