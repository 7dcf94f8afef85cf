/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Events and actions of the core as one line of text each: for the debug log
 * and for `belay replay`. Pure; the text is cut to fit and always terminated.
 */
#ifndef BELAY_DAEMON_TRACE_H
#define BELAY_DAEMON_TRACE_H

#include <stddef.h>

#include "core/core.h"

#define TRACE_TEXT_MAX 512u

void trace_event(char *buf, size_t size, const struct belay_event *event);
void trace_action(char *buf, size_t size, const struct belay_action *action);

const char *trace_mode(enum belay_mode mode);
const char *trace_kind(enum belay_kind kind);
const char *trace_state(enum belay_state state);
const char *trace_standing(enum belay_standing standing);

#endif
