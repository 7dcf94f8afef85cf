/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The real belayd, alone and in a directory of its own, for tests. Its
 * readiness comes by systemd's notification, so nothing has to be guessed or
 * waited for by time.
 */
#ifndef BELAY_TESTS_IPC_BELAYD_H
#define BELAY_TESTS_IPC_BELAYD_H

#include <stdbool.h>
#include <sys/types.h>

/* How long anything may take before it counts as hanging. */
#define PATIENCE_MS 20000

struct belayd {
	char dir[64];
	char conf[96], socket[96], journal[96], log[96];
	char notify_path[96];
	int notify_fd;
	pid_t pid;		/* 0: not running */
};

/* Make the directory and a configuration: what belayd needs, then @extra. Bails out. */
void belayd_prepare(struct belayd *d, const char *extra);

/* Start it; options beside those of the directory, NULL-terminated, or NULL. Does not wait. */
void belayd_spawn(struct belayd *d, const char *const *options);

/* Wait until it notifies the service manager of something like @text. False: it has ended, or hangs. */
bool belayd_says(struct belayd *d, const char *text);

/* Wait until it serves. */
bool belayd_ready(struct belayd *d);

/* All three; bails out if it does not serve. */
void belayd_start(struct belayd *d, const char *extra);

/* Wait for its end: the exit status, or 256 + the signal that ended it, or -1: it hangs. */
int belayd_wait(struct belayd *d);

/* SIGTERM, and belayd_wait(). */
int belayd_stop(struct belayd *d);

/* Is the text in its log? */
bool belayd_logged(const struct belayd *d, const char *text);
/* How many lines of its log have that text. */
unsigned belayd_log_lines(const struct belayd *d, const char *text);
/* Show the log as TAP diagnostics. */
void belayd_show_log(const struct belayd *d);

/* Descriptors it has open; -1: it does not run. */
int belayd_descriptors(const struct belayd *d);

/* End it if it runs (SIGKILL) and remove the directory. */
void belayd_remove(struct belayd *d);

#endif
