/* SPDX-License-Identifier: GPL-2.0-or-later */
/* belay lock: hold a lock while a command runs, as flock(1) does, on all nodes. */
#include "tools/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* What deciding, or withdrawing a request, may take beyond the time that was given. */
#define DECISION_MS 3000u

struct held {
	struct belay *belay;
	struct belay_handle *handle;
	uint64_t token;
	bool got;
};

static int open_file(const struct tool *tool, const struct lock_options *o, struct held *held)
{
	int fd = open(o->resource, (o->shared ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	int r;

	if (fd < 0)
		return tool_failed(tool, -errno, "%s: cannot open it for %s", o->resource,
				   o->shared ? "reading, as a shared lock wants"
					     : "writing, as an exclusive lock wants");
	r = belay_open_fd(held->belay, fd, o->fcntl ? BELAY_OWNER_HANDLE : BELAY_OWNER_FLOCK,
			  &held->handle);
	close(fd);
	if (r == -EINVAL)
		return tool_failed(tool, 0, "%s: not a regular file", o->resource);
	if (r == -ENOLCK)
		return tool_failed(tool, 0, "%s: no lockspace in belay.conf has this path, or "
				   "a limit is reached", o->resource);
	return r < 0 ? tool_failed(tool, r, "%s", o->resource) : TOOL_OK;
}

/* "lockspace:name"; without a colon, the default lockspace. */
static int open_name(const struct tool *tool, const struct lock_options *o, struct held *held)
{
	const char *colon = strchr(o->resource, ':');
	const char *name = colon ? colon + 1 : o->resource;
	char *lockspace = colon ? strndup(o->resource, (size_t)(colon - o->resource)) : NULL;
	int r;

	if (colon && !lockspace)
		return tool_failed(tool, -ENOMEM, "%s", o->resource);
	r = belay_open_name(held->belay, lockspace, name, BELAY_OWNER_HANDLE, &held->handle);
	free(lockspace);
	switch (r) {
	case 0:
		return TOOL_OK;
	case -EINVAL:
		return tool_usage(tool, "%s: a name has 1 to 255 bytes, before it perhaps a "
				  "lockspace and a colon", o->resource);
	case -ENOENT:
		return tool_failed(tool, 0, "%s: belay.conf has no such lockspace", o->resource);
	case -EACCES:
		return tool_failed(tool, 0, "%s: this user may not use that lockspace", o->resource);
	default:
		return tool_failed(tool, r, "%s", o->resource);
	}
}

static int guess(const struct tool *tool, const struct lock_options *o, struct held *held)
{
	struct stat st;

	if (o->by == LOCK_BY_FILE)
		return open_file(tool, o, held);
	if (o->by == LOCK_BY_NAME)
		return open_name(tool, o, held);
	if (stat(o->resource, &st) == 0)
		return open_file(tool, o, held);
	/* A misspelt path must not become the name of a lock that nobody else takes. */
	if (strchr(o->resource, '/') || o->fcntl)
		return tool_failed(tool, -errno, "%s: no file (--name takes it as a name)", o->resource);
	return open_name(tool, o, held);
}

static int open_resource(const struct tool *tool, const struct lock_options *o, struct held *held)
{
	struct tool_limit *limit;
	int status = tool_limit_begin(tool, TOOL_ANSWER_MS, TOOL_UNREACHABLE, TOOL_NO_ANSWER, &limit);

	if (status != TOOL_OK)
		return status;
	status = guess(tool, o, held);
	tool_limit_end(limit);
	return status;
}

/* "Busy" has a status of its own, which may be that of success. */
static int take(const struct tool *tool, const struct lock_options *o, struct held *held)
{
	enum belay_lock_mode mode = o->shared ? BELAY_SHARED : BELAY_EXCLUSIVE;
	int r;

	if (o->try)
		r = belay_trylock(held->handle, mode, 0, 0, &held->token);
	else if (o->timed)
		r = belay_lock_timed(held->handle, mode, 0, 0, o->wait_ms, &held->token);
	else
		r = belay_lock(held->handle, mode, 0, 0, &held->token);
	held->got = r == 0;
	/* Busy is an answer, not a failure: like flock(1), say nothing. */
	if (r == -EAGAIN || r == -ETIMEDOUT)
		return o->busy_status;
	if (r == -EBADF)
		return tool_failed(tool, 0, "%s: not allowed: a shared lock wants the right to read, "
				   "an exclusive one to write", o->resource);
	return r < 0 ? tool_failed(tool, r, "%s", o->resource) : TOOL_OK;
}

/* In the child. */
static _Noreturn void execute(const struct tool *tool, const struct lock_options *o,
			      uint64_t token, const sigset_t *mask, pid_t parent)
{
	char *shell[] = { (char *)"sh", (char *)"-c", (char *)(uintptr_t)o->shell, NULL };
	char *const *argv = o->shell ? shell : o->command;
	char text[24];

	/* Whoever kills the holder takes the lock away. */
	if (o->loss != LOCK_LOSS_WARN)
		prctl(PR_SET_PDEATHSIG, o->loss == LOCK_LOSS_KILL ? SIGKILL : SIGTERM);
	if (getppid() != parent)
		_exit(TOOL_FAILED);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)token);
	setenv("BELAY_TOKEN", text, 1);
	pthread_sigmask(SIG_SETMASK, mask, NULL);
	execvp(argv[0], argv);
	tool_failed(tool, -errno, "%s", argv[0]);
	_exit(errno == ENOENT ? 127 : 126);
}

/*
 * A signal for us is meant for the command: the lock stays until that ends.
 * What the terminal sends, the command gets anyhow.
 */
static void pass_on(int signals, pid_t pid)
{
	struct signalfd_siginfo info;

	if (read(signals, &info, sizeof(info)) == sizeof(info) && info.ssi_code != SI_KERNEL)
		kill(pid, (int)info.ssi_signo);
}

/*
 * Wait for the command and for the loss of the lock, whichever comes first.
 * Returns whether the lock was lost.
 */
static bool watch(struct belay *belay, int signals, pid_t pid, int pidfd)
{
	struct belay_event_info event;
	struct pollfd p[3] = {
		{ .fd = pidfd, .events = POLLIN },
		{ .fd = belay_fd(belay), .events = POLLIN },
		{ .fd = signals, .events = POLLIN },
	};

	for (;;) {
		if (poll(p, 3, -1) < 0)
			continue;
		if (p[0].revents)
			return false;
		if (p[1].revents && belay_next(belay, &event) < 0)
			return true;
		if (p[2].revents)
			pass_on(signals, pid);
	}
}

static int exit_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void end_command(const struct tool *tool, const struct lock_options *o, pid_t pid)
{
	tool_failed(tool, 0, "%s: the lock is LOST, belayd or the quorum is gone; the command %s",
		    o->resource, o->loss == LOCK_LOSS_WARN ? "goes on without it" : "is ended");
	if (o->loss != LOCK_LOSS_WARN)
		kill(pid, o->loss == LOCK_LOSS_KILL ? SIGKILL : SIGTERM);
}

static int reap(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return exit_status(status);
}

static int supervise(const struct tool *tool, const struct lock_options *o, struct held *held,
		     int signals, pid_t pid)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	int error = errno, status;
	bool lost;

	if (pidfd < 0) {
		/* Without it the loss of the lock would go unseen while the command runs. */
		kill(pid, SIGKILL);
		reap(pid);
		return tool_failed(tool, -error, "%s: the command was killed at once, for it cannot be "
				   "watched together with the lock", o->resource);
	}
	lost = watch(held->belay, signals, pid, pidfd);
	if (lost)
		end_command(tool, o, pid);
	status = reap(pid);
	close(pidfd);
	return lost && o->loss != LOCK_LOSS_WARN ? TOOL_FAILED : status;
}

static int run_command(const struct tool *tool, const struct lock_options *o, struct held *held)
{
	static const int passed[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP };
	pid_t parent = getpid(), pid;
	sigset_t set, mask;
	int signals, status;
	size_t i;

	sigemptyset(&set);
	for (i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
		sigaddset(&set, passed[i]);
	sigprocmask(SIG_BLOCK, &set, &mask);
	signals = signalfd(-1, &set, SFD_CLOEXEC);
	if (signals < 0)
		return tool_failed(tool, -errno, "%s: the command was not run, for signals to it cannot "
				   "be watched together with the lock", o->resource);
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		execute(tool, o, held->token, &mask, parent);
	status = pid < 0 ? tool_failed(tool, -errno, "cannot start a process")
			 : supervise(tool, o, held, signals, pid);
	close(signals);
	return status;
}

/*
 * Only the order of the cluster says whether a request was granted before its
 * time was over, and there may be no order for long. Who has given a time wants
 * an end: that of the connection withdraws the request, whatever has become of it.
 */
static int take_in_time(const struct tool *tool, const struct lock_options *o, struct held *held)
{
	struct tool_limit *limit;
	char text[512];
	int status;

	if (!o->try && !o->timed)
		return take(tool, o, held);
	(void)snprintf(text, sizeof(text), "%.300s: belayd cannot decide whether the lock is free: see "
		       "belay status", o->resource);
	status = tool_limit_begin(tool, (o->try ? 0 : (uint64_t)o->wait_ms) + DECISION_MS,
				  TOOL_UNDECIDED, text, &limit);
	if (status != TOOL_OK)
		return status;
	status = take(tool, o, held);
	tool_limit_end(limit);
	return status;
}

static int run(const struct tool *tool, int argc, char **argv)
{
	struct lock_options o;
	struct held held = { 0 };
	int status = lock_parse(tool, argc, argv, &o);

	if (status != TOOL_OK)
		return status;
	if (o.help)
		return tool_help(tool);
	status = tool_connect(tool, &held.belay);
	if (status != TOOL_OK)
		return status;
	status = open_resource(tool, &o, &held);
	if (status == TOOL_OK) {
		status = take_in_time(tool, &o, &held);
		if (held.got)
			status = run_command(tool, &o, &held);
		belay_handle_close(held.handle);
	}
	belay_disconnect(held.belay);
	return status;
}

const struct subcommand command_lock = {
	.name = "lock",
	.summary = "hold a lock while a command runs, like flock(1)",
	.usage =
	"RESOURCE [OPTIONS] [--] COMMAND [ARGUMENT...]\n"
	"       belay lock RESOURCE [OPTIONS] -c 'SHELL COMMAND'\n\n"
	"RESOURCE is a file under a path that belay.conf gives to a lockspace, or the\n"
	"name of a lock: NAME or LOCKSPACE:NAME.\n\n"
	"  -x, --exclusive      nobody else has it (default)\n"
	"  -s, --shared         others may share it\n"
	"  -n, --nonblock       do not wait for it\n"
	"  -w, --wait SECONDS   wait no longer than that\n"
	"  -E, --conflict-exit-code STATUS\n"
	"                       status if it is busy or the time is over; default 1\n"
	"  -c, --command LINE   run LINE with sh -c\n"
	"      --file, --name   take RESOURCE as a file, as a name; do not guess\n"
	"      --fcntl          lock the file as fcntl(2) does, not as flock(2)\n"
	"      --on-loss WHAT   if the lock is lost: term or kill the command, or only\n"
	"                       warn; default term\n\n"
	"The command finds the fencing token of the lock in BELAY_TOKEN.\n"
	"Exit status: the command's; 1 busy, 2 wrong usage, 3 belayd unreachable,\n"
	"4 other failure, or the lock was lost, 5 with -n or -w: not decided in that time\n"
	"and 3 seconds more, and withdrawn.\n",
	.run = run,
};
