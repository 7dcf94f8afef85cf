#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The lock engine: hand-over between two nodes, many arbitrated locks, many
# ranges on a resource, a node that joins when there are a million locks.
set -u
# shellcheck source=tests/bench/common.sh
. "${top_srcdir:=.}/tests/bench/common.sh"
repeat=${BENCH_REPEAT:-3} seconds=${BENCH_SECONDS:-4}

cluster 2
pingpong=() idle=() latency=() batch=() raw=()
for ((i = 1; i <= repeat; i++)); do
	say "two nodes fight over three bytes, run $i of $repeat"
	idle+=("$(belay 1 bench --cpg --seconds 1 --json)") || die "belay bench --cpg failed"
	# The latency of the ring that carries the locks is that of the ring as it is then.
	belay 1 bench --cpg --warmup 2 --seconds $((seconds - 2)) --json >"$BED_DIR/latency" &
	pingpong+=("$(on_all 2 bench --name "pingpong$i" --warmup 1 --seconds "$seconds" 3)") ||
		die "belay bench failed"
	wait $! || die "belay bench --cpg failed"
	latency+=("$(<"$BED_DIR/latency")")
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
	jq -n --argjson p "${pingpong[i]}" --argjson l "${idle[i]}" '{$p, $l}'
done | figure two_node.cycle_over_idle_cpg_latency '([.p[].cycle_us] | add / length) / .l.latency_p50_us'
# Raw CPG under equal conditions: batches of that size, one under way on each node, for 64
# clients have no more than about one batch to send either. And beside it, what corosync
# carries when its queue is kept full, with a thousand times as much under way.
for ((i = 0; i < repeat; i++)); do
	jq -n --argjson b "${batch[i]}" --argjson r "${raw[i]}" '{$b, $r}'
done >"$BED_DIR/batches"
figure arb.batch_over_raw_cpg '([.b[].operations_per_sec] | add) /
	([.r[].operations_per_sec_one_by_one] | add)' <"$BED_DIR/batches"
figure arb.batch_over_full_cpg '([.b[].operations_per_sec] | add) / ([.r[].operations_per_sec] | add)' \
	<"$BED_DIR/batches"
printf '%s\n' "${batch[@]}" | figure arb.operations_per_sec '[.[].operations_per_sec] | add'

say "$((2 * repeat)) times a lock and an unlock among 10 and among 10,000 ranges"
"$build/tests/bench/bench_range" "$repeat" || die "bench_range failed"

# ---- join: each of two nodes takes half of the locks, and one more on each of
# the other's resources, so that all nodes have to know all of them ----

resources=${BENCH_RESOURCES:-500} ranges=${BENCH_RANGES:-1000}	# of each node
fill() { # NODE NAME RANGES FIRST WINDOW: in the background; it ends with the bed
	local said
	rm -f "$BED_DIR/fill.$1.$2"
	mkfifo "$BED_DIR/fill.$1.$2" || die "no pipe"
	"$top_srcdir/tests/cluster/bed" exec "$1" "$build/tests/bench/.libs/fill" "$2" "$resources" "$3" "$4" "$5" \
		>"$BED_DIR/fill.$1.$2" 2>"$BED_DIR/fill.err" < <(exec tail -f /dev/null --pid=$$) &
	read -r said <"$BED_DIR/fill.$1.$2" || die "fill: $(cat "$BED_DIR/fill.err")"
	locks=$((locks + said))
}
# Largest that belayd of that node was since forget_peak, or ever, in bytes.
peak() { awk '/^VmHWM:/ { print $2 * 1024 }' "/proc/$(bed pid belayd "$1")/status"; }
forget_peak() { echo 5 >"/proc/$(bed pid belayd "$1")/clear_refs"; }

join() {
	local node pids=() stall locks=0 peaks
	bed down
	cluster 3
	bed stop belayd 3
	say "$((2 * resources * ranges)) locks on two nodes"
	fill 1 first "$ranges" 0 1000
	fill 2 second "$ranges" 0 1000
	fill 2 first 1 10000000 1
	fill 1 second 1 10000000 1
	forget_peak 1
	forget_peak 2
	say "the third node joins while the two others fight over three bytes"
	for node in 1 2; do
		"$top_srcdir/tests/cluster/bed" exec "$node" timeout -s INT -k 10 "${BED_SECONDS:-60}" \
			belay bench --name stall 3 --json --seconds 600 >"$BED_DIR/stall.$node" &
		pids+=($!)
	done
	bed start belayd 3
	bed wait-synced 3
	[ "$(belay 3 status --json | jq .locks_replicated)" -ge "$locks" ] ||
		die "the third node has fewer than $locks locks"
	for node in 1 2; do bed signal INT belay "$node"; done
	for node in "${pids[@]}"; do wait "$node" || die "belay bench failed"; done
	stall=$(cat "$BED_DIR"/stall.[12] | jq -s '[.[].max_us] | max / 1000')
	peaks=$(for node in 1 2 3; do peak "$node"; done | sort -n | tail -n 1)
	stalls+=("$stall")
	bytes+=("$(jq -n "$peaks / $locks")")
}
stalls=() bytes=()
for ((i = 1; i <= repeat; i++)); do
	say "join, run $i of $repeat"
	join
done
echo "join.max_stall_ms ${stalls[*]}"
echo "join.bytes_per_lock ${bytes[*]}"
