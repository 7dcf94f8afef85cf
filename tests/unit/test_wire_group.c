/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/fuzz/law.h"
#include "tests/tap.h"
#include "tests/unit/wire_check.h"
#include "tests/unit/wire_samples.h"

static void test_encode(const struct frame_sample *s)
{
	uint8_t bytes[4096];
	struct wire_writer w;
	int r = wire_frame_begin(&w, bytes, sizeof(bytes), &s->frame);

	for (unsigned i = 0; r == 0 && i < s->op_count; i++)
		r = wire_put_op(&w, &s->op[i]);
	if (ok_int(r, 0, "%s: encoded", s->name))
		ok_hex(bytes, wire_size(&w), s->hex, s->name);
}

static void test_decode(const struct frame_sample *s)
{
	char got[CHECK_TEXT_MAX], want[CHECK_TEXT_MAX];
	uint8_t bytes[4096];
	size_t size = sample_bytes(s->hex, bytes, sizeof(bytes));
	enum wire_message type;
	struct belay_frame frame;
	struct wire_reader r;
	struct belay_op op;

	ok_int(wire_message_type(bytes, size, &type), 0, "%s: it is a message", s->name);
	ok_int(type, WIRE_FRAME, "%s: it is a frame", s->name);
	if (!ok_int(wire_frame_open(&r, bytes, size, &frame), 0, "%s: opened", s->name))
		return;
	text_of_frame(&frame, got);
	text_of_frame(&s->frame, want);
	ok_str(got, want, "%s: its head", s->name);
	for (unsigned i = 0; i < s->op_count; i++) {
		/* What the op does not use must come out zero all the same. */
		memset(&op, 0x5a, sizeof(op));
		ok_int(wire_get_op(&r, &op), 1, "%s: op %u", s->name, i);
		text_of_op(&op, got);
		text_of_op(&s->op[i], want);
		ok_str(got, want, "%s: op %u has its values", s->name, i);
	}
	ok_int(wire_get_op(&r, &op), 0, "%s: the end", s->name);
	ok_int(wire_get_op(&r, &op), 0, "%s: the end stays the end", s->name);
}

/* Every space that is too small, for the head and for each op. */
static void test_space(const struct frame_sample *s)
{
	uint8_t want[4096], bytes[4096];
	size_t size = sample_bytes(s->hex, want, sizeof(want));
	unsigned wrong = 0;

	for (size_t space = 0; space < size; space++) {
		struct wire_writer w, before;
		unsigned i = 0;
		int r = wire_frame_begin(&w, bytes, space, &s->frame);

		while (r == 0 && i < s->op_count) {
			before = w;
			r = wire_put_op(&w, &s->op[i++]);
		}
		wrong += r != -EMSGSIZE;
		if (i == 0)
			continue;
		/* What fitted is a message, and the op that did not has changed nothing. */
		wrong += w.at != before.at || w.has_key != before.has_key ||
			 memcmp(&w.key, &before.key, sizeof(w.key)) != 0;
		wrong += law_frame(bytes, wire_size(&w)) != 0;
	}
	ok_uint(wrong, 0, "%s: too little space is -EMSGSIZE, and what fitted stays", s->name);
}

static void test_samples(void)
{
	bool seen[BELAY_OP_COUNT] = { false };

	for (unsigned i = 0; i < frame_sample_count; i++) {
		const struct frame_sample *s = &frame_samples[i];
		uint8_t bytes[4096];
		size_t size = sample_bytes(s->hex, bytes, sizeof(bytes));

		test_encode(s);
		test_decode(s);
		test_space(s);
		ok_law(law_frame, bytes, size, s->name);
		for (unsigned j = 0; j < s->op_count; j++)
			seen[s->op[j].type] = true;
	}
	for (unsigned i = 0; i < BELAY_OP_COUNT; i++)
		ok(seen[i], "op type %u has a sample", i);
}

/* Bodies behind the eight bytes that every message starts with. */
#define HEAD "01 0200000000000000 00 03 00 "
#define REST " 01 01 0000000000000000 00"	/* of a HELLO, behind its limits */
#define KEY "01000000 000102030405060708090a0b0c0d0e0f "

/* Pairs that differ in the one thing that is wrong, so that it is the reason. */
static const struct {
	const char *what, *good, *bad;
} bad_frames[] = {
	{ "a sender without a number", HEAD, "00 0200000000000000 00 03 00" },
	{ "a life without a number", HEAD, "01 0000000000000000 00 03 00" },
	{ "an unknown flag of the frame", HEAD, "01 0200000000000000 02 03 00" },
	{ "a frame that starts with op 0", HEAD, "01 0200000000000000 00 00 00" },
	{ "a padded number of the sender", HEAD, "8100 0200000000000000 00 03 00" },
	{ "a sender above 32 bits", "ffffffff0f 0200000000000000 00 03 00",
	  "ffffffff1f 0200000000000000 00 03 00" },
	{ "an ack of no node", "01 0200000000000000 00 03 01 01 0300000000000000 04",
	  "01 0200000000000000 00 03 01 00 0300000000000000 04" },
	{ "two acks of one node",
	  "01 0200000000000000 00 03 02 01 0300000000000000 04 02 0300000000000000 04",
	  "01 0200000000000000 00 03 02 01 0300000000000000 04 01 0300000000000000 04" },
	{ "acks out of order",
	  "01 0200000000000000 00 03 02 01 0300000000000000 04 02 0300000000000000 04",
	  "01 0200000000000000 00 03 02 02 0300000000000000 04 01 0300000000000000 04" },
	{ "an ack announced and not there", HEAD, "01 0200000000000000 00 03 01" },
	{ "an op of unknown type", HEAD "0b00", HEAD "1100" },
	{ "an op without flags", HEAD "0b00", HEAD "0b" },
	{ "an unknown flag: LEAVE", HEAD "0e00", HEAD "0e01" },
	{ "an unknown flag: REL with a mode", HEAD "0100 00 " KEY "01 00 00 00 00 00",
	  HEAD "0101 00 " KEY "01 00 00 00 00 00" },
	{ "an unknown flag: HELLO that keeps its mode", HEAD "0a10 01 01 01 01" REST,
	  HEAD "0a11 01 01 01 01" REST },
	{ "an unknown flag: RELINQ with a mode", HEAD "0610 " KEY "00 00 01 02",
	  HEAD "0611 " KEY "00 00 01 02" },
	{ "an unknown flag: CLAIM that keeps", HEAD "0701 " KEY "00 00",
	  HEAD "0711 " KEY "00 00" },
	{ "an unknown flag: HELD that waits", HEAD "0401 " KEY "01 00 00 00 00",
	  HEAD "0403 " KEY "01 00 00 00 00" },
	{ "an unknown flag: REQ that is held", HEAD "0003 01 " KEY "01 00 00 00 00",
	  HEAD "000b 01 " KEY "01 00 00 00 00" },
	{ "an unknown flag: REQ that is synced", HEAD "0003 01 " KEY "01 00 00 00 00",
	  HEAD "0013 01 " KEY "01 00 00 00 00" },
	{ "an unknown flag: CANCEL with the last key", HEAD "0800 " KEY "01 0200 01",
	  HEAD "0800 " KEY "01 0220 01" },
	{ "an unknown flag: BUSY with a mode and no holder", HEAD "0300 02 03", HEAD "0301 02 03" },
	{ "an unknown flag: BUSY with a kind and no holder", HEAD "0300 02 03", HEAD "0340 02 03" },
	{ "an unknown flag: CLIENT_GONE with a kind", HEAD "0900 01", HEAD "0940 01" },
	{ "REQ that tests and waits", HEAD "0005 01 " KEY "01 00 00 00 00",
	  HEAD "0007 01 " KEY "01 00 00 00 00" },
	{ "WAITING that tests and waits", HEAD "0504 01 " KEY "01 00 00 00 00",
	  HEAD "0506 01 " KEY "01 00 00 00 00" },
	{ "the last key where there was none", HEAD "0800 " KEY "01", HEAD "0820 01" },
	{ "the last key spelled out", HEAD "0800 " KEY "01 0820 02",
	  HEAD "0800 " KEY "01 0800 " KEY "02" },
	{ "a range that starts too high", HEAD "0100 00 " KEY "01 00 00 ffffffffffffffff7f 00 00",
	  HEAD "0100 00 " KEY "01 00 00 80808080808080808001 00 00" },
	{ "a length to the end that is not 0", HEAD "0100 00 " KEY "01 00 00 feffffffffffffff7f 01 00",
	  HEAD "0100 00 " KEY "01 00 00 feffffffffffffff7f 02 00" },
	{ "a length beyond the end", HEAD "0100 00 " KEY "01 00 00 ffffffffffffffff7f 00 00",
	  HEAD "0100 00 " KEY "01 00 00 ffffffffffffffff7f 01 00" },
	{ "a padded 0", HEAD "0200 00", HEAD "0200 8000" },
	{ "a number above 32 bits", HEAD "0200 ffffffff0f", HEAD "0200 8080808010" },
	{ "a number above 64 bits", HEAD "0800 " KEY "ffffffffffffffffff01",
	  HEAD "0800 " KEY "ffffffffffffffffff02" },
	{ "a number of eleven bytes", HEAD "0800 " KEY "ffffffffffffffffff01",
	  HEAD "0800 " KEY "ffffffffffffffffff8100" },
	{ "BUSY for no node", HEAD "0300 02 03", HEAD "0300 00 03" },
	{ "BUSY, held by no node", HEAD "0308 02 03 04 00 00 00 00 00",
	  HEAD "0308 02 03 00 00 00 00 00 00" },
	{ "FENCED of no node", HEAD "0d00 01 0000000000000000", HEAD "0d00 00 0000000000000000" },
	{ "START of no members", HEAD "0c00 00 01", HEAD "0c00 00 00" },
	{ "START of 129 members", HEAD "0c00 00 8001", HEAD "0c00 00 8101" },
	{ "HELLO without a limit of resources", HEAD "0a00 01 01 01 01" REST, HEAD "0a00 00 01 01 01" REST },
	{ "HELLO without a limit of locks", HEAD "0a00 01 01 01 01" REST, HEAD "0a00 01 00 01 01" REST },
	{ "HELLO without a limit of waiters", HEAD "0a00 01 01 01 01" REST, HEAD "0a00 01 01 00 01" REST },
	{ "HELLO without a limit per owner", HEAD "0a00 01 01 01 01" REST, HEAD "0a00 01 01 01 00" REST },
	{ "HELLO without a limit of requests", HEAD "0a00 01 01 01 01" REST,
	  HEAD "0a00 01 01 01 01 00 01 0000000000000000 00" },
	{ "HELLO without a streak", HEAD "0a00 01 01 01 01" REST,
	  HEAD "0a00 01 01 01 01 01 00 0000000000000000 00" },
};

static int law_of_body(const char *hex)
{
	uint8_t bytes[4096];
	size_t size = 8 + sample_bytes(hex, bytes + 8, sizeof(bytes) - 8);

	memcpy(bytes, (uint8_t[]){ 'B', 'L', 'Y', 'G', WIRE_VERSION, WIRE_FRAME,
				   (uint8_t)size, (uint8_t)(size >> 8) }, 8);
	return law_frame(bytes, size);
}

static void test_rejected(void)
{
	for (size_t i = 0; i < sizeof(bad_frames) / sizeof(bad_frames[0]); i++) {
		ok_int(law_of_body(bad_frames[i].good), 0, "accepted without: %s", bad_frames[i].what);
		ok_int(law_of_body(bad_frames[i].bad), -EBADMSG, "rejected: %s", bad_frames[i].what);
	}
}

static void test_foreign(void)
{
	static const char rest[] = " 01 0200000000000000 00 03 00";
	static const struct {
		const char *what, *start;
		int error;
	} starts[] = {
		{ "a frame", "424c5947 02 00 1400", 0 },
		{ "another program's traffic", "524c5947 02 00 1400", -EBADMSG },
		{ "magic that differs at its end", "424c5948 02 00 1400", -EBADMSG },
		{ "an older version", "424c5947 01 00 1400", -EPROTONOSUPPORT },
		{ "a newer version, whatever follows", "424c5947 03 07 ffff", -EPROTONOSUPPORT },
		{ "an unknown kind of message", "424c5947 02 03 1400", -EBADMSG },
		{ "a snapshot where a frame is due", "424c5947 02 01 1400", -EBADMSG },
		{ "hints where a frame is due", "424c5947 02 02 1400", -EBADMSG },
		{ "a size too small", "424c5947 02 00 1300", -EBADMSG },
		{ "a size too large", "424c5947 02 00 1500", -EBADMSG },
	};
	enum wire_message type;

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		char hex[128];

		(void)snprintf(hex, sizeof(hex), "%s%s", starts[i].start, rest);
		ok_rejected(law_frame, hex, starts[i].error, starts[i].what);
	}
	ok_int(wire_message_type("BLYG\2\3", 6, &type), -EBADMSG, "no type that there is not");
	ok_int(wire_message_type("BLYG\3", 5, &type), -EBADMSG, "no message of five bytes");
	ok_int(wire_message_type("", 0, &type), -EBADMSG, "no message of none");
	ok_int(wire_message_type("BLYG\3\7", 6, &type), -EPROTONOSUPPORT, "a version speaks first");
}

/* An op with something in every field. */
static struct belay_op noise(enum belay_op_type type)
{
	return (struct belay_op){
		.type = type, .mode = BELAY_MODE_EX, .wait = true, .test = true, .held = true,
		.synced = true, .keep = true, .node = 1, .request = 2, .members = 3,
		.key = { .lockspace = 4, .id = { 5 } }, .range = { 6, 7 },
		.owner = { .node = 1, .client = 8, .key = 9, .pid = 10, .kind = BELAY_KIND_FLOCK },
		.epoch = 11, .token = 12, .place = 13, .hash = 14, .incarnation = 15,
		.limits = { 16, 17, 18, 19, 20, 21, 22 },
	};
}

/* Fields that the type does not use are not sent, whatever the sender left in them. */
static void test_noise(void)
{
	struct belay_frame frame = { .node = 1, .incarnation = 2, .seq = 3 };
	static const struct {
		enum belay_op_type type;
		const char *what, *hex;
	} quiet[] = {
		{ BELAY_OP_SYNCED, "SYNCED", "0b00" },
		{ BELAY_OP_LEAVE, "LEAVE", "0e00" },
		{ BELAY_OP_CANCEL, "CANCEL", "020002" },
		{ BELAY_OP_CLIENT_GONE, "CLIENT_GONE", "090008" },
		{ BELAY_OP_CLAIM, "CLAIM", "0701 04000000 05000000000000000000000000000000 06 02" },
		{ BELAY_OP_RELINQ, "RELINQ",
		  "0610 04000000 05000000000000000000000000000000 06 02 0b 0c" },
		{ BELAY_OP_DIGEST, "DIGEST", "0f00 0d 0e00000000000000" },
	};

	for (size_t i = 0; i < sizeof(quiet) / sizeof(quiet[0]); i++) {
		struct belay_op op = noise(quiet[i].type);
		uint8_t bytes[256];
		struct wire_writer w;
		size_t head;

		if (!ok_int(wire_frame_begin(&w, bytes, sizeof(bytes), &frame), 0, "begun"))
			continue;
		head = wire_size(&w);
		ok_int(wire_put_op(&w, &op), 0, "%s with noise: encoded", quiet[i].what);
		ok_hex(bytes + head, wire_size(&w) - head, quiet[i].hex, quiet[i].what);
	}
}

static void test_noise_busy(void)
{
	struct belay_frame frame = { .node = 1, .incarnation = 2, .seq = 3 };
	struct belay_op op = noise(BELAY_OP_BUSY);
	uint8_t bytes[256];
	struct wire_writer w;
	size_t head;

	op.held = false;
	op.owner.node = 0;
	ok_int(wire_frame_begin(&w, bytes, sizeof(bytes), &frame), 0, "begun");
	head = wire_size(&w);
	ok_int(wire_put_op(&w, &op), 0, "BUSY without a holder, with noise: encoded");
	ok_hex(bytes + head, wire_size(&w) - head, "0300 01 02", "BUSY without a holder");
}

static void test_all_acks(void)
{
	struct belay_frame frame = {
		.node = UINT32_MAX, .incarnation = UINT64_MAX, .seq = UINT64_MAX,
		.ack_count = BELAY_NODES_MAX,
	}, again;
	uint8_t bytes[4096];
	struct wire_writer w;
	struct wire_reader r;

	for (uint32_t i = 0; i < BELAY_NODES_MAX; i++)
		frame.ack[i] = (struct belay_ack){ .node = UINT32_MAX - BELAY_NODES_MAX + i,
						   .incarnation = UINT64_MAX - i,
						   .seq = UINT64_MAX - i };
	if (!ok_int(wire_frame_begin(&w, bytes, sizeof(bytes), &frame), 0, "as many acks as can be"))
		return;
	ok(wire_size(&w) <= 3072, "take %zu bytes, at most 3072", wire_size(&w));
	ok_int(law_frame(bytes, wire_size(&w)), 0, "and keep the law");
	ok_int(wire_frame_open(&r, bytes, wire_size(&w), &again), 0, "and are read");
	ok_uint(again.ack[BELAY_NODES_MAX - 1].seq, UINT64_MAX - BELAY_NODES_MAX + 1, "to the last");

	/* The count stands behind node, life, flags and seq. */
	ok_int(bytes[8 + 5 + 8 + 1 + 10], 0x80, "the count is where this test thinks");
	bytes[8 + 5 + 8 + 1 + 10]++;
	ok_int(law_frame(bytes, wire_size(&w)), -EBADMSG, "one more is rejected");
}

/* A frame ends where messages must end, even if the buffer goes on. */
static void test_message_max(void)
{
	struct belay_frame frame = { .node = 1, .incarnation = 2, .seq = 3 };
	struct belay_op op = { .type = BELAY_OP_CANCEL, .request = 1 };
	size_t space = 2 * WIRE_MESSAGE_MAX;
	uint8_t *bytes = calloc(1, space);
	struct wire_writer w;
	int r;

	if (!bytes)
		bail_out("no memory");
	r = wire_frame_begin(&w, bytes, space, &frame);
	while (r == 0)
		r = wire_put_op(&w, &op);
	ok_int(r, -EMSGSIZE, "a frame does not grow for ever");
	ok_int(law_frame(bytes, wire_size(&w)), 0, "and keeps the law");

	ok_uint(wire_size(&w), 0x8000, "exactly as long as it may be");
	memcpy(bytes + 0x8000, "\2\0\1", 3);
	memcpy(bytes + 6, "\3\200", 2);
	ok_int(law_frame(bytes, 0x8003), -EBADMSG, "one more op is rejected");
	free(bytes);
}

/* The budget of the protocol: a frame of 1300 bytes holds 40 requests. */
static void test_budget(void)
{
	struct belay_frame frame = { .node = 3, .incarnation = 1, .seq = 1000000 };
	struct belay_op op = {
		.type = BELAY_OP_REQ, .request = 100000, .mode = BELAY_MODE_EX, .wait = true,
		.key = { .lockspace = 0xdeadbeef, .id = { 1 } }, .range = { 1u << 20, (1u << 20) + 4095 },
		.owner = { .node = 3, .client = 1000, .pid = 4000000 },
	};
	uint8_t bytes[256];
	struct wire_writer w;
	size_t before;

	ok_int(wire_frame_begin(&w, bytes, sizeof(bytes), &frame), 0, "begun");
	before = wire_size(&w);
	ok_int(wire_put_op(&w, &op), 0, "a request");
	ok(wire_size(&w) - before <= 40, "takes %zu bytes, at most 40", wire_size(&w) - before);
	before = wire_size(&w);
	ok_int(wire_put_op(&w, &op), 0, "another of the same key");
	ok(wire_size(&w) - before <= 20, "takes %zu bytes, at most 20", wire_size(&w) - before);
}

struct attempt {
	struct wire_writer w;
	struct belay_frame frame;
	struct belay_op op;
	uint8_t bytes[256];
};

static void begin(void *context)
{
	struct attempt *a = context;

	(void)wire_frame_begin(&a->w, a->bytes, sizeof(a->bytes), &a->frame);
}

static void put(void *context)
{
	struct attempt *a = context;

	begin(a);
	(void)wire_put_op(&a->w, &a->op);
}

static struct attempt attempt(enum belay_op_type type)
{
	struct attempt a = {
		.frame = { .node = 1, .incarnation = 2, .seq = 3, .ack_count = 1,
			   .ack = { { .node = 1 } } },
		.op = noise(type),
	};

	a.op.test = false;
	return a;
}

static void test_asserts(void)
{
	struct attempt a = attempt(BELAY_OP_REQ);

	put(&a);
	ok(wire_size(&a.w) > 20, "a valid op is put");
	a.frame.node = 0;
	ok_asserts(begin, &a, "a frame of no node");
	a = attempt(BELAY_OP_REQ);
	a.frame.ack_count = BELAY_NODES_MAX + 1;
	ok_asserts(begin, &a, "a frame of too many acks");
	a = attempt(BELAY_OP_REQ);
	a.frame.ack[0].node = 0;
	ok_asserts(begin, &a, "an ack of no node");
	a = attempt(BELAY_OP_COUNT);
	ok_asserts(put, &a, "an op of unknown type");
	a = attempt(BELAY_OP_REQ);
	a.op.range.start = 8;
	ok_asserts(put, &a, "a range that ends before it starts");
	a = attempt(BELAY_OP_REQ);
	a.op.range.end = BELAY_OFFSET_MAX + 1;
	ok_asserts(put, &a, "a range that ends too high");
	a = attempt(BELAY_OP_REQ);
	a.op.mode = BELAY_MODE_COUNT;
	ok_asserts(put, &a, "an unknown mode");
	a = attempt(BELAY_OP_REQ);
	a.op.owner.kind = BELAY_KIND_COUNT;
	ok_asserts(put, &a, "an unknown kind");
	a = attempt(BELAY_OP_REQ);
	a.op.test = true;
	ok_asserts(put, &a, "a test that waits");
	a = attempt(BELAY_OP_HELD);
	a.op.owner.node = 2;
	ok_asserts(put, &a, "an owner of another node");
	a = attempt(BELAY_OP_BUSY);
	a.op.owner.node = 0;
	ok_asserts(put, &a, "a holder of no node");
	a = attempt(BELAY_OP_HELLO);
	a.op.limits.waiters_max = 0;
	ok_asserts(put, &a, "no limit");
}

int main(void)
{
	test_samples();
	test_rejected();
	test_foreign();
	test_noise();
	test_noise_busy();
	test_all_acks();
	test_message_max();
	test_budget();
	test_asserts();
	return done_testing();
}
