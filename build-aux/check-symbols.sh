#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A function of include/belay.h is in the library's version script, is exported
# with a version, stands in libbelay(3), and some test calls it; and nothing
# else is exported.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/.." && pwd)}" "${top_builddir:=.}" "${CC:=cc}" "${NM:=nm}"
# shellcheck source=tests/tap.sh
. "$top_srcdir/tests/tap.sh"

library=$top_builddir/lib/.libs/libbelay.so
map=$(find "$top_srcdir/lib" -name '*.map')
if [ ! -e "$library" ] || [ -z "$map" ]; then
	skip_all "libbelay.so is not built yet"
fi

declared() {
	# $CC may be several words.
	# shellcheck disable=SC2086
	sed 's|^#include.*||' "$top_srcdir/include/belay.h" | $CC -E -P -x c - |
		tr '\n' ' ' | grep -oE '\bbelay_[a-z0-9_]+ *\(' | tr -d ' (' | sort -u
}
exported() { $NM -D --defined-only "$library" | awk '$2 ~ /^[TWi]$/ { sub(/@.*/, "", $3); print $3 }' | sort -u; }
unversioned() { $NM -D --defined-only "$library" | awk '$2 ~ /^[TWi]$/ && $3 !~ /@/ { print $3 }'; }
used() { find "$top_srcdir/tests" -name '*.c' -print0 | xargs -0 grep -qE "\\b$1 *\\("; }

check "the header declares functions" test -n "$(declared)"
is "$(exported)" "$(declared)" "libbelay.so exports what belay.h declares, and nothing else"
is "$(unversioned)" "" "each symbol has a version"
for name in $(declared); do
	check "$name stands in the version script" grep -qw "$name" "$map"
	check "$name stands in libbelay(3)" grep -qw "$name" "$top_srcdir/man/libbelay.3"
	check "a test calls $name" used "$name"
done
done_testing
