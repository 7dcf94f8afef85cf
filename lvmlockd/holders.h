/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who has an LV locked, as belayd knows it: also nodes that cannot be asked. */
#ifndef BELAY_LVMLOCKD_HOLDERS_H
#define BELAY_LVMLOCKD_HOLDERS_H

#include <stdbool.h>
#include <stdint.h>

struct belay;

/*
 * Call @each for each node that has the LV's lock; its name must be known to belayd, which it is if
 * this node has the lock, too. 0, or a negative errno: not all may have been told.
 */
int holders_each(struct belay *belay, const char *uuid, void (*each)(void *context, uint32_t node), void *context);

#endif
