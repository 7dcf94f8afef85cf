/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/core_ring.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct frame {
	struct belay_frame head;
	struct belay_op *op;
	unsigned count;
	struct frame *next;
};

struct member {
	struct ring *ring;
	unsigned id;
	struct belay_core_config config;
	void *memory;
	struct belay_core *core;
	struct belay_op *out;		/* of this turn */
	unsigned out_count;
	uint64_t seq;
	bool flush, ask, running, replay;
	const char *isolated;
	bool left;
	unsigned frames, acks;
	unsigned lives;
	bool lending;			/* LEND_HELDs came, their LEND comes next */
	unsigned lent;			/* a loan whose REPLY comes next */
	uint64_t lent_to;
	/* Snapshot wanted by, and what is held until it is loaded. */
	uint32_t snapshot_to;
	struct frame **held;
	unsigned held_count;
	bool holding;
};

struct ring {
	unsigned n;
	uint64_t now_us;
	struct member member[RING_NODES + 1];
	struct frame *head, **tail;
	struct frame *done;		/* delivered; a joiner may hold some until the end */
	struct ring_reply reply[RING_REPLIES];
	unsigned lost;
	struct ring_loan loan[RING_LOANS + 1];
	unsigned loans;
	struct ring_hint hint[RING_HINTS];
	unsigned hints;
};

static struct ring_loan *find_loan(struct member *m, uint32_t number)
{
	for (unsigned i = m->ring->loans; i > 0; i--) {
		struct ring_loan *l = &m->ring->loan[i];

		if (l->live && l->node == m->id && l->number == number)
			return l;
	}
	return NULL;
}

/* LEND_HELDs come in front of their LEND. */
static struct ring_loan *coming_loan(struct member *m, const struct belay_action *a)
{
	struct ring *ring = m->ring;
	struct ring_loan *l = &ring->loan[ring->loans];

	if (!m->lending) {
		assert(ring->loans < RING_LOANS && find_loan(m, a->loan) == NULL);
		l = &ring->loan[++ring->loans];
		*l = (struct ring_loan){ .node = m->id, .client = a->client, .number = a->loan };
	}
	assert(l->client == a->client && l->number == a->loan);
	m->lending = a->type == BELAY_ACTION_LEND_HELD;
	return l;
}

static void on_loan(struct member *m, const struct belay_action *a)
{
	struct ring_loan *l;

	if (a->type == BELAY_ACTION_RECALL) {
		l = find_loan(m, a->loan);
		assert(l != NULL && l->client == a->client);
		l->recalled = true;
		return;
	}
	l = coming_loan(m, a);
	if (a->type == BELAY_ACTION_LEND_HELD) {
		assert(l->count < RING_HELD);
		l->held[l->count++] = (struct ring_held){ a->range, a->mode, a->holder.key, a->holder.kind };
		return;
	}
	l->live = true;
	l->resource = a->key.id[0];
	l->range = a->range;
	l->mode = a->mode;
	l->room = a->room;
	l->token = a->token;
	m->lent = m->ring->loans;
	m->lent_to = a->cookie;
}

/* Whatever the client had of it is void. */
static void drop_loans(struct member *m, uint32_t client)
{
	for (unsigned i = 1; i <= m->ring->loans; i++)
		if (m->ring->loan[i].node == m->id && m->ring->loan[i].client == client)
			m->ring->loan[i].live = false;
}

static void emit(void *context, const struct belay_action *a)
{
	struct member *m = context;
	struct ring_reply *r;

	/* A loan comes in one piece, and then the answer that brings it. */
	assert(!m->lending || a->type == BELAY_ACTION_LEND_HELD || a->type == BELAY_ACTION_LEND);
	assert(m->lent == 0 || (a->type == BELAY_ACTION_REPLY && a->cookie == m->lent_to));

	switch (a->type) {
	case BELAY_ACTION_SEND:
		m->out = realloc(m->out, (m->out_count + 1) * sizeof(*m->out));
		m->out[m->out_count++] = *a->op;
		break;
	case BELAY_ACTION_FLUSH:
		m->flush = true;
		m->ask |= a->ask;
		break;
	case BELAY_ACTION_REPLY:
		assert(a->cookie < RING_REPLIES);
		r = &m->ring->reply[a->cookie];
		assert(!r->answered);
		*r = (struct ring_reply){ true, a->result, a->token, a->held, a->holder, a->range,
					  a->mode, m->lent };
		m->lent = 0;
		break;
	case BELAY_ACTION_LEND_HELD:
	case BELAY_ACTION_LEND:
	case BELAY_ACTION_RECALL:
		on_loan(m, a);
		break;
	case BELAY_ACTION_HINT:
		assert(m->ring->hints < RING_HINTS);
		m->ring->hint[m->ring->hints++] = (struct ring_hint){ *a->hint, a->node };
		break;
	case BELAY_ACTION_LOST:
		m->ring->lost++;
		drop_loans(m, a->client);
		break;
	case BELAY_ACTION_SNAPSHOT:
		m->snapshot_to = a->node;
		break;
	case BELAY_ACTION_HOLD:
		m->holding = true;
		m->held_count = 0;
		break;
	case BELAY_ACTION_FORGET:
		m->holding = false;
		break;
	case BELAY_ACTION_REPLAY:
		m->holding = false;
		m->replay = true;
		break;
	case BELAY_ACTION_RESTART:
		m->out_count = 0;
		m->seq = 0;
		break;
	case BELAY_ACTION_ISOLATE:
		m->isolated = a->reason;
		break;
	case BELAY_ACTION_LEFT:
		m->left = true;
		break;
	default:
		break;
	}
}

/* The turn's ops leave in one frame. */
static void flush(struct member *m)
{
	struct frame *f;

	if (m->out_count == 0 && !m->flush)
		return;
	f = calloc(1, sizeof(*f));
	belay_core_frame(m->core, &f->head);
	f->head.seq = m->seq + 1;
	f->head.ask = m->ask;
	f->op = m->out;
	f->count = m->out_count;
	m->seq += m->out_count;
	m->frames += m->out_count != 0;
	m->acks += m->out_count == 0;
	m->out = NULL;
	m->out_count = 0;
	m->flush = m->ask = false;
	*m->ring->tail = f;
	m->ring->tail = &f->next;
}

static int bare_step(struct member *m, struct belay_event *ev)
{
	struct belay_actions actions = { emit, m };

	ev->now_us = m->ring->now_us;
	return belay_core_step(m->core, ev, &actions);
}

static int loan_held(struct member *m, const struct ring_loan *l, const struct ring_held *h)
{
	struct belay_event ev = { .type = BELAY_EVENT_LOAN_HELD };

	ev.loan.loan = l->number;
	ev.loan.range = h->range;
	ev.loan.owner = (struct belay_owner){ .key = h->key, .kind = h->kind };
	ev.loan.mode = h->mode;
	return bare_step(m, &ev);
}

static int loan_end(struct member *m, struct ring_loan *l)
{
	struct belay_event ev = { .type = BELAY_EVENT_LOAN_BACK };
	bool live = l->live;
	int r;

	ev.loan.loan = l->number;
	ev.loan.used = l->used;
	ev.loan.used_ex = l->used_ex;
	ev.loan.range = l->hull;
	ev.loan.token = l->token;
	l->live = false;	/* its number may be lent anew within the step */
	r = bare_step(m, &ev);
	l->live = live && r != 0;
	return r;
}

/* What was called back comes back: before any other event of its client. */
static void return_loans(struct member *m)
{
	for (unsigned i = 1; i <= m->ring->loans; i++) {
		struct ring_loan *l = &m->ring->loan[i];

		if (l->node != m->id || !l->live || !l->recalled || l->keep)
			continue;
		for (unsigned k = 0; k < l->count; k++)
			if (loan_held(m, l, &l->held[k]) != 0)
				abort();
		if (loan_end(m, l) != 0)
			abort();
		i = 0;	/* that may have called back others */
	}
}

static int step(struct member *m, struct belay_event *ev)
{
	int r = bare_step(m, ev);

	return_loans(m);
	return r;
}

static int turn(struct member *m, struct belay_event *ev)
{
	int r = step(m, ev);

	flush(m);
	return r;
}

static void feed(struct member *m, const struct frame *f)
{
	struct belay_event ev = { .type = BELAY_EVENT_FRAME };

	ev.frame = &f->head;
	(void)step(m, &ev);
	for (unsigned k = 0; k < f->count; k++) {
		bool held = m->holding;
		struct belay_event op = { .type = BELAY_EVENT_OP };

		op.op = &f->op[k];
		(void)step(m, &op);
		assert(!held || f->count == 1 || k + 1 == f->count || m->holding);
	}
}

static void load(struct member *from)
{
	struct member *to = &from->ring->member[from->snapshot_to];
	struct belay_cursor cursor = { 0 };
	struct belay_record record;

	from->snapshot_to = 0;
	while (belay_core_snapshot_next(from->core, &cursor, &record) == 1) {
		struct belay_event ev = { .type = BELAY_EVENT_RECORD };

		ev.record = &record;
		(void)step(to, &ev);
	}
	while (to->replay) {
		to->replay = false;
		for (unsigned k = 0; k < to->held_count; k++)
			feed(to, to->held[k]);
	}
	flush(to);
}

static void deliver(struct ring *ring, struct frame *f)
{
	for (unsigned i = 1; i <= ring->n; i++) {
		struct member *m = &ring->member[i];
		bool held = m->holding;

		if (!m->running)
			continue;
		feed(m, f);
		if (held && m->holding) {
			m->held = realloc(m->held, (m->held_count + 1) * sizeof(*m->held));
			m->held[m->held_count++] = f;
		}
	}
	for (unsigned i = 1; i <= ring->n; i++)
		if (ring->member[i].running && ring->member[i].snapshot_to != 0)
			load(&ring->member[i]);
	for (unsigned i = 1; i <= ring->n; i++)
		if (ring->member[i].running)
			flush(&ring->member[i]);
}

bool ring_deliver(struct ring *ring)
{
	struct frame *f = ring->head;

	if (f == NULL)
		return false;
	ring->head = f->next;
	if (ring->head == NULL)
		ring->tail = &ring->head;
	ring->now_us += 100;
	deliver(ring, f);
	f->next = ring->done;
	ring->done = f;
	return true;
}

unsigned ring_run(struct ring *ring)
{
	unsigned count = 0;

	while (ring_deliver(ring)) {
		count++;
		assert(count < 1000000);
	}
	return count;
}

void ring_pass(struct ring *ring, uint64_t us)
{
	uint64_t end = ring->now_us + us;

	for (;;) {
		uint64_t next = end;

		(void)ring_run(ring);
		for (unsigned i = 1; i <= ring->n; i++)
			if (ring->member[i].running &&
			    belay_core_deadline(ring->member[i].core) < next)
				next = belay_core_deadline(ring->member[i].core);
		if (next > ring->now_us)
			ring->now_us = next;
		for (unsigned i = 1; i <= ring->n; i++) {
			struct member *m = &ring->member[i];
			struct belay_event ev = { .type = BELAY_EVENT_TICK };

			if (m->running && belay_core_deadline(m->core) <= ring->now_us)
				(void)turn(m, &ev);
		}
		if (ring->now_us >= end && ring->head == NULL)
			return;
	}
}

static void view(struct ring *ring, const uint32_t *joined, unsigned joined_count,
		 const uint32_t *left, unsigned left_count)
{
	uint32_t member[RING_NODES];
	struct belay_event ev = { .type = BELAY_EVENT_VIEW };

	for (unsigned i = 1; i <= ring->n; i++)
		if (ring->member[i].running)
			member[ev.view.member_count++] = i;
	ev.view.member = member;
	ev.view.joined = joined;
	ev.view.joined_count = joined_count;
	ev.view.left = left;
	ev.view.left_count = left_count;
	for (unsigned i = 1; i <= ring->n; i++)
		if (ring->member[i].running)
			(void)turn(&ring->member[i], &ev);
}

static void boot(struct member *m)
{
	struct belay_core_config config = m->config;
	struct belay_event ev = { .type = BELAY_EVENT_QUORUM };

	config.self = m->id;
	config.incarnation = 1000 * m->id + 100000 * ++m->lives;
	free(m->memory);
	m->memory = calloc(1, belay_core_size(&config));
	m->core = belay_core_init(m->memory, &config);
	assert(m->core != NULL);
	m->running = true;
	m->holding = m->replay = m->left = false;
	m->isolated = NULL;
	m->seq = 0;
	m->out_count = 0;
	ev.quorum.quorate = true;
	(void)step(m, &ev);
}

struct belay_core_config ring_config(unsigned n, enum belay_stability stability,
				     const struct belay_limits *limits)
{
	struct belay_core_config config = {
		.stability = stability,
		.node_count = n,
		.limits = {
			.resources_max = 64,
			.locks_max = 4096,
			.waiters_max = 256,
			.locks_per_owner_max = 1024,
		},
		.requests_max = 256,
		.min_hold_us = 2000,
		.idle_us = 60000000,
		.claim_streak = 32,
		.share_streak = 64,
		.lend_after = 4,
		.loans_max = 32,
		.token_base = 1,
	};

	assert(n >= 1 && n <= RING_NODES);
	if (limits != NULL)
		config.limits = *limits;
	for (unsigned i = 1; i <= n; i++)
		config.node[i - 1] = i;
	return config;
}

struct ring *ring_new_with(const struct belay_core_config *config)
{
	struct ring *ring = calloc(1, sizeof(*ring));

	assert(config->node_count <= RING_NODES);
	ring->n = config->node_count;
	ring->tail = &ring->head;
	ring->now_us = 1000000;
	for (unsigned i = 1; i <= ring->n; i++) {
		ring->member[i].ring = ring;
		ring->member[i].id = i;
		ring->member[i].config = *config;
		boot(&ring->member[i]);
	}
	view(ring, config->node, ring->n, NULL, 0);
	(void)ring_run(ring);
	return ring;
}

struct ring *ring_new(unsigned n, enum belay_stability stability, const struct belay_limits *limits)
{
	struct belay_core_config config = ring_config(n, stability, limits);

	return ring_new_with(&config);
}

static void free_frames(struct frame *f)
{
	while (f != NULL) {
		struct frame *next = f->next;

		free(f->op);
		free(f);
		f = next;
	}
}

struct ring *ring_free(struct ring *ring)
{
	if (ring == NULL)
		return NULL;
	free_frames(ring->head);
	free_frames(ring->done);
	for (unsigned i = 1; i <= ring->n; i++) {
		free(ring->member[i].memory);
		free(ring->member[i].out);
		free(ring->member[i].held);
	}
	free(ring);
	return NULL;
}

struct belay_core_config *ring_node_config(struct ring *ring, unsigned node)
{
	return &ring->member[node].config;
}

struct belay_core *ring_core(struct ring *ring, unsigned node)
{
	return ring->member[node].core;
}

static struct belay_event lock_event(enum belay_event_type type, struct ring_who who,
				     unsigned resource, uint64_t start, uint64_t end)
{
	struct belay_event ev = { .type = type };

	ev.lock.key.lockspace = resource < RING_VOLUMES ? 1 : BELAY_LOCKSPACE_VOLUMES;
	ev.lock.key.id[0] = (uint8_t)resource;
	ev.lock.range = (struct belay_range){ start, end };
	ev.lock.owner = (struct belay_owner){
		.client = who.client, .key = who.key, .pid = 100 + who.client, .kind = who.kind,
	};
	return ev;
}

/* What a client asks comes behind what it did in its loans. */
static int ask(struct ring *ring, struct ring_who who, struct belay_event *ev)
{
	struct member *m = &ring->member[who.node];

	for (unsigned i = 1; i <= ring->loans; i++) {
		struct ring_loan *l = &ring->loan[i];

		if (l->live && !l->keep && l->node == who.node && l->client == who.client &&
		    l->resource == ev->lock.key.id[0] && l->range.start <= ev->lock.range.end &&
		    l->range.end >= ev->lock.range.start)
			l->recalled = true;
	}
	return_loans(m);
	return turn(m, ev);
}

static int lock(struct ring *ring, struct ring_who who, struct belay_event *ev, enum belay_mode mode,
		bool wait, uint64_t cookie)
{
	ev->lock.mode = mode;
	ev->lock.wait = wait;
	ev->lock.cookie = cookie;
	return ask(ring, who, ev);
}

int ring_lock(struct ring *ring, struct ring_who who, unsigned resource, uint64_t start,
	      uint64_t end, enum belay_mode mode, bool wait, uint64_t cookie)
{
	struct belay_event ev = lock_event(BELAY_EVENT_LOCK, who, resource, start, end);

	return lock(ring, who, &ev, mode, wait, cookie);
}

int ring_lock_lend(struct ring *ring, struct ring_who who, unsigned resource, uint64_t start,
		   uint64_t end, enum belay_mode mode, bool wait, uint64_t cookie)
{
	struct belay_event ev = lock_event(BELAY_EVENT_LOCK, who, resource, start, end);

	ev.lock.lend = true;
	return lock(ring, who, &ev, mode, wait, cookie);
}

int ring_test(struct ring *ring, struct ring_who who, unsigned resource, uint64_t start,
	      uint64_t end, enum belay_mode mode, uint64_t cookie)
{
	struct belay_event ev = lock_event(BELAY_EVENT_LOCK, who, resource, start, end);

	ev.lock.test = true;
	return lock(ring, who, &ev, mode, false, cookie);
}

int ring_unlock(struct ring *ring, struct ring_who who, unsigned resource, uint64_t start,
		uint64_t end)
{
	struct belay_event ev = lock_event(BELAY_EVENT_UNLOCK, who, resource, start, end);

	return ask(ring, who, &ev);
}

int ring_cancel(struct ring *ring, struct ring_who who, uint64_t cookie)
{
	struct belay_event ev = { .type = BELAY_EVENT_CANCEL };

	ev.client.client = who.client;
	ev.client.cookie = cookie;
	return turn(&ring->member[who.node], &ev);
}

int ring_client_gone(struct ring *ring, unsigned node, uint32_t client)
{
	struct belay_event ev = { .type = BELAY_EVENT_CLIENT_GONE };

	ev.client.client = client;
	drop_loans(&ring->member[node], client);
	return turn(&ring->member[node], &ev);
}

int ring_fence(struct ring *ring, unsigned by, unsigned node)
{
	struct belay_event ev = { .type = BELAY_EVENT_FENCE };

	ev.fence.node = node;
	return turn(&ring->member[by], &ev);
}

int ring_leave(struct ring *ring, unsigned node)
{
	struct belay_event ev = { .type = BELAY_EVENT_LEAVE };

	return turn(&ring->member[node], &ev);
}

unsigned ring_loans(const struct ring *ring)
{
	return ring->loans;
}

struct ring_loan *ring_loan(struct ring *ring, unsigned loan)
{
	assert(loan > 0 && loan <= ring->loans);
	return &ring->loan[loan];
}

void ring_loan_lock(struct ring_loan *l, struct ring_who who, uint64_t start, uint64_t end,
		    enum belay_mode mode)
{
	assert(l->live && l->count < RING_HELD);
	l->held[l->count++] = (struct ring_held){ { start, end }, mode, who.key, who.kind };
	if (!l->used || start < l->hull.start)
		l->hull.start = start;
	if (!l->used || end > l->hull.end)
		l->hull.end = end;
	l->used = true;
	l->used_ex |= mode == BELAY_MODE_EX;
	l->token++;
}

int ring_loan_held(struct ring *ring, const struct ring_loan *l, const struct ring_held *held)
{
	return loan_held(&ring->member[l->node], l, held);
}

int ring_loan_end(struct ring *ring, struct ring_loan *l)
{
	struct member *m = &ring->member[l->node];
	int r = loan_end(m, l);

	return_loans(m);
	flush(m);
	return r;
}

int ring_loan_back(struct ring *ring, struct ring_loan *l)
{
	for (unsigned k = 0; k < l->count; k++) {
		int r = ring_loan_held(ring, l, &l->held[k]);

		if (r != 0)
			return r;
	}
	return ring_loan_end(ring, l);
}

unsigned ring_hints(const struct ring *ring)
{
	return ring->hints;
}

struct ring_hint *ring_hint(struct ring *ring, unsigned i)
{
	assert(i < ring->hints);
	return &ring->hint[i];
}

int ring_hint_arrives(struct ring *ring, const struct ring_hint *hint)
{
	struct belay_event ev = { .type = BELAY_EVENT_HINT };

	ev.hint = &hint->hint;
	return turn(&ring->member[hint->to], &ev);
}

void ring_hints_forget(struct ring *ring)
{
	ring->hints = 0;
}

void ring_kill(struct ring *ring, unsigned node)
{
	uint32_t id = node;

	for (unsigned i = 1; i <= ring->loans; i++)
		ring->loan[i].live &= ring->loan[i].node != node;

	ring->member[node].running = false;
	view(ring, NULL, 0, &id, 1);
}

void ring_start(struct ring *ring, unsigned node)
{
	uint32_t id = node;

	boot(&ring->member[node]);
	view(ring, &id, 1, NULL, 0);
}

struct ring_reply ring_reply(struct ring *ring, uint64_t cookie)
{
	struct ring_reply r = ring->reply[cookie];

	ring->reply[cookie] = (struct ring_reply){ 0 };
	return r;
}

unsigned ring_lost(struct ring *ring)
{
	unsigned lost = ring->lost;

	ring->lost = 0;
	return lost;
}

const char *ring_isolated(const struct ring *ring, unsigned node)
{
	return ring->member[node].isolated;
}

bool ring_left(const struct ring *ring, unsigned node)
{
	return ring->member[node].left;
}

unsigned ring_frames(const struct ring *ring, unsigned node)
{
	return ring->member[node].frames;
}

unsigned ring_acks(const struct ring *ring, unsigned node)
{
	return ring->member[node].acks;
}

bool ring_agree(struct ring *ring)
{
	struct belay_stats first = { 0 }, other;

	for (unsigned i = 1; i <= ring->n; i++) {
		if (!ring->member[i].running || ring->member[i].isolated != NULL)
			continue;
		belay_core_check(ring->member[i].core);
		belay_core_stats(ring->member[i].core, &other);
		if (!other.synced)
			continue;
		if (first.place == 0)
			first = other;
		if (first.place != other.place || first.digest != other.digest)
			return false;
	}
	return true;
}
