#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The bed itself, with bare corosync: what the other cluster tests rely on.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
# shellcheck source=tests/cluster/common.sh
. "$top_srcdir/tests/cluster/common.sh"

check "three nodes form a cluster" bed up 3
node_of() { bed exec "$1" hostname; }
is "$(node_of 1) $(node_of 2) $(node_of 3)" "n1 n2 n3" "a command runs in its node"
is "$(bed exec 1 getent hosts n3 | tr -s " ")" "10.77.0.3 n3" "and finds the others by name"
is "$(bed exec 2 ls /etc/belay)" "belay.conf" "a node has its own /etc/belay"
bed exec 1 touch /run/only-here /dev/shm/only-here
refuse "and its own /run" bed exec 2 test -e /run/only-here
refuse "and its own /dev/shm" bed exec 2 test -e /dev/shm/only-here
refuse "nothing of it is on the host" test -e /run/only-here

check "a partition" bed partition "1 2" "3"
check "takes quorum from the one alone" bed wait-inquorate 3
check "not from the two" bed wait-quorate 2 1 2
check "it heals" bed heal
check "and all three are together again" bed wait-quorate 3 1 2 3

check "corosync stops cleanly" bed stop corosync 2
check "the others notice" bed wait-quorate 2 1 3
check "it starts again" bed start corosync 2
check "and comes back" bed wait-quorate 3 1 2 3

check "the power of node 3 fails" bed kill-node 3
check "the others notice" bed wait-quorate 2 1 2
check "a new node 3" bed new-node 3
check "with corosync" bed start corosync 3
check "takes its place" bed wait-quorate 3 1 2 3

switch=$(cat "$BED_DIR/switch")
check "the bed goes down" bed down
refuse "and no process of it is left" test -e "/proc/$switch"
is "$(ls "$BED_DIR")" "" "and no file"

check "two nodes with two_node form a cluster" bed up 2
check "one of them dies" bed kill-node 2
check "and the other goes on alone" bed wait-quorate 1 1
check "a second bed beside the first" env BED_DIR="$BED_DIR/second" "$bed" up 1
check "ends by itself" env BED_DIR="$BED_DIR/second" "$bed" down
check "the first is still there" bed wait-quorate 1 1
done_testing
