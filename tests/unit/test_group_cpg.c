/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The corosync port against a corosync that fails where it is told to. What a
 * real one does is in tests/cluster/group.sh.
 */
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/group.h"
#include "tests/tap.h"
#include "tests/unit/fake_corosync.h"

#define NONE ((const unsigned[]){ 0 })
#define LIST(...) ((const unsigned[]){ __VA_ARGS__, 0 })

struct test {
	qb_loop_t *loop;
	struct group *group;
	const char *why;
	char told[4096];	/* "view 1,2 left= joined=2; quorum 1; message 1 64; lost ENOTCONN; " */
	bool in_send, told_in_send;
	unsigned messages;
	unsigned turns;		/* of the loop that are still to run */
};

__attribute__((format(printf, 2, 3)))
static void tell(struct test *t, const char *format, ...)
{
	size_t at = strlen(t->told);
	va_list args;

	t->told_in_send |= t->in_send;
	va_start(args, format);
	vsnprintf(t->told + at, sizeof(t->told) - at, format, args);
	va_end(args);
}

static void tell_nodes(struct test *t, const char *what, const uint32_t *nodes, uint32_t count)
{
	tell(t, "%s", what);
	for (uint32_t i = 0; i < count; i++)
		tell(t, "%s%" PRIu32, i > 0 ? "," : "", nodes[i]);
}

static void on_view(void *context, const struct group_view *view)
{
	tell_nodes(context, "view ", view->member, view->member_count);
	tell_nodes(context, " left=", view->left, view->left_count);
	tell_nodes(context, " joined=", view->joined, view->joined_count);
	tell(context, "; ");
}

static void on_message(void *context, uint32_t node, const void *buf, size_t size)
{
	struct test *t = context;

	(void)buf;
	t->messages++;
	tell(t, "message %" PRIu32 " %zu; ", node, size);
}

static void on_quorum(void *context, bool quorate)
{
	tell(context, "quorum %d; ", quorate);
}

static void on_lost(void *context, int error)
{
	tell(context, "lost %s; ", strerrorname_np(-error));
}

/* A group before its first view, from whatever corosync the test has prepared. */
static int try_open(struct test *t)
{
	const struct group_handlers handlers = {
		.on_view = on_view, .on_message = on_message,
		.on_quorum = on_quorum, .on_lost = on_lost, .context = t,
	};

	*t = (struct test){ .loop = qb_loop_create() };
	if (!t->loop)
		bail_out("no loop");
	return group_cpg_open(t->loop, "fake", &handlers, &t->group, &t->why);
}

static void end(struct test *t)
{
	if (t->group)
		t->group->ops->close(t->group);
	qb_loop_destroy(t->loop);
	ok(fake()->cpg_handles == 0 && fake()->quorum_handles == 0 && fake()->cmap_handles == 0 &&
	   fake()->iterators == 0, "all connections to corosync are closed");
}

static int32_t on_turn(int32_t fd, int32_t revents, void *data)
{
	struct test *t = data;

	(void)fd;
	(void)revents;
	if (t->turns-- == 0)
		qb_loop_stop(t->loop);
	return 0;
}

/* Let the loop turn until all that was there is done: the descriptor is readable each time. */
static void turn(struct test *t)
{
	int fd = eventfd(1, EFD_CLOEXEC);

	t->turns = 20;
	if (fd < 0 || qb_loop_poll_add(t->loop, QB_LOOP_LOW, fd, POLLIN, t, on_turn) < 0)
		bail_out("the loop cannot be made to turn");
	qb_loop_run(t->loop);
	qb_loop_poll_del(t->loop, fd);
	close(fd);
}

/* What is told when the loop has turned. */
static void expect(struct test *t, const char *told, const char *what)
{
	turn(t);
	ok_str(t->told, told, "%s", what);
	t->told[0] = '\0';
}

static void begin(struct test *t)
{
	fake_reset();
	if (try_open(t) < 0)
		bail_out(t->why);
	fake_confchg(LIST(10), NONE, LIST(10));
	fake_totem(4);
	fake_quorum(4, true);
	expect(t, "view 1 left= joined=1; quorum 1; ", "the first view");
}

static int send_bytes(struct test *t, size_t size)
{
	static const uint8_t buf[GROUP_MESSAGE_MAX];
	int r;

	t->in_send = true;
	r = t->group->ops->send(t->group, buf, size);
	t->in_send = false;
	return r;
}

static unsigned send_all(struct test *t, size_t size)
{
	unsigned sent = 0;

	while (sent < 10000 && send_bytes(t, size) == 0)
		sent++;
	return sent;
}

/* ---- opening ---- */

static void test_open_failures(void)
{
	static const cs_error_t errors[] = { CS_ERR_LIBRARY, CS_ERR_ACCESS, CS_ERR_NO_MEMORY, CS_ERR_INIT };
	struct test t;
	unsigned n = 0;
	int r;

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		for (n = 1;; n++) {
			fake_reset();
			fake()->fail_at = n;
			fake()->fail_with = errors[i];
			r = try_open(&t);
			if (fake()->calls < n)
				break;
			ok(r < 0 && t.group == NULL && t.why != NULL && strlen(t.why) > 20,
			   "call %u fails with %d: it says \"%s\"", n, errors[i], t.why ? t.why : "(nothing)");
			end(&t);
		}
		ok_int(r, 0, "without failure it opens");
		end(&t);
	}
	ok(n > 10, "%u calls can fail", n - 1);
}

/* A cluster of which much must be read to know that its quorum is no plain majority. */
static void prepare_failure(unsigned call, cs_error_t error)
{
	fake_reset();
	fake_set_number("quorum.two_node", 1);
	fake()->fail_at = call;
	fake()->fail_with = error;
}

static bool knows_all(const struct test *t)
{
	const struct group_info *info = &t->group->info;

	return info->node_count == 3 && info->expected_votes == 3 && info->stability == BELAY_STABLE_ALL &&
	       strcmp(info->node_name[2], "n3") == 0 && strcmp(info->cluster_name, "fake") == 0;
}

static void test_open_again(void)
{
	struct test t;
	unsigned n;

	for (n = 1;; n++) {
		prepare_failure(n, CS_ERR_TRY_AGAIN);
		ok_int(try_open(&t), 0, "corosync says \"try again\" to call %u: it does", n);
		ok(fake()->joined && knows_all(&t), "and misses nothing");
		end(&t);
		if (fake()->calls < n)
			break;
		ok(fake()->naps > 0, "after a nap");
	}
	ok(n > 30, "of %u calls", n - 1);
}

static void test_open_again_for_ever(void)
{
	struct test t;
	unsigned n;
	int r;

	for (n = 1;; n++) {
		prepare_failure(n, CS_ERR_TRY_AGAIN);
		fake()->fail_on = true;
		r = try_open(&t);
		if (fake()->calls < n)
			break;
		ok_int(r, -EAGAIN, "corosync says \"try again\" from call %u on: it gives up", n);
		ok(!t.group && t.why && strlen(t.why) > 20, "and says \"%s\"", t.why ? t.why : "(nothing)");
		end(&t);
	}
	ok_int(r, 0, "it does not say it to any of %u calls", n - 1);
	end(&t);
}

/* A node, or a rule of votes, that cannot be read is not one that is not there. */
static void test_open_cut(void)
{
	struct test t;
	unsigned n, refused = 0;
	int r;

	for (n = 1;; n++) {
		prepare_failure(n, CS_ERR_NOT_EXIST);
		r = try_open(&t);
		if (fake()->calls < n)
			break;
		refused += r < 0;
		ok(r < 0 || t.group->info.node_count == 3, "call %u finds nothing: no node is missed", n);
		end(&t);
	}
	ok_int(r, 0, "all is there");
	end(&t);
	ok(refused > 20, "%u calls must not find nothing", refused);
}

static void test_open_alone(void)
{
	struct test t;

	fake_reset();
	fake()->already[0] = (struct cpg_address){ .nodeid = 1, .pid = 99 };
	fake()->already[1] = (struct cpg_address){ .nodeid = 2, .pid = 99 };
	fake()->already_count = 2;
	fake()->already_times = 3;
	ok_int(try_open(&t), 0, "a former belayd of this node is waited for");
	ok_uint(fake()->naps, 3, "as long as it is there");
	end(&t);
	fake()->already[0].nodeid = 3;
	fake()->already_times = -1;
	ok_int(try_open(&t), 0, "those of other nodes are not");
	end(&t);
	fake()->already[0].nodeid = 1;
	ok_int(try_open(&t), -EEXIST, "one that stays is an error");
	ok(strstr(t.why, "another belayd") != NULL, "and it says so");
	end(&t);
}

static void refuses(int error, const char *why)
{
	struct test t;

	ok_int(try_open(&t), error, "refused: %s", why);
	ok(t.why && strstr(t.why, why), "and it says so");
	if (t.why && !strstr(t.why, why))
		diag("%s", t.why);
	end(&t);
}

static void test_open_configuration(void)
{
	char key[64];

	fake_reset();
	fake_unset("nodelist.");
	refuses(-EINVAL, "has no nodelist");
	fake_reset();
	fake_unset("nodelist.node.1.nodeid");
	refuses(-EINVAL, "has no nodeid");
	fake_reset();
	fake_set_number("nodelist.node.7.nodeid", 2);
	refuses(-EINVAL, "have the same nodeid");
	fake_reset();
	fake()->self = 9;
	refuses(-ENOENT, "this node is not in corosync.conf's nodelist");
	fake_reset();
	fake()->quorum_type = QUORUM_FREE;
	refuses(-ENOTSUP, "no quorum provider");
	fake_reset();
	for (unsigned i = 3; i <= BELAY_NODES_MAX; i++) {
		snprintf(key, sizeof(key), "nodelist.node.%u.nodeid", i);
		fake_set_number(key, i + 1);
	}
	refuses(-E2BIG, "more nodes than belay can have");
	fake_reset();
	fake_set_text("quorum.two_node", "1");
	refuses(-EINVAL, "is not of the type");
	fake_reset();
	fake_set_number("totem.secauth", 1);
	refuses(-EINVAL, "is not of the type");
	fake_reset();
	fake()->atomic_max = 1000;
	refuses(-EMSGSIZE, "does not answer as it should");
	fake_reset();
	fake()->sndbuf = 1;	/* the kernel makes that a few KB */
	{
		struct test t;

		if (try_open(&t) < 0)
			ok(strstr(t.why, "net.core.wmem_default") != NULL, "too small a buffer is refused");
		else
			ok(true, "this kernel's smallest buffer is large enough");
		end(&t);
	}
}

static void test_info(void)
{
	const struct group_info *info;
	struct test t;

	fake_reset();
	fake_set_number("nodelist.node.12.nodeid", 40);
	fake_set_number("quorum.two_node", 1);
	fake_set_text("totem.secauth", "on");
	fake_set_text("totem.keyfile", "/etc/corosync/key");
	fake_set_text("nodelist.node.1.ring0_addr", "192.0.2.2");
	ok_int(try_open(&t), 0, "a cluster of four");
	info = &t.group->info;
	ok_uint(info->self, 1, "our own id");
	ok_str(info->cluster_name, "fake", "its name");
	ok_uint(info->node_count, 4, "its nodes");
	ok_uint(info->node[3], 40, "one behind a gap");
	ok_str(info->node_name[1], "n2", "a node's name");
	ok_str(info->node_name[3], "", "a node without one");
	ok_uint(info->expected_votes, 4, "a vote each");
	ok_int(info->stability, BELAY_STABLE_ALL, "two_node is read");
	ok(info->encrypted, "so is secauth");
	ok_str(info->key_file, "/etc/corosync/key", "and where its key is");
	ok_str(info->node_address[1], "192.0.2.2", "a node's address");
	ok_str(info->node_address[3], "", "a node without one");
	end(&t);

	fake_reset();
	fake_set_number("nodelist.node.2.quorum_votes", 2);
	ok_int(try_open(&t), 0, "a cluster with weights");
	ok_uint(t.group->info.expected_votes, 4, "whose sum is expected");
	ok_int(t.group->info.stability, BELAY_STABLE_ALL, "no plain majority");
	ok(!t.group->info.encrypted, "nor encryption");
	end(&t);

	fake_reset();
	fake_set_text("quorum.device.model", "net");
	ok_int(try_open(&t), 0, "a cluster with a quorum device");
	ok_int(t.group->info.stability, BELAY_STABLE_ALL, "no plain majority either");
	end(&t);
}

/* ---- life ---- */

static void test_window(void)
{
	struct test t;
	unsigned window;

	fake_reset();
	if (try_open(&t) < 0)
		bail_out(t.why);
	ok_int(send_bytes(&t, 64), -EAGAIN, "nothing is sent before the first view");
	end(&t);

	begin(&t);
	window = send_all(&t, 64);
	ok_uint(window, 32, "a window of messages is taken");
	ok_uint(fake()->sent, window, "and given to corosync");
	fake_message(2, 1001, 64);
	expect(&t, "message 2 64; ", "one of another node comes");
	ok_int(send_bytes(&t, 64), -EAGAIN, "which gives no room");
	fake_message(1, 1001, 64);
	expect(&t, "message 1 64; ", "nor does one of another process of our own");
	ok_int(send_bytes(&t, 64), -EAGAIN, "no room yet");
	fake_message(1, (uint32_t)getpid(), 64);
	expect(&t, "message 1 64; ", "our own comes");
	ok_uint(send_all(&t, 64), 1, "and gives room for one");
	end(&t);

	begin(&t);
	ok_uint(send_all(&t, GROUP_MESSAGE_MAX), 16, "half a megabyte of large ones is taken");
	ok_int(send_bytes(&t, 1), -EAGAIN, "and not a byte more");
	fake_message(1, (uint32_t)getpid(), GROUP_MESSAGE_MAX);
	expect(&t, "message 1 32768; ", "one comes");
	ok_uint(send_all(&t, GROUP_MESSAGE_MAX), 1, "and one more is taken");
	end(&t);

	begin(&t);
	fake()->send_result = CS_ERR_TRY_AGAIN;
	for (unsigned i = 0; i < 100; i++)
		if (send_bytes(&t, 64) != -EAGAIN)
			ok(false, "corosync says \"try again\", and so does send");
	fake()->send_result = CS_OK;
	ok_uint(send_all(&t, 64), 32, "what was not taken takes no room");
	end(&t);
}

static void test_small_buffer(void)
{
	struct test t;

	fake_reset();
	fake()->sndbuf = 16384;		/* which the kernel doubles */
	if (try_open(&t) < 0)
		bail_out(t.why);
	fake_confchg(LIST(10), NONE, LIST(10));
	expect(&t, "view 1 left= joined=1; ", "with sockets that buffer little");
	ok_uint(send_all(&t, 64), 8, "the window is smaller");
	end(&t);
}

static void test_quorum(void)
{
	struct test t;

	fake_reset();
	if (try_open(&t) < 0)
		bail_out(t.why);
	fake_quorum(4, true);
	expect(&t, "", "quorum before the first membership is not told");
	fake_confchg(LIST(10), NONE, LIST(10));
	expect(&t, "view 1 left= joined=1; ", "nor with the view alone");
	fake_totem(4);
	expect(&t, "quorum 1; ", "but when the membership is its own");
	fake_confchg(LIST(10, 20), NONE, LIST(20));
	fake_totem(8);
	expect(&t, "view 1,2 left= joined=2; ", "the next membership: nothing is judged yet");
	fake_quorum(8, true);
	expect(&t, "", "quorate as before");
	fake_quorum(12, false);
	expect(&t, "", "a verdict ahead of the membership waits for it");
	fake_totem(12);
	expect(&t, "quorum 0; ", "and is told then");
	fake_totem(16);
	fake_quorum(16, true);
	expect(&t, "quorum 1; ", "both in one turn");
	fake_quorum(16, false);
	expect(&t, "quorum 0; ", "the same membership is judged anew");
	end(&t);
}

static void test_flood(void)
{
	struct test t;

	begin(&t);
	for (unsigned i = 0; i < 500; i++)
		fake_message(2, 1001, 64);
	turn(&t);
	ok_uint(t.messages, 500, "more messages than one turn takes come in the next");
	t.told[0] = '\0';
	end(&t);
}

/* ---- its end ---- */

static void test_lost(void)
{
	struct test t;

	begin(&t);
	fake_die();
	expect(&t, "lost ENOTCONN; ", "corosync dies: the group is lost, once");
	ok_int(send_bytes(&t, 64), -ENOTCONN, "nothing can be sent");
	end(&t);

	begin(&t);
	fake()->send_result = CS_ERR_LIBRARY;
	ok_int(send_bytes(&t, 64), -ENOTCONN, "a send fails for good");
	ok_int(send_bytes(&t, 64), -ENOTCONN, "as the next does");
	ok_str(t.told, "", "nothing is told from inside send");
	expect(&t, "lost ENOTCONN; ", "but from the loop, once");
	end(&t);

	begin(&t);
	fake()->send_result = CS_ERR_LIBRARY;
	ok_int(send_bytes(&t, 64), -ENOTCONN, "a send fails, and the group is closed before the loop turns");
	end(&t);

	begin(&t);
	fake()->dispatch_result = CS_ERR_NO_MEMORY;
	fake_message(2, 1001, 8);
	expect(&t, "message 2 8; lost ENOMEM; ", "corosync fails otherwise: what came before is told");
	end(&t);
}

static void test_leave(void)
{
	struct test t;

	begin(&t);
	fake_message(2, 1001, 8);
	t.group->ops->leave(t.group);
	expect(&t, "", "after leave nothing is told");
	ok_int(send_bytes(&t, 64), -ENOTCONN, "nothing can be sent");
	end(&t);
}

static void test_second(void)
{
	struct test t;

	fake_reset();
	if (try_open(&t) < 0)
		bail_out(t.why);
	fake_confchg(LIST(11, 10, 20), NONE, LIST(10));
	fake_message(2, 1001, 8);
	expect(&t, "lost EEXIST; ", "who comes second on a node gives way");
	ok_uint(fake()->sent, 0, "and has sent nothing");
	end(&t);

	begin(&t);
	fake_confchg(LIST(10, 11), NONE, LIST(11));
	fake_confchg(LIST(10), LIST(11), NONE);
	expect(&t, "view 1 left= joined=; view 1 left= joined=; ", "who was first goes on");
	end(&t);
}

int main(void)
{
	test_open_failures();
	test_open_again();
	test_open_again_for_ever();
	test_open_cut();
	test_open_alone();
	test_open_configuration();
	test_info();
	test_window();
	test_small_buffer();
	test_quorum();
	test_flood();
	test_lost();
	test_leave();
	test_second();
	return done_testing();
}
