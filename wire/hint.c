/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "wire/hint.h"

#include <assert.h>

#include "wire/parts.h"

static bool head_valid(const struct wire_hints *head)
{
	return head->node != 0 && head->incarnation != 0 && head->to != 0;
}

int wire_hints_begin(struct wire_writer *w, void *buf, size_t size, const struct wire_hints *head)
{
	struct writer c = wire_message_begin(buf, size, WIRE_HINTS);

	assert(head_valid(head));
	put_varint(&c, head->node);
	put_u64(&c, head->incarnation);
	put_varint(&c, head->to);
	put_u64(&c, head->to_incarnation);
	return message_begun(w, &c, buf, head->node);
}

int wire_put_hint(struct wire_writer *w, const struct wire_hints *head, const struct belay_hint *hint)
{
	struct writer c = { .at = w->buf + w->at, .end = w->buf + w->size };

	assert(hint->node == head->node && hint->incarnation == head->incarnation);
	assert(hint->to_incarnation == head->to_incarnation);
	assert(hint->owner.node == hint->node && hint->owner.kind < BELAY_KIND_COUNT);
	assert(hint->seq != 0 && range_valid(&hint->range));

	put_u8(&c, (uint8_t)hint->owner.kind);
	put_varint(&c, hint->waiter);
	put_u64(&c, hint->prefix);
	put_varint(&c, hint->seq);
	put_key(&c, &hint->key);
	put_varint(&c, hint->owner.client);
	put_varint(&c, hint->owner.key);
	put_range(&c, &hint->range);
	put_varint(&c, hint->request);
	put_varint(&c, hint->token);
	if (c.error != 0)
		return c.error;
	message_grow(w, &c);
	return 0;
}

int wire_hints_open(struct wire_reader *r, const void *buf, size_t size, struct wire_hints *ret_head)
{
	struct wire_hints head;
	struct reader c;
	int error = message_open(&c, buf, size, WIRE_HINTS);

	if (error < 0)
		return error;
	head.node = get_varint32(&c);
	head.incarnation = get_u64(&c);
	head.to = get_varint32(&c);
	head.to_incarnation = get_u64(&c);
	if (c.error != 0)
		return c.error;
	if (!head_valid(&head))
		return -EBADMSG;

	*r = (struct wire_reader){ .at = c.at, .end = c.end, .node = head.node };
	*ret_head = head;
	return 0;
}

int wire_get_hint(struct wire_reader *r, const struct wire_hints *head, struct belay_hint *ret_hint)
{
	struct reader c = { .at = r->at, .end = r->end };
	struct belay_hint hint = {
		.node = head->node,
		.incarnation = head->incarnation,
		.to_incarnation = head->to_incarnation,
		.owner = { .node = head->node },
	};
	uint8_t kind;

	if (c.at == c.end)
		return 0;
	kind = get_u8(&c);
	hint.waiter = get_varint32(&c);
	hint.prefix = get_u64(&c);
	hint.seq = get_varint(&c, UINT64_MAX);
	hint.key = get_key(&c);
	hint.owner.client = get_varint32(&c);
	hint.owner.key = get_varint(&c, UINT64_MAX);
	hint.range = get_range(&c);
	hint.request = get_varint32(&c);
	hint.token = get_varint(&c, UINT64_MAX);
	if (c.error != 0)
		return c.error;
	if (kind >= BELAY_KIND_COUNT || hint.seq == 0)
		return -EBADMSG;
	hint.owner.kind = kind;
	r->at = c.at;
	*ret_hint = hint;
	return 1;
}
