#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Errors planted into core/, slot/, or what the simulator does as a client or as
# belayd would, one at a time: each must be found by the scenarios or by the seeds. A
# mutant is a perl script that changes a file; its head says what is wrong then,
# and which file it is (of core/, if there is no slash). One that changes nothing any
# more is a failure, too. One mutant: tests/sim/mutants.sh NAME
#
# MUTANT_SEEDS: how many worlds each has to survive (6000).
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}" "${top_builddir:=.}" "${CC:=cc}"
# shellcheck source=tests/tap.sh
. "$top_srcdir/tests/tap.sh"

here=$top_srcdir/tests/sim
seeds=${MUTANT_SEEDS:-6000}
tmp=$(mktemp -d) || bail_out "no temporary directory"
trap 'rm -rf "$tmp"' EXIT

[ -z "${INSTRUMENTED:-}" ] || skip_all "an instrumented core cannot be mixed with a plain object"
command -v perl >/dev/null || skip_all "perl is not installed"

# object NAME FILE: compiles FILE with the mutant's error in it.
object() {
	local dir=$tmp/$1 file=$2
	mkdir -p "$dir/$(dirname "$file")"
	perl -0777 -p "$here/mutants/$1.pl" "$top_srcdir/$file" >"$dir/$file" || return 1
	if cmp -s "$dir/$file" "$top_srcdir/$file"; then
		echo "it no longer matches anything in $file"
		return 1
	fi
	# The simulator compiles these by a file that includes them.
	[[ $file != slot/commit* ]] || file=tests/sim/slot_commit.c
	[ -e "$dir/$file" ] || { mkdir -p "$dir/$(dirname "$file")" && cp "$top_srcdir/$file" "$dir/$file"; }
	"$CC" -std=c11 -D_GNU_SOURCE -O1 -w -I"$dir" -I"$top_srcdir" -c "$dir/$file" -o "$dir/$(basename "$file" .c).o"
}

# build NAME: the simulator with the mutant's files in place of the tree's own.
build() {
	local dir=$tmp/$1 file
	while read -r file; do
		case $file in */*) ;; *) file=core/$file ;; esac
		object "$1" "$file" || return 1
	done < <(sed -n 's/^# file: //p' "$here/mutants/$1.pl")
	"$CC" "$dir"/*.o "$top_builddir/tests/sim/main.o" "$top_builddir/tests/sim/libsim.a" \
		"$top_builddir/core/libbelaycore.a" "$top_builddir/wire/libbelaywire.a" \
		"$top_builddir/slot/libbelayslot.a" -o "$dir/sim"
}

# survives NAME: prints what killed it, and fails, if something does.
survives() {
	local dir=$tmp/$1 script name options
	for script in "$here"/scenarios/*.scn; do
		name=$(basename "$script" .scn)
		timeout 20 "$dir/sim" --scenario "$script" >"$dir/trace" 2>/dev/null
		if ! cmp -s "$dir/trace" "$here/scenarios/$name.trace"; then
			echo "scenario $name"
			return 1
		fi
	done
	options=$(sed -n 's/^# seeds: //p' "$here/mutants/$1.pl")
	# shellcheck disable=SC2086
	"$dir/sim" --seeds "1..$seeds" $options >"$dir/out" 2>/dev/null && return 0
	sed -n 's/^FAIL //p' "$dir/out"
	return 1
}

# try NAME: the verdict into NAME.verdict.
try() {
	if ! build "$1" >"$tmp/$1.log" 2>&1; then
		echo "broken" >"$tmp/$1.verdict"
	elif survives "$1" >"$tmp/$1.log"; then
		echo "alive" >"$tmp/$1.verdict"
	else
		echo "dead" >"$tmp/$1.verdict"
	fi
}

names=()
for mutant in "$here"/mutants/${1:-*}.pl; do names+=("$(basename "$mutant" .pl)"); done

running=0
for name in "${names[@]}"; do
	try "$name" &
	running=$((running + 1))
	[ "$running" -lt "$(nproc)" ] || { wait -n; running=$((running - 1)); }
done
wait

for name in "${names[@]}"; do
	is "$(cat "$tmp/$name.verdict")" dead "$name: $(sed -n '1s/^# //p' "$here/mutants/$name.pl")"
	diag "$(head -n 5 "$tmp/$name.log")"
done
done_testing
