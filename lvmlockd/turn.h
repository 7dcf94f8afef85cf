/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * To be called from the loop, soon. Not by a job of libqb: while nothing else
 * happens, it lets jobs wait for 50 ms, and locks must not.
 */
#ifndef BELAY_LVMLOCKD_TURN_H
#define BELAY_LVMLOCKD_TURN_H

#include <qb/qbloop.h>
#include <stdbool.h>

struct turn {
	qb_loop_timer_handle timer;
	bool due;			/* the function clears it first of all */
};

/* At the next turn of the loop; once, however often it is asked for. False: there is no memory. */
static inline bool turn_ask(struct turn *turn, qb_loop_t *loop, void *data, qb_loop_timer_dispatch_fn function)
{
	if (!turn->due)
		turn->due = qb_loop_timer_add(loop, QB_LOOP_MED, 1, data, function, &turn->timer) == 0;
	return turn->due;
}

/* Not any more. */
static inline void turn_drop(struct turn *turn, qb_loop_t *loop)
{
	if (turn->due)
		(void)qb_loop_timer_del(loop, turn->timer);
	turn->due = false;
}

#endif
