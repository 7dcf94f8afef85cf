/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the server share: server.c (sockets, clients coming and
 * going), request.c (what clients ask for), admin.c (what administrators do).
 */
#ifndef BELAY_DAEMON_SERVER_PRIVATE_H
#define BELAY_DAEMON_SERVER_PRIVATE_H

#include <sys/queue.h>

#include "daemon/descriptor.h"
#include "daemon/engine.h"
#include "daemon/handle.h"
#include "daemon/idle.h"
#include "daemon/identity.h"
#include "daemon/limit.h"
#include "daemon/loan.h"
#include "daemon/names.h"
#include "daemon/node_lock.h"
#include "daemon/peer.h"
#include "daemon/record.h"
#include "daemon/replies.h"
#include "daemon/resource.h"
#include "daemon/server.h"
#include "daemon/status.h"

/* What an entry of the epoll set stands for. */
enum source_type {
	SOURCE_LISTENER,
	SOURCE_CLIENT,
	SOURCE_PROCESS,		/* the client's pidfd */
	SOURCE_PASS,		/* some requests wait for one more pass */
};

struct source {
	enum source_type type;
	struct client *client;
};

struct client {
	uint32_t id;
	int fd;
	struct peer peer;
	struct record record;	/* from its first handle on, but for times when it holds nothing */
	bool recorded;
	bool quiet;		/* it has asked for no lock since idle_check() came by */
	struct source socket_source, process_source;
	struct handles handles;
	struct resources resources;
	struct requests requests;
	struct client_loans loans;
	struct replies replies;
	bool greeted;		/* HELLO came */
	bool lost;		/* its locks were: it must connect anew */
	bool dead;		/* to be freed at the end of the turn */
	bool overrun;		/* its answers did not fit: to be closed */
	bool flush_due, closing_due, held_back;
	uint32_t events;	/* as epoll knows them */
	/* Does its next request follow an unlock at once? */
	uint64_t unlocked_us;
	uint8_t prompt;
	TAILQ_ENTRY(client) flush_link, closing_link, held_back_link, all_link;
};
TAILQ_HEAD(client_list, client);

/*
 * A request that would be refused if somebody were in the way. Packets of
 * different clients do not come in the order in which they were sent, and who asks
 * after another has unlocked must not meet that lock: it waits until all that was
 * sent before it has been read.
 */
struct later {
	uint32_t client;
	struct client_message m;
};

/* A fence-ack whose FENCED is on its way through the order. */
struct fence_wait {
	uint32_t client, number, node;
};
#define FENCE_WAITS_MAX 32u

struct server {
	qb_loop_t *loop;
	const struct config *config;
	bool standalone;
	struct engine *engine;
	int epoll_fd, listen_fd;
	int records;			/* directory, see record.h */
	int spare_fd;			/* given up to refuse a client when there is no other */
	struct source listener;

	/* Client id modulo size is its slot; a slot's next id is one size higher. */
	struct client **slot;
	uint32_t *next_id;
	uint32_t *free_slot;		/* ring, so that ids return late */
	uint32_t slot_count, free_first, free_count;
	struct client_list all, flush, closing, held_back, dead;
	struct later *later;
	uint32_t later_count, later_size;
	int pass_fd;			/* always readable; watched if they need a pass of their own */
	bool pass_wanted;
	struct source pass;
	bool hearing;			/* what is read now is what they wait for */

	bool leaving;
	bool ending, clean;		/* in server_free(), and with nothing held */
	struct identity_map identities;
	struct closer *closer;
	struct names names;
	struct loans loans;
	struct shares shares;
	struct node_unlocks node_unlocks;
	struct fence_wait fence[FENCE_WAITS_MAX];
	uint32_t fence_count;
	struct status_rates rates;
	uint64_t rotate_us;		/* when the older recalls are forgotten */
	uint32_t dumps;
	qb_loop_timer_handle idle_timer;
	bool idle_armed;
	struct server_stats stats;
	struct limit refuse_limit, broken_limit, slow_limit, record_limit;
	uint8_t packet[CLIENT_PACKET_MAX];
};

struct client *server_find(const struct server *s, uint32_t id);

/* Queue an answer; what cannot be queued dooms the client. */
void client_reply(struct server *s, struct client *c, const struct client_message *m);
/* The same for one that is awaited in a cell; 0: on the socket. */
void client_reply_in(struct server *s, struct client *c, uint32_t cell, const struct client_message *m);
/* The same, on the socket, and a descriptor goes with it, which must stay open. */
void client_reply_with(struct server *s, struct client *c, const struct client_message *m, int fd);

/* Tell the client why, log it (if @limit lets it), and close. The client is dead then. */
void client_fail(struct server *s, struct client *c, struct limit *limit, int error,
		 const char *text);

/* What it holds is void: it is told, and has nothing more granted. */
void client_lost(struct server *s, struct client *c);

/* Before its first handle and before each lock: note that it may hold locks. 0, or -ENOLCK, logged. */
int client_record(struct server *s, struct client *c);

/* The end of a client: everything it held is given back. It is dead then. */
void client_drop(struct server *s, struct client *c);

/* request.c: act upon a packet. fds[fd_count] came with it and stay the caller's. */
void request_packet(struct server *s, struct client *c, const void *buf, size_t size,
		    const int *fds, size_t fd_count);
/* Act upon the first @count of those that wait in s->later. */
void request_run_later(struct server *s, uint32_t count);
/* A handle whose requests were withdrawn may be closed now. */
void request_finish_closing(struct server *s, struct client *c);
/* Withdraw all requests of a client. */
void request_cancel_all(struct server *s, struct client *c);
/* Those for the node, of a client that is dead. */
void request_cancel_node(struct server *s, struct client *c);
/* REPLY */
void request_answered(struct server *s, const struct belay_action *action);
/* The owner with that handle (POSIX: 0) of a client. */
struct belay_owner request_owner(const struct client *c, uint32_t handle, enum belay_kind kind);
/* What the request is about that waits for an answer. */
struct resource *request_resource(const struct client *c, uint32_t number, const struct belay_key *key);
/* A handle is gone: so is its part in the client's resources. */
void request_forget_handle(struct client *c, struct handle *h);

/* admin.c: CLIENT_COMMAND; node_closed: its FENCED was delivered. */
void admin_command(struct server *s, struct client *c, const struct client_message *m);
void admin_node_closed(struct server *s, uint32_t node);

#endif
