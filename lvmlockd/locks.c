/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lvmlockd/locks.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <qb/qbdefs.h>
#include <qb/qblog.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "include/belay.h"
#include "lvmlockd/about.h"
#include "lvmlockd/turn.h"

#define LOCKSPACE "volumes"
#define NAME_MAX_BYTES 255u
/* So many of the node's locks are asked for at a time; belayd limits what is not answered yet. */
#define REGAIN_MAX 256u
/* belayd may be away for long: looking for it must cost nothing. */
#define RETRY_NS QB_TIME_NS_IN_SEC
/* To one that hangs each attempt takes some seconds, in which nothing else is done. */
#define HUNG_RETRY_NS (10 * QB_TIME_NS_IN_SEC)

enum step {
	STEP_IDLE,
	STEP_ASKED,	/* belayd has the request */
	STEP_READY,	/* there is a result, to be told from the loop */
};

struct lock {
	struct locks *locks;
	char *name;
	enum lock_owner owner;
	void *context;
	struct belay_handle *handle;	/* NULL: not open */
	enum lock_mode held, want;
	enum step step;
	uint32_t request;		/* STEP_ASKED */
	bool regain;			/* it is, or will be, asked for by itself, after belayd came back */
	bool dropped;			/* ... and was released while it was asked for */
	bool cancelled, late;
	bool closing;			/* nobody knows it any more: free it when its answer has come */
	int result;			/* STEP_READY */
	lock_done done;
	void *done_context;
	qb_loop_timer_handle timer;	/* 0: none */
	TAILQ_ENTRY(lock) link;
	TAILQ_ENTRY(lock) step_link;	/* in asked or in ready */
};
TAILQ_HEAD(lock_list, lock);

struct locks {
	qb_loop_t *loop;
	char *socket;
	struct locks_handlers handlers;
	struct belay *belay;		/* NULL: not connected */
	uint32_t node;
	struct about about;		/* as it was when the connection began */
	int told;			/* the last failure to connect that was logged */
	struct turn turn;
	unsigned regain_asked;
	bool regaining, lost;	/* lost: seen in a call, to be dealt with from the loop */
	bool again;		/* when all is regained, it is to be asked for once more */
	qb_loop_timer_handle timer;
	struct lock_list all, asked, ready;
};

static const char *const mode_names[MODE_COUNT] = {
	[MODE_UN] = "un", [MODE_SH] = "sh", [MODE_EX] = "ex",
};

const char *lock_mode_name(enum lock_mode mode)
{
	assert(mode < MODE_COUNT);
	return mode_names[mode];
}

enum lock_mode lock_mode_find(const char *text)
{
	unsigned mode = 0;

	while (mode < MODE_COUNT && (!text || strcmp(mode_names[mode], text) != 0))
		mode++;
	return (enum lock_mode)mode;
}

static enum belay_lock_mode belay_mode(enum lock_mode mode)
{
	return mode == MODE_SH ? BELAY_SHARED : BELAY_EXCLUSIVE;
}

/* ---- steps ---- */

static void on_turn(void *data);

/* Answers are told from the loop, so that no caller is called back by what it calls. */
static void arrange_turn(struct locks *locks)
{
	(void)turn_ask(&locks->turn, locks->loop, locks, on_turn);
}

static void stop_timer(struct lock *lock)
{
	if (lock->timer)
		(void)qb_loop_timer_del(lock->locks->loop, lock->timer);
	lock->timer = 0;
}

static void finish(struct lock *lock, int result)
{
	struct locks *locks = lock->locks;

	assert(lock->step != STEP_READY);
	if (lock->step == STEP_ASKED)
		TAILQ_REMOVE(&locks->asked, lock, step_link);
	stop_timer(lock);
	lock->step = STEP_READY;
	lock->result = result;
	TAILQ_INSERT_TAIL(&locks->ready, lock, step_link);
	arrange_turn(locks);
}

static void note_lost(struct locks *locks, int result)
{
	if (result != -EIO && result != -ETIMEDOUT)
		return;
	locks->lost = true;
	arrange_turn(locks);
}

static int open_handle(struct lock *lock)
{
	struct locks *locks = lock->locks;
	int r;

	if (lock->handle)
		return 0;
	if (!locks->belay)
		return -ENOTCONN;
	r = belay_open_name(locks->belay, LOCKSPACE, lock->name,
			    lock->owner == LOCK_NODE ? BELAY_OWNER_NODE : BELAY_OWNER_HANDLE, &lock->handle);
	note_lost(locks, r);
	return locks->lost ? -ENOTCONN : r;
}

/* 0: its event will come. */
static int ask(struct lock *lock, enum lock_mode mode, bool wait)
{
	struct locks *locks = lock->locks;
	int r = open_handle(lock);

	if (r < 0)
		return r;
	r = wait ? belay_lock_start(lock->handle, belay_mode(mode), 0, 0, &lock->request) :
		   belay_trylock_start(lock->handle, belay_mode(mode), 0, 0, &lock->request);
	if (r < 0) {
		note_lost(locks, r);
		return r == -EIO ? -ENOTCONN : r;
	}
	lock->step = STEP_ASKED;
	lock->want = mode;
	TAILQ_INSERT_TAIL(&locks->asked, lock, step_link);
	return 0;
}

/* Make belayd hold what @lock->held says, whatever it holds: that never has to wait. */
static void settle(struct lock *lock)
{
	uint32_t unused;
	int r;

	if (!lock->handle)
		return;
	if (lock->held == MODE_UN)
		r = belay_unlock(lock->handle, 0, 0);
	else
		r = belay_lock_start(lock->handle, belay_mode(lock->held), 0, 0, &unused);
	note_lost(lock->locks, r);
	if (r < 0 && !lock->locks->lost)
		qb_log(LOG_ERR, "%s: belayd does not take it that its mode is %s now (%s). Restart "
		       "belay-lvmlockd, which tells it anew", lock->name, mode_names[lock->held], strerror(-r));
}

static void free_lock(struct lock *lock)
{
	struct locks *locks = lock->locks;

	if (lock->step == STEP_ASKED)
		TAILQ_REMOVE(&locks->asked, lock, step_link);
	else if (lock->step == STEP_READY)
		TAILQ_REMOVE(&locks->ready, lock, step_link);
	stop_timer(lock);
	belay_handle_close(lock->handle);
	TAILQ_REMOVE(&locks->all, lock, link);
	free(lock->name);
	free(lock);
}

/* ---- answers ---- */

/* What belayd has said, as lock_done() has it. */
static int result_of(const struct lock *lock, int result)
{
	if (result == -EINTR)
		return lock->cancelled ? -ECANCELED : -EAGAIN;
	return result;
}

static void on_regain_answer(struct lock *lock, int result)
{
	struct locks *locks = lock->locks;

	TAILQ_REMOVE(&locks->asked, lock, step_link);
	locks->regain_asked--;
	lock->step = STEP_IDLE;
	lock->regain = false;
	if (lock->closing) {
		if (result == 0 && lock->dropped)
			settle(lock);
		free_lock(lock);
		return;
	}
	if (lock->dropped) {
		lock->dropped = false;
		settle(lock);
	} else if (result < 0) {
		lock->held = MODE_UN;
		locks->handlers.on_refused(locks->handlers.context, lock, result);
	}
}

static void on_answer(struct locks *locks, const struct belay_event_info *event)
{
	struct lock *lock;

	TAILQ_FOREACH(lock, &locks->asked, step_link)
		if (lock->request == event->request)
			break;
	/* Not found: what settle() started; it cannot fail while the connection lasts. */
	if (!lock)
		return;
	if (lock->regain) {
		on_regain_answer(lock, event->result);
		return;
	}
	if (lock->closing) {
		/* Granted before it was withdrawn: back to what it was. */
		if (event->result == 0)
			settle(lock);
		free_lock(lock);
		return;
	}
	if (event->result == 0)
		lock->held = lock->want;
	finish(lock, result_of(lock, event->result));
}

/* What the node held is asked for again, some at a time. */
static void ask_more(struct locks *locks)
{
	struct lock *lock;
	int r;

	(void)belay_cork(locks->belay);
	TAILQ_FOREACH(lock, &locks->all, link) {
		if (locks->regain_asked == REGAIN_MAX || locks->lost)
			break;
		if (!lock->regain || lock->step != STEP_IDLE)
			continue;
		r = ask(lock, lock->held, false);
		if (r == 0) {
			locks->regain_asked++;
			continue;
		}
		if (r == -ENOTCONN)
			continue;
		lock->regain = false;
		lock->held = MODE_UN;
		locks->handlers.on_refused(locks->handlers.context, lock, r);
	}
	note_lost(locks, belay_uncork(locks->belay));
}

static void regain(struct locks *locks);

static void check_regained(struct locks *locks)
{
	struct lock *lock;

	if (!locks->regaining || !locks->belay || locks->lost)
		return;
	ask_more(locks);
	if (locks->lost)
		return;
	TAILQ_FOREACH(lock, &locks->all, link)
		if (lock->regain)
			return;
	locks->regaining = false;
	if (locks->again)
		regain(locks);
	else
		locks->handlers.on_regained(locks->handlers.context);
}

static void tell_ready(struct locks *locks)
{
	struct lock *lock;

	while ((lock = TAILQ_FIRST(&locks->ready))) {
		lock_done done = lock->done;

		TAILQ_REMOVE(&locks->ready, lock, step_link);
		lock->step = STEP_IDLE;
		lock->done = NULL;
		done(lock->done_context, lock->result);
	}
}

/* ---- connection ---- */

static void on_retry(void *data);

static void arrange_retry(struct locks *locks, uint64_t ns)
{
	if (locks->timer)
		return;
	if (qb_loop_timer_add(locks->loop, QB_LOOP_LOW, ns, locks, on_retry, &locks->timer) < 0)
		qb_log(LOG_CRIT, "out of memory: belayd will not be connected to any more. Restart belay-lvmlockd");
}

static void disconnect(struct locks *locks)
{
	struct lock *lock;

	(void)qb_loop_poll_del(locks->loop, belay_fd(locks->belay));
	TAILQ_FOREACH(lock, &locks->all, link) {
		belay_handle_close(lock->handle);
		lock->handle = NULL;
	}
	belay_disconnect(locks->belay);
	locks->belay = NULL;
	locks->lost = false;
}

static void on_loss(struct locks *locks)
{
	struct lock *lock, *next;

	disconnect(locks);
	locks->regaining = false;
	locks->regain_asked = 0;
	for (lock = TAILQ_FIRST(&locks->all); lock; lock = next) {
		next = TAILQ_NEXT(lock, link);
		if (lock->owner == LOCK_TRANSIENT)
			lock->held = MODE_UN;
		if (lock->closing) {
			free_lock(lock);
		} else if (lock->regain) {
			if (lock->step == STEP_ASKED)
				TAILQ_REMOVE(&locks->asked, lock, step_link);
			lock->step = STEP_IDLE;
			lock->regain = lock->dropped = false;
		} else if (lock->step == STEP_ASKED) {
			finish(lock, -EIO);
		}
	}
	locks->handlers.on_lost(locks->handlers.context);
	arrange_retry(locks, RETRY_NS);
}

static void on_turn(void *data)
{
	struct locks *locks = data;

	locks->turn.due = false;
	if (locks->lost && locks->belay)
		on_loss(locks);
	tell_ready(locks);
	check_regained(locks);
}

static int32_t on_readable(int32_t fd, int32_t revents, void *data)
{
	struct locks *locks = data;
	struct belay_event_info event;
	int r;

	(void)fd;
	(void)revents;
	while ((r = belay_next(locks->belay, &event)) == 1)
		on_answer(locks, &event);
	if (r < 0)
		locks->lost = true;
	/* This descriptor's own handler cannot take it out of the loop. */
	arrange_turn(locks);
	return 0;
}

/* on_regained() follows when all that the node held is answered. */
static void regain(struct locks *locks)
{
	struct lock *lock;

	locks->regaining = true;
	locks->again = false;
	TAILQ_FOREACH(lock, &locks->all, link)
		lock->regain = lock->owner == LOCK_NODE && lock->held != MODE_UN && lock->step == STEP_IDLE;
	arrange_turn(locks);
}

void locks_ask_again(struct locks *locks)
{
	/* What is asked already may be answered from before. Without a connection it begins with that. */
	if (locks->regaining)
		locks->again = true;
	else if (locks->belay && !locks->lost)
		regain(locks);
}

static int try_connect(struct locks *locks)
{
	int r = belay_connect(&locks->belay, locks->socket);

	if (r < 0)
		return r;
	r = about_belayd(locks->belay, &locks->about);
	if (r == 0)
		r = qb_loop_poll_add(locks->loop, QB_LOOP_MED, belay_fd(locks->belay), POLLIN, locks, on_readable);
	if (r < 0) {
		belay_disconnect(locks->belay);
		locks->belay = NULL;
		return r;
	}
	locks->node = belay_node(locks->belay);
	locks->told = 0;
	return 0;
}

static void on_retry(void *data)
{
	struct locks *locks = data;
	int r;

	locks->timer = 0;
	if (locks->handlers.may_connect && !locks->handlers.may_connect(locks->handlers.context)) {
		arrange_retry(locks, RETRY_NS);
		return;
	}
	r = try_connect(locks);
	if (r < 0) {
		if (r != locks->told)
			qb_log(LOG_NOTICE, "cannot reach belayd at %s (%s): trying again", locks->socket,
			       strerror(-r));
		locks->told = r;
		arrange_retry(locks, r == -ETIMEDOUT ? HUNG_RETRY_NS : RETRY_NS);
		return;
	}
	locks->handlers.on_connected(locks->handlers.context, locks->about.cluster, locks->node);
	regain(locks);
}

int locks_new(qb_loop_t *loop, const char *socket, const struct locks_handlers *handlers,
	      struct locks **ret_locks)
{
	struct locks *locks = calloc(1, sizeof(*locks));

	if (!locks)
		return -ENOMEM;
	locks->loop = loop;
	locks->handlers = *handlers;
	locks->socket = strdup(socket);
	TAILQ_INIT(&locks->all);
	TAILQ_INIT(&locks->asked);
	TAILQ_INIT(&locks->ready);
	if (!locks->socket ||
	    qb_loop_timer_add(loop, QB_LOOP_LOW, 0, locks, on_retry, &locks->timer) < 0) {
		free(locks->socket);
		free(locks);
		return -ENOMEM;
	}
	*ret_locks = locks;
	return 0;
}

void locks_free(struct locks *locks)
{
	struct lock *lock;

	if (!locks)
		return;
	/* Those that wait for an answer after lock_close(). */
	while ((lock = TAILQ_FIRST(&locks->all))) {
		assert(lock->closing);
		free_lock(lock);
	}
	if (locks->timer)
		(void)qb_loop_timer_del(locks->loop, locks->timer);
	turn_drop(&locks->turn, locks->loop);
	if (locks->belay)
		disconnect(locks);
	free(locks->socket);
	free(locks);
}

static bool locks_connected(const struct locks *locks)
{
	return locks->belay && !locks->lost;
}

uint32_t locks_node(const struct locks *locks)
{
	return locks->node;
}

const char *locks_cluster(const struct locks *locks)
{
	return locks->about.cluster;
}

bool locks_standalone(const struct locks *locks)
{
	return locks->about.standalone;
}

struct belay *locks_belay(struct locks *locks)
{
	return locks_connected(locks) ? locks->belay : NULL;
}

int locks_forget_rest(struct locks *locks)
{
	char *text = NULL;
	int r;

	if (!locks_connected(locks))
		return -ENOTCONN;
	r = belay_command(locks->belay, "node-locks-forget", &text);
	free(text);
	note_lost(locks, r);
	return r;
}

/* ---- one lock ---- */

int lock_open(struct locks *locks, const char *name, enum lock_owner owner, void *context,
	      struct lock **ret_lock)
{
	size_t size = strlen(name);
	struct lock *lock;

	if (size == 0 || size > NAME_MAX_BYTES)
		return -ENAMETOOLONG;
	lock = calloc(1, sizeof(*lock));
	if (!lock)
		return -ENOMEM;
	lock->name = strdup(name);
	if (!lock->name) {
		free(lock);
		return -ENOMEM;
	}
	lock->locks = locks;
	lock->owner = owner;
	lock->context = context;
	TAILQ_INSERT_TAIL(&locks->all, lock, link);
	*ret_lock = lock;
	return 0;
}

void lock_close(struct lock *lock)
{
	struct locks *locks;

	if (!lock)
		return;
	locks = lock->locks;
	if (lock->step == STEP_ASKED && locks_connected(locks)) {
		stop_timer(lock);
		lock->closing = true;
		/* Of a transient lock the end of the handle releases everything. */
		if (lock->owner == LOCK_TRANSIENT)
			lock->held = MODE_UN;
		if (!lock->regain)
			note_lost(locks, belay_lock_cancel(locks->belay, lock->request));
		return;
	}
	free_lock(lock);
}

static void on_late(void *data)
{
	struct lock *lock = data;

	lock->timer = 0;
	lock->late = true;
	note_lost(lock->locks, belay_lock_cancel(lock->locks->belay, lock->request));
}

int lock_take(struct lock *lock, enum lock_mode mode, uint32_t wait_ms, lock_done done, void *context)
{
	struct locks *locks = lock->locks;
	int r;

	assert(mode == MODE_SH || mode == MODE_EX);
	assert(!lock_busy(lock));
	if (!locks_connected(locks))
		return -ENOTCONN;
	if (lock->regain)
		return -EBUSY;
	lock->cancelled = lock->late = false;
	r = ask(lock, mode, wait_ms > 0);
	if (r < 0)
		return r;
	lock->done = done;
	lock->done_context = context;
	if (wait_ms == 0 || wait_ms == LOCK_FOREVER)
		return 0;
	r = qb_loop_timer_add(locks->loop, QB_LOOP_MED, (uint64_t)wait_ms * QB_TIME_NS_IN_MSEC, lock, on_late,
			      &lock->timer);
	/* Without a timer it would wait for ever: then not at all. */
	if (r < 0)
		on_late(lock);
	return 0;
}

void lock_cancel(struct lock *lock)
{
	if (lock->step != STEP_ASKED || lock->regain || lock->cancelled)
		return;
	lock->cancelled = true;
	note_lost(lock->locks, belay_lock_cancel(lock->locks->belay, lock->request));
}

bool lock_busy(const struct lock *lock)
{
	return lock->step != STEP_IDLE && !lock->regain;
}

void lock_release(struct lock *lock)
{
	assert(!lock_busy(lock));
	lock->held = MODE_UN;
	if (lock->regain && lock->step == STEP_ASKED) {
		lock->dropped = true;
		return;
	}
	lock->regain = false;
	settle(lock);
}

enum lock_mode lock_held(const struct lock *lock)
{
	return lock->held;
}

const char *lock_name(const struct lock *lock)
{
	return lock->name;
}

void *lock_context(const struct lock *lock)
{
	return lock->context;
}
