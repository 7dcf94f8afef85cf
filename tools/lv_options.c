/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <getopt.h>
#include <string.h>

#include "tools/lv.h"

static const struct option long_options[] = {
	{ "all", no_argument, NULL, 'a' },
	{ "exclusive", no_argument, NULL, 'x' },
	{ "help", no_argument, NULL, 'h' },
	{ "json", no_argument, NULL, 'j' },
	{ "keep-partial", no_argument, NULL, 'k' },
	{ "on", required_argument, NULL, 'o' },
	{ "shared", no_argument, NULL, 's' },
	{ "timeout", required_argument, NULL, 't' },
	{ NULL, 0, NULL, 0 },
};

static bool is(const struct lv_options *o, const char *verb)
{
	return strcmp(o->verb, verb) == 0;
}

/* "vg", "vg/lv" or "/dev/vg/lv". */
static int parse_target(const struct tool *tool, const char *text, struct lv_options *o)
{
	const char *name = strncmp(text, "/dev/", 5) == 0 ? text + 5 : text, *slash = strchr(name, '/');
	size_t size = slash ? (size_t)(slash - name) : strlen(name);

	if (size == 0 || size >= sizeof(o->vg) || (slash && (!slash[1] || strchr(slash + 1, '/') ||
							     strlen(slash + 1) >= sizeof(o->lv))))
		return tool_usage(tool, "\"%s\" is neither VG nor VG/LV", text);
	memcpy(o->vg, name, size);
	if (slash)
		strcpy(o->lv, slash + 1);
	return TOOL_OK;
}

static int check(const struct tool *tool, const struct lv_options *o)
{
	if (o->all && o->on)
		return tool_usage(tool, "--all and --on exclude each other");
	if (o->shared && o->exclusive)
		return tool_usage(tool, "--shared and --exclusive exclude each other");
	if (o->exclusive && (o->all || (o->on && strchr(o->on, ','))))
		return tool_usage(tool, "--exclusive is for one node");
	if (is(o, "status") && (o->all || o->on))
		return tool_usage(tool, "status is always of all nodes");
	if (!is(o, "activate") && (o->shared || o->exclusive || o->timeout_ms > 0 || o->keep_partial))
		return tool_usage(tool, "--shared, --exclusive, --timeout and --keep-partial are for activate");
	if (!is(o, "status") && o->vg[0] == '\0')
		return tool_usage(tool, "VG or VG/LV is missing");
	return TOOL_OK;
}

static int parse_verb(const struct tool *tool, const char *verb, struct lv_options *o)
{
	static const char *const verbs[] = { "activate", "deactivate", "refresh", "status" };

	for (size_t i = 0; verb && i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strcmp(verb, verbs[i]) == 0) {
			o->verb = verbs[i];
			return TOOL_OK;
		}
	if (!verb)
		return tool_usage(tool, "activate, deactivate, refresh or status is missing");
	return tool_usage(tool, "\"%s\" is neither activate, deactivate, refresh nor status", verb);
}

int lv_parse(const struct tool *tool, int argc, char **argv, struct lv_options *ret_options)
{
	struct lv_options o = { .verb = "" };
	int c, status;

	while ((c = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
		switch (c) {
		case 'h': o.help = true; break;
		case 'j': o.json = true; break;
		case 'a': o.all = true; break;
		case 's': o.shared = true; break;
		case 'x': o.exclusive = true; break;
		case 'k': o.keep_partial = true; break;
		case 'o': o.on = optarg; break;
		case 't':
			if (parse_seconds(optarg, &o.timeout_ms) < 0)
				return tool_usage(tool, "--timeout is a number of seconds, not \"%s\"", optarg);
			break;
		default: return tool_bad_option(tool, c, argv);
		}
	}
	if (!o.help) {
		status = parse_verb(tool, argv[optind], &o);
		if (status == TOOL_OK && optind + 1 < argc)
			status = parse_target(tool, argv[optind + 1], &o);
		if (status == TOOL_OK && optind + 2 < argc)
			status = tool_usage(tool, "too many arguments: \"%s\"", argv[optind + 2]);
		if (status == TOOL_OK)
			status = check(tool, &o);
		if (status != TOOL_OK)
			return status;
	}
	*ret_options = o;
	return TOOL_OK;
}
