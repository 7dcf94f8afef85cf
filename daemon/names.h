/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Paths and names of the resources that clients of this node have open, by
 * key: for people, who cannot read keys. Counted, as handles come and go.
 */
#ifndef BELAY_DAEMON_NAMES_H
#define BELAY_DAEMON_NAMES_H

#include <stddef.h>

#include "core/types.h"

struct name;

struct names {
	struct name **bucket;
	size_t bucket_count, count;
};

/* -ENOMEM */
int names_init(struct names *names);
void names_done(struct names *names);

/* One more handle of @key; the text of the first one stays. -ENOMEM */
int names_add(struct names *names, const struct belay_key *key, const char *text, size_t size);
/* One fewer. The key must have been added. */
void names_remove(struct names *names, const struct belay_key *key);

/* NULL: not open here. Valid until the next call that changes names. */
const char *names_find(const struct names *names, const struct belay_key *key);

#endif
