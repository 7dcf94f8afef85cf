/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A client passes files of a file system that never answers when one is
 * closed. belayd must go on, whatever becomes of the descriptors.
 */
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/ipc/raw.h"
#include "tests/tap.h"

#define POSIX BELAY_KIND_POSIX
#define EX BELAY_MODE_EX
#define FILES 80

/* ---- the file system: a directory with one file under any name ---- */

static void answer(int fuse, const struct fuse_in_header *in, int error, const void *body, size_t size)
{
	uint8_t out[4096];
	const struct fuse_out_header head = {
		.len = (uint32_t)(sizeof(head) + size), .error = error, .unique = in->unique,
	};

	memcpy(out, &head, sizeof(head));
	if (size > 0)
		memcpy(out + sizeof(head), body, size);
	(void)!write(fuse, out, head.len);
}

static struct fuse_attr attributes(uint64_t node)
{
	return (struct fuse_attr){
		.ino = node, .nlink = 1,
		.mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0666,
	};
}

static void serve_one(int fuse, const struct fuse_in_header *in)
{
	const struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = 65536,
	};
	const struct fuse_entry_out entry = {
		.nodeid = 2, .entry_valid = 3600, .attr_valid = 3600, .attr = attributes(2),
	};
	const struct fuse_attr_out attr = { .attr_valid = 3600, .attr = attributes(in->nodeid) };
	const struct fuse_open_out opened = { .fh = 1 };

	switch (in->opcode) {
	case FUSE_INIT:
		answer(fuse, in, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		answer(fuse, in, 0, &entry, sizeof(entry));
		break;
	case FUSE_GETATTR:
		answer(fuse, in, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
		answer(fuse, in, 0, &opened, sizeof(opened));
		break;
	case FUSE_FLUSH:
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
		/* The point of all this. */
		break;
	default:
		answer(fuse, in, -ENOSYS, NULL, 0);
	}
}

static pid_t start_file_system(int fuse)
{
	static uint8_t buf[FUSE_MIN_READ_BUFFER + 65536];
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	while (read(fuse, buf, sizeof(buf)) > 0)
		serve_one(fuse, (const void *)buf);
	_exit(0);
}

static void mount_it(const char *point, int fuse)
{
	char options[128];

	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
	if (mkdir(point, 0755) < 0 || mount("belay-test", point, "fuse", 0, options) < 0)
		skip_all("no FUSE file system can be mounted");
}

int main(void)
{
	struct belayd d;
	struct raw r, other;
	char point[96], path[128];
	int fuse, fd[FILES];
	pid_t server;
	uint32_t h;
	unsigned opened = 0;

	if (getuid() != 0)
		skip_all("mounting needs root");
	fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fuse < 0)
		skip_all("no /dev/fuse");
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		skip_all("no mount namespace");
	belayd_prepare(&d, NULL);
	snprintf(point, sizeof(point), "%s/mnt", d.dir);
	mount_it(point, fuse);
	server = start_file_system(fuse);
	belayd_spawn(&d, NULL);
	if (!belayd_ready(&d))
		bail_out("belayd does not start");

	snprintf(path, sizeof(path), "%s/file", point);
	for (unsigned i = 0; i < FILES; i++)
		fd[i] = open(path, O_RDWR | O_CLOEXEC);
	ok(fd[FILES - 1] >= 0, "files of a file system that does not answer to close(2)");
	raw_open(&r, d.socket);
	raw_open(&other, d.socket);
	h = (uint32_t)raw_open_fd(&r, fd[0]);
	ok_int(raw_try(&r, h), 0, "one can be locked");
	ok_int(raw_lock(&other, (uint32_t)raw_open_name(&other, "default", "n"), POSIX, EX, false, 0, 0), 0,
	       "belayd serves others, although the descriptor it was passed cannot be closed");
	while (opened < FILES && raw_open_fd(&r, fd[opened]) > 0)
		opened++;
	ok(opened >= 32 && opened < FILES, "so it goes on %u times", opened);
	ok(belayd_logged(&d, "file systems that do not answer"), "then the client is refused, and why");
	ok_int(raw_lock(&other, 1, POSIX, EX, false, 1, 1), 0, "still others are served");

	/* Its end wakes all who wait for it. */
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	close(fuse);
	raw_close(&r);
	raw_close(&other);
	ok_int(belayd_stop(&d), 0, "belayd leaves cleanly");
	for (unsigned i = 0; i < FILES; i++)
		close(fd[i]);
	(void)umount2(point, MNT_DETACH);
	if (tap_state()->failed > 0)
		belayd_show_log(&d);
	belayd_remove(&d);
	return done_testing();
}
