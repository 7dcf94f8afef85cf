/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Each function of belay.h against a real belayd: what it does, and how it fails. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "include/belay.h"
#include "tests/ipc/belayd.h"
#include "tests/tap.h"

static struct belay *connected(const struct belayd *daemon)
{
	struct belay *belay = NULL;
	int r = belay_connect(&belay, daemon->socket);

	if (r < 0) {
		diag("belay_connect: %s", strerror(-r));
		bail_out("no connection to belayd");
	}
	return belay;
}

static struct belay_handle *named(struct belay *belay, const char *name, enum belay_lock_owner owner)
{
	struct belay_handle *handle = NULL;

	if (belay_open_name(belay, NULL, name, owner, &handle) < 0)
		bail_out("a name cannot be opened");
	return handle;
}

static void finish(struct belayd *daemon)
{
	ok_int(belayd_stop(daemon), 0, "belayd stops cleanly");
	if (tap_state()->failed > 0)
		belayd_show_log(daemon);
	belayd_remove(daemon);
}

/* ---- opening ---- */

static int open_file(const struct belayd *daemon, const char *name, int flags)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", daemon->dir, name);
	fd = open(path, flags | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		bail_out("no file");
	return fd;
}

static void test_open_fd(const struct belayd *daemon, struct belay *belay)
{
	struct belay_handle *reader = NULL, *writer = NULL, *both = NULL, *none = NULL;
	int fd, pair[2];

	ok_int(belay_open_fd(belay, -1, BELAY_OWNER_HANDLE, &none), -EBADF, "no descriptor");
	ok_int(belay_open_fd(belay, 1000, BELAY_OWNER_HANDLE, &none), -EBADF, "one that is not open");
	fd = open(daemon->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ok_int(belay_open_fd(belay, fd, BELAY_OWNER_HANDLE, &none), -EINVAL, "a directory");
	close(fd);
	if (pipe(pair) == 0) {
		ok_int(belay_open_fd(belay, pair[0], BELAY_OWNER_HANDLE, &none), -EINVAL, "a pipe");
		close(pair[0]);
		close(pair[1]);
	}
	fd = open_file(daemon, "a", O_RDWR);
	ok_int(belay_open_fd(belay, fd, (enum belay_lock_owner)9, &none), -EINVAL, "no such owner");
	ok(none == NULL, "failures return no handle");

	ok_int(belay_open_fd(belay, fd, BELAY_OWNER_HANDLE, &both), 0, "a file, to read and write");
	close(fd);
	fd = open_file(daemon, "a", O_RDONLY);
	ok_int(belay_open_fd(belay, fd, BELAY_OWNER_HANDLE, &reader), 0, "to read");
	close(fd);
	fd = open_file(daemon, "a", O_WRONLY);
	ok_int(belay_open_fd(belay, fd, BELAY_OWNER_HANDLE, &writer), 0, "to write");
	close(fd);

	ok_int(belay_trylock(reader, BELAY_EXCLUSIVE, 0, 0, NULL), -EBADF, "a reader may not lock to write");
	ok_int(belay_trylock(writer, BELAY_SHARED, 0, 0, NULL), -EBADF, "nor a writer to read");
	ok_int(belay_trylock(both, BELAY_EXCLUSIVE, 0, 0, NULL), 0, "both may, and the descriptor is closed");
	ok_int(belay_trylock(reader, BELAY_SHARED, 0, 0, NULL), -EAGAIN, "it is the same file");
	belay_handle_close(both);
	ok_int(belay_trylock(reader, BELAY_SHARED, 0, 0, NULL), 0, "closing has released it");
	belay_handle_close(reader);
	belay_handle_close(writer);
}

static void test_open_name(const struct belayd *daemon, struct belay *belay)
{
	struct belay_handle *handle = NULL, *other = NULL;
	char name[300];

	(void)daemon;
	memset(name, 'n', sizeof(name));
	name[256] = '\0';
	ok_int(belay_open_name(belay, NULL, name, BELAY_OWNER_HANDLE, &handle), -EINVAL, "256 bytes");
	ok_int(belay_open_name(belay, NULL, "", BELAY_OWNER_HANDLE, &handle), -EINVAL, "no bytes");
	ok_int(belay_open_name(belay, "", "x", BELAY_OWNER_HANDLE, &handle), -EINVAL, "an empty lockspace");
	ok_int(belay_open_name(belay, "nowhere", "x", BELAY_OWNER_HANDLE, &handle), -ENOENT,
	       "a lockspace that is not there");
	ok_int(belay_open_name(belay, NULL, "x", (enum belay_lock_owner)9, &handle), -EINVAL,
	       "no such owner");
	ok(handle == NULL, "failures return no handle");
	name[255] = '\0';
	ok_int(belay_open_name(belay, NULL, name, BELAY_OWNER_HANDLE, &handle), 0, "255 bytes");
	ok_int(belay_open_name(belay, "default", name, BELAY_OWNER_HANDLE, &other), 0, "the same, spelt out");
	ok_int(belay_trylock(handle, BELAY_EXCLUSIVE, 0, 0, NULL), 0, "lock");
	ok_int(belay_trylock(other, BELAY_EXCLUSIVE, 0, 0, NULL), -EAGAIN, "it is the same lock");
	belay_handle_close(other);
	name[254] = 'o';
	other = named(belay, name, BELAY_OWNER_HANDLE);
	ok_int(belay_trylock(other, BELAY_EXCLUSIVE, 0, 0, NULL), 0, "another name is another lock");
	belay_handle_close(other);
	ok_int(belay_open_name(belay, "files", name, BELAY_OWNER_HANDLE, &other), 0, "in another lockspace");
	ok_int(belay_trylock(other, BELAY_EXCLUSIVE, 0, 0, NULL), 0, "as well");
	belay_handle_close(other);
	belay_handle_close(handle);
}

/* ---- locks ---- */

static void test_ranges(struct belay *belay)
{
	struct belay_handle *a = named(belay, "ranges", BELAY_OWNER_HANDLE);
	struct belay_handle *b = named(belay, "ranges", BELAY_OWNER_HANDLE);
	struct belay_lock_holder holder = { 0 };
	uint64_t first = 0, second = 0;

	ok_int(belay_lock(a, BELAY_EXCLUSIVE, 100, 100, &first), 0, "bytes 100 to 199");
	ok(first > 0, "a token");
	ok_int(belay_trylock(b, BELAY_SHARED, 150, 1, NULL), -EAGAIN, "one of them is busy");
	ok_int(belay_trylock(b, BELAY_EXCLUSIVE, 200, 0, NULL), 0, "what lies behind is not");
	ok_int(belay_trylock(b, BELAY_EXCLUSIVE, 0, 100, NULL), 0, "nor what lies before");
	ok_int(belay_get(b, BELAY_SHARED, 0, 0, &holder), 1, "who is in the way?");
	ok(holder.node == belay_node(belay) && holder.pid == getpid(), "this process on this node");
	ok_uint(holder.start, 100, "from");
	ok_uint(holder.length, 100, "so many");
	ok_int(holder.mode, BELAY_EXCLUSIVE, "exclusively");
	ok_int(holder.owner, BELAY_OWNER_HANDLE, "as an open file");
	ok_int(belay_get(a, BELAY_EXCLUSIVE, 120, 10, &holder), 0, "nobody is in one's own way");

	ok_int(belay_unlock(a, 140, 20), 0, "a hole in the middle");
	ok_int(belay_lock(b, BELAY_EXCLUSIVE, 140, 20, &second), 0, "another takes it");
	ok(second > first, "with a larger token");
	ok_int(belay_trylock(b, BELAY_EXCLUSIVE, 139, 1, NULL), -EAGAIN, "left of it is kept");
	ok_int(belay_trylock(b, BELAY_EXCLUSIVE, 160, 1, NULL), -EAGAIN, "right of it, too");
	ok_int(belay_unlock(b, 0, 0), 0, "all back");
	ok_int(belay_get(a, BELAY_SHARED, 0, 0, &holder), 0, "nobody else is there");

	ok_int(belay_lock(a, BELAY_SHARED, 0, 0, NULL), 0, "downgrade to shared");
	ok_int(belay_trylock(b, BELAY_SHARED, 5, 0, NULL), 0, "then it can be shared");
	ok_int(belay_trylock(a, BELAY_EXCLUSIVE, 0, 0, NULL), -EAGAIN, "and not upgraded");
	ok_int(belay_get(a, BELAY_EXCLUSIVE, 0, 0, &holder), 1, "for the other reads");
	ok_uint(holder.length, 0, "to the end");
	ok_int(holder.mode, BELAY_SHARED, "shared");
	ok_int(belay_unlock(b, 0, 0), 0, "the other goes");
	ok_int(belay_trylock(a, BELAY_EXCLUSIVE, 0, 0, NULL), 0, "now it can be");
	ok_int(belay_trylock(b, BELAY_EXCLUSIVE, UINT64_C(1) << 62, 1, NULL), -EAGAIN, "all of it");
	ok_int(belay_unlock(a, 7, 7), 0, "give back a part");
	ok_int(belay_unlock(a, 7, 7), 0, "what is not locked is no mistake");
	belay_handle_close(a);
	belay_handle_close(b);
}

static void test_owners(struct belay *belay)
{
	struct belay_handle *p1 = named(belay, "owners", BELAY_OWNER_PROCESS);
	struct belay_handle *p2 = named(belay, "owners", BELAY_OWNER_PROCESS);
	struct belay_handle *h = named(belay, "owners", BELAY_OWNER_HANDLE);
	struct belay_handle *f1 = named(belay, "owners", BELAY_OWNER_FLOCK);
	struct belay_handle *f2 = named(belay, "owners", BELAY_OWNER_FLOCK);

	ok_int(belay_trylock(p1, BELAY_EXCLUSIVE, 0, 10, NULL), 0, "the process locks");
	ok_int(belay_trylock(p2, BELAY_EXCLUSIVE, 5, 10, NULL), 0, "again, through another handle");
	ok_int(belay_trylock(h, BELAY_EXCLUSIVE, 0, 1, NULL), -EAGAIN, "a handle's own lock meets them");
	ok_int(belay_trylock(f1, BELAY_EXCLUSIVE, 0, 0, NULL), 0, "flock's do not");
	ok_int(belay_trylock(f2, BELAY_SHARED, 0, 0, NULL), -EAGAIN, "they meet each other");
	ok_int(belay_trylock(f2, BELAY_SHARED, 0, 1, NULL), -EINVAL, "and have no ranges");
	ok_int(belay_lock(f1, BELAY_SHARED, 0, 0, NULL), 0, "they can be changed");
	ok_int(belay_trylock(f2, BELAY_SHARED, 0, 0, NULL), 0, "and shared");
	belay_handle_close(p2);
	ok_int(belay_trylock(h, BELAY_EXCLUSIVE, 0, 1, NULL), 0,
	       "to close one of the process's handles releases all its locks");
	belay_handle_close(p1);
	belay_handle_close(h);
	belay_handle_close(f1);
	belay_handle_close(f2);
}

/* What was locked without asking is released as well when its handle is closed. */
static void test_close_lent(const struct belayd *daemon, struct belay *belay)
{
	struct belay_handle *process = NULL, *ofd = NULL;
	int fd = open_file(daemon, "lent", O_RDWR), i;

	ok_int(belay_open_fd(belay, fd, BELAY_OWNER_HANDLE, &ofd), 0, "a file");
	/* After so many locks nobody has to be asked any more. */
	for (i = 0; i < 64; i++)
		if (belay_trylock(ofd, BELAY_EXCLUSIVE, 0, 0, NULL) < 0 || belay_unlock(ofd, 0, 0) < 0)
			break;
	ok_int(i, 64, "locked often");
	ok_int(belay_open_fd(belay, fd, BELAY_OWNER_PROCESS, &process), 0, "once more");
	ok_int(belay_trylock(process, BELAY_EXCLUSIVE, 10, 5, NULL), 0, "the process locks");
	ok_int(belay_trylock(ofd, BELAY_EXCLUSIVE, 12, 1, NULL), -EAGAIN, "the other handle meets it");
	belay_handle_close(process);
	ok_int(belay_trylock(ofd, BELAY_EXCLUSIVE, 0, 0, NULL), 0, "closed, it is in nobody's way");
	belay_handle_close(ofd);
	close(fd);
}

/* ---- waiting ---- */

struct waiter {
	struct belay_handle *handle;
	uint64_t start;
	int result;
};

static void *wait_for_lock(void *arg)
{
	struct waiter *waiter = arg;

	waiter->result = belay_lock(waiter->handle, BELAY_EXCLUSIVE, waiter->start, 1, NULL);
	return NULL;
}

static double seconds_since(const struct timespec *then)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - then->tv_sec) + (double)(now.tv_nsec - then->tv_nsec) / 1e9;
}

/* Until somebody waits for the resource: no event tells, but belayd does. */
static void until_waiting(struct belay *belay, unsigned waiters)
{
	struct timespec then;
	char want[64], *text;
	bool found;

	snprintf(want, sizeof(want), "\"waiters_replicated\":%u,", waiters);
	clock_gettime(CLOCK_MONOTONIC, &then);
	for (;;) {
		text = NULL;
		if (belay_command(belay, "status", &text) < 0)
			bail_out("no status");
		found = strstr(text, want) != NULL;
		free(text);
		if (found)
			return;
		if (seconds_since(&then) * 1000 > PATIENCE_MS)
			bail_out("nobody waits for the lock");
		usleep(1000);
	}
}

static void test_timed(struct belay *belay)
{
	struct belay_handle *a = named(belay, "timed", BELAY_OWNER_HANDLE);
	struct belay_handle *b = named(belay, "timed", BELAY_OWNER_HANDLE);
	struct waiter waiter = { .handle = a };
	struct timespec begin;
	uint64_t token = 0;
	pthread_t thread;

	ok_int(belay_lock_timed(a, BELAY_EXCLUSIVE, 0, 1, 10000, &token), 0, "a free one needs no time");
	ok(token > 0, "a token");
	clock_gettime(CLOCK_MONOTONIC, &begin);
	ok_int(belay_lock_timed(b, BELAY_EXCLUSIVE, 0, 1, 150, NULL), -ETIMEDOUT, "a busy one");
	ok(seconds_since(&begin) >= 0.15, "not before its time");
	ok_int(belay_lock_timed(b, BELAY_EXCLUSIVE, 0, 1, 0, NULL), -ETIMEDOUT, "no time at all");
	ok_int(belay_lock_timed(b, BELAY_EXCLUSIVE, 5, 1, 0, NULL), 0, "which is enough for a free one");
	ok_int(belay_unlock(a, 0, 0), 0, "given back");
	ok_int(belay_lock_timed(b, BELAY_EXCLUSIVE, 0, 1, 10000, NULL), 0, "the withdrawn request is no more");
	pthread_create(&thread, NULL, wait_for_lock, &waiter);
	until_waiting(belay, 1);
	belay_unlock(b, 0, 0);
	pthread_join(thread, NULL);
	ok_int(waiter.result, 0, "another thread gets it, on the same connection");
	belay_handle_close(a);
	belay_handle_close(b);
}

/* ---- deadlock, limits ---- */

static void test_deadlock(const struct belayd *daemon, struct belay *belay)
{
	struct belay *other = connected(daemon);
	struct belay_handle *a = named(belay, "deadlock", BELAY_OWNER_PROCESS);
	struct belay_handle *b = named(other, "deadlock", BELAY_OWNER_PROCESS);
	struct waiter waiter = { .handle = a, .start = 2 };
	pthread_t thread;

	ok_int(belay_lock(a, BELAY_EXCLUSIVE, 1, 1, NULL), 0, "a has 1");
	ok_int(belay_lock(b, BELAY_EXCLUSIVE, 2, 1, NULL), 0, "b has 2");
	pthread_create(&thread, NULL, wait_for_lock, &waiter);
	until_waiting(belay, 1);
	ok_int(belay_lock(b, BELAY_EXCLUSIVE, 1, 1, NULL), -EDEADLK, "a waits for 2, so b cannot wait for 1");
	ok_int(belay_lock_timed(b, BELAY_EXCLUSIVE, 1, 1, 60000, NULL), -EDEADLK, "not for a while, either");
	ok_int(belay_unlock(b, 2, 1), 0, "b gives up 2");
	pthread_join(thread, NULL);
	ok_int(waiter.result, 0, "a gets it");
	belay_handle_close(a);
	belay_handle_close(b);
	belay_disconnect(other);
}

static void test_limits(void)
{
	struct belayd daemon;
	struct belay *belay, *second = NULL, *third = NULL;
	struct belay_handle *handle[4] = { NULL };
	struct belay_lock_holder holder;
	unsigned i, granted = 0;
	int r = 0;

	belayd_start(&daemon, "clients_max = 2\nhandles_per_client_max = 3\n"
		     "[limits]\nlocks_max = 16\n");
	belay = connected(&daemon);
	ok_int(belay_connect(&second, daemon.socket), 0, "as many clients as clients_max");
	ok_int(belay_connect(&third, daemon.socket), -EUSERS, "one more");
	belay_disconnect(second);
	for (i = 0; i < 3; i++)
		handle[i] = named(belay, "limits", BELAY_OWNER_HANDLE);
	ok_int(belay_open_name(belay, NULL, "limits", BELAY_OWNER_HANDLE, &handle[3]), -EMFILE,
	       "more handles than handles_per_client_max");
	belay_handle_close(handle[2]);
	ok_int(belay_open_name(belay, NULL, "limits", BELAY_OWNER_HANDLE, &handle[2]), 0,
	       "one closed, one opened");
	for (i = 0; i < 100 && r == 0; i++) {
		r = belay_lock(handle[0], BELAY_EXCLUSIVE, 2 * i, 1, NULL);
		granted += r == 0;
	}
	ok_int(r, -ENOLCK, "more locks than locks_max");
	ok(granted > 0 && granted <= 16, "some are had: %u", granted);
	ok_int(belay_get(handle[1], BELAY_EXCLUSIVE, 0, 1, &holder), 1, "what is held is held");
	ok_int(belay_unlock(handle[0], 0, 1), 0, "one back");
	ok_int(belay_lock(handle[0], BELAY_EXCLUSIVE, 1000, 1, NULL), 0, "one more");
	for (i = 0; i < 3; i++)
		belay_handle_close(handle[i]);
	belay_disconnect(belay);
	finish(&daemon);
}

/* ---- without waiting ---- */

static int next_event(struct belay *belay, struct belay_event_info *ret_event)
{
	struct pollfd p = { .fd = belay_fd(belay), .events = POLLIN };
	int r;

	while ((r = belay_next(belay, ret_event)) == 0)
		(void)poll(&p, 1, -1);
	return r;
}

static void test_started(struct belay *belay)
{
	struct belay_handle *a = named(belay, "started", BELAY_OWNER_HANDLE);
	struct belay_handle *b = named(belay, "started", BELAY_OWNER_HANDLE);
	struct belay_event_info event = { 0 };
	uint32_t first, second, third;

	ok_int(belay_lock_start(a, BELAY_EXCLUSIVE, 0, 1, &first), 0, "start");
	ok_int(next_event(belay, &event), 1, "an event");
	ok_uint(event.request, first, "for it");
	ok_int(event.result, 0, "granted");
	ok(event.token > 0, "with a token");
	ok_int(belay_trylock_start(b, BELAY_SHARED, 0, 1, &second), 0, "only try what another owner has");
	ok_int(next_event(belay, &event), 1, "an event");
	ok(event.request == second && event.result == -EAGAIN, "refused at once");
	ok_int(belay_trylock_start(b, BELAY_EXCLUSIVE, 1, 1, &second), 0, "try what is free");
	ok_int(next_event(belay, &event), 1, "an event");
	ok(event.request == second && event.result == 0, "granted");
	ok_int(belay_lock_start(b, BELAY_EXCLUSIVE, 0, 1, &second), 0, "start one that has to wait");
	ok_int(belay_lock_start(b, BELAY_SHARED, 0, 1, &third), 0, "and another");
	ok_int(belay_lock_cancel(belay, second), 0, "withdraw the first");
	ok_int(next_event(belay, &event), 1, "an event");
	ok_uint(event.request, second, "for it");
	ok_int(event.result, -EINTR, "not granted");
	ok_int(belay_lock_cancel(belay, second), -ENOENT, "it is no more");
	ok_int(belay_unlock(a, 0, 0), 0, "give back what is in the way");
	ok_int(next_event(belay, &event), 1, "an event");
	ok(event.request == third && event.result == 0, "the other is granted");
	ok_int(belay_lock_start(a, BELAY_EXCLUSIVE, 0, UINT64_MAX, &first), -EINVAL, "no such range");
	belay_handle_close(a);
	belay_handle_close(b);
	ok_int(belay_next(belay, &event), 0, "no more events");
}

/* ---- threads ---- */

#define THREADS 8
#define ROUNDS 300

struct counting {
	struct belay *belay;
	volatile unsigned *counter;
	int result;
};

static void *count(void *arg)
{
	struct counting *counting = arg;
	struct belay_handle *handle = named(counting->belay, "threads", BELAY_OWNER_HANDLE);
	unsigned i, seen;

	for (i = 0; i < ROUNDS && counting->result == 0; i++) {
		counting->result = belay_lock(handle, BELAY_EXCLUSIVE, 0, 0, NULL);
		if (counting->result < 0)
			break;
		seen = *counting->counter;
		sched_yield();	/* give the others a chance to spoil it */
		*counting->counter = seen + 1;
		counting->result = belay_unlock(handle, 0, 0);
	}
	belay_handle_close(handle);
	return NULL;
}

static void test_threads(struct belay *belay)
{
	struct counting counting[THREADS];
	volatile unsigned counter = 0;
	pthread_t thread[THREADS];
	int i, failed = 0;

	for (i = 0; i < THREADS; i++) {
		counting[i] = (struct counting){ belay, &counter, 0 };
		pthread_create(&thread[i], NULL, count, &counting[i]);
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		failed += counting[i].result != 0;
	}
	ok_int(failed, 0, "%d threads lock %d times each on one connection", THREADS, ROUNDS);
	ok_uint(counter, THREADS * ROUNDS, "one at a time");
}

/* ---- processes ---- */

/* The child has the lock once it writes to the pipe, and lives until it is killed. */
static pid_t lock_in_child(const struct belayd *daemon, struct belay *parents)
{
	struct belay *belay;
	struct belay_handle *handle;
	int pair[2], r;
	char said = 0;
	pid_t pid;

	if (pipe(pair) < 0)
		bail_out("no pipe");
	pid = fork();
	if (pid == 0) {
		belay_disconnect(parents);
		belay = connected(daemon);
		handle = named(belay, "processes", BELAY_OWNER_PROCESS);
		r = belay_lock(handle, BELAY_EXCLUSIVE, 0, 0, NULL);
		said = r == 0 ? 'y' : 'n';
		if (write(pair[1], &said, 1) == 1)
			pause();
		_exit(1);
	}
	close(pair[1]);
	ok(read(pair[0], &said, 1) == 1 && said == 'y', "a child connects anew, and locks");
	close(pair[0]);
	return pid;
}

static void test_processes(const struct belayd *daemon, struct belay *belay)
{
	struct belay_handle *handle = named(belay, "processes", BELAY_OWNER_PROCESS);
	struct waiter waiter = { .handle = handle };
	struct belay_lock_holder holder = { 0 };
	pthread_t thread;
	pid_t pid;

	pid = lock_in_child(daemon, belay);
	ok_int(belay_trylock(handle, BELAY_EXCLUSIVE, 0, 0, NULL), -EAGAIN, "parent and child exclude each other");
	ok_int(belay_get(handle, BELAY_SHARED, 0, 0, &holder), 1, "who has it?");
	ok_int(holder.pid, pid, "the child");
	pthread_create(&thread, NULL, wait_for_lock, &waiter);
	until_waiting(belay, 1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	pthread_join(thread, NULL);
	ok_int(waiter.result, 0, "when it dies, who waits gets the lock");
	belay_handle_close(handle);
}

/* A fork()ed copy of the socket, never closed, must not keep the locks of a dead process alive. */
static void test_copied_socket(const struct belayd *daemon, struct belay *belay)
{
	struct belay_handle *handle = named(belay, "copied", BELAY_OWNER_HANDLE), *theirs;
	int ready[2], end[2];
	char byte;
	pid_t pid;

	if (pipe(ready) < 0 || pipe(end) < 0)
		bail_out("no pipe");
	pid = fork();
	if (pid == 0) {
		struct belay *mine = connected(daemon);

		theirs = named(mine, "copied", BELAY_OWNER_HANDLE);
		if (belay_lock(theirs, BELAY_EXCLUSIVE, 0, 0, NULL) == 0 && fork() == 0) {
			/* The grandchild holds the socket until the test is over. */
			close(end[1]);
			if (write(ready[1], "y", 1) == 1 && read(end[0], &byte, 1) == 0)
				_exit(0);
			_exit(1);
		}
		pause();
		_exit(1);
	}
	close(end[0]);
	ok(read(ready[0], &byte, 1) == 1, "a process has a lock, and a child of its own");
	ok_int(belay_trylock(handle, BELAY_EXCLUSIVE, 0, 0, NULL), -EAGAIN, "the lock is held");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ok_int(belay_lock_timed(handle, BELAY_EXCLUSIVE, 0, 0, 20000, NULL), 0,
	       "it ends with the process, not with its child");
	close(end[1]);
	close(ready[0]);
	close(ready[1]);
	belay_handle_close(handle);
}

/* ---- commands, rights, the end ---- */

static void test_command(struct belay *belay)
{
	char *text = NULL;

	ok_int(belay_command(belay, "status", &text), 0, "a command");
	ok(text && text[0] == '{' && text[strlen(text) - 1] == '}', "its answer is an object");
	free(text);
	text = NULL;
	ok(belay_command(belay, "make coffee", &text) < 0, "one that belayd does not know");
	ok(text && strstr(text, "no such command") != NULL, "it says so: %s", text);
	free(text);
	ok(belay_command(belay, "fence-ack 77", NULL) < 0, "no such node");
}

static int as_nobody(const struct belayd *daemon)
{
	struct belay *belay = NULL;
	struct belay_handle *handle = NULL;
	int r;

	if (setgid(65534) < 0 || setuid(65534) < 0)
		return 1;
	r = belay_connect(&belay, daemon->socket);
	if (r < 0)
		return r == -EACCES ? 2 : 3;
	r = belay_open_name(belay, "closed", "x", BELAY_OWNER_HANDLE, &handle);
	if (r != -EACCES)
		return 4;
	if (belay_open_name(belay, "open", "x", BELAY_OWNER_HANDLE, &handle) < 0)
		return 5;
	if (belay_trylock(handle, BELAY_SHARED, 0, 0, NULL) != 0)
		return 6;
	if (belay_trylock(handle, BELAY_EXCLUSIVE, 0, 0, NULL) != -EBADF)
		return 7;
	return belay_command(belay, "dump", NULL) == -EPERM ? 0 : 8;
}

static int nobody_says(const char *config)
{
	struct belayd daemon;
	int status = -1;
	pid_t pid;

	belayd_start(&daemon, config);
	pid = fork();
	if (pid == 0)
		_exit(as_nobody(&daemon));
	waitpid(pid, &status, 0);
	finish(&daemon);
	return WEXITSTATUS(status);
}

static void test_rights(void)
{
	if (getuid() != 0) {
		diag("not root: no test of the rights of others");
		return;
	}
	ok_int(nobody_says("socket_mode = 0600\n"), 2, "who may not connect is told so");
	ok_int(nobody_says("socket_mode = 0666\n[lockspace closed]\nmode = 0600\n"
			   "[lockspace open]\nmode = 0644\n"), 0,
	       "a lockspace is as open as its mode, and commands are for administrators");
}

static void test_end(struct belayd *daemon, struct belay *belay)
{
	struct belay_handle *handle = named(belay, "end", BELAY_OWNER_PROCESS);
	struct belay_event_info event;
	struct pollfd p = { .fd = belay_fd(belay), .events = POLLIN };
	struct belay *again = NULL;

	ok_int(belay_lock(handle, BELAY_EXCLUSIVE, 0, 0, NULL), 0, "a lock is held");
	kill(daemon->pid, SIGKILL);
	ok_int(belayd_wait(daemon), 256 + SIGKILL, "belayd is killed");
	ok_int(poll(&p, 1, 10000), 1, "belayd dies, and the poll loop wakes");
	ok_int(belay_next(belay, &event), -EIO, "to hear that all is lost");
	ok_int(belay_lock(handle, BELAY_EXCLUSIVE, 0, 0, NULL), -EIO, "nothing can be locked");
	ok_int(belay_unlock(handle, 0, 0), -EIO, "nor unlocked");
	ok_int(belay_connect(&again, daemon->socket), -ECONNREFUSED, "belayd does not run");
	belay_handle_close(handle);
	belay_disconnect(belay);
	belayd_spawn(daemon, NULL);
	ok(belayd_says(daemon, "STATUS=belayd waits"), "a new belayd waits for its former client");
	belay = connected(daemon);
	ok(belayd_ready(daemon), "which connects anew");
	handle = named(belay, "end", BELAY_OWNER_PROCESS);
	ok_int(belay_lock(handle, BELAY_EXCLUSIVE, 0, 0, NULL), 0, "a new belayd, a new connection");
	belay_handle_close(handle);
	belay_disconnect(belay);
}

/* So many connections of one process share no memory: the last ones ask for each lock. */
static void test_many_connections(const struct belayd *daemon)
{
	struct belay *belay[70];
	struct belay_handle *handle[70];
	char name[16];
	unsigned good = 0;

	for (unsigned i = 0; i < 70; i++) {
		belay[i] = connected(daemon);
		snprintf(name, sizeof(name), "many %u", i);
		handle[i] = named(belay[i], name, BELAY_OWNER_PROCESS);
		for (unsigned k = 0; k < 20; k++)
			good += belay_lock(handle[i], BELAY_EXCLUSIVE, k, 1, NULL) == 0 &&
				belay_unlock(handle[i], k, 1) == 0;
	}
	ok_uint(good, 70 * 20, "all of many connections lock and unlock");
	for (unsigned i = 0; i < 70; i++) {
		belay_handle_close(handle[i]);
		belay_disconnect(belay[i]);
	}
}

int main(void)
{
	struct belayd daemon;
	struct belay *belay;

	belayd_start(&daemon, "[lockspace files]\n");
	belay = connected(&daemon);
	ok_uint(belay_node(belay), 1, "the node's id");
	test_open_fd(&daemon, belay);
	test_open_name(&daemon, belay);
	test_ranges(belay);
	test_owners(belay);
	test_close_lent(&daemon, belay);
	test_timed(belay);
	test_deadlock(&daemon, belay);
	test_started(belay);
	test_threads(belay);
	test_processes(&daemon, belay);
	test_copied_socket(&daemon, belay);
	test_many_connections(&daemon);
	test_command(belay);
	test_end(&daemon, belay);
	finish(&daemon);
	test_limits();
	test_rights();
	return done_testing();
}
