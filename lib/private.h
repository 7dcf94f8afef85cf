/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Inside libbelay. One connection is shared by any number of threads: the
 * first that waits reads the socket for all of them (the leader), hands each
 * answer to the thread that waits for it, and passes the reading on when it
 * has its own. A thread alone pays one send and one receive for a call.
 *
 * Unless said otherwise functions here are called with belay->mutex held.
 */
#ifndef BELAY_LIB_PRIVATE_H
#define BELAY_LIB_PRIVATE_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>
#include <time.h>

#include "include/belay.h"
#include "wire/client.h"

/* A request on its way: on the stack of the thread that waits for it, or, for
 * belay_lock_start(), on the heap until belay_next() hands it out. */
struct call {
	uint32_t number;
	enum client_type want;		/* type of its answer */
	bool async;
	bool done;
	int result;			/* once done */
	struct client_message answer;	/* RESULT, TESTED; its texts are void */
	char *text;			/* TEXT: what has come so far; malloc()ed */
	size_t text_size;
	int text_error;
	pthread_cond_t wake;		/* not for async */
	TAILQ_ENTRY(call) link;		/* in followers, or in events */
};
TAILQ_HEAD(call_list, call);

/* Index i of the table is the low part of the numbers of its calls; the high
 * part counts up, so that a late word for an old call meets no new one. */
struct slot {
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
	pthread_condattr_t monotonic;
	pthread_cond_t room;		/* a sender has finished */
	bool lost;			/* every call fails from here on */
	bool reading;			/* a leader reads; else nobody does */
	bool sending;			/* somebody sends box[!fill]; add to box[fill] */
	bool signalled;			/* event_fd is readable */
	bool corked;			/* what need not leave yet stays in the box */
	bool polled;			/* belay_next() has read since it last returned 0 */
	unsigned fill;

	struct slot *slot;
	uint32_t slot_count;
	uint32_t free_slot;		/* 0: none */
	struct call_list followers;
	struct call_list events;

	struct outbox box[2];
	uint8_t in[CLIENT_PACKET_MAX];	/* the leader's */
};

/* call.c */
/* Give @call a number; its answer will have type @want. 0, -EIO, -ENOMEM, -ENOLCK. */
int call_open(struct belay *belay, struct call *call, enum client_type want);
/* Forget the number. The answer has come, or never will. */
void call_close(struct belay *belay, struct call *call);
struct call *call_find(const struct belay *belay, uint32_t number);
/* Wait until done, or -ETIMEDOUT at @deadline (CLOCK_MONOTONIC; NULL: never). Drops the mutex meanwhile. */
int call_wait(struct belay *belay, struct call *call, const struct timespec *deadline);
/* Milliseconds to @deadline, rounded up; 0: it has come. */
int time_left(const struct timespec *deadline);
/* Take @m's number from @call, send it with descriptor @fd (-1: none) and wait. Mutex not held. */
int call_run(struct belay *belay, struct call *call, enum client_type want,
	     struct client_message *m, int fd);
/* Read what has come, without waiting and without a leader; call_signal() is due. */
void call_poll(struct belay *belay);
/* Make event_fd say whether there are events. */
void call_signal(struct belay *belay);
/* The connection is of no use any more: all calls end with -EIO. */
void call_lose(struct belay *belay);

/* send.c */
/* Send @m, perhaps in one packet with others'; may drop the mutex. 0 or -EIO. */
int send_message(struct belay *belay, const struct client_message *m);
/* The same, but while the connection is corked it stays in the box. */
int send_later(struct belay *belay, const struct client_message *m);
/* As send_message(), in a packet of its own, with a descriptor. Also -EBADF ... of sendmsg(2). */
int send_descriptor(struct belay *belay, const struct client_message *m, int fd);
/* Send what stays in the box. */
int send_box(struct belay *belay);

/* range.c */
/* (start, length) as (start, end). 0, or -EINVAL: no such bytes. */
int range_from(uint64_t start, uint64_t length, struct belay_range *ret_range);
/* Length as callers see it: 0 stands for "to the end". */
uint64_t range_length(const struct belay_range *range);

/* True in a fork()ed child, which must not touch the parent's connection. */
static inline bool forked(const struct belay *belay)
{
	return *belay->life == 0;
}

#endif
