#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# belayd.service forbids nothing that belayd does, and both units are well-formed: no test
# runs under systemd, so what a unit refuses would be found by users.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/.." && pwd)}" "${top_builddir:=.}"
# shellcheck source=tests/tap.sh
. "$top_srcdir/tests/tap.sh"

unit=$top_srcdir/daemon/belayd.service.in
tmp=$(mktemp -d "$top_builddir/tmp.check-units.XXXXXX") || bail_out "no temporary directory"
trap 'rm -rf "$tmp"' EXIT

# Address families that the daemon's source names; getaddrinfo() wants one more.
families() {
	cat "$top_srcdir"/daemon/*.c | grep -ohE '\bAF_[A-Z0-9]+' | grep -v AF_UNSPEC
	cat "$top_srcdir"/daemon/*.c | grep -q getaddrinfo && echo AF_NETLINK
}
allows() { # UNIT: all of them
	local family allowed missing=0
	allowed=" $(sed -n 's/^RestrictAddressFamilies=//p' "$1") "
	while read -r family; do
		[[ $allowed == *" $family "* ]] || { echo "$1 forbids $family"; missing=1; }
	done < <(families | sort -u)
	return "$missing"
}

sed 's/ AF_INET / /' "$unit" >"$tmp/planted"
refuse "a planted unit without IPv4 is found" allows "$tmp/planted"
check "belayd may use the address families that it needs" allows "$unit"

if command -v systemd-analyze >/dev/null; then
	# systemd looks whether the programs are there.
	sed 's,@sbindir@/belayd,/bin/true,' "$unit" >"$tmp/belayd.service"
	sed 's,@sbindir@/belay-lvmlockd,/bin/true,' "$top_srcdir/lvmlockd/belay-lvmlockd.service.in" \
		>"$tmp/belay-lvmlockd.service"
	printf '[Unit]\nDescription=corosync\n[Service]\nExecStart=/bin/true\n' >"$tmp/corosync.service"
	well_formed() {
		local said
		said=$(systemd-analyze verify --man=no "$1" 2>&1 | grep -F "${1##*/}")
		[ -z "$said" ] || { echo "$said"; return 1; }
	}
	for name in belayd belay-lvmlockd; do
		{
			cat "$tmp/$name.service"
			printf '[Service]\nRestrictAddressFamilys=AF_UNIX\n'
		} >"$tmp/wrong.service"
		refuse "a planted setting that does not exist is found" well_formed "$tmp/wrong.service"
		check "$name.service is well-formed" well_formed "$tmp/$name.service"
	done
else
	skip "units are well-formed" "systemd-analyze is not installed"
fi
done_testing
