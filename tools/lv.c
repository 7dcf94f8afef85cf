/* SPDX-License-Identifier: GPL-2.0-or-later */
/* belay lv: logical volumes on all nodes, with one command. */
#include "tools/lv.h"

#include <string.h>
#include <unistd.h>

static void show_json(struct json_object *answer)
{
	printf("%s\n", json_object_to_json_string_ext(answer, JSON_C_TO_STRING_PRETTY |
						      JSON_C_TO_STRING_NOSLASHESCAPE));
}

static int show_status(const struct tool *tool, const struct lv_options *o, struct json_object *answer)
{
	unsigned wrong;

	lv_add_holders(tool, answer);
	wrong = lv_judge(answer);
	if (o->json)
		show_json(answer);
	else
		lv_show_status(stdout, answer);
	return wrong > 0 || json_true(answer, "op_result") ? TOOL_NO : TOOL_OK;
}

static int run(const struct tool *tool, int argc, char **argv)
{
	struct lv_progress progress = { .terminal = isatty(STDERR_FILENO) };
	struct lv_options o;
	struct json_object *answer;
	int status = lv_parse(tool, argc, argv, &o);

	if (status != TOOL_OK)
		return status;
	if (o.help)
		return tool_help(tool);
	progress.to = strcmp(o.verb, "status") == 0 ? NULL : stderr;
	status = lv_ask(tool, &o, &progress, &answer);
	if (status != TOOL_OK)
		return status;
	if (strcmp(o.verb, "status") == 0) {
		status = show_status(tool, &o, answer);
	} else {
		if (o.json)
			show_json(answer);
		else
			lv_show(stdout, answer);
		status = !json_true(answer, "op_result") && json_true(answer, "verified") ? TOOL_OK : TOOL_NO;
	}
	json_object_put(answer);
	return status;
}

const struct subcommand command_lv = {
	.name = "lv",
	.summary = "activate, deactivate, refresh LVs on any node; who has them",
	.usage =
	"activate VG[/LV] [--on NODE,...|--all] [--shared|--exclusive]\n"
	"                   [--timeout SECONDS] [--keep-partial] [--json]\n"
	"       belay lv deactivate|refresh VG[/LV] [--on NODE,...|--all] [--json]\n"
	"       belay lv status [VG[/LV]] [--json]\n\n"
	"Runs lvm on the nodes, then looks into their device-mapper: what is told to be done\n"
	"is done. Without --on and --all it is this node. Status is of all nodes: locks\n"
	"beside what is active, and what does not fit together.\n\n"
	"      --on NODE,...        nodes, by number or name\n"
	"      --all                all nodes where belay-lvmlockd runs\n"
	"      --exclusive          on one node, and no other; the default for one\n"
	"      --shared             on several at a time; the default for several\n"
	"      --timeout SECONDS    wait so long for other nodes to give the LV up\n"
	"      --keep-partial       if a node fails, do not deactivate on the others again\n"
	"      --json               for programs\n\n"
	"Exit status: 0 done and verified, or nothing wrong; 1 not.\n",
	.run = run,
};
