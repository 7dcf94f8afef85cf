/* SPDX-License-Identifier: GPL-2.0-or-later */
/* libdevmapper, in children of the worker only: any of its calls may hang. */
#ifndef BELAY_LVMLOCKD_DM_IOCTL_H
#define BELAY_LVMLOCKD_DM_IOCTL_H

#include "lvmlockd/dm.h"

/* Functions for the worker. argument: bool, with tables; writes what dm_parse() reads. */
int dm_ioctl_list(const void *argument, size_t size, int out);
/* argument: from dm_ioctl_pack(). Returns what enum dm_action says. */
int dm_ioctl_act(const void *argument, size_t size, int out);

/* An order as bytes from malloc: 0 or -ENOMEM. */
int dm_ioctl_pack(const struct dm_order *order, void **ret_argument, size_t *ret_size);

#endif
