/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lvmlockd/process.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Which field of /proc/PID/stat behind the name, that may hold anything, is the start time: see proc(5). */
#define START_FIELD 20

static bool start_of(pid_t pid, uint64_t *ret_start)
{
	char path[64], text[1024], *at;
	size_t size;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	size = fread(text, 1, sizeof(text) - 1, file);
	(void)fclose(file);
	text[size] = '\0';
	at = strrchr(text, ')');
	for (unsigned i = 0; at && i < START_FIELD; i++)
		at = strchr(at + 1, ' ');
	if (!at)
		return false;
	*ret_start = strtoull(at, NULL, 10);
	return true;
}

void process_name(pid_t pid, char ret_name[PROCESS_NAME_MAX + 1])
{
	uint64_t start;

	ret_name[0] = '\0';
	if (pid > 0 && start_of(pid, &start))
		(void)snprintf(ret_name, PROCESS_NAME_MAX + 1, "%d:%" PRIu64, (int)pid, start);
}

bool process_lives(const char *name)
{
	char now[PROCESS_NAME_MAX + 1];

	if (name[0] == '\0')
		return false;
	process_name((pid_t)atoi(name), now);
	return strcmp(now, name) == 0;
}
