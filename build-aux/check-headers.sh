#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Each header compiles alone; the public one also as plain ISO C and as C++.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/.." && pwd)}" "${top_builddir:=.}" "${CC:=cc}"
# shellcheck source=tests/tap.sh
. "$top_srcdir/tests/tap.sh"

# alone COMPILER... HEADER: the last argument is the header.
alone() {
	local header=${!#}
	# Options of $CC and of CPPFLAGS are several words.
	# shellcheck disable=SC2086,SC2068
	printf '#include "%s"\n#include "%s"\nextern int belay_not_empty;\n' "$header" "$header" |
		${@:1:$#-1} -I"$top_srcdir" -I"$top_builddir" ${CPPFLAGS:-} -fsyntax-only -Wall -Wextra -Werror -
}
check_alone() { check "$header compiles alone$1" alone "${@:2}" "$header"; }

tmp=$(mktemp -d "$top_builddir/tmp.check-headers.XXXXXX") || bail_out "no temporary directory"
trap 'rm -rf "$tmp"' EXIT
echo 'int f(uint32_t x);' >"$tmp/bad.h"
refuse "a planted header without its includes is found" alone "$CC -x c" "$tmp/bad.h"

while read -r header; do
	check_alone "" "$CC -std=c11 -D_GNU_SOURCE -x c"
done < <(cd "$top_srcdir" && find core wire daemon lib lvmlockd tools include tests -name '*.h' \
	-not -path '*/tmp.*' | sort)

header=include/belay.h
check_alone ", as ISO C99" "$CC -std=c99 -pedantic -U_GNU_SOURCE -x c"
if command -v c++ >/dev/null; then
	check_alone ", as C++" "c++ -std=c++11 -pedantic -x c++"
else
	skip "$header as C++" "no C++ compiler"
fi
done_testing
