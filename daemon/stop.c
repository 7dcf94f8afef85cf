/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/stop.h"

#include <errno.h>
#include <inttypes.h>
#include <qb/qblog.h>
#include <signal.h>
#include <string.h>

#include "daemon/clock.h"
#include "daemon/notify.h"

/* How often those who keep belayd waiting are named, and how many of them. */
#define REPORT_US 5000000u
#define REPORT_MAX 10u

static void wait_on(struct stop *stop);

static void log_holders(const struct stop *stop)
{
	const struct belay_core *core = engine_core(stop->engine);
	uint32_t self = engine_group_info(stop->engine)->self, named = 0;
	struct belay_cursor cursor = { 0 };
	struct belay_lock_info info;
	uint32_t last_client = 0;

	while (named < REPORT_MAX && belay_core_locks_next(core, &cursor, &info) == 1) {
		/* For what the node has itself it need not wait. */
		if (info.waiting || info.owner.node != self || info.owner.client == last_client ||
		    info.owner.client == BELAY_CLIENT_NODE)
			continue;
		last_client = info.owner.client;
		named++;
		qb_log(LOG_NOTICE, "waiting to leave: process %" PRIu32 " holds a lock",
		       info.owner.pid);
	}
}

/* What belongs to the node and not to a process stays. */
static void log_volumes(const struct stop *stop)
{
	const struct belay_core *core = engine_core(stop->engine);
	uint32_t self = engine_group_info(stop->engine)->self, count = 0;
	struct belay_cursor cursor = { 0 };
	struct belay_lock_info info;

	while (belay_core_locks_next(core, &cursor, &info) == 1)
		count += !info.waiting && info.owner.node == self &&
			 info.owner.client == BELAY_CLIENT_NODE;
	if (count > 0)
		qb_log(LOG_NOTICE, "this node has %" PRIu32 " locks of volumes: the other nodes keep "
		       "them for it until belayd is back here, or the node is fenced", count);
}

static void on_timer(void *data)
{
	struct stop *stop = data;
	uint64_t waited_us = clock_now_us() - stop->since_us;

	stop->armed = false;
	if (waited_us >= (uint64_t)stop->config->stop_timeout_s * 1000000) {
		log_holders(stop);
		qb_log(LOG_ERR, "leaving although locks are held, for stop_timeout_s has passed: the "
		       "other nodes keep these locks until this node is fenced, or until belay "
		       "fence-ack %" PRIu32, engine_group_info(stop->engine)->self);
		stop->on_unclean(stop->context);
		return;
	}
	log_holders(stop);
	wait_on(stop);
}

static void wait_on(struct stop *stop)
{
	uint64_t left_us = stop->since_us + (uint64_t)stop->config->stop_timeout_s * 1000000;
	uint64_t now_us = clock_now_us();

	left_us = left_us > now_us ? left_us - now_us : 0;
	if (left_us > REPORT_US)
		left_us = REPORT_US;
	stop->armed = qb_loop_timer_add(stop->loop, QB_LOOP_HIGH, left_us * 1000 + 1, stop,
					on_timer, &stop->timer) == 0;
}

static int32_t on_signal(int32_t number, void *data)
{
	struct stop *stop = data;
	struct belay_event ev = { .type = BELAY_EVENT_LEAVE };

	if (stop->stopping)
		return 0;
	stop->stopping = true;
	stop->since_us = clock_now_us();
	qb_log(LOG_NOTICE, "stopping (%s): leaving as soon as nothing is held here",
	       strsignal(number));
	log_volumes(stop);
	notify("STOPPING=1\nSTATUS=waiting for locks to be released");
	server_leave(stop->server);
	(void)engine_step(stop->engine, &ev);
	wait_on(stop);
	return 0;
}

int stop_init(struct stop *stop, qb_loop_t *loop, struct engine *engine, struct server *server,
	      const struct config *config, void (*on_unclean)(void *context), void *context)
{
	int r;

	*stop = (struct stop){
		.loop = loop, .engine = engine, .server = server, .config = config,
		.on_unclean = on_unclean, .context = context,
	};
	r = qb_loop_signal_add(loop, QB_LOOP_HIGH, SIGTERM, stop, on_signal, &stop->term);
	if (r == 0)
		r = qb_loop_signal_add(loop, QB_LOOP_HIGH, SIGINT, stop, on_signal, &stop->interrupt);
	if (r < 0)
		qb_log(LOG_ERR, "cannot catch signals: %s", strerror(-r));
	return r;
}

void stop_done(struct stop *stop)
{
	if (!stop->loop)
		return;
	if (stop->armed)
		(void)qb_loop_timer_del(stop->loop, stop->timer);
	if (stop->term)
		(void)qb_loop_signal_del(stop->loop, stop->term);
	if (stop->interrupt)
		(void)qb_loop_signal_del(stop->loop, stop->interrupt);
}
