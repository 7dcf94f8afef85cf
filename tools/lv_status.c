/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/lv.h"

static struct json_object *nth(struct json_object *object, const char *key, size_t i)
{
	return json_object_array_get_idx(json_at(object, key), i);
}

static bool is(struct json_object *object, const char *key, const char *text)
{
	return strcmp(json_text(object, key), text) == 0;
}

static bool locked(struct json_object *at)
{
	return is(at, "lock", "sh") || is(at, "lock", "ex");
}

/* By device-mapper; what that is not known of counts as not active. */
static bool active(struct json_object *at)
{
	return *json_text(at, "dm") && !is(at, "dm", "unknown") && !is(at, "dm", "inactive");
}

/* ---- what is wrong ---- */

__attribute__((format(printf, 2, 3)))
static void wrong(struct json_object *lv, const char *format, ...)
{
	struct json_object *list = json_at(lv, "wrong");
	char text[512];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	json_object_array_add(list, json_object_new_string(text));
}

static void judge_elsewhere(struct json_object *lv)
{
	for (size_t i = 0; i < json_count(lv, "elsewhere"); i++) {
		uint64_t node = json_u64(nth(lv, "elsewhere", i), "node");

		wrong(lv, "node %" PRIu64 " has its lock, and its belay-lvmlockd does not answer. If the node has "
		      "left the cluster, the lock stays until it is fenced, or belay fence-ack %" PRIu64, node, node);
	}
}

static void judge(struct json_object *lv)
{
	unsigned holders = 0, exclusive = 0, actives = 0;

	for (size_t i = 0; i < json_count(lv, "nodes"); i++) {
		struct json_object *at = nth(lv, "nodes", i);

		/* What is wrong there, the node itself has said. */
		if (*json_text(at, "reason"))
			wrong(lv, "on %s %s", json_text(at, "name"), json_text(at, "reason"));
		holders += locked(at);
		exclusive += is(at, "lock", "ex");
		actives += active(at);
	}
	if (exclusive > 0 && holders > 1)
		wrong(lv, "a node has it locked exclusively, and %u others, too: this must not be. Deactivate it "
		      "everywhere, check what is on it, and report this", holders - 1);
	else if (exclusive > 0 && actives > 1)
		wrong(lv, "it is locked exclusively, but active on %u nodes", actives);
	judge_elsewhere(lv);
}

unsigned lv_judge(struct json_object *answer)
{
	unsigned count = 0;

	for (size_t i = 0; i < json_count(answer, "lvs"); i++) {
		struct json_object *lv = nth(answer, "lvs", i);

		json_object_object_add(lv, "wrong", json_object_new_array());
		judge(lv);
		count += (unsigned)json_count(lv, "wrong");
	}
	return count;
}

/* ---- the table ---- */

static const char *size_text(uint64_t bytes, char *buf, size_t size)
{
	static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
	double value = (double)bytes;
	size_t i = 0;

	for (; value >= 1024 && i + 1 < sizeof(unit) / sizeof(unit[0]); i++)
		value /= 1024;
	(void)snprintf(buf, size, value < 10 && i > 0 ? "%.1f %s" : "%.0f %s", value, unit[i]);
	return buf;
}

static const char *since_text(uint64_t since, char *buf, size_t size)
{
	time_t when = (time_t)since;
	struct tm tm;

	if (since == 0 || !localtime_r(&when, &tm) || strftime(buf, size, "%Y-%m-%d %H:%M:%S", &tm) == 0)
		(void)snprintf(buf, size, "-");
	return buf;
}

static void show_row(FILE *to, int width, const char *name, struct json_object *at)
{
	char since[32], size[32];
	const char *lock = is(at, "lock", "ex") ? "exclusive" : is(at, "lock", "sh") ? "shared" : "-";

	fprintf(to, "%-*s  %-10s %-9s  %-19s  %-12s", width, name, json_text(at, "name"), lock,
		since_text(json_u64(at, "since"), since, sizeof(since)), json_text(at, "dm"));
	if (active(at))
		fprintf(to, "  open %" PRIu64 ", %s %s", json_u64(at, "open"),
			size_text(json_u64(at, "size"), size, sizeof(size)), json_text(at, "targets"));
	fprintf(to, "\n");
}

static void show_lv(FILE *to, int width, struct json_object *lv)
{
	const char *name = json_text(lv, "lv");
	bool named = false;

	for (size_t i = 0; i < json_count(lv, "nodes"); i++) {
		struct json_object *at = nth(lv, "nodes", i);

		if (!locked(at) && !active(at))
			continue;
		show_row(to, width, named ? "" : name, at);
		named = true;
	}
	if (!named)
		fprintf(to, "%-*s  %-10s %-9s  %-19s  %s\n", width, name, "-", "-", "-",
			json_count(lv, "nodes") > 0 ? json_text(nth(lv, "nodes", 0), "dm") : "unknown");
	for (size_t i = 0; i < json_count(lv, "elsewhere"); i++)
		fprintf(to, "%-*s  node %-5" PRIu64 " %s\n", width, "", json_u64(nth(lv, "elsewhere", i), "node"),
			json_text(nth(lv, "elsewhere", i), "mode"));
	for (size_t i = 0; i < json_count(lv, "waiters"); i++)
		fprintf(to, "%-*s  node %-5" PRIu64 " waits for it (%s)\n", width, "",
			json_u64(nth(lv, "waiters", i), "node"), json_text(nth(lv, "waiters", i), "mode"));
	for (size_t i = 0; i < json_count(lv, "wrong"); i++)
		fprintf(to, "  WRONG: %s\n", json_object_get_string(nth(lv, "wrong", i)));
}

void lv_show_status(FILE *to, struct json_object *answer)
{
	size_t count = json_count(answer, "lvs");
	int width = 2;

	for (size_t i = 0; i < count; i++) {
		int size = (int)strlen(json_text(nth(answer, "lvs", i), "lv"));

		width = size > width ? size : width;
	}
	if (count > 0)
		fprintf(to, "%-*s  %-10s %-9s  %-19s  %s\n", width, "LV", "NODE", "LOCK", "SINCE", "DEVICE-MAPPER");
	for (size_t i = 0; i < count; i++)
		show_lv(to, width, nth(answer, "lvs", i));
	for (size_t i = 0; i < json_count(answer, "nodes"); i++) {
		struct json_object *node = nth(answer, "nodes", i);

		if (json_true(node, "op_result"))
			fprintf(to, "%s: %s\n", json_text(node, "name"), json_text(node, "text"));
	}
	for (size_t i = 0; i < json_count(answer, "absent"); i++)
		fprintf(to, "%s: belay-lvmlockd does not run there: what it has active is not known\n",
			json_text(nth(answer, "absent", i), "name"));
	if (count == 0)
		fprintf(to, "no LVs\n");
}
