/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How the kernel waits for a lock, and so do we: until it has it or a signal
 * handler has to run. Then the request is withdrawn first, for the handler
 * may lock and close what it likes, or jump away and never return; after it the
 * request is made anew (SA_RESTART), at the end of the queue, or the call ends.
 *
 * The thread waits with all signals blocked and looks at what is pending: only so
 * it can tell which handlers are going to run.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/preload/preload.h"

/* It is looked again, should another thread have come into being and taken the answer. */
#define LOOK_MS 1000
/* So many locks are queued for at once after one had to wait. */
#define BUSY_MAX 16u

/* Hand out the answers that have come, to whomever. */
static void drain(struct link *link)
{
	struct belay_event_info event;
	struct waiter *w;
	int r;

	pthread_mutex_lock(&preload.mutex);
	while ((r = belay_next(link->belay, &event)) != 0) {
		LIST_FOREACH(w, &preload.waiters, link) {
			if (w->done || w->connection != link || (r > 0 && w->request != event.request))
				continue;
			w->result = r < 0 ? -EIO : event.result;
			w->done = true;
			if (w->event_fd >= 0)
				(void)eventfd_write(w->event_fd, 1);
		}
		if (r < 0)
			break;
	}
	pthread_mutex_unlock(&preload.mutex);
}

static bool is_done(struct waiter *w)
{
	bool done;

	drain(w->connection);
	pthread_mutex_lock(&preload.mutex);
	done = w->done;
	pthread_mutex_unlock(&preload.mutex);
	return done;
}

/* 0; -EINTR: pthread_cancel(), whose signal cannot be blocked. */
static int sleep_once(const struct calm *calm, const struct waiter *w, int signals)
{
	struct pollfd p[3] = {
		{ .fd = belay_fd(w->connection->belay), .events = POLLIN },
		{ .fd = w->event_fd, .events = POLLIN },
		{ .fd = signals, .events = POLLIN },
	};

	if (poll(p, 3, signals < 0 ? LOOK_MS / 10 : LOOK_MS) < 0)
		return errno == EINTR ? -EINTR : 0;
	if (calm_due(calm) == CALM_PASSING)
		calm_pass(calm);
	return 0;
}

/* The request's result, -EINTR and -WAIT_RESTART: it is withdrawn. */
static int await(const struct calm *calm, struct waiter *w, int signals)
{
	int want = 0;

	while (!is_done(w)) {
		enum calm_due due = calm_due(calm);

		if (want == 0 && due >= CALM_RESTART)
			want = due == CALM_INTERRUPT ? -EINTR : -WAIT_RESTART;
		else if (sleep_once(calm, w, want == 0 ? signals : -1) < 0 && want == 0)
			want = -WAIT_RESTART;
		else
			continue;
		(void)belay_lock_cancel(w->connection->belay, w->request);
	}
	/* It may have been granted before. */
	return w->result == -EINTR && want < 0 ? want : w->result;
}

static int queue(const struct calm *calm, struct link *link, struct belay_handle *handle,
		 enum belay_lock_mode mode, uint64_t start, uint64_t length)
{
	struct waiter *w = calloc(1, sizeof(*w));
	sigset_t all;
	int signals, r;

	if (!w)
		return -ENOLCK;
	sigfillset(&all);
	w->connection = link;
	w->event_fd = __libc_single_threaded ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	calm_all();
	pthread_mutex_lock(&preload.mutex);
	r = belay_lock_start(handle, mode, start, length, &w->request);
	if (r == 0)
		LIST_INSERT_HEAD(&preload.waiters, w, link);
	pthread_mutex_unlock(&preload.mutex);
	if (r == 0) {
		r = await(calm, w, signals);
		pthread_mutex_lock(&preload.mutex);
		LIST_REMOVE(w, link);
		pthread_mutex_unlock(&preload.mutex);
	}
	if (signals >= 0)
		syscall(SYS_close, signals);
	if (w->event_fd >= 0)
		syscall(SYS_close, w->event_fd);
	free(w);
	return r;
}

/*
 * A try may bring a loan of the whole file, and is all there is to do as long as nobody
 * is in the way. Where somebody often is, it only costs the time to hear a no.
 */
int wait_lock(const struct calm *calm, struct description *d, struct belay_handle *handle,
	      enum belay_lock_mode mode, uint64_t start, uint64_t length, bool wait)
{
	unsigned busy = atomic_load_explicit(&d->busy, memory_order_relaxed);
	int r;

	if (!wait || busy == 0) {
		r = belay_trylock(handle, mode, start, length, NULL);
		if (r != -EAGAIN || !wait)
			return r;
		busy = BUSY_MAX;
	}
	atomic_store_explicit(&d->busy, (uint8_t)(busy - 1), memory_order_relaxed);
	return queue(calm, d->file->connection, handle, mode, start, length);
}
