/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/snapshot.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "daemon/clock.h"
#include "wire/wire.h"

struct chunk {
	struct chunk *next;
	size_t size;
	uint8_t bytes[];
};

struct snapshot {
	struct snapshot *next;
	uint32_t node;
	size_t pending;
	struct chunk *first, *last;
};

static void snapshot_free(struct snapshot *snap)
{
	struct chunk *chunk;

	while ((chunk = snap->first)) {
		snap->first = chunk->next;
		free(chunk);
	}
	free(snap);
}

static struct chunk *chunk_new(const struct wire_snapshot *head, struct wire_writer *w)
{
	struct chunk *chunk = malloc(sizeof(*chunk) + WIRE_MESSAGE_MAX);
	int r;

	if (!chunk)
		return NULL;
	chunk->next = NULL;
	r = wire_snapshot_begin(w, chunk->bytes, WIRE_MESSAGE_MAX, head);
	assert(r == 0);
	return chunk;
}

static void chunk_append(struct snapshot *snap, struct chunk *chunk, struct wire_writer *w)
{
	struct chunk *fit;

	chunk->size = wire_size(w);
	/* The last chunk is usually far from full. Shrinking cannot lose it. */
	fit = realloc(chunk, sizeof(*chunk) + chunk->size);
	if (fit)
		chunk = fit;
	if (snap->last)
		snap->last->next = chunk;
	else
		snap->first = chunk;
	snap->last = chunk;
	snap->pending += chunk->size;
}

/*
 * The head of a chunk says whether it is the last one, and the head comes
 * first: so END, which is always there and always last, has a chunk of its own.
 */
static int pack(struct snapshot *snap, const struct belay_core *core, struct wire_snapshot *head)
{
	struct belay_cursor cursor = { 0 };
	struct belay_record record;
	struct wire_writer w;
	struct chunk *chunk = NULL;
	int r;

	while (belay_core_snapshot_next(core, &cursor, &record)) {
		head->last = record.type == BELAY_RECORD_END;
		if (chunk && (head->last || wire_put_record(&w, &record) < 0)) {
			chunk_append(snap, chunk, &w);
			chunk = NULL;
			head->part++;
		} else if (chunk) {
			continue;
		}
		chunk = chunk_new(head, &w);
		if (!chunk)
			return -ENOMEM;
		r = wire_put_record(&w, &record);
		assert(r == 0);
	}
	assert(chunk && head->last);
	chunk_append(snap, chunk, &w);
	return 0;
}

int snapshots_add(struct snapshots *s, const struct belay_core *core, uint32_t node,
		  uint64_t incarnation)
{
	uint64_t start_us = clock_now_us(), took_us;
	struct wire_snapshot head = { .to = node, .to_incarnation = incarnation };
	struct snapshot *snap = calloc(1, sizeof(*snap)), **at;
	struct belay_frame self;
	struct belay_stats stats;

	if (!snap)
		return -ENOMEM;
	belay_core_stats(core, &stats);
	head.place = stats.place;
	belay_core_frame(core, &self);
	head.node = self.node;
	head.incarnation = self.incarnation;
	snap->node = node;
	if (pack(snap, core, &head) < 0) {
		snapshot_free(snap);
		return -ENOMEM;
	}
	snapshots_drop(s, node);
	for (at = &s->first; *at; at = &(*at)->next)
		;
	*at = snap;
	took_us = clock_now_us() - start_us;
	if (took_us > s->build_us_max)
		s->build_us_max = took_us;
	return 0;
}

void snapshots_drop(struct snapshots *s, uint32_t node)
{
	for (struct snapshot **at = &s->first; *at; ) {
		struct snapshot *snap = *at;

		if (snap->node == node) {
			*at = snap->next;
			snapshot_free(snap);
		} else {
			at = &snap->next;
		}
	}
}

bool snapshots_ready(const struct snapshots *s)
{
	return s->first && !s->in_flight;
}

int snapshots_send(struct snapshots *s, struct group *group)
{
	struct snapshot *snap = s->first;
	struct chunk *chunk = snap->first;
	int r = group->ops->send(group, chunk->bytes, chunk->size);

	if (r < 0)
		return r;
	s->in_flight = true;
	s->bytes += chunk->size;
	snap->pending -= chunk->size;
	snap->first = chunk->next;
	free(chunk);
	if (!snap->first) {
		s->sent++;
		s->first = snap->next;
		snapshot_free(snap);
	}
	return 0;
}

void snapshots_delivered(struct snapshots *s)
{
	s->in_flight = false;
}

size_t snapshots_pending(const struct snapshots *s)
{
	size_t pending = 0;

	for (const struct snapshot *snap = s->first; snap; snap = snap->next)
		pending += snap->pending;
	return pending;
}

void snapshots_clear(struct snapshots *s)
{
	while (s->first)
		snapshots_drop(s, s->first->node);
}
