/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A request on this node, step by step: see enum job_step. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lvmlockd/agent_private.h"
#include "lvmlockd/explain.h"
#include "lvmlockd/lock_child.h"
#include "lvmlockd/verify.h"

#define LVS_OUTPUT_MAX (16u * 1024 * 1024)
#define LVM_OUTPUT_MAX (512u * 1024)
#define PER_LV_MS 100u

#define DEFAULT_TASK_MS 60000u

static bool wants_inactive(const struct job *job)
{
	return job->request.verb == ASK_DEACTIVATE || job->request.verb == ASK_UNDO;
}

static enum ask_mode held(const struct job *job, size_t i, uint64_t *ret_since_s)
{
	const struct agent_setup *setup = &job->agent->setup;

	return setup->held(setup->context, job->lvs.lv[i].lock_uuid, ret_since_s);
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

static bool ended_well(const struct worker_result *result)
{
	return result->end == WORKER_EXITED && result->status == 0;
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
	if (job->failures > 0 && job->total == 1)
		job_end(job, -EIO, "it could not be done");
	else if (job->failures > 0)
		job_end(job, -EIO, "%u of %u LVs failed", job->failures, job->total);
	else
		job_end(job, job->result, "%s", job->text);
}

/* ---- RELEASING ---- */

static void on_released(void *context, const struct worker_result *result)
{
	struct job *job = context;

	job->worker_job = NULL;
	if (!ended_well(result) && job->failures == 0 && job->result == 0) {
		job->result = -EIO;
		(void)snprintf(job->text, sizeof(job->text), "locks that were waited for could not be given back");
	}
	finish(job);
}

/* Never one that is, or may be, active. */
static bool waited_in_vain(const struct job *job, size_t i, const struct dm_devices *devices)
{
	const struct target *target = &job->target[i];
	bool tried = job->output != NULL;
	uint64_t since;

	return target->chosen && target->had == ASK_UN && !target->was_active && held(job, i, &since) != ASK_UN &&
	       (!tried || (devices && !dm_is_active(devices, job->lvs.lv[i].uuid)));
}

static int run_locks(struct job *job, struct lock_child *ask, uint32_t wait_ms, worker_done done)
{
	struct worker_task task = {
		.function = lock_child_run, .argument = ask,
		.argument_size = sizeof(*ask) + ask->count * sizeof(ask->lv[0]),
		.deadline_ms = wait_ms + task_ms(job), .overdue = WORKER_END,
		/* "65535 -2147483648" */
		.output_max = 4096 + ask->count * 20,
		.done = done, .context = job,
	};

	ask->wait_ms = wait_ms;
	(void)snprintf(task.what, sizeof(task.what), "LV locks of %s", job->request.vg);
	(void)snprintf(ask->socket, sizeof(ask->socket), "%s", job->agent->setup.socket);
	(void)snprintf(ask->vg, sizeof(ask->vg), "%s", job->request.vg);
	return worker_start(job->agent->setup.worker, &task, &job->worker_job);
}

static void add_lock(struct lock_child *ask, const struct lvs_lv *lv)
{
	struct lock_child_lv *to = &ask->lv[ask->count++];

	(void)snprintf(to->name, sizeof(to->name), "%s", lv->name);
	(void)snprintf(to->uuid, sizeof(to->uuid), "%s", lv->lock_uuid);
}

static struct lock_child *new_locks(const struct job *job, enum ask_mode mode)
{
	struct lock_child *ask = calloc(1, sizeof(*ask) + job->lvs.count * sizeof(ask->lv[0]));

	if (ask)
		ask->mode = mode;
	return ask;
}

/* What was waited for, but is not active now. */
static void step_release(struct job *job, const struct dm_devices *devices)
{
	struct lock_child *ask = job->waited ? new_locks(job, ASK_UN) : NULL;
	int r = 0;

	job->step = JOB_RELEASING;
	for (size_t i = 0; ask && i < job->lvs.count; i++)
		if (waited_in_vain(job, i, devices))
			add_lock(ask, &job->lvs.lv[i]);
	if (ask && ask->count > 0)
		r = run_locks(job, ask, 0, on_released);
	else
		finish(job);
	free(ask);
	if (r < 0)
		job_end(job, r, "locks that were waited for could not be given back: %s", strerror(-r));
}

/* ---- AFTER ---- */

static void answer_lv(struct job *job, size_t i, int dm_error, const struct dm_devices *devices)
{
	struct target *target = &job->target[i];
	struct ask_answer a = { .kind = ASK_LV };
	struct verify_case c = {
		.verb = job->request.verb, .mode = job->request.mode, .vg = job->request.vg,
		.lv = &job->lvs.lv[i], .was_active = target->was_active,
		.devices = devices, .dm_error = dm_error,
		.lvm_failed = job->lvm_failed, .output = job->output,
	};

	c.lock = held(job, i, &c.since_s);
	verify_lv(&c, &a.lv);
	if (target->refused[0] != '\0') {
		a.lv.outcome = ASK_FAILED;
		a.lv.changed = false;
		(void)snprintf(a.lv.reason, sizeof(a.lv.reason), "%s", target->refused);
	}
	target->changed = a.lv.changed;
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
	if (job->request.verb == ASK_ACTIVATE && !job->gone && job_record(job) < 0)
		(void)snprintf(job->text, sizeof(job->text), "there was no memory to remember what was activated");
	step_release(job, devices);
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
	job->lvm_failed = !ended_well(result);
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
	job->done = 0;
	job_progress(job, true);
	argv = lvchange_argv(job, &names);
	if (argv) {
		r = start(job, argv, LVM_OUTPUT_MAX, on_run);
		free(names);
		free(argv);
	}
	if (r < 0)
		job_end(job, r, "lvm could not be run: %s", strerror(-r));
}

/* ---- WAITING ---- */

static void refuse_lock(struct job *job, size_t i, int result)
{
	struct target *target = &job->target[i];

	target->chosen = false;
	job->total--;
	switch (result) {
	case -EAGAIN:
		(void)snprintf(target->refused, sizeof(target->refused), "another node had it locked for all of "
			       "the %u s; belay lv status says which", job->request.wait_ms / 1000);
		break;
	case -210:	/* lvmlockd's ENOLS */
		(void)snprintf(target->refused, sizeof(target->refused),
			       "the VG is not started on this node: vgchange --lock-start %s", job->request.vg);
		break;
	default:
		(void)snprintf(target->refused, sizeof(target->refused), "its lock was refused, error %d", result);
	}
}

static void on_waited(void *context, const struct worker_result *result)
{
	struct job *job = context;
	uint32_t index;
	size_t at = 0;
	int refused;

	job->worker_job = NULL;
	if (!ended_well(result)) {
		job->result = -EIO;
		(void)snprintf(job->text, sizeof(job->text), "this node's belay-lvmlockd could not be asked for locks");
		step_release(job, NULL);
		return;
	}
	while (lock_child_next(result->output, &at, &index, &refused))
		for (size_t i = 0; i < job->lvs.count; i++)
			if (job->target[i].chosen && job->target[i].asked == index + 1)
				refuse_lock(job, i, refused);
	step_run(job);
}

static void step_wait(struct job *job)
{
	struct lock_child *ask;
	int r = -ENOMEM;

	if (job->request.verb != ASK_ACTIVATE || job->request.wait_ms == 0 || job->total == 0) {
		step_run(job);
		return;
	}
	job->step = JOB_WAITING;
	job->waited = true;
	ask = new_locks(job, job->request.mode);
	for (size_t i = 0; ask && i < job->lvs.count; i++)
		if (job->target[i].chosen) {
			add_lock(ask, &job->lvs.lv[i]);
			job->target[i].asked = ask->count;
		}
	if (ask)
		r = run_locks(job, ask, job->request.wait_ms, on_waited);
	free(ask);
	if (r < 0)
		job_end(job, r, "LV locks cannot be waited for: %s", strerror(-r));
}

void job_withdraw(struct job *job)
{
	if (job->worker_job)
		worker_cancel(job->worker_job);
	job->worker_job = NULL;
	job->result = -EINTR;
	(void)snprintf(job->text, sizeof(job->text), "withdrawn while it waited for locks");
	step_release(job, NULL);
}

/* ---- BEFORE ---- */

static bool is_recorded(const struct record *record, const char *name)
{
	for (size_t i = 0; i < record->count; i++)
		if (strcmp(record->name[i], name) == 0)
			return true;
	return false;
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
			return;
		}
		if (lv->skip && job->request.lv[0] == '\0')
			return;
		if (lv->skip) {
			(void)snprintf(target->refused, sizeof(target->refused), "it has LVM's flag that "
				       "activation is to skip it, as thin snapshots have: lvchange -ay -K");
			return;
		}
	}
	if (job->record && !is_recorded(job->record, lv->name))
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
		job->target[i].had = held(job, i, &since);
		job->target[i].was_active = verify_is_active(devices, &job->lvs.lv[i], job->target[i].had);
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
		.verb = job->request.verb, .mode = job->request.mode, .vg = job->request.vg,
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
	if (!ended_well(result)) {
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
