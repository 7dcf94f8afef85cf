/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "tools/tool.h"

struct json_object *json_at(struct json_object *json, const char *path)
{
	char name[64];
	size_t size;

	while (json) {
		size = strcspn(path, ".");
		if (size >= sizeof(name))
			return NULL;
		memcpy(name, path, size);
		name[size] = '\0';
		if (!json_object_is_type(json, json_type_object) ||
		    !json_object_object_get_ex(json, name, &json))
			return NULL;
		if (path[size] == '\0')
			return json;
		path += size + 1;
	}
	return NULL;
}

uint64_t json_u64(struct json_object *json, const char *path)
{
	return json_object_get_uint64(json_at(json, path));
}

double json_real(struct json_object *json, const char *path)
{
	return json_object_get_double(json_at(json, path));
}

const char *json_text(struct json_object *json, const char *path)
{
	const char *text = json_object_get_string(json_at(json, path));

	return text ? text : "";
}

bool json_true(struct json_object *json, const char *path)
{
	return json_object_get_boolean(json_at(json, path));
}

size_t json_count(struct json_object *json, const char *path)
{
	struct json_object *array = json_at(json, path);

	return json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
}
