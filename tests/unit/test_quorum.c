/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How belay-lvmlockd hears of quorum; corosync is one that does what it is told. */
#include <qb/qbloop.h>

#include "lvmlockd/quorum.h"
#include "tests/tap.h"
#include "tests/unit/fake_corosync.h"

struct heard {
	qb_loop_t *loop;
	unsigned times;
	bool quorate;
	char why[64];
};

static void on_changed(void *context, bool quorate, const char *why)
{
	struct heard *heard = context;

	heard->times++;
	heard->quorate = quorate;
	(void)snprintf(heard->why, sizeof(heard->why), "%s", why);
	qb_loop_stop(heard->loop);
}

static void on_late(void *data)
{
	qb_loop_stop(data);
}

/* Until something is heard; false: nothing was in all that time. */
static bool listen_for(struct heard *heard, unsigned ms)
{
	unsigned before = heard->times;
	qb_loop_timer_handle timer;

	if (qb_loop_timer_add(heard->loop, QB_LOOP_LOW, ms * 1000000ull, heard->loop, on_late, &timer) < 0)
		bail_out("no timer");
	qb_loop_run(heard->loop);
	(void)qb_loop_timer_del(heard->loop, timer);
	return heard->times > before;
}

int main(void)
{
	struct heard heard = { .loop = qb_loop_create() };
	struct quorum *quorum;

	fake_reset();
	fake()->fail_at = 1;
	fake()->fail_on = true;
	fake()->fail_with = CS_ERR_LIBRARY;
	if (!heard.loop || quorum_open(heard.loop, on_changed, &heard, &quorum) < 0)
		bail_out("no loop");
	ok_uint(heard.times, 0, "nothing is called from inside");
	ok(listen_for(&heard, 20000) && !heard.quorate, "without corosync there is no quorum");
	ok_str(heard.why, "corosync cannot be reached", "and it is said why");
	ok(!listen_for(&heard, 1500), "once");

	fake()->fail_at = 0;
	while (!fake()->tracking)
		(void)listen_for(&heard, 100);
	ok(heard.times == 1, "when corosync comes it is asked");
	fake_quorum(1, false);
	ok(!listen_for(&heard, 200), "what is not new is not told");
	fake_quorum(2, true);
	ok(listen_for(&heard, 20000) && heard.quorate, "quorum is told");
	fake_quorum(3, true);
	ok(!listen_for(&heard, 200), "another membership with quorum is nothing new");
	fake_quorum(4, false);
	ok(listen_for(&heard, 20000) && !heard.quorate, "its loss is told");
	ok_str(heard.why, "corosync says so", "and by whom");
	fake_quorum(5, true);
	ok(listen_for(&heard, 20000) && heard.quorate, "and its return");

	fake_die();
	ok(listen_for(&heard, 20000) && !heard.quorate, "with corosync's end quorum is lost");
	ok_str(heard.why, "corosync has ended", "which is said");
	ok_uint(fake()->quorum_handles, 0, "the connection is gone");
	fake_reset();
	while (!fake()->tracking)
		(void)listen_for(&heard, 100);
	fake_quorum(6, true);
	ok(listen_for(&heard, 20000) && heard.quorate, "a new corosync is found, and says what is");

	quorum_close(quorum);
	ok_uint(fake()->quorum_handles, 0, "at the end nothing is left open");
	fake_reset();
	fake()->fail_at = 1;
	fake()->fail_with = CS_ERR_LIBRARY;
	ok(quorum_open(heard.loop, on_changed, &heard, &quorum) == 0, "who closes before anything was heard");
	quorum_close(quorum);
	heard.times = 0;
	ok(!listen_for(&heard, 200), "hears nothing");
	qb_loop_destroy(heard.loop);
	return done_testing();
}
