/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lvmlockd/message.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* How deep lists and sections that are passed over may stand in each other. */
#define DEPTH_MAX 8u

#define END_SIZE (sizeof(MESSAGE_END) - 1)

size_t message_length(const char *buf, size_t size)
{
	const char *end = memmem(buf, size, MESSAGE_END, END_SIZE);

	return end ? (size_t)(end - buf) + END_SIZE : 0;
}

/* ---- taking apart ---- */

/* Works within the message's own copy: texts only become shorter there. */
struct reader {
	char *at, *end;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ',';
}

/* Of a key, or of a bare word. LVM has more in them than letters. */
static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr("_-+./@:", c));
}

static void skip_blanks(struct reader *r)
{
	while (r->at < r->end && (is_blank(*r->at) || *r->at == '#')) {
		if (*r->at == '#')
			while (r->at < r->end && *r->at != '\n')
				r->at++;
		else
			r->at++;
	}
}

static bool next_is(struct reader *r, char c)
{
	skip_blanks(r);
	if (r->at == r->end || *r->at != c)
		return false;
	r->at++;
	return true;
}

/*
 * A word, terminated where it ends. The byte behind it is lost by that, so it is returned
 * in *ret_next ('\0': the end).
 */
static int read_word(struct reader *r, char **ret_word, char *ret_next)
{
	char *word = r->at;

	while (r->at < r->end && is_word(*r->at))
		r->at++;
	if (r->at == word || (r->at < r->end && *r->at == '\0'))
		return -EBADMSG;
	*ret_word = word;
	*ret_next = r->at < r->end ? *r->at : '\0';
	*r->at = '\0';
	if (r->at < r->end)
		r->at++;
	return 0;
}

/* Behind a quote: up to the next one, without the backslashes before what they escape. */
static int read_quoted(struct reader *r, char quote, char **ret_text)
{
	char *text = r->at, *to = text;

	while (r->at < r->end && *r->at != quote) {
		if (*r->at == '\\' && quote == '"' && r->at + 1 < r->end)
			r->at++;
		if (*r->at == '\0')
			return -EBADMSG;
		*to++ = *r->at++;
	}
	if (r->at == r->end)
		return -EBADMSG;
	r->at++;
	*to = '\0';
	*ret_text = text;
	return 0;
}

/* Digits with an optional sign, all of the word, within int64_t. */
static bool read_number(const char *word, int64_t *ret_number)
{
	bool minus = *word == '-';
	uint64_t number = 0, max = minus ? (uint64_t)INT64_MAX + 1 : INT64_MAX;

	word += minus || *word == '+';
	if (*word == '\0')
		return false;
	for (; *word; word++) {
		uint64_t digit = (uint64_t)(*word - '0');

		if (*word < '0' || *word > '9' || number > (max - digit) / 10)
			return false;
		number = number * 10 + digit;
	}
	*ret_number = minus ? (int64_t)(0 - number) : (int64_t)number;
	return true;
}

/* What is between brackets is nothing that any request needs: only its end is looked for. */
static int pass_over(struct reader *r, char open)
{
	char expected[DEPTH_MAX], *unused;
	unsigned depth = 0;

	expected[depth++] = open == '[' ? ']' : '}';
	while (depth > 0) {
		char c;

		skip_blanks(r);
		if (r->at == r->end)
			return -EBADMSG;
		c = *r->at++;
		if (c == '"' || c == '\'') {
			if (read_quoted(r, c, &unused) < 0)
				return -EBADMSG;
		} else if (c == '[' || c == '{') {
			if (depth == DEPTH_MAX)
				return -EBADMSG;
			expected[depth++] = c == '[' ? ']' : '}';
		} else if (c == ']' || c == '}') {
			if (c != expected[--depth])
				return -EBADMSG;
		} else if (!is_word(c) && c != '=') {
			return -EBADMSG;
		}
	}
	return 0;
}

/* Behind "=". *ret_known: the field is one to keep. */
static int read_value(struct reader *r, struct message_field *field, bool *ret_known)
{
	char *text, next;
	int e;

	skip_blanks(r);
	*ret_known = true;
	if (r->at == r->end)
		return -EBADMSG;
	if (*r->at == '"' || *r->at == '\'') {
		char quote = *r->at++;

		e = read_quoted(r, quote, &text);
		field->text = text;
		return e;
	}
	if (*r->at == '[') {
		r->at++;
		*ret_known = false;
		return pass_over(r, '[');
	}
	e = read_word(r, &text, &next);
	if (e < 0)
		return e;
	if (next != '\0' && !is_blank(next) && next != '#')
		return -EBADMSG;
	/* The comment's sign is gone with the word's end. */
	if (next == '#')
		while (r->at < r->end && *r->at != '\n')
			r->at++;
	if (!read_number(text, &field->number))
		field->text = text;
	return 0;
}

/* One of: key = value, key { ... }. The cursor stands at a word. */
static int read_field(struct reader *r, struct message *m)
{
	struct message_field field = { .key = NULL };
	bool known = false;
	char *key, next;
	int e;

	e = read_word(r, &key, &next);
	if (e < 0)
		return e;
	if (next != '=' && next != '{') {
		if (!is_blank(next))
			return -EBADMSG;
		next = next_is(r, '=') ? '=' : next_is(r, '{') ? '{' : '\0';
	}
	if (next == '{')
		return pass_over(r, '{');
	if (next != '=')
		return -EBADMSG;
	field.key = key;
	e = read_value(r, &field, &known);
	if (e < 0 || !known)
		return e;
	if (m->count == MESSAGE_FIELDS_MAX)
		return -EMSGSIZE;
	m->field[m->count++] = field;
	return 0;
}

int message_parse(const char *buf, size_t size, struct message *ret_message)
{
	struct message *m = ret_message;
	size_t length = message_length(buf, size);
	struct reader r;

	if (length > 0)
		size = length - END_SIZE;
	m->count = 0;
	/* Room for the end of a word at the very end. */
	if (size >= sizeof(m->bytes))
		return -EMSGSIZE;
	memcpy(m->bytes, buf, size);
	m->bytes[size] = '\0';
	r = (struct reader){ .at = m->bytes, .end = m->bytes + size };
	for (;;) {
		int e;

		skip_blanks(&r);
		if (r.at == r.end)
			return 0;
		e = read_field(&r, m);
		if (e < 0) {
			m->count = 0;
			return e;
		}
	}
}

static const struct message_field *find(const struct message *message, const char *key)
{
	for (unsigned i = 0; i < message->count; i++)
		if (strcmp(message->field[i].key, key) == 0)
			return &message->field[i];
	return NULL;
}

const char *message_text(const struct message *message, const char *key)
{
	const struct message_field *field = find(message, key);

	return field ? field->text : NULL;
}

int64_t message_number(const struct message *message, const char *key, int64_t fallback)
{
	const struct message_field *field = find(message, key);

	return field && !field->text ? field->number : fallback;
}

/* ---- putting together ---- */

void message_begin(struct message_out *out)
{
	out->size = 0;
	out->overflow = false;
}

static void put(struct message_out *out, const char *text, size_t size)
{
	/* The end always fits. */
	if (out->overflow || size > sizeof(out->bytes) - END_SIZE - out->size) {
		out->overflow = true;
		return;
	}
	memcpy(out->bytes + out->size, text, size);
	out->size += size;
}

void message_put_text(struct message_out *out, const char *key, const char *text)
{
	put(out, key, strlen(key));
	put(out, " = \"", 4);
	for (; *text; text++) {
		char c = (unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text;

		if (c == '"' || c == '\\')
			put(out, "\\", 1);
		put(out, &c, 1);
	}
	put(out, "\"\n", 2);
}

void message_put_number(struct message_out *out, const char *key, int64_t number)
{
	char text[32];
	int size = snprintf(text, sizeof(text), " = %" PRId64 "\n", number);

	put(out, key, strlen(key));
	put(out, text, (size_t)size);
}

int message_end(struct message_out *out)
{
	if (out->overflow)
		return -EMSGSIZE;
	memcpy(out->bytes + out->size, MESSAGE_END, END_SIZE);
	out->size += END_SIZE;
	return 0;
}
