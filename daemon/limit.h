/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeps one noisy cause from flooding the log: one line a while, and how many it stands for. */
#ifndef BELAY_DAEMON_LIMIT_H
#define BELAY_DAEMON_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#define LIMIT_INTERVAL_US 5000000u

struct limit {
	uint64_t next_us;
	uint64_t held_back;
};

/* May this be logged? Then *ret_held_back is how many of its kind were not. */
static inline bool limit_pass(struct limit *l, uint64_t now_us, uint64_t *ret_held_back)
{
	if (now_us < l->next_us) {
		l->held_back++;
		return false;
	}
	*ret_held_back = l->held_back;
	l->held_back = 0;
	l->next_us = now_us + LIMIT_INTERVAL_US;
	return true;
}

#endif
