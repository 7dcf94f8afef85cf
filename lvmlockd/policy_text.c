/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The policy's list: its memory, what is kept of it over a restart, and what is said of it. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lvmlockd/policy_private.h"

#define HEADER "belay-frozen 1\n"

enum field {
	FIELD_HOW, FIELD_UUID, FIELD_NAME, FIELD_DEPTH, FIELD_LOCKED, FIELD_LV_UUID, FIELD_BENEATH, FIELD_TABLE,
	FIELD_COUNT,
};

/* ---- the list ---- */

struct volume *policy_add(struct policy *policy, const char *uuid, const char *name)
{
	struct volume *volume = calloc(1, sizeof(*volume));

	if (!volume)
		return NULL;
	volume->policy = policy;
	(void)snprintf(volume->uuid, sizeof(volume->uuid), "%s", uuid);
	(void)snprintf(volume->name, sizeof(volume->name), "%s", name);
	TAILQ_INSERT_TAIL(&policy->volumes, volume, link);
	return volume;
}

void policy_drop(struct volume *volume)
{
	TAILQ_REMOVE(&volume->policy->volumes, volume, link);
	free(volume->table);
	free(volume->beneath);
	free(volume);
}

struct volume *policy_find(const struct policy *policy, const char *uuid)
{
	struct volume *volume;

	TAILQ_FOREACH(volume, &policy->volumes, link)
		if (strcmp(volume->uuid, uuid) == 0)
			return volume;
	return NULL;
}

/* ---- kept ---- */

/* Does the policy mean it to be other than programs left it? */
static bool is_ours(const struct volume *volume)
{
	return volume->state != VOLUME_FOREIGN && volume->state != VOLUME_OVERRULED;
}

static void write_volume(FILE *out, const struct volume *volume)
{
	(void)fprintf(out, "%s\t%s\t%s\t%u\t%d\t%s\t%s\t", volume->errors ? "error" : "suspended", volume->uuid,
		      volume->name, volume->depth, volume->locked, volume->lv_uuid,
		      volume->beneath ? volume->beneath : "");
	for (const char *c = volume->table ? volume->table : ""; *c; c++)
		(void)fputc(*c == '\n' ? ';' : *c, out);
	(void)fputc('\n', out);
}

int policy_save(struct policy *policy)
{
	const struct volume *volume;
	unsigned count = 0;
	char *text = NULL;
	size_t size = 0;
	FILE *out;
	int r;

	out = open_memstream(&text, &size);
	if (!out)
		return -ENOMEM;
	(void)fputs(HEADER, out);
	TAILQ_FOREACH(volume, &policy->volumes, link) {
		if (!is_ours(volume))
			continue;
		write_volume(out, volume);
		count++;
	}
	r = fclose(out) == 0 ? 0 : -ENOMEM;
	if (r == 0)
		r = policy->port.save(policy->port.context, text, count > 0 ? size : 0);
	free(text);
	return r;
}

static bool take_flag(const char *text, bool *ret_flag)
{
	*ret_flag = text[0] == '1';
	return (text[0] == '0' || text[0] == '1') && text[1] == '\0';
}

static int take_volume(struct policy *policy, char *const field[FIELD_COUNT])
{
	struct volume *volume;
	char *end;

	if (strlen(field[FIELD_UUID]) > DM_TEXT_MAX || field[FIELD_UUID][0] == '\0' ||
	    strlen(field[FIELD_NAME]) > DM_TEXT_MAX || strlen(field[FIELD_LV_UUID]) > DM_LVM_UUID_MAX)
		return -EBADMSG;
	volume = policy_add(policy, field[FIELD_UUID], field[FIELD_NAME]);
	if (!volume)
		return -ENOMEM;
	(void)snprintf(volume->lv_uuid, sizeof(volume->lv_uuid), "%s", field[FIELD_LV_UUID]);
	volume->state = VOLUME_KEPT;
	volume->errors = strcmp(field[FIELD_HOW], "error") == 0;
	if (!volume->errors && strcmp(field[FIELD_HOW], "suspended") != 0)
		return -EBADMSG;
	volume->depth = (unsigned)strtoul(field[FIELD_DEPTH], &end, 10);
	if (*end != '\0' || end == field[FIELD_DEPTH] || !take_flag(field[FIELD_LOCKED], &volume->locked))
		return -EBADMSG;
	if (field[FIELD_BENEATH][0] != '\0' && !(volume->beneath = strdup(field[FIELD_BENEATH])))
		return -ENOMEM;
	if (field[FIELD_TABLE][0] != '\0' && !(volume->table = strdup(field[FIELD_TABLE])))
		return -ENOMEM;
	for (char *c = volume->table; c && *c; c++)
		if (*c == ';')
			*c = '\n';
	return 0;
}

static int take_line(struct policy *policy, char *line)
{
	char *field[FIELD_COUNT];
	int r = dm_split(line, field, FIELD_COUNT);

	return r < 0 ? r : take_volume(policy, field);
}

int policy_load(struct policy *policy, const char *text, size_t size)
{
	const size_t header = sizeof(HEADER) - 1;
	char *copy, *line, *end;
	int r = 0;

	if (size == 0)
		return 0;
	if (size < header || memcmp(text, HEADER, header) != 0 || text[size - 1] != '\n' || memchr(text, '\0', size))
		return -EBADMSG;
	copy = strndup(text + header, size - header);
	if (!copy)
		return -ENOMEM;
	for (line = copy; r == 0 && *line; line = end + 1) {
		end = strchr(line, '\n');
		*end = '\0';
		r = take_line(policy, line);
	}
	free(copy);
	return r;
}

/* ---- said ---- */

const char *policy_label(const struct volume *volume, char *buffer, size_t size)
{
	struct dm_device device = { .uuid = "" };
	struct dm_lv lv;

	memcpy(device.uuid, volume->uuid, sizeof(device.uuid));
	memcpy(device.name, volume->name, sizeof(device.name));
	if (dm_lv_of(&device, &lv))
		(void)snprintf(buffer, size, "%s/%s", lv.vg_name, lv.lv_name);
	else
		(void)snprintf(buffer, size, "%s", volume->name);
	return buffer;
}

void policy_log(const struct policy *policy, int priority, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	policy->port.log(policy->port.context, priority, text);
}

const char *policy_action_name(enum policy_action action)
{
	return action == POLICY_FREEZE ? "freeze" : action == POLICY_ERROR ? "error" : "none";
}

const char *policy_state_name(enum policy_state state)
{
	static const char *const names[] = {
		[POLICY_QUIET] = "quiet",
		[POLICY_APPLYING] = "applying",
		[POLICY_APPLIED] = "applied",
		[POLICY_WAITING] = "waiting",
		[POLICY_UNDOING] = "undoing",
	};

	return names[state];
}
