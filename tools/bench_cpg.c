/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/bench_cpg.h"

#include <corosync/cpg.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* belayd keeps to the same bounds, so that both are measured alike. */
#define UNDER_WAY_MAX 32u
#define UNDER_WAY_BYTES_MAX (512u * 1024)
#define PATIENCE_NS 5000000000u

struct run {
	cpg_handle_t handle;
	int fd;
	uint32_t node, pid;
	uint32_t members;
	uint64_t sent_ns[UNDER_WAY_MAX];	/* own messages come back in order */
	unsigned first, under_way;
	uint64_t own, all;			/* delivered since the part began */
	struct latency *latency;
	uint8_t buf[BENCH_CPG_BATCH_MAX];
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int cpg_errno(cs_error_t error)
{
	switch (error) {
	case CS_OK:			return 0;
	case CS_ERR_TRY_AGAIN:		return -EAGAIN;
	case CS_ERR_NO_MEMORY:		return -ENOMEM;
	case CS_ERR_ACCESS:		return -EACCES;
	case CS_ERR_LIBRARY:
	case CS_ERR_BAD_HANDLE:		return -ENOTCONN;
	default:			return -EIO;
	}
}

static struct run *from_handle(cpg_handle_t handle)
{
	void *context;

	return cpg_context_get(handle, &context) == CS_OK ? context : NULL;
}

static void on_deliver(cpg_handle_t handle, const struct cpg_name *name, uint32_t node,
		       uint32_t pid, void *buf, size_t size)
{
	struct run *run = from_handle(handle);

	(void)name;
	(void)buf;
	(void)size;
	if (!run)
		return;
	run->all++;
	if (node != run->node || pid != run->pid || run->under_way == 0)
		return;
	if (run->latency)
		latency_add(run->latency, now_ns() - run->sent_ns[run->first]);
	run->first = (run->first + 1) % UNDER_WAY_MAX;
	run->under_way--;
	run->own++;
}

static void on_confchg(cpg_handle_t handle, const struct cpg_name *name,
		       const struct cpg_address *member, size_t member_count,
		       const struct cpg_address *left, size_t left_count,
		       const struct cpg_address *joined, size_t joined_count)
{
	struct run *run = from_handle(handle);

	(void)name;
	(void)member;
	(void)left;
	(void)left_count;
	(void)joined;
	(void)joined_count;
	if (run)
		run->members = (uint32_t)member_count;
}

/* Take what has come, or wait for it, @ms at most. */
static int take(struct run *run, int ms)
{
	struct pollfd p = { .fd = run->fd, .events = POLLIN };

	if (poll(&p, 1, ms) < 0)
		return errno == EINTR ? 0 : -errno;
	return cpg_errno(cpg_dispatch(run->handle, CS_DISPATCH_ALL));
}

/* 0; -EAGAIN: corosync takes no more now. */
static int send_one(struct run *run, size_t size)
{
	struct iovec iov = { .iov_base = run->buf, .iov_len = size };
	unsigned last = (run->first + run->under_way) % UNDER_WAY_MAX;
	int r;

	run->sent_ns[last] = now_ns();
	r = cpg_errno(cpg_mcast_joined(run->handle, CPG_TYPE_AGREED, &iov, 1));
	if (r == 0)
		run->under_way++;
	return r;
}

/* Send with at most @window under way until @end. */
static int keep_sending(struct run *run, size_t size, unsigned window, uint64_t end)
{
	while (now_ns() < end) {
		int r = 0;

		while (r == 0 && run->under_way < window &&
		       (run->under_way + 1) * size <= UNDER_WAY_BYTES_MAX)
			r = send_one(run, size);
		if (r < 0 && r != -EAGAIN)
			return r;
		/* After "try again" nothing may be under way that would wake us. */
		r = take(run, r == -EAGAIN ? 1 : 100);
		if (r < 0)
			return r;
	}
	return 0;
}

static int drain(struct run *run)
{
	uint64_t end = now_ns() + PATIENCE_NS;

	while (run->under_way > 0) {
		int r = take(run, 100);

		if (r < 0)
			return r;
		if (now_ns() > end)
			return -ETIMEDOUT;
	}
	return 0;
}

static int measure(struct run *run, const struct bench_cpg_options *o, unsigned ops, size_t size,
		   unsigned window, struct bench_cpg_rate *rate)
{
	uint64_t start = now_ns() + (uint64_t)o->warmup_ms * 1000000, took;
	double seconds;
	int r;

	run->latency = NULL;
	r = keep_sending(run, size, window, start);
	if (r < 0)
		return r;
	start = now_ns();
	run->latency = &rate->latency;
	run->own = 0;
	run->all = 0;
	r = keep_sending(run, size, window, start + (uint64_t)o->ms * 1000000);
	took = now_ns() - start;
	if (r < 0)
		return r;
	if (run->own == 0)
		return -ETIMEDOUT;
	seconds = (double)took / 1e9;
	rate->messages_per_s = (double)run->own / seconds;
	rate->all_messages_per_s = (double)run->all / seconds;
	rate->ops_per_s = rate->messages_per_s * ops;
	run->latency = NULL;
	return drain(run);
}

static int join(struct run *run, const char *name)
{
	struct cpg_name cpg_name = { .length = (uint32_t)strlen(name) };
	uint64_t end = now_ns() + PATIENCE_NS;
	int r;

	memcpy(cpg_name.value, name, cpg_name.length);
	do {
		r = cpg_errno(cpg_local_get(run->handle, &run->node));
		if (r == 0)
			r = cpg_errno(cpg_join(run->handle, &cpg_name));
		if (r == -EAGAIN)
			(void)poll(NULL, 0, 10);
	} while (r == -EAGAIN && now_ns() < end);
	if (r < 0)
		return r == -EAGAIN ? -ETIMEDOUT : r;
	while (run->members == 0) {
		r = take(run, 100);
		if (r < 0)
			return r;
		if (now_ns() > end)
			return -ETIMEDOUT;
	}
	return 0;
}

static int measure_all(struct run *run, const struct bench_cpg_options *o, struct bench_cpg_result *result)
{
	size_t size = (size_t)o->ops * o->op_bytes;
	int r;

	r = cpg_errno(cpg_fd_get(run->handle, &run->fd));
	if (r == 0)
		r = join(run, o->group ? o->group : "belay-bench");
	if (r == 0)
		r = measure(run, o, 1, 64, 1, &result->single);
	if (r == 0 && o->ops > 0)
		r = measure(run, o, o->ops, size, 1, &result->closed);
	if (r == 0 && o->ops > 0)
		r = measure(run, o, o->ops, size, UNDER_WAY_MAX, &result->flat);
	result->node = run->node;
	result->members = run->members;
	return r;
}

int bench_cpg(const struct bench_cpg_options *o, struct bench_cpg_result *ret_result)
{
	cpg_model_v1_data_t model = {
		.model = CPG_MODEL_V1,
		.cpg_deliver_fn = on_deliver,
		.cpg_confchg_fn = on_confchg,
	};
	struct bench_cpg_result *result;
	struct run *run;
	int r;

	if ((o->ops > 0 && o->op_bytes == 0) || o->ms == 0 ||
	    (uint64_t)o->ops * o->op_bytes > BENCH_CPG_BATCH_MAX ||
	    (o->group && (o->group[0] == '\0' || strlen(o->group) >= CPG_MAX_NAME_LENGTH)))
		return -EINVAL;
	run = calloc(1, sizeof(*run));
	result = calloc(1, sizeof(*result));
	r = -ENOMEM;
	if (!run || !result)
		goto end;
	run->pid = (uint32_t)getpid();
	r = cpg_errno(cpg_model_initialize(&run->handle, CPG_MODEL_V1, (cpg_model_data_t *)&model, run));
	if (r < 0)
		goto end;
	r = measure_all(run, o, result);
	(void)cpg_finalize(run->handle);
	if (r == 0)
		*ret_result = *result;
end:
	free(result);
	free(run);
	return r;
}
