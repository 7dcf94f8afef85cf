/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Locks of belayd's lockspace "volumes", for a loop: nothing waits, answers come by
 * callbacks from the loop (never from inside the call). belayd may go and come: then locks
 * of the node are taken again by themselves; transient ones are lost.
 */
#ifndef BELAY_LVMLOCKD_LOCKS_H
#define BELAY_LVMLOCKD_LOCKS_H

#include <qb/qbloop.h>
#include <stdbool.h>
#include <stdint.h>

struct belay;
struct lock;
struct locks;

enum lock_mode {
	MODE_UN,
	MODE_SH,
	MODE_EX,
	MODE_COUNT,
};

/* "un", "sh", "ex", as lvm says it. */
const char *lock_mode_name(enum lock_mode mode);
/* And back; MODE_COUNT: it is none of them. @text may be NULL. */
enum lock_mode lock_mode_find(const char *text);

enum lock_owner {
	LOCK_TRANSIENT,	/* ends with struct lock, or with the connection to belayd */
	LOCK_NODE,	/* the node's: only lock_release() ends it */
};

struct locks_handlers {
	/* belayd is there (again). The node's locks of all open struct lock are being taken
	 * again; *cluster: the cluster's name. */
	void (*on_connected)(void *context, const char *cluster, uint32_t node);
	/* It is gone: transient locks are lost, their requests end with -EIO. */
	void (*on_lost)(void *context);
	/* What a lock of the node had could not be taken again: @result as lock_take()'s. It counts as not held. */
	void (*on_refused)(void *context, struct lock *lock, int result);
	/* All of them are taken again, or refused. Follows on_connected. */
	void (*on_regained)(void *context);
	/* May it connect again? NULL: always. Asked before each attempt. */
	bool (*may_connect)(void *context);
	void *context;
};

/* socket: belayd's. Connects from the loop, and tries again every second. 0 or -ENOMEM. */
int locks_new(qb_loop_t *loop, const char *socket, const struct locks_handlers *handlers,
	      struct locks **ret_locks);
/* All locks must be closed. Leaves the node's locks as they are. NULL is allowed. */
void locks_free(struct locks *locks);
/* Of the cluster, by belayd; 0 and "" before the first connection. */
uint32_t locks_node(const struct locks *locks);
const char *locks_cluster(const struct locks *locks);
/* belayd runs without corosync. */
bool locks_standalone(const struct locks *locks);
/* The connection, for belay_command() and what else answers at once; NULL: there is none. */
struct belay *locks_belay(struct locks *locks);

/*
 * Ask for all that the node holds once more, as after a new connection: on_refused, on_regained.
 * After a loss of quorum, in which the others may have fenced this node: its belayd does not tell.
 */
void locks_ask_again(struct locks *locks);

/* What of the node's locks is in no open struct lock is released. 0 or a negative errno. */
int locks_forget_rest(struct locks *locks);

/* 0; -ENOMEM; -ENAMETOOLONG. Needs no connection. *context is for the caller's on_refused. */
int lock_open(struct locks *locks, const char *name, enum lock_owner owner, void *context,
	      struct lock **ret_lock);
/*
 * Cancels what is under way, without a callback; releases a transient lock; leaves one of the
 * node as it is. NULL is allowed.
 */
void lock_close(struct lock *lock);

/*
 * 0: held. -EAGAIN: another is in the way, for all of the time allowed. -EIO: belayd is gone.
 * -ECANCELED: lock_cancel(). Others as belay_lock(). After a failure it is as it was before.
 */
typedef void (*lock_done)(void *context, int result);

/*
 * Lock, or convert what is held; wait_ms 0: only try; LOCK_FOREVER. One at a time for each
 * struct lock (asserted). @done follows, if this returns 0. -ENOTCONN; -EBUSY: it is being taken again, see
 * on_regained; -ENOMEM and others of belay_open_name().
 */
#define LOCK_FOREVER UINT32_MAX
int lock_take(struct lock *lock, enum lock_mode mode, uint32_t wait_ms, lock_done done, void *context);
/* Withdraw: @done follows all the same, with 0 if it was granted first. */
void lock_cancel(struct lock *lock);
bool lock_busy(const struct lock *lock);
/* Give back what is held. Nothing must be under way (asserted). Without belayd: when it is back. */
void lock_release(struct lock *lock);
enum lock_mode lock_held(const struct lock *lock);
const char *lock_name(const struct lock *lock);
void *lock_context(const struct lock *lock);

#endif
