/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <getopt.h>
#include <string.h>

#include "tools/bench.h"

#define LOCKS_MAX 1000000u
#define THREADS_MAX 1024u
#define CLIENTS_MAX 4096u
#define BATCH_MAX 512u

const char *const bench_via_names[BENCH_VIA_COUNT] = {
	[BENCH_VIA_BELAY] = "belay",
	[BENCH_VIA_FCNTL] = "fcntl",
	[BENCH_VIA_OFD] = "ofd",
	[BENCH_VIA_FLOCK] = "flock",
};

enum {
	OPTION_VIA = 256,
	OPTION_NAME,
	OPTION_THREADS,
	OPTION_CLIENTS,
	OPTION_RANGES,
	OPTION_SECONDS,
	OPTION_WARMUP,
	OPTION_SHARED,
	OPTION_JSON,
	OPTION_CPG,
	OPTION_BATCH,
};

static const struct option long_options[] = {
	{ "batch", required_argument, NULL, OPTION_BATCH },
	{ "clients", required_argument, NULL, OPTION_CLIENTS },
	{ "cpg", no_argument, NULL, OPTION_CPG },
	{ "help", no_argument, NULL, 'h' },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "name", required_argument, NULL, OPTION_NAME },
	{ "ranges", required_argument, NULL, OPTION_RANGES },
	{ "seconds", required_argument, NULL, OPTION_SECONDS },
	{ "shared", no_argument, NULL, OPTION_SHARED },
	{ "threads", required_argument, NULL, OPTION_THREADS },
	{ "via", required_argument, NULL, OPTION_VIA },
	{ "warmup", required_argument, NULL, OPTION_WARMUP },
	{ NULL, 0, NULL, 0 },
};

static int parse_via(const struct tool *tool, struct bench_options *o)
{
	int via;

	for (via = 0; via < BENCH_VIA_COUNT; via++)
		if (strcmp(optarg, bench_via_names[via]) == 0) {
			o->via = (enum bench_via)via;
			return TOOL_OK;
		}
	return tool_usage(tool, "--via is belay, fcntl, ofd or flock, not \"%s\"", optarg);
}

static int parse_count(const struct tool *tool, const char *what, const char *text, unsigned max,
		       unsigned *ret_count)
{
	uint64_t number;

	if (parse_number(text, 1, max, &number) < 0)
		return tool_usage(tool, "%s is a number from 1 to %u, not \"%s\"", what, max, text);
	*ret_count = (unsigned)number;
	return TOOL_OK;
}

static int parse_time(const struct tool *tool, const char *what, unsigned *ret_ms)
{
	if (parse_seconds(optarg, ret_ms) < 0)
		return tool_usage(tool, "%s is a number of seconds, not \"%s\"", what, optarg);
	return TOOL_OK;
}

static int parse_option(const struct tool *tool, int c, char **argv, struct bench_options *o)
{
	switch (c) {
	case 'c': o->check = true; return TOOL_OK;
	case 'h': o->help = true; return TOOL_OK;
	case 'm': o->mmap = true; return TOOL_OK;
	case 'r': o->reads = true; return TOOL_OK;
	case 'w': o->writes = true; return TOOL_OK;
	case OPTION_CPG: o->cpg = true; return TOOL_OK;
	case OPTION_JSON: o->json = true; return TOOL_OK;
	case OPTION_NAME: o->name = optarg; return TOOL_OK;
	case OPTION_SHARED: o->shared = true; return TOOL_OK;
	case OPTION_VIA: return parse_via(tool, o);
	case OPTION_BATCH: return parse_count(tool, "--batch", optarg, BATCH_MAX, &o->batch);
	case OPTION_CLIENTS: return parse_count(tool, "--clients", optarg, CLIENTS_MAX, &o->clients);
	case OPTION_RANGES: return parse_count(tool, "--ranges", optarg, LOCKS_MAX, &o->ranges);
	case OPTION_THREADS: return parse_count(tool, "--threads", optarg, THREADS_MAX, &o->threads);
	case OPTION_SECONDS: return parse_time(tool, "--seconds", &o->ms);
	case OPTION_WARMUP: return parse_time(tool, "--warmup", &o->warmup_ms);
	default: return tool_bad_option(tool, c, argv);
	}
}

/* FILE N, or N with --name, or nothing where no byte is locked. */
static int parse_operands(const struct tool *tool, int argc, char **argv, struct bench_options *o)
{
	bool wants_file = !o->cpg && !o->name;
	bool wants_count = !o->cpg && o->clients == 0;

	if (wants_file) {
		if (argc == 0)
			return tool_usage(tool, "a FILE is missing, or --name");
		o->file = *argv++;
		argc--;
	}
	if (wants_count) {
		if (argc == 0)
			return tool_usage(tool, "N is missing: the number of locks, one more than nodes at least");
		if (parse_count(tool, "N", *argv++, LOCKS_MAX, &o->locks) != TOOL_OK)
			return TOOL_USAGE;
		argc--;
		if (o->threads > 1 && o->locks <= o->threads)
			return tool_usage(tool, "%u threads on %u locks would wait for each other for ever: "
					  "N must be larger", o->threads, o->locks);
	}
	if (argc > 0)
		return tool_usage(tool, "too many arguments: \"%s\"", *argv);
	return TOOL_OK;
}

static int check(const struct tool *tool, const struct bench_options *o)
{
	if (o->name && o->via != BENCH_VIA_BELAY)
		return tool_usage(tool, "--name is for --via belay: the kernel locks files only");
	if (o->name && (o->reads || o->writes || o->mmap))
		return tool_usage(tool, "-r, -w and -m want a FILE: a named lock has no data");
	if (o->mmap && !o->reads && !o->writes)
		return tool_usage(tool, "-m says how -r and -w work, and neither is there");
	if (o->shared && o->writes)
		return tool_usage(tool, "-w under shared locks would prove nothing");
	if (o->threads > 1 && o->via == BENCH_VIA_FCNTL)
		return tool_usage(tool, "threads of a process share fcntl(2)'s locks; use --via ofd");
	if (o->ranges > 0 && o->via == BENCH_VIA_FLOCK)
		return tool_usage(tool, "flock(2) knows no --ranges");
	if (o->clients > 0 && (!o->name || o->threads > 1 || o->ranges > 0 || o->check))
		return tool_usage(tool, "--clients goes with --name, and not with --threads, --ranges or -c");
	if (o->cpg && (o->name || o->clients > 0 || o->threads > 1 || o->ranges > 0))
		return tool_usage(tool, "--cpg measures corosync alone: no locks, no clients, no threads");
	if (o->batch > 0 && !o->cpg)
		return tool_usage(tool, "--batch goes with --cpg");
	return TOOL_OK;
}

int bench_parse(const struct tool *tool, int argc, char **argv, struct bench_options *ret_options)
{
	struct bench_options o = { .threads = 1 };
	int c, status;

	while ((c = getopt_long(argc, argv, ":chmrw", long_options, NULL)) != -1) {
		status = parse_option(tool, c, argv, &o);
		if (status != TOOL_OK)
			return status;
	}
	if (!o.help) {
		status = check(tool, &o);
		if (status == TOOL_OK)
			status = parse_operands(tool, argc - optind, argv + optind, &o);
		if (status != TOOL_OK)
			return status;
	}
	/* A program that reads the result wants one. */
	if (o.ms == 0 && (o.json || o.cpg))
		o.ms = 10000;
	*ret_options = o;
	return TOOL_OK;
}
