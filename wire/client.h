/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The protocol between a client and belayd: a Unix SOCK_SEQPACKET socket; each
 * packet holds one or more messages, back to back, so that a turn of either
 * side costs one system call. Pure: bytes to structs and back.
 *
 * Every message is: u16 size of the message, u8 type, u8 zero, then the
 * fields of its type, little-endian, fixed width, in the order of the struct.
 * Strings are u16 length, bytes, no NUL inside. What is accepted encodes again to
 * the same bytes.
 *
 * A client starts with HELLO, belayd answers WELCOME or closes. Each request
 * carries a number chosen by the client; the answer repeats it. UNLOCK with
 * number 0 is not answered. An OPEN_FD carries one descriptor by SCM_RIGHTS in
 * its packet, and so does the packet with the RESULT of a SHARE.
 *
 * Before belayd answers a TEST, or a LOCK that does not wait, it acts upon all
 * that other clients sent before it, and perhaps also upon what the same client sent
 * behind it. So who asks this waits for the answer before it says more about that range.
 *
 * A client that has said SHARE has memory in common with belayd (slot/slot.h):
 * cells, in which it may ask for an answer in place of the socket, and slots,
 * in which belayd lends it a range of a resource, to lock there by itself.
 * A loan comes with the RESULT of a LOCK. It holds only if the client
 * has sent as many messages about the resource (LOCK TEST UNLOCK CLOSE) as the
 * RESULT says that belayd had taken: else a later one was decided by belayd as
 * if the loan were over. Before a client sends such a message it ends, by
 * SLOT_RECALL, its loans that overlap the message's range.
 */
#ifndef BELAY_WIRE_CLIENT_H
#define BELAY_WIRE_CLIENT_H

#include <stddef.h>

#include "core/types.h"

#define CLIENT_VERSION 2
#define CLIENT_PACKET_MAX 65536u
#define CLIENT_NAME_MAX 255u
#define CLIENT_TEXT_MAX 32768u
#define CLIENT_MAGIC 0x59414c42u	/* "BLAY" */

enum client_type {
	/* to belayd */
	CLIENT_HELLO,		/* magic version */
	CLIENT_OPEN_FD,		/* number kind */
	CLIENT_OPEN_NAME,	/* number kind lockspace(text) name(text): lockspace in text, name in text2 */
	CLIENT_CLOSE,		/* number handle: releases what POSIX/OFD/FLOCK owners of that handle hold */
	CLIENT_LOCK,		/* number handle kind mode wait lend cell range */
	CLIENT_TEST,		/* number handle kind mode cell range: F_GETLK */
	CLIENT_UNLOCK,		/* number handle kind range */
	CLIENT_CANCEL,		/* number: of the LOCK; that LOCK is answered, CANCEL is not */
	CLIENT_COMMAND,		/* number text: an admin command, "status", "locks ...", ... */
	/* from belayd */
	CLIENT_WELCOME,		/* version node */
	CLIENT_RESULT,		/* number handle resource result token slot, and if slot is not 0: epoch mode
				 * range room messages; to OPEN_*, CLOSE, LOCK, UNLOCK, SHARE */
	CLIENT_TESTED,		/* number result held owner range mode: to TEST */
	CLIENT_TEXT,		/* number result more text: to COMMAND; JSON, in pieces while more */
	CLIENT_LOST,		/* all locks of this client are void: quorum was lost */
	CLIENT_ERROR,		/* result text: why belayd closes this connection */
	/* to belayd, about the memory in common */
	CLIENT_SHARE,		/* number: make it */
	CLIENT_RETURN,		/* slot epoch: the client saw that this loan is over; not answered */
	CLIENT_TYPE_COUNT
};

struct client_message {
	enum client_type type;
	uint32_t magic, version, node;
	uint32_t number, handle;
	/*
	 * To OPEN: the resource's number, the same for all handles of it that this client has;
	 * flock(2) has one of its own. Its messages count from the first on that this client
	 * has sent about it. To CLOSE: the number that is given up, for no handle of it
	 * is open any more (else 0). It does not come again.
	 */
	uint32_t resource;
	int32_t result;			/* 0 or negative errno */
	enum belay_kind kind;
	enum belay_mode mode;
	bool wait, lend, held, more;	/* lend: a loan is welcome */
	uint32_t cell;			/* 0: answer on the socket; n: in cell n - 1, and only there */
	struct belay_range range;
	struct belay_owner owner;	/* TESTED */
	uint64_t token;
	uint32_t slot, epoch;		/* 0: no loan; n: slot n - 1 has one; RETURN: had one */
	uint32_t room;			/* so many locks may be in the loan at one time */
	uint32_t messages;		/* about the resource, taken from this client by then */
	/* Point into the packet (get) or to the caller's text (put); not NUL-terminated. */
	const char *text, *text2;
	uint16_t text_size, text2_size;
};

/*
 * Append @m at *at of buf[size]. 0, or -EMSGSIZE with *at unchanged. m must be
 * valid (asserted).
 */
int client_put(void *buf, size_t size, size_t *at, const struct client_message *m);

/*
 * Read the message at *at of buf[size] and move *at behind it. Returns 1, 0 at
 * the end, -EBADMSG. The magic, results, ranges, kinds, modes and sizes are
 * checked; versions, numbers and handles are the caller's to judge.
 */
int client_get(const void *buf, size_t size, size_t *at, struct client_message *ret_m);

#endif
