/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The resources that one client has open. A resource has a number, the same
 * for all of the client's handles of it, and counts the client's messages
 * about it: by that the client tells whether a loan is still good when
 * it hears of it. When no handle of it is open any more its number is
 * given up, and never given again.
 */
#ifndef BELAY_DAEMON_RESOURCE_H
#define BELAY_DAEMON_RESOURCE_H

#include <stddef.h>
#include <sys/queue.h>

#include "core/types.h"

struct loan;
TAILQ_HEAD(loan_list, loan);

struct resource {
	struct resource *next;		/* in its bucket */
	struct belay_key key;		/* for flock another one than for ranges */
	uint32_t number;
	uint32_t messages;		/* LOCK TEST UNLOCK CLOSE, taken from the client */
	uint32_t handles;		/* open, those being closed not counted */
	uint32_t users;			/* open, those being closed counted */
	bool may_read, may_write;	/* through one handle or another */
	struct loan_list loans;		/* not over yet */
};

struct resources {
	struct resource **bucket;
	size_t bucket_count, count;
	uint32_t number;		/* the last one given */
};

/* Zeroed, there are none. All users must have put theirs. */
void resources_done(struct resources *r);

/* For one more handle: the resource of @key, a new one if there is none. -ENOMEM. */
int resources_get(struct resources *r, const struct belay_key *key, struct resource **ret_resource);

/* One handle is being closed. True: it was the last, so the number is given up. */
bool resources_close(struct resources *r, struct resource *resource);

/* It is closed, after resources_close(). @resource must not be used any more. */
void resources_put(struct resource *resource);

#endif
