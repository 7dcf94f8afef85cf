# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# For suites that measure on a cluster in namespaces.
: "${top_srcdir:=.}" "${top_builddir:=.}"

say() { echo "   $*" >&2; }
die() {
	echo "bench: $*" >&2
	exit 1
}

[ "$(id -u)" = 0 ] || die "namespaces need root"
command -v jq >/dev/null || die "jq is missing: apt-get install jq"
build=$(readlink -f "$top_builddir")
export BED_PATH=$build/tools/.libs:$build/tools:$build/daemon:$build/lvmlockd/.libs:$build/lvmlockd
export LD_LIBRARY_PATH=$build/lib/.libs
BED_DIR=$(mktemp -d "${TMPDIR:-/tmp}/belay-bench.XXXXXX") || die "no temporary directory"
export BED_DIR
# corosync as its package runs it: in real time.
export BED_RR=yes
bed() { "$top_srcdir/tests/cluster/bed" "$@" || die "bed $* failed"; }
trap '"$top_srcdir/tests/cluster/bed" down; rm -rf "$BED_DIR"' EXIT
belay() { bed exec "$1" belay "${@:2}"; }

cluster() {
	local nodes
	mapfile -t nodes < <(seq "$1")
	bed up "$1"
	bed start belayd "${nodes[@]}"
	bed wait-synced "${nodes[@]}"
}

# on_all NODES COMMAND...: belay COMMAND --json on nodes 1 to NODES at once; a JSON array of the answers.
on_all() {
	local node count=$1 pids=()
	shift
	for ((node = 1; node <= count; node++)); do
		belay "$node" "$@" --json >"$BED_DIR/answer.$node" &
		pids+=($!)
	done
	for node in "${pids[@]}"; do wait "$node" || return 1; done
	for ((node = 1; node <= count; node++)); do cat "$BED_DIR/answer.$node"; done | jq -s .
}

# figure KEY FILTER <JSON...: one value for each JSON text on standard input.
figure() { printf '%s %s\n' "$1" "$(jq -r "$2" | tr '\n' ' ')"; }
