/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * belay-lvmlockd's hands on device-mapper, by themselves, for a test on a real kernel:
 *
 *	dm_probe list			each device of LVM: name depth top|part targets MB
 *	dm_probe NAME ACTION...		one after the other: prints "ACTION RESULT [WHERE]"
 *
 * Actions are those of enum dm_action; "end": wait for the end of what hangs; "interrupt":
 * break it off; "wait": for a line of input. Tables are those from before the first action.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lvmlockd/dm.h"
#include "lvmlockd/worker.h"

#define DEADLINE_MS 1500

struct probe {
	qb_loop_t *loop;
	const struct dm_port *port;
	const char *name;		/* NULL: list */
	char **words;
	struct dm_order order;
	char *table, *beneath;
	void *ticket;
	bool hangs;
	int status;
};

static const char *const actions[DM_ACTION_COUNT] = {
	[DM_SUSPEND] = "suspend", [DM_RESUME] = "resume", [DM_ERROR] = "error", [DM_FAIL] = "fail",
	[DM_RESTORE] = "restore",
};

static void next(void *data);

static void end(struct probe *p, int status)
{
	p->status = status;
	qb_loop_stop(p->loop);
}

static void on_acted(void *data, int result, const char *where)
{
	struct probe *p = data;

	printf("%s %s%s%s\n", actions[p->order.action], result ? strerrorname_np(-result) : "done",
	       where[0] ? " " : "", where);
	fflush(stdout);
	p->hangs = result == -EINPROGRESS;
	if (qb_loop_job_add(p->loop, QB_LOOP_MED, p, next) < 0)
		end(p, 3);
}

static void act(struct probe *p, const char *word)
{
	for (unsigned i = 0; i < DM_ACTION_COUNT; i++) {
		if (strcmp(word, actions[i]) != 0)
			continue;
		p->order.action = (enum dm_action)i;
		if (p->port->act(p->port->context, &p->order, on_acted, p, &p->ticket) < 0)
			end(p, 3);
		return;
	}
	fprintf(stderr, "dm_probe: no such action: %s\n", word);
	end(p, 2);
}

static void next(void *data)
{
	struct probe *p = data;
	const char *word = *p->words;

	if (!word) {
		end(p, 0);
		return;
	}
	p->words++;
	if (p->hangs && strcmp(word, "end") == 0)
		return;
	if (strcmp(word, "wait") == 0) {
		while (getchar() >= ' ')
			;
		next(p);
	} else if (p->hangs && strcmp(word, "interrupt") == 0) {
		p->port->interrupt(p->port->context, p->ticket);
	} else {
		act(p, word);
	}
}

static void on_listed(void *data, int result, const struct dm_devices *devices)
{
	struct probe *p = data;
	const struct dm_device *found = NULL;
	char lock[DM_LVM_UUID_MAX + 1];

	if (result < 0) {
		printf("list %s\n", strerrorname_np(-result));
		end(p, 1);
		return;
	}
	for (size_t i = 0; i < devices->count; i++) {
		const struct dm_device *d = &devices->device[i];

		if (p->name && strcmp(d->name, p->name) == 0)
			found = d;
		if (!p->name && dm_lock_of(devices, d, lock))
			printf("%s %u %s %s %llu\n", d->name, d->depth, dm_is_top(d) ? "top" : "part", d->targets,
			       (unsigned long long)(d->size_bytes >> 20));
	}
	if (!found) {
		end(p, p->name ? 1 : 0);
		return;
	}
	memcpy(p->order.uuid, found->uuid, sizeof(p->order.uuid));
	memcpy(p->order.name, found->name, sizeof(p->order.name));
	p->order.table = p->table = found->table ? strdup(found->table) : NULL;
	p->order.beneath = p->beneath = found->beneath ? strdup(found->beneath) : NULL;
	if (qb_loop_job_add(p->loop, QB_LOOP_MED, p, next) < 0)
		end(p, 3);
}

int main(int argc, char **argv)
{
	struct probe p = { .status = 3 };
	struct worker *worker;
	struct dm *dm;

	if (argc < 2)
		return 2;
	if (strcmp(argv[1], "list") != 0)
		p.name = argv[1];
	p.words = argv + 2;
	p.loop = qb_loop_create();
	if (!p.loop || worker_new(p.loop, &worker) < 0 || dm_open(worker, DEADLINE_MS, &dm) < 0)
		return 3;
	p.port = dm_port(dm);
	if (p.port->list(p.port->context, true, on_listed, &p) == 0)
		qb_loop_run(p.loop);
	dm_close(dm);
	worker_free(worker);
	qb_loop_destroy(p.loop);
	free(p.table);
	free(p.beneath);
	return p.status;
}
