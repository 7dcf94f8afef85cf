/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/resource.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "daemon/key.h"

#define BUCKETS_MIN 8u

void resources_done(struct resources *r)
{
	assert(r->count == 0);
	free(r->bucket);
}

static struct resource **find(const struct resources *r, const struct belay_key *key)
{
	struct resource **at = &r->bucket[key_hash(key) & (r->bucket_count - 1)];

	while (*at && !key_same(&(*at)->key, key))
		at = &(*at)->next;
	return at;
}

/* Longer chains if there is no memory: slower, not wrong. */
static void grow(struct resources *r)
{
	struct resources bigger = *r;

	bigger.bucket_count = r->bucket_count > 0 ? 2 * r->bucket_count : BUCKETS_MIN;
	bigger.bucket = calloc(bigger.bucket_count, sizeof(struct resource *));
	if (!bigger.bucket)
		return;
	for (size_t i = 0; i < r->bucket_count; i++) {
		struct resource *resource, **at;

		while ((resource = r->bucket[i])) {
			r->bucket[i] = resource->next;
			resource->next = NULL;
			at = find(&bigger, &resource->key);
			*at = resource;
		}
	}
	free(r->bucket);
	*r = bigger;
}

static int add(struct resources *r, const struct belay_key *key, struct resource **ret_resource)
{
	struct resource *resource, **at;

	if (r->count >= r->bucket_count)
		grow(r);
	if (r->bucket_count == 0)
		return -ENOMEM;
	resource = calloc(1, sizeof(*resource));
	if (!resource)
		return -ENOMEM;
	resource->key = *key;
	resource->number = ++r->number;
	TAILQ_INIT(&resource->loans);
	at = find(r, key);
	*at = resource;
	r->count++;
	*ret_resource = resource;
	return 0;
}

int resources_get(struct resources *r, const struct belay_key *key, struct resource **ret_resource)
{
	struct resource *resource = r->bucket_count > 0 ? *find(r, key) : NULL;
	int error = resource ? 0 : add(r, key, &resource);

	if (error < 0)
		return error;
	resource->handles++;
	resource->users++;
	*ret_resource = resource;
	return 0;
}

bool resources_close(struct resources *r, struct resource *resource)
{
	struct resource **at;

	assert(resource->handles > 0);
	if (--resource->handles > 0)
		return false;
	at = find(r, &resource->key);
	assert(*at == resource);
	*at = resource->next;
	r->count--;
	return true;
}

void resources_put(struct resource *resource)
{
	assert(resource->users > resource->handles);
	if (--resource->users > 0)
		return;
	assert(TAILQ_EMPTY(&resource->loans));
	free(resource);
}
