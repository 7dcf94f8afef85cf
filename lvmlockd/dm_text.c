/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The list of devices as text: from a child that asked the kernel to belay-lvmlockd. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lvmlockd/dm.h"

/*
 * A line for each device, fields with tabs between:
 *	uuid name major minor flags open_count size targets below beneath table
 * A table has a line for each target; there they are separated by ';', which no table has.
 */
enum field {
	FIELD_UUID, FIELD_NAME, FIELD_MAJOR, FIELD_MINOR, FIELD_FLAGS, FIELD_OPEN, FIELD_SIZE, FIELD_TARGETS,
	FIELD_BELOW, FIELD_BENEATH, FIELD_TABLE, FIELD_COUNT,
};

/* ---- out ---- */

__attribute__((format(printf, 2, 3)))
static int append(struct dm_buffer *buffer, const char *format, ...)
{
	va_list args;
	size_t need, room;
	char *text;
	int n;

	va_start(args, format);
	n = vsnprintf(NULL, 0, format, args);
	va_end(args);
	assert(n >= 0);
	need = buffer->size + (size_t)n + 1;
	if (need > buffer->room) {
		room = need * 2;
		text = realloc(buffer->text, room);
		if (!text)
			return -ENOMEM;
		buffer->text = text;
		buffer->room = room;
	}
	va_start(args, format);
	(void)vsnprintf(buffer->text + buffer->size, (size_t)n + 1, format, args);
	va_end(args);
	buffer->size += (size_t)n;
	return 0;
}

/* Text of the kernel's, without what separates. */
static int append_field(struct dm_buffer *buffer, const char *text)
{
	size_t at = buffer->size;
	int r = append(buffer, "%s\t", text ? text : "");

	for (; r == 0 && at + 1 < buffer->size; at++) {
		if (buffer->text[at] == '\n')
			buffer->text[at] = ';';
		else if (buffer->text[at] == '\t')
			buffer->text[at] = ' ';
	}
	return r;
}

int dm_format(struct dm_buffer *buffer, const struct dm_device *device)
{
	size_t start = buffer->size;
	int r;

	r = append_field(buffer, device->uuid);
	if (r == 0)
		r = append_field(buffer, device->name);
	if (r == 0)
		r = append(buffer, "%" PRIu32 "\t%" PRIu32 "\t%s%s%s%s\t%" PRIu32 "\t%" PRIu64 "\t", device->major,
			   device->minor, device->suspended ? "s" : "", device->read_only ? "r" : "",
			   device->live ? "l" : "", device->inactive ? "i" : "", device->open_count,
			   device->size_bytes);
	if (r == 0)
		r = append_field(buffer, device->targets);
	for (size_t i = 0; r == 0 && i < device->below_count; i++)
		r = append(buffer, "%s%" PRIu64 ":%" PRIu32, i > 0 ? " " : "", device->below[i] >> 32,
			   (uint32_t)device->below[i]);
	if (r == 0)
		r = append(buffer, "\t");
	if (r == 0)
		r = append_field(buffer, device->beneath);
	if (r == 0)
		r = append_field(buffer, device->table);
	if (r < 0) {
		buffer->size = start;
		return r;
	}
	buffer->text[buffer->size - 1] = '\n';
	return 0;
}

/* ---- in ---- */

static bool take_text(char *ret_text, size_t room, const char *text)
{
	return (size_t)snprintf(ret_text, room, "%s", text) < room;
}

static bool take_number(const char *text, uint64_t max, uint64_t *ret_number)
{
	char *end;
	uint64_t n;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	n = strtoull(text, &end, 10);
	if (*end != '\0' || errno != 0 || n > max)
		return false;
	*ret_number = n;
	return true;
}

/* "253:3 8:16". */
static int take_below(struct dm_device *device, char *text)
{
	char *save = NULL, *minor;
	uint64_t numbers[2];
	size_t count = 1;

	if (*text == '\0')
		return 0;
	for (const char *c = text; *c; c++)
		count += *c == ' ';
	device->below = calloc(count, sizeof(*device->below));
	if (!device->below)
		return -ENOMEM;
	for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		minor = strchr(word, ':');
		if (!minor || device->below_count == count)
			return -EBADMSG;
		*minor++ = '\0';
		if (!take_number(word, UINT32_MAX, &numbers[0]) || !take_number(minor, UINT32_MAX, &numbers[1]))
			return -EBADMSG;
		device->below[device->below_count++] = DM_NUMBER(numbers[0], numbers[1]);
	}
	return 0;
}

static int take_copy(char **ret_copy, const char *text)
{
	if (*text == '\0')
		return 0;
	*ret_copy = strdup(text);
	if (!*ret_copy)
		return -ENOMEM;
	for (char *c = *ret_copy; *c; c++)
		if (*c == ';')
			*c = '\n';
	return 0;
}

static int take_fields(struct dm_device *device, char *const field[FIELD_COUNT])
{
	uint64_t major, minor, open, size;
	int r;

	if (!take_text(device->uuid, sizeof(device->uuid), field[FIELD_UUID]) ||
	    !take_text(device->name, sizeof(device->name), field[FIELD_NAME]) ||
	    !take_number(field[FIELD_MAJOR], UINT32_MAX, &major) ||
	    !take_number(field[FIELD_MINOR], UINT32_MAX, &minor) ||
	    !take_number(field[FIELD_OPEN], UINT32_MAX, &open) ||
	    !take_number(field[FIELD_SIZE], UINT64_MAX, &size) ||
	    !take_text(device->targets, sizeof(device->targets), field[FIELD_TARGETS]))
		return -EBADMSG;
	device->major = (uint32_t)major;
	device->minor = (uint32_t)minor;
	device->open_count = (uint32_t)open;
	device->size_bytes = size;
	device->suspended = strchr(field[FIELD_FLAGS], 's') != NULL;
	device->read_only = strchr(field[FIELD_FLAGS], 'r') != NULL;
	device->live = strchr(field[FIELD_FLAGS], 'l') != NULL;
	device->inactive = strchr(field[FIELD_FLAGS], 'i') != NULL;
	r = take_below(device, field[FIELD_BELOW]);
	if (r == 0)
		r = take_copy(&device->beneath, field[FIELD_BENEATH]);
	if (r == 0)
		r = take_copy(&device->table, field[FIELD_TABLE]);
	return r;
}

int dm_split(char *line, char **ret_field, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		ret_field[i] = line;
		line += strcspn(line, "\t");
		/* As many tabs as there are fields, but for one. */
		if ((*line == '\t') != (i + 1 < count))
			return -EBADMSG;
		if (*line)
			*line++ = '\0';
	}
	return 0;
}

static int take_line(struct dm_devices *devices, char *line)
{
	struct dm_device *grown;
	char *field[FIELD_COUNT];
	int r = dm_split(line, field, FIELD_COUNT);

	if (r < 0)
		return r;
	if (devices->count == DM_DEVICES_MAX)
		return -EBADMSG;
	if (devices->count == devices->room) {
		devices->room = devices->room ? devices->room * 2 : 64;
		grown = reallocarray(devices->device, devices->room, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		devices->device = grown;
	}
	/* Counted before it is filled: what it has by then is freed with the rest. */
	devices->device[devices->count] = (struct dm_device){ .uuid = "" };
	return take_fields(&devices->device[devices->count++], field);
}

int dm_parse(const char *text, size_t size, struct dm_devices *ret_devices)
{
	struct dm_devices devices = { .device = NULL };
	char *copy, *line, *end;
	int r = 0;

	if (size > 0 && (text[size - 1] != '\n' || memchr(text, '\0', size)))
		return -EBADMSG;
	copy = strndup(size > 0 ? text : "", size);
	if (!copy)
		return -ENOMEM;
	for (line = copy; r == 0 && *line; line = end + 1) {
		end = strchr(line, '\n');
		*end = '\0';
		r = take_line(&devices, line);
	}
	free(copy);
	if (r < 0) {
		dm_devices_done(&devices);
		return r;
	}
	dm_relate(&devices);
	*ret_devices = devices;
	return 0;
}

void dm_devices_done(struct dm_devices *devices)
{
	for (size_t i = 0; i < devices->count; i++) {
		free(devices->device[i].below);
		free(devices->device[i].table);
		free(devices->device[i].beneath);
	}
	free(devices->device);
	*devices = (struct dm_devices){ .device = NULL };
}
