/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The replicated state as a stream of records, written by the donor at one
 * place of the order and loaded by a joiner, who then replays what was
 * ordered behind that place. Pools are walked front to back: a million locks
 * are read at the speed of memory.
 */
#include "core/internal.h"

#define PHASES 6u		/* between CORE and END */

static bool owner_replicated(const struct belay_core *c, const struct owner *o)
{
	/* One that is not in use has nothing. */
	if (o->replicated != 0 || o->queued != 0)
		return true;
	for (uint32_t i = o->locks; i != 0; i = lock_at(c, i)->owner_next)
		if (lock_at(c, i)->staged)
			return true;
	return false;
}

static void put_core(const struct belay_core *c, struct belay_record *rec)
{
	rec->place = c->place;
	rec->token = c->token;
}

static bool put_node(const struct belay_core *c, uint32_t i, struct belay_record *rec)
{
	const struct node *n = &c->node[i];

	rec->node = n->id;
	rec->standing = n->standing;
	rec->synced = n->synced;
	rec->incarnation = n->incarnation;
	rec->seq = n->seq;
	return true;
}

static bool put_owner(const struct belay_core *c, uint32_t i, struct belay_record *rec)
{
	const struct owner *o = owner_at(c, i);

	if (!owner_replicated(c, o))
		return false;
	rec->number = i;
	rec->owner = o->id;
	return true;
}

static bool put_resource(const struct belay_core *c, uint32_t i, struct belay_record *rec)
{
	const struct resource *r = resource_at(c, i);

	if (r->gone || !r->known)
		return false;
	rec->number = i;
	rec->key = r->key;
	rec->epoch = r->epoch;
	return true;
}

static bool put_delegation(const struct belay_core *c, uint32_t i, struct belay_record *rec)
{
	const struct delegation *d = delegation_at(c, i);

	if (d->resource == 0)
		return false;
	rec->resource_number = d->resource;
	rec->node = c->node[d->node].id;
	rec->range = range_of(d->start, d->end);
	rec->mode = (enum belay_mode)d->mode;
	rec->epoch = d->epoch;
	rec->recalled = d->recalled;
	return true;
}

static bool put_lock(const struct belay_core *c, uint32_t i, struct belay_record *rec)
{
	const struct lock *l = lock_at(c, i);

	if (l->owner == 0 || !(l->replicated || l->staged))
		return false;
	rec->resource_number = l->resource;
	rec->owner_number = l->owner;
	rec->range = range_of(l->start, l->end);
	rec->mode = (enum belay_mode)l->mode;
	rec->staged = l->staged;
	return true;
}

static bool put_waiter(const struct belay_core *c, uint32_t i, struct belay_record *rec)
{
	const struct request *q = request_at(c, i);

	if (q->owner == 0 || q->queue == 0 || q->local)
		return false;
	rec->resource_number = q->resource;
	rec->owner_number = q->owner;
	rec->range = range_of(q->start, q->end);
	rec->mode = (enum belay_mode)q->mode;
	rec->request = q->number;
	rec->wait = q->wait;
	rec->test = q->test;
	rec->queue = q->queue;
	return true;
}

int belay_core_snapshot_next(const struct belay_core *c, struct belay_cursor *cursor,
			     struct belay_record *ret_record)
{
	static const struct {
		enum belay_record_type type;
		bool (*put)(const struct belay_core *c, uint32_t i, struct belay_record *rec);
	} phases[PHASES] = {
		{ BELAY_RECORD_NODE, put_node },
		{ BELAY_RECORD_OWNER, put_owner },
		{ BELAY_RECORD_RESOURCE, put_resource },
		{ BELAY_RECORD_DELEGATION, put_delegation },
		{ BELAY_RECORD_LOCK, put_lock },
		{ BELAY_RECORD_WAITER, put_waiter },
	};
	const uint32_t ends[PHASES] = { c->node_count,	     c->owners.fresh, c->resources.fresh,
					c->delegations.fresh, c->locks.fresh,  c->requests.fresh };
	struct belay_record rec = { .type = BELAY_RECORD_CORE };

	if (cursor->phase == 0) {
		put_core(c, &rec);
		*cursor = (struct belay_cursor){ .phase = 1, .count = 1 };
		*ret_record = rec;
		return 1;
	}
	for (; cursor->phase <= PHASES; cursor->phase++, cursor->at = 1) {
		rec.type = phases[cursor->phase - 1].type;
		while (cursor->at < ends[cursor->phase - 1]) {
			if (!phases[cursor->phase - 1].put(c, cursor->at++, &rec))
				continue;
			cursor->count++;
			*ret_record = rec;
			return 1;
		}
	}
	if (cursor->phase > PHASES + 1)
		return 0;
	cursor->phase++;
	rec = (struct belay_record){
		.type = BELAY_RECORD_END, .hash = digest_now(c), .count = cursor->count,
	};
	*ret_record = rec;
	return 1;
}

/* Loading. What is wrong with a record makes the whole snapshot worthless. */

static bool load_node(struct belay_core *c, const struct belay_record *rec)
{
	uint32_t i = index_node(c, rec->node);

	if (i == c->node_count)
		return false;
	/* What is delivered meanwhile goes on: all nodes change at once, at the end. */
	c->node[i].loaded = *rec;
	return i != c->self ||
	       (rec->standing == BELAY_NODE_MEMBER && rec->incarnation == c->incarnation);
}

static bool load_owner(struct belay_core *c, const struct belay_record *rec)
{
	if (rec->number == 0 || rec->number >= c->owners.max ||
	    index_node(c, rec->owner.node) == c->node_count)
		return false;
	c->load_owner[rec->number] = index_owner(c, &rec->owner, true);
	return c->load_owner[rec->number] != 0;
}

static bool load_resource(struct belay_core *c, const struct belay_record *rec)
{
	struct resource *r;
	uint32_t i;

	if (rec->number == 0 || rec->number >= c->resources.max)
		return false;
	i = index_resource(c, &rec->key, true);
	if (i == 0 || resource_at(c, i)->known || !resource_known(c, i))
		return false;
	r = resource_at(c, i);
	resource_hash_out(c, r);
	r->epoch = rec->epoch;
	resource_hash_in(c, r);
	c->load_resource[rec->number] = i;
	resource_touch(c, i);
	return true;
}

static bool load_delegation(struct belay_core *c, const struct belay_record *rec)
{
	uint32_t node = index_node(c, rec->node), r, d = 0;

	if (node == c->node_count || node == c->self || rec->resource_number >= c->resources.max ||
	    c->load_resource[rec->resource_number] == 0)
		return false;
	r = c->load_resource[rec->resource_number];
	while ((d = delegation_any(c, resource_at(c, r), rec->range, d)) != 0)
		if (delegation_at(c, d)->node == node || conflicting(delegation_at(c, d)->mode, rec->mode))
			return false;
	return delegation_load(c, r, node, rec) != 0;
}

/* Resource and owner of a LOCK or WAITER record. */
static bool load_names(const struct belay_core *c, const struct belay_record *rec,
		       uint32_t *ret_resource, uint32_t *ret_owner)
{
	if (rec->resource_number >= c->resources.max || rec->owner_number >= c->owners.max)
		return false;
	*ret_resource = c->load_resource[rec->resource_number];
	*ret_owner = c->load_owner[rec->owner_number];
	return *ret_resource != 0 && *ret_owner != 0;
}

static bool load_lock(struct belay_core *c, const struct belay_record *rec)
{
	uint32_t r, o, l;

	if (!load_names(c, rec, &r, &o))
		return false;
	if (table_blocks(c, resource_at(c, r), o, rec->range, BELAY_MODE_EX, SIGHT_ALL) ||
	    table_conflict(c, resource_at(c, r), rec->range, rec->mode, o) != 0)
		return false;
	l = table_add(c, r, o, rec->range, rec->mode, !rec->staged);
	if (l == 0)
		return false;
	lock_at(c, l)->staged = rec->staged;
	resource_unidle(c, r);
	return true;
}

static bool load_waiter(struct belay_core *c, const struct belay_record *rec)
{
	uint32_t r, o, i;
	struct request *q;

	if (!load_names(c, rec, &r, &o) || rec->queue == 0 || owner_at(c, o)->node == c->self ||
	    index_request(c, owner_at(c, o)->node, rec->request) != 0)
		return false;
	i = index_request_new(c, r, o, rec->request);
	if (i == 0)
		return false;
	q = request_at(c, i);
	q->start = rec->range.start;
	q->end = rec->range.end;
	q->mode = (uint8_t)rec->mode;
	q->wait = rec->wait;
	q->test = rec->test;
	queue_add(c, i, rec->queue, false);
	return true;
}

static bool load_end(struct belay_core *c, const struct belay_record *rec)
{
	struct belay_op op = { .type = BELAY_OP_SYNCED };
	struct belay_action replay = { .type = BELAY_ACTION_REPLAY };
	struct belay_action synced = { .type = BELAY_ACTION_SYNCED };

	for (uint32_t i = 0; i < c->node_count; i++) {
		const struct belay_record *l = &c->node[i].loaded;

		if (l->type != BELAY_RECORD_NODE)
			return false;
		c->node[i].standing = l->standing;
		c->node[i].synced = l->synced;
		c->node[i].incarnation = l->incarnation;
		c->node[i].seq = l->seq;
	}
	c->place = c->loaded_place;
	c->token = c->loaded_token;
	if (rec->count + 1 != c->loaded || rec->hash != digest_now(c))
		return false;
	c->loading = false;
	c->synced = true;
	/* What is fed again begins behind this node's own HELLO, perhaps within its frame. */
	c->from = c->self;
	c->from_incarnation = c->incarnation;
	c->from_seq = c->node[c->self].seq + 1;
	c->from_new = false;
	core_send(c, &op, true, 0, 0, 0);
	/* They may meet what this node has from a former life. */
	queue_confirm_all(c);
	core_emit(c, &replay);
	core_emit(c, &synced);
	member_serve_check(c);
	return true;
}

void snapshot_record(struct belay_core *c, const struct belay_record *rec)
{
	bool good = false;

	if (c->synced || c->stale || c->start_sent || !c->node[c->self].hello ||
	    (!c->loading && rec->type != BELAY_RECORD_CORE))
		return;
	c->loaded++;
	switch (rec->type) {
	case BELAY_RECORD_CORE:
		if (c->loading)
			snapshot_clear(c);
		c->loading = good = true;
		c->loaded = 1;
		c->loaded_place = rec->place;
		c->loaded_token = rec->token;
		for (uint32_t i = 0; i < c->node_count; i++)
			c->node[i].loaded.type = BELAY_RECORD_CORE;
		break;
	case BELAY_RECORD_NODE:
		good = load_node(c, rec);
		break;
	case BELAY_RECORD_OWNER:
		good = load_owner(c, rec);
		break;
	case BELAY_RECORD_RESOURCE:
		good = load_resource(c, rec);
		break;
	case BELAY_RECORD_DELEGATION:
		good = load_delegation(c, rec);
		break;
	case BELAY_RECORD_LOCK:
		good = load_lock(c, rec);
		break;
	case BELAY_RECORD_WAITER:
		good = load_waiter(c, rec);
		break;
	case BELAY_RECORD_END:
		good = load_end(c, rec);
		break;
	default:
		break;
	}
	if (!good)
		core_isolate(c, "the snapshot of the lock table is damaged or does not agree with its own digest");
}

/* Clearing. */

static bool holds_early(const struct belay_core *c, uint32_t owner)
{
	for (uint32_t i = owner_at(c, owner)->requests; i != 0; i = request_at(c, i)->owner_next)
		if (request_at(c, i)->early && !request_at(c, i)->ended)
			return true;
	return false;
}

/* A client that held something has lost it; one that only waited waits again. */
static void clear_own_client(struct belay_core *c, uint32_t cl)
{
	struct belay_action lost = { .type = BELAY_ACTION_LOST, .client = client_at(c, cl)->id };
	/* What the node itself holds the others keep for it. */
	bool loses = lost.client != BELAY_CLIENT_NODE, held = client_at(c, cl)->loans != 0;
	uint32_t o, next_o, i, next;

	loan_void(c, cl);
	if (index_client(c, c->self, lost.client) == 0) {
		core_emit(c, &lost); /* loans were all it had */
		return;
	}
	for (o = client_at(c, cl)->owners; o != 0; o = owner_at(c, o)->client_next)
		held |= owner_at(c, o)->locks != 0 || holds_early(c, o);
	for (o = client_at(c, cl)->owners; o != 0; o = next_o) {
		next_o = owner_at(c, o)->client_next;
		while ((i = owner_at(c, o)->locks) != 0)
			table_remove(c, i);
		if (owner_at(c, o)->requests == 0) {
			index_owner_release(c, o);
			continue;
		}
		for (i = owner_at(c, o)->requests; i != 0; i = next) {
			next = request_at(c, i)->owner_next;
			request_void(c, i, held && loses);
		}
	}
	if (held && loses)
		core_emit(c, &lost);
}

static void clear_resources(struct belay_core *c)
{
	for (uint32_t i = 1; i < c->delegations.fresh; i++) {
		const struct delegation *d = delegation_at(c, i);

		if (d->resource != 0)
			delegation_end(c, i, range_of(d->start, d->end));
	}
	for (uint32_t i = 1; i < c->resources.fresh; i++) {
		struct resource *r = resource_at(c, i);

		if (r->gone)
			continue;
		assert(r->locks == 0 && r->waiting == 0);
		if (r->local != 0)
			local_at(c, r->local)->inflight = 0;
		if (r->known)
			resource_forget(c, i);
		else
			index_resource_release(c, i);
	}
}

void snapshot_clear(struct belay_core *c)
{
	uint32_t cl, next, i;

	for (cl = c->node[c->self].clients; cl != 0; cl = next) {
		next = client_at(c, cl)->node_next;
		clear_own_client(c, cl);
	}
	for (uint32_t n = 0; n < c->node_count; n++) {
		if (n == c->self)
			continue;
		for (cl = c->node[n].clients; cl != 0; cl = next) {
			next = client_at(c, cl)->node_next;
			(void)client_release(c, cl, true);
		}
	}
	queue_scan_forget(c);
	while ((i = c->sent_head) != 0) {
		c->sent_head = sent_at(c, i)->next;
		pool_put(&c->sents, i);
	}
	c->sent_tail = 0;
	clear_resources(c);
	assert(c->digest == 0 && c->locks_replicated == 0 && c->waiters_replicated == 0 &&
	       c->resources_replicated == 0);
	memset(c->digests, 0, sizeof(c->digests));
	memset(c->hint, 0, sizeof(c->hint));
}
