/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/hint_key.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/siphash.h"

/* Hashes made under the same file for another purpose, or group, are of no use here. */
static const char purpose[] = "belay hints";

/* What corosync takes if its configuration does not say. */
#define COROSYNC_KEY_FILE "/etc/corosync/authkey"

static int check_file(int fd, const char **ret_why)
{
	struct stat st;

	*ret_why = "it cannot be looked at";
	if (fstat(fd, &st) < 0)
		return -errno;
	*ret_why = "it is not a regular file";
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	*ret_why = "it belongs to another user: chown root it";
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return -EPERM;
	*ret_why = "others than its owner may read or write it: chmod 0600 it, and make a new key if they did";
	if ((st.st_mode & 0077) != 0)
		return -EPERM;
	return 0;
}

/* All of the file; a size, or a negative errno. */
static ssize_t read_file(int fd, uint8_t *buf, size_t size, const char **ret_why)
{
	size_t done = 0;
	ssize_t n;

	do {
		n = read(fd, buf + done, size - done);
		if (n > 0)
			done += (size_t)n;
	} while ((n > 0 && done < size) || (n < 0 && errno == EINTR));
	*ret_why = "it cannot be read";
	if (n < 0)
		return -errno;
	*ret_why = "it must have 16 to 4096 bytes that nobody can guess: "
		   "dd if=/dev/urandom of=FILE bs=32 count=1, and copy it to all nodes";
	if (done < HINT_KEY_FILE_MIN || done > HINT_KEY_FILE_MAX)
		return -EINVAL;
	return (ssize_t)done;
}

/* The rest is hashed under its beginning, so that the secret may be spread over all of it. */
static void derive(const uint8_t *secret, size_t size, const char *group, uint8_t ret_key[HINT_KEY_SIZE])
{
	uint8_t text[sizeof(purpose) + HINT_KEY_FILE_MAX + 1 + GROUP_NAME_MAX];
	size_t at = 0, group_size = strlen(group);

	memcpy(text, purpose, sizeof(purpose));
	at += sizeof(purpose);
	memcpy(text + at, secret + HINT_KEY_SIZE, size - HINT_KEY_SIZE);
	at += size - HINT_KEY_SIZE;
	text[at++] = 0;
	memcpy(text + at, group, group_size);
	siphash128(secret, text, at + group_size, ret_key);
	explicit_bzero(text, sizeof(text));
}

int hint_key_load(const char *path, const char *group, uint8_t ret_key[HINT_KEY_SIZE],
		  const char **ret_why)
{
	/* One more, to tell a file that is too long. */
	uint8_t secret[HINT_KEY_FILE_MAX + 1];
	/* A fifo must not stop belayd. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t size;
	int r;

	if (fd < 0) {
		r = -errno;
		*ret_why = r == -ENOENT ? "there is no such file: make it on one node and copy it to all" :
					  "it cannot be opened";
		return r;
	}
	r = check_file(fd, ret_why);
	if (r == 0) {
		size = read_file(fd, secret, sizeof(secret), ret_why);
		if (size < 0)
			r = (int)size;
		else
			derive(secret, (size_t)size, group, ret_key);
		explicit_bzero(secret, sizeof(secret));
	}
	close(fd);
	return r;
}

const char *hint_key_path(const struct config *config, const struct group_info *info)
{
	if (config->hints_key_file[0] != '\0')
		return config->hints_key_file;
	if (!info->encrypted)
		return NULL;
	return info->key_file[0] != '\0' ? info->key_file : COROSYNC_KEY_FILE;
}
