/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands of administrators: one line of text in, JSON or an error text out. */
#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <qb/qblog.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/clock.h"
#include "daemon/server_private.h"

/* A text may need several messages. */
static void reply_text(struct server *s, struct client *c, uint32_t number, int result,
		       const char *text)
{
	size_t left = strlen(text);

	do {
		size_t part = left < CLIENT_TEXT_MAX ? left : CLIENT_TEXT_MAX;
		const struct client_message m = {
			.type = CLIENT_TEXT, .number = number, .result = result,
			.more = left > part, .text = text, .text_size = (uint16_t)part,
		};

		client_reply(s, c, &m);
		text += part;
		left -= part;
	} while (left > 0);
}

static void command_status(struct server *s, struct client *c, uint32_t number, const char *argument)
{
	char *text;

	if (argument[0] != '\0') {
		reply_text(s, c, number, -EINVAL, "status takes no argument");
		return;
	}
	text = status_text(s->engine, s->config, s->standalone, &s->stats, &s->rates);
	if (text)
		reply_text(s, c, number, 0, text);
	else
		reply_text(s, c, number, -ENOMEM, "belayd is out of memory");
	free(text);
}

static void command_locks(struct server *s, struct client *c, uint32_t number, const char *argument)
{
	char *text = NULL;
	int r = status_locks(s->engine, s, s->config, &s->names, argument, &text);

	if (r == -EINVAL)
		reply_text(s, c, number, r, "that is no cursor: take it from \"next\" of the page before");
	else if (r < 0)
		reply_text(s, c, number, r, "belayd is out of memory");
	else
		reply_text(s, c, number, 0, text);
	free(text);
}

static void command_dump(struct server *s, struct client *c, uint32_t number, const char *argument)
{
	char path[CONFIG_PATH_MAX + 64], text[sizeof(path) + 64];
	struct json_object *to;
	int r;

	if (argument[0] != '\0') {
		reply_text(s, c, number, -EINVAL, "dump takes no argument");
		return;
	}
	(void)snprintf(path, sizeof(path), "%s.%" PRIu64 ".%" PRIu32, s->config->journal,
		       clock_us(CLOCK_REALTIME) / 1000000, ++s->dumps);
	r = engine_dump(s->engine, path);
	if (r < 0) {
		(void)snprintf(text, sizeof(text), "cannot write %s: %s", path, strerror(-r));
		reply_text(s, c, number, r, text);
		return;
	}
	qb_log(LOG_NOTICE, "user %u (process %d) had the flight recorder copied to %s",
	       c->peer.uid, (int)c->peer.pid, path);
	to = json_object_new_object();
	json_object_object_add(to, "file", json_object_new_string(path));
	reply_text(s, c, number, 0, json_object_to_json_string_ext(to, JSON_C_TO_STRING_PLAIN));
	json_object_put(to);
}

static void command_stop(struct server *s, struct client *c, uint32_t number, const char *argument)
{
	if (argument[0] != '\0') {
		reply_text(s, c, number, -EINVAL, "stop takes no argument");
		return;
	}
	qb_log(LOG_NOTICE, "user %u (process %d) asked belayd to stop", c->peer.uid,
	       (int)c->peer.pid);
	reply_text(s, c, number, 0, "{}");
	/* The same way as from outside: the loop gets the signal when it is done with this. */
	(void)kill(getpid(), SIGTERM);
}

/* ---- fence-ack ---- */

static int find_node(const struct group_info *info, const char *text, uint32_t *ret_node)
{
	char *end;
	unsigned long number;

	for (uint32_t i = 0; i < info->node_count; i++) {
		if (info->node_name[i][0] != '\0' && strcmp(info->node_name[i], text) == 0) {
			*ret_node = info->node[i];
			return 0;
		}
	}
	errno = 0;
	number = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0)
		return -ENOENT;
	for (uint32_t i = 0; i < info->node_count; i++) {
		if (info->node[i] == number) {
			*ret_node = info->node[i];
			return 0;
		}
	}
	return -ENOENT;
}

static const char *fence_error(int error)
{
	switch (error) {
	case -EBUSY:
		return "that node is a member of the cluster: it has not left";
	case -ENOENT:
		return "that node has left nothing behind: it left cleanly, was acknowledged already, "
		       "or was never here";
	case -EAGAIN:
		return "this node has no quorum, or no lock table yet, and cannot speak for the "
		       "cluster: ask on another node";
	default:
		return "belayd is stopping";
	}
}

/* Those whose client has gone wait for nothing. */
static void purge_fence_waits(struct server *s)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < s->fence_count; i++)
		if (server_find(s, s->fence[i].client))
			s->fence[kept++] = s->fence[i];
	s->fence_count = kept;
}

static void command_fence_ack(struct server *s, struct client *c, uint32_t number,
			      const char *argument)
{
	struct belay_event ev = { .type = BELAY_EVENT_FENCE };
	int r;

	if (find_node(engine_group_info(s->engine), argument, &ev.fence.node) < 0) {
		reply_text(s, c, number, -ENOENT, "no such node: give its id or its name, as in belay "
			   "status");
		return;
	}
	purge_fence_waits(s);
	if (s->fence_count == FENCE_WAITS_MAX) {
		reply_text(s, c, number, -EBUSY, "too many acknowledgements wait already");
		return;
	}
	qb_log(LOG_WARNING, "user %u (process %d) says that node %" PRIu32 " has certainly stopped",
	       c->peer.uid, (int)c->peer.pid, ev.fence.node);
	/* Before the step: in a cluster of one the answer comes at once. */
	s->fence[s->fence_count++] = (struct fence_wait){
		.client = c->id, .number = number, .node = ev.fence.node,
	};
	r = engine_step(s->engine, &ev);
	if (r < 0) {
		s->fence_count--;
		qb_log(LOG_WARNING, "not so: %s", fence_error(r));
		reply_text(s, c, number, r, fence_error(r));
	}
}

void admin_node_closed(struct server *s, uint32_t node)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < s->fence_count; i++) {
		struct fence_wait wait = s->fence[i];
		struct client *c = server_find(s, wait.client);

		if (wait.node == node && c)
			reply_text(s, c, wait.number, 0, "{}");
		else if (c)
			s->fence[kept++] = wait;
	}
	s->fence_count = kept;
}

/* ---- locks of the node ---- */

static void command_node_locks_forget(struct server *s, struct client *c, uint32_t number,
				      const char *argument)
{
	char text[48];
	int count = argument[0] == '\0' ? node_locks_forget(s, c) : -EINVAL;

	if (count == -EINVAL) {
		reply_text(s, c, number, count, "node-locks-forget takes no argument");
		return;
	}
	if (count < 0) {
		reply_text(s, c, number, count, "belayd is out of memory");
		return;
	}
	(void)snprintf(text, sizeof(text), "{\"forgotten\":%d}", count);
	reply_text(s, c, number, 0, text);
}

/* ---- all of them ---- */

static const struct command {
	const char *name;
	bool admin;		/* root or the socket's group only */
	void (*run)(struct server *s, struct client *c, uint32_t number, const char *argument);
} commands[] = {
	{ "status", false, command_status },
	{ "locks", false, command_locks },
	{ "dump", true, command_dump },
	{ "fence-ack", true, command_fence_ack },
	{ "stop", true, command_stop },
	{ "node-locks-forget", true, command_node_locks_forget },
};

static const struct command *find_command(const char *line, const char **ret_argument)
{
	size_t size = strcspn(line, " ");

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strlen(commands[i].name) != size || memcmp(commands[i].name, line, size) != 0)
			continue;
		*ret_argument = line + size + strspn(line + size, " ");
		return &commands[i];
	}
	return NULL;
}

void admin_command(struct server *s, struct client *c, const struct client_message *m)
{
	const struct command *command;
	const char *argument = "";
	char line[256];

	if (m->text_size >= sizeof(line)) {
		reply_text(s, c, m->number, -E2BIG, "no command is that long");
		return;
	}
	memcpy(line, m->text, m->text_size);
	line[m->text_size] = '\0';
	command = find_command(line, &argument);
	if (!command)
		reply_text(s, c, m->number, -EOPNOTSUPP, "belayd knows no such command: "
			   "status, locks, dump, fence-ack, stop");
	else if (command->admin && !peer_is_admin(&c->peer, s->config->socket_group))
		reply_text(s, c, m->number, -EPERM, "only root and the members of socket_group may do "
			   "that");
	else
		command->run(s, c, m->number, argument);
}
