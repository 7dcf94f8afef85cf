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
struct hold;
struct lvmlockd;
struct request_type;
struct server;

TAILQ_HEAD(hold_list, hold);

/*
 * Claim the pid file and open the socket, as configured. 0, or a negative errno, logged;
 * -EBUSY: an lvmlockd runs here already. *lvmlockd must outlive it.
 */
int server_open(struct lvmlockd *lvmlockd, struct server **ret_server);
/* Ends all connections (their closers are called). NULL is allowed. */
void server_close(struct server *server);

/* All connections, in order of their numbers: NULL first, and behind the last one. */
struct connection *server_next(const struct server *server, const struct connection *connection);

/*
 * Send @size bytes, of a whole message. @last: the request is answered, the next one
 * may be read. False: the connection is broken, and the message certainly not
 * received; it is closed from the loop.
 */
bool connection_send(struct connection *connection, const char *text, size_t size, bool last);

/*
 * Whoever has not answered yet is told when the connection ends, once, and must not touch
 * it any more. One for the request; it is forgotten with the last answer. NULL: none.
 */
void connection_on_close(struct connection *connection, void (*closer)(void *context), void *context);

struct lvmlockd *connection_lvmlockd(const struct connection *connection);
/* The request that is not answered yet. */
const struct message *connection_message(const struct connection *connection);
const struct request_type *connection_request(const struct connection *connection);
void connection_set_request(struct connection *connection, const struct request_type *type);
bool connection_waits(const struct connection *connection);

/* The process at the other end, as the kernel says; its command, as it says ("" before its first request). */
pid_t connection_pid(const struct connection *connection);
const char *connection_command(const struct connection *connection);
/* Never used again while belay-lvmlockd runs. */
uint32_t connection_number(const struct connection *connection);

/* The LV whose persistent lock it released last: its uuid, or "". */
const char *connection_unlocked(const struct connection *connection);
void connection_set_unlocked(struct connection *connection, const char *uuid);

/* Its transient locks of VGs and the global lock; request_lock.c's. */
struct hold_list *connection_holds(struct connection *connection);

#endif
