/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A member of a group that does nothing by itself: it takes orders from its
 * standard input and prints, one line each, what it is told. With it the tests
 * hold daemon/group_cpg.c against a real corosync.
 *
 *	group_probe GROUP
 *
 *	send COUNT SIZE		COUNT messages as fast as they are taken; "sent" at the end
 *	stuff COUNT		try to send COUNT times in a row, and time each call:
 *				"stuffed ACCEPTED LONGEST_US"
 *	latency COUNT		one message at a time: "latency MEDIAN_US P99_US"
 *	ping			"pong": the loop turns
 *	leave			hang up
 *	quit			close the group and end: "closed US"
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/group.h"

#define LATENCIES_MAX 10000u

struct probe {
	qb_loop_t *loop;
	struct group *group;
	qb_loop_timer_handle timer;
	char line[256];		/* orders that are not complete yet */
	size_t line_size;
	uint32_t number;	/* of the last message sent */
	uint32_t to_send;
	size_t size;
	uint32_t latencies, latencies_wanted;
	uint64_t sent_ns;
	uint64_t latency_ns[LATENCIES_MAX];
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int send_one(struct probe *p, size_t size)
{
	static uint8_t buf[GROUP_MESSAGE_MAX];
	uint32_t number = p->number + 1;
	int r;

	memcpy(buf, &number, sizeof(number));
	r = p->group->ops->send(p->group, buf, size);
	if (r == 0)
		p->number = number;
	return r;
}

static void send_more(void *data)
{
	struct probe *p = data;
	int r = 0;

	p->timer = 0;
	if (p->to_send == 0)
		return;
	while (p->to_send > 0 && (r = send_one(p, p->size)) == 0)
		p->to_send--;
	if (p->to_send == 0)
		printf("sent\n");
	else if (r == -EAGAIN)
		qb_loop_timer_add(p->loop, QB_LOOP_MED, 1000000, p, send_more, &p->timer);
	else
		printf("send failed: %s\n", strerror(-r));
}

/* ---- what the group tells ---- */

static void print_nodes(const char *what, const uint32_t *nodes, uint32_t count)
{
	printf(" %s=", what);
	for (uint32_t i = 0; i < count; i++)
		printf("%s%" PRIu32, i > 0 ? "," : "", nodes[i]);
}

static void on_view(void *context, const struct group_view *view)
{
	(void)context;
	printf("view");
	print_nodes("members", view->member, view->member_count);
	print_nodes("left", view->left, view->left_count);
	print_nodes("joined", view->joined, view->joined_count);
	printf("\n");
}

static void on_quorum(void *context, bool quorate)
{
	(void)context;
	printf("quorum %d\n", quorate);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void next_latency(struct probe *p)
{
	p->latency_ns[p->latencies++] = now_ns() - p->sent_ns;
	if (p->latencies == p->latencies_wanted) {
		qsort(p->latency_ns, p->latencies, sizeof(p->latency_ns[0]), by_value);
		printf("latency %" PRIu64 " %" PRIu64 "\n", p->latency_ns[p->latencies / 2] / 1000,
		       p->latency_ns[p->latencies * 99 / 100] / 1000);
		p->latencies_wanted = 0;
		return;
	}
	p->sent_ns = now_ns();
	if (send_one(p, 64) < 0)
		printf("latency failed\n");
}

static void on_message(void *context, uint32_t node, const void *buf, size_t size)
{
	struct probe *p = context;
	uint32_t number;

	memcpy(&number, buf, sizeof(number));
	if (p->latencies_wanted > 0 && node == p->group->info.self) {
		next_latency(p);
		return;
	}
	printf("message %" PRIu32 " %" PRIu32 " %zu\n", node, number, size);
	if (p->to_send > 0 && p->timer == 0)
		send_more(p);
}

static void on_lost(void *context, int error)
{
	(void)context;
	printf("lost %s\n", strerrorname_np(-error));
}

/* ---- orders ---- */

static void stuff(struct probe *p, unsigned count)
{
	uint64_t longest = 0;
	unsigned accepted = 0;

	for (unsigned i = 0; i < count; i++) {
		uint64_t start = now_ns(), took;
		int r = send_one(p, 1024);

		took = now_ns() - start;
		longest = took > longest ? took : longest;
		accepted += r == 0;
		if (r < 0 && r != -EAGAIN)
			printf("stuffing failed: %s\n", strerror(-r));
	}
	printf("stuffed %u %" PRIu64 "\n", accepted, longest / 1000);
}

static void obey(struct probe *p, const char *order)
{
	unsigned count, size;

	if (sscanf(order, "send %u %u", &count, &size) == 2 && size >= 4 && size <= GROUP_MESSAGE_MAX) {
		p->to_send = count;
		p->size = size;
		send_more(p);
	} else if (sscanf(order, "stuff %u", &count) == 1) {
		stuff(p, count);
	} else if (sscanf(order, "latency %u", &count) == 1 && count > 0 && count <= LATENCIES_MAX) {
		p->latencies_wanted = count;
		p->latencies = 0;
		p->sent_ns = now_ns();
		if (send_one(p, 64) < 0)
			printf("latency failed\n");
	} else if (strcmp(order, "ping") == 0) {
		printf("pong\n");
	} else if (strcmp(order, "leave") == 0) {
		p->group->ops->leave(p->group);
	} else if (strcmp(order, "quit") == 0) {
		qb_loop_stop(p->loop);
	} else {
		printf("what is \"%s\"?\n", order);
	}
}

static int32_t on_input(int32_t fd, int32_t revents, void *data)
{
	struct probe *p = data;
	ssize_t n = read(fd, p->line + p->line_size, sizeof(p->line) - 1 - p->line_size);
	char *newline;

	(void)revents;
	if (n <= 0) {
		qb_loop_stop(p->loop);
		return -1;
	}
	p->line_size += (size_t)n;
	p->line[p->line_size] = '\0';
	while ((newline = strchr(p->line, '\n')) != NULL) {
		*newline = '\0';
		obey(p, p->line);
		p->line_size -= (size_t)(newline + 1 - p->line);
		memmove(p->line, newline + 1, p->line_size + 1);
	}
	return 0;
}

static void print_info(const struct group_info *info)
{
	printf("info cluster=%s self=%" PRIu32 " votes=%" PRIu32 " stable=%s encrypted=%d nodes=",
	       info->cluster_name, info->self, info->expected_votes,
	       info->stability == BELAY_STABLE_ALL ? "all" : "majority", info->encrypted);
	for (uint32_t i = 0; i < info->node_count; i++)
		printf("%s%" PRIu32 ":%s", i > 0 ? "," : "", info->node[i], info->node_name[i]);
	printf("\n");
}

int main(int argc, char **argv)
{
	static struct probe p;
	const struct group_handlers handlers = {
		.on_view = on_view, .on_message = on_message,
		.on_quorum = on_quorum, .on_lost = on_lost, .context = &p,
	};
	const char *why = NULL;
	uint64_t start;
	int r;

	setvbuf(stdout, NULL, _IOLBF, 0);
	p.loop = qb_loop_create();
	r = group_cpg_open(p.loop, argc > 1 ? argv[1] : "probe", &handlers, &p.group, &why);
	if (r < 0) {
		printf("failed %s: %s\n", strerrorname_np(-r), why);
		return EXIT_FAILURE;
	}
	print_info(&p.group->info);
	r = qb_loop_poll_add(p.loop, QB_LOOP_LOW, STDIN_FILENO, POLLIN, &p, on_input);
	if (r < 0) {
		printf("failed: orders must come from a pipe\n");
		return EXIT_FAILURE;
	}
	qb_loop_run(p.loop);
	start = now_ns();
	p.group->ops->close(p.group);
	printf("closed %" PRIu64 "\n", (now_ns() - start) / 1000);
	qb_loop_destroy(p.loop);
	return EXIT_SUCCESS;
}
