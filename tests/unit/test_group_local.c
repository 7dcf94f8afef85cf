/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The group of one node: order, back-pressure, and that nothing is called from inside send. */
#include "daemon/group.h"
#include "tests/tap.h"

struct test {
	qb_loop_t *loop;
	struct group *group;
	unsigned views, quorums, messages, losses;
	bool quorate;
	bool in_send;
	bool order_broken;	/* a call from inside send, or a message out of order */
	unsigned sent;		/* the number in the next message */
	unsigned answers;	/* how many messages to send from the handler, one a message */
	unsigned leave_at;	/* leave from the handler of this message */
	unsigned stop_at;
	struct group_view view;
};

static int send_number(struct test *t)
{
	int r;

	t->in_send = true;
	r = t->group->ops->send(t->group, &t->sent, sizeof(t->sent));
	t->in_send = false;
	if (r == 0)
		t->sent++;
	return r;
}

static void on_view(void *context, const struct group_view *view)
{
	struct test *t = context;

	t->order_broken |= t->in_send || t->messages > 0;
	t->views++;
	t->view = *view;
}

static void on_quorum(void *context, bool quorate)
{
	struct test *t = context;

	t->order_broken |= t->in_send || t->views != 1;
	t->quorums++;
	t->quorate = quorate;
	if (t->stop_at == 0)
		qb_loop_stop(t->loop);
}

static void on_message(void *context, uint32_t node, const void *buf, size_t size)
{
	struct test *t = context;
	unsigned number;

	t->order_broken |= t->in_send || node != 7 || size != sizeof(number);
	memcpy(&number, buf, sizeof(number));
	t->order_broken |= number != t->messages;
	t->messages++;
	if (t->answers > 0 && send_number(t) == 0)
		t->answers--;
	if (t->messages == t->leave_at)
		t->group->ops->leave(t->group);
	if (t->messages == t->stop_at || t->messages == t->leave_at)
		qb_loop_stop(t->loop);
}

static void on_lost(void *context, int error)
{
	struct test *t = context;

	(void)error;
	t->losses++;
}

static void begin(struct test *t)
{
	const struct group_handlers handlers = {
		.on_view = on_view, .on_message = on_message,
		.on_quorum = on_quorum, .on_lost = on_lost, .context = t,
	};
	const char *why = NULL;

	*t = (struct test){ .loop = qb_loop_create() };
	if (!t->loop || group_local_open(t->loop, 7, &handlers, &t->group, &why) < 0)
		bail_out(why ? why : "no loop");
}

static void end(struct test *t)
{
	t->group->ops->close(t->group);
	qb_loop_destroy(t->loop);
}

static void test_open(void)
{
	struct test t;

	begin(&t);
	ok_uint(t.group->info.self, 7, "it is the node it was told");
	ok_uint(t.group->info.node_count, 1, "of one");
	ok_uint(t.group->info.node[0], 7, "that one");
	ok_uint(t.group->info.expected_votes, 1, "with one vote");
	ok_int(t.group->info.stability, BELAY_STABLE_MAJORITY, "which is a majority");
	ok_uint(t.views + t.quorums + t.messages, 0, "nothing is told from inside open");
	ok_int(send_number(&t), -EAGAIN, "nor can anything be sent before the first view");
	qb_loop_run(t.loop);
	ok_uint(t.views, 1, "the loop tells a view");
	ok(t.view.member_count == 1 && t.view.member[0] == 7, "with this member");
	ok(t.view.joined_count == 1 && t.view.joined[0] == 7 && t.view.left_count == 0, "who has joined");
	ok(t.quorums == 1 && t.quorate, "and that there is quorum");
	end(&t);
	begin(&t);
	end(&t);
	ok(true, "closed before its first turn, it is gone");
}

static void test_messages(void)
{
	unsigned accepted;
	struct test t;

	begin(&t);
	qb_loop_run(t.loop);
	while (send_number(&t) == 0)
		;
	accepted = t.sent;
	ok(accepted >= 16, "messages can be sent, %u at once", accepted);
	ok_int(send_number(&t), -EAGAIN, "then it says: not now");
	ok_uint(t.messages, 0, "none is delivered from inside send");
	t.answers = 1000;
	t.stop_at = accepted + 1000;
	qb_loop_run(t.loop);
	ok_uint(t.messages, accepted + 1000, "all come, those sent from a handler as well");
	ok(!t.order_broken, "in order");
	ok_int(send_number(&t), 0, "there is room again");
	ok_uint(t.losses, 0, "nothing was lost");
	end(&t);
}

static void test_large(void)
{
	static uint8_t buf[GROUP_MESSAGE_MAX];
	struct test t;

	begin(&t);
	qb_loop_run(t.loop);
	ok_int(t.group->ops->send(t.group, buf, sizeof(buf)), 0, "the largest message");
	t.stop_at = 1;
	qb_loop_run(t.loop);
	ok_uint(t.messages, 1, "comes");
	end(&t);
}

static void test_leave(void)
{
	struct test t;

	begin(&t);
	qb_loop_run(t.loop);
	while (send_number(&t) == 0)
		;
	t.leave_at = 3;
	qb_loop_run(t.loop);
	ok_uint(t.messages, 3, "after leave no message comes");
	ok_int(send_number(&t), -ENOTCONN, "and none can be sent");
	ok_uint(t.losses, 0, "this is no loss");
	end(&t);
}

int main(void)
{
	test_open();
	test_messages();
	test_large();
	test_leave();
	return done_testing();
}
