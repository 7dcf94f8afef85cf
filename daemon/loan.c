/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/loan.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/clock.h"
#include "daemon/server_private.h"

/* Connections of one process that may share memory, so that it does not take what there is for all. */
#define SHARES_PER_PROCESS_MAX 64u
/* The fencing clock runs at 2^32 a second; a client that counts faster is lying. */
#define TOKENS_PER_US 4295u

int loans_init(struct loans *loans, uint32_t per_client_max)
{
	*loans = (struct loans){ .per_client_max = per_client_max };
	TAILQ_INIT(&loans->taken);
	loans->log = malloc(SLOT_LOG_BYTES);
	return loans->log ? 0 : -ENOMEM;
}

void loans_done(struct loans *loans)
{
	slot_ranges_done(&loans->set);
	free(loans->held);
	free(loans->log);
}

/* ---- slots ---- */

static struct loan *next_loan(const struct client *c, uint32_t *slot)
{
	for (; *slot < SLOT_COUNT; ++*slot) {
		uint64_t left = c->loans.used[*slot / 64] >> *slot % 64;

		if (left != 0) {
			*slot += (uint32_t)__builtin_ctzll(left);
			return c->loans.loan[(*slot)++];
		}
		*slot |= 63;
	}
	return NULL;
}

static struct loan *find_number(const struct client *c, uint32_t number)
{
	struct loan *loan;
	uint32_t slot = 0;

	while ((loan = next_loan(c, &slot)))
		if (loan->number == number && loan->state == LOAN_LENT)
			return loan;
	return NULL;
}

static int add_slot(struct client *c)
{
	struct loan *loan = calloc(1, sizeof(*loan));

	if (!loan)
		return -ENOMEM;
	loan->client = c;
	loan->slot = c->loans.made;
	c->loans.loan[c->loans.made++] = loan;
	return 0;
}

bool loan_want(struct server *s, struct client *c)
{
	uint32_t most = c->loans.count + c->loans.wanted + 1;

	if (!c->loans.share || most > s->loans.per_client_max ||
	    (most > c->loans.made && add_slot(c) < 0))
		return false;
	c->loans.wanted++;
	return true;
}

/* The lowest one: few of them are in the cache then. There is one, for who asks has made sure. */
static struct loan *take_slot(struct client *c)
{
	uint32_t slot = 0;

	while (c->loans.used[slot / 64] >> slot % 64 & 1)
		slot++;
	assert(slot < c->loans.made);
	c->loans.used[slot / 64] |= UINT64_C(1) << slot % 64;
	c->loans.count++;
	return c->loans.loan[slot];
}

static void free_slot(struct server *s, struct loan *loan)
{
	struct client_loans *l = &loan->client->loans;

	loan->state = LOAN_NONE;
	l->used[loan->slot / 64] &= ~(UINT64_C(1) << loan->slot % 64);
	l->count--;
	share_trim(l->share, loan->slot);
	s->stats.loans_returned++;
}

/* ---- lending ---- */

void loan_on_held(struct server *s, const struct belay_action *action)
{
	struct loans *l = &s->loans;

	if (l->held_count == l->held_size) {
		uint32_t size = l->held_size > 0 ? 2 * l->held_size : 64;
		struct slot_entry *held = realloc(l->held, size * sizeof(*held));

		if (!held) {
			l->held_error = -ENOMEM;
			return;
		}
		l->held = held;
		l->held_size = size;
	}
	l->held[l->held_count++] = (struct slot_entry){
		.start = action->range.start, .end = action->range.end,
		/* A POSIX owner's key is 0, another one's is its handle. */
		.handle = (uint32_t)action->holder.key,
		.action = slot_action_of(action->mode),
	};
}

/* Write the loan into the client's memory. */
static int write_loan(struct server *s, struct loan *loan)
{
	struct share *share = loan->client->loans.share;
	const struct loans *l = &s->loans;
	int r = l->held_error;

	if (r == 0 && l->held_count > 0)
		r = share_write(share, loan->slot, l->held, l->held_count);
	if (r == 0)
		slot_lend(share_head(share, loan->slot), l->log, &loan->terms, l->held, l->held_count,
			  l->frozen);
	return r;
}

void loan_on_lend(struct server *s, const struct belay_action *action)
{
	struct client *c = server_find(s, action->client);
	struct loans *l = &s->loans;
	struct resource *resource;
	struct loan *loan;

	/* The core lends only to who asks. */
	assert(c && c->loans.share);
	resource = request_resource(c, (uint32_t)action->cookie, &action->key);
	loan = take_slot(c);
	loan->state = LOAN_LENT;
	loan->resource = resource;
	loan->number = action->loan;
	loan->lent_us = clock_now_us();
	loan->recalled_us = 0;
	loan->terms = (struct slot_terms){
		.epoch = (loan->terms.epoch + 1) & SLOT_EPOCH_MASK,
		.mode = action->mode,
		.range = action->range,
		.room = action->room < SLOT_ROOM_MAX ? action->room : SLOT_ROOM_MAX,
		.token = action->token,
	};
	loan->error = write_loan(s, loan);
	s->stats.loans++;
	s->stats.loans_lent++;
	if (loan->error == 0) {
		TAILQ_INSERT_TAIL(&resource->loans, loan, link);
		l->answer = loan;
	} else {
		loan->state = LOAN_TAKEN;
		TAILQ_INSERT_TAIL(&l->taken, loan, link);
	}
	l->held_count = 0;
	l->held_error = 0;
}

void loan_answer(struct server *s, struct client *c, struct client_message *m)
{
	struct loan *loan = s->loans.answer;

	s->loans.answer = NULL;
	/* It may have been taken back in the step that lent it. */
	if (!loan || loan->client != c || m->result != 0)
		return;
	m->slot = loan->slot + 1;
	m->epoch = loan->terms.epoch;
	m->mode = loan->terms.mode;
	m->range = loan->terms.range;
	m->room = loan->terms.room;
	m->messages = loan->resource->messages;
}

/* ---- taking back ---- */

/* From here on nothing can be taken under it; what is held does not change any more. */
static void take(struct server *s, struct loan *loan, uint64_t recalled_us)
{
	assert(loan->state == LOAN_LENT);
	loan->word = slot_recall(share_head(loan->client->loans.share, loan->slot));
	loan->state = LOAN_TAKEN;
	loan->recalled_us = recalled_us;
	TAILQ_REMOVE(&loan->resource->loans, loan, link);
	TAILQ_INSERT_TAIL(&s->loans.taken, loan, link);
}

void loan_on_recall(struct server *s, const struct belay_action *action)
{
	struct client *c = server_find(s, action->client);
	struct loan *loan = c ? find_number(c, action->loan) : NULL;

	/* Else it is among those to feed already: its memory could not be written. */
	if (loan)
		take(s, loan, clock_now_us());
}

struct judgement {
	const struct client *client;
	const struct resource *resource;
};

static bool may(void *context, uint32_t handle, enum slot_action action)
{
	const struct judgement *j = context;
	const struct handle *h = handles_find(&j->client->handles, handle);

	bool flock = identity_is_flock(&j->resource->key);

	/* A flock has a handle, and wants a file that is open, no matter for what. */
	if ((handle == 0 && flock) || (handle != 0 && (!h || h->resource[flock] != j->resource)))
		return false;
	if (action == SLOT_UNLOCK || (flock && h->may_flock))
		return true;
	if (action == SLOT_LOCK_EX)
		return h ? h->may_write : j->resource->may_write;
	return h ? h->may_read : j->resource->may_read;
}

/* What the loan held, in s->loans.set. */
static int read_loan(struct server *s, const struct loan *loan, struct slot_report *ret_report,
		     const char **ret_reason)
{
	const struct share *share = loan->client->loans.share;
	struct judgement judgement = { loan->client, loan->resource };
	const struct slot_judge judge = { .may = may, .context = &judgement };
	uint64_t us = clock_now_us() - loan->lent_us + 1;
	int r = loan->error;

	*ret_reason = "counts more operations than there is room for";
	if (r == 0)
		r = share_read(share, loan->slot, loan->word, s->loans.log);
	if (r == 0)
		r = slot_take(share_head(share, loan->slot), s->loans.log, loan->word, &loan->terms,
			      loan->terms.token + us * TOKENS_PER_US, &judge, &s->loans.set,
			      ret_report, ret_reason);
	return r;
}

static void fail(struct server *s, struct client *c, int error, const char *reason)
{
	char text[160];

	if (error == -EBADMSG) {
		s->stats.broken++;
		(void)snprintf(text, sizeof(text), "in the memory that it shares with belayd it %s",
			       reason);
		client_fail(s, c, &s->broken_limit, -EPROTO, text);
	} else {
		client_fail(s, c, &s->broken_limit, error, "belayd has no room for what it locked by itself");
	}
}

static int feed_held(struct server *s, const struct loan *loan, const struct slot_entry *held)
{
	struct handle *h = handles_find(&loan->client->handles, held->handle);
	enum belay_kind kind = held->handle == 0 ? BELAY_KIND_POSIX :
			       identity_is_flock(&loan->resource->key) ? BELAY_KIND_FLOCK :
			       BELAY_KIND_OFD;
	struct belay_event ev = {
		.type = BELAY_EVENT_LOAN_HELD,
		.loan = {
			.loan = loan->number,
			.range = { held->start, held->end },
			.owner = request_owner(loan->client, held->handle, kind),
			.mode = slot_mode_of(held),
		},
	};

	/* So that closing the handle releases it. */
	if (h)
		h->kinds |= (uint8_t)(1u << kind);
	return engine_step(s->engine, &ev);
}

/* All that the loan held. The core cannot refuse it, unless it lent what it should not have. */
static int feed_all(struct server *s, struct loan *loan)
{
	struct slot_cursor cursor = { 0 };
	const struct slot_entry *held;
	int r = 0;

	while (r == 0 && (held = slot_ranges_next(&s->loans.set, &cursor)))
		r = feed_held(s, loan, held);
	/* belayd ends: then there is nobody left to tell. */
	return r == -ESHUTDOWN ? 0 : r;
}

static void feed(struct server *s, struct loan *loan)
{
	struct belay_event ev = { .type = BELAY_EVENT_LOAN_BACK, .loan.loan = loan->number };
	struct slot_report report;
	const char *reason;
	int r = read_loan(s, loan, &report, &reason);

	loan->state = LOAN_OVER;
	s->stats.loans--;
	if (r == 0)
		r = feed_all(s, loan);
	if (r < 0) {
		fail(s, loan->client, r, reason);
		return;
	}
	ev.loan.range = report.range;
	ev.loan.used = report.used;
	ev.loan.used_ex = report.used_ex;
	ev.loan.token = report.token;
	(void)engine_step(s->engine, &ev);
	if (loan->recalled_us == 0)
		return;
	s->stats.loans_recalled++;
	histogram_add(&s->stats.recall_us, clock_now_us() - loan->recalled_us);
}

void loan_feed(struct server *s)
{
	struct loan *loan;

	/* What is fed may end other loans: they come after this one. */
	if (s->loans.feeding)
		return;
	s->loans.feeding = true;
	while ((loan = TAILQ_FIRST(&s->loans.taken))) {
		TAILQ_REMOVE(&s->loans.taken, loan, link);
		feed(s, loan);
	}
	s->loans.feeding = false;
}

/* ---- what clients want ---- */

/* Processes that cannot be seen from here count as one. */
static uint32_t shares_of(const struct server *s, pid_t pid)
{
	const struct client *c;
	uint32_t count = 0;

	TAILQ_FOREACH(c, &s->all, all_link)
		count += c->peer.pid == pid && c->loans.share;
	return count;
}

int loan_share(struct server *s, struct client *c)
{
	if (c->loans.share)
		return -EEXIST;
	if (shares_of(s, c->peer.pid) >= SHARES_PER_PROCESS_MAX)
		return -EUSERS;
	return share_new(&s->shares, &c->loans.share);
}

void loan_take_back(struct server *s, const struct resource *resource, const struct belay_range *range)
{
	struct loan *loan, *next;

	for (loan = TAILQ_FIRST(&resource->loans); loan; loan = next) {
		next = TAILQ_NEXT(loan, link);
		if (loan->terms.range.start <= range->end && range->start <= loan->terms.range.end)
			take(s, loan, 0);
	}
	loan_feed(s);
}

int loan_return(struct server *s, struct client *c, uint32_t slot, uint32_t epoch)
{
	struct loan *loan = slot > 0 && slot <= c->loans.made ? c->loans.loan[slot - 1] : NULL;

	if (!loan || loan->state == LOAN_NONE || loan->terms.epoch != epoch)
		return -ENOENT;
	/* Given up by the client itself. */
	if (loan->state == LOAN_LENT) {
		take(s, loan, 0);
		loan_feed(s);
	}
	if (!c->dead)
		free_slot(s, loan);
	return 0;
}

bool loan_any(const struct client *c)
{
	const struct loan *loan;
	uint32_t slot = 0;

	while ((loan = next_loan(c, &slot)))
		if (loan->state == LOAN_LENT || loan->state == LOAN_TAKEN)
			return true;
	return false;
}

void loan_end_all(struct server *s, struct client *c)
{
	struct loan *loan;
	uint32_t slot = 0;

	while ((loan = next_loan(c, &slot))) {
		if (loan->state == LOAN_LENT)
			take(s, loan, 0);
		if (loan->state != LOAN_TAKEN)
			continue;
		TAILQ_REMOVE(&s->loans.taken, loan, link);
		loan->state = LOAN_OVER;
		s->stats.loans--;
	}
}

void loan_on_frozen(struct server *s, bool frozen)
{
	struct client *c;

	s->loans.frozen = frozen;
	TAILQ_FOREACH(c, &s->all, all_link) {
		uint32_t slot = 0;
		struct loan *loan;

		while ((loan = next_loan(c, &slot))) {
			struct slot_head *head = share_head(c->loans.share, loan->slot);

			if (frozen)
				slot_freeze(head);
			else
				slot_thaw(head);
		}
	}
}

int server_loans_next(const struct server *s, struct server_cursor *cursor,
		      struct server_loan *ret_loan)
{
	for (; cursor->client < s->slot_count; cursor->client++, cursor->slot = 0) {
		const struct client *c = s->slot[cursor->client];
		const struct loan *loan;

		while (c && (loan = next_loan(c, &cursor->slot))) {
			if (loan->state != LOAN_LENT)
				continue;
			*ret_loan = (struct server_loan){
				.key = loan->resource->key,
				.range = loan->terms.range, .mode = loan->terms.mode,
				.client = c->id, .pid = c->peer.pid,
			};
			return 1;
		}
	}
	return 0;
}

void loan_done(struct client *c)
{
	for (uint32_t i = 0; i < c->loans.made; i++)
		free(c->loans.loan[i]);
	share_free(c->loans.share);
}
