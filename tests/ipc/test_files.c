/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a descriptor or a name gives a right to, and what it is the same as. */
#include <fcntl.h>
#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/ipc/raw.h"
#include "tests/tap.h"

#define ALL 0, BELAY_OFFSET_MAX
#define POSIX BELAY_KIND_POSIX
#define SH BELAY_MODE_SH
#define EX BELAY_MODE_EX

#define STRANGER 54321

static int open_in(const struct belayd *d, const char *name, int flags)
{
	char path[160];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", d->dir, name);
	fd = open(path, flags | O_CLOEXEC, 0600);
	if (fd < 0)
		bail_out("a file of the test cannot be opened");
	return fd;
}

static void test_descriptors(const struct belayd *d, struct raw *r)
{
	int fds[2], fd;

	fd = open(d->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ok_int(raw_open_fd(r, fd), -EINVAL, "a directory is no file to lock");
	close(fd);
	if (pipe(fds) < 0)
		bail_out("no pipe");
	ok_int(raw_open_fd(r, fds[0]), -EINVAL, "nor is a pipe");
	close(fds[0]);
	close(fds[1]);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) < 0)
		bail_out("no sockets");
	ok_int(raw_open_fd(r, fds[0]), -EINVAL, "nor a socket");
	close(fds[0]);
	close(fds[1]);
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	ok_int(raw_open_fd(r, fd), -EINVAL, "nor a device");
	close(fd);
	fd = open_in(d, "file", O_PATH);
	ok_int(raw_open_fd(r, fd), -EBADF, "O_PATH proves no right to the file");
	close(fd);
}

static void test_access(const struct belayd *d, struct raw *r)
{
	struct client_message m;
	int fd = open_in(d, "file", O_RDONLY);
	uint32_t h = (uint32_t)raw_open_fd(r, fd);

	close(fd);
	ok_int(raw_lock(r, h, POSIX, EX, false, ALL), -EBADF, "read-only: no exclusive lock");
	ok_int(raw_lock(r, h, POSIX, SH, false, ALL), 0, "a shared one");
	ok_int(raw_test(r, h, POSIX, EX, ALL, &m), 0, "asking is allowed, as by F_GETLK");
	ok_int(raw_close_handle(r, h), 0, "closed");
	fd = open_in(d, "file", O_WRONLY);
	h = (uint32_t)raw_open_fd(r, fd);
	close(fd);
	ok_int(raw_lock(r, h, POSIX, SH, false, ALL), -EBADF, "write-only: no shared lock");
	ok_int(raw_lock(r, h, POSIX, EX, false, ALL), 0, "an exclusive one");
	ok_int(raw_close_handle(r, h), 0, "closed");
	fd = open_in(d, "file", O_RDONLY);
	h = (uint32_t)raw_open_fd(r, fd);
	close(fd);
	ok_int(raw_lock(r, h, BELAY_KIND_FLOCK, EX, false, ALL), 0, "flock asks for no right to write");
	ok_int(raw_close_handle(r, h), 0, "closed");
	fd = open_in(d, "file", O_WRONLY);
	h = (uint32_t)raw_open_fd(r, fd);
	close(fd);
	ok_int(raw_lock(r, h, BELAY_KIND_FLOCK, SH, false, ALL), 0, "nor to read");
	ok_int(raw_close_handle(r, h), 0, "closed");
}

static void test_same_file(const struct belayd *d, struct raw *r, struct raw *other)
{
	char path[160], link_path[160];
	int a = open_in(d, "file", O_RDWR), b, c = open_in(d, "another", O_RDWR | O_CREAT);
	uint32_t ha, hb, hc;

	snprintf(path, sizeof(path), "%s/file", d->dir);
	snprintf(link_path, sizeof(link_path), "%s/link", d->dir);
	if (link(path, link_path) < 0)
		bail_out("no link");
	b = open_in(d, "link", O_RDWR);
	ha = (uint32_t)raw_open_fd(r, a);
	hb = (uint32_t)raw_open_fd(other, b);
	hc = (uint32_t)raw_open_fd(other, c);
	close(a);
	close(b);
	close(c);
	ok_int(raw_try(r, ha), 0, "a file is locked");
	ok_int(raw_try(other, hb), -EAGAIN, "by whatever name it is opened");
	ok_int(raw_try(other, hc), 0, "another file is another");
	ok_int(raw_close_handle(r, ha), 0, "closed");
}

/* Names of every length must differ, though long ones are hashed. */
static void test_names(struct raw *r, struct raw *other)
{
	char name[CLIENT_NAME_MAX + 2];
	unsigned wrong = 0;

	memset(name, 'n', sizeof(name));
	for (unsigned i = 1; i <= CLIENT_NAME_MAX; i++) {
		name[i] = '\0';
		wrong += raw_try(r, (uint32_t)raw_open_name(r, "default", name)) != 0;
		name[i] = 'n';
	}
	ok_uint(wrong, 0, "names of 1 to 255 bytes are all different locks");
	for (unsigned i = 1; i <= CLIENT_NAME_MAX; i++) {
		name[i] = '\0';
		wrong += raw_try(other, (uint32_t)raw_open_name(other, "default", name)) != -EAGAIN;
		name[i] = 'n';
	}
	ok_uint(wrong, 0, "and each the same for another client");
	ok_int(raw_open_name(r, "nowhere", "name"), -ENOENT, "a lockspace that is not configured");
	ok_int(raw_try(r, (uint32_t)raw_open_name(r, "open", "n")), 0,
	       "one name in two lockspaces is two locks");
}

static void stranger_checks(const struct belayd *d)
{
	struct raw r;
	uint32_t h;
	char *text;

	raw_open(&r, d->socket);
	ok_int(raw_open_name(&r, "closed", "n"), -EACCES, "a lockspace that is not for this user");
	h = (uint32_t)raw_open_name(&r, "readers", "n");
	ok_int(raw_lock(&r, h, POSIX, EX, false, ALL), -EBADF, "one that it may read: not exclusively");
	ok_int(raw_lock(&r, h, BELAY_KIND_FLOCK, EX, false, ALL), -EBADF, "nor so as an flock: a name is no file");
	ok_int(raw_lock(&r, h, POSIX, SH, false, ALL), 0, "but shared");
	ok_int(raw_try(&r, (uint32_t)raw_open_name(&r, "open", "stranger")), 0, "one for all");
	ok_int(raw_try(&r, (uint32_t)raw_open_name(&r, "mine", "n")), 0, "its own");
	ok_int(raw_try(&r, (uint32_t)raw_open_name(&r, "ours", "n")), 0, "its group's");
	ok_int(raw_command(&r, "dump", &text), -EPERM, "it may not dump");
	free(text);
	ok_int(raw_command(&r, "fence-ack 1", &text), -EPERM, "nor fence");
	free(text);
	ok_int(raw_command(&r, "stop", &text), -EPERM, "nor stop belayd");
	free(text);
	ok_int(raw_command(&r, "status", &text), 0, "it may look");
	free(text);
}

/* Its checks are counted in its own copy, which goes into the pipe. */
static _Noreturn void as_stranger(const struct belayd *d, int to)
{
	if (setgroups(0, NULL) < 0 || setgid(STRANGER) < 0 || setuid(STRANGER) < 0)
		bail_out("no other user can be played");
	stranger_checks(d);
	_exit(write(to, tap_state(), sizeof(struct tap)) == sizeof(struct tap) ? EXIT_SUCCESS : EXIT_FAILURE);
}

static void test_users(const struct belayd *d)
{
	struct tap counted;
	int status = -1, fds[2];
	pid_t child;

	if (getuid() != 0) {
		diag("not root: permissions of other users are not tested");
		return;
	}
	if (pipe(fds) < 0)
		bail_out("no pipe");
	fflush(stdout);
	child = fork();
	if (child == 0)
		as_stranger(d, fds[1]);
	close(fds[1]);
	if (read(fds[0], &counted, sizeof(counted)) == sizeof(counted))
		*tap_state() = counted;
	close(fds[0]);
	waitpid(child, &status, 0);
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the other user's checks came to their end");
}

int main(void)
{
	struct belayd d;
	struct raw r, other;

	belayd_start(&d, "socket_mode = 0666\n[lockspace open]\nmode = 0666\n"
		     "[lockspace closed]\nmode = 0660\n[lockspace readers]\nmode = 0664\n"
		     "[lockspace mine]\nowner = 54321\nmode = 0600\n"
		     "[lockspace ours]\ngroup = 54321\nmode = 0060\n");
	close(open_in(&d, "file", O_RDWR | O_CREAT));
	raw_open(&r, d.socket);
	raw_open(&other, d.socket);
	test_descriptors(&d, &r);
	test_access(&d, &r);
	test_same_file(&d, &r, &other);
	test_names(&r, &other);
	test_users(&d);
	raw_close(&r);
	raw_close(&other);
	ok_int(belayd_stop(&d), 0, "belayd leaves cleanly");
	if (tap_state()->failed > 0)
		belayd_show_log(&d);
	belayd_remove(&d);
	return done_testing();
}
