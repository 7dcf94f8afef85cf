#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The man pages are there, and mandoc has nothing to say against them.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/.." && pwd)}" "${top_builddir:=.}"
# shellcheck source=tests/tap.sh
. "$top_srcdir/tests/tap.sh"

command -v mandoc >/dev/null || skip_all "mandoc is not installed"
# mandoc cannot know pages that are not installed yet.
lint() {
	local said
	said=$(mandoc -T lint -W warning "$1")
	[ -z "$said" ] || { echo "$said"; return 1; }
}

tmp=$(mktemp -d "$top_builddir/tmp.check-man.XXXXXX") || bail_out "no temporary directory"
trap 'rm -rf "$tmp"' EXIT
printf '%s\n' '.Dd January 1, 2026' '.Dt BAD 1' .Os '.Sh NAME' '.Nm bad' '.Nd bad' '.Sh DESCRIPTION' '.Bl -tag' \
	>"$tmp/bad.1"
refuse "a planted unclosed list is found" lint "$tmp/bad.1"
for page in belay.1 belay-preload.7 belayd.8 belay-lvmlockd.8 belay.conf.5 libbelay.3; do
	if check "$page exists" test -s "$top_srcdir/man/$page"; then
		check "$page is well-formed" lint "$top_srcdir/man/$page"
	fi
done
done_testing
