/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The agent of a node in the lab: runs the commands that "lab run" sends. It is
 * the node's first process. One connection, one command:
 *
 *	in:	u32 size, u32 seconds, then the command, a line for bash. What
 *		follows is the command's standard input.
 *	out:	frames of u8 kind, u32 value. 'o' and 'e': so many bytes of standard
 *		output or error follow. 'x': it has ended, with that status.
 *
 * Numbers are little-endian. A command that is not done after so many seconds is
 * killed, with its children, and its status is 124, as of timeout(1): also when
 * it hangs in the kernel and does not die of it.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PORT 7000
#define COMMAND_MAX (1u << 20)
#define CHUNK 16384
#define STATUS_LATE 124

struct job {
	pid_t pid;
	int pidfd;
	int out[2];		/* ends to read from: stdout, stderr; -1: closed */
	int64_t deadline_ms;
};

static int64_t now_ms(void)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_MONOTONIC, &ts) < 0)
		abort();
	return ts.tv_sec * INT64_C(1000) + ts.tv_nsec / 1000000;
}

static bool read_all(int fd, void *buf, size_t size)
{
	char *at = buf;

	while (size > 0) {
		ssize_t n = read(fd, at, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		size -= (size_t)n;
	}
	return true;
}

static bool write_all(int fd, const void *buf, size_t size)
{
	const char *at = buf;

	while (size > 0) {
		ssize_t n = write(fd, at, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		at += n;
		size -= (size_t)n;
	}
	return true;
}

static bool send_frame(int sock, char kind, uint32_t value, const void *bytes)
{
	char head[5] = { kind };
	uint32_t le = htole32(value);

	memcpy(head + 1, &le, sizeof(le));
	return write_all(sock, head, sizeof(head)) && (!bytes || write_all(sock, bytes, value));
}

static char *receive_command(int sock, uint32_t *ret_seconds)
{
	uint32_t head[2];
	char *command;
	uint32_t size;

	if (!read_all(sock, head, sizeof(head)))
		return NULL;
	size = le32toh(head[0]);
	if (size > COMMAND_MAX)
		return NULL;
	command = calloc(1, size + 1);
	if (!command || !read_all(sock, command, size))
		return NULL;
	*ret_seconds = le32toh(head[1]);
	return command;
}

/* In the child: what the command is given. Never returns. */
static void become(int sock, int out, int err, const char *command)
{
	setsid();
	if (dup2(sock, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
		_exit(126);
	signal(SIGPIPE, SIG_DFL);
	execl("/bin/bash", "bash", "-c", command, (char *)NULL);
	_exit(127);
}

static bool start(struct job *job, int sock, const char *command)
{
	int out[2], err[2];

	if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
		return false;
	job->pid = fork();
	if (job->pid < 0)
		return false;
	if (job->pid == 0)
		become(sock, out[1], err[1], command);
	close(out[1]);
	close(err[1]);
	job->out[0] = out[0];
	job->out[1] = err[0];
	if (fcntl(out[0], F_SETFL, O_NONBLOCK) < 0 || fcntl(err[0], F_SETFL, O_NONBLOCK) < 0)
		return false;
	job->pidfd = pidfd_open(job->pid, 0);
	return job->pidfd >= 0;
}

/* Passes on what stands in a pipe. */
static bool forward(int sock, int *pipe, char kind)
{
	char buf[CHUNK];
	ssize_t n;

	while (*pipe >= 0) {
		n = read(*pipe, buf, sizeof(buf));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return true;
		if (n <= 0) {
			close(*pipe);
			*pipe = -1;
		} else if (!send_frame(sock, kind, (uint32_t)n, buf)) {
			return false;
		}
	}
	return true;
}

/*
 * Until the command has ended, not until nobody has its output open any more:
 * a daemon that it left behind may keep that for ever.
 */
static bool pump(struct job *job, int sock, bool *ret_late)
{
	for (;;) {
		struct pollfd fds[] = {
			{ .fd = job->pidfd, .events = POLLIN },
			{ .fd = job->out[0], .events = POLLIN },
			{ .fd = job->out[1], .events = POLLIN },
		};
		int64_t left = job->deadline_ms - now_ms();

		if (left > 0 && poll(fds, 3, (int)left) < 0 && errno != EINTR)
			return false;
		if (!forward(sock, &job->out[0], 'o') || !forward(sock, &job->out[1], 'e'))
			return false;
		if (fds[0].revents != 0 || left <= 0) {
			*ret_late = fds[0].revents == 0;
			return true;
		}
	}
}

static void serve(int sock)
{
	struct job job = { 0 };
	uint32_t seconds, status;
	char *command = receive_command(sock, &seconds);
	bool late = false;
	int wait_status;

	if (!command || !start(&job, sock, command))
		return;
	job.deadline_ms = now_ms() + INT64_C(1000) * (seconds < 86400 ? seconds : 86400);
	if (!pump(&job, sock, &late) || late)
		kill(-job.pid, SIGKILL);
	if (late)
		status = STATUS_LATE;
	else if (waitpid(job.pid, &wait_status, 0) < 0)
		return;
	else
		status = (uint32_t)(WIFEXITED(wait_status) ? WEXITSTATUS(wait_status)
							   : 128 + WTERMSIG(wait_status));
	/* It may have written between the last look and its end. */
	if (forward(sock, &job.out[0], 'o') && forward(sock, &job.out[1], 'e'))
		(void)send_frame(sock, 'x', status, NULL);
}

static int listen_on(uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(port) };
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(fd, 64) < 0)
		return -1;
	return fd;
}

int main(void)
{
	int listener = listen_on(PORT);

	if (listener < 0) {
		perror("agent");
		return EXIT_FAILURE;
	}
	/* So the kernel reaps: the agent's own children, and orphans of the node. */
	signal(SIGCHLD, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	puts("lab: ready");
	fflush(stdout);
	for (;;) {
		int sock = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		pid_t pid = sock < 0 ? -1 : fork();

		if (pid == 0) {
			close(listener);
			signal(SIGCHLD, SIG_DFL);
			serve(sock);
			_exit(0);
		}
		if (sock >= 0)
			close(sock);
	}
}
