/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages with the very bytes they must have. The unit tests hold the codecs
 * to them, and they are the seeds of the fuzz corpora. The bytes change only
 * together with WIRE_VERSION or CLIENT_VERSION and doc/protocol.md.
 */
#ifndef BELAY_TESTS_WIRE_SAMPLES_H
#define BELAY_TESTS_WIRE_SAMPLES_H

#include "wire/client.h"
#include "wire/hint.h"
#include "wire/wire.h"

#define SAMPLE_PARTS_MAX 6u

struct frame_sample {
	const char *name;
	struct belay_frame frame;
	unsigned op_count;
	struct belay_op op[SAMPLE_PARTS_MAX];
	const char *hex;	/* spaces do not count */
};

struct snapshot_sample {
	const char *name;
	struct wire_snapshot head;
	unsigned record_count;
	struct belay_record record[SAMPLE_PARTS_MAX];
	const char *hex;
};

struct hint_sample {
	const char *name;
	struct wire_hints head;
	unsigned hint_count;
	struct belay_hint hint[SAMPLE_PARTS_MAX];
	const char *hex;
};

struct client_sample {
	const char *name;
	unsigned message_count;
	struct client_message message[SAMPLE_PARTS_MAX];
	const char *hex;
};

extern const struct frame_sample frame_samples[];
extern const unsigned frame_sample_count;
extern const struct snapshot_sample snapshot_samples[];
extern const unsigned snapshot_sample_count;
extern const struct hint_sample hint_samples[];
extern const unsigned hint_sample_count;
extern const struct client_sample client_samples[];
extern const unsigned client_sample_count;

/* The bytes of @hex in @ret_bytes of @size; returns how many. Aborts on what is no hex. */
size_t sample_bytes(const char *hex, uint8_t *ret_bytes, size_t size);

#endif
