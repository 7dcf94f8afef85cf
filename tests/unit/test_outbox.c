/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When ops leave, in what company, and that none is lost, doubled or overtaken. */
#include "daemon/outbox.h"

#include "tests/tap.h"
#include "wire/wire.h"

/* The other side: takes frames as the test says, and looks into them. */
struct far {
	int answer;		/* of send */
	unsigned frames, empty, asked, tries;
	uint64_t next_seq;	/* that the next frame must begin with */
	bool wrong;		/* an op is missing, doubled or out of order */
	unsigned last_ops;
	size_t last_size;
};

static int far_send(void *context, const void *buf, size_t size)
{
	struct far *far = context;
	struct belay_frame frame;
	struct wire_reader r;
	struct belay_op op;

	far->tries++;
	if (far->answer < 0)
		return far->answer;
	far->wrong |= wire_frame_open(&r, buf, size, &frame) < 0 || frame.seq != far->next_seq;
	far->last_ops = 0;
	while (wire_get_op(&r, &op) == 1) {
		/* The test numbers the requests like the ops. */
		far->wrong |= op.request != far->next_seq;
		far->next_seq++;
		far->last_ops++;
	}
	far->frames += far->last_ops > 0;
	far->empty += far->last_ops == 0;
	far->asked += frame.ask;
	far->last_size = size;
	return 0;
}

static void far_head(void *context, struct belay_frame *ret_frame)
{
	(void)context;
	*ret_frame = (struct belay_frame){ .node = 1, .incarnation = 1 };
}

struct near {
	struct outbox *o;
	struct outbox_port port;
	struct far far;
	uint32_t pushed;
	uint64_t now_us;
};

static void near_init(struct near *n)
{
	*n = (struct near){ .now_us = 1000000, .far.next_seq = 1 };
	n->port = (struct outbox_port){ .send = far_send, .head = far_head, .context = &n->far };
	if (outbox_new(&n->port, &n->o) < 0)
		bail_out("no memory");
}

static void push(struct near *n, unsigned count, uint64_t due_us)
{
	for (unsigned i = 0; i < count; i++) {
		const struct belay_op op = {
			.type = BELAY_OP_REQ, .request = ++n->pushed,
			.key = { .lockspace = n->pushed }, .owner = { .node = 1, .client = 1 },
		};

		if (outbox_push(n->o, &op, n->now_us, due_us) < 0)
			bail_out("no memory");
	}
}

static void test_company(void)
{
	struct near n;

	near_init(&n);
	ok(outbox_deadline(n.o) == UINT64_MAX, "nothing queued, nothing due");
	push(&n, 1, n.now_us + 1000);
	outbox_flush(n.o, n.now_us);
	ok_uint(n.far.tries, 0, "an op may wait for company");
	ok_uint(outbox_deadline(n.o), n.now_us + 1000, "so long");
	push(&n, 1, 0);
	ok_uint(outbox_deadline(n.o), 0, "an urgent one comes");
	outbox_flush(n.o, n.now_us);
	ok_uint(n.far.frames, 1, "both leave");
	ok_uint(n.far.last_ops, 2, "in one frame");
	push(&n, 1, n.now_us + 1000);
	n.now_us += 1000;
	outbox_flush(n.o, n.now_us);
	ok_uint(n.far.frames, 2, "one whose time has come leaves alone");
	ok(outbox_deadline(n.o) == UINT64_MAX && outbox_empty(n.o), "and nothing is left");
	ok(!n.far.wrong, "all in order");
	outbox_free(n.o);
}

static void test_window(void)
{
	struct near n;

	near_init(&n);
	for (unsigned i = 0; i < 5; i++) {
		push(&n, 1, 0);
		outbox_flush(n.o, n.now_us);
	}
	ok_uint(n.far.frames, OUTBOX_WINDOW, "few frames are under way");
	ok(outbox_deadline(n.o) == UINT64_MAX, "time does not help the rest");
	outbox_want_frame(n.o, false);
	ok_uint(outbox_deadline(n.o), 0, "an ack is due at once");
	outbox_flush(n.o, n.now_us);
	ok_uint(n.far.frames, OUTBOX_WINDOW + 1, "and goes at once");
	ok_uint(n.far.last_ops, 3, "with all that waits for the window");
	push(&n, 2, 0);
	outbox_delivered(n.o, false, n.now_us);
	outbox_flush(n.o, n.now_us);
	ok_uint(n.far.frames, OUTBOX_WINDOW + 1, "the delivery of an empty frame opens no window");
	outbox_delivered(n.o, true, n.now_us + 100);
	outbox_flush(n.o, n.now_us);
	ok_uint(n.far.frames, OUTBOX_WINDOW + 1, "nor that of the first of too many");
	ok_uint(histogram_total(outbox_latency(n.o)), 1, "its latency is noted");
	outbox_delivered(n.o, true, n.now_us + 100);
	outbox_flush(n.o, n.now_us);
	ok_uint(n.far.frames, OUTBOX_WINDOW + 2, "that of the next one does");
	ok_uint(n.far.last_ops, 2, "and the rest leaves together");
	push(&n, 10000, 0);
	outbox_flush(n.o, n.now_us);
	ok(n.far.frames > 20 && n.far.frames <= 2 + OUTBOX_WINDOW_FULL,
	   "when many wait, many full frames are under way");
	while (!outbox_empty(n.o)) {
		outbox_delivered(n.o, true, n.now_us);
		outbox_flush(n.o, n.now_us);
	}
	ok(!n.far.wrong && n.far.next_seq == n.pushed + 1, "all in order");
	ok(n.far.last_size <= OUTBOX_FRAME_MAX, "no frame is too large");
	outbox_free(n.o);
}

static void test_acks(void)
{
	struct near n;

	near_init(&n);
	outbox_want_frame(n.o, false);
	outbox_flush(n.o, n.now_us);
	ok(n.far.empty == 1 && n.far.asked == 0, "an ack needs no ops");
	outbox_flush(n.o, n.now_us);
	ok_uint(n.far.tries, 1, "and goes once");
	push(&n, 1, n.now_us + 1000);
	outbox_want_frame(n.o, true);
	outbox_flush(n.o, n.now_us);
	ok(n.far.frames == 1 && n.far.asked == 1, "with ops at hand it takes them along");
	ok_uint(n.far.empty, 1, "and is no second frame");
	outbox_free(n.o);
}

static void test_again(void)
{
	struct near n;

	near_init(&n);
	n.far.answer = -EAGAIN;
	push(&n, 3, 0);
	outbox_want_frame(n.o, true);
	for (unsigned i = 0; i < 100; i++)
		outbox_flush(n.o, n.now_us);
	ok_uint(n.far.tries, 1, "what the group refuses is not offered again at once");
	ok_uint(outbox_deadline(n.o), n.now_us + OUTBOX_RETRY_US, "but after a while");
	n.now_us += OUTBOX_RETRY_US;
	outbox_flush(n.o, n.now_us);
	ok_uint(n.far.tries, 2, "and then again");
	outbox_delivered(n.o, false, n.now_us);
	outbox_flush(n.o, n.now_us);
	ok_uint(n.far.tries, 3, "or after a delivery");
	n.far.answer = 0;
	n.now_us += OUTBOX_RETRY_US;
	outbox_flush(n.o, n.now_us);
	ok(n.far.frames == 1 && n.far.last_ops == 3 && n.far.asked == 1, "nothing is lost by it");
	ok(!n.far.wrong, "all in order");
	outbox_free(n.o);
}

static uint64_t undelivered_us(const struct near *n)
{
	struct outbox_stats stats;

	outbox_stats(n->o, n->now_us, &stats);
	return stats.undelivered_us;
}

static void test_standstill(void)
{
	struct near n;

	near_init(&n);
	ok_uint(undelivered_us(&n), 0, "nothing sent, nothing missed");
	push(&n, 1, 0);
	outbox_flush(n.o, n.now_us);
	n.now_us += 3000;
	push(&n, 1, 0);
	outbox_flush(n.o, n.now_us);
	n.now_us += 1000;
	ok_uint(undelivered_us(&n), 4000, "the oldest frame counts");
	outbox_delivered(n.o, true, n.now_us);
	ok_uint(undelivered_us(&n), 1000, "it is delivered: the next one does");
	outbox_delivered(n.o, true, n.now_us);
	ok_uint(undelivered_us(&n), 0, "all are");
	n.far.answer = -EAGAIN;
	outbox_want_frame(n.o, false);
	for (unsigned i = 0; i < 5; i++) {
		outbox_flush(n.o, n.now_us);
		n.now_us += OUTBOX_RETRY_US;
	}
	ok_uint(undelivered_us(&n), 5 * OUTBOX_RETRY_US, "what is refused counts from the first try");
	n.far.answer = 0;
	outbox_flush(n.o, n.now_us);
	ok_uint(undelivered_us(&n), 0, "until it is taken");
	push(&n, 1, 0);
	outbox_flush(n.o, n.now_us);
	n.now_us += 1000;
	outbox_restart(n.o, n.now_us);
	ok_uint(undelivered_us(&n), 0, "a new life misses nothing of the old one");
	outbox_free(n.o);
}

static void test_pressure(void)
{
	struct near n;
	struct outbox_stats stats;

	near_init(&n);
	n.far.answer = -EAGAIN;
	push(&n, OUTBOX_HIGH, 0);
	ok(!outbox_pressure(n.o), "much is queued");
	push(&n, 1, 0);
	ok(outbox_pressure(n.o), "too much is queued");
	n.far.answer = 0;
	n.now_us += 5000;
	while (outbox_pressure(n.o)) {
		outbox_delivered(n.o, true, n.now_us);
		outbox_flush(n.o, n.now_us);
	}
	outbox_stats(n.o, n.now_us, &stats);
	ok(stats.queued < OUTBOX_LOW, "relief comes when little is left");
	ok_uint(stats.pressures, 1, "it is counted");
	ok_uint(stats.pressure_us, 5000, "and timed");
	ok(!n.far.wrong, "all in order");
	outbox_free(n.o);
}

static void test_restart(void)
{
	struct near n;

	near_init(&n);
	push(&n, 2, 0);
	outbox_flush(n.o, n.now_us);
	push(&n, 300, n.now_us + 1000);
	outbox_want_frame(n.o, true);
	outbox_restart(n.o, n.now_us);
	outbox_flush(n.o, n.now_us + 1000);
	ok_uint(n.far.tries, 1, "a new life sends nothing of the old one");
	n.pushed = 0;
	n.far.next_seq = 1;
	for (unsigned i = 0; i < OUTBOX_WINDOW; i++) {
		push(&n, 1, 0);
		outbox_flush(n.o, n.now_us + 1000);
	}
	ok(n.far.frames == 1 + OUTBOX_WINDOW && !n.far.wrong,
	   "counts from one, and waits for no delivery of the old one");
	outbox_free(n.o);
}

int main(void)
{
	test_company();
	test_window();
	test_acks();
	test_again();
	test_standstill();
	test_pressure();
	test_restart();
	return done_testing();
}
