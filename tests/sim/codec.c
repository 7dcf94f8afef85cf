/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * With --wire every message goes through bytes and back before it is
 * sent: a run must then go exactly as it does without, or the codec lost
 * something.
 */
#include <assert.h>
#include <string.h>

#include "tests/sim/sim.h"
#include "wire/hint.h"

static void frame_trip(struct sim *sim, struct message *message, void *buf)
{
	struct belay_frame frame = {
		.node = message->node, .incarnation = message->incarnation, .seq = message->seq,
		.ask = message->ask, .ack_count = message->ack_count,
	}, got;
	struct belay_ack *ack = NULL;
	struct wire_writer w;
	struct wire_reader r;
	uint32_t count = 0;
	int more = 0;

	if (message->ack_count > 0)
		memcpy(frame.ack, message->ack, sizeof(frame.ack[0]) * message->ack_count);
	if (wire_frame_begin(&w, buf, WIRE_MESSAGE_MAX, &frame) < 0) {
		sim_fail(sim, "wire: a frame's head does not fit");
		return;
	}
	for (uint32_t i = 0; i < message->op_count; i++)
		if (wire_put_op(&w, &message->op[i]) < 0)
			sim_fail(sim, "wire: op %u of a frame does not fit", i);
	if (wire_frame_open(&r, buf, wire_size(&w), &got) < 0) {
		sim_fail(sim, "wire: its own frame does not open");
		return;
	}
	message->incarnation = got.incarnation;
	message->seq = got.seq;
	message->ask = got.ask;
	message->ack_count = got.ack_count;
	if (got.ack_count > 0) {
		ack = arena_alloc(&sim->arena, sizeof(*ack) * got.ack_count);
		memcpy(ack, got.ack, sizeof(*ack) * got.ack_count);
	}
	message->ack = ack;
	while (count < message->op_count && (more = wire_get_op(&r, &message->op[count])) == 1)
		count++;
	if (count != message->op_count || wire_get_op(&r, &(struct belay_op){ 0 }) != 0)
		sim_fail(sim, "wire: %u ops went in, %u come out (%d)", message->op_count, count, more);
}

static void snapshot_trip(struct sim *sim, struct message *message, void *buf)
{
	struct wire_writer w;
	struct wire_reader r;
	uint32_t count = 0;

	if (wire_snapshot_begin(&w, buf, WIRE_MESSAGE_MAX, &message->head) < 0) {
		sim_fail(sim, "wire: the head of a snapshot does not fit");
		return;
	}
	for (uint32_t i = 0; i < message->record_count; i++)
		if (wire_put_record(&w, &message->record[i]) < 0)
			sim_fail(sim, "wire: record %u of a snapshot does not fit", i);
	if (wire_snapshot_open(&r, buf, wire_size(&w), &message->head) < 0) {
		sim_fail(sim, "wire: its own snapshot does not open");
		return;
	}
	while (count < message->record_count && wire_get_record(&r, &message->record[count]) == 1)
		count++;
	if (count != message->record_count || wire_get_record(&r, &(struct belay_record){ 0 }) != 0)
		sim_fail(sim, "wire: %u records went in, %u come out", message->record_count, count);
}

void codec_trip(struct sim *sim, struct message *message)
{
	unsigned char buf[WIRE_MESSAGE_MAX];

	if (message->kind == MESSAGE_FRAME)
		frame_trip(sim, message, buf);
	else
		snapshot_trip(sim, message, buf);
}

void codec_hint_trip(struct sim *sim, struct belay_hint *hint, uint32_t to)
{
	const struct wire_hints head = {
		.node = hint->node, .incarnation = hint->incarnation, .to = to, .to_incarnation = hint->to_incarnation,
	};
	unsigned char buf[WIRE_MESSAGE_MAX];
	struct wire_hints got;
	struct wire_writer w;
	struct wire_reader r;

	if (wire_hints_begin(&w, buf, sizeof(buf), &head) < 0 || wire_put_hint(&w, &head, hint) < 0)
		sim_fail(sim, "wire: a hint does not fit");
	else if (wire_hints_open(&r, buf, wire_size(&w), &got) < 0 || wire_get_hint(&r, &got, hint) != 1)
		sim_fail(sim, "wire: its own hint does not open");
}
