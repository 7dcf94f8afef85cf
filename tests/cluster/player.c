/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * player FILE NAME BYTES SECONDS: ping-pong around so many bytes of a named lock, as
 * one of several players of one machine, on whatever nodes. FILE, which they share,
 * has two words for each byte: who is inside, and the last fencing token. Whoever gets
 * the lock must find nobody there and a smaller token, and must find itself when it goes.
 *
 * Prints how many locks it got; exit status 1: a lock was another's as well.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "include/belay.h"

struct cell {
	_Atomic uint64_t inside, token;
};

struct player {
	struct belay *belay;
	struct belay_handle *handle;
	struct cell *cells;
	uint64_t bytes, self, locks, violations;
};

static void die(const char *what, int error)
{
	fprintf(stderr, "player: %s: %s\n", what, strerror(-error));
	exit(2);
}

static void violation(struct player *p, uint64_t at, const char *what, uint64_t found)
{
	/* The first one tells; a storm of them would slow down what made it. */
	if (p->violations++ == 0)
		fprintf(stderr, "player of node %" PRIu64 ": byte %" PRIu64 ", lock %" PRIu64 ": %s %" PRIu64 "\n",
			p->self, at, p->locks, what, found);
}

static void enter(struct player *p, uint64_t at)
{
	uint64_t token, before;
	int r = belay_lock(p->handle, BELAY_EXCLUSIVE, at, 1, &token);

	if (r < 0)
		die("locking", r);
	p->locks++;
	before = atomic_exchange(&p->cells[at].inside, p->self);
	if (before != 0)
		violation(p, at, "inside is already the player of node", before);
	before = atomic_exchange(&p->cells[at].token, token);
	if (before >= token)
		violation(p, at, "a fencing token was already", before);
}

static void leave(struct player *p, uint64_t at)
{
	uint64_t before = atomic_exchange(&p->cells[at].inside, 0);
	int r;

	if (before != p->self)
		violation(p, at, "inside was meanwhile the player of node", before);
	r = belay_unlock(p->handle, at, 1);
	if (r < 0)
		die("unlocking", r);
}

static void open_all(struct player *p, const char *path, const char *name)
{
	size_t size = p->bytes * sizeof(struct cell);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), r;
	void *map;

	if (fd < 0 || ftruncate(fd, (off_t)size) < 0) {
		perror(path);
		exit(2);
	}
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (map == MAP_FAILED) {
		perror(path);
		exit(2);
	}
	p->cells = map;
	r = belay_connect(&p->belay, NULL);
	if (r < 0)
		die("connecting", r);
	p->self = belay_node(p->belay);
	r = belay_open_name(p->belay, "default", name, BELAY_OWNER_PROCESS, &p->handle);
	if (r < 0)
		die(name, r);
}

static uint64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void play(struct player *p, uint64_t ms)
{
	uint64_t end = now_ms() + ms, at = 0;

	enter(p, at);
	while (now_ms() < end) {
		uint64_t next = (at + 1) % p->bytes;

		enter(p, next);
		leave(p, at);
		at = next;
	}
	leave(p, at);
}

int main(int argc, char **argv)
{
	struct player p = { .bytes = 0 };

	if (argc != 5) {
		fprintf(stderr, "usage: player FILE NAME BYTES SECONDS\n");
		return 2;
	}
	p.bytes = strtoul(argv[3], NULL, 10);
	if (p.bytes < 2 || p.bytes > 1024) {
		fprintf(stderr, "player: BYTES must be from 2 to 1024\n");
		return 2;
	}
	open_all(&p, argv[1], argv[2]);
	play(&p, strtoul(argv[4], NULL, 10) * 1000);
	belay_handle_close(p.handle);
	belay_disconnect(p.belay);
	printf("%" PRIu64 "\n", p.locks);
	return p.violations > 0;
}
