#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Three nodes exclude each other: by modes, and by what they do under a lock.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
# shellcheck source=tests/cluster/common.sh
. "$top_srcdir/tests/cluster/common.sh"

check "three nodes serve" cluster 3 || bail_out "no cluster"

check "node 1 takes a lock" hold a 1 name
check "node 2 cannot" busy 2 name
check "nor can node 3" busy 3 name
check "another name is free" free 2 other
check "node 2 asks for it and waits" ask b 2 name
check "it does wait" waits b
check "node 1 lets go" release a
check "now node 2 has it" has b
check "and lets go" release b
check "it is free" free 3 name

check "node 1 takes it shared" hold a 1 shared -s
check "so does node 2" hold b 2 shared -s
check "node 3 cannot write" busy 3 shared
check "node 3 waits to write" ask c 3 shared
check "and waits still" waits c
check "a reader that comes now stands behind it" ask d 1 shared -s
check "and waits, too" waits d
check "the first reader goes" release a
check "that is not enough" waits c
check "the second one goes" release b
check "the writer gets it" has c
check "the reader behind it does not, yet" waits d
check "the writer goes" release c
check "the reader gets it" has d
check "and goes" release d

# What a lock is for: read, add one, write back; and nobody else inside meanwhile.
echo 0 >"$BED_DIR/counter"
increment() { # NODE TIMES
	# The inner script's own dollars.
	# shellcheck disable=SC2016
	bed exec "$1" bash -c '
		cd "$1" && for ((i = 0; i < $2; i++)); do
			belay lock --name counter -x -- bash -c '\''
				mkdir inside || { echo "two at once" >>violations; exit 1; }
				read -r n <counter; echo $((n + 1)) >counter
				rmdir inside'\'' || exit 1
		done' increment "$BED_DIR" "$2"
}
together() { # TIMES: all three nodes at once
	local node pids=() result=0
	for node in 1 2 3; do
		increment "$node" "$1" &
		pids+=($!)
	done
	for node in "${pids[@]}"; do wait "$node" || result=1; done
	return "$result"
}
check "three nodes increment a counter under a lock, 40 times each" together 40
is "$(cat "$BED_DIR/counter")" 120 "no increment is lost"
refuse "nobody was inside with another" test -e "$BED_DIR/violations"
done_testing
