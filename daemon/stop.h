/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The clean way out: on SIGTERM or SIGINT belayd takes no new requests and
 * leaves as soon as nothing is held. Who still holds what is logged while it
 * waits; after stop_timeout_s it gives up waiting.
 */
#ifndef BELAY_DAEMON_STOP_H
#define BELAY_DAEMON_STOP_H

#include <qb/qbloop.h>

#include "daemon/config.h"
#include "daemon/engine.h"
#include "daemon/server.h"

struct stop {
	qb_loop_t *loop;
	struct engine *engine;
	struct server *server;
	const struct config *config;
	void (*on_unclean)(void *context);
	void *context;
	qb_loop_signal_handle term, interrupt;
	qb_loop_timer_handle timer;
	bool stopping, armed;
	uint64_t since_us;
};

/* All must outlive it. 0, or a negative errno, logged. */
int stop_init(struct stop *stop, qb_loop_t *loop, struct engine *engine, struct server *server,
	      const struct config *config, void (*on_unclean)(void *context), void *context);
/* A struct of zeros is allowed. */
void stop_done(struct stop *stop);

#endif
