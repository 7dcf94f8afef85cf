/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lvmlockd/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <qb/qbdefs.h>
#include <qb/qblog.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/clock.h"
#include "lvmlockd/lvmlockd.h"
#include "lvmlockd/policy.h"
#include "lvmlockd/quorum.h"
#include "lvmlockd/worker.h"

/* What one device may take in it is bounded, and so is their number. */
#define KEPT_MAX (256u * 1024 * 1024)
/*
 * The end of lock_args of VGs that were made without a cluster, or in one of that name: that one is asked about quorum
 * only when belayd is reached.
 */
#define STANDALONE_ARGS ":standalone.belay"

struct guard {
	struct lvmlockd *lvmlockd;
	struct policy *policy;
	struct quorum *quorum;		/* NULL: it is not asked */
	char *path, *new_path;
	bool has_kept;			/* there was such a file */
	bool lost;			/* quorum is */
	bool doubtful;			/* it was: when the locks are here, they have to be asked for once more */
	bool waiting;
	qb_loop_timer_handle timer;
};

/* ---- the port ---- */

static bool started(void *context, const char *vg_name, const char *vg_uuid)
{
	const struct guard *guard = context;

	return state_vg_is(guard->lvmlockd->state, vg_name, vg_uuid) != NULL;
}

static enum policy_lock lock(void *context, const char *lv_uuid)
{
	const struct guard *guard = context;
	const struct volume *volume = state_volume(guard->lvmlockd->state, lv_uuid);

	if (!volume || volume->mode == MODE_UN)
		return POLICY_LOCK_NONE;
	return volume->lost ? POLICY_LOCK_LOST : POLICY_LOCK_HELD;
}

static int save(void *context, const char *text, size_t size)
{
	const struct guard *guard = context;
	bool failed;
	FILE *file;
	int r;

	if (size == 0)
		return unlink(guard->path) < 0 && errno != ENOENT ? -errno : 0;
	file = fopen(guard->new_path, "we");
	if (!file)
		return -errno;
	failed = fwrite(text, 1, size, file) != size;
	failed = fclose(file) != 0 || failed;
	if (!failed && rename(guard->new_path, guard->path) == 0)
		return 0;
	r = errno > 0 ? -errno : -EIO;
	(void)unlink(guard->new_path);
	return r;
}

struct refresh {
	void (*done)(void *data, int result, const char *text);
	void *data;
};

static void on_refreshed(void *context, const struct worker_result *result)
{
	struct refresh *refresh = context;

	refresh->done(refresh->data, worker_errno(result), result->output ? result->output : "");
	free(refresh);
}

static int refresh(void *context, const char *vg_name, const char *lv_name,
		   void (*done)(void *data, int result, const char *text), void *data)
{
	const struct guard *guard = context;
	const struct config *config = &guard->lvmlockd->config;
	char name[2 * STATE_NAME_MAX + 2];
	const char *const argv[] = { config->lvm_path, "lvchange", "--yes", "--refresh", name, NULL };
	struct worker_task task = {
		.argv = argv, .deadline_ms = config->lvm_command_timeout_s * 1000, .done = on_refreshed,
	};
	struct refresh *refresh = malloc(sizeof(*refresh));
	int r;

	if (!refresh)
		return -ENOMEM;
	*refresh = (struct refresh){ .done = done, .data = data };
	task.context = refresh;
	(void)snprintf(name, sizeof(name), "%s/%s", vg_name, lv_name);
	(void)snprintf(task.what, sizeof(task.what), "refresh %s", name);
	r = worker_start(guard->lvmlockd->worker, &task, NULL);
	if (r < 0)
		free(refresh);
	return r;
}

static void on_timer(void *data)
{
	struct guard *guard = data;

	guard->waiting = false;
	policy_on_timer(guard->policy);
}

static void timer(void *context, uint32_t ms)
{
	struct guard *guard = context;
	qb_loop_t *loop = guard->lvmlockd->loop;

	if (guard->waiting)
		(void)qb_loop_timer_del(loop, guard->timer);
	guard->waiting = ms > 0 && qb_loop_timer_add(loop, QB_LOOP_HIGH, (uint64_t)ms * QB_TIME_NS_IN_MSEC, guard,
						     on_timer, &guard->timer) == 0;
	if (ms > 0 && !guard->waiting)
		qb_log(LOG_CRIT, "out of memory: whether active LVs stay as they are without quorum is not watched");
}

static uint64_t now_ms(void *context)
{
	(void)context;
	return clock_now_us() / 1000;
}

static void log_text(void *context, int priority, const char *text)
{
	(void)context;
	qb_log((uint8_t)priority, "%s", text);
}

/* ---- quorum ---- */

static void on_quorum(void *context, bool quorate, const char *why)
{
	struct guard *guard = context;

	qb_log(LOG_INFO, "quorum %s: %s", quorate ? "there is" : "is lost", why);
	policy_on_quorum(guard->policy, quorate, now_ms(NULL));
	if (quorate && guard->lost) {
		guard->doubtful = true;
		if (guard->lvmlockd->phase == LVMLOCKD_SERVING)
			guard_locks(guard, true);
	}
	guard->lost = !quorate;
}

void guard_watch(struct guard *guard)
{
	const struct lvmlockd *d = guard->lvmlockd;
	int r;

	/* Whatever the policy is: after a loss it has to be known whose the locks are. */
	if (guard->quorum)
		return;
	r = quorum_open(d->loop, on_quorum, guard, &guard->quorum);
	if (r < 0)
		qb_log(LOG_CRIT, "a loss of quorum will not be noticed: %s. Restart belay-lvmlockd", strerror(-r));
}

void guard_locks(struct guard *guard, bool valid)
{
	if (valid && guard->doubtful) {
		guard->doubtful = false;
		locks_ask_again(guard->lvmlockd->locks);
		return;
	}
	policy_on_locks(guard->policy, valid);
}

/* ---- the surface ---- */

static int read_all(const char *path, char **ret_text, size_t *ret_size)
{
	FILE *file = fopen(path, "re");
	struct stat st;
	char *text;
	int r;

	if (!file)
		return -errno;
	if (fstat(fileno(file), &st) < 0) {
		r = -errno;
		goto fail;
	}
	r = -EFBIG;
	if (st.st_size < 0 || st.st_size > KEPT_MAX)
		goto fail;
	r = -ENOMEM;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		goto fail;
	*ret_size = fread(text, 1, (size_t)st.st_size, file);
	text[*ret_size] = '\0';
	*ret_text = text;
	r = 0;

fail:
	(void)fclose(file);
	return r;
}

static bool has_cluster_vg(const struct lvmlockd *d)
{
	const struct vg *vg;

	TAILQ_FOREACH(vg, state_vgs(d->state), link) {
		const char *cluster = strchr(vg->args, ':');

		if (cluster && strcmp(cluster, STANDALONE_ARGS) != 0)
			return true;
	}
	return false;
}

static int make_policy(struct guard *guard)
{
	static const enum policy_action actions[] = {
		[CONFIG_QUORUM_LOSS_NONE] = POLICY_NONE,
		[CONFIG_QUORUM_LOSS_FREEZE] = POLICY_FREEZE,
		[CONFIG_QUORUM_LOSS_ERROR] = POLICY_ERROR,
	};
	struct lvmlockd *d = guard->lvmlockd;
	const struct policy_port port = {
		.dm = dm_port(d->dm), .started = started, .lock = lock, .save = save, .refresh = refresh,
		.timer = timer, .now_ms = now_ms, .log = log_text, .context = guard,
	};
	char *text = NULL;
	size_t size = 0;
	int r = read_all(guard->path, &text, &size);

	if (r < 0 && r != -ENOENT) {
		qb_log(LOG_ERR, "cannot start: %s, which says what was done to LVs without quorum, cannot be read: "
		       "%s", guard->path, strerror(-r));
		return r;
	}
	guard->has_kept = size > 0;
	r = policy_new(actions[d->config.lvm_on_quorum_loss], &port, text, size, &guard->policy);
	free(text);
	if (r < 0)
		qb_log(LOG_ERR, "cannot start: %s cannot be used (%s). It says which LVs were suspended or replaced "
		       "by the error target without quorum: see dmsetup table, put them back by lvchange --refresh, "
		       "and remove the file", guard->path, strerror(-r));
	return r;
}

int guard_open(struct lvmlockd *lvmlockd, struct guard **ret_guard)
{
	const char *socket = lvmlockd->config.socket;
	struct guard *guard = calloc(1, sizeof(*guard));
	int r = -ENOMEM;

	if (!guard)
		return r;
	guard->lvmlockd = lvmlockd;
	if (asprintf(&guard->path, "%.*s/frozen", (int)(strrchr(socket, '/') - socket), socket) < 0) {
		guard->path = NULL;
		goto fail;
	}
	if (asprintf(&guard->new_path, "%s.new", guard->path) < 0) {
		guard->new_path = NULL;
		goto fail;
	}
	r = make_policy(guard);
	if (r < 0)
		goto fail;
	lvmlockd->policy = guard->policy;
	/* With LVs of a cluster here quorum matters before belayd is reached; without a cluster it never does. */
	if (guard->has_kept || has_cluster_vg(lvmlockd))
		guard_watch(guard);
	*ret_guard = guard;
	return 0;

fail:
	free(guard->path);
	free(guard->new_path);
	free(guard);
	return r;
}

void guard_close(struct guard *guard)
{
	if (!guard)
		return;
	quorum_close(guard->quorum);
	if (guard->waiting)
		(void)qb_loop_timer_del(guard->lvmlockd->loop, guard->timer);
	guard->lvmlockd->policy = NULL;
	policy_free(guard->policy);
	free(guard->path);
	free(guard->new_path);
	free(guard);
}
