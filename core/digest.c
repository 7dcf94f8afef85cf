/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Replicas compare. Each item of the replicated state has a hash, and their sum
 * is kept up to date as items come and go; at every DIGEST_EVERY-th place of the
 * order each node says what its sum is. Whoever disagrees with the rest is
 * not to be trusted, and isolates itself.
 */
#include "core/internal.h"

uint64_t digest_now(const struct belay_core *c)
{
	uint64_t h = c->digest;

	for (uint32_t i = 0; i < c->node_count; i++) {
		const struct node *n = &c->node[i];
		uint64_t x = index_mix(n->id, n->standing * 2u + n->synced);

		/* A former life's number is forgotten in its own time. */
		if (n->standing == BELAY_NODE_MEMBER || n->standing == BELAY_NODE_LEFT)
			x = index_mix(x, n->incarnation);
		h += x;
	}
	return index_mix(h, c->token);
}

static struct digest_place *slot(struct belay_core *c, uint64_t place)
{
	return &c->digests[place / DIGEST_EVERY % DIGEST_KEPT];
}

void digest_place(struct belay_core *c)
{
	struct belay_op op = { .type = BELAY_OP_DIGEST, .place = c->place };

	if (!c->synced || c->place % DIGEST_EVERY != 0)
		return;
	op.hash = digest_now(c);
	*slot(c, c->place) = (struct digest_place){
		.place = c->place, .hash = op.hash, .agree = 1,
	};
	core_send(c, &op, false, 0, 0, 0);
}

void digest_compare(struct belay_core *c, const struct belay_op *op)
{
	struct digest_place *d = slot(c, op->place);
	uint32_t synced = 0;

	if (!c->synced || c->from == c->self || d->place != op->place || d->agree == 0)
		return;
	c->stats.digests_compared++;
	if (d->hash == op->hash)
		d->agree++;
	else
		d->differ++;
	for (uint32_t i = 0; i < c->node_count; i++)
		synced += c->node[i].in_view && c->node[i].synced;
	/* All have spoken, or enough to know: the odd one out must go. Where two
	 * stand against two, nobody knows who is right, and all must. */
	if (d->differ > synced / 2 || (d->agree + d->differ >= synced && d->differ >= d->agree))
		core_isolate(c, "the lock table differs from the other nodes': stopped before it can do harm");
}
