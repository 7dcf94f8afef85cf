/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lvmlockd/about.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/belay.h"

/* A text of a JSON object; NULL: it has none of that name. */
static const char *text_of(struct json_object *object, const char *name)
{
	struct json_object *text;

	if (!json_object_object_get_ex(object, name, &text) || !json_object_is_type(text, json_type_string))
		return NULL;
	return json_object_get_string(text);
}

static void read_nodes(struct json_object *status, struct about *about)
{
	struct json_object *nodes, *number;

	if (!json_object_object_get_ex(status, "nodes", &nodes) || !json_object_is_type(nodes, json_type_array))
		return;
	for (size_t i = 0; i < json_object_array_length(nodes) && about->member_count < ABOUT_NODES_MAX; i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);
		const char *standing = text_of(node, "standing");

		if (standing && strcmp(standing, "member") == 0 && json_object_object_get_ex(node, "node", &number))
			about->member[about->member_count++] = (uint32_t)json_object_get_int64(number);
	}
}

int about_belayd(struct belay *belay, struct about *ret_about)
{
	const char *cluster, *group;
	struct json_object *status;
	struct about about = { 0 };
	char *text = NULL;
	int r = belay_command(belay, "status", &text);

	if (r < 0) {
		free(text);
		return r;
	}
	status = json_tokener_parse(text);
	free(text);
	cluster = status ? text_of(status, "cluster") : NULL;
	group = status ? text_of(status, "group") : NULL;
	r = cluster && group ? 0 : -EPROTO;
	if (r == 0) {
		(void)snprintf(about.cluster, sizeof(about.cluster), "%s", cluster);
		about.standalone = strcmp(group, "standalone") == 0;
		read_nodes(status, &about);
		*ret_about = about;
	}
	json_object_put(status);
	return r;
}
