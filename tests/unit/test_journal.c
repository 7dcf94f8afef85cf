/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The flight recorder: what is written is read again; what is damaged hurts nobody. */
#include "daemon/journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/tap.h"

#define RING JOURNAL_RING_MIN
#define FILE_SIZE (JOURNAL_HEAD_SIZE + RING)

static const struct belay_core_config config = {
	.self = 2, .incarnation = 77, .stability = BELAY_STABLE_ALL, .node_count = 3,
	.node = { 1, 2, 5 }, .fencing_none = true,
	.limits = {
		.resources_max = 100, .locks_max = 200,
		.waiters_max = 300, .locks_per_owner_max = 400,
	},
	.requests_max = 500, .loans_max = 550, .hints = true, .min_hold_us = 600,
	.idle_us = 700, .claim_streak = 8, .share_streak = 64, .lend_after = 4, .token_base = 900,
};

static const struct belay_hint hint = {
	.node = 5, .incarnation = 6, .to_incarnation = 77, .waiter = 1000, .prefix = 0x1234, .seq = 1001,
	.key = { .lockspace = 7, .id = { 1, 2, 3 } }, .range = { 5, BELAY_OFFSET_MAX },
	.owner = { .node = 5, .client = 4, .key = 9, .kind = BELAY_KIND_FLOCK },
	.request = 12, .token = 1235,
};

static struct belay_event lock_event(uint64_t cookie)
{
	return (struct belay_event){
		.type = BELAY_EVENT_LOCK, .now_us = 10 * cookie,
		.lock = {
			.key = { .lockspace = 7, .id = { 1, 2, 3 } },
			.range = { 5, BELAY_OFFSET_MAX },
			.owner = { .client = 4, .key = 9, .pid = 4321, .kind = BELAY_KIND_OFD },
			.mode = BELAY_MODE_EX, .wait = true, .lend = true, .cookie = cookie,
		},
	};
}

static size_t make_frame(uint8_t *buf, unsigned ops)
{
	const struct belay_frame frame = { .node = 5, .incarnation = 3, .seq = 40 };
	struct wire_writer w;

	if (wire_frame_begin(&w, buf, WIRE_MESSAGE_MAX, &frame) < 0)
		bail_out("no frame");
	for (unsigned i = 0; i < ops; i++) {
		const struct belay_op op = { .type = BELAY_OP_CANCEL, .request = 100 + i };

		if (wire_put_op(&w, &op) < 0)
			bail_out("no op");
	}
	return wire_size(&w);
}

static uint8_t *load(const char *path)
{
	uint8_t *buf = malloc(FILE_SIZE);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, buf, FILE_SIZE) != (ssize_t)FILE_SIZE)
		bail_out("no journal file");
	close(fd);
	return buf;
}

static void write_one_of_each(struct journal *j)
{
	static const uint32_t member[] = { 1, 2, 5 }, joined[] = { 5 }, left[] = { 3 };
	struct belay_event ev = lock_event(1);
	uint8_t buf[WIRE_MESSAGE_MAX];

	journal_event(j, &ev);
	ev.type = BELAY_EVENT_UNLOCK;
	journal_event(j, &ev);
	ev = (struct belay_event){ .type = BELAY_EVENT_CANCEL, .client = { 4, 1 } };
	journal_event(j, &ev);
	ev = (struct belay_event){ .type = BELAY_EVENT_CLIENT_GONE, .client.client = 4 };
	journal_event(j, &ev);
	ev = (struct belay_event){ .type = BELAY_EVENT_LOAN_HELD, .loan = {
		.loan = 8, .range = { 5, 6 }, .owner = { .client = 4, .key = 9, .kind = BELAY_KIND_OFD },
		.mode = BELAY_MODE_EX } };
	journal_event(j, &ev);
	ev = (struct belay_event){ .type = BELAY_EVENT_LOAN_BACK, .loan = {
		.loan = 8, .range = { 1, 7 }, .used = true, .token = 1234 } };
	journal_event(j, &ev);
	ev = (struct belay_event){ .type = BELAY_EVENT_HINT, .hint = &hint };
	journal_event(j, &ev);
	ev = (struct belay_event){ .type = BELAY_EVENT_FENCE, .fence.node = 5 };
	journal_event(j, &ev);
	ev = (struct belay_event){ .type = BELAY_EVENT_LEAVE };
	journal_event(j, &ev);
	ev = (struct belay_event){ .type = BELAY_EVENT_QUORUM, .quorum.quorate = true };
	journal_event(j, &ev);
	ev = (struct belay_event){ .type = BELAY_EVENT_TICK };
	journal_event(j, &ev);
	ev = (struct belay_event){ .type = BELAY_EVENT_VIEW, .view = {
		.member_count = 3, .member = member, .joined_count = 1, .joined = joined,
		.left_count = 1, .left = left } };
	journal_event(j, &ev);
	journal_message(j, 99, 5, 1, 3, buf, make_frame(buf, 5));
}

static bool next_is(struct journal_reader *r, enum belay_event_type type, struct belay_event *ev)
{
	int n = journal_next(r, ev);

	if (n != 1)
		diag("journal_next: %d", n);
	return n == 1 && ev->type == type;
}

static void read_one_of_each(struct journal_reader *r)
{
	struct belay_event ev, want = lock_event(1);

	ok(next_is(r, BELAY_EVENT_LOCK, &ev), "a lock");
	ok(ev.now_us == want.now_us && memcmp(&ev.lock.key, &want.lock.key, sizeof(ev.lock.key)) == 0 &&
	   ev.lock.range.start == 5 && ev.lock.range.end == BELAY_OFFSET_MAX &&
	   ev.lock.owner.client == 4 && ev.lock.owner.key == 9 && ev.lock.owner.pid == 4321 &&
	   ev.lock.owner.kind == BELAY_KIND_OFD && ev.lock.mode == BELAY_MODE_EX &&
	   ev.lock.wait && !ev.lock.test && ev.lock.lend && ev.lock.cookie == 1, "as it was");
	ok(next_is(r, BELAY_EVENT_UNLOCK, &ev), "an unlock");
	ok(next_is(r, BELAY_EVENT_CANCEL, &ev) && ev.client.client == 4 && ev.client.cookie == 1, "a cancel");
	ok(next_is(r, BELAY_EVENT_CLIENT_GONE, &ev) && ev.client.client == 4, "the end of a client");
	ok(next_is(r, BELAY_EVENT_LOAN_HELD, &ev), "a lock in a loan");
	ok(ev.loan.loan == 8 && ev.loan.range.start == 5 && ev.loan.range.end == 6 &&
	   ev.loan.owner.client == 4 && ev.loan.owner.key == 9 && ev.loan.owner.kind == BELAY_KIND_OFD &&
	   ev.loan.mode == BELAY_MODE_EX, "as it was");
	ok(next_is(r, BELAY_EVENT_LOAN_BACK, &ev), "a loan that is over");
	ok(ev.loan.loan == 8 && ev.loan.range.start == 1 && ev.loan.range.end == 7 && ev.loan.used &&
	   !ev.loan.used_ex && ev.loan.token == 1234, "as it was");
	ok(next_is(r, BELAY_EVENT_HINT, &ev), "a hint");
	ok(memcmp(ev.hint, &hint, sizeof(hint)) == 0, "as it was");
	ok(next_is(r, BELAY_EVENT_FENCE, &ev) && ev.fence.node == 5, "a fence");
	ok(next_is(r, BELAY_EVENT_LEAVE, &ev), "a leave");
	ok(next_is(r, BELAY_EVENT_QUORUM, &ev) && ev.quorum.quorate, "quorum");
	ok(next_is(r, BELAY_EVENT_TICK, &ev), "a tick");
	ok(next_is(r, BELAY_EVENT_VIEW, &ev), "a view");
	ok(ev.view.member_count == 3 && ev.view.member[2] == 5 && ev.view.joined_count == 1 &&
	   ev.view.joined[0] == 5 && ev.view.left_count == 1 && ev.view.left[0] == 3, "as it was");
	ok(next_is(r, BELAY_EVENT_FRAME, &ev) && ev.now_us == 99, "the head of a frame");
	ok(ev.frame->node == 5 && ev.frame->seq == 41, "without the op that was left out");
	ok(next_is(r, BELAY_EVENT_OP, &ev) && ev.op->request == 101, "its second op");
	ok(next_is(r, BELAY_EVENT_OP, &ev) && ev.op->request == 102, "its third op");
	ok_int(journal_next(r, &ev), 0, "and no more");
}

static void test_all(const char *path)
{
	struct journal_reader *r = malloc(sizeof(*r));
	struct journal *j;
	char copy[128];
	struct stat st;
	uint8_t *buf;

	ok_int(journal_open(path, RING, &config, &j), 0, "a journal in a file");
	write_one_of_each(j);
	buf = load(path);
	ok_int(journal_read(r, buf, FILE_SIZE), 0, "can be read while it is written");
	ok(r->config.self == 2 && r->config.incarnation == 77 && r->config.node_count == 3 &&
	   r->config.node[2] == 5 && r->config.fencing_none && r->config.stability == BELAY_STABLE_ALL &&
	   r->config.limits.locks_per_owner_max == 400 && r->config.requests_max == 500 &&
	   r->config.loans_max == 550 && r->config.hints && r->config.min_hold_us == 600 &&
	   r->config.claim_streak == 8 && r->config.token_base == 900, "with the configuration");
	ok_uint(r->dropped, 0, "and is complete");
	read_one_of_each(r);
	free(buf);
	snprintf(copy, sizeof(copy), "%s.copy", path);
	ok_int(journal_copy(j, copy), 0, "it is copied");
	ok_int(journal_copy(j, copy), -EEXIST, "but not over what is there");
	ok(stat(copy, &st) == 0 && (st.st_mode & 0777) == 0600, "for its owner only");
	journal_close(j);
	buf = load(copy);
	ok_int(journal_read(r, buf, FILE_SIZE), 0, "the copy reads the same");
	free(buf);
	unlink(copy);
	unlink(path);
	free(r);
}

static void test_ring(const char *path)
{
	struct journal_reader *r = malloc(sizeof(*r));
	struct belay_event ev;
	uint8_t *buf = malloc(FILE_SIZE);
	uint8_t frame[WIRE_MESSAGE_MAX];
	size_t size = make_frame(frame, 700);
	uint64_t written, dropped, first = 0, last = 0, wrong = 0;
	struct journal *j;

	ok_int(journal_open(path, RING, &config, &j), 0, "a small ring");
	for (uint64_t i = 1; i <= 20000; i++) {
		ev = lock_event(i);
		journal_event(j, &ev);
		if (i % 100 == 0)
			journal_message(j, i, 5, 0, UINT32_MAX, frame, size);
	}
	journal_counts(j, &written, &dropped);
	ok_uint(written, 20200, "is written many times over");
	journal_close(j);
	free(buf);
	buf = load(path);
	ok_int(journal_read(r, buf, FILE_SIZE), 0, "and can be read");
	ok_uint(r->dropped, dropped, "it says how much is lost");
	while (journal_next(r, &ev) == 1) {
		if (ev.type != BELAY_EVENT_LOCK)
			continue;
		if (first == 0)
			first = ev.lock.cookie;
		wrong += last != 0 && ev.lock.cookie != last + 1;
		last = ev.lock.cookie;
	}
	ok_uint(last, 20000, "the end is there");
	ok(wrong == 0 && first > 10000 && first < 19500, "and all from %u on", (unsigned)first);
	free(buf);
	unlink(path);
	free(r);
}

/* Read all of it; the sanitizers watch. Returns whether no damage was found. */
static bool read_through(const uint8_t *buf, size_t size)
{
	struct journal_reader *reader = malloc(sizeof(*reader));
	struct belay_event ev;
	int r = journal_read(reader, buf, size);

	while (r >= 0 && (r = journal_next(reader, &ev)) == 1)
		;
	free(reader);
	return r == 0;
}

static void test_damage(const char *path)
{
	uint64_t state = 88172645463325252u;
	unsigned cut_read = 0, bad_read = 0;
	struct journal_reader *r;
	struct journal *j;
	uint8_t *buf, *bad = malloc(FILE_SIZE);

	if (journal_open(path, RING, &config, &j) < 0)
		bail_out("no journal");
	write_one_of_each(j);
	journal_close(j);
	buf = load(path);
	ok(read_through(buf, FILE_SIZE), "a whole journal is read to its end");
	for (size_t size = 0; size < FILE_SIZE; size += size < 5000 ? 1 : 9973)
		cut_read += read_through(buf, size);
	ok_uint(cut_read, 0, "one that is cut is told apart, wherever the cut is");
	for (unsigned i = 0; i < 3000; i++) {
		memcpy(bad, buf, FILE_SIZE);
		for (unsigned k = 0; k < 1 + i % 3; k++) {
			state ^= state << 13;
			state ^= state >> 7;
			state ^= state << 17;
			/* Where something is written. */
			bad[state % 2 ? (state >> 8) % 200 : JOURNAL_HEAD_SIZE + (state >> 8) % 1024] =
				(uint8_t)(state >> 40);
		}
		bad_read += read_through(bad, FILE_SIZE);
	}
	/* A number that is another number cannot be noticed. */
	ok(bad_read > 0 && bad_read < 3000, "of 3000 damaged ones some are told apart, and %u read", bad_read);
	buf[8]++;
	r = malloc(sizeof(*r));
	ok_int(journal_read(r, buf, FILE_SIZE), -EPROTONOSUPPORT, "another version is told apart");
	free(r);
	free(bad);
	free(buf);
	unlink(path);
}

int main(void)
{
	char dir[] = "/tmp/belay-journal.XXXXXX", path[64];

	if (!mkdtemp(dir))
		bail_out("no temporary directory");
	snprintf(path, sizeof(path), "%s/journal", dir);
	test_all(path);
	test_ring(path);
	test_damage(path);
	ok_int(rmdir(dir), 0, "nothing of it stays");
	return done_testing();
}
