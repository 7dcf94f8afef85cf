/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * toucher NAME MODE START BYTES TIMES [hold]: locks and unlocks, so many times, one
 * byte after another of a range of a named lock; MODE is r or w. With hold it then
 * keeps the last one, says so, and stays until its input ends.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/belay.h"

static void die(const char *what, int error)
{
	fprintf(stderr, "toucher: %s: %s\n", what, strerror(-error));
	exit(2);
}

static void touch(struct belay_handle *handle, enum belay_lock_mode mode, uint64_t at)
{
	int r = belay_lock(handle, mode, at, 1, NULL);

	if (r < 0)
		die("lock", r);
}

int main(int argc, char *argv[])
{
	enum belay_lock_mode mode = argc > 2 && argv[2][0] == 'r' ? BELAY_SHARED : BELAY_EXCLUSIVE;
	struct belay_handle *handle;
	struct belay *belay;
	uint64_t start, bytes, times, at = 0;
	int r;

	if (argc < 6) {
		fputs("usage: toucher NAME r|w START BYTES TIMES [hold]\n", stderr);
		return 2;
	}
	start = strtoull(argv[3], NULL, 10);
	bytes = strtoull(argv[4], NULL, 10);
	times = strtoull(argv[5], NULL, 10);
	r = belay_connect(&belay, NULL);
	if (r < 0)
		die("connect", r);
	r = belay_open_name(belay, NULL, argv[1], BELAY_OWNER_PROCESS, &handle);
	if (r < 0)
		die("open", r);
	for (uint64_t i = 0; i < times; i++) {
		at = start + i % bytes;
		touch(handle, mode, at);
		if (belay_unlock(handle, at, 1) < 0)
			die("unlock", -EIO);
	}
	if (argc > 6) {
		touch(handle, mode, at);
		puts("holds");
		fflush(stdout);
		while (getchar() != EOF)
			;
	}
	belay_handle_close(handle);
	belay_disconnect(belay);
	return 0;
}
