/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fixed pools of equal items, named by 32-bit index; 0 names none. Half the
 * size of pointers, and a pool that was reserved but not used costs nothing.
 * An index below `fresh` was used before; freed ones are reused last in,
 * first out, so that the touched part of a pool stays small. The first four bytes of a
 * freed item are the pool's: whether one is in use, another field has to say.
 */
#ifndef BELAY_CORE_POOL_H
#define BELAY_CORE_POOL_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct pool {
	uint8_t *base;
	uint32_t item;		/* bytes of one item, at least 4 */
	uint32_t max;		/* items, the unused item 0 included */
	uint32_t fresh;		/* first index never used */
	uint32_t freed;		/* head of the list of freed items */
	uint32_t count;		/* items in use */
};

static inline void pool_init(struct pool *p, void *base, uint32_t item, uint32_t max)
{
	*p = (struct pool){ .base = base, .item = item, .max = max, .fresh = 1 };
}

static inline void *pool_at(const struct pool *p, uint32_t i)
{
	assert(i != 0 && i < p->fresh);
	return p->base + (size_t)i * p->item;
}

/* A zeroed item's index, or 0 when the pool is used up. */
static inline uint32_t pool_get(struct pool *p)
{
	uint32_t i = p->freed;

	if (i != 0)
		memcpy(&p->freed, pool_at(p, i), sizeof(p->freed));
	else if (p->fresh < p->max)
		i = p->fresh++;
	else
		return 0;
	memset(pool_at(p, i), 0, p->item);
	p->count++;
	return i;
}

static inline void pool_put(struct pool *p, uint32_t i)
{
	assert(p->count > 0);
	memcpy(pool_at(p, i), &p->freed, sizeof(p->freed));
	p->freed = i;
	p->count--;
}

#endif
