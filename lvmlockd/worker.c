/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lvmlockd/worker.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/queue.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/clock.h"
#include "lvmlockd/worker_child.h"

enum job_state {
	JOB_QUEUED,
	JOB_RUNNING,
	JOB_ENDING,		/* SIGTERM is sent */
	JOB_KILLED,		/* SIGKILL is sent */
	JOB_HUNG,
};

struct worker_job {
	struct worker *worker;
	struct worker_task task;
	char **argv;
	void *argument;
	enum job_state state;
	bool expired;		/* ended by us */
	pid_t pid;
	int pid_fd, out_fd;
	uint64_t started_us;
	qb_loop_timer_handle timer;
	bool timer_set;
	char *output;
	size_t size;
	bool truncated;
	TAILQ_ENTRY(worker_job) link;
};
TAILQ_HEAD(job_list, worker_job);

struct worker {
	qb_loop_t *loop;
	struct job_list queued, running, hung;	/* oldest first */
	unsigned queued_count, running_count, urgent_count, hung_count;
};

static void on_deadline(void *data);

static uint64_t took_ms(const struct worker_job *job)
{
	return (clock_now_us() - job->started_us) / 1000;
}

/* ---- a job's memory ---- */

static void free_job(struct worker_job *job)
{
	if (job->argv)
		for (char **a = job->argv; *a; a++)
			free(*a);
	free(job->argv);
	free(job->argument);
	free(job->output);
	free(job);
}

static int copy_argv(struct worker_job *job, const char *const *argv)
{
	size_t count = 0;

	while (argv[count])
		count++;
	if (count == 0)
		return -EINVAL;
	job->argv = calloc(count + 1, sizeof(*job->argv));
	if (!job->argv)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		job->argv[i] = strdup(argv[i]);
		if (!job->argv[i])
			return -ENOMEM;
	}
	return 0;
}

static int new_job(struct worker *worker, const struct worker_task *task, struct worker_job **ret_job)
{
	struct worker_job *job;
	int r = 0;

	if (!task->done || !task->argv == !task->function || task->deadline_ms == 0)
		return -EINVAL;
	job = calloc(1, sizeof(*job));
	if (!job)
		return -ENOMEM;
	job->worker = worker;
	job->task = *task;
	job->pid_fd = job->out_fd = -1;
	if (job->task.output_max == 0)
		job->task.output_max = WORKER_OUTPUT_MAX;
	if (task->argv)
		r = copy_argv(job, task->argv);
	if (r == 0 && task->argument_size > 0) {
		job->argument = malloc(task->argument_size);
		if (job->argument)
			memcpy(job->argument, task->argument, task->argument_size);
		else
			r = -ENOMEM;
	}
	if (r < 0) {
		free_job(job);
		return r;
	}
	*ret_job = job;
	return 0;
}

/* ---- lists ---- */

static bool has_room(const struct worker *worker, const struct worker_job *job)
{
	if (job->task.urgent)
		return worker->urgent_count < WORKER_URGENT_LIMIT;
	return worker->running_count < WORKER_LIMIT;
}

static void add_running(struct worker_job *job)
{
	TAILQ_INSERT_TAIL(&job->worker->running, job, link);
	if (job->task.urgent)
		job->worker->urgent_count++;
	else
		job->worker->running_count++;
}

static void unlink_job(struct worker_job *job)
{
	struct worker *worker = job->worker;

	switch (job->state) {
	case JOB_QUEUED:
		TAILQ_REMOVE(&worker->queued, job, link);
		worker->queued_count--;
		break;
	case JOB_HUNG:
		TAILQ_REMOVE(&worker->hung, job, link);
		worker->hung_count--;
		break;
	default:
		TAILQ_REMOVE(&worker->running, job, link);
		if (job->task.urgent)
			worker->urgent_count--;
		else
			worker->running_count--;
	}
}

/* ---- what the loop watches for a job ---- */

static void stop_timer(struct worker_job *job)
{
	if (job->timer_set)
		(void)qb_loop_timer_del(job->worker->loop, job->timer);
	job->timer_set = false;
}

static int set_timer(struct worker_job *job, uint64_t ms)
{
	int r;

	stop_timer(job);
	r = qb_loop_timer_add(job->worker->loop, QB_LOOP_MED, ms * 1000000, job, on_deadline, &job->timer);
	job->timer_set = r == 0;
	return r;
}

static void close_output(struct worker_job *job)
{
	if (job->out_fd < 0)
		return;
	(void)qb_loop_poll_del(job->worker->loop, job->out_fd);
	close(job->out_fd);
	job->out_fd = -1;
}

static void unwatch(struct worker_job *job)
{
	stop_timer(job);
	close_output(job);
	if (job->pid_fd >= 0) {
		(void)qb_loop_poll_del(job->worker->loop, job->pid_fd);
		close(job->pid_fd);
	}
	job->pid_fd = -1;
}

/* Keep what there is room for, and read on: who writes too much must not wait. 1; 0: nothing now; -1: the end. */
static int read_some(struct worker_job *job)
{
	char buffer[8192];
	ssize_t n = read(job->out_fd, buffer, sizeof(buffer));
	size_t room = job->task.output_max - job->size, keep;
	char *grown;

	if (n < 0)
		return errno == EINTR ? 1 : errno == EAGAIN ? 0 : -1;
	if (n == 0)
		return -1;
	keep = (size_t)n < room ? (size_t)n : room;
	grown = keep > 0 ? realloc(job->output, job->size + keep + 1) : NULL;
	if (grown) {
		job->output = grown;
		memcpy(job->output + job->size, buffer, keep);
		job->size += keep;
		job->output[job->size] = '\0';
	}
	if (!grown || keep < (size_t)n)
		job->truncated = true;
	return 1;
}

static int32_t on_output(int32_t fd, int32_t revents, void *data)
{
	struct worker_job *job = data;

	(void)fd;
	(void)revents;
	/* One piece a turn: a child that writes without end does not stop the loop. */
	if (read_some(job) < 0)
		close_output(job);
	return 0;
}

/* ---- the end of a job ---- */

static void tell(struct worker_job *job, enum worker_end end, int status, const char *where)
{
	struct worker_result result = {
		.end = end, .status = status, .output = job->output ? job->output : "", .size = job->size,
		.truncated = job->truncated, .took_ms = job->started_us > 0 ? took_ms(job) : 0,
		.pid = job->pid, .where = where,
	};

	if (job->task.done)
		job->task.done(job->task.context, &result);
}

/*
 * A child that cannot be got rid of gives its place to the next: what is hung on one LV must not stop the
 * others. It is watched on, for it has to be reaped some day.
 */
static void leave_behind(struct worker_job *job)
{
	struct worker *worker = job->worker;
	char where[WORKER_WHERE_MAX + 1];
	bool again = job->task.watch_hung;

	unlink_job(job);
	job->state = JOB_HUNG;
	TAILQ_INSERT_TAIL(&worker->hung, job, link);
	worker->hung_count++;
	worker_child_where(job->pid, where, sizeof(where));
	tell(job, WORKER_HUNG, 0, where);
	if (!again)
		job->task.done = NULL;
}

static void start_queued(struct worker *worker);

static int32_t on_exit_of_child(int32_t fd, int32_t revents, void *data)
{
	struct worker_job *job = data;
	struct worker *worker = job->worker;
	int status;
	pid_t pid;

	(void)fd;
	(void)revents;
	pid = waitpid(job->pid, &status, WNOHANG);
	if (pid == 0)
		return 0;
	/* What it wrote is in the pipe by now; somebody it left behind may write there for ever. */
	for (unsigned i = 0; i < 1024 && job->out_fd >= 0 && read_some(job) > 0; i++)
		;
	unwatch(job);
	unlink_job(job);
	/* Children that are ignored, or reaped by somebody else, leave no status: that is no success. */
	if (pid < 0)
		tell(job, WORKER_FAILED, -ECHILD, "");
	else if (job->expired)
		tell(job, WORKER_EXPIRED, 0, "");
	else if (WIFSIGNALED(status))
		tell(job, WORKER_SIGNALLED, WTERMSIG(status), "");
	else
		tell(job, WORKER_EXITED, WEXITSTATUS(status), "");
	free_job(job);
	start_queued(worker);
	return 0;
}

static void end_child(struct worker_job *job)
{
	job->expired = true;
	job->state = JOB_ENDING;
	(void)kill(-job->pid, SIGTERM);
	if (set_timer(job, WORKER_GRACE_MS) < 0)
		leave_behind(job);
}

static void kill_child(struct worker_job *job)
{
	job->expired = true;
	job->state = JOB_KILLED;
	(void)kill(-job->pid, SIGKILL);
	if (set_timer(job, WORKER_GRACE_MS) < 0)
		leave_behind(job);
}

static void on_deadline(void *data)
{
	struct worker_job *job = data;
	struct worker *worker = job->worker;

	job->timer_set = false;
	if (job->state == JOB_RUNNING && job->task.overdue == WORKER_END)
		end_child(job);
	else if (job->state == JOB_ENDING && !worker_child_sleeps_deep(job->pid))
		kill_child(job);
	else
		leave_behind(job);
	start_queued(worker);
}

/* ---- the start of a job ---- */

static int watch(struct worker_job *job)
{
	qb_loop_t *loop = job->worker->loop;
	int r;

	r = qb_loop_poll_add(loop, QB_LOOP_MED, job->out_fd, POLLIN, job, on_output);
	if (r < 0)
		return r;
	r = qb_loop_poll_add(loop, QB_LOOP_MED, job->pid_fd, POLLIN, job, on_exit_of_child);
	if (r < 0)
		return r;
	return set_timer(job, job->task.deadline_ms);
}

static int start_child(struct worker_job *job)
{
	int out[2], r;

	if (pipe2(out, O_CLOEXEC) < 0)
		return -errno;
	job->pid = fork();
	if (job->pid < 0) {
		r = -errno;
		goto fail_close;
	}
	if (job->pid == 0)
		worker_child_run(&(struct worker_child){ .argv = job->argv, .function = job->task.function,
				 .argument = job->argument, .size = job->task.argument_size, .out = out[1] });
	/* In the child as well: whoever comes first, a signal to the group finds it. */
	(void)setpgid(job->pid, job->pid);
	job->started_us = clock_now_us();
	job->out_fd = out[0];
	(void)fcntl(job->out_fd, F_SETFL, O_NONBLOCK);
	job->pid_fd = pidfd_open(job->pid, 0);
	r = job->pid_fd < 0 ? -errno : watch(job);
	if (r < 0)
		goto fail_kill;
	close(out[1]);
	job->state = JOB_RUNNING;
	add_running(job);
	return 0;

fail_kill:
	/* It has only just begun, and nothing of it can hang yet. */
	(void)kill(job->pid, SIGKILL);
	(void)waitpid(job->pid, NULL, 0);
	job->out_fd = -1;
	unwatch(job);
fail_close:
	close(out[0]);
	close(out[1]);
	return r;
}

static struct worker_job *first_startable(struct worker *worker)
{
	struct worker_job *job;

	TAILQ_FOREACH(job, &worker->queued, link)
		if (has_room(worker, job))
			return job;
	return NULL;
}

static void start_queued(struct worker *worker)
{
	struct worker_job *job;
	int r;

	while ((job = first_startable(worker))) {
		unlink_job(job);
		r = start_child(job);
		if (r == 0)
			continue;
		tell(job, WORKER_FAILED, r, "");
		free_job(job);
	}
}

/* ---- the interface ---- */

int worker_new(qb_loop_t *loop, struct worker **ret_worker)
{
	struct worker *worker = calloc(1, sizeof(*worker));

	assert(loop);
	if (!worker)
		return -ENOMEM;
	worker->loop = loop;
	TAILQ_INIT(&worker->queued);
	TAILQ_INIT(&worker->running);
	TAILQ_INIT(&worker->hung);
	*ret_worker = worker;
	return 0;
}

static void drop_jobs(struct job_list *list)
{
	struct worker_job *job;

	while ((job = TAILQ_FIRST(list))) {
		if (job->state == JOB_RUNNING && job->task.overdue == WORKER_END)
			(void)kill(-job->pid, SIGTERM);
		unwatch(job);
		TAILQ_REMOVE(list, job, link);
		free_job(job);
	}
}

void worker_free(struct worker *worker)
{
	if (!worker)
		return;
	drop_jobs(&worker->queued);
	drop_jobs(&worker->running);
	drop_jobs(&worker->hung);
	free(worker);
}

int worker_errno(const struct worker_result *result)
{
	switch (result->end) {
	case WORKER_EXITED:
		return result->status == 0 ? 0 : -EIO;
	case WORKER_SIGNALLED:
		return -EINTR;
	case WORKER_FAILED:
		return result->status;
	case WORKER_EXPIRED:
	case WORKER_HUNG:
		break;
	}
	return -ETIMEDOUT;
}

int worker_start(struct worker *worker, const struct worker_task *task, struct worker_job **ret_job)
{
	struct worker_job *job;
	int r;

	if (!task->urgent && worker->hung_count >= WORKER_HUNG_MAX)
		return -EBUSY;
	r = new_job(worker, task, &job);
	if (r < 0)
		return r;
	if (has_room(worker, job)) {
		r = start_child(job);
		if (r < 0) {
			free_job(job);
			return r;
		}
	} else {
		TAILQ_INSERT_TAIL(&worker->queued, job, link);
		worker->queued_count++;
	}
	if (ret_job)
		*ret_job = job;
	return 0;
}

void worker_cancel(struct worker_job *job)
{
	job->task.done = NULL;
	switch (job->state) {
	case JOB_QUEUED:
		unlink_job(job);
		free_job(job);
		break;
	case JOB_RUNNING:
		if (job->task.overdue == WORKER_KEEP)
			kill_child(job);
		else
			end_child(job);
		break;
	case JOB_HUNG:
		if (job->task.overdue == WORKER_KEEP)
			(void)kill(-job->pid, SIGKILL);
		break;
	default:
		break;
	}
}

void worker_detach(struct worker_job *job)
{
	job->task.done = NULL;
}

void worker_kill(struct worker_job *job)
{
	if (job->state == JOB_QUEUED) {
		/* Not begun, it could only begin: the caller hears what comes of it. */
		return;
	}
	(void)kill(-job->pid, SIGKILL);
}

struct worker_count worker_count(const struct worker *worker)
{
	return (struct worker_count){
		.running = worker->running_count + worker->urgent_count,
		.queued = worker->queued_count,
		.hung = worker->hung_count,
	};
}

int worker_hung(const struct worker *worker, unsigned index, struct worker_hung *ret_hung)
{
	const struct worker_job *job = TAILQ_FIRST(&worker->hung);

	while (job && index > 0) {
		job = TAILQ_NEXT(job, link);
		index--;
	}
	if (!job)
		return 0;
	ret_hung->what = job->task.what;
	ret_hung->pid = job->pid;
	ret_hung->for_ms = took_ms(job);
	worker_child_where(job->pid, ret_hung->where, sizeof(ret_hung->where));
	return 1;
}
