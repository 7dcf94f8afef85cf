/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Answers on their way to one client. They gather during a turn and leave in
 * one packet; what its socket does not take waits here, up to a bound.
 */
#ifndef BELAY_DAEMON_REPLIES_H
#define BELAY_DAEMON_REPLIES_H

#include "wire/client.h"

/* A client that leaves so much unread is beyond help. */
#define REPLIES_MAX (1024u * 1024)

struct replies {
	uint8_t *buf;
	size_t size, first, next;
	int fd;			/* goes with the packet of the message that ends at fd_at */
	size_t fd_at;		/* 0: none does */
};

/* -ENOMEM; -ENOBUFS: more than REPLIES_MAX would wait. */
int replies_put(struct replies *r, const struct client_message *m);

/* The same, and a descriptor goes with it, which must stay open; one at a time. */
int replies_put_descriptor(struct replies *r, const struct client_message *m, int fd);

/* Bytes waiting. */
size_t replies_pending(const struct replies *r);

/* Send. 0: all is sent; -EAGAIN: the socket is full; other errors: the client is gone. */
int replies_send(struct replies *r, int fd);

void replies_done(struct replies *r);

#endif
