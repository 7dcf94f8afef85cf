/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libbelay: cluster-wide locks from belayd.
 *
 * A connection (struct belay) is one client of the node's belayd; a handle
 * (struct belay_handle) is one lockable resource opened through it. Byte
 * ranges are (start, length); length 0 means up to the largest offset, as in
 * fcntl(2). Every call returns 0 or a negative errno; nothing has changed on
 * failure unless said otherwise. Besides the errors named below any call may
 * return -EIO (the connection is lost), -EINVAL (no such range, mode, owner)
 * and -ENOMEM. No call touches errno on purpose.
 *
 * Thread-safe: any thread may use any handle at any time, except that
 * belay_handle_close() and belay_disconnect() must come last. A signal handler
 * may lock, unlock and test, whatever it interrupts (belay_lock(), belay_trylock(),
 * belay_lock_timed(), belay_unlock(), belay_get()), but must return; -EDEADLK if it
 * came in the middle of another kind of call, and belayd and the process share no
 * memory. After fork() the child must not use the parent's connections
 * (-EPERM); it connects anew.
 *
 * A lock that no other process wants is most often granted within this one: belayd
 * lends it the file, or a part of it, and takes it back when another wants it.
 * Nothing here tells whether that was so.
 */
#ifndef BELAY_H
#define BELAY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct belay;
struct belay_handle;

enum belay_lock_mode {
	BELAY_SHARED,		/* F_RDLCK: others may read, too */
	BELAY_EXCLUSIVE,	/* F_WRLCK */
};

/* Whose the locks of a handle are, as in Linux. */
enum belay_lock_owner {
	/* The process, that is the connection: fcntl(2) F_SETLK. Two handles of one
	 * resource share their locks, closing one releases all, and deadlocks are
	 * detected. */
	BELAY_OWNER_PROCESS,
	/* The handle: fcntl(2) F_OFD_SETLK. Handles exclude each other. */
	BELAY_OWNER_HANDLE,
	/* The handle, whole resource, in a world of its own: flock(2). */
	BELAY_OWNER_FLOCK,
	/* The node, whole resource; only names in lockspace "volumes". The lock stands for
	 * something that outlives processes, an active volume: closing the handle, or the end of
	 * the connection or of belayd, leaves it; only belay_unlock() ends it, by whatever
	 * process of the node, or a fence of the node. Handles of one node share it: who locks what
	 * the node has gets it at once, belay_get() tells of other nodes. */
	BELAY_OWNER_NODE,
};

struct belay_lock_holder {
	uint32_t node;		/* cluster node id */
	pid_t pid;		/* on that node */
	enum belay_lock_mode mode;
	uint64_t start, length;	/* length 0: to the end */
	enum belay_lock_owner owner;
};

/*
 * Connect to belayd. path: its socket, or NULL for $BELAY_SOCKET (if it is not empty) or else the
 * default /run/belay/belayd.sock.
 *   -ENOENT, -ECONNREFUSED  belayd does not run here
 *   -EACCES                 this user may not use it
 *   -ENAMETOOLONG           the path is too long for a socket
 *   -EPROTONOSUPPORT        library and belayd do not fit together
 *   -EUSERS                 belayd has as many clients as its limit allows
 *   -EAGAIN                 belayd does not serve yet: after a crash it first waits for
 *                           the processes that had locks to end, or to connect anew
 *   -ETIMEDOUT              belayd does not answer for 5 seconds: it hangs or is stopped
 */
int belay_connect(struct belay **ret_belay, const char *path);

/* End the connection: releases every lock. All handles must be closed. NULL is allowed. */
void belay_disconnect(struct belay *belay);

/*
 * Open the file behind descriptor fd as a resource. belayd derives its identity
 * from the descriptor, which may be closed afterwards (fcntl's rule that a
 * close drops locks does not apply to it). An exclusive lock later needs that fd was
 * open for writing, a shared one for reading; to BELAY_OWNER_FLOCK that is all the same.
 *   -EBADF    fd is not open         -EINVAL  not a regular file
 *   -ENOLCK   the file lies under no path that belay.conf assigns to a lockspace
 *   -EMFILE   limit of handles per client
 */
int belay_open_fd(struct belay *belay, int fd, enum belay_lock_owner owner,
		  struct belay_handle **ret_handle);

/*
 * Open a named lock (1 to 255 bytes, no NUL). lockspace NULL: "default". "volumes" is
 * root's, and never delegated: each lock there is a message to all nodes.
 *   -ENOENT  no such lockspace in belay.conf    -EACCES  this user may not use it
 *   -EINVAL  no such name                       -EMFILE  limit of handles per client
 *   -ETIMEDOUT  belayd does not answer for 5 seconds; the connection is lost
 */
int belay_open_name(struct belay *belay, const char *lockspace, const char *name,
		    enum belay_lock_owner owner, struct belay_handle **ret_handle);

/* Close: releases its owner's locks on the resource, if it was ever locked through this
 * handle. NULL is allowed. Waits for belayd; of a name for 5 seconds at most, then the connection is lost. */
void belay_handle_close(struct belay_handle *handle);

/*
 * Lock length bytes from start; waits as long as it takes. ret_token (may be
 * NULL) gets the fencing token: of two conflicting grants of one resource the
 * later one has the larger token.
 *   -EDEADLK  waiting would never end (PROCESS owners)
 *   -EBADF    handle not open for that mode
 *   -ENOLCK   a limit is reached
 *   -EIO      locks were lost: quorum or belayd is gone; reconnect to go on
 *   -EINVAL   no such range
 */
int belay_lock(struct belay_handle *handle, enum belay_lock_mode mode,
	       uint64_t start, uint64_t length, uint64_t *ret_token);

/*
 * The same, but -EAGAIN at once (one answer of the cluster) if another owner is in the way.
 *
 * This and belay_lock_timed() return later than that while the cluster cannot decide: no
 * quorum; corosync, or the belayd here or of another node, hangs or is stopped. A request that is
 * under way may have been granted: only the order of the cluster's messages says
 * whether it was, or was withdrawn first. Who cannot wait for that takes
 * belay_lock_start(), or ends: the end of the connection withdraws all.
 */
int belay_trylock(struct belay_handle *handle, enum belay_lock_mode mode,
		  uint64_t start, uint64_t length, uint64_t *ret_token);

/* The same, but -ETIMEDOUT after timeout_ms milliseconds of waiting; 0 only tries. */
int belay_lock_timed(struct belay_handle *handle, enum belay_lock_mode mode,
		     uint64_t start, uint64_t length, unsigned int timeout_ms,
		     uint64_t *ret_token);

/*
 * Release. Returns at once; never fails for what is not locked. -EIO as above, if belayd
 * has said so by then (under a cork: if that was read by then): 0 is no answer of belayd, and whoever
 * must know that he held the lock until here checks the token where he writes.
 */
int belay_unlock(struct belay_handle *handle, uint64_t start, uint64_t length);

/*
 * Would this lock conflict? 1: yes, and *ret_holder says with whom (the first
 * by start); 0: no; or a negative errno.
 */
int belay_get(struct belay_handle *handle, enum belay_lock_mode mode,
	      uint64_t start, uint64_t length, struct belay_lock_holder *ret_holder);

/*
 * For poll loops: start a lock without waiting for its answer. *ret_request
 * names it. When belay_fd() is readable, call belay_next() until it returns 0:
 * it returns 1 and an event for each answer, 0 when there is none for now (the
 * descriptor is level-triggered), or -EIO. One thread at a time. Blocking
 * calls of other threads may go on meanwhile.
 */
struct belay_event_info {
	uint32_t request;
	int result;		/* as belay_lock()'s */
	uint64_t token;
};
int belay_lock_start(struct belay_handle *handle, enum belay_lock_mode mode,
		     uint64_t start, uint64_t length, uint32_t *ret_request);
/* The same, but the answer is -EAGAIN at once, as belay_trylock()'s, if another owner is in the way. */
int belay_trylock_start(struct belay_handle *handle, enum belay_lock_mode mode,
			uint64_t start, uint64_t length, uint32_t *ret_request);
/* Withdraw it; its event still comes: 0 if the lock was granted first, else -EINTR. -ENOENT: no such request. */
int belay_lock_cancel(struct belay *belay, uint32_t request);
/* Becomes readable when belay_next() may have something. Do not read from it. */
int belay_fd(const struct belay *belay);
int belay_next(struct belay *belay, struct belay_event_info *ret_event);

/*
 * For those who do much at a time: between the two calls what need not leave
 * at once (unlocks, started locks, withdrawals) is collected, to leave in one
 * packet; at belay_uncork(), or with whatever waits for an answer. A cork
 * delays others' locks, so never wait or work under it.
 */
int belay_cork(struct belay *belay);
int belay_uncork(struct belay *belay);

/* This node's id. */
uint32_t belay_node(const struct belay *belay);

/*
 * Run an administrative command ("status", "locks", ...; see belay(1)) and get
 * its answer, JSON text, in *ret_text (free() it; NUL-terminated).
 * Besides the errors of the connection: -E2BIG, the command is too long; what the
 * command returns, with the reason as text in *ret_text if not NULL.
 */
int belay_command(struct belay *belay, const char *command, char **ret_text);

#ifdef __cplusplus
}
#endif
#endif
