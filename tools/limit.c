/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A limit on how long the program waits for belayd. libbelay's calls wait for
 * their answers as long as it takes, for a program with other locks must not
 * lose them; a tool has one connection, and may end with it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tools/tool.h"

struct tool_limit {
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	struct timespec deadline;
	bool over;		/* the waiting is */
	int status;
	char text[512];
};

static void *watch(void *arg)
{
	struct tool_limit *limit = arg;
	int r = 0;

	pthread_mutex_lock(&limit->mutex);
	while (!limit->over && r != ETIMEDOUT)
		r = pthread_cond_timedwait(&limit->wake, &limit->mutex, &limit->deadline);
	if (!limit->over) {
		/* With the mutex held: who gets the answer now does not go on with it. */
		fputs(limit->text, stderr);
		_exit(limit->status);
	}
	pthread_mutex_unlock(&limit->mutex);
	return NULL;
}

static void set_deadline(struct tool_limit *limit, uint64_t ms)
{
	pthread_condattr_t monotonic;

	clock_gettime(CLOCK_MONOTONIC, &limit->deadline);
	limit->deadline.tv_sec += (time_t)(ms / 1000);
	limit->deadline.tv_nsec += (long)(ms % 1000) * 1000000;
	if (limit->deadline.tv_nsec >= 1000000000) {
		limit->deadline.tv_nsec -= 1000000000;
		limit->deadline.tv_sec++;
	}
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&limit->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

int tool_limit_begin(const struct tool *tool, uint64_t ms, int status, const char *text,
		     struct tool_limit **ret_limit)
{
	struct tool_limit *limit = calloc(1, sizeof(*limit));
	int r;

	if (!limit)
		return tool_failed(tool, -ENOMEM, "cannot limit the waiting for belayd");
	limit->status = status;
	(void)snprintf(limit->text, sizeof(limit->text), "belay %s: %s\n", tool->command->name, text);
	pthread_mutex_init(&limit->mutex, NULL);
	set_deadline(limit, ms);
	r = pthread_create(&limit->thread, NULL, watch, limit);
	if (r != 0) {
		pthread_cond_destroy(&limit->wake);
		pthread_mutex_destroy(&limit->mutex);
		free(limit);
		return tool_failed(tool, -r, "cannot limit the waiting for belayd");
	}
	*ret_limit = limit;
	return TOOL_OK;
}

void tool_limit_end(struct tool_limit *limit)
{
	pthread_mutex_lock(&limit->mutex);
	limit->over = true;
	pthread_cond_signal(&limit->wake);
	pthread_mutex_unlock(&limit->mutex);
	pthread_join(limit->thread, NULL);
	pthread_cond_destroy(&limit->wake);
	pthread_mutex_destroy(&limit->mutex);
	free(limit);
}
