/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <string.h>

#include "tools/lv.h"

/* Of each node's LVs only those are listed that there is something to say of, but of a few. */
#define LISTED_MAX 4u

static const char *past(const char *verb)
{
	return strcmp(verb, "activate") == 0 ? "activated" : strcmp(verb, "deactivate") == 0 ? "deactivated" :
	       "refreshed";
}

static struct json_object *at_node(struct json_object *lv, uint64_t node)
{
	struct json_object *nodes = json_at(lv, "nodes");

	for (size_t i = 0; i < json_count(lv, "nodes"); i++)
		if (json_u64(json_object_array_get_idx(nodes, i), "node") == node)
			return json_object_array_get_idx(nodes, i);
	return NULL;
}

static void show_lv(FILE *to, const char *verb, const char *name, struct json_object *at)
{
	const char *outcome = json_text(at, "outcome");

	if (strcmp(outcome, "failed") == 0) {
		fprintf(to, "    %s: FAILED: %s\n", name, json_text(at, "reason"));
		return;
	}
	fprintf(to, "    %s: ", name);
	if (strcmp(verb, "refresh") == 0 && !json_true(at, "changed"))
		fprintf(to, "not active, nothing to refresh");
	else if (json_true(at, "changed"))
		fprintf(to, "%s", past(verb));
	else
		fprintf(to, "was %s before", strcmp(verb, "activate") == 0 ? "active" : "inactive");
	if (strcmp(outcome, "verified") == 0)
		fprintf(to, ", verified\n");
	else
		fprintf(to, "; %s\n", json_text(at, "reason"));
}

static void show_node(FILE *to, struct json_object *answer, struct json_object *node)
{
	const char *verb = json_text(answer, "verb");
	struct json_object *lvs = json_at(answer, "lvs"), *at;
	bool all = json_count(answer, "lvs") <= LISTED_MAX;
	uint64_t done = json_u64(node, "verified") + json_u64(node, "unverified");

	fprintf(to, "  %s: %" PRIu64 " LV%s %s", json_text(node, "name"), done, done == 1 ? "" : "s", past(verb));
	if (json_u64(node, "failed") > 0)
		fprintf(to, ", %" PRIu64 " failed", json_u64(node, "failed"));
	if (json_u64(node, "unverified") > 0)
		fprintf(to, ", not verified");
	if (json_true(node, "op_result") && json_u64(node, "failed") == 0)
		fprintf(to, ": FAILED: %s", json_text(node, "text"));
	fprintf(to, "\n");
	for (size_t i = 0; i < json_count(answer, "lvs"); i++) {
		struct json_object *lv = json_object_array_get_idx(lvs, i);

		at = at_node(lv, json_u64(node, "node"));
		if (at && (all || strcmp(json_text(at, "outcome"), "failed") == 0))
			show_lv(to, verb, json_text(lv, "lv"), at);
	}
	if (json_at(node, "undone"))
		fprintf(to, "    %s%s%s\n", json_true(node, "undone.op_result") ? "NOT taken back" : "taken back",
			*json_text(node, "undone.text") ? ": " : "", json_text(node, "undone.text"));
}

void lv_show(FILE *to, struct json_object *answer)
{
	struct json_object *nodes = json_at(answer, "nodes"), *absent = json_at(answer, "absent");

	for (size_t i = 0; i < json_count(answer, "nodes"); i++)
		show_node(to, answer, json_object_array_get_idx(nodes, i));
	for (size_t i = 0; i < json_count(answer, "absent"); i++)
		fprintf(to, "  %s: not asked, belay-lvmlockd does not run there\n",
			json_text(json_object_array_get_idx(absent, i), "name"));
	if (*json_text(answer, "text"))
		fprintf(to, "%s%s%s: %s\n", json_text(answer, "vg"), json_at(answer, "lv") ? "/" : "",
			json_text(answer, "lv"), json_text(answer, "text"));
}
