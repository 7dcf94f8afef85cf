# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2034
#
# For the tests of the preload library on one node: a belayd, and programs under it.
: "${top_srcdir:=.}" "${top_builddir:=.}"
# shellcheck source=tests/tap.sh
. "$top_srcdir/tests/tap.sh"

build=$(readlink -f "$top_builddir")
library=$build/lib/.libs/libbelay-preload.so
belay=$build/tools/.libs/belay
[ -x "$belay" ] || belay=$build/tools/belay
[ -e "$library" ] || skip_all "the preload library is not built"
# It would need the sanitizers' own library before it, in programs that have none of it.
if [ -n "${INSTRUMENTED:-}" ]; then skip_all "an instrumented library cannot be preloaded"; fi
export LD_LIBRARY_PATH=$build/lib/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
dir=$(mktemp -d "${TMPDIR:-/tmp}/belay-shim.XXXXXX") || bail_out "no temporary directory"
export BELAY_SOCKET=$dir/socket BELAY_PRELOAD_PATHS=$dir/files
unset BELAY_PRELOAD_ON_UNREACHABLE
daemon=

clean_up() {
	[ -z "$daemon" ] || kill -KILL "$daemon" 2>/dev/null
	[ "$tap_failed" -eq 0 ] || tail -n 30 "$dir/log" 2>/dev/null | sed 's/^/# belayd: /'
	rm -rf "$dir"
}
trap clean_up EXIT

mkdir "$dir/files" "$dir/elsewhere"
cat >"$dir/belay.conf" <<C
[belayd]
socket = $dir/socket
journal = $dir/journal
journal_kb = 256
log_target = stderr
realtime = no
[lockspace files]
path = $dir/files
C

# serving PATTERN: start it, until it says something like that.
serving() {
	local line
	exec {said}< <(exec "$build/daemon/belayd" --standalone --foreground -c "$dir/belay.conf" 2>&1)
	daemon=$!
	while read -r -t 30 -u "$said" line; do
		echo "$line" >>"$dir/log"
		# The pattern is one.
		# shellcheck disable=SC2254
		case $line in $1) cat <&"$said" >>"$dir/log" & return 0 ;; esac
	done
	return 1
}
start_daemon() { serving '*thawed*'; }
# One whose former self was killed while there were locks.
start_daemon_former() { serving '*not serving yet*'; }
stop_daemon() { # SIGNAL
	kill -"$1" "$daemon"
	tail -f --pid="$daemon" /dev/null	# it is no child of this shell: wait cannot
	daemon=
}

# gives STATUS PATTERN COMMAND...: ends with that status, and prints something like PATTERN.
gives() {
	local want=$1 pattern=$2 output status
	shift 2
	output=$("$@" 2>&1 </dev/null)
	status=$?
	printf '%s\n' "$output"
	[ "$status" -eq "$want" ] || { echo "status $status, not $want"; return 1; }
	printf '%s\n' "$output" | grep -qE -e "$pattern" || { echo "nothing like: $pattern"; return 1; }
}

# shim COMMAND...: under the library.
shim() { LD_PRELOAD=$library "$@"; }

# Perl has no words for struct flock: l(TYPE, START, LENGTH).
# shellcheck disable=SC2016
perl_lock='use Fcntl qw(:DEFAULT :flock); sub l { pack("s s x4 q q l x4", $_[0], 0, $_[1], $_[2], 0) } '
