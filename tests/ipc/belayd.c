/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/ipc/belayd.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tap.h"

static void open_notify(struct belayd *d)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", d->notify_path);
	d->notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (d->notify_fd < 0 || bind(d->notify_fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		bail_out("no notification socket");
}

static void remove_all(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char inner[512];

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		snprintf(inner, sizeof(inner), "%s/%s", path, entry->d_name);
		if (unlink(inner) < 0)
			remove_all(inner);
	}
	if (dir)
		closedir(dir);
	rmdir(path);
}

struct litter {
	pid_t pid;		/* whose it is: children end, too */
	struct belayd belayd;
};

/* A test that bailed out: its belayd dies with it, and the log says perhaps why. */
static void clean_up(int status, void *context)
{
	struct litter *litter = context;

	(void)status;
	if (getpid() == litter->pid && access(litter->belayd.dir, F_OK) == 0) {
		belayd_show_log(&litter->belayd);
		remove_all(litter->belayd.dir);
	}
	free(litter);
}

static void remove_at_exit(const struct belayd *d)
{
	struct litter *litter = malloc(sizeof(*litter));

	if (!litter)
		bail_out("out of memory");
	*litter = (struct litter){ .pid = getpid(), .belayd = *d };
	(void)on_exit(clean_up, litter);
}

void belayd_prepare(struct belayd *d, const char *extra)
{
	FILE *conf;

	*d = (struct belayd){ .dir = "/tmp/belay-ipc.XXXXXX" };
	if (!mkdtemp(d->dir))
		bail_out("no temporary directory");
	/* Other users have to reach the socket. */
	if (chmod(d->dir, 0755) < 0)
		bail_out("no access to the temporary directory");
	snprintf(d->conf, sizeof(d->conf), "%s/belay.conf", d->dir);
	snprintf(d->socket, sizeof(d->socket), "%s/run/sock", d->dir);
	snprintf(d->journal, sizeof(d->journal), "%s/run/journal", d->dir);
	snprintf(d->log, sizeof(d->log), "%s/log", d->dir);
	snprintf(d->notify_path, sizeof(d->notify_path), "%s/notify", d->dir);
	conf = fopen(d->conf, "we");
	if (!conf)
		bail_out("no configuration file");
	fprintf(conf, "[belayd]\nsocket = %s\njournal = %s\n%s", d->socket, d->journal,
		extra ? extra : "");
	fclose(conf);
	open_notify(d);
	remove_at_exit(d);
}

static void run(const struct belayd *d, const char *const *options)
{
	const char *argv[16] = { "belayd", "--standalone", "--foreground", "--config", d->conf };
	const char *top = getenv("top_builddir");
	char program[4096];
	unsigned at = 5;
	int log;

	for (; options && *options && at < 15; options++)
		argv[at++] = *options;
	/* Should the test die, belayd must not outlive it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setenv("NOTIFY_SOCKET", d->notify_path, 1);
	log = open(d->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	dup2(log, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
	close(log);
	snprintf(program, sizeof(program), "%s/daemon/belayd", top ? top : ".");
	execv(program, (char *const *)(uintptr_t)argv);
	perror(program);
	_exit(127);
}

void belayd_spawn(struct belayd *d, const char *const *options)
{
	d->pid = fork();
	if (d->pid < 0)
		bail_out("cannot fork");
	if (d->pid == 0)
		run(d, options);
}

/* pidfd_open() has no wrapper in the C library of Debian 12's headers for all compilers. */
static int open_pidfd(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

bool belayd_says(struct belayd *d, const char *text)
{
	struct pollfd fds[2] = {
		{ .fd = d->notify_fd, .events = POLLIN },
		{ .fd = open_pidfd(d->pid), .events = POLLIN },
	};
	char said[512];
	bool found = false;

	while (!found && poll(fds, 2, PATIENCE_MS) > 0) {
		ssize_t size;

		if (!(fds[0].revents & POLLIN))
			break;
		size = recv(d->notify_fd, said, sizeof(said) - 1, MSG_DONTWAIT);
		said[size > 0 ? size : 0] = '\0';
		found = strstr(said, text);
	}
	close(fds[1].fd);
	return found;
}

bool belayd_ready(struct belayd *d)
{
	return belayd_says(d, "READY=1");
}

void belayd_start(struct belayd *d, const char *extra)
{
	belayd_prepare(d, extra);
	belayd_spawn(d, NULL);
	if (belayd_ready(d))
		return;
	belayd_show_log(d);
	belayd_remove(d);
	bail_out("belayd does not start");
}

int belayd_wait(struct belayd *d)
{
	struct pollfd end = { .fd = open_pidfd(d->pid), .events = POLLIN };
	int status, n = poll(&end, 1, PATIENCE_MS);

	close(end.fd);
	if (n != 1 || waitpid(d->pid, &status, 0) != d->pid)
		return -1;
	d->pid = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

int belayd_stop(struct belayd *d)
{
	kill(d->pid, SIGTERM);
	return belayd_wait(d);
}

unsigned belayd_log_lines(const struct belayd *d, const char *text)
{
	FILE *log = fopen(d->log, "re");
	char line[1024];
	unsigned count = 0;

	while (log && fgets(line, sizeof(line), log))
		count += strstr(line, text) != NULL;
	if (log)
		fclose(log);
	return count;
}

bool belayd_logged(const struct belayd *d, const char *text)
{
	return belayd_log_lines(d, text) > 0;
}

void belayd_show_log(const struct belayd *d)
{
	FILE *log = fopen(d->log, "re");
	char line[1024];

	while (log && fgets(line, sizeof(line), log))
		diag("%.*s", (int)strcspn(line, "\n"), line);
	if (log)
		fclose(log);
}

int belayd_descriptors(const struct belayd *d)
{
	char path[64];
	DIR *dir;
	int count = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)d->pid);
	dir = opendir(path);
	if (!dir)
		return -1;
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2;	/* . and .. */
}

void belayd_remove(struct belayd *d)
{
	if (d->pid > 0) {
		kill(d->pid, SIGKILL);
		waitpid(d->pid, NULL, 0);
	}
	close(d->notify_fd);
	remove_all(d->dir);
}
