/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/fake_dm.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake_answer {
	bool tables;
	dm_listed listed;
	dm_acted acted;
	void *data;
	struct dm_order order;
	bool hung;		/* has answered -EINPROGRESS */
	bool over;		/* hung, and the end is to be told: */
	int result;
	struct fake_answer *next;
};

/* ---- devices ---- */

void fake_dm_write(struct fake_device *f)
{
	if (f->device.suspended || f->hangs)
		f->waiting++;
	else if (dm_is_error(&f->device))
		f->errors++;
	else
		f->io++;
}

static void let_loose(struct fake_device *f)
{
	int n = f->waiting;

	f->waiting = 0;
	while (n-- > 0)
		fake_dm_write(f);
}

static void make_id(const char *id, char *ret_text)
{
	memset(ret_text, id[0], 32);
	memset(ret_text + 32, id[1], 32);
	ret_text[64] = '\0';
}

static void hyphenated(const char *id32, char buffer[DM_LVM_UUID_MAX + 1])
{
	(void)snprintf(buffer, DM_LVM_UUID_MAX + 1, "%.6s-%.4s-%.4s-%.4s-%.4s-%.4s-%.6s", id32, id32 + 6, id32 + 10,
		       id32 + 14, id32 + 18, id32 + 22, id32 + 26);
}

const char *fake_lv_uuid(const char *id, char buffer[DM_LVM_UUID_MAX + 1])
{
	char text[65];

	make_id(id, text);
	hyphenated(text + 32, buffer);
	return buffer;
}

const char *fake_vg_uuid(const char *id, char buffer[DM_LVM_UUID_MAX + 1])
{
	char text[65];

	make_id(id, text);
	hyphenated(text, buffer);
	return buffer;
}

struct fake_device *fake_dm_add(struct fake_dm *dm, const char *id, const char *layer, const char *name,
				const char *targets)
{
	struct fake_device *f = &dm->device[dm->count];
	char text[65];

	assert(dm->count < FAKE_DEVICES_MAX);
	make_id(id, text);
	*f = (struct fake_device){ .device = { .major = 253, .minor = (uint32_t)dm->count, .live = true,
					       .size_bytes = 1024 * 512 } };
	(void)snprintf(f->device.uuid, sizeof(f->device.uuid), "LVM-%s%s", text, layer);
	(void)snprintf(f->device.name, sizeof(f->device.name), "%s", name);
	(void)snprintf(f->device.targets, sizeof(f->device.targets), "%s", targets);
	(void)snprintf(f->table, sizeof(f->table), "0 1024 %s 8:0 %zu", targets, dm->count);
	dm->count++;
	return f;
}

struct fake_device *fake_dm_find(struct fake_dm *dm, const char *name)
{
	for (size_t i = 0; i < dm->count; i++)
		if (strcmp(dm->device[i].device.name, name) == 0)
			return &dm->device[i];
	assert(0);
}

void fake_dm_stack(struct fake_device *above, const struct fake_device *below)
{
	assert(above->device.below_count < 4);
	above->below[above->device.below_count++] = DM_NUMBER(below->device.major, below->device.minor);
}

/* ---- the port ---- */

static struct fake_answer *add_answer(struct fake_dm *dm)
{
	struct fake_answer *answer = calloc(1, sizeof(*answer)), **end = &dm->answers;

	assert(answer);
	while (*end)
		end = &(*end)->next;
	*end = answer;
	return answer;
}

static void remove_answer(struct fake_dm *dm, struct fake_answer *answer)
{
	struct fake_answer **at = &dm->answers;

	while (*at != answer)
		at = &(*at)->next;
	*at = answer->next;
	free(answer);
}

static int list(void *context, bool tables, dm_listed done, void *data)
{
	struct fake_dm *dm = context;
	struct fake_answer *answer = add_answer(dm);

	dm->lists++;
	answer->tables = tables;
	answer->listed = done;
	answer->data = data;
	return 0;
}

static int act(void *context, const struct dm_order *order, dm_acted done, void *data, void **ret_ticket)
{
	struct fake_answer *answer = add_answer(context);

	answer->order = *order;
	answer->order.table = order->table ? strdup(order->table) : NULL;
	answer->acted = done;
	answer->data = data;
	*ret_ticket = answer;
	return 0;
}

static struct fake_device *target_of(struct fake_dm *dm, const struct fake_answer *answer)
{
	for (size_t i = 0; i < dm->count; i++)
		if (!dm->device[i].gone && strcmp(dm->device[i].device.uuid, answer->order.uuid) == 0)
			return &dm->device[i];
	return NULL;
}

static void interrupt(void *context, void *ticket)
{
	struct fake_answer *answer = ticket;
	struct fake_device *f = target_of(context, answer);

	assert(answer->hung && !answer->over);
	answer->over = true;
	answer->result = -EINTR;
	/* The kernel takes back what it had begun. */
	f->hangs = false;
	let_loose(f);
}

static void forget(void *context, void *ticket)
{
	struct fake_answer *answer = ticket;

	free((char *)(uintptr_t)answer->order.table);
	remove_answer(context, ticket);
}

static void unlist(void *context, void *data)
{
	struct fake_dm *dm = context;

	for (struct fake_answer *a = dm->answers; a; a = a->next) {
		if (!a->listed || a->data != data)
			continue;
		remove_answer(dm, a);
		return;
	}
}

/* ---- answers ---- */

static void answer_list(struct fake_dm *dm, const struct fake_answer *answer)
{
	struct dm_devices devices = { .device = NULL };
	struct dm_buffer buffer = { .text = NULL };

	for (size_t i = 0; i < dm->count; i++) {
		struct dm_device device = dm->device[i].device;

		device.below = dm->device[i].below;
		device.table = answer->tables ? dm->device[i].table : NULL;
		if (!dm->device[i].gone)
			assert(dm_format(&buffer, &device) == 0);
	}
	if (dm->list_fails == 0)
		assert(dm_parse(buffer.text, buffer.size, &devices) == 0);
	free(buffer.text);
	answer->listed(answer->data, dm->list_fails, dm->list_fails == 0 ? &devices : NULL);
	dm_devices_done(&devices);
}

static void set_table(struct fake_device *f, const char *targets, const char *table)
{
	(void)snprintf(f->device.targets, sizeof(f->device.targets), "%s", targets);
	(void)snprintf(f->table, sizeof(f->table), "%s", table);
	f->device.suspended = false;
	let_loose(f);
}

static int do_act(struct fake_device *f, const struct dm_order *order)
{
	if (f->fails[order->action] != 0)
		return f->fails[order->action];
	switch (order->action) {
	case DM_SUSPEND:
		if (f->device.suspended)
			return -EALREADY;
		f->device.suspended = true;
		return 0;
	case DM_RESUME:
		if (!f->device.suspended)
			return -EALREADY;
		if (f->device.inactive)
			return -EBUSY;
		f->device.suspended = false;
		let_loose(f);
		return 0;
	case DM_ERROR:
	case DM_FAIL:
		if (f->device.suspended != (order->action == DM_FAIL))
			return -EALREADY;
		if (order->table && strcmp(order->table, f->table) != 0)
			return -ESTALE;
		set_table(f, "error", "0 1024 error ");
		return 0;
	default:
		if (!dm_is_error(&f->device))
			return -EALREADY;
		if (!order->table || !dm_is_stateless(order->table))
			return -EOPNOTSUPP;
		set_table(f, "linear", order->table);
		return 0;
	}
}

static void note(struct fake_dm *dm, const struct dm_order *order, int result)
{
	static const char *const names[DM_ACTION_COUNT] = { "suspend", "resume", "error", "fail", "restore" };
	size_t used = strlen(dm->order);

	(void)snprintf(dm->order + used, sizeof(dm->order) - used, "%s%s %s%s", used > 0 ? "; " : "",
		       names[order->action], order->name,
		       result == -EINPROGRESS ? " (hangs)" : result < 0 ? " (no)" : "");
}

static void answer_act(struct fake_dm *dm, struct fake_answer *answer)
{
	struct fake_device *f = target_of(dm, answer);
	bool may_hang = answer->order.action == DM_SUSPEND || answer->order.action == DM_ERROR;
	int r = answer->result;

	if (!answer->over) {
		if (f && f->hangs && may_hang)
			r = -EINPROGRESS;
		else
			r = f ? do_act(f, &answer->order) : -ENXIO;
		note(dm, &answer->order, r);
	}
	answer->hung = r == -EINPROGRESS;
	answer->acted(answer->data, r, r == -EINPROGRESS ? "dm_wait_for_completion" : "");
	if (!answer->hung)
		forget(dm, answer);
}

void fake_dm_unhang(struct fake_dm *dm, struct fake_device *f)
{
	f->hangs = false;
	for (struct fake_answer *a = dm->answers; a; a = a->next) {
		if (!a->hung || target_of(dm, a) != f)
			continue;
		a->over = true;
		a->result = do_act(f, &a->order);
	}
}

bool fake_dm_run(struct fake_dm *dm)
{
	struct fake_answer *answer;
	bool any = false;

	for (;;) {
		answer = dm->answers;
		while (answer && answer->hung && !answer->over)
			answer = answer->next;
		if (!answer)
			return any;
		any = true;
		if (answer->listed) {
			answer_list(dm, answer);
			remove_answer(dm, answer);
		} else {
			answer_act(dm, answer);
		}
	}
}

void fake_dm_init(struct fake_dm *dm)
{
	*dm = (struct fake_dm){ .device = calloc(FAKE_DEVICES_MAX, sizeof(*dm->device)) };
	assert(dm->device);
	dm->port = (struct dm_port){
		.list = list, .act = act, .interrupt = interrupt, .forget = forget, .unlist = unlist, .context = dm,
	};
}

void fake_dm_done(struct fake_dm *dm)
{
	while (dm->answers)
		forget(dm, dm->answers);
	free(dm->device);
}
