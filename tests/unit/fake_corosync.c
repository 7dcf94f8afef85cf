/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/fake_corosync.h"

#include <corosync/cmap.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "tests/tap.h"

struct fake *fake(void)
{
	static struct fake state = { .cpg_socket = { -1, -1 }, .quorum_socket = { -1, -1 } };

	return &state;
}

/* ---- what a test does ---- */

static void set_key(const char *name, uint32_t number, const char *text)
{
	struct fake *f = fake();

	if (f->keys == FAKE_KEYS_MAX)
		bail_out("too many keys");
	f->key[f->keys] = (struct fake_key){ .number = number, .text = text };
	snprintf(f->key[f->keys].name, sizeof(f->key[0].name), "%s", name);
	f->keys++;
}

void fake_set_number(const char *name, uint32_t number)
{
	set_key(name, number, NULL);
}

void fake_set_text(const char *name, const char *text)
{
	set_key(name, 0, text);
}

void fake_unset(const char *prefix)
{
	struct fake *f = fake();
	unsigned kept = 0;

	for (unsigned i = 0; i < f->keys; i++)
		if (strncmp(f->key[i].name, prefix, strlen(prefix)) != 0)
			f->key[kept++] = f->key[i];
	f->keys = kept;
}

static void close_pair(int pair[2])
{
	for (unsigned i = 0; i < 2; i++) {
		if (pair[i] >= 0)
			close(pair[i]);
		pair[i] = -1;
	}
}

void fake_reset(void)
{
	static const char *const names[] = { "n1", "n2", "n3" };
	struct fake *f = fake();
	char key[64];

	close_pair(f->cpg_socket);
	close_pair(f->quorum_socket);
	*f = (struct fake){ .self = 1, .quorum_type = QUORUM_SET, .atomic_max = 1047552,
			    .cpg_socket = { -1, -1 }, .quorum_socket = { -1, -1 },
			    .send_result = CS_OK, .dispatch_result = CS_OK };
	for (uint32_t i = 0; i < 3; i++) {
		snprintf(key, sizeof(key), "nodelist.node.%u.nodeid", i);
		fake_set_number(key, i + 1);
		snprintf(key, sizeof(key), "nodelist.node.%u.name", i);
		fake_set_text(key, names[i]);
	}
	fake_set_text("totem.cluster_name", "fake");
}

/* The client's end is readable as long as there is something to dispatch. */
static void wake(int fd)
{
	if (send(fd, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1 && errno != EAGAIN)
		bail_out("nobody listens to the fake corosync");
}

static void calm(int fd)
{
	char bytes[64];

	while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

static struct fake_event *add_event(void)
{
	struct fake *f = fake();

	if (f->events == FAKE_EVENTS_MAX)
		bail_out("too many events");
	wake(f->cpg_socket[1]);
	return &f->event[(f->first + f->events++) % FAKE_EVENTS_MAX];
}

void fake_message(uint32_t node, uint32_t pid, size_t size)
{
	*add_event() = (struct fake_event){ .type = FAKE_MESSAGE, .node = node, .pid = pid, .size = size };
}

static size_t make_list(struct cpg_address *list, const unsigned *numbers)
{
	size_t count = 0;

	for (; count < 4 && numbers[count] != 0; count++) {
		list[count].nodeid = numbers[count] / 10;
		list[count].pid = numbers[count] == 10 ? (uint32_t)getpid() : 1000 + numbers[count] % 10;
	}
	return count;
}

void fake_confchg(const unsigned *member, const unsigned *left, const unsigned *joined)
{
	struct fake_event *e = add_event();

	*e = (struct fake_event){ .type = FAKE_CONFCHG };
	e->members = make_list(e->member, member);
	e->lefts = make_list(e->left, left);
	e->joins = make_list(e->joined, joined);
}

void fake_totem(uint64_t seq)
{
	*add_event() = (struct fake_event){ .type = FAKE_TOTEM, .ring = { .nodeid = 1, .seq = seq } };
}

void fake_quorum(uint64_t seq, bool quorate)
{
	struct fake *f = fake();

	f->quorum_told = true;
	f->quorum_flag = quorate;
	f->quorum_ring = (struct quorum_ring_id){ .nodeid = 1, .seq = seq };
	wake(f->quorum_socket[1]);
}

void fake_die(void)
{
	struct fake *f = fake();

	f->dispatch_result = CS_ERR_LIBRARY;
	close(f->cpg_socket[1]);
	close(f->quorum_socket[1]);
	f->cpg_socket[1] = f->quorum_socket[1] = -1;
}

/* ---- corosync's side ---- */

static cs_error_t outcome(void)
{
	struct fake *f = fake();

	f->calls++;
	if (f->fail_at == 0 || f->calls < f->fail_at || (f->calls > f->fail_at && !f->fail_on))
		return CS_OK;
	return f->fail_with;
}

/* Of a call that the library answers by itself, and so never with "try again". */
static cs_error_t local_outcome(void)
{
	return fake()->fail_with == CS_ERR_TRY_AGAIN ? CS_OK : outcome();
}

/* What is waited for here, has come: naps take no time. */
int nanosleep(const struct timespec *nap, struct timespec *left)
{
	(void)nap;
	(void)left;
	fake()->naps++;
	return 0;
}

static void make_socket(int pair[2])
{
	int size = fake()->sndbuf;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		bail_out("no sockets");
	if (size > 0)
		setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
}

cs_error_t cpg_model_initialize(cpg_handle_t *handle, cpg_model_t model, cpg_model_data_t *data,
				void *context)
{
	struct fake *f = fake();
	cs_error_t e = outcome();

	if (e != CS_OK)
		return e;
	if (model != CPG_MODEL_V1)
		return CS_ERR_INVALID_PARAM;
	memcpy(&f->cpg_model, data, sizeof(f->cpg_model));
	f->cpg_context = context;
	make_socket(f->cpg_socket);
	f->cpg_handles++;
	*handle = 7;
	return CS_OK;
}

cs_error_t cpg_finalize(cpg_handle_t handle)
{
	(void)handle;
	fake()->cpg_handles--;
	close_pair(fake()->cpg_socket);
	return CS_OK;
}

cs_error_t cpg_context_get(cpg_handle_t handle, void **context)
{
	(void)handle;
	*context = fake()->cpg_context;
	return CS_OK;
}

cs_error_t cpg_fd_get(cpg_handle_t handle, int *fd)
{
	(void)handle;
	*fd = fake()->cpg_socket[0];
	return local_outcome();
}

cs_error_t cpg_local_get(cpg_handle_t handle, unsigned int *node)
{
	(void)handle;
	*node = fake()->self;
	return outcome();
}

cs_error_t cpg_max_atomic_msgsize_get(cpg_handle_t handle, uint32_t *size)
{
	(void)handle;
	*size = fake()->atomic_max;
	return local_outcome();
}

cs_error_t cpg_membership_get(cpg_handle_t handle, struct cpg_name *name, struct cpg_address *member,
			      int *count)
{
	struct fake *f = fake();

	(void)handle;
	(void)name;
	memcpy(member, f->already, sizeof(f->already));
	*count = f->already_times != 0 ? f->already_count : 0;
	if (f->already_times > 0)
		f->already_times--;
	return outcome();
}

cs_error_t cpg_join(cpg_handle_t handle, const struct cpg_name *name)
{
	cs_error_t e = outcome();

	(void)handle;
	(void)name;
	fake()->joined |= e == CS_OK;
	return e;
}

cs_error_t cpg_mcast_joined(cpg_handle_t handle, cpg_guarantee_t guarantee, const struct iovec *iov,
			    unsigned int count)
{
	struct fake *f = fake();

	(void)handle;
	(void)guarantee;
	if (f->send_result == CS_OK)
		f->sent++;
	for (unsigned i = 0; i < count && f->send_result == CS_OK; i++)
		f->sent_bytes += iov[i].iov_len;
	return f->send_result;
}

cs_error_t cpg_dispatch(cpg_handle_t handle, cs_dispatch_flags_t flags)
{
	static uint8_t zeros[65536];
	const struct cpg_name name = { .length = 4, .value = "fake" };
	struct fake *f = fake();
	struct fake_event *e = &f->event[f->first];

	if (flags != CS_DISPATCH_ONE_NONBLOCKING)
		bail_out("a dispatch that the fake corosync does not know");
	if (f->events == 0)
		return f->dispatch_result == CS_OK ? CS_ERR_TRY_AGAIN : f->dispatch_result;
	f->first = (f->first + 1) % FAKE_EVENTS_MAX;
	f->events--;
	if (f->events == 0)
		calm(f->cpg_socket[0]);
	if (e->type == FAKE_MESSAGE)
		f->cpg_model.cpg_deliver_fn(handle, &name, e->node, e->pid, zeros, e->size);
	else if (e->type == FAKE_CONFCHG)
		f->cpg_model.cpg_confchg_fn(handle, &name, e->member, e->members, e->left, e->lefts,
					    e->joined, e->joins);
	else
		f->cpg_model.cpg_totem_confchg_fn(handle, e->ring, 0, NULL);
	return CS_OK;
}

cs_error_t quorum_model_initialize(quorum_handle_t *handle, quorum_model_t model,
				   quorum_model_data_t *data, uint32_t *type, void *context)
{
	struct fake *f = fake();
	cs_error_t e = outcome();

	if (e != CS_OK)
		return e;
	if (model != QUORUM_MODEL_V1)
		return CS_ERR_INVALID_PARAM;
	memcpy(&f->quorum_model, data, sizeof(f->quorum_model));
	f->quorum_context = context;
	make_socket(f->quorum_socket);
	f->quorum_handles++;
	*type = f->quorum_type;
	*handle = 8;
	return CS_OK;
}

cs_error_t quorum_finalize(quorum_handle_t handle)
{
	(void)handle;
	fake()->quorum_handles--;
	close_pair(fake()->quorum_socket);
	return CS_OK;
}

cs_error_t quorum_context_get(quorum_handle_t handle, const void **context)
{
	(void)handle;
	*context = fake()->quorum_context;
	return CS_OK;
}

cs_error_t quorum_fd_get(quorum_handle_t handle, int *fd)
{
	(void)handle;
	*fd = fake()->quorum_socket[0];
	return local_outcome();
}

cs_error_t quorum_trackstart(quorum_handle_t handle, unsigned int flags)
{
	(void)handle;
	(void)flags;
	fake()->tracking = true;
	return outcome();
}

cs_error_t quorum_dispatch(quorum_handle_t handle, cs_dispatch_flags_t flags)
{
	struct fake *f = fake();

	(void)flags;
	if (f->dispatch_result != CS_OK)
		return f->dispatch_result;
	calm(f->quorum_socket[0]);
	if (f->quorum_told)
		f->quorum_model.quorum_notify_fn(handle, f->quorum_flag, f->quorum_ring, 0, NULL);
	f->quorum_told = false;
	return CS_OK;
}

cs_error_t cmap_initialize(cmap_handle_t *handle)
{
	cs_error_t e = outcome();

	if (e == CS_OK)
		fake()->cmap_handles++;
	*handle = 9;
	return e;
}

cs_error_t cmap_finalize(cmap_handle_t handle)
{
	(void)handle;
	fake()->cmap_handles--;
	return CS_OK;
}

static const struct fake_key *find_key(const char *name)
{
	struct fake *f = fake();

	for (unsigned i = 0; i < f->keys; i++)
		if (strcmp(f->key[i].name, name) == 0)
			return &f->key[i];
	return NULL;
}

cs_error_t cmap_get(cmap_handle_t handle, const char *name, void *value, size_t *size,
		    cmap_value_types_t *type)
{
	const struct fake_key *key = find_key(name);
	cs_error_t e = outcome();

	(void)handle;
	if (e != CS_OK)
		return e;
	if (!key)
		return CS_ERR_NOT_EXIST;
	*type = key->text ? CMAP_VALUETYPE_STRING : CMAP_VALUETYPE_UINT32;
	if (key->text || *size < sizeof(key->number))
		return CS_ERR_INVALID_PARAM;
	memcpy(value, &key->number, sizeof(key->number));
	*size = sizeof(key->number);
	return CS_OK;
}

cs_error_t cmap_get_string(cmap_handle_t handle, const char *name, char **text)
{
	const struct fake_key *key = find_key(name);
	cs_error_t e = outcome();

	(void)handle;
	if (e != CS_OK)
		return e;
	if (!key)
		return CS_ERR_NOT_EXIST;
	if (!key->text)
		return CS_ERR_INVALID_PARAM;
	*text = strdup(key->text);
	return *text ? CS_OK : CS_ERR_NO_MEMORY;
}

/* One iterator at a time, and only the prefix "nodelist.node." is asked for. */
cs_error_t cmap_iter_init(cmap_handle_t handle, const char *prefix, cmap_iter_handle_t *iter)
{
	cs_error_t e = outcome();

	(void)handle;
	(void)prefix;
	*iter = 10;
	fake()->next_key = 0;
	if (e == CS_OK)
		fake()->iterators++;
	return e;
}

cs_error_t cmap_iter_next(cmap_handle_t handle, cmap_iter_handle_t iter, char name[], size_t *size,
			  cmap_value_types_t *type)
{
	static const char prefix[] = "nodelist.node.";
	struct fake *f = fake();
	cs_error_t e = outcome();

	(void)handle;
	(void)iter;
	(void)size;
	(void)type;
	if (e != CS_OK)
		return e;
	while (f->next_key < f->keys && strncmp(f->key[f->next_key].name, prefix, sizeof(prefix) - 1) != 0)
		f->next_key++;
	if (f->next_key >= f->keys)
		return CS_ERR_NO_SECTIONS;
	strcpy(name, f->key[f->next_key++].name);
	return CS_OK;
}

cs_error_t cmap_iter_finalize(cmap_handle_t handle, cmap_iter_handle_t iter)
{
	(void)handle;
	(void)iter;
	fake()->iterators--;
	return CS_OK;
}
