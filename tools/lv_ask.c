/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The request to belay-lvmlockd, in lvmlockd's text protocol, and its answers as JSON. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "lvmlockd/message.h"
#include "tools/lv.h"

#define DEFAULT_SOCKET "/run/lvm/lvmlockd.socket"
/* Beside a terminal a line is for ever. */
#define TELL_TERMINAL_MS 100u
#define TELL_LINE_MS 1000u

struct stream {
	int fd;
	size_t size;
	char bytes[2 * MESSAGE_BYTES_MAX];
	struct message message;		/* the last one read */
};

struct asking {
	struct lv_progress *progress;
	struct json_object *answer;
	struct json_object *by_lv;	/* "vg/lv" to its object in "lvs" */
	struct json_object *by_node;	/* "1" to its object in "nodes" */
	bool ended;
};

/* ---- the socket ---- */

/* As lvm finds it. */
static const char *socket_path(void)
{
	const char *path = getenv("LVM_LVMLOCKD_SOCKET");

	return path && *path ? path : DEFAULT_SOCKET;
}

static int unreachable(const struct tool *tool, const char *what)
{
	fprintf(stderr, "belay %s: no connection to belay-lvmlockd at %s: %s\n", tool->command->name,
		socket_path(), what);
	return TOOL_UNREACHABLE;
}

static int open_stream(const struct tool *tool, struct stream *stream)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (strlen(socket_path()) >= sizeof(address.sun_path))
		return unreachable(tool, "the path is too long for a socket");
	strcpy(address.sun_path, socket_path());
	stream->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (stream->fd < 0)
		return tool_failed(tool, -errno, "no socket");
	if (connect(stream->fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return TOOL_OK;
	switch (errno) {
	case ENOENT:
	case ECONNREFUSED:
		return unreachable(tool, "it does not run; start it (systemctl start belay-lvmlockd)");
	case EACCES:
		return unreachable(tool, "only root may use it");
	default:
		return unreachable(tool, strerror(errno));
	}
}

static int send_all(const struct tool *tool, int fd, const char *bytes, size_t size)
{
	ssize_t n;

	while (size > 0) {
		n = send(fd, bytes, size, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return unreachable(tool, "it has ended");
		bytes += n;
		size -= (size_t)n;
	}
	return TOOL_OK;
}

static int next_message(const struct tool *tool, struct stream *stream)
{
	size_t length;
	ssize_t n;
	int r;

	while ((length = message_length(stream->bytes, stream->size)) == 0) {
		if (stream->size == sizeof(stream->bytes))
			return tool_failed(tool, 0, "belay-lvmlockd's answer is too long; belay and "
					   "belay-lvmlockd may be of different versions");
		n = read(stream->fd, stream->bytes + stream->size, sizeof(stream->bytes) - stream->size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return unreachable(tool, "it has ended, or was restarted, in the middle; what was done is "
					   "in belay lv status");
		stream->size += (size_t)n;
	}
	r = message_parse(stream->bytes, length, &stream->message);
	stream->size -= length;
	memmove(stream->bytes, stream->bytes + length, stream->size);
	if (r < 0)
		return tool_failed(tool, 0, "belay-lvmlockd's answer cannot be read; is it stock lvmlockd?");
	return TOOL_OK;
}

/* ---- answers ---- */

static const char *text_of(const struct message *m, const char *key)
{
	const char *text = message_text(m, key);

	return text ? text : "";
}

static struct json_object *array_of(struct json_object *object, const char *key)
{
	struct json_object *array;

	if (json_object_object_get_ex(object, key, &array))
		return array;
	array = json_object_new_array();
	json_object_object_add(object, key, array);
	return array;
}

static void copy_text(struct json_object *to, const struct message *m, const char *key)
{
	if (message_text(m, key))
		json_object_object_add(to, key, json_object_new_string(message_text(m, key)));
}

static void copy_number(struct json_object *to, const struct message *m, const char *key)
{
	json_object_object_add(to, key, json_object_new_int64(message_number(m, key, 0)));
}

static struct json_object *new_node(const struct message *m)
{
	struct json_object *node = json_object_new_object();

	copy_number(node, m, "node");
	copy_text(node, m, "name");
	return node;
}

static struct json_object *node_of(struct asking *a, const struct message *m)
{
	struct json_object *node;
	char key[24];

	snprintf(key, sizeof(key), "%" PRId64, message_number(m, "node", 0));
	if (json_object_object_get_ex(a->by_node, key, &node))
		return node;
	node = new_node(m);
	json_object_array_add(array_of(a->answer, "nodes"), node);
	json_object_object_add(a->by_node, key, json_object_get(node));
	return node;
}

static struct json_object *lv_of(struct asking *a, const struct message *m)
{
	struct json_object *lv;
	char key[300];

	snprintf(key, sizeof(key), "%s/%s", text_of(m, "vg"), text_of(m, "lv"));
	if (json_object_object_get_ex(a->by_lv, key, &lv))
		return lv;
	lv = json_object_new_object();
	json_object_object_add(lv, "lv", json_object_new_string(key));
	copy_text(lv, m, "uuid");
	json_object_array_add(array_of(a->answer, "lvs"), lv);
	json_object_object_add(a->by_lv, key, json_object_get(lv));
	return lv;
}

static void count(struct json_object *node, const char *key)
{
	json_object_object_add(node, key, json_object_new_int64((int64_t)json_u64(node, key) + 1));
}

static void on_lv(struct asking *a, const struct message *m)
{
	struct json_object *at = new_node(m), *node = node_of(a, m);
	static const char *const texts[] = { "outcome", "lock", "dm", "targets", "reason" };
	static const char *const numbers[] = { "since", "open", "size", "lvm_size" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		copy_text(at, m, texts[i]);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		copy_number(at, m, numbers[i]);
	json_object_object_add(at, "changed", json_object_new_boolean(message_number(m, "changed", 0) != 0));
	json_object_array_add(array_of(lv_of(a, m), "nodes"), at);
	count(node, text_of(m, "outcome"));
	if (message_number(m, "changed", 0) != 0)
		count(node, "changed");
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void wipe(struct lv_progress *p)
{
	if (p->shown && p->terminal)
		fprintf(p->to, "\r\033[K");
	p->shown = false;
}

static void on_progress(struct lv_progress *p, const struct message *m)
{
	uint64_t now = now_ms();
	char text[64];

	if (!p->to)
		return;
	snprintf(text, sizeof(text), "%" PRId64 " of %" PRId64, message_number(m, "done", 0),
		 message_number(m, "total", 0));
	json_object_object_add(p->nodes, text_of(m, "name"), json_object_new_string(text));
	if (now - p->told_ms < (p->terminal ? TELL_TERMINAL_MS : TELL_LINE_MS))
		return;
	p->told_ms = now;
	wipe(p);
	json_object_object_foreach(p->nodes, name, value) {
		fprintf(p->to, "%s%s: %s", p->shown ? ", " : "", name, json_object_get_string(value));
		p->shown = true;
	}
	fprintf(p->to, p->terminal ? "" : "\n");
	fflush(p->to);
}

static int by_node(const void *a, const void *b)
{
	uint64_t x = json_u64(*(struct json_object *const *)a, "node");
	uint64_t y = json_u64(*(struct json_object *const *)b, "node");

	return x < y ? -1 : x > y;
}

static void on_end(struct asking *a, const struct message *m)
{
	copy_number(a->answer, m, "op_result");
	json_object_object_add(a->answer, "verified", json_object_new_boolean(message_number(m, "verified", 0) != 0));
	copy_text(a->answer, m, "text");
	/* They came as each node was ready. */
	for (size_t i = 0; i < json_count(a->answer, "lvs"); i++)
		json_object_array_sort(json_at(json_object_array_get_idx(json_at(a->answer, "lvs"), i), "nodes"),
				       by_node);
	a->ended = true;
}

static void on_message(struct asking *a, const struct message *m)
{
	const char *kind = text_of(m, "kind");
	struct json_object *undone;

	if (strcmp(kind, "asked") == 0) {
		(void)node_of(a, m);
	} else if (strcmp(kind, "absent") == 0) {
		json_object_array_add(array_of(a->answer, "absent"), new_node(m));
	} else if (strcmp(kind, "progress") == 0) {
		on_progress(a->progress, m);
	} else if (strcmp(kind, "lv") == 0) {
		on_lv(a, m);
	} else if (strcmp(kind, "node") == 0) {
		copy_number(node_of(a, m), m, "op_result");
		copy_text(node_of(a, m), m, "text");
	} else if (strcmp(kind, "undone") == 0) {
		undone = json_object_new_object();
		copy_number(undone, m, "op_result");
		copy_text(undone, m, "text");
		json_object_object_add(node_of(a, m), "undone", undone);
	} else {
		/* "end"; and an answer of who does not know the request ends it, too. */
		on_end(a, m);
	}
}

/* ---- the request ---- */

static int send_request(const struct tool *tool, int fd, const struct lv_options *o)
{
	struct message_out out;

	message_begin(&out);
	message_put_text(&out, "request", "belay_lv");
	message_put_number(&out, "pid", getpid());
	message_put_text(&out, "cmd", "belay");
	message_put_text(&out, "verb", o->verb);
	if (o->vg[0] != '\0')
		message_put_text(&out, "vg", o->vg);
	if (o->lv[0] != '\0')
		message_put_text(&out, "lv", o->lv);
	if (o->all || strcmp(o->verb, "status") == 0)
		message_put_text(&out, "nodes", "*");
	else if (o->on)
		message_put_text(&out, "nodes", o->on);
	if (o->shared || o->exclusive)
		message_put_text(&out, "mode", o->shared ? "sh" : "ex");
	if (o->timeout_ms > 0)
		message_put_number(&out, "timeout_ms", o->timeout_ms);
	if (o->keep_partial)
		message_put_number(&out, "keep_partial", 1);
	if (message_end(&out) < 0)
		return tool_usage(tool, "--on names too many nodes");
	return send_all(tool, fd, out.bytes, out.size);
}

static struct json_object *new_answer(const struct lv_options *o)
{
	struct json_object *answer = json_object_new_object();

	json_object_object_add(answer, "verb", json_object_new_string(o->verb));
	json_object_object_add(answer, "vg", o->vg[0] != '\0' ? json_object_new_string(o->vg) : NULL);
	json_object_object_add(answer, "lv", o->lv[0] != '\0' ? json_object_new_string(o->lv) : NULL);
	json_object_object_add(answer, "nodes", json_object_new_array());
	json_object_object_add(answer, "absent", json_object_new_array());
	json_object_object_add(answer, "lvs", json_object_new_array());
	return answer;
}

int lv_ask(const struct tool *tool, const struct lv_options *options, struct lv_progress *progress,
	   struct json_object **ret_answer)
{
	struct asking a = { .progress = progress };
	struct stream *stream = calloc(1, sizeof(*stream));
	int status;

	if (!stream)
		return tool_failed(tool, -ENOMEM, "no answer can be read");
	stream->fd = -1;
	status = open_stream(tool, stream);
	if (status == TOOL_OK)
		status = send_request(tool, stream->fd, options);
	a.answer = new_answer(options);
	a.by_lv = json_object_new_object();
	a.by_node = json_object_new_object();
	progress->nodes = json_object_new_object();
	while (status == TOOL_OK && !a.ended) {
		status = next_message(tool, stream);
		if (status == TOOL_OK)
			on_message(&a, &stream->message);
	}
	wipe(progress);
	json_object_put(progress->nodes);
	json_object_put(a.by_lv);
	json_object_put(a.by_node);
	if (stream->fd >= 0)
		close(stream->fd);
	free(stream);
	if (status == TOOL_OK)
		*ret_answer = a.answer;
	else
		json_object_put(a.answer);
	return status;
}
