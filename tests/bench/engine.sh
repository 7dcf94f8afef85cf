#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The lock engine: hand-over between two nodes, many arbitrated locks, many ranges.
set -u
# shellcheck source=tests/bench/common.sh
. "${top_srcdir:=.}/tests/bench/common.sh"
repeat=${BENCH_REPEAT:-3} seconds=${BENCH_SECONDS:-4}

cluster 2
pingpong=() latency=() batch=() raw=()
for ((i = 1; i <= repeat; i++)); do
	say "two nodes fight over three bytes, run $i of $repeat"
	latency+=("$(belay 1 bench --cpg --batch 1 --seconds 2 --json)") || die "belay bench --cpg failed"
	pingpong+=("$(on_all 2 bench --name "pingpong$i" --warmup 1 --seconds "$seconds" 3)") ||
		die "belay bench failed"
	say "64 clients on arbitrated locks on each node, run $i of $repeat"
	batch+=("$(on_all 2 bench --name "batch$i" --clients 64 --warmup 1 --seconds "$seconds")") ||
		die "belay bench --clients failed"
	size=$(jq '[.[].operations_per_message] | add / length | round | if . < 1 then 1 else . end' <<<"${batch[-1]}")
	raw+=("$(on_all 2 bench --cpg --batch "$size" --seconds 2)") || die "belay bench --cpg --batch failed"
done

# Messages of both nodes, acknowledgements included, for each lock of either.
printf '%s\n' "${pingpong[@]}" | figure two_node.messages_per_lock \
	'([.[] | .messages_per_lock * .cycles] | add) / ([.[].cycles] | add)'
printf '%s\n' "${pingpong[@]}" | figure two_node.locks_per_sec '[.[].locks_per_sec] | add'
for ((i = 0; i < repeat; i++)); do
	jq -n --argjson p "${pingpong[i]}" --argjson l "${latency[i]}" '{$p, $l}'
done | figure two_node.cycle_over_cpg_latency '([.p[].cycle_us] | add / length) / .l.latency_p50_us'
for ((i = 0; i < repeat; i++)); do
	jq -n --argjson b "${batch[i]}" --argjson r "${raw[i]}" '{$b, $r}'
done | figure arb.batch_over_raw_cpg '([.b[].operations_per_sec] | add) / ([.r[].operations_per_sec] | add)'
printf '%s\n' "${batch[@]}" | figure arb.operations_per_sec '[.[].operations_per_sec] | add'
