/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Many clients, each with a connection and a resource of its own, driven by
 * one loop: how many locks a node and its cluster can do at once.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "tools/bench.h"

struct client {
	struct belay *belay;
	struct belay_handle *handle;
	uint64_t started;
};

struct crowd {
	struct bench *bench;
	struct client *client;
	int epoll;
	int signals;
	uint64_t count;
	struct latency latency;
	bool ending;		/* what is granted is not asked for again */
	unsigned waiting;	/* clients whose answer is due */
};

static int start(struct crowd *crowd, struct client *client)
{
	enum belay_lock_mode mode = crowd->bench->o->shared ? BELAY_SHARED : BELAY_EXCLUSIVE;
	uint32_t request;
	int r;

	client->started = bench_now();
	r = belay_lock_start(client->handle, mode, 0, 0, &request);
	if (r == 0)
		crowd->waiting++;
	return r;
}

static int client_open(struct crowd *crowd, unsigned index)
{
	const struct bench_options *o = crowd->bench->o;
	struct client *client = &crowd->client[index];
	struct epoll_event in = { .events = EPOLLIN, .data.ptr = client };
	char name[256];
	int r = belay_connect(&client->belay, crowd->bench->tool->socket);

	if (r < 0)
		return r;
	if ((size_t)snprintf(name, sizeof(name), "%s.%u", o->name, index) >= sizeof(name))
		return -ENAMETOOLONG;
	r = belay_open_name(client->belay, NULL, name, BELAY_OWNER_HANDLE, &client->handle);
	if (r < 0)
		return r;
	if (epoll_ctl(crowd->epoll, EPOLL_CTL_ADD, belay_fd(client->belay), &in) < 0)
		return -errno;
	return start(crowd, client);
}

static int crowd_open(struct crowd *crowd)
{
	struct epoll_event in = { .events = EPOLLIN };
	sigset_t set;
	unsigned i;
	int r = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	crowd->signals = signalfd(-1, &set, SFD_CLOEXEC);
	crowd->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (crowd->signals < 0 || crowd->epoll < 0 ||
	    epoll_ctl(crowd->epoll, EPOLL_CTL_ADD, crowd->signals, &in) < 0)
		return -errno;
	for (i = 0; i < crowd->bench->o->clients && r == 0; i++)
		r = client_open(crowd, i);
	return r;
}

static void crowd_close(struct crowd *crowd)
{
	unsigned i;

	for (i = 0; i < crowd->bench->o->clients; i++) {
		belay_handle_close(crowd->client[i].handle);
		belay_disconnect(crowd->client[i].belay);
	}
	close(crowd->epoll);
	close(crowd->signals);
}

/* Give the lock back and, if the run goes on, ask for it again: in one packet. */
static int again(struct crowd *crowd, struct client *client)
{
	int r = belay_cork(client->belay);

	if (r == 0)
		r = belay_unlock(client->handle, 0, 0);
	if (r == 0 && !crowd->ending)
		r = start(crowd, client);
	return r < 0 ? r : belay_uncork(client->belay);
}

/* Everything that this client's descriptor has to say. */
static int serve(struct crowd *crowd, struct client *client)
{
	struct belay_event_info event;
	int r;

	while ((r = belay_next(client->belay, &event)) == 1) {
		crowd->waiting--;
		if (event.result < 0)
			return event.result;
		latency_add(&crowd->latency, bench_now() - client->started);
		crowd->count++;
		r = again(crowd, client);
		if (r < 0)
			return r;
	}
	return r;
}

/* Wait for events until @end at most; 1: a signal came. */
static int turn(struct crowd *crowd, uint64_t end)
{
	struct epoll_event event[64];
	uint64_t now = bench_now();
	int i, n, r;

	n = epoll_wait(crowd->epoll, event, 64, end > now ? (int)((end - now + 999999) / 1000000) : 0);
	for (i = 0; i < n; i++) {
		if (!event[i].data.ptr)
			return 1;
		r = serve(crowd, event[i].data.ptr);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Run for @ms (0: for ever), and tell once a second. 0, 1: a signal came, or a negative errno. */
static int run_for(struct crowd *crowd, unsigned ms)
{
	uint64_t now = bench_now(), end = now + (uint64_t)ms * 1000000;
	uint64_t told = now, before = crowd->count, next;
	int r = 0;

	while (r == 0 && (ms == 0 || now < end)) {
		next = told + 1000000000;
		r = turn(crowd, ms > 0 && end < next ? end : next);
		now = bench_now();
		if (now >= next) {
			bench_tell(crowd->bench, crowd->count - before, (double)(now - told) / 1e9);
			before = crowd->count;
			told = now;
		}
	}
	return r;
}

static int measure(struct crowd *crowd, struct bench_result *result)
{
	const struct bench_options *o = crowd->bench->o;
	uint64_t begin, count;
	int r = 0;

	if (o->warmup_ms > 0)
		r = run_for(crowd, o->warmup_ms);
	crowd->latency = (struct latency){ 0 };
	bench_count(crowd->bench, -1, result);
	count = crowd->count;
	begin = bench_now();
	if (r == 0)
		r = run_for(crowd, o->ms);
	result->seconds = (double)(bench_now() - begin) / 1e9;
	result->cycles = crowd->count - count;
	result->latency = crowd->latency;
	bench_count(crowd->bench, 1, result);

	/* A client of another node may wait for us: give back all, in order. */
	crowd->ending = true;
	while (r >= 0 && r != 1 && crowd->waiting > 0)
		r = turn(crowd, bench_now() + 1000000000);
	return r;
}

int bench_clients(struct bench *bench, struct bench_result *ret_result)
{
	struct crowd *crowd = calloc(1, sizeof(*crowd));
	struct bench_result result = { 0 };
	int r, status = TOOL_OK;

	if (crowd)
		crowd->client = calloc(bench->o->clients, sizeof(*crowd->client));
	if (!crowd || !crowd->client) {
		free(crowd);
		return tool_failed(bench->tool, -ENOMEM, "%u clients", bench->o->clients);
	}
	crowd->bench = bench;
	r = crowd_open(crowd);
	if (r == 0)
		r = measure(crowd, &result);
	if (r < 0)
		status = tool_failed(bench->tool, r, "%u clients on %s.*", bench->o->clients,
				     bench->o->name);
	else
		*ret_result = result;
	crowd_close(crowd);
	free(crowd->client);
	free(crowd);
	return status;
}
