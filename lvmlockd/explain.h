/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Why lvm would not do it, in a sentence that says what to do. Pure. */
#ifndef BELAY_LVMLOCKD_EXPLAIN_H
#define BELAY_LVMLOCKD_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>

#include "lvmlockd/ask.h"

struct explain_case {
	const char *lv;		/* "": of the VG as a whole */
	const char *output;	/* all that lvm wrote; may be cut off */
};

/* Always a text, at most @size bytes with its end. */
void explain(const struct explain_case *c, char *ret_text, size_t size);

/*
 * Why LVM lets only one node at a time have such an LV active; NULL: it lets several.
 * Later versions of LVM refuse more than earlier ones, and these are all of them.
 */
const char *explain_not_shared(const char *layout, const char *role);

#endif
