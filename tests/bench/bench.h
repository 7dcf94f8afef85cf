/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the programs that measure locks have in common. */
#ifndef BELAY_TESTS_BENCH_BENCH_H
#define BELAY_TESTS_BENCH_BENCH_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "include/belay.h"

#define ROUNDS_MAX 64u

static inline uint64_t bench_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* @error: a negative errno, or 0. */
_Noreturn static inline void bench_die(const char *what, int error)
{
	fprintf(stderr, "bench: %s%s%s\n", what, error ? ": " : "", error ? strerror(-error) : "");
	exit(1);
}

static inline void bench_check(const char *what, int r)
{
	if (r < 0)
		bench_die(what, r);
}

static inline uint64_t bench_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state >> 16;
}

static inline int bench_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The value below which @permille of them lie. Sorts them. */
static inline double bench_permille(double *value, unsigned count, unsigned permille)
{
	qsort(value, count, sizeof(*value), bench_compare);
	return count == 0 ? 0 : value[(uint64_t)(count - 1) * permille / 1000];
}

/* A line for tests/bench/run: a figure, measured so many times. */
static inline void bench_print(const char *key, const double *value, unsigned count)
{
	printf("%s", key);
	for (unsigned i = 0; i < count; i++)
		printf(" %.6g", value[i]);
	printf("\n");
	fflush(stdout);
}

static inline int bench_fcntl(int fd, int command, short type, uint64_t start, uint64_t length)
{
	struct flock lock = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)start, .l_len = (off_t)length,
	};

	return fcntl(fd, command, &lock) < 0 ? -errno : 0;
}

#endif
