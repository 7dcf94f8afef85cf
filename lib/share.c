/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lib/share.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* While a thread sleeps in a cell it looks that often whether there is still a belayd. */
#define LOOK_MS 200
/* Who was answered while it spun spins longer next time, who was not less. */
#define SPIN_MIN_NS 1000u
#define SPIN_MAX_NS 50000u
#define SWEEP_MIN 16u

/* ---- making it ---- */

static bool many_processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) < 0 || CPU_COUNT(&set) > 1;
}

/* A fork()ed child has no part in it: there is nothing at the address, or something else. */
static void *map(int fd, size_t at, size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)at);

	if (p == MAP_FAILED)
		return NULL;
	if (madvise(p, size, MADV_DONTFORK) < 0) {
		munmap(p, size);
		return NULL;
	}
	return p;
}

/* Somebody may have closed all descriptors that it did not know, and opened others. */
static bool is_ours(const struct share *share)
{
	struct stat st;

	return fstat(share->fd, &st) == 0 && st.st_dev == share->dev && st.st_ino == share->ino;
}

static struct share *share_new(int fd)
{
	struct share *share;
	struct stat st;
	uint8_t *p;

	if (fstat(fd, &st) < 0 || (uint64_t)st.st_size < SLOT_MEMORY_BYTES)
		return NULL;
	p = map(fd, 0, SLOT_LOGS_AT);
	if (!p)
		return NULL;
	/* Most of it will never be touched. */
	share = mmap(NULL, sizeof(*share), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (share == MAP_FAILED) {
		munmap(p, SLOT_LOGS_AT);
		return NULL;
	}
	share->fd = fd;
	share->dev = st.st_dev;
	share->ino = st.st_ino;
	share->map = p;
	share->sweep_at = SWEEP_MIN;
	share->spin = many_processors();
	share->spin_ns = SPIN_MAX_NS;
	return share;
}

int share_open(struct belay *belay, const struct timespec *deadline)
{
	struct client_message m = { .type = CLIENT_SHARE };
	struct call call = { .want_fd = true };
	int r;

	belay->share_asked = true;
	r = call_open(belay, &call, CLIENT_RESULT);
	if (r < 0)
		return r;
	m.number = call.number;
	r = send_message(belay, &m);
	if (r == 0)
		r = call_await(belay, &call, deadline);
	call_close(belay, &call);
	if (r < 0 || call.fd < 0)
		return r;
	belay->share = share_new(call.fd);
	if (!belay->share)
		close(call.fd);
	return 0;
}

void share_close(struct belay *belay, bool child)
{
	struct share *share = belay->share;
	uint32_t i;

	if (!share)
		return;
	if (is_ours(share))
		close(share->fd);
	belay->share = NULL;
	if (child)
		return;
	for (i = 0; i < SLOT_COUNT; i++) {
		slot_ranges_done(&share->loan[i].slot.held);
		if (share->log[i])
			munmap(share->log[i], SLOT_LOG_BYTES);
	}
	munmap(share->map, SLOT_LOGS_AT);
	munmap(share, sizeof(*share));
}

/* ---- cells ---- */

static struct slot_cell *cell_at(const struct share *share, uint32_t number)
{
	return (struct slot_cell *)(void *)(share->map + SLOT_CELLS_AT) + (number - 1);
}

void share_cell_open(struct belay *belay, struct call *call)
{
	struct share *share = belay->share;

	if (!share || share->cells == UINT64_MAX)
		return;
	call->cell = 1 + (uint32_t)__builtin_ctzll(~share->cells);
	share->cells |= UINT64_C(1) << (call->cell - 1);
	atomic_store_explicit(&cell_at(share, call->cell)->state, SLOT_CELL_PENDING, memory_order_relaxed);
}

void share_cell_close(struct belay *belay, struct call *call)
{
	/* If the connection is lost belayd may still write there. */
	if (call->cell != 0 && !belay->lost)
		belay->share->cells &= ~(UINT64_C(1) << (call->cell - 1));
}

void share_wake(struct belay *belay, uint32_t cell)
{
	futex_wake(&cell_at(belay->share, cell)->state, true);
}

static bool answered(const struct slot_cell *cell)
{
	return atomic_load_explicit(&cell->state, memory_order_acquire) == SLOT_CELL_ANSWERED;
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* belayd, if it is at it on another processor, is faster than a sleep and a waking. */
static bool spin(struct share *share, const struct slot_cell *cell)
{
	uint32_t limit = atomic_load_explicit(&share->spin_ns, memory_order_relaxed);
	int64_t end;
	bool done;

	if (!share->spin)
		return answered(cell);
	end = now_ns() + limit;
	do {
		for (int i = 0; i < 20 && !answered(cell); i++)
			relax();
		done = answered(cell);
	} while (!done && now_ns() < end);
	limit = done ? limit * 2 : limit / 2;
	limit = limit < SPIN_MIN_NS ? SPIN_MIN_NS : limit > SPIN_MAX_NS ? SPIN_MAX_NS : limit;
	atomic_store_explicit(&share->spin_ns, limit, memory_order_relaxed);
	return done;
}

/* Has the connection ended? Nobody else may be reading. */
static void look(struct belay *belay)
{
	enter(belay);
	call_poll(belay);
	call_signal(belay);
	leave(belay);
}

/* Not entered. 0, -ETIMEDOUT; -EIO: the call has ended by itself. */
static int await(struct belay *belay, struct call *call, struct slot_cell *cell,
		 const struct timespec *deadline)
{
	uint32_t expected = SLOT_CELL_PENDING;
	int left = LOOK_MS;

	if (spin(belay->share, cell))
		return 0;
	(void)atomic_compare_exchange_strong(&cell->state, &expected, SLOT_CELL_SLEEPING);
	while (!answered(cell)) {
		if (atomic_load_explicit(&call->state, memory_order_acquire) == CALL_DONE)
			return -EIO;
		if (deadline)
			left = time_left(deadline);
		if (left == 0)
			return -ETIMEDOUT;
		futex_sleep(&cell->state, SLOT_CELL_SLEEPING, left < LOOK_MS ? left : LOOK_MS, true);
		if (!answered(cell))
			look(belay);
	}
	return 0;
}

int share_cell_wait(struct belay *belay, struct call *call, const struct timespec *deadline)
{
	struct slot_cell *cell = cell_at(belay->share, call->cell);
	struct client_message m;
	size_t at = 0;
	int r;

	leave(belay);
	r = await(belay, call, cell, deadline);
	enter(belay);
	if (r < 0)
		return r == -ETIMEDOUT ? r : 0;
	if (cell->size > sizeof(cell->bytes) || client_get(cell->bytes, cell->size, &at, &m) != 1 ||
	    call_answer(belay, call, &m) < 0)
		call_lose(belay);
	return 0;
}

/* ---- slots ---- */

static struct slot_head *head_of(const struct share *share, uint32_t number)
{
	return (struct slot_head *)(void *)(share->map + SLOT_HEADS_AT) + (number - 1);
}

static struct slot_entry *log_of(struct share *share, uint32_t number)
{
	uint8_t **log = &share->log[number - 1];

	if (!*log && is_ours(share))
		*log = map(share->fd, slot_half_at(number - 1, 0), SLOT_LOG_BYTES);
	return (struct slot_entry *)(void *)*log;
}

static int say_return(struct belay *belay, uint32_t number, uint32_t epoch)
{
	const struct client_message m = { .type = CLIENT_RETURN, .slot = number, .epoch = epoch };

	return send_put(belay, &m);
}

int share_return(struct belay *belay, struct loan *loan)
{
	loan->resource = NULL;
	belay->share->loans--;
	return say_return(belay, loan->number, loan->slot.terms.epoch);
}

/* Give back what was taken back while nobody used it: else the slots run out. */
static void sweep(struct belay *belay)
{
	struct share *share = belay->share;

	for (uint32_t i = 0; i < SLOT_COUNT; i++) {
		struct loan *loan = &share->loan[i];
		struct resource *resource = loan->resource;

		if (!resource || !(atomic_load(&head_of(share, i + 1)->word) & SLOT_RECALL) ||
		    !gate_enter(resource))
			continue;
		loan_remove(loan);
		(void)share_return(belay, loan);
		gate_leave(resource);
	}
	share->sweep_at = 2 * share->loans + SWEEP_MIN;
}

/* Put the loan of @m into use, with the gate. */
static int begin(struct belay *belay, struct resource *resource, const struct client_message *m)
{
	struct share *share = belay->share;
	struct loan *loan = &share->loan[m->slot - 1];
	const struct slot_terms terms = {
		.epoch = m->epoch, .mode = m->mode, .range = m->range, .room = m->room, .token = m->token,
	};
	struct slot_entry *log = log_of(share, m->slot);
	int r = log ? slot_begin(&loan->slot, head_of(share, m->slot), log, &terms) : -ENOMEM;

	if (r < 0)
		return r;
	loan->number = m->slot;
	loan->belayd = (const struct slot_belayd *)(void *)(share->map + SLOT_BELAYD_AT);
	atomic_store_explicit(&loan->over, false, memory_order_relaxed);
	share->loans++;
	loan_add(resource, loan);
	return 0;
}

int share_adopt(struct belay *belay, struct resource *resource, const struct client_message *m)
{
	struct share *share = belay->share;
	int r = -ESTALE;

	if (!share || !resource || m->result < 0 || m->slot > SLOT_COUNT || share->loan[m->slot - 1].resource)
		return -EBADMSG;
	/* A message that belayd had not seen yet: it acts on that without the loan. */
	if (resource->messages == m->messages && !belay->lost && gate_enter(resource)) {
		r = begin(belay, resource, m);
		gate_leave(resource);
	}
	if (r < 0) {
		(void)atomic_fetch_or(&head_of(share, m->slot)->word, SLOT_RECALL);
		(void)say_return(belay, m->slot, m->epoch);
	} else if (share->loans >= share->sweep_at) {
		sweep(belay);
	}
	/* That slot can be lent again. */
	if (!belay->corked)
		(void)send_box(belay);
	return 0;
}

void share_lose(struct belay *belay)
{
	struct share *share = belay->share;

	for (uint32_t i = 0; share && i < SLOT_COUNT; i++)
		if (share->loan[i].resource)
			(void)atomic_fetch_or(&head_of(share, i + 1)->word, SLOT_RECALL);
}
