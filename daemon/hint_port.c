/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/hint_port.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <poll.h>
#include <qb/qblog.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/clock.h"
#include "daemon/limit.h"
#include "daemon/siphash.h"
#include "wire/hint.h"

/* Of one loop turn, so that a flood of datagrams starves nobody. */
#define RECEIVE_MAX 64u

struct peer {
	uint32_t node;
	socklen_t size;			/* of the address; 0: not known */
	struct sockaddr_storage address;
};

/* The datagram that is being filled. */
struct outgoing {
	bool begun;
	const struct peer *to;
	struct wire_hints head;
	struct wire_writer writer;
	unsigned count;
	uint8_t buf[HINT_DATAGRAM_MAX];
};

struct hint_port {
	qb_loop_t *loop;
	struct hint_handlers handlers;
	uint32_t self;
	int fd;
	uint8_t key[HINT_KEY_SIZE];
	uint32_t peer_count;
	struct peer peer[BELAY_NODES_MAX];
	struct outgoing out;
	struct hint_stats stats;
	struct limit send_limit, receive_limit;
};

static const struct peer *find_peer(const struct hint_port *p, uint32_t node)
{
	for (uint32_t i = 0; i < p->peer_count; i++)
		if (p->peer[i].node == node)
			return &p->peer[i];
	return NULL;
}

/* ---- sending ---- */

static void log_unsent(struct hint_port *p, const struct peer *to, int error)
{
	uint64_t more;

	if (limit_pass(&p->send_limit, clock_now_us(), &more))
		qb_log(LOG_WARNING, "cannot send hints to node %" PRIu32 ": %s (%" PRIu64 " more like "
		       "it). Locks work without, but slower", to->node, strerror(error), more);
}

void hint_port_flush(struct hint_port *p)
{
	struct outgoing *o = &p->out;
	size_t size;

	if (!o->begun)
		return;
	o->begun = false;
	size = wire_size(&o->writer);
	siphash128(p->key, o->buf, size, o->buf + size);
	if (sendto(p->fd, o->buf, size + HINT_MAC_SIZE, MSG_DONTWAIT | MSG_NOSIGNAL,
		   (const struct sockaddr *)&o->to->address, o->to->size) < 0) {
		p->stats.dropped += o->count;
		/* A hint that waited for room would come behind what it hints at. */
		if (errno != EAGAIN && errno != ENOBUFS)
			log_unsent(p, o->to, errno);
		return;
	}
	p->stats.sent += o->count;
	p->stats.sent_datagrams++;
}

static bool same_head(const struct wire_hints *a, const struct wire_hints *b)
{
	return a->node == b->node && a->incarnation == b->incarnation && a->to == b->to &&
	       a->to_incarnation == b->to_incarnation;
}

void hint_port_send(struct hint_port *p, uint32_t node, const struct belay_hint *hint)
{
	const struct peer *to = find_peer(p, node);
	struct outgoing *o = &p->out;
	const struct wire_hints head = {
		.node = hint->node, .incarnation = hint->incarnation,
		.to = node, .to_incarnation = hint->to_incarnation,
	};
	int r;

	if (!to || to->size == 0) {
		p->stats.dropped++;
		return;
	}
	if (o->begun && (!same_head(&head, &o->head) || wire_put_hint(&o->writer, &head, hint) < 0))
		hint_port_flush(p);
	else if (o->begun)
		o->count++;
	if (o->begun)
		return;
	o->begun = true;
	o->to = to;
	o->head = head;
	o->count = 1;
	r = wire_hints_begin(&o->writer, o->buf, sizeof(o->buf) - HINT_MAC_SIZE, &head);
	if (r == 0)
		r = wire_put_hint(&o->writer, &head, hint);
	assert(r == 0);
}

/* ---- receiving ---- */

struct incoming {
	uint8_t buf[HINT_DATAGRAM_MAX];
	size_t size;
	struct sockaddr_storage from;
	socklen_t from_size;
};

static void log_unused(struct hint_port *p, const struct incoming *in, const char *why)
{
	char host[128] = "?";
	uint64_t more;

	if (!limit_pass(&p->receive_limit, clock_now_us(), &more))
		return;
	(void)getnameinfo((const struct sockaddr *)&in->from, in->from_size, host, sizeof(host), NULL, 0,
			  NI_NUMERICHOST);
	qb_log(LOG_WARNING, "a datagram from %s to the port of hints is not used: %s (%" PRIu64
	       " more were not)", host, why, more);
}

/* In a time that does not depend on where the first difference is. */
static bool mac_right(const struct hint_port *p, const uint8_t *buf, size_t size, const uint8_t *mac)
{
	uint8_t want[HINT_MAC_SIZE], difference = 0;

	siphash128(p->key, buf, size, want);
	for (size_t i = 0; i < sizeof(want); i++)
		difference |= want[i] ^ mac[i];
	return difference == 0;
}

/* Nothing but the MAC looks at the bytes of a stranger. The counter that grows says why. */
static const char *open_datagram(struct hint_port *p, const struct incoming *in,
				 struct wire_reader *ret_r, struct wire_hints *ret_head,
				 uint64_t **ret_counter)
{
	size_t size = in->size - HINT_MAC_SIZE;
	int r;

	*ret_counter = &p->stats.malformed;
	if (in->size <= HINT_MAC_SIZE || in->size > sizeof(in->buf))
		return "it has not the size of hints";
	*ret_counter = &p->stats.bad_mac;
	if (!mac_right(p, in->buf, size, in->buf + size))
		return "its sender does not have this cluster's key (key_file in [hints] must be the "
		       "same on all nodes)";
	r = wire_hints_open(ret_r, in->buf, size, ret_head);
	*ret_counter = &p->stats.foreign;
	if (r == -EPROTONOSUPPORT)
		return "it is of another version of belay: run the same on all nodes";
	*ret_counter = &p->stats.malformed;
	if (r < 0)
		return "it is not hints";
	*ret_counter = &p->stats.unknown_sender;
	if (ret_head->to != p->self)
		return "it is for another node";
	if (!find_peer(p, ret_head->node))
		return "its sender is no other node of this cluster";
	return NULL;
}

/* Returns whether a handler was called. */
static bool take(struct hint_port *p, const struct incoming *in)
{
	uint64_t *counter;
	struct wire_reader r;
	struct wire_hints head;
	struct belay_hint hint;
	const char *why = open_datagram(p, in, &r, &head, &counter);
	bool told = false;
	int more;

	p->stats.received_datagrams++;
	if (why) {
		++*counter;
		log_unused(p, in, why);
		return false;
	}
	/* Each hint stands for itself: those before a bad one are as good as any. */
	while ((more = wire_get_hint(&r, &head, &hint)) == 1) {
		p->stats.received++;
		p->handlers.on_hint(p->handlers.context, &hint);
		told = true;
	}
	if (more < 0) {
		p->stats.malformed++;
		log_unused(p, in, "it is not hints to its end");
	}
	return told;
}

static int32_t on_readable(int32_t fd, int32_t revents, void *data)
{
	struct hint_port *p = data;
	struct incoming in;
	bool told = false;

	(void)revents;
	for (unsigned i = 0; i < RECEIVE_MAX; i++) {
		ssize_t size;

		in.from_size = sizeof(in.from);
		/* The true size, even if it is too long. */
		size = recvfrom(fd, in.buf, sizeof(in.buf), MSG_DONTWAIT | MSG_TRUNC,
				(struct sockaddr *)&in.from, &in.from_size);
		/* An error of the network is over once it is told; what is left comes again. */
		if (size < 0)
			break;
		in.size = (size_t)size;
		told |= take(p, &in);
	}
	if (told)
		p->handlers.on_told(p->handlers.context);
	return 0;
}

/* ---- life ---- */

/* The first address of @name; the result is getaddrinfo()'s. */
static int look_up(const char *name, uint16_t port, int family, struct peer *ret_peer)
{
	const struct addrinfo hints = {
		.ai_family = family, .ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICSERV,
	};
	struct addrinfo *found;
	char service[8];
	int r;

	(void)snprintf(service, sizeof(service), "%" PRIu16, port);
	r = getaddrinfo(name, service, &hints, &found);
	if (r != 0)
		return r;
	memcpy(&ret_peer->address, found->ai_addr, found->ai_addrlen);
	ret_peer->size = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}

static void find_peers(struct hint_port *p, const struct group_info *info, uint16_t port, int family)
{
	for (uint32_t i = 0; i < info->node_count; i++) {
		struct peer *peer = &p->peer[p->peer_count];
		int r = EAI_NONAME;

		if (info->node[i] == info->self)
			continue;
		peer->node = info->node[i];
		p->peer_count++;
		if (info->node_address[i][0] != '\0')
			r = look_up(info->node_address[i], port, family, peer);
		if (r != 0)
			qb_log(LOG_WARNING, "no hints to node %" PRIu32 ": its ring0_addr \"%s\" in "
			       "corosync.conf cannot be found, or is not of the same family as this "
			       "node's (%s)", peer->node, info->node_address[i], gai_strerror(r));
	}
}

static const char *own_address(const struct group_info *info, const char *address)
{
	if (address[0] != '\0')
		return address;
	for (uint32_t i = 0; i < info->node_count; i++)
		if (info->node[i] == info->self)
			return info->node_address[i];
	return "";
}

/* A socket bound there. 0 or a negative errno with *ret_why. */
static int open_socket(const struct peer *own, int *ret_fd, const char **ret_why)
{
	int fd = socket(own->address.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int r;

	if (fd < 0) {
		*ret_why = "no socket for it";
		return -errno;
	}
	if (bind(fd, (const struct sockaddr *)&own->address, own->size) < 0) {
		r = -errno;
		*ret_why = r == -EADDRINUSE ? "its port is taken by another program: set port in [hints], on "
					      "all nodes" :
					      "belayd cannot listen at its address: set address in [hints] "
					      "to one of this node";
		close(fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

int hint_port_open(qb_loop_t *loop, const struct group_info *info, const char *address, uint16_t port,
		   const uint8_t key[HINT_KEY_SIZE], const struct hint_handlers *handlers,
		   struct hint_port **ret_port, const char **ret_why)
{
	struct hint_port *p;
	struct peer own = { .node = info->self };
	int r;

	address = own_address(info, address);
	if (address[0] == '\0' || look_up(address, port, AF_UNSPEC, &own) != 0) {
		*ret_why = "its address is not known: set address in [hints], or ring0_addr in corosync.conf";
		return -EADDRNOTAVAIL;
	}
	p = calloc(1, sizeof(*p));
	if (!p) {
		*ret_why = "out of memory";
		return -ENOMEM;
	}
	p->loop = loop;
	p->handlers = *handlers;
	p->self = info->self;
	memcpy(p->key, key, sizeof(p->key));
	r = open_socket(&own, &p->fd, ret_why);
	if (r < 0)
		goto fail_free;
	find_peers(p, info, port, own.address.ss_family);
	*ret_why = "the event loop cannot watch its socket";
	r = qb_loop_poll_add(loop, QB_LOOP_HIGH, p->fd, POLLIN, p, on_readable);
	if (r < 0)
		goto fail_close;
	*ret_port = p;
	return 0;

fail_close:
	close(p->fd);
fail_free:
	free(p);
	return r;
}

void hint_port_close(struct hint_port *p)
{
	if (!p)
		return;
	(void)qb_loop_poll_del(p->loop, p->fd);
	close(p->fd);
	explicit_bzero(p->key, sizeof(p->key));
	free(p);
}

void hint_port_stats(const struct hint_port *p, struct hint_stats *ret_stats)
{
	*ret_stats = p->stats;
}
