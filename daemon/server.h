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
#include "daemon/histogram.h"

struct engine;
struct server;

/* A client's socket, its pidfd, and the memory that it shares. */
#define SERVER_CLIENT_DESCRIPTORS 3u
/* As many as the kernel lets one message carry (SCM_MAX_FD). */
#define SERVER_PACKET_DESCRIPTORS 253u

struct server_stats {
	uint32_t clients, handles, requests;	/* now */
	uint64_t accepted, refused;		/* connections */
	uint64_t broken;			/* closed for what they sent */
	uint64_t slow;				/* closed for what they did not read */
	uint64_t gone;				/* went by themselves */
	uint64_t packets, messages;		/* received */
	uint32_t sharing;			/* clients that share memory, now */
	uint32_t loans;				/* now */
	uint64_t loans_lent, loans_returned;	/* returned: slots, when the client saw the end */
	uint64_t loans_recalled;		/* ended by belayd, for others */
	struct histogram recall_us;		/* from the wish to have a loan back until it was */
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
void server_on_stepped(struct server *s);
void server_on_turn_end(struct server *s);
void server_on_pressure(struct server *s, bool pressed);

/*
 * Walk over the loans of all clients. The cursor starts at 0 and may be kept
 * over steps (loans may then be missed or seen twice). Returns 1 or 0.
 */
struct server_cursor {
	uint32_t client, slot;
};
struct server_loan {
	struct belay_key key;
	struct belay_range range;
	enum belay_mode mode;
	uint32_t client;
	pid_t pid;
};
int server_loans_next(const struct server *s, struct server_cursor *cursor,
		      struct server_loan *ret_loan);

void server_stats(const struct server *s, struct server_stats *ret_stats);

#endif
