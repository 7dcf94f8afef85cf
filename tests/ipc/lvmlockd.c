/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/ipc/lvmlockd.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tap.h"

static void bind_notify(struct lvmlockd_process *l)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", l->notify_path);
	l->notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (l->notify_fd < 0 || bind(l->notify_fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		bail_out("no notification socket");
}

void lvmlockd_prepare(struct lvmlockd_process *l, const char *extra)
{
	FILE *conf;

	memset(l, 0, sizeof(*l));
	belayd_prepare(&l->belayd, NULL);
	snprintf(l->socket, sizeof(l->socket), "%s/lvm/lvmlockd.socket", l->belayd.dir);
	snprintf(l->pid_file, sizeof(l->pid_file), "%s/lvmlockd.pid", l->belayd.dir);
	snprintf(l->volumes, sizeof(l->volumes), "%s/run/volumes", l->belayd.dir);
	snprintf(l->log, sizeof(l->log), "%s/lvmlockd.log", l->belayd.dir);
	snprintf(l->notify_path, sizeof(l->notify_path), "%s/lvmlockd.notify", l->belayd.dir);
	conf = fopen(l->belayd.conf, "ae");
	if (!conf)
		bail_out("no configuration file");
	fprintf(conf, "[lvm]\nsocket = %s\npid_file = %s\n%s", l->socket, l->pid_file, extra ? extra : "");
	fclose(conf);
	bind_notify(l);
}

static void run(const struct lvmlockd_process *l)
{
	const char *top = getenv("top_builddir");
	char program[4096];
	int log;

	/* Should the test die, it must not outlive it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setenv("NOTIFY_SOCKET", l->notify_path, 1);
	log = open(l->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	dup2(log, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
	close(log);
	snprintf(program, sizeof(program), "%s/lvmlockd/belay-lvmlockd", top ? top : ".");
	execl(program, "belay-lvmlockd", "--foreground", "--config", l->belayd.conf, (char *)NULL);
	perror(program);
	_exit(127);
}

void lvmlockd_spawn(struct lvmlockd_process *l)
{
	l->pid = fork();
	if (l->pid < 0)
		bail_out("cannot fork");
	if (l->pid == 0)
		run(l);
}

static int open_pidfd(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

bool lvmlockd_says(struct lvmlockd_process *l, const char *text)
{
	struct pollfd fds[2] = {
		{ .fd = l->notify_fd, .events = POLLIN },
		{ .fd = open_pidfd(l->pid), .events = POLLIN },
	};
	char said[512];
	bool found = false;

	while (!found && poll(fds, 2, PATIENCE_MS) > 0 && (fds[0].revents & POLLIN)) {
		ssize_t size = recv(l->notify_fd, said, sizeof(said) - 1, MSG_DONTWAIT);

		said[size > 0 ? size : 0] = '\0';
		found = strstr(said, text);
	}
	close(fds[1].fd);
	return found;
}

void lvmlockd_start(struct lvmlockd_process *l, const char *extra)
{
	lvmlockd_prepare(l, extra);
	belayd_spawn(&l->belayd, NULL);
	if (belayd_ready(&l->belayd)) {
		lvmlockd_spawn(l);
		if (lvmlockd_says(l, "STATUS=serving"))
			return;
	}
	ok(false, "belayd and belay-lvmlockd start");
	lvmlockd_remove(l);
	bail_out("belay-lvmlockd does not start");
}

int lvmlockd_wait(struct lvmlockd_process *l)
{
	struct pollfd end = { .fd = open_pidfd(l->pid), .events = POLLIN };
	int status, n = poll(&end, 1, PATIENCE_MS);

	close(end.fd);
	if (n != 1 || waitpid(l->pid, &status, 0) != l->pid)
		return -1;
	l->pid = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

bool lvmlockd_logged(const struct lvmlockd_process *l, const char *text)
{
	FILE *log = fopen(l->log, "re");
	char line[2048];
	bool found = false;

	while (log && !found && fgets(line, sizeof(line), log))
		found = strstr(line, text);
	if (log)
		fclose(log);
	return found;
}

static void show_log(const struct lvmlockd_process *l)
{
	FILE *log = fopen(l->log, "re");
	char line[2048];

	while (log && fgets(line, sizeof(line), log))
		diag("%.*s", (int)strcspn(line, "\n"), line);
	if (log)
		fclose(log);
}

void lvmlockd_remove(struct lvmlockd_process *l)
{
	if (l->pid > 0) {
		kill(l->pid, SIGKILL);
		waitpid(l->pid, NULL, 0);
	}
	close(l->notify_fd);
	if (tap_state()->failed > 0)
		show_log(l);
	belayd_remove(&l->belayd);
}

/* ---- clients ---- */

int lvm_connect(const struct lvmlockd_process *l)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", l->socket);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		bail_out("cannot connect to belay-lvmlockd");
	return fd;
}

static void send_all(int fd, const char *text, size_t size)
{
	while (size > 0) {
		ssize_t sent = send(fd, text, size, MSG_NOSIGNAL);

		if (sent <= 0)
			return;
		text += sent;
		size -= (size_t)sent;
	}
}

__attribute__((format(printf, 2, 0)))
static void vsend(int fd, const char *format, va_list args)
{
	char *text = NULL;
	int size = vasprintf(&text, format, args);

	if (size < 0)
		bail_out("no memory");
	send_all(fd, text, (size_t)size);
	send_all(fd, "\n##\n", 4);
	free(text);
}

void lvm_send(int fd, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsend(fd, format, args);
	va_end(args);
}

bool lvm_receive(int fd, struct message *ret_answer)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char text[MESSAGE_BYTES_MAX];
	size_t size = 0;

	/* Byte by byte, so that nothing of a next answer is taken. */
	while (size < sizeof(text) && message_length(text, size) == 0) {
		if (poll(&p, 1, PATIENCE_MS) != 1 || recv(fd, text + size, 1, 0) != 1)
			return false;
		size++;
	}
	return message_parse(text, size, ret_answer) == 0;
}

bool lvm_silent(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 0;
}

int lvm_ask(int fd, const char *format, ...)
{
	struct message answer;
	va_list args;

	va_start(args, format);
	vsend(fd, format, args);
	va_end(args);
	if (!lvm_receive(fd, &answer) || !message_text(&answer, "response") ||
	    strcmp(message_text(&answer, "response"), "OK") != 0)
		return -9999;
	return (int)message_number(&answer, "op_result", -9999);
}
