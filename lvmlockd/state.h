/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What this node has: started VGs, and locks of LVs. It is also in a file on tmpfs, written
 * anew before an answer that depends on it goes out, so that a new
 * belay-lvmlockd knows what the former one had. The file is text:
 *
 *	belay-volumes 1
 *	vg UUID NAME ARGS
 *	lv VG-NAME VG-UUID UUID MODE SINCE BY NAME
 *
 * UUIDs are as lvm writes them, with hyphens; "-" stands for what is not known. SINCE is in
 * seconds since 1970. MODE is that of the persistent lock, BY the process that took it.
 */
#ifndef BELAY_LVMLOCKD_STATE_H
#define BELAY_LVMLOCKD_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lvmlockd/locks.h"
#include "lvmlockd/process.h"

#define STATE_NAME_MAX 127u	/* of VGs and LVs, as in LVM */
#define STATE_UUID_MAX 38u
#define STATE_ARGS_MAX 127u

struct state;
struct volume_clients;

struct volume {
	struct vg *vg;
	char uuid[STATE_UUID_MAX + 1];
	char name[STATE_NAME_MAX + 1];	/* as it was when it was locked; "" if never told */
	enum lock_mode mode;		/* of the persistent lock; MODE_UN: there is none */
	int64_t since;			/* ... and when it was taken, seconds since 1970 */
	char by[PROCESS_NAME_MAX + 1];	/* ... and by which process; "": not told */
	bool lost;			/* it has the mode, but belayd refused to take it again */
	struct lock *lock;		/* LV:uuid, the node's; as strong as @mode and all transient ones */
	struct volume_clients *clients;	/* request_lv.c's */
	TAILQ_ENTRY(volume) link;
};

struct vg {
	char name[STATE_NAME_MAX + 1];
	char uuid[STATE_UUID_MAX + 1];	/* "" if never told */
	char args[STATE_ARGS_MAX + 1];
	bool starting;			/* its lock "started:" is under way */
	bool removed;			/* another node has removed it */
	bool killed;			/* lvmlockctl --kill */
	uint32_t version;		/* vg_update's; 0: not told */
	struct lock *started;		/* started:name, the node's, shared */
	TAILQ_HEAD(, volume) volumes;
	TAILQ_ENTRY(vg) link;
};
TAILQ_HEAD(vg_list, vg);

/* path: of the file. 0 or -ENOMEM. */
int state_new(const char *path, struct state **ret_state);
/* Closes the locks and leaves them and the file as they are. NULL is allowed. */
void state_free(struct state *state);

/*
 * Read the file into the empty state; @locks: where locks are opened, none is taken yet
 * (volume.mode says what the former one had). 0, also if there is no file; -EBADMSG: it is
 * not such a file, or of another version; other negative errnos of open(2) and read(2).
 * After a failure the state is empty.
 */
int state_load(struct state *state, struct locks *locks);
/* Write the file. 0, or a negative errno with the former file in place. */
int state_save(const struct state *state);

struct vg_list *state_vgs(struct state *state);
struct vg *state_vg(struct state *state, const char *name);
/* The same; NULL also if it is another one of that name, by its uuid, if both are known. */
struct vg *state_vg_is(struct state *state, const char *name, const char *uuid);
/* -ENOMEM, -ENAMETOOLONG, -EEXIST. */
int state_add_vg(struct state *state, struct locks *locks, const char *name, const char *uuid, const char *args,
		 struct vg **ret_vg);
/* With its LVs: their locks are closed, not released. */
void state_remove_vg(struct state *state, struct vg *vg);

/* By uuid, in all VGs. */
struct volume *state_volume(struct state *state, const char *uuid);
int state_add_volume(struct state *state, struct locks *locks, struct vg *vg, const char *uuid, const char *name,
		 struct volume **ret_volume);
void state_remove_volume(struct volume *volume);

#endif
