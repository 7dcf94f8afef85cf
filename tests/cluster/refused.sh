#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Who does not fit is refused, with the reason, and disturbs nobody.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
# shellcheck source=tests/cluster/common.sh
. "$top_srcdir/tests/cluster/common.sh"

check "three corosync nodes" bed up 3
conf() { printf '%s\n' "${@:2}" >"$(bed files "$1")/etc-belay/belay.conf"; }
said() { grep -q "$2" "$(bed files "$1")/log/belayd.out"; }
exit_status() { cat "$(bed files "$1")/log/belayd.exit"; }
failed() { [ "$(exit_status "$1")" -gt 0 ]; }

check "belayd on two of them" bed start belayd 1 2
check "node 3 is known to be off" eventually belay 1 fence-ack --yes 3
check "they serve" bed wait-synced 1 2
check "node 1 holds a lock" hold a 1 name

conf 3 '[limits]' 'locks_max = 4711'
# It may have ended before the bed has seen it start.
bed start belayd 3 >/dev/null 2>&1 || true
check "node 3, with other limits, ends" bed wait-gone belayd 3
check "as a failure" failed 3
check "with the reason" said 3 'limit'

conf 3 '[belayd]' 'no_such_key = 1'
refuse "node 3 starts with a wrong key" bed start belayd 3
check "it fails" failed 3
check "it names the line and the key" said 3 'belay.conf:2.*no_such_key'

conf 3 '[cluster]' 'group = another'
check "node 3 starts in a group of another name" bed start belayd 3
not_synced() { status "$1" | jq -e '.synced | not'; }
check "it is alone there, and serves nobody" not_synced 3
check "and can be stopped" bed stop belayd 3

check "the others were not disturbed" eval 'bed wait-synced 1 2 && busy 2 name'
conf 3 ''
check "node 3 as the others" bed start belayd 3
check "is welcome" bed wait-synced 3
check "the holder lets go" release a
check "and all can have the lock" eval 'free 1 name && free 2 name && free 3 name'
done_testing
