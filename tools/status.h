/* SPDX-License-Identifier: GPL-2.0-or-later */
/* belay status: what belayd says, for people. Pure but for printing. */
#ifndef BELAY_TOOLS_STATUS_H
#define BELAY_TOOLS_STATUS_H

#include <stdio.h>

#include "tools/tool.h"

/* What a node that left keeps from the others. */
struct left_behind {
	uint64_t node;
	uint64_t locks;		/* it holds, as far as is known here */
	uint64_t waiting;	/* requests for what it holds or decides on */
};

#define STATUS_LEFT_MAX 128

struct status_view {
	struct json_object *status;
	struct left_behind left[STATUS_LEFT_MAX];
	unsigned left_count;
	bool partly;		/* there were too many locks to count all */
};

void status_print(FILE *to, const struct status_view *view);

/* What is wrong, and what to do; returns how many things. status_print() does it, too. */
unsigned status_print_wrong(FILE *to, const struct status_view *view);

#endif
