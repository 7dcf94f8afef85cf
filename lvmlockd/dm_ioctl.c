/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lvmlockd/dm_ioctl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libdevmapper.h>
#include <linux/prctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

struct argument {
	enum dm_action action;
	char uuid[DM_TEXT_MAX + 1];
	/* texts[]: the table and what is beneath, each with its NUL; "" if not given. */
	size_t table_size;
	char texts[];
};

/* ---- surroundings ---- */

__attribute__((format(printf, 5, 6)))
static void no_log(int level, const char *file, int line, int number, const char *format, ...)
{
	(void)level;
	(void)file;
	(void)line;
	(void)number;
	(void)format;
}

static void begin(void)
{
	/* Errors come as numbers. */
	dm_log_with_errno_init(no_log);
	/*
	 * No cookies: udev may itself wait for a device that is suspended, and nobody waits for udev here. A change
	 * without one is to its rules like any that the kernel tells: they keep the links they have.
	 */
	dm_udev_set_sync_support(0);
	/* Memory that is short must not make us wait for pages to be written to what we suspend. */
	(void)prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
}

/* Runs the task: 0, or the kernel's errno. */
static int run(struct dm_task *task)
{
	int r;

	if (dm_task_run(task))
		return 0;
	r = dm_task_get_errno(task);
	/* Without one, libdevmapper did not get as far as the kernel: there is no device-mapper. */
	return r > 0 ? -r : -ENODEV;
}

static struct dm_task *task_for(int type, const char *uuid)
{
	struct dm_task *task = dm_task_create(type);

	if (task && !dm_task_set_uuid(task, uuid)) {
		dm_task_destroy(task);
		return NULL;
	}
	return task;
}

/* ---- what is below a device ---- */

/* Which life of a number: it grows with each device that the kernel makes. False: not known. */
static bool read_diskseq(uint32_t major, uint32_t minor, uint64_t *ret_seq)
{
	/* A partition has that of its disk. */
	static const char *const where[] = { "diskseq", "../diskseq" };
	char path[80], text[32];
	ssize_t n;
	int fd;

	for (unsigned i = 0; i < 2; i++) {
		(void)snprintf(path, sizeof(path), "/sys/dev/block/%" PRIu32 ":%" PRIu32 "/%s", major, minor, where[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
		text[n > 0 ? n : 0] = '\0';
		if (sscanf(text, "%" SCNu64, ret_seq) == 1)
			return true;
	}
	return false;
}

/* "8:16/17 253:3/21"; '-' for what is not known. NULL: no memory. */
static char *describe_beneath(const uint64_t *below, size_t count)
{
	const size_t each = 48;		/* three numbers and what separates them */
	char *text = malloc(count * each + 1), *at = text;
	uint64_t seq;

	if (!text)
		return NULL;
	*at = '\0';
	for (size_t i = 0; i < count; i++) {
		uint32_t major = (uint32_t)(below[i] >> 32), minor = (uint32_t)below[i];

		at += sprintf(at, "%s%" PRIu32 ":%" PRIu32 "/", i > 0 ? " " : "", major, minor);
		if (read_diskseq(major, minor, &seq))
			at += sprintf(at, "%" PRIu64, seq);
		else
			at += sprintf(at, "-");
	}
	return text;
}

/* Is each device still the one that it was? */
static bool is_beneath(const char *text)
{
	uint32_t major, minor;
	uint64_t was, is;
	int size;

	while (sscanf(text, "%" SCNu32 ":%" SCNu32 "/%" SCNu64 "%n", &major, &minor, &was, &size) == 3) {
		if (!read_diskseq(major, minor, &is) || is != was)
			return false;
		text += size;
		if (*text == '\0')
			return true;
	}
	return false;
}

/* ---- one device ---- */

/* Adds a name to "linear,striped", if it is not in it, and as long as there is room. */
static void add_target(char targets[DM_TARGETS_MAX + 1], const char *type)
{
	size_t size = strlen(type), used = strlen(targets);
	const char *at = targets;

	while (*at) {
		size_t n = strcspn(at, ",");

		if (n == size && strncmp(at, type, n) == 0)
			return;
		at += n + (at[n] == ',');
	}
	if (used + size + 2 <= DM_TARGETS_MAX + 1)
		(void)sprintf(targets + used, "%s%s", used > 0 ? "," : "", type);
}

/* The live table's size, kinds and, if wanted, text. A table too long for us stays without. */
static int take_table(struct dm_task *task, bool text, struct dm_device *device)
{
	size_t size = 0, room = 0;
	uint64_t start, length, sectors = 0;
	char *type, *params, *grown;
	void *next = NULL;

	do {
		type = NULL;
		next = dm_get_next_target(task, next, &start, &length, &type, &params);
		if (!type)
			break;
		sectors = start + length;
		add_target(device->targets, type);
		if (!text)
			continue;
		if (size + strlen(type) + strlen(params) + 64 > room) {
			room = 2 * room + strlen(type) + strlen(params) + 64;
			grown = realloc(device->table, room);
			if (!grown)
				return -ENOMEM;
			device->table = grown;
		}
		size += (size_t)sprintf(device->table + size, "%s%" PRIu64 " %" PRIu64 " %s %s",
					size > 0 ? "\n" : "", start, length, type, params);
		if (size > DM_TABLE_MAX) {
			free(device->table);
			device->table = NULL;
			text = false;
		}
	} while (next);
	device->size_bytes = sectors * 512;
	return 0;
}

/* What one ioctl tells: all but what is below. */
static int look(struct dm_task *task, bool text, struct dm_device *device)
{
	struct dm_info info;
	int r;

	(void)dm_task_no_flush(task);
	r = run(task);
	if (r < 0)
		return r;
	if (!dm_task_get_info(task, &info) || !info.exists)
		return -ENXIO;
	*device = (struct dm_device){
		.major = info.major, .minor = info.minor, .suspended = info.suspended, .read_only = info.read_only,
		.live = info.live_table, .inactive = info.inactive_table,
		.open_count = info.open_count > 0 ? (uint32_t)info.open_count : 0,
	};
	(void)snprintf(device->uuid, sizeof(device->uuid), "%s", dm_task_get_uuid(task) ? dm_task_get_uuid(task) : "");
	(void)snprintf(device->name, sizeof(device->name), "%s", dm_task_get_name(task) ? dm_task_get_name(task) : "");
	return info.live_table ? take_table(task, text, device) : 0;
}

static int look_below(uint32_t major, uint32_t minor, struct dm_device *device)
{
	struct dm_task *task = dm_task_create(DM_DEVICE_DEPS);
	struct dm_deps *deps;
	int r = -ENOMEM;

	if (!task)
		return -ENOMEM;
	if (dm_task_set_major(task, (int)major) && dm_task_set_minor(task, (int)minor))
		r = run(task);
	deps = r == 0 ? dm_task_get_deps(task) : NULL;
	if (deps && deps->count > 0) {
		device->below = calloc(deps->count, sizeof(*device->below));
		if (!device->below)
			r = -ENOMEM;
		for (uint32_t i = 0; device->below && i < deps->count; i++)
			device->below[device->below_count++] = DM_NUMBER(
				(deps->device[i] >> 8) & 0xfff,
				(deps->device[i] & 0xff) | ((deps->device[i] >> 12) & 0xfff00));
	}
	dm_task_destroy(task);
	return r;
}

static void done_device(struct dm_device *device)
{
	free(device->below);
	free(device->table);
	free(device->beneath);
}

/* ---- list ---- */

static bool is_lvms(const char *uuid)
{
	return strncmp(uuid, "LVM-", 4) == 0;
}

/* -ENXIO: it has gone meanwhile. */
static int list_device(struct dm_buffer *buffer, uint32_t major, uint32_t minor, bool tables)
{
	struct dm_task *task = dm_task_create(DM_DEVICE_TABLE);
	struct dm_device device = { .major = major };
	int r = -ENOMEM;

	if (!task)
		return -ENOMEM;
	if (dm_task_set_major(task, (int)major) && dm_task_set_minor(task, (int)minor))
		r = look(task, tables, &device);
	dm_task_destroy(task);
	if (r == 0)
		r = look_below(major, minor, &device);
	if (r == 0 && tables && is_lvms(device.uuid)) {
		device.beneath = describe_beneath(device.below, device.below_count);
		r = device.beneath ? 0 : -ENOMEM;
	} else if (r == 0) {
		free(device.table);
		device.table = NULL;
	}
	if (r == 0)
		r = dm_format(buffer, &device);
	done_device(&device);
	return r;
}

static int write_all(int fd, const char *text, size_t size)
{
	ssize_t n;

	while (size > 0) {
		n = write(fd, text, size);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			text += n;
			size -= (size_t)n;
		}
	}
	return 0;
}

int dm_ioctl_list(const void *argument, size_t size, int out)
{
	struct dm_buffer buffer = { .text = NULL };
	const struct dm_names *name;
	struct dm_task *task;
	bool tables;
	int r;

	if (size != sizeof(tables))
		return -EINVAL;
	memcpy(&tables, argument, sizeof(tables));
	begin();
	task = dm_task_create(DM_DEVICE_LIST);
	if (!task)
		return -ENODEV;
	r = run(task);
	name = r == 0 ? dm_task_get_names(task) : NULL;
	/* One with the number 0 stands for none at all. */
	while (name && name->dev != 0 && r == 0) {
		r = list_device(&buffer, (uint32_t)(name->dev >> 8) & 0xfff,
				(uint32_t)((name->dev & 0xff) | ((name->dev >> 12) & 0xfff00)), tables);
		r = r == -ENXIO ? 0 : r;
		name = name->next ? (const void *)((const char *)name + name->next) : NULL;
	}
	dm_task_destroy(task);
	if (r == 0)
		r = write_all(out, buffer.text, buffer.size);
	free(buffer.text);
	return r;
}

/* ---- act ---- */

static int look_at(const char *uuid, struct dm_device *device)
{
	struct dm_task *task = task_for(DM_DEVICE_TABLE, uuid);
	int r;

	*device = (struct dm_device){ .uuid = "" };
	if (!task)
		return -ENODEV;
	r = look(task, true, device);
	dm_task_destroy(task);
	return r;
}

/*
 * SUSPEND or RESUME, which both may suspend: without lockfs, because to freeze a file system means to write
 * all it has first, which is what a node without quorum must not do, and cannot, if
 * the storage is gone; and with noflush, for multipath to give back what it queues.
 */
static int change(int type, const char *uuid)
{
	struct dm_task *task = task_for(type, uuid);
	int r = -ENOMEM;

	if (!task)
		return -ENODEV;
	if (dm_task_skip_lockfs(task) && dm_task_no_flush(task) && dm_task_no_open_count(task))
		r = run(task);
	dm_task_destroy(task);
	return r;
}

static int add_lines(struct dm_task *task, const char *table)
{
	uint64_t start, length;
	char type[32], *params;
	int at;

	for (const char *line = table; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		if (sscanf(line, "%" SCNu64 " %" SCNu64 " %31s %n", &start, &length, type, &at) != 3)
			return -EINVAL;
		params = strndup(line + at, strcspn(line + at, "\n"));
		if (!params)
			return -ENOMEM;
		if (!dm_task_add_target(task, start, length, type, params)) {
			free(params);
			return -ENOMEM;
		}
		free(params);
	}
	return 0;
}

/* Make @table the live one. */
static int swap_table(const struct dm_device *device, const char *table)
{
	struct dm_task *task = task_for(DM_DEVICE_RELOAD, device->uuid);
	int r;

	if (!task)
		return -ENODEV;
	r = device->read_only && !dm_task_set_ro(task) ? -ENOMEM : add_lines(task, table);
	if (r == 0)
		r = run(task);
	dm_task_destroy(task);
	if (r < 0)
		return r;
	r = change(DM_DEVICE_RESUME, device->uuid);
	/* What is loaded and not live would be made live by the next who resumes the device. */
	if (r < 0)
		(void)change(DM_DEVICE_CLEAR, device->uuid);
	return r;
}

static int suspend(const struct dm_device *device)
{
	if (device->suspended)
		return -EALREADY;
	return change(DM_DEVICE_SUSPEND, device->uuid);
}

static int resume(const struct dm_device *device)
{
	if (!device->suspended)
		return -EALREADY;
	if (device->inactive)
		return -EBUSY;
	return change(DM_DEVICE_RESUME, device->uuid);
}

static int load_error(const struct dm_device *device, const struct argument *a, bool of_suspended)
{
	char table[64];

	if (device->suspended != of_suspended)
		return -EALREADY;
	if (!device->live || device->size_bytes == 0)
		return -ENODATA;
	if (a->texts[0] != '\0' && device->table && strcmp(a->texts, device->table) != 0)
		return -ESTALE;
	/* Of the same size: a device that shrinks under a mounted file system is trouble of another kind. */
	(void)snprintf(table, sizeof(table), "0 %" PRIu64 " error ", device->size_bytes / 512);
	return swap_table(device, table);
}

/* Was an attempt of ours to load the error target broken off? Then it must not become live one day. */
static void clear_ours(const struct dm_device *device)
{
	struct dm_task *task = device->inactive ? task_for(DM_DEVICE_TABLE, device->uuid) : NULL;
	struct dm_device loaded = { .uuid = "" };
	bool ours;

	if (!task)
		return;
	ours = dm_task_query_inactive_table(task) && run(task) == 0 && take_table(task, false, &loaded) == 0 &&
	       strcmp(loaded.targets, "error") == 0;
	dm_task_destroy(task);
	if (ours)
		(void)change(DM_DEVICE_CLEAR, device->uuid);
}

static int restore(const struct dm_device *device, const struct argument *a)
{
	if (!dm_is_error(device)) {
		clear_ours(device);
		return -EALREADY;
	}
	if (device->suspended)
		return -EBUSY;
	if (!dm_is_stateless(a->texts))
		return -EOPNOTSUPP;
	if (!is_beneath(a->texts + a->table_size))
		return -ESTALE;
	return swap_table(device, a->texts);
}

static int act(const struct argument *a, const struct dm_device *device)
{
	switch (a->action) {
	case DM_SUSPEND:
		return suspend(device);
	case DM_RESUME:
		return resume(device);
	case DM_ERROR:
		return load_error(device, a, false);
	case DM_FAIL:
		return load_error(device, a, true);
	case DM_RESTORE:
		return restore(device, a);
	default:
		return -EINVAL;
	}
}

/* Did it take effect? The kernel does not tell of all that fails on the way. */
static bool is_done(enum dm_action action, const struct dm_device *device)
{
	switch (action) {
	case DM_SUSPEND:
		return device->suspended;
	case DM_RESUME:
		return !device->suspended;
	case DM_ERROR:
	case DM_FAIL:
		return !device->suspended && dm_is_error(device);
	default:
		return !device->suspended && !dm_is_error(device);
	}
}

int dm_ioctl_act(const void *argument, size_t size, int out)
{
	const struct argument *a = argument;
	struct dm_device device;
	int r;

	(void)size;
	(void)out;
	begin();
	r = look_at(a->uuid, &device);
	if (r == 0)
		r = act(a, &device);
	done_device(&device);
	if (r < 0)
		return r;
	r = look_at(a->uuid, &device);
	if (r == 0 && !is_done(a->action, &device))
		r = -EIO;
	done_device(&device);
	return r;
}

int dm_ioctl_pack(const struct dm_order *order, void **ret_argument, size_t *ret_size)
{
	const char *table = order->table ? order->table : "", *beneath = order->beneath ? order->beneath : "";
	size_t table_size = strlen(table) + 1, beneath_size = strlen(beneath) + 1;
	struct argument *a = calloc(1, sizeof(*a) + table_size + beneath_size);

	if (!a)
		return -ENOMEM;
	a->action = order->action;
	memcpy(a->uuid, order->uuid, sizeof(a->uuid));
	a->table_size = table_size;
	memcpy(a->texts, table, table_size);
	memcpy(a->texts + table_size, beneath, beneath_size);
	*ret_argument = a;
	*ret_size = sizeof(*a) + table_size + beneath_size;
	return 0;
}
