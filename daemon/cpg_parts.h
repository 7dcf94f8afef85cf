/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What group_cpg.c is made of, and nobody else needs: corosync's errors, the
 * membership as node ids, the configuration in cmap, the quorum connection.
 */
#ifndef BELAY_DAEMON_CPG_PARTS_H
#define BELAY_DAEMON_CPG_PARTS_H

#include <corosync/corotypes.h>
#include <corosync/cpg.h>
#include <corosync/quorum.h>

#include "daemon/group.h"

/* Corosync's errors as ours: 0 or a negative errno; -ENOTCONN: corosync is gone. */
int cs_errno(cs_error_t error);

/*
 * While opening: is @error corosync's "try again", and have we tries left? Then
 * nap 10 ms and count one.
 */
bool cs_again(cs_error_t error, unsigned *tries);
#define CS_TRIES_MAX 500u

/* ---- membership ---- */

/*
 * The processes of a CPG membership change as nodes. A node that has a process
 * in the group from before the change to after it neither left nor joined,
 * whatever its other processes did: a restarting belayd may overlap itself.
 */
void cpg_view_make(const struct cpg_address *member, size_t member_count,
		   const struct cpg_address *left, size_t left_count,
		   const struct cpg_address *joined, size_t joined_count,
		   struct group_view *ret_view);

/* Is there a process of @node other than @pid? */
bool cpg_view_has_other(const struct cpg_address *member, size_t member_count,
			uint32_t node, uint32_t pid);

/* ---- configuration ---- */

/* What decides whether quorum is a plain majority of nodes. */
struct cpg_votes {
	bool two_node, auto_tie_breaker, last_man_standing, allow_downscale, device;
	bool weighted;			/* a node has other than one vote */
	uint32_t expected_votes;	/* as configured or, if it is not, the sum */
	uint32_t node_count;
};

enum belay_stability cpg_stability(const struct cpg_votes *votes);

/* totem's keys; NULL if not set. True if all that corosync sends is authenticated and encrypted. */
bool cpg_encrypted(const char *transport, const char *secauth, const char *cipher, const char *hash);

/*
 * Fill in all of info but self. 0, or a negative errno with *ret_why as
 * group_cpg_open() has it.
 */
int cpg_info_read(struct group_info *ret_info, const char **ret_why);

/* ---- quorum ---- */

struct cpg_quorum {
	quorum_handle_t handle;
	int fd;
	bool quorate;
	struct quorum_ring_id ring;	/* the membership for which quorate was told */
};

/* The quorum must stay where it is: its address is the callbacks' context. */
int cpg_quorum_open(struct cpg_quorum *quorum, const char **ret_why);
/* Read what corosync has said. Never blocks. 0, or a negative errno: connection lost. */
int cpg_quorum_dispatch(struct cpg_quorum *quorum);
void cpg_quorum_close(struct cpg_quorum *quorum);
/* The flag, if it was told for just this membership; else @former stands. */
bool cpg_quorum_flag(const struct cpg_quorum *quorum, const struct cpg_ring_id *ring, bool former);

#endif
