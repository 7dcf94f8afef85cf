/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/fake_engine.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/record.h"
#include "daemon/trace.h"

/* ---- what the server calls ---- */

static void note(struct engine *e, const struct belay_event *event)
{
	char text[TRACE_TEXT_MAX];
	size_t used = strlen(e->events);

	trace_event(text, sizeof(text), event);
	(void)snprintf(e->events + used, sizeof(e->events) - used, "%s%s", used > 0 ? "\n" : "", text);
}

int engine_step(struct engine *e, struct belay_event *event)
{
	note(e, event);
	if (event->type == BELAY_EVENT_LOCK) {
		e->cookie = event->lock.cookie;
		e->client = event->lock.owner.client;
		e->key = event->lock.key;
		e->lend = event->lock.lend;
	}
	if (e->core)
		e->core(e, event);
	server_on_stepped(e->server);
	return e->has_no_room && event->type == BELAY_EVENT_LOAN_HELD ? -ENOLCK : 0;
}

int engine_unlock(struct engine *e, struct belay_event *event, bool follows)
{
	(void)follows;
	return engine_step(e, event);
}

void engine_turn(struct engine *e)
{
	e->turn_due = true;
}

void engine_turn_begin(struct engine *e)
{
	(void)e;
}

void engine_turn_end(struct engine *e)
{
	server_on_turn_end(e->server);
	e->turn_due = false;
}

uint64_t engine_lingers(const struct engine *e)
{
	(void)e;
	return 0;
}

bool engine_pressed(const struct engine *e)
{
	(void)e;
	return false;
}

const struct group_info *engine_group_info(const struct engine *e)
{
	return &e->info;
}

/* The core that never steps has numbers, which are asked for each second. */
const struct belay_core *engine_core(const struct engine *e)
{
	return e->still;
}

void engine_stats(const struct engine *e, struct engine_stats *ret_stats)
{
	(void)e;
	*ret_stats = (struct engine_stats){ 0 };
}

const struct histogram *engine_latency(const struct engine *e)
{
	(void)e;
	return NULL;
}

uint64_t engine_unanswered_us(const struct engine *e, uint32_t node)
{
	(void)e;
	(void)node;
	return 0;
}

int engine_dump(const struct engine *e, const char *path)
{
	(void)e;
	(void)path;
	return -ENOSYS;
}

/* ---- life ---- */

static void make_core(struct engine *e)
{
	const struct belay_core_config config = {
		.self = 1, .incarnation = 1, .node_count = 1, .node = { 1 },
		.limits = { .resources_max = 16, .locks_max = 16, .waiters_max = 16, .locks_per_owner_max = 16 },
		.requests_max = 16, .idle_us = 1000000, .claim_streak = 32, .share_streak = 64,
		.lend_after = 4, .token_base = 1,
	};
	size_t size = (belay_core_size(&config) + 63) & ~(size_t)63;

	e->memory = aligned_alloc(64, size);
	if (size == 0 || !e->memory)
		bail_out("no core");
	memset(e->memory, 0, size);
	e->still = belay_core_init(e->memory, &config);
}

void fake_engine_init(struct engine *e)
{
	char socket[96];

	*e = (struct engine){ .info = { .self = 1 }, .dir = "/tmp/belay-loan.XXXXXX" };
	config_default(&e->config);
	if (!mkdtemp(e->dir))
		bail_out("no temporary directory");
	snprintf(socket, sizeof(socket), "%s/sock", e->dir);
	e->loop = qb_loop_create();
	if (!e->loop || record_open(socket, &e->records) < 0)
		bail_out("no loop, or no records");
	e->config.loans_per_client_max = 4;
	if (server_new(e->loop, &e->config, true, e->records, &e->server) < 0)
		bail_out("no server");
	e->server->engine = e;
	make_core(e);
}

void fake_engine_done(struct engine *e)
{
	char path[96];

	server_free(e->server, -EIO, "the test is over", true);
	close(e->records);
	qb_loop_destroy(e->loop);
	free(e->memory);
	snprintf(path, sizeof(path), "%s/sock.clients", e->dir);
	rmdir(path);
	rmdir(e->dir);
}

const char *fake_engine_events(struct engine *e)
{
	static char events[sizeof(e->events)];

	memcpy(events, e->events, sizeof(events));
	e->events[0] = '\0';
	return events;
}

/* ---- clients ---- */

static uint32_t newest_client(const struct engine *e)
{
	const struct client *c = TAILQ_LAST(&e->server->all, client_list);

	return c ? c->id : 0;
}

void peer_end_open(struct engine *e, struct peer_end *p)
{
	const struct client_message hello = {
		.type = CLIENT_HELLO, .magic = CLIENT_MAGIC, .version = CLIENT_VERSION,
	};
	struct client_message m;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
		bail_out("no socket pair");
	server_adopt(e->server, fds[0]);
	*p = (struct peer_end){ .id = newest_client(e), .fd = fds[1], .memory = -1 };
	peer_end_say(e, p, &hello);
	if (!peer_end_hear(p, &m) || m.type != CLIENT_WELCOME)
		bail_out("no welcome");
}

void peer_end_close(struct peer_end *p)
{
	if (p->map)
		munmap(p->map, SLOT_MEMORY_BYTES);
	if (p->memory >= 0)
		close(p->memory);
	close(p->fd);
}

void peer_end_say_all(struct engine *e, struct peer_end *p, const struct client_message *m, unsigned count)
{
	struct client *c = server_find(e->server, p->id);
	uint8_t buf[4096];
	size_t size = 0;

	if (!c)
		bail_out("the client has gone");
	for (unsigned i = 0; i < count; i++)
		if (client_put(buf, sizeof(buf), &size, &m[i]) < 0)
			bail_out("a message of the test does not fit");
	request_packet(e->server, c, buf, size, NULL, 0);
	/* Nobody else has said anything. */
	request_run_later(e->server, e->server->later_count);
	server_on_turn_end(e->server);
}

void peer_end_say(struct engine *e, struct peer_end *p, const struct client_message *m)
{
	peer_end_say_all(e, p, m, 1);
}

bool peer_end_hear(struct peer_end *p, struct client_message *ret_m)
{
	static uint8_t buf[CLIENT_PACKET_MAX];
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { .iov_base = buf, .iov_len = sizeof(buf) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	ssize_t size = recvmsg(p->fd, &msg, MSG_CMSG_CLOEXEC);
	const struct cmsghdr *c = size > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	size_t at = 0;

	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(&p->memory, CMSG_DATA(c), sizeof(int));
	return size > 0 && client_get(buf, (size_t)size, &at, ret_m) == 1;
}

struct slot_head *peer_end_head(const struct peer_end *p, uint32_t slot)
{
	return (struct slot_head *)(void *)(p->map + SLOT_HEADS_AT) + slot;
}

struct slot_entry *peer_end_log(const struct peer_end *p, uint32_t slot)
{
	return (struct slot_entry *)(void *)(p->map + slot_half_at(slot, 0));
}

struct slot_cell *peer_end_cell(const struct peer_end *p, uint32_t cell)
{
	return (struct slot_cell *)(void *)(p->map + SLOT_CELLS_AT) + (cell - 1);
}
