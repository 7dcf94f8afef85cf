/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state of belayd as JSON, for `belay status` and `belay locks`. The
 * texts are for programs; names in them do not change their meaning.
 */
#ifndef BELAY_DAEMON_STATUS_H
#define BELAY_DAEMON_STATUS_H

#include "core/core.h"
#include "daemon/config.h"
#include "daemon/engine.h"
#include "daemon/names.h"
#include "daemon/server.h"

/* Counters of which people want to know the rate. */
struct status_sample {
	uint64_t at_us;
	uint64_t local_grants, ordered_grants, recalls;
	uint64_t frames, ops, messages, packets;
};

/* The last two samples: rates are since the older one, so over a second or more. */
struct status_rates {
	struct status_sample older, newer;
};

/* To be called now and then; takes a sample if the last one is old enough. */
void status_sample(struct status_rates *rates, struct engine *engine,
		   const struct server_stats *server);

/* JSON text, the caller's to free(), or NULL: no memory. */
char *status_text(struct engine *engine, const struct config *config, bool standalone,
		  const struct server_stats *server, const struct status_rates *rates);

/*
 * One page of locks and waiters, at last of loans, from where @cursor stands ("" at first). In the
 * answer "next" is the cursor of the next page, or null. -EINVAL: no cursor; -ENOMEM.
 */
int status_locks(const struct engine *engine, const struct server *server, const struct config *config,
		 const struct names *names, const char *cursor, char **ret_text);

#endif
