/* SPDX-License-Identifier: GPL-2.0-or-later */
/* systemd's notification protocol, sd_notify(3), without its library: one datagram. */
#ifndef BELAY_DAEMON_NOTIFY_H
#define BELAY_DAEMON_NOTIFY_H

/* Tell the service manager, if there is one: "READY=1", "STOPPING=1", "STATUS=...". */
void notify(const char *state);

#endif
