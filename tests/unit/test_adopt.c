/* SPDX-License-Identifier: GPL-2.0-or-later */
/* At start: whose locks are taken again, and whose are given back; device-mapper in memory. */
#include <assert.h>
#include <syslog.h>

#include "lvmlockd/adopt.h"
#include "tests/tap.h"
#include "tests/unit/fake_dm.h"

#define ASKS_MAX 4000

struct ask {
	adopt_answered done;
	void *data;
	int result;
};

struct world {
	struct fake_dm dm;
	struct adopt_port port;
	struct adopt *adopt;
	struct adopt_lv *record;
	size_t records;
	const char *refuse, *refuse_ex;	/* LVs, by the second letter of their id */
	int lock_fails, marked_fails;
	const char *marked;		/* VGs, by letter */
	adopt_marked marked_done;
	void *marked_data;
	struct ask ask[ASKS_MAX];
	size_t asks, asks_max, answered;
	bool forgot, over;
	int result;
	char order[8192], said[16384];
};

static void note(struct world *w, const char *what, const struct adopt_lv *lv)
{
	size_t used = strlen(w->order);

	if (lv)
		(void)snprintf(w->order + used, sizeof(w->order) - used, "%s%s %c %s", used ? "; " : "", what,
			       lv->lv_uuid[0], lv->mode == ADOPT_EXCLUSIVE ? "ex" : "sh");
	else
		(void)snprintf(w->order + used, sizeof(w->order) - used, "%s%s", used ? "; " : "", what);
}

static void answer_later(struct world *w, adopt_answered done, void *data, int result)
{
	assert(w->asks < ASKS_MAX);
	w->ask[w->asks++] = (struct ask){ .done = done, .data = data, .result = result };
	if (w->asks - w->answered > w->asks_max)
		w->asks_max = w->asks - w->answered;
}

static bool recorded(void *context, size_t index, struct adopt_lv *ret_lv)
{
	const struct world *w = context;

	if (index >= w->records)
		return false;
	*ret_lv = w->record[index];
	return true;
}

static bool started(void *context, const char *vg_name, const char *vg_uuid)
{
	(void)context;
	(void)vg_uuid;
	return vg_name[0] == 'v';
}

static int marked(void *context, adopt_marked done, void *data)
{
	struct world *w = context;

	note(w, "which VGs?", NULL);
	w->marked_done = done;
	w->marked_data = data;
	return 0;
}

static int lock(void *context, const struct adopt_lv *lv, adopt_answered done, void *data)
{
	struct world *w = context;
	int result = w->lock_fails;

	note(w, "lock", lv);
	if (w->refuse && strchr(w->refuse, lv->lv_uuid[0]))
		result = -EAGAIN;
	if (w->refuse_ex && strchr(w->refuse_ex, lv->lv_uuid[0]) && lv->mode == ADOPT_EXCLUSIVE)
		result = -EAGAIN;
	answer_later(w, done, data, result);
	return 0;
}

static void drop(void *context, const struct adopt_lv *lv)
{
	note(context, "drop", lv);
}

static void lost(void *context, const struct adopt_lv *lv)
{
	note(context, "lost", lv);
}

static int forget(void *context)
{
	struct world *w = context;

	w->forgot = true;
	note(w, "forget", NULL);
	return 0;
}

static void say(void *context, int priority, const char *text)
{
	struct world *w = context;
	size_t used = strlen(w->said);

	(void)snprintf(w->said + used, sizeof(w->said) - used, "%d: %s\n", priority, text);
}

static void on_over(void *context, int result)
{
	struct world *w = context;

	assert(!w->over);
	w->over = true;
	w->result = result;
}

static void begin(struct world *w)
{
	*w = (struct world){ .result = 77 };
	w->record = calloc(ASKS_MAX, sizeof(*w->record));
	assert(w->record);
	fake_dm_init(&w->dm);
	w->port = (struct adopt_port){
		.dm = &w->dm.port, .recorded = recorded, .started = started, .marked = marked, .lock = lock,
		.drop = drop, .lost = lost, .forget = forget, .log = say, .done = on_over,
		.context = w,
	};
}

static void record(struct world *w, const char *id, enum adopt_mode mode)
{
	struct adopt_lv *lv = &w->record[w->records++];

	*lv = (struct adopt_lv){ .mode = mode };
	(void)fake_lv_uuid(id, lv->lv_uuid);
	(void)fake_vg_uuid(id, lv->vg_uuid);
	(void)snprintf(lv->vg_name, sizeof(lv->vg_name), "%c", id[0]);
	(void)snprintf(lv->lv_name, sizeof(lv->lv_name), "%c", id[1]);
}

static void answer_marked(struct world *w)
{
	adopt_marked done = w->marked_done;
	char uuid[8][DM_LVM_UUID_MAX + 1];
	const char *list[8];
	size_t count = 0;

	w->marked_done = NULL;
	for (const char *c = w->marked ? w->marked : ""; *c; c++) {
		const char id[] = { *c, 'x', '\0' };

		list[count] = fake_vg_uuid(id, uuid[count]);
		count++;
	}
	done(w->marked_data, w->marked_fails, list, count);
}

static void run(struct world *w)
{
	assert(adopt_start(&w->port, &w->adopt) == 0);
	for (;;) {
		if (fake_dm_run(&w->dm))
			continue;
		if (w->marked_done) {
			answer_marked(w);
		} else if (w->answered < w->asks) {
			struct ask ask = w->ask[w->answered++];

			ask.done(ask.data, ask.result);
		} else {
			break;
		}
	}
}

static void end(struct world *w)
{
	adopt_free(w->adopt);
	fake_dm_done(&w->dm);
	free(w->record);
	free(w);
}

static struct world *new_world(void)
{
	struct world *w = malloc(sizeof(*w));

	assert(w);
	begin(w);
	return w;
}

/* ---- the tests ---- */

static void test_plain(void)
{
	struct world *w = new_world();
	struct adopt_count counts;

	(void)fake_dm_add(&w->dm, "va", "", "v-a", "linear");
	(void)fake_dm_add(&w->dm, "vb", "", "v-b", "linear");
	record(w, "va", ADOPT_EXCLUSIVE);
	record(w, "vb", ADOPT_SHARED);
	record(w, "vc", ADOPT_EXCLUSIVE);
	run(w);
	ok_str(w->order, "lock a ex; lock b sh; drop c ex; forget",
	       "what is active is locked in its mode, what is not is given back; then the rest is forgotten");
	ok(w->over && w->result == 0, "and it is over");
	counts = adopt_count(w->adopt);
	ok(counts.kept == 2 && counts.dropped == 1 && counts.found == 0 && counts.lost == 0, "all is counted");
	end(w);
}

/* lvm locks first and activates then: what it has just locked must not be given back in between. */
static void test_coming(void)
{
	struct world *w = new_world();

	record(w, "va", ADOPT_EXCLUSIVE);
	record(w, "vb", ADOPT_EXCLUSIVE);
	w->record[1].coming = true;
	run(w);
	ok_str(w->order, "drop a ex; lock b ex; forget", "an LV that may be about to be active stays locked");
	end(w);
}

static void test_found(void)
{
	struct fake_device *thin, *pool, *data;
	struct world *w = new_world();

	(void)fake_dm_add(&w->dm, "va", "", "v-a", "linear");
	(void)fake_dm_add(&w->dm, "vb", "", "v-b", "linear");
	data = fake_dm_add(&w->dm, "vd", "-tdata", "v-p_tdata", "linear");
	pool = fake_dm_add(&w->dm, "vp", "-tpool", "v-p-tpool", "thin-pool");
	thin = fake_dm_add(&w->dm, "vt", "", "v-t", "thin");
	fake_dm_stack(pool, data);
	fake_dm_stack(thin, pool);
	thin = fake_dm_add(&w->dm, "vu", "", "v-u", "thin");
	fake_dm_stack(thin, pool);
	w->refuse_ex = "b";
	run(w);
	ok_str(w->order, "lock a ex; lock b ex; lock p ex; lock b sh; forget",
	       "what is active without a record is locked exclusively, or else shared; of thin LVs the pool, once");
	ok(strstr(w->said, "v/b is active without a lock on record: locked shared"), "which is told");
	ok(strstr(w->said, "v/p is"), "with its name");
	ok_uint(adopt_count(w->adopt).found, 3, "and counted");
	end(w);
}

static void test_marked(void)
{
	struct world *w = new_world();

	(void)fake_dm_add(&w->dm, "wa", "", "w-a", "linear");
	(void)fake_dm_add(&w->dm, "xb", "", "x-b", "linear");
	w->marked = "w";
	run(w);
	ok_str(w->order, "which VGs?; lock a ex; forget",
	       "of VGs that are not on record lvm says whether they are this cluster's");
	end(w);

	w = new_world();
	(void)fake_dm_add(&w->dm, "va", "", "v-a", "linear");
	(void)fake_dm_add(&w->dm, "xb", "", "x-b", "linear");
	record(w, "va", ADOPT_EXCLUSIVE);
	w->marked_fails = -ETIMEDOUT;
	run(w);
	ok_str(w->order, "which VGs?; lock a ex", "if it does not, nothing is forgotten");
	ok(w->result == -ETIMEDOUT && strstr(w->said, "lvm does not say"), "which is told, and it begins again");
	end(w);
}

static void test_refused(void)
{
	struct world *w = new_world();

	(void)fake_dm_add(&w->dm, "va", "", "v-a", "linear");
	(void)fake_dm_add(&w->dm, "vb", "", "v-b", "linear");
	record(w, "va", ADOPT_EXCLUSIVE);
	w->refuse = "ab";
	run(w);
	ok_str(w->order, "lock a ex; lock b ex; lost a ex; lock b sh; lost b sh; forget",
	       "a refused lock is lost");
	ok(strstr(w->said, "2: v/a is active on this node, but another node has its lock: BOTH MAY WRITE"), "loudly");
	ok_uint(adopt_count(w->adopt).lost, 2, "and counted");
	ok_int(w->result, 0, "the rest goes on");
	end(w);
}

static void test_blind(void)
{
	struct world *w = new_world();

	record(w, "va", ADOPT_EXCLUSIVE);
	w->dm.list_fails = -ETIMEDOUT;
	run(w);
	ok_str(w->order, "lock a ex", "without a list what is on record is kept, and nothing forgotten");
	ok(strstr(w->said, "all LV locks on record are kept"), "which is told");
	end(w);

	w = new_world();
	record(w, "va", ADOPT_EXCLUSIVE);
	w->dm.list_fails = -ENODEV;
	run(w);
	ok_str(w->order, "lock a ex", "the same without any device-mapper");
	ok_str(w->said, "", "of which nothing need be told");
	end(w);
}

static void test_connection(void)
{
	struct world *w = new_world();

	(void)fake_dm_add(&w->dm, "va", "", "v-a", "linear");
	(void)fake_dm_add(&w->dm, "vb", "", "v-b", "linear");
	record(w, "va", ADOPT_EXCLUSIVE);
	record(w, "vb", ADOPT_EXCLUSIVE);
	w->lock_fails = -EIO;
	run(w);
	ok_str(w->order, "lock a ex; lock b ex", "without belayd nothing is forgotten");
	ok(w->over && w->result == -EIO, "and it is told, once");
	end(w);

	w = new_world();
	assert(adopt_start(&w->port, &w->adopt) == 0);
	adopt_free(w->adopt);
	ok(!w->dm.answers, "who stops in the middle leaves no answer to come");
	w->adopt = NULL;
	end(w);
}

static void test_many(void)
{
	struct world *w = new_world();

	for (unsigned i = 0; i < 1000; i++) {
		char name[16];
		struct fake_device *f;

		(void)snprintf(name, sizeof(name), "v-%u", i);
		f = fake_dm_add(&w->dm, "va", "", name, "linear");
		record(w, "va", ADOPT_SHARED);
		/* The last six characters of both. */
		(void)snprintf(f->device.uuid + 62, 7, "%06u", i);
		(void)snprintf(w->record[i].lv_uuid + 32, 7, "%06u", i);
	}
	run(w);
	ok_uint(adopt_count(w->adopt).kept, 1000, "a thousand LVs are locked again");
	ok(w->asks_max <= 64 && w->asks_max > 1, "some at a time");
	ok_int(w->result, 0, "to the end");
	end(w);
}

int main(void)
{
	test_plain();
	test_coming();
	test_found();
	test_marked();
	test_refused();
	test_blind();
	test_connection();
	test_many();
	return done_testing();
}
