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
#include "slot/slot.h"

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

/* What is held in a loan is known to its client only; to ask would be to take it back. */
static struct json_object *loan_object(const struct server_loan *loan, uint32_t node,
				       const struct config *config, const struct names *names)
{
	struct json_object *to = json_object_new_object();
	bool to_end = loan->range.end == BELAY_OFFSET_MAX;

	put_resource(to, &loan->key, config, names);
	json_object_object_add(to, "state", json_object_new_string("lent"));
	json_object_object_add(to, "owner_node", json_object_new_uint64(node));
	json_object_object_add(to, "node", json_object_new_uint64(node));
	json_object_object_add(to, "client", json_object_new_uint64(loan->client));
	json_object_object_add(to, "pid", json_object_new_uint64((uint64_t)loan->pid));
	json_object_object_add(to, "mode", json_object_new_string(trace_mode(loan->mode)));
	json_object_object_add(to, "start", json_object_new_uint64(loan->range.start));
	json_object_object_add(to, "end", to_end ? NULL : json_object_new_uint64(loan->range.end));
	json_object_object_add(to, "lent", json_object_new_boolean(true));
	return to;
}

/* First the core's locks, then the loans. */
struct page {
	const struct engine *engine;
	const struct server *server;
	const struct config *config;
	const struct names *names;
	bool in_loans;
	struct belay_cursor locks;
	struct server_cursor loans;
};

static int parse_cursor(const char *text, struct page *page)
{
	int end = 0;

	if (text[0] == '\0')
		return 0;
	page->in_loans = text[0] == 'l';
	if (page->in_loans ?
	    sscanf(text, "l%" SCNu32 ":%" SCNu32 "%n", &page->loans.client, &page->loans.slot, &end) != 2 :
	    sscanf(text, "%u:%" SCNu32 ":%" SCNu64 "%n", &page->locks.phase, &page->locks.at,
		   &page->locks.count, &end) != 3)
		return -EINVAL;
	return text[end] == '\0' && page->loans.slot <= SLOT_COUNT ? 0 : -EINVAL;
}

/* NULL: that was all. */
static struct json_object *next_object(struct page *page)
{
	struct belay_lock_info info;
	struct server_loan loan;

	if (!page->in_loans &&
	    belay_core_locks_next(engine_core(page->engine), &page->locks, &info) == 1)
		return lock_object(&info, page->config, page->names);
	page->in_loans = true;
	if (server_loans_next(page->server, &page->loans, &loan) == 1)
		return loan_object(&loan, engine_group_info(page->engine)->self, page->config,
				   page->names);
	return NULL;
}

static struct json_object *cursor_object(const struct page *page)
{
	char text[48];

	if (page->in_loans)
		(void)snprintf(text, sizeof(text), "l%" PRIu32 ":%" PRIu32, page->loans.client,
			       page->loans.slot);
	else
		(void)snprintf(text, sizeof(text), "%u:%" PRIu32 ":%" PRIu64, page->locks.phase,
			       page->locks.at, page->locks.count);
	return json_object_new_string(text);
}

int status_locks(const struct engine *engine, const struct server *server, const struct config *config,
		 const struct names *names, const char *cursor, char **ret_text)
{
	struct page page = {
		.engine = engine, .server = server, .config = config, .names = names,
	};
	struct json_object *to, *locks, *object = NULL;
	const char *text;
	int r = parse_cursor(cursor, &page);

	if (r < 0)
		return r;
	to = json_object_new_object();
	locks = json_object_new_array();
	json_object_object_add(to, "locks", locks);
	for (unsigned i = 0; i < PAGE && (object = next_object(&page)); i++)
		json_object_array_add(locks, object);
	json_object_object_add(to, "next", object ? cursor_object(&page) : NULL);
	text = json_object_to_json_string_ext(to, JSON_C_TO_STRING_PLAIN);
	*ret_text = text ? strdup(text) : NULL;
	json_object_put(to);
	return *ret_text ? 0 : -ENOMEM;
}
