/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A request on this node, step by step: see enum job_step. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lvmlockd/agent_private.h"
#include "lvmlockd/explain.h"
#include "lvmlockd/request.h"
#include "lvmlockd/verify.h"

#define LVS_OUTPUT_MAX (16u * 1024 * 1024)
#define LVM_OUTPUT_MAX (512u * 1024)
#define PER_LV_MS 100u
/* A node need not wait for the locks of another for longer than for these. */
#define LOCKS_AT_ONCE 64u

#define DEFAULT_TASK_MS 60000u

static bool wants_inactive(const struct job *job)
{
	return job->request.verb == ASK_DEACTIVATE || job->request.verb == ASK_UNDO;
}

static enum ask_mode held(const struct job *job, size_t i, uint64_t *ret_since_s)
{
	const struct agent_locks *locks = &job->agent->setup.locks;

	return locks->held(locks->context, job->lvs.lv[i].lock_uuid, ret_since_s);
}

static uint32_t task_ms(const struct job *job)
{
	uint32_t ms = job->agent->setup.command_timeout_ms;

	return (ms > 0 ? ms : DEFAULT_TASK_MS) + (uint32_t)job->total * PER_LV_MS;
}

/* ---- running lvm ---- */

/* How a program ended that did not end well, in words. */
static void tell_end(const struct worker_result *result, char *ret_text, size_t size)
{
	switch (result->end) {
	case WORKER_EXITED:
		(void)snprintf(ret_text, size, "it ended with status %d", result->status);
		break;
	case WORKER_SIGNALLED:
		(void)snprintf(ret_text, size, "it was ended by signal %d (%s)", result->status,
			       strsignal(result->status));
		break;
	case WORKER_EXPIRED:
		(void)snprintf(ret_text, size, "it had not ended after %u s, and was ended",
			       (unsigned)(result->took_ms / 1000));
		break;
	case WORKER_HUNG:
		(void)snprintf(ret_text, size, "it hangs in the kernel%s%s (pid %d): the storage does not answer",
			       result->where && *result->where ? ", in " : "",
			       result->where ? result->where : "", result->pid);
		break;
	case WORKER_FAILED:
		(void)snprintf(ret_text, size, "it could not be started: %s", strerror(-result->status));
		break;
	}
}

static int start(struct job *job, const char *const *argv, size_t output_max, worker_done done)
{
	struct worker_task task = {
		.argv = argv, .deadline_ms = task_ms(job), .output_max = output_max, .overdue = WORKER_END,
		.done = done, .context = job,
	};

	(void)snprintf(task.what, sizeof(task.what), "%s %s%s%s", argv[1], job->request.vg,
		       job->request.lv[0] != '\0' ? "/" : "", job->request.lv);
	return worker_start(job->agent->setup.worker, &task, &job->worker_job);
}

/* ---- the end ---- */

static void finish(struct job *job)
{
	if (job->failures == 0)
		job_end(job, 0, "%s", "");
	else if (job->total + job->refused == 1)
		job_end(job, -EIO, "it could not be done");
	else
		job_end(job, -EIO, "%u of %u LVs failed", job->failures, job->total + job->refused);
}

/*
 * Locks that were waited for in vain are given back: never that of an LV which is, or may
 * be, active.
 */
static void release(struct job *job, const struct dm_devices *devices)
{
	const struct agent_locks *locks = &job->agent->setup.locks;

	for (size_t i = 0; i < job->lvs.count; i++)
		if (job->target[i].new_lock && !job->target[i].was_active &&
		    (!job->ran || (devices && !dm_is_active(devices, job->lvs.lv[i].uuid))))
			locks->unlock(locks->context, job->lvs.lv[i].lock_uuid);
}

/* ---- AFTER ---- */

static void answer_lv(struct job *job, size_t i, int dm_error, const struct dm_devices *devices)
{
	const struct agent_locks *locks = &job->agent->setup.locks;
	struct target *target = &job->target[i];
	struct ask_answer a = { .kind = ASK_LV };
	char uuid[DM_TEXT_MAX + 1];
	struct verify_case c = {
		.verb = job->request.verb, .mode = job->request.mode,
		.lv = &job->lvs.lv[i], .was_active = target->was_active,
		.devices = devices, .dm_error = dm_error,
		.lvm_failed = job->lvm_failed, .output = job->output,
	};

	c.lock = held(job, i, &c.since_s);
	c.lock_lost = locks->lost(locks->context, c.lv->lock_uuid);
	verify_dm_uuid(c.lv, uuid);
	c.policy = locks->policy(locks->context, uuid);
	verify_lv(&c, &a.lv);
	if (target->refused[0] != '\0') {
		a.lv.outcome = ASK_FAILED;
		a.lv.changed = false;
		(void)snprintf(a.lv.reason, sizeof(a.lv.reason), "%s", target->refused);
	}
	target->changed = a.lv.changed;
	/* To share what was exclusive is a change, too, and can be taken back. */
	a.lv.changed = a.lv.changed || (target->was_exclusive && c.lock == job->request.mode);
	job->failures += a.lv.outcome == ASK_FAILED;
	job_answer(job, &a);
}

static void on_after(void *data, int result, const struct dm_devices *devices)
{
	struct job *job = data;

	if (result < 0)
		devices = NULL;
	for (size_t i = 0; i < job->lvs.count; i++)
		if (job->target[i].chosen || job->target[i].refused[0] != '\0')
			answer_lv(job, i, result, devices);
	release(job, devices);
	if (job->request.verb == ASK_ACTIVATE && !job->gone && job_record(job) < 0)
		job_end(job, -ENOMEM, "there is no memory to remember what was activated");
	else
		finish(job);
}

static void step_after(struct job *job)
{
	const struct dm_port *dm = job->agent->setup.dm;
	int r;

	job->step = JOB_AFTER;
	r = dm->list(dm->context, false, on_after, job);
	if (r < 0)
		on_after(job, r, NULL);
}

/* ---- RUNNING ---- */

static void on_run(void *context, const struct worker_result *result)
{
	struct job *job = context;
	char end[160] = "";

	job->worker_job = NULL;
	/* Of a child whose end was not seen it is not known what it has done. */
	job->ran = result->end != WORKER_FAILED || result->status == -ECHILD;
	job->lvm_failed = worker_errno(result) < 0;
	if (result->end != WORKER_EXITED)
		tell_end(result, end, sizeof(end));
	/* What it said last says best why. */
	if (asprintf(&job->output, "%s%s%s", result->output ? result->output : "", end[0] != '\0' ? "\nlvm: " : "",
		     end) < 0)
		job->output = NULL;
	step_after(job);
}

static const char **lvchange_argv(struct job *job, char **ret_names)
{
	size_t size = 2 * ASK_NAME_MAX + 2, n = 0;
	const char **argv = calloc(job->lvs.count + 10, sizeof(*argv));
	char *names = calloc(job->lvs.count, size);

	if (!argv || !names) {
		free(argv);
		free(names);
		return NULL;
	}
	argv[n++] = job->agent->setup.lvm_path;
	argv[n++] = "lvchange";
	if (job->request.no_vg_lock)
		argv[n++] = "--nolocking";
	if (job->request.verb == ASK_REFRESH)
		argv[n++] = "--refresh";
	else if (wants_inactive(job))
		argv[n++] = "-an";
	else
		argv[n++] = job->request.mode == ASK_EX ? "-aey" : "-asy";
	for (size_t i = 0; i < job->lvs.count; i++) {
		if (!job->target[i].chosen)
			continue;
		(void)snprintf(names + i * size, size, "%s/%s", job->request.vg, job->lvs.lv[i].name);
		argv[n++] = names + i * size;
	}
	*ret_names = names;
	return argv;
}

static void step_run(struct job *job)
{
	const char **argv;
	char *names;
	int r = -ENOMEM;

	if (job->total == 0) {
		step_after(job);
		return;
	}
	job->step = JOB_RUNNING;
	/* What had its lock already was not told. */
	job->done = job->locks_first ? job->total : 0;
	job_progress(job, true);
	argv = lvchange_argv(job, &names);
	if (argv) {
		r = start(job, argv, LVM_OUTPUT_MAX, on_run);
		free(names);
		free(argv);
	}
	if (r < 0) {
		release(job, NULL);
		job_end(job, r, "lvm could not be run: %s", strerror(-r));
	}
}

/* ---- WAITING ---- */

static void refuse_lock(struct job *job, size_t i, int result)
{
	struct target *target = &job->target[i];

	job->total -= target->chosen;
	target->chosen = false;
	job->refused++;
	switch (result) {
	case -EAGAIN:
		if (target->relock) {
			(void)snprintf(target->refused, sizeof(target->refused), "it is still active, but its "
				       "lock, which was exclusive before, is shared: another node has taken it, too");
			break;
		}
		if (job->request.wait_ms > 0)
			(void)snprintf(target->refused, sizeof(target->refused), "another node had it locked for all "
				       "of the %.3g s; belay lv status says which", job->request.wait_ms / 1000.0);
		else
			(void)snprintf(target->refused, sizeof(target->refused), "another node has it locked; belay lv "
				       "status says which. Deactivate it there, or wait for it with --timeout");
		break;
	case LD_ENOLS:
		(void)snprintf(target->refused, sizeof(target->refused),
			       "the VG is not started on this node: vgchange --lock-start %s", job->request.vg);
		break;
	case LD_ESTARTING:
		(void)snprintf(target->refused, sizeof(target->refused),
			       "a node has not said yet what it has active; try again");
		break;
	case LD_EMANAGER:
		(void)snprintf(target->refused, sizeof(target->refused), "belayd does not run on this node");
		break;
	default:
		(void)snprintf(target->refused, sizeof(target->refused), "its lock was refused, error %d; "
			       "that node's log says more", result);
	}
}

static void await_next(struct job *job);

static bool awaits_lock(const struct job *job, size_t i)
{
	return job->record ? job->target[i].relock : job->target[i].chosen;
}

static void on_locked(void *context, int result, bool is_new)
{
	struct target *target = context;
	struct job *job = target->job;

	target->ticket = 0;
	if (result < 0)
		refuse_lock(job, (size_t)(target - job->target), result);
	else
		target->new_lock = is_new;
	if (--job->awaited == 0)
		await_next(job);
}

static void await(struct job *job, size_t i, uint32_t wait_ms)
{
	const struct agent_locks *locks = &job->agent->setup.locks;
	const struct lvs_lv *lv = &job->lvs.lv[i];
	int r;

	job->target[i].job = job;
	job->awaited++;
	r = locks->lock(locks->context, job->request.vg, lv->name, lv->lock_uuid,
			job->record ? ASK_EX : job->request.mode, wait_ms, on_locked, &job->target[i],
			&job->target[i].ticket);
	if (r < 0) {
		job->awaited--;
		refuse_lock(job, i, r);
	}
}

/*
 * Some at a time, which share messages, in the order of their names; the next ones when
 * all of these are there: so no two requests that wait can have what the other waits for.
 */
static void await_next(struct job *job)
{
	uint64_t end_ms = job->began_ms + job->request.wait_ms, now = agent_now_ms();

	for (; job->at < job->lvs.count && job->awaited < LOCKS_AT_ONCE; job->at++)
		if (awaits_lock(job, job->at))
			await(job, job->at, now < end_ms ? (uint32_t)(end_ms - now) : 0);
	if (job->awaited == 0)
		step_run(job);
}

static void step_wait(struct job *job)
{
	bool many = job->total > 1 && job->lvs.lv[0].shared_vg;

	if (!job->record && (job->request.verb != ASK_ACTIVATE || (job->request.wait_ms == 0 && !many))) {
		step_run(job);
		return;
	}
	job->step = JOB_WAITING;
	job->locks_first = !job->record;
	await_next(job);
}

void job_withdraw(struct job *job)
{
	const struct agent_locks *locks = &job->agent->setup.locks;

	for (size_t i = 0; i < job->lvs.count; i++)
		if (job->target[i].ticket != 0)
			locks->withdraw(locks->context, job->target[i].ticket);
	release(job, NULL);
	job_end(job, -EINTR, "withdrawn while it waited for locks");
}

/* ---- BEFORE ---- */

/* What UNDO has to do to it. */
static void choose_recorded(struct job *job, size_t i)
{
	const struct record *record = job->record;

	for (size_t n = 0; n < record->count; n++) {
		if (strcmp(record->lv[n].name, job->lvs.lv[i].name) != 0)
			continue;
		job->target[i].relock = record->lv[n].relock;
		job->target[i].chosen = !record->lv[n].relock;
		job->total += job->target[i].chosen;
	}
}

/* Choose the LV, or say why not; what is left out in silence is not what was asked for. */
static void choose(struct job *job, size_t i)
{
	const struct lvs_lv *lv = &job->lvs.lv[i];
	struct target *target = &job->target[i];
	const char *why = NULL;

	if (job->request.verb == ASK_ACTIVATE) {
		if (job->request.mode == ASK_SH)
			why = explain_not_shared(lv->layout, lv->role);
		if (why) {
			(void)snprintf(target->refused, sizeof(target->refused),
				       "%s. One node at a time can have it active: --exclusive", why);
			job->refused++;
			return;
		}
		if (lv->skip && job->request.lv[0] == '\0')
			return;
		if (lv->skip) {
			(void)snprintf(target->refused, sizeof(target->refused), "it has LVM's flag that "
				       "activation is to skip it, as thin snapshots have: lvchange -ay -K");
			job->refused++;
			return;
		}
	}
	if (job->record) {
		choose_recorded(job, i);
		return;
	}
	/* Of all VGs those are meant that belay has to do with. */
	if (job->request.vg[0] == '\0' && !lv->shared_vg)
		return;
	target->chosen = true;
	job->total++;
}

static void on_before(void *data, int result, const struct dm_devices *devices)
{
	struct job *job = data;
	uint64_t since;

	if (result < 0)
		devices = NULL;
	for (size_t i = 0; i < job->lvs.count; i++) {
		enum ask_mode lock = held(job, i, &since);

		job->target[i].was_active = verify_is_active(devices, &job->lvs.lv[i], lock);
		job->target[i].was_exclusive = job->request.verb == ASK_ACTIVATE && lock > job->request.mode;
		choose(job, i);
	}
	if (job->request.verb == ASK_STATUS)
		on_after(job, result, devices);
	else if (job->cancelled)
		job_end(job, -EINTR, "withdrawn before lvm was run");
	else
		step_wait(job);
}

static void step_before(struct job *job)
{
	const struct dm_port *dm = job->agent->setup.dm;
	int r;

	job->step = JOB_BEFORE;
	r = dm->list(dm->context, false, on_before, job);
	if (r < 0)
		on_before(job, r, NULL);
}

/* ---- LISTING ---- */

static void explain_listing(struct job *job, const struct worker_result *result)
{
	const struct explain_case e = {
		.lv = job->request.lv, .output = result->output ? result->output : "",
	};
	char text[ASK_TEXT_MAX + 1];

	if (result->end == WORKER_EXITED)
		explain(&e, text, sizeof(text));
	else
		tell_end(result, text, sizeof(text));
	job_end(job, -ENOENT, "%s", text);
}

static void on_listed(void *context, const struct worker_result *result)
{
	struct job *job = context;
	int r;

	job->worker_job = NULL;
	if (worker_errno(result) < 0) {
		explain_listing(job, result);
		return;
	}
	r = result->truncated ? -E2BIG : lvs_parse(result->output, &job->lvs);
	job->target = r == 0 ? calloc(job->lvs.count + 1, sizeof(*job->target)) : NULL;
	if (r < 0 || !job->target)
		job_end(job, r < 0 ? r : -ENOMEM, "lvm's list of LVs cannot be read: %s",
			strerror(r < 0 ? -r : ENOMEM));
	else if (job->request.verb != ASK_STATUS && job->lvs.count > 0 && !job->lvs.lv[0].shared_vg)
		job_end(job, -EINVAL, "the VG is not a shared one, so no lock keeps nodes apart: "
			"vgchange --lock-type dlm %s", job->request.vg);
	else
		step_before(job);
}

void job_run(struct job *job)
{
	const char *argv[LVS_ARGV_MAX];
	char target[LVS_TARGET_MAX];
	/* To look must not wait for who has the VG locked. */
	bool no_lock = job->request.no_vg_lock || job->request.verb == ASK_STATUS;
	int r;

	job->step = JOB_LISTING;
	lvs_argv(job->agent->setup.lvm_path, job->request.vg, job->request.lv, no_lock, target, argv);
	r = start(job, argv, LVS_OUTPUT_MAX, on_listed);
	if (r < 0)
		job_end(job, r, "lvm could not be run: %s", strerror(-r));
}
