/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the codecs cost: frames and chunks as full as they get, in nanoseconds
 * of processor time and in bytes for each op and each record. One line a
 * figure, one value a run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "wire/wire.h"

#define RUNS 5
#define ROUNDS 500

struct figures {
	double encode_ns[RUNS], decode_ns[RUNS], bytes;
};

static double now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Nothing may come out wrong, and the compiler may leave nothing out. */
static void require(bool holds)
{
	if (!holds)
		abort();
}

static void measure_ops(bool one_key, struct figures *ret_figures)
{
	struct belay_frame frame = { .node = 1, .incarnation = 2, .seq = 1000000, .ack_count = 2,
				     .ack = { { 2, 3, 1000000 }, { 3, 4, 1000000 } } };
	struct belay_op op = {
		.type = BELAY_OP_REQ, .mode = BELAY_MODE_EX, .wait = true,
		.key = { .lockspace = 0xdeadbeef }, .range = { 1u << 20, (1u << 20) + 4095 },
		.owner = { .node = 1, .client = 1000, .pid = 4000000 },
	};
	uint8_t message[WIRE_MESSAGE_MAX];
	struct wire_writer w;
	struct wire_reader r;

	for (unsigned run = 0; run < RUNS; run++) {
		unsigned put = 0, got = 0;
		double start = now_ns(), middle;

		for (unsigned round = 0; round < ROUNDS; round++) {
			require(wire_frame_begin(&w, message, sizeof(message), &frame) == 0);
			do {
				op.request = 100000 + put++;
				op.key.id[0] = one_key ? 0 : (uint8_t)put;
			} while (wire_put_op(&w, &op) == 0);
			put--;
		}
		middle = now_ns();
		for (unsigned round = 0; round < ROUNDS; round++) {
			require(wire_frame_open(&r, message, wire_size(&w), &frame) == 0);
			while (wire_get_op(&r, &op) > 0)
				got++;
		}
		require(got == put);
		ret_figures->encode_ns[run] = (middle - start) / put;
		ret_figures->decode_ns[run] = (now_ns() - middle) / got;
		ret_figures->bytes = (double)wire_size(&w) * ROUNDS / put;
	}
}

static void measure_locks(struct figures *ret_figures)
{
	struct wire_snapshot head = { .node = 1, .incarnation = 2, .to = 3, .to_incarnation = 4 };
	struct belay_record lock = {
		.type = BELAY_RECORD_LOCK, .owner_number = 1000, .mode = BELAY_MODE_EX,
		.range = { 1u << 20, (1u << 20) + 4095 },
	};
	uint8_t message[WIRE_MESSAGE_MAX];
	struct wire_writer w;
	struct wire_reader r;

	for (unsigned run = 0; run < RUNS; run++) {
		unsigned put = 0, got = 0;
		double start = now_ns(), middle;

		for (unsigned round = 0; round < ROUNDS; round++) {
			require(wire_snapshot_begin(&w, message, sizeof(message), &head) == 0);
			do
				lock.resource_number = 100000 + put++;
			while (wire_put_record(&w, &lock) == 0);
			put--;
		}
		middle = now_ns();
		for (unsigned round = 0; round < ROUNDS; round++) {
			require(wire_snapshot_open(&r, message, wire_size(&w), &head) == 0);
			while (wire_get_record(&r, &lock) > 0)
				got++;
		}
		ret_figures->encode_ns[run] = (middle - start) / put;
		ret_figures->decode_ns[run] = (now_ns() - middle) / got;
		ret_figures->bytes = (double)wire_size(&w) * ROUNDS / put;
	}
}

static void print_runs(const char *what, const char *figure, const double *values)
{
	printf("wire.%s_%s", what, figure);
	for (unsigned run = 0; run < RUNS; run++)
		printf(" %.1f", values[run]);
	printf("\n");
}

static void print_figures(const char *what, const struct figures *f)
{
	print_runs(what, "encode_ns", f->encode_ns);
	print_runs(what, "decode_ns", f->decode_ns);
	printf("wire.%s_bytes %.1f\n", what, f->bytes);
}

int main(void)
{
	struct figures f;

	measure_ops(false, &f);
	print_figures("request", &f);
	measure_ops(true, &f);
	print_figures("request_of_same_key", &f);
	measure_locks(&f);
	print_figures("snapshot_lock", &f);
	return EXIT_SUCCESS;
}
