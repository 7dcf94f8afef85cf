/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * belay bench: the ping-pong of byte-range locks that Samba's people made
 * known, through belay or through the kernel, and other loads beside it.
 */
#ifndef BELAY_TOOLS_BENCH_H
#define BELAY_TOOLS_BENCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "tools/latency.h"
#include "tools/tool.h"

enum bench_via {
	BENCH_VIA_BELAY,
	BENCH_VIA_FCNTL,
	BENCH_VIA_OFD,
	BENCH_VIA_FLOCK,
	BENCH_VIA_COUNT
};

struct bench_options {
	bool help, json;
	bool reads, writes, mmap, check;
	bool shared;
	bool cpg;
	enum bench_via via;
	const char *file;	/* or: */
	const char *name;
	unsigned locks;		/* N of ping-pong */
	unsigned threads;
	unsigned clients;	/* 0: ping-pong */
	unsigned ranges;	/* held beside */
	unsigned batch;		/* --cpg: operations a message */
	unsigned ms;		/* 0: until interrupted */
	unsigned warmup_ms;
};

extern const char *const bench_via_names[BENCH_VIA_COUNT];

/* bench_options.c: 0, or the exit status. */
int bench_parse(const struct tool *tool, int argc, char **argv, struct bench_options *ret_options);

/*
 * What all threads share. The main thread keeps time: it says stop, and when
 * it moves the round on, the warm-up is over and figures begin anew.
 */
struct bench {
	const struct tool *tool;
	const struct bench_options *o;
	struct belay *belay;		/* via belay */
	int file;			/* -1: a named lock */
	unsigned char *map;		/* -m */
	atomic_bool stop;
	atomic_uint round;
	unsigned increment;		/* of the data, as the first thread saw it last */
};

/* One thread's side. */
struct lane {
	struct bench *bench;
	pthread_t thread;
	const struct via_ops *via;
	struct belay_handle *handle;
	int *fd;			/* of the kernel's locks */
	unsigned fd_count;
	unsigned char *seen;		/* last value of each byte */
	unsigned round;
	atomic_uint_fast64_t count;	/* cycles: a lock and an unlock */
	struct latency latency;
	int error;			/* negative errno; it has stopped */
	const char *error_what;
};

/* bench_via.c: ways to lock byte @at. 0 or a negative errno. */
struct via_ops {
	int (*open)(struct lane *lane);
	int (*lock)(struct lane *lane, uint64_t at);
	int (*unlock)(struct lane *lane, uint64_t at);
	/* Would byte @at conflict, though this lane holds it? 1 if so. */
	int (*check)(struct lane *lane, uint64_t at);
	void (*close)(struct lane *lane);
};
extern const struct via_ops bench_vias[BENCH_VIA_COUNT];

/* What a run has shown. */
struct bench_result {
	double seconds;
	uint64_t cycles;
	unsigned increment;
	struct latency latency;
	uint64_t messages, operations;	/* that this node sent, by belayd's count */
	bool counted;
};

/* bench_pingpong.c, bench_clients.c: run until the time is over or a signal comes. 0, or the exit status. */
int bench_pingpong(struct bench *bench, struct bench_result *ret_result);
int bench_clients(struct bench *bench, struct bench_result *ret_result);

/* bench.c: the once-a-second line, and the counters of belayd. */
void bench_tell(const struct bench *bench, uint64_t cycles, double seconds);
void bench_count(const struct bench *bench, int sign, struct bench_result *result);

static inline uint64_t bench_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

#endif
