/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Take many locks fast, and keep them: fill NAME RESOURCES RANGES FIRST WINDOW
 * locks RANGES single bytes, every other one from byte FIRST on, of each of
 * NAME.0, NAME.1, ..., asking for at most WINDOW at a time. It prints how many
 * when it has all, and keeps them until its input ends.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/belay.h"

static _Noreturn void die(const char *what, int error)
{
	fprintf(stderr, "fill: %s: %s\n", what, strerror(-error));
	exit(1);
}

/* Take the answers that are there; wait until fewer than @most are due. */
static void settle(struct belay *belay, unsigned *due, unsigned most)
{
	struct pollfd p = { .events = POLLIN };
	struct belay_event_info event;
	int r;

	p.fd = belay_fd(belay);
	for (;;) {
		while ((r = belay_next(belay, &event)) == 1) {
			if (event.result < 0)
				die("a lock", event.result);
			(*due)--;
		}
		if (r < 0)
			die("the connection", r);
		if (*due <= most)
			return;
		(void)poll(&p, 1, -1);
	}
}

int main(int argc, char **argv)
{
	struct belay *belay;
	struct belay_handle *handle;
	unsigned long resources, ranges, i, k;
	uint64_t first, taken = 0;
	unsigned due = 0, window;
	uint32_t request;
	char name[128], byte;
	int r;

	if (argc != 6) {
		fprintf(stderr, "usage: fill NAME RESOURCES RANGES FIRST WINDOW\n");
		return 2;
	}
	resources = strtoul(argv[2], NULL, 10);
	ranges = strtoul(argv[3], NULL, 10);
	first = strtoull(argv[4], NULL, 10);
	window = (unsigned)strtoul(argv[5], NULL, 10);
	r = belay_connect(&belay, NULL);
	if (r < 0)
		die("belayd", r);
	for (i = 0; i < resources; i++) {
		snprintf(name, sizeof(name), "%s.%lu", argv[1], i);
		r = belay_open_name(belay, NULL, name, BELAY_OWNER_HANDLE, &handle);
		if (r < 0)
			die(name, r);
		for (k = 0; k < ranges; k++) {
			settle(belay, &due, window - 1);
			r = belay_lock_start(handle, BELAY_EXCLUSIVE, first + 2 * k, 1, &request);
			if (r < 0)
				die(name, r);
			due++;
			taken++;
		}
	}
	settle(belay, &due, 0);
	printf("%" PRIu64 "\n", taken);
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
