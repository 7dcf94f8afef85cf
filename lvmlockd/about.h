/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What belayd says of itself and its cluster; it answers at once, whatever the cluster does. */
#ifndef BELAY_LVMLOCKD_ABOUT_H
#define BELAY_LVMLOCKD_ABOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct belay;

#define ABOUT_CLUSTER_MAX 127u
#define ABOUT_NODES_MAX 64u

struct about {
	char cluster[ABOUT_CLUSTER_MAX + 1];
	bool standalone;		/* it runs without corosync */
	size_t member_count;
	uint32_t member[ABOUT_NODES_MAX];	/* the nodes whose belayd is there, this one too */
};

/* 0; -EPROTO: that is no status; -EIO: the connection is lost; -ENOMEM. */
int about_belayd(struct belay *belay, struct about *ret_about);

#endif
