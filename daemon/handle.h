/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What one client has open and what it waits for: its handles by number, and
 * its requests not answered yet by the number the client gave them. Both
 * are small until they are needed, and bounded.
 */
#ifndef BELAY_DAEMON_HANDLE_H
#define BELAY_DAEMON_HANDLE_H

#include "core/types.h"

struct resource;

struct handle {
	struct belay_key key;
	/* Of byte ranges and of flock: from the first use on, by OPEN's kind or by a request's. */
	struct resource *resource[2];
	bool open;
	bool closing;			/* CLOSE came; its requests are being withdrawn */
	bool may_read, may_write, may_flock;	/* see struct identity */
	uint8_t kinds;			/* bit per kind whose owner may hold locks */
	uint32_t requests;		/* not answered yet */
	uint32_t close_number;		/* of the CLOSE to answer */
	uint32_t close_resource;	/* whose number that CLOSE gave up; 0: none */
	uint32_t next_free;
};

struct handles {
	struct handle *handle;		/* handle number n is handle[n - 1] */
	uint32_t size, used, free, max;
	uint32_t open;
};

void handles_init(struct handles *h, uint32_t max);
void handles_done(struct handles *h);

/* A new handle of @key and its number. -EMFILE: max are open; -ENOMEM. */
int handles_add(struct handles *h, const struct belay_key *key, uint32_t *ret_number);
void handles_remove(struct handles *h, uint32_t number);
/* NULL: not open. Valid until the next handles_add(). */
struct handle *handles_find(const struct handles *h, uint32_t number);

struct request {
	uint32_t number;		/* 0: no request is here */
	uint32_t handle;
	uint32_t cell;			/* where the answer goes; 0: the socket */
	bool test;
	bool lend;			/* a slot is kept for a loan that it may bring */
	bool node;			/* for the node, not for the client */
	bool cancelled;			/* the core was told to withdraw it */
};

struct requests {
	struct request *slot;		/* hash table, open addressing */
	uint32_t size, count, max;
};

void requests_init(struct requests *r, uint32_t max);
void requests_done(struct requests *r);

/* -EEXIST: the number is in use; -ENOLCK: max are waiting; -ENOMEM. The number must not be 0. */
int requests_add(struct requests *r, const struct request *request);
/* NULL: no such request. Valid until the next change. */
struct request *requests_find(const struct requests *r, uint32_t number);
/* Take it out; -ENOENT. */
int requests_take(struct requests *r, uint32_t number, struct request *ret_request);

#endif
