/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/handle.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_MIN 8u

void handles_init(struct handles *h, uint32_t max)
{
	*h = (struct handles){ .max = max };
}

void handles_done(struct handles *h)
{
	free(h->handle);
}

static int handles_grow(struct handles *h)
{
	uint32_t size = h->size > 0 ? 2 * h->size : SIZE_MIN;
	struct handle *handle;

	if (size > h->max)
		size = h->max;
	handle = realloc(h->handle, size * sizeof(*handle));
	if (!handle)
		return -ENOMEM;
	h->handle = handle;
	h->size = size;
	return 0;
}

int handles_add(struct handles *h, const struct belay_key *key, uint32_t *ret_number)
{
	uint32_t number = h->free;
	int r;

	if (number == 0) {
		if (h->used == h->max)
			return -EMFILE;
		if (h->used == h->size) {
			r = handles_grow(h);
			if (r < 0)
				return r;
		}
		number = ++h->used;
	} else {
		h->free = h->handle[number - 1].next_free;
	}
	h->handle[number - 1] = (struct handle){ .key = *key, .open = true };
	h->open++;
	*ret_number = number;
	return 0;
}

void handles_remove(struct handles *h, uint32_t number)
{
	struct handle *handle = handles_find(h, number);

	assert(handle && handle->requests == 0);
	handle->open = false;
	handle->next_free = h->free;
	h->free = number;
	h->open--;
}

struct handle *handles_find(const struct handles *h, uint32_t number)
{
	if (number == 0 || number > h->used || !h->handle[number - 1].open)
		return NULL;
	return &h->handle[number - 1];
}

void requests_init(struct requests *r, uint32_t max)
{
	*r = (struct requests){ .max = max };
}

void requests_done(struct requests *r)
{
	free(r->slot);
}

/* Clients count their numbers up: neighbours would cluster without a hash. */
static uint32_t home(const struct requests *r, uint32_t number)
{
	return (number * UINT32_C(0x9e3779b1)) >> 7 & (r->size - 1);
}

static struct request *find(const struct requests *r, uint32_t number)
{
	uint32_t at = home(r, number);

	while (r->slot[at].number != 0 && r->slot[at].number != number)
		at = (at + 1) & (r->size - 1);
	return &r->slot[at];
}

static int requests_grow(struct requests *r)
{
	struct requests bigger = { .size = r->size > 0 ? 2 * r->size : SIZE_MIN };

	bigger.slot = calloc(bigger.size, sizeof(*bigger.slot));
	if (!bigger.slot)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->size; i++)
		if (r->slot[i].number != 0)
			*find(&bigger, r->slot[i].number) = r->slot[i];
	free(r->slot);
	r->slot = bigger.slot;
	r->size = bigger.size;
	return 0;
}

int requests_add(struct requests *r, const struct request *request)
{
	struct request *slot;
	int error;

	assert(request->number != 0);
	if (r->count == r->max)
		return -ENOLCK;
	if (4 * (r->count + 1) > 3 * r->size) {
		error = requests_grow(r);
		if (error < 0)
			return error;
	}
	slot = find(r, request->number);
	if (slot->number != 0)
		return -EEXIST;
	*slot = *request;
	r->count++;
	return 0;
}

struct request *requests_find(const struct requests *r, uint32_t number)
{
	struct request *slot;

	if (r->size == 0 || number == 0)
		return NULL;
	slot = find(r, number);
	return slot->number != 0 ? slot : NULL;
}

/* Close the gap: what was pushed past it must be found without it. */
static void close_gap(struct requests *r, uint32_t gap)
{
	uint32_t mask = r->size - 1, at = gap;

	for (;;) {
		at = (at + 1) & mask;
		if (r->slot[at].number == 0)
			break;
		if (((at - home(r, r->slot[at].number)) & mask) >= ((at - gap) & mask)) {
			r->slot[gap] = r->slot[at];
			gap = at;
		}
	}
	r->slot[gap].number = 0;
}

int requests_take(struct requests *r, uint32_t number, struct request *ret_request)
{
	const struct request *slot = requests_find(r, number);

	if (!slot)
		return -ENOENT;
	*ret_request = *slot;
	close_gap(r, (uint32_t)(slot - r->slot));
	r->count--;
	return 0;
}
