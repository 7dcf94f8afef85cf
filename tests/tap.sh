# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# TAP for tests in bash: source this, then
#
#	check "what must hold" COMMAND...	passes if COMMAND succeeds
#	refuse "what must not" COMMAND...	passes if COMMAND fails
#	is "$got" "$want" "what is compared"
#	skip "what" "why"
#	check "what must come" eventually COMMAND...
#	done_testing
#
# What a command printed is shown only if its check failed. Each of them
# returns whether it passed. Commands run in this shell, so that a function
# may set variables and start processes.

tap_run=0
tap_failed=0
tap_file=$(mktemp) && exec {tap_fd}<>"$tap_file" && rm "$tap_file" || exit 1
tap_file=/proc/$$/fd/$tap_fd

diag() { printf '%s\n' "$*" | sed 's/^/# /'; }

pass() {
	tap_run=$((tap_run + 1))
	printf 'ok %d - %s\n' "$tap_run" "$1"
}

fail() {
	tap_run=$((tap_run + 1))
	tap_failed=$((tap_failed + 1))
	printf 'not ok %d - %s\n' "$tap_run" "$1"
	diag "failed at ${BASH_SOURCE[2]:-?}:${BASH_LINENO[1]:-?}"
	return 1
}

check() {
	local what=$1 status
	shift
	"$@" >"$tap_file" 2>&1 </dev/null
	status=$?
	if [ "$status" -eq 0 ]; then
		pass "$what"
	else
		fail "$what"
		diag "status $status of: $*"
		sed 's/^/# /' "$tap_file"
		return 1
	fi
}

refuse() {
	local what=$1
	shift
	if "$@" >"$tap_file" 2>&1 </dev/null; then
		fail "$what"
		diag "succeeded, and should not have: $*"
		sed 's/^/# /' "$tap_file"
		return 1
	fi
	pass "$what"
}

is() {
	if [ "$1" = "$2" ]; then
		pass "$3"
	else
		fail "$3"
		diag "got:  $1"
		diag "want: $2"
		return 1
	fi
}

skip() {
	tap_run=$((tap_run + 1))
	printf 'ok %d # SKIP %s: %s\n' "$tap_run" "$1" "$2"
}

skip_all() {
	printf '1..0 # SKIP %s\n' "$1"
	exit 0
}

bail_out() {
	printf 'Bail out! %s\n' "$1"
	exit 1
}

patience=30	# seconds until something that must happen counts as not happening

# eventually COMMAND...: until it succeeds; for what no event tells.
eventually() {
	local end=$((SECONDS + patience))
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || { echo "still not after $patience s: $*"; return 1; }
		sleep 0.1
	done
}

# A script without checks fails, too.
done_testing() {
	printf '1..%d\n' "$tap_run"
	[ "$tap_run" -gt 0 ] && [ "$tap_failed" -eq 0 ]
	exit
}
