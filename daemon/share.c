/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/share.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "slot/recall.h"

/* A client whose memory has more pages than this gives those of ended loans back. */
#define KEEP_BYTES (1024u * 1024)

_Static_assert(SLOT_CELLS <= 64, "a bit of a word for each cell");

/* It lies in a page of its own in front of the mapping, at the same distance from the futex each time. */
struct share {
	struct robust_list list;	/* of those of the thread */
	struct share *before;		/* NULL: the list's head is */
	struct shares *shares;
	int fd;
	uint8_t *map;		/* heads and cells */
	uint64_t taken;		/* bit per cell: an answer is due */
	uint64_t put;		/* and is there, but not shown yet */
};

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

void shares_init(struct shares *shares)
{
	*shares = (struct shares){ .head.futex_offset = (long)(page_size() + SLOT_BELAYD_AT) };
	shares->head.list.next = &shares->head.list;
	/* The C library has one, for mutexes that belayd has none of. */
	(void)syscall(SYS_get_robust_list, 0, &shares->former, &shares->former_size);
	(void)syscall(SYS_set_robust_list, &shares->head, sizeof(shares->head));
}

void shares_done(struct shares *shares)
{
	assert(shares->head.list.next == &shares->head.list);
	(void)syscall(SYS_set_robust_list, shares->former, shares->former_size);
}

static struct slot_belayd *belayd_of(const struct share *share)
{
	return (struct slot_belayd *)(void *)(share->map + SLOT_BELAYD_AT);
}

static void enlist(struct shares *shares, struct share *share)
{
	shares->count++;
	share->shares = shares;
	share->list.next = shares->head.list.next;
	if (share->list.next != &shares->head.list)
		((struct share *)(void *)share->list.next)->before = share;
	atomic_store(&belayd_of(share)->thread, (uint32_t)gettid());
	shares->head.list.next = &share->list;
}

static void delist(struct share *share)
{
	struct robust_list *head = &share->shares->head.list;

	if (share->list.next != head)
		((struct share *)(void *)share->list.next)->before = share->before;
	if (share->before)
		share->before->list.next = share->list.next;
	else
		head->next = share->list.next;
	share->shares->count--;
	atomic_store(&belayd_of(share)->thread, SLOT_BELAYD_DIED);
}

static int make_memory(int *ret_fd)
{
	int fd = memfd_create("belay", MFD_CLOEXEC | MFD_ALLOW_SEALING), r;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, SLOT_MEMORY_BYTES) == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
		*ret_fd = fd;
		return 0;
	}
	r = -errno;
	close(fd);
	return r;
}

int share_new(struct shares *shares, struct share **ret_share)
{
	size_t page = page_size();
	struct share *share;
	uint8_t *base;
	int fd = -1, r;

	if (shares->count >= SHARES_MAX)
		return -EUSERS;
	r = make_memory(&fd);
	if (r < 0)
		return r;
	base = mmap(NULL, page + SLOT_LOGS_AT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED) {
		r = -errno;
		goto fail;
	}
	if (mmap(base + page, SLOT_LOGS_AT, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
	    MAP_FAILED) {
		r = -errno;
		(void)munmap(base, page + SLOT_LOGS_AT);
		goto fail;
	}
	share = (struct share *)(void *)base;
	share->fd = fd;
	share->map = base + page;
	slot_heads_init(share_head(share, 0));
	enlist(shares, share);
	*ret_share = share;
	return 0;

fail:
	close(fd);
	return r;
}

void share_free(struct share *share)
{
	if (!share)
		return;
	delist(share);
	close(share->fd);
	(void)munmap(share, page_size() + SLOT_LOGS_AT);
}

int share_descriptor(const struct share *share)
{
	return share->fd;
}

/* ---- slots ---- */

struct slot_head *share_head(const struct share *share, uint32_t slot)
{
	assert(slot < SLOT_COUNT);
	return (struct slot_head *)(void *)(share->map + SLOT_HEADS_AT) + slot;
}

int share_write(const struct share *share, uint32_t slot, const struct slot_entry *entries,
		uint32_t count)
{
	size_t size = count * sizeof(*entries);
	ssize_t n;

	assert(slot < SLOT_COUNT && count <= SLOT_HALF_ENTRIES);
	n = pwrite(share->fd, entries, size, (off_t)slot_half_at(slot, 0));
	if (n < 0)
		return -errno;
	return (size_t)n == size ? 0 : -ENOMEM;
}

int share_read(const struct share *share, uint32_t slot, uint64_t word, struct slot_entry *ret_log)
{
	size_t size = slot_count(word) * sizeof(*ret_log);
	ssize_t n;

	assert(slot < SLOT_COUNT);
	if (slot_count(word) > SLOT_HALF_ENTRIES)
		return -EBADMSG;
	n = pread(share->fd, ret_log + (word & SLOT_HALF ? SLOT_HALF_ENTRIES : 0), size,
		  (off_t)slot_half_at(slot, word));
	if (n < 0)
		return -errno;
	/* The size is sealed. */
	return (size_t)n == size ? 0 : -EIO;
}

void share_trim(const struct share *share, uint32_t slot)
{
	struct stat st;

	if (fstat(share->fd, &st) < 0 || (uint64_t)st.st_blocks * 512 <= KEEP_BYTES)
		return;
	/* Without it there is less memory, no more than that. */
	(void)fallocate(share->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(off_t)slot_half_at(slot, 0), SLOT_LOG_BYTES);
}

/* ---- cells ---- */

static struct slot_cell *cell_at(const struct share *share, uint32_t index)
{
	return (struct slot_cell *)(void *)(share->map + SLOT_CELLS_AT) + index;
}

int share_cell_take(struct share *share, uint32_t cell)
{
	if (cell == 0 || cell > SLOT_CELLS)
		return -EINVAL;
	if (share->taken & UINT64_C(1) << (cell - 1))
		return -EBUSY;
	share->taken |= UINT64_C(1) << (cell - 1);
	return 0;
}

void share_cell_put(struct share *share, uint32_t cell, const struct client_message *m)
{
	struct slot_cell *to = cell_at(share, cell - 1);
	uint64_t bit = UINT64_C(1) << (cell - 1);
	size_t size = 0;
	int r;

	assert((share->taken & bit) && !(share->put & bit));
	r = client_put(to->bytes, sizeof(to->bytes), &size, m);
	assert(r == 0);
	to->size = (uint32_t)size;
	share->put |= bit;
}

/* Of any process that maps the memory, hence not the PRIVATE kind. */
static void wake(struct slot_cell *cell)
{
	(void)syscall(SYS_futex, &cell->state, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void share_cells_publish(struct share *share)
{
	uint64_t put = share->put;

	share->taken &= ~put;
	share->put = 0;
	for (; put != 0; put &= put - 1) {
		struct slot_cell *cell = cell_at(share, (uint32_t)__builtin_ctzll(put));

		if (atomic_exchange(&cell->state, SLOT_CELL_ANSWERED) == SLOT_CELL_SLEEPING)
			wake(cell);
	}
}

void share_cells_wake(const struct share *share)
{
	for (uint64_t taken = share->taken; taken != 0; taken &= taken - 1)
		wake(cell_at(share, (uint32_t)__builtin_ctzll(taken)));
}
