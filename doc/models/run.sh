#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# run.sh EXPECT MODEL FLAGS...: search one configuration; EXPECT is ok or violated.
# Says what came out and succeeds if it is what was expected. OPT is for the compiler:
# building takes longer than most searches, so it is -O0 by default. MEM (megabytes) and
# TMO (seconds) bound the search; one that does not end within them is no result,
# unless PART is set: then what was searched counts.
set -u
expect=$1 model=$(readlink -f "$(dirname "$0")/$2")
shift 2
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1

{ cp "$model" m.pml && spin -a "$@" m.pml &&
	"${CC:-cc}" "${OPT:--O0}" -w -DSAFETY -DCOLLAPSE -DVECTORSZ=4096 \
		-DMEMLIM="${MEM:-1500}" -o pan pan.c; } >out 2>&1 || {
	echo "does not build"
	tail -n 5 out
	exit 1
}
timeout "${TMO:-170}" ./pan -m1000000 >out 2>&1
errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' out)
states=$(awk '/states, stored/ { print $1 }' out)
got=ok part=
[ "${errors:-0}" = 0 ] || got=violated
if [ -z "$errors" ]; then
	got="no result"
elif [ "$got" = ok ] && grep -qE 'Search not completed|max search depth' out; then
	part=", not complete"
	[ -n "${PART:-}" ] || got="no result"
fi
echo "$got, ${states:-no} states$part"
[ "$got" = "$expect" ]
