/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Clients that have done nothing for a while and hold nothing have no record
 * (record.h): a belayd that starts need not wait for a process that may sleep
 * for days before it calls again. The record is made anew before the next lock.
 */
#ifndef BELAY_DAEMON_IDLE_H
#define BELAY_DAEMON_IDLE_H

struct server;

/* Have idle_check() called now and then. 0, or a negative errno. */
int idle_start(struct server *s);
void idle_stop(struct server *s);

/* Drop the records of those who asked for nothing since the last call, and neither hold nor await anything. */
void idle_check(struct server *s);

#endif
