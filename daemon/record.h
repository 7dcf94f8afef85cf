/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What must be known of clients when belayd is gone: which processes may go on
 * writing under locks that they believe to hold. Each client that has opened
 * something and may hold something (idle.h) has a record, an empty file in the
 * directory SOCKET.clients, whose name says it all: PID.STARTTIME.CLIENT. A process is
 * the same one only if it started at the same time; CLIENT tells apart the connections of one process.
 * The directory is on tmpfs, as the socket is: a new boot has no former clients.
 */
#ifndef BELAY_DAEMON_RECORD_H
#define BELAY_DAEMON_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct record {
	pid_t pid;		/* 0: in a pid namespace that cannot be seen from here */
	uint64_t start;		/* in ticks since the boot, field 22 of proc_pid_stat(5); 0: not known */
	uint32_t client;
};

#define RECORD_NAME_MAX 48

/* The file's name. */
void record_name(const struct record *record, char ret_name[RECORD_NAME_MAX]);
/* And back; -EINVAL: record_name() never made such a name. */
int record_parse(const char *name, struct record *ret_record);

/*
 * The start time out of the text of /proc/PID/stat, in which the process can
 * choose its second field as it likes, with blanks and brackets. -EINVAL.
 */
int record_parse_stat(const char *stat, uint64_t *ret_start);

/* Of the process that has this number now; negative errno, -ENOENT: there is none, or it is hidden. */
int record_start_time(pid_t pid, uint64_t *ret_start);

/*
 * Open the directory of records beside the socket; it is made if it is not
 * there. 0, or a negative errno, logged; -EPERM: it is another user's.
 */
int record_open(const char *socket_path, int *ret_dir);

/*
 * A record of a client: for as long as it exists, a belayd that starts waits
 * for the process. One system call on tmpfs, and reading /proc: neither waits
 * for a disk, so that the loop which serves may do it.
 */
int record_put(int dir, pid_t pid, uint32_t client, struct record *ret_record);
/* Its locks are released, or its process is known not to believe in them any more. */
void record_remove(int dir, const struct record *record);

#endif
