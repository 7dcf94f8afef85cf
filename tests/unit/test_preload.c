/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parts of the preload library that need no process around them: paths, ranges, the table. */
#include "lib/preload/extent.h"
#include "lib/preload/preload.h"
#include "tests/tap.h"

/* What place.c wants of the rest, which is not here. */
struct preload preload = { .mutex = PTHREAD_MUTEX_INITIALIZER };

void say_once(enum once what, const char *format, ...)
{
	(void)what;
	(void)format;
}

void link_live(void)
{
}

/* ---- extents ---- */

#define LAST INT64_MAX

static const struct {
	const char *what;
	off_t base, start, length;
	int r;
	off_t first, last;
} extents[] = {
	{ "some bytes", 0, 10, 5, 0, 10, 14 },
	{ "one", 0, 0, 1, 0, 0, 0 },
	{ "to the end", 0, 10, 0, 0, 10, LAST },
	{ "from somewhere", 100, -10, 5, 0, 90, 94 },
	{ "backwards", 100, 0, -10, 0, 90, 99 },
	{ "backwards to the start", 10, 0, -10, 0, 0, 9 },
	{ "before the start", 10, 0, -11, -EINVAL, 0, 0 },
	{ "from before the start", 10, -11, 5, -EINVAL, 0, 0 },
	{ "up to the last one", 0, LAST, 1, 0, LAST, LAST },
	{ "beyond it", 0, LAST, 2, -EOVERFLOW, 0, 0 },
	{ "all but the first", 0, 1, LAST, 0, 1, LAST },
	{ "one too many", 0, 2, LAST, -EOVERFLOW, 0, 0 },
	{ "from beyond it", 1, LAST, 1, -EOVERFLOW, 0, 0 },
	{ "as far back as it goes", 0, INT64_MIN, 1, -EINVAL, 0, 0 },
	{ "a length as far back", LAST, 0, INT64_MIN, -EINVAL, 0, 0 },
};

static void test_extents(void)
{
	for (size_t i = 0; i < sizeof(extents) / sizeof(extents[0]); i++) {
		struct flock l = { .l_start = extents[i].start, .l_len = extents[i].length };
		struct extent e = { 77, 77 };

		ok_int(extent_from(&l, extents[i].base, &e), extents[i].r, "%s", extents[i].what);
		ok(e.start == (extents[i].r < 0 ? 77 : (uint64_t)extents[i].first) &&
		   e.end == (extents[i].r < 0 ? 77 : (uint64_t)extents[i].last), "the bytes");
	}
	ok_uint(extent_length(&(struct extent){ 3, 7 }), 5, "a length");
	ok_uint(extent_length(&(struct extent){ 3, EXTENT_LAST }), 0, "to the end it is 0");
}

/* ---- what is held ---- */

static void test_held(void)
{
	struct held h = { .count = 0 };

	ok(!held_any(&h), "nothing is held");
	held_add(&h, false, 10, 19);
	held_add(&h, true, 12, 13);
	ok_uint(h.count, 1, "what lies within is no more");
	held_remove(&h, false, held_now(&h), 0, 9);
	held_remove(&h, true, held_now(&h), 20, 29);
	ok(held_any(&h), "beside it nothing is removed");
	held_remove(&h, false, held_now(&h), 5, 14);
	held_remove(&h, false, held_now(&h), 18, 40);
	ok(h.count == 1 && h.range[0].start == 15 && h.range[0].end == 17, "it is cut at both ends");
	held_remove(&h, false, held_now(&h), 16, 16);
	ok(held_any(&h), "something is left on both sides of a hole");
	held_remove(&h, false, held_now(&h), 15, 17);
	ok(!held_any(&h), "and nothing now");
	for (uint64_t i = 0; i <= HELD_RANGES; i++)
		held_add(&h, false, 10 * i, 10 * i);
	for (uint64_t i = 0; i <= HELD_RANGES; i++)
		held_remove(&h, false, held_now(&h), 10 * i, 10 * i);
	ok(held_any(&h), "of more than it can remember it knows that they were");
	held_remove(&h, false, held_now(&h), 0, INT64_MAX);
	ok(!held_any(&h), "until all goes");
}

/* In a handler there is nobody to wait for: he goes on when it returns, or never. */
static void test_held_within(void)
{
	struct held h = { .count = 0 };
	uint64_t now;

	for (int shared = 0; shared < 2; shared++) {
		h.busy = true;
		held_add(&h, shared, 5, 5);
		h.busy = false;
		ok(held_any(&h), "a lock that cannot be noted is remembered");
		held_remove(&h, shared, held_now(&h), 5, 5);
		ok(held_any(&h), "until");
		held_remove(&h, shared, held_now(&h), 0, INT64_MAX);
		ok(!held_any(&h), "all is unlocked");

		held_add(&h, shared, 5, 5);
		now = held_now(&h);
		held_add(&h, shared, 5, 5);
		held_remove(&h, shared, now, 5, 5);
		ok(held_any(&h), "a lock that was taken during the unlock stays");
		held_remove(&h, shared, held_now(&h), 5, 5);
		ok(!held_any(&h), "the next unlock is its own");
	}
	h.busy = true;
	for (int i = 0; i < 1000000; i++)
		held_add(&h, true, 5, 5);
	ok(held_any(&h), "who never comes back is not waited for each time");
}

/* ---- directories ---- */

static bool matches(const char *list, const char *path)
{
	struct place place[PLACES_MAX];
	bool wrong;
	unsigned count = place_parse(list, place, &wrong);

	return place_match(place, count, path, strlen(path));
}

static void test_places(void)
{
	struct place place[PLACES_MAX];
	char many[PLACES_MAX * 3 + 8] = "";
	bool wrong;

	ok(matches("/srv", "/srv/a"), "below");
	ok(matches("/srv/", "/srv/a/b"), "far below; with a slash behind it");
	ok(!matches("/srv", "/srv"), "itself it is not");
	ok(!matches("/srv", "/srvs/a"), "nor one that begins alike");
	ok(!matches("/srv/a", "/srv"), "nor above");
	ok(matches("/a:/srv:/b", "/srv/a") && matches("/a:/srv:/b", "/b/x"), "one of several");
	ok(matches("/", "/x"), "below / is everything");
	ok(!matches("", "/x"), "below none is nothing");
	ok(matches("::/srv:", "/srv/x"), "empty ones are passed over");
	ok_uint(place_parse("/a:b:/c", place, &wrong), 2, "a relative one is left out");
	ok(wrong, "and told of");
	ok_uint(place_parse("/a:/c", place, &wrong), 2, "two");
	ok(!wrong, "nothing is wrong");
	for (unsigned i = 0; i <= PLACES_MAX; i++)
		strcat(many, "/a:");
	ok_uint(place_parse(many, place, &wrong), PLACES_MAX, "no more than there is room for");
	ok(wrong, "the others are told of");
}

/* ---- the table ---- */

static unsigned called;

static void count(int fd)
{
	called++;
	(void)table_set(fd, NULL);
}

static void test_table(void)
{
	static struct description d, e;

	ok(table_get(0) == NULL && table_get(1023) == NULL && table_get(100000) == NULL && table_get(-1) == NULL,
	   "nothing is known");
	ok_int(table_set(5, &d), 0, "a small number");
	ok_int(table_set(100000, &e), 0, "a large one");
	ok_int(table_set(5000000, &e), -ENOLCK, "too large a one");
	ok_int(table_set(-1, &e), -ENOLCK, "none");
	ok_int(table_set(5000000, NULL), 0, "that nothing is known can be said of all");
	ok_int(table_set(7, TABLE_NOT_OURS), 0, "not ours");
	ok(table_get(5) == &d && table_get(100000) == &e && table_get(7) == TABLE_NOT_OURS, "as was said");
	ok_int(table_find(&d), 5, "found");
	ok_int(table_find(&e), 100000, "far away");
	table_each(6, 99999, count);
	ok_uint(called, 1, "one between");
	ok(table_get(5) == &d && table_get(7) == NULL, "that one");
	table_clear();
	ok_int(table_find(&d), -1, "all is forgotten");
	ok_int(table_find(&e), -1, "all of it");
}

int main(void)
{
	test_extents();
	test_held();
	test_held_within();
	test_places();
	test_table();
	return done_testing();
}
