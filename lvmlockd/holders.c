/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lvmlockd/holders.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/belay.h"

/* So many pages of locks are looked through, for this is done while others wait. */
#define PAGES_MAX 200u

static const char *text_of(struct json_object *object, const char *key)
{
	struct json_object *value;
	const char *text = NULL;

	if (json_object_object_get_ex(object, key, &value))
		text = json_object_get_string(value);
	return text ? text : "";
}

static bool is_held(struct json_object *lock, const char *name)
{
	struct json_object *waiting;

	return strcmp(text_of(lock, "lockspace"), "volumes") == 0 && strcmp(text_of(lock, "name"), name) == 0 &&
	       json_object_object_get_ex(lock, "waiting", &waiting) && !json_object_get_boolean(waiting);
}

/* One page of locks; *cursor, "" at first, becomes that of the next, "" behind the last. */
static int walk_page(struct belay *belay, char cursor[64], const char *name,
		     void (*each)(void *context, uint32_t node), void *context)
{
	char command[96], *text = NULL;
	struct json_object *page, *locks, *node;
	int r;

	(void)snprintf(command, sizeof(command), cursor[0] != '\0' ? "locks %s" : "locks", cursor);
	r = belay_command(belay, command, &text);
	page = r == 0 ? json_tokener_parse(text) : NULL;
	free(text);
	if (r < 0)
		return r;
	if (!json_object_object_get_ex(page, "locks", &locks) || !json_object_is_type(locks, json_type_array)) {
		json_object_put(page);
		return -EBADMSG;
	}
	for (size_t i = 0; i < json_object_array_length(locks); i++) {
		struct json_object *lock = json_object_array_get_idx(locks, i);

		if (is_held(lock, name) && json_object_object_get_ex(lock, "node", &node))
			each(context, (uint32_t)json_object_get_int64(node));
	}
	(void)snprintf(cursor, 64, "%s", text_of(page, "next"));
	json_object_put(page);
	return 0;
}

int holders_each(struct belay *belay, const char *uuid, void (*each)(void *context, uint32_t node), void *context)
{
	char cursor[64] = "", name[64];
	int r = 0;

	(void)snprintf(name, sizeof(name), "LV:%s", uuid);
	for (unsigned pages = 0; r == 0 && pages < PAGES_MAX; pages++) {
		r = walk_page(belay, cursor, name, each, context);
		if (r == 0 && cursor[0] == '\0')
			return 0;
	}
	return r < 0 ? r : -E2BIG;
}
