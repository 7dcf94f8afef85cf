/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A belayd of the test's own: standalone, in a temporary directory with a
 * socket, a journal, and a lockspace "files" for what lies under files/.
 */
#ifndef BELAY_TESTS_IPC_DAEMON_H
#define BELAY_TESTS_IPC_DAEMON_H

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tap.h"

struct daemon {
	char directory[64];
	char socket[96];
	pid_t pid;
};

static inline void daemon_path(const struct daemon *daemon, const char *name, char ret_path[128])
{
	snprintf(ret_path, 128, "%s/%s", daemon->directory, name);
}

static inline int daemon_notify_socket(const struct daemon *daemon)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/notify", daemon->directory);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		bail_out("no socket for readiness");
	return fd;
}

static inline void daemon_configure(const struct daemon *daemon, const char *more)
{
	char path[128];
	FILE *file;

	daemon_path(daemon, "belay.conf", path);
	file = fopen(path, "w");
	if (!file)
		bail_out("no configuration");
	fprintf(file, "[lockspace files]\npath = %s/files\n%s\n[belayd]\nsocket = %s\n"
		"journal = %s/journal\njournal_kb = 1024\nlog_target = stderr\n", daemon->directory, more,
		daemon->socket, daemon->directory);
	fclose(file);
}

static inline _Noreturn void daemon_exec(const struct daemon *daemon)
{
	const char *top = getenv("top_builddir");
	char program[1024], config[128], log[128], notify[128];
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(program, sizeof(program), "%s/daemon/belayd", top ? top : ".");
	daemon_path(daemon, "belay.conf", config);
	daemon_path(daemon, "log", log);
	daemon_path(daemon, "notify", notify);
	setenv("NOTIFY_SOCKET", notify, 1);
	fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	execl(program, program, "--standalone", "--foreground", "-c", config, (char *)NULL);
	_exit(127);
}

static inline void daemon_log(const struct daemon *daemon)
{
	char path[128], line[512];
	FILE *file;

	daemon_path(daemon, "log", path);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		printf("# belayd said: %s", line);
	if (file)
		fclose(file);
}

/* Start it in daemon->directory, and wait until it serves. */
static inline void daemon_launch(struct daemon *daemon)
{
	char said[256] = "", path[128];
	int fd = daemon_notify_socket(daemon);
	struct timeval patience = { .tv_sec = 30 };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	fflush(stdout);
	daemon->pid = fork();
	if (daemon->pid == 0)
		daemon_exec(daemon);
	while (!strstr(said, "READY=1")) {
		ssize_t n = recv(fd, said, sizeof(said) - 1, 0);

		if (n < 0) {
			daemon_log(daemon);
			bail_out("belayd does not start");
		}
		said[n] = '\0';
	}
	close(fd);
	daemon_path(daemon, "notify", path);
	unlink(path);
}

/* @more: lines for the configuration; its first section is the lockspace "files". */
static inline void daemon_start(struct daemon *daemon, const char *more)
{
	char path[128];

	*daemon = (struct daemon){ .directory = "/tmp/belay-test.XXXXXX" };
	if (!mkdtemp(daemon->directory) || chmod(daemon->directory, 0755) < 0)
		bail_out("no temporary directory");
	snprintf(daemon->socket, sizeof(daemon->socket), "%s/socket", daemon->directory);
	daemon_path(daemon, "files", path);
	if (mkdir(path, 0755) < 0)
		bail_out("no directory for files");
	daemon_configure(daemon, more);
	daemon_launch(daemon);
}

static inline int daemon_end(struct daemon *daemon, int signal)
{
	int status = -1;

	kill(daemon->pid, signal);
	waitpid(daemon->pid, &status, 0);
	daemon->pid = 0;
	return status;
}

/* Ends it and removes the directory; a failed test shows belayd's log. */
static inline void daemon_stop(struct daemon *daemon)
{
	char command[128];

	if (daemon->pid > 0)
		ok_int(daemon_end(daemon, SIGTERM), 0, "belayd stops cleanly");
	if (tap_state()->failed > 0)
		daemon_log(daemon);
	snprintf(command, sizeof(command), "rm -rf %s", daemon->directory);
	if (system(command) != 0)
		diag("cannot remove %s", daemon->directory);
}

/* A file of 0 bytes in the lockspace, opened with @flags. */
static inline int daemon_file(const struct daemon *daemon, const char *name, int flags)
{
	char path[128], relative[64];
	int fd;

	snprintf(relative, sizeof(relative), "files/%s", name);
	daemon_path(daemon, relative, path);
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
	fd = open(path, flags | O_CLOEXEC);
	if (fd < 0)
		bail_out("no file");
	return fd;
}

#endif
