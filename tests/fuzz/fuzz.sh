# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Each fuzz target, linked with libFuzzer: its corpus, then FUZZ_RUNS random
# inputs bred from it. What breaks a law is left in tests/fuzz/ of the build
# tree; feed it to the target by its name to see it again.

: "${top_srcdir:=.}" "${top_builddir:=.}"
# shellcheck source=tests/tap.sh
. "$top_srcdir/tests/tap.sh"

runs=${FUZZ_RUNS:-200000}
work=$(mktemp -d "$top_builddir/tests/fuzz/tmp.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

fuzz() {
	local target=$1 name=${1##*/fuzz_}
	local corpus=$top_srcdir/tests/fuzz/corpus/$name

	check "$name: the corpus breaks no law" "$target" "$corpus"/*
	mkdir "$work/$name"
	check "$name: $runs random inputs break no law" \
		"$target" -runs="$runs" -seed=1 -max_len=8192 -timeout=10 \
		-artifact_prefix="$top_builddir/tests/fuzz/$name-" "$work/$name" "$corpus"
}

for target in "$top_builddir"/tests/fuzz/fuzz_*; do
	if [ -x "$target" ]; then
		fuzz "$target"
	fi
done
done_testing
