/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A belayd of one client, to be tested against: a thread that grants, lends and takes back
 * as the test wants it, and checks that the client keeps the rules. It knows one
 * resource for ranges, number 1, and one for flock, number 2.
 */
#ifndef BELAY_TESTS_FAKE_BELAYD_H
#define BELAY_TESTS_FAKE_BELAYD_H

#include <pthread.h>

#include "slot/recall.h"
#include "tests/ipc/peer.h"

#define FAKE_RESOURCES 3u
#define FAKE_WAITING_MAX 128u
/* Owner of what the test itself locks. */
#define FAKE_FOREIGN UINT32_MAX

struct fake_loan {
	bool lent;			/* not yet read back */
	bool busy;			/* not yet returned */
	uint32_t resource;
	uint32_t held;			/* entries of the log when it was lent */
	struct slot_terms terms;
};

struct fake {
	struct peer peer;
	pthread_t thread;
	pthread_mutex_t mutex;		/* of all that follows */
	pthread_cond_t changed;

	/* What the test wants. */
	bool lend;
	bool no_memory;			/* SHARE is refused */
	uint32_t room;
	enum belay_mode mode;
	struct belay_range range;	/* of loans */
	uint32_t miscount;		/* added to RESULT's messages */

	int fd;
	uint8_t *map;			/* all of the memory */
	struct fake_loan loan[SLOT_COUNT];
	struct slot_ranges held[FAKE_RESOURCES];	/* what is not in loans */
	struct slot_ranges taken;
	uint32_t count[FAKE_RESOURCES];	/* messages about it */
	uint32_t handles, resource_of[256];
	uint64_t token;
	struct client_message waiting[FAKE_WAITING_MAX];
	unsigned waiting_count;

	/* What it has seen. */
	unsigned messages[CLIENT_TYPE_COUNT];
	unsigned lent, cells, no_cells;
	const char *broken;		/* a rule that the client broke */
};

/* It can be connected to ... */
void fake_prepare(struct fake *f);
/* ... and answers. */
void fake_run(struct fake *f);
/* Both, and connect to it. */
void fake_start(struct fake *f, struct belay **ret_belay);
/* After the client has gone. */
void fake_stop(struct fake *f);

/* For the test, without the mutex. */
/* Recall every loan, as for another client; its owner will notice. */
void fake_recall(struct fake *f);
/* Lock or unlock, as if another client did. */
void fake_foreign(struct fake *f, enum slot_action action, uint64_t start, uint64_t end);
/* Wait until so many messages of the type have come, or so many requests wait. */
void fake_await(struct fake *f, enum client_type type, unsigned count);
void fake_await_waiting(struct fake *f, unsigned count);
/* So many locks does the client hold, in loans or not; recalls all. */
uint32_t fake_count(struct fake *f, uint32_t resource);
struct slot_head *fake_head(struct fake *f, uint32_t slot);

#endif
