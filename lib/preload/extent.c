/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lib/preload/extent.h"

#include <errno.h>

int extent_from(const struct flock *l, off_t base, struct extent *ret_extent)
{
	off_t start, end;

	if (__builtin_add_overflow(base, l->l_start, &start))
		return l->l_start > 0 ? -EOVERFLOW : -EINVAL;
	if (start < 0)
		return -EINVAL;
	if (l->l_len > 0) {
		if (l->l_len - 1 > INT64_MAX - start)
			return -EOVERFLOW;
		end = start + (l->l_len - 1);
	} else if (l->l_len < 0) {
		/* The bytes before: that is Linux, and POSIX since 2001. */
		if (start + l->l_len < 0)
			return -EINVAL;
		end = start - 1;
		start += l->l_len;
	} else {
		end = INT64_MAX;
	}
	ret_extent->start = (uint64_t)start;
	ret_extent->end = (uint64_t)end;
	return 0;
}
