/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What this node has yet to multicast: ops in order, packed into frames.
 *
 * Ops gather and leave in one frame at the end of a loop turn, because a
 * message costs the ring the same whether it carries one op or a hundred.
 * Few frames are under way at once, so that under load the next one fills
 * while the former ones travel. What the group refuses (-EAGAIN) stays queued:
 * nothing is lost, and nobody spins.
 */
#ifndef BELAY_DAEMON_OUTBOX_H
#define BELAY_DAEMON_OUTBOX_H

#include <stddef.h>

#include "core/types.h"
#include "daemon/histogram.h"

/* Size of a frame: beyond a few KiB larger messages gain little and delay others. */
#define OUTBOX_FRAME_MAX 8192u
/* Ops that about fill a frame of that size. */
#define OUTBOX_FRAME_OPS 200u
/* Non-empty frames under way: normally, and while ops for full frames wait. */
#define OUTBOX_WINDOW 2u
#define OUTBOX_WINDOW_FULL 32u
/* Ops queued (about 1 MB of frames) from which clients are no longer read ... */
#define OUTBOX_HIGH 25000u
/* ... until so few are left. */
#define OUTBOX_LOW 5000u
/* How long an op that nobody waits for may wait for company. */
#define OUTBOX_COMPANY_US 1000u
/* After the group said -EAGAIN, unless a delivery comes first. */
#define OUTBOX_RETRY_US 1000u

/* The outside world; both are called from outbox_flush() only. */
struct outbox_port {
	/* As group_ops.send. */
	int (*send)(void *context, const void *buf, size_t size);
	/* Fill in node, incarnation and acks. */
	void (*head)(void *context, struct belay_frame *ret_frame);
	void *context;
};

struct outbox_stats {
	uint64_t frames;	/* with ops */
	uint64_t empty_frames;	/* acks only */
	uint64_t ops;
	uint64_t bytes;
	uint64_t again;		/* the group said -EAGAIN */
	uint64_t pressures;	/* times clients had to wait */
	uint64_t pressure_us;	/* for how long, all in all */
	uint32_t queued;	/* ops, now */
	uint32_t in_flight;	/* frames with ops, now */
	bool pressed;		/* clients have to wait, now */
	/* How long the oldest frame, sent or refused, has not been delivered; acks alone do
	 * not count once sent. */
	uint64_t undelivered_us;
};

struct outbox;

/* The port must outlive the outbox. -ENOMEM. */
int outbox_new(const struct outbox_port *port, struct outbox **ret_outbox);
void outbox_free(struct outbox *o);

/*
 * Queue a copy of @op; it leaves at outbox_flush() once @due_us has come (0:
 * the next one). Ops leave in order, so an op takes those before it along.
 * -ENOMEM: not queued.
 */
int outbox_push(struct outbox *o, const struct belay_op *op, uint64_t now_us, uint64_t due_us);

/* A frame must leave at the next flush, even without ops. */
void outbox_want_frame(struct outbox *o, bool ask);

/* Send what is due and may go. */
void outbox_flush(struct outbox *o, uint64_t now_us);

/* When to flush again; 0: now; UINT64_MAX: nothing is waiting for time to pass. */
uint64_t outbox_deadline(const struct outbox *o);

/* A frame of this node, of this life, was delivered. */
void outbox_delivered(struct outbox *o, bool has_ops, uint64_t now_us);

/* A new life: ops queued are void, numbering starts again. */
void outbox_restart(struct outbox *o, uint64_t now_us);

/* Too much is queued: make no more. */
bool outbox_pressure(const struct outbox *o);
/* Nothing is queued, due or not. */
bool outbox_empty(const struct outbox *o);

void outbox_stats(const struct outbox *o, uint64_t now_us, struct outbox_stats *ret_stats);
/* Time from sending a frame to its delivery here. */
struct histogram *outbox_latency(struct outbox *o);

#endif
