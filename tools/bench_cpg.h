/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What corosync's CPG does by itself, without belay: the measure for the
 * latency and the rate of locks. From one process, in a group of its own.
 */
#ifndef BELAY_TOOLS_BENCH_CPG_H
#define BELAY_TOOLS_BENCH_CPG_H

#include <stdint.h>

#include "tools/latency.h"

#define BENCH_CPG_BATCH_MAX 32768u	/* bytes of a batch: longer ones stall corosync */

struct bench_cpg_options {
	const char *group;	/* NULL: "belay-bench" */
	unsigned ops;		/* operations in a batch; 0: only the first part ... */
	unsigned op_bytes;	/* ... of this size; together at most BENCH_CPG_BATCH_MAX */
	unsigned warmup_ms;	/* before each of the three parts */
	unsigned ms;		/* of each of the three parts, at least 1 */
};

struct bench_cpg_rate {
	double messages_per_s;	/* own ones, delivered here */
	double ops_per_s;
	double all_messages_per_s;	/* of all members: several may measure at once */
	struct latency latency;	/* of own messages, from send to delivery here */
};

struct bench_cpg_result {
	uint32_t node, members;	/* of the group, at the end: 1 unless others measure, too */
	struct bench_cpg_rate single;	/* 64 bytes, one message under way: ops are messages */
	struct bench_cpg_rate closed;	/* batches, one under way */
	struct bench_cpg_rate flat;	/* batches, as many as corosync takes (32, 512 KB) */
};

/*
 * Measure; takes (warmup_ms + ms) for each of the parts. 0, or a negative errno with nothing
 * measured:
 *   -EINVAL    options are out of their bounds
 *   -ENOTCONN  corosync does not run, or stopped
 *   -EACCES    corosync refuses this user
 *   -ETIMEDOUT nothing was delivered within 5 s, or in a part: corosync hangs or has no ring
 */
int bench_cpg(const struct bench_cpg_options *options, struct bench_cpg_result *ret_result);

#endif
