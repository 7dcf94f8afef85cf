/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who is at the other end of a client's socket, as the kernel says. */
#ifndef BELAY_DAEMON_PEER_H
#define BELAY_DAEMON_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct peer {
	pid_t pid;		/* 0: not visible from here (another pid namespace) */
	uid_t uid;
	gid_t gid;
	gid_t *groups;		/* supplementary */
	uint32_t group_count;
	int pidfd;		/* readable once the process has ended; -1: not known */
};

/* 0, or a negative errno: then nothing has to be closed. */
int peer_open(struct peer *ret_peer, int socket_fd);
void peer_close(struct peer *peer);

/* Is it root, or in that group? */
bool peer_is_admin(const struct peer *peer, gid_t group);

/*
 * What a file with this owner, group and mode would let it do: a mask of 4
 * (read) and 2 (write). Root may do all.
 */
unsigned peer_access(const struct peer *peer, uid_t owner, gid_t group, mode_t mode);

#endif
