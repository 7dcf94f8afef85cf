/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What this node does to its logical volumes because a belay-lvmlockd, this
 * one or another, asks: it runs lvm, then looks into device-mapper, and
 * answers for each LV. It takes no lock itself: lvm asks this node's
 * belay-lvmlockd for them, as ever; but for a request that may wait for LV
 * locks, which gets them first, in the queue.
 */
#ifndef BELAY_LVMLOCKD_AGENT_H
#define BELAY_LVMLOCKD_AGENT_H

#include <qb/qbloop.h>

#include "lvmlockd/ask.h"

struct agent;
struct dm_port;
struct lvm_group;
struct worker;

/* What the agent needs of the locks of this node. */
struct agent_locks {
	/* This node's lock on the LV, and since when it has it (Unix time; 0: not known). */
	enum ask_mode (*held)(void *context, const char *uuid, uint64_t *ret_since_s);
	/*
	 * Lock the LV for this node, waiting in the queue for timeout_ms at most. 0: done()
	 * follows, from the loop, with 0, -EAGAIN (held elsewhere all that time), or another negative
	 * errno, and whether the lock is new. *ret_ticket names it until then.
	 */
	int (*lock)(void *context, const char *vg, const char *lv, const char *uuid, enum ask_mode mode,
		    uint32_t timeout_ms, void (*done)(void *done_context, int result, bool is_new),
		    void *done_context, uint64_t *ret_ticket);
	/* done() does not follow any more, and what comes of it is undone. */
	void (*withdraw)(void *context, uint64_t ticket);
	/* Release what lock() got as new. */
	void (*unlock)(void *context, const char *uuid);
	/* Did this node have a lock on it that it was refused later? */
	bool (*lost)(void *context, const char *uuid);
	/* What on_quorum_loss has made of that device, by its uuid in device-mapper: "frozen", "failed", or "". */
	const char *(*policy)(void *context, const char *dm_uuid);
	void *context;
};

struct agent_setup {
	struct worker *worker;
	const struct dm_port *dm;
	struct agent_locks locks;
	const char *lvm_path;
	uint32_t command_timeout_ms;		/* one run of lvm; 100 ms more for each LV */
};

/* 0, -ENOMEM. The setup is copied, but for what it points to. */
int agent_open(const struct agent_setup *setup, struct agent **ret_agent);
/* What is under way is not answered any more. NULL is allowed. */
void agent_close(struct agent *agent);

/* For struct lvm_group_handlers: on_request, on_cancel, on_left. */
void agent_request(struct agent *agent, uint32_t node, uint64_t id, const struct ask_request *request);
void agent_cancel(struct agent *agent, uint32_t node, uint64_t id);
void agent_left(struct agent *agent, uint32_t node);
/*
 * Where answers go, none at first; NULL: the group was lost. What was asked through the
 * old one is ended without an answer, and not undone.
 */
void agent_regroup(struct agent *agent, struct lvm_group *group);

/*
 * To be told when lvm of this node got or released (@mode ASK_UN) the lock of an LV: that is how
 * far a long command has come.
 */
void agent_note_lock(struct agent *agent, const char *vg, enum ask_mode mode);

#endif
