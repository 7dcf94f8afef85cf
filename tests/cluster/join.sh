#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Nodes come while the others work, and go, cleanly, leaving nothing behind.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
# shellcheck source=tests/cluster/common.sh
. "$top_srcdir/tests/cluster/common.sh"

check "three corosync nodes" bed up 3
check "belayd on two of them" bed start belayd 1 2 || bail_out "no belayd"
not_synced() { status "$1" | jq -e '.quorate and (.synced | not)'; }
check "they have quorum, but node 3 may be alive and hold locks" eventually not_synced 1
check "an operator knows that it does not" eventually belay 1 fence-ack --yes 3
check "now they serve: two are a majority" bed wait-synced 1 2

# load NODE: locks without end until $BED_DIR/stop exists; says how many.
load() {
	# The inner script's own dollars.
	# shellcheck disable=SC2016
	bed exec "$1" bash -c 'cd "$1" && n=0 && until [ -e stop ]; do
		belay lock --name counter -x -- bash -c '\''
			mkdir inside || { echo "two at once" >>violations; exit 1; }
			read -r n <counter; echo $((n + 1)) >counter
			rmdir inside'\'' || { echo "no lock after $n" >>violations; exit 1; }
		n=$((n + 1)); echo "$n" >"done.$2"
	done' load "$BED_DIR" "$1" &
	echo $! >"$BED_DIR/load.$1"
}
progress() { cat "$BED_DIR/done.$1" 2>/dev/null || echo 0; }
moved_on() { [ "$(progress "$1")" -ge $(($2 + 10)) ]; }
moves() { eventually moved_on "$1" "$(progress "$1")"; }

echo 0 >"$BED_DIR/counter"
load 1
load 2
check "node 1 works" moves 1
check "node 2 works" moves 2
check "a lock is held while node 3 comes" hold kept 1 kept

check "node 3 starts belayd under that load" bed start belayd 3
check "it is synced" bed wait-synced 3
check "it knows what is held" busy 3 kept
load 3
check "and takes part" moves 3
check "nodes 1 and 2 go on" eval 'moves 1 && moves 2'

: >"$BED_DIR/stop"
for node in 1 2 3; do
	check "the load of node $node ends well" wait "$(cat "$BED_DIR/load.$node")"
done
is "$(cat "$BED_DIR/counter")" "$(($(progress 1) + $(progress 2) + $(progress 3)))" "no increment is lost"
refuse "nobody was inside with another" test -e "$BED_DIR/violations"

check "node 3 uses a lock that nobody else does" free 3 mine
check "and leaves: belayd stops within the usual time" bed stop belayd 3
check "what it used is free without any fencing" free 1 mine
check "what is held stays held" busy 2 kept
check "node 3 comes back" bed start belayd 3
check "and is synced again" bed wait-synced 3
check "it still knows what is held" busy 3 kept
check "the holder lets go" release kept
check "and all is free" free 3 kept
done_testing
