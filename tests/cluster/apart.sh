#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What nodes do not fight over costs no messages: readers on all nodes, and
# parts of one lock that lie apart. And it still excludes.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
# shellcheck source=tests/cluster/common.sh
. "$top_srcdir/tests/cluster/common.sh"
export BED_PATH=$build/tests/cluster/.libs:$build/tests/cluster:$BED_PATH

touches() { bed exec "$1" toucher "${@:2}"; }
# together ARGUMENTS-OF-NODE-1 ARGUMENTS-OF-NODE-2 ...: toucher, on all nodes at once.
together() {
	local node=0 pids=() pid failed=0
	for arguments; do
		node=$((node + 1))
		# Arguments are words.
		# shellcheck disable=SC2086
		touches "$node" $arguments &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
	return "$failed"
}
denied() { ! timeout 1 "$bed" exec "$1" toucher "${@:2}"; } # NODE ARGUMENT...
ops() { status 1 | jq .counters.ops_delivered; }
# quiet FEW COMMAND...: it succeeds, and costs less than so many ordered operations.
quiet() {
	local before after few=$1
	shift
	before=$(ops) && "$@" && after=$(ops) || return 1
	echo "# $((after - before)) operations"
	[ $((after - before)) -lt "$few" ]
}
holder() { # holder NODE ARGUMENT...: a toucher that keeps its last byte, until "let_go".
	coproc TOUCHER { bed exec "$1" toucher "${@:2}" hold; }
	local line
	read -r -t "$patience" -u "${TOUCHER[0]}" line && [ "$line" = holds ]
}
let_go() {
	local pid=$TOUCHER_PID input=${TOUCHER[1]}
	eval "exec $input>&-"
	wait "$pid"
}

check "three nodes serve" cluster 3 || bail_out "no cluster"

check "all read one file for a while" together "file r 0 10 300" "file r 0 10 300" "file r 0 10 300"
check "then readers of all nodes lock without messages" \
	quiet 60 together "file r 0 10 20000" "file r 0 10 20000" "file r 0 10 20000"
check "a reader of node 1 keeps a byte" holder 1 file r 0 10 100
check "a writer of node 2 gets another one" touches 2 file w 50 1 1
check "but not that one" denied 2 file w 9 1 1
check "the reader lets go" let_go
check "now it does" touches 2 file w 9 1 1
check "all read again for a while" together "file r 0 10 500" "file r 0 10 500" "file r 0 10 500"
check "and again without messages" \
	quiet 60 together "file r 0 10 20000" "file r 0 10 20000" "file r 0 10 20000"

check "each node writes its part of another file" \
	together "parts w 0 1000 500" "parts w 10000 1000 500" "parts w 20000 1000 500"
check "then without messages" quiet 60 \
	together "parts w 0 1000 50000" "parts w 10000 1000 50000" "parts w 20000 1000 50000"
check "node 3 keeps a byte of its part" holder 3 parts w 20000 1000 2000
check "node 1 does not get it" denied 1 parts w 20999 1 1
check "it gets the one beside it" touches 1 parts w 20998 1 1
check "node 3 lets go" let_go
check "now node 1 gets it" touches 1 parts w 20999 1 1
done_testing
