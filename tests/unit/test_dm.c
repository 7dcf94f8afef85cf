/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Device-mapper's list as a graph: which devices are LVs, what stands on what, whose lock counts. */
#include "tests/tap.h"
#include "tests/unit/fake_dm.h"

static void devices_of(struct fake_dm *dm, struct dm_devices *ret_devices)
{
	struct dm_buffer buffer = { .text = NULL };

	for (size_t i = 0; i < dm->count; i++) {
		struct dm_device device = dm->device[i].device;

		device.below = dm->device[i].below;
		device.table = dm->device[i].table;
		ok_int(dm_format(&buffer, &device), 0, "%s is written", device.name);
	}
	ok_int(dm_parse(buffer.text, buffer.size, ret_devices), 0, "and all are read");
	free(buffer.text);
}

static void test_names(void)
{
	struct dm_device device = { .name = "my--vg-a--b--c" };
	struct dm_lv lv;

	(void)snprintf(device.uuid, sizeof(device.uuid), "LVM-%s%s", "abcdefGHIJklmnOPQRstuvWXYZ012345",
		       "zyxwvu9876543210ABCDEFGHIJKLMNOP");
	ok(dm_lv_of(&device, &lv), "an LV is known by its uuid");
	ok_str(lv.vg_uuid, "abcdef-GHIJ-klmn-OPQR-stuv-WXYZ-012345", "its VG's uuid is as lvm writes it");
	ok_str(lv.lv_uuid, "zyxwvu-9876-5432-10AB-CDEF-GHIJ-KLMNOP", "and its own");
	ok_str(lv.vg_name, "my-vg", "hyphens of the VG's name are doubled in the device's");
	ok_str(lv.lv_name, "a-b-c", "and those of the LV's");
	ok_str(lv.layer, "", "no layer");
	(void)strcat(device.uuid, "-tpool");
	(void)strcpy(device.name, "vg-pool-tpool");
	ok(dm_lv_of(&device, &lv), "a layer, too");
	ok_str(lv.layer, "tpool", "which is called so");
	ok_str(lv.lv_name, "pool", "and belongs to its LV");

	(void)strcpy(device.name, "vg");
	ok(!dm_lv_of(&device, &lv), "a name without an LV is none");
	(void)strcpy(device.name, "vg-lv");
	(void)strcpy(device.uuid, "mpath-3600140500000000000000000000000000000000000000000000000000000000");
	ok(!dm_lv_of(&device, &lv), "what is not LVM's is no LV");
	(void)strcpy(device.uuid, "LVM-abc");
	ok(!dm_lv_of(&device, &lv), "nor is a uuid that is too short");
}

static void test_relations(void)
{
	struct dm_devices devices;
	struct fake_device *raid, *image, *meta, *stacked, *crypt, *thin, *pool, *data, *snap, *real, *cow, *origin;
	char uuid[DM_LVM_UUID_MAX + 1], want[DM_LVM_UUID_MAX + 1];
	struct fake_dm dm;

	fake_dm_init(&dm);
	/* VG w stands on an LV of VG v, with a device of somebody else's between them. */
	image = fake_dm_add(&dm, "v1", "", "v-r_rimage_0", "linear");
	meta = fake_dm_add(&dm, "v2", "", "v-r_rmeta_0", "linear");
	raid = fake_dm_add(&dm, "v3", "", "v-r", "raid");
	crypt = fake_dm_add(&dm, "xx", "", "secret", "crypt");
	(void)strcpy(crypt->device.uuid, "CRYPT-LUKS2-abc-secret");
	stacked = fake_dm_add(&dm, "w1", "", "w-s", "linear");
	fake_dm_stack(raid, image);
	fake_dm_stack(raid, meta);
	fake_dm_stack(crypt, raid);
	fake_dm_stack(stacked, crypt);
	data = fake_dm_add(&dm, "v4", "-tdata", "v-p_tdata", "linear");
	pool = fake_dm_add(&dm, "v5", "-tpool", "v-p-tpool", "thin-pool");
	thin = fake_dm_add(&dm, "v6", "", "v-t", "thin");
	fake_dm_stack(pool, data);
	fake_dm_stack(thin, pool);
	real = fake_dm_add(&dm, "v7", "-real", "v-o-real", "linear");
	cow = fake_dm_add(&dm, "v8", "-cow", "v-c-cow", "linear");
	origin = fake_dm_add(&dm, "v7", "", "v-o", "snapshot-origin");
	snap = fake_dm_add(&dm, "v8", "", "v-c", "snapshot");
	fake_dm_stack(origin, real);
	fake_dm_stack(snap, real);
	fake_dm_stack(snap, cow);
	devices_of(&dm, &devices);

#define GET(f) dm_find(&devices, (f)->device.uuid)
	ok(dm_is_top(GET(raid)), "an LV on which another VG stands is one that is used");
	ok(!dm_is_top(GET(image)) && !dm_is_top(GET(meta)), "its images are not, though their uuids do not say so");
	ok(dm_is_top(GET(stacked)), "nor does it matter what it stands on");
	ok(!dm_is_top(GET(crypt)), "a device of others is no LV");
	ok(dm_is_top(GET(thin)) && !dm_is_top(GET(pool)) && !dm_is_top(GET(data)), "of a pool the thin LV is used");
	ok(dm_is_top(GET(origin)) && dm_is_top(GET(snap)), "an origin and its snapshot both are");
	ok(GET(origin)->depth == 0 && GET(snap)->depth == 1, "the origin is to be stopped first");
	ok(!dm_is_top(GET(real)) && !dm_is_top(GET(cow)), "but not their layers");
	ok_uint(GET(stacked)->depth, 0, "nothing stands on the uppermost");
	ok_uint(GET(crypt)->depth, 1, "one device on the next");
	ok_uint(GET(raid)->depth, 2, "two on the LV of the other VG");
	ok_uint(GET(image)->depth, 3, "three on its image");

	ok(dm_lock_of(&devices, GET(raid), uuid), "an LV has a lock");
	ok_str(uuid, fake_lv_uuid("v3", want), "its own");
	ok(dm_lock_of(&devices, GET(thin), uuid), "a thin LV has one");
	ok_str(uuid, fake_lv_uuid("v5", want), "its pool's");
	ok(dm_lock_of(&devices, GET(snap), uuid), "a snapshot has one");
	ok_str(uuid, fake_lv_uuid("v7", want), "its origin's");
	ok(!dm_lock_of(&devices, GET(crypt), uuid), "a device of others has none");
	ok(dm_is_active(&devices, fake_lv_uuid("v5", want)), "a pool is active if a layer of it is");
	ok(!dm_is_active(&devices, fake_lv_uuid("v9", want)), "what has no device is not");
#undef GET
	dm_devices_done(&devices);
	fake_dm_done(&dm);
}

static void test_text(void)
{
	static const char *const garbage[] = {
		"x\n", "no newline", "\n", "a\tb\t1\t2\t\t0\t0\tlinear\t\t\n",
		"a\tb\t1\t2\t\t0\t0\tlinear\t\t\t\textra\n", "a\tb\t-1\t2\t\t0\t0\tlinear\t\t\t\n",
		"a\tb\t1\t99999999999\t\t0\t0\tlinear\t\t\t\n", "a\tb\t1\t2\t\t0\tx\tlinear\t\t\t\n",
		"a\tb\t1\t2\t\t0\t0\tlinear\t8\t\t\n", "a\tb\t1\t2\t\t0\t0\tlinear\t8:\t\t\n",
		"a\tb\t1\t2\t\t0\t0\tlinear\t8:0 \t8:0\n",
	};
	struct dm_devices devices, again = { .count = 77 };
	struct dm_buffer buffer = { .text = NULL };
	uint64_t below[] = { DM_NUMBER(8, 16), DM_NUMBER(253, 7) };
	char table[] = "0 8 linear 8:16 0\n8 8 linear 253:7 0", beneath[] = "8:16/1 253:7/22";
	struct dm_device device = { .uuid = "u", .name = "strange\tname", .major = 253, .minor = 1048575,
				    .suspended = true, .read_only = true, .live = true, .inactive = true,
				    .open_count = 3, .size_bytes = 8192, .targets = "linear", .below = below,
				    .below_count = 2, .table = table, .beneath = beneath };
	unsigned accepted = 0;
	char long_line[600];

	ok_int(dm_format(&buffer, &device), 0, "a device with everything is written");
	ok_int(dm_parse(buffer.text, buffer.size, &devices), 0, "and read");
	ok_str(devices.device[0].name, "strange name", "what separates fields is not in one");
	ok_str(devices.device[0].table, table, "the table is the same");
	ok_str(devices.device[0].beneath, beneath, "what is beneath is the same");
	ok(devices.device[0].suspended && devices.device[0].read_only && devices.device[0].live &&
	   devices.device[0].inactive, "flags are set");
	ok_uint(devices.device[0].minor, 1048575, "the number is the same");
	ok(devices.device[0].below_count == 2 && devices.device[0].below[1] == below[1], "and those below");
	dm_devices_done(&devices);

	for (size_t i = 1; i < buffer.size; i++)
		accepted += dm_parse(buffer.text, i, &again) == 0;
	ok_uint(accepted, 0, "a part of it is refused");
	for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++)
		ok_int(dm_parse(garbage[i], strlen(garbage[i]), &again), -EBADMSG, "refused: garbage %zu", i);
	ok_int(dm_parse("a\0b\n", 4, &again), -EBADMSG, "refused: a NUL");
	(void)snprintf(long_line, sizeof(long_line), "%0200d\tb\t1\t2\t\t0\t0\tlinear\t\t\t\n", 0);
	ok_int(dm_parse(long_line, strlen(long_line), &again), -EBADMSG, "refused: a uuid that is too long");
	ok_int(dm_parse("", 0, &again), 0, "nothing is a list");
	ok_uint(again.count, 0, "of nothing");
	free(buffer.text);
}

static void test_loop(void)
{
	static const char text[] = "a\ta\t253\t1\tl\t0\t8\tlinear\t253:2\t\t\n"
				   "b\tb\t253\t2\tl\t0\t8\tlinear\t253:1 253:2\t\t\n";
	struct dm_devices devices;

	ok_int(dm_parse(text, sizeof(text) - 1, &devices), 0, "a list with a loop, from a change meanwhile, is read");
	ok_uint(devices.count, 2, "to its end");
	dm_devices_done(&devices);
}

static void test_tables(void)
{
	struct dm_device device = { .live = true, .targets = "error" };

	ok(dm_is_error(&device), "an error target");
	(void)strcpy(device.targets, "linear,error");
	ok(!dm_is_error(&device), "a device of which only a part is missing still works");
	ok(dm_is_stateless("0 8 linear 8:0 0\n8 8 striped 2 128 8:0 0 8:16 0"), "linear and striped have no state");
	ok(dm_is_stateless("0 8 snapshot 254:2 254:3 P 8"), "a snapshot has it on disk");
	ok(!dm_is_stateless("0 8 snapshot 254:2 254:3 N 8"), "but not one that is not persistent");
	ok(!dm_is_stateless("0 8 linear 8:0 0\n8 8 raid raid1 3 0 region_size 1024"), "raid has");
	ok(!dm_is_stateless(""), "no table is none");
	ok(!dm_is_stateless("0 8"), "nor is half a line");
}

int main(void)
{
	test_names();
	test_relations();
	test_text();
	test_loop();
	test_tables();
	return done_testing();
}
