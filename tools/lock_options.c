/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <getopt.h>
#include <string.h>

#include "tools/lock.h"

static const struct option long_options[] = {
	{ "command", required_argument, NULL, 'c' },
	{ "conflict-exit-code", required_argument, NULL, 'E' },
	{ "exclusive", no_argument, NULL, 'x' },
	{ "fcntl", no_argument, NULL, 'P' },
	{ "file", no_argument, NULL, 'F' },
	{ "help", no_argument, NULL, 'h' },
	{ "name", no_argument, NULL, 'N' },
	{ "nonblock", no_argument, NULL, 'n' },
	{ "on-loss", required_argument, NULL, 'L' },
	{ "shared", no_argument, NULL, 's' },
	{ "wait", required_argument, NULL, 'w' },
	{ NULL, 0, NULL, 0 },
};

static int parse_loss(const struct tool *tool, struct lock_options *o)
{
	static const char *const losses[] = {
		[LOCK_LOSS_TERM] = "term", [LOCK_LOSS_KILL] = "kill", [LOCK_LOSS_WARN] = "warn",
	};
	size_t i;

	for (i = 0; i < sizeof(losses) / sizeof(losses[0]); i++)
		if (strcmp(optarg, losses[i]) == 0) {
			o->loss = (enum lock_loss)i;
			return TOOL_OK;
		}
	return tool_usage(tool, "--on-loss is term, kill or warn, not \"%s\"", optarg);
}

static int parse_option(const struct tool *tool, int c, char **argv, struct lock_options *o)
{
	uint64_t number;

	switch (c) {
	case 'c': o->shell = optarg; return TOOL_OK;
	case 'F': o->by = LOCK_BY_FILE; return TOOL_OK;
	case 'h': o->help = true; return TOOL_OK;
	case 'L': return parse_loss(tool, o);
	case 'N': o->by = LOCK_BY_NAME; return TOOL_OK;
	case 'n': o->try = true; return TOOL_OK;
	case 'P': o->fcntl = true; return TOOL_OK;
	case 's': o->shared = true; return TOOL_OK;
	case 'x': o->shared = false; return TOOL_OK;
	case 'E':
		if (parse_number(optarg, 0, 255, &number) < 0)
			return tool_usage(tool, "-E is an exit status from 0 to 255, not \"%s\"", optarg);
		o->busy_status = (int)number;
		return TOOL_OK;
	case 'w':
		if (parse_seconds(optarg, &o->wait_ms) < 0)
			return tool_usage(tool, "-w is a number of seconds, not \"%s\"", optarg);
		o->timed = true;
		return TOOL_OK;
	default:
		return tool_bad_option(tool, c, argv);
	}
}

/* Options up to the first word that is none, or behind "--". */
static int parse_options(const struct tool *tool, int argc, char **argv, struct lock_options *o)
{
	int c, status;

	while ((c = getopt_long(argc, argv, "+:c:E:hnsw:x", long_options, NULL)) != -1) {
		status = parse_option(tool, c, argv, o);
		if (status != TOOL_OK)
			return status;
	}
	return TOOL_OK;
}

static int check(const struct tool *tool, const struct lock_options *o)
{
	if (!o->resource)
		return tool_usage(tool, "a RESOURCE is missing: a file, or the name of a lock");
	if (!*o->resource)
		return tool_usage(tool, "RESOURCE is empty");
	if (!*o->command && !o->shell)
		return tool_usage(tool, "a COMMAND is missing: the lock is held as long as one runs");
	if (*o->command && o->shell)
		return tool_usage(tool, "-c and a COMMAND exclude each other");
	if (o->try && o->timed)
		return tool_usage(tool, "-n and -w exclude each other");
	if (o->fcntl && o->by == LOCK_BY_NAME)
		return tool_usage(tool, "--fcntl is for files");
	return TOOL_OK;
}

int lock_parse(const struct tool *tool, int argc, char **argv, struct lock_options *ret_options)
{
	struct lock_options o = { .busy_status = TOOL_NO };
	int status = parse_options(tool, argc, argv, &o);

	/* Options may stand before and behind RESOURCE; what follows is the command's. */
	if (status == TOOL_OK && optind < argc) {
		o.resource = argv[optind++];
		if (strcmp(argv[optind - 2], "--") != 0)
			status = parse_options(tool, argc, argv, &o);
	}
	o.command = argv + optind;
	if (status == TOOL_OK && !o.help)
		status = check(tool, &o);
	if (status == TOOL_OK)
		*ret_options = o;
	return status;
}
