/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Locks of LVs as belayd knows them: those of nodes that do not answer, and who waits. belayd
 * names a lock only while somebody here has it open, so they are opened for as long as that.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/locks.h"
#include "tools/lv.h"

struct holders {
	struct json_object *answer;
	struct json_object *by_name;	/* "LV:uuid" to its object in "lvs" */
};

static struct json_object *array_of(struct json_object *lv, const char *key)
{
	struct json_object *array = json_at(lv, key);

	if (!array) {
		array = json_object_new_array();
		json_object_object_add(lv, key, array);
	}
	return array;
}

static bool answers(struct json_object *answer, uint64_t node)
{
	struct json_object *nodes = json_at(answer, "nodes");

	for (size_t i = 0; i < json_count(answer, "nodes"); i++) {
		struct json_object *at = json_object_array_get_idx(nodes, i);

		if (json_u64(at, "node") == node)
			return !json_true(at, "op_result");
	}
	return false;
}

static bool on_lock(void *context, struct json_object *lock)
{
	struct holders *h = context;
	uint64_t node = json_u64(lock, "node");
	bool waiting = json_true(lock, "waiting");
	struct json_object *lv, *entry;

	if (strcmp(json_text(lock, "lockspace"), "volumes") != 0 ||
	    !json_object_object_get_ex(h->by_name, json_text(lock, "name"), &lv) ||
	    (!waiting && answers(h->answer, node)))
		return true;
	entry = json_object_new_object();
	json_object_object_add(entry, "node", json_object_new_uint64(node));
	json_object_object_add(entry, "mode", json_object_new_string(
		strcmp(json_text(lock, "mode"), "EX") == 0 ? "exclusive" : "shared"));
	json_object_array_add(array_of(lv, waiting ? "waiters" : "elsewhere"), entry);
	return true;
}

void lv_add_holders(const struct tool *tool, struct json_object *answer)
{
	size_t count = json_count(answer, "lvs"), open = 0;
	struct belay_handle **handle = calloc(count + 1, sizeof(struct belay_handle *));
	struct holders h = { .answer = answer, .by_name = json_object_new_object() };
	struct belay *belay;

	if (!handle || belay_connect(&belay, tool->socket) < 0) {
		json_object_put(h.by_name);
		free(handle);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		struct json_object *lv = json_object_array_get_idx(json_at(answer, "lvs"), i);
		char name[64];

		(void)snprintf(name, sizeof(name), "LV:%s", json_text(lv, "uuid"));
		if (belay_open_name(belay, "volumes", name, BELAY_OWNER_NODE, &handle[open]) < 0)
			break;
		open++;
		json_object_object_add(h.by_name, name, json_object_get(lv));
	}
	(void)locks_walk(tool, belay, on_lock, &h);
	while (open > 0)
		belay_handle_close(handle[--open]);
	belay_disconnect(belay);
	json_object_put(h.by_name);
	free(handle);
}
