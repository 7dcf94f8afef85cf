/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/hold.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void hold_init(struct hold *h, size_t bytes_max)
{
	*h = (struct hold){ .bytes_max = bytes_max };
}

static int add(struct hold *h, const struct hold_entry *head, const void *bytes)
{
	size_t size = sizeof(*head) + head->size;
	struct hold_entry *entry;

	if (size > h->bytes_max - h->bytes)
		return -ENOMEM;
	entry = malloc(size);
	if (!entry)
		return -ENOMEM;
	*entry = *head;
	memcpy(entry->bytes, bytes, head->size);
	if (h->last)
		h->last->next = entry;
	else
		h->first = entry;
	h->last = entry;
	h->bytes += size;
	return 0;
}

int hold_add_view(struct hold *h, const struct group_view *view)
{
	struct hold_entry head = { .is_view = true, .size = sizeof(*view) };

	return add(h, &head, view);
}

int hold_add_message(struct hold *h, uint32_t node, uint32_t skip, const void *buf, size_t size)
{
	struct hold_entry head = {
		.node = node, .skip = skip, .limit = UINT32_MAX, .size = size,
	};

	return add(h, &head, buf);
}

struct hold_entry *hold_take(struct hold *h)
{
	struct hold_entry *entry = h->first;

	if (!entry)
		return NULL;
	h->first = entry->next;
	if (!h->first)
		h->last = NULL;
	h->bytes -= sizeof(*entry) + entry->size;
	return entry;
}

void hold_clear(struct hold *h)
{
	struct hold_entry *entry;

	while ((entry = hold_take(h)))
		free(entry);
}
