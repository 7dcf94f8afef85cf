/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <assert.h>

#include "lib/private.h"

uint64_t range_length(const struct belay_range *range)
{
	assert(range->start <= range->end);
	if (range->end >= BELAY_OFFSET_MAX)
		return 0;
	return range->end - range->start + 1;
}
