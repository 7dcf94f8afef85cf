/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lvmlockd/agent.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lvmlockd/agent_private.h"
#include "lvmlockd/group.h"

#define JOBS_MAX 64u
#define RECORDS_MAX 64u
#define PROGRESS_MS 250u

uint64_t agent_now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- what was activated ---- */

static struct record *find_record(struct agent *agent, uint32_t node, uint64_t id)
{
	struct record *record;

	TAILQ_FOREACH(record, &agent->records, link)
		if (record->node == node && record->id == id)
			return record;
	return NULL;
}

static struct record *take_record(struct agent *agent, uint32_t node, uint64_t id)
{
	struct record *record = find_record(agent, node, id);

	if (record) {
		TAILQ_REMOVE(&agent->records, record, link);
		agent->record_count--;
	}
	return record;
}

static void drop_record(struct agent *agent, uint32_t node, uint64_t id)
{
	free(take_record(agent, node, id));
}

int job_record(struct job *job)
{
	struct agent *agent = job->agent;
	struct record *record;
	size_t count = 0;

	for (size_t i = 0; i < job->lvs.count; i++)
		count += job->target[i].changed || job->target[i].was_exclusive;
	if (count == 0)
		return 0;
	record = calloc(1, sizeof(*record) + count * sizeof(record->lv[0]));
	if (!record)
		return -ENOMEM;
	record->node = job->node;
	record->id = job->id;
	(void)snprintf(record->vg, sizeof(record->vg), "%s", job->request.vg);
	for (size_t i = 0; i < job->lvs.count; i++) {
		if (!job->target[i].changed && !job->target[i].was_exclusive)
			continue;
		(void)snprintf(record->lv[record->count].name, sizeof(record->lv[0].name), "%s",
			       job->lvs.lv[i].name);
		record->lv[record->count++].relock = !job->target[i].changed;
	}
	/* Whoever asked for the oldest has forgotten it, or is long gone. */
	if (agent->record_count == RECORDS_MAX)
		drop_record(agent, TAILQ_FIRST(&agent->records)->node, TAILQ_FIRST(&agent->records)->id);
	TAILQ_INSERT_TAIL(&agent->records, record, link);
	agent->record_count++;
	return 0;
}

/* ---- answers ---- */

static void answer(struct agent *agent, uint32_t node, uint64_t id, const struct ask_answer *answer)
{
	/* Of one that is lost the asker hears nothing, and says so when its time is up. */
	if (agent->group)
		(void)lvm_group_answer(agent->group, node, id, answer);
}

void job_answer(struct job *job, const struct ask_answer *a)
{
	if (!job->gone)
		answer(job->agent, job->node, job->id, a);
}

uint32_t job_steps(const struct job *job)
{
	return job->locks_first ? 2 * job->total : job->total;
}

void job_progress(struct job *job, bool always)
{
	/* In LVs. */
	const struct ask_answer a = {
		.kind = ASK_PROGRESS, .done = job->locks_first ? job->done / 2 : job->done, .total = job->total,
	};
	uint64_t now = agent_now_ms();

	if (!always && now - job->told_ms < PROGRESS_MS)
		return;
	job->told_ms = now;
	job_answer(job, &a);
}

static void free_job(struct job *job)
{
	struct agent *agent = job->agent;

	TAILQ_REMOVE(&agent->jobs, job, link);
	agent->job_count--;
	if (job->worker_job)
		worker_cancel(job->worker_job);
	lvs_done(&job->lvs);
	free(job->target);
	free(job->output);
	free(job->record);
	free(job);
}

void job_end(struct job *job, int32_t result, const char *format, ...)
{
	struct ask_answer a = { .kind = ASK_END, .result = result };
	va_list args;

	va_start(args, format);
	(void)vsnprintf(a.text, sizeof(a.text), format, args);
	va_end(args);
	job_answer(job, &a);
	free_job(job);
}

static void refuse(struct agent *agent, uint32_t node, uint64_t id, int32_t result, const char *text)
{
	struct ask_answer a = { .kind = ASK_END, .result = result };

	(void)snprintf(a.text, sizeof(a.text), "%s", text);
	answer(agent, node, id, &a);
}

/* ---- requests ---- */

static struct job *find_job(struct agent *agent, uint32_t node, uint64_t id)
{
	struct job *job;

	TAILQ_FOREACH(job, &agent->jobs, link)
		if (job->node == node && job->id == id)
			return job;
	return NULL;
}

static void begin(struct agent *agent, uint32_t node, uint64_t id, const struct ask_request *request)
{
	struct job *job;

	if (agent->job_count >= JOBS_MAX) {
		refuse(agent, node, id, -EBUSY, "that node has too many commands to run; try again");
		return;
	}
	job = calloc(1, sizeof(*job));
	if (!job) {
		refuse(agent, node, id, -ENOMEM, "that node has no memory for it");
		return;
	}
	job->agent = agent;
	job->node = node;
	job->id = id;
	job->request = *request;
	job->began_ms = agent_now_ms();
	TAILQ_INSERT_TAIL(&agent->jobs, job, link);
	agent->job_count++;
	if (request->verb == ASK_UNDO) {
		job->record = take_record(agent, node, request->about);
		memcpy(job->request.vg, job->record->vg, sizeof(job->request.vg));
		job->request.lv[0] = '\0';
	}
	job_run(job);
}

void agent_request(struct agent *agent, uint32_t node, uint64_t id, const struct ask_request *request)
{
	switch (request->verb) {
	case ASK_KEEP:
		drop_record(agent, node, request->about);
		refuse(agent, node, id, 0, "");
		return;
	case ASK_UNDO:
		if (find_job(agent, node, request->about))
			refuse(agent, node, id, -EBUSY, "lvm still runs there: what it does is not taken back");
		else if (!find_record(agent, node, request->about))
			refuse(agent, node, id, 0, "nothing to take back");
		else
			begin(agent, node, id, request);
		return;
	case ASK_ACTIVATE:
	case ASK_DEACTIVATE:
	case ASK_REFRESH:
	case ASK_STATUS:
		if ((request->vg[0] != '\0' || request->verb == ASK_STATUS) &&
		    (request->verb != ASK_ACTIVATE || request->mode != ASK_UN))
			begin(agent, node, id, request);
		else
			refuse(agent, node, id, -EINVAL, "the request makes no sense there");
		return;
	case ASK_VERB_COUNT:
		break;
	}
	refuse(agent, node, id, -EOPNOTSUPP, "belay-lvmlockd of that node is older and does not know this command");
}

void agent_cancel(struct agent *agent, uint32_t node, uint64_t id)
{
	struct job *job = find_job(agent, node, id);

	if (!job)
		return;
	/* lvm in the middle of its work is not disturbed; what has not begun does not begin. */
	job->cancelled = true;
	if (job->step == JOB_WAITING)
		job_withdraw(job);
}

void agent_left(struct agent *agent, uint32_t node)
{
	struct record *record, *next;
	struct job *job;

	/* What it asked for is done to its end, and stays. */
	TAILQ_FOREACH(job, &agent->jobs, link)
		if (job->node == node)
			job->gone = true;
	for (record = TAILQ_FIRST(&agent->records); record; record = next) {
		next = TAILQ_NEXT(record, link);
		if (record->node == node)
			drop_record(agent, node, record->id);
	}
}

void agent_regroup(struct agent *agent, struct lvm_group *group)
{
	struct record *record;
	struct job *job;

	TAILQ_FOREACH(job, &agent->jobs, link)
		job->gone = true;
	while ((record = TAILQ_FIRST(&agent->records)))
		drop_record(agent, record->node, record->id);
	agent->group = group;
}

void agent_note_lock(struct agent *agent, const char *vg, enum ask_mode mode)
{
	struct job *job;

	TAILQ_FOREACH(job, &agent->jobs, link) {
		bool gives = job->request.verb == ASK_DEACTIVATE || job->request.verb == ASK_UNDO;

		if (strcmp(job->request.vg, vg) != 0 || gives != (mode == ASK_UN) || job->done >= job_steps(job) ||
		    (job->step != JOB_WAITING && job->step != JOB_RUNNING))
			continue;
		job->done++;
		job_progress(job, false);
	}
}

/* ---- the surface ---- */

int agent_open(const struct agent_setup *setup, struct agent **ret_agent)
{
	struct agent *agent = calloc(1, sizeof(*agent));

	if (!agent)
		return -ENOMEM;
	agent->setup = *setup;
	TAILQ_INIT(&agent->jobs);
	TAILQ_INIT(&agent->records);
	*ret_agent = agent;
	return 0;
}

void agent_close(struct agent *agent)
{
	const struct dm_port *dm;
	struct job *job;

	if (!agent)
		return;
	dm = agent->setup.dm;
	agent_regroup(agent, NULL);
	while ((job = TAILQ_FIRST(&agent->jobs))) {
		if (job->step == JOB_BEFORE || job->step == JOB_AFTER)
			dm->unlist(dm->context, job);
		free_job(job);
	}
	free(agent);
}
