/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <assert.h>
#include <errno.h>

#include "lib/private.h"

int range_from(uint64_t start, uint64_t length, struct belay_range *ret_range)
{
	if (start > BELAY_OFFSET_MAX)
		return -EINVAL;
	if (length > 0 && length - 1 > BELAY_OFFSET_MAX - start)
		return -EINVAL;
	ret_range->start = start;
	ret_range->end = length == 0 ? BELAY_OFFSET_MAX : start + (length - 1);
	return 0;
}

uint64_t range_length(const struct belay_range *range)
{
	assert(range->start <= range->end);
	if (range->end >= BELAY_OFFSET_MAX)
		return 0;
	return range->end - range->start + 1;
}
