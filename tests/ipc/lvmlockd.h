/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The real belay-lvmlockd beside a belayd of the test's own, and clients that speak its protocol by hand. */
#ifndef BELAY_TESTS_IPC_LVMLOCKD_H
#define BELAY_TESTS_IPC_LVMLOCKD_H

#include "lvmlockd/message.h"
#include "tests/ipc/belayd.h"

#define LVMLOCKD_MARKER "1.0.0:standalone.belay"

struct lvmlockd_process {
	struct belayd belayd;
	/* Where lvm would look; what it writes down; what it said. */
	char socket[96], pid_file[96], volumes[96], log[96];
	char notify_path[96];
	int notify_fd;
	pid_t pid;		/* 0: not running */
};

/* A directory with a configuration: what both need, then @extra, in section [lvm]. Starts nothing. Bails out. */
void lvmlockd_prepare(struct lvmlockd_process *l, const char *extra);
/* Start it; does not wait. */
void lvmlockd_spawn(struct lvmlockd_process *l);
/* Wait until it tells the service manager of something like @text. False: it has ended, or hangs. */
bool lvmlockd_says(struct lvmlockd_process *l, const char *text);
/* All of it: belayd and it, serving. Bails out. */
void lvmlockd_start(struct lvmlockd_process *l, const char *extra);
/* Wait for its end: as belayd_wait(). */
int lvmlockd_wait(struct lvmlockd_process *l);
/* Is the text in its log? */
bool lvmlockd_logged(const struct lvmlockd_process *l, const char *text);
/* End both, and remove the directory; after a failure show the log. */
void lvmlockd_remove(struct lvmlockd_process *l);

/* A connection. Bails out. */
int lvm_connect(const struct lvmlockd_process *l);
/* Send one request, its end included. */
void lvm_send(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Take the answer. False: none within the patience, or the connection was closed. */
bool lvm_receive(int fd, struct message *ret_answer);
/* Is there no answer yet? Asked after a round trip of another connection, so that time need not pass. */
bool lvm_silent(int fd);
/* Both; the op_result, or -9999 if there is no such answer. */
int lvm_ask(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
