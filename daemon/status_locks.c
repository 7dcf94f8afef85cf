/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pages of locks and waiters, for `belay locks`. */
#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/identity.h"
#include "daemon/status.h"
#include "daemon/trace.h"

/* Entries of a page: little enough to be built between two turns. */
#define PAGE 500

/*
 * JSON is UTF-8, and names are bytes: what is no UTF-8 is shown as \xNN. At most
 * four characters come of a byte.
 */
static struct json_object *text_object(const char *text)
{
	size_t size = strlen(text), out = 0;
	char *shown = malloc(4 * size + 1);
	struct json_object *object;

	if (!shown)
		return NULL;
	for (size_t i = 0; i < size; ) {
		unsigned char c = (unsigned char)text[i];
		size_t length = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 :
				c >= 0xf0 && c < 0xf5 ? 4 : 0;
		size_t good = 1;

		while (good < length && ((unsigned char)text[i + good] & 0xc0) == 0x80)
			good++;
		/* Over-long forms and surrogates. */
		if (length >= 3 && ((c == 0xe0 && (unsigned char)text[i + 1] < 0xa0) ||
				    (c == 0xed && (unsigned char)text[i + 1] >= 0xa0) ||
				    (c == 0xf0 && (unsigned char)text[i + 1] < 0x90) ||
				    (c == 0xf4 && (unsigned char)text[i + 1] >= 0x90)))
			length = 0;
		if (length > 0 && good == length) {
			memcpy(shown + out, text + i, length);
			out += length;
			i += length;
		} else {
			out += (size_t)snprintf(shown + out, 5, "\\x%02x", c);
			i++;
		}
	}
	object = json_object_new_string_len(shown, (int)out);
	free(shown);
	return object;
}

static const char *lockspace_name(const struct config *config, uint32_t number)
{
	for (uint32_t i = 0; i < config->lockspace_count; i++)
		if (config->lockspace[i].number == number)
			return config->lockspace[i].name;
	return number == IDENTITY_LOCAL ? "local" : NULL;
}

static void put_resource(struct json_object *to, const struct belay_key *key,
			 const struct config *config, const struct names *names)
{
	struct belay_key base = identity_base(key);
	const char *lockspace = lockspace_name(config, key->lockspace);
	const char *name = names_find(names, &base);
	char described[IDENTITY_NAME_MAX], hex[2 * sizeof(key->id) + 1];

	for (size_t i = 0; i < sizeof(key->id); i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", key->id[i]);
	if (!name && identity_describe(key, described, sizeof(described)))
		name = described;
	json_object_object_add(to, "lockspace", lockspace ? json_object_new_string(lockspace) : NULL);
	json_object_object_add(to, "lockspace_number", json_object_new_uint64(key->lockspace));
	json_object_object_add(to, "key", json_object_new_string(hex));
	json_object_object_add(to, "name", name ? text_object(name) : NULL);
}

static struct json_object *lock_object(const struct belay_lock_info *info,
				       const struct config *config, const struct names *names)
{
	struct json_object *to = json_object_new_object();
	bool to_end = info->range.end == BELAY_OFFSET_MAX;

	put_resource(to, &info->key, config, names);
	json_object_object_add(to, "state", json_object_new_string(trace_state(info->state)));
	json_object_object_add(to, "owner_node", info->owner_node != 0 ?
			       json_object_new_uint64(info->owner_node) : NULL);
	json_object_object_add(to, "node", json_object_new_uint64(info->owner.node));
	json_object_object_add(to, "client", json_object_new_uint64(info->owner.client));
	json_object_object_add(to, "pid", json_object_new_uint64(info->owner.pid));
	json_object_object_add(to, "kind", json_object_new_string(trace_kind(info->owner.kind)));
	json_object_object_add(to, "mode", json_object_new_string(trace_mode(info->mode)));
	json_object_object_add(to, "start", json_object_new_uint64(info->range.start));
	/* null: to the end, however long the file grows. */
	json_object_object_add(to, "end", to_end ? NULL : json_object_new_uint64(info->range.end));
	json_object_object_add(to, "waiting", json_object_new_boolean(info->waiting));
	if (info->waiting)
		json_object_object_add(to, "queue", json_object_new_uint64(info->queue));
	return to;
}

static int parse_cursor(const char *text, struct belay_cursor *ret_cursor)
{
	struct belay_cursor cursor = { 0 };
	int end = 0;

	if (text[0] != '\0' &&
	    (sscanf(text, "%u:%" SCNu32 ":%" SCNu64 "%n", &cursor.phase, &cursor.at, &cursor.count,
		    &end) != 3 || text[end] != '\0'))
		return -EINVAL;
	*ret_cursor = cursor;
	return 0;
}

int status_locks(const struct engine *engine, const struct config *config,
		 const struct names *names, const char *cursor_text, char **ret_text)
{
	struct json_object *to, *locks;
	struct belay_cursor cursor;
	struct belay_lock_info info;
	char next[48];
	const char *text;
	int r = parse_cursor(cursor_text, &cursor), more = 1;

	if (r < 0)
		return r;
	to = json_object_new_object();
	locks = json_object_new_array();
	json_object_object_add(to, "locks", locks);
	for (unsigned i = 0; i < PAGE && more == 1; i++) {
		more = belay_core_locks_next(engine_core(engine), &cursor, &info);
		if (more == 1)
			json_object_array_add(locks, lock_object(&info, config, names));
	}
	(void)snprintf(next, sizeof(next), "%u:%" PRIu32 ":%" PRIu64, cursor.phase, cursor.at,
		       cursor.count);
	json_object_object_add(to, "next", more == 1 ? json_object_new_string(next) : NULL);
	text = json_object_to_json_string_ext(to, JSON_C_TO_STRING_PLAIN);
	*ret_text = text ? strdup(text) : NULL;
	json_object_put(to);
	return *ret_text ? 0 : -ENOMEM;
}
