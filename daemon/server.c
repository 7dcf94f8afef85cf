/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/server.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <qb/qblog.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/clock.h"
#include "daemon/listen.h"
#include "daemon/server_private.h"

/* Sources served in one turn. */
#define READY_MAX 256
/* Bytes of one client: some thousand requests. */
#define HEARD_MAX 65536u
#define ACCEPTS_MAX 64
/* Times of recalls are of the last one to two of these. */
#define ROTATE_US 10000000u
/* A client that leaves this much unread is not read either. */
#define UNREAD_MAX (64u * 1024)

/* ---- clients ---- */

struct client *server_find(const struct server *s, uint32_t id)
{
	struct client *c = s->slot[id & (s->slot_count - 1)];

	return c && c->id == id ? c : NULL;
}

/* What epoll shall tell of the client's socket. */
static void set_events(struct server *s, struct client *c)
{
	size_t unread = replies_pending(&c->replies);
	uint32_t events = (unread > 0 ? EPOLLOUT : 0) |
			  (c->held_back || unread > UNREAD_MAX ? 0 : EPOLLIN);
	struct epoll_event ev = { .events = events, .data.ptr = &c->socket_source };

	if (events == c->events || c->dead)
		return;
	if (epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, c->fd, &ev) == 0)
		c->events = events;
}

static void want_flush(struct server *s, struct client *c)
{
	if (c->flush_due || c->dead)
		return;
	c->flush_due = true;
	TAILQ_INSERT_TAIL(&s->flush, c, flush_link);
	engine_turn(s->engine);
}

void client_reply(struct server *s, struct client *c, const struct client_message *m)
{
	if (c->dead)
		return;
	if (replies_put(&c->replies, m) < 0)
		c->overrun = true;
	want_flush(s, c);
}

void client_reply_in(struct server *s, struct client *c, uint32_t cell, const struct client_message *m)
{
	if (cell == 0) {
		client_reply(s, c, m);
	} else if (!c->dead) {
		share_cell_put(c->loans.share, cell, m);
		want_flush(s, c);
	}
}

void client_reply_with(struct server *s, struct client *c, const struct client_message *m, int fd)
{
	if (c->dead)
		return;
	if (replies_put_descriptor(&c->replies, m, fd) < 0)
		c->overrun = true;
	want_flush(s, c);
}

/* Before the core gives to others what it held: nothing may be taken under its loans any more. */
static void end_sharing(struct server *s, struct client *c)
{
	loan_end_all(s, c);
	if (c->loans.share)
		share_cells_wake(c->loans.share);
}

void client_drop(struct server *s, struct client *c)
{
	struct belay_event ev = { .type = BELAY_EVENT_CLIENT_GONE, .client.client = c->id };
	bool told;

	if (c->dead)
		return;
	c->dead = true;
	end_sharing(s, c);
	if (c->flush_due)
		TAILQ_REMOVE(&s->flush, c, flush_link);
	if (c->closing_due)
		TAILQ_REMOVE(&s->closing, c, closing_link);
	if (c->held_back)
		TAILQ_REMOVE(&s->held_back, c, held_back_link);
	TAILQ_REMOVE(&s->all, c, all_link);
	TAILQ_INSERT_TAIL(&s->dead, c, all_link);
	s->slot[c->id & (s->slot_count - 1)] = NULL;
	s->free_slot[(s->free_first + s->free_count++) & (s->slot_count - 1)] =
		c->id & (s->slot_count - 1);
	for (uint32_t n = 1; n <= c->handles.used; n++) {
		const struct handle *h = handles_find(&c->handles, n);

		if (h)
			names_remove(&s->names, &h->key);
	}
	s->stats.clients--;
	s->stats.handles -= c->handles.open;
	s->stats.requests -= c->requests.count;
	s->stats.sharing -= c->loans.share != NULL;
	/* Closing takes them out of the epoll set. */
	close(c->fd);
	peer_close(&c->peer);
	request_cancel_node(s, c);
	told = engine_step(s->engine, &ev) != -ESHUTDOWN;
	/* If its locks are not given back, its process counts when belayd starts again. */
	if (c->recorded && (s->ending ? s->clean : told))
		record_remove(s->records, &c->record);
	engine_turn(s->engine);
}

int client_record(struct server *s, struct client *c)
{
	uint64_t held_back;
	int r;

	c->quiet = false;
	if (c->recorded)
		return 0;
	r = record_put(s->records, c->peer.pid, c->id, &c->record);
	if (r == 0) {
		c->recorded = true;
		return 0;
	}
	if (limit_pass(&s->record_limit, clock_now_us(), &held_back))
		qb_log(LOG_ERR, "process %d may lock nothing, for belayd cannot note it in %s.clients: "
		       "%s", (int)c->peer.pid, s->config->socket, strerror(-r));
	return -ENOLCK;
}

void client_fail(struct server *s, struct client *c, struct limit *limit, int error,
		 const char *text)
{
	struct client_message m = { .type = CLIENT_ERROR, .result = error };
	uint64_t held_back;

	if (c->dead)
		return;
	if (limit_pass(limit, clock_now_us(), &held_back)) {
		qb_log(LOG_WARNING, "closed the connection of process %d (user %u): %s",
		       (int)c->peer.pid, c->peer.uid, text);
		if (held_back > 0)
			qb_log(LOG_WARNING, "%" PRIu64 " more were closed and not logged", held_back);
	}
	m.text = text;
	m.text_size = (uint16_t)strlen(text);
	if (replies_put(&c->replies, &m) == 0)
		(void)replies_send(&c->replies, c->fd);
	listen_drain(c->fd);
	client_drop(s, c);
}

static void free_client(struct client *c)
{
	for (uint32_t n = 1; n <= c->handles.used; n++) {
		struct handle *h = handles_find(&c->handles, n);

		if (h)
			request_forget_handle(c, h);
	}
	resources_done(&c->resources);
	loan_done(c);
	handles_done(&c->handles);
	requests_done(&c->requests);
	replies_done(&c->replies);
	free(c);
}

/* ---- coming ---- */

static int watch(struct server *s, int fd, struct source *source)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = source };

	return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static int client_new(struct server *s, int fd)
{
	struct client *c = calloc(1, sizeof(*c));
	uint32_t slot;
	int r;

	if (!c)
		return -ENOMEM;
	c->fd = fd;
	r = peer_open(&c->peer, fd);
	if (r < 0)
		goto fail_free;
	c->socket_source = (struct source){ .type = SOURCE_CLIENT, .client = c };
	c->process_source = (struct source){ .type = SOURCE_PROCESS, .client = c };
	c->events = EPOLLIN;
	r = watch(s, fd, &c->socket_source);
	if (r == 0 && c->peer.pidfd >= 0)
		r = watch(s, c->peer.pidfd, &c->process_source);
	if (r < 0)
		goto fail_peer;
	handles_init(&c->handles, s->config->handles_per_client_max);
	requests_init(&c->requests, s->config->requests_per_client_max);

	assert(s->free_count > 0);
	slot = s->free_slot[s->free_first];
	s->free_first = (s->free_first + 1) & (s->slot_count - 1);
	s->free_count--;
	c->id = s->next_id[slot];
	s->next_id[slot] += s->slot_count;
	s->slot[slot] = c;
	TAILQ_INSERT_TAIL(&s->all, c, all_link);
	s->stats.clients++;
	s->stats.accepted++;
	return 0;

fail_peer:
	peer_close(&c->peer);
fail_free:
	free(c);
	return r;
}

static void refuse(struct server *s, int fd, int error, const char *text)
{
	uint64_t held_back;

	s->stats.refused++;
	listen_refuse(fd, error, text);
	if (limit_pass(&s->refuse_limit, clock_now_us(), &held_back))
		qb_log(LOG_WARNING, "refused a client (and %" PRIu64 " before it): %s", held_back,
		       text);
}

/* Out of descriptors: only with one to spare can the client be told, or even be got rid of. */
static void refuse_without_descriptor(struct server *s)
{
	int fd;

	close(s->spare_fd);
	fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		refuse(s, fd, -EUSERS, "belayd has no file descriptors left: raise LimitNOFILE of "
		       "belayd.service, or lower clients_max");
	s->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void server_adopt(struct server *s, int fd)
{
	char text[128];
	int r;

	if (s->stats.clients >= s->config->clients_max) {
		(void)snprintf(text, sizeof(text), "belayd has %" PRIu32 " clients, and "
			       "clients_max allows no more", s->stats.clients);
		refuse(s, fd, -EUSERS, text);
		return;
	}
	r = client_new(s, fd);
	if (r < 0)
		refuse(s, fd, r, "belayd has no room for one more client");
}

static void on_connections(struct server *s)
{
	for (unsigned i = 0; i < ACCEPTS_MAX && s->listen_fd >= 0; i++) {
		int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
			refuse_without_descriptor(s);
			return;
		}
		if (fd < 0)
			return;
		server_adopt(s, fd);
	}
}

/* ---- reading ---- */

struct packet {
	size_t size, fd_count;
	int fds[SERVER_PACKET_DESCRIPTORS];
	bool truncated;		/* it was larger than any may be */
	bool dropped;		/* descriptors did not fit, or were not wanted */
};

static void take_descriptors(struct msghdr *msg, struct packet *p)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		if (count > SERVER_PACKET_DESCRIPTORS - p->fd_count)
			count = SERVER_PACKET_DESCRIPTORS - p->fd_count;
		memcpy(p->fds + p->fd_count, CMSG_DATA(c), count * sizeof(int));
		p->fd_count += count;
	}
}

/* 1, 0: there is none (yet); -ECONNRESET: the client is gone. */
static int receive(struct server *s, struct client *c, struct packet *ret_packet)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(SERVER_PACKET_DESCRIPTORS * sizeof(int))];
	struct iovec iov = { .iov_base = s->packet, .iov_len = sizeof(s->packet) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	ssize_t size;

	/* What it brings along is then dropped by the kernel, which does not wait for it. */
	if (closer_crowded(s->closer))
		msg.msg_controllen = 0;
	size = recvmsg(c->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (size < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -ECONNRESET;
	ret_packet->size = (size_t)size;
	ret_packet->fd_count = 0;
	ret_packet->truncated = msg.msg_flags & MSG_TRUNC;
	ret_packet->dropped = msg.msg_flags & MSG_CTRUNC;
	take_descriptors(&msg, ret_packet);
	/* An empty packet is the end, or none of ours. */
	if (size == 0 && ret_packet->fd_count == 0)
		return -ECONNRESET;
	return 1;
}

/* Its size; 0: there is none, or no more should be read. */
static size_t read_packet(struct server *s, struct client *c)
{
	struct packet packet;
	int r = receive(s, c, &packet);

	if (r == 0)
		return 0;
	if (r < 0) {
		s->stats.gone++;
		client_drop(s, c);
		return 0;
	}
	s->stats.packets++;
	if (packet.truncated) {
		s->stats.broken++;
		client_fail(s, c, &s->broken_limit, -EMSGSIZE,
			    "it sent a packet larger than the protocol allows");
	} else if (packet.dropped) {
		s->stats.broken++;
		client_fail(s, c, &s->broken_limit, -EMFILE, "it passed a file descriptor while too many "
			    "wait for file systems that do not answer");
	} else {
		request_packet(s, c, s->packet, packet.size, packet.fds, packet.fd_count);
	}
	for (size_t i = 0; i < packet.fd_count; i++)
		descriptor_close(s->closer, &s->identities.mounts, c->peer.pid, packet.fds[i]);
	if (c->dead || !engine_pressed(s->engine))
		return c->dead ? 0 : packet.size;
	/* What this client causes cannot leave fast enough: read it later. */
	if (!c->held_back) {
		c->held_back = true;
		TAILQ_INSERT_TAIL(&s->held_back, c, held_back_link);
		set_events(s, c);
	}
	return 0;
}

/*
 * One packet a turn, so that no client keeps the others waiting; but all that a
 * socket holds if others wait for just that, unless it refills as fast as it is read.
 */
static void on_readable(struct server *s, struct client *c)
{
	size_t left = s->hearing ? HEARD_MAX : 1, size;

	do {
		size = read_packet(s, c);
		left -= size < left ? size : left;
	} while (size > 0 && left > 0);
}

static void on_client(struct server *s, struct client *c, uint32_t events)
{
	if (events & EPOLLOUT)
		want_flush(s, c);
	if (events & EPOLLIN) {
		on_readable(s, c);
	} else if (events & (EPOLLHUP | EPOLLERR)) {
		s->stats.gone++;
		client_drop(s, c);
	}
}

static void on_source(struct server *s, struct source *source, uint32_t events)
{
	if (source->type == SOURCE_LISTENER) {
		on_connections(s);
	} else if (source->type == SOURCE_PASS) {
		/* The pass is being made. */
	} else if (source->client->dead) {
		/* Its other source came first. */
	} else if (source->type == SOURCE_PROCESS) {
		s->stats.gone++;
		client_drop(s, source->client);
	} else {
		on_client(s, source->client, events);
	}
}

static void serve(struct server *s)
{
	struct epoll_event events[READY_MAX];
	int count = epoll_wait(s->epoll_fd, events, READY_MAX, 0);

	for (int i = 0; i < count; i++)
		on_source(s, events[i].data.ptr, events[i].events);
}

/*
 * An unlock lingers for the lock that should follow it: wait here, where a
 * wait costs one call; a timer and the loop would cost several, and time.
 */
static bool linger(struct server *s)
{
	uint64_t until_us = engine_lingers(s->engine), now_us = clock_now_us();
	struct pollfd clients = { .fd = s->epoll_fd, .events = POLLIN };
	struct timespec left;

	if (until_us <= now_us)
		return false;
	/* Not longer than a second: linger_us is far below. */
	left = (struct timespec){ .tv_nsec = (long)(until_us - now_us) * 1000 };
	return ppoll(&clients, 1, &left, NULL) == 1;
}

/* What has come, and then the requests for which that had to be known. */
static void serve_pass(struct server *s)
{
	uint32_t due = s->later_count;

	s->hearing = due > 0;
	serve(s);
	request_run_later(s, due);
}

/*
 * Others than clients have their turn before those that came last. (libqb sleeps up to
 * 50 ms before it runs a job; a descriptor that is always readable is seen at once.)
 */
static void want_pass(struct server *s)
{
	bool wanted = s->later_count > 0;
	struct epoll_event ev = { .events = wanted ? EPOLLIN : 0, .data.ptr = &s->pass };

	if (wanted != s->pass_wanted && epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, s->pass_fd, &ev) == 0)
		s->pass_wanted = wanted;
}

static int32_t on_ready(int32_t fd, int32_t revents, void *data)
{
	struct server *s = data;
	bool again = false;

	(void)fd;
	(void)revents;
	engine_turn_begin(s->engine);
	do {
		serve_pass(s);
		again = !again && s->later_count > 0;
	} while (again || (s->later_count == 0 && linger(s)));
	engine_turn_end(s->engine);
	want_pass(s);
	return 0;
}

/* ---- the engine's handlers ---- */

void client_lost(struct server *s, struct client *c)
{
	const struct client_message m = { .type = CLIENT_LOST };

	c->lost = true;
	loan_end_all(s, c);
	client_reply(s, c, &m);
}

void server_on_action(struct server *s, const struct belay_action *action)
{
	struct client *c;

	switch (action->type) {
	case BELAY_ACTION_REPLY:
		request_answered(s, action);
		break;
	case BELAY_ACTION_LOST:
		c = server_find(s, action->client);
		if (c)
			client_lost(s, c);
		break;
	case BELAY_ACTION_LEND_HELD:
		loan_on_held(s, action);
		break;
	case BELAY_ACTION_LEND:
		loan_on_lend(s, action);
		break;
	case BELAY_ACTION_RECALL:
		loan_on_recall(s, action);
		break;
	case BELAY_ACTION_FROZEN:
		loan_on_frozen(s, action->frozen);
		if (action->frozen)
			node_locks_freeze(s);
		break;
	case BELAY_ACTION_NODE_CLOSED:
		admin_node_closed(s, action->node);
		break;
	default:
		break;
	}
}

void server_on_stepped(struct server *s)
{
	loan_feed(s);
	node_locks_settle(s);
}

static void flush(struct server *s, struct client *c)
{
	int r = replies_send(&c->replies, c->fd);

	if (c->loans.share)
		share_cells_publish(c->loans.share);

	if (c->overrun) {
		s->stats.slow++;
		client_fail(s, c, &s->slow_limit, -ENOBUFS, "it does not read its answers");
	} else if (r == 0 || r == -EAGAIN) {
		set_events(s, c);
	} else {
		s->stats.gone++;
		client_drop(s, c);
	}
}

void server_on_turn_end(struct server *s)
{
	struct client *c;

	while ((c = TAILQ_FIRST(&s->closing))) {
		TAILQ_REMOVE(&s->closing, c, closing_link);
		c->closing_due = false;
		request_finish_closing(s, c);
	}
	while ((c = TAILQ_FIRST(&s->flush))) {
		TAILQ_REMOVE(&s->flush, c, flush_link);
		c->flush_due = false;
		flush(s, c);
	}
	while ((c = TAILQ_FIRST(&s->dead))) {
		TAILQ_REMOVE(&s->dead, c, all_link);
		free_client(c);
	}
	if (s->engine)
		status_sample(&s->rates, s->engine, &s->stats);
	if (clock_now_us() >= s->rotate_us) {
		histogram_rotate(&s->stats.recall_us);
		s->rotate_us = clock_now_us() + ROTATE_US;
	}
}

void server_on_pressure(struct server *s, bool pressed)
{
	struct client *c;

	if (pressed)
		return;
	while ((c = TAILQ_FIRST(&s->held_back))) {
		TAILQ_REMOVE(&s->held_back, c, held_back_link);
		c->held_back = false;
		set_events(s, c);
	}
}

/* ---- life ---- */

static int make_slots(struct server *s)
{
	s->slot_count = 16;
	while (s->slot_count < s->config->clients_max)
		s->slot_count *= 2;
	s->slot = calloc(s->slot_count, sizeof(*s->slot));
	s->next_id = calloc(s->slot_count, sizeof(*s->next_id));
	s->free_slot = calloc(s->slot_count, sizeof(*s->free_slot));
	if (!s->slot || !s->next_id || !s->free_slot)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->slot_count; i++) {
		s->next_id[i] = s->slot_count + i;
		s->free_slot[i] = i;
	}
	s->free_count = s->slot_count;
	return 0;
}

static int open_descriptors(struct server *s)
{
	struct epoll_event none = { .events = 0, .data.ptr = &s->pass };

	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	s->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	s->pass_fd = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
	if (s->epoll_fd < 0 || s->spare_fd < 0 || s->pass_fd < 0 ||
	    epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->pass_fd, &none) < 0)
		return -errno;
	return 0;
}

int server_new(qb_loop_t *loop, const struct config *config, bool standalone, int records,
	       struct server **ret_server)
{
	struct server *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->loop = loop;
	s->config = config;
	s->standalone = standalone;
	s->records = records;
	shares_init(&s->shares);
	s->listen_fd = s->epoll_fd = s->spare_fd = -1;
	s->pass_fd = -1;
	s->listener.type = SOURCE_LISTENER;
	s->pass.type = SOURCE_PASS;
	TAILQ_INIT(&s->all);
	TAILQ_INIT(&s->flush);
	TAILQ_INIT(&s->closing);
	TAILQ_INIT(&s->held_back);
	TAILQ_INIT(&s->dead);
	identity_map_init(&s->identities, config, standalone);
	r = names_init(&s->names);
	if (r == 0)
		r = loans_init(&s->loans, config->loans_per_client_max);
	if (r == 0)
		r = closer_new(&s->closer);
	if (r == 0)
		r = make_slots(s);
	if (r == 0)
		r = open_descriptors(s);
	if (r < 0) {
		server_free(s, 0, NULL, true);
		return r;
	}
	*ret_server = s;
	return 0;
}

int server_listen(struct server *s, struct engine *engine, int listen_fd)
{
	int r;

	s->listen_fd = listen_fd;
	s->engine = engine;
	r = watch(s, s->listen_fd, &s->listener);
	/* libqb serves a dozen descriptors a turn; here, all clients are one. */
	if (r == 0)
		r = qb_loop_poll_add(s->loop, QB_LOOP_HIGH, s->epoll_fd, POLLIN, s, on_ready);
	if (r == 0)
		r = idle_start(s);
	if (r < 0)
		qb_log(LOG_ERR, "cannot serve clients: %s", strerror(-r));
	return r;
}

static void stop_listening(struct server *s)
{
	if (s->listen_fd >= 0)
		listen_close(s->config, s->listen_fd);
	s->listen_fd = -1;
}

void server_leave(struct server *s)
{
	struct client *c;

	stop_listening(s);
	s->leaving = true;
	TAILQ_FOREACH(c, &s->all, all_link)
		request_cancel_all(s, c);
}

void server_free(struct server *s, int error, const char *reason, bool clean)
{
	struct client *c;

	if (!s)
		return;
	stop_listening(s);
	idle_stop(s);
	s->ending = true;
	s->clean = clean;
	while ((c = TAILQ_FIRST(&s->all))) {
		struct client_message m = { .type = CLIENT_ERROR, .result = error };

		m.text = reason;
		m.text_size = (uint16_t)strlen(reason);
		if (replies_put(&c->replies, &m) == 0)
			(void)replies_send(&c->replies, c->fd);
		client_drop(s, c);
	}
	while ((c = TAILQ_FIRST(&s->dead))) {
		TAILQ_REMOVE(&s->dead, c, all_link);
		free_client(c);
	}
	if (s->engine)
		(void)qb_loop_poll_del(s->loop, s->epoll_fd);
	if (s->epoll_fd >= 0)
		close(s->epoll_fd);
	if (s->spare_fd >= 0)
		close(s->spare_fd);
	if (s->pass_fd >= 0)
		close(s->pass_fd);
	identity_map_done(&s->identities);
	closer_free(s->closer);
	names_done(&s->names);
	node_unlocks_done(&s->node_unlocks);
	loans_done(&s->loans);
	shares_done(&s->shares);
	free(s->slot);
	free(s->next_id);
	free(s->free_slot);
	free(s->later);
	free(s);
}

void server_stats(const struct server *s, struct server_stats *ret_stats)
{
	*ret_stats = s->stats;
}
