/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lvmlockd/server.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <qb/qbdefs.h>
#include <qb/qblog.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lvmlockd/lvmlockd.h"
#include "lvmlockd/request.h"

/* A command of lvm has one; more is not to be expected of a node. */
#define CONNECTIONS_MAX 1000u
#define BACKLOG 128
/* Answers that a client does not read. */
#define UNREAD_MAX (4u * 1024 * 1024)
#define COMMAND_MAX 63u
/* How long to wait for descriptors or memory. */
#define RETRY_NS QB_TIME_NS_IN_SEC

struct connection {
	struct server *server;
	int fd;
	uint32_t number;
	pid_t pid;
	char command[COMMAND_MAX + 1];
	bool waits;			/* its request is not answered yet */
	bool broken;			/* to be closed from the loop */
	bool told_off;			/* what it sent was no request: closed when it has read that */
	const struct request_type *type;
	void (*closer)(void *context);
	void *closer_context;
	struct hold_list holds;
	char unlocked[STATE_UUID_MAX + 1];
	size_t in_size;
	char *out;			/* what is not sent yet */
	size_t out_size;
	TAILQ_ENTRY(connection) link;
	struct message message;
	char in[MESSAGE_BYTES_MAX];
};
TAILQ_HEAD(connection_list, connection);

struct server {
	struct lvmlockd *lvmlockd;
	int pid_fd, listen_fd;
	struct turn turn;
	bool listening, waiting;
	qb_loop_timer_handle timer;	/* waiting: for descriptors or memory */
	uint32_t last_number;
	unsigned count;
	struct connection_list connections;
};

/* ---- one connection ---- */

static void on_turn(void *data);

static void arrange_turn(struct server *server)
{
	(void)turn_ask(&server->turn, server->lvmlockd->loop, server, on_turn);
}

static int32_t on_event(int32_t fd, int32_t revents, void *data);

/* While a request is not answered only the end of the connection matters, which poll(2) always tells. */
static void set_events(struct connection *c)
{
	int events = (c->waits || c->told_off ? 0 : POLLIN) | (c->out_size > 0 ? POLLOUT : 0);

	if (c->broken)
		return;
	(void)qb_loop_poll_mod(c->server->lvmlockd->loop, QB_LOOP_MED, c->fd, events, c, on_event);
}

static void mark_broken(struct connection *c)
{
	if (c->broken)
		return;
	c->broken = true;
	/* Its descriptor would else go on telling of its end. */
	(void)qb_loop_poll_del(c->server->lvmlockd->loop, c->fd);
	arrange_turn(c->server);
}

/* Bytes that left, or a negative errno. */
static ssize_t send_some(const struct connection *c, const char *text, size_t size)
{
	ssize_t sent;

	do {
		sent = send(c->fd, text, size, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return errno == EAGAIN ? 0 : -errno;
	return sent;
}

static int keep(struct connection *c, const char *text, size_t size)
{
	char *more;

	if (size > UNREAD_MAX - c->out_size)
		return -ENOBUFS;
	more = realloc(c->out, c->out_size + size);
	if (!more)
		return -ENOMEM;
	memcpy(more + c->out_size, text, size);
	c->out = more;
	c->out_size += size;
	return 0;
}

bool connection_send(struct connection *c, const char *text, size_t size, bool last)
{
	ssize_t sent = 0;

	assert(c->waits);
	if (last) {
		c->waits = false;
		c->closer = NULL;
	}
	if (c->broken)
		return false;
	if (c->out_size == 0)
		sent = send_some(c, text, size);
	if (sent < 0 || ((size_t)sent < size && keep(c, text + sent, size - (size_t)sent) < 0)) {
		mark_broken(c);
		return false;
	}
	set_events(c);
	/* What else it has sent already stands in our buffer, where poll(2) does not see it. */
	if (last && c->in_size > 0)
		arrange_turn(c->server);
	return true;
}

/* The next request, if all of it is here and none is being answered. */
static void take_request(struct connection *c)
{
	size_t size = message_length(c->in, c->in_size);
	const char *command;
	int r;

	if (c->waits || c->told_off)
		return;
	if (size == 0 && c->in_size < sizeof(c->in))
		return;
	c->waits = true;
	set_events(c);
	r = size > 0 ? message_parse(c->in, size, &c->message) : -EMSGSIZE;
	c->in_size -= size;
	memmove(c->in, c->in + size, c->in_size);
	if (r < 0) {
		/* Where the next one would begin is not known. */
		c->told_off = true;
		request_refuse(c, r);
		if (c->out_size == 0)
			mark_broken(c);
		return;
	}
	command = message_text(&c->message, "cmd");
	if (command)
		(void)snprintf(c->command, sizeof(c->command), "%s", command);
	request_handle(c);
}

static void read_some(struct connection *c)
{
	ssize_t got;

	do {
		got = recv(c->fd, c->in + c->in_size, sizeof(c->in) - c->in_size, MSG_DONTWAIT);
	} while (got < 0 && errno == EINTR);
	if (got < 0 && errno == EAGAIN)
		return;
	if (got <= 0) {
		mark_broken(c);
		return;
	}
	c->in_size += (size_t)got;
	take_request(c);
}

static void write_some(struct connection *c)
{
	ssize_t sent = send_some(c, c->out, c->out_size);

	if (sent < 0) {
		mark_broken(c);
		return;
	}
	c->out_size -= (size_t)sent;
	memmove(c->out, c->out + sent, c->out_size);
	if (c->out_size == 0) {
		free(c->out);
		c->out = NULL;
	}
	set_events(c);
}

static int32_t on_event(int32_t fd, int32_t revents, void *data)
{
	struct connection *c = data;

	(void)fd;
	if (c->broken)
		return 0;
	if (revents & POLLOUT)
		write_some(c);
	if (!c->broken && (revents & POLLIN) && !c->waits && !c->told_off)
		read_some(c);
	else if (revents & (POLLHUP | POLLERR | POLLNVAL))
		mark_broken(c);
	if (!c->broken && c->told_off && c->out_size == 0)
		mark_broken(c);
	return 0;
}

static void close_connection(struct connection *c)
{
	struct server *s = c->server;

	if (!c->broken)
		(void)qb_loop_poll_del(s->lvmlockd->loop, c->fd);
	c->broken = true;
	TAILQ_REMOVE(&s->connections, c, link);
	s->count--;
	if (c->closer)
		c->closer(c->closer_context);
	request_connection_ended(c);
	(void)close(c->fd);
	free(c->out);
	free(c);
}

/* ---- the socket ---- */

static int32_t on_connect(int32_t fd, int32_t revents, void *data);

static void listen_on(struct server *s)
{
	if (s->listening || s->count >= CONNECTIONS_MAX)
		return;
	s->listening = qb_loop_poll_add(s->lvmlockd->loop, QB_LOOP_LOW, s->listen_fd, POLLIN, s, on_connect) == 0;
}

static void on_timer(void *data)
{
	struct server *s = data;

	s->waiting = false;
	listen_on(s);
}

static void stop_listening(struct server *s)
{
	(void)qb_loop_poll_del(s->lvmlockd->loop, s->listen_fd);
	s->listening = false;
	if (!s->waiting)
		s->waiting = qb_loop_timer_add(s->lvmlockd->loop, QB_LOOP_LOW, RETRY_NS, s, on_timer, &s->timer) == 0;
}

static void on_turn(void *data)
{
	struct server *s = data;
	struct connection *c, *next;

	s->turn.due = false;
	for (c = TAILQ_FIRST(&s->connections); c; c = next) {
		next = TAILQ_NEXT(c, link);
		if (!c->broken)
			take_request(c);
		if (c->broken)
			close_connection(c);
	}
	listen_on(s);
}

static int add_connection(struct server *s, int fd)
{
	struct connection *c = calloc(1, sizeof(*c));
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (!c)
		return -ENOMEM;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0)
		c->pid = peer.pid;
	c->server = s;
	c->fd = fd;
	c->number = ++s->last_number;
	TAILQ_INIT(&c->holds);
	if (qb_loop_poll_add(s->lvmlockd->loop, QB_LOOP_MED, fd, POLLIN, c, on_event) < 0) {
		free(c);
		return -ENOMEM;
	}
	TAILQ_INSERT_TAIL(&s->connections, c, link);
	s->count++;
	return 0;
}

static int32_t on_connect(int32_t fd, int32_t revents, void *data)
{
	struct server *s = data;
	int accepted = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	int error = accepted < 0 ? errno : 0;

	(void)revents;
	if (accepted >= 0 && add_connection(s, accepted) < 0)
		(void)close(accepted);
	/* One that cannot be taken stays in the backlog, and would wake us again and again. */
	if (s->count >= CONNECTIONS_MAX) {
		qb_log(LOG_WARNING, "%u connections are open: commands of lvm have to wait until one ends",
		       s->count);
		stop_listening(s);
	} else if (error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS) {
		qb_log(LOG_WARNING, "commands of lvm have to wait: no connection can be taken (%s)", strerror(error));
		stop_listening(s);
	}
	return 0;
}

/* ---- opening ---- */

/* The directory of a path under /run may not be there yet. */
static void make_directory(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *directory = strndup(path, (size_t)(slash - path));

	if (directory && directory[0] != '\0')
		(void)mkdir(directory, 0755);
	free(directory);
}

/*
 * A lock on the pid file, of the kind that lvmlockd itself puts there: neither starts where the other
 * one runs. lvm only looks whether the file exists.
 */
static int claim(const char *path, int *ret_fd)
{
	char text[32];
	int size, fd, r;

	make_directory(path);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0) {
		r = -errno;
		qb_log(LOG_ERR, "cannot open the pid file %s: %s", path, strerror(-r));
		return r;
	}
	if (lockf(fd, F_TLOCK, 0) < 0) {
		r = errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
		if (r == -EBUSY)
			qb_log(LOG_ERR, "%s is locked: an lvmlockd runs here already. Stop it (systemctl stop "
			       "lvmlockd), for only one can serve lvm", path);
		else
			qb_log(LOG_ERR, "cannot lock the pid file %s: %s", path, strerror(-r));
		(void)close(fd);
		return r;
	}
	size = snprintf(text, sizeof(text), "%d\n", (int)getpid());
	if (ftruncate(fd, 0) < 0 || write(fd, text, (size_t)size) != size)
		qb_log(LOG_WARNING, "cannot write the pid file %s: %s", path, strerror(errno));
	*ret_fd = fd;
	return 0;
}

static int open_socket(const char *path, int *ret_fd)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd, r;

	make_directory(path);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* Who has the pid file's lock may take away what a former one left behind. */
	(void)unlink(path);
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 && chmod(path, 0600) == 0 &&
	    listen(fd, BACKLOG) == 0) {
		*ret_fd = fd;
		return 0;
	}
	r = -errno;
	(void)close(fd);
	return r;
}

int server_open(struct lvmlockd *lvmlockd, struct server **ret_server)
{
	const struct config *config = &lvmlockd->config;
	struct server *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->lvmlockd = lvmlockd;
	TAILQ_INIT(&s->connections);
	r = claim(config->lvm_pid_file, &s->pid_fd);
	if (r < 0)
		goto fail_free;
	r = open_socket(config->lvm_socket, &s->listen_fd);
	if (r < 0) {
		qb_log(LOG_ERR, "cannot open the socket %s: %s", config->lvm_socket, strerror(-r));
		goto fail_pid;
	}
	listen_on(s);
	*ret_server = s;
	return 0;

fail_pid:
	(void)unlink(config->lvm_pid_file);
	(void)close(s->pid_fd);
fail_free:
	free(s);
	return r;
}

void server_close(struct server *s)
{
	struct connection *c;

	if (!s)
		return;
	(void)unlink(s->lvmlockd->config.lvm_socket);
	if (s->listening)
		(void)qb_loop_poll_del(s->lvmlockd->loop, s->listen_fd);
	(void)close(s->listen_fd);
	while ((c = TAILQ_FIRST(&s->connections)))
		close_connection(c);
	turn_drop(&s->turn, s->lvmlockd->loop);
	if (s->waiting)
		(void)qb_loop_timer_del(s->lvmlockd->loop, s->timer);
	(void)unlink(s->lvmlockd->config.lvm_pid_file);
	(void)close(s->pid_fd);
	free(s);
}

/* ---- looking ---- */

struct connection *server_next(const struct server *server, const struct connection *connection)
{
	return connection ? TAILQ_NEXT(connection, link) : TAILQ_FIRST(&server->connections);
}

void connection_on_close(struct connection *c, void (*closer)(void *context), void *context)
{
	c->closer = closer;
	c->closer_context = context;
}

struct lvmlockd *connection_lvmlockd(const struct connection *c)
{
	return c->server->lvmlockd;
}

const struct message *connection_message(const struct connection *c)
{
	return &c->message;
}

const struct request_type *connection_request(const struct connection *c)
{
	return c->type;
}

void connection_set_request(struct connection *c, const struct request_type *type)
{
	c->type = type;
}

bool connection_waits(const struct connection *c)
{
	return c->waits;
}

pid_t connection_pid(const struct connection *c)
{
	return c->pid;
}

const char *connection_command(const struct connection *c)
{
	return c->command;
}

uint32_t connection_number(const struct connection *c)
{
	return c->number;
}

struct hold_list *connection_holds(struct connection *c)
{
	return &c->holds;
}

const char *connection_unlocked(const struct connection *c)
{
	return c->unlocked;
}

void connection_set_unlocked(struct connection *c, const char *uuid)
{
	(void)snprintf(c->unlocked, sizeof(c->unlocked), "%s", uuid);
}
