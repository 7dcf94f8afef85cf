/* SPDX-License-Identifier: GPL-2.0-or-later */
/* belay: the admin program. A table of subcommands, and the options before them. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tool.h"

static const struct subcommand *const commands[] = {
	&command_status, &command_locks, &command_lock, &command_lv, &command_run, &command_bench,
	&command_fence_ack, &command_dump, &command_replay,
};
#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static const struct option options[] = {
	{ "help", no_argument, NULL, 'h' },
	{ "socket", required_argument, NULL, 'S' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

static int help(void)
{
	size_t i;

	printf("Usage: belay [--socket PATH] SUBCOMMAND [OPTIONS]\n\n"
	       "Cluster-wide locks: look at them, take them, measure them.\n\n");
	for (i = 0; i < COMMAND_COUNT; i++)
		printf("  %-10s %s\n", commands[i]->name, commands[i]->summary);
	printf("\n"
	       "  --socket PATH   belayd's socket; else $BELAY_SOCKET, else\n"
	       "                  " BELAY_SOCKET_PATH "\n"
	       "  --version       print the version\n\n"
	       "belay SUBCOMMAND --help tells more, belay(1) everything.\n"
	       "Exit status: 0 yes, 1 no, 2 wrong usage, 3 belayd unreachable, 4 other failure,\n"
	       "5 not decided: the cluster could not say in time whether the lock is free.\n");
	return TOOL_OK;
}

static int usage(const char *what, const char *name)
{
	fprintf(stderr, "belay: %s%s\nbelay --help lists the subcommands.\n", what, name);
	return TOOL_USAGE;
}

static const struct subcommand *find(const char *name)
{
	size_t i;

	for (i = 0; i < COMMAND_COUNT; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}

static int run(struct tool *tool, int argc, char **argv)
{
	/* "belay help lock" is "belay lock --help". */
	bool wants_help = strcmp(argv[0], "help") == 0;
	int status;

	if (wants_help && argc == 1)
		return help();
	tool->command = find(argv[wants_help]);
	if (!tool->command)
		return usage("no such subcommand: ", argv[wants_help]);
	if (wants_help)
		return tool_help(tool);
	optind = 0;	/* glibc: begin anew, with these arguments */
	status = tool->command->run(tool, argc, argv);
	if (fflush(stdout) != 0 || ferror(stdout))
		status = status == TOOL_OK ? TOOL_FAILED : status;
	return status;
}

int main(int argc, char **argv)
{
	struct tool tool = { 0 };
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "+:hV", options, NULL)) != -1) {
		switch (c) {
		case 'h':
			return help();
		case 'V':
			printf("belay " PACKAGE_VERSION "\n");
			return TOOL_OK;
		case 'S':
			tool.socket = optarg;
			break;
		case ':':
			return usage("--socket wants a path", "");
		default:
			return usage("unknown option ", argv[optind - 1]);
		}
	}
	if (optind == argc)
		return usage("a subcommand is missing", "");
	return run(&tool, argc - optind, argv + optind);
}
