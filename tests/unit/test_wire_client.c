/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/fuzz/law.h"
#include "tests/tap.h"
#include "tests/unit/wire_check.h"
#include "tests/unit/wire_samples.h"

static void test_encode(const struct client_sample *s)
{
	uint8_t bytes[4096];
	size_t at = 0;
	int r = 0;

	for (unsigned i = 0; r == 0 && i < s->message_count; i++)
		r = client_put(bytes, sizeof(bytes), &at, &s->message[i]);
	if (ok_int(r, 0, "%s: encoded", s->name))
		ok_hex(bytes, at, s->hex, s->name);
}

static void test_decode(const struct client_sample *s)
{
	char got[CHECK_TEXT_MAX], want[CHECK_TEXT_MAX];
	uint8_t bytes[4096];
	size_t size = sample_bytes(s->hex, bytes, sizeof(bytes));
	struct client_message m;
	size_t at = 0;

	for (unsigned i = 0; i < s->message_count; i++) {
		/* What the message does not use must come out zero all the same. */
		memset(&m, 0x5a, sizeof(m));
		if (!ok_int(client_get(bytes, size, &at, &m), 1, "%s: message %u", s->name, i))
			return;
		text_of_message(&m, got);
		text_of_message(&s->message[i], want);
		ok_str(got, want, "%s: message %u has its values", s->name, i);
	}
	ok_uint(at, size, "%s: read to the end", s->name);
	ok_int(client_get(bytes, size, &at, &m), 0, "%s: the end", s->name);
	ok_uint(at, size, "%s: the end stays the end", s->name);
}

/* Every space that is too small for a message, at the start of a packet and in its middle. */
static void test_space(const struct client_sample *s)
{
	uint8_t bytes[4096];

	for (unsigned i = 0; i < s->message_count; i++) {
		size_t size = 0;
		unsigned wrong = 0;

		if (!ok_int(client_put(bytes, sizeof(bytes), &size, &s->message[i]), 0,
			    "%s: message %u alone", s->name, i))
			continue;
		for (size_t start = 0; start < 2; start++)
			for (size_t space = 0; space < size; space++) {
				size_t at = start;

				wrong += client_put(bytes, start + space, &at, &s->message[i]) != -EMSGSIZE;
				wrong += at != start;
			}
		ok_uint(wrong, 0, "%s: message %u in too little space is -EMSGSIZE", s->name, i);
	}
}

static void test_law(const struct client_sample *s)
{
	uint8_t bytes[4096];
	size_t size = sample_bytes(s->hex, bytes, sizeof(bytes));

	ok_int(law_packet(bytes, size), 0, "%s: the packet keeps the law", s->name);
	for (unsigned i = 0; i < s->message_count; i++) {
		size = 0;
		if (ok_int(client_put(bytes, sizeof(bytes), &size, &s->message[i]), 0, "%s", s->name))
			ok_law(law_packet, bytes, size, s->name);
	}
}

static void test_samples(void)
{
	bool seen[CLIENT_TYPE_COUNT] = { false };

	for (unsigned i = 0; i < client_sample_count; i++) {
		const struct client_sample *s = &client_samples[i];

		test_encode(s);
		test_decode(s);
		test_space(s);
		test_law(s);
		for (unsigned j = 0; j < s->message_count; j++)
			seen[s->message[j].type] = true;
	}
	for (unsigned i = 0; i < CLIENT_TYPE_COUNT; i++)
		ok(seen[i], "message type %u has a sample", i);
}

#define NUMBER "01000000 "
#define HANDLE "02000000 "
#define RESOURCE "09000000 "
#define TOKEN "0300000000000000 "
#define BYTE "0500000000000000 0500000000000000 "
#define OWNER "01000000 00000000 0000000000000000 00000000 00"
#define NOBODY "00000000 00000000 0000000000000000 00000000 00"
#define NOTHING "0000000000000000 0000000000000000 "
#define NO_LOAN "00000000 "
#define CELL "01000000 "
#define ROOM "40000000 11000000 "
#define LOAN "3d00 0a 00 " NUMBER HANDLE RESOURCE

/* Pairs that differ in the one thing that is wrong, so that it is the reason. */
static const struct {
	const char *what, *good, *bad;
} bad_messages[] = {
	{ "a size below the head's", "0400 0d 00", "0300 0d 00" },
	{ "a size below the head's, fields expected", "0800 07 00 " NUMBER, "0300 07 00" },
	{ "a size beyond the packet", "0400 0d 00", "0500 0d 00" },
	{ "a size beyond the fields", "0800 07 00 " NUMBER, "0900 07 00 " NUMBER "00" },
	{ "a size before the last field", "0800 07 00 " NUMBER, "0700 07 00 010000" },
	{ "half a head behind a message", "0400 0d 00", "0400 0d 00 0400 0d" },
	{ "an unknown type", "0400 0d 00", "0400 11 00" },
	{ "something in the spare byte", "0400 0d 00", "0400 0d 01" },
	{ "HELLO of a stranger", "0c00 00 00 424c4159 01000000", "0c00 00 00 424c4158 01000000" },
	{ "WELCOME from no node", "0c00 09 00 01000000 01000000", "0c00 09 00 01000000 00000000" },
	{ "a result above 0", "2000 0a 00 " NUMBER HANDLE RESOURCE "ffffffff " TOKEN NO_LOAN,
	  "2000 0a 00 " NUMBER HANDLE RESOURCE "01000000 " TOKEN NO_LOAN },
	{ "a result that is no errno", "2000 0a 00 " NUMBER HANDLE RESOURCE "01f0ffff " TOKEN NO_LOAN,
	  "2000 0a 00 " NUMBER HANDLE RESOURCE "00f0ffff " TOKEN NO_LOAN },
	{ "a loan with a failure", LOAN "00000000 " TOKEN "01000000 01000000 01 " BYTE ROOM,
	  LOAN "ffffffff " TOKEN "01000000 01000000 01 " BYTE ROOM },
	{ "a loan of an unknown mode", LOAN "00000000 " TOKEN "01000000 01000000 01 " BYTE ROOM,
	  LOAN "00000000 " TOKEN "01000000 01000000 02 " BYTE ROOM },
	{ "a loan that ends before it starts",
	  LOAN "00000000 " TOKEN "01000000 01000000 01 " BYTE ROOM,
	  LOAN "00000000 " TOKEN "01000000 01000000 01 0500000000000000 0400000000000000 " ROOM },
	{ "a loan that ends too high",
	  LOAN "00000000 " TOKEN "01000000 01000000 01 0500000000000000 ffffffffffffff7f " ROOM,
	  LOAN "00000000 " TOKEN "01000000 01000000 01 0500000000000000 0000000000000080 " ROOM },
	{ "a loan in no slot", LOAN "00000000 " TOKEN "01000000 01000000 01 " BYTE ROOM,
	  LOAN "00000000 " TOKEN "00000000 01000000 01 " BYTE ROOM },
	{ "a loan cut behind its slot", "2000 0a 00 " NUMBER HANDLE RESOURCE "00000000 " TOKEN NO_LOAN,
	  "2000 0a 00 " NUMBER HANDLE RESOURCE "00000000 " TOKEN "01000000" },
	{ "an unknown kind", "2400 04 00 " NUMBER HANDLE "02 01 01 01 " CELL BYTE,
	  "2400 04 00 " NUMBER HANDLE "04 01 01 01 " CELL BYTE },
	{ "an unknown mode", "2400 04 00 " NUMBER HANDLE "02 01 01 01 " CELL BYTE,
	  "2400 04 00 " NUMBER HANDLE "02 02 01 01 " CELL BYTE },
	{ "neither waiting nor not", "2400 04 00 " NUMBER HANDLE "02 01 01 01 " CELL BYTE,
	  "2400 04 00 " NUMBER HANDLE "02 01 02 01 " CELL BYTE },
	{ "neither welcoming a loan nor not", "2400 04 00 " NUMBER HANDLE "02 01 01 01 " CELL BYTE,
	  "2400 04 00 " NUMBER HANDLE "02 01 01 02 " CELL BYTE },
	{ "opened for an unknown kind", "0900 01 00 " NUMBER "02", "0900 01 00 " NUMBER "04" },
	{ "a range that ends before it starts", "1d00 06 00 " NUMBER HANDLE "00 " BYTE,
	  "1d00 06 00 " NUMBER HANDLE "00 0500000000000000 0400000000000000" },
	{ "a range that ends too high",
	  "1d00 06 00 " NUMBER HANDLE "00 0500000000000000 ffffffffffffff7f",
	  "1d00 06 00 " NUMBER HANDLE "00 0500000000000000 0000000000000080" },
	{ "neither held nor not", "3300 0b 00 " NUMBER "00000000 01 01 " BYTE OWNER,
	  "3300 0b 00 " NUMBER "00000000 01 02 " BYTE OWNER },
	{ "held by no node", "3300 0b 00 " NUMBER "00000000 01 01 " BYTE OWNER,
	  "3300 0b 00 " NUMBER "00000000 01 01 " BYTE NOBODY },
	{ "held by an unknown kind", "3300 0b 00 " NUMBER "00000000 01 01 " BYTE
	  "01000000 00000000 0000000000000000 00000000 02",
	  "3300 0b 00 " NUMBER "00000000 01 01 " BYTE
	  "01000000 00000000 0000000000000000 00000000 04" },
	{ "free, with a mode", "3300 0b 00 " NUMBER "00000000 00 00 " NOTHING NOBODY,
	  "3300 0b 00 " NUMBER "00000000 01 00 " NOTHING NOBODY },
	{ "free, from a byte on", "3300 0b 00 " NUMBER "00000000 00 00 " NOTHING NOBODY,
	  "3300 0b 00 " NUMBER "00000000 00 00 " BYTE NOBODY },
	{ "free, to a byte", "3300 0b 00 " NUMBER "00000000 00 00 " NOTHING NOBODY,
	  "3300 0b 00 " NUMBER "00000000 00 00 0000000000000000 0500000000000000 " NOBODY },
	{ "free, by a node", "3300 0b 00 " NUMBER "00000000 00 00 " NOTHING NOBODY,
	  "3300 0b 00 " NUMBER "00000000 00 00 " NOTHING OWNER },
	{ "free, by a client", "3300 0b 00 " NUMBER "00000000 00 00 " NOTHING NOBODY,
	  "3300 0b 00 " NUMBER "00000000 00 00 " NOTHING
	  "00000000 01000000 0000000000000000 00000000 00" },
	{ "free, by a file", "3300 0b 00 " NUMBER "00000000 00 00 " NOTHING NOBODY,
	  "3300 0b 00 " NUMBER "00000000 00 00 " NOTHING
	  "00000000 00000000 0100000000000000 00000000 00" },
	{ "free, by a process", "3300 0b 00 " NUMBER "00000000 00 00 " NOTHING NOBODY,
	  "3300 0b 00 " NUMBER "00000000 00 00 " NOTHING
	  "00000000 00000000 0000000000000000 01000000 00" },
	{ "free, by a kind", "3300 0b 00 " NUMBER "00000000 00 00 " NOTHING NOBODY,
	  "3300 0b 00 " NUMBER "00000000 00 00 " NOTHING
	  "00000000 00000000 0000000000000000 00000000 01" },
	{ "neither more nor not", "1000 0c 00 " NUMBER "00000000 01 0100 78",
	  "1000 0c 00 " NUMBER "00000000 02 0100 78" },
	{ "a NUL in a text", "0d00 08 00 " NUMBER "0300 787978", "0d00 08 00 " NUMBER "0300 780078" },
	{ "a text beyond its message", "0c00 08 00 " NUMBER "0200 7879",
	  "0c00 08 00 " NUMBER "0300 7879" },
	{ "a name of no bytes", "0e00 02 00 " NUMBER "00 0000 0100 78",
	  "0d00 02 00 " NUMBER "00 0000 0000" },
	{ "a NUL in a name", "1000 02 00 " NUMBER "00 0100 78 0200 7878",
	  "1000 02 00 " NUMBER "00 0100 78 0200 7800" },
	{ "a NUL in a lockspace", "1000 02 00 " NUMBER "00 0200 7878 0100 78",
	  "1000 02 00 " NUMBER "00 0200 7800 0100 78" },
};

static void test_rejected(void)
{
	for (size_t i = 0; i < sizeof(bad_messages) / sizeof(bad_messages[0]); i++) {
		uint8_t bytes[256];
		size_t size = sample_bytes(bad_messages[i].good, bytes, sizeof(bytes));

		ok_int(law_packet(bytes, size), 0, "accepted without: %s", bad_messages[i].what);
		ok_rejected(law_packet, bad_messages[i].bad, -EBADMSG, bad_messages[i].what);
	}
}

/* Texts as long as they may be, and one byte longer. */
static void test_text(enum client_type type, size_t text_size, size_t text2_size, int want)
{
	uint8_t *bytes = calloc(1, CLIENT_PACKET_MAX);
	size_t size = 8 + 2 + text_size + (type == CLIENT_OPEN_NAME ? 3 + text2_size : 0);
	size_t at = 8;

	if (!bytes)
		bail_out("no memory");
	memset(bytes + 8, 'x', CLIENT_PACKET_MAX - 8);
	memcpy(bytes, (uint8_t[]){ (uint8_t)size, (uint8_t)(size >> 8), (uint8_t)type, 0 }, 4);
	if (type == CLIENT_OPEN_NAME)
		bytes[at++] = BELAY_KIND_FLOCK;
	memcpy(bytes + at, (uint8_t[]){ (uint8_t)text_size, (uint8_t)(text_size >> 8) }, 2);
	at += 2 + text_size;
	if (type == CLIENT_OPEN_NAME)
		memcpy(bytes + at, (uint8_t[]){ (uint8_t)text2_size, (uint8_t)(text2_size >> 8) }, 2);
	ok_int(law_packet(bytes, size), want, "message type %u with texts of %zu and %zu bytes",
	       (unsigned)type, text_size, text2_size);
	free(bytes);
}

static void test_texts(void)
{
	test_text(CLIENT_COMMAND, 0, 0, 0);
	test_text(CLIENT_COMMAND, CLIENT_TEXT_MAX, 0, 0);
	test_text(CLIENT_COMMAND, CLIENT_TEXT_MAX + 1, 0, -EBADMSG);
	test_text(CLIENT_ERROR, CLIENT_TEXT_MAX, 0, 0);
	test_text(CLIENT_ERROR, CLIENT_TEXT_MAX + 1, 0, -EBADMSG);
	test_text(CLIENT_OPEN_NAME, CLIENT_NAME_MAX, CLIENT_NAME_MAX, 0);
	test_text(CLIENT_OPEN_NAME, CLIENT_NAME_MAX + 1, CLIENT_NAME_MAX, -EBADMSG);
	test_text(CLIENT_OPEN_NAME, CLIENT_NAME_MAX, CLIENT_NAME_MAX + 1, -EBADMSG);
}

struct attempt {
	struct client_message m;
	size_t at;
	uint8_t bytes[256];
};

static void put(void *context)
{
	struct attempt *a = context;

	(void)client_put(a->bytes, sizeof(a->bytes), &a->at, &a->m);
}

static void get(void *context)
{
	struct attempt *a = context;

	(void)client_get(a->bytes, sizeof(a->bytes), &a->at, &a->m);
}

static void test_asserts(void)
{
	const struct client_message lock = { .type = CLIENT_LOCK };
	const struct client_message hello = { .type = CLIENT_HELLO, .magic = CLIENT_MAGIC };
	struct attempt a = { .m = lock };

	put(&a);
	ok_uint(a.at, 0x24, "a valid message is put");
	a.m.type = CLIENT_TYPE_COUNT;
	ok_asserts(put, &a, "an unknown type");
	a.m = lock;
	a.m.mode = BELAY_MODE_COUNT;
	ok_asserts(put, &a, "an unknown mode");
	a.m = lock;
	a.m.range.start = 1;
	ok_asserts(put, &a, "a range that ends before it starts");
	a.m = hello;
	a.m.magic = 0;
	ok_asserts(put, &a, "HELLO without the magic");
	a.m = (struct client_message){ .type = CLIENT_RESULT, .epoch = 1 };
	ok_asserts(put, &a, "the epoch of no loan");
	a.m = (struct client_message){ .type = CLIENT_RESULT, .room = 1 };
	ok_asserts(put, &a, "the room of no loan");
	a.m = (struct client_message){ .type = CLIENT_RESULT, .messages = 1 };
	ok_asserts(put, &a, "messages before no loan");
	a.m = (struct client_message){ .type = CLIENT_RESULT, .slot = 1, .result = -EIO };
	ok_asserts(put, &a, "a loan with a failure");
	a = (struct attempt){ .m = lock, .at = sizeof(a.bytes) + 1 };
	ok_asserts(put, &a, "a place behind the packet, to put to");
	ok_asserts(get, &a, "a place behind the packet, to get from");
}

int main(void)
{
	test_samples();
	test_rejected();
	test_texts();
	test_asserts();
	return done_testing();
}
