/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/journal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "wire/cursor.h"

/* Where the head's counters stand. */
enum {
	AT_FIRST = 16,
	AT_NEXT = 24,
	AT_DROPPED = 32,
	AT_WRITTEN = 40,
	AT_CONFIG = 48,
};

struct journal {
	uint8_t *map, *ring;
	uint64_t ring_size;
	uint64_t first, next, dropped, written;
};

static void set_counter(struct journal *j, size_t at, uint64_t value)
{
	struct writer w = { .at = j->map + at, .end = j->map + at + 8 };

	put_u64(&w, value);
}

static void put_config(struct writer *w, const struct belay_core_config *c)
{
	put_u32(w, c->self);
	put_u64(w, c->incarnation);
	put_u32(w, c->stability);
	put_u32(w, c->node_count);
	for (uint32_t i = 0; i < c->node_count; i++)
		put_u32(w, c->node[i]);
	put_u8(w, c->fencing_none);
	put_u32(w, c->limits.resources_max);
	put_u32(w, c->limits.locks_max);
	put_u32(w, c->limits.waiters_max);
	put_u32(w, c->limits.locks_per_owner_max);
	put_u32(w, c->requests_max);
	put_u32(w, c->loans_max);
	put_u8(w, c->hints);
	put_u32(w, c->min_hold_us);
	put_u32(w, c->idle_us);
	put_u32(w, c->claim_streak);
	put_u32(w, c->share_streak);
	put_u32(w, c->lend_after);
	put_u64(w, c->token_base);
}

static void put_head(struct journal *j, const struct belay_core_config *config)
{
	struct writer w = { .at = j->map, .end = j->map + JOURNAL_HEAD_SIZE };

	put_bytes(&w, JOURNAL_MAGIC, 8);
	put_u32(&w, JOURNAL_VERSION);
	put_u32(&w, (uint32_t)j->ring_size);
	for (unsigned i = 0; i < 4; i++)
		put_u64(&w, 0);
	assert(w.error == 0 && w.at == j->map + AT_CONFIG);
	put_config(&w, config);
	assert(w.error == 0);
}

/* Map a new file, or plain memory. */
static int map_new(const char *path, size_t size, uint8_t **ret_map)
{
	int fd = -1, flags = MAP_PRIVATE | MAP_ANONYMOUS, r = 0;
	char old[PATH_MAX];
	void *map;

	if (path) {
		/* What the former belayd recorded may be what tells why it ended. */
		(void)snprintf(old, sizeof(old), "%s.old", path);
		(void)rename(path, old);
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		/* Space is taken now: a full file system would be a SIGBUS later. */
		if (fd < 0)
			return -errno;
		r = -posix_fallocate(fd, 0, (off_t)size);
		if (r < 0)
			goto out_close;
		flags = MAP_SHARED;
	}
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (map == MAP_FAILED)
		r = -errno;
	else
		*ret_map = map;
out_close:
	if (fd >= 0)
		close(fd);
	if (r < 0 && path)
		(void)unlink(path);
	return r;
}

int journal_open(const char *path, size_t ring_size, const struct belay_core_config *config,
		 struct journal **ret_journal)
{
	struct journal *j;
	int r;

	assert(ring_size >= JOURNAL_RING_MIN && ring_size % 8 == 0 && ring_size <= UINT32_MAX);
	j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	r = map_new(path, JOURNAL_HEAD_SIZE + ring_size, &j->map);
	if (r < 0) {
		free(j);
		return r;
	}
	j->ring = j->map + JOURNAL_HEAD_SIZE;
	j->ring_size = ring_size;
	put_head(j, config);
	*ret_journal = j;
	return 0;
}

void journal_close(struct journal *j)
{
	if (!j)
		return;
	(void)munmap(j->map, JOURNAL_HEAD_SIZE + j->ring_size);
	free(j);
}

static void drop_first(struct journal *j)
{
	const uint8_t *at = j->ring + j->first % j->ring_size;
	struct reader r = { .at = at, .end = at + 8 };
	uint32_t size = get_u32(&r);

	if (get_u32(&r) != JOURNAL_FILL)
		j->dropped++;
	j->first += size;
}

/*
 * Room for a record of @size bytes in one piece. The head is updated before
 * anything is overwritten, so that whoever finds the file can read it.
 */
static struct writer make_room(struct journal *j, size_t size)
{
	uint64_t left = j->ring_size - j->next % j->ring_size;
	uint64_t need = size <= left ? size : left + size;
	struct writer w;
	uint8_t *at;

	while (j->next + need - j->first > j->ring_size)
		drop_first(j);
	set_counter(j, AT_DROPPED, j->dropped);
	set_counter(j, AT_FIRST, j->first);
	if (need != size) {
		at = j->ring + j->next % j->ring_size;
		w = (struct writer){ .at = at, .end = at + left };
		put_u32(&w, (uint32_t)left);
		put_u32(&w, JOURNAL_FILL);
		j->next += left;
	}
	at = j->ring + j->next % j->ring_size;
	return (struct writer){ .at = at, .end = at + size };
}

static void append(struct journal *j, enum journal_type type, uint64_t now_us,
		   const void *fields, size_t fields_size, const void *bytes, size_t bytes_size)
{
	size_t size = (16 + fields_size + bytes_size + 7) & ~(size_t)7;
	struct writer w = make_room(j, size);

	put_u32(&w, (uint32_t)size);
	put_u32(&w, type);
	put_u64(&w, now_us);
	put_bytes(&w, fields, fields_size);
	put_bytes(&w, bytes, bytes_size);
	assert(w.error == 0);
	memset(w.at, 0, (size_t)(w.end - w.at));
	j->next += size;
	j->written++;
	set_counter(j, AT_WRITTEN, j->written);
	set_counter(j, AT_NEXT, j->next);
}

static void put_key(struct writer *w, const struct belay_key *key)
{
	put_u32(w, key->lockspace);
	put_bytes(w, key->id, sizeof(key->id));
}

static void put_range(struct writer *w, const struct belay_range *range)
{
	put_u64(w, range->start);
	put_u64(w, range->end);
}

static void put_owner(struct writer *w, const struct belay_owner *owner)
{
	put_u32(w, owner->client);
	put_u64(w, owner->key);
	put_u32(w, owner->pid);
	put_u8(w, (uint8_t)owner->kind);
}

static void put_lock(struct writer *w, const struct belay_event *ev)
{
	put_key(w, &ev->lock.key);
	put_range(w, &ev->lock.range);
	put_owner(w, &ev->lock.owner);
	put_u8(w, (uint8_t)ev->lock.mode);
	put_u8(w, ev->lock.wait);
	put_u8(w, ev->lock.test);
	put_u8(w, ev->lock.lend);
	put_u64(w, ev->lock.cookie);
}

static void put_loan_held(struct writer *w, const struct belay_event *ev)
{
	put_u32(w, ev->loan.loan);
	put_range(w, &ev->loan.range);
	put_owner(w, &ev->loan.owner);
	put_u8(w, (uint8_t)ev->loan.mode);
}

static void put_loan_back(struct writer *w, const struct belay_event *ev)
{
	put_u32(w, ev->loan.loan);
	put_range(w, &ev->loan.range);
	put_u8(w, ev->loan.used);
	put_u8(w, ev->loan.used_ex);
	put_u64(w, ev->loan.token);
}

static void put_hint(struct writer *w, const struct belay_hint *hint)
{
	put_u32(w, hint->node);
	put_u64(w, hint->incarnation);
	put_u64(w, hint->to_incarnation);
	put_u32(w, hint->waiter);
	put_u64(w, hint->prefix);
	put_u64(w, hint->seq);
	put_key(w, &hint->key);
	put_range(w, &hint->range);
	put_owner(w, &hint->owner);
	put_u32(w, hint->request);
	put_u64(w, hint->token);
}

static void put_view(struct writer *w, const struct belay_event *ev)
{
	put_u32(w, ev->view.member_count);
	put_u32(w, ev->view.joined_count);
	put_u32(w, ev->view.left_count);
	for (uint32_t i = 0; i < ev->view.member_count; i++)
		put_u32(w, ev->view.member[i]);
	for (uint32_t i = 0; i < ev->view.joined_count; i++)
		put_u32(w, ev->view.joined[i]);
	for (uint32_t i = 0; i < ev->view.left_count; i++)
		put_u32(w, ev->view.left[i]);
}

static enum journal_type put_event(struct writer *w, const struct belay_event *ev)
{
	switch (ev->type) {
	case BELAY_EVENT_LOCK:
		put_lock(w, ev);
		return JOURNAL_LOCK;
	case BELAY_EVENT_UNLOCK:
		put_lock(w, ev);
		return JOURNAL_UNLOCK;
	case BELAY_EVENT_CANCEL:
		put_u32(w, ev->client.client);
		put_u64(w, ev->client.cookie);
		return JOURNAL_CANCEL;
	case BELAY_EVENT_CLIENT_GONE:
		put_u32(w, ev->client.client);
		return JOURNAL_CLIENT_GONE;
	case BELAY_EVENT_LOAN_HELD:
		put_loan_held(w, ev);
		return JOURNAL_LOAN_HELD;
	case BELAY_EVENT_LOAN_BACK:
		put_loan_back(w, ev);
		return JOURNAL_LOAN_BACK;
	case BELAY_EVENT_HINT:
		put_hint(w, ev->hint);
		return JOURNAL_HINT;
	case BELAY_EVENT_FENCE:
		put_u32(w, ev->fence.node);
		return JOURNAL_FENCE;
	case BELAY_EVENT_LEAVE:
		return JOURNAL_LEAVE;
	case BELAY_EVENT_QUORUM:
		put_u8(w, ev->quorum.quorate);
		return JOURNAL_QUORUM;
	case BELAY_EVENT_TICK:
		return JOURNAL_TICK;
	case BELAY_EVENT_VIEW:
		put_view(w, ev);
		return JOURNAL_VIEW;
	default:
		/* Those of messages are noted as messages. */
		assert(ev->type < BELAY_EVENT_FRAME);
		return JOURNAL_FILL;
	}
}

void journal_event(struct journal *j, const struct belay_event *event)
{
	uint8_t fields[12 + 3 * 4 * BELAY_NODES_MAX];
	struct writer w = { .at = fields, .end = fields + sizeof(fields) };
	enum journal_type type = put_event(&w, event);

	assert(w.error == 0);
	append(j, type, event->now_us, fields, (size_t)(w.at - fields), NULL, 0);
}

void journal_message(struct journal *j, uint64_t now_us, uint32_t node, uint32_t skip,
		     uint32_t limit, const void *buf, size_t size)
{
	uint8_t fields[16];
	struct writer w = { .at = fields, .end = fields + sizeof(fields) };

	assert(size <= WIRE_MESSAGE_MAX);
	put_u32(&w, node);
	put_u32(&w, skip);
	put_u32(&w, limit);
	put_u32(&w, (uint32_t)size);
	append(j, JOURNAL_MESSAGE, now_us, fields, sizeof(fields), buf, size);
}

int journal_copy(const struct journal *j, const char *path)
{
	size_t size = JOURNAL_HEAD_SIZE + j->ring_size, done = 0;
	int fd, r = 0;

	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	while (r == 0 && done < size) {
		ssize_t n = write(fd, j->map + done, size - done);

		if (n < 0 && errno != EINTR)
			r = -errno;
		else if (n > 0)
			done += (size_t)n;
	}
	if (close(fd) < 0 && r == 0)
		r = -errno;
	if (r < 0)
		(void)unlink(path);
	return r;
}

void journal_counts(const struct journal *j, uint64_t *ret_written, uint64_t *ret_dropped)
{
	*ret_written = j->written;
	*ret_dropped = j->dropped;
}
