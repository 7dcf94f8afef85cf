# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# For the tests on real corosync: a bed of this test's own, gone at its end.
: "${top_srcdir:=.}" "${top_builddir:=.}"
# shellcheck source=tests/tap.sh
. "$top_srcdir/tests/tap.sh"

[ "$(id -u)" = 0 ] || skip_all "namespaces need root"
command -v corosync >/dev/null || skip_all "corosync is not installed"

bed=$top_srcdir/tests/cluster/bed
BED_DIR=$(mktemp -d "${TMPDIR:-/tmp}/belay-bed.XXXXXX") || bail_out "no temporary directory"
export BED_DIR
bed() { "$bed" "$@"; }

clean_up() {
	# The logs of a failed test are what is needed to understand it.
	if [ "$tap_failed" -gt 0 ]; then
		tail -n 30 "$BED_DIR"/n*/log/*.out "$BED_DIR"/n*/log/corosync/corosync.log 2>/dev/null | sed 's/^/# /'
	fi
	bed down
	rm -rf "$BED_DIR"
}
trap clean_up EXIT
