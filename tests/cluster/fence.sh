#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Left is not fenced: what a dead node or a dead belayd held stays locked until
# somebody who knows says that it has stopped.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
# shellcheck source=tests/cluster/common.sh
. "$top_srcdir/tests/cluster/common.sh"

check "three nodes serve" cluster 3 || bail_out "no cluster"

check "node 3 takes a lock" hold a 3 name
check "node 1 waits for it" ask b 1 name
check "and waits" waits b
refuse "nobody can be fenced who is there" belay 1 fence-ack --yes 3
check "the power of node 3 fails" bed kill-node 3
check "the others notice" bed wait-quorate 2 1 2
check "what node 3 held stays locked" busy 2 name
check "who waits, waits" waits b
check "other locks go on" free 2 other
check "an operator has seen that node 3 is off" belay 2 fence-ack --yes 3
check "now node 1 gets the lock" has b
check "and lets go" release b

check "node 3 comes back" bed new-node 3
check "with corosync" bed start corosync 3
check "among the others" bed wait-quorate 3 1 2 3
check "and belayd" bed start belayd 3
check "which serves" bed wait-synced 3
check "and can take the lock" free 3 name

check "node 2 takes a lock" hold c 2 daemon
check "its belayd is killed, the node lives" bed signal KILL belayd 2
check "and is gone" bed wait-gone belayd 2
check "what its client held stays locked" eventually busy 1 daemon
check "on every node" busy 3 daemon
check "what it owned and nobody held cannot be known to be free" busy 1 other
check "locks that it did not own go on" free 1 third
check "the operator has ended the client, and says so" belay 1 fence-ack --yes 2
check "now the lock is free" free 3 daemon
check "belayd starts again on node 2" bed start belayd 2
check "and serves" bed wait-synced 2
check "and takes part" free 2 daemon
done_testing
