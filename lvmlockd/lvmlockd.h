/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * belay-lvmlockd: what ties its parts together. One thread on libqb's loop; nothing in
 * it blocks: lvm and device-mapper run in children (worker), locks are belayd's
 * (locks), other nodes are asked through a group. Only to a belayd that hangs a
 * connection is made, or lost, in some seconds.
 *
 *	server   lvm's socket: connections, framing; hands requests to request_*.c
 *	state    the VGs that this node has started, its LV locks; their file
 *	locks    libbelay, without waiting; connects again when belayd comes back
 *
 * Life: connect to belayd, adopt (what is active gets its lock again), serve.
 */
#ifndef BELAY_LVMLOCKD_LVMLOCKD_H
#define BELAY_LVMLOCKD_LVMLOCKD_H

#include <qb/qbloop.h>
#include <stdbool.h>

#include "daemon/config.h"
#include "lvmlockd/locks.h"
#include "lvmlockd/server.h"
#include "lvmlockd/state.h"
#include "lvmlockd/turn.h"

struct adoption;
struct agent;
struct command;
struct dm;
struct guard;
struct lv;
struct lvm_group;
struct policy;
struct worker;

enum lvmlockd_phase {
	LVMLOCKD_CONNECTING,	/* belayd is not reached; only what needs no lock is answered with success */
	LVMLOCKD_ADOPTING,	/* LV locks are being told to belayd again */
	LVMLOCKD_SERVING,
};

struct lvmlockd {
	qb_loop_t *loop;
	struct config config;
	bool standalone;		/* belayd runs without corosync: this node alone */
	enum lvmlockd_phase phase;
	/* What vg_lock_args must be: "1.0.0:CLUSTER.belay"; "" until belayd has told the cluster's name. */
	char marker[STATE_ARGS_MAX + 1];
	unsigned waited;		/* attempts to connect that had to wait for others to end */
	uint64_t last_ticket;		/* of volume_lock() ... */
	struct turn volumes_turn;	/* ... and what that has left to be done */
	struct state *state;
	struct locks *locks;
	bool has_adopted;		/* this process has locked again what was active when it began */
	uint64_t serving_since_us;
	bool all_adopted;		/* all nodes have, at some time since belayd is there */
	struct server *server;
	/* NULL until they are there. */
	struct worker *worker;
	struct dm *dm;
	struct guard *guard;		/* opens the next one */
	struct policy *policy;
	struct adoption *adoption;	/* NULL: none is under way */
	struct command *command;	/* opens the next three */
	struct lvm_group *group;
	struct agent *agent;
	struct lv *lv;
};

/* life.c, for the others. */
/* May an LV be locked: has every node said which ones it has active? */
bool lvmlockd_may_lock(struct lvmlockd *lvmlockd);
/* The persistent lock of an LV was taken, changed or released. */
void lvmlockd_note_lock(struct lvmlockd *lvmlockd, const struct volume *volume);
/* Tell the other nodes that a VG was removed. */
void lvmlockd_notify_removed(struct lvmlockd *lvmlockd, const struct vg *vg);
/* End, from the loop. */
void lvmlockd_stop(struct lvmlockd *lvmlockd);

#endif
