/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/fake_belayd.h"

#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static const struct belay_range all_bytes = { .start = 0, .end = BELAY_OFFSET_MAX };

struct slot_head *fake_head(struct fake *f, uint32_t slot)
{
	return (struct slot_head *)(void *)(f->map + SLOT_HEADS_AT) + slot;
}

static struct slot_entry *log_at(struct fake *f, uint32_t slot)
{
	return (struct slot_entry *)(void *)(f->map + slot_half_at(slot, 0));
}

static void broken(struct fake *f, const char *what)
{
	if (!f->broken)
		f->broken = what;
}

static void make_memory(struct fake *f)
{
	f->fd = memfd_create("belay", MFD_CLOEXEC);
	if (f->fd < 0 || ftruncate(f->fd, SLOT_MEMORY_BYTES) < 0)
		bail_out("no memory to share");
	f->map = mmap(NULL, SLOT_MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
	if (f->map == MAP_FAILED)
		bail_out("no memory to share");
	slot_heads_init(fake_head(f, 0));
}

/* ---- answers ---- */

static void send_with_memory(struct fake *f, const struct client_message *m)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { .head = {
		.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
	} };
	uint8_t bytes[256];
	size_t size = 0;
	struct iovec iov = { .iov_base = bytes };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control),
	};

	memcpy(CMSG_DATA(&control.head), &f->fd, sizeof(f->fd));
	assert(client_put(bytes, sizeof(bytes), &size, m) == 0);
	iov.iov_len = size;
	assert(sendmsg(f->peer.conn, &msg, MSG_NOSIGNAL) == (ssize_t)size);
}

static void answer(struct fake *f, uint32_t number, const struct client_message *m)
{
	struct slot_cell *cell;
	size_t size = 0;

	if (number == 0) {
		peer_put(&f->peer, (struct client_message[]){ *m, { .type = CLIENT_TYPE_COUNT } });
		return;
	}
	cell = (struct slot_cell *)(void *)(f->map + SLOT_CELLS_AT) + (number - 1);
	assert(client_put(cell->bytes, sizeof(cell->bytes), &size, m) == 0);
	cell->size = (uint32_t)size;
	if (atomic_exchange(&cell->state, SLOT_CELL_ANSWERED) == SLOT_CELL_SLEEPING)
		(void)syscall(SYS_futex, &cell->state, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* ---- loans ---- */

static bool may(void *context, uint32_t handle, enum slot_action action)
{
	const struct fake *f = context;

	(void)action;
	return handle <= f->handles;
}

static void apply(struct slot_ranges *set, const struct slot_entry *e)
{
	if (slot_ranges_reserve(set) < 0)
		bail_out("no memory for ranges");
	slot_ranges_apply(set, e);
}

/* What is held in it is belayd's to know again. */
static void take(struct fake *f, uint32_t slot)
{
	struct fake_loan *loan = &f->loan[slot];
	const struct slot_judge judge = { .may = may, .context = f };
	struct slot_cursor cursor = { 0 };
	const struct slot_entry *e;
	struct slot_report report;
	const char *reason;
	uint64_t word;

	if (!loan->lent)
		return;
	word = slot_recall(fake_head(f, slot));
	loan->lent = false;
	if (slot_take(fake_head(f, slot), log_at(f, slot), word, &loan->terms, UINT64_MAX, &judge, &f->taken,
		      &report, &reason) < 0) {
		broken(f, reason);
		return;
	}
	f->token = report.token;
	while ((e = slot_ranges_next(&f->taken, &cursor)))
		apply(&f->held[loan->resource], e);
}

static void take_all(struct fake *f, uint32_t resource, const struct belay_range *range)
{
	for (uint32_t i = 0; i < SLOT_COUNT; i++) {
		struct fake_loan *loan = &f->loan[i];

		if (loan->lent && loan->resource == resource && loan->terms.range.start <= range->end &&
		    range->start <= loan->terms.range.end)
			take(f, i);
	}
}

static void lend(struct fake *f, uint32_t resource, struct client_message *m)
{
	struct slot_entry held[1024], unlock = { .start = f->range.start, .end = f->range.end };
	const struct slot_entry *e;
	struct slot_cursor cursor = { 0 };
	struct fake_loan *loan;
	uint32_t slot = 0, count = 0;

	/* Who waits would not hear of an unlock in a loan. */
	if (f->waiting_count > 0)
		return;
	while (slot < SLOT_COUNT && f->loan[slot].busy)
		slot++;
	while ((e = slot_ranges_next(&f->held[resource], &cursor)))
		if (e->handle != FAKE_FOREIGN && count < 1024)
			held[count++] = *e;
	if (slot == SLOT_COUNT || count > f->room || f->held[resource].count != count)
		return;
	for (uint32_t i = 0; i < count; i++) {
		if (held[i].start < f->range.start || held[i].end > f->range.end)
			return;
		unlock.handle = held[i].handle;
		apply(&f->held[resource], &unlock);
	}
	loan = &f->loan[slot];
	loan->lent = loan->busy = true;
	loan->resource = resource;
	loan->held = count;
	loan->terms = (struct slot_terms){
		.epoch = loan->terms.epoch + 1, .mode = f->mode, .range = f->range, .room = f->room, .token = f->token,
	};
	slot_lend(fake_head(f, slot), log_at(f, slot), &loan->terms, held, count, false);
	m->slot = slot + 1;
	m->epoch = loan->terms.epoch;
	m->mode = f->mode;
	m->range = f->range;
	m->room = f->room;
	m->messages = f->count[resource] + f->miscount;
	f->lent++;
}

/* ---- requests ---- */

static uint32_t owner_of(const struct client_message *m)
{
	return m->kind == BELAY_KIND_POSIX ? 0 : m->handle;
}

/* False: it has to wait. */
static bool try_lock(struct fake *f, const struct client_message *m)
{
	uint32_t resource = f->resource_of[m->handle];
	const struct slot_entry e = {
		.start = m->range.start, .end = m->range.end, .handle = owner_of(m),
		.action = slot_action_of(m->mode),
	};
	struct client_message result = { .type = CLIENT_RESULT, .number = m->number };

	if (slot_ranges_conflict(&f->held[resource], &e, NULL)) {
		if (m->wait)
			return false;
		result.result = -EAGAIN;
	} else {
		apply(&f->held[resource], &e);
		result.token = ++f->token;
		if (f->lend && m->lend)
			lend(f, resource, &result);
	}
	answer(f, m->cell, &result);
	return true;
}

static void try_waiting(struct fake *f)
{
	for (unsigned i = 0; i < f->waiting_count; ) {
		struct client_message m = f->waiting[i];

		/* Not among those that wait while it is tried. */
		f->waiting_count--;
		memmove(&f->waiting[i], &f->waiting[i + 1], (f->waiting_count - i) * sizeof(m));
		take_all(f, f->resource_of[m.handle], &m.range);
		if (try_lock(f, &m))
			continue;
		memmove(&f->waiting[i + 1], &f->waiting[i], (f->waiting_count - i) * sizeof(m));
		f->waiting[i++] = m;
		f->waiting_count++;
	}
}

static void test(struct fake *f, const struct client_message *m)
{
	const struct slot_entry e = {
		.start = m->range.start, .end = m->range.end, .handle = owner_of(m),
		.action = slot_action_of(m->mode),
	};
	struct client_message result = { .type = CLIENT_TESTED, .number = m->number };
	struct slot_entry held;

	if (slot_ranges_conflict(&f->held[f->resource_of[m->handle]], &e, &held)) {
		result.held = true;
		result.mode = slot_mode_of(&held);
		result.range = (struct belay_range){ held.start, held.end };
		result.owner = (struct belay_owner){ .node = 9, .pid = 99, .kind = BELAY_KIND_POSIX };
	}
	answer(f, m->cell, &result);
}

static void unlock(struct fake *f, uint32_t resource, uint32_t owner, const struct belay_range *range)
{
	const struct slot_entry e = {
		.start = range->start, .end = range->end, .handle = owner, .action = SLOT_UNLOCK,
	};

	apply(&f->held[resource], &e);
	try_waiting(f);
}

static void cancel(struct fake *f, uint32_t number)
{
	for (unsigned i = 0; i < f->waiting_count; i++)
		if (f->waiting[i].number == number) {
			struct client_message m = f->waiting[i];

			f->waiting[i] = f->waiting[--f->waiting_count];
			answer(f, m.cell, &(struct client_message){
				.type = CLIENT_RESULT, .number = number, .result = -EINTR });
			return;
		}
}

/*
 * A message about a resource: what overlaps its range must have been given up before. If it was sent before
 * the client heard of the loan, the client must not have used it.
 */
static void about(struct fake *f, uint32_t resource, const struct belay_range *range)
{
	f->count[resource]++;
	for (uint32_t i = 0; i < SLOT_COUNT; i++) {
		const struct fake_loan *loan = &f->loan[i];

		if (loan->lent && loan->resource == resource && loan->terms.range.start <= range->end &&
		    range->start <= loan->terms.range.end &&
		    !(atomic_load(&fake_head(f, i)->word) & SLOT_RECALL) &&
		    slot_count(atomic_load(&fake_head(f, i)->word)) != loan->held)
			broken(f, "sent a message about a range while a loan of it went on");
	}
	take_all(f, resource, range);
}

static void on_request(struct fake *f, const struct client_message *m)
{
	uint32_t resource = f->resource_of[m->handle];

	about(f, resource, m->type == CLIENT_CLOSE ? &all_bytes : &m->range);
	if (m->type == CLIENT_LOCK || m->type == CLIENT_TEST) {
		f->cells += m->cell != 0;
		f->no_cells += m->cell == 0;
	}
	if (m->type == CLIENT_LOCK && !try_lock(f, m)) {
		assert(f->waiting_count < FAKE_WAITING_MAX);
		f->waiting[f->waiting_count++] = *m;
	} else if (m->type == CLIENT_TEST) {
		test(f, m);
	} else if (m->type == CLIENT_UNLOCK) {
		unlock(f, resource, owner_of(m), &m->range);
	} else if (m->type == CLIENT_CLOSE) {
		unlock(f, resource, m->handle, &all_bytes);
		answer(f, 0, &(struct client_message){ .type = CLIENT_RESULT, .number = m->number });
	}
}

static void on_message(struct fake *f, const struct client_message *m)
{
	struct client_message result = { .type = CLIENT_RESULT, .number = m->number };

	switch (m->type) {
	case CLIENT_SHARE:
		result.result = f->no_memory ? -ENOMEM : 0;
		if (f->no_memory)
			answer(f, 0, &result);
		else
			send_with_memory(f, &result);
		break;
	case CLIENT_OPEN_NAME:
		result.handle = ++f->handles;
		result.resource = m->kind == BELAY_KIND_FLOCK ? 2 : 1;
		f->resource_of[result.handle] = result.resource;
		answer(f, 0, &result);
		break;
	case CLIENT_RETURN:
		if (m->slot > SLOT_COUNT || !f->loan[m->slot - 1].busy ||
		    f->loan[m->slot - 1].terms.epoch != m->epoch)
			broken(f, "returned a loan that it does not have");
		else if (!(atomic_load(&fake_head(f, m->slot - 1)->word) & SLOT_RECALL))
			broken(f, "returned a loan that goes on");
		take(f, m->slot - 1);
		f->loan[m->slot - 1].busy = false;
		break;
	case CLIENT_CANCEL:
		cancel(f, m->number);
		break;
	default:
		on_request(f, m);
		break;
	}
}

static void *fake_thread(void *arg)
{
	struct fake *f = arg;
	struct client_message m;
	sigset_t all;

	/* Signals are for the client. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	peer_accept(&f->peer, welcome);
	while (peer_receive(&f->peer, &m)) {
		pthread_mutex_lock(&f->mutex);
		f->messages[m.type]++;
		on_message(f, &m);
		pthread_cond_broadcast(&f->changed);
		pthread_mutex_unlock(&f->mutex);
	}
	return NULL;
}

/* ---- for the test ---- */

void fake_prepare(struct fake *f)
{
	memset(f, 0, sizeof(*f));
	peer_open(&f->peer);
	pthread_mutex_init(&f->mutex, NULL);
	pthread_cond_init(&f->changed, NULL);
	f->lend = true;
	f->room = 64;
	f->mode = BELAY_MODE_EX;
	f->range = all_bytes;
	f->token = 1000;
	make_memory(f);
}

void fake_run(struct fake *f)
{
	if (pthread_create(&f->thread, NULL, fake_thread, f) != 0)
		bail_out("no thread");
}

void fake_start(struct fake *f, struct belay **ret_belay)
{
	fake_prepare(f);
	fake_run(f);
	if (belay_connect(ret_belay, f->peer.path) < 0)
		bail_out("no connection");
}

void fake_stop(struct fake *f)
{
	pthread_join(f->thread, NULL);
	for (uint32_t i = 0; i < FAKE_RESOURCES; i++)
		slot_ranges_done(&f->held[i]);
	slot_ranges_done(&f->taken);
	munmap(f->map, SLOT_MEMORY_BYTES);
	close(f->fd);
	peer_close(&f->peer);
}

void fake_recall(struct fake *f)
{
	pthread_mutex_lock(&f->mutex);
	for (uint32_t i = 0; i < SLOT_COUNT; i++)
		take(f, i);
	pthread_mutex_unlock(&f->mutex);
}

void fake_foreign(struct fake *f, enum slot_action action, uint64_t start, uint64_t end)
{
	const struct slot_entry e = { .start = start, .end = end, .handle = FAKE_FOREIGN, .action = action };

	pthread_mutex_lock(&f->mutex);
	take_all(f, 1, &all_bytes);
	apply(&f->held[1], &e);
	try_waiting(f);
	pthread_mutex_unlock(&f->mutex);
}

void fake_await(struct fake *f, enum client_type type, unsigned count)
{
	pthread_mutex_lock(&f->mutex);
	while (f->messages[type] < count)
		pthread_cond_wait(&f->changed, &f->mutex);
	pthread_mutex_unlock(&f->mutex);
}

void fake_await_waiting(struct fake *f, unsigned count)
{
	pthread_mutex_lock(&f->mutex);
	while (f->waiting_count < count)
		pthread_cond_wait(&f->changed, &f->mutex);
	pthread_mutex_unlock(&f->mutex);
}

uint32_t fake_count(struct fake *f, uint32_t resource)
{
	uint32_t count;

	fake_recall(f);
	pthread_mutex_lock(&f->mutex);
	count = f->held[resource].count;
	pthread_mutex_unlock(&f->mutex);
	return count;
}
