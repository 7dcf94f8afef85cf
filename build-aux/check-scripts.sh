#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Every script of ours, through shellcheck.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/.." && pwd)}" "${top_builddir:=.}"
# shellcheck source=tests/tap.sh
. "$top_srcdir/tests/tap.sh"

command -v shellcheck >/dev/null || skip_all "shellcheck is not installed"

scripts() {
	local f
	find "$top_srcdir" \( -name .git -o -name build -o -name _build -o -name _inst -o -name m4 \
		-o -name autom4te.cache -o -name 'tmp.*' -o -name '*.c' -o -name '*.h' -o -name '*.o' \) -prune \
		-o -type f -print | sort |
		while read -r f; do
			case ${f##*/} in
			configure | libtool | ltmain.sh | tap-driver.sh | test-driver | compile | depcomp) continue ;;
			install-sh | missing | ar-lib | config.guess | config.sub | config.status | *~) continue ;;
			esac
			case $(head -c 60 "$f" 2>/dev/null | head -n 1 | tr -d '\0') in
			'#!'*bash* | '#!/bin/sh'*) echo "$f" ;;
			*) [ "${f##*.}" != sh ] || echo "$f" ;;
			esac
		done
}

tmp=$(mktemp -d "$top_builddir/tmp.check-scripts.XXXXXX") || bail_out "no temporary directory"
trap 'rm -rf "$tmp"' EXIT
# The fault is what is wanted: expansion by whoever reads the file later.
# shellcheck disable=SC2016
printf '#!/bin/bash\nrm -rf $1/x\n' >"$tmp/bad.sh"
refuse "a planted unquoted variable is found" shellcheck "$tmp/bad.sh"
while read -r script; do
	check "${script#"$top_srcdir"/}" shellcheck "$script"
done < <(scripts)
done_testing
