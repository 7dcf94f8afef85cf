/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The clients of the belayd before. If that was killed, they may still write
 * under locks that they believe to hold: they learn otherwise at their next
 * call. The other nodes keep these locks until a belayd of this node joins
 * the group without state, which says that nobody here writes under them any
 * more. So it must not join before that is true.
 *
 * record.h has how former clients are known. One is done with when its process
 * has ended, or when that process connects anew, which shows that it knows its
 * old connection, and its locks with it, to be gone.
 */
#ifndef BELAY_DAEMON_FORMER_H
#define BELAY_DAEMON_FORMER_H

#include <stdint.h>

#include "daemon/config.h"

/* What came while belayd waited. */
struct former {
	int listen_fd;		/* listens already; -1: there was nothing to wait for */
	int *client;		/* connections of the awaited, accepted and not yet read from */
	uint32_t client_count;
};

/*
 * Wait until no former client is left, and say so in the log and to whoever
 * else connects. There is nothing to serve meanwhile: it blocks.
 *
 * @records is the directory, from record_open(). The caller has to take over
 * the listener and the connections. Negative errno, logged: -ECANCELED: told
 * to end by SIGTERM or SIGINT; the records of those still awaited are kept.
 */
int former_wait(const struct config *config, int records, struct former *ret_former);

/* Refuse and close what nobody has taken over: -1 and 0 mean that it was. */
void former_done(struct former *former, const struct config *config, const char *reason);

#endif
