/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lvmlockd/state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEADER "belay-volumes 1\n"

struct state {
	char *path, *new_path;
	struct vg_list vgs;
};

int state_new(const char *path, struct state **ret_state)
{
	struct state *state = calloc(1, sizeof(*state));

	if (!state)
		return -ENOMEM;
	TAILQ_INIT(&state->vgs);
	state->path = strdup(path);
	if (!state->path || asprintf(&state->new_path, "%s.new", path) < 0) {
		free(state->path);
		free(state);
		return -ENOMEM;
	}
	*ret_state = state;
	return 0;
}

void state_free(struct state *state)
{
	struct vg *vg;

	if (!state)
		return;
	while ((vg = TAILQ_FIRST(&state->vgs)))
		state_remove_vg(state, vg);
	free(state->path);
	free(state->new_path);
	free(state);
}

/* ---- what is in it ---- */

struct vg_list *state_vgs(struct state *state)
{
	return &state->vgs;
}

struct vg *state_vg(struct state *state, const char *name)
{
	struct vg *vg;

	TAILQ_FOREACH(vg, &state->vgs, link)
		if (strcmp(vg->name, name) == 0)
			return vg;
	return NULL;
}

struct vg *state_vg_is(struct state *state, const char *name, const char *uuid)
{
	struct vg *vg = state_vg(state, name);

	if (vg && vg->uuid[0] != '\0' && uuid[0] != '\0' && strcmp(vg->uuid, uuid) != 0)
		return NULL;
	return vg;
}

/* False: it does not fit. */
static bool copy(char *to, size_t size, const char *text)
{
	size_t length = strlen(text);

	if (length >= size)
		return false;
	memcpy(to, text, length + 1);
	return true;
}

int state_add_vg(struct state *state, struct locks *locks, const char *name, const char *uuid, const char *args,
		 struct vg **ret_vg)
{
	char lock[STATE_NAME_MAX + 16];
	struct vg *vg;
	int r;

	if (state_vg(state, name))
		return -EEXIST;
	vg = calloc(1, sizeof(*vg));
	if (!vg)
		return -ENOMEM;
	TAILQ_INIT(&vg->volumes);
	r = -ENAMETOOLONG;
	if (!copy(vg->name, sizeof(vg->name), name) || !copy(vg->uuid, sizeof(vg->uuid), uuid) ||
	    !copy(vg->args, sizeof(vg->args), args))
		goto fail;
	(void)snprintf(lock, sizeof(lock), "started:%s", name);
	r = lock_open(locks, lock, LOCK_NODE, vg, &vg->started);
	if (r < 0)
		goto fail;
	TAILQ_INSERT_TAIL(&state->vgs, vg, link);
	*ret_vg = vg;
	return 0;

fail:
	free(vg);
	return r;
}

void state_remove_vg(struct state *state, struct vg *vg)
{
	struct volume *volume;

	while ((volume = TAILQ_FIRST(&vg->volumes)))
		state_remove_volume(volume);
	TAILQ_REMOVE(&state->vgs, vg, link);
	lock_close(vg->started);
	free(vg);
}

struct volume *state_volume(struct state *state, const char *uuid)
{
	struct volume *volume;
	struct vg *vg;

	TAILQ_FOREACH(vg, &state->vgs, link)
		TAILQ_FOREACH(volume, &vg->volumes, link)
			if (strcmp(volume->uuid, uuid) == 0)
				return volume;
	return NULL;
}

int state_add_volume(struct state *state, struct locks *locks, struct vg *vg, const char *uuid, const char *name,
		     struct volume **ret_volume)
{
	char lock[STATE_UUID_MAX + 16];
	struct volume *volume;
	int r;

	if (state_volume(state, uuid))
		return -EEXIST;
	volume = calloc(1, sizeof(*volume));
	if (!volume)
		return -ENOMEM;
	r = -ENAMETOOLONG;
	if (!copy(volume->uuid, sizeof(volume->uuid), uuid) || !copy(volume->name, sizeof(volume->name), name))
		goto fail;
	(void)snprintf(lock, sizeof(lock), "LV:%s", uuid);
	r = lock_open(locks, lock, LOCK_NODE, volume, &volume->lock);
	if (r < 0)
		goto fail;
	volume->vg = vg;
	TAILQ_INSERT_TAIL(&vg->volumes, volume, link);
	*ret_volume = volume;
	return 0;

fail:
	free(volume);
	return r;
}

void state_remove_volume(struct volume *volume)
{
	TAILQ_REMOVE(&volume->vg->volumes, volume, link);
	lock_close(volume->lock);
	free(volume);
}

/* ---- the file ---- */

static const char *or_dash(const char *text)
{
	return text[0] != '\0' ? text : "-";
}

static void write_all(const struct state *state, FILE *file)
{
	const struct volume *volume;
	const struct vg *vg;

	fputs(HEADER, file);
	TAILQ_FOREACH(vg, &state->vgs, link) {
		fprintf(file, "vg %s %s %s\n", or_dash(vg->uuid), vg->name, or_dash(vg->args));
		TAILQ_FOREACH(volume, &vg->volumes, link)
			if (volume->mode != MODE_UN)
				fprintf(file, "lv %s %s %s %s %" PRId64 " %s %s\n", vg->name,
					or_dash(vg->uuid), volume->uuid, lock_mode_name(volume->mode),
					volume->since, or_dash(volume->by), or_dash(volume->name));
	}
}

/* It is on tmpfs: it need outlive this process, not the node, so no fsync(). */
int state_save(const struct state *state)
{
	FILE *file = fopen(state->new_path, "we");
	bool failed;
	int r;

	if (!file)
		return -errno;
	write_all(state, file);
	failed = ferror(file);
	if (fclose(file) != 0 || failed) {
		r = errno > 0 ? -errno : -EIO;
		(void)unlink(state->new_path);
		return r;
	}
	return rename(state->new_path, state->path) < 0 ? -errno : 0;
}

/* A word of at most @size - 1 bytes, "-" as nothing. False: there is none, or it is longer. */
static bool next_word(char **at, char *to, size_t size)
{
	char *word = strsep(at, " ");

	if (!word || word[0] == '\0')
		return false;
	return copy(to, size, strcmp(word, "-") == 0 ? "" : word);
}

static int load_vg(struct state *state, struct locks *locks, char *at)
{
	char uuid[STATE_UUID_MAX + 1], name[STATE_NAME_MAX + 1], args[STATE_ARGS_MAX + 1];
	struct vg *vg;
	int r;

	if (!next_word(&at, uuid, sizeof(uuid)) || !next_word(&at, name, sizeof(name)) ||
	    !next_word(&at, args, sizeof(args)) || at || name[0] == '\0')
		return -EBADMSG;
	r = state_add_vg(state, locks, name, uuid, args, &vg);
	return r == -EEXIST ? -EBADMSG : r;
}

static int load_volume(struct state *state, struct locks *locks, char *at)
{
	char vg_name[STATE_NAME_MAX + 1], vg_uuid[STATE_UUID_MAX + 1], uuid[STATE_UUID_MAX + 1], word[32];
	char name[STATE_NAME_MAX + 1], by[PROCESS_NAME_MAX + 1], *end;
	struct volume *volume;
	enum lock_mode mode;
	struct vg *vg;
	int64_t since;
	int r;

	if (!next_word(&at, vg_name, sizeof(vg_name)) || !next_word(&at, vg_uuid, sizeof(vg_uuid)) ||
	    !next_word(&at, uuid, sizeof(uuid)) || uuid[0] == '\0' || !next_word(&at, word, sizeof(word)))
		return -EBADMSG;
	mode = lock_mode_find(word);
	if (mode != MODE_SH && mode != MODE_EX)
		return -EBADMSG;
	if (!next_word(&at, word, sizeof(word)) || !next_word(&at, by, sizeof(by)) ||
	    !next_word(&at, name, sizeof(name)) || at)
		return -EBADMSG;
	errno = 0;
	since = strtoll(word, &end, 10);
	vg = state_vg(state, vg_name);
	if (errno != 0 || *end != '\0' || !vg || strcmp(vg->uuid, vg_uuid) != 0)
		return -EBADMSG;
	r = state_add_volume(state, locks, vg, uuid, name, &volume);
	if (r < 0)
		return r == -EEXIST ? -EBADMSG : r;
	volume->mode = mode;
	volume->since = since;
	memcpy(volume->by, by, sizeof(volume->by));
	return 0;
}

static int load_line(struct state *state, struct locks *locks, char *line)
{
	if (strncmp(line, "vg ", 3) == 0)
		return load_vg(state, locks, line + 3);
	if (strncmp(line, "lv ", 3) == 0)
		return load_volume(state, locks, line + 3);
	return -EBADMSG;
}

static int load_from(struct state *state, struct locks *locks, FILE *file)
{
	char line[1024];
	int r = 0;

	if (!fgets(line, sizeof(line), file) || strcmp(line, HEADER) != 0)
		return ferror(file) ? -EIO : -EBADMSG;
	while (r == 0 && fgets(line, sizeof(line), file)) {
		size_t size = strlen(line);

		/* The last byte of a whole file is a newline. */
		if (size == 0 || line[size - 1] != '\n')
			return -EBADMSG;
		line[size - 1] = '\0';
		r = load_line(state, locks, line);
	}
	return r == 0 && ferror(file) ? -EIO : r;
}

int state_load(struct state *state, struct locks *locks)
{
	FILE *file = fopen(state->path, "re");
	struct vg *vg;
	int r;

	if (!file)
		return errno == ENOENT ? 0 : -errno;
	r = load_from(state, locks, file);
	(void)fclose(file);
	while (r < 0 && (vg = TAILQ_FIRST(&state->vgs)))
		state_remove_vg(state, vg);
	return r;
}
