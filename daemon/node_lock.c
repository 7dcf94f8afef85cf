/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/node_lock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/server_private.h"

void node_unlocks_done(struct node_unlocks *u)
{
	free(u->key);
	*u = (struct node_unlocks){ 0 };
}

static bool same(const struct belay_key *a, const struct belay_key *b)
{
	return a->lockspace == b->lockspace && memcmp(a->id, b->id, sizeof(a->id)) == 0;
}

void node_lock_wanted(struct node_unlocks *u, const struct belay_key *key)
{
	for (uint32_t i = u->count; i-- > 0; )
		if (same(&u->key[i], key))
			u->key[i] = u->key[--u->count];
}

static int note(struct node_unlocks *u, const struct belay_key *key)
{
	node_lock_wanted(u, key); /* once is enough */
	if (u->count == u->size) {
		uint32_t size = u->size > 0 ? 2 * u->size : 16;
		struct belay_key *keys = realloc(u->key, size * sizeof(*keys));

		if (!keys)
			return -ENOMEM;
		u->key = keys;
		u->size = size;
	}
	u->key[u->count++] = *key;
	return 0;
}

static bool frozen(const struct server *s)
{
	struct belay_stats stats;

	belay_core_stats(engine_core(s->engine), &stats);
	return stats.frozen;
}

int node_unlock(struct server *s, struct belay_event *event)
{
	int r = frozen(s) ? note(&s->node_unlocks, &event->lock.key) : 0;

	return r < 0 ? r : engine_step(s->engine, event);
}

static int unlock(struct server *s, const struct belay_key *key)
{
	struct belay_event ev = {
		.type = BELAY_EVENT_UNLOCK,
		.lock = {
			.key = *key,
			.range = { 0, BELAY_OFFSET_MAX },
			.owner = request_owner(NULL, 0, BELAY_KIND_NODE),
		},
	};

	return node_unlock(s, &ev);
}

void node_locks_freeze(struct server *s)
{
	s->node_unlocks.doubtful = true;
}

static bool locks_for_node(const struct client *c)
{
	for (uint32_t n = 1; n <= c->handles.used; n++) {
		const struct handle *h = handles_find(&c->handles, n);

		if (h && (h->kinds & 1u << BELAY_KIND_NODE))
			return true;
	}
	return false;
}

static void tell_lost(struct server *s)
{
	struct client *c;

	s->node_unlocks.doubtful = false;
	TAILQ_FOREACH(c, &s->all, all_link) {
		if (c->lost || !locks_for_node(c))
			continue;
		request_cancel_node(s, c);
		client_lost(s, c);
	}
}

void node_locks_settle(struct server *s)
{
	struct node_unlocks u;

	if (s->node_unlocks.doubtful)
		tell_lost(s);
	if (s->node_unlocks.count == 0 || frozen(s))
		return;
	u = s->node_unlocks;
	s->node_unlocks = (struct node_unlocks){ 0 };
	for (uint32_t i = 0; i < u.count; i++)
		(void)unlock(s, &u.key[i]);
	node_unlocks_done(&u);
}

static bool claimed(const struct client *c, const struct belay_key *key)
{
	for (uint32_t n = 1; n <= c->handles.used; n++) {
		const struct handle *h = handles_find(&c->handles, n);

		if (h && (h->kinds & 1u << BELAY_KIND_NODE) && same(&h->key, key))
			return true;
	}
	return false;
}

int node_locks_forget(struct server *s, const struct client *c)
{
	const struct belay_core *core = engine_core(s->engine);
	uint32_t self = engine_group_info(s->engine)->self;
	struct node_unlocks found = { 0 };
	struct belay_cursor cursor = { 0 };
	struct belay_lock_info info;
	int r = 0;

	while (r == 0 && belay_core_locks_next(core, &cursor, &info) == 1)
		if (!info.waiting && info.owner.node == self && info.owner.kind == BELAY_KIND_NODE &&
		    !claimed(c, &info.key))
			r = note(&found, &info.key);
	for (uint32_t i = 0; r == 0 && i < found.count; i++)
		r = unlock(s, &found.key[i]);
	if (r == 0)
		r = (int)found.count;
	node_unlocks_done(&found);
	return r;
}
