/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loans as the server has them, between a core and clients that are both played by
 * the test: what is written into the shared memory, what the core is told and
 * in which order, and who is closed for what.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/fake_engine.h"

#define LOAN 7
#define TOKEN 1000

static const struct belay_range all = { 0, BELAY_OFFSET_MAX };
static const struct belay_range low = { 0, 99 }, high = { 100, 199 };

/* ---- the core's part ---- */

static void reply(struct engine *e)
{
	const struct belay_action action = {
		.type = BELAY_ACTION_REPLY, .client = e->client, .cookie = e->cookie, .token = TOKEN,
	};

	server_on_action(e->server, &action);
}

static void lend(struct engine *e, uint32_t loan, const struct belay_range *range)
{
	const struct belay_action action = {
		.type = BELAY_ACTION_LEND, .client = e->client, .cookie = e->cookie, .key = e->key,
		.loan = loan, .range = *range, .mode = BELAY_MODE_EX, .token = TOKEN, .room = 16,
	};

	server_on_action(e->server, &action);
}

static void lend_held(struct engine *e, uint32_t loan, const struct belay_range *range, uint64_t key)
{
	const struct belay_action action = {
		.type = BELAY_ACTION_LEND_HELD, .client = e->client, .loan = loan, .range = *range,
		.mode = BELAY_MODE_EX, .holder = { .client = e->client, .key = key },
	};

	server_on_action(e->server, &action);
}

static void recall(struct engine *e, const struct peer_end *p, uint32_t loan)
{
	const struct belay_action action = {
		.type = BELAY_ACTION_RECALL, .client = p->id, .loan = loan,
	};

	server_on_action(e->server, &action);
}

static void grant(struct engine *e, const struct belay_event *event)
{
	if (event->type == BELAY_EVENT_LOCK)
		reply(e);
}

static void grant_and_lend(struct engine *e, const struct belay_event *event)
{
	if (event->type != BELAY_EVENT_LOCK)
		return;
	if (e->lend) {
		lend_held(e, LOAN, &event->lock.range, event->lock.owner.key);
		lend(e, LOAN, &all);
	}
	reply(e);
}

/* ---- the client's part ---- */

static uint32_t open_kind(struct engine *e, struct peer_end *p, const char *name, enum belay_kind kind,
			  struct client_message *ret_m)
{
	const struct client_message m = {
		.type = CLIENT_OPEN_NAME, .number = ++p->number, .kind = kind,
		.text = "default", .text_size = 7, .text2 = name, .text2_size = (uint16_t)strlen(name),
	};

	peer_end_say(e, p, &m);
	if (!peer_end_hear(p, ret_m) || ret_m->result != 0)
		bail_out("cannot open a name");
	return ret_m->handle;
}

static uint32_t open_name(struct engine *e, struct peer_end *p, const char *name)
{
	struct client_message m;

	return open_kind(e, p, name, BELAY_KIND_POSIX, &m);
}

static void share(struct engine *e, struct peer_end *p)
{
	const struct client_message m = { .type = CLIENT_SHARE, .number = ++p->number };
	struct client_message answer;

	peer_end_say(e, p, &m);
	if (!peer_end_hear(p, &answer) || answer.result != 0 || p->memory < 0)
		bail_out("belayd shares no memory");
	p->map = mmap(NULL, SLOT_MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
		      p->memory, 0);
	if (p->map == MAP_FAILED)
		bail_out("the memory cannot be mapped");
}

static struct client_message lock_message(struct peer_end *p, uint32_t handle,
					  const struct belay_range *range)
{
	return (struct client_message){
		.type = CLIENT_LOCK, .number = ++p->number, .handle = handle,
		.mode = BELAY_MODE_EX, .lend = true, .range = *range,
	};
}

/* Lock, and what came of it. */
static struct client_message lock(struct engine *e, struct peer_end *p, uint32_t handle,
				  const struct belay_range *range)
{
	const struct client_message m = lock_message(p, handle, range);
	struct client_message answer = { .result = -ECONNRESET };

	peer_end_say(e, p, &m);
	if (!peer_end_hear(p, &answer))
		diag("no answer came");
	return answer;
}

static void unlock(struct engine *e, struct peer_end *p, uint32_t handle, const struct belay_range *range)
{
	const struct client_message m = { .type = CLIENT_UNLOCK, .handle = handle, .range = *range };

	peer_end_say(e, p, &m);
}

static void give_back(struct engine *e, struct peer_end *p, uint32_t slot, uint32_t epoch)
{
	const struct client_message m = { .type = CLIENT_RETURN, .slot = slot, .epoch = epoch };

	peer_end_say(e, p, &m);
}

static bool begin(struct peer_end *p, const struct client_message *m, struct slot_loan *loan)
{
	const struct slot_terms terms = {
		.epoch = m->epoch, .mode = m->mode, .range = m->range, .room = m->room,
		.token = m->token,
	};

	memset(loan, 0, sizeof(*loan));
	return m->slot > 0 && slot_begin(loan, peer_end_head(p, m->slot - 1),
					 peer_end_log(p, m->slot - 1), &terms) == 0;
}

/* A client that shares memory and has one loan of "x", in which it holds 0-99. */
struct borrower {
	struct peer_end end;
	uint32_t handle;
	struct client_message answer;
	struct slot_loan loan;
};

static void borrow(struct engine *e, struct borrower *b)
{
	peer_end_open(e, &b->end);
	share(e, &b->end);
	b->handle = open_name(e, &b->end, "x");
	e->core = grant_and_lend;
	b->answer = lock(e, &b->end, b->handle, &low);
	if (!begin(&b->end, &b->answer, &b->loan))
		bail_out("the loan cannot be taken into use");
	(void)fake_engine_events(e);
}

static void done(struct borrower *b)
{
	slot_ranges_done(&b->loan.held);
	peer_end_close(&b->end);
}

/* Has the server closed it, and said why? */
static bool closed(struct engine *e, struct peer_end *p, const char *why)
{
	struct client_message m = { .type = CLIENT_HELLO };
	char text[256] = "";

	while (peer_end_hear(p, &m))
		if (m.type == CLIENT_ERROR)
			snprintf(text, sizeof(text), "%.*s", m.text_size, m.text);
	if (!server_find(e->server, p->id) && strstr(text, why))
		return true;
	diag("it was told: %s", text);
	return false;
}

static bool begins(const char *text, const char *start)
{
	if (strncmp(text, start, strlen(start)) == 0)
		return true;
	diag("it begins otherwise: %s", text);
	return false;
}

static uint64_t word(const struct peer_end *p, uint32_t slot)
{
	return atomic_load(&peer_end_head(p, slot)->word);
}

/* ---- the memory ---- */

static void test_share(struct engine *e)
{
	const struct client_message m = { .type = CLIENT_SHARE, .number = 99 };
	const struct slot_belayd *belayd;
	struct peer_end p;
	struct stat st;

	peer_end_open(e, &p);
	share(e, &p);
	ok(fstat(p.memory, &st) == 0 && (size_t)st.st_size == SLOT_MEMORY_BYTES, "the memory has its size");
	ok(ftruncate(p.memory, 4096) < 0 && errno == EPERM, "which cannot be less");
	ok(ftruncate(p.memory, 2 * (off_t)SLOT_MEMORY_BYTES) < 0 && errno == EPERM, "nor more");
	ok(fcntl(p.memory, F_ADD_SEALS, F_SEAL_WRITE) < 0, "and no more seals can be put on it");
	ok(word(&p, 0) & SLOT_RECALL, "no slot holds a loan");
	ok_uint(e->server->stats.sharing, 1, "one client shares memory");
	belayd = (const struct slot_belayd *)(const void *)(p.map + SLOT_BELAYD_AT);
	ok_uint(atomic_load(&belayd->thread), (uint32_t)gettid(), "belayd lives");
	peer_end_say(e, &p, &m);
	ok(closed(e, &p, "twice"), "who asks twice is closed");
	ok_uint(e->server->stats.sharing, 0, "and does not share any more");
	ok(atomic_load(&belayd->thread) & SLOT_BELAYD_DIED, "to it belayd is dead");
	peer_end_close(&p);
}

#define PER_PROCESS 64

static int ask_share(struct engine *e, struct peer_end *p)
{
	const struct client_message m = { .type = CLIENT_SHARE, .number = ++p->number };
	struct client_message answer = { .result = -ECONNRESET };

	peer_end_say(e, p, &m);
	(void)peer_end_hear(p, &answer);
	return answer.result;
}

static void leave(struct engine *e, struct peer_end *p)
{
	peer_end_close(p);
	client_drop(e->server, server_find(e->server, p->id));
	server_on_turn_end(e->server);
}

/* belayd's end can be told to so many only; and no process takes what there is for all. */
static void test_shares(struct engine *e)
{
	struct peer_end p[PER_PROCESS + 1];
	uint32_t shared = 0, handle;
	struct client_message m;

	for (unsigned i = 0; i <= PER_PROCESS; i++)
		peer_end_open(e, &p[i]);
	for (unsigned i = 0; i < PER_PROCESS; i++)
		shared += ask_share(e, &p[i]) == 0;
	ok_uint(shared, PER_PROCESS, "a process may have some connections that share memory");
	ok_int(ask_share(e, &p[PER_PROCESS]), -EUSERS, "and not one more");
	handle = open_name(e, &p[PER_PROCESS], "x");
	e->core = grant_and_lend;
	m = lock(e, &p[PER_PROCESS], handle, &low);
	ok(m.result == 0 && m.slot == 0, "which locks all the same, without a loan");
	ok_uint(e->server->stats.sharing, PER_PROCESS, "nor does it count");
	leave(e, &p[0]);
	ok_int(ask_share(e, &p[PER_PROCESS]), 0, "when another has gone, it may ask again");
	for (unsigned i = 1; i <= PER_PROCESS; i++)
		leave(e, &p[i]);
	ok_uint(e->server->shares.count, 0, "all have gone");

	peer_end_open(e, &p[0]);
	peer_end_open(e, &p[1]);
	e->server->shares.count = SHARES_MAX - 1;
	ok_int(ask_share(e, &p[0]), 0, "the last one of all");
	ok_int(ask_share(e, &p[1]), -EUSERS, "of all processes there are not more than the kernel tells");
	e->server->shares.count = 1;
	leave(e, &p[0]);
	leave(e, &p[1]);
	ok_uint(e->server->shares.count, 0, "and these have gone, too");
	(void)fake_engine_events(e);
}

static void test_no_loan(struct engine *e)
{
	struct client_message m;
	struct peer_end p;
	uint32_t handle;

	peer_end_open(e, &p);
	handle = open_name(e, &p, "x");
	e->core = grant_and_lend;
	m = lock(e, &p, handle, &low);
	ok(m.result == 0 && m.slot == 0 && !e->lend, "who shares no memory is not lent anything");
	share(e, &p);
	m = lock_message(&p, handle, &low);
	m.lend = false;
	peer_end_say(e, &p, &m);
	ok(peer_end_hear(&p, &m) && m.slot == 0 && !e->lend, "nor who did not ask for it");
	e->core = grant;
	m = lock(e, &p, handle, &low);
	ok(m.result == 0 && m.slot == 0 && e->lend, "and the core may choose not to lend");
	ok_uint(server_find(e->server, p.id)->loans.wanted, 0, "no slot is kept for what is answered");
	peer_end_close(&p);
	client_drop(e->server, server_find(e->server, p.id));
	server_on_turn_end(e->server);
}

/* ---- lending and taking back ---- */

static void test_lend(struct engine *e)
{
	struct borrower b;
	uint64_t token;

	borrow(e, &b);
	ok_uint(b.answer.slot, 1, "a loan comes with the answer, in the first slot");
	ok_uint(b.answer.epoch, 1, "it is the first one there");
	ok(b.answer.mode == BELAY_MODE_EX && b.answer.range.end == BELAY_OFFSET_MAX, "mode and range");
	ok_uint(b.answer.room, 16, "room");
	ok_uint(b.answer.messages, 1, "and how many messages had been taken");
	ok_uint(b.loan.held.count, 1, "what the client held stands in it");
	ok_uint(e->server->stats.loans, 1, "one loan is out");

	ok_int(slot_lock(&b.loan, 0, BELAY_MODE_SH, &high, &token), 0, "the client locks by itself");
	ok(token > TOKEN, "and counts fencing tokens");
	ok_str(fake_engine_events(e), "", "of which the core hears nothing");

	recall(e, &b.end, LOAN);
	ok(word(&b.end, 0) & SLOT_RECALL, "a recall ends the loan at once");
	ok_int(slot_unlock(&b.loan, 0, &low), -ESTALE, "the client can do nothing more in it");
	ok_str(fake_engine_events(e), "", "within the step the core is told nothing");
	loan_feed(e->server);
	ok_str(fake_engine_events(e), "loan held 7 [0-99] EX owner 0 posix\n"
	       "loan held 7 [100-199] SH owner 0 posix\n"
	       "loan back 7 used [100-199] SH token 1001", "then what was held");
	ok_uint(e->server->stats.loans, 0, "no loan is out");
	ok_uint(e->server->stats.loans_recalled, 1, "one was recalled");
	ok_uint(histogram_total(&e->server->stats.recall_us), 1, "and the time of it noted");
	recall(e, &b.end, LOAN);
	loan_feed(e->server);
	ok_str(fake_engine_events(e), "", "a loan is taken back once");
	done(&b);
	client_drop(e->server, server_find(e->server, b.end.id));
	server_on_turn_end(e->server);
}

/* The end of a test: the client goes, and what it had is void. */
static void go(struct engine *e, struct borrower *b)
{
	struct client *c = server_find(e->server, b->end.id);

	if (c)
		client_drop(e->server, c);
	server_on_turn_end(e->server);
	done(b);
	e->core = NULL;
	(void)fake_engine_events(e);
}

static void test_return(struct engine *e)
{
	struct client_message m;
	struct borrower b;
	uint32_t other;

	borrow(e, &b);
	other = open_name(e, &b.end, "y");
	recall(e, &b.end, LOAN);
	loan_feed(e->server);
	m = lock(e, &b.end, other, &low);
	ok_uint(m.slot, 2, "a slot whose end the client has not seen is not used again");
	give_back(e, &b.end, 1, 1);
	recall(e, &b.end, LOAN);
	loan_feed(e->server);
	(void)fake_engine_events(e);
	m = lock(e, &b.end, b.handle, &low);
	ok(m.slot == 1 && m.epoch == 2, "a returned one is, for a loan with another number");
	(void)fake_engine_events(e);
	give_back(e, &b.end, 1, 2);
	ok_str(fake_engine_events(e), "loan held 7 [0-99] EX owner 0 posix\nloan back 7 token 1000",
	       "to return a loan that is not over is to end it");
	ok_uint(server_find(e->server, b.end.id)->loans.count, 1, "one slot is not free");
	give_back(e, &b.end, 1, 2);
	ok(closed(e, &b.end, "returned a loan that it does not have"), "to return it again is an error");
	go(e, &b);

	borrow(e, &b);
	give_back(e, &b.end, 1, 2);
	ok(closed(e, &b.end, "returned a loan that it does not have"), "and so is the number of another loan");
	go(e, &b);
	borrow(e, &b);
	give_back(e, &b.end, SLOT_COUNT + 1, 1);
	ok(closed(e, &b.end, "returned a loan that it does not have"), "and a slot that there is none of");
	go(e, &b);
}

/* Loans of one client: as many as its slots. */
static void test_slots(struct engine *e)
{
	struct client_message m;
	struct borrower b;
	char name[2] = "a";

	borrow(e, &b);
	for (; name[0] < 'd'; name[0]++)
		m = lock(e, &b.end, open_name(e, &b.end, name), &low);
	ok_uint(m.slot, 4, "a client has as many loans as it may");
	m = lock(e, &b.end, open_name(e, &b.end, "z"), &low);
	ok(m.slot == 0 && !e->lend, "and no more");
	e->core = NULL;
	give_back(e, &b.end, 2, 1);
	m = lock_message(&b.end, b.handle, &low);
	peer_end_say(e, &b.end, &m);
	ok(e->lend, "the request that waits keeps the free slot");
	m = lock_message(&b.end, b.handle, &low);
	peer_end_say(e, &b.end, &m);
	ok(!e->lend, "so the next one gets none");
	go(e, &b);
}

/* What a client says about a range comes after what it did there by itself. */
static void test_own_message(struct engine *e)
{
	struct client_message m[2];
	struct borrower b;

	borrow(e, &b);
	unlock(e, &b.end, b.handle, &low);
	ok(begins(fake_engine_events(e), "loan held 7 [0-99] EX owner 0 posix\nloan back 7 token 1000\nunlock"),
	   "an UNLOCK ends the loan first");
	go(e, &b);

	borrow(e, &b);
	e->core = grant;
	m[0] = lock_message(&b.end, b.handle, &low);
	m[0].type = CLIENT_TEST;
	peer_end_say(e, &b.end, m);
	ok(begins(fake_engine_events(e), "loan held"), "so does a TEST");
	ok(peer_end_hear(&b.end, m) && m[0].type == CLIENT_TESTED, "which is answered");
	go(e, &b);

	borrow(e, &b);
	m[0] = lock_message(&b.end, open_name(e, &b.end, "y"), &all);
	peer_end_say(e, &b.end, m);
	ok(!strstr(fake_engine_events(e), "loan"), "but not a message about another resource");
	m[0] = lock_message(&b.end, open_name(e, &b.end, "x"), &high);
	(void)peer_end_hear(&b.end, m + 1);
	peer_end_say(e, &b.end, m);
	ok(strstr(fake_engine_events(e), "loan back"), "one through another handle of it does");
	go(e, &b);
}

static void lend_low(struct engine *e, const struct belay_event *event)
{
	if (event->type != BELAY_EVENT_LOCK)
		return;
	if (e->lend)
		lend(e, LOAN, &low);
	reply(e);
}

/* Two messages in one packet: the second is taken before the first's answer is heard of. */
static void test_pipeline(struct engine *e)
{
	struct client_message m[2], answer = { 0 };
	struct borrower b;

	borrow(e, &b);
	unlock(e, &b.end, b.handle, &all);
	give_back(e, &b.end, 1, 1);
	(void)fake_engine_events(e);
	e->core = lend_low;
	m[0] = lock_message(&b.end, b.handle, &low);
	m[1] = (struct client_message){ .type = CLIENT_UNLOCK, .handle = b.handle, .range = high };
	peer_end_say_all(e, &b.end, m, 2);
	ok(peer_end_hear(&b.end, &answer) && answer.slot == 1 && answer.epoch == 2, "a loan");
	ok_uint(answer.messages, 3, "tells of the messages before it");
	ok(!strstr(fake_engine_events(e), "loan"), "one beside its range does not end it");
	m[1].range = low;
	m[0].number = ++b.end.number;
	m[0].range = high;
	peer_end_say_all(e, &b.end, m, 2);
	ok(strstr(fake_engine_events(e), "loan back"), "one in its range does");
	ok_uint(server_find(e->server, b.end.id)->loans.loan[0]->state, LOAN_OVER, "and it is over");
	go(e, &b);
}

/* ---- handles and resources ---- */

static void test_resources(struct engine *e)
{
	struct client_message m;
	struct borrower b;
	uint32_t first, second, flock;

	borrow(e, &b);
	second = open_kind(e, &b.end, "x", BELAY_KIND_OFD, &m);
	first = m.resource;
	ok(first > 0, "a resource has a number");
	(void)open_kind(e, &b.end, "x", BELAY_KIND_POSIX, &m);
	ok_uint(m.resource, first, "the same for all handles");
	(void)open_kind(e, &b.end, "x", BELAY_KIND_FLOCK, &m);
	flock = m.resource;
	ok(flock > 0 && flock != first, "but another one for flock");
	(void)open_kind(e, &b.end, "y", BELAY_KIND_POSIX, &m);
	ok(m.resource != first && m.resource != flock, "and for another resource");

	m = (struct client_message){ .type = CLIENT_CLOSE, .number = ++b.end.number, .handle = second };
	peer_end_say(e, &b.end, &m);
	ok_str(fake_engine_events(e), "loan held 7 [0-99] EX owner 0 posix\nloan back 7 token 1000",
	       "a CLOSE ends what is lent of the resource");
	ok(peer_end_hear(&b.end, &m) && m.resource == 0, "and gives no number up while others are open");
	go(e, &b);

	borrow(e, &b);
	m = (struct client_message){ .type = CLIENT_CLOSE, .number = ++b.end.number, .handle = b.handle };
	peer_end_say(e, &b.end, &m);
	ok(peer_end_hear(&b.end, &m) && m.resource == 1, "the last one gives it up");
	(void)open_kind(e, &b.end, "x", BELAY_KIND_POSIX, &m);
	ok_uint(m.resource, 2, "and the number does not come again");
	go(e, &b);
}

/* Who locked in the loan by an open file holds it by its handle afterwards. */
static void test_owner(struct engine *e)
{
	struct client_message m;
	const char *events;
	struct borrower b;
	uint32_t ofd;
	uint64_t token;

	borrow(e, &b);
	ofd = open_kind(e, &b.end, "x", BELAY_KIND_OFD, &m);
	ok_int(slot_lock(&b.loan, ofd, BELAY_MODE_EX, &high, &token), 0, "an open file's lock");
	m = (struct client_message){ .type = CLIENT_CLOSE, .number = ++b.end.number, .handle = ofd };
	peer_end_say(e, &b.end, &m);
	events = fake_engine_events(e);
	ok(begins(events, "loan held 7 [0-99] EX owner 0 posix\nloan held 7 [100-199] EX owner 2 ofd\n"),
	   "is told as such");
	ok(strstr(events, "\nunlock") && strstr(events, "ofd pid"), "and closing the handle releases it");
	go(e, &b);
}

/* ---- the cluster's troubles ---- */

static void test_frozen(struct engine *e)
{
	struct client_message m;
	struct borrower b;
	uint64_t token;

	borrow(e, &b);
	loan_on_frozen(e->server, true);
	ok(word(&b.end, 0) & SLOT_FROZEN, "without quorum the slots are frozen");
	ok_int(slot_lock(&b.loan, 0, BELAY_MODE_EX, &high, &token), -ESTALE, "and nothing can be locked");
	m = lock(e, &b.end, open_name(e, &b.end, "y"), &low);
	ok(m.slot == 2 && (word(&b.end, 1) & SLOT_FROZEN), "a loan of then begins frozen");
	loan_on_frozen(e->server, false);
	ok(!(word(&b.end, 0) & SLOT_FROZEN) && !(word(&b.end, 1) & SLOT_FROZEN), "with quorum they thaw");
	ok_int(slot_lock(&b.loan, 0, BELAY_MODE_EX, &high, &token), 0, "and the loan goes on");
	go(e, &b);
}

static void test_lost(struct engine *e)
{
	struct belay_action lost = { .type = BELAY_ACTION_LOST };
	struct borrower b;

	borrow(e, &b);
	lost.client = b.end.id;
	server_on_action(e->server, &lost);
	ok(word(&b.end, 0) & SLOT_RECALL, "locks that are lost are lost in loans, too");
	loan_feed(e->server);
	ok_str(fake_engine_events(e), "", "the core is told nothing of them");
	ok_uint(e->server->stats.loans, 0, "no loan is out");
	give_back(e, &b.end, 1, 1);
	ok(server_find(e->server, b.end.id), "and the client may return the slot");
	go(e, &b);
}

/* The core gives to others what a client had: not before its words say so. */
static void look_at_death(struct engine *e, const struct belay_event *event)
{
	const struct borrower *b = e->watched;

	if (event->type == BELAY_EVENT_CLIENT_GONE)
		ok(word(&b->end, 0) & SLOT_RECALL, "the loan is over before the core hears of the end");
}

static void test_death(struct engine *e)
{
	struct borrower b;

	borrow(e, &b);
	e->watched = &b;
	e->core = look_at_death;
	peer_end_log(&b.end, 0)->action = 99;
	client_drop(e->server, server_find(e->server, b.end.id));
	server_on_turn_end(e->server);
	ok(begins(fake_engine_events(e), "client gone"), "what stood in it does not matter");
	ok_uint(e->server->stats.loans, 0, "no loan is out");
	go(e, &b);
}

/* ---- rubbish ---- */

static void spoil_count(struct borrower *b)
{
	atomic_fetch_or(&peer_end_head(&b->end, 0)->word, UINT64_C(1) << 63);
}

static void spoil_epoch(struct borrower *b)
{
	atomic_fetch_xor(&peer_end_head(&b->end, 0)->word, UINT64_C(6) << SLOT_EPOCH_SHIFT);
}

static void spoil_action(struct borrower *b)
{
	peer_end_log(&b->end, 0)->action = SLOT_ACTION_COUNT;
}

static void spoil_handle(struct borrower *b)
{
	peer_end_log(&b->end, 0)->handle = 4711;
}

static void spoil_range(struct borrower *b)
{
	peer_end_log(&b->end, 0)->start = 100;
}

static void spoil_token(struct borrower *b)
{
	atomic_store(&peer_end_head(&b->end, 0)->token, UINT64_MAX);
}

static void spoil_token_back(struct borrower *b)
{
	atomic_store(&peer_end_head(&b->end, 0)->token, TOKEN - 1);
}

static void spoil_size(struct borrower *b)
{
	/* Only this is left to a client: it cannot change the size, but it can make holes. */
	(void)fallocate(b->end.memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, SLOT_MEMORY_BYTES);
}

static void test_rubbish(struct engine *e)
{
	static const struct {
		const char *what, *why;
		void (*spoil)(struct borrower *b);
	} tries[] = {
		{ "a count that does not fit", "operations", spoil_count },
		{ "another loan's word", "another word", spoil_epoch },
		{ "no operation", "no operation", spoil_action },
		{ "an unknown handle", "a handle that may not", spoil_handle },
		{ "a range that ends before it starts", "bytes outside", spoil_range },
		{ "a token of tomorrow", "fencing tokens", spoil_token },
		{ "a token of yesterday", "fencing tokens", spoil_token_back },
		{ "holes", "another word", spoil_size },
	};
	struct borrower good, bad;

	borrow(e, &good);
	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		borrow(e, &bad);
		tries[i].spoil(&bad);
		recall(e, &bad.end, LOAN);
		loan_feed(e->server);
		ok(closed(e, &bad.end, tries[i].why), "closed for %s", tries[i].what);
		ok(begins(fake_engine_events(e), "client gone"), "the core is told of its end only");
		go(e, &bad);
	}
	ok(!(word(&good.end, 0) & SLOT_RECALL), "the others do not notice");
	ok_uint(e->server->stats.broken, 4 + sizeof(tries) / sizeof(tries[0]), "each is counted");
	go(e, &good);
}

static void test_no_room(struct engine *e)
{
	struct borrower b;

	borrow(e, &b);
	e->has_no_room = true;
	recall(e, &b.end, LOAN);
	loan_feed(e->server);
	e->has_no_room = false;
	ok(closed(e, &b.end, "no room"), "whose locks the core cannot take is told that it has none");
	ok(!strstr(fake_engine_events(e), "loan back"), "and the core does not take the rest for all");
	go(e, &b);
}

/* ---- cells ---- */

static void test_cells(struct engine *e)
{
	struct client_message m, answer;
	struct borrower b;
	size_t at = 0;

	borrow(e, &b);
	m = lock_message(&b.end, b.handle, &low);
	m.cell = SLOT_CELLS;
	m.lend = false;
	peer_end_say(e, &b.end, &m);
	ok(!peer_end_hear(&b.end, &answer), "an answer for a cell does not come on the socket");
	ok_uint(atomic_load(&peer_end_cell(&b.end, SLOT_CELLS)->state), SLOT_CELL_ANSWERED, "but there");
	ok(client_get(peer_end_cell(&b.end, SLOT_CELLS)->bytes, peer_end_cell(&b.end, SLOT_CELLS)->size, &at,
		      &answer) == 1 && answer.number == m.number && answer.token == TOKEN, "as it is");
	m = lock_message(&b.end, 4711, &low);
	m.cell = 1;
	peer_end_say(e, &b.end, &m);
	at = 0;
	ok(client_get(peer_end_cell(&b.end, 1)->bytes, peer_end_cell(&b.end, 1)->size, &at, &answer) == 1 &&
	   answer.result == -EBADF, "and so does a refusal");
	e->core = NULL;
	m = lock_message(&b.end, b.handle, &low);
	m.cell = 1;
	peer_end_say(e, &b.end, &m);
	m = lock_message(&b.end, b.handle, &high);
	m.cell = 1;
	peer_end_say(e, &b.end, &m);
	ok(closed(e, &b.end, "in a cell"), "a cell is for one answer at a time");
	go(e, &b);

	borrow(e, &b);
	m = lock_message(&b.end, b.handle, &low);
	m.cell = SLOT_CELLS + 1;
	peer_end_say(e, &b.end, &m);
	ok(closed(e, &b.end, "in a cell"), "and there are not more than there are");
	go(e, &b);

	peer_end_open(e, &b.end);
	m = lock_message(&b.end, open_name(e, &b.end, "x"), &low);
	m.cell = 1;
	peer_end_say(e, &b.end, &m);
	ok(closed(e, &b.end, "in a cell"), "and none without the memory");
	peer_end_close(&b.end);
}

int main(void)
{
	struct engine e;

	fake_engine_init(&e);
	test_share(&e);
	test_shares(&e);
	test_no_loan(&e);
	test_lend(&e);
	test_return(&e);
	test_slots(&e);
	test_own_message(&e);
	test_pipeline(&e);
	test_resources(&e);
	test_owner(&e);
	test_frozen(&e);
	test_lost(&e);
	test_death(&e);
	test_rubbish(&e);
	test_no_room(&e);
	test_cells(&e);
	ok_uint(e.server->stats.clients, 0, "all clients have gone");
	fake_engine_done(&e);
	return done_testing();
}
