/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What becomes of active LVs without quorum, and how it is taken back; device-mapper in memory. */
#include <assert.h>
#include <syslog.h>

#include "lvmlockd/policy.h"
#include "tests/tap.h"
#include "tests/unit/fake_dm.h"

struct world {
	struct fake_dm dm;
	struct policy_port port;
	struct policy *policy;
	char *kept;
	size_t kept_size;
	unsigned saves;
	int save_fails;
	const char *lost;		/* LVs whose lock is lost, by the second letter of their id */
	const char *unlocked;		/* ... of which there is no lock */
	int refresh_result;
	void (*refresh_done)(void *data, int result, const char *text);
	void *refresh_data;
	char refreshed[64];
	uint32_t timer_ms;
	uint64_t now_ms;
	char said[16384];
};

/* ---- the surroundings ---- */

static bool started(void *context, const char *vg_name, const char *vg_uuid)
{
	(void)context;
	(void)vg_uuid;
	return vg_name[0] != 'x';
}

static enum policy_lock lock_of(void *context, const char *lv_uuid)
{
	const struct world *w = context;

	if (w->lost && strchr(w->lost, lv_uuid[0]))
		return POLICY_LOCK_LOST;
	return w->unlocked && strchr(w->unlocked, lv_uuid[0]) ? POLICY_LOCK_NONE : POLICY_LOCK_HELD;
}

static int save(void *context, const char *text, size_t size)
{
	struct world *w = context;

	w->saves++;
	if (w->save_fails != 0)
		return w->save_fails;
	free(w->kept);
	w->kept = size > 0 ? strndup(text, size) : NULL;
	w->kept_size = size;
	return 0;
}

static int refresh(void *context, const char *vg_name, const char *lv_name,
		   void (*done)(void *data, int result, const char *text), void *data)
{
	struct world *w = context;

	(void)snprintf(w->refreshed, sizeof(w->refreshed), "%s/%s", vg_name, lv_name);
	w->refresh_done = done;
	w->refresh_data = data;
	return 0;
}

static void timer(void *context, uint32_t ms)
{
	((struct world *)context)->timer_ms = ms;
}

static uint64_t now_ms(void *context)
{
	return ((struct world *)context)->now_ms;
}

static void say(void *context, int priority, const char *text)
{
	struct world *w = context;
	size_t used = strlen(w->said);

	(void)snprintf(w->said + used, sizeof(w->said) - used, "%d: %s\n", priority, text);
}

/* ---- the test's own ---- */

static void open_policy(struct world *w, enum policy_action action)
{
	w->port = (struct policy_port){
		.dm = &w->dm.port, .started = started, .lock = lock_of, .save = save, .refresh = refresh,
		.timer = timer, .now_ms = now_ms, .log = say, .context = w,
	};
	assert(policy_new(action, &w->port, w->kept, w->kept_size, &w->policy) == 0);
}

static void begin(struct world *w, enum policy_action action)
{
	*w = (struct world){ .now_ms = 1000 };
	fake_dm_init(&w->dm);
	open_policy(w, action);
}

static void end(struct world *w)
{
	policy_free(w->policy);
	fake_dm_done(&w->dm);
	free(w->kept);
}

/* Answers, and lvm's. */
static void run(struct world *w)
{
	void (*done)(void *data, int result, const char *text);

	for (;;) {
		if (fake_dm_run(&w->dm))
			continue;
		done = w->refresh_done;
		if (!done)
			return;
		w->refresh_done = NULL;
		done(w->refresh_data, w->refresh_result, w->refresh_result ? "no such volume group" : "");
	}
}

static void quorum(struct world *w, bool quorate)
{
	policy_on_quorum(w->policy, quorate, w->now_ms);
	run(w);
}

static void locks(struct world *w, bool valid)
{
	policy_on_locks(w->policy, valid);
	run(w);
}

/* Quorum, and the locks asked for again. */
static void back(struct world *w)
{
	quorum(w, true);
	locks(w, true);
}

static void tick(struct world *w)
{
	w->timer_ms = 0;
	policy_on_timer(w->policy);
	run(w);
}

static struct policy_status status(const struct world *w)
{
	struct policy_status status;

	policy_status(w->policy, &status);
	return status;
}

static void ok_done(struct world *w, const char *want, const char *what)
{
	ok_str(w->dm.order, want, "%s", what);
	w->dm.order[0] = '\0';
}

static void ok_said(struct world *w, const char *part, const char *what)
{
	if (!ok(strstr(w->said, part) != NULL, "%s", what))
		diag("said: %s", w->said);
	w->said[0] = '\0';
}

/* ---- freeze ---- */

static void test_freeze(void)
{
	struct fake_device *a, *b, *other;
	struct world w;

	begin(&w, POLICY_FREEZE);
	a = fake_dm_add(&w.dm, "va", "", "v-a", "linear");
	b = fake_dm_add(&w.dm, "vb", "", "v-b", "linear");
	other = fake_dm_add(&w.dm, "xa", "", "x-a", "linear");
	locks(&w, true);
	ok_int(w.dm.lists, 0, "nothing is done while nothing is known of quorum");
	quorum(&w, true);
	ok_done(&w, "", "nor with quorum");

	w.now_ms = 5000;
	policy_on_quorum(w.policy, false, 4990);
	run(&w);
	ok_done(&w, "suspend v-a; suspend v-b", "without, what is active is suspended, but no VG that is not started");
	ok_int(status(&w).state, POLICY_APPLIED, "that is all");
	ok_uint(status(&w).count.frozen, 2, "of two LVs");
	ok_uint(status(&w).took_ms, 10, "and it is known how long it took");
	ok_said(&w, "2 LVs are suspended, 10 ms after", "it is said");
	ok(w.timer_ms == POLICY_CHECK_MS, "it is looked after");
	fake_dm_write(a);
	fake_dm_write(b);
	fake_dm_write(other);
	ok(a->io == 0 && b->io == 0 && other->io == 1, "nothing is written but elsewhere");
	ok(w.kept && strstr(w.kept, "v-a\t"), "it is written down");
	ok_str(policy_says(w.policy, a->device.uuid), "frozen", "status can tell");

	tick(&w);
	ok_done(&w, "", "what is as it was made is left so");
	quorum(&w, true);
	ok_done(&w, "", "with quorum again, the locks have to be asked for anew");
	ok_int(status(&w).state, POLICY_WAITING, "they are waited for");
	ok_said(&w, "until belayd has the locks", "which is said");
	locks(&w, true);
	ok_done(&w, "resume v-a; resume v-b", "then all is resumed");
	ok(a->io == 1 && b->io == 1, "and what waited is written");
	ok_int(status(&w).state, POLICY_QUIET, "that is all");
	ok(!w.kept, "nothing is left to remember");
	ok_str(policy_says(w.policy, a->device.uuid), "", "nor to tell");
	end(&w);
}

static void test_order(void)
{
	struct fake_device *upper, *lower, *image, *thin, *pool;
	struct world w;

	begin(&w, POLICY_FREEZE);
	image = fake_dm_add(&w.dm, "v1", "", "v-r_rimage_0", "linear");
	lower = fake_dm_add(&w.dm, "v2", "", "v-r", "raid");
	upper = fake_dm_add(&w.dm, "wa", "", "w-a", "linear");
	fake_dm_stack(lower, image);
	fake_dm_stack(upper, lower);
	pool = fake_dm_add(&w.dm, "v3", "-tpool", "v-p-tpool", "thin-pool");
	thin = fake_dm_add(&w.dm, "v4", "", "v-t", "thin");
	fake_dm_stack(thin, pool);
	locks(&w, true);
	back(&w);
	quorum(&w, false);
	ok_done(&w, "suspend w-a; suspend v-t; suspend v-r",
		"what stands on another is suspended first, parts never are");
	back(&w);
	ok_done(&w, "resume v-r; resume w-a; resume v-t", "and resumed last");
	end(&w);
}

static void test_foreign(void)
{
	struct fake_device *a;
	struct world w;

	begin(&w, POLICY_FREEZE);
	a = fake_dm_add(&w.dm, "va", "", "v-a", "linear");
	(void)fake_dm_add(&w.dm, "vb", "", "v-b", "linear");
	a->device.suspended = true;
	locks(&w, true);
	quorum(&w, false);
	ok_done(&w, "suspend v-b", "what somebody else has suspended is left alone");
	ok_said(&w, "v/a was already suspended by another program", "which is said");
	ok(!strstr(w.kept, "v-a\t"), "but not written down as ours");
	tick(&w);
	ok(!strstr(w.said, "v/a"), "once");
	back(&w);
	ok_done(&w, "resume v-b", "and with quorum it is not resumed");

	quorum(&w, false);
	w.dm.order[0] = '\0';
	a->device.suspended = false;
	tick(&w);
	ok_done(&w, "suspend v-a", "when lvm resumes without quorum what it had suspended, it is our turn");
	back(&w);
	ok_done(&w, "resume v-a; resume v-b", "and then it is ours to resume");
	end(&w);
}

static void test_operator(void)
{
	struct fake_device *a;
	struct world w;

	begin(&w, POLICY_FREEZE);
	a = fake_dm_add(&w.dm, "va", "", "v-a", "linear");
	locks(&w, true);
	quorum(&w, false);
	a->device.suspended = false;
	w.dm.order[0] = '\0';
	tick(&w);
	ok_done(&w, "suspend v-a", "what another program resumes is suspended once more");
	ok_said(&w, "do it once more to overrule", "and it is said how to have it otherwise");
	a->device.suspended = false;
	tick(&w);
	ok_done(&w, "", "who does it again means it");
	ok_said(&w, "MAY BE WRITTEN", "loudly");
	ok_uint(status(&w).count.refused, 1, "status shows that it is not stopped");
	ok(!w.kept, "it is not ours any more");
	a->device.suspended = true;
	tick(&w);
	back(&w);
	ok_done(&w, "", "nor is it resumed, if suspended by then");
	end(&w);
}

static void test_changes(void)
{
	struct fake_device *a, *b;
	struct world w;

	begin(&w, POLICY_FREEZE);
	a = fake_dm_add(&w.dm, "va", "", "v-a", "linear");
	b = fake_dm_add(&w.dm, "vb", "", "v-b", "linear");
	b->fails[DM_SUSPEND] = -EINVAL;
	locks(&w, true);
	quorum(&w, false);
	ok_said(&w, "cannot suspend v/b: Invalid argument", "what cannot be done is said");
	ok_uint(status(&w).count.refused, 1, "and shown");
	tick(&w);
	ok(!strstr(w.said, "v/b"), "once");
	b->fails[DM_SUSPEND] = 0;
	(void)fake_dm_add(&w.dm, "vc", "", "v-c", "linear");
	w.dm.order[0] = '\0';
	tick(&w);
	ok_done(&w, "suspend v-b; suspend v-c", "it is tried again, and what came into being since is taken, too");
	a->gone = true;
	tick(&w);
	ok_uint(status(&w).count.frozen, 2, "a device that vanishes is forgotten");
	b->gone = true;
	back(&w);
	ok_done(&w, "resume v-b (no); resume v-c", "one that vanishes before it is resumed does no harm");
	ok_int(status(&w).state, POLICY_QUIET, "all is undone");
	end(&w);
}

static void test_list(void)
{
	struct world w;

	begin(&w, POLICY_FREEZE);
	(void)fake_dm_add(&w.dm, "va", "", "v-a", "linear");
	w.dm.list_fails = -ETIMEDOUT;
	locks(&w, true);
	quorum(&w, false);
	ok_int(status(&w).state, POLICY_APPLYING, "without a list nothing is applied");
	ok_said(&w, "may still be written", "which is said");
	ok(w.timer_ms > 0, "it is tried again");
	w.dm.list_fails = 0;
	tick(&w);
	ok_done(&w, "suspend v-a", "with success");
	ok_int(status(&w).state, POLICY_APPLIED, "then it is applied");
	back(&w);

	w.dm.list_fails = -ENODEV;
	quorum(&w, false);
	ok_int(status(&w).state, POLICY_APPLIED, "without device-mapper nothing is active");
	end(&w);
}

/* ---- what hangs ---- */

static void test_hung(void)
{
	struct fake_device *a, *b, *c;
	struct world w;

	begin(&w, POLICY_FREEZE);
	a = fake_dm_add(&w.dm, "va", "", "v-a", "linear");
	b = fake_dm_add(&w.dm, "vb", "", "v-b", "linear");
	c = fake_dm_add(&w.dm, "vc", "", "v-c", "linear");
	a->hangs = b->hangs = true;
	locks(&w, true);
	quorum(&w, false);
	ok_done(&w, "suspend v-a (hangs); suspend v-b (hangs); suspend v-c", "what hangs does not stop the others");
	ok_uint(status(&w).count.hung, 2, "it is counted");
	ok_said(&w, "v/a: nothing new is written", "and explained");
	fake_dm_write(a);
	ok_int(a->io, 0, "and writes nothing");
	tick(&w);
	ok_done(&w, "", "it is not begun again");

	fake_dm_unhang(&w.dm, b);
	run(&w);
	ok_uint(status(&w).count.hung, 1, "one whose storage answers after all is suspended");
	ok_uint(status(&w).count.frozen, 3, "as the others");
	w.dm.order[0] = '\0';
	back(&w);
	ok(!a->device.suspended && a->io == 1, "with quorum a suspension that hangs is broken off");
	ok(!b->device.suspended && !c->device.suspended, "the others are resumed");
	ok_int(status(&w).state, POLICY_QUIET, "all is undone");
	ok(!w.kept, "and forgotten");
	end(&w);
}

static void test_hung_and_lost(void)
{
	struct fake_device *a;
	struct world w;

	begin(&w, POLICY_FREEZE);
	a = fake_dm_add(&w.dm, "va", "", "v-a", "linear");
	a->hangs = true;
	locks(&w, true);
	quorum(&w, false);
	fake_dm_write(a);
	w.lost = "a";
	back(&w);
	ok_int(a->io, 0, "a suspension that hangs is not broken off if the lock is lost: its writes would pass");
	ok_int(status(&w).state, POLICY_UNDOING, "it is waited for");
	w.dm.order[0] = '\0';
	fake_dm_unhang(&w.dm, a);
	run(&w);
	ok_done(&w, "fail v-a", "and then what waits in it fails");
	ok(a->io == 0 && a->errors == 1, "not a write gets through");
	end(&w);
}

/* ---- the locks ---- */

static void test_lost_lock(void)
{
	struct fake_device *a, *b, *c;
	struct world w;

	begin(&w, POLICY_FREEZE);
	a = fake_dm_add(&w.dm, "va", "", "v-a", "linear");
	b = fake_dm_add(&w.dm, "vb", "", "v-b", "linear");
	c = fake_dm_add(&w.dm, "vc", "", "v-c", "linear");
	w.unlocked = "c";
	locks(&w, true);
	quorum(&w, false);
	fake_dm_write(a);
	fake_dm_write(b);
	fake_dm_write(c);
	w.dm.order[0] = '\0';
	w.lost = "a";
	back(&w);
	ok_done(&w, "fail v-a; resume v-b; resume v-c", "what another node has by now is not resumed");
	ok(a->io == 0 && a->errors == 1, "what waited in it fails");
	ok(b->io == 1, "the others go on");
	ok(c->io == 1, "also one that never had a lock");
	ok_said(&w, "dmsetup remove v-a", "and it is said what to do");
	ok_int(status(&w).state, POLICY_QUIET, "that is all");
	end(&w);
}

static void test_flapping(void)
{
	struct fake_device *a;
	struct world w;

	begin(&w, POLICY_FREEZE);
	a = fake_dm_add(&w.dm, "va", "", "v-a", "linear");
	locks(&w, true);
	policy_on_quorum(w.policy, false, 1);
	policy_on_quorum(w.policy, true, 0);
	locks(&w, true);
	ok_done(&w, "", "quorum that is back before anything was done");
	ok_int(status(&w).state, POLICY_QUIET, "is as if it had not been lost");

	quorum(&w, false);
	policy_on_quorum(w.policy, true, 0);
	policy_on_locks(w.policy, true);
	policy_on_quorum(w.policy, false, 2);
	run(&w);
	ok(a->device.suspended, "lost again while it is undone, it is done once more");
	ok_int(status(&w).state, POLICY_APPLIED, "to the end");
	w.dm.order[0] = '\0';
	back(&w);
	ok_done(&w, "resume v-a", "and undone");

	policy_on_quorum(w.policy, false, 3);
	policy_free(w.policy);
	ok(!w.dm.answers, "who ends in the middle leaves no answer to come");
	open_policy(&w, POLICY_FREEZE);
	end(&w);
}

/* ---- error ---- */

static void test_error(void)
{
	struct fake_device *a, *c, *d;
	struct world w;

	begin(&w, POLICY_ERROR);
	a = fake_dm_add(&w.dm, "va", "", "v-a", "linear");
	(void)fake_dm_add(&w.dm, "vb", "", "v-b", "raid");
	c = fake_dm_add(&w.dm, "vc", "", "v-c", "error");
	d = fake_dm_add(&w.dm, "vd", "", "v-d", "linear");
	d->device.suspended = true;
	locks(&w, true);
	quorum(&w, false);
	ok_done(&w, "error v-a; error v-b", "the error target takes the place of what is active");
	fake_dm_write(a);
	ok(a->io == 0 && a->errors == 1, "writes fail");
	ok_str(policy_says(w.policy, a->device.uuid), "failed", "status can tell");
	ok_str(policy_says(w.policy, c->device.uuid), "", "what LVM made return errors is not ours");
	tick(&w);
	ok_done(&w, "", "it stays so");
	back(&w);
	ok_done(&w, "restore v-a; restore v-b (no)", "the tables are put back, if they have no state");
	ok_str(w.refreshed, "v/b", "the others are made by lvm");
	ok_said(&w, "check its file system", "it is said that programs have seen errors");
	ok_int(status(&w).state, POLICY_QUIET, "all is undone");
	end(&w);
}

static void test_error_changes(void)
{
	struct fake_device *a;
	struct world w;

	begin(&w, POLICY_ERROR);
	a = fake_dm_add(&w.dm, "va", "", "v-a", "linear");
	locks(&w, true);
	policy_on_quorum(w.policy, false, 1);
	quorum(&w, false);
	w.dm.order[0] = '\0';
	/* lvm reloads it. */
	(void)strcpy(a->device.targets, "linear");
	(void)strcpy(a->table, "0 1024 linear 8:0 4096");
	tick(&w);
	ok_done(&w, "error v-a", "a new table of lvm's is replaced, too");
	back(&w);
	ok_str(a->table, "0 1024 linear 8:0 4096", "and it is what is put back");
	end(&w);
}

static void test_stuck(void)
{
	struct fake_device *a;
	struct world w;

	begin(&w, POLICY_FREEZE);
	a = fake_dm_add(&w.dm, "va", "", "v-a", "linear");
	locks(&w, true);
	quorum(&w, false);
	a->device.inactive = true;
	w.refresh_result = -EIO;
	w.dm.order[0] = '\0';
	back(&w);
	ok_done(&w, "resume v-a (no)", "a table that somebody has loaded is not made live by us");
	ok_str(w.refreshed, "v/a", "lvm has to say what becomes of it");
	ok_said(&w, "by hand: dmsetup resume v-a", "if it cannot, it is said what to do");
	ok_uint(status(&w).count.frozen, 1, "status shows it");
	ok(w.kept && w.timer_ms > 0, "it is kept in mind, and tried again");
	w.refresh_result = 0;
	tick(&w);
	ok_int(status(&w).state, POLICY_QUIET, "until it is done");
	ok(!w.kept, "and forgotten");
	end(&w);
}

static void test_give_up(void)
{
	struct fake_device *a;
	struct world w;

	begin(&w, POLICY_FREEZE);
	a = fake_dm_add(&w.dm, "va", "", "v-a", "linear");
	locks(&w, true);
	ok_int(policy_give_up(w.policy), -EALREADY, "with quorum there is nothing to give up");
	quorum(&w, false);
	fake_dm_write(a);
	ok_int(policy_give_up(w.policy), 0, "a frozen node can be stopped");
	run(&w);
	ok(a->io == 0 && a->errors == 1, "what waits fails, and nothing is written");
	ok_str(policy_says(w.policy, a->device.uuid), "failed", "status can tell");
	tick(&w);
	ok_int(policy_give_up(w.policy), -EALREADY, "once");
	back(&w);
	ok_str(w.refreshed, "v/a", "if quorum comes back first, lvm makes it work again");
	end(&w);
}

/* ---- restart ---- */

static void test_restart(void)
{
	struct fake_device *a, *b;
	struct world w;

	begin(&w, POLICY_FREEZE);
	a = fake_dm_add(&w.dm, "va", "", "v-a", "linear");
	b = fake_dm_add(&w.dm, "vb", "", "v-b", "linear");
	locks(&w, true);
	quorum(&w, false);
	policy_free(w.policy);
	open_policy(&w, POLICY_FREEZE);
	w.dm.order[0] = '\0';
	locks(&w, true);
	quorum(&w, false);
	ok_done(&w, "", "a new process finds what the former one has suspended");
	ok_uint(status(&w).count.frozen, 2, "and knows that it was");
	policy_free(w.policy);
	open_policy(&w, POLICY_NONE);
	b->device.suspended = false;
	w.lost = "a";
	quorum(&w, true);
	ok_done(&w, "", "with quorum it waits for the locks as well");
	locks(&w, true);
	ok_done(&w, "fail v-a; resume v-b (no)", "and undoes all, whatever the policy is by now, but for lost locks");
	ok(!w.kept, "then nothing is left");
	end(&w);

	begin(&w, POLICY_ERROR);
	a = fake_dm_add(&w.dm, "va", "", "v-a", "linear");
	locks(&w, true);
	quorum(&w, false);
	policy_free(w.policy);
	open_policy(&w, POLICY_ERROR);
	quorum(&w, true);
	locks(&w, true);
	ok_str(a->table, "0 1024 linear 8:0 0", "a table survives a restart");
	end(&w);
}

static void test_kept(void)
{
	static const char *const garbage[] = {
		"x", "belay-frozen 2\n", "belay-frozen 1\nsuspended\n", "belay-frozen 1\nsuspended\tu\tn\t0\t1\tl\t\t",
		"belay-frozen 1\nsuspended\tu\tn\tx\t1\tl\t\t\n", "belay-frozen 1\nsuspended\tu\tn\t0\t2\tl\t\t\n",
		"belay-frozen 1\nburied\tu\tn\t0\t1\tl\t\t\n", "belay-frozen 1\nsuspended\t\tn\t0\t1\tl\t\t\n",
		"belay-frozen 1\nsuspended\tu\tn\t0\t1\tl\t\t\t\n",
	};
	struct policy *policy = NULL;
	struct world w;

	begin(&w, POLICY_FREEZE);
	for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++)
		ok_int(policy_new(POLICY_FREEZE, &w.port, garbage[i], strlen(garbage[i]), &policy), -EBADMSG,
		       "what was kept is refused: garbage %zu", i);
	ok(!policy, "and there is no policy then");

	(void)fake_dm_add(&w.dm, "va", "", "v-a", "linear");
	w.save_fails = -ENOSPC;
	locks(&w, true);
	quorum(&w, false);
	ok_done(&w, "suspend v-a", "what cannot be written down is done all the same");
	ok_said(&w, "resumed by hand", "which is said");
	end(&w);
}

static void test_none(void)
{
	struct world w;

	begin(&w, POLICY_NONE);
	(void)fake_dm_add(&w.dm, "va", "", "v-a", "linear");
	locks(&w, true);
	quorum(&w, false);
	ok(w.dm.lists == 0, "the policy none does nothing");
	ok_said(&w, "may be written until it is fenced", "and says so");
	back(&w);
	ok_int(status(&w).state, POLICY_QUIET, "nor is there anything to undo");
	end(&w);
}

static void test_many(void)
{
	char name[32], id[3] = "v?";
	struct world w;

	begin(&w, POLICY_FREEZE);
	for (unsigned i = 0; i < 1000; i++) {
		struct fake_device *f;

		id[1] = 'a';
		(void)snprintf(name, sizeof(name), "v-%u", i);
		f = fake_dm_add(&w.dm, id, "", name, "linear");
		(void)snprintf(f->device.uuid + 60, 9, "%08u", i);
	}
	locks(&w, true);
	quorum(&w, false);
	ok_uint(status(&w).count.frozen, 1000, "a thousand LVs are suspended");
	ok(w.saves <= 4, "written down together");
	back(&w);
	ok_int(status(&w).state, POLICY_QUIET, "and resumed");
	end(&w);
}

int main(void)
{
	test_freeze();
	test_order();
	test_foreign();
	test_operator();
	test_changes();
	test_list();
	test_hung();
	test_hung_and_lost();
	test_lost_lock();
	test_flapping();
	test_error();
	test_error_changes();
	test_stuck();
	test_give_up();
	test_restart();
	test_kept();
	test_none();
	test_many();
	return done_testing();
}
