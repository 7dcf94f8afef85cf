/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which clients a belayd that starts has to wait for: those that may hold something, whatever they do. */
#include <dirent.h>
#include <unistd.h>

#include "tests/unit/fake_engine.h"

#define LOAN 7

/* What the core says is held, or awaited: of one client; 0: nothing. */
static uint32_t *holder(void)
{
	static uint32_t client;

	return &client;
}

int __wrap_belay_core_locks_next(const struct belay_core *core, struct belay_cursor *cursor,
				 struct belay_lock_info *ret_info);

int __wrap_belay_core_locks_next(const struct belay_core *core, struct belay_cursor *cursor,
				 struct belay_lock_info *ret_info)
{
	(void)core;
	/* Another node's client of that number is none of ours. */
	if (cursor->at > 1 || *holder() == 0)
		return 0;
	*ret_info = (struct belay_lock_info){
		.owner = { .node = *holder() & 1u << 31 ? 2 : 1, .client = *holder() & ~(1u << 31) },
	};
	cursor->at++;
	return 1;
}

static unsigned records(const struct engine *e)
{
	DIR *dir = fdopendir(dup(e->records));
	unsigned count = 0;

	if (!dir)
		bail_out("no directory of records");
	rewinddir(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2;
}

/* The records of those who do nothing go at the second check. */
static unsigned records_later(struct engine *e)
{
	idle_check(e->server);
	idle_check(e->server);
	idle_check(e->server);
	return records(e);
}

static uint32_t open_name(struct engine *e, struct peer_end *p)
{
	const struct client_message m = {
		.type = CLIENT_OPEN_NAME, .number = ++p->number,
		.text = "default", .text_size = 7, .text2 = "x", .text2_size = 1,
	};
	struct client_message answer;

	peer_end_say(e, p, &m);
	if (!peer_end_hear(p, &answer) || answer.result != 0)
		bail_out("cannot open a name");
	return answer.handle;
}

static void ask(struct engine *e, struct peer_end *p, enum client_type type, uint32_t handle)
{
	const struct client_message m = {
		.type = type, .number = ++p->number, .handle = handle, .mode = BELAY_MODE_EX,
		.wait = type == CLIENT_LOCK, .lend = type == CLIENT_LOCK, .range = { 0, BELAY_OFFSET_MAX },
	};

	peer_end_say(e, p, &m);
}

/* ---- the core's part ---- */

static void reply(struct engine *e)
{
	const struct belay_action action = {
		.type = BELAY_ACTION_REPLY, .client = e->client, .cookie = e->cookie,
	};

	server_on_action(e->server, &action);
}

static void reply_lending(struct engine *e)
{
	const struct belay_action action = {
		.type = BELAY_ACTION_LEND, .client = e->client, .cookie = e->cookie, .key = e->key,
		.loan = LOAN, .range = { 0, BELAY_OFFSET_MAX }, .mode = BELAY_MODE_EX, .room = 16,
	};

	server_on_action(e->server, &action);
	reply(e);
}

/* A lock is acted upon: is there a record by now? */
static void look(struct engine *e, const struct belay_event *event)
{
	if (event->type == BELAY_EVENT_LOCK)
		*(unsigned *)(uintptr_t)e->watched = records(e);
}

/* ---- */

static void test_nothing(struct engine *e, struct peer_end *p, uint32_t handle)
{
	unsigned seen = 99;

	ok_uint(records(e), 1, "who has something open is recorded");
	idle_check(e->server);
	ok_uint(records(e), 1, "and stays so for a while");
	idle_check(e->server);
	ok_uint(records(e), 0, "but not for ever, for it holds nothing");
	ask(e, p, CLIENT_UNLOCK, handle);
	ask(e, p, CLIENT_TEST, handle);
	reply(e);
	ok_uint(records(e), 0, "nor does it take anything when it asks who holds");
	e->core = look;
	e->watched = &seen;
	ask(e, p, CLIENT_LOCK, handle);
	ok_uint(seen, 1, "before a lock is acted upon there is a record again");
	e->core = NULL;
	ok_uint(records_later(e), 1, "which stays while the lock is awaited");
	reply(e);
}

static void test_holder(struct engine *e, struct peer_end *p, uint32_t handle)
{
	*holder() = p->id;
	ok_uint(records_later(e), 1, "and while it is held");
	ok_uint(records_later(e), 1, "however long");
	*holder() |= 1u << 31;
	ok_uint(records_later(e), 0, "but not for one of the same number on another node");
	*holder() = 0;
	ask(e, p, CLIENT_LOCK, handle);
	reply(e);
	idle_check(e->server);
	ask(e, p, CLIENT_LOCK, handle);
	reply(e);
	idle_check(e->server);
	ok_uint(records(e), 1, "nor is it dropped between two locks");
}

static void test_loan(struct engine *e, struct peer_end *p, uint32_t handle)
{
	const struct client_message share = { .type = CLIENT_SHARE, .number = ++p->number };
	const struct belay_action recall = {
		.type = BELAY_ACTION_RECALL, .client = p->id, .loan = LOAN,
	};

	peer_end_say(e, p, &share);
	ask(e, p, CLIENT_LOCK, handle);
	reply_lending(e);
	ok_uint(records_later(e), 1, "who has a loan may hold anything");
	server_on_action(e->server, &recall);
	ok_uint(records_later(e), 1, "also until the core knows what it held");
	loan_feed(e->server);
	ok_uint(records_later(e), 0, "then that is all it holds, seen or not that the loan is over");
}

static void test_lost(struct engine *e, struct peer_end *p, uint32_t handle)
{
	const struct belay_action lost = { .type = BELAY_ACTION_LOST, .client = p->id };

	ask(e, p, CLIENT_LOCK, handle);
	reply(e);
	server_on_action(e->server, &lost);
	ok_uint(records_later(e), 1, "whose locks are lost may not have heard of it");
}

int main(void)
{
	struct peer_end p;
	struct engine e;
	uint32_t handle;

	fake_engine_init(&e);
	peer_end_open(&e, &p);
	ok_uint(records(&e), 0, "who has opened nothing has no record");
	handle = open_name(&e, &p);
	test_nothing(&e, &p, handle);
	test_holder(&e, &p, handle);
	test_loan(&e, &p, handle);
	test_lost(&e, &p, handle);
	client_drop(e.server, server_find(e.server, p.id));
	server_on_turn_end(e.server);
	ok_uint(records(&e), 0, "whose end has come is not recorded any more");
	peer_end_close(&p);
	fake_engine_done(&e);
	return done_testing();
}
