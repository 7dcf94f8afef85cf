/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libdlm's calls that stock lvmlockd makes, for LD_PRELOAD: its locks are record locks on
 * files in DLM_STUB_DIR, which is one directory for all nodes of a bed. So the real lvmlockd
 * can be measured with a lock manager that costs next to nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* As libdlm.h has them. */
struct dlm_lksb {
	int sb_status;
	uint32_t sb_lkid;
	char sb_flags;
	char *sb_lvbptr;
};
enum { MODE_PR = 3, MODE_EX = 5, FLAG_CONVERT = 4 };

int dlm_kernel_version(uint32_t *major, uint32_t *minor, uint32_t *patch);
void *dlm_new_lockspace(const char *name, mode_t mode, uint32_t flags);
void *dlm_open_lockspace(const char *name);
int dlm_release_lockspace(const char *name, void *lockspace, int force);
int dlm_ls_lock_wait(void *lockspace, uint32_t mode, struct dlm_lksb *lksb, uint32_t flags, const void *name,
		     unsigned int name_size, uint32_t parent, void *bast_arg, void (*bast)(void *), void *range);
int dlm_ls_unlock_wait(void *lockspace, uint32_t lkid, uint32_t flags, struct dlm_lksb *lksb);
int dlm_ls_lockx(void);

int dlm_kernel_version(uint32_t *major, uint32_t *minor, uint32_t *patch)
{
	*major = 6;
	*minor = *patch = 0;
	return 0;
}

void *dlm_new_lockspace(const char *name, mode_t mode, uint32_t flags)
{
	(void)mode;
	(void)flags;
	return strdup(name);
}

void *dlm_open_lockspace(const char *name)
{
	return strdup(name);
}

int dlm_release_lockspace(const char *name, void *lockspace, int force)
{
	(void)name;
	(void)force;
	free(lockspace);
	return 0;
}

static int convert(int fd, uint32_t mode)
{
	struct flock lock = {
		.l_type = (short)(mode == MODE_EX ? F_WRLCK : mode == MODE_PR ? F_RDLCK : F_UNLCK),
		.l_whence = SEEK_SET,
	};

	return fcntl(fd, F_OFD_SETLK, &lock);
}

/* A lock is a descriptor of its file, and its number the lock's. */
int dlm_ls_lock_wait(void *lockspace, uint32_t mode, struct dlm_lksb *lksb, uint32_t flags, const void *name,
		     unsigned int name_size, uint32_t parent, void *bast_arg, void (*bast)(void *), void *range)
{
	const char *dir = getenv("DLM_STUB_DIR");
	char path[512];

	(void)parent;
	(void)bast_arg;
	(void)bast;
	(void)range;
	if (!(flags & FLAG_CONVERT)) {
		int fd;

		(void)snprintf(path, sizeof(path), "%s/%s.%.*s", dir ? dir : "/tmp", (const char *)lockspace,
			       (int)name_size, (const char *)name);
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0)
			return -1;
		lksb->sb_lkid = (uint32_t)fd;
	}
	if (convert((int)lksb->sb_lkid, mode) < 0) {
		lksb->sb_status = EAGAIN;
		errno = EAGAIN;
		return -1;
	}
	lksb->sb_status = 0;
	return 0;
}

int dlm_ls_unlock_wait(void *lockspace, uint32_t lkid, uint32_t flags, struct dlm_lksb *lksb)
{
	(void)lockspace;
	(void)flags;
	close((int)lkid);
	lksb->sb_status = 0;
	return 0;
}

/* Adoption: there is never anything to adopt. */
int dlm_ls_lockx(void)
{
	errno = ENOENT;
	return -1;
}
