#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Every model, every planted bug, and what each must give. With FULL=1 the searches
# that take minutes and gigabytes, too; without, what fits into a few minutes.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$top_srcdir/tests/tap.sh"
here=$top_srcdir/doc/models

command -v spin >/dev/null || skip_all "spin is not installed (Debian package spin)"
[ -z "${FULL:-}" ] || export MEM=${MEM:-6000} TMO=${TMO:-1800}

tmp=$(mktemp -d) || bail_out "no temporary directory"
trap 'rm -rf "$tmp"' EXIT
what=()
running=0
told=0

# Tell of those that have ended, in order.
tell() {
	while [ -e "$tmp/$told.status" ]; do
		is "$(cat "$tmp/$told.status")" 0 "${what[told]} ($(head -n 1 "$tmp/$told.out"))" ||
			diag "$(cat "$tmp/$told.out")"
		told=$((told + 1))
	done
}

# m WHAT EXPECT MODEL FLAGS...: searched beside others, as many as there are processors.
m() {
	local n=${#what[@]}
	what+=("$1: $2")
	{
		"$here/run.sh" "${@:2}" >"$tmp/$n.out" 2>&1
		echo $? >"$tmp/$n.running" && mv "$tmp/$n.running" "$tmp/$n.status"
	} &
	running=$((running + 1))
	[ "$running" -lt "$(nproc)" ] || { wait -n; running=$((running - 1)); }
	tell
}
# Large enough to be worth an optimised search.
large() { OPT=-O1 m "$@"; }
full() { [ -z "${FULL:-}" ] || large "$@"; }

# The handshake in shared memory.
m "recall: no fence" violated recall-handshake.pml -DVARIANT=0
for v in 1 2 3 4; do m "recall: variant $v" ok recall-handshake.pml -DVARIANT="$v"; done

# Ownership over a total order.
O=(ownership.pml -DN=2 -DACQ=2)
m "ownership: one lock each" ok ownership.pml -DN=2 -DACQ=1
large "ownership: two nodes" ok "${O[@]}"
for b in 1 2 3 4 5 6 7 8; do m "ownership: bug $b" violated "${O[@]}" -DBUG="$b"; done
m "ownership: three nodes, no claims" ok ownership.pml -DN=3 -DACQ=1 -DCLAIMS=0 -DIDLES=0
full "ownership: three nodes" ok ownership.pml -DN=3 -DACQ=1

# What a grant may rest on.
S=stable-grants.pml
C=(-DCLAIMS=1 -DIDLES=1)
B=("$S" -DPOL=2 -DNET=1 -DABSACK=1)
T=("$S" -DPOL=2 -DNS=1 -DACQ=2 -DACQV=2)
m "freeze what it holds" violated "$S" -DPOL=0 -DNET=0
large "freeze all at LEFT, simple network" ok "$S" -DPOL=1 -DNET=0 "${C[@]}"
m "freeze all at LEFT, holes" violated "$S" -DPOL=1 -DNET=1
m "stable grants" ok "${B[@]}"
full "stable grants: claim, idle" ok "${B[@]}" "${C[@]}"
full "stable grants: arbitrated for good" ok "${B[@]}" -DCLAIMS=1 -DKEEPARB=1
full "stable grants: acks as messages" ok "$S" -DPOL=2 -DNET=0
large "stable grants: two nodes" ok "${T[@]}" "${C[@]}"
for b in 6 7 12 13 14 16 17 23; do m "stable grants: bug $b" violated "${B[@]}" -DBUG="$b"; done
m "stable grants: two nodes, bug 16" violated "${T[@]}" -DBUG=16
m "return: reset after join" ok "${B[@]}" -DMERGE=1
large "return: a late fence" ok "${B[@]}" -DMERGE=1 -DLATEFENCE=1
m "return: discard before join" ok "${B[@]}" -DMERGE=2
m "return: bug 20" violated "${B[@]}" -DMERGE=2 -DBUG=20
m "return: bug 21" violated "${B[@]}" -DMERGE=1 -DBUG=21
m "return: bug 22" violated "${B[@]}" -DMERGE=1 -DLATEFENCE=1 -DBUG=22
m "return: the new life locks (so this must fail)" violated "${B[@]}" -DMERGE=1 -DREACH

# Waiters of the departed.
m "departed waiter" ok departed-waiter.pml
for b in 1 2 3; do m "departed waiter: bug $b" violated departed-waiter.pml -DBUG="$b"; done

# Early release.
full "hints" ok early-hints.pml
for b in 1 2 3; do m "hints: bug $b" violated early-hints.pml -DBUG="$b"; done

# Readers that share.
m "readers that share" ok shared-readers.pml
full "readers that share: two locks each" ok shared-readers.pml -DACQ=2
full "readers that share: two writers" ok shared-readers.pml -DACQW=2
for b in 1 2 3 4 5 6; do m "readers that share: bug $b" violated shared-readers.pml -DBUG="$b"; done

wait
tell
is "$told" "${#what[@]}" "every model gave a result"
done_testing
