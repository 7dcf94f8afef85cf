/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lvm's refusals in words, its list of LVs, and what counts as verified. */
#include "lvmlockd/explain.h"
#include "lvmlockd/lvs.h"
#include "lvmlockd/verify.h"
#include "tests/tap.h"

static bool says(const char *text, const char *part)
{
	if (strstr(text, part))
		return true;
	diag("it says: %s", text);
	return false;
}

static void test_explain(void)
{
	static const struct {
		const char *lv, *output, *says;
	} cases[] = {
		{ "data", "  LV locked by other host: vg/data\n  Failed to lock logical volume vg/data.\n",
		  "another node has it locked" },
		{ "data", "  LV locked by other host: vg/data2\n  Something else of vg/data.\n",
		  "lvm says: Something else of vg/data." },
		{ "data", "  Logical volume vg/data contains a filesystem in use.\n", "is mounted" },
		{ "data", "  Logical volume vg/data in use.\n", "has it open" },
		{ "data", "  LV vg/data lock failed: lockspace is inactive\n",
		  "vgchange --lock-start" },
		{ "data", "  VG vg lock failed: held by other host.\n", "has the VG locked" },
		{ "", "  Volume group \"vg\" not found\n  Cannot process volume group vg\n",
		  "no such VG" },
		{ "data", "  Failed to find logical volume \"vg/data\"\n", "no such LV" },
		{ "data", "  Cannot access VG vg with lock type dlm that requires lvmlockd.\n",
		  "use_lvmlockd = 1" },
		{ "data", "  Refusing activation of partial LV vg/data.\n", "a disk" },
		{ "data", "", "said nothing" },
		{ "data", "File descriptor 3 (x) leaked on lvm invocation. Parent PID 1: x\n  Odd.\n",
		  "lvm says: Odd." },
	};
	char text[256];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct explain_case c = { .lv = cases[i].lv, .output = cases[i].output };

		explain(&c, text, sizeof(text));
		ok(says(text, cases[i].says), "%s", cases[i].says);
	}
}

static void test_not_shared(void)
{
	static const char *const refused[] = {
		"thin,sparse", "thin,pool", "raid,raid1", "mirror", "cache", "vdo", "vdo,pool", "writecache",
	};

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		ok(explain_not_shared(refused[i], "public") != NULL, "%s cannot be shared", refused[i]);
	ok(explain_not_shared("linear", "public,origin,thickorigin,multithickorigin") != NULL, "nor an origin");
	ok(explain_not_shared("linear", "public,snapshot,thicksnapshot") != NULL, "nor its snapshot");
	ok(explain_not_shared("linear", "public,origin,extthinorigin") != NULL, "nor an external origin");
	ok(!explain_not_shared("linear", "public"), "a linear one can");
	ok(!explain_not_shared("striped", "public"), "so can a striped one");
}

#define ROW(name, size, layout, role, pool, origin, skip) \
	"{\"vg_name\":\"vg\",\"vg_uuid\":\"vvvvvv-vvvv-vvvv-vvvv-vvvv-vvvv-vvvvvv\",\"vg_lock_type\":\"dlm\"," \
	"\"lv_name\":\"" name "\",\"lv_uuid\":\"" name name name name name name "-bbbb-cccc-dddd-eeee-ffff-gggggg\"," \
	"\"lv_size\":\"" size "\",\"lv_layout\":\"" layout "\",\"lv_role\":\"" role "\"," \
	"\"pool_lv_uuid\":\"" pool "\"," \
	"\"origin_uuid\":\"" origin "\",\"lv_skip_activation\":\"" skip "\"}"
#define REPORT(rows) "  {\n \"report\": [ { \"lv\": [" rows "] } ]\n }\n"

static void test_lvs(void)
{
	struct lvs lvs = { 0 };
	const struct lvs_lv *lv;

	ok_int(lvs_parse("  WARNING: {odd}\n" REPORT(
		ROW("b", "4194304", "linear", "public", "", "", "") ","
		ROW("a", "8388608", "thin,sparse", "public", "pool-uuid", "", "skip activation") ","
		ROW("s", "4194304", "linear", "public,snapshot,thicksnapshot", "", "origin-uuid", "")), &lvs), 0,
	       "a report behind a warning is read");
	ok_uint(lvs.count, 3, "with all LVs");
	ok_str(lvs.lv[0].name, "a", "by name");
	ok_str(lvs.lv[0].lock_uuid, "pool-uuid", "of a thin one the pool is locked");
	ok(lvs.lv[0].skip, "LVM would leave it out");
	lv = lvs_find(&lvs, "s");
	ok(lv && strcmp(lv->lock_uuid, "origin-uuid") == 0, "of a snapshot the origin");
	lv = lvs_find(&lvs, "b");
	ok(lv && strcmp(lv->lock_uuid, lv->uuid) == 0 && lv->size_bytes == 4194304 && lv->shared_vg && !lv->skip,
	   "of another one itself");
	ok(!lvs_find(&lvs, "c"), "one that is not there is not found");
	lvs_done(&lvs);
	ok_int(lvs_parse(REPORT(""), &lvs), 0, "a VG without LVs");
	ok_uint(lvs.count, 0, "has none");
	lvs_done(&lvs);
	ok_int(lvs_parse("  Volume group \"vg\" not found\n", &lvs), -EBADMSG, "no report is none");
	ok_int(lvs_parse(REPORT(ROW("-x", "4", "linear", "public", "", "", "")), &lvs), -EBADMSG,
	       "a name that LVM does not give is refused");
	ok_int(lvs_parse(REPORT(ROW("x", "4g", "linear", "public", "", "", "")), &lvs), -EBADMSG, "so is such a size");
	ok_int(lvs_parse("{\n \"report\": [ { \"lv\": [ {} ] } ] }", &lvs), -EBADMSG, "and a row without fields");
}

/* ---- what is verified ---- */

static const struct lvs_lv linear = {
	.vg = "vg", .name = "data", .uuid = "lllllL-llll-llll-llll-llll-llll-llllll",
	.lock_uuid = "lllllL-llll-llll-llll-llll-llll-llllll", .vg_uuid = "vvvvvV-vvvv-vvvv-vvvv-vvvv-vvvv-vvvvvv",
	.size_bytes = 4096, .shared_vg = true, .layout = "linear", .role = "public",
};

static struct dm_device device_of(const struct lvs_lv *lv)
{
	struct dm_device device = {
		.name = "vg-data", .live = true, .size_bytes = lv->size_bytes, .targets = "linear",
	};

	verify_dm_uuid(lv, device.uuid);
	return device;
}

struct verify_test {
	struct dm_device device;
	struct dm_devices devices;
	struct verify_case c;
	struct ask_lv got;
};

static void prepare(struct verify_test *t, enum ask_verb verb, bool there)
{
	memset(t, 0, sizeof(*t));
	t->device = device_of(&linear);
	t->devices = (struct dm_devices){ .device = &t->device, .count = there };
	t->c = (struct verify_case){
		.verb = verb, .mode = ASK_EX, .lv = &linear, .devices = &t->devices,
		.lock = there ? ASK_EX : ASK_UN, .output = "",
	};
}

static void judge(struct verify_test *t, enum ask_outcome want, const char *part, const char *what)
{
	verify_lv(&t->c, &t->got);
	ok(t->got.outcome == want && says(t->got.reason, part), "%s", what);
}

static void test_activated(void)
{
	struct verify_test t;

	prepare(&t, ASK_ACTIVATE, true);
	judge(&t, ASK_VERIFIED, "", "active with a live table of the right size, and locked: verified");
	ok(t.got.changed && t.got.dm == ASK_DM_ACTIVE && t.got.size_bytes == 4096, "and told so");
	prepare(&t, ASK_ACTIVATE, false);
	judge(&t, ASK_FAILED, "", "no device: not active, whatever lvm says");
	prepare(&t, ASK_ACTIVATE, true);
	t.device.suspended = true;
	judge(&t, ASK_FAILED, "suspended", "suspended is not usable");
	t.c.policy = "frozen";
	judge(&t, ASK_FAILED, "for want of quorum", "nor if that is because there is no quorum, which is told");
	t.c.verb = ASK_STATUS;
	judge(&t, ASK_SHOWN, "for want of quorum", "also by status");
	prepare(&t, ASK_ACTIVATE, true);
	t.device.live = false;
	judge(&t, ASK_FAILED, "no table", "nor is a device without a table");
	prepare(&t, ASK_ACTIVATE, true);
	strcpy(t.device.targets, "linear,error");
	judge(&t, ASK_FAILED, "error target", "nor one with the error target in it");
	prepare(&t, ASK_ACTIVATE, true);
	t.device.size_bytes = 2048;
	judge(&t, ASK_FAILED, "2048 bytes", "nor one that is not as large as LVM says");
	prepare(&t, ASK_ACTIVATE, true);
	t.c.lock = ASK_SH;
	judge(&t, ASK_FAILED, "no exclusive lock", "active without its lock is a failure");
	t.c.mode = ASK_SH;
	judge(&t, ASK_VERIFIED, "", "shared needs but a shared lock");
	prepare(&t, ASK_ACTIVATE, true);
	t.c.lvm_failed = true;
	judge(&t, ASK_VERIFIED, "", "what lvm complains of does not matter if it is active");
	ok(t.got.changed, "that is a change");
	t.c.was_active = true;
	verify_lv(&t.c, &t.got);
	ok(!t.got.changed, "but not if it was active before");
}

static void test_without_dm(void)
{
	struct verify_test t;

	prepare(&t, ASK_ACTIVATE, true);
	t.c.devices = NULL;
	t.c.dm_error = -ENODEV;
	judge(&t, ASK_UNVERIFIED, "no device-mapper", "without device-mapper nothing is verified");
	t.c.dm_error = -ETIMEDOUT;
	judge(&t, ASK_UNVERIFIED, "does not answer", "nor if it hangs");
	t.c.lock = ASK_UN;
	t.c.lvm_failed = true;
	t.c.output = "  LV locked by other host: vg/data\n";
	judge(&t, ASK_FAILED, "another node has it locked", "what lvm could not do has failed");
	prepare(&t, ASK_DEACTIVATE, false);
	t.c.devices = NULL;
	t.c.dm_error = -ENODEV;
	judge(&t, ASK_UNVERIFIED, "no device-mapper", "deactivated is not verified either");
	t.c.lock = ASK_EX;
	t.c.lvm_failed = true;
	t.c.output = "  Logical volume vg/data in use.\n";
	judge(&t, ASK_FAILED, "has it open", "and fails by what lvm says");
}

static void test_others(void)
{
	struct verify_test t;

	prepare(&t, ASK_DEACTIVATE, false);
	t.c.was_active = true;
	judge(&t, ASK_VERIFIED, "", "inactive and unlocked: deactivated");
	ok(t.got.changed, "by this");
	prepare(&t, ASK_DEACTIVATE, true);
	t.c.output = "  Logical volume vg/data contains a filesystem in use.\n";
	judge(&t, ASK_FAILED, "is mounted", "still there: failed");
	prepare(&t, ASK_DEACTIVATE, false);
	t.c.lock = ASK_EX;
	judge(&t, ASK_FAILED, "still has its lock", "inactive, but still locked: failed");
	prepare(&t, ASK_REFRESH, true);
	t.c.was_active = true;
	judge(&t, ASK_VERIFIED, "", "refreshed to LVM's size");
	t.device.size_bytes = 2048;
	judge(&t, ASK_FAILED, "belay lv refresh", "but not if the table is still the old one");
	prepare(&t, ASK_REFRESH, false);
	judge(&t, ASK_VERIFIED, "", "what is not active needs no refresh");
	ok(!t.got.changed, "and is not changed");
}

static void sane(struct verify_test *t, const char *what)
{
	verify_lv(&t->c, &t->got);
	ok(t->got.outcome == ASK_SHOWN && says(t->got.reason, "") && t->got.reason[0] == '\0', "%s", what);
}

static void test_status(void)
{
	struct lvs_lv local = linear, thin = linear;
	struct verify_test t;

	local.shared_vg = false;
	strcpy(thin.lock_uuid, "pppppP-pppp-pppp-pppp-pppp-pppp-pppppp");
	prepare(&t, ASK_STATUS, true);
	sane(&t, "of status: active and locked is well");
	t.c.lock_lost = true;
	judge(&t, ASK_SHOWN, "is lost", "a lost lock is not");
	prepare(&t, ASK_STATUS, true);
	t.c.lock = ASK_UN;
	judge(&t, ASK_SHOWN, "without its lock", "active without lock");
	t.c.lv = &local;
	sane(&t, "which LVs of a VG that is not shared need not have");
	prepare(&t, ASK_STATUS, false);
	sane(&t, "inactive and not locked is well");
	t.c.lock = ASK_EX;
	judge(&t, ASK_SHOWN, "in vain", "locked in vain");
	t.c.lv = &thin;
	sane(&t, "but not if the lock is that of a pool, which others need");
	prepare(&t, ASK_STATUS, true);
	t.device.suspended = true;
	judge(&t, ASK_SHOWN, "suspended", "suspended");
	prepare(&t, ASK_STATUS, true);
	t.device.live = false;
	judge(&t, ASK_SHOWN, "no table", "no table");
	prepare(&t, ASK_STATUS, true);
	strcpy(t.device.targets, "error");
	judge(&t, ASK_SHOWN, "error target", "the error target");
	prepare(&t, ASK_STATUS, true);
	t.device.size_bytes = 2048;
	judge(&t, ASK_SHOWN, "belay lv refresh", "a table that is not LVM's");
	t.c.devices = NULL;
	t.c.dm_error = -ENODEV;
	sane(&t, "without device-mapper there is nothing to say");
}

int main(void)
{
	test_explain();
	test_not_shared();
	test_lvs();
	test_activated();
	test_without_dm();
	test_others();
	test_status();
	return done_testing();
}
