/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "slot/ranges_inline.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* The order stands before the chunks: it is short, and never grows. */
#define ORDER_BYTES (SLOT_CHUNKS_MAX * sizeof(uint16_t))
#define CHUNKS_FIRST 4u
/* Neighbours that are both less than this full become one. */
#define CHUNK_SPARSE (SLOT_CHUNK_ENTRIES / 3)

_Static_assert(SLOT_CHUNKS_MAX <= UINT16_MAX + 1u, "a chunk's number has to fit");
/* Of two neighbours one is at least sparse, so that this is the fewest that the chunks hold. */
_Static_assert(SLOT_CHUNKS_MAX / 2 * CHUNK_SPARSE >= SLOT_HALF_ENTRIES / 2 + SLOT_CHUNK_ENTRIES,
	       "what a log holds has to fit");

static size_t bytes(uint32_t chunks)
{
	return ORDER_BYTES + chunks * sizeof(struct slot_chunk);
}

void slot_ranges_done(struct slot_ranges *set)
{
	if (set->order)
		munmap(set->order, bytes(set->chunks));
	*set = (struct slot_ranges){ 0 };
}

void slot_ranges_clear(struct slot_ranges *set)
{
	/* The order is a permutation of all chunks, whichever are in use. */
	set->count = set->used = set->at = set->index = 0;
	set->ghost = SLOT_UNLOCK;
	set->hot = NULL;
}

int slot_ranges_grow(struct slot_ranges *set)
{
	uint32_t i, chunks = set->chunks ? set->chunks * 2 : CHUNKS_FIRST;
	void *memory;

	if (chunks > SLOT_CHUNKS_MAX)
		return -ENOSPC;
	if (set->order)
		memory = mremap(set->order, bytes(set->chunks), bytes(chunks), MREMAP_MAYMOVE);
	else
		memory = mmap(NULL, bytes(chunks), PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return -ENOMEM;
	set->order = memory;
	set->chunk = (struct slot_chunk *)(void *)((char *)memory + ORDER_BYTES);
	for (i = set->chunks; i < chunks; i++)
		set->order[i] = (uint16_t)i;
	set->chunks = chunks;
	if (set->used > 0)
		set->hot = &set->chunk[set->order[set->at]];
	return 0;
}

/* ---- places ---- */

/* Entry @index of the chunk that is number @at in order. The end is that of the last chunk; of an empty set (0, 0). */
struct place {
	uint32_t at, index;
};

static inline struct slot_chunk *chunk_at(const struct slot_ranges *set, uint32_t at)
{
	return &set->chunk[set->order[at]];
}

/* NULL at the end. */
static inline struct slot_entry *entry_at(const struct slot_ranges *set, struct place p)
{
	struct slot_chunk *c;

	if (p.at >= set->used)
		return NULL;
	c = chunk_at(set, p.at);
	return p.index < c->count ? &c->entry[p.index] : NULL;
}

/* The end of a chunk is the beginning of the next, if there is one. */
static inline struct place normal(const struct slot_ranges *set, struct place p)
{
	if (p.at + 1 < set->used && p.index >= chunk_at(set, p.at)->count)
		return (struct place){ .at = p.at + 1 };
	return p;
}

static inline void advance(const struct slot_ranges *set, struct place *p)
{
	p->index++;
	*p = normal(set, *p);
}

/* The entry before @p, which becomes its place; NULL: there is none. */
static inline struct slot_entry *step_back(const struct slot_ranges *set, struct place *p)
{
	if (p->index == 0) {
		if (p->at == 0)
			return NULL;
		p->at--;
		p->index = chunk_at(set, p->at)->count;
	}
	p->index--;
	return &chunk_at(set, p->at)->entry[p->index];
}

static inline bool before(const struct slot_entry *e, uint32_t handle, uint64_t start)
{
	return e->handle < handle || (e->handle == handle && e->start < start);
}

static struct place search(const struct slot_ranges *set, uint32_t handle, uint64_t start)
{
	uint32_t low = 0, high = set->used, end;
	const struct slot_chunk *c;

	/* The last chunk that begins earlier holds it, or ends just before it. */
	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (before(&chunk_at(set, middle)->entry[0], handle, start))
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return (struct place){ 0 };
	c = chunk_at(set, low - 1);
	for (end = low, low = 0, high = c->count; low < high; ) {
		uint32_t middle = (low + high) / 2;

		if (before(&c->entry[middle], handle, start))
			low = middle + 1;
		else
			high = middle;
	}
	return normal(set, (struct place){ .at = end - 1, .index = low });
}

/* Place of the first entry of (handle, start) or later: most often that of the last change, or the next. */
static inline struct place find(const struct slot_ranges *set, uint32_t handle, uint64_t start)
{
	uint32_t i = set->index;
	const struct slot_chunk *c;

	if (set->at >= set->used)
		return search(set, handle, start);
	c = chunk_at(set, set->at);
	if (i < c->count && before(&c->entry[i], handle, start))
		i++;
	if ((i > 0 ? !before(&c->entry[i - 1], handle, start) : set->at > 0) ||
	    (i < c->count ? before(&c->entry[i], handle, start) : set->at + 1 < set->used))
		return search(set, handle, start);
	return (struct place){ .at = set->at, .index = i };
}

/* ---- chunks ---- */

static struct slot_chunk *chunk_insert(struct slot_ranges *set, uint32_t at)
{
	uint16_t number = set->order[set->used];

	assert(set->used < set->chunks);
	memmove(&set->order[at + 1], &set->order[at], (set->used - at) * sizeof(*set->order));
	set->order[at] = number;
	set->used++;
	return chunk_at(set, at);
}

static void chunk_remove(struct slot_ranges *set, uint32_t at)
{
	uint16_t number = set->order[at];

	set->used--;
	memmove(&set->order[at], &set->order[at + 1], (set->used - at) * sizeof(*set->order));
	set->order[set->used] = number;
}

/* Empty, or as sparse as the next: one chunk less. */
static void tidy(struct slot_ranges *set, uint32_t at)
{
	struct slot_chunk *c, *next;

	if (at + 1 >= set->used)
		return;
	c = chunk_at(set, at);
	next = chunk_at(set, at + 1);
	if (c->count >= CHUNK_SPARSE || next->count >= CHUNK_SPARSE)
		return;
	memcpy(&c->entry[c->count], next->entry, next->count * sizeof(next->entry[0]));
	c->count += next->count;
	chunk_remove(set, at + 1);
}

/* ---- changes ---- */

static void remove_entries(struct slot_ranges *set, struct place p, uint32_t count)
{
	uint32_t at = p.at;

	set->count -= count;
	while (count > 0) {
		struct slot_chunk *c = chunk_at(set, p.at);
		uint32_t here = c->count - p.index < count ? c->count - p.index : count;

		c->count -= here;
		count -= here;
		memmove(&c->entry[p.index], &c->entry[p.index + here],
			(c->count - p.index) * sizeof(c->entry[0]));
		if (c->count == 0)
			chunk_remove(set, p.at);
		else
			p.at++;
		p.index = 0;
	}
	tidy(set, at + 1);
	tidy(set, at);
	if (at > 0)
		tidy(set, at - 1);
}

/* Make two of the full chunk in which @p is; it stays at its entry. */
static void split(struct slot_ranges *set, struct place *p)
{
	struct slot_chunk *next = chunk_insert(set, p->at + 1);
	struct slot_chunk *c = chunk_at(set, p->at);
	/* Who locks upwards fills his chunks. */
	bool append = p->at + 2 == set->used && p->index == c->count;
	uint32_t half = append ? c->count : c->count / 2;

	next->count = c->count - half;
	memcpy(next->entry, &c->entry[half], next->count * sizeof(next->entry[0]));
	c->count = half;
	if (p->index >= half) {
		p->at++;
		p->index -= half;
	}
}

static void insert(struct slot_ranges *set, struct place *p, const struct slot_entry *entry)
{
	struct slot_chunk *c;

	if (set->used == 0)
		chunk_insert(set, 0)->count = 0;
	/* At the border of two chunks: the first, unless it is full and the other exists. */
	if (p->index == 0 && p->at > 0 &&
	    chunk_at(set, p->at - 1)->count < SLOT_CHUNK_ENTRIES) {
		p->at--;
		p->index = chunk_at(set, p->at)->count;
	}
	if (chunk_at(set, p->at)->count == SLOT_CHUNK_ENTRIES)
		split(set, p);
	c = chunk_at(set, p->at);
	memmove(&c->entry[p->index + 1], &c->entry[p->index],
		(c->count - p->index) * sizeof(c->entry[0]));
	c->entry[p->index] = *entry;
	c->count++;
	set->count++;
}

/* Where the next operation will look first. */
static void go_to(struct slot_ranges *set, struct place p)
{
	p = normal(set, p);
	set->at = p.at;
	set->index = p.index;
	set->hot = set->used > 0 ? chunk_at(set, p.at) : NULL;
}

/* A run of entries that an operation touches, and what takes its place. */
struct change {
	struct place first;
	uint32_t count;
	uint32_t pieces;
	struct slot_entry piece[3];
};

static void add_piece(struct change *c, const struct slot_entry *e, uint64_t start, uint64_t end)
{
	struct slot_entry *piece = &c->piece[c->pieces++];

	*piece = *e;
	piece->start = start;
	piece->end = end;
}

/*
 * What @entry makes of its owner's ranges. A range that only touches it
 * belongs to it as well if both are locks of one mode.
 */
static void plan_change(const struct slot_ranges *set, const struct slot_entry *entry, struct change *ret_c)
{
	struct slot_entry whole = *entry, right = { 0 };
	struct place p = find(set, entry->handle, entry->start);
	struct place q = p;
	const struct slot_entry *e = step_back(set, &q);
	struct change c = { 0 };
	bool has_right = false;

	if (e && e->handle == entry->handle && e->end + 1 >= entry->start &&
	    (e->end >= entry->start || e->action == entry->action))
		p = q;
	c.first = p;
	for (; (e = entry_at(set, p)) && e->handle == entry->handle; advance(set, &p)) {
		bool same = e->action == entry->action;

		if (e->start > entry->end && !(same && e->start == entry->end + 1))
			break;
		c.count++;
		if (same) {
			whole.start = e->start < whole.start ? e->start : whole.start;
			whole.end = e->end > whole.end ? e->end : whole.end;
			continue;
		}
		if (e->start < entry->start)
			add_piece(&c, e, e->start, entry->start - 1);
		if (e->end > entry->end) {
			right = *e;
			right.start = entry->end + 1;
			has_right = true;
		}
	}
	if (entry->action != SLOT_UNLOCK)
		add_piece(&c, &whole, whole.start, whole.end);
	if (has_right)
		add_piece(&c, &right, right.start, right.end);
	*ret_c = c;
}

static void apply_slow(struct slot_ranges *set, const struct slot_entry *entry)
{
	struct change c;
	struct place p;
	uint32_t i;

	plan_change(set, entry, &c);
	p = c.first;
	for (i = 0; i < c.pieces && c.count > 0; i++, c.count--) {
		chunk_at(set, p.at)->entry[p.index] = c.piece[i];
		advance(set, &p);
	}
	if (c.count > 0)
		remove_entries(set, p, c.count);
	for (; i < c.pieces; i++) {
		insert(set, &p, &c.piece[i]);
		p.index++;
	}
	go_to(set, c.first);
}

/* Remove the ghost. */
static void settle(struct slot_ranges *set)
{
	struct place p = { .at = set->at, .index = set->index };
	struct slot_chunk *c = set->hot;

	set->ghost = SLOT_UNLOCK;
	if (c->count > (set->used == 1 ? 1 : CHUNK_SPARSE)) {
		c->count--;
		memmove(&c->entry[p.index], &c->entry[p.index + 1],
			(c->count - p.index) * sizeof(c->entry[0]));
	} else {
		set->count++;		/* as if it was alive */
		remove_entries(set, p, 1);
		if (p.at >= set->used)
			p = (struct place){ 0 };
	}
	go_to(set, p);
}

/* Does @e, which stands next to @entry, have to change with it? */
static inline bool touches(const struct slot_entry *e, const struct slot_entry *entry)
{
	if (!e || e->handle != entry->handle)
		return false;
	if (e->start <= entry->end && entry->start <= e->end)
		return true;
	return e->action == entry->action && (e->end + 1 == entry->start || entry->end + 1 == e->start);
}

/* Nearly all that programs do touches one range at most: it comes, goes, or changes at one end. */
static bool apply_one(struct slot_ranges *set, const struct slot_entry *entry)
{
	struct place p = find(set, entry->handle, entry->start), q = p;
	struct slot_entry *next = entry_at(set, p), *last = step_back(set, &q);
	bool lock = entry->action != SLOT_UNLOCK, low = touches(last, entry), high = touches(next, entry);

	if (low && high)
		return false;
	if (!low && !high) {
		q = p;
		if (lock)
			insert(set, &q, entry);
	} else if (lock && (low ? last : next)->action != entry->action) {
		return false;
	} else if (lock && low) {
		last->end = entry->end > last->end ? entry->end : last->end;
	} else if (lock) {
		if (next->end < entry->end)
			return false;
		next->start = entry->start;
		q = p;
	} else if (low) {
		if (last->end > entry->end)
			return false;
		last->end = entry->start - 1;
	} else {
		q = p;
		if (next->end < entry->end)
			return false;
		if (next->end > entry->end) {
			next->start = entry->end + 1;
		} else {
			set->ghost = next->action;
			next->action = SLOT_UNLOCK;
			set->count--;
		}
	}
	go_to(set, q);
	return true;
}

void slot_ranges_apply(struct slot_ranges *set, const struct slot_entry *entry)
{
	assert(set->used + 2 <= set->chunks);
	if (entry->action == SLOT_UNLOCK
	    ? slot_unlock_quickly(set, entry->start, entry->end, entry->handle)
	    : slot_lock_quickly(set, entry->start, entry->end, entry->handle, entry->action))
		return;
	if (set->ghost != SLOT_UNLOCK)
		settle(set);
	if (entry->action != SLOT_UNLOCK) {
		set->mixed = set->count > 0 && (set->mixed || set->owner != entry->handle);
		set->owner = entry->handle;
	}
	if (!apply_one(set, entry))
		apply_slow(set, entry);
}

uint32_t slot_ranges_growth(struct slot_ranges *set, const struct slot_entry *entry)
{
	struct change c;

	if (set->ghost != SLOT_UNLOCK)
		settle(set);
	plan_change(set, entry, &c);
	return c.pieces > c.count ? c.pieces - c.count : 0;
}

/* ---- questions ---- */

/* A ghost is in nobody's way. */
static bool in_the_way(const struct slot_entry *held, const struct slot_entry *entry)
{
	return held->start <= entry->end && entry->start <= held->end && held->action != SLOT_UNLOCK &&
	       (held->action == SLOT_LOCK_EX || entry->action == SLOT_LOCK_EX);
}

/* The first range of owner @handle in the way of @entry. */
static const struct slot_entry *conflict_with(const struct slot_ranges *set, uint32_t handle,
					      const struct slot_entry *entry)
{
	struct place p = find(set, handle, entry->start);
	struct place q = p;
	const struct slot_entry *e = step_back(set, &q);

	/* With a ghost there may be a living one before it that reaches so far. */
	if (e && e->action == SLOT_UNLOCK)
		e = step_back(set, &q);
	if (e && e->handle == handle && in_the_way(e, entry))
		return e;
	for (; (e = entry_at(set, p)) && e->handle == handle && e->start <= entry->end; advance(set, &p))
		if (in_the_way(e, entry))
			return e;
	return NULL;
}

/* Sorted by owner: if both ends are one's, so is all between. */
static bool all_of(const struct slot_ranges *set, uint32_t handle)
{
	const struct slot_chunk *last;

	if (slot_ranges_alone(set, handle))
		return true;
	if (chunk_at(set, 0)->entry[0].handle != handle)
		return false;
	last = chunk_at(set, set->used - 1);
	return last->entry[last->count - 1].handle == handle;
}

/* The place of the first entry of the owner after that one. False: there is none. */
static bool next_owner(const struct slot_ranges *set, uint32_t handle, struct place *ret_p)
{
	if (handle == UINT32_MAX)
		return false;
	*ret_p = find(set, handle + 1, 0);
	return true;
}

bool slot_ranges_conflict(const struct slot_ranges *set, const struct slot_entry *entry,
			  struct slot_entry *ret_held)
{
	const struct slot_entry *e, *found, *best = NULL;
	struct place p = { 0 };
	bool more = !all_of(set, entry->handle);

	for (; more && (e = entry_at(set, p)); more = next_owner(set, e->handle, &p)) {
		found = e->handle == entry->handle ? NULL : conflict_with(set, e->handle, entry);
		if (found && (!best || found->start < best->start))
			best = found;
		if (found && !ret_held)
			return true;
	}
	if (best)
		*ret_held = *best;
	return best != NULL;
}

/* Does the owner hold anything whose entries begin with @e, at @p? The ghost alone is nothing. */
static bool alive(const struct slot_ranges *set, struct place p, const struct slot_entry *e)
{
	const struct slot_entry *next;

	if (e->action != SLOT_UNLOCK)
		return true;
	advance(set, &p);
	next = entry_at(set, p);
	return next && next->handle == e->handle;
}

bool slot_ranges_full(const struct slot_ranges *set, uint32_t handle)
{
	const struct slot_entry *e;
	struct place p = { 0 };
	bool more = !all_of(set, handle);
	uint32_t owners = 0;

	for (; more && (e = entry_at(set, p)); more = next_owner(set, e->handle, &p)) {
		if (!alive(set, p, e))
			continue;
		if (e->handle == handle)
			return false;
		owners++;
	}
	return owners >= BELAY_LOAN_OWNERS_MAX;
}

const struct slot_entry *slot_ranges_next(const struct slot_ranges *set, struct slot_cursor *cursor)
{
	struct place p = { .at = cursor->at, .index = cursor->index };
	const struct slot_entry *e = entry_at(set, p);

	if (e && e->action == SLOT_UNLOCK) {
		advance(set, &p);
		e = entry_at(set, p);
	}
	if (!e)
		return NULL;
	advance(set, &p);
	*cursor = (struct slot_cursor){ .at = p.at, .index = p.index };
	return e;
}

/* ---- all at once ---- */

/* What one owner holds, in order. */
struct run {
	struct slot_cursor cursor;
	const struct slot_entry *last, *next;
};

static void run_on(const struct slot_ranges *set, struct run *run)
{
	run->last = run->next;
	run->next = slot_ranges_next(set, &run->cursor);
	if (run->next && run->last && run->next->handle != run->last->handle)
		run->next = NULL;
}

/* One for each owner. False: there are too many. */
static bool make_runs(const struct slot_ranges *set, struct run runs[BELAY_LOAN_OWNERS_MAX], uint32_t *ret_count)
{
	struct place p = { 0 };
	bool more = true;
	uint32_t count = 0;

	for (const struct slot_entry *e; more && (e = entry_at(set, p)); more = next_owner(set, e->handle, &p)) {
		if (!alive(set, p, e))
			continue;
		if (count == BELAY_LOAN_OWNERS_MAX)
			return false;
		runs[count] = (struct run){ .cursor = { .at = p.at, .index = p.index } };
		run_on(set, &runs[count++]);
	}
	*ret_count = count;
	return true;
}

/* Of those that hold more, the one whose next range begins first. */
static struct run *first_run(struct run *runs, uint32_t count)
{
	struct run *first = NULL;

	for (uint32_t i = 0; i < count; i++)
		if (runs[i].next && (!first || runs[i].next->start < first->next->start))
			first = &runs[i];
	return first;
}

const char *slot_ranges_fault(const struct slot_ranges *set)
{
	struct run runs[BELAY_LOAN_OWNERS_MAX], *run;
	uint32_t count;

	if (slot_ranges_alone(set, set->owner))
		return NULL;
	if (!make_runs(set, runs, &count))
		return "holds locks for more owners in its loan than it may";
	/* What one owner's last range does not reach, none before it does. */
	while ((run = first_run(runs, count))) {
		run_on(set, run);
		for (uint32_t i = 0; i < count; i++)
			if (&runs[i] != run && runs[i].last && in_the_way(runs[i].last, run->last))
				return "granted locks in its loan that conflict";
	}
	return NULL;
}
