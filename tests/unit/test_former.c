/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records of clients: their names, whom they name, where they are kept. */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/record.h"
#include "tests/tap.h"

static void test_names(void)
{
	static const struct record records[] = {
		{ 0, 0, 0 }, { 1, 2, 3 }, { 4194304, 123456789, 65536 },
		{ INT32_MAX, UINT64_MAX, UINT32_MAX },
	};
	static const char *const bad[] = {
		"", ".", "..", "1", "1.2", "1.2.", "1..3", ".2.3", "1.2.3.", "1.2.3.4", "1.2.3 ", " 1.2.3",
		"-1.2.3", "+1.2.3", "01.2.3", "1.02.3", "1.2.00", "1.2.x", "0x1.2.3", "1,2,3",
		"2147483648.2.3", "1.18446744073709551616.3", "1.2.4294967296",
		"99999999999999999999999999.2.3", "readme",
	};
	struct record back;
	char name[RECORD_NAME_MAX];

	for (unsigned i = 0; i < sizeof(records) / sizeof(*records); i++) {
		record_name(&records[i], name);
		ok_int(record_parse(name, &back), 0, "%s is a record", name);
		ok(back.pid == records[i].pid && back.start == records[i].start &&
		   back.client == records[i].client, "the same one");
	}
	record_name(&records[3], name);
	ok_str(name, "2147483647.18446744073709551615.4294967295", "the longest name fits");
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		ok_int(record_parse(bad[i], &back), -EINVAL, "\"%s\" is none", bad[i]);
}

#define BEHIND " S 1 10 10 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 "

static void test_stat(void)
{
	static const char *const bad[] = {
		"", "10", "10 (sh)", "10 (sh) S 1 10", "10 (sh) S 1 10 10 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0",
		"10 (sh" BEHIND "77 0", "10 (sh)" BEHIND, "10 (sh)" BEHIND "-1 0",
		"10 (sh)" BEHIND "18446744073709551616 0",
	};
	uint64_t start = 0;

	ok_int(record_parse_stat("10 (sh)" BEHIND "77 8192 0\n", &start), 0, "a stat file");
	ok_uint(start, 77, "has the start time");
	ok_int(record_parse_stat("10 (a) S 1 (b) 9)" BEHIND "78 8192 0\n", &start), 0,
	       "a name made to deceive");
	ok_uint(start, 78, "does not");
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		ok_int(record_parse_stat(bad[i], &start), -EINVAL, "no stat file: \"%s\"", bad[i]);
	ok_uint(start, 78, "from which nothing comes");
}

static void test_start_time(void)
{
	uint64_t mine = 0, again = 0, child = 0;
	pid_t pid;

	ok_int(record_start_time(getpid(), &mine), 0, "this process has a start time");
	ok_int(record_start_time(getpid(), &again), 0, "and has it still");
	ok(mine > 0 && mine == again, "the same");
	pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	ok_int(record_start_time(pid, &child), 0, "its child has one");
	ok(child >= mine, "not before its own");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ok_int(record_start_time(pid, &child), -ENOENT, "a process that has ended has none");
}

static void test_directory(void)
{
	char top[] = "/tmp/belay-former.XXXXXX", socket[64], path[128], name[RECORD_NAME_MAX];
	struct record record, other;
	struct stat st;
	int dir = -1, again = -1;

	if (!mkdtemp(top))
		bail_out("no temporary directory");
	snprintf(socket, sizeof(socket), "%s/sock", top);
	snprintf(path, sizeof(path), "%s/sock.clients", top);
	ok_int(record_open(socket, &dir), 0, "the directory is made");
	ok(stat(path, &st) == 0 && (st.st_mode & 07777) == 0700, "for belayd alone");
	ok_int(record_open(socket, &again), 0, "and found again");
	close(again);

	ok_int(record_put(dir, getpid(), 7, &record), 0, "a record");
	ok_int(record_put(dir, getpid(), 8, &other), 0, "another one, of the same process");
	ok(record.pid == getpid() && record.start > 0 && record.client == 7, "says who it is");
	record_name(&record, name);
	ok(fstatat(dir, name, &st, 0) == 0 && S_ISREG(st.st_mode), "and is a file");
	ok_int(record_put(dir, getpid(), 7, &record), 0, "of which there may be one already");
	record_remove(dir, &record);
	ok(fstatat(dir, name, &st, 0) < 0, "until it is removed");
	record_name(&other, name);
	ok(fstatat(dir, name, &st, 0) == 0, "alone");
	record_remove(dir, &record);
	record_remove(dir, &other);
	ok_int(record_put(dir, 0, 7, &record), 0, "a record of a process that cannot be seen");
	record_remove(dir, &record);

	ok(chmod(path, 0770) == 0, "others may write to the directory");
	ok_int(record_open(socket, &again), -EPERM, "so it cannot be trusted");
	ok(rmdir(path) == 0, "nothing was left");
	ok_int(record_put(dir, getpid(), 7, &record), -ENOENT, "without it there are no records");
	ok(symlink(top, path) == 0, "a link in its place");
	ok(record_open(socket, &again) < 0, "is not followed");
	unlink(path);
	close(dir);
	rmdir(top);
}

int main(void)
{
	test_names();
	test_stat();
	test_start_time();
	test_directory();
	return done_testing();
}
