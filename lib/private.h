/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Inside libbelay. There are three ways to an answer:
 *
 * - In a loan (lib/loan.h) no one is asked.
 * - A blocking lock or test is answered in a cell of the memory that belayd and
 *   the process share (lib/share.h), where its thread alone waits for it.
 * - Everything else is answered on the socket. The first thread that waits for
 *   such an answer reads for all of them (the leader), and passes the
 *   reading on when it has its own.
 *
 * A signal handler may lock and unlock. So the mutex is held only with all signals
 * blocked, and never while anything is waited for.
 *
 * Unless said otherwise functions here are called between enter() and leave().
 */
#ifndef BELAY_LIB_PRIVATE_H
#define BELAY_LIB_PRIVATE_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>
#include <time.h>

#include "include/belay.h"
#include "wire/client.h"

struct resource;
struct share;

enum call_state {
	CALL_WAITING,
	CALL_LEAD,	/* nobody reads: this one has to */
	CALL_DONE,
};

/* A request on its way: on the stack of the thread that waits for it, or, for
 * belay_lock_start(), on the heap until belay_next() hands it out. */
struct call {
	uint32_t number;
	enum client_type want;		/* type of its answer */
	uint32_t cell;			/* where it comes; 0: by the socket */
	struct resource *resource;	/* LOCK: what it may bring a loan of */
	_Atomic uint8_t *modes;		/* LOCK: the handle's, ... */
	enum belay_mode mode;		/* ... and what to add there once it is granted */
	bool async;
	_Atomic uint32_t state;		/* enum call_state, a futex */
	int result;			/* once done */
	struct client_message answer;	/* RESULT, TESTED; its texts are void */
	int fd;				/* RESULT: came with it; want_fd: is wanted */
	bool want_fd;
	char *text;			/* TEXT: what has come so far; malloc()ed */
	size_t text_size;
	int text_error;
	TAILQ_ENTRY(call) link;		/* in followers, or in events */
};
TAILQ_HEAD(call_list, call);

/* Index i of the table is the low part of the numbers of its calls; the high
 * part counts up, so that a late word for an old call meets no new one. */
struct pending {
	struct call *call;
	uint32_t number;
	uint32_t next_free;
};

struct outbox {
	size_t size;
	uint8_t bytes[CLIENT_PACKET_MAX];
};

struct belay {
	/* 1 in the process that connected; the kernel wipes it in a fork()ed child. */
	const volatile char *life;
	int socket;
	int event_fd;			/* readable: events are left for belay_next() */
	int epoll_fd;			/* readable: socket or event_fd is */
	uint32_t node;

	pthread_mutex_t mutex;
	sigset_t mask;			/* of the thread that has the mutex, before it blocked all */
	bool lost;			/* every call fails from here on */
	bool reading;			/* a leader reads; else nobody does */
	pthread_t reader;		/* the leader */
	bool sending;			/* somebody waits until belayd takes more */
	pthread_t sender;		/* that is who */
	bool signalled;			/* event_fd is readable */
	bool corked;			/* what need not leave yet stays in the box */
	bool polled;			/* belay_next() has read since it last returned 0 */
	bool share_asked;

	struct pending *pending;
	uint32_t pending_count;
	uint32_t free_pending;		/* 0: none */
	struct call_list followers;
	struct call_list events;
	LIST_HEAD(, resource) resources;
	struct share *share;		/* NULL: belayd and we share no memory */

	struct outbox box;
	uint8_t in[CLIENT_PACKET_MAX];	/* the leader's */
};

/* Take the mutex, with all signals blocked. */
static inline void enter(struct belay *belay)
{
	sigset_t all, before;

	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_mutex_lock(&belay->mutex);
	belay->mask = before;
}

static inline void leave(struct belay *belay)
{
	sigset_t before = belay->mask;

	pthread_mutex_unlock(&belay->mutex);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* call.c */
/* Make the table of numbers. -ENOMEM. */
int calls_init(struct belay *belay);
/* Give @call a number; its answer will have type @want. 0, -EIO, -ENOMEM, -ENOLCK. */
int call_open(struct belay *belay, struct call *call, enum client_type want);
/* Forget the number. The answer has come, or never will. */
void call_close(struct belay *belay, struct call *call);
struct call *call_find(const struct belay *belay, uint32_t number);
/* The call has ended. */
void call_finish(struct belay *belay, struct call *call, int result);
/* This is a signal handler, come in the middle of this thread's own reading: who waited would wait for himself. */
bool call_nested(const struct belay *belay);
/* Wait until done, or -ETIMEDOUT at @deadline (CLOCK_MONOTONIC; NULL: never). Leaves meanwhile. */
int call_wait(struct belay *belay, struct call *call, const struct timespec *deadline);
/* The same for what belayd answers at once, if it runs: at @deadline the connection is lost. */
int call_await(struct belay *belay, struct call *call, const struct timespec *deadline);
/* Take @m's number from @call, send it with descriptor @fd (-1: none) and wait. Not entered. */
int call_run(struct belay *belay, struct call *call, enum client_type want,
	     struct client_message *m, int fd);
/* What belayd says about @call: 0, or -EBADMSG: it must not. */
int call_answer(struct belay *belay, struct call *call, const struct client_message *m);
/* Read what has come, without waiting and without a leader; call_signal() is due. */
void call_poll(struct belay *belay);
/* Make event_fd say whether there are events. */
void call_signal(struct belay *belay);
/* The connection is of no use any more: all calls end with -EIO. */
void call_lose(struct belay *belay);

/* wait.c */
/* A belayd that runs accepts, greets, and opens at once; one that is stopped never does. */
#define ANSWER_S 5
/* So long from now on. */
struct timespec answer_deadline(void);
/* Milliseconds to @deadline, rounded up; 0: it has come. */
int time_left(const struct timespec *deadline);
/* Sleep while *@word is @value, until woken, for at most @wait_ms (-1: no limit). May return early. */
void futex_sleep(_Atomic uint32_t *word, uint32_t value, int wait_ms, bool shared);
void futex_wake(_Atomic uint32_t *word, bool shared);
/* What one does while one waits for another processor. */
static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#else
	atomic_signal_fence(memory_order_seq_cst);
#endif
}

/* send.c */
/* Append to the box. May leave and enter again, if it is full. 0 or -EIO. */
int send_put(struct belay *belay, const struct client_message *m);
/* Send @m, perhaps in one packet with others'; may leave and enter. 0 or -EIO. */
int send_message(struct belay *belay, const struct client_message *m);
/* The same, but while the connection is corked it stays in the box. */
int send_later(struct belay *belay, const struct client_message *m);
/* As send_message(), in a packet of its own, with a descriptor. Also -EBADF ... of sendmsg(2). */
int send_descriptor(struct belay *belay, const struct client_message *m, int fd);
/* Send what stays in the box. */
int send_box(struct belay *belay);

/* range.c */
/* (start, length) as (start, end). 0, or -EINVAL: no such bytes. Need not be entered. */
static inline int range_from(uint64_t start, uint64_t length, struct belay_range *ret_range)
{
	if (start > BELAY_OFFSET_MAX)
		return -EINVAL;
	if (length > 0 && length - 1 > BELAY_OFFSET_MAX - start)
		return -EINVAL;
	ret_range->start = start;
	ret_range->end = length == 0 ? BELAY_OFFSET_MAX : start + (length - 1);
	return 0;
}

/* Length as callers see it: 0 stands for "to the end". */
uint64_t range_length(const struct belay_range *range);

/* True in a fork()ed child, which must not touch the parent's connection. */
static inline bool forked(const struct belay *belay)
{
	return *belay->life == 0;
}

#endif
