/* SPDX-License-Identifier: GPL-2.0-or-later */
/* belay status: fetch, count what left nodes keep, print; again and again with --watch. */
#include "tools/status.h"

#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/locks.h"

/* Locks looked at to say what a left node keeps: enough to tell, not for ever. */
#define COUNTED_MAX 100000u

struct status_options {
	bool help, json, watch;
	unsigned int watch_ms;
};

static const struct option long_options[] = {
	{ "help", no_argument, NULL, 'h' },
	{ "json", no_argument, NULL, 'j' },
	{ "watch", optional_argument, NULL, 'w' },
	{ NULL, 0, NULL, 0 },
};

static int parse(const struct tool *tool, int argc, char **argv, struct status_options *o)
{
	int c;

	*o = (struct status_options){ .watch_ms = 2000 };
	while ((c = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
		switch (c) {
		case 'h': o->help = true; break;
		case 'j': o->json = true; break;
		case 'w':
			o->watch = true;
			/* "--watch 5" as well as "--watch=5". */
			if (!optarg && argv[optind] && parse_seconds(argv[optind], &o->watch_ms) == 0)
				optind++;
			else if (optarg && parse_seconds(optarg, &o->watch_ms) < 0)
				return tool_usage(tool, "--watch is a number of seconds, not \"%s\"", optarg);
			break;
		default: return tool_bad_option(tool, c, argv);
		}
	}
	if (!o->help && optind < argc)
		return tool_usage(tool, "too many arguments: \"%s\"", argv[optind]);
	if (o->watch && o->watch_ms < 100)
		return tool_usage(tool, "--watch is 0.1 seconds at least");
	return TOOL_OK;
}

/* ---- what left nodes keep ---- */

struct counting {
	struct status_view *view;
	struct json_object *kept[STATUS_LEFT_MAX];	/* keys that each of them holds or decides on */
	bool waiters;					/* second walk */
	unsigned seen;
};

static struct left_behind *left_of(struct status_view *view, uint64_t node, unsigned *ret_index)
{
	unsigned i;

	for (i = 0; i < view->left_count; i++)
		if (view->left[i].node == node) {
			*ret_index = i;
			return &view->left[i];
		}
	return NULL;
}

static void keep(struct counting *counting, uint64_t node, const char *key)
{
	unsigned i;

	if (left_of(counting->view, node, &i))
		json_object_object_add(counting->kept[i], key, json_object_new_boolean(true));
}

static bool count_lock(void *context, struct json_object *lock)
{
	struct counting *counting = context;
	struct status_view *view = counting->view;
	const char *key = json_text(lock, "key");
	struct left_behind *left;
	unsigned i;

	if (!counting->waiters) {
		left = left_of(view, json_u64(lock, "node"), &i);
		if (left && !json_true(lock, "waiting"))
			left->locks++;
		keep(counting, json_u64(lock, "node"), key);
		keep(counting, json_u64(lock, "owner_node"), key);
	} else if (json_true(lock, "waiting")) {
		for (i = 0; i < view->left_count; i++)
			if (json_u64(lock, "node") != view->left[i].node &&
			    json_object_object_get_ex(counting->kept[i], key, NULL))
				view->left[i].waiting++;
	}
	view->partly = ++counting->seen > COUNTED_MAX;
	return !view->partly;
}

static int count_left(const struct tool *tool, struct belay *belay, struct status_view *view)
{
	struct json_object *nodes = json_at(view->status, "nodes"), *node;
	struct counting counting = { .view = view };
	size_t i, count = json_count(view->status, "nodes");
	int status;

	for (i = 0; i < count && view->left_count < STATUS_LEFT_MAX; i++) {
		node = json_object_array_get_idx(nodes, i);
		if (strcmp(json_text(node, "standing"), "left") != 0)
			continue;
		counting.kept[view->left_count] = json_object_new_object();
		view->left[view->left_count++].node = json_u64(node, "node");
	}
	if (view->left_count == 0)
		return TOOL_OK;
	status = locks_walk(tool, belay, count_lock, &counting);
	counting.waiters = true;
	counting.seen = 0;
	if (status == TOOL_OK)
		status = locks_walk(tool, belay, count_lock, &counting);
	for (i = 0; i < view->left_count; i++)
		json_object_put(counting.kept[i]);
	return status;
}

/* ---- once, and again ---- */

static int show(const struct tool *tool, struct belay *belay, const struct status_options *o)
{
	struct status_view view = { 0 };
	int status = tool_query(tool, belay, "status", &view.status);

	if (status != TOOL_OK)
		return status;
	if (o->json) {
		printf("%s\n", json_object_to_json_string_ext(view.status, o->watch ?
			JSON_C_TO_STRING_PLAIN : JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED));
	} else {
		status = count_left(tool, belay, &view);
		if (o->watch && isatty(STDOUT_FILENO))
			printf("\033[H\033[2J");
		if (status == TOOL_OK)
			status_print(stdout, &view);
	}
	json_object_put(view.status);
	fflush(stdout);
	return status;
}

static int run(const struct tool *tool, int argc, char **argv)
{
	struct status_options o;
	struct timespec pause;
	struct belay *belay;
	int status = parse(tool, argc, argv, &o);

	if (status != TOOL_OK)
		return status;
	if (o.help)
		return tool_help(tool);
	status = tool_connect(tool, &belay);
	if (status != TOOL_OK)
		return status;
	pause = (struct timespec){ o.watch_ms / 1000, (long)(o.watch_ms % 1000) * 1000000 };
	status = show(tool, belay, &o);
	while (status == TOOL_OK && o.watch && !ferror(stdout)) {
		nanosleep(&pause, NULL);
		if (!o.json && !isatty(STDOUT_FILENO))
			printf("\n");
		status = show(tool, belay, &o);
	}
	belay_disconnect(belay);
	return status;
}

const struct subcommand command_status = {
	.name = "status",
	.summary = "how belayd and the cluster are, and what is wrong",
	.usage =
	"[--json] [--watch [SECONDS]]\n\n"
	"      --json             everything, for programs\n"
	"      --watch [SECONDS]  again and again, each 2 seconds if not said\n",
	.run = run,
};
