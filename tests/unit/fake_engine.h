/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The server without a core: an engine that notes the events it is given, one
 * line each, and answers as the test says. A client is a socket pair whose
 * one end the server has adopted, the memory that it shares mapped.
 */
#ifndef BELAY_TESTS_FAKE_ENGINE_H
#define BELAY_TESTS_FAKE_ENGINE_H

#include "daemon/server_private.h"
#include "slot/commit.h"
#include "tests/tap.h"

struct engine {
	struct server *server;
	struct group_info info;
	qb_loop_t *loop;
	char dir[64];
	int records;
	struct config config;
	char events[16384];		/* lines */
	/* What the core does in a step; NULL: nothing. Emits by server_on_action(). */
	void (*core)(struct engine *e, const struct belay_event *event);
	/* Of the last LOCK. */
	uint64_t cookie;
	uint32_t client;
	struct belay_key key;
	bool lend;
	bool turn_due;
	void *memory;
	struct belay_core *still;
	bool has_no_room;		/* for what a loan held */
	const void *watched;		/* the test's own, for core() */
};

struct peer_end {
	uint32_t id;			/* to belayd */
	int fd, memory;
	uint8_t *map;			/* all of the memory, NULL: not shared */
	uint32_t number;		/* of the last request */
};

void fake_engine_init(struct engine *e);
void fake_engine_done(struct engine *e);

/* The events since the last call, one line each; valid until then. */
const char *fake_engine_events(struct engine *e);

void peer_end_open(struct engine *e, struct peer_end *p);
void peer_end_close(struct peer_end *p);

/* Have the server act upon a message, and end its turn. */
void peer_end_say(struct engine *e, struct peer_end *p, const struct client_message *m);
/* The same for several in one packet. */
void peer_end_say_all(struct engine *e, struct peer_end *p, const struct client_message *m, unsigned count);
/* The next packet's first message: false: there is none, or the connection has ended. */
bool peer_end_hear(struct peer_end *p, struct client_message *ret_m);

/* What stands in a packet is valid until the next one. */
struct slot_head *peer_end_head(const struct peer_end *p, uint32_t slot);
struct slot_entry *peer_end_log(const struct peer_end *p, uint32_t slot);
struct slot_cell *peer_end_cell(const struct peer_end *p, uint32_t cell);

#endif
