/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Walking over the pages of belayd's list of locks and waiters. */
#ifndef BELAY_TOOLS_LOCKS_H
#define BELAY_TOOLS_LOCKS_H

#include "tools/tool.h"

/* Called for each lock; false: enough. */
typedef bool (*locks_each)(void *context, struct json_object *lock);

/* 0, or the exit status. */
int locks_walk(const struct tool *tool, struct belay *belay, locks_each each, void *context);

#endif
