#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Programs as Debian has them on three nodes, each under the preload library and by the
# belayd of its node, with one directory as their cluster file system.
#
# The nodes are namespaces of one kernel, whose own locks would exclude here as well. That
# they are not at work is seen in /proc/locks; that belay is, by its holders of all nodes;
# and each piece of work is noticed when its locks do nothing.
#
# SQLite's WAL is left out: its processes share memory, which no file system shares
# between nodes. So its rollback journal is what there is for a cluster.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
# shellcheck source=tests/cluster/common.sh
. "$top_srcdir/tests/cluster/common.sh"
# shellcheck source=tests/ipc/shim_work.sh
. "$top_srcdir/tests/ipc/shim_work.sh"

PATH=/usr/sbin:/usr/bin:/sbin:/bin
library=$build/lib/.libs/libbelay-preload.so
[ -e "$library" ] || skip_all "the preload library is not built"
if [ -n "${INSTRUMENTED:-}" ]; then skip_all "an instrumented library cannot be preloaded"; fi
shared=$BED_DIR/shared
mkdir "$shared"
make_nolock "$BED_DIR/nolock.so" || bail_out "no library without locks"

check "three nodes" bed up 3 || bail_out "no cluster"
for node in 1 2 3; do
	printf '[lockspace shared]\npath = %s\n' "$shared" >>"$(bed files "$node")/etc-belay/belay.conf"
done
check "their belayds" bed start belayd 1 2 3 || bail_out "no belayd"
check "which serve" bed wait-synced 1 2 3 || bail_out "no cluster"

# on NODE LIBRARY WORK: one of those who do it, by what belay.conf says.
on() {
	# The work is a function: a shell on the node reads the same file, and is under the library itself.
	# shellcheck disable=SC2016
	"$bed" exec "$1" belay run -l "$2" -- bash -c '. "$1" && work_do "$2" "$3" "$4"' \
		work "$top_srcdir/tests/ipc/shim_work.sh" "$3" "$shared" "$1"
}
together() { # LIBRARY WORK
	local node pids=() result=0
	for node in 1 2 3; do
		on "$node" "$1" "$2" &
		pids+=($!)
	done
	work_go "$shared" 3
	for node in "${pids[@]}"; do wait "$node" || result=1; done
	return "$result"
}
# Note whose locks there are, and of which nodes.
watch() {
	local inode
	while sleep 0.1; do
		belay 1 locks | sed -n 's/.* node \([0-9]*\) pid .*/node \1/p'
		while read -r inode; do
			grep ":$inode " /proc/locks && echo kernel
		done < <(find "$shared" -type f -printf '%i\n')
	done >>"$BED_DIR/seen" 2>/dev/null
}
works() { # WORK
	local work=$1 node
	rm -rf "${shared:?}"/*
	"${work}_begin" "$shared" && together "$BED_DIR/nolock.so" "$work" >"$BED_DIR/out" 2>&1
	refuse "$work, with no locks: its data are wrong" "${work}_right" "$shared" 3
	rm -rf "${shared:?}"/*
	check "$work begins" "${work}_begin" "$shared"
	: >"$BED_DIR/seen"
	watch &
	watcher=$!
	check "$work: three nodes" together "$library" "$work"
	kill "$watcher"
	wait "$watcher" 2>/dev/null
	check "$work: its data are right" "${work}_right" "$shared" 3
	for node in 1 2 3; do
		check "$work: belay had locks of node $node" grep -qx "node $node" "$BED_DIR/seen"
	done
	refuse "$work: the kernel had none" grep kernel "$BED_DIR/seen"
}

for work in "${works[@]}"; do
	case $work in sqlite_wal) continue ;; esac
	if "${work}_there"; then
		works "$work"
	else
		skip "$work" "the program is not installed"
	fi
done
nothing_left() { [[ $(belay "$1" locks) == "0 held, 0 waiting" ]]; }
for node in 1 2 3; do
	check "nothing is left on node $node" eventually nothing_left "$node"
done
done_testing
