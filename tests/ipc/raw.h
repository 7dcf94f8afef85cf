/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A client that speaks the protocol by hand, for what libbelay would never
 * say. Calls that wait give up after PATIENCE_MS with -ETIMEDOUT.
 */
#ifndef BELAY_TESTS_IPC_RAW_H
#define BELAY_TESTS_IPC_RAW_H

#include "slot/slot.h"
#include "tests/ipc/belayd.h"
#include "wire/client.h"

struct raw {
	int fd;
	uint32_t number;		/* last one used */
	uint32_t packets;		/* received */
	size_t size, at;
	int memory;			/* that belayd shares; -1: none */
	uint8_t *map;			/* of it */
	uint8_t in[CLIENT_PACKET_MAX];
};

/* Connect, without a word; raw_open() says hello, too. Both bail out. */
void raw_connect(struct raw *r, const char *path);
void raw_open(struct raw *r, const char *path);
void raw_close(struct raw *r);

/* Send bytes, with descriptors. Returns sendmsg()'s error as a negative errno, or 0. */
int raw_send_bytes(struct raw *r, const void *buf, size_t size, const int *fds, unsigned fd_count);
int raw_send(struct raw *r, const struct client_message *m);

/* The next message: 1, 0: the connection has ended; or a negative errno. */
int raw_receive(struct raw *r, struct client_message *ret_m);
/* Is there nothing to read, and nothing left of a packet? */
bool raw_silent(const struct raw *r);

/* The answer to @number: its result, or -ECONNRESET, -ETIMEDOUT, -EBADMSG: another one came. */
int raw_result(struct raw *r, uint32_t number, struct client_message *ret_m);

/* Requests, sent at once: the number. */
uint32_t raw_ask_lock(struct raw *r, uint32_t handle, enum belay_kind kind, enum belay_mode mode,
		      bool wait, uint64_t start, uint64_t end);
void raw_unlock(struct raw *r, uint32_t handle, enum belay_kind kind, uint64_t start, uint64_t end);
void raw_cancel(struct raw *r, uint32_t number);

/* Requests and their results; handles are returned as they are. */
int raw_open_name(struct raw *r, const char *lockspace, const char *name);
int raw_open_fd(struct raw *r, int fd);
int raw_close_handle(struct raw *r, uint32_t handle);
int raw_lock(struct raw *r, uint32_t handle, enum belay_kind kind, enum belay_mode mode,
	     bool wait, uint64_t start, uint64_t end);
/* Have belayd share memory, and map it: result. */
int raw_share(struct raw *r);
struct slot_head *raw_head(const struct raw *r, uint32_t slot);
struct slot_entry *raw_log(const struct raw *r, uint32_t slot);
struct slot_cell *raw_cell(const struct raw *r, uint32_t cell);
/* LOCK that welcomes a loan: the result, and what came with it. */
int raw_borrow(struct raw *r, uint32_t handle, enum belay_mode mode, uint64_t start, uint64_t end,
	       struct client_message *ret_m);
void raw_return(struct raw *r, uint32_t slot, uint32_t epoch);
/* Exclusive POSIX try-lock and blocking lock of the whole resource. */
int raw_try(struct raw *r, uint32_t handle);
uint32_t raw_wait_for(struct raw *r, uint32_t handle);
/* *ret_m tells who is in the way: held, owner, range, mode. */
int raw_test(struct raw *r, uint32_t handle, enum belay_kind kind, enum belay_mode mode,
	     uint64_t start, uint64_t end, struct client_message *ret_m);
/* Result, and the text to free(). */
int raw_command(struct raw *r, const char *line, char **ret_text);

/* The connection ends with an ERROR of that result whose text holds @text. */
bool raw_refused(struct raw *r, int result, const char *text);

#endif
