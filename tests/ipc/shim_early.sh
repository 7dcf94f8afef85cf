#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The preload library before its own constructor has run: those of the libraries that a
# program is linked with come first, and they open, lock, close and execute. libselinux's
# does so in ls, sed, cp and many more.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}" "${top_builddir:=.}"
# shellcheck source=tests/ipc/shim_common.sh
. "$top_srcdir/tests/ipc/shim_common.sh"

# compile ARGUMENT...: a program from the standard input
compile() {
	# $CC may be several words.
	# shellcheck disable=SC2086
	${CC:-cc} -pthread -x c - -x none "$@"
}

# The same calls by the constructor, by a thread of it, by main() and by the destructor; what does
# not work is told by the number of its line.
library_source() {
	cat <<-'C'
	#define _GNU_SOURCE
	#include <fcntl.h>
	#include <pthread.h>
	#include <stdio.h>
	#include <stdlib.h>
	#include <sys/file.h>
	#include <sys/wait.h>
	#include <unistd.h>

	#define MUST(what) do { if (!(what)) { dprintf(2, "%d: " #what ": %m\n", __LINE__); _exit(9); } } while (0)

	static void lock(int fd, int kind, int start)
	{
		struct flock l = { .l_type = kind, .l_whence = SEEK_SET, .l_start = start, .l_len = 1 };

		MUST(fcntl(fd, F_SETLK, &l) == 0);
	}

	static void run(void)
	{
		pid_t child = fork();
		int status;

		if (child == 0) {
			execlp("no-such-program-at-all", "no", NULL);
			execvp("true", (char *[]){ "true", NULL });
			_exit(8);
		}
		MUST(waitpid(child, &status, 0) == child && status == 0);
		child = vfork();
		if (child == 0) {
			execlp("true", "true", NULL);
			_exit(8);
		}
		MUST(waitpid(child, &status, 0) == child && status == 0);
	}

	static void *early(void *path)
	{
		FILE *f = fopen(path, "r+"), *g = fopen(path, "r+"), *h = fopen(path, "r+");
		int fd = open(path, O_RDWR), copy;

		MUST(f && g && h && fd >= 0);
		MUST((f = freopen(path, "r+", f)));
		MUST((g = freopen64(path, "r+", g)));
		lock(fileno(f), F_WRLCK, 5);
		MUST(flock(fd, LOCK_SH | LOCK_NB) == 0);
		MUST((f = freopen(path, "r+", f)) && (g = freopen64(path, "r+", g)));
		MUST(fclose(f) == 0 && fclose(g) == 0 && fclose(h) == 0);
		MUST((copy = dup(fd)) >= 0 && dup2(fd, copy) == copy && dup3(fd, copy, O_CLOEXEC) == copy);
		MUST(close(copy) == 0);
		MUST((copy = fcntl(fd, F_DUPFD_CLOEXEC, 50)) >= 50 && lockf(copy, F_TLOCK, 1) == 0);
		MUST(close_range(copy, copy, 0) == 0 && close(fd) == 0);
		run();
		return NULL;
	}

	__attribute__((constructor)) static void begin(void)
	{
		char *path = getenv("EARLY");
		pthread_t thread;

		early(path);
		MUST(pthread_create(&thread, NULL, early, path) == 0);
		MUST(pthread_join(thread, NULL) == 0);
		MUST(flock(open(path, O_RDWR), LOCK_SH) == 0);
	}

	void in_main(void)
	{
		early(getenv("EARLY"));
	}

	__attribute__((destructor)) static void end(void)
	{
		early(getenv("EARLY"));
	}
	C
}
program_source() {
	cat <<-'C'
	#include <stdlib.h>
	void in_main(void);
	int main(int argc, char **argv)
	{
		if (argc < 2)
			in_main();
		return argc < 2 ? 0 : system(argv[1]) != 0;
	}
	C
}

mkdir "$dir/lib"
library_source | compile -shared -fPIC -o "$dir/lib/libearly.so" || bail_out "no compiler"
program_source | compile -o "$dir/early" "$dir/lib/libearly.so" -Wl,-rpath,"$dir/lib" || bail_out "no program"
check "belayd starts" start_daemon || bail_out "no belayd"
touch "$dir/files/early" "$dir/elsewhere/early"
export EARLY=$dir/files/early

check "the program works by itself" env EARLY="$dir/elsewhere/early" "$dir/early"
check "by belay, before its constructor, after its destructor" shim "$dir/early"
check "and on files elsewhere" env EARLY="$dir/elsewhere/early" LD_PRELOAD="$library" "$dir/early"
check "what a constructor locks is belay's" gives 1 '' shim "$dir/early" "$belay lock '$EARLY' -n -- true"
BELAY_SOCKET=/nonexistent check "or is refused" gives 9 'No locks available' shim "$dir/early"
# Where everything is bound at once and where it is not.
check "with every symbol bound at the start" env LD_BIND_NOW=1 LD_PRELOAD="$library" "$dir/early"
check "nothing is left" gives 0 '^0 held, 0 waiting' "$belay" locks

# ---- programs as Debian has them ----

# each COMMAND...: with the library it says what it says without it.
each() {
	local want got
	want=$("$@" 2>&1) || return 1
	got=$(shim "$@" 2>&1) || { echo "status $?: $got"; return 1; }
	[ "$got" = "$want" ] || { echo "$got"; return 1; }
}
echo text >"$dir/files/text"
check "ls" each ls -l "$dir/files"
check "find" each find "$dir/files"
check "cp" each cp -a "$dir/files/text" "$dir/files/copy"
check "sed" each sed -i 's/text/words/' "$dir/files/copy"
check "tar" each tar -cf "$dir/elsewhere/tar" -C "$dir" files
check "sort" each sort "$dir/files/copy"
check "which it did" grep -q words "$dir/files/copy"
done_testing
