/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <qb/qblog.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "wire/client.h"

/* Connections waiting to be accepted; the kernel cuts it to somaxconn. */
#define BACKLOG 1024

static int make_directory(const char *socket_path)
{
	char path[CONFIG_PATH_MAX + 1];
	size_t size = (size_t)(strrchr(socket_path, '/') - socket_path);
	int r;

	if (size == 0 || size >= sizeof(path))
		return 0;
	memcpy(path, socket_path, size);
	path[size] = '\0';
	/* umask is 077: the mode has to be said again. */
	if (mkdir(path, 0755) == 0) {
		if (chmod(path, 0755) == 0)
			return 0;
	} else if (errno == EEXIST) {
		return 0;
	}
	r = -errno;
	qb_log(LOG_ERR, "cannot make the directory %s for the socket: %s. Make it, or set "
	       "socket= in the configuration", path, strerror(-r));
	return r;
}

int listen_claim(const struct config *config, int *ret_fd)
{
	char path[sizeof(config->socket) + 8];
	char pid[16] = "";
	int fd, r = make_directory(config->socket);

	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), "%s.lock", config->socket);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		r = -errno;
		qb_log(LOG_ERR, "cannot open %s: %s", path, strerror(-r));
		return r;
	}
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		ssize_t n = read(fd, pid, sizeof(pid) - 1);

		pid[n > 0 ? n : 0] = '\0';
		pid[strcspn(pid, "\n")] = '\0';
		qb_log(LOG_ERR, "another belayd (process %s) serves %s already", pid[0] ? pid : "?",
		       config->socket);
		close(fd);
		return -EBUSY;
	}
	/* For people only; the lock is what counts. */
	if (ftruncate(fd, 0) < 0 || dprintf(fd, "%d\n", (int)getpid()) < 0)
		qb_log(LOG_WARNING, "cannot write %s: %s", path, strerror(errno));
	*ret_fd = fd;
	return 0;
}

/*
 * Whatever stands at the path: no belayd listens there, for we have the lock.
 * A socket that still answers is another program's, and no file is to be lost.
 * *ret_why is set only if there is more to say than the error does.
 */
static int remove_stale(const struct sockaddr_un *address, const char **ret_why)
{
	struct stat st;
	int fd, r;

	if (lstat(address->sun_path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode)) {
		*ret_why = "what stands there is no socket: remove it, or set socket= in the configuration";
		return -EEXIST;
	}
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	r = connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ? -errno : 0;
	close(fd);
	if (r != -ECONNREFUSED) {
		*ret_why = "another program listens there: stop it, or set socket= in the configuration";
		return -EADDRINUSE;
	}
	qb_log(LOG_INFO, "removing %s, left behind by a belayd that did not stop by itself",
	       address->sun_path);
	return unlink(address->sun_path) < 0 && errno != ENOENT ? -errno : 0;
}

/* Nobody can connect before listen(), so the permissions are right from the start. */
static int open_at(const struct config *config, const struct sockaddr_un *address, int fd)
{
	if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
		return -errno;
	if (config->socket_group != CONFIG_NO_GROUP &&
	    chown(address->sun_path, (uid_t)-1, (gid_t)config->socket_group) < 0)
		return -errno;
	if (chmod(address->sun_path, (mode_t)config->socket_mode) < 0)
		return -errno;
	return listen(fd, BACKLOG) < 0 ? -errno : 0;
}

int listen_open(const struct config *config, int *ret_fd)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *why = NULL;
	int fd, r;

	memcpy(address.sun_path, config->socket, strlen(config->socket));
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	r = fd < 0 ? -errno : remove_stale(&address, &why);
	if (r == 0)
		r = open_at(config, &address, fd);
	if (r < 0) {
		qb_log(LOG_ERR, "cannot listen at %s: %s", address.sun_path,
		       why ? why : strerror(-r));
		if (fd >= 0)
			close(fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

void listen_drain(int fd)
{
	char byte;

	/* From here on nothing can be added. A descriptor that came along is dropped by the kernel. */
	(void)shutdown(fd, SHUT_RD);
	while (recv(fd, &byte, 1, MSG_DONTWAIT) > 0)
		;
}

void listen_close(const struct config *config, int fd)
{
	(void)unlink(config->socket);
	close(fd);
}

void listen_refuse(int fd, int error, const char *text)
{
	struct client_message m = { .type = CLIENT_ERROR, .result = error };
	uint8_t buf[512];
	size_t size = 0;

	m.text = text;
	m.text_size = (uint16_t)strlen(text);
	if (client_put(buf, sizeof(buf), &size, &m) == 0)
		(void)send(fd, buf, size, MSG_DONTWAIT | MSG_NOSIGNAL);
	listen_drain(fd);
	close(fd);
}
