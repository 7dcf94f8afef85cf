/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keys in hash tables. */
#ifndef BELAY_DAEMON_KEY_H
#define BELAY_DAEMON_KEY_H

#include <stddef.h>
#include <string.h>

#include "core/types.h"

static inline size_t key_hash(const struct belay_key *key)
{
	uint64_t low, high;

	memcpy(&low, key->id, 8);
	memcpy(&high, key->id + 8, 8);
	low = (low ^ key->lockspace) * UINT64_C(0x9e3779b97f4a7c15);
	high = (high + (low >> 32)) * UINT64_C(0xc2b2ae3d27d4eb4f);
	return (size_t)(high ^ high >> 29 ^ low);
}

static inline bool key_same(const struct belay_key *a, const struct belay_key *b)
{
	return a->lockspace == b->lockspace && memcmp(a->id, b->id, sizeof(a->id)) == 0;
}

#endif
