# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# What programs do that lock, for the tests of the preload library on one node and on
# several. Of each piece of work:
#
#	WORK_there		can it be done here?
#	WORK_begin DIR		make its files
#	WORK_do DIR NUMBER	one of those who do it at a time
#	WORK_right DIR COUNT	so many have done it: are the data right?

# shellcheck disable=SC2034
works=(ping_pong python_lockf python_flock perl_fcntl perl_flock tdb sqlite_journal sqlite_wal)

# Who is done before the others begin has proved nothing: all begin together.
work_do() { # WORK DIR NUMBER
	: >"$2/ready.$3"
	until [ -e "$2/go" ]; do sleep 0.01; done
	"$1_do" "$2" "$3"
}
work_go() { # DIR COUNT
	local end=$((SECONDS + 60))
	until [ "$(find "$1" -name 'ready.*' | wc -l)" -eq "$2" ] || [ "$SECONDS" -gt "$end" ]; do sleep 0.02; done
	: >"$1/go"
}

# make_nolock FILE: a library under which locking always works, and does nothing.
make_nolock() {
	# $CC may be several words.
	# shellcheck disable=SC2086
	${CC:-cc} -shared -fPIC -x c -o "$1" - <<-'C'
		#define _GNU_SOURCE
		#define fcntl64 not_this
		#include <fcntl.h>
		#undef fcntl64
		#include <stdarg.h>
		#include <sys/syscall.h>
		#include <unistd.h>
		int fcntl(int fd, int cmd, ...)
		{
			va_list args;
			void *arg;

			va_start(args, cmd);
			arg = va_arg(args, void *);
			va_end(args);
			if (cmd == F_SETLK || cmd == F_SETLKW)
				return 0;
			if (cmd == F_GETLK) {
				((struct flock *)arg)->l_type = F_UNLCK;
				return 0;
			}
			return (int)syscall(SYS_fcntl, fd, cmd, arg);
		}
		int fcntl64(int fd, int cmd, void *arg) { return fcntl(fd, cmd, arg); }
		int flock(int fd, int operation) { return 0; }
	C
}

# ---- ping_pong of ctdb: bytes handed round; each finds what the others added ----

ping_pong_there() { command -v ping_pong >/dev/null; }
ping_pong_begin() { rm -f "$1"/pp.*; }
# Its locks are checked (-c), by F_GETLK.
ping_pong_do() {
	timeout 6 ping_pong -rwc "$1/pp" 5 >"$1/pp.out.$2" 2>&1
	[ $? -eq 124 ]
}
# Nobody overtakes: between two visits of one of them each byte has grown by as many as take
# part. By less at the start and the end, never by more.
ping_pong_right() {
	local i increments
	for ((i = 1; i <= $2; i++)); do
		increments=$(tr '\r' '\n' <"$1/pp.out.$i" | sed -n 's/^ *data increment = \([0-9]*\).*/\1/p')
		grep -qx "$2" <<<"$increments" && awk -v n="$2" '$1 > n { exit 1 }' <<<"$increments" &&
			! grep -qi failed "$1/pp.out.$i" || { cat "$1/pp.out.$i"; return 1; }
	done
}

# ---- a number in a file: read, wait a little, add one, write ----

rounds=200
number_begin() { echo 0 >"$1/number"; }
number_right() {
	local number
	number=$(cat "$1/number")
	[ "$number" = $(($2 * rounds)) ] || { echo "$number, not $(($2 * rounds))"; return 1; }
}
python_there() { python3 -c 'import fcntl' 2>/dev/null; }
python_number() { # LOCK UNLOCK
	python3 -c '
import fcntl, os, sys, time
fd = os.open(sys.argv[1] + "/number", os.O_RDWR)
for i in range(int(sys.argv[2])):
    '"$1"'
    n = int(os.pread(fd, 20, 0))
    time.sleep(0.0002)
    os.pwrite(fd, b"%d\n" % (n + 1), 0)
    '"$2"'
' "$3" "$rounds"
}
python_lockf_there() { python_there; }
python_lockf_begin() { number_begin "$@"; }
python_lockf_do() {
	python_number 'fcntl.lockf(fd, fcntl.LOCK_EX, 10, 3)' 'fcntl.lockf(fd, fcntl.LOCK_UN, 10, 3)' "$1"
}
python_lockf_right() { number_right "$@"; }
python_flock_there() { python_there; }
python_flock_begin() { number_begin "$@"; }
python_flock_do() { python_number 'fcntl.flock(fd, fcntl.LOCK_EX)' 'fcntl.flock(fd, fcntl.LOCK_UN)' "$1"; }
python_flock_right() { number_right "$@"; }

perl_there() { perl -MFcntl -e 1 2>/dev/null; }
perl_number() { # LOCK UNLOCK DIR
	perl -e 'use strict; use Fcntl qw(:DEFAULT :flock SEEK_SET);
		# Perl has no words for struct flock.
		sub l { pack("s s x4 q q l x4", $_[0], SEEK_SET, 0, 1, 0) }
		sysopen(my $f, "$ARGV[0]/number", O_RDWR) or die $!;
		for (1 .. $ARGV[1]) {
			'"$1"' or die "lock: $!";
			sysseek($f, 0, 0);
			sysread($f, my $n, 20);
			select(undef, undef, undef, 0.0002);
			sysseek($f, 0, 0);
			syswrite($f, ($n + 1) . "\n");
			'"$2"' or die "unlock: $!";
		}' "$3" "$rounds"
}
# The inner dollars are Perl's.
# shellcheck disable=SC2016
perl_fcntl_do() { perl_number 'fcntl($f, F_SETLKW, l(F_WRLCK))' 'fcntl($f, F_SETLK, l(F_UNLCK))' "$1"; }
perl_fcntl_there() { perl_there; }
perl_fcntl_begin() { number_begin "$@"; }
perl_fcntl_right() { number_right "$@"; }
# shellcheck disable=SC2016
perl_flock_do() { perl_number 'flock($f, LOCK_EX)' 'flock($f, LOCK_UN)' "$1"; }
perl_flock_there() { perl_there; }
perl_flock_begin() { number_begin "$@"; }
perl_flock_right() { number_right "$@"; }

# ---- tdb: many processes, chains and transactions ----

tdb_there() { python3 -c 'import tdb' 2>/dev/null && command -v tdbtool >/dev/null; }
tdb_begin() {
	rm -f "$1/t.tdb"
	python3 -c 'import os, sys, tdb
tdb.open(sys.argv[1], 0, 0, os.O_RDWR | os.O_CREAT)[b"n"] = b"0"' "$1/t.tdb"
}
tdb_do() {
	python3 -c '
import os, random, sys, tdb
db = tdb.Tdb(sys.argv[1], 0, 0, os.O_RDWR)
for i in range(150):
    if i % 3:
        db.transaction_start()
    else:
        db.lock_all()
    db[b"n"] = b"%d" % (int(db[b"n"]) + 1)
    # Records of one own, of all sizes, come and go: that moves the free list.
    db[b"%s %d" % (sys.argv[2].encode(), i)] = b"x" * random.randrange(300)
    if i >= 20:
        db.delete(b"%s %d" % (sys.argv[2].encode(), i - 20))
    if i % 3:
        db.transaction_commit()
    else:
        db.unlock_all()
' "$1/t.tdb" "$2"
}
tdb_right() {
	local n
	tdbtool "$1/t.tdb" check | grep -q 'integrity is OK' || { echo "tdb is damaged"; return 1; }
	n=$(python3 -c 'import os, sys, tdb
db = tdb.Tdb(sys.argv[1], 0, 0, os.O_RDWR)
print(int(db[b"n"]), len(list(db.keys())))' "$1/t.tdb")
	[ "$n" = "$(($2 * 150)) $((1 + $2 * 20))" ] || { echo "$n"; return 1; }
}

# ---- sqlite3: concurrent writers ----

inserts=120
sqlite_begin() { # DIR JOURNAL
	rm -f "$1"/s.db*
	sqlite3 "$1/s.db" "PRAGMA journal_mode=$2; CREATE TABLE t(who INTEGER, i INTEGER, filler TEXT);
		CREATE INDEX x ON t(who, i); CREATE TABLE n(n INTEGER); INSERT INTO n VALUES(0);" >"$1/s.out"
}
sqlite_do() { # DIR WHO
	local i
	{
		# Time is no matter, waiting is.
		printf '.timeout 120000\n.bail on\nPRAGMA synchronous=OFF;\n'
		for ((i = 1; i <= inserts; i++)); do
			printf "BEGIN IMMEDIATE; UPDATE n SET n = n + 1;\n"
			printf "INSERT INTO t VALUES(%d, %d, hex(randomblob(200)));\n" "$2" "$i"
			printf "SELECT sum(i) FROM t WHERE who = %d; COMMIT;\n" "$2"
		done
	} | sqlite3 "$1/s.db" >"$1/s.out.$2" 2>"$1/s.err.$2" || { cat "$1/s.err.$2"; return 1; }
}
sqlite_right() { # DIR COUNT
	local got
	got=$(sqlite3 "$1/s.db" "PRAGMA integrity_check; SELECT n FROM n; SELECT count(*) FROM t;
		SELECT count(DISTINCT who * 1000 + i) FROM t;" 2>&1 | tr '\n' ' ')
	[ "$got" = "ok $(($2 * inserts)) $(($2 * inserts)) $(($2 * inserts)) " ] || { echo "$got"; return 1; }
}
sqlite_there() { command -v sqlite3 >/dev/null; }
sqlite_journal_there() { sqlite_there; }
sqlite_journal_begin() { sqlite_begin "$1" delete; }
sqlite_journal_do() { sqlite_do "$@"; }
sqlite_journal_right() { sqlite_right "$@"; }
sqlite_wal_there() { sqlite_there; }
sqlite_wal_begin() { sqlite_begin "$1" wal; }
sqlite_wal_do() { sqlite_do "$@"; }
sqlite_wal_right() { sqlite_right "$@"; }
