/* SPDX-License-Identifier: GPL-2.0-or-later */
/* (start, length) of callers to (start, end) of the protocol, and back. */
#include "lib/private.h"
#include "tests/tap.h"

static const struct {
	uint64_t start, length;
	int result;
	uint64_t end;
} cases[] = {
	{ 0, 1, 0, 0 },
	{ 0, 0, 0, BELAY_OFFSET_MAX },
	{ 7, 3, 0, 9 },
	{ 7, 0, 0, BELAY_OFFSET_MAX },
	{ 0, BELAY_OFFSET_MAX, 0, BELAY_OFFSET_MAX - 1 },
	{ 0, BELAY_OFFSET_MAX + 1, 0, BELAY_OFFSET_MAX },
	{ 0, BELAY_OFFSET_MAX + 2, -EINVAL, 0 },
	{ 1, BELAY_OFFSET_MAX, 0, BELAY_OFFSET_MAX },
	{ 1, BELAY_OFFSET_MAX + 1, -EINVAL, 0 },
	{ BELAY_OFFSET_MAX, 1, 0, BELAY_OFFSET_MAX },
	{ BELAY_OFFSET_MAX, 0, 0, BELAY_OFFSET_MAX },
	{ BELAY_OFFSET_MAX, 2, -EINVAL, 0 },
	{ BELAY_OFFSET_MAX + 1, 0, -EINVAL, 0 },
	{ BELAY_OFFSET_MAX + 1, 1, -EINVAL, 0 },
	{ 1, UINT64_MAX, -EINVAL, 0 },
	{ UINT64_MAX, UINT64_MAX, -EINVAL, 0 },
};

int main(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct belay_range range = { 1, 2 };
		uint64_t length;
		int r = range_from(cases[i].start, cases[i].length, &range);

		ok_int(r, cases[i].result, "start %" PRIu64 " length %" PRIu64, cases[i].start,
		       cases[i].length);
		if (r < 0) {
			ok(range.start == 1 && range.end == 2, "changes nothing");
			continue;
		}
		ok_uint(range.start, cases[i].start, "its start");
		ok_uint(range.end, cases[i].end, "its end");
		/* To the largest offset is to the end, however it was said. */
		length = cases[i].end == BELAY_OFFSET_MAX ? 0 : cases[i].length;
		ok_uint(range_length(&range), length, "and its length again");
	}
	return done_testing();
}
