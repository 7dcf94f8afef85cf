/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/fuzz/law.h"
#include "tests/tap.h"
#include "tests/unit/wire_check.h"
#include "tests/unit/wire_samples.h"

static void test_encode(const struct hint_sample *s)
{
	uint8_t bytes[4096];
	struct wire_writer w;
	int r = wire_hints_begin(&w, bytes, sizeof(bytes), &s->head);

	for (unsigned i = 0; r == 0 && i < s->hint_count; i++)
		r = wire_put_hint(&w, &s->head, &s->hint[i]);
	if (ok_int(r, 0, "%s: encoded", s->name))
		ok_hex(bytes, wire_size(&w), s->hex, s->name);
}

static void test_decode(const struct hint_sample *s)
{
	char got[CHECK_TEXT_MAX], want[CHECK_TEXT_MAX];
	uint8_t bytes[4096];
	size_t size = sample_bytes(s->hex, bytes, sizeof(bytes));
	struct wire_hints head;
	struct wire_reader r;
	struct belay_hint hint;

	if (!ok_int(wire_hints_open(&r, bytes, size, &head), 0, "%s: opened", s->name))
		return;
	ok(head.node == s->head.node && head.incarnation == s->head.incarnation &&
	   head.to == s->head.to && head.to_incarnation == s->head.to_incarnation,
	   "%s: its head", s->name);
	for (unsigned i = 0; i < s->hint_count; i++) {
		/* What the hint does not use must come out zero all the same. */
		memset(&hint, 0x5a, sizeof(hint));
		ok_int(wire_get_hint(&r, &head, &hint), 1, "%s: hint %u", s->name, i);
		text_of_hint(&hint, got);
		text_of_hint(&s->hint[i], want);
		ok_str(got, want, "%s: hint %u has its values", s->name, i);
	}
	ok_int(wire_get_hint(&r, &head, &hint), 0, "%s: the end", s->name);
	ok_int(wire_get_hint(&r, &head, &hint), 0, "%s: the end stays the end", s->name);
}

/* Every space that is too small, for the head and for each hint. */
static void test_space(const struct hint_sample *s)
{
	uint8_t want[4096], bytes[4096];
	size_t size = sample_bytes(s->hex, want, sizeof(want));
	unsigned wrong = 0;

	for (size_t space = 0; space < size; space++) {
		struct wire_writer w;
		size_t before = 0;
		unsigned i = 0;
		int r = wire_hints_begin(&w, bytes, space, &s->head);

		while (r == 0 && i < s->hint_count) {
			before = wire_size(&w);
			r = wire_put_hint(&w, &s->head, &s->hint[i++]);
		}
		wrong += r != -EMSGSIZE;
		if (i == 0)
			continue;
		/* What fitted is a message, and the hint that did not has changed nothing. */
		wrong += wire_size(&w) != before || law_hints(bytes, before) != 0;
	}
	ok_uint(wrong, 0, "%s: too little space is -EMSGSIZE, and what fitted stays", s->name);
}

static void test_samples(void)
{
	for (unsigned i = 0; i < hint_sample_count; i++) {
		const struct hint_sample *s = &hint_samples[i];
		uint8_t bytes[4096];
		size_t size = sample_bytes(s->hex, bytes, sizeof(bytes));

		test_encode(s);
		test_decode(s);
		test_space(s);
		ok_law(law_hints, bytes, size, s->name);
	}
}

/* Bodies behind the eight bytes that every message starts with. */
#define HEAD "01 0200000000000000 03 0400000000000000 "
#define PREFIX "1122334455667788 "
#define KEY "01000000 000102030405060708090a0b0c0d0e0f "

/* Pairs that differ in the one thing that is wrong, so that it is the reason. */
static const struct {
	const char *what, *good, *bad;
} bad_hints[] = {
	{ "a sender without a number", HEAD, "00 0200000000000000 03 0400000000000000" },
	{ "a sender's life without a number", HEAD, "01 0000000000000000 03 0400000000000000" },
	{ "no receiver", HEAD, "01 0200000000000000 00 0400000000000000" },
	{ "a sender above 32 bits", "ffffffff0f 0200000000000000 03 0400000000000000",
	  "ffffffff1f 0200000000000000 03 0400000000000000" },
	{ "an owner of unknown kind", HEAD "02 01 " PREFIX "01 " KEY "01 00 00 01 00 00",
	  HEAD "04 01 " PREFIX "01 " KEY "01 00 00 01 00 00" },
	{ "a REL without a number", HEAD "00 00 " PREFIX "01 " KEY "01 00 00 01 00 00",
	  HEAD "00 00 " PREFIX "00 " KEY "01 00 00 01 00 00" },
	{ "a range too long", HEAD "00 00 " PREFIX "01 " KEY "01 00 01 feffffffffffffff7f 00 00",
	  HEAD "00 00 " PREFIX "01 " KEY "01 00 01 ffffffffffffffff7f 00 00" },
	{ "a request above 32 bits", HEAD "00 00 " PREFIX "01 " KEY "01 00 00 01 ffffffff0f 00",
	  HEAD "00 00 " PREFIX "01 " KEY "01 00 00 01 ffffffff1f 00" },
	{ "a padded number", HEAD "00 7f " PREFIX "01 " KEY "01 00 00 01 00 00",
	  HEAD "00 ff00 " PREFIX "01 " KEY "01 00 00 01 00 00" },
	{ "half a hint behind a whole one", HEAD "00 00 " PREFIX "01 " KEY "01 00 00 01 00 00",
	  HEAD "00 00 " PREFIX "01 " KEY "01 00 00 01 00 00 00" },
};

static int law_of_body(const char *hex)
{
	uint8_t bytes[4096];
	size_t size = 8 + sample_bytes(hex, bytes + 8, sizeof(bytes) - 8);

	memcpy(bytes, (uint8_t[]){ 'B', 'L', 'Y', 'G', WIRE_VERSION, WIRE_HINTS,
				   (uint8_t)size, (uint8_t)(size >> 8) }, 8);
	return law_hints(bytes, size);
}

static void test_rejected(void)
{
	for (size_t i = 0; i < sizeof(bad_hints) / sizeof(bad_hints[0]); i++) {
		ok_int(law_of_body(bad_hints[i].good), 0, "accepted without: %s", bad_hints[i].what);
		ok_int(law_of_body(bad_hints[i].bad), -EBADMSG, "rejected: %s", bad_hints[i].what);
	}
	ok_rejected(law_hints, "424c5947 02 00 1a00 01 0200000000000000 03 0400000000000000", -EBADMSG,
		    "a frame where hints are due");
	ok_rejected(law_hints, "424c5947 03 02 1a00 01 0200000000000000 03 0400000000000000",
		    -EPROTONOSUPPORT, "another version");
}

struct attempt {
	struct wire_writer w;
	struct wire_hints head;
	struct belay_hint hint;
	uint8_t bytes[256];
};

static void begin(void *context)
{
	struct attempt *a = context;

	(void)wire_hints_begin(&a->w, a->bytes, sizeof(a->bytes), &a->head);
}

static void put(void *context)
{
	struct attempt *a = context;

	begin(a);
	(void)wire_put_hint(&a->w, &a->head, &a->hint);
}

static struct attempt attempt(void)
{
	return (struct attempt){ .head = hint_samples[1].head, .hint = hint_samples[1].hint[0] };
}

static void test_asserts(void)
{
	struct attempt a = attempt();

	put(&a);
	ok(wire_size(&a.w) > 40, "a valid hint is put");
	a.head.to = 0;
	ok_asserts(begin, &a, "hints for no node");
	a = attempt();
	a.hint.seq = 0;
	ok_asserts(put, &a, "a REL without a number");
	a = attempt();
	a.hint.owner.kind = BELAY_KIND_COUNT;
	ok_asserts(put, &a, "an unknown kind");
	a = attempt();
	a.hint.owner.node = 2;
	ok_asserts(put, &a, "an owner of another node");
	a = attempt();
	a.hint.incarnation++;
	ok_asserts(put, &a, "a hint of another life");
	a = attempt();
	a.hint.to_incarnation++;
	ok_asserts(put, &a, "a hint for another life");
	a = attempt();
	a.hint.range.start = 101;
	ok_asserts(put, &a, "a range that ends before it starts");
}

int main(void)
{
	test_samples();
	test_rejected();
	test_asserts();
	return done_testing();
}
