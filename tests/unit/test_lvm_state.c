/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file of started VGs and locked LVs: what is written reads again; what is damaged is refused as a whole. */
#include <sys/stat.h>
#include <unistd.h>

#include "lvmlockd/state.h"
#include "tests/tap.h"

#define UUID "vJOFl3-bqku-43jH-adfv-BRrX-whJD-06OuzE"
#define VG_UUID "eOzcT8-khBL-DS7a-xv3k-VUrZ-gcE7-L2gcbv"

struct world {
	char dir[32], path[64], new_path[64];
	qb_loop_t *loop;
	struct locks *locks;
	struct state *state;
};

static void nothing(void *context)
{
	(void)context;
}

/* Nothing of it is ever called: the loop does not run, and belayd is not there. */
static void open_world(struct world *w)
{
	const struct locks_handlers handlers = { .on_lost = nothing, .on_regained = nothing };

	snprintf(w->dir, sizeof(w->dir), "/tmp/belay-state.XXXXXX");
	w->loop = qb_loop_create();
	if (!mkdtemp(w->dir) || !w->loop || locks_new(w->loop, "/nowhere", &handlers, &w->locks) < 0)
		bail_out("no surroundings");
	snprintf(w->path, sizeof(w->path), "%s/volumes", w->dir);
	snprintf(w->new_path, sizeof(w->new_path), "%s/volumes.new", w->dir);
	if (state_new(w->path, &w->state) < 0)
		bail_out("no memory");
}

static void again(struct world *w)
{
	state_free(w->state);
	if (state_new(w->path, &w->state) < 0)
		bail_out("no memory");
}

static void close_world(struct world *w)
{
	state_free(w->state);
	locks_free(w->locks);
	qb_loop_destroy(w->loop);
	unlink(w->path);
	unlink(w->new_path);
	rmdir(w->dir);
}

static void write_file(const struct world *w, const char *text)
{
	FILE *file = fopen(w->path, "we");

	if (!file || fputs(text, file) < 0 || fclose(file) != 0)
		bail_out("cannot write the file");
}

static void test_round(struct world *w)
{
	struct volume *volume = NULL;
	struct vg *vg = NULL, *other = NULL;

	ok_int(state_load(w->state, w->locks), 0, "without a file");
	ok(TAILQ_EMPTY(state_vgs(w->state)), "there is nothing");
	ok_int(state_add_vg(w->state, w->locks, "vg0", VG_UUID, "1.0.0:c.belay", &vg), 0, "a VG");
	ok_int(state_add_vg(w->state, w->locks, "vg0", "", "", &other), -EEXIST, "its name is taken");
	ok_int(state_add_vg(w->state, w->locks, "vg1", "", "", &other), 0, "another, of which little is known");
	ok_str(lock_name(vg->started), "started:vg0", "the lock that it is started");
	ok_int(state_add_volume(w->state, w->locks, vg, UUID, "lv0", &volume), 0, "an LV");
	ok_str(lock_name(volume->lock), "LV:" UUID, "its lock");
	ok(lock_context(volume->lock) == volume, "knows whose it is");
	volume->mode = MODE_EX;
	volume->since = 1796095098;
	process_name(getpid(), volume->by);
	ok_int(state_add_volume(w->state, w->locks, other, UUID, "x", &volume), -EEXIST, "whichever VG it is in");
	ok_int(state_add_volume(w->state, w->locks, other, "b", "", &volume), 0, "one without a name");
	volume->mode = MODE_SH;
	ok_int(state_add_volume(w->state, w->locks, other, "c", "lv2", &volume), 0, "and one without a lock");
	ok_int(state_save(w->state), 0, "all are written");
	ok_int(access(w->new_path, F_OK), -1, "in one piece");

	again(w);
	ok_int(state_load(w->state, w->locks), 0, "and read");
	vg = state_vg(w->state, "vg0");
	volume = state_volume(w->state, UUID);
	if (!ok(vg && volume && volume->vg == vg, "the VG and the LV are there"))
		return;
	ok_str(vg->uuid, VG_UUID, "its uuid");
	ok_str(vg->args, "1.0.0:c.belay", "its lock_args");
	ok_str(volume->name, "lv0", "the LV's name");
	ok(volume->mode == MODE_EX && volume->since == 1796095098, "how it is locked, and since when");
	ok(process_lives(volume->by), "and by whom, who still runs");
	ok(lock_held(volume->lock) == MODE_UN, "although belayd does not know yet");
	volume = state_volume(w->state, "b");
	ok(volume && volume->mode == MODE_SH && volume->name[0] == '\0' && volume->vg->uuid[0] == '\0',
	   "what was not known is not known");
	ok(!process_lives(volume->by) && !process_lives("1:1") && !process_lives("0:0"), "nor does it live");
	ok(!state_volume(w->state, "c"), "an LV without a lock is not in the file");
}

static void test_damaged(struct world *w)
{
	static const char *const table[] = {
		"", "belay-volumes 2\n", "belay-volumes 1", "belay-volumes 1\nx\n", "belay-volumes 1\n\n",
		"belay-volumes 1\nvg - vg0\n", "belay-volumes 1\nvg - vg0 a b\n", "belay-volumes 1\nvg - - a\n",
		"belay-volumes 1\nvg  vg0 a\n", "belay-volumes 1\nvg - vg0 a",
		"belay-volumes 1\nvg - vg0 a\nvg - vg0 a\n", "belay-volumes 1\nlv vg0 - u ex 1 - n\n",
		"belay-volumes 1\nvg - vg0 a\nlv vg0 x u ex 1 - n\n",
		"belay-volumes 1\nvg - vg0 a\nlv vg0 - - ex 1 - n\n",
		"belay-volumes 1\nvg - vg0 a\nlv vg0 - u un 1 - n\n",
		"belay-volumes 1\nvg - vg0 a\nlv vg0 - u ex 1x - n\n",
		"belay-volumes 1\nvg - vg0 a\nlv vg0 - u ex 99999999999999999999 - n\n",
		"belay-volumes 1\nvg - vg0 a\nlv vg0 - u ex 1 -\n",
		"belay-volumes 1\nvg - vg0 a\nlv vg0 - u ex 1 - n n\n",
		"belay-volumes 1\nvg - vg0 a\nlv vg0 - u ex 1 - n\nlv vg0 - u ex 1 - n\n",
	};
	char text[2048] = "belay-volumes 1\nvg - ";

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		again(w);
		write_file(w, table[i]);
		ok_int(state_load(w->state, w->locks), -EBADMSG, "damaged in way %zu", i);
		ok(TAILQ_EMPTY(state_vgs(w->state)), "nothing of it is taken");
	}
	memset(text + strlen(text), 'a', 1500);
	strcat(text, " a\n");
	write_file(w, text);
	ok_int(state_load(w->state, w->locks), -EBADMSG, "so is a line that is too long");
	again(w);
	unlink(w->path);
	ok_int(mkdir(w->path, 0700), 0, "a directory in its place");
	ok(state_load(w->state, w->locks) < 0, "is no file");
	ok(state_save(w->state) < 0, "and cannot be written over");
	rmdir(w->path);
}

static void test_limits(struct world *w)
{
	struct volume *volume = NULL;
	struct vg *vg = NULL;
	char long_name[STATE_NAME_MAX + 2];

	again(w);
	memset(long_name, 'a', sizeof(long_name));
	long_name[STATE_NAME_MAX + 1] = '\0';
	ok_int(state_add_vg(w->state, w->locks, long_name, "", "", &vg), -ENAMETOOLONG, "a name that is too long");
	ok_int(state_add_vg(w->state, w->locks, "v", long_name, "", &vg), -ENAMETOOLONG, "a uuid");
	ok_int(state_add_vg(w->state, w->locks, "v", "", long_name, &vg), -ENAMETOOLONG, "lock_args");
	long_name[STATE_NAME_MAX] = '\0';
	ok_int(state_add_vg(w->state, w->locks, long_name, "", long_name, &vg), 0, "the longest there may be");
	ok_int(state_add_volume(w->state, w->locks, vg, long_name, "", &volume), -ENAMETOOLONG, "an LV's uuid");
	ok_int(state_add_volume(w->state, w->locks, vg, UUID, long_name, &volume), 0, "its longest name");
	volume->mode = MODE_EX;
	ok_int(state_save(w->state), 0, "are written");
	again(w);
	ok_int(state_load(w->state, w->locks), 0, "and read");
	ok(state_vg(w->state, long_name) && state_volume(w->state, UUID), "again");
}

int main(void)
{
	struct world w = { .loop = NULL };

	open_world(&w);
	test_round(&w);
	test_damaged(&w);
	test_limits(&w);
	close_world(&w);
	return done_testing();
}
