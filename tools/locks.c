/* SPDX-License-Identifier: GPL-2.0-or-later */
/* belay locks: who holds what, and who waits for it. */
#include "tools/locks.h"

#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct listing {
	const char *pattern;		/* NULL: all */
	struct json_object *json;	/* --json: what is found */
	char *resource;			/* last one printed */
	uint64_t held, waiting, lent;
};

static const struct option long_options[] = {
	{ "help", no_argument, NULL, 'h' },
	{ "json", no_argument, NULL, 'j' },
	{ NULL, 0, NULL, 0 },
};

int locks_walk(const struct tool *tool, struct belay *belay, locks_each each, void *context)
{
	char command[96] = "locks";
	struct json_object *page, *locks, *next;
	bool go_on = true;
	size_t i, count;
	int status;

	do {
		status = tool_query(tool, belay, command, &page);
		if (status != TOOL_OK)
			return status;
		locks = json_at(page, "locks");
		count = json_count(page, "locks");
		for (i = 0; i < count && go_on; i++)
			go_on = each(context, json_object_array_get_idx(locks, i));
		next = json_at(page, "next");
		go_on = go_on && next;
		snprintf(command, sizeof(command), "locks %s", json_text(page, "next"));
		json_object_put(page);
	} while (go_on);
	return TOOL_OK;
}

/* "lockspace:name", or what is known of it. The caller's to free(). */
static char *resource_of(struct json_object *lock)
{
	const char *lockspace = json_text(lock, "lockspace"), *name = json_text(lock, "name");
	char *text = NULL;
	int n;

	if (*name == '/')
		n = asprintf(&text, "%s", name);
	else if (*lockspace)
		n = asprintf(&text, "%s:%s", lockspace, *name ? name : json_text(lock, "key"));
	else
		n = asprintf(&text, "%" PRIu64 ":%s", json_u64(lock, "lockspace_number"),
			     *name ? name : json_text(lock, "key"));
	return n < 0 ? NULL : text;
}

static void print_range(struct json_object *lock)
{
	char text[48];
	uint64_t start = json_u64(lock, "start");

	if (json_at(lock, "end"))
		snprintf(text, sizeof(text), "%" PRIu64 "-%" PRIu64, start, json_u64(lock, "end"));
	else if (start == 0)
		snprintf(text, sizeof(text), "all");
	else
		snprintf(text, sizeof(text), "%" PRIu64 "-", start);
	printf("%-24s", text);
}

static void print_lock(struct listing *listing, struct json_object *lock, char *resource)
{
	const char *state = json_text(lock, "state");

	if (!listing->resource || strcmp(listing->resource, resource) != 0) {
		printf("%s%s (%s", listing->resource ? "\n" : "", resource, state);
		if (json_at(lock, "owner_node"))
			printf(" by node %" PRIu64, json_u64(lock, "owner_node"));
		printf(")\n");
		free(listing->resource);
		listing->resource = strdup(resource);
	}
	printf("  %-7s %s ", json_true(lock, "lent") ? "lent" : json_true(lock, "waiting") ? "waits" : "holds",
	       json_text(lock, "mode"));
	print_range(lock);
	printf(" node %" PRIu64, json_u64(lock, "node"));
	/* A lock of the node itself is no process's. */
	if (strcmp(json_text(lock, "kind"), "node") != 0)
		printf(" pid %" PRIu64, json_u64(lock, "pid"));
	if (json_at(lock, "kind"))
		printf(" %s", json_text(lock, "kind"));
	printf("\n");
}

static bool on_lock(void *context, struct json_object *lock)
{
	struct listing *listing = context;
	char *resource = resource_of(lock);

	if (!resource)
		return false;
	if (!listing->pattern || fnmatch(listing->pattern, resource, 0) == 0 ||
	    fnmatch(listing->pattern, json_text(lock, "name"), 0) == 0) {
		if (listing->json)
			json_object_array_add(listing->json, json_object_get(lock));
		else
			print_lock(listing, lock, resource);
		if (json_true(lock, "lent"))
			listing->lent++;
		else if (json_true(lock, "waiting"))
			listing->waiting++;
		else
			listing->held++;
	}
	free(resource);
	return true;
}

static void print_sum(const struct listing *listing)
{
	printf("%s%" PRIu64 " held, %" PRIu64 " waiting", listing->resource ? "\n" : "", listing->held,
	       listing->waiting);
	if (listing->lent > 0)
		printf(", %" PRIu64 " lent", listing->lent);
	printf("\n");
}

static int list(const struct tool *tool, struct listing *listing)
{
	struct belay *belay;
	int status = tool_connect(tool, &belay);

	if (status != TOOL_OK)
		return status;
	status = locks_walk(tool, belay, on_lock, listing);
	belay_disconnect(belay);
	if (status != TOOL_OK)
		return status;
	if (listing->json)
		printf("%s\n", json_object_to_json_string_ext(listing->json, JSON_C_TO_STRING_PRETTY));
	else
		print_sum(listing);
	return TOOL_OK;
}

static int run(const struct tool *tool, int argc, char **argv)
{
	struct listing listing = { 0 };
	bool json = false;
	int c, status;

	while ((c = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
		switch (c) {
		case 'h': return tool_help(tool);
		case 'j': json = true; break;
		default: return tool_bad_option(tool, c, argv);
		}
	}
	if (argc - optind > 1)
		return tool_usage(tool, "one PATTERN at most (quote it, or the shell expands it)");
	listing.pattern = argv[optind];
	if (json)
		listing.json = json_object_new_array();
	status = list(tool, &listing);
	free(listing.resource);
	json_object_put(listing.json);
	return status;
}

const struct subcommand command_locks = {
	.name = "locks",
	.summary = "list who holds locks and who waits",
	.usage =
	"[--json] [PATTERN]\n\n"
	"Lists what this node knows: all locks of resources that nodes share, and its own.\n"
	"What another node owns alone, that node shows. PATTERN, as in a shell, is of paths,\n"
	"of names, or of LOCKSPACE:NAME. What is lent to a client that client locks by\n"
	"itself: only it knows what it holds there.\n\n"
	"      --json   for programs\n",
	.run = run,
};
