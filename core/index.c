/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finding things by name: chained hashes over pools, and lists of requests. */
#include "core/internal.h"

uint64_t index_mix(uint64_t a, uint64_t b)
{
	uint64_t x = a ^ (b * UINT64_C(0x9e3779b97f4a7c15));

	x ^= x >> 32;
	x *= UINT64_C(0xd6e8feb86659fd93);
	x ^= x >> 32;
	x *= UINT64_C(0xd6e8feb86659fd93);
	return x ^ (x >> 32);
}

uint64_t index_key(const struct belay_key *key)
{
	uint64_t a, b;

	memcpy(&a, key->id, sizeof(a));
	memcpy(&b, key->id + 8, sizeof(b));
	return index_mix(index_mix(a, b), key->lockspace);
}

uint64_t index_owned(const struct belay_key *key, const struct belay_owner *owner)
{
	uint64_t h = index_mix(index_key(key), ((uint64_t)owner->node << 32) | owner->client);

	return index_mix(h, owner->key * BELAY_KIND_COUNT + owner->kind);
}

uint32_t index_node(const struct belay_core *c, uint32_t id)
{
	uint32_t low = 0, high = c->node_count;

	while (low < high) {
		uint32_t mid = (low + high) / 2;

		if (c->node[mid].id < id)
			low = mid + 1;
		else
			high = mid;
	}
	return low < c->node_count && c->node[low].id == id ? low : c->node_count;
}

/* Clients. */

static uint32_t *client_bucket(const struct belay_core *c, uint32_t node, uint32_t id)
{
	return &c->client_hash[index_mix(node + 1, id) & c->client_mask];
}

uint32_t index_client(const struct belay_core *c, uint32_t node, uint32_t id)
{
	uint32_t i;

	for (i = *client_bucket(c, node, id); i != 0; i = client_at(c, i)->hash_next)
		if (client_at(c, i)->node == node && client_at(c, i)->id == id)
			return i;
	return 0;
}

static uint32_t client_make(struct belay_core *c, uint32_t node, uint32_t id)
{
	uint32_t *bucket = client_bucket(c, node, id);
	uint32_t i = pool_get(&c->clients);
	struct client *cl;

	if (i == 0)
		return 0;
	cl = client_at(c, i);
	cl->node = node;
	cl->id = id;
	cl->hash_next = *bucket;
	*bucket = i;
	cl->node_next = c->node[node].clients;
	if (cl->node_next != 0)
		client_at(c, cl->node_next)->node_prev = i;
	c->node[node].clients = i;
	return i;
}

void index_client_release(struct belay_core *c, uint32_t i)
{
	struct client *cl = client_at(c, i);
	uint32_t *at = client_bucket(c, cl->node, cl->id);

	if (cl->owners != 0 || cl->loans != 0)
		return;
	while (*at != i)
		at = &client_at(c, *at)->hash_next;
	*at = cl->hash_next;
	if (cl->node_prev != 0)
		client_at(c, cl->node_prev)->node_next = cl->node_next;
	else
		c->node[cl->node].clients = cl->node_next;
	if (cl->node_next != 0)
		client_at(c, cl->node_next)->node_prev = cl->node_prev;
	pool_put(&c->clients, i);
}

/* Owners. */

static uint32_t *owner_bucket(const struct belay_core *c, const struct belay_owner *id)
{
	uint64_t h = index_mix(((uint64_t)id->node << 32) | id->client, id->key + id->kind);

	return &c->owner_hash[h & c->owner_mask];
}

static bool owner_is(const struct belay_owner *a, const struct belay_owner *b)
{
	return a->node == b->node && a->client == b->client && a->key == b->key &&
	       a->kind == b->kind;
}

uint32_t index_owner(struct belay_core *c, const struct belay_owner *id, bool make)
{
	uint32_t *bucket = owner_bucket(c, id);
	uint32_t node = index_node(c, id->node), i, client;
	struct owner *o;

	assert(node < c->node_count);
	for (i = *bucket; i != 0; i = owner_at(c, i)->hash_next)
		if (owner_is(&owner_at(c, i)->id, id))
			return i;
	if (!make)
		return 0;

	client = index_client(c, node, id->client);
	i = pool_get(&c->owners);
	if (i == 0)
		return 0;
	if (client == 0)
		client = client_make(c, node, id->client);
	if (client == 0) {
		pool_put(&c->owners, i);
		return 0;
	}
	o = owner_at(c, i);
	o->id = *id;
	o->node = node;
	o->client = client;
	o->hash_next = *bucket;
	*bucket = i;
	o->client_next = client_at(c, client)->owners;
	if (o->client_next != 0)
		owner_at(c, o->client_next)->client_prev = i;
	client_at(c, client)->owners = i;
	return i;
}

void index_owner_release(struct belay_core *c, uint32_t i)
{
	struct owner *o = owner_at(c, i);
	uint32_t *at;

	if (o->locks != 0 || o->requests != 0)
		return;
	at = owner_bucket(c, &o->id);
	while (*at != i)
		at = &owner_at(c, *at)->hash_next;
	*at = o->hash_next;
	if (o->client_prev != 0)
		owner_at(c, o->client_prev)->client_next = o->client_next;
	else
		client_at(c, o->client)->owners = o->client_next;
	if (o->client_next != 0)
		owner_at(c, o->client_next)->client_prev = o->client_prev;
	index_client_release(c, o->client);
	pool_put(&c->owners, i);
}

/* Resources. */

static uint32_t *resource_bucket(const struct belay_core *c, const struct belay_key *key)
{
	return &c->resource_hash[index_key(key) & c->resource_mask];
}

uint32_t index_resource(struct belay_core *c, const struct belay_key *key, bool make)
{
	uint32_t *bucket = resource_bucket(c, key);
	struct resource *r;
	uint32_t i;

	for (i = *bucket; i != 0; i = resource_at(c, i)->hash_next)
		if (memcmp(&resource_at(c, i)->key, key, sizeof(*key)) == 0)
			return i;
	if (!make || (i = pool_get(&c->resources)) == 0)
		return 0;
	r = resource_at(c, i);
	r->key = *key;
	r->hash_next = *bucket;
	*bucket = i;
	c->stats.resources[BELAY_STATE_UNOWNED]++;
	return i;
}

void index_resource_release(struct belay_core *c, uint32_t i)
{
	struct resource *r = resource_at(c, i);
	uint32_t *at;

	if (r->known || r->pins != 0 || r->waiting != 0 || r->scan)
		return;
	if (r->local != 0) {
		if (local_at(c, r->local)->inflight != 0)
			return;
		pool_put(&c->locals, r->local);
	}
	resource_unidle(c, i);
	assert(r->locks == 0);
	at = resource_bucket(c, &r->key);
	while (*at != i)
		at = &resource_at(c, *at)->hash_next;
	*at = r->hash_next;
	c->stats.resources[BELAY_STATE_UNOWNED]--;
	r->gone = true; /* walks over the pool know it by that */
	pool_put(&c->resources, i);
}

/* Requests. */

static uint32_t *request_bucket(const struct belay_core *c, uint32_t node, uint32_t number)
{
	return &c->request_hash[index_mix(node + 1, number) & c->request_mask];
}

uint32_t index_request_new(struct belay_core *c, uint32_t resource, uint32_t owner, uint32_t number)
{
	struct owner *o = owner_at(c, owner);
	uint32_t *bucket = request_bucket(c, o->node, number);
	uint32_t i = pool_get(&c->requests);
	struct request *q;

	if (i == 0)
		return 0;
	q = request_at(c, i);
	q->resource = resource;
	q->owner = owner;
	q->number = number;
	q->own = o->node == c->self;
	c->own_requests += q->own;
	q->hash_next = *bucket;
	*bucket = i;
	q->owner_next = o->requests;
	if (q->owner_next != 0)
		request_at(c, q->owner_next)->owner_prev = i;
	o->requests = i;
	resource_at(c, resource)->pins++;
	return i;
}

void index_request_free(struct belay_core *c, uint32_t i)
{
	struct request *q = request_at(c, i);
	struct owner *o = owner_at(c, q->owner);
	uint32_t *at = request_bucket(c, o->node, q->number);
	uint32_t resource = q->resource, owner = q->owner;

	assert(q->queue == 0);
	while (*at != i)
		at = &request_at(c, *at)->hash_next;
	*at = q->hash_next;
	if (q->owner_prev != 0)
		request_at(c, q->owner_prev)->owner_next = q->owner_next;
	else
		o->requests = q->owner_next;
	if (q->owner_next != 0)
		request_at(c, q->owner_next)->owner_prev = q->owner_prev;
	resource_at(c, resource)->pins--;
	c->own_requests -= q->own;
	q->owner = 0;
	pool_put(&c->requests, i);
	index_owner_release(c, owner);
	resource_touch(c, resource);
	index_resource_release(c, resource);
}

uint32_t index_request(const struct belay_core *c, uint32_t node, uint32_t number)
{
	uint32_t i;

	for (i = *request_bucket(c, node, number); i != 0; i = request_at(c, i)->hash_next)
		if (request_at(c, i)->number == number &&
		    owner_at(c, request_at(c, i)->owner)->node == node)
			return i;
	return 0;
}

void list_push(struct belay_core *c, struct list *l, uint32_t i)
{
	struct request *q = request_at(c, i);

	q->list_prev = l->tail;
	q->list_next = 0;
	if (l->tail != 0)
		request_at(c, l->tail)->list_next = i;
	else
		l->head = i;
	l->tail = i;
}

void list_sort_in(struct belay_core *c, struct list *l, uint32_t i)
{
	struct request *q = request_at(c, i);
	uint32_t before = l->tail;

	while (before != 0 && request_at(c, before)->stable_at > q->stable_at)
		before = request_at(c, before)->list_prev;
	q->list_prev = before;
	q->list_next = before != 0 ? request_at(c, before)->list_next : l->head;
	if (q->list_next != 0)
		request_at(c, q->list_next)->list_prev = i;
	else
		l->tail = i;
	if (before != 0)
		request_at(c, before)->list_next = i;
	else
		l->head = i;
}

void list_drop(struct belay_core *c, struct list *l, uint32_t i)
{
	struct request *q = request_at(c, i);

	if (q->list_prev != 0)
		request_at(c, q->list_prev)->list_next = q->list_next;
	else
		l->head = q->list_next;
	if (q->list_next != 0)
		request_at(c, q->list_next)->list_prev = q->list_prev;
	else
		l->tail = q->list_prev;
	q->list_prev = q->list_next = 0;
}
