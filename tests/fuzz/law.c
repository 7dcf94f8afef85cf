/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/fuzz/law.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "wire/client.h"
#include "wire/hint.h"
#include "wire/wire.h"

/* Exactly as much as the original has: one byte more is a broken law. */
static uint8_t *copy_space(size_t size)
{
	uint8_t *again = malloc(size > 0 ? size : 1);

	if (!again)
		abort();
	return again;
}

static int verdict(int error, const uint8_t *bytes, size_t size, const uint8_t *again, size_t again_size)
{
	if (error != 0)
		return error;
	return again_size == size && memcmp(again, bytes, size) == 0 ? 0 : LAW_BROKEN;
}

/* Whoever reads the first bytes must come to the same end as whoever reads it all. */
static bool typed(const uint8_t *bytes, size_t size, enum wire_message want)
{
	enum wire_message type;

	return wire_message_type(bytes, size, &type) == 0 && type == want;
}

int law_frame(const uint8_t *bytes, size_t size)
{
	struct belay_frame frame;
	struct belay_op op;
	struct wire_reader r;
	struct wire_writer w;
	uint8_t *again;
	int error;

	error = wire_frame_open(&r, bytes, size, &frame);
	if (error < 0)
		return error;
	again = copy_space(size);
	error = typed(bytes, size, WIRE_FRAME) && wire_frame_begin(&w, again, size, &frame) == 0 ?
		0 : LAW_BROKEN;
	while (error == 0) {
		int got = wire_get_op(&r, &op);

		if (got == 0)
			break;
		error = got < 0 ? got : wire_put_op(&w, &op) < 0 ? LAW_BROKEN : 0;
	}
	error = verdict(error, bytes, size, again, error == 0 ? wire_size(&w) : 0);
	free(again);
	return error;
}

int law_snapshot(const uint8_t *bytes, size_t size)
{
	struct wire_snapshot head;
	struct belay_record record;
	struct wire_reader r;
	struct wire_writer w;
	uint8_t *again;
	int error;

	error = wire_snapshot_open(&r, bytes, size, &head);
	if (error < 0)
		return error;
	again = copy_space(size);
	error = typed(bytes, size, WIRE_SNAPSHOT) && wire_snapshot_begin(&w, again, size, &head) == 0 ?
		0 : LAW_BROKEN;
	while (error == 0) {
		int got = wire_get_record(&r, &record);

		if (got == 0)
			break;
		error = got < 0 ? got : wire_put_record(&w, &record) < 0 ? LAW_BROKEN : 0;
	}
	error = verdict(error, bytes, size, again, error == 0 ? wire_size(&w) : 0);
	free(again);
	return error;
}

int law_hints(const uint8_t *bytes, size_t size)
{
	struct wire_hints head;
	struct belay_hint hint;
	struct wire_reader r;
	struct wire_writer w;
	uint8_t *again;
	int error;

	error = wire_hints_open(&r, bytes, size, &head);
	if (error < 0)
		return error;
	again = copy_space(size);
	error = typed(bytes, size, WIRE_HINTS) && wire_hints_begin(&w, again, size, &head) == 0 ?
		0 : LAW_BROKEN;
	while (error == 0) {
		int got = wire_get_hint(&r, &head, &hint);

		if (got == 0)
			break;
		error = got < 0 ? got : wire_put_hint(&w, &head, &hint) < 0 ? LAW_BROKEN : 0;
	}
	error = verdict(error, bytes, size, again, error == 0 ? wire_size(&w) : 0);
	free(again);
	return error;
}

int law_packet(const uint8_t *bytes, size_t size)
{
	uint8_t *again = copy_space(size);
	struct client_message m;
	size_t at = 0, again_at = 0;
	int error = 0;

	while (error == 0) {
		int got = client_get(bytes, size, &at, &m);

		if (got == 0)
			break;
		error = got < 0 ? got : client_put(again, size, &again_at, &m) < 0 ? LAW_BROKEN : 0;
	}
	error = verdict(error, bytes, size, again, again_at);
	free(again);
	return error;
}

int law_resized(int (*law)(const uint8_t *bytes, size_t size), const uint8_t *bytes, size_t size)
{
	uint8_t *copy = copy_space(size);
	int error;

	memcpy(copy, bytes, size);
	/* Behind magic, version and type. */
	if (size >= 8) {
		copy[6] = (uint8_t)size;
		copy[7] = (uint8_t)(size >> 8);
	}
	error = law(copy, size);
	free(copy);
	return error;
}
