#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Programs under the preload library that make processes, and end descriptors, in other ways
# than by fork() and close(). Each is a function of the program below; what must hold is told
# by the number of its line, and holds by the kernel's own locks, too.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}" "${top_builddir:=.}"
# shellcheck source=tests/ipc/shim_common.sh
. "$top_srcdir/tests/ipc/shim_common.sh"

program_source() {
	cat <<-'C'
	#define _GNU_SOURCE
	#include <dirent.h>
	#include <errno.h>
	#include <fcntl.h>
	#include <sched.h>
	#include <signal.h>
	#include <spawn.h>
	#include <stdio.h>
	#include <stdlib.h>
	#include <string.h>
	#include <sys/file.h>
	#include <sys/syscall.h>
	#include <sys/wait.h>
	#include <unistd.h>

	#define MUST(what) do { if (!(what)) { dprintf(2, "%d: " #what ": %m\n", __LINE__); _exit(9); } } while (0)

	extern char **environ;
	static const char *path, *other;

	static int fresh(const char *name)
	{
		int fd = open(name, O_RDWR);

		MUST(fd >= 0);
		return fd;
	}

	static int lock(int fd, short type)
	{
		struct flock l = { .l_type = type, .l_whence = SEEK_SET, .l_len = 1 };

		return fcntl(fd, F_SETLK, &l);
	}

	static void await(pid_t child)
	{
		int status;

		MUST(child > 0 && waitpid(child, &status, 0) == child && status == 0);
	}

	/* Could another process lock it? By flock() if @whole. */
	static int is_free(const char *name, int whole)
	{
		pid_t child = fork();
		int status, fd;

		if (child == 0) {
			fd = fresh(name);
			_exit((whole ? flock(fd, LOCK_EX | LOCK_NB) : lock(fd, F_WRLCK)) < 0);
		}
		MUST(waitpid(child, &status, 0) == child && WIFEXITED(status));
		return WEXITSTATUS(status) == 0;
	}

	static void execute(void)
	{
		pid_t child = vfork();

		if (child == 0) {
			dup2(2, 30);
			close(30);
			execlp("true", "true", NULL);
			_exit(8);
		}
		await(child);
	}

	/* What a child of the right kind must be able to do: lock, and give up. */
	static void live(void)
	{
		int fd = fresh(path), again = fresh(path);

		MUST(lock(fd, F_WRLCK) == 0 && !is_free(path, 0));
		close(again);
		MUST(is_free(path, 0));
		MUST(flock(fd, LOCK_EX) == 0 && !is_free(path, 1));
		close(fd);
		MUST(is_free(path, 1));
	}

	/* The first that a child does is to make one by vfork(). */
	static void child_executes(void)
	{
		int fd = fresh(other);
		pid_t child;

		MUST(lock(fd, F_WRLCK) == 0);
		child = fork();
		if (child == 0) {
			execute();
			live();
			_exit(0);
		}
		await(child);
		MUST(!is_free(other, 0));
		execute();
		MUST(!is_free(other, 0));
		live();
	}

	static void child_spawns(void)
	{
		char *argv[] = { "true", NULL };
		posix_spawn_file_actions_t actions;
		int fd = fresh(other);
		pid_t child, spawned;

		MUST(lock(fd, F_WRLCK) == 0);
		posix_spawn_file_actions_init(&actions);
		posix_spawn_file_actions_addclose(&actions, fd);
		posix_spawn_file_actions_adddup2(&actions, 2, 30);
		child = fork();
		if (child == 0) {
			MUST(posix_spawnp(&spawned, "true", &actions, NULL, argv, environ) == 0);
			await(spawned);
			live();
			_exit(0);
		}
		await(child);
		MUST(posix_spawnp(&spawned, "true", &actions, NULL, argv, environ) == 0);
		await(spawned);
		MUST(!is_free(other, 0));
		live();
	}

	/* As fork(), but the C library does not know of it. */
	static void raw_fork(void)
	{
		int fd = fresh(other);
		pid_t child;

		MUST(lock(fd, F_WRLCK) == 0);
		child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
		if (child == 0) {
			MUST(lock(fresh(other), F_WRLCK) < 0);
			live();
			_exit(0);
		}
		await(child);
		MUST(!is_free(other, 0));
	}

	static const struct {
		const char *name;
		void (*run)(void);
	} odd[] = {
		{ "a child whose first act is vfork()", child_executes },
		{ "or posix_spawn()", child_spawns },
		{ "a child made without the C library", raw_fork },
	};

	int main(int argc, char **argv)
	{
		for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
			if (argc < 4)
				puts(odd[i].name);
			else if (strcmp(argv[1], odd[i].name) == 0) {
				path = argv[2];
				other = argv[3];
				odd[i].run();
				return 0;
			}
		}
		return argc < 4 ? 0 : 7;
	}
	C
}

# $CC may be several words.
# shellcheck disable=SC2086
program_source | ${CC:-cc} -O1 -x c -o "$dir/odd" - || bail_out "no compiler, or no program"
check "belayd starts" start_daemon || bail_out "no belayd"
touch "$dir/files/a" "$dir/files/b" "$dir/elsewhere/a" "$dir/elsewhere/b"
while read -r odd; do
	check "by the kernel: $odd" timeout 60 "$dir/odd" "$odd" "$dir/elsewhere/a" "$dir/elsewhere/b"
	check "by belay: $odd" shim timeout 60 "$dir/odd" "$odd" "$dir/files/a" "$dir/files/b"
	check "elsewhere: $odd" shim timeout 60 "$dir/odd" "$odd" "$dir/elsewhere/a" "$dir/elsewhere/b"
done < <("$dir/odd")
check "nothing is left" gives 0 '^0 held, 0 waiting' "$belay" locks
done_testing
