/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/names.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/key.h"

struct name {
	struct name *next;
	struct belay_key key;
	uint32_t handles;
	char text[];
};

#define BUCKETS_MIN 64u

int names_init(struct names *names)
{
	*names = (struct names){ .bucket_count = BUCKETS_MIN };
	names->bucket = calloc(BUCKETS_MIN, sizeof(struct name *));
	return names->bucket ? 0 : -ENOMEM;
}

void names_done(struct names *names)
{
	for (size_t i = 0; i < names->bucket_count && names->bucket; i++) {
		struct name *name;

		while ((name = names->bucket[i])) {
			names->bucket[i] = name->next;
			free(name);
		}
	}
	free(names->bucket);
}

/* Where the entry, or the end of its chain, hangs. */
static struct name **find(const struct names *names, const struct belay_key *key)
{
	struct name **at = &names->bucket[key_hash(key) & (names->bucket_count - 1)];

	while (*at && !key_same(&(*at)->key, key))
		at = &(*at)->next;
	return at;
}

/* Longer chains if there is no memory: slower, not wrong. */
static void grow(struct names *names)
{
	struct names bigger = { .bucket_count = 2 * names->bucket_count, .count = names->count };

	bigger.bucket = calloc(bigger.bucket_count, sizeof(struct name *));
	if (!bigger.bucket)
		return;
	for (size_t i = 0; i < names->bucket_count; i++) {
		struct name *name, **at;

		while ((name = names->bucket[i])) {
			names->bucket[i] = name->next;
			name->next = NULL;
			at = find(&bigger, &name->key);
			*at = name;
		}
	}
	free(names->bucket);
	*names = bigger;
}

int names_add(struct names *names, const struct belay_key *key, const char *text, size_t size)
{
	struct name **at = find(names, key), *name = *at;

	if (name) {
		name->handles++;
		return 0;
	}
	name = malloc(sizeof(*name) + size + 1);
	if (!name)
		return -ENOMEM;
	name->next = NULL;
	name->key = *key;
	name->handles = 1;
	memcpy(name->text, text, size);
	name->text[size] = '\0';
	*at = name;
	if (++names->count > names->bucket_count)
		grow(names);
	return 0;
}

void names_remove(struct names *names, const struct belay_key *key)
{
	struct name **at = find(names, key), *name = *at;

	assert(name);
	if (--name->handles > 0)
		return;
	*at = name->next;
	names->count--;
	free(name);
}

const char *names_find(const struct names *names, const struct belay_key *key)
{
	const struct name *name = *find(names, key);

	return name ? name->text : NULL;
}
