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
 * number 0 is not answered. An OPEN_FD carries one descriptor by SCM_RIGHTS in its packet.
 */
#ifndef BELAY_WIRE_CLIENT_H
#define BELAY_WIRE_CLIENT_H

#include <stddef.h>

#include "core/types.h"

#define CLIENT_VERSION 1
#define CLIENT_PACKET_MAX 65536u
#define CLIENT_NAME_MAX 255u
#define CLIENT_TEXT_MAX 32768u
#define CLIENT_MAGIC 0x59414c42u	/* "BLAY" */

enum client_type {
	/* to belayd */
	CLIENT_HELLO,		/* magic version */
	CLIENT_OPEN_FD,		/* number */
	CLIENT_OPEN_NAME,	/* number lockspace(text) name(text): lockspace in text, name in text2 */
	CLIENT_CLOSE,		/* number handle: releases what POSIX/OFD/FLOCK owners of that handle hold */
	CLIENT_LOCK,		/* number handle kind mode wait range */
	CLIENT_TEST,		/* number handle kind mode range: F_GETLK */
	CLIENT_UNLOCK,		/* number handle kind range */
	CLIENT_CANCEL,		/* number: of the LOCK; that LOCK is answered, CANCEL is not */
	CLIENT_COMMAND,		/* number text: an admin command, "status", "locks ...", ... */
	/* from belayd */
	CLIENT_WELCOME,		/* version node */
	CLIENT_RESULT,		/* number result handle token: to OPEN_*, CLOSE, LOCK, UNLOCK */
	CLIENT_TESTED,		/* number result held owner range mode: to TEST */
	CLIENT_TEXT,		/* number result more text: to COMMAND; JSON, in pieces while more */
	CLIENT_LOST,		/* all locks of this client are void: quorum was lost */
	CLIENT_ERROR,		/* result text: why belayd closes this connection */
	CLIENT_TYPE_COUNT
};

struct client_message {
	enum client_type type;
	uint32_t magic, version, node;
	uint32_t number, handle;
	int32_t result;			/* 0 or negative errno */
	enum belay_kind kind;
	enum belay_mode mode;
	bool wait, held, more;
	struct belay_range range;
	struct belay_owner owner;	/* TESTED */
	uint64_t token;
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
