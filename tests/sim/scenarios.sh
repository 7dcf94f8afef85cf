#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Plays every scenario and compares its trace with the one kept beside it; with
# the same messages in bytes the trace must be the same. After a change that is
# meant: tests/sim/scenarios.sh --bless, and read the difference.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}" "${top_builddir:=.}"
# shellcheck source=tests/tap.sh
. "$top_srcdir/tests/tap.sh"

sim=$top_builddir/tests/sim/sim
here=$top_srcdir/tests/sim/scenarios
tmp=$(mktemp -d) || bail_out "no temporary directory"
trap 'rm -rf "$tmp"' EXIT

play() { "$sim" --scenario "$@"; }
compare() { diff -u "$1" "$2"; }

for script in "$here"/*.scn; do
	name=$(basename "$script" .scn)
	if [ "${1-}" = --bless ]; then
		play "$script" >"$here/$name.trace" || echo "$name: fails" >&2
		continue
	fi
	# What is said beside is for who reads it: sanitizers have doubts about threads of our own making.
	play "$script" >"$tmp/$name.trace" 2>"$tmp/$name.said"
	is "$?" 0 "$name: the judges agree" || diag "$(cat "$tmp/$name.said")"
	check "$name: goes as it should" compare "$here/$name.trace" "$tmp/$name.trace"
	play "$script" --wire >"$tmp/$name.wire" 2>/dev/null
	check "$name: goes the same in bytes" compare "$tmp/$name.trace" "$tmp/$name.wire"
done
[ "${1-}" != --bless ] || exit 0

# What a scenario cannot mean is refused, with its line.
printf 'nodes 3\nstart\nn1 dance\n' >"$tmp/bad.scn"
refuse "an unknown command is an error" play "$tmp/bad.scn"
is "$(play "$tmp/bad.scn" 2>&1 >/dev/null)" "$tmp/bad.scn:3: no such command" "and its line is named"
done_testing
