/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A handle from the inside. */
#ifndef BELAY_LIB_HANDLE_H
#define BELAY_LIB_HANDLE_H

#include "lib/private.h"

struct belay_handle {
	struct belay *belay;
	uint32_t id;		/* belayd's name for it */
	enum belay_kind kind;
};

/* A request about bytes of @handle, all but its number. 0, or -EINVAL. */
int handle_message(const struct belay_handle *handle, enum client_type type,
		   enum belay_lock_mode mode, uint64_t start, uint64_t length,
		   struct client_message *ret_m);

#endif
