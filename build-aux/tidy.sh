#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The rules of style that a program can check, over the whole tree; each is
# first shown to bite. To see what it finds: build-aux/tidy.sh
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/.." && pwd)}" "${top_builddir:=.}"
# shellcheck source=tests/tap.sh
. "$top_srcdir/tests/tap.sh"

function_lines=75
file_lines=850
columns=120

# files ROOT EXTENSION...: what people wrote, not what tools made.
files() {
	local root=$1 e names=()
	shift
	for e; do names+=(-o -name "*.$e"); done
	find "$root" \( -name .git -o -name build -o -name _build -o -name _inst -o -name m4 \
		-o -name autom4te.cache -o -name 'tmp.*' -o -name ltmain.sh -o -name tap-driver.sh \) -prune \
		-o -type f \( "${names[@]:1}" \) -print | sort
}
sources() { files "$1" c h; }
scripts() {
	files "$1" sh
	local f
	for f in "$1"/scripts/* "$1"/tests/*/* "$1"/.ci/* "$1"/autogen.sh; do
		[ -f "$f" ] && [ "${f##*.}" != sh ] && head -c 2 "$f" | grep -q '#!' && echo "$f"
	done
}
build() { files "$1" am ac mk in map pml; }
words() { sources "$1"; scripts "$1"; build "$1"; files "$1" md 1 3 5 7 8 | grep -v '/Makefile\.in$'; }

nothing() { # nothing OUTPUT: fails, and shows it, unless it is empty
	[ -z "$1" ] || { printf '%s\n' "$1"; return 1; }
}

# Programs of awk have dollars of their own.
# shellcheck disable=SC2016
short_functions() {
	nothing "$(sources "$1" | xargs -r awk -v max="$function_lines" '
		FNR == 1 { start = 0; open = 0 }
		/^[A-Za-z_]/ && !open { start = FNR; name = $0 }
		/^{/ { open = start ? start : FNR }
		/^}/ { if (open && FNR - open + 1 > max)
				printf "%s:%d: %d lines: %s\n", FILENAME, open, FNR - open + 1, name
			open = 0; start = 0 }')"
}
short_files() {
	nothing "$({ sources "$1"; scripts "$1"; } | xargs -r -n 1 awk -v max="$file_lines" '
		END { if (FNR > max) printf "%s: %d lines\n", FILENAME, FNR }')"
}
# shellcheck disable=SC2016
short_lines() {
	nothing "$({ sources "$1"; scripts "$1"; } | xargs -r awk -v max="$columns" '
		{ width = 0; n = length($0)
		  if (n * 8 <= max) next
		  for (i = 1; i <= n; i++) width = substr($0, i, 1) == "\t" ? width - width % 8 + 8 : width + 1
		  if (width > max) printf "%s:%d: %d columns\n", FILENAME, FNR, width }')"
}
no_doubts() { nothing "$(words "$1" | xargs -r grep -nwE 'TO[D]O|FIX[M]E|XX[X]')"; }
licensed() {
	nothing "$({ sources "$1"; scripts "$1"; build "$1" | grep -vE '/Makefile\.in$|\.pc\.in$'; } |
		while read -r f; do
			head -n 3 "$f" | grep -qE 'SPDX-License-Identifier: (GPL-2\.0|LGPL-2\.1)-or-later' || echo "$f"
		done)"
}
no_strange_paths() { nothing "$(words "$1" | xargs -r grep -nE '(^|[^A-Za-z0-9._-])/wo[r]k/|/roo[t]/|/ho[m]e/')"; }
no_trailing_blanks() { nothing "$({ sources "$1"; scripts "$1"; build "$1"; } | grep -v '/Makefile\.in$' |
	xargs -r grep -nE '[[:blank:]]+$')"; }

# layered ROOT: core/ includes nothing of ours but core/; wire/ nothing but core/ and wire/.
layered() {
	local bad
	bad=$(sources "$1/core" | xargs -r grep -nE '^#include "' | grep -v '"core/'
		sources "$1/wire" | xargs -r grep -nE '^#include "' | grep -vE '"(core|wire)/'
		# belay replay steps the core through what belayd wrote down; belay run reads belay.conf.
		{ sources "$1/lib"; sources "$1/tools" | grep -vE '/(replay|run)\.c'; } |
			xargs -r grep -nE '^#include "(daemon|core/core\.h)'
		sources "$1/daemon" | xargs -r grep -nE '^#include "(lib|tools|tests)/')
	nothing "$bad"
}

# What no fragment names is neither built, nor run, nor distributed.
named() {
	local names
	names=$(build "$1" | xargs -r cat)
	nothing "$({ sources "$1"; files "$1" sh map; } | while read -r f; do
		grep -qw -- "${f##*/}" <<<"$names" || echo "${f#"$1"/} stands in no local.mk"
	done)"
}

# Headers of core/ and wire/ never bring in a clock, a thread or the system.
sober_includes() {
	nothing "$({ sources "$1/core"; sources "$1/wire"; } | xargs -r grep -nE '^#include <' |
		grep -vE '<(assert|errno|limits|stdalign|stdbool|stddef|stdint|string|sys/types|endian|inttypes)\.h>')"
}

tmp=$(mktemp -d "$top_builddir/tmp.tidy.XXXXXX") || bail_out "no temporary directory"
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/bad/core" "$tmp/bad/wire" "$tmp/good/core" "$tmp/bad/scripts"
{
	echo '/* SPDX-License-Identifier: GPL-2.0-or-later */'
	printf 'static int f(void)\n{\n'
	for ((i = 0; i < function_lines - 3; i++)); do printf '\tg();\n'; done
	printf '}\n'
} >"$tmp/good/core/good.c"
{
	printf 'static int f(void)\n{\n'
	for ((i = 0; i < file_lines; i++)); do printf '\tg();\n'; done
	printf '}  \n#include "daemon/x.h"\n#include <time.h>\n\t/* %s */ "/wo''rk/x"\n' 'TO''DO'
	printf '\t%0120d\n' 0
} >"$tmp/bad/core/bad.c"

{
	echo '# SPDX-License-Identifier: GPL-2.0-or-later'
	echo 'x_SOURCES = core/good.c'
} >"$tmp/good/core/local.mk"

for rule in short_functions short_files short_lines no_doubts licensed no_strange_paths \
	no_trailing_blanks named layered sober_includes; do
	refuse "$rule finds a planted fault" $rule "$tmp/bad"
	check "$rule accepts innocent code" $rule "$tmp/good"
	check "$rule" $rule "$top_srcdir"
done
done_testing
