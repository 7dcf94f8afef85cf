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
map=$top_srcdir/lib/libbelay.map
preload=$top_builddir/lib/.libs/libbelay-preload.so
if [ ! -e "$library" ]; then
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

# The preload library stands before the C library with what its script names, and nothing else.
taken() {
	sed -n '/global:/,/local:/s/^[[:blank:]]*\([a-z0-9_]*\);$/\1/p' "$top_srcdir/lib/preload/libbelay-preload.map"
}
if [ -e "$preload" ]; then
	is "$($NM -D --defined-only "$preload" | awk '{ print $3 }' | sort)" "$(taken | sort)" \
		"libbelay-preload.so takes what its version script names, and nothing else"
	is "$($NM -D --undefined-only "$preload" | grep -cE ' (malloc|free|calloc|realloc|aligned_alloc)(@|$)')" 0 \
		"and has memory of its own"
	for name in $(taken); do
		check "belay-preload(7) tells of ${name#__}" grep -qw "${name#__}" "$top_srcdir/man/belay-preload.7"
	done
fi
done_testing
