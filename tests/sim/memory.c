/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory of the simulator: an arena for what lives as long as a run, and growing arrays. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"

#define BLOCK_BYTES (256u * 1024)

struct arena_block {
	struct arena_block *next;
	size_t size, used;
	_Alignas(16) unsigned char data[];
};

static void *must_alloc(size_t size)
{
	void *p = malloc(size);

	if (!p) {
		fputs("sim: out of memory\n", stderr);
		exit(EXIT_FAILURE);
	}
	return p;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	struct arena_block *block;
	void *p;

	size = (size + 15) & ~(size_t)15;
	while (arena->current && arena->current->size - arena->current->used < size) {
		if (!arena->current->next)
			break;
		arena->current = arena->current->next;
	}
	block = arena->current;
	if (!block || block->size - block->used < size) {
		size_t room = size > BLOCK_BYTES ? size : BLOCK_BYTES;
		struct arena_block *fresh = must_alloc(sizeof(*fresh) + room);

		*fresh = (struct arena_block){ .size = room };
		if (block)
			block->next = fresh;
		else
			arena->first = fresh;
		arena->current = block = fresh;
	}
	p = block->data + block->used;
	block->used += size;
	memset(p, 0, size);
	return p;
}

void arena_reset(struct arena *arena)
{
	for (struct arena_block *b = arena->first; b; b = b->next)
		b->used = 0;
	arena->current = arena->first;
}

void arena_done(struct arena *arena)
{
	struct arena_block *next;

	for (struct arena_block *b = arena->first; b; b = next) {
		next = b->next;
		free(b);
	}
	*arena = (struct arena){ 0 };
}

void *vector_push(struct vector *v, size_t size, const void *element)
{
	void *p;

	assert(v->size == 0 || v->size == size);
	v->size = size;
	if (v->count == v->room) {
		size_t room = v->room ? v->room * 2 : 64;
		void *data = realloc(v->data, room * size);

		if (!data) {
			fputs("sim: out of memory\n", stderr);
			exit(EXIT_FAILURE);
		}
		v->data = data;
		v->room = room;
	}
	p = (unsigned char *)v->data + v->count++ * size;
	memcpy(p, element, size);
	return p;
}

void vector_done(struct vector *v)
{
	free(v->data);
	*v = (struct vector){ 0 };
}
