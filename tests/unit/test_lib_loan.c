/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libbelay within loans, against a belayd that is played: what is asked and
 * what is not, what ends a loan, threads, signal handlers, and the end.
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/single_threaded.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "tests/unit/fake_belayd.h"

static struct belay_handle *open_name(struct belay *belay, enum belay_lock_owner owner)
{
	struct belay_handle *handle;

	if (belay_open_name(belay, NULL, "n", owner, &handle) < 0)
		bail_out("no handle");
	return handle;
}

/* So many messages of that type have come. */
static unsigned said(struct fake *f, enum client_type type)
{
	unsigned n;

	pthread_mutex_lock(&f->mutex);
	n = f->messages[type];
	pthread_mutex_unlock(&f->mutex);
	return n;
}

/* Whether a handle may lock is known when it has. Nothing that the test counts. */
static void make_known(struct fake *f, struct belay_handle *handle)
{
	f->lend = false;
	for (unsigned mode = BELAY_SHARED; mode <= BELAY_EXCLUSIVE; mode++)
		if (belay_lock(handle, (enum belay_lock_mode)mode, 0, 0, NULL) < 0 ||
		    belay_unlock(handle, 0, 0) < 0)
			bail_out("no lock");
	if (belay_lock(handle, BELAY_SHARED, 0, 0, NULL) < 0 || belay_unlock(handle, 0, 0) < 0)
		bail_out("no lock");
	fake_await(f, CLIENT_UNLOCK, said(f, CLIENT_LOCK));
	pthread_mutex_lock(&f->mutex);
	memset(f->messages, 0, sizeof(f->messages));
	f->cells = f->no_cells = 0;
	f->lend = true;
	pthread_mutex_unlock(&f->mutex);
}

static void finish(struct fake *f, struct belay *belay, struct belay_handle **handles, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		belay_handle_close(handles[i]);
	belay_disconnect(belay);
	fake_stop(f);
	ok_str(f->broken, NULL, "the client kept the rules");
}

/* All that was said before has been heard. */
static void be_heard(struct belay *belay)
{
	belay_handle_close(open_name(belay, BELAY_OWNER_FLOCK));
}

static unsigned asked(struct fake *f)
{
	return said(f, CLIENT_LOCK) + said(f, CLIENT_UNLOCK) + said(f, CLIENT_TEST);
}

/* ---- one owner ---- */

static void test_loan(void)
{
	struct fake f;
	struct belay *belay;
	struct belay_handle *h;
	struct belay_lock_holder holder;
	uint64_t token = 0, last;
	bool good = true;

	fake_start(&f, &belay);
	h = open_name(belay, BELAY_OWNER_PROCESS);
	make_known(&f, h);
	ok_int(belay_lock(h, BELAY_EXCLUSIVE, 10, 10, &last), 0, "the first lock is asked for");
	ok(asked(&f) == 1 && f.lent == 1 && f.cells == 1, "in a cell, and brings a loan");
	for (uint64_t i = 0; i < 1000 && good; i++) {
		good = belay_trylock(h, i % 2 ? BELAY_SHARED : BELAY_EXCLUSIVE, 100 + i, 1, &token) == 0 &&
		       token > last && belay_unlock(h, 100 + i, 1) == 0;
		last = token;
	}
	ok(good, "a thousand more, with growing tokens");
	ok_int(belay_lock_timed(h, BELAY_SHARED, 30, 0, 10, NULL), 0, "one with a time limit");
	ok_int(belay_get(h, BELAY_EXCLUSIVE, 0, 0, &holder), 0, "nobody else is in the way");
	ok_uint(asked(&f), 1, "nothing of that was asked");
	ok_uint(fake_count(&f, 1), 2, "belayd finds what is held");
	ok_int(belay_unlock(h, 10, 10), 0, "an unlock after the recall is told");
	ok_int(belay_lock(h, BELAY_EXCLUSIVE, 10, 1, &token), 0, "a lock is asked for");
	ok(asked(&f) == 3 && f.lent == 2 && token > last, "and brings a new loan");
	ok_int(belay_unlock(h, 0, 0), 0, "all is unlocked in it");
	ok_uint(fake_count(&f, 1), 0, "and nothing is held");
	ok_int(belay_lock(h, BELAY_EXCLUSIVE, 10, 1, &token), 0, "once more");
	ok_uint(said(&f, CLIENT_RETURN), 2, "each loan that ended was returned");
	finish(&f, belay, &h, 1);
}

static void test_part(void)
{
	struct fake f;
	struct belay *belay;
	struct belay_handle *h;
	struct belay_lock_holder holder;

	fake_start(&f, &belay);
	f.range = (struct belay_range){ 1000, 1999 };
	f.mode = BELAY_MODE_SH;
	h = open_name(belay, BELAY_OWNER_PROCESS);
	ok_int(belay_lock(h, BELAY_SHARED, 1000, 10, NULL), 0, "a loan of a part, to readers");
	ok_int(belay_lock(h, BELAY_SHARED, 1500, 500, NULL), 0, "they read");
	ok_int(belay_unlock(h, 1000, 1000), 0, "and have read");
	ok_uint(asked(&f), 1, "without a word");
	ok_int(belay_get(h, BELAY_EXCLUSIVE, 1000, 1, &holder), 0, "who else reads is to be asked");
	ok(asked(&f) == 2 && said(&f, CLIENT_RETURN) == 1, "without the loan");
	ok_int(belay_lock(h, BELAY_SHARED, 1000, 1, NULL), 0, "another loan");
	ok_int(belay_lock(h, BELAY_EXCLUSIVE, 10, 1, NULL), 0, "elsewhere one asks");
	ok(asked(&f) == 4 && said(&f, CLIENT_RETURN) == 1, "with the loan");
	ok_int(belay_lock(h, BELAY_SHARED, 1010, 1, NULL), 0, "which goes on");
	ok_uint(asked(&f), 4, "without a word");
	ok_int(belay_lock(h, BELAY_SHARED, 1999, 2, NULL), 0, "what reaches beyond it ends it");
	ok(asked(&f) == 5 && said(&f, CLIENT_RETURN) == 2, "and is asked for");
	finish(&f, belay, &h, 1);
}

static void test_room(void)
{
	struct fake f;
	struct belay *belay;
	struct belay_handle *h;
	bool good = true;

	fake_start(&f, &belay);
	f.room = 4;
	h = open_name(belay, BELAY_OWNER_PROCESS);
	for (uint64_t i = 0; i < 4 && good; i++)
		good = belay_lock(h, BELAY_EXCLUSIVE, 10 * i, 1, NULL) == 0;
	ok(good && asked(&f) == 1, "a loan with room for four locks");
	f.room = 100;
	ok_int(belay_lock(h, BELAY_EXCLUSIVE, 40, 1, NULL), 0, "the fifth is asked for");
	ok(asked(&f) == 2 && f.lent == 2, "and brings a larger loan");
	for (uint64_t i = 5; i < 90 && good; i++)
		good = belay_lock(h, BELAY_EXCLUSIVE, 10 * i, 1, NULL) == 0;
	ok(good && asked(&f) == 2, "with room for more");
	ok_uint(fake_count(&f, 1), 90, "none is lost");
	finish(&f, belay, &h, 1);
}

/* ---- what a loan may not overtake ---- */

struct locker {
	struct belay_handle *handle;
	uint64_t start;
	int result;
};

static void *lock_thread(void *arg)
{
	struct locker *l = arg;

	l->result = belay_lock(l->handle, BELAY_EXCLUSIVE, l->start, 1, NULL);
	return NULL;
}

static void test_overtaken(void)
{
	struct fake f;
	struct belay *belay;
	struct belay_handle *h;
	struct locker l;
	pthread_t thread;

	fake_start(&f, &belay);
	h = open_name(belay, BELAY_OWNER_PROCESS);
	f.miscount = UINT32_MAX;
	ok_int(belay_lock(h, BELAY_EXCLUSIVE, 1, 1, NULL), 0, "a loan that belayd made before the last message");
	fake_await(&f, CLIENT_RETURN, 1);
	ok(f.lent == 1, "is returned");
	f.miscount = 0;
	ok_int(belay_lock(h, BELAY_EXCLUSIVE, 2, 1, NULL), 0, "a good one is not");
	ok_int(belay_lock(h, BELAY_EXCLUSIVE, 3, 1, NULL), 0, "it is used");
	ok_uint(asked(&f), 2, "without a word");

	/* A request waits while others go on: its loan comes when they have said more. */
	fake_foreign(&f, SLOT_LOCK_EX, 50, 50);
	l = (struct locker){ .handle = h, .start = 50 };
	pthread_create(&thread, NULL, lock_thread, &l);
	fake_await_waiting(&f, 1);
	ok_int(belay_trylock(h, BELAY_EXCLUSIVE, 50, 1, NULL), -EAGAIN, "another thread goes on meanwhile");
	fake_foreign(&f, SLOT_UNLOCK, 50, 50);
	pthread_join(thread, NULL);
	ok_int(l.result, 0, "who waited is granted");
	ok_int(belay_lock(h, BELAY_EXCLUSIVE, 51, 1, NULL), 0, "its loan counts all that was said");
	ok_uint(said(&f, CLIENT_LOCK), 4, "so it is good");
	finish(&f, belay, &h, 1);
}

static void test_without(void)
{
	struct fake f;
	struct belay *belay;
	struct belay_handle *h;

	fake_start(&f, &belay);
	f.no_memory = true;
	h = open_name(belay, BELAY_OWNER_PROCESS);
	ok(belay_lock(h, BELAY_EXCLUSIVE, 1, 1, NULL) == 0 && belay_lock(h, BELAY_EXCLUSIVE, 2, 1, NULL) == 0,
	   "without memory in common all is asked");
	ok(f.no_cells == 2 && f.lent == 0, "by the socket");
	finish(&f, belay, &h, 1);

	fake_start(&f, &belay);
	h = open_name(belay, BELAY_OWNER_PROCESS);
	f.lend = false;
	ok(belay_lock(h, BELAY_EXCLUSIVE, 1, 1, NULL) == 0 && belay_lock(h, BELAY_EXCLUSIVE, 2, 1, NULL) == 0,
	   "without loans, too");
	ok(f.cells == 2 && said(&f, CLIENT_SHARE) == 1, "in cells");
	finish(&f, belay, &h, 1);
}

/* ---- owners of one process ---- */

static void test_owners(void)
{
	struct fake f;
	struct belay *belay;
	struct belay_handle *h[5];
	struct belay_lock_holder holder;

	fake_start(&f, &belay);
	h[0] = open_name(belay, BELAY_OWNER_PROCESS);
	h[1] = open_name(belay, BELAY_OWNER_HANDLE);
	h[2] = open_name(belay, BELAY_OWNER_HANDLE);
	h[3] = open_name(belay, BELAY_OWNER_FLOCK);
	h[4] = open_name(belay, BELAY_OWNER_FLOCK);
	for (unsigned i = 0; i < 5; i++)
		make_known(&f, h[i]);
	ok_int(belay_lock(h[1], BELAY_EXCLUSIVE, 100, 10, NULL), 0, "one handle locks");
	ok_int(belay_trylock(h[2], BELAY_SHARED, 109, 1, NULL), -EAGAIN, "another is refused");
	ok_int(belay_lock_timed(h[0], BELAY_SHARED, 0, 101, 0, NULL), -ETIMEDOUT, "the process as well");
	ok_int(belay_get(h[0], BELAY_SHARED, 0, 0, &holder), 1, "it is told by whom");
	ok(holder.node == 7 && holder.pid == getpid() && holder.start == 100 && holder.length == 10 &&
	   holder.mode == BELAY_EXCLUSIVE && holder.owner == BELAY_OWNER_HANDLE, "a handle of its own");
	ok_int(belay_lock(h[2], BELAY_EXCLUSIVE, 110, 5, NULL), 0, "beside it there is room");
	ok_int(belay_lock(h[3], BELAY_EXCLUSIVE, 0, 0, NULL), 0, "flock is a world of its own");
	ok_int(belay_trylock(h[4], BELAY_SHARED, 0, 0, NULL), -EAGAIN, "with the same rule");
	ok(belay_get(h[4], BELAY_SHARED, 0, 0, &holder) == 1 && holder.owner == BELAY_OWNER_FLOCK &&
	   holder.length == 0, "and the same answer");
	ok_uint(asked(&f), 2, "one lock of each world was asked");
	belay_handle_close(h[2]);
	ok_uint(fake_count(&f, 1), 1, "closing a handle releases what it held, and nothing else");
	h[2] = h[4];
	finish(&f, belay, h, 4);
}

/* Closing a handle releases what the process has, if it locked through it: which belayd may not know. */
static void test_close(void)
{
	struct fake f;
	struct belay *belay;
	struct belay_handle *h[3];

	fake_start(&f, &belay);
	for (unsigned i = 0; i < 3; i++) {
		h[i] = open_name(belay, BELAY_OWNER_PROCESS);
		make_known(&f, h[i]);
	}
	ok_int(belay_lock(h[0], BELAY_EXCLUSIVE, 1, 1, NULL), 0, "a lock through a handle");
	belay_handle_close(h[2]);
	ok_uint(fake_count(&f, 1), 1, "stays when another is closed that was not used for it");
	ok(belay_lock(h[0], BELAY_EXCLUSIVE, 3, 1, NULL) == 0 && belay_lock(h[1], BELAY_EXCLUSIVE, 5, 1, NULL) == 0,
	   "a lock through another, in the loan");
	belay_handle_close(h[1]);
	ok_uint(fake_count(&f, 1), 0, "closing that one releases all");
	finish(&f, belay, h, 1);
}

/* ---- waiting ---- */

static void test_waiting(void)
{
	enum { THREADS = SLOT_CELLS + 2 };
	struct fake f;
	struct belay *belay;
	struct belay_handle *h;
	struct locker l[THREADS];
	pthread_t thread[THREADS];
	int failed = 0;

	fake_start(&f, &belay);
	f.lend = false;
	h = open_name(belay, BELAY_OWNER_PROCESS);
	fake_foreign(&f, SLOT_LOCK_EX, 0, 1000);
	ok_int(belay_lock_timed(h, BELAY_EXCLUSIVE, 0, 1, 30, NULL), -ETIMEDOUT, "a time limit in a cell");
	for (unsigned i = 0; i < THREADS; i++) {
		l[i] = (struct locker){ .handle = h, .start = 2 * i };
		pthread_create(&thread[i], NULL, lock_thread, &l[i]);
	}
	fake_await_waiting(&f, THREADS);
	ok_uint(f.no_cells, 2, "more wait than there are cells");
	fake_foreign(&f, SLOT_UNLOCK, 0, 1000);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		failed += l[i].result != 0;
	}
	ok_int(failed, 0, "all are granted");
	ok_uint(fake_count(&f, 1), THREADS, "what they asked for");
	finish(&f, belay, &h, 1);
}

static void test_async(void)
{
	struct fake f;
	struct belay *belay;
	struct belay_handle *h;
	struct belay_event_info event;
	struct pollfd p;
	uint32_t request;
	int r;

	fake_start(&f, &belay);
	h = open_name(belay, BELAY_OWNER_PROCESS);
	p = (struct pollfd){ .fd = belay_fd(belay), .events = POLLIN };
	for (unsigned i = 0; i < 3; i++) {
		ok_int(belay_lock_start(h, BELAY_EXCLUSIVE, 10 * i, 1, &request), 0, "a lock is started");
		do {
			poll(&p, 1, -1);
			r = belay_next(belay, &event);
		} while (r == 0);
		ok(r == 1 && event.request == request && event.result == 0 && event.token == 1001 + i,
		   "and granted: token %" PRIu64, event.token);
		/* A handle has to have been granted once. */
		ok_int(belay_lock(h, BELAY_EXCLUSIVE, 10 * i + 5, 1, NULL), 0, "one that waits is, too");
		f.token = 1001 + i;
		fake_recall(&f);
		f.token = 1001 + i;
	}
	ok_uint(f.lent, 3, "each brought a loan");
	finish(&f, belay, &h, 1);
}

/* ---- the end ---- */

static void test_frozen(void)
{
	struct fake f;
	struct belay *belay;
	struct belay_handle *h;

	fake_start(&f, &belay);
	h = open_name(belay, BELAY_OWNER_PROCESS);
	ok_int(belay_lock(h, BELAY_EXCLUSIVE, 1, 1, NULL), 0, "a loan");
	slot_freeze(fake_head(&f, 0));
	ok_int(belay_lock(h, BELAY_EXCLUSIVE, 3, 1, NULL), 0, "frozen: one asks");
	ok(asked(&f) == 2 && said(&f, CLIENT_RETURN) == 1, "without the loan");
	finish(&f, belay, &h, 1);
}

static void *hang_up_thread(void *arg)
{
	struct fake *f = arg;

	fake_await_waiting(f, 1);
	shutdown(f->peer.conn, SHUT_RDWR);
	return NULL;
}

static void test_lost(void)
{
	struct slot_belayd *belayd;
	struct fake f;
	struct belay *belay;
	struct belay_handle *h;
	pthread_t thread;

	fake_start(&f, &belay);
	h = open_name(belay, BELAY_OWNER_PROCESS);
	fake_foreign(&f, SLOT_LOCK_EX, 1, 1);
	pthread_create(&thread, NULL, hang_up_thread, &f);
	ok_int(belay_lock(h, BELAY_EXCLUSIVE, 1, 1, NULL), -EIO, "belayd goes while one waits in a cell");
	ok_int(belay_trylock(h, BELAY_EXCLUSIVE, 2, 1, NULL), -EIO, "everything fails then");
	pthread_join(thread, NULL);
	finish(&f, belay, &h, 1);

	fake_start(&f, &belay);
	h = open_name(belay, BELAY_OWNER_PROCESS);
	ok(belay_lock(h, BELAY_EXCLUSIVE, 1, 1, NULL) == 0 && belay_lock(h, BELAY_EXCLUSIVE, 3, 1, NULL) == 0 &&
	   asked(&f) == 1, "belayd is killed while there is a loan");
	belayd = (struct slot_belayd *)(void *)(f.map + SLOT_BELAYD_AT);
	shutdown(f.peer.conn, SHUT_RDWR);
	atomic_store(&belayd->thread, SLOT_BELAYD_DIED);
	ok_int(belay_lock(h, BELAY_EXCLUSIVE, 5, 1, NULL), -EIO, "nothing is locked in it any more");
	ok_int(belay_unlock(h, 1, 1), -EIO, "nor unlocked");
	finish(&f, belay, &h, 1);
}

/* A program that closes what it does not know, before another slot of the memory is needed. */
static void close_memory(int except)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *e;
	char link[300], name[64];

	while (dir && (e = readdir(dir))) {
		ssize_t n;

		snprintf(link, sizeof(link), "/proc/self/fd/%s", e->d_name);
		n = readlink(link, name, sizeof(name) - 1);
		name[n > 0 ? n : 0] = '\0';
		if (strncmp(name, "/memfd:belay", 12) == 0 && atoi(e->d_name) != except)
			close(atoi(e->d_name));
	}
	closedir(dir);
}

static void test_closed(void)
{
	struct fake f;
	struct belay *belay;
	struct belay_handle *h[2];

	fake_start(&f, &belay);
	h[0] = open_name(belay, BELAY_OWNER_PROCESS);
	h[1] = open_name(belay, BELAY_OWNER_FLOCK);
	ok_int(belay_lock(h[0], BELAY_EXCLUSIVE, 1, 1, NULL), 0, "a loan");
	close_memory(f.fd);
	ok_int(belay_lock(h[1], BELAY_EXCLUSIVE, 0, 0, NULL), 0, "another, after the program closed all descriptors");
	fake_await(&f, CLIENT_RETURN, 1);
	ok(f.lent == 2, "cannot be used, and is returned");
	ok_int(belay_lock(h[0], BELAY_EXCLUSIVE, 3, 1, NULL), 0, "the first still can");
	ok_uint(said(&f, CLIENT_LOCK), 2, "without a word");
	finish(&f, belay, h, 2);
}

static void test_fork(void)
{
	struct fake f;
	struct belay *belay;
	struct belay_handle *h;
	int status = -1;
	pid_t pid;

	fake_start(&f, &belay);
	h = open_name(belay, BELAY_OWNER_PROCESS);
	ok_int(belay_lock(h, BELAY_EXCLUSIVE, 1, 1, NULL), 0, "a loan");
	pid = fork();
	if (pid == 0) {
		status = belay_lock(h, BELAY_EXCLUSIVE, 3, 1, NULL) != -EPERM || belay_unlock(h, 1, 1) != -EPERM;
		belay_handle_close(h);
		belay_disconnect(belay);
		_exit(status);
	}
	waitpid(pid, &status, 0);
	ok_int(status, 0, "a child has no part in it");
	ok_int(belay_lock(h, BELAY_EXCLUSIVE, 5, 1, NULL), 0, "the parent goes on");
	ok(asked(&f) == 1 && fake_count(&f, 1) == 2, "as if nothing had been");
	finish(&f, belay, &h, 1);
}

/* ---- threads and recalls ---- */

#define WORKERS 3u
#define ROUNDS 20000u

struct worker {
	struct fake *f;
	struct belay_handle *handle;
	unsigned number;
	uint64_t *shared, last_token;	/* what the lock guards: not atomic */
	int result;
	bool tokens_grow;
};

static void *worker_thread(void *arg)
{
	struct worker *w = arg;
	uint64_t token;

	for (unsigned i = 0; i < ROUNDS && w->result == 0; i++) {
		/* A byte of all, and one of each, which makes splits and merges. */
		w->result = belay_lock(w->handle, BELAY_EXCLUSIVE, 100, 1, &token);
		if (w->result < 0)
			break;
		w->shared[0]++;
		w->tokens_grow = w->tokens_grow && token > w->shared[1];
		w->shared[1] = token;
		w->result = belay_unlock(w->handle, 100, 1);
		if (w->result == 0)
			w->result = belay_lock(w->handle, BELAY_SHARED, 200 + w->number + i % 7, 3, NULL);
		if (w->result == 0)
			w->result = belay_unlock(w->handle, 200 + w->number + i % 7, i % 3 + 1);
		if (w->result == 0)
			w->result = belay_unlock(w->handle, 200, 50);
	}
	return NULL;
}

static void test_threads(void)
{
	struct fake f;
	struct belay *belay;
	struct belay_handle *h[WORKERS];
	struct worker w[WORKERS];
	pthread_t thread[WORKERS];
	uint64_t shared[2] = { 0, 0 };
	bool good = true, grow = true;
	unsigned recalls = 0;

	fake_start(&f, &belay);
	for (unsigned i = 0; i < WORKERS; i++) {
		h[i] = open_name(belay, BELAY_OWNER_HANDLE);
		w[i] = (struct worker){
			.f = &f, .handle = h[i], .number = i, .shared = shared, .tokens_grow = true,
		};
		pthread_create(&thread[i], NULL, worker_thread, &w[i]);
	}
	/* Recalls at any moment; each is followed by requests before the next. */
	for (; recalls < 300; recalls++) {
		unsigned before = asked(&f);

		fake_recall(&f);
		for (unsigned i = 0; i < 100 && asked(&f) == before; i++)
			usleep(50);
	}
	for (unsigned i = 0; i < WORKERS; i++) {
		pthread_join(thread[i], NULL);
		good = good && w[i].result == 0;
		grow = grow && w[i].tokens_grow;
	}
	ok(good, "threads lock through handles of their own, %u recalls meanwhile", recalls);
	ok_uint(shared[0], (uint64_t)WORKERS * ROUNDS, "never two at a time");
	ok(grow, "tokens grow from one to the next");
	diag("%u messages for %u locks", asked(&f), WORKERS * ROUNDS * 2);
	be_heard(belay);
	ok_uint(fake_count(&f, 1), 0, "nothing is left");
	finish(&f, belay, h, WORKERS);
}

/* ---- signal handlers ---- */

struct handler_state {
	struct belay_handle *handle;
	volatile unsigned runs;
	volatile int failed;
};

static struct handler_state *handler_state(struct handler_state *set)
{
	static struct handler_state *state;

	if (set)
		state = set;
	return state;
}

/* It comes in the middle of anything that the thread does with the same handle. */
static void on_alarm(int number)
{
	struct handler_state *s = handler_state(NULL);
	uint64_t at = 1000 + s->runs % 5;

	(void)number;
	if (belay_lock(s->handle, BELAY_EXCLUSIVE, at, 2, NULL) < 0 || belay_unlock(s->handle, at, 2) < 0)
		s->failed++;
	s->runs++;
}

/* Returns whether all went well. */
static bool lock_among_handlers(struct handler_state *state, struct belay *belay)
{
	const struct itimerval every = { { 0, 60 }, { 0, 60 } }, never = { { 0, 0 }, { 0, 0 } };
	struct sigaction action = { .sa_handler = on_alarm };
	int failed = 0;

	*state = (struct handler_state){ .handle = open_name(belay, BELAY_OWNER_PROCESS) };
	handler_state(state);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	for (unsigned i = 0; state->runs < 3000 && failed == 0; i++) {
		failed |= belay_lock(state->handle, BELAY_EXCLUSIVE, 100 + i % 3, 1, NULL);
		failed |= belay_unlock(state->handle, 100, 3);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	return failed == 0 && state->failed == 0;
}

static void test_handlers(void)
{
	struct handler_state state;
	struct fake f;
	struct belay *belay;

	fake_start(&f, &belay);
	ok(lock_among_handlers(&state, belay), "handlers lock in the middle of locks: %u", state.runs);
	ok(asked(&f) > 1, "some in the middle of a loan's: %u messages", asked(&f));
	be_heard(belay);
	ok_uint(fake_count(&f, 1), 0, "nothing is left");
	finish(&f, belay, &state.handle, 1);
}

/* The same in a process of one thread, which takes shorter ways. First: this process must not have had any. */
static void test_handlers_single(void)
{
	struct handler_state state;
	struct fake f;
	struct belay *belay;
	int status = -1;
	pid_t pid;

	fake_prepare(&f);
	pid = fork();
	if (pid == 0) {
		if (!__libc_single_threaded || belay_connect(&belay, f.peer.path) < 0)
			_exit(2);
		status = !lock_among_handlers(&state, belay);
		if (belay_unlock(state.handle, 0, 0) < 0)
			status = 3;
		belay_handle_close(state.handle);
		belay_disconnect(belay);
		_exit(status);
	}
	fake_run(&f);
	waitpid(pid, &status, 0);
	ok_int(status, 0, "handlers lock in the middle of locks of a single thread");
	ok(asked(&f) > 1, "some in the middle of a loan's: %u messages", asked(&f));
	ok_uint(fake_count(&f, 1), 0, "nothing is left");
	fake_stop(&f);
	ok_str(f.broken, NULL, "the client kept the rules");
}

int main(void)
{
	test_handlers_single();
	test_loan();
	test_part();
	test_room();
	test_overtaken();
	test_without();
	test_owners();
	test_close();
	test_waiting();
	test_async();
	test_frozen();
	test_lost();
	test_closed();
	test_fork();
	test_threads();
	test_handlers();
	return done_testing();
}
