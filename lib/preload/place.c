/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where this library is at work. `belay run` reads belay.conf and says it in
 * the environment: BELAY_PRELOAD_PATHS=/a:/b, BELAY_PRELOAD_ON_UNREACHABLE=fail|kernel.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/preload/preload.h"

unsigned place_parse(const char *list, struct place *place, bool *ret_wrong)
{
	unsigned count = 0;
	bool wrong = false;

	while (*list) {
		size_t size = strcspn(list, ":"), used = size;

		/* "/srv/" is "/srv"; of "/" nothing is left, and everything is below it. */
		while (used > 0 && list[used - 1] == '/')
			used--;
		if (size > 0 && (list[0] != '/' || count == PLACES_MAX)) {
			wrong = true;
		} else if (size > 0) {
			place[count].path = list;
			place[count++].size = used;
		}
		list += size;
		list += *list == ':';
	}
	*ret_wrong = wrong;
	return count;
}

bool place_match(const struct place *place, unsigned count, const char *path, size_t size)
{
	for (unsigned i = 0; i < count; i++)
		if (size > place[i].size && path[place[i].size] == '/' &&
		    memcmp(path, place[i].path, place[i].size) == 0)
			return true;
	return false;
}

static enum place_mode read_environment(void)
{
	const char *paths = secure_getenv("BELAY_PRELOAD_PATHS");
	const char *unreachable = secure_getenv("BELAY_PRELOAD_ON_UNREACHABLE");
	bool wrong;

	if (!paths) {
		say_once(ONCE_NO_PATHS, "libbelay-preload.so does nothing, for BELAY_PRELOAD_PATHS is not "
			 "set: locks of this process exclude nobody on other nodes. Use belay run");
		return PLACE_NONE;
	}
	preload.place_count = place_parse(paths, preload.place, &wrong);
	if (wrong)
		say_once(ONCE_BAD_PATH, "BELAY_PRELOAD_PATHS=%s is not a list of at most %d absolute "
			 "directories with colons between them: what is wrong is left out", paths, PLACES_MAX);
	preload.may_fall_back = unreachable && strcmp(unreachable, "kernel") == 0;
	return preload.place_count > 0 ? PLACE_BELAY : PLACE_NONE;
}

enum place_mode place_mode(void)
{
	int mode = atomic_load_explicit(&preload.mode, memory_order_acquire);

	if (mode != PLACE_UNREAD)
		return (enum place_mode)mode;
	/* From here on a fork() meets a mutex that may be locked. */
	link_live();
	pthread_mutex_lock(&preload.mutex);
	mode = atomic_load(&preload.mode);
	if (mode == PLACE_UNREAD) {
		mode = read_environment();
		atomic_store_explicit(&preload.mode, mode, memory_order_release);
	}
	pthread_mutex_unlock(&preload.mutex);
	return (enum place_mode)mode;
}

int place_has(int fd)
{
	char link[32], path[PATH_MAX];
	ssize_t size;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	size = readlink(link, path, sizeof(path));
	if (size < 0) {
		say_once(ONCE_NO_PROC, "%s cannot be read: %s. So it is not known which files to lock by "
			 "belayd, and no lock is given. Mount /proc", link, strerror(errno));
		return -ENOLCK;
	}
	return place_match(preload.place, preload.place_count, path, (size_t)size);
}
