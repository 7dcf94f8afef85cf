/* SPDX-License-Identifier: GPL-2.0-or-later */
/* belay-lvmlockd: options, start, the way out. */
#include <stdio.h>
#include <stdlib.h>

#include "lvmlockd/lvmlockd.h"

int main(void)
{
	struct lvmlockd lvmlockd = { .phase = LVMLOCKD_CONNECTING };

	lvmlockd.loop = qb_loop_create();
	if (!lvmlockd.loop)
		return EXIT_FAILURE;
	qb_loop_destroy(lvmlockd.loop);
	return EXIT_SUCCESS;
}
