/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77		/* Linux 6.5 */
#endif

/*
 * The process that connected, not the one that now has its number: the kernel
 * knows from 6.5 on. Before, the number may have been given to another
 * process if the client died meanwhile; the closed socket tells that, too.
 */
static int pidfd_of(int socket_fd, pid_t pid)
{
	int fd = -1;
	socklen_t size = sizeof(fd);

	if (pid == 0)
		return -1;
	if (getsockopt(socket_fd, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) == 0)
		return fd;
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

static int read_groups(struct peer *peer, int socket_fd)
{
	socklen_t size = 0;
	gid_t *groups;

	if (getsockopt(socket_fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &size) == 0 || size == 0)
		return 0;
	if (errno != ERANGE)
		return -errno;
	groups = malloc(size);
	if (!groups)
		return -ENOMEM;
	if (getsockopt(socket_fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) < 0) {
		int r = -errno;

		free(groups);
		return r;
	}
	peer->groups = groups;
	peer->group_count = size / (socklen_t)sizeof(*groups);
	return 0;
}

int peer_open(struct peer *ret_peer, int socket_fd)
{
	struct ucred cred;
	socklen_t size = sizeof(cred);
	struct peer peer = { .pidfd = -1 };
	int r;

	if (getsockopt(socket_fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
		return -errno;
	peer.pid = cred.pid;
	peer.uid = cred.uid;
	peer.gid = cred.gid;
	r = read_groups(&peer, socket_fd);
	if (r < 0)
		return r;
	peer.pidfd = pidfd_of(socket_fd, cred.pid);
	*ret_peer = peer;
	return 0;
}

void peer_close(struct peer *peer)
{
	free(peer->groups);
	if (peer->pidfd >= 0)
		close(peer->pidfd);
}

static bool in_group(const struct peer *peer, gid_t group)
{
	if (peer->gid == group)
		return true;
	for (uint32_t i = 0; i < peer->group_count; i++)
		if (peer->groups[i] == group)
			return true;
	return false;
}

bool peer_is_admin(const struct peer *peer, gid_t group)
{
	return peer->uid == 0 || (group != (gid_t)-1 && in_group(peer, group));
}

unsigned peer_access(const struct peer *peer, uid_t owner, gid_t group, mode_t mode)
{
	if (peer->uid == 0)
		return 6;
	if (peer->uid == owner)
		return mode >> 6 & 6;
	if (in_group(peer, group))
		return mode >> 3 & 6;
	return mode & 6;
}
