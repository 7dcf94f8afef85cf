#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# belayd is killed, and its client goes on under the lock that it had: no other
# node gets that lock before the client has ended, whatever belayd does.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
# shellcheck source=tests/cluster/common.sh
. "$top_srcdir/tests/cluster/common.sh"

# refused NODE: belayd runs there, serves nobody, and says why.
refused() {
	local output
	output=$(belay "$1" status 2>&1)
	[ $? -eq 3 ] && [[ $output == *"waits for process "*" (belay)"* ]] || { echo "$output"; return 1; }
}
exit_status() { cat "$(bed files 2)/log/belayd.exit"; }
logged() { grep -q -e "$1" "$(bed files 2)/log/belayd.out"; }

check "three nodes serve" cluster 3 || bail_out "no cluster"

check "a process of node 2 takes a lock, and will not care for its loss" hold a 2 name -x --on-loss warn
check "node 1 wants it" ask b 1 name
check "and waits" waits b
check "belayd of node 2 is killed" bed signal KILL belayd 2
check "and is gone" bed wait-gone belayd 2
check "node 1 waits on" waits b
check "belayd starts again" bed start belayd 2
check "it serves nobody, and says for whom it waits" eventually refused 2
check "so does its log" logged 'waiting for process [0-9]* (belay): end it'
check "node 1 waits on" waits b
check "on node 3, too, the lock is busy" busy 3 name

check "that belayd is stopped" bed stop belayd 2
is "$(exit_status)" 7 "which tells that locks are left"
check "node 1 waits on" waits b
check "belayd starts once more" bed start belayd 2
check "and still waits" eventually refused 2
check "node 1 waits on" waits b

check "the process ends" release a
check "now node 1 gets the lock" has b
check "and belayd serves" bed wait-synced 2
check "node 1 lets go" release b
check "node 2 can have it" free 2 name

check "a process that ends when its lock is lost" hold c 2 name -x
check "belayd is killed under it" bed signal KILL belayd 2
check "and is gone" bed wait-gone belayd 2
check "belayd starts again" bed start belayd 2
check "and need not wait for anybody to act" bed wait-synced 2
check "the lock is free" eventually free 1 name
done_testing
