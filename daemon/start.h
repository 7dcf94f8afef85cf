/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What belayd and belay-lvmlockd do alike between main() and serving: configuration, log, background. */
#ifndef BELAY_DAEMON_START_H
#define BELAY_DAEMON_START_H

#include <stdbool.h>

#include "daemon/config.h"

/*
 * A file that was named must be there; without the default one (@path NULL) there are the defaults. 0, or
 * a negative errno, told on stderr.
 */
int start_load_config(const char *path, struct config *ret_config);

/*
 * The log of @program, a static text. Unless it goes to stderr anyway, warnings go there as well until start_say(): who
 * starts a daemon in a terminal reads what is wrong there.
 */
void start_open_log(const char *program, bool to_stderr, int level);

/*
 * The process that was started waits for the one that serves to say how its start went, so that
 * whoever started it learns that from the exit status; @failed: that of one that crashed.
 * Returns in the child, with the descriptor to say it to; or a negative errno.
 */
int start_in_background(const char *program, int failed, int *ret_ready_fd);
/*
 * @status, 0: it serves. From here on the terminal has nothing to do with it, also with what comes after a failed
 * start. @ready_fd negative: it is not in the background.
 */
void start_say(const char *program, int ready_fd, int status, bool to_stderr);

#endif
