#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# configure names all that is missing, at once, with the Debian packages that
# have it; and it refuses to build without asserts.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/.." && pwd)}" "${top_builddir:=.}" "${CC:=cc}"
# shellcheck source=tests/tap.sh
. "$top_srcdir/tests/tap.sh"

[ -x "$top_srcdir/configure" ] || skip_all "no configure: run autogen.sh"
tmp=$(mktemp -d "$(cd "$top_builddir" && pwd)/tmp.check-configure.XXXXXX") || bail_out "no temporary directory"
trap 'rm -rf "$tmp"' EXIT
configure=$(cd "$top_srcdir" && pwd)/configure

# configured NAME ARGUMENT...: in a directory of its own, with the results of earlier ones.
configured() {
	mkdir "$tmp/$1" && cd "$tmp/$1" &&
		"$configure" --cache-file="$tmp/cache" CC="$CC" "${@:2}" >"$tmp/$1.log" 2>&1
}
alone() { (configured "$@"); }
says() { grep -qF -- "$2" "$tmp/$1.log"; }

mkdir "$tmp/empty"
refuse "configure fails without libraries" alone missing PKG_CONFIG_LIBDIR="$tmp/empty" PKG_CONFIG_PATH=
for library in libqb libcpg libquorum libcmap libcfg inih json-c; do
	package=lib${library#lib}-dev
	check "it names $library" says missing "$library"
	check "and its package" says missing "(Debian package $package)"
done
check "it says how to install them, in one line" says missing \
	"apt-get install libqb-dev libcpg-dev libquorum-dev libcmap-dev libcfg-dev libinih-dev libjson-c-dev"
refuse "configure fails with NDEBUG" alone ndebug CPPFLAGS=-DNDEBUG
check "and says why" says ndebug "NDEBUG is set"
done_testing
