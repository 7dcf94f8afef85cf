/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lvmlockd/lock_child.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lvmlockd/message.h"

/* An answer is a few short fields. */
#define ANSWER_MAX 2048u

static uint64_t now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		int r = -errno;

		close(fd);
		return r;
	}
	return fd;
}

static int write_all(int fd, const char *bytes, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, bytes, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		bytes += n;
		size -= (size_t)n;
	}
	return 0;
}

/* One answer, and nothing behind it: nothing else was asked. */
static int read_answer(int fd, struct message *ret_answer)
{
	char buf[ANSWER_MAX];
	size_t size = 0;

	while (message_length(buf, size) == 0) {
		ssize_t n = size < sizeof(buf) ? read(fd, buf + size, sizeof(buf) - size) : 0;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENOTCONN;
		size += (size_t)n;
	}
	return message_parse(buf, message_length(buf, size), ret_answer);
}

/* The lock's result in *ret_result; or a negative errno: there is no talking to it. */
static int ask_lock(int fd, const struct lock_child *ask, const struct lock_child_lv *lv,
		    uint64_t wait_ms, struct message_out *out, struct message *answer, int *ret_result)
{
	int r;

	message_begin(out);
	message_put_text(out, "request", "lock_lv");
	message_put_number(out, "pid", getpid());
	message_put_text(out, "cmd", "belay-lvmlockd");
	message_put_text(out, "mode", ask_mode_name(ask->mode));
	message_put_text(out, "opts", wait_ms > 0 ? "persistent,wait" : "persistent");
	if (wait_ms > 0)
		message_put_number(out, "wait_ms", (int64_t)wait_ms);
	message_put_text(out, "vg_name", ask->vg);
	message_put_text(out, "lv_name", lv->name);
	message_put_text(out, "lv_uuid", lv->uuid);
	message_put_text(out, "vg_lock_type", "dlm");
	message_put_text(out, "lv_lock_args", "dlm");
	r = message_end(out);
	if (r == 0)
		r = write_all(fd, out->bytes, out->size);
	if (r == 0)
		r = read_answer(fd, answer);
	if (r < 0)
		return r;
	*ret_result = (int)message_number(answer, "op_result", -EPROTO);
	return 0;
}

int lock_child_run(const void *argument, size_t size, int out)
{
	const struct lock_child *ask = argument;
	struct message_out *request = malloc(sizeof(*request));
	struct message *answer = malloc(sizeof(*answer));
	uint64_t end_ms = now_ms() + ask->wait_ms;
	int fd = connect_to(ask->socket);
	int r = fd < 0 ? fd : !request || !answer ? -ENOMEM : 0;

	(void)size;
	for (uint32_t i = 0; r == 0 && i < ask->count; i++) {
		uint64_t now = now_ms();
		int result = 0;

		r = ask_lock(fd, ask, &ask->lv[i], now < end_ms ? end_ms - now : 0, request, answer, &result);
		if (r == 0 && result < 0 && result != -EALREADY && dprintf(out, "%" PRIu32 " %d\n", i, result) < 0)
			r = -EIO;
	}
	if (fd >= 0)
		close(fd);
	free(answer);
	free(request);
	return r;
}

int lock_child_next(const char *output, size_t *at, uint32_t *ret_index, int *ret_result)
{
	int length = 0;

	if (sscanf(output + *at, "%" SCNu32 " %d\n%n", ret_index, ret_result, &length) != 2)
		return 0;
	*at += (size_t)length;
	return 1;
}
