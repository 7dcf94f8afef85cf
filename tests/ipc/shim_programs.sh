#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Programs as Debian has them, under the preload library on one node: what they keep
# under their locks has to be right afterwards. Each is first run with locks that do
# nothing, and has to be noticed.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}" "${top_builddir:=.}"
# shellcheck source=tests/ipc/shim_common.sh
. "$top_srcdir/tests/ipc/shim_common.sh"
# shellcheck source=tests/ipc/shim_work.sh
. "$top_srcdir/tests/ipc/shim_work.sh"

# Not one that a user has built for himself.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
check "belayd starts" start_daemon || bail_out "no belayd"

make_nolock "$dir/nolock.so" || bail_out "no library without locks"

# On one node all that share a file are processes of it.
together() { # NUMBER COMMAND...: so many at once, each told which it is
	local count=$1 i pids=() result=0
	shift
	for ((i = 1; i <= count; i++)); do
		"$@" "$i" &
		pids+=($!)
	done
	work_go "$dir/files" "$count"
	for i in "${pids[@]}"; do wait "$i" || result=1; done
	return "$result"
}
under() { # WHICH COMMAND...: belay, or locks that do nothing
	local library=$library
	[ "$1" = belay ] || library=$dir/nolock.so
	LD_PRELOAD=$library "${@:2}"
}

# works WORK: done by four processes under belay its data are right; with no locks they are not.
works() {
	local work=$1
	rm -rf "$dir/files/"*
	"${work}_begin" "$dir/files" && together 4 under nothing work_do "$work" "$dir/files" >"$dir/out" 2>&1
	refuse "$work, with no locks: its data are wrong" "${work}_right" "$dir/files" 4
	rm -rf "$dir/files/"*
	check "$work begins" "${work}_begin" "$dir/files"
	: >"$dir/seen"
	watch &
	watcher=$!
	check "$work: four processes" together 4 under belay work_do "$work" "$dir/files"
	kill "$watcher"
	wait "$watcher" 2>/dev/null
	check "$work: its data are right" "${work}_right" "$dir/files" 4
	check "$work: belay had the locks" grep -q belay "$dir/seen"
	refuse "$work: the kernel had none" grep kernel "$dir/seen"
}
# Note whose locks there are, of any file of the directory.
watch() {
	local inode
	while sleep 0.02; do
		"$belay" locks | grep -qF "$dir/files/" && echo belay
		while read -r inode; do
			grep ":$inode " /proc/locks && echo kernel
		done < <(find "$dir/files" -type f -printf '%i\n')
	done >>"$dir/seen" 2>/dev/null
}

for work in "${works[@]}"; do
	if "${work}_there"; then
		works "$work"
	else
		skip "$work" "the program is not installed"
	fi
done
check "nothing is left" gives 0 '^0 held, 0 waiting' "$belay" locks
done_testing
