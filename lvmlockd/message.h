/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The text protocol of lvmlockd's socket. A message is lines of
 *	key = "text"		or		key = NUMBER
 * and ends with a line of "##". In requests, lists, sections and comments of LVM's
 * configuration syntax are accepted and passed over, for later versions of lvm.
 * Pure and bounded: no input can make it allocate or read beyond its bytes.
 */
#ifndef BELAY_LVMLOCKD_MESSAGE_H
#define BELAY_LVMLOCKD_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest request, its end included. */
#define MESSAGE_BYTES_MAX (16u * 1024)
#define MESSAGE_FIELDS_MAX 64u
#define MESSAGE_END "\n##\n"

struct message_field {
	const char *key;
	const char *text;	/* NULL: a number */
	int64_t number;
};

struct message {
	unsigned count;
	struct message_field field[MESSAGE_FIELDS_MAX];
	char bytes[MESSAGE_BYTES_MAX];	/* what the fields point into */
};

/* Bytes of the first message in @buf, its end included; 0: its end has not come. */
size_t message_length(const char *buf, size_t size);

/*
 * Take a message apart; @size may include its end. 0; or, with nothing to be used in
 * *ret_message: -EBADMSG it is no such text, -EMSGSIZE it is too long, or has too many fields.
 */
int message_parse(const char *buf, size_t size, struct message *ret_message);

/* The text of a field; NULL: there is none, or it is a number. */
const char *message_text(const struct message *message, const char *key);
/* The number of a field; @fallback: there is none, or it is text. */
int64_t message_number(const struct message *message, const char *key, int64_t fallback);

/* An answer in the making. What does not fit is told by -EMSGSIZE at the end. */
struct message_out {
	size_t size;
	bool overflow;
	char bytes[MESSAGE_BYTES_MAX];
};

void message_begin(struct message_out *out);
/* Quotes and backslashes in @text are escaped; control bytes become '?'. */
void message_put_text(struct message_out *out, const char *key, const char *text);
void message_put_number(struct message_out *out, const char *key, int64_t number);
/* Add the end. 0 or -EMSGSIZE. */
int message_end(struct message_out *out);

#endif
