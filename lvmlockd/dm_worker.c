/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The port to device-mapper: each call is a child, in which dm_ioctl.c speaks with the kernel. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "lvmlockd/dm.h"
#include "lvmlockd/dm_ioctl.h"
#include "lvmlockd/worker.h"

#define LIST_DEADLINE_MS 30000u
#define LIST_BYTES_MAX (64u * 1024 * 1024)

struct call {
	struct worker_job *job;
	dm_listed listed;
	dm_acted acted;
	void *data;
	LIST_ENTRY(call) link;
};

struct dm {
	struct worker *worker;
	LIST_HEAD(, call) calls;
	uint32_t deadline_ms;
	struct dm_port port;
};

static void free_call(struct call *call)
{
	LIST_REMOVE(call, link);
	free(call);
}

/* Takes the place of worker_start(): the call is in the list if it is under way, and freed if not. */
static int start(struct dm *dm, const struct worker_task *task, struct call *call)
{
	int r = worker_start(dm->worker, task, &call->job);

	if (r < 0)
		free(call);
	else
		LIST_INSERT_HEAD(&dm->calls, call, link);
	return r;
}

static int result_of(const struct worker_result *result)
{
	/* Of a function of dm.c the status is an errno. */
	return result->end == WORKER_EXITED ? -result->status : worker_errno(result);
}

/* ---- list ---- */

static void on_listed(void *context, const struct worker_result *result)
{
	struct dm_devices devices = { .device = NULL };
	struct call *call = context;
	int r = result_of(result);

	if (r == 0)
		r = result->truncated ? -E2BIG : dm_parse(result->output, result->size, &devices);
	call->listed(call->data, r, r == 0 ? &devices : NULL);
	dm_devices_done(&devices);
	free_call(call);
}

static int list(void *context, bool tables, dm_listed done, void *data)
{
	struct dm *dm = context;
	struct worker_task task = {
		.what = "list the devices of device-mapper", .function = dm_ioctl_list, .argument = &tables,
		.argument_size = sizeof(tables), .deadline_ms = LIST_DEADLINE_MS, .output_max = LIST_BYTES_MAX,
		.urgent = true, .done = on_listed,
	};
	struct call *call = calloc(1, sizeof(*call));

	if (!call)
		return -ENOMEM;
	call->listed = done;
	call->data = data;
	task.context = call;
	return start(dm, &task, call);
}

/* ---- act ---- */

static void on_acted(void *context, const struct worker_result *result)
{
	struct call *call = context;

	if (result->end == WORKER_HUNG) {
		call->acted(call->data, -EINPROGRESS, result->where);
		return;
	}
	call->acted(call->data, result_of(result), "");
	free_call(call);
}

static int act(void *context, const struct dm_order *order, dm_acted done, void *data, void **ret_ticket)
{
	struct dm *dm = context;
	/* To kill a child in a suspension takes the suspension back: it is let be. */
	struct worker_task task = {
		.function = dm_ioctl_act, .deadline_ms = dm->deadline_ms, .overdue = WORKER_KEEP, .urgent = true,
		.watch_hung = true, .done = on_acted,
	};
	struct call *call = calloc(1, sizeof(*call));
	void *argument = NULL;
	int r;

	if (!call)
		return -ENOMEM;
	call->acted = done;
	call->data = data;
	(void)snprintf(task.what, sizeof(task.what), "%s %s", dm_action_name(order->action), order->name);
	r = dm_ioctl_pack(order, &argument, &task.argument_size);
	if (r < 0) {
		free(call);
		return r;
	}
	task.argument = argument;
	task.context = call;
	r = start(dm, &task, call);
	free(argument);
	if (r == 0)
		*ret_ticket = call;
	return r;
}

static void interrupt(void *context, void *ticket)
{
	struct call *call = ticket;

	(void)context;
	worker_kill(call->job);
}

static void forget(void *context, void *ticket)
{
	struct call *call = ticket;

	(void)context;
	worker_detach(call->job);
	free_call(call);
}

static void unlist(void *context, void *data)
{
	struct dm *dm = context;
	struct call *call;

	LIST_FOREACH(call, &dm->calls, link)
		if (call->listed && call->data == data)
			break;
	if (call)
		forget(dm, call);
}

/* ---- the interface ---- */

int dm_open(struct worker *worker, uint32_t deadline_ms, struct dm **ret_dm)
{
	struct dm *dm = calloc(1, sizeof(*dm));

	assert(worker && deadline_ms > 0);
	if (!dm)
		return -ENOMEM;
	dm->worker = worker;
	LIST_INIT(&dm->calls);
	dm->deadline_ms = deadline_ms;
	dm->port = (struct dm_port){
		.list = list, .act = act, .interrupt = interrupt, .forget = forget, .unlist = unlist, .context = dm,
	};
	*ret_dm = dm;
	return 0;
}

void dm_close(struct dm *dm)
{
	if (!dm)
		return;
	while (!LIST_EMPTY(&dm->calls))
		forget(dm, LIST_FIRST(&dm->calls));
	free(dm);
}

const struct dm_port *dm_port(const struct dm *dm)
{
	return &dm->port;
}
