/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/former.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <qb/qblog.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/clock.h"
#include "daemon/listen.h"
#include "daemon/notify.h"
#include "daemon/record.h"

/* How often the awaited are named in the log, and how many of them. */
#define REPORT_US 10000000u
#define REPORT_MAX 10u
#define TEXT_MAX 320

struct process {
	pid_t pid;
	uint32_t first, records;	/* its records are record[first] and so on */
	bool done;
};

/* What poll() watches: these, then process[i] at WATCH_PROCESS + i. */
enum {
	WATCH_SIGNAL,
	WATCH_LISTENER,
	WATCH_PROCESS,
};

struct wait {
	const struct config *config;
	int dir;
	struct record *record;
	uint32_t record_count;
	struct process *process;
	struct pollfd *watch;
	uint32_t count, left;
	struct former former;
};

/* ---- who is there ---- */

static int add_record(struct wait *w, const struct record *record)
{
	struct record *bigger = w->record;

	/* A power of two is full: twice the room. */
	if ((w->record_count & (w->record_count - 1)) == 0)
		bigger = realloc(bigger, (w->record_count > 0 ? 2 * (size_t)w->record_count : 1) *
				 sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	w->record = bigger;
	w->record[w->record_count++] = *record;
	return 0;
}

static int read_entry(struct wait *w, const char *name)
{
	struct record record;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return 0;
	if (record_parse(name, &record) == 0)
		return add_record(w, &record);
	if (unlinkat(w->dir, name, 0) == 0)
		qb_log(LOG_NOTICE, "removed %s.clients/%s, which is no record of a client",
		       w->config->socket, name);
	else
		qb_log(LOG_WARNING, "ignoring %s.clients/%s, which is no record of a client and cannot "
		       "be removed: %s", w->config->socket, name, strerror(errno));
	return 0;
}

static int read_records(struct wait *w)
{
	int fd = openat(w->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	struct dirent *entry;
	DIR *dir;

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir) {
		r = -errno;
		close(fd);
		return r;
	}
	do {
		errno = 0;
		entry = readdir(dir);
		r = entry ? read_entry(w, entry->d_name) : -errno;
	} while (entry && r == 0);
	closedir(dir);
	return r;
}

static int compare(const void *one, const void *other)
{
	const struct record *a = one, *b = other;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return (a->start > b->start) - (a->start < b->start);
}

/*
 * *ret_pidfd becomes readable at the end of the process that the record names.
 * -1: that cannot be watched. -ESRCH: it has ended.
 */
static int watch_process(const struct record *record, int *ret_pidfd)
{
	uint64_t start;
	int fd, r;

	if (record->pid == 0) {
		*ret_pidfd = -1;
		return 0;
	}
	fd = (int)syscall(SYS_pidfd_open, record->pid, 0);
	/* The others: the number is a thread's now. */
	if (fd < 0)
		return errno == EINVAL || errno == ENOENT ? -ESRCH : -errno;
	/* From here on the number stays that process's own, until fd tells of its end. */
	r = record_start_time(record->pid, &start);
	/* If /proc hides it, the number has to do: to wait in vain is the lesser evil. */
	if (r == 0 && record->start != 0 && record->start != start) {
		close(fd);
		return -ESRCH;
	}
	*ret_pidfd = fd;
	return 0;
}

static void remove_records(const struct wait *w, const struct process *p)
{
	for (uint32_t i = 0; i < p->records; i++)
		record_remove(w->dir, &w->record[p->first + i]);
}

static int find_processes(struct wait *w)
{
	qsort(w->record, w->record_count, sizeof(*w->record), compare);
	w->process = calloc(w->record_count, sizeof(*w->process));
	w->watch = calloc((size_t)w->record_count + WATCH_PROCESS, sizeof(*w->watch));
	if (!w->process || !w->watch)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->record_count;) {
		struct process p = { .pid = w->record[i].pid, .first = i };
		int fd = -1, r = watch_process(&w->record[i], &fd);

		while (i < w->record_count && compare(&w->record[i], &w->record[p.first]) == 0)
			i++;
		p.records = i - p.first;
		if (r == -ESRCH) {
			remove_records(w, &p);
			continue;
		}
		if (r < 0)
			return r;
		w->watch[WATCH_PROCESS + w->count] = (struct pollfd){ .fd = fd, .events = POLLIN };
		w->process[w->count++] = p;
	}
	w->left = w->count;
	return 0;
}

/* ---- saying so ---- */

static void describe(const struct process *p, char *buf, size_t size)
{
	char path[32], comm[20] = "";
	ssize_t n = -1;
	int fd;

	if (p->pid == 0) {
		(void)snprintf(buf, size, "a process in a pid namespace that cannot be seen from here");
		return;
	}
	(void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)p->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, comm, sizeof(comm) - 1);
		close(fd);
	}
	comm[n > 0 ? n : 0] = '\0';
	comm[strcspn(comm, "\n")] = '\0';
	/* The process chose it, and it goes to the log and to terminals. */
	for (char *c = comm; *c != '\0'; c++)
		if (!isprint((unsigned char)*c))
			*c = '?';
	(void)snprintf(buf, size, "process %d (%s)", (int)p->pid, comm[0] ? comm : "?");
}

static void describe_all(const struct wait *w, char *buf, size_t size)
{
	char first[96] = "", more[32] = "";

	for (uint32_t i = 0; i < w->count && !first[0]; i++)
		if (!w->process[i].done)
			describe(&w->process[i], first, sizeof(first));
	if (w->left > 1)
		(void)snprintf(more, sizeof(more), " and %" PRIu32 " more", w->left - 1);
	(void)snprintf(buf, size, "belayd waits for %s%s, which held locks under the belayd before, to "
		       "end or to connect anew; until then this node's former locks stay locked "
		       "everywhere", first, more);
}

static void report(const struct wait *w)
{
	char text[TEXT_MAX], state[TEXT_MAX + 16], name[RECORD_NAME_MAX];
	uint32_t named = 0;

	describe_all(w, text, sizeof(text));
	qb_log(LOG_WARNING, "not serving yet: %s", text);
	for (uint32_t i = 0; i < w->count && named < REPORT_MAX; i++) {
		const struct process *p = &w->process[i];

		if (p->done)
			continue;
		named++;
		describe(p, text, sizeof(text));
		if (p->pid > 0) {
			qb_log(LOG_WARNING, "waiting for %s: end it, if it does not connect anew by "
			       "itself", text);
			continue;
		}
		record_name(&w->record[p->first], name);
		qb_log(LOG_WARNING, "waiting for %s: when it has certainly ended, stop belayd, remove "
		       "%s.clients/%s, and start belayd again", text, w->config->socket, name);
	}
	describe_all(w, text, sizeof(text));
	(void)snprintf(state, sizeof(state), "STATUS=%s", text);
	notify(state);
}

/* ---- waiting ---- */

static void stop_awaiting(struct wait *w, struct process *p, const char *why)
{
	char text[96];

	if (p->done)
		return;
	describe(p, text, sizeof(text));
	qb_log(LOG_NOTICE, "%s %s", text, why);
	remove_records(w, p);
	p->done = true;
	w->left--;
}

/* Is, or was, it awaited? Had it ended and its number gone to another one, it were done with, too. */
static bool connects_anew(struct wait *w, pid_t pid)
{
	bool found = false;

	/* Number 0 stands for many. */
	for (uint32_t i = 0; pid > 0 && i < w->count; i++) {
		if (w->process[i].pid != pid)
			continue;
		found = true;
		stop_awaiting(w, &w->process[i], "has connected anew");
	}
	return found;
}

static void on_connection(struct wait *w)
{
	int fd = accept4(w->former.listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred peer = { .pid = 0 };
	socklen_t size = sizeof(peer);
	char text[TEXT_MAX];

	if (fd < 0) {
		/* Out of descriptors: it has to wait in the queue, until the next report. */
		if (errno == EMFILE || errno == ENFILE)
			w->watch[WATCH_LISTENER].events = 0;
		return;
	}
	(void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
	if (!connects_anew(w, peer.pid)) {
		describe_all(w, text, sizeof(text));
		listen_refuse(fd, -EAGAIN, text);
		return;
	}
	if (w->former.client_count == w->config->clients_max) {
		listen_refuse(fd, -EUSERS, "belayd has as many clients as clients_max allows");
		return;
	}
	w->former.client[w->former.client_count++] = fd;
}

static void on_processes(struct wait *w)
{
	for (uint32_t i = 0; i < w->count; i++) {
		struct pollfd *watch = &w->watch[WATCH_PROCESS + i];

		if (watch->fd < 0 || watch->revents == 0)
			continue;
		stop_awaiting(w, &w->process[i], "has ended");
		close(watch->fd);
		watch->fd = -1;
	}
}

static int on_signal(struct wait *w)
{
	struct signalfd_siginfo info;

	/* Taken out, it does not strike once it is no longer blocked. */
	if (read(w->watch[WATCH_SIGNAL].fd, &info, sizeof(info)) != sizeof(info))
		return 0;
	qb_log(LOG_ERR, "stopping (%s) while processes may still write under the locks of the belayd "
	       "before: the other nodes keep these locks until belayd has started again, or until "
	       "this node is fenced", strsignal((int)info.ssi_signo));
	return -ECANCELED;
}

static int wait_for_all(struct wait *w)
{
	uint64_t report_us = 0;
	int r = 0;

	while (w->left > 0 && r == 0) {
		uint64_t now_us = clock_now_us();

		if (now_us >= report_us) {
			report(w);
			report_us = now_us + REPORT_US;
			w->watch[WATCH_LISTENER].events = POLLIN;
		}
		if (poll(w->watch, WATCH_PROCESS + w->count, (int)((report_us - now_us) / 1000) + 1) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (w->watch[WATCH_SIGNAL].revents)
			r = on_signal(w);
		on_processes(w);
		if (w->watch[WATCH_LISTENER].revents && w->left > 0)
			on_connection(w);
	}
	return r;
}

/* listen_open() and on_signal() have their own words. */
static int cannot_wait(int error)
{
	qb_log(LOG_ERR, "cannot wait for the clients of the belayd before: %s", strerror(-error));
	return error;
}

static int listen_and_wait(struct wait *w)
{
	sigset_t stop, before;
	int r;

	w->former.client = calloc(w->config->clients_max, sizeof(*w->former.client));
	if (!w->former.client)
		return cannot_wait(-ENOMEM);
	r = listen_open(w->config, &w->former.listen_fd);
	if (r < 0)
		return r;
	w->watch[WATCH_LISTENER] = (struct pollfd){ .fd = w->former.listen_fd, .events = POLLIN };
	(void)sigemptyset(&stop);
	(void)sigaddset(&stop, SIGTERM);
	(void)sigaddset(&stop, SIGINT);
	(void)sigprocmask(SIG_BLOCK, &stop, &before);
	w->watch[WATCH_SIGNAL] = (struct pollfd){
		.fd = signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK), .events = POLLIN,
	};
	r = w->watch[WATCH_SIGNAL].fd < 0 ? -errno : wait_for_all(w);
	if (w->watch[WATCH_SIGNAL].fd >= 0)
		close(w->watch[WATCH_SIGNAL].fd);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	if (r == 0)
		qb_log(LOG_NOTICE, "no process is left that held locks under the belayd before");
	else if (r != -ECANCELED)
		(void)cannot_wait(r);
	return r;
}

int former_wait(const struct config *config, int records, struct former *ret_former)
{
	struct wait w = { .config = config, .dir = records, .former = { .listen_fd = -1 } };
	int r = read_records(&w);

	if (r == 0 && w.record_count > 0)
		r = find_processes(&w);
	if (r < 0)
		(void)cannot_wait(r);
	else if (w.left > 0)
		r = listen_and_wait(&w);
	for (uint32_t i = 0; i < w.count; i++)
		if (w.watch[WATCH_PROCESS + i].fd >= 0)
			close(w.watch[WATCH_PROCESS + i].fd);
	free(w.record);
	free(w.process);
	free(w.watch);
	if (r < 0) {
		former_done(&w.former, config, "belayd ends");
		return r;
	}
	*ret_former = w.former;
	return 0;
}

void former_done(struct former *former, const struct config *config, const char *reason)
{
	for (uint32_t i = 0; i < former->client_count; i++)
		listen_refuse(former->client[i], -EIO, reason);
	free(former->client);
	if (former->listen_fd >= 0)
		listen_close(config, former->listen_fd);
	*former = (struct former){ .listen_fd = -1 };
}
