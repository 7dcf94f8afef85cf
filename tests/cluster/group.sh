#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The group port (daemon/group_cpg.c) on real corosync: views, order, a
# corosync that does not answer, a corosync that dies.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}" "${top_builddir:=.}"
# shellcheck source=tests/cluster/common.sh
. "$top_srcdir/tests/cluster/common.sh"
probe=$(readlink -f "$top_builddir")/tests/cluster/group_probe

# Each probe: orders through descriptor ${to[NAME]}, what it says in $BED_DIR/said.NAME.
declare -A to
probe_up() { # NAME NODE
	local pipe=$BED_DIR/orders.$1
	rm -f "$pipe" "$BED_DIR/said.$1"
	mkfifo "$pipe"
	bed exec "$2" "$probe" probe <"$pipe" >>"$BED_DIR/said.$1" 2>&1 &
	exec {fd}>"$pipe"
	to[$1]=$fd
}
order() { # NAME ORDER
	echo "$2" >&"${to[$1]}"
}
dismiss() { # NAME: it sees the end of its orders
	local fd=${to[$1]}
	exec {fd}>&-
}
said() { grep -qxE "$2" "$BED_DIR/said.$1"; }
says() { # NAME LINE [SECONDS]: wait until it has said a line
	local end=$((SECONDS + ${3:-20}))
	until said "$1" "$2"; do
		[ "$SECONDS" -lt "$end" ] || { tail -n 5 "$BED_DIR/said.$1"; return 1; }
		sleep 0.02
	done
}
says_messages() { # NAME COUNT: wait for that many messages
	local end=$((SECONDS + 60))
	until [ "$(grep -c ^message "$BED_DIR/said.$1")" -ge "$2" ]; do
		[ "$SECONDS" -lt "$end" ] || { tail -n 5 "$BED_DIR/said.$1"; return 1; }
		sleep 0.02
	done
}
forget() { # NAME...: what it has said so far; it appends, so the file may shrink
	local name
	for name; do : >"$BED_DIR/said.$name"; done
}
order_of() { grep ^message "$BED_DIR/said.$1"; }

bed nodes 3
probe_up a 1
check "without corosync it does not open, and says what to do" \
	says a 'failed ENOTCONN: corosync does not run on this node: systemctl start corosync .*'
dismiss a
bed down
check "three nodes" bed up 3

probe_up a 1
check "it reads the cluster's configuration" \
	says a "info cluster=bed self=1 votes=3 stable=majority encrypted=0 nodes=1:n1,2:n2,3:n3"
check "the first is alone" says a "view members=1 left= joined=1"
check "with quorum, for corosync counts nodes" says a "quorum 1"
probe_up b 2
check "a second joins" says a "view members=1,2 left= joined=2"
check "and sees both" says b "view members=[12],[12] left= joined=2"
probe_up c 3
check "so does a third" says c "view members=[123],[123],[123] left= joined=3"
check "told to all" says a "view members=[123],[123],[123] left= joined=3"
check "told to all" says b "view members=[123],[123],[123] left= joined=3"
refuse "nobody lost quorum meanwhile" said a "quorum 0"

order a "send 2000 100"
order b "send 2000 3000"
order c "send 500 32768"
for name in a b c; do
	check "$name sent all" says $name sent 60
	check "$name got all" says_messages $name 4500
done
is "$(order_of b | cksum)" "$(order_of a | cksum)" "b got what a got, in a's order"
is "$(order_of c | cksum)" "$(order_of a | cksum)" "c, too"
is "$(order_of a | grep -c '^message 3 [0-9]* 32768$')" 500 "none was torn"
order c "latency 500"
check "the latency of a message is measured" says c "latency [0-9]+ [0-9]+"
diag "own delivery on three nodes, us, median and p99: $(grep ^latency "$BED_DIR/said.c")"

forget a b c
probe_up second 2
check "a second process of a node is refused" \
	says second "failed EEXIST: another belayd of this node is in the group: only one can run on a node"
dismiss second
order a ping
check "nobody is disturbed" says a pong
refuse "nor told of it" grep -q ^view "$BED_DIR/said.a"

check "one is killed" bed signal KILL group_probe 3
check "the others see it leave" says a "view members=[12],[12] left=3 joined="
probe_up c 3
check "its next life comes in at once" says c "view members=[123],[123],[123] left= joined=3"
order b leave
check "one leaves" says a "view members=[13],[13] left=2 joined="
order b "send 1 10"
check "and cannot send" says b "send failed: .*"
order b quit
check "it ends" says b "closed [0-9]+"
dismiss b

forget a c
check "corosync of node 3 stops answering" bed signal STOP corosync 3
order c "stuff 1000"
check "sending to it ends" says c "stuffed [0-9]+ [0-9]+" 5
read -r _ accepted longest < <(grep ^stuffed "$BED_DIR/said.c")
is "$accepted" 32 "after a window of messages"
check "no call took long ($longest us)" test "$longest" -lt 50000
order c ping
check "and the loop goes on" says c pong 5
check "the others go on without it" says a "view members=1 left=3 joined="
forget c
refuse "which have quorum all the time" said a "quorum 0"
check "it answers again" bed signal CONT corosync 3
check "what was sent arrives" says_messages c 32
check "and the sides come together" says a "view members=[13],[13] left= joined=3" 40
check "quorum is back" bed wait-quorate 3 1 2 3
order c "send 100 64"
check "sending works as before" says c sent
check "and arrives everywhere" says_messages a 100

forget a c
check "corosync of node 3 stops answering again" bed signal STOP corosync 3
order c quit
check "now it is told to close" says c "closed [0-9]+" 5
read -r _ took < <(grep ^closed "$BED_DIR/said.c")
check "which did not wait for corosync ($took us)" test "$took" -lt 1000000
dismiss c
check "it answers again" bed signal CONT corosync 3
check "quorum is back" bed wait-quorate 3 1 2 3

probe_up b 2
probe_up c 3
check "all are back" says c "view members=[123],[123],[123] left=.* joined=.*"
check "all are back" says b "view members=[123],[123],[123] left=.* joined=.*"
forget a b c
check "a partition" bed partition "1 2" "3"
check "leaves one alone" says c "view members=3 left=[12],[12] joined="
check "which loses quorum" says c "quorum 0"
check "the two have it" says a "view members=[12],[12] left=3 joined="
check "again" bed wait-quorate 2 1 2
refuse "all the time" said a "quorum 0"
check "it heals" bed heal
check "the view, too" says c "view members=[123],[123],[123] left= joined=[12],[12]" 40
check "and quorum is back" says c "quorum 1"
is "$(grep ^quorum "$BED_DIR/said.c" | tr '\n' ' ')" "quorum 0 quorum 1 " "which it lost just once"
refuse "nor did the others lose it now" said a "quorum 0"

forget a c
check "corosync of node 3 is killed" bed signal KILL corosync 3
check "it is lost" says c "lost ENOTCONN" 5
order c "send 1 10"
check "nothing can be sent" says c "send failed: .*"
check "corosync of node 1 stops" bed stop corosync 1
check "it is lost, too" says a "lost ENOTCONN" 5
order a quit
check "and closes" says a "closed [0-9]+"
dismiss a
dismiss b
dismiss c
wait
bed down

check "two nodes with two_node" bed up 2
probe_up a 1
check "there a majority is not enough" says a \
	"info cluster=bed self=1 votes=2 stable=all encrypted=0 nodes=1:n1,2:n2"
dismiss a
wait
done_testing
