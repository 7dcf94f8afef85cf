#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# core/ and wire/ are pure: no I/O, clock, randomness, threads, allocation, no
# state of their own. The proof is what their archives need from outside
# (nothing but moving bytes and assert), and that they hold no variables.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/.." && pwd)}" "${top_builddir:=.}" "${CC:=cc}" "${NM:=nm}"
# shellcheck source=tests/tap.sh
. "$top_srcdir/tests/tap.sh"

allowed='memcpy|memmove|memset|memcmp|memchr|bcmp|strlen'
allowed="$allowed|__memcpy_chk|__memmove_chk|__memset_chk"
allowed="$allowed|__assert_fail|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_"

defined() { $NM --defined-only -g "$@" | awk 'NF == 3 { print $3 }' | sort -u; }

# needs ARCHIVE [BESIDE...]: what ARCHIVE wants that neither itself, nor the
# archives beside it, nor the list above has.
needs() {
	$NM -u "$1" | awk '$1 == "U" { print $2 }' | sort -u |
		grep -vxE "$allowed" | comm -23 - <(defined "$@")
}

# Tables of constants that hold pointers lie in .data.rel.ro: no variables.
variables() {
	$NM -f sysv "$1" | awk -F'|' '{ gsub(/ /, "") }
		$7 ~ /^(\.data|\.bss|\.tdata|\.tbss|\.lbss|\.ldata|\*COM\*)/ &&
		$7 !~ /^\.data\.rel\.ro/ { print $1 }'
}

pure() {
	local bad
	bad=$(needs "$@")
	[ -z "$bad" ] || { echo "${1##*/} needs from outside:" "$bad"; return 1; }
}

stateless() {
	local bad
	bad=$(variables "$1")
	[ -z "$bad" ] || { echo "${1##*/} has variables:" "$bad"; return 1; }
}

[ -z "${INSTRUMENTED:-}" ] || skip_all "instrumented code calls its instruments"

tmp=$(mktemp -d "$top_builddir/tmp.check-core.XXXXXX") || bail_out "no temporary directory"
trap 'rm -rf "$tmp"' EXIT

# plant NAME SOURCE: an archive with one fault.
plant() {
	printf '%s\n' "$2" >"$tmp/$1.c" &&
		$CC -O1 -c -o "$tmp/$1.o" "$tmp/$1.c" && ar cr "$tmp/$1.a" "$tmp/$1.o"
}
plant good '#include <string.h>
static const char *const names[] = { "a", "b" };
const char *good(char *to, const char *from, unsigned n) { memcpy(to, from, n); return names[n]; }'
plant clock '#include <time.h>
long bad(void); long bad(void) { return time(0); }'
plant heap '#include <stdlib.h>
void *bad(unsigned n); void *bad(unsigned n) { return malloc(n); }'
plant counter 'int bad(void); int bad(void) { static int n; return ++n; }'
plant initialised 'int bad(void); int bad(void) { static int n = 7; return ++n; }'
plant thread 'int bad(void); int bad(void) { static __thread int n; return ++n; }'

check "an innocent archive is pure" pure "$tmp/good.a"
check "and without state" stateless "$tmp/good.a"
refuse "a planted clock read is found" pure "$tmp/clock.a"
refuse "a planted malloc is found" pure "$tmp/heap.a"
refuse "a planted counter is found" stateless "$tmp/counter.a"
refuse "a planted initialised variable is found" stateless "$tmp/initialised.a"
refuse "a planted thread variable is found" stateless "$tmp/thread.a"

core=$top_builddir/core/libbelaycore.a
wire=$top_builddir/wire/libbelaywire.a
check "core/ has code" test -n "$(defined "$core")"
check "core/ is pure" pure "$core"
check "core/ has no state" stateless "$core"
check "wire/ has code" test -n "$(defined "$wire")"
check "wire/ is pure" pure "$wire" "$core"
check "wire/ has no state" stateless "$wire"
done_testing
