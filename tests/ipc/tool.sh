#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# belay(1) against a real belayd without a cluster: what it prints, what it
# does, and with which status it ends.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}" "${top_builddir:=.}"
# shellcheck source=tests/tap.sh
. "$top_srcdir/tests/tap.sh"

build=$(readlink -f "$top_builddir")
# The program itself, not libtool's wrapper: a pid should be belay's.
belay=$build/tools/.libs/belay
[ -x "$belay" ] || belay=$build/tools/belay
export LD_LIBRARY_PATH=$build/lib/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
dir=$(mktemp -d "${TMPDIR:-/tmp}/belay-tool.XXXXXX") || bail_out "no temporary directory"
export BELAY_SOCKET=$dir/socket
daemon=

clean_up() {
	[ -z "$daemon" ] || kill -KILL "$daemon" 2>/dev/null
	[ "$tap_failed" -eq 0 ] || sed 's/^/# belayd: /' "$dir/log" 2>/dev/null
	rm -rf "$dir"
}
trap clean_up EXIT

mkdir "$dir/files"
cat >"$dir/belay.conf" <<E
[belayd]
socket = $dir/socket
journal = $dir/journal
journal_kb = 256
log_target = stderr
[lockspace files]
path = $dir/files
[lockspace other]
E

# It says when it serves; nobody has to guess.
start_daemon() {
	local line
	exec {said}< <(exec "$build/daemon/belayd" --standalone --foreground -c "$dir/belay.conf" 2>&1)
	daemon=$!
	while read -r -t 30 -u "$said" line; do
		echo "$line" >>"$dir/log"
		case $line in *thawed*) cat <&"$said" >>"$dir/log" & return 0 ;; esac
	done
	return 1
}
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

# ---- usage ----

check "help" gives 0 'SUBCOMMAND' "$belay" --help
check "version" gives 0 '^belay [0-9]' "$belay" --version
check "nothing at all is wrong" gives 2 'subcommand is missing' "$belay"
check "no such subcommand" gives 2 'no such subcommand: cook' "$belay" cook
check "no such option" gives 2 'unknown option --cook' "$belay" --cook
for command in status locks lock run bench fence-ack dump replay; do
	check "help of $command" gives 0 "^Usage: belay $command" "$belay" "$command" --help
	check "help $command" gives 0 "^Usage: belay $command" "$belay" help "$command"
	check "$command with an unknown option" gives 2 'unknown option --cook' "$belay" "$command" --cook
	check "belay --help tells of $command" gives 0 "^  $command " "$belay" --help
done
check "lock without a command" gives 2 'COMMAND is missing' "$belay" lock name
check "status with too much" gives 2 'too many' "$belay" status more
check "fence-ack without a node" gives 2 'NODE' "$belay" fence-ack
check "fence-ack without a person" gives 2 'person' "$belay" fence-ack 3

# ---- belayd does not run ----

for command in status locks "lock name true" "bench --name x 3" dump "fence-ack --yes 3"; do
	# Words of a command line.
	# shellcheck disable=SC2086
	check "unreachable: $command" gives 3 "$dir/socket: belayd does not run" "$belay" $command
done
check "--socket names another" gives 3 "/nonexistent" "$belay" --socket /nonexistent status

# ---- lock ----

check "belayd starts" start_daemon
check "the command's output comes through" gives 0 '^hello$' "$belay" lock name -- echo hello
check "and its status" gives 7 '' "$belay" lock name -- sh -c 'exit 7'
check "also when a signal ended it" gives 143 '' "$belay" lock name -- sh -c 'kill -TERM $$'
check "a command that is not there" gives 127 'no-such-command: No such file' "$belay" lock name no-such-command
check "a shell's command" gives 0 '^a b$' "$belay" lock name -c 'echo a b'
# The dollar is the command's.
# shellcheck disable=SC2016
token() { "$belay" lock name -c 'echo $BELAY_TOKEN'; }
check "tokens grow" test "$(token)" -lt "$(token)"

nested() { "$belay" lock name "$1" -- "$belay" lock "${@:2}" -- true; }
check "busy" gives 1 '^$' nested -x name -n
check "busy, with a status of one's own" gives 75 '^$' nested -x name -n -E 75
check "even 0, and the command is not run" gives 0 '^$' "$belay" lock name -- "$belay" lock name -n -E 0 -- echo ran
check "busy for a while" gives 1 '^$' nested -x name -w 0.2
check "shared excludes exclusive" gives 1 '^$' nested -s name -n -x
check "shared is shared" gives 0 '' nested -s name -n -s
check "another name" gives 0 '' nested -x other -n
check "the same name in another lockspace" gives 0 '' nested -x other:name -n
check "the default lockspace, spelt out" gives 1 '' nested -x default:name -n
check "a lockspace that is not there" gives 4 'no such lockspace' "$belay" lock nowhere:name true
check "an empty name" gives 2 'name has' "$belay" lock other: true

touch "$dir/files/a" "$dir/files/b"
in_file() { "$belay" lock "$dir/files/a" "$1" -- "$belay" lock "${@:2}" -- true; }
check "a file" gives 0 '' in_file -x "$dir/files/b" -n
check "the same file" gives 1 '' in_file -x "$dir/files/a" -n
ln "$dir/files/a" "$dir/files/hard"
check "by another path" gives 1 '' in_file -x "$dir/files/hard" -n
check "a name like the path is another lock" gives 0 '' in_file -x --name "$dir/files/a" -n
check "fcntl's locks and flock's do not meet" gives 0 '' in_file -x --fcntl "$dir/files/a" -n
check "a directory" gives 4 'cannot open|not a regular file' "$belay" lock "$dir/files" -s true
check "a file that is not there" gives 4 'no file' "$belay" lock "$dir/files/none" true
check "and shall be one" gives 4 'cannot open' "$belay" lock --file none true

# ---- too few descriptors to watch both the lock and the command ----

limited() { # DESCRIPTORS COMMAND...: under a lock, by a belay that may have so many
	(ulimit -n "$1" && exec timeout -k 1 30 "$belay" lock limited -- "${@:2}")
}
enough=4	# 0 to 2, and one for the program's libraries
until limited "$enough" true 2>/dev/null; do
	[ "$enough" -lt 100 ] || bail_out "no number of descriptors is enough"
	enough=$((enough + 1))
done
check "one too few: its command is killed" gives 4 'limited: the command was killed.*Too many' \
	limited $((enough - 1)) sleep infinity
check "two too few: it is not run" gives 4 'limited: the command was not run.*Too many' \
	limited $((enough - 2)) touch "$dir/ran"
check "not at all" test ! -e "$dir/ran"
check "and the lock is free" gives 0 '' "$belay" lock limited -n true

# ---- a holder that is told to end, that dies, that loses the lock ----

mkfifo "$dir/got"
# holder OPTION...: a command that never ends by itself, under the lock "held".
holder() {
	# The command's own dollars.
	# shellcheck disable=SC2016
	"$belay" lock held "$@" -- sh -c 'echo $$ >"$0"; exec sleep infinity' "$dir/got" >"$dir/holder.out" 2>&1 &
	holder=$!
	read -r command_pid <"$dir/got"
}
gone() { tail -f --pid="$1" /dev/null; }

holder
check "it holds" gives 1 '' "$belay" lock held -n true
kill -TERM "$holder"
wait "$holder"
is $? 143 "a signal goes to the command, whose status comes back"
check "and the lock is free" gives 0 '' "$belay" lock held -n true

holder
kill -KILL "$holder"
wait "$holder" 2>/dev/null
check "if belay is killed, its command ends" timeout 30 tail -f --pid="$command_pid" /dev/null
check "and the lock is free" gives 0 '' "$belay" lock held -w 30 true

holder
stop_daemon KILL
wait "$holder"
is $? 4 "if belayd dies, the command is ended, and it is told"
check "with words" grep -q 'the lock is LOST' "$dir/holder.out"

check "belayd starts again" start_daemon
holder --on-loss warn
stop_daemon KILL
check "or told that it goes on" eventually grep -q 'goes on without it' "$dir/holder.out"
check "if only a warning is wanted" kill -0 "$command_pid"
kill -TERM "$command_pid"
wait "$holder"
is $? 143 "the command's status counts then"
check "belayd starts again" start_daemon

# ---- status and locks ----

narrow() {
	local output
	output=$("$@") && ! printf '%s\n' "$output" | grep -E '^.{81}'
}
check "status" gives 0 'node 1 .*standalone.*quorate, synced' "$belay" status
check "within 80 columns" narrow "$belay" status
check "status as JSON" gives 0 '"synced": ?true' "$belay" status --json
watched() { timeout -s INT 5 "$belay" status --watch 0.1 | grep -m 3 -c quorate; }
is "$(watched)" 3 "again and again"
check "at a pace that makes no sense" gives 2 'at least' "$belay" status --watch=0

check "no locks" gives 0 '^0 held, 0 waiting$' "$belay" locks
check "a lock on a name" gives 0 '^default:name ' "$belay" lock name "$belay" locks
check "who holds it" gives 0 'holds +EX all +node 1 pid [0-9]+ ofd' "$belay" lock name "$belay" locks
check "a lock on a file, by its path" gives 0 "^$dir/files/a " "$belay" lock "$dir/files/a" "$belay" locks
check "shared" gives 0 'holds +SH all +node 1 pid [0-9]+ flock' "$belay" lock -s "$dir/files/a" "$belay" locks
check "a pattern finds" gives 0 '^1 held' "$belay" lock name "$belay" locks 'n*'
check "a pattern of lockspace and name" gives 0 '^1 held' "$belay" lock name "$belay" locks 'default:*'
check "a pattern passes over" gives 0 '^0 held' "$belay" lock name "$belay" locks 'm*'
check "as JSON" gives 0 '"mode": ?"EX"' "$belay" lock name "$belay" locks --json
holder
"$belay" lock held true &
waiter=$!
check "another waits" eventually gives 0 '1 waiting' "$belay" locks held
check "a waiter" gives 0 'waits +EX all +node 1' "$belay" locks
check "is counted" gives 0 'locks +1 held .*1 waiting' "$belay" status
kill -TERM "$command_pid"
wait "$holder"
wait "$waiter"
is $? 0 "and gets its lock"

# ---- dump and replay ----

check "dump" gives 0 '' "$belay" dump "$dir/dump"
check "never over another file" gives 4 'exists' "$belay" dump "$dir/dump"
check "dump without a name tells where it is" gives 0 "^$dir/journal\\." "$belay" dump
check "replay" gives 0 'events, [0-9]+ actions' "$belay" replay --check "$dir/dump"
check "shows events" gives 0 'lock [0-9a-f]+:6e616d65' "$belay" replay --events "$dir/dump"
check "and what the core answers" gives 0 '-> reply client' "$belay" replay "$dir/dump"
check "nothing else of that" gives 0 '^[0-9]+ events' "$belay" replay -q "$dir/dump"
head -c 5000 "$dir/dump" >"$dir/short"
head -c 2000000 /dev/urandom >"$dir/noise"
check "a file cut short" gives 4 'damaged' "$belay" replay "$dir/short"
check "noise" gives 4 'no flight recorder' "$belay" replay "$dir/noise"
check "an empty file" gives 4 'no flight recorder' "$belay" replay /dev/null
check "no file" gives 4 'No such file' "$belay" replay "$dir/none"
check "the journal of a belayd that runs" gives 0 'events' "$belay" replay --events "$dir/journal"

# ---- bench ----

value() { # FIELD COMMAND...: of the JSON
	local field=$1
	shift
	"$@" | grep -oE "\"$field\": *[0-9.]+" | grep -oE '[0-9.]+$'
}
positive() { awk -v x="${1:-0}" 'BEGIN { exit !(x > 0) }'; }
quick=(--seconds 0.3 --json)
runs() { positive "$(value locks_per_sec "$belay" bench "$@" "${quick[@]}")"; }	# OPTION...
for field in locks_per_sec p50_us p99_us cycles; do
	check "bench tells $field" positive "$(value $field "$belay" bench --name bench 3 "${quick[@]}")"
done
for via in belay fcntl ofd flock; do
	check "bench by $via" runs --via "$via" "$dir/files/bench" 3 -c
done
for io in -rw "-rw -m"; do
	# shellcheck disable=SC2086
	is "$(value data_increment "$belay" bench $io "$dir/files/bench" 3 --threads 2 "${quick[@]}")" 2 \
		"bench $io of two threads: each sees the other's writes"
done
check "bench of 16 clients" runs --name bench --clients 16
check "bench beside 100 ranges" runs --name bench 3 --ranges 100
check "bench shared" runs --name bench 3 --shared
check "bench in words" gives 0 'locks/sec' "$belay" bench --name bench 3 --seconds 0.3
check "bench of a file that cannot be" gives 4 'nonexistent' "$belay" bench /nonexistent/file 3
"$belay" bench --name bench 3 >"$dir/bench.out" &
bench=$!
check "bench tells how far it is" eventually grep -q 'locks/sec' "$dir/bench.out"
kill -INT "$bench"
wait "$bench"
is $? 0 "an interrupted bench ends well"
check "with its figures" grep -q '99 of 100' "$dir/bench.out"

# ---- fence-ack ----

check "a node that is not there" gives 4 'no such node' "$belay" fence-ack --yes 77
check "a node that is a member" gives 4 'is a member' "$belay" fence-ack --yes 1
if command -v script >/dev/null; then
	asked() { script -qec "$belay fence-ack 77" /dev/null <<<"$1"; }
	check "a person is asked, and says no" gives 0 'WILL BE CORRUPTED' eval 'asked no; [ $? -eq 1 ]'
	check "or yes" gives 4 'no such node' asked yes
else
	skip "a person is asked" "no script(1)"
fi

# ---- belayd hangs ----

holder
timeout 60 "$belay" lock held -w 4 true 2>"$dir/undecided" &
waiter=$!
check "another waits, not for ever" eventually gives 0 '1 waiting' "$belay" locks held
kill -STOP "$daemon"
wait "$waiter"
is $? 5 "its time is over while belayd cannot say whether the lock is free"
check "it says so" grep -q 'held: belayd cannot decide whether the lock is free: see belay status' "$dir/undecided"
kill -CONT "$daemon"
check "its request is withdrawn" eventually gives 0 '^1 held, 0 waiting' "$belay" locks held
kill -TERM "$command_pid"
wait "$holder"

watched_in_vain() { # its answers come, and then do not
	local line
	exec {watch}< <(exec "$belay" status --watch 0.1 2>&1)
	read -r -t 30 -u "$watch" line && kill -STOP "$daemon" && timeout 60 cat <&"$watch"
}
check "a belayd that stops answering" gives 0 'status: belayd does not answer: it hangs' watched_in_vain
check "one that does not from the start" gives 3 'belayd does not answer: it hangs' timeout 60 "$belay" status
kill -CONT "$daemon"
check "it goes on" gives 0 '' "$belay" status

stop_daemon TERM
check "and of one that does not, and has lost its beginning" gives 0 'events' "$belay" replay --events "$dir/journal"
check "a core cannot start in the middle" gives 4 'overwritten' "$belay" replay "$dir/journal"

# ---- belayd in the background ----

sed '/^log_target/d' "$dir/belay.conf" >"$dir/background.conf"
background() { "$build/daemon/belayd" --standalone -c "$dir/background.conf"; }
in_silence() { # and its process is ours to end
	local said
	said=$(background 2>&1) || { echo "$said"; return 1; }
	daemon=$(cat "$dir/socket.lock")
	[ -z "$said" ] || { echo "$said"; return 1; }
}
check "belayd goes to the background, and says nothing" in_silence
check "it serves" gives 0 'synced' "$belay" status
check "another one says why it does not" gives 4 "another belayd \\(process $daemon\\)" background
stop_daemon TERM
sed -i "s,^socket = .*,socket = $dir/nowhere/deep/socket," "$dir/background.conf"
check "so does one that cannot start" gives 5 'nowhere/deep.* Make it' background
check "and that it did not" gives 5 '^belayd: could not start' background
printf '[lvm]\nsocket = %s\npid_file = %s\n' "$dir/lvm.socket" "$dir/nowhere/deep/pid" >>"$dir/background.conf"
background() { "$build/lvmlockd/belay-lvmlockd" -c "$dir/background.conf"; }
check "belay-lvmlockd says, too, why it cannot" gives 5 'pid file .*nowhere/deep/pid' background
done_testing
