/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/ipc/raw.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/tap.h"

#define DESCRIPTORS_MAX 8

void raw_connect(struct raw *r, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	*r = (struct raw){ .fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), .memory = -1 };
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (r->fd < 0 || connect(r->fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		bail_out("cannot connect to belayd");
}

void raw_open(struct raw *r, const char *path)
{
	const struct client_message hello = {
		.type = CLIENT_HELLO, .magic = CLIENT_MAGIC, .version = CLIENT_VERSION,
	};
	struct client_message m;

	raw_connect(r, path);
	if (raw_send(r, &hello) < 0 || raw_receive(r, &m) != 1 || m.type != CLIENT_WELCOME)
		bail_out("belayd does not welcome a client");
}

void raw_close(struct raw *r)
{
	if (r->map)
		munmap(r->map, SLOT_MEMORY_BYTES);
	if (r->memory >= 0)
		close(r->memory);
	close(r->fd);
}

int raw_send_bytes(struct raw *r, const void *buf, size_t size, const int *fds, unsigned fd_count)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (fd_count > 0) {
		memset(control, 0, sizeof(control));
		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, fd_count * sizeof(int));
	}
	return sendmsg(r->fd, &msg, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int raw_send(struct raw *r, const struct client_message *m)
{
	uint8_t buf[CLIENT_PACKET_MAX];
	size_t size = 0;

	if (client_put(buf, sizeof(buf), &size, m) < 0)
		bail_out("a message of the test does not fit");
	return raw_send_bytes(r, buf, size, NULL, 0);
}

/* A packet, and the descriptor that it brings along. */
static ssize_t receive(struct raw *r)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { .iov_base = r->in, .iov_len = sizeof(r->in) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	ssize_t size = recvmsg(r->fd, &msg, MSG_CMSG_CLOEXEC);
	const struct cmsghdr *c = size > 0 ? CMSG_FIRSTHDR(&msg) : NULL;

	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(&r->memory, CMSG_DATA(c), sizeof(int));
	return size;
}

int raw_receive(struct raw *r, struct client_message *ret_m)
{
	if (r->at == r->size) {
		struct pollfd in = { .fd = r->fd, .events = POLLIN };
		ssize_t size;

		if (poll(&in, 1, PATIENCE_MS) != 1)
			return -ETIMEDOUT;
		size = receive(r);
		if (size < 0)
			return -errno;
		if (size == 0)
			return 0;
		r->packets++;
		r->size = (size_t)size;
		r->at = 0;
	}
	return client_get(r->in, r->size, &r->at, ret_m);
}

bool raw_silent(const struct raw *r)
{
	struct pollfd in = { .fd = r->fd, .events = POLLIN };

	return r->at == r->size && poll(&in, 1, 0) == 0;
}

int raw_result(struct raw *r, uint32_t number, struct client_message *ret_m)
{
	struct client_message m;
	int n = raw_receive(r, &m);

	if (n <= 0)
		return n == 0 ? -ECONNRESET : n;
	if (m.type != CLIENT_RESULT && m.type != CLIENT_TESTED && m.type != CLIENT_TEXT) {
		diag("a message of type %d came", m.type);
		return -EBADMSG;
	}
	if (m.number != number) {
		diag("the answer to %u came, not to %u", m.number, number);
		return -EBADMSG;
	}
	if (ret_m)
		*ret_m = m;
	return m.result;
}

uint32_t raw_ask_lock(struct raw *r, uint32_t handle, enum belay_kind kind, enum belay_mode mode,
		      bool wait, uint64_t start, uint64_t end)
{
	const struct client_message m = {
		.type = CLIENT_LOCK, .number = ++r->number, .handle = handle, .kind = kind,
		.mode = mode, .wait = wait, .range = { .start = start, .end = end },
	};

	(void)raw_send(r, &m);
	return m.number;
}

void raw_unlock(struct raw *r, uint32_t handle, enum belay_kind kind, uint64_t start, uint64_t end)
{
	const struct client_message m = {
		.type = CLIENT_UNLOCK, .handle = handle, .kind = kind,
		.range = { .start = start, .end = end },
	};

	(void)raw_send(r, &m);
}

void raw_cancel(struct raw *r, uint32_t number)
{
	const struct client_message m = { .type = CLIENT_CANCEL, .number = number };

	(void)raw_send(r, &m);
}

static int handle_of(struct raw *r, uint32_t number)
{
	struct client_message m;
	int result = raw_result(r, number, &m);

	return result < 0 ? result : (int)m.handle;
}

int raw_open_name(struct raw *r, const char *lockspace, const char *name)
{
	const struct client_message m = {
		.type = CLIENT_OPEN_NAME, .number = ++r->number,
		.text = lockspace, .text_size = (uint16_t)strlen(lockspace),
		.text2 = name, .text2_size = (uint16_t)strlen(name),
	};

	(void)raw_send(r, &m);
	return handle_of(r, m.number);
}

int raw_open_fd(struct raw *r, int fd)
{
	const struct client_message m = { .type = CLIENT_OPEN_FD, .number = ++r->number };
	uint8_t buf[64];
	size_t size = 0;

	(void)client_put(buf, sizeof(buf), &size, &m);
	(void)raw_send_bytes(r, buf, size, &fd, 1);
	return handle_of(r, m.number);
}

int raw_close_handle(struct raw *r, uint32_t handle)
{
	const struct client_message m = {
		.type = CLIENT_CLOSE, .number = ++r->number, .handle = handle,
	};

	(void)raw_send(r, &m);
	return raw_result(r, m.number, NULL);
}

int raw_lock(struct raw *r, uint32_t handle, enum belay_kind kind, enum belay_mode mode,
	     bool wait, uint64_t start, uint64_t end)
{
	return raw_result(r, raw_ask_lock(r, handle, kind, mode, wait, start, end), NULL);
}

int raw_share(struct raw *r)
{
	const struct client_message m = { .type = CLIENT_SHARE, .number = ++r->number };
	void *map;
	int result;

	(void)raw_send(r, &m);
	result = raw_result(r, m.number, NULL);
	if (result < 0)
		return result;
	map = mmap(NULL, SLOT_MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
		   r->memory, 0);
	if (map == MAP_FAILED)
		return -errno;
	r->map = map;
	return 0;
}

struct slot_head *raw_head(const struct raw *r, uint32_t slot)
{
	return (struct slot_head *)(void *)(r->map + SLOT_HEADS_AT) + slot;
}

struct slot_entry *raw_log(const struct raw *r, uint32_t slot)
{
	return (struct slot_entry *)(void *)(r->map + slot_half_at(slot, 0));
}

struct slot_cell *raw_cell(const struct raw *r, uint32_t cell)
{
	return (struct slot_cell *)(void *)(r->map + SLOT_CELLS_AT) + (cell - 1);
}

int raw_borrow(struct raw *r, uint32_t handle, enum belay_mode mode, uint64_t start, uint64_t end,
	       struct client_message *ret_m)
{
	const struct client_message m = {
		.type = CLIENT_LOCK, .number = ++r->number, .handle = handle,
		.mode = mode, .wait = true, .lend = true, .range = { .start = start, .end = end },
	};

	(void)raw_send(r, &m);
	return raw_result(r, m.number, ret_m);
}

void raw_return(struct raw *r, uint32_t slot, uint32_t epoch)
{
	const struct client_message m = { .type = CLIENT_RETURN, .slot = slot, .epoch = epoch };

	(void)raw_send(r, &m);
}

int raw_try(struct raw *r, uint32_t handle)
{
	return raw_lock(r, handle, BELAY_KIND_POSIX, BELAY_MODE_EX, false, 0, BELAY_OFFSET_MAX);
}

uint32_t raw_wait_for(struct raw *r, uint32_t handle)
{
	return raw_ask_lock(r, handle, BELAY_KIND_POSIX, BELAY_MODE_EX, true, 0, BELAY_OFFSET_MAX);
}

int raw_test(struct raw *r, uint32_t handle, enum belay_kind kind, enum belay_mode mode,
	     uint64_t start, uint64_t end, struct client_message *ret_m)
{
	const struct client_message m = {
		.type = CLIENT_TEST, .number = ++r->number, .handle = handle, .kind = kind,
		.mode = mode, .range = { .start = start, .end = end },
	};

	(void)raw_send(r, &m);
	return raw_result(r, m.number, ret_m);
}

int raw_command(struct raw *r, const char *line, char **ret_text)
{
	const struct client_message command = {
		.type = CLIENT_COMMAND, .number = ++r->number,
		.text = line, .text_size = (uint16_t)strlen(line),
	};
	struct client_message m = { .more = true };
	size_t size = 0;
	char *text = strdup("");
	int result = 0;

	(void)raw_send(r, &command);
	while (m.more) {
		result = raw_result(r, command.number, &m);
		if (m.type != CLIENT_TEXT)
			break;
		text = realloc(text, size + m.text_size + 1);
		memcpy(text + size, m.text, m.text_size);
		size += m.text_size;
		text[size] = '\0';
		m.type = CLIENT_HELLO;
	}
	*ret_text = text;
	return result;
}

bool raw_refused(struct raw *r, int result, const char *text)
{
	struct client_message m = { .type = CLIENT_HELLO };
	char said[256];
	int n;

	/* What was asked before may have been answered before. */
	while ((n = raw_receive(r, &m)) == 1 && m.type != CLIENT_ERROR)
		;
	if (n != 1) {
		diag("no reason was given: %d", n);
		return false;
	}
	snprintf(said, sizeof(said), "%.*s", m.text_size, m.text);
	if (m.result != result || !strstr(said, text)) {
		diag("the reason given: %d, %s", m.result, said);
		return false;
	}
	n = raw_receive(r, &m);
	return n == 0 || n == -ECONNRESET;
}
