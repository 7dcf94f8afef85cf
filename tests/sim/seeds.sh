#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Random worlds: SIM_SEEDS of them (2000), shared by all processors. A seed
# that fails is printed with how to see it again.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}" "${top_builddir:=.}"
# shellcheck source=tests/tap.sh
. "$top_srcdir/tests/tap.sh"

sim=$top_builddir/tests/sim/sim
seeds=${SIM_SEEDS:-2000}
jobs=$(nproc)
tmp=$(mktemp -d) || bail_out "no temporary directory"
trap 'rm -rf "$tmp"' EXIT

worlds() {
	"$sim" --seeds "1..$1" --jobs "$jobs" --tally "${@:2}" >"$tmp/out" && return
	tail -n 100 "$tmp/out"
	return 1
}
count() { awk -v name="$1" '$1 == name { print $2 }' "$tmp/out"; }

check "$seeds worlds of 2 to 5 nodes" worlds "$seeds"
# A test that never gets somewhere proves nothing about it. These need more than a few worlds.
rare=(loan_busy mad cast_out apart)
[ "$seeds" -ge 1000 ] || rare=()
for what in "${rare[@]}" grants busy deadlocks interrupted refused free_tests held_tests lost snapshots restarts \
	fences splits kills offs leaves holes privates stale \
	lent loans_used loans_refused recalls loan_grants loan_unlocks stops client_kills \
	shared hints_sent hints_arrived hints_used volume_grants volumes_again volumes_late volumes_compared \
	REQ REL CANCEL BUSY HELD WAITING RELINQ CLAIM IDLE CLIENT_GONE HELLO SYNCED START FENCED LEAVE; do
	n=$(count "$what")
	check "they met $what: $n" [ "${n:-0}" -gt 0 ]
done
check "as many with seven nodes, a tenth" worlds "$((seeds / 10 + 1))" --nodes 7
check "long runs" worlds "$((seeds / 20 + 1))" --steps 3000

hashes() { "$sim" --seeds 1..100 --hash "$@"; }
is "$(hashes --wire | md5sum)" "$(hashes | md5sum)" "the same worlds in bytes, message by message"
refuse "no seeds, no work" "$sim"
refuse "one node is no cluster" "$sim" --seeds 1 --nodes 1
done_testing
