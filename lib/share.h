/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The memory that belayd shares with this process: cells for answers, slots
 * for loans. Functions are called between enter() and leave(), unless said otherwise.
 */
#ifndef BELAY_LIB_SHARE_H
#define BELAY_LIB_SHARE_H

#include "lib/loan.h"

struct share {
	int fd;
	dev_t dev;			/* of fd: what it is must not have been closed and */
	ino_t ino;			/* opened as something else by somebody tidy */
	uint8_t *map;			/* heads and cells */
	uint8_t *log[SLOT_COUNT];	/* mapped as they are needed */
	uint64_t cells;			/* bit per cell: in use */
	uint32_t loans;			/* in use */
	uint32_t sweep_at;		/* so many, and we look which are over */
	bool spin;			/* there is more than one processor */
	_Atomic uint32_t spin_ns;	/* that long before one sleeps */
	struct loan loan[SLOT_COUNT];	/* number n at n - 1 */
};

/* Ask belayd for it. Leaves meanwhile. Whatever goes wrong, there is none then. */
int share_open(struct belay *belay, const struct timespec *deadline);
/* Nobody uses it. Not entered; also in a fork()ed child, where only the descriptor is to be closed. */
void share_close(struct belay *belay, bool child);

/* A cell for @call, of one who waits; none is left: it will be answered on the socket. */
void share_cell_open(struct belay *belay, struct call *call);
void share_cell_close(struct belay *belay, struct call *call);
/* Wait for the answer there, as call_wait(). Leaves meanwhile. */
int share_cell_wait(struct belay *belay, struct call *call, const struct timespec *deadline);
void share_wake(struct belay *belay, uint32_t cell);

/*
 * A RESULT brings a loan: take it into use, or give it back if it was
 * overtaken. 0, or -EBADMSG: belayd says what it must not.
 */
int share_adopt(struct belay *belay, struct resource *resource, const struct client_message *m);
/* @loan, which has ended, is out of use: tell belayd. 0 or -EIO. */
int share_return(struct belay *belay, struct loan *loan);
/* The connection is lost: so are the loans. */
void share_lose(struct belay *belay);

#endif
