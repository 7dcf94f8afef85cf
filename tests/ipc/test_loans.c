/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What belayd lends to a client and how it comes back: to whoever asks next,
 * from a client that runs, stands still, dies, becomes another program, or
 * writes rubbish.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "slot/commit.h"
#include "tests/ipc/raw.h"
#include "tests/tap.h"

/* So often a client may have to lock before it is lent anything. */
#define TRIES 1000

struct borrower {
	struct raw raw;
	uint32_t handle;
	struct client_message lent;	/* as it came with the RESULT */
	struct slot_loan loan;
};

static const struct belay_range low = { 0, 9 }, high = { 100, 109 };

static uint32_t open_name(struct raw *r, const char *name)
{
	int handle = raw_open_name(r, "default", name);

	if (handle <= 0)
		bail_out("a named lock cannot be opened");
	return (uint32_t)handle;
}

/* Lock and unlock until it is lent: what it locked it holds then. */
static bool ask_for_loan(struct borrower *b, const struct belay_range *range)
{
	for (unsigned i = 0; i < TRIES; i++) {
		if (raw_borrow(&b->raw, b->handle, BELAY_MODE_EX, range->start, range->end, &b->lent) < 0)
			return false;
		if (b->lent.slot > 0)
			return true;
		raw_unlock(&b->raw, b->handle, BELAY_KIND_POSIX, range->start, range->end);
	}
	return false;
}

static bool take_into_use(struct borrower *b)
{
	const struct client_message *m = &b->lent;
	const struct slot_terms terms = {
		.epoch = m->epoch, .mode = m->mode, .range = m->range, .room = m->room, .token = m->token,
	};

	return slot_begin(&b->loan, raw_head(&b->raw, m->slot - 1), raw_log(&b->raw, m->slot - 1),
			  &terms) == 0;
}

/* Shared memory tells of nothing: it has to be looked at. */
static bool becomes(const _Atomic uint32_t *word, uint32_t value)
{
	struct timespec now, end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += PATIENCE_MS / 1000;
	do {
		if (atomic_load(word) == value)
			return true;
		sched_yield();
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < end.tv_sec);
	return false;
}

/* A client with a loan of @name, in which it holds the low range. */
static void borrow(struct borrower *b, const struct belayd *d, const char *name)
{
	memset(b, 0, sizeof(*b));
	raw_open(&b->raw, d->socket);
	if (raw_share(&b->raw) < 0)
		bail_out("belayd shares no memory");
	b->handle = open_name(&b->raw, name);
	if (!ask_for_loan(b, &low) || !take_into_use(b))
		bail_out("belayd lends nothing");
}

static void done(struct borrower *b)
{
	slot_ranges_done(&b->loan.held);
	raw_close(&b->raw);
}

static bool over(const struct borrower *b)
{
	return atomic_load(&raw_head(&b->raw, b->lent.slot - 1)->word) & SLOT_RECALL;
}

/* What a real client does when it finds that its loan is over. */
static void acknowledge(struct borrower *b)
{
	raw_return(&b->raw, b->lent.slot, b->lent.epoch);
}

/* Another client, that asks for what is lent. */
struct other {
	struct raw raw;
	uint32_t handle;
};

static void other_open(struct other *o, const struct belayd *d, const char *name)
{
	raw_open(&o->raw, d->socket);
	o->handle = open_name(&o->raw, name);
}

static int other_try(struct other *o, const struct belay_range *range)
{
	return raw_lock(&o->raw, o->handle, BELAY_KIND_POSIX, BELAY_MODE_EX, false, range->start, range->end);
}

static uint32_t other_wait(struct other *o, const struct belay_range *range)
{
	return raw_ask_lock(&o->raw, o->handle, BELAY_KIND_POSIX, BELAY_MODE_EX, true, range->start,
			    range->end);
}

/* ---- */

static void test_recall(const struct belayd *d)
{
	struct client_message held;
	struct borrower b;
	struct other o;
	uint32_t number;
	uint64_t token, last;

	borrow(&b, d, "recall");
	last = b.lent.token;
	ok_int(slot_lock(&b.loan, 0, BELAY_MODE_EX, &high, &token), 0, "in its loan a client locks by itself");
	ok(token > last, "the fencing token grows");
	last = token;
	ok_int(slot_unlock(&b.loan, 0, &low), 0, "and unlocks");
	other_open(&o, d, "recall");
	ok_int(other_try(&o, &low), 0, "what it has unlocked is another's at the first try");
	ok(over(&b), "for which the loan had to end");
	ok_int(raw_test(&o.raw, o.handle, BELAY_KIND_POSIX, BELAY_MODE_EX, high.start, high.end, &held), 0,
	       "a test");
	ok(held.held && held.range.start == high.start && held.owner.pid == (uint32_t)getpid(),
	   "finds what it had locked by itself");
	ok_int(slot_lock(&b.loan, 0, BELAY_MODE_EX, &low, &token), -ESTALE, "the client can do no more in it");
	number = other_wait(&o, &high);
	acknowledge(&b);
	raw_unlock(&b.raw, b.handle, BELAY_KIND_POSIX, high.start, high.end);
	ok_int(raw_result(&o.raw, number, &held), 0, "it unlocks by belayd, for the one who waits");
	ok(held.token > last, "whose token is larger than any given in the loan");
	raw_close(&o.raw);
	done(&b);
}

/* The client is not asked, so it does not matter what it does. */
static void test_slots(const struct belayd *d)
{
	struct client_message first;
	struct borrower b;
	struct other o;

	borrow(&b, d, "slots");
	first = b.lent;
	other_open(&o, d, "slots");
	ok_int(other_try(&o, &high), 0, "another client ends the loan");
	raw_close(&o.raw);
	raw_unlock(&b.raw, b.handle, BELAY_KIND_POSIX, low.start, low.end);
	ok(ask_for_loan(&b, &low), "there is a new one");
	ok(b.lent.slot != first.slot, "but in another slot, for the first is not returned");
	raw_return(&b.raw, first.slot, first.epoch);
	raw_unlock(&b.raw, b.handle, BELAY_KIND_POSIX, low.start, low.end);
	acknowledge(&b);
	ok(ask_for_loan(&b, &low), "and a third");
	ok(b.lent.slot == first.slot && b.lent.epoch != first.epoch, "in the returned slot");
	done(&b);
}

static void test_open_file(const struct belayd *d)
{
	struct borrower b;
	struct other o;
	uint32_t ofd;
	uint64_t token;

	borrow(&b, d, "ofd");
	ofd = open_name(&b.raw, "ofd");
	ok_int(slot_lock(&b.loan, ofd, BELAY_MODE_EX, &high, &token), 0, "an open file locks in the loan, too");
	ok_int(slot_lock(&b.loan, 0, BELAY_MODE_EX, &high, &token), -EAGAIN, "and the process has to respect it");
	other_open(&o, d, "ofd");
	ok_int(other_try(&o, &high), -EAGAIN, "so do others");
	acknowledge(&b);
	ok_int(raw_close_handle(&b.raw, ofd), 0, "when its handle is closed");
	ok_int(other_try(&o, &high), 0, "what it held is free");
	ok_int(other_try(&o, &low), -EAGAIN, "what the process holds is not");
	raw_close(&o.raw);
	done(&b);
}

/* ---- ends ---- */

/* A process that has a loan and holds the low range in it. It says so by a byte, and stays. */
static pid_t spawn_borrower(const struct belayd *d, const char *name, bool executes)
{
	struct borrower b;
	int fds[2];
	char byte = 0;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		bail_out("no pipe");
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		borrow(&b, d, name);
		if (write(fds[1], "", 1) != 1)
			_exit(1);
		if (executes)
			execlp("sleep", "sleep", "1000", NULL);
		for (;;)
			pause();
	}
	close(fds[1]);
	if (pid < 0 || read(fds[0], &byte, 1) != 1)
		bail_out("no process with a loan");
	close(fds[0]);
	return pid;
}

static void end_process(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void test_killed(const struct belayd *d)
{
	pid_t pid = spawn_borrower(d, "killed", false);
	struct other o;
	uint32_t number;

	other_open(&o, d, "killed");
	ok_int(other_try(&o, &low), -EAGAIN, "what a process holds in its loan is locked");
	number = other_wait(&o, &low);
	end_process(pid);
	ok_int(raw_result(&o.raw, number, NULL), 0, "when it is killed it is free");
	raw_close(&o.raw);

	pid = spawn_borrower(d, "killed first", false);
	end_process(pid);
	other_open(&o, d, "killed first");
	number = other_wait(&o, &low);
	ok_int(raw_result(&o.raw, number, NULL), 0, "and if it is killed before anybody asks");
	raw_close(&o.raw);
}

static void test_stopped(const struct belayd *d)
{
	pid_t pid = spawn_borrower(d, "stopped", false);
	struct other o;
	int status;

	kill(pid, SIGSTOP);
	ok(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status), "a process stands still");
	other_open(&o, d, "stopped");
	ok_int(other_try(&o, &high), 0, "what it does not hold is another's all the same");
	ok_int(other_try(&o, &low), -EAGAIN, "what it holds is not");
	raw_close(&o.raw);
	end_process(pid);
}

static void test_executed(const struct belayd *d)
{
	pid_t pid = spawn_borrower(d, "executed", true);
	struct other o;

	other_open(&o, d, "executed");
	ok_int(raw_result(&o.raw, other_wait(&o, &low), NULL), 0, "a process that becomes another program holds "
	       "nothing");
	ok_int(kill(pid, 0), 0, "although it lives");
	raw_close(&o.raw);
	end_process(pid);
}

/* Who only locks by itself has to hear of the end of a belayd that could tell nobody. */
static void test_belayd_killed(void)
{
	const struct slot_belayd *belayd[3];
	struct raw clients[3];
	struct belayd d;

	belayd_start(&d, NULL);
	for (unsigned i = 0; i < 3; i++) {
		raw_open(&clients[i], d.socket);
		if (raw_share(&clients[i]) < 0)
			bail_out("no memory");
		belayd[i] = (const struct slot_belayd *)(const void *)(clients[i].map + SLOT_BELAYD_AT);
		ok_uint(atomic_load(&belayd[i]->thread), (uint32_t)d.pid, "belayd lives, to client %u", i);
	}
	/* One in the middle of a list that the kernel has to follow. */
	close(clients[1].fd);
	ok(becomes(&belayd[1]->thread, SLOT_BELAYD_DIED), "to a client that goes it is dead");
	ok(!(atomic_load(&belayd[0]->thread) & SLOT_BELAYD_DIED), "to the others it is not");
	kill(d.pid, SIGKILL);
	ok_int(belayd_wait(&d), 256 + SIGKILL, "belayd is killed");
	ok(atomic_load(&belayd[0]->thread) & SLOT_BELAYD_DIED, "the first can see it");
	ok(atomic_load(&belayd[2]->thread) & SLOT_BELAYD_DIED, "and the last");
	for (unsigned i = 0; i < 3; i++)
		raw_close(&clients[i]);
	belayd_remove(&d);
}

/* ---- rubbish ---- */

static void spoil_word(struct borrower *b)
{
	atomic_store(&raw_head(&b->raw, b->lent.slot - 1)->word, UINT64_MAX);
}

static void spoil_log(struct borrower *b)
{
	memset(raw_log(&b->raw, b->lent.slot - 1), 0xff, sizeof(struct slot_entry));
}

static void spoil_token(struct borrower *b)
{
	atomic_store(&raw_head(&b->raw, b->lent.slot - 1)->token, UINT64_MAX);
}

/* The system has the last word about its own memory: nothing can be cut off. */
static void spoil_file(struct borrower *b)
{
	if (ftruncate(b->raw.memory, 0) == 0)
		bail_out("the memory can be cut off");
	(void)fallocate(b->raw.memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, SLOT_MEMORY_BYTES);
}

static void test_rubbish(const struct belayd *d)
{
	static void (*const spoil[])(struct borrower *b) = {
		spoil_word, spoil_log, spoil_token, spoil_file,
	};
	struct borrower good, bad;
	struct other o;
	char name[16];

	borrow(&good, d, "good");
	for (size_t i = 0; i < sizeof(spoil) / sizeof(spoil[0]); i++) {
		/* Nobody is lent what others have used just now. */
		snprintf(name, sizeof(name), "bad %zu", i);
		borrow(&bad, d, name);
		spoil[i](&bad);
		other_open(&o, d, name);
		ok_int(other_try(&o, &low), 0, "who spoils its memory (%zu) has no locks", i);
		ok(raw_refused(&bad.raw, -EPROTO, "in the memory that it shares"), "and is told why");
		raw_close(&o.raw);
		done(&bad);
	}
	ok(!over(&good), "another's loan goes on");
	other_open(&o, d, "good");
	ok_int(other_try(&o, &low), -EAGAIN, "and its locks hold");
	raw_close(&o.raw);
	done(&good);
}

/* ---- cells ---- */

struct waiter {
	struct slot_cell *cell;
	bool woken;
};

static void *sleep_on_cell(void *arg)
{
	struct waiter *w = arg;
	const struct timespec patience = { .tv_sec = PATIENCE_MS / 1000 };
	uint32_t pending = SLOT_CELL_PENDING;

	if (!atomic_compare_exchange_strong(&w->cell->state, &pending, SLOT_CELL_SLEEPING))
		return NULL;
	while (atomic_load(&w->cell->state) == SLOT_CELL_SLEEPING)
		if (syscall(SYS_futex, &w->cell->state, FUTEX_WAIT, SLOT_CELL_SLEEPING, &patience, NULL, 0) < 0 &&
		    errno == ETIMEDOUT)
			return NULL;
	w->woken = true;
	return NULL;
}

static void test_cell(const struct belayd *d)
{
	struct client_message m = {
		.type = CLIENT_LOCK, .number = 77, .mode = BELAY_MODE_EX, .wait = true, .cell = 3,
		.range = low,
	};
	struct client_message answer;
	struct waiter waiter;
	struct borrower b;
	struct other o;
	pthread_t thread;
	size_t at = 0;

	borrow(&b, d, "cell");
	other_open(&o, d, "cell");
	if (raw_share(&o.raw) < 0)
		bail_out("no memory");
	waiter = (struct waiter){ .cell = raw_cell(&o.raw, 3) };
	m.handle = o.handle;
	(void)raw_send(&o.raw, &m);
	if (pthread_create(&thread, NULL, sleep_on_cell, &waiter) != 0)
		bail_out("no thread");
	/* It sleeps, and belayd has taken the message, once a later one is answered. */
	if (!becomes(&waiter.cell->state, SLOT_CELL_SLEEPING))
		bail_out("the thread does not sleep");
	ok_int(raw_close_handle(&o.raw, open_name(&o.raw, "other")), 0, "a request waits in a cell");
	acknowledge(&b);
	raw_unlock(&b.raw, b.handle, BELAY_KIND_POSIX, low.start, low.end);
	pthread_join(thread, NULL);
	ok(waiter.woken, "who sleeps on it is woken");
	ok(client_get(waiter.cell->bytes, waiter.cell->size, &at, &answer) == 1 && answer.number == 77 &&
	   answer.result == 0, "by the answer");
	ok(raw_silent(&o.raw), "which comes on no other way");
	raw_close(&o.raw);
	done(&b);
}

/* ---- what people see ---- */

static void test_shown(const struct belayd *d)
{
	char *text;
	struct borrower b;

	borrow(&b, d, "shown");
	ok_int(raw_command(&b.raw, "locks", &text), 0, "locks");
	ok(strstr(text, "\"state\":\"lent\"") && strstr(text, "\"shown\""), "show what is lent");
	free(text);
	ok(!over(&b), "and do not take it back for that");
	ok_int(raw_command(&b.raw, "locks l0:0", &text), 0, "the cursor of loans");
	free(text);
	ok_int(raw_command(&b.raw, "locks l0:999", &text), -EINVAL, "is looked at");
	free(text);
	ok_int(raw_command(&b.raw, "status", &text), 0, "status");
	ok(strstr(text, "\"loans\":{\"now\":1,"), "counts loans");
	free(text);
	done(&b);
}

int main(void)
{
	struct belayd d;

	test_belayd_killed();
	belayd_start(&d, NULL);
	test_recall(&d);
	test_slots(&d);
	test_open_file(&d);
	test_killed(&d);
	test_stopped(&d);
	test_executed(&d);
	test_rubbish(&d);
	test_cell(&d);
	test_shown(&d);
	ok_int(belayd_stop(&d), 0, "belayd leaves with nothing held");
	belayd_remove(&d);
	return done_testing();
}
