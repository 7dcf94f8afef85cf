/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The memory that one client shares with belayd, see slot/slot.h: a memfd whose
 * size is sealed, so that no access of belayd's can fail. Heads and cells are
 * mapped; logs are read and written by system calls, which allocate nothing where the
 * client has left holes.
 *
 * When belayd ends, the kernel writes so into each of these memories: they are on
 * the list of robust futexes of belayd's thread (set_robust_list(2)).
 */
#ifndef BELAY_DAEMON_SHARE_H
#define BELAY_DAEMON_SHARE_H

#include <linux/futex.h>

#include "slot/slot.h"
#include "wire/client.h"

struct share;

/* Of the thread that makes them: its list of robust futexes. It must not move. */
struct shares {
	struct robust_list_head head, *former;
	size_t former_size;
	uint32_t count;
};
/* The kernel follows such a list to 2048 entries: who came after would not learn of belayd's end. */
#define SHARES_MAX 2000u
/* For the calling thread, which must make and free all shares. */
void shares_init(struct shares *shares);
void shares_done(struct shares *shares);

/* 0; -EUSERS: there are SHARES_MAX; or what memfd_create() and mmap() say. */
int share_new(struct shares *shares, struct share **ret_share);
/* Says that belayd has ended, for it has to this client. NULL is allowed. */
void share_free(struct share *share);

/* For the client; stays the share's. */
int share_descriptor(const struct share *share);

/* ---- slots, from 0 on ---- */

struct slot_head *share_head(const struct share *share, uint32_t slot);

/* Write the first entries of the half that a new loan begins with. 0, or a negative errno. */
int share_write(const struct share *share, uint32_t slot, const struct slot_entry *entries,
		uint32_t count);

/*
 * Read what the word counts to where it stands in a log of two halves, @ret_log.
 * 0; -EBADMSG: more than there can be; else what pread() says.
 */
int share_read(const struct share *share, uint32_t slot, uint64_t word, struct slot_entry *ret_log);

/* The slot's loan is over and known to be: give its pages back if there are many. */
void share_trim(const struct share *share, uint32_t slot);

/* ---- cells, numbered from 1 on ---- */

/* An answer will be put there. -EINVAL: there is no such cell; -EBUSY: one is awaited there already. */
int share_cell_take(struct share *share, uint32_t cell);
/* Write the answer. It is not seen before share_cells_publish(). */
void share_cell_put(struct share *share, uint32_t cell, const struct client_message *m);
/* Show all answers that were put, and wake who sleeps. */
void share_cells_publish(struct share *share);
/* Wake all that sleep, without an answer: the connection has ended. */
void share_cells_wake(const struct share *share);

#endif
