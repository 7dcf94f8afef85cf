/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * malloc() for this library alone, not the program's: that one may be in the
 * middle of an allocation when a signal handler of it locks or closes a file. The
 * version script keeps these names inside.
 *
 * Blocks of powers of two; what is freed is kept for the next one of that size.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/preload/preload.h"

#ifndef __SANITIZE_ADDRESS__

#define CLASS_MIN 5u			/* 32 bytes, of which 16 are the head */
#define CLASS_MAX 16u			/* larger ones are mapped one by one */
#define CHUNK_SIZE ((size_t)1 << (CLASS_MAX + 1))

/* What malloc() promises: aligned for everything. */
struct block {
	_Alignas(16) size_t size;	/* of all of it; 0: this stands within another one */
	struct block *next;		/* while it is free; if it stands within another: that */
};

static struct {
	pthread_mutex_t mutex;
	struct block *free[CLASS_MAX + 1];
	char *chunk;
	size_t left;
} arena = { .mutex = PTHREAD_MUTEX_INITIALIZER };

void alloc_abandon(void)
{
	memset(arena.free, 0, sizeof(arena.free));
	arena.left = 0;
	pthread_mutex_init(&arena.mutex, NULL);
}

static void enter(sigset_t *mask)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, mask);
	pthread_mutex_lock(&arena.mutex);
}

static void leave(const sigset_t *mask)
{
	pthread_mutex_unlock(&arena.mutex);
	pthread_sigmask(SIG_SETMASK, mask, NULL);
}

static void *map(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static struct block *carve(size_t size)
{
	struct block *block;

	if (arena.left < size) {
		char *chunk = map(CHUNK_SIZE);

		if (!chunk)
			return NULL;
		arena.chunk = chunk;
		arena.left = CHUNK_SIZE;
	}
	block = (struct block *)(void *)arena.chunk;
	arena.chunk += size;
	arena.left -= size;
	return block;
}

static unsigned class_of(size_t size)
{
	unsigned class = CLASS_MIN;

	while ((size_t)1 << class < size)
		class++;
	return class;
}

/* Not in malloc() itself: of that and a memset() compilers make a calloc(). */
static void *take(size_t wanted)
{
	size_t size = wanted + sizeof(struct block);
	struct block *block;
	sigset_t mask;
	unsigned class;

	if (size < wanted)
		goto fail;
	if (size > (size_t)1 << CLASS_MAX) {
		block = map(size);
	} else {
		class = class_of(size);
		size = (size_t)1 << class;
		enter(&mask);
		block = arena.free[class];
		if (block)
			arena.free[class] = block->next;
		else
			block = carve(size);
		leave(&mask);
	}
	if (!block)
		goto fail;
	block->size = size;
	return block + 1;

fail:
	errno = ENOMEM;
	return NULL;
}

void *malloc(size_t size)
{
	return take(size);
}

void free(void *memory)
{
	struct block *block = memory;
	sigset_t mask;
	unsigned class;

	if (!block--)
		return;
	if (block->size == 0)
		block = block->next;
	if (block->size > (size_t)1 << CLASS_MAX) {
		munmap(block, block->size);
		return;
	}
	class = class_of(block->size);
	enter(&mask);
	block->next = arena.free[class];
	arena.free[class] = block;
	leave(&mask);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	char *memory;
	struct block *block;
	size_t offset;

	if (alignment <= sizeof(struct block))
		return take(size);
	memory = size > SIZE_MAX - alignment ? NULL : take(size + alignment);
	if (!memory)
		return NULL;
	offset = (uintptr_t)memory % alignment;
	if (offset == 0)
		return memory;
	/* At least a head's size behind it. */
	block = (struct block *)(void *)(memory + alignment - offset) - 1;
	block->size = 0;
	block->next = (struct block *)(void *)memory - 1;
	return block + 1;
}

void *calloc(size_t count, size_t size)
{
	size_t total;
	void *memory;

	if (__builtin_mul_overflow(count, size, &total)) {
		errno = ENOMEM;
		return NULL;
	}
	memory = take(total);
	if (memory)
		memset(memory, 0, total);
	return memory;
}

void *realloc(void *old, size_t size)
{
	const struct block *block = (struct block *)old - 1;
	void *memory = take(size);
	size_t room;

	if (!memory || !old)
		return memory;
	assert(block->size > 0);	/* nobody resizes what is aligned */
	room = block->size - sizeof(struct block);
	memcpy(memory, old, room < size ? room : size);
	free(old);
	return memory;
}

#else

void alloc_abandon(void)
{
}

#endif
