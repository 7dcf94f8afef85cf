/* SPDX-License-Identifier: GPL-2.0-or-later */
/* belay fence-ack: an operator swears that a node has stopped. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/tool.h"

static const struct option long_options[] = {
	{ "help", no_argument, NULL, 'h' },
	{ "yes", no_argument, NULL, 'y' },
	{ NULL, 0, NULL, 0 },
};

/* 0, or the exit status. */
static int confirm(const struct tool *tool, const char *node)
{
	char answer[16] = "";

	if (!isatty(STDIN_FILENO))
		return tool_usage(tool, "this needs a person who knows that the node is off, or --yes");
	printf("Node %s is gone from the cluster, but it may still be running and writing.\n"
	       "Its locks protect what it writes. If you go on, they are given to others at\n"
	       "once: if it does run, DATA ON SHARED STORAGE WILL BE CORRUPTED.\n\n"
	       "Go on only if you have seen that node %s is powered off, or cut off from all\n"
	       "shared storage, and cannot come back with what it was about to write.\n\n"
	       "Type yes to go on: ", node, node);
	fflush(stdout);
	if (!fgets(answer, sizeof(answer), stdin) || strcmp(answer, "yes\n") != 0) {
		printf("Nothing was done.\n");
		return TOOL_NO;
	}
	return TOOL_OK;
}

static int acknowledge(const struct tool *tool, const char *node)
{
	char command[128];
	struct json_object *answer;
	int status;

	snprintf(command, sizeof(command), "fence-ack %s", node);
	status = tool_ask(tool, command, &answer);
	if (status != TOOL_OK)
		return status;
	json_object_put(answer);
	printf("Node %s is taken for stopped; its locks are given back.\n", node);
	return TOOL_OK;
}

static int run(const struct tool *tool, int argc, char **argv)
{
	bool yes = false;
	int c, status;

	while ((c = getopt_long(argc, argv, ":hy", long_options, NULL)) != -1) {
		switch (c) {
		case 'h': return tool_help(tool);
		case 'y': yes = true; break;
		default: return tool_bad_option(tool, c, argv);
		}
	}
	if (argc - optind != 1)
		return tool_usage(tool, "one NODE is wanted: the id or the name of one that has left");
	if (!*argv[optind] || strpbrk(argv[optind], " \t\n"))
		return tool_usage(tool, "NODE is the id or the name of a node; belay status has them");
	if (!yes) {
		status = confirm(tool, argv[optind]);
		if (status != TOOL_OK)
			return status;
	}
	return acknowledge(tool, argv[optind]);
}

const struct subcommand command_fence_ack = {
	.name = "fence-ack",
	.summary = "swear that a node that left has stopped, so that its locks go on",
	.usage =
	"NODE [--yes]\n\n"
	"A node that left may still be writing, so its locks stay until it is fenced or\n"
	"somebody says that it has certainly stopped. Say so only if you have seen that it\n"
	"is powered off or cut off from all shared storage: said of a node that runs, it\n"
	"CORRUPTS DATA.\n\n"
	"  -y, --yes   do not ask\n",
	.run = run,
};
