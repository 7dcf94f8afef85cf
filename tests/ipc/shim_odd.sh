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

	/* The number of a descriptor that nobody saw closed must not stand for what it was. */
	static void reuse(int was, int end)
	{
		int fd = fresh(path);

		MUST(end == 0 && fd == was);
		MUST(lock(fd, F_WRLCK) == 0 && flock(fd, LOCK_EX) == 0);
		MUST(!is_free(path, 0) && !is_free(path, 1));
		close(fd);
		MUST(is_free(path, 0) && is_free(path, 1));
	}

	static void directory(void)
	{
		DIR *dir = opendir("/");
		int fd = dirfd(dir);

		MUST(flock(fd, LOCK_SH) == 0);
		reuse(fd, closedir(dir));
	}

	/* As libuv closes. */
	static void by_number(void)
	{
		struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 7, .l_len = 1 };
		int fd = fresh(other), null, copy;

		MUST(syscall(SYS_flock, fd, LOCK_EX) == 0 && !is_free(other, 1));
		reuse(fd, (int)syscall(SYS_close, fd));
		MUST(is_free(other, 1));
		null = open("/dev/null", O_RDONLY);
		MUST(flock(null, LOCK_SH) == 0);
		reuse(null, (int)syscall(SYS_close_range, null, null, 0));

		fd = fresh(other);
		MUST(syscall(SYS_fcntl, fd, F_SETLK, &l) == 0);
		copy = (int)syscall(SYS_dup, fd);
		MUST(flock(copy, LOCK_EX) == 0 && syscall(SYS_close, fd) == 0 && !is_free(other, 1));
		MUST(syscall(SYS_dup3, 2, copy, 0) == copy && is_free(other, 1));
		close(copy);
	}

	static void others(void)
	{
		/* What is not for us, with as many arguments as there can be, and errors. */
		char in[8], out[8] = "through";
		int fds[2];

		MUST(syscall(SYS_pipe2, fds, O_CLOEXEC) == 0);
		MUST(syscall(SYS_write, fds[1], out, 8) == 8 && syscall(SYS_read, fds[0], in, 8) == 8);
		MUST(memcmp(in, out, 8) == 0 && syscall(SYS_getpid) == getpid());
		MUST(syscall(SYS_mmap, NULL, 4096, 3, 34, -1, 0) != -1);
		errno = 0;
		MUST(syscall(SYS_close, 999) == -1 && errno == EBADF);
		MUST(syscall(SYS_read, 999, in, 8) == -1 && errno == EBADF);
		MUST(syscall(SYS_fcntl, fds[0], F_GETOWN) == 0 && syscall(SYS_fcntl, 999, F_GETFD) == -1);
		MUST(closedir(NULL) == -1 && errno == EINVAL);
	}

	static const struct {
		const char *name;
		void (*run)(void);
	} odd[] = {
		{ "a child whose first act is vfork()", child_executes },
		{ "or posix_spawn()", child_spawns },
		{ "a child made without the C library", raw_fork },
		{ "a directory is locked, and closed as one", directory },
		{ "system calls by their numbers", by_number },
		{ "system calls that are no matter of locks", others },
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
program_source | ${CC:-cc} -O1 -Wno-nonnull -x c -o "$dir/odd" - || bail_out "no compiler, or no program"
check "belayd starts" start_daemon || bail_out "no belayd"
touch "$dir/files/a" "$dir/files/b" "$dir/elsewhere/a" "$dir/elsewhere/b"
while read -r odd; do
	check "by the kernel: $odd" timeout 60 "$dir/odd" "$odd" "$dir/elsewhere/a" "$dir/elsewhere/b"
	check "by belay: $odd" shim timeout 60 "$dir/odd" "$odd" "$dir/files/a" "$dir/files/b"
	check "elsewhere: $odd" shim timeout 60 "$dir/odd" "$odd" "$dir/elsewhere/a" "$dir/elsewhere/b"
done < <("$dir/odd")
check "nothing is left" gives 0 '^0 held, 0 waiting' "$belay" locks
done_testing
