/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* struct flock, as the kernel reads and writes it. */
#ifndef BELAY_PRELOAD_EXTENT_H
#define BELAY_PRELOAD_EXTENT_H

#include <fcntl.h>
#include <stdint.h>

#define EXTENT_LAST ((uint64_t)INT64_MAX)

struct extent {
	uint64_t start, end;		/* both included */
};

/*
 * The bytes that @l means, if @base is what l_whence counts from. -EOVERFLOW: they
 * end behind the largest offset; -EINVAL: they begin before 0.
 */
int extent_from(const struct flock *l, off_t base, struct extent *ret_extent);

/* Length as libbelay wants it, and as l_len stands for it: 0 is "to the end". */
static inline uint64_t extent_length(const struct extent *extent)
{
	return extent->end == EXTENT_LAST ? 0 : extent->end - extent->start + 1;
}

#endif
