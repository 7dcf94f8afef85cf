/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <qb/qblog.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Fields of the stat file behind the name: the start time is the 22nd of all. */
#define START_BEHIND_NAME 20

void record_name(const struct record *record, char ret_name[RECORD_NAME_MAX])
{
	(void)snprintf(ret_name, RECORD_NAME_MAX, "%d.%" PRIu64 ".%" PRIu32, (int)record->pid,
		       record->start, record->client);
}

/* Digits alone: no sign, no blanks, no leading zeros, so that a record has one name. */
static int get_number(const char **at, uint64_t max, uint64_t *ret_number)
{
	uint64_t number = 0;
	const char *p = *at;

	if (*p < '0' || *p > '9' || (p[0] == '0' && p[1] >= '0' && p[1] <= '9'))
		return -EINVAL;
	for (; *p >= '0' && *p <= '9'; p++) {
		uint64_t digit = (uint64_t)(*p - '0');

		if (number > (max - digit) / 10)
			return -EINVAL;
		number = 10 * number + digit;
	}
	*at = p;
	*ret_number = number;
	return 0;
}

int record_parse(const char *name, struct record *ret_record)
{
	static const uint64_t max[3] = { INT32_MAX, UINT64_MAX, UINT32_MAX };
	uint64_t part[3];

	for (unsigned i = 0; i < 3; i++)
		if ((i > 0 && *name++ != '.') || get_number(&name, max[i], &part[i]) < 0)
			return -EINVAL;
	if (*name != '\0')
		return -EINVAL;
	*ret_record = (struct record){
		.pid = (pid_t)part[0], .start = part[1], .client = (uint32_t)part[2],
	};
	return 0;
}

int record_parse_stat(const char *stat, uint64_t *ret_start)
{
	const char *at = strrchr(stat, ')');

	for (unsigned i = 0; at && i < START_BEHIND_NAME; i++) {
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	if (!at)
		return -EINVAL;
	return get_number(&at, UINT64_MAX, ret_start);
}

int record_start_time(pid_t pid, uint64_t *ret_start)
{
	char path[32], stat[1024];
	ssize_t size;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	size = read(fd, stat, sizeof(stat) - 1);
	/* It may end between the two calls. */
	if (size < 0) {
		int r = errno == ESRCH ? -ENOENT : -errno;

		close(fd);
		return r;
	}
	close(fd);
	stat[size] = '\0';
	return record_parse_stat(stat, ret_start);
}

int record_open(const char *socket_path, int *ret_dir)
{
	char path[128];
	struct stat st;
	int fd = -1, r = 0;

	(void)snprintf(path, sizeof(path), "%s.clients", socket_path);
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		r = -errno;
	if (r == 0) {
		fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = fd < 0 || fstat(fd, &st) < 0 ? -errno : 0;
	}
	/* Whoever else can write there could make this belayd wait, or make it not wait. */
	if (r == 0 && (st.st_uid != geteuid() || (st.st_mode & 0022) != 0))
		r = -EPERM;
	if (r < 0) {
		qb_log(LOG_ERR, "cannot keep records of clients in %s: %s. It must be a directory "
		       "that only belayd's user may write to", path, strerror(-r));
		if (fd >= 0)
			close(fd);
		return r;
	}
	*ret_dir = fd;
	return 0;
}

int record_put(int dir, pid_t pid, uint32_t client, struct record *ret_record)
{
	struct record record = { .pid = pid, .client = client };
	char name[RECORD_NAME_MAX];

	/* If /proc hides it, or it ends just now, the number alone will have to do. */
	if (pid > 0)
		(void)record_start_time(pid, &record.start);
	record_name(&record, name);
	/* A file without open() and close(). One of that name: of a life that is over, for the same process. */
	if (mknodat(dir, name, S_IFREG | 0600, 0) < 0 && errno != EEXIST)
		return -errno;
	*ret_record = record;
	return 0;
}

void record_remove(int dir, const struct record *record)
{
	char name[RECORD_NAME_MAX];

	record_name(record, name);
	if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
		qb_log(LOG_WARNING, "cannot remove the record %s: %s. The next belayd will wait for "
		       "that process", name, strerror(errno));
}
