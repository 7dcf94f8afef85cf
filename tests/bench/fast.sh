#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Locks that stay in the process: what they cost beside the kernel's, how fast
# they are taken back, programs under the preloaded library, ranges apart, hints.
# For each figure what is compared takes turns of milliseconds or seconds.
set -u
# shellcheck source=tests/bench/common.sh
. "${top_srcdir:=.}/tests/bench/common.sh"
repeat=${BENCH_REPEAT:-3} seconds=${BENCH_SECONDS:-4} samples=${BENCH_SAMPLES:-400} wire_us=${BENCH_WIRE_US:-500}
command -v ping_pong >/dev/null || die "ping_pong is missing: apt-get install ctdb"

directory=/dev/shm/belay	# on tmpfs, one of each node
bench() { # NODE PROGRAM ARGUMENT...
	local program=$build/tests/bench/.libs/$2
	# Only who uses a library of this build has libtool's wrapper.
	[ -e "$program" ] || program=$build/tests/bench/$2
	bed exec "$1" "$program" "${@:3}"
}

# configure LINE...: into belay.conf of both nodes
configure() {
	local node
	for node in 1 2; do
		printf '%s\n' "[lockspace files]" "path = $directory" "$@" >"$(bed files "$node")/etc-belay/belay.conf"
	done
}
restart() {
	bed stop belayd 1 2
	configure "$@"
	bed start belayd 1 2
	bed wait-synced 1 2
}
# median VALUE...
median() {
	printf '%s\n' "$@" | sort -g |
		awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
}
# quotient A B
quotient() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.6g\n", b ? a / b : 0 }'; }
# extreme SIGN KEY... <LINES: of the lines of those keys the smallest (SIGN -1) or largest (1) of each column.
extreme() {
	awk -v sign="$1" -v keys="${*:2}" '
		BEGIN { split(keys, k, " "); for (i in k) wanted[k[i]] }
		$1 in wanted { for (i = 2; i <= NF; i++) if (!(i in v) || sign * $i > sign * v[i]) v[i] = $i; n = NF }
		END { for (i = 2; i <= n; i++) printf "%s%s", (i > 2 ? " " : ""), v[i] }'
}

bed nodes 2
configure
for node in 1 2; do bed start corosync "$node"; done
bed wait-quorate 2 1 2
bed start belayd 1 2
bed wait-synced 1 2
for node in 1 2; do bed exec "$node" mkdir -p "$directory"; done

say "a lock and an unlock, by the kernel and by libbelay, $repeat rounds"
bench 1 bench_pair "$repeat" "$directory/pair" || die "bench_pair failed"

# ---- the preloaded library ----

shim=(belay run --library "$build/lib/.libs/libbelay-preload.so" --)
# pong_rate [COMMAND...]: locks a second of Debian's ping_pong, run by COMMAND.
pong_rate() {
	local rates
	# Its end is timeout's, which is a failure by its status.
	"$top_srcdir/tests/cluster/bed" exec 1 timeout "$((seconds > 2 ? seconds : 2)).5" \
		"$@" ping_pong "$directory/ping_pong" 3 >"$BED_DIR/ping_pong" 2>"$BED_DIR/ping_pong.err" </dev/null
	# It tells once a second, without a new line; the first time it is still getting started.
	mapfile -t rates < <(tr '\r' '\n' <"$BED_DIR/ping_pong" |
		awk '$2 == "locks/sec" && n++ { print $1 }')
	[ ${#rates[@]} -gt 0 ] || die "ping_pong $*: $(cat "$BED_DIR/ping_pong.err")"
	median "${rates[@]}"
}
ratio=() kernel=() under=() worst=()
for ((i = 1; i <= repeat; i++)); do
	say "ping_pong of Debian, without and with the preloaded library, run $i of $repeat"
	kernel+=("$(pong_rate)") || exit 1
	under+=("$(pong_rate "${shim[@]}")") || exit 1
	ratio+=("$(quotient "${under[-1]}" "${kernel[-1]}")")
done
echo "shim.ping_pong_vs_kernel ${ratio[*]}"
echo "shim.ping_pong.kernel_locks_per_sec ${kernel[*]}"
echo "shim.ping_pong.shim_locks_per_sec ${under[*]}"

# Files under a path of belay.conf are looked at more closely than others.
say "a program that never locks, without and with the preloaded library, $repeat rounds each"
for where in "$directory" /dev/shm; do
	bench 1 bench_nolock "$repeat" "$where" "${shim[@]}" || die "bench_nolock failed"
done >"$BED_DIR/overhead"
echo "shim.overhead $(extreme 1 shim.overhead <"$BED_DIR/overhead")"
echo "shim.overhead.in_path $(sed -n '1s/^[^ ]* //p' "$BED_DIR/overhead")"
echo "shim.overhead.elsewhere $(sed -n '2s/^[^ ]* //p' "$BED_DIR/overhead")"

# ---- several processes of a node ----

say "four processes of a node on disjoint ranges of a file, by the kernel and by belay, $repeat rounds"
bench 1 bench_four "$repeat" "$directory/four" || die "bench_four failed"
profile=$build/tests/bench/four_processes.txt
{
	echo "Four processes of one node on disjoint ranges of one file, through belay: where the time goes."
	echo
	if perf record -q -a -e cpu-clock -o "$BED_DIR/perf" -- \
		"$top_srcdir/tests/cluster/bed" exec 1 "$build/tests/bench/.libs/bench_four" 1 "$directory/four" 3; then
		for fields in overhead,comm,dso overhead,comm,dso,sym; do
			echo
			perf report -i "$BED_DIR/perf" --stdio --no-children --comms bench_four,belayd,corosync \
				--percentage relative -F "$fields" --percent-limit 0.5 |
				grep -v '^#' | grep . | head -n 60
		done
	else
		bench 1 bench_four 1 "$directory/four" 3
	fi
} >"$profile" 2>"$BED_DIR/perf.err" || die "no profile: $(cat "$BED_DIR/perf.err")"
say "their profile is in $profile"

# ---- two nodes, apart in one file ----

# halves NODE...: on each of them its half, and then its half of another file.
halves() {
	local node pids=() begin
	begin=$(($(bench 1 bench_halves) + 1500000000))
	for node; do
		bench "$node" bench_halves "half$node" "$begin" "$repeat" $((node - 1)) halves "alone$node" \
			>"$BED_DIR/halves.$node" &
		pids+=($!)
	done
	for node in "${pids[@]}"; do wait "$node" || die "bench_halves failed"; done
	for node; do cat "$BED_DIR/halves.$node"; done
}
say "two nodes on disjoint halves of one lock, and each on a lock of its own while the other does the same"
halves 1 2 >"$BED_DIR/halves"
echo "node.disjoint_two_nodes_vs_alone $(extreme -1 half1 half2 <"$BED_DIR/halves")"
for node in 1 2; do
	echo "node.disjoint_two_nodes.node$node $(extreme 1 "half$node" <"$BED_DIR/halves")"
	sed -n "s/^half$node\\.\\(.*_per_sec\\)/node.disjoint_two_nodes.node$node.\\1/p" "$BED_DIR/halves"
done
say "the same on one node while the other is idle"
halves 1 | sed -n 's/^half1\.alone_\(.*_per_sec\)/node.disjoint_two_nodes.idle_\1/p'

# ---- recalls ----

# By belayd's own histogram, of that case alone: a belayd that starts has forgotten the others.
for ((i = 1; i <= repeat; i++)); do
	for case in running stopped preempted; do
		say "what a client decides by itself is taken back, client $case, run $i of $repeat"
		restart
		bench 1 bench_recall "$case" 1 "$samples" recall || die "bench_recall failed"
		belay 1 status --json | jq -r --arg case "$case" '.loans.recall_us | to_entries[] |
			"recall.\(.key)\(if .key == "count" then "" else "_us" end).\($case) \(.value)"'
	done >"$BED_DIR/recall.$i"
	worst+=("$(extreme 1 recall.p99_us.{running,stopped,preempted} <"$BED_DIR/recall.$i")")
done
echo "recall.p99_us ${worst[*]}"
# The rounds' lines of one key are one line.
awk '{ key = $1; sub(/^[^ ]* /, ""); if (!(key in v)) order[n++] = key; v[key] = v[key] " " $0 }
	END { for (i = 0; i < n; i++) print order[i] v[order[i]] }' "$BED_DIR"/recall.[0-9]*

# ---- hints ----

for node in 1 2; do
	(umask 077 && echo "the secret of this cluster" >"$(bed files "$node")/etc-belay/key")
done
# fight: locks a second of two nodes that fight over three bytes
fight() {
	on_all 2 bench --name hints --warmup 1 --seconds "$seconds" 3 | jq '[.[].locks_per_sec] | add'
}
# Nodes of one machine reach each other at once, and pay with its processors; those of a
# cluster have processors of their own, and a wire between them.
for where in one_machine wire; do
	if [ $where = wire ]; then
		bed stop belayd 1 2
		bed stop corosync 1 2
		bed join-by chrt -f 50 "$build/tests/bench/slow_link" "$wire_us"
		for node in 1 2; do bed start corosync "$node"; done
		bed wait-quorate 2 1 2
		bed start belayd 1 2
	fi
	ratio=() without=() with=()
	for ((i = 1; i <= repeat; i++)); do
		say "two nodes fight over three bytes, without and with hints, $where, run $i of $repeat"
		restart
		without+=("$(fight)") || die "belay bench failed"
		restart '[hints]' 'enabled = yes' 'key_file = /etc/belay/key'
		with+=("$(fight)") || die "belay bench failed"
		ratio+=("$(quotient "${with[-1]}" "${without[-1]}")")
	done
	case $where in wire) key=hints ;; *) key=hints.$where ;; esac
	echo "$key.speedup ${ratio[*]}"
	echo "$key.without_locks_per_sec ${without[*]}"
	echo "$key.with_locks_per_sec ${with[*]}"
done
