/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/siphash.h"

struct state {
	uint64_t v0, v1, v2, v3;
};

static uint64_t load(const uint8_t *bytes, size_t size)
{
	uint64_t value = 0;

	for (size_t i = 0; i < size; i++)
		value |= (uint64_t)bytes[i] << (8 * i);
	return value;
}

static void store(uint8_t *bytes, uint64_t value)
{
	for (unsigned i = 0; i < 8; i++)
		bytes[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t rotate(uint64_t value, unsigned by)
{
	return value << by | value >> (64 - by);
}

static void rounds(struct state *s, unsigned count)
{
	while (count-- > 0) {
		s->v0 += s->v1;
		s->v1 = rotate(s->v1, 13) ^ s->v0;
		s->v0 = rotate(s->v0, 32);
		s->v2 += s->v3;
		s->v3 = rotate(s->v3, 16) ^ s->v2;
		s->v0 += s->v3;
		s->v3 = rotate(s->v3, 21) ^ s->v0;
		s->v2 += s->v1;
		s->v1 = rotate(s->v1, 17) ^ s->v2;
		s->v2 = rotate(s->v2, 32);
	}
}

static void block(struct state *s, uint64_t word)
{
	s->v3 ^= word;
	rounds(s, 2);
	s->v0 ^= word;
}

void siphash128(const uint8_t key[16], const void *data, size_t size, uint8_t ret_hash[16])
{
	const uint8_t *at = data;
	uint64_t k0 = load(key, 8), k1 = load(key + 8, 8);
	struct state s = {
		.v0 = k0 ^ UINT64_C(0x736f6d6570736575),
		.v1 = k1 ^ UINT64_C(0x646f72616e646f6d) ^ 0xee,
		.v2 = k0 ^ UINT64_C(0x6c7967656e657261),
		.v3 = k1 ^ UINT64_C(0x7465646279746573),
	};
	size_t left = size;

	for (; left >= 8; left -= 8, at += 8)
		block(&s, load(at, 8));
	block(&s, load(at, left) | (uint64_t)size << 56);
	s.v2 ^= 0xee;
	rounds(&s, 4);
	store(ret_hash, s.v0 ^ s.v1 ^ s.v2 ^ s.v3);
	s.v1 ^= 0xdd;
	rounds(&s, 4);
	store(ret_hash + 8, s.v0 ^ s.v1 ^ s.v2 ^ s.v3);
}
