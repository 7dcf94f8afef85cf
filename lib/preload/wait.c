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

#include "lib/handle.h"
#include "lib/share.h"
#include "lib/preload/preload.h"

/* It is looked again, should another thread have come into being and taken the answer. */
#define LOOK_MS 1000
#define LOOK_US 30
/* Up to here a wait is short. */
#define SHORT_MS 20u
/* After one that was not so many are taken not to be. */
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

/* A place to be cancelled at, see abandon(). */
static void sleep_once(const struct calm *calm, const struct waiter *w, int signals)
{
	int cancel;
	struct pollfd p[3] = {
		{ .fd = belay_fd(w->connection->belay), .events = POLLIN },
		{ .fd = w->event_fd, .events = POLLIN },
		{ .fd = signals, .events = POLLIN },
	};

	pthread_setcancelstate(signals < 0 ? PTHREAD_CANCEL_DISABLE : calm->cancel, &cancel);
	(void)poll(p, 3, signals < 0 ? LOOK_MS / 10 : LOOK_MS);
	pthread_setcancelstate(cancel, NULL);
	if (calm_due(calm) == CALM_PASSING)
		calm_pass(calm);
}

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000) + t.tv_nsec / 1000;
}

/* Between enter() and leave(): belayd is often faster than a sleep and a waking. */
static void look(struct belay *belay, struct call *call)
{
	int64_t end = now_us() + LOOK_US;

	if (!belay->share || !belay->share->spin)
		return;
	do {
		call_poll(belay);
		call_signal(belay);
	} while (atomic_load(&call->state) != CALL_DONE && now_us() < end);
}

/*
 * As belay_unlock(), but when it returns belayd knows. A program may tell
 * another one that the lock is free, whose own try must not come to belayd before.
 */
int wait_unlock(struct belay_handle *handle, uint64_t start, uint64_t end)
{
	const struct belay_range range = { .start = start, .end = end };
	struct client_message m = handle_message(handle, CLIENT_UNLOCK, BELAY_MODE_SH, &range);
	struct belay *belay = handle->belay;
	struct call call = { 0 };
	int r;

	if (loan_unlock(handle->resource, handle->owner, &range) == 0)
		return 0;
	enter(belay);
	r = call_open(belay, &call, CLIENT_RESULT);
	if (r == 0) {
		m.number = call.number;
		r = loan_yield(belay, handle->resource, &range);
		if (r == 0)
			r = send_message(belay, &m);
		if (r == 0)
			look(belay, &call);
		if (r == 0)
			r = call_wait(belay, &call, NULL);
		if (r == 0)
			r = call.result;
		call_close(belay, &call);
	}
	leave(belay);
	return r;
}

/* The request's result, -EINTR and -WAIT_RESTART: it is withdrawn. */
static int await(const struct calm *calm, struct waiter *w, int signals)
{
	int want = 0;

	while (!is_done(w)) {
		enum calm_due due = calm_due(calm);

		if (want < 0 || due < CALM_RESTART) {
			sleep_once(calm, w, want < 0 ? -1 : signals);
			continue;
		}
		want = due == CALM_INTERRUPT ? -EINTR : -WAIT_RESTART;
		(void)belay_lock_cancel(w->connection->belay, w->request);
	}
	/* It may have been granted before. */
	return w->result == -EINTR && want < 0 ? want : w->result;
}

/* One who waits, and what he leaves behind. */
struct queued {
	const struct calm *calm;
	struct description *d;
	struct belay_handle *handle;
	uint64_t start, end;
	struct waiter *w;
	int signals;
};

static void end_wait(const struct queued *q)
{
	pthread_mutex_lock(&preload.mutex);
	LIST_REMOVE(q->w, link);
	pthread_mutex_unlock(&preload.mutex);
	if (q->signals >= 0)
		syscall(SYS_close, q->signals);
	if (q->w->event_fd >= 0)
		syscall(SYS_close, q->w->event_fd);
	free(q->w);
}

/* The thread is cancelled, and leaves as if it had never asked. */
static void abandon(void *arg)
{
	const struct queued *q = arg;

	(void)belay_lock_cancel(q->w->connection->belay, q->w->request);
	while (!is_done(q->w))
		sleep_once(q->calm, q->w, -1);
	if (q->w->result == 0)
		(void)wait_unlock(q->handle, q->start, q->end);
	end_wait(q);
	file_leave(q->d);
	calm_end(q->calm);
}

static int start(struct queued *q, enum belay_lock_mode mode)
{
	struct waiter *w = calloc(1, sizeof(*w));
	uint64_t length = q->end == BELAY_OFFSET_MAX ? 0 : q->end - q->start + 1;
	sigset_t all;
	int r;

	if (!w)
		return -ENOLCK;
	sigfillset(&all);
	q->w = w;
	q->signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	w->connection = q->d->file->connection;
	w->event_fd = __libc_single_threaded ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	calm_all();
	pthread_mutex_lock(&preload.mutex);
	r = belay_lock_start(q->handle, mode, q->start, length, &w->request);
	LIST_INSERT_HEAD(&preload.waiters, w, link);
	pthread_mutex_unlock(&preload.mutex);
	if (r < 0)
		end_wait(q);
	return r;
}

static int queue(struct queued *q, enum belay_lock_mode mode)
{
	int r = start(q, mode);

	if (r < 0)
		return r;
	pthread_cleanup_push(abandon, q);
	r = await(q->calm, q->w, q->signals);
	pthread_cleanup_pop(0);
	end_wait(q);
	return r;
}

/*
 * Most waits are short, and the library's own way is the fastest for them; signals may
 * wait that long, too. Where waits are often longer, its request would only be
 * withdrawn each time.
 */
int wait_lock(const struct calm *calm, struct description *d, struct belay_handle *handle,
	      enum belay_lock_mode mode, uint64_t start_at, uint64_t end, bool wait)
{
	unsigned busy = atomic_load_explicit(&d->busy, memory_order_relaxed);
	struct queued q = { .calm = calm, .d = d, .handle = handle, .start = start_at, .end = end };
	uint64_t length = end == BELAY_OFFSET_MAX ? 0 : end - start_at + 1;
	int r;

	if (!wait)
		return belay_trylock(handle, mode, start_at, length, NULL);
	if (busy == 0) {
		r = belay_lock_timed(handle, mode, start_at, length, SHORT_MS, NULL);
		if (r != -ETIMEDOUT)
			return r;
		busy = BUSY_MAX;
	}
	atomic_store_explicit(&d->busy, (uint8_t)(busy - 1), memory_order_relaxed);
	return queue(&q, mode);
}
