#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Locks of LVM: handed from node to node, by belay and by stock lvmlockd; and 1,000
# LVs activated by one command on three nodes. lvm is unmodified, and without
# device-mapper: what is measured is locks and lvm's own work.
set -u
# shellcheck source=tests/bench/common.sh
. "${top_srcdir:=.}/tests/bench/common.sh"
# shellcheck source=tests/cluster/lvm_common.sh
. "$top_srcdir/tests/cluster/lvm_common.sh"
repeat=${BENCH_REPEAT:-3} seconds=${BENCH_SECONDS:-4} lvs=${BENCH_LVS:-1000}
for program in lvm lvmlockd losetup; do
	command -v "$program" >/dev/null || die "$program is missing: apt-get install lvm2 lvm2-lockd"
done
trap 'lvm_no_disk; "$top_srcdir/tests/cluster/bed" down; rm -rf "$BED_DIR"' EXIT
handover=$build/tests/bench/lv_handover
quotient() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.6g\n", b ? a / b : 0 }'; }
# The socket of lvm in that node, from here.
socket() {
	local root=root
	echo "/proc/$(<"$BED_DIR/n$1/init")/$root/run/lvm/lvmlockd.socket"
}

cluster 3
lvm_disk $((64 + lvs / 8)) || die "no loop device"
lvm_node 1 2 3
bed start belay-lvmlockd 1 2 3
lvm_ready 1 vgcreate --shared --metadatasize 32m --physicalextentsize 64k vg "$disk" || die "no VG"
lvm_many 1 vg "$lvs" || die "no LVs"
for node in 1 2 3; do lvm_ready "$node" vgchange --lock-start vg || die "node $node cannot start the VG"; done
# Status 1 is that of what nobody verified.
lv() { "$top_srcdir/tests/cluster/bed" exec "$1" belay lv "${@:2}" --json >"$BED_DIR/lv.json" 2>"$BED_DIR/progress"
	jq -e '.op_result == 0' "$BED_DIR/lv.json" >/dev/null || die "belay lv $2: $(jq .text "$BED_DIR/lv.json")"
}
uuid=$(lvm 1 lvs --noheadings -o lv_uuid vg/lv0 | tr -d ' ')

# ---- from node to node ----

over=() over_idle=() median=() slow=() vg=()
for ((i = 1; i <= repeat; i++)); do
	say "three nodes fight over an LV's lock, run $i of $repeat"
	idle=$(belay 1 bench --cpg --seconds 1 --json) || die "belay bench --cpg failed"
	belay 1 bench --cpg --warmup 1 --seconds 3 --json >"$BED_DIR/latency" &
	read -r p50 p99 < <("$handover" lv 2000 vg "$uuid" \
		"$(socket 1)" "$(socket 2)" "$(socket 3)") || die "lv_handover failed"
	wait $! || die "belay bench --cpg failed"
	median+=("$p50") slow+=("$p99")
	over+=("$(quotient "$p50" "$(jq .latency_p50_us "$BED_DIR/latency")")")
	over_idle+=("$(quotient "$p50" "$(jq .latency_p50_us <<<"$idle")")")
	say "the VG's lock is given up while another node waits for it, run $i of $repeat"
	read -r p50 p99 < <("$handover" vg 20 vg "$(socket 1)" "$(socket 2)") || die "lv_handover failed"
	vg+=("$p50")
done
echo "lv.handover_over_cpg_latency ${over[*]}"
echo "lv.handover_over_idle_cpg_latency ${over_idle[*]}"
echo "lv.handover_us ${median[*]}"
echo "lv.handover_p99_us ${slow[*]}"
echo "lv.vg_handover_us ${vg[*]}"

# ---- many LVs ----

say "a third node joins while two have $lvs LV locks each"
lvm 3 vgchange --lock-stop vg || die "node 3 cannot stop the VG"
bed stop belay-lvmlockd 3
bed stop belayd 3
lv 1 activate vg --on n1,n2
begin=$(date +%s%N)
bed start belayd 3
bed wait-synced 3
echo "lv.join_ms $((($(date +%s%N) - begin) / 1000000))"
bed start belay-lvmlockd 3
lvm_ready 3 vgchange --lock-start vg || die "node 3 cannot start the VG"
lv 1 deactivate vg --all

# fan_out VERB: on all nodes, for all of the VG; what it took, and how often it told of progress.
fan_out() {
	local begin
	begin=$(date +%s%N)
	lv 3 "$1" vg --all
	awk -v ns=$(($(date +%s%N) - begin)) 'BEGIN { printf "%.3f\n", ns / 1e9 }'
}
activate=() progress=()
for ((i = 1; i <= repeat; i++)); do
	say "$lvs LVs on three nodes, run $i of $repeat"
	activate+=("$(fan_out activate)") || exit 1
	progress+=("$(wc -l <"$BED_DIR/progress")")
	fan_out deactivate >/dev/null || exit 1
done
echo "lv.fanout_seconds ${activate[*]}"
echo "lv.fanout_progress_lines ${progress[*]}"

# Two nodes fight over bytes of a lock, with nothing else to do and while all LVs come and go.
ratio=() alone=() beside=()
for ((i = 1; i <= repeat; i++)); do
	say "plocks, and plocks while $lvs LVs are activated, run $i of $repeat"
	idle=$(on_all 2 bench --name "idle$i" --warmup 1 --seconds "$seconds" 3) || die "belay bench failed"
	: >"$BED_DIR/go-on"
	while [ -e "$BED_DIR/go-on" ]; do
		fan_out activate && fan_out deactivate || break
	done >/dev/null &
	busy=$(on_all 2 bench --name "busy$i" --warmup 1 --seconds "$seconds" 3) || die "belay bench failed"
	rm "$BED_DIR/go-on"
	wait $! || die "belay lv failed"
	alone+=("$(jq '[.[].p99_us] | max' <<<"$idle")")
	beside+=("$(jq '[.[].p99_us] | max' <<<"$busy")")
	ratio+=("$(quotient "${beside[-1]}" "${alone[-1]}")")
done
echo "plock.p99_ratio_during_lv_fanout ${ratio[*]}"
echo "plock.p99_us ${alone[*]}"
echo "plock.p99_us_during_lv_fanout ${beside[*]}"

# ---- stock lvmlockd ----

say "stock lvmlockd, with a lock manager that costs nothing"
bed stop belay-lvmlockd 1 2 3
"${CC:-cc}" -O2 -D_GNU_SOURCE -shared -fPIC -o "$BED_DIR/dlm_stub.so" "$top_srcdir/tests/bench/dlm_stub.c" ||
	die "dlm_stub.c does not compile"
mkdir "$BED_DIR/dlm"
for node in 1 2; do
	bed exec "$node" mount -t tmpfs none /sys/kernel
	bed exec "$node" mkdir -p /sys/kernel/config/dlm/cluster
	bed exec "$node" tee /sys/kernel/config/dlm/cluster/cluster_name <<<stock >/dev/null
	rm -f "$(socket "$node")"
	# It ends with the bed.
	"$top_srcdir/tests/cluster/bed" exec "$node" env LD_PRELOAD="$BED_DIR/dlm_stub.so" DLM_STUB_DIR="$BED_DIR/dlm" \
		lvmlockd -D -g dlm -A 0 >"$BED_DIR/stock.$node" 2>&1 &
	for ((i = 0; i < 100; i++)); do
		[ ! -S "$(socket "$node")" ] || break
		sleep 0.1
	done
	"$handover" start vg 1.0.0:stock "$(socket "$node")" ||
		die "stock lvmlockd: $(tail -n 3 "$BED_DIR/stock.$node")"
done
stock=() ratio=()
for ((i = 0; i < repeat; i++)); do
	read -r p50 p99 < <("$handover" vg 20 vg "$(socket 1)" "$(socket 2)") || die "lv_handover failed"
	stock+=("$p50")
	ratio+=("$(quotient "$p50" "${vg[i]}")")
done
echo "lv.handover_lvmlockd_over_belay ${ratio[*]}"
echo "lv.vg_handover_lvmlockd_us ${stock[*]}"
