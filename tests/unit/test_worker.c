/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Children with deadlines: real ones, on a real loop. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lvmlockd/worker.h"
#include "tests/tap.h"

struct seen {
	qb_loop_t *loop;
	unsigned calls, stop_at;	/* calls; the loop stops at so many */
	enum worker_end end;
	int status, pid;
	char output[256];
	size_t size;
	bool truncated;
	uint64_t took_ms;
};

static void on_done(void *context, const struct worker_result *result)
{
	struct seen *seen = context;

	seen->calls++;
	seen->end = result->end;
	seen->status = result->status;
	seen->pid = result->pid;
	seen->size = result->size;
	seen->truncated = result->truncated;
	seen->took_ms = result->took_ms;
	(void)snprintf(seen->output, sizeof(seen->output), "%s", result->output);
	if (seen->calls >= seen->stop_at)
		qb_loop_stop(seen->loop);
}

static struct worker_task task_of(qb_loop_t *loop, struct seen *seen)
{
	*seen = (struct seen){ .loop = loop, .stop_at = 1 };
	return (struct worker_task){ .what = "a test", .deadline_ms = 20000, .done = on_done, .context = seen };
}

static struct worker_task shell(qb_loop_t *loop, struct seen *seen, const char **argv, const char *script)
{
	struct worker_task task = task_of(loop, seen);

	argv[0] = "sh";
	argv[1] = "-c";
	argv[2] = script;
	argv[3] = NULL;
	task.argv = argv;
	return task;
}

/* ---- programs ---- */

static void test_programs(qb_loop_t *loop, struct worker *worker)
{
	const char *argv[4];
	int pid = 0, group = -1, at = 0;
	struct worker_task task;
	struct seen seen;

	task = shell(loop, &seen, argv, "echo out; echo err >&2; echo $LC_ALL; exit 7");
	ok_int(worker_start(worker, &task, NULL), 0, "a program is started");
	ok_uint(seen.calls, 0, "nothing is called from inside");
	qb_loop_run(loop);
	ok(seen.end == WORKER_EXITED && seen.status == 7, "it ends with its status");
	ok_str(seen.output, "out\nerr\nC\n", "all its output is there, in the language that is read");

	task = shell(loop, &seen, argv, "kill -SEGV $$");
	ok_int(worker_start(worker, &task, NULL), 0, "one that crashes is started");
	qb_loop_run(loop);
	ok(seen.end == WORKER_SIGNALLED && seen.status == SIGSEGV, "it ends by its signal");

	argv[0] = "/nonexistent/program";
	argv[1] = NULL;
	ok_int(worker_start(worker, &task, NULL), 0, "one that is not there is started");
	qb_loop_run(loop);
	ok(seen.end == WORKER_EXITED && seen.status == 127, "it ends as the shell has it");
	ok(strstr(seen.output, "cannot run /nonexistent/program"), "and says why");

	task = shell(loop, &seen, argv, "head -c 300000 /dev/zero | tr '\\0' x; echo end >&2");
	task.output_max = 100;
	ok_int(worker_start(worker, &task, NULL), 0, "one that writes a lot is started");
	qb_loop_run(loop);
	ok(seen.end == WORKER_EXITED && seen.status == 0, "it need not wait for us");
	ok(seen.size == 100 && seen.truncated, "what is too much is left out, and it is said");

	/* What the loop has open would stay open as long as a child hangs. */
	task = shell(loop, &seen, argv, "echo $$; cut -d' ' -f5 /proc/$$/stat; ls /proc/$$/fd; cat");
	ok_int(worker_start(worker, &task, NULL), 0, "one that looks at itself is started");
	qb_loop_run(loop);
	ok(sscanf(seen.output, "%d\n%d\n%n", &pid, &group, &at) == 2 && pid == group,
	   "it has a process group of its own");
	ok_str(seen.output + at, "0\n1\n2\n", "and three descriptors, the first of them empty");

	task.argv = NULL;
	ok_int(worker_start(worker, &task, NULL), -EINVAL, "nothing to run is refused");
}

/* ---- functions ---- */

static int tell_back(const void *argument, size_t size, int out)
{
	return write(out, argument, size) == (ssize_t)size ? 0 : -EIO;
}

static int fail(const void *argument, size_t size, int out)
{
	(void)argument;
	(void)size;
	(void)out;
	return -ENXIO;
}

static int hang(const void *argument, size_t size, int out)
{
	(void)argument;
	(void)size;
	(void)out;
	for (;;)
		pause();
	return 0;
}

static void test_functions(qb_loop_t *loop, struct worker *worker)
{
	char argument[] = "as\0bytes";
	struct worker_task task;
	struct seen seen;

	task = task_of(loop, &seen);
	task.function = tell_back;
	task.argument = argument;
	task.argument_size = sizeof(argument);
	ok_int(worker_start(worker, &task, NULL), 0, "a function is started");
	argument[0] = '?';
	qb_loop_run(loop);
	ok(seen.end == WORKER_EXITED && seen.status == 0, "it ends");
	ok(seen.size == sizeof(argument) && strcmp(seen.output, "as") == 0,
	   "its result is bytes, of what it was given");

	task = task_of(loop, &seen);
	task.function = fail;
	ok_int(worker_start(worker, &task, NULL), 0, "one that fails is started");
	qb_loop_run(loop);
	ok(seen.end == WORKER_EXITED && seen.status == ENXIO, "its errno is told");
}

/* ---- deadlines ---- */

static void test_expired(qb_loop_t *loop, struct worker *worker, const char *fifo)
{
	char script[256], byte;
	const char *argv[4];
	struct worker_task task;
	struct seen seen;
	struct pollfd end;

	/* A grandchild has the fifo open as long as it lives. */
	(void)snprintf(script, sizeof(script), "sleep 1000 >%s & echo begun; wait", fifo);
	task = shell(loop, &seen, argv, script);
	task.deadline_ms = 500;
	end = (struct pollfd){ .fd = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC), .events = POLLIN };
	ok_int(worker_start(worker, &task, NULL), 0, "a program that lasts too long is started");
	qb_loop_run(loop);
	ok(seen.end == WORKER_EXPIRED, "it is ended");
	ok_str(seen.output, "begun\n", "its output so far is there");
	ok(seen.took_ms >= 500 && seen.took_ms < 5000, "at its deadline");
	ok(poll(&end, 1, 10000) == 1 && read(end.fd, &byte, 1) == 0, "with all that it has begun");
	close(end.fd);
}

/*
 * Its child shares its memory, and until that ends the function sleeps in the kernel where only
 * SIGKILL wakes it: as lvm, which puts off signals, with a device that does not answer.
 */
static int sleep_deep(const void *argument, size_t size, int out)
{
	sigset_t term;
	pid_t pid;

	(void)argument;
	(void)size;
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &term, NULL);
	pid = vfork();
	if (pid == 0) {
		(void)setpgid(0, 0);
		(void)dprintf(out, "%d\n", (int)getpid());
		for (;;)
			pause();
	}
	return 0;
}

static void test_stubborn(qb_loop_t *loop, struct worker *worker)
{
	struct seen deaf, deep;
	struct worker_hung hung;
	struct worker_task task;
	const char *argv[4];

	task = shell(loop, &deaf, argv, "trap '' TERM; while :; do sleep 1000; done");
	task.deadline_ms = 200;
	ok_int(worker_start(worker, &task, NULL), 0, "a program that does not hear SIGTERM is started");
	task = task_of(loop, &deep);
	task.function = sleep_deep;
	task.deadline_ms = 400;
	task.watch_hung = true;
	(void)snprintf(task.what, sizeof(task.what), "activate vg/lv");
	ok_int(worker_start(worker, &task, NULL), 0, "one that sleeps in the kernel is started");
	/* Its time is up later. */
	deaf.stop_at = 2;
	qb_loop_run(loop);
	ok(deaf.calls == 1 && deaf.end == WORKER_EXPIRED, "the first is killed after a while");
	ok(deaf.took_ms >= 200 + WORKER_GRACE_MS, "not at once");
	ok(deep.end == WORKER_HUNG, "the second is not: it would be killed in the middle of what it does");
	ok_uint(worker_count(worker).hung, 1, "it is counted");
	ok_int(worker_hung(worker, 0, &hung), 1, "and shown");
	ok_str(hung.what, "activate vg/lv", "by what it was for");
	ok(hung.pid == deep.pid && hung.for_ms >= 400, "with its pid, and for how long");
	ok_int(worker_hung(worker, 1, &hung), 0, "there are no others");

	deep.stop_at = 2;
	if (atoi(deep.output) <= 1)
		bail_out("the child did not say its pid");
	ok_int(kill(atoi(deep.output), SIGKILL), 0, "what it waits for comes to an end");
	qb_loop_run(loop);
	ok(deep.calls == 2 && deep.end == WORKER_EXPIRED, "then it ends, which is told");
	ok_uint(worker_count(worker).hung, 0, "and is not counted any more");
}

static void test_keep(qb_loop_t *loop, struct worker *worker)
{
	struct worker_job *job;
	struct worker_task task;
	struct seen seen;

	task = task_of(loop, &seen);
	task.function = hang;
	task.deadline_ms = 50;
	task.overdue = WORKER_KEEP;
	task.watch_hung = true;
	ok_int(worker_start(worker, &task, &job), 0, "a function that must not be interrupted is started");
	qb_loop_run(loop);
	ok(seen.end == WORKER_HUNG, "at its deadline it is only told that it hangs");
	ok_int(kill(seen.pid, 0), 0, "it goes on");
	seen.stop_at = 2;
	worker_kill(job);
	qb_loop_run(loop);
	ok(seen.end == WORKER_SIGNALLED && seen.status == SIGKILL, "until it is killed on purpose");

	seen.calls = 0;
	ok_int(worker_start(worker, &task, &job), 0, "another one");
	worker_detach(job);
	task = task_of(loop, &seen);
	task.function = fail;
	ok_int(worker_start(worker, &task, NULL), 0, "and something else meanwhile");
	qb_loop_run(loop);
	ok_uint(seen.calls, 1, "of what is detached nothing is heard any more");
	worker_kill(job);
}

/* ---- turns ---- */

static void test_turns(qb_loop_t *loop, struct worker *worker)
{
	struct seen slow[WORKER_LIMIT], waiting, cancelled, urgent;
	struct worker_job *job[WORKER_LIMIT], *queued, *cut;
	struct worker_task task;

	for (unsigned i = 0; i < WORKER_LIMIT; i++) {
		task = task_of(loop, &slow[i]);
		task.function = hang;
		if (worker_start(worker, &task, &job[i]) < 0)
			bail_out("cannot start");
	}
	task = task_of(loop, &waiting);
	task.function = fail;
	ok_int(worker_start(worker, &task, &queued), 0, "one more than may run at a time");
	task = task_of(loop, &cancelled);
	task.function = fail;
	ok_int(worker_start(worker, &task, &cut), 0, "and one more");
	ok_uint(worker_count(worker).queued, 2, "wait");
	worker_cancel(cut);
	ok_uint(worker_count(worker).queued, 1, "one is cancelled");
	task = task_of(loop, &urgent);
	task.function = fail;
	task.urgent = true;
	ok_int(worker_start(worker, &task, NULL), 0, "what is urgent");
	qb_loop_run(loop);
	ok(urgent.calls == 1 && waiting.calls == 0, "does not wait");
	for (unsigned i = 0; i < WORKER_LIMIT; i++)
		worker_cancel(job[i]);
	qb_loop_run(loop);
	ok(waiting.calls == 1 && waiting.end == WORKER_EXITED, "the other has its turn when there is room");
	ok_uint(slow[0].calls + cancelled.calls, 0, "of what is cancelled nothing is heard");
}

int main(void)
{
	char directory[] = "/tmp/test_worker.XXXXXX", fifo[64];
	qb_loop_t *loop = qb_loop_create();
	struct worker *worker;

	if (!loop || worker_new(loop, &worker) < 0 || !mkdtemp(directory))
		bail_out("no loop");
	(void)snprintf(fifo, sizeof(fifo), "%s/fifo", directory);
	if (mkfifo(fifo, 0600) < 0)
		bail_out("no fifo");
	test_programs(loop, worker);
	test_functions(loop, worker);
	test_expired(loop, worker, fifo);
	test_stubborn(loop, worker);
	test_turns(loop, worker);
	test_keep(loop, worker);
	worker_free(worker);
	qb_loop_destroy(loop);
	(void)unlink(fifo);
	(void)rmdir(directory);
	return done_testing();
}
