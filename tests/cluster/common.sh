# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# For the tests on real corosync: a bed of this test's own, gone at its end,
# and clients that hold locks for as long as the test says.
: "${top_srcdir:=.}" "${top_builddir:=.}"
# shellcheck source=tests/tap.sh
. "$top_srcdir/tests/tap.sh"

[ "$(id -u)" = 0 ] || skip_all "namespaces need root"
command -v corosync >/dev/null || skip_all "corosync is not installed"

bed=$top_srcdir/tests/cluster/bed
build=$(readlink -f "$top_builddir")
# The programs themselves: libtool's wrappers are scripts, and a pid should be belay's.
export BED_PATH=$build/tools/.libs:$build/tools:$build/daemon:$build/lvmlockd/.libs:$build/lvmlockd
export LD_LIBRARY_PATH=$build/lib/.libs
BED_DIR=$(mktemp -d "${TMPDIR:-/tmp}/belay-bed.XXXXXX") || bail_out "no temporary directory"
export BED_DIR
bed() { "$bed" "$@"; }

clean_up() {
	# The logs of a failed test are what is needed to understand it.
	if [ "$tap_failed" -gt 0 ]; then
		tail -n 30 "$BED_DIR"/n*/log/*.out 2>/dev/null | sed 's/^/# /'
		grep -E 'TOTEM|QUORUM' "$BED_DIR"/n*/log/corosync/corosync.log 2>/dev/null | tail -n 20 | sed 's/^/# /'
	fi
	bed down
	rm -rf "$BED_DIR"
}
trap clean_up EXIT
trap 'exit 1' TERM INT HUP

# belay NODE ARGUMENT...: the command, run on that node.
belay() { bed exec "$1" belay "${@:2}"; }

# cluster N: N nodes which serve.
cluster() {
	local nodes
	mapfile -t nodes < <(seq "$1")
	bed up "$1" && bed start belayd "${nodes[@]}" && bed wait-synced "${nodes[@]}"
}

# ask HOLDER NODE NAME [OPTION...]: a client on NODE, called HOLDER here, starts
# to wait for the lock NAME, and keeps it until "release HOLDER".
ask() {
	local holder=$1 node=$2 name=$3
	shift 3
	mkfifo "$BED_DIR/$holder.got" "$BED_DIR/$holder.end" || return 1
	# The inner script's own dollars.
	# shellcheck disable=SC2016
	"$bed" exec "$node" belay lock "$name" "${@:--x}" -- \
		bash -c 'echo got >"$1.got"; read -r _ <"$1.end"' holder "$BED_DIR/$holder" \
		</dev/null >"$BED_DIR/$holder.log" 2>&1 &
	echo $! >"$BED_DIR/$holder.pid"
	# Read and write, so that nobody ever blocks on opening it.
	eval "exec {fd_$holder}<>\"\$BED_DIR/$holder.got\""
}

# has HOLDER [SECONDS]: it has got its lock, or does within that time.
has() {
	local fd=fd_$1
	[ -e "$BED_DIR/$1.has" ] || {
		read -r -t "${2:-$patience}" -u "${!fd}" _ && : >"$BED_DIR/$1.has"
	}
}
waits() { ! has "$1" 0.5; }
hold() { ask "$@" && has "$1"; }

# release HOLDER: it ends, with its command's status.
release() {
	local pid fifo status
	pid=$(cat "$BED_DIR/$1.pid")
	# Read and write: opening must not wait for a holder that is gone.
	exec {fifo}<>"$BED_DIR/$1.end"
	echo >&"$fifo"
	wait "$pid"
	status=$?
	exec {fifo}>&-
	rm -f "$BED_DIR/$1".{got,end,has,pid}
	return "$status"
}

# free NODE NAME: nobody is in the way of an exclusive lock; busy: somebody is.
free() { belay "$1" lock "$2" -x -n -- true; }
busy() {
	free "$@"
	[ $? -eq 1 ]
}
# not_granted NODE NAME OPTION...: 1, busy; or 5, the cluster cannot decide now.
not_granted() {
	belay "$1" lock "$2" -x "${@:3}" -- true
	case $? in 1 | 5) ;; *) return 1 ;; esac
}
status() { belay "$1" status --json; }
