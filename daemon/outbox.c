/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/outbox.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/wire.h"

struct outbox {
	const struct outbox_port *port;
	/* Ring of queued ops; size is a power of two. */
	struct belay_op *ops;
	uint32_t size, first, count;
	uint64_t due_us;		/* of the queue; UINT64_MAX if it is empty */
	uint64_t retry_us;		/* the group is not asked again before; 0: at once */
	uint64_t refused_us;		/* since when it has taken nothing; 0: it does */
	bool want_frame, want_ask;
	uint64_t next_seq;		/* number of the first op queued */
	/* When the frames under way were sent; a ring, for all have to come back. */
	uint64_t sent_us[OUTBOX_WINDOW_FULL];
	uint32_t sent_first, in_flight;
	bool pressure;
	uint64_t pressure_since_us;
	struct outbox_stats stats;
	struct histogram latency;
	struct belay_frame frame;
	uint8_t buf[OUTBOX_FRAME_MAX];
};

int outbox_new(const struct outbox_port *port, struct outbox **ret_outbox)
{
	struct outbox *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	o->size = 256;
	o->ops = malloc(o->size * sizeof(*o->ops));
	if (!o->ops) {
		free(o);
		return -ENOMEM;
	}
	o->port = port;
	o->next_seq = 1;
	o->due_us = UINT64_MAX;
	*ret_outbox = o;
	return 0;
}

void outbox_free(struct outbox *o)
{
	if (!o)
		return;
	free(o->ops);
	free(o);
}

static int grow(struct outbox *o)
{
	struct belay_op *ops;
	uint32_t head = o->size - o->first;

	if (o->size > UINT32_MAX / 2)
		return -ENOMEM;
	ops = malloc(2 * (size_t)o->size * sizeof(*ops));
	if (!ops)
		return -ENOMEM;
	memcpy(ops, o->ops + o->first, head * sizeof(*ops));
	memcpy(ops + head, o->ops, o->first * sizeof(*ops));
	free(o->ops);
	o->ops = ops;
	o->size *= 2;
	o->first = 0;
	return 0;
}

static void set_pressure(struct outbox *o, uint64_t now_us)
{
	if (!o->pressure && o->count > OUTBOX_HIGH) {
		o->pressure = true;
		o->pressure_since_us = now_us;
		o->stats.pressures++;
	} else if (o->pressure && o->count < OUTBOX_LOW) {
		o->pressure = false;
		o->stats.pressure_us += now_us - o->pressure_since_us;
	}
}

int outbox_push(struct outbox *o, const struct belay_op *op, uint64_t now_us, uint64_t due_us)
{
	int r;

	if (o->count == o->size) {
		r = grow(o);
		if (r < 0)
			return r;
	}
	o->ops[(o->first + o->count) & (o->size - 1)] = *op;
	o->count++;
	if (due_us < o->due_us)
		o->due_us = due_us;
	set_pressure(o, now_us);
	return 0;
}

void outbox_want_frame(struct outbox *o, bool ask)
{
	o->want_frame = true;
	o->want_ask |= ask;
}

static bool window_open(const struct outbox *o)
{
	if (o->count >= OUTBOX_FRAME_OPS)
		return o->in_flight < OUTBOX_WINDOW_FULL;
	return o->in_flight < OUTBOX_WINDOW;
}

/* Pack as many of the ops (at most @max) as fit into the buffer. */
static size_t build(struct outbox *o, uint32_t max, uint32_t *ret_packed)
{
	struct wire_writer w;
	uint32_t n = 0;
	int r;

	o->port->head(o->port->context, &o->frame);
	o->frame.seq = o->next_seq;
	o->frame.ask = o->want_ask;
	r = wire_frame_begin(&w, o->buf, sizeof(o->buf), &o->frame);
	assert(r == 0);		/* a head with all acks is far smaller */
	while (n < max && wire_put_op(&w, &o->ops[(o->first + n) & (o->size - 1)]) == 0)
		n++;
	assert(n > 0 || max == 0);
	*ret_packed = n;
	return wire_size(&w);
}

static void note_sent(struct outbox *o, uint32_t packed, size_t size, uint64_t now_us)
{
	o->first = (o->first + packed) & (o->size - 1);
	o->count -= packed;
	o->next_seq += packed;
	o->want_frame = o->want_ask = false;
	o->stats.bytes += size;
	o->stats.ops += packed;
	if (packed == 0) {
		o->stats.empty_frames++;
		return;
	}
	o->stats.frames++;
	o->sent_us[(o->sent_first + o->in_flight) % OUTBOX_WINDOW_FULL] = now_us;
	o->in_flight++;
	if (o->count == 0)
		o->due_us = UINT64_MAX;
	set_pressure(o, now_us);
}

/* 0, or the group's error; -EAGAIN is a matter of waiting, all else of on_lost. */
static int send_frame(struct outbox *o, uint32_t max, uint64_t now_us)
{
	uint32_t packed;
	size_t size = build(o, max, &packed);
	int r = o->port->send(o->port->context, o->buf, size);

	if (r == 0) {
		o->refused_us = 0;
		note_sent(o, packed, size, now_us);
	} else {
		o->stats.again++;
		if (o->refused_us == 0)
			o->refused_us = now_us;
		o->retry_us = now_us + OUTBOX_RETRY_US;
	}
	return r;
}

static bool ops_due(const struct outbox *o, uint64_t now_us)
{
	return o->count > 0 &&
	       (o->due_us <= now_us || o->want_frame || o->count >= OUTBOX_FRAME_OPS);
}

void outbox_flush(struct outbox *o, uint64_t now_us)
{
	if (now_us < o->retry_us)
		return;
	o->retry_us = 0;
	while (ops_due(o, now_us) && window_open(o)) {
		if (send_frame(o, o->count, now_us) < 0)
			return;
	}
	/* An ack must not wait for the window, for others wait for it; and a message that
	 * has to leave anyway takes along what does wait. */
	if (o->want_frame)
		(void)send_frame(o, o->in_flight < OUTBOX_WINDOW_FULL ? o->count : 0, now_us);
}

uint64_t outbox_deadline(const struct outbox *o)
{
	uint64_t due = o->want_frame ? 0 : UINT64_MAX;

	/* With a closed window a delivery opens it, not time. */
	if (o->count > 0 && window_open(o))
		due = o->count >= OUTBOX_FRAME_OPS || o->want_frame ? 0 : o->due_us;
	return due < o->retry_us ? o->retry_us : due;
}

void outbox_delivered(struct outbox *o, bool has_ops, uint64_t now_us)
{
	o->retry_us = 0;
	if (!has_ops || o->in_flight == 0)
		return;
	histogram_add(&o->latency, now_us - o->sent_us[o->sent_first]);
	o->sent_first = (o->sent_first + 1) % OUTBOX_WINDOW_FULL;
	o->in_flight--;
}

void outbox_restart(struct outbox *o, uint64_t now_us)
{
	o->first = o->count = 0;
	o->due_us = UINT64_MAX;
	o->want_frame = o->want_ask = false;
	o->next_seq = 1;
	/* The frames of the former life may still come back; they are not waited for. */
	o->in_flight = 0;
	o->refused_us = 0;
	set_pressure(o, now_us);
}

bool outbox_pressure(const struct outbox *o)
{
	return o->pressure;
}

bool outbox_empty(const struct outbox *o)
{
	return o->count == 0 && !o->want_frame;
}

static uint64_t undelivered_us(const struct outbox *o, uint64_t now_us)
{
	uint64_t since_us = now_us;

	if (o->in_flight > 0)
		since_us = o->sent_us[o->sent_first];
	if (o->refused_us != 0 && o->refused_us < since_us)
		since_us = o->refused_us;
	return now_us - since_us;
}

void outbox_stats(const struct outbox *o, uint64_t now_us, struct outbox_stats *ret_stats)
{
	*ret_stats = o->stats;
	ret_stats->queued = o->count;
	ret_stats->in_flight = o->in_flight;
	ret_stats->pressed = o->pressure;
	ret_stats->undelivered_us = undelivered_us(o, now_us);
	if (o->pressure)
		ret_stats->pressure_us += now_us - o->pressure_since_us;
}

struct histogram *outbox_latency(struct outbox *o)
{
	return &o->latency;
}
