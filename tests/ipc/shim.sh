#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The preload library: locks are as the kernel's, rule by rule; what is not ours stays the
# kernel's; and what happens when belayd is not there, or no more.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}" "${top_builddir:=.}"
# shellcheck source=tests/ipc/shim_common.sh
. "$top_srcdir/tests/ipc/shim_common.sh"

check "belayd starts" start_daemon || bail_out "no belayd"

# ---- each rule, by the kernel and by belay ----

rules=$build/tests/ipc/lock_rules
[ -x "$rules" ] || bail_out "lock_rules is not built"
by_kernel() { "$rules" "$1" "$dir/elsewhere/file" >"$dir/kernel.$1" 2>&1; }
by_belay() { shim "$rules" "$1" "$dir/files/rules" >"$dir/belay.$1" 2>&1; }
same() { # RULE
	rm -f "$dir/files/rules"
	by_kernel "$1" && by_belay "$1" || { tail -n 3 "$dir"/*."$1"; return 1; }
	diff "$dir/kernel.$1" "$dir/belay.$1" | head -n 20
	return "${PIPESTATUS[0]}"
}

while read -r rule; do
	check "as the kernel: $rule" same "$rule"
done < <("$rules" --list)

# The same comparison has to notice a library that does not lock.
for rule in random flock wait; do
	BELAY_SOCKET=/nonexistent refuse "a library without belayd is noticed: $rule" same "$rule"
done

# ---- whose locks they are ----

touch "$dir/files/a" "$dir/elsewhere/a"
lock_and() { # FILE COMMAND...: while a program under the library holds FILE by fcntl and by flock
	local file=$1
	shift
	# The inner script is Perl's.
	# shellcheck disable=SC2016
	shim perl -e "$perl_lock"'
		open(my $f, "+<", shift) or die $!;
		fcntl($f, F_SETLK, l(F_WRLCK, 3, 4)) or die "fcntl: $!\n";
		flock($f, LOCK_EX | LOCK_NB) or die "flock: $!\n";
		exit(system(@ARGV) >> 8)' "$file" "$@"
}
check "a lock of a file below the directory is belay's" lock_and "$dir/files/a" "$belay" locks
check "of bytes" gives 0 'holds +EX 3-6 .* posix' lock_and "$dir/files/a" "$belay" locks
check "of the file" gives 0 'holds +EX all .* flock' lock_and "$dir/files/a" "$belay" locks
refuse "and not the kernel's" lock_and "$dir/files/a" grep ":$(stat -c %i "$dir/files/a") " /proc/locks
elsewhere=$(stat -c %i "$dir/elsewhere/a")
check "one elsewhere is the kernel's" lock_and "$dir/elsewhere/a" grep ":$elsewhere " /proc/locks
check "and not belay's" gives 0 '^0 held' lock_and "$dir/elsewhere/a" "$belay" locks
ln -s "$dir/files" "$dir/link"
check "by whatever path it is opened" gives 0 'EX 3-6' lock_and "$dir/link/a" "$belay" locks
ln "$dir/files/a" "$dir/files/other-name"
check "by whatever name" gives 0 'EX 3-6' lock_and "$dir/files/other-name" "$belay" locks
# The inner script is Perl's.
# shellcheck disable=SC2016
check "belay lock excludes it" gives 11 'flock: Resource' "$belay" lock "$dir/files/a" -- \
	env LD_PRELOAD="$library" perl -e "$perl_lock"'open(my $f, "+<", shift) or die $!;
		flock($f, LOCK_EX | LOCK_NB) or die "flock: $!\n"' "$dir/files/a"
nested() { lock_and "$dir/files/a" "$belay" lock "$dir/files/a" -n -- true; }
check "and is excluded by it" gives 1 '' nested
check "nothing is left" gives 0 '^0 held, 0 waiting' "$belay" locks

# ---- what is not as the kernel's ----

# shellcheck disable=SC2016
inherited() { # a child locks what its parent has
	shim perl -e "$perl_lock"'
		open(my $f, "+<", shift) or die $!;
		flock($f, LOCK_EX) or die $!;
		my $child = fork();
		exit(flock($f, LOCK_EX | LOCK_NB) ? 0 : $!{EAGAIN} ? 7 : 9) unless $child;
		waitpid($child, 0);
		exit($? >> 8)' "$dir/files/a"
}
check "a child is another owner than its parent, even by an inherited descriptor" gives 7 '' inherited
# shellcheck disable=SC2016
own() { # it closes all there is, and dup2() meets one of the library's descriptors
	shim perl -MPOSIX -e "$perl_lock"'
		open(my $f, "+<", shift) or die $!;
		fcntl($f, F_SETLK, l(F_WRLCK, 0, 1)) or die $!;
		my ($own) = grep { readlink("/proc/self/fd/$_") =~ /socket/ } 3 .. 2000;
		die "no socket" unless defined $own;
		die "closed" if defined POSIX::close($own);
		die "replaced" if defined POSIX::dup2(0, $own);
		fcntl($f, F_SETLK, l(F_WRLCK, 5, 1)) or die $!;' "$dir/files/a"
}
check "the library's descriptors are none of the program's" gives 0 '' own

# ---- exec, and descriptors that are gone ----

# shellcheck disable=SC2016
executes() { # whether it holds a lock is the argument
	shim perl -e "$perl_lock"'
		use Fcntl qw(F_SETFD);
		open(my $f, "+<", $ARGV[0]) or die $!;
		fcntl($f, F_SETLK, l(F_WRLCK, 0, 1)) or die $!;
		fcntl($f, F_SETLK, l(F_UNLCK, 0, 0)) or die $! unless $ARGV[1];
		fcntl($f, F_SETFD, 0);
		exec(@ARGV[2 .. $#ARGV])' "$dir/files/a" "$@"
}
check "locks do not survive exec" gives 0 '^0 held' executes 1 "$belay" locks
check "which is said" gives 0 'perl\[[0-9]+\]: its locks end here' executes 1 true
refuse "if there are any" gives 0 'its locks end here' executes "" true

# ---- no belayd ----

# The inner script is Perl's.
# shellcheck disable=SC2016
try() { # FILE: one lock
	shim perl -e "$perl_lock"'
		open(my $f, "+<", $ARGV[0]) or die $!;
		fcntl($f, F_SETLK, l(F_WRLCK, 0, 1)) or print "failed: $!\n";
		flock($f, LOCK_EX | LOCK_NB) or print "failed: $!\n";
		system("grep", ":$ARGV[1] ", "/proc/locks")' "$1" "$(stat -c %i "$1")"
}
count() { # NUMBER PATTERN COMMAND...: so many lines of its output are like that
	local want=$1 pattern=$2 got
	shift 2
	got=$("$@" 2>&1 | tee "$dir/count" | grep -cE "$pattern")
	[ "$got" -eq "$want" ] || { echo "$got, not $want"; cat "$dir/count"; return 1; }
}
BELAY_SOCKET=/nonexistent check "without belayd each lock fails" count 2 'No locks available' try "$dir/files/a"
for what in "fail 2 failed" "fail 1 belayd:.it.does.not.run" "kernel 2 FLOCK|POSIX" "kernel 1 exclude.nobody"; do
	# shellcheck disable=SC2086
	set -- $what
	BELAY_SOCKET=/nonexistent BELAY_PRELOAD_ON_UNREACHABLE=$1 \
		check "on_unreachable = $1: $3" count "$2" "$3" try "$dir/files/a"
done
BELAY_SOCKET=/nonexistent check "others are not concerned" count 2 'FLOCK|POSIX' try "$dir/elsewhere/a"
BELAY_SOCKET=/nonexistent check "and nothing is said" count 0 'belay' try "$dir/elsewhere/a"
# shellcheck disable=SC2016
without_paths() {
	env -u BELAY_PRELOAD_PATHS LD_PRELOAD="$library" perl -e 'open(my $f, "<", shift); flock($f, 2)' "$dir/files/a"
}
check "without directories it says that it does nothing" gives 0 'BELAY_PRELOAD_PATHS is not set' without_paths
BELAY_PRELOAD_PATHS=relative:$dir/files \
	check "a directory that is none is told of" gives 0 'not a list of' try "$dir/files/a"

# A program whose stderr is a file of its own: no word may get into it.
cp /dev/null "$dir/elsewhere/database"
# shellcheck disable=SC2016
silent() {
	BELAY_SOCKET=/nonexistent shim perl -e 'close(STDERR); open(my $d, "+<", $ARGV[0]); die if fileno($d) != 2;
		open(my $f, "+<", $ARGV[1]); flock($f, 2)' "$dir/elsewhere/database" "$dir/files/a"
	[ ! -s "$dir/elsewhere/database" ]
}
check "what has to be said is not said into the program's own files" silent

# ---- belayd goes ----

keeper() { # [HELD]: a program that locks once more for each line it reads
	rm -f "$dir/in" "$dir/out"
	mkfifo "$dir/in" "$dir/out"
	exec {in}<>"$dir/in" {out}<>"$dir/out"
	# Not by shim(): what is killed has to be the program. The inner script is Perl's.
	# shellcheck disable=SC2016
	LD_PRELOAD=$library perl -e "$perl_lock"'
		$| = 1;
		open(my $f, "+<", shift) or die $!;
		open(my $g, "+<", shift) or die $!;
		fcntl($f, F_SETLK, l(F_WRLCK, 0, 1)) or die $!;
		fcntl($f, F_SETLK, l(F_UNLCK, 0, 1)) or die $! unless shift;
		print "ready\n";
		while (<STDIN>) {
			print((fcntl($g, F_SETLK, l(F_WRLCK, 7, 1)) ? "ok" : $!) . "\n");
			fcntl($g, F_SETLK, l(F_UNLCK, 7, 1));
		}' "$dir/files/a" "$dir/files/b" "$@" <"$dir/in" >"$dir/out" 2>"$dir/err" &
	keeper=$!
	hear ready
}
hear() { # TEXT: the next line it says
	local line
	read -r -t 30 -u "$out" line
	[ "$line" = "$1" ] || { echo "it says: $line"; cat "$dir/err"; return 1; }
}
again() { echo >&"$in"; hear "$1"; }
touch "$dir/files/b"
check "a program that holds nothing" keeper ""
check "locks" again ok
stop_daemon TERM
check "without belayd it cannot" again "No locks available"
check "belayd comes back" start_daemon
check "it can" again ok
kill "$keeper"; wait "$keeper" 2>/dev/null
check "a program that holds a lock" keeper 1
stop_daemon KILL
check "loses it with belayd, and every other" again "Input/output error"
check "belayd comes back" start_daemon_former
check "that changes nothing" again "Input/output error"
check "as it was told" grep -q 'locks that this process held' "$dir/err"
is "$(grep -c 'this process held' "$dir/err")" 1 "once"
kill "$keeper"; wait "$keeper" 2>/dev/null

# ---- belay run ----

run() { "$belay" run -c "$dir/belay.conf" -l "$library" "$@"; }
check "belay run sets all of it" gives 0 "^BELAY_PRELOAD_PATHS=$dir/files$" run env
check "the library" gives 0 "^LD_PRELOAD=$library$" run env
check "what to do without belayd" gives 0 '^BELAY_PRELOAD_ON_UNREACHABLE=fail$' run env
check "the socket of belay.conf" gives 0 "^BELAY_SOCKET=$dir/socket$" env -u BELAY_SOCKET \
	"$belay" run -c "$dir/belay.conf" -l "$library" env
check "an empty BELAY_SOCKET is none" gives 0 "^BELAY_SOCKET=$dir/socket$" env BELAY_SOCKET= \
	"$belay" run -c "$dir/belay.conf" -l "$library" env
refuse "for other subcommands neither" gives 3 'belayd at :' env BELAY_SOCKET= "$belay" status
check "another one" gives 0 '^BELAY_SOCKET=/x$' "$belay" --socket /x run -c "$dir/belay.conf" -l "$library" env
check "directories of its own" gives 0 "^BELAY_PRELOAD_PATHS=$dir/files:/tmp$" run --path "$dir/link" -p /tmp env
check "--fallback" gives 0 '^BELAY_PRELOAD_ON_UNREACHABLE=kernel$' run --fallback env
printf '[preload]\npaths = %s/files %s/elsewhere\non_unreachable = kernel\n' "$dir" "$dir" >"$dir/more.conf"
check "belay.conf's [preload]" gives 0 "^BELAY_PRELOAD_PATHS=$dir/files:$dir/elsewhere$" run -c "$dir/more.conf" env
check "all of it" gives 0 '^BELAY_PRELOAD_ON_UNREACHABLE=kernel$' run -c "$dir/more.conf" env
check "another library stays" gives 0 "^LD_PRELOAD=$library:libc.so.6" env LD_PRELOAD=libc.so.6 \
	"$belay" run -c "$dir/belay.conf" -l "$library" env
check "the command's status" gives 7 '' run sh -c 'exit 7'
check "a command that is not there" gives 127 'no-such-command: No such file' run no-such-command
check "one that is none" gives 126 'Permission denied' run "$dir/belay.conf"
check "no command" gives 2 'COMMAND is missing' run
check "no such library" gives 4 '/nonexistent: No such file' run -l /nonexistent true
check "no such directory" gives 4 '/nonexistent: No such file' run -p /nonexistent true
check "no directory at all" gives 4 'names no directory' run -c /dev/null true
check "a wrong belay.conf" gives 4 'relative' run -c <(printf '[preload]\npaths = relative\n') true
echo 'int main(void) { return 0; }' >"$dir/p.c"
# $CC may be several words.
# shellcheck disable=SC2086
if ${CC:-cc} -static -o "$dir/static" "$dir/p.c" 2>/dev/null; then
	check "a program that cannot be preloaded is refused" gives 4 'linked statically' run "$dir/static"
	printf '#!%s/static\n' "$dir" >"$dir/script"
	chmod +x "$dir/script"
	check "also as an interpreter" gives 4 'linked statically' run "$dir/script"
else
	skip "a static program" "no static C library"
fi
cp "$(type -P true)" "$dir/setuid"
if [ "$(id -u)" = 0 ] && chown 1 "$dir/setuid" && chmod u+s "$dir/setuid"; then
	check "nor one with other rights" gives 4 'setuid' run "$dir/setuid"
fi
# cap_net_raw, as setcap(8) writes it.
with_capability() {
	cp "$(type -P true)" "$dir/capable" && python3 -c 'import os, sys
os.setxattr(sys.argv[1], "security.capability", bytes.fromhex("01000002" "00200000" + 24 * "0"))' "$dir/capable"
}
nobody() { setpriv --reuid 65534 --clear-groups --inh-caps=-all "$@"; }
chmod 755 "$dir"
if [ "$(id -u)" = 0 ] && nobody "$belay" --version >/dev/null 2>&1 && with_capability 2>/dev/null; then
	check "root gains nothing by capabilities" gives 0 '' run "$dir/capable"
	check "others do" gives 4 'capabilities' \
		nobody "$belay" run -c "$dir/belay.conf" -l "$library" "$dir/capable"
else
	skip "a program with capabilities" "not root, or others cannot get here, or no python3"
fi
done_testing
