#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Two nodes fight over a lock and tell each other of releases beside corosync:
# they are early, and never two at once.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
# shellcheck source=tests/cluster/common.sh
. "$top_srcdir/tests/cluster/common.sh"
player=$build/tests/cluster/.libs/player
[ -x "$player" ] || player=$build/tests/cluster/player

check "two corosync nodes" bed up 2 || bail_out "no cluster"
conf() { printf '%s\n' "${@:2}" >"$(bed files "$1")/etc-belay/belay.conf"; }
key() { printf '%s' "$2" >"$(bed files "$1")/etc-belay/key" && chmod "${3:-0600}" "$(bed files "$1")/etc-belay/key"; }
said() { grep -q -- "$2" "$(bed files "$1")/log/belayd.out"; }
hints() { status "$1" | jq -e ".hints.$2"; }
at_least() { [ "$(hints "$1" "$2")" -ge "$3" ]; }
# ends NODE: belayd does, as a failure. It may have ended before the bed has seen it start.
ends() {
	bed start belayd "$1" >/dev/null 2>&1
	bed wait-gone belayd "$1" && [ "$(cat "$(bed files "$1")/log/belayd.exit")" -eq 5 ]
}
serve() { bed start belayd 1 2 && bed wait-synced 1 2; }
stop() { bed stop belayd 1 2; }
on=('[hints]' 'enabled = yes' 'key_file = /etc/belay/key')

conf 1 '[hints]' 'enabled = yes'
check "without a key, and without encryption, belayd does not start" ends 1
check "it says what to do" said 1 'Set key_file in \[hints\]'
conf 1 "${on[@]}"
check "nor does it with a key that is not there" ends 1
check "it says which" said 1 '/etc/belay/key, cannot be used'
refuse "belayd --check says so, too" bed exec 1 belayd --check
key 1 'the secret of this cluster' 0640
check "nor with a key that others can read" ends 1
check "it says what to do" said 1 'chmod 0600'
key 1 'the secret of this cluster'
check "belayd --check is content" bed exec 1 belayd --check

# play SECONDS: a player on each node, one name; the numbers of locks are in n1.locks, n2.locks.
play() {
	local node pids=() result=0
	rm -f "$BED_DIR/cells"
	for node in 1 2; do
		bed exec "$node" "$player" "$BED_DIR/cells" players 3 "$1" >"$BED_DIR/n$node.locks" &
		pids+=($!)
	done
	for node in "${pids[@]}"; do wait "$node" || result=1; done
	return "$result"
}
# What a lock is for: read, add one, write back; and nobody else inside meanwhile.
increment() { # NODE TIMES
	# The inner script's own dollars.
	# shellcheck disable=SC2016
	bed exec "$1" bash -c '
		cd "$1" && for ((i = 0; i < $2; i++)); do
			belay lock --name counter -x -- bash -c '\''
				mkdir inside || { echo "two at once" >>violations; exit 1; }
				read -r n <counter; echo $((n + 1)) >counter
				rmdir inside'\'' || exit 1
		done' increment "$BED_DIR" "$2"
}
count_together() { # TIMES
	local pid result=0
	echo 0 >"$BED_DIR/counter"
	increment 1 "$1" &
	pid=$!
	increment 2 "$1" || result=1
	wait "$pid" || result=1
	return "$result"
}

conf 2 "${on[@]}"
key 2 'the secret of this cluster'
check "both serve with hints" serve || bail_out "no cluster"
is "$(hints 1 enabled) $(hints 2 enabled)" "true true" "both say so"
check "they fight over three bytes: never two inside, and tokens grow" play 4
check "node 1 was early, many times" at_least 1 used 100
check "so was node 2" at_least 2 used 100
# shellcheck disable=SC2016
check "all that was sent has come" eval '[ "$(hints 1 sent)" -ge 100 ] && at_least 2 received 100'
is "$(hints 1 bad_mac) $(hints 1 malformed) $(hints 1 unknown_sender)" "0 0 0" "and was let in"
used=$(hints 1 used)
# shellcheck disable=SC2016
check "belay bench plays as well" eval '
	bed exec 1 belay bench --name bench 3 --seconds 3 & other=$!
	bed exec 2 belay bench --name bench 3 --seconds 3 && wait "$other"'
check "and is early" at_least 1 used "$((used + 50))"
check "two nodes increment a counter under a lock, 40 times each" count_together 40
is "$(cat "$BED_DIR/counter")" 80 "no increment is lost"
refuse "nobody was inside with another" test -e "$BED_DIR/violations"
check "they stop" stop

key 2 'the secret of that cluster'
check "node 2 with another key" serve
check "they exclude each other all the same" play 2
is "$(hints 1 used) $(hints 2 used)" "0 0" "and nobody is early"
check "node 1 lets in none of it" at_least 1 bad_mac 1
check "and says why" said 1 "does not have this cluster's key"
check "they stop" stop

conf 2 '[hints]' 'enabled = no'
check "node 2 without hints" serve
is "$(hints 2 enabled)" false "says so"
check "they exclude each other all the same" play 2
is "$(hints 1 used) $(hints 2 used)" "0 0" "and nobody is early"
done_testing
