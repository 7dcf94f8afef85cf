/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lvmlockd's text protocol from hostile hands. What is accepted, written anew
 * field by field, reads again as the same fields.
 */
#include <stdlib.h>
#include <string.h>

#include "lvmlockd/message.h"
#include "tests/fuzz/fuzz.h"

static void require(bool holds)
{
	if (!holds)
		abort();
}

/* Fields point into the message, and end there. */
static void check_bounds(const struct message *m)
{
	const char *end = m->bytes + sizeof(m->bytes);

	require(m->count <= MESSAGE_FIELDS_MAX);
	for (unsigned i = 0; i < m->count; i++) {
		const struct message_field *f = &m->field[i];

		require(f->key >= m->bytes && f->key < end && memchr(f->key, '\0', (size_t)(end - f->key)));
		require(f->key[0] != '\0');
		if (f->text)
			require(f->text >= m->bytes && f->text < end &&
				memchr(f->text, '\0', (size_t)(end - f->text)));
	}
}

static void write_fields(struct message_out *out, const struct message *m)
{
	message_begin(out);
	for (unsigned i = 0; i < m->count; i++) {
		if (m->field[i].text)
			message_put_text(out, m->field[i].key, m->field[i].text);
		else
			message_put_number(out, m->field[i].key, m->field[i].number);
	}
}

static bool same_text(const char *first, const char *again)
{
	for (; *first && *again; first++, again++)
		if (*first != *again && ((unsigned char)*first >= ' ' && *first != 0x7f))
			return false;
	return *first == *again;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t length = message_length((const char *)data, size);
	struct message first, again;
	struct message_out out;

	require(length <= size);
	first.count = 0;
	if (message_parse((const char *)data, size, &first) < 0) {
		require(first.count == 0);
		return 0;
	}
	check_bounds(&first);
	write_fields(&out, &first);
	/* What was between brackets, and blanks, made room for what escapes need; but not always. */
	if (message_end(&out) < 0)
		return 0;
	require(message_length(out.bytes, out.size) == out.size);
	require(message_parse(out.bytes, out.size, &again) == 0);
	require(again.count == first.count);
	for (unsigned i = 0; i < first.count; i++) {
		const struct message_field *f = &first.field[i], *g = &again.field[i];

		require(strcmp(f->key, g->key) == 0 && !f->text == !g->text);
		require(f->text ? same_text(f->text, g->text) : f->number == g->number);
	}
	return 0;
}
