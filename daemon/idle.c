/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/idle.h"

#include <qb/qbloop.h>

#include "daemon/server_private.h"

/* Who is idle loses its record after one to two of these. The core ends loans after 30 s. */
#define IDLE_CHECK_NS UINT64_C(15000000000)

/*
 * Who was told that its locks are lost may go on under them until it listens: of that the core
 * knows nothing any more.
 */
static bool droppable(const struct client *c)
{
	return c->recorded && c->quiet && !c->lost && c->requests.count == 0 && !loan_any(c);
}

/* Holders are not quiet: so they are looked at in every second check only. */
static void ask_core(struct server *s)
{
	struct belay_cursor cursor = { 0 };
	struct belay_lock_info info;
	uint32_t self = engine_group_info(s->engine)->self;

	while (belay_core_locks_next(engine_core(s->engine), &cursor, &info)) {
		struct client *c = info.owner.node == self ? server_find(s, info.owner.client) : NULL;

		if (c)
			c->quiet = false;
	}
}

void idle_check(struct server *s)
{
	struct client *c;
	bool any = false;

	TAILQ_FOREACH(c, &s->all, all_link)
		any |= droppable(c);
	if (any)
		ask_core(s);
	TAILQ_FOREACH(c, &s->all, all_link) {
		if (any && droppable(c)) {
			record_remove(s->records, &c->record);
			c->recorded = false;
		}
		c->quiet = true;
	}
}

static void on_timer(void *data)
{
	struct server *s = data;

	s->idle_armed = false;
	idle_check(s);
	(void)idle_start(s);
}

int idle_start(struct server *s)
{
	int r = qb_loop_timer_add(s->loop, QB_LOOP_LOW, IDLE_CHECK_NS, s, on_timer, &s->idle_timer);

	s->idle_armed = r == 0;
	return r;
}

void idle_stop(struct server *s)
{
	if (s->idle_armed)
		(void)qb_loop_timer_del(s->loop, s->idle_timer);
	s->idle_armed = false;
}
