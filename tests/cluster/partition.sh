#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A cut: the majority goes on, the minority grants nothing and tells its
# clients; after the cut it begins a new life.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
# shellcheck source=tests/cluster/common.sh
. "$top_srcdir/tests/cluster/common.sh"

check "three nodes serve" cluster 3 || bail_out "no cluster"
check "node 1 holds a lock" hold a 1 majority
check "node 3 holds another" hold b 3 minority
check "a lock that node 3 owned and does not hold" free 3 idle

check "node 3 is cut off" bed partition "1 2" "3"
check "it loses quorum" bed wait-inquorate 3
check "the two keep it" bed wait-quorate 2 1 2
check "the majority still holds what it held" busy 2 majority
check "it grants new locks" free 2 new
check "but not what the minority holds" busy 1 minority
check "the minority grants nothing" not_granted 3 new -w 1
check "nor does it make anybody wait who does not want to" not_granted 3 new -n
check "not even what only node 3 has used" not_granted 3 idle -w 1

check "the cut heals" bed heal
check "all three are quorate" bed wait-quorate 3 1 2 3
check "node 3 serves again" bed wait-synced 3
check "its client's lock is void, and everybody may have it" eventually free 1 minority
check "node 3 too" free 3 minority
check "the majority's lock still holds against node 3" busy 3 majority
refuse "the client of node 3 was told" release b
check "the majority's client was not disturbed" release a
check "all is free" free 3 majority
check "also what node 3 had owned" free 1 idle
done_testing
