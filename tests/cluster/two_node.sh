#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Two nodes: corosync lets either go on alone, so belayd may not, until the
# other one is known to have stopped.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
# shellcheck source=tests/cluster/common.sh
. "$top_srcdir/tests/cluster/common.sh"

check "two nodes serve" cluster 2 || bail_out "no cluster"
check "node 1 uses a lock that node 2 never has" free 1 own
check "both use another" eval 'free 1 both && free 2 both'
check "node 2 holds a third" hold a 2 theirs
check "node 1 waits for it" ask b 1 theirs

check "the power of node 2 fails" bed kill-node 2
check "corosync of node 1 goes on alone" bed wait-quorate 1 1
check "a lock that node 1 owned already still works" free 1 own
check "what node 2 holds stays locked" waits b
check "one that both used is not given out: node 2 may have it" ask c 1 both
check "it waits" waits c
check "nor is a lock that nobody ever had" ask d 1 never-used
check "it waits" waits d
check "whoever waits a second for it does not wait longer" not_granted 1 both -w 1
check "whoever does not wait for it does not wait" not_granted 1 both -n
check "an operator has seen that node 2 is off" belay 1 fence-ack --yes 2
check "who waited has it" has b
check "so have the others" eval 'has c && has d'
check "they let go" eval 'release c && release d'

check "node 2 comes back" bed new-node 2
check "with corosync" bed start corosync 2
check "the two are together" bed wait-quorate 2 1 2
check "and belayd" bed start belayd 2
check "which serves" bed wait-synced 2
check "it knows what node 1 holds" busy 2 theirs
check "node 1 lets go" release b
check "node 2 can have it" free 2 theirs
done_testing
