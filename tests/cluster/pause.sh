#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# corosync stands still on one node, for longer than the others wait. When it
# goes on it delivers that node's own messages to that node, and to nobody else:
# belayd must not believe in what only itself has seen. (One that believes at
# delivery fails here: tried.)
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
# shellcheck source=tests/cluster/common.sh
. "$top_srcdir/tests/cluster/common.sh"

check "three nodes serve" cluster 3 || bail_out "no cluster"

# over HOLDER: it has ended, or it has its lock and lets go.
over() {
	if has "$1" 0.2; then
		release "$1"
	elif kill -0 "$(cat "$BED_DIR/$1.pid")" 2>/dev/null; then
		return 1
	else
		release "$1"
		: "it was told that its lock is void, or that it could not get it"
	fi
}

round() {
	local name=name$1 last=$2
	check "$name: all nodes have used the lock, node $last last" \
		eval "free 3 $name && free $((3 - last)) $name && free $last $name"
	check "$name: corosync of node 3 stands still" bed signal STOP corosync 3
	check "$name: node 3 asks for the lock" ask "late$1" 3 "$name"
	check "$name: the others go on without node 3" bed wait-quorate 2 1 2
	check "$name: node 1 gets the lock" hold "new$1" 1 "$name"
	check "$name: node 3 does not" waits "late$1"
	check "$name: corosync of node 3 goes on" bed signal CONT corosync 3
	check "$name: node 3 still does not have it" waits "late$1"
	check "$name: all are together again" bed wait-quorate 3 1 2 3
	check "$name: belayd of node 3 serves again" bed wait-synced 3
	check "$name: and still does not have it" waits "late$1"
	check "$name: for node 1 has" busy 3 "$name"
	check "$name: node 1 lets go, as if nothing had been" release "new$1"
	check "$name: the old request is answered, one way or the other" eventually over "late$1"
	check "$name: and the lock is free for all" eval "free 3 $name && free 2 $name"
}
round 1 1
round 2 2

check "node 3 holds a lock" hold keeps 3 kept
check "corosync of node 3 stands still" bed signal STOP corosync 3
check "the others go on" bed wait-quorate 2 1 2
check "what node 3 holds stays locked" busy 1 kept
check "corosync of node 3 goes on" bed signal CONT corosync 3
check "all are together again" bed wait-quorate 3 1 2 3
check "belayd of node 3 serves again" bed wait-synced 3
check "the old lock is void on all nodes" eval 'eventually free 1 kept && free 3 kept'
refuse "and its client was told" release keeps
done_testing
