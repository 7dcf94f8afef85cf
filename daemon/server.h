/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The socket on which belayd serves its clients, and the clients themselves.
 * wire/client.h has what is said there. Nothing a client does can harm more
 * than itself: what it sends is checked, what it holds is bounded, and its
 * end, however it comes, gives back all it had.
 */
#ifndef BELAY_DAEMON_SERVER_H
#define BELAY_DAEMON_SERVER_H

#include <qb/qbloop.h>

#include "core/core.h"
#include "daemon/config.h"

struct engine;
struct server;

/* A client's socket and its pidfd. */
#define SERVER_CLIENT_DESCRIPTORS 2u
/* As many as the kernel lets one message carry (SCM_MAX_FD). */
#define SERVER_PACKET_DESCRIPTORS 253u

struct server_stats {
	uint32_t clients, handles, requests;	/* now */
	uint64_t accepted, refused;		/* connections */
	uint64_t broken;			/* closed for what they sent */
	uint64_t slow;				/* closed for what they did not read */
	uint64_t gone;				/* went by themselves */
	uint64_t packets, messages;		/* received */
};

/*
 * config must outlive the server, and so must the directory of records, from
 * record_open(). -ENOMEM and what epoll says.
 */
int server_new(qb_loop_t *loop, const struct config *config, bool standalone, int records,
	       struct server **ret_server);

/*
 * Serve, from the loop on, who comes to the socket, which is from listen_open()
 * and the server's in any case. The engine must have been started. 0, or a
 * negative errno, logged.
 */
int server_listen(struct server *s, struct engine *engine, int listen_fd);

/* Serve a connection that was accepted before, or refuse it: it is the server's. */
void server_adopt(struct server *s, int fd);

/*
 * belayd is about to leave: take no new clients, grant no new requests,
 * withdraw those that wait. What is held stays held.
 */
void server_leave(struct server *s);

/*
 * End all connections, telling why; the socket's file goes, too. NULL is allowed.
 * Unless it is a @clean end, with nothing held, the records of clients stay: to
 * be told is not to have stopped.
 */
void server_free(struct server *s, int error, const char *reason, bool clean);

/* For the engine's handlers. */
void server_on_action(struct server *s, const struct belay_action *action);
void server_on_turn_end(struct server *s);
void server_on_pressure(struct server *s, bool pressed);

void server_stats(const struct server *s, struct server_stats *ret_stats);

#endif
