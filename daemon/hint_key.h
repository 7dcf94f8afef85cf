/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The secret under which nodes send each other hints. */
#ifndef BELAY_DAEMON_HINT_KEY_H
#define BELAY_DAEMON_HINT_KEY_H

#include <stdint.h>

#include "daemon/config.h"
#include "daemon/group.h"

#define HINT_KEY_SIZE 16u
/* Of the file: less can be guessed, more is some other file. */
#define HINT_KEY_FILE_MIN 16u
#define HINT_KEY_FILE_MAX 4096u

/*
 * The key that the file at @path and the group's name give; doc/protocol.md says how. 0,
 * or a negative errno with *ret_why a static text: what is wrong and what to do.
 */
int hint_key_load(const char *path, const char *group, uint8_t ret_key[HINT_KEY_SIZE],
		  const char **ret_why);

/*
 * Which file it is: that of belay.conf, else corosync's if corosync encrypts. NULL: neither, and
 * there is no secret.
 */
const char *hint_key_path(const struct config *config, const struct group_info *info);

#endif
