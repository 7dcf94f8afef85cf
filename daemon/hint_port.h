/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Port: hints beside the group, as datagrams. What is sent may be lost, come late,
 * or come twice, and so may what an enemy has recorded and sends again: that is
 * harmless, for a hint names the life that sent it, the life it is for, and the
 * number of an op. Of another life, or of an op that has been delivered, it says
 * nothing new, and the core ignores it; one that is early is as true as it was when
 * it was sent. So there are no sequence numbers here, and no window of them. What
 * must not be is a hint that no node has sent: each datagram has a MAC.
 *
 * All functions run on the loop's thread, and none blocks but open.
 */
#ifndef BELAY_DAEMON_HINT_PORT_H
#define BELAY_DAEMON_HINT_PORT_H

#include <qb/qbloop.h>

#include "core/core.h"
#include "daemon/group.h"
#include "daemon/hint_key.h"

/* Fits into a packet of IPv6, whatever the way. */
#define HINT_DATAGRAM_MAX 1232u
#define HINT_MAC_SIZE 16u

struct hint_port;

struct hint_handlers {
	/* One has come from another node; valid during the call only. */
	void (*on_hint)(void *context, const struct belay_hint *hint);
	/* What had come is told; follows the above, once for many. */
	void (*on_told)(void *context);
	void *context;
};

struct hint_stats {
	uint64_t sent, sent_datagrams;
	uint64_t dropped;		/* hints that could not be sent */
	uint64_t received, received_datagrams;
	/* Datagrams that were not used: */
	uint64_t bad_mac;		/* not sent by who has the key */
	uint64_t unknown_sender;	/* of no other node of this cluster, or not for this one */
	uint64_t foreign;		/* of another protocol version */
	uint64_t malformed;
};

/*
 * Listen at @address (in numbers or by name; "": that of @info) and find out
 * where the other nodes are: may block. Handlers and key are copied; a node that
 * cannot be found gets no hints, which is logged. 0, or a negative errno with
 * *ret_why a static text.
 */
int hint_port_open(qb_loop_t *loop, const struct group_info *info, const char *address, uint16_t port,
		   const uint8_t key[HINT_KEY_SIZE], const struct hint_handlers *handlers,
		   struct hint_port **ret_port, const char **ret_why);
/* NULL is allowed. Not from a handler. */
void hint_port_close(struct hint_port *p);

/*
 * Send a hint, which must be valid, to a node. Those that follow one another and are
 * for the same node may share a datagram: the last one leaves with hint_port_flush().
 */
void hint_port_send(struct hint_port *p, uint32_t node, const struct belay_hint *hint);
void hint_port_flush(struct hint_port *p);

void hint_port_stats(const struct hint_port *p, struct hint_stats *ret_stats);

#endif
