/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lvmlockd/lvs.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void lvs_argv(const char *lvm_path, const char *vg, const char *lv, bool no_lock,
	      char target[LVS_TARGET_MAX], const char *ret_argv[LVS_ARGV_MAX])
{
	size_t n = 0;

	(void)snprintf(target, LVS_TARGET_MAX, "%s%s%s", vg, lv[0] != '\0' ? "/" : "", lv);
	ret_argv[n++] = lvm_path;
	ret_argv[n++] = "lvs";
	ret_argv[n++] = "--reportformat";
	ret_argv[n++] = "json";
	ret_argv[n++] = "--units";
	ret_argv[n++] = "b";
	ret_argv[n++] = "--nosuffix";
	if (no_lock)
		ret_argv[n++] = "--nolocking";
	ret_argv[n++] = "-o";
	ret_argv[n++] = "vg_name,vg_uuid,vg_lock_type,lv_name,lv_uuid,lv_size,lv_layout,lv_role,"
			"pool_lv_uuid,origin_uuid,lv_skip_activation";
	if (vg[0] != '\0')
		ret_argv[n++] = target;
	ret_argv[n] = NULL;
}

/* A field of a row; -EBADMSG if there is none, or it is too long. */
static int get_text(struct json_object *row, const char *key, char *ret_text, size_t size)
{
	struct json_object *value;
	const char *text;

	if (!json_object_object_get_ex(row, key, &value) || !json_object_is_type(value, json_type_string))
		return -EBADMSG;
	text = json_object_get_string(value);
	if (strlen(text) >= size)
		return -EBADMSG;
	(void)snprintf(ret_text, size, "%s", text);
	return 0;
}

/* LVM locks the pool for thin and VDO volumes, and the origin for snapshots that copy blocks. */
static int get_lock_uuid(struct json_object *row, struct lvs_lv *lv)
{
	bool in_pool = (strstr(lv->layout, "thin") || strstr(lv->layout, "vdo")) && !strstr(lv->layout, "pool");
	const char *key = in_pool ? "pool_lv_uuid" : strstr(lv->role, "thicksnapshot") ? "origin_uuid" : NULL;

	if (key && get_text(row, key, lv->lock_uuid, sizeof(lv->lock_uuid)) < 0)
		return -EBADMSG;
	if (lv->lock_uuid[0] == '\0')
		memcpy(lv->lock_uuid, lv->uuid, sizeof(lv->lock_uuid));
	return 0;
}

static int get_lv(struct json_object *row, struct lvs_lv *lv)
{
	char size[24], lock_type[16], skip[32], *end;

	if (!json_object_is_type(row, json_type_object))
		return -EBADMSG;
	if (get_text(row, "vg_name", lv->vg, sizeof(lv->vg)) < 0 || !ask_is_name(lv->vg) ||
	    get_text(row, "lv_name", lv->name, sizeof(lv->name)) < 0 ||
	    get_text(row, "lv_uuid", lv->uuid, sizeof(lv->uuid)) < 0 ||
	    get_text(row, "vg_uuid", lv->vg_uuid, sizeof(lv->vg_uuid)) < 0 ||
	    get_text(row, "lv_layout", lv->layout, sizeof(lv->layout)) < 0 ||
	    get_text(row, "lv_role", lv->role, sizeof(lv->role)) < 0 ||
	    get_text(row, "lv_size", size, sizeof(size)) < 0 ||
	    get_text(row, "vg_lock_type", lock_type, sizeof(lock_type)) < 0 ||
	    get_text(row, "lv_skip_activation", skip, sizeof(skip)) < 0 || !ask_is_name(lv->name))
		return -EBADMSG;
	errno = 0;
	lv->size_bytes = strtoull(size, &end, 10);
	if (errno != 0 || end == size || *end != '\0')
		return -EBADMSG;
	lv->shared_vg = lock_type[0] != '\0' && strcmp(lock_type, "none") != 0;
	lv->skip = skip[0] != '\0';
	return get_lock_uuid(row, lv);
}

static int by_name(const void *a, const void *b)
{
	const struct lvs_lv *x = a, *y = b;
	int vg = strcmp(x->vg, y->vg);

	return vg != 0 ? vg : strcmp(x->name, y->name);
}

static int get_rows(struct json_object *rows, struct lvs *ret_lvs)
{
	size_t count = json_object_array_length(rows);
	struct lvs_lv *lv;

	if (count > LVS_MAX)
		return -E2BIG;
	/* One more, so that none is no failure. */
	lv = calloc(count + 1, sizeof(*lv));
	if (!lv)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		if (get_lv(json_object_array_get_idx(rows, i), &lv[i]) < 0) {
			free(lv);
			return -EBADMSG;
		}
	qsort(lv, count, sizeof(*lv), by_name);
	*ret_lvs = (struct lvs){ .count = count, .lv = lv };
	return 0;
}

int lvs_parse(const char *text, struct lvs *ret_lvs)
{
	struct json_object *json, *reports, *rows;
	int r = -EBADMSG;

	/* lvm may warn on the same stream before it reports, and behind. */
	text = strstr(text, "{\n");
	json = text ? json_tokener_parse(text) : NULL;
	if (!json)
		return -EBADMSG;
	if (json_object_is_type(json, json_type_object) &&
	    json_object_object_get_ex(json, "report", &reports) &&
	    json_object_is_type(reports, json_type_array) && json_object_array_length(reports) == 1 &&
	    json_object_object_get_ex(json_object_array_get_idx(reports, 0), "lv", &rows) &&
	    json_object_is_type(rows, json_type_array))
		r = get_rows(rows, ret_lvs);
	json_object_put(json);
	return r;
}

void lvs_done(struct lvs *lvs)
{
	free(lvs->lv);
	*lvs = (struct lvs){ 0 };
}

const struct lvs_lv *lvs_find(const struct lvs *lvs, const char *name)
{
	for (size_t i = 0; i < lvs->count; i++)
		if (strcmp(lvs->lv[i].name, name) == 0)
			return &lvs->lv[i];
	return NULL;
}
