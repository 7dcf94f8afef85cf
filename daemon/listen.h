/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The listening socket: its directory, its permissions, what a former belayd left behind. */
#ifndef BELAY_DAEMON_LISTEN_H
#define BELAY_DAEMON_LISTEN_H

#include "daemon/config.h"

/*
 * Make sure that no other belayd uses this socket, for as long as *ret_fd
 * stays open. 0, or a negative errno, logged; -EBUSY: there is one.
 */
int listen_claim(const struct config *config, int *ret_fd);

/* Open the socket; listen_claim() must have succeeded. 0, or a negative errno, logged. */
int listen_open(const struct config *config, int *ret_fd);

/* And the end of it, of its file, too. */
void listen_close(const struct config *config, int fd);

/* Tell a connection that was accepted why it is not served, and close it. */
void listen_refuse(int fd, int error, const char *text);

/*
 * Before a socket is closed: read away what came, for otherwise the kernel
 * reports a broken connection to the client, and not what belayd had to say.
 */
void listen_drain(int fd);

#endif
