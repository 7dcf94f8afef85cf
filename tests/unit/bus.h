/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A group for tests: several engines in one loop, one order, and a hand on
 * the wire. What is sent is delivered to all members from the loop.
 */
#ifndef BELAY_TESTS_UNIT_BUS_H
#define BELAY_TESTS_UNIT_BUS_H

#include "daemon/engine.h"
#include "daemon/group.h"

#define BUS_NODES 3

struct bus;
struct bus_message;

struct bus_node {
	struct group group;		/* first */
	struct bus *bus;
	uint32_t id;
	struct group_handlers handlers;
	struct engine *engine;
	bool joined;
	bool refuse;			/* send says -EAGAIN */
	bool stopped;			/* it stands still: hears nothing, says nothing */
	unsigned sends;			/* tries */
	/* What its engine said. */
	bool synced, ended, pressed;
	enum engine_end end;
	const char *reason;
	unsigned replies, granted, failed;
	unsigned stepped;
};

struct bus {
	qb_loop_t *loop;
	int fd;
	struct bus_node node[BUS_NODES];
	struct bus_message *first, *last;
	bool hold_snapshots;		/* deliver no chunk of a snapshot */
	bool (*done)(struct bus *bus);	/* asked after each event: stop the loop? */
	bool timed_out;
};

void bus_init(struct bus *bus);
void bus_free(struct bus *bus);

/* Settings that suit tests; incarnations differ. */
struct engine_settings bus_settings(unsigned index);
/* A node with its engine; it joins the group. Its place is @index, its id @index + 1. */
void bus_start(struct bus *bus, unsigned index, const struct engine_settings *settings);
/* The node's process is gone. */
void bus_stop(struct bus *bus, unsigned index);

/* Bytes as if @node had sent them. */
void bus_inject(struct bus *bus, uint32_t node, const void *buf, size_t size);

/* Run the loop until done() holds. False: it did not within PATIENCE seconds. */
bool bus_run(struct bus *bus, bool (*done)(struct bus *bus));

/* A lock that is wanted, by a client of the node. */
int bus_lock(struct bus_node *node, uint32_t client, uint32_t resource, uint64_t cookie, bool wait);
int bus_unlock(struct bus_node *node, uint32_t client, uint32_t resource);

#endif
