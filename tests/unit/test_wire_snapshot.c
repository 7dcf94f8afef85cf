/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/fuzz/law.h"
#include "tests/tap.h"
#include "tests/unit/wire_check.h"
#include "tests/unit/wire_samples.h"

static void test_encode(const struct snapshot_sample *s)
{
	uint8_t bytes[4096];
	struct wire_writer w;
	int r = wire_snapshot_begin(&w, bytes, sizeof(bytes), &s->head);

	for (unsigned i = 0; r == 0 && i < s->record_count; i++)
		r = wire_put_record(&w, &s->record[i]);
	if (ok_int(r, 0, "%s: encoded", s->name))
		ok_hex(bytes, wire_size(&w), s->hex, s->name);
}

static void test_decode(const struct snapshot_sample *s)
{
	char got[CHECK_TEXT_MAX], want[CHECK_TEXT_MAX];
	uint8_t bytes[4096];
	size_t size = sample_bytes(s->hex, bytes, sizeof(bytes));
	enum wire_message type;
	struct wire_snapshot head;
	struct belay_record record;
	struct wire_reader r;

	ok_int(wire_message_type(bytes, size, &type), 0, "%s: it is a message", s->name);
	ok_int(type, WIRE_SNAPSHOT, "%s: it is of a snapshot", s->name);
	if (!ok_int(wire_snapshot_open(&r, bytes, size, &head), 0, "%s: opened", s->name))
		return;
	text_of_snapshot(&head, got);
	text_of_snapshot(&s->head, want);
	ok_str(got, want, "%s: its head", s->name);
	for (unsigned i = 0; i < s->record_count; i++) {
		/* What the record does not use must come out zero all the same. */
		memset(&record, 0x5a, sizeof(record));
		ok_int(wire_get_record(&r, &record), 1, "%s: record %u", s->name, i);
		text_of_record(&record, got);
		text_of_record(&s->record[i], want);
		ok_str(got, want, "%s: record %u has its values", s->name, i);
	}
	ok_int(wire_get_record(&r, &record), 0, "%s: the end", s->name);
	ok_int(wire_get_record(&r, &record), 0, "%s: the end stays the end", s->name);
}

/* Every space that is too small, for the head and for each record. */
static void test_space(const struct snapshot_sample *s)
{
	uint8_t want[4096], bytes[4096];
	size_t size = sample_bytes(s->hex, want, sizeof(want));
	unsigned wrong = 0;

	for (size_t space = 0; space < size; space++) {
		struct wire_writer w;
		size_t before = 0;
		unsigned i = 0;
		int r = wire_snapshot_begin(&w, bytes, space, &s->head);

		while (r == 0 && i < s->record_count) {
			before = wire_size(&w);
			r = wire_put_record(&w, &s->record[i++]);
		}
		wrong += r != -EMSGSIZE;
		if (i > 0)
			wrong += wire_size(&w) != before || law_snapshot(bytes, before) != 0;
	}
	ok_uint(wrong, 0, "%s: too little space is -EMSGSIZE, and what fitted stays", s->name);
}

static void test_samples(void)
{
	bool seen[BELAY_RECORD_COUNT] = { false };

	for (unsigned i = 0; i < snapshot_sample_count; i++) {
		const struct snapshot_sample *s = &snapshot_samples[i];
		uint8_t bytes[4096];
		size_t size = sample_bytes(s->hex, bytes, sizeof(bytes));

		test_encode(s);
		test_decode(s);
		test_space(s);
		ok_law(law_snapshot, bytes, size, s->name);
		for (unsigned j = 0; j < s->record_count; j++)
			seen[s->record[j].type] = true;
	}
	for (unsigned i = 0; i < BELAY_RECORD_COUNT; i++)
		ok(seen[i], "record type %u has a sample", i);
}

/* Bodies behind the eight bytes that every message starts with. */
#define HEAD "01 0200000000000000 03 0400000000000000 05 00 00 "
#define KEY "01000000 000102030405060708090a0b0c0d0e0f "

/* Pairs that differ in the one thing that is wrong, so that it is the reason. */
static const struct {
	const char *what, *good, *bad;
} bad_snapshots[] = {
	{ "a sender without a number", HEAD, "00 0200000000000000 03 0400000000000000 05 00 00" },
	{ "a sender's life without a number", HEAD,
	  "01 0000000000000000 03 0400000000000000 05 00 00" },
	{ "no receiver", HEAD, "01 0200000000000000 00 0400000000000000 05 00 00" },
	{ "a receiver's life without a number", HEAD,
	  "01 0200000000000000 03 0000000000000000 05 00 00" },
	{ "an unknown flag of the chunk", HEAD,
	  "01 0200000000000000 03 0400000000000000 05 00 02" },
	{ "a part above 32 bits", "01 0200000000000000 03 0400000000000000 05 ffffffff0f 00",
	  "01 0200000000000000 03 0400000000000000 05 ffffffff1f 00" },
	{ "a record of unknown type", HEAD "0700 0000000000000000 00",
	  HEAD "0800 0000000000000000 00" },
	{ "a record without flags", HEAD "0000 00 00", HEAD "00" },
	{ "an unknown flag: CORE with a mode", HEAD "0000 00 00", HEAD "0001 00 00" },
	{ "an unknown flag: CORE with a state", HEAD "0000 00 00", HEAD "0020 00 00" },
	{ "an unknown flag: NODE that waits", HEAD "0110 01 0000000000000000 00",
	  HEAD "0112 01 0000000000000000 00" },
	{ "an unknown flag: LOCK that tests", HEAD "0509 00 00 00 00", HEAD "050d 00 00 00 00" },
	{ "an unknown flag: WAITER that is synced", HEAD "0603 00 00 00 00 00 00",
	  HEAD "0613 00 00 00 00 00 00" },
	{ "an unknown flag: WAITER that is staged", HEAD "0603 00 00 00 00 00 00",
	  HEAD "060b 00 00 00 00 00 00" },
	{ "WAITER that tests and waits", HEAD "0605 00 00 00 00 00 00",
	  HEAD "0607 00 00 00 00 00 00" },
	{ "NODE without a number", HEAD "0100 01 0000000000000000 00",
	  HEAD "0100 00 0000000000000000 00" },
	{ "NODE of unknown standing", HEAD "0160 01 0000000000000000 00",
	  HEAD "0180 01 0000000000000000 00" },
	{ "OWNER on no node", HEAD "0200 00 01 00 00 00", HEAD "0200 00 00 00 00 00" },
	{ "an unknown flag: RESOURCE with a state", HEAD "0300 00 " KEY "00", HEAD "0320 00 " KEY "00" },
	{ "an unknown flag: RESOURCE with a mode", HEAD "0300 00 " KEY "00", HEAD "0301 00 " KEY "00" },
	{ "DELEGATION to no node", HEAD "0409 00 01 01 00 00", HEAD "0409 00 00 01 00 00" },
	{ "an unknown flag: DELEGATION with a state", HEAD "0409 00 01 01 00 00",
	  HEAD "0429 00 01 01 00 00" },
	{ "an unknown flag: DELEGATION that waits", HEAD "0409 00 01 01 00 00",
	  HEAD "040b 00 01 01 00 00" },
	{ "LOCK of a range too long", HEAD "0500 00 00 01 feffffffffffffff7f",
	  HEAD "0500 00 00 01 ffffffffffffffff7f" },
	{ "a padded number", HEAD "0500 7f 00 00 00", HEAD "0500 ff00 00 00 00" },
};

static int law_of_body(const char *hex)
{
	uint8_t bytes[4096];
	size_t size = 8 + sample_bytes(hex, bytes + 8, sizeof(bytes) - 8);

	memcpy(bytes, (uint8_t[]){ 'B', 'L', 'Y', 'G', WIRE_VERSION, WIRE_SNAPSHOT,
				   (uint8_t)size, (uint8_t)(size >> 8) }, 8);
	return law_snapshot(bytes, size);
}

static void test_rejected(void)
{
	static const char rest[] = " 01 0200000000000000 03 0400000000000000 05 00 00";
	char hex[128];

	for (size_t i = 0; i < sizeof(bad_snapshots) / sizeof(bad_snapshots[0]); i++) {
		ok_int(law_of_body(bad_snapshots[i].good), 0, "accepted without: %s", bad_snapshots[i].what);
		ok_int(law_of_body(bad_snapshots[i].bad), -EBADMSG, "rejected: %s", bad_snapshots[i].what);
	}
	(void)snprintf(hex, sizeof(hex), "424c5947 02 00 1d00%s", rest);
	ok_rejected(law_snapshot, hex, -EBADMSG, "a frame where a snapshot is due");
	(void)snprintf(hex, sizeof(hex), "424c5947 03 01 1d00%s", rest);
	ok_rejected(law_snapshot, hex, -EPROTONOSUPPORT, "another version");
}

/* The budget of the protocol: a million locks in 20 MB. */
static void test_budget(void)
{
	struct wire_snapshot head = { .node = 1, .incarnation = 2, .to = 3, .to_incarnation = 4 };
	struct belay_record lock = {
		.type = BELAY_RECORD_LOCK, .resource_number = 1000000, .owner_number = 100000,
		.range = { (uint64_t)1 << 40, ((uint64_t)1 << 40) + 4095 }, .mode = BELAY_MODE_EX,
	};
	uint8_t bytes[256];
	struct wire_writer w;
	size_t before;

	ok_int(wire_snapshot_begin(&w, bytes, sizeof(bytes), &head), 0, "begun");
	before = wire_size(&w);
	ok_int(wire_put_record(&w, &lock), 0, "a lock");
	ok(wire_size(&w) - before <= 20, "takes %zu bytes, at most 20", wire_size(&w) - before);
}

struct attempt {
	struct wire_writer w;
	struct wire_snapshot head;
	struct belay_record record;
	uint8_t bytes[256];
};

static void begin(void *context)
{
	struct attempt *a = context;

	(void)wire_snapshot_begin(&a->w, a->bytes, sizeof(a->bytes), &a->head);
}

static void put(void *context)
{
	struct attempt *a = context;

	begin(a);
	(void)wire_put_record(&a->w, &a->record);
}

static struct attempt attempt(enum belay_record_type type)
{
	return (struct attempt){
		.head = { .node = 1, .incarnation = 2, .to = 3, .to_incarnation = 4 },
		.record = { .type = type, .node = 1, .owner = { .node = 1 } },
	};
}

static void test_asserts(void)
{
	struct attempt a = attempt(BELAY_RECORD_RESOURCE);

	put(&a);
	ok(wire_size(&a.w) > 40, "a valid record is put");
	a.head.to = 0;
	ok_asserts(begin, &a, "a chunk for no node");
	a = attempt(BELAY_RECORD_COUNT);
	ok_asserts(put, &a, "a record of unknown type");
	a = attempt(BELAY_RECORD_NODE);
	a.record.standing = BELAY_NODE_STANDING_COUNT;
	ok_asserts(put, &a, "an unknown standing");
	a = attempt(BELAY_RECORD_DELEGATION);
	a.record.node = 0;
	ok_asserts(put, &a, "a range delegated to no node");
	a = attempt(BELAY_RECORD_LOCK);
	a.record.mode = BELAY_MODE_COUNT;
	ok_asserts(put, &a, "an unknown mode");
	a = attempt(BELAY_RECORD_LOCK);
	a.record.range.start = 1;
	ok_asserts(put, &a, "a range that ends before it starts");
}

int main(void)
{
	test_samples();
	test_rejected();
	test_budget();
	test_asserts();
	return done_testing();
}
