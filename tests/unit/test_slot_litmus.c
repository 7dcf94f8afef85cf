/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The handshake of a loan on real processors: a client takes a lock at the
 * very moment at which belayd takes the loan back. Either the client was first,
 * and belayd sees the lock, or it was not, and the client hears of it.
 *
 * A store by each, then a load by each of what the other stored, does not do: both
 * stores may still be on their way when both look. That is shown first, for where
 * this test does not catch that, it catches nothing.
 */
#include "slot/commit.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "tests/tap.h"

#define BATCH 50000u
#define SECONDS_MAX 60
/* So often the broken handshake has to fail; the good one then gets so many times more rounds. */
#define FAILURES_WANTED 50u
#define ROUNDS_MORE 4u

struct handshake;

struct variant {
	void (*begin)(struct handshake *h);
	bool (*client)(struct handshake *h);	/* it believes that it has the lock */
	bool (*daemon)(struct handshake *h);	/* it believes that nobody has it */
};

struct handshake {
	/* What they meet at: each on a cache line of its own. */
	struct slot_head head;
	_Alignas(64) _Atomic uint32_t recall;
	_Alignas(64) _Atomic uint32_t taken;
	_Alignas(64) _Atomic uint64_t round;	/* even: begun; odd: the client's part is done */
	_Atomic uint64_t start;			/* on the clock: when it begins */
	_Atomic bool client_has;
	_Alignas(64) struct slot_entry *log;
	struct slot_loan loan;
	struct slot_terms terms;
	const struct variant *variant;
	uint64_t rounds, failures;		/* of which both believed that it is theirs */
	uint64_t lost;				/* neither did */
	int cpu[2];
};

static uint64_t ticks(void)
{
#if defined(__x86_64__) || defined(__i386__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t t;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
	return t;
#else
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
#endif
}

/* ---- each stores, then each looks ---- */

static void begin_broken(struct handshake *h)
{
	atomic_store(&h->recall, 0);
	atomic_store(&h->taken, 0);
}

static bool client_broken(struct handshake *h)
{
	atomic_store_explicit(&h->taken, 1, memory_order_relaxed);
	return atomic_load_explicit(&h->recall, memory_order_relaxed) == 0;
}

static bool daemon_broken(struct handshake *h)
{
	atomic_store_explicit(&h->recall, 1, memory_order_relaxed);
	return atomic_load_explicit(&h->taken, memory_order_relaxed) == 0;
}

/* ---- a loan ---- */

static void begin_loan(struct handshake *h)
{
	h->terms.epoch = (h->terms.epoch + 1) & SLOT_EPOCH_MASK;
	slot_lend(&h->head, h->log, &h->terms, NULL, 0, false);
	if (slot_begin(&h->loan, &h->head, h->log, &h->terms) < 0)
		bail_out("no loan");
}

static bool client_loan(struct handshake *h)
{
	const struct belay_range range = { 7, 7 };
	uint64_t token;

	return slot_lock(&h->loan, 0, BELAY_MODE_EX, &range, &token) == 0;
}

static bool daemon_loan(struct handshake *h)
{
	return slot_count(slot_recall(&h->head)) == 0;
}

static const struct variant broken = { begin_broken, client_broken, daemon_broken };
static const struct variant loan = { begin_loan, client_loan, daemon_loan };

/* ---- rounds ---- */

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		bail_out("a thread cannot be bound to its processor");
}

static void await_round(struct handshake *h, uint64_t round)
{
	for (unsigned spins = 1; atomic_load_explicit(&h->round, memory_order_acquire) != round; spins++)
		if (spins % 10000 == 0)
			sched_yield();
}

static void await_start(const struct handshake *h)
{
	uint64_t start = atomic_load_explicit(&h->start, memory_order_relaxed);

	while (ticks() < start)
		;
}

static void *client_thread(void *arg)
{
	struct handshake *h = arg;

	pin(h->cpu[1]);
	for (uint64_t i = 0; i < BATCH; i++) {
		await_round(h, 2 * i + 2);
		await_start(h);
		atomic_store_explicit(&h->client_has, h->variant->client(h), memory_order_relaxed);
		atomic_store_explicit(&h->round, 2 * i + 3, memory_order_release);
	}
	return NULL;
}

static void batch(struct handshake *h)
{
	pthread_t thread;

	atomic_store(&h->round, 1);
	if (pthread_create(&thread, NULL, client_thread, h) != 0)
		bail_out("no thread");
	for (uint64_t i = 0; i < BATCH; i++) {
		bool is_free, has;

		h->variant->begin(h);
		/* Time for the other to see it; then one of the two is a little late. */
		atomic_store_explicit(&h->start, ticks() + 1000, memory_order_relaxed);
		atomic_store_explicit(&h->round, 2 * i + 2, memory_order_release);
		await_start(h);
		for (uint64_t late = i % 32; late > 0; late--)
			atomic_signal_fence(memory_order_seq_cst);
		is_free = h->variant->daemon(h);
		await_round(h, 2 * i + 3);
		has = atomic_load_explicit(&h->client_has, memory_order_relaxed);
		h->failures += is_free && has;
		h->lost += !is_free && !has;
	}
	pthread_join(thread, NULL);
	h->rounds += BATCH;
}

static time_t seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

static void two_cpus(struct handshake *h)
{
	cpu_set_t set;
	int found = 0;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		bail_out("which processors there are");
	for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++)
		if (CPU_ISSET(cpu, &set))
			h->cpu[found++] = cpu;
	if (found < 2)
		skip_all("it takes two processors, and this process may use only one");
}

int main(void)
{
	static struct handshake h = {
		.terms = { .mode = BELAY_MODE_EX, .range = { 0, BELAY_OFFSET_MAX }, .room = 16 },
	};
	time_t end = seconds() + SECONDS_MAX;
	uint64_t rounds;

	two_cpus(&h);
	h.log = calloc(1, SLOT_LOG_BYTES);
	if (!h.log)
		bail_out("no memory");
	pin(h.cpu[0]);

	h.variant = &broken;
	while (h.failures < FAILURES_WANTED && seconds() < end)
		batch(&h);
	ok(h.failures >= FAILURES_WANTED,
	   "stores and loads without a fence fail: %" PRIu64 " of %" PRIu64 " rounds", h.failures, h.rounds);

	rounds = h.rounds * ROUNDS_MORE;
	h.variant = &loan;
	h.rounds = h.failures = h.lost = 0;
	while (h.rounds < rounds && seconds() < end + SECONDS_MAX)
		batch(&h);
	ok(h.failures == 0 && h.lost == 0, "a loan's word does not: %" PRIu64 " rounds, %" PRIu64
	   " times two had it, %" PRIu64 " times none", h.rounds, h.failures, h.lost);
	ok_uint(h.rounds, rounds, "in as many rounds as that takes");
	slot_ranges_done(&h.loan.held);
	free(h.log);
	return done_testing();
}
