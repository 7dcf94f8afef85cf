/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ping-pong: hold a byte, lock the next, release the former, and so on around
 * N bytes. With N larger than the number of players each waits for the one
 * before it. A lock and an unlock count as two, as in the original.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/bench.h"

static bool lane_fail(struct lane *lane, const char *what, int error)
{
	lane->error_what = what;
	lane->error = error;
	/* One that stopped would let the others wait for ever. */
	atomic_store(&lane->bench->stop, true);
	return false;
}

/* Read and write byte @at as -r and -w say, under its lock. */
static bool touch_data(struct lane *lane, uint64_t at)
{
	const struct bench *bench = lane->bench;
	unsigned char byte;

	if (bench->o->reads) {
		if (bench->map)
			byte = *(volatile unsigned char *)&bench->map[at];
		else if (pread(bench->file, &byte, 1, (off_t)at) != 1)
			return lane_fail(lane, "reading the file", -errno);
		lane->bench->increment = (unsigned char)(byte - lane->seen[at]);
		lane->seen[at] = byte;
	}
	if (bench->o->writes) {
		byte = (unsigned char)(lane->seen[at] + 1);
		if (bench->map)
			*(volatile unsigned char *)&bench->map[at] = byte;
		else if (pwrite(bench->file, &byte, 1, (off_t)at) != 1)
			return lane_fail(lane, "writing the file", -errno);
	}
	return true;
}

static bool check_lock(struct lane *lane, uint64_t at)
{
	int r = lane->via->check(lane, at);

	if (r < 0)
		return lane_fail(lane, "asking who has a lock", r);
	if (r > 0)
		return lane_fail(lane, "INCOHERENT: somebody else has a lock that was granted here", 0);
	return true;
}

/* One turn of the wheel: from byte @at to @next. */
static bool cycle(struct lane *lane, uint64_t at, uint64_t next)
{
	uint64_t before = bench_now();
	int r = lane->via->lock(lane, next);

	if (r < 0)
		return lane_fail(lane, "locking", r);
	latency_add(&lane->latency, bench_now() - before);
	if (lane->bench->o->check && !check_lock(lane, next))
		return false;
	if (lane->seen && !touch_data(lane, at))
		return false;
	r = lane->via->unlock(lane, at);
	if (r < 0)
		return lane_fail(lane, "unlocking", r);
	atomic_fetch_add_explicit(&lane->count, 1, memory_order_relaxed);
	return true;
}

static void *lane_run(void *arg)
{
	struct lane *lane = arg;
	struct bench *bench = lane->bench;
	uint64_t at = 0, next;
	unsigned round;
	int r = lane->via->lock(lane, 0);

	if (r < 0) {
		lane_fail(lane, "locking", r);
		return NULL;
	}
	while (!atomic_load_explicit(&bench->stop, memory_order_relaxed)) {
		round = atomic_load_explicit(&bench->round, memory_order_relaxed);
		if (round != lane->round) {
			lane->round = round;
			lane->latency = (struct latency){ 0 };
		}
		next = at + 1 == bench->o->locks ? 0 : at + 1;
		if (!cycle(lane, at, next))
			break;
		at = next;
	}
	/* Whoever waits for it must see the stop, too. */
	(void)lane->via->unlock(lane, at);
	return NULL;
}

/* Ranges held beside; far away, never adjacent, and other nodes' are elsewhere. */
static int hold_ranges(struct lane *lane)
{
	const struct bench *bench = lane->bench;
	uint64_t node = bench->belay ? belay_node(bench->belay) & 0xffff : 0;
	uint64_t base = UINT64_C(1) << 62 | node << 44 | (uint64_t)getpid() << 22;
	unsigned i;
	int r = 0;

	for (i = 0; i < bench->o->ranges && r == 0; i++)
		r = lane->via->lock(lane, base + 2 * (uint64_t)i);
	return r;
}

static int lane_open(struct bench *bench, struct lane *lane)
{
	int r;

	lane->bench = bench;
	lane->via = &bench_vias[bench->o->via];
	if (bench->o->reads || bench->o->writes) {
		lane->seen = calloc(bench->o->locks, 1);
		if (!lane->seen)
			return -ENOMEM;
	}
	r = lane->via->open(lane);
	if (r < 0)
		lane->error_what = "opening the file or the name";
	return r;
}

static uint64_t total(const struct lane *lanes, unsigned count)
{
	uint64_t sum = 0;

	while (count > 0)
		sum += atomic_load_explicit(&lanes[--count].count, memory_order_relaxed);
	return sum;
}

/* A second, or what is left of the run; false: a signal came. */
static bool pause_for(const sigset_t *set, uint64_t ns)
{
	struct timespec t = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

	return sigtimedwait(set, NULL, &t) < 0 && errno != EINVAL;
}

/*
 * Keep time, and tell once a second, until @ms are over (0: never), a signal
 * comes or a lane stops. Returns false after a signal.
 */
static bool keep_time(struct bench *bench, struct lane *lanes, unsigned ms, const sigset_t *set)
{
	uint64_t begin = bench_now(), end = begin + (uint64_t)ms * 1000000, now = begin, then;
	uint64_t before = total(lanes, bench->o->threads), count;
	bool go_on = true;

	while (go_on && !atomic_load(&bench->stop) && (ms == 0 || now < end)) {
		then = now;
		go_on = pause_for(set, ms == 0 || end - now > 1000000000 ? 1000000000 : end - now);
		now = bench_now();
		count = total(lanes, bench->o->threads);
		if (now - then > 100000000)
			bench_tell(bench, count - before, (double)(now - then) / 1e9);
		before = count;
	}
	return go_on;
}

static void measure(struct bench *bench, struct lane *lanes, const sigset_t *set,
		    struct bench_result *result)
{
	uint64_t begin, cycles;
	bool go_on = true;

	if (bench->o->warmup_ms > 0)
		go_on = keep_time(bench, lanes, bench->o->warmup_ms, set);
	atomic_fetch_add(&bench->round, 1);
	bench_count(bench, -1, result);
	begin = bench_now();
	cycles = total(lanes, bench->o->threads);
	if (go_on)
		(void)keep_time(bench, lanes, bench->o->ms, set);
	result->seconds = (double)(bench_now() - begin) / 1e9;
	result->cycles = total(lanes, bench->o->threads) - cycles;
	bench_count(bench, 1, result);
	atomic_store(&bench->stop, true);
}

static int run_lanes(struct bench *bench, struct lane *lanes, struct bench_result *result)
{
	sigset_t set;
	unsigned i, started = 0;
	int r = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	for (i = 0; i < bench->o->threads && r == 0; i++) {
		r = -pthread_create(&lanes[i].thread, NULL, lane_run, &lanes[i]);
		started += r == 0;
	}
	if (r == 0)
		measure(bench, lanes, &set, result);
	atomic_store(&bench->stop, true);
	/* A second signal ends a wait for a lock that somebody else keeps. */
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	for (i = 0; i < started; i++)
		pthread_join(lanes[i].thread, NULL);
	return r;
}

/* 0, or the exit status. */
static int report_errors(const struct bench *bench, const struct lane *lanes)
{
	const struct lane *lane;

	for (lane = lanes; lane < lanes + bench->o->threads; lane++)
		if (lane->error_what)
			return tool_failed(bench->tool, lane->error, "%s", lane->error_what);
	return TOOL_OK;
}

int bench_pingpong(struct bench *bench, struct bench_result *ret_result)
{
	struct lane *lanes = calloc(bench->o->threads, sizeof(*lanes));
	struct bench_result result = { 0 };
	unsigned i, opened = 0;
	int r = 0, status;

	if (!lanes)
		return tool_failed(bench->tool, -ENOMEM, "%u threads", bench->o->threads);
	for (i = 0; i < bench->o->threads && r == 0; i++) {
		r = lane_open(bench, &lanes[i]);
		opened++;
	}
	if (r == 0)
		r = hold_ranges(&lanes[0]);
	if (r == 0)
		r = run_lanes(bench, lanes, &result);
	if (r < 0) {
		const char *what = lanes[opened - 1].error_what;

		status = tool_failed(bench->tool, r, "%s", what ? what : "starting");
	} else {
		status = report_errors(bench, lanes);
	}
	result.increment = bench->increment;
	for (i = 0; i < opened; i++) {
		latency_merge(&result.latency, &lanes[i].latency);
		lanes[i].via->close(&lanes[i]);
		free(lanes[i].seen);
	}
	free(lanes);
	if (status == TOOL_OK)
		*ret_result = result;
	return status;
}
