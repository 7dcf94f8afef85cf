/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What belay-lvmlockds say to each other: there and back, and garbage. */
#include "lvmlockd/ask.h"
#include "tests/tap.h"

static struct ask_message sample(enum ask_kind kind, unsigned variant)
{
	struct ask_message m = { .kind = kind, .id = UINT64_C(0x123456789abcdef0), .to = 3 };

	switch (kind) {
	case ASK_MEMBER:
		m.member.adopted = true;
		break;
	case ASK_NOTICE:
		m.notice.what = ASK_VG_REMOVED;
		strcpy(m.notice.vg, "vg");
		strcpy(m.notice.vg_uuid, "abcdef-0123-4567-89ab-cdef-0123-456789");
		break;
	case ASK_REQUEST:
		m.request = (struct ask_request){
			.verb = ASK_ACTIVATE, .mode = ASK_EX, .no_vg_lock = true, .wait_ms = 5,
			.about = 7, .vg = "vg", .lv = "lv.1+_-",
		};
		break;
	case ASK_ANSWER:
		m.answer.kind = (enum ask_answer_kind)(1 + variant % 3);
		if (m.answer.kind == ASK_PROGRESS) {
			m.answer.done = 4;
			m.answer.total = 9;
		} else if (m.answer.kind == ASK_LV) {
			m.answer.lv = (struct ask_lv){
				.vg = "vg", .name = "lv", .uuid = "abcdef-0123-4567-89ab-cdef-0123-456789",
				.outcome = ASK_FAILED, .changed = true, .lock = ASK_SH,
				.since_s = 1, .dm = ASK_DM_ACTIVE,
				.open_count = 2, .size_bytes = 3, .lvm_size_bytes = 4, .targets = "linear",
				.reason = "because",
			};
		} else {
			m.answer.result = -5;
			strcpy(m.answer.text, "so");
		}
		break;
	case ASK_CANCEL:
	case ASK_KIND_COUNT:
		break;
	}
	return m;
}

static void test_round_trip(void)
{
	uint8_t frame[ASK_FRAME_MAX];
	struct ask_message want[7], got;
	size_t size = ask_frame(frame), at = 0, count = 0;

	for (enum ask_kind kind = ASK_MEMBER; kind < ASK_KIND_COUNT; kind++)
		for (unsigned variant = 0; variant < (kind == ASK_ANSWER ? 3u : 1u); variant++) {
			want[count] = sample(kind, variant);
			size = ask_add(frame, size, &want[count++]);
		}
	for (size_t i = 0; i < count; i++) {
		ok_int(ask_next(frame, size, &at, &got), 1, "message %zu is there", i);
		ok(memcmp(&got, &want[i], sizeof(got)) == 0, "and is as it was");
	}
	ok_int(ask_next(frame, size, &at, &got), 0, "there are no more");
}

static void test_truncated(void)
{
	uint8_t frame[ASK_FRAME_MAX];
	struct ask_message m = sample(ASK_ANSWER, 1), got;
	size_t size = ask_add(frame, ask_frame(frame), &m), at;
	unsigned good = 0;

	for (size_t cut = 0; cut < size; cut++) {
		at = 0;
		good += ask_next(frame, cut, &at, &got) == 1;
	}
	ok_uint(good, 0, "no part of a message is one");
	/* The message says that it is shorter than its fields. */
	frame[2] = (uint8_t)(frame[2] - 1);
	at = 0;
	ok_int(ask_next(frame, size - 1, &at, &got), -EBADMSG, "nor is one whose size leaves out a byte");
}

static void test_later_versions(void)
{
	uint8_t frame[ASK_FRAME_MAX];
	struct ask_message m = sample(ASK_CANCEL, 0), got;
	size_t size = ask_add(frame, ask_frame(frame), &m), at = 0;

	/* One byte more in the message, which this version does not know. */
	frame[size++] = 42;
	frame[2]++;
	size = ask_add(frame, size, &m);
	ok_int(ask_next(frame, size, &at, &got), 1, "what a later one adds to a message is passed over");
	ok_int(ask_next(frame, size, &at, &got), 1, "and the next one is found");
	frame[4] = 99;
	at = 0;
	ok_int(ask_next(frame, size, &at, &got), 1, "so is a kind that is not known");
	ok_int(ask_next(frame, size, &at, &got), 0, "with what it has");
	frame[4] = 0;
	at = 0;
	ok_int(ask_next(frame, size, &at, &got), -EBADMSG, "but 0 is no kind");
	m = sample(ASK_REQUEST, 0);
	size = ask_add(frame, ask_frame(frame), &m);
	frame[4 + 13] = 200;
	at = 0;
	ok_int(ask_next(frame, size, &at, &got), 1, "a request for what is not known can be answered");
	ok(got.request.verb == ASK_VERB_COUNT, "as such");
	frame[0] = ASK_VERSION + 1;
	at = 0;
	ok_int(ask_next(frame, size, &at, &got), -EPROTONOSUPPORT, "another version is told apart");
}

static void test_hostile(void)
{
	static const char *const bad[] = { "-x", "a b", "a/b", "..", ".", "a;b", "a\nb", "" };
	uint8_t frame[ASK_FRAME_MAX];
	struct ask_message m = sample(ASK_REQUEST, 0), got;
	size_t size, at;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		m = sample(ASK_NOTICE, 0);
		strcpy(m.notice.vg, bad[i]);
		size = ask_add(frame, ask_frame(frame), &m);
		at = 0;
		ok_int(ask_next(frame, size, &at, &got), -EBADMSG, "\"%s\" is no name, and reaches no command line",
		       i == 6 ? "a\\nb" : bad[i]);
	}
	m = sample(ASK_ANSWER, 2);
	m.answer.result = 5;
	size = ask_add(frame, ask_frame(frame), &m);
	at = 0;
	ok_int(ask_next(frame, size, &at, &got), -EBADMSG, "a result is 0 or negative");
}

static void test_full(void)
{
	uint8_t frame[ASK_FRAME_MAX];
	struct ask_message m = sample(ASK_ANSWER, 1), got;
	size_t size = ask_frame(frame), next, at = 0, count = 0, found = 0;

	memset(m.answer.lv.reason, 'x', ASK_TEXT_MAX);
	memset(m.answer.lv.name, 'n', ASK_NAME_MAX);
	memset(m.answer.lv.vg, 'v', ASK_NAME_MAX);
	memset(m.answer.lv.targets, 't', ASK_TARGETS_MAX);
	for (; (next = ask_add(frame, size, &m)) != 0; size = next)
		count++;
	ok(count >= 4, "the longest messages fit into a frame, %zu of them", count);
	ok(size <= ASK_FRAME_MAX, "and no more than fit");
	while (ask_next(frame, size, &at, &got) == 1)
		found++;
	ok_uint(found, count, "all of them are read again");
}

int main(void)
{
	test_round_trip();
	test_truncated();
	test_later_versions();
	test_hostile();
	test_full();
	return done_testing();
}
