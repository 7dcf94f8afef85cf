/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lvm's socket. A connection has one request at a time: until that is answered,
 * nothing more is read from it. Each request is handed to its handler (request.h),
 * which answers at once or later, in one message or in several.
 */
#ifndef BELAY_LVMLOCKD_SERVER_H
#define BELAY_LVMLOCKD_SERVER_H

#include <sys/queue.h>
#include <sys/types.h>

#include "lvmlockd/message.h"

struct connection;
struct lvmlockd;
struct server;

/*
 * Claim the pid file and open the socket, as configured. 0, or a negative errno, logged;
 * -EBUSY: an lvmlockd runs here already. *lvmlockd must outlive it.
 */
int server_open(struct lvmlockd *lvmlockd, struct server **ret_server);
/* Ends all connections (their closers are called). NULL is allowed. */
void server_close(struct server *server);

/*
 * Send a message, ended by message_end(). @last: the request is answered, the next one
 * may be read. False: the connection is broken, and the message certainly not
 * received; the closer follows from the loop.
 */
bool connection_send(struct connection *connection, const struct message_out *out, bool last);

/*
 * Whoever has not answered yet is told when the connection ends, once, and must not touch
 * it any more. One for the request; it is forgotten with the last answer. NULL: none.
 */
void connection_on_close(struct connection *connection, void (*closer)(void *context), void *context);

/* The process at the other end, as the kernel says. */
pid_t connection_pid(const struct connection *connection);

#endif
