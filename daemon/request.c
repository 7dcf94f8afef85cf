/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What clients ask for: messages become events of the core, its replies become answers. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/clock.h"
#include "daemon/server_private.h"

/* A client is prompt once so many of its unlocks were followed at once; it soon loses that. */
#define PROMPT_MIN 4u
#define PROMPT_MAX 8u

#define LATER_MAX 65536u	/* requests that wait until others have been heard */

/* What is being acted upon. */
struct turn {
	struct server *s;
	struct client *c;
	int fd;			/* came with the packet and is not used yet; -1 */
};

static void broken(struct turn *t, const char *text)
{
	t->s->stats.broken++;
	client_fail(t->s, t->c, &t->s->broken_limit, -EPROTO, text);
}

static void answer(struct server *s, struct client *c, uint32_t number, int result,
		   uint32_t handle, uint32_t resource)
{
	const struct client_message m = {
		.type = CLIENT_RESULT, .number = number, .result = result,
		.handle = handle, .resource = resource,
	};

	client_reply(s, c, &m);
}

/* ---- opening and closing ---- */

/* Answers to LOCK and TEST come where the client waits for them. */
static void answer_lock(struct server *s, struct client *c, const struct request *request, int result,
			uint64_t token)
{
	struct client_message m = {
		.type = CLIENT_RESULT, .number = request->number, .result = result,
		.handle = request->handle, .token = token,
	};

	loan_answer(s, c, &m);
	client_reply_in(s, c, request->cell, &m);
}

static int refused(const struct server *s, const struct client *c)
{
	return c->lost || s->leaving ? -EIO : 0;
}

/* The resource that a handle means by that kind of lock. */
static int resource_of(struct client *c, struct handle *h, enum belay_kind kind,
		       struct resource **ret_resource)
{
	struct resource **at = &h->resource[kind == BELAY_KIND_FLOCK];
	struct belay_key key = identity_key(&h->key, kind);
	int r = *at ? 0 : resources_get(&c->resources, &key, at);

	if (r < 0)
		return r;
	(*at)->may_read |= h->may_read;
	(*at)->may_write |= h->may_write;
	*ret_resource = *at;
	return 0;
}

/* The handle takes no more part; the number given up by that of the kind it was opened for. */
static uint32_t leave_resources(struct client *c, struct handle *h)
{
	uint32_t given_up = 0;

	for (unsigned i = 0; i < 2; i++)
		if (h->resource[i] && resources_close(&c->resources, h->resource[i]))
			given_up = h->resource[i]->number;
	return given_up;
}

void request_forget_handle(struct client *c, struct handle *h)
{
	if (!h->closing)
		(void)leave_resources(c, h);
	for (unsigned i = 0; i < 2; i++) {
		if (h->resource[i])
			resources_put(h->resource[i]);
		h->resource[i] = NULL;
	}
}

/* A node has locks of volumes only. */
static bool node_elsewhere(const struct belay_key *key, enum belay_kind kind)
{
	return kind == BELAY_KIND_NODE && key->lockspace != BELAY_LOCKSPACE_VOLUMES;
}

static int add_handle(struct turn *t, const struct identity *id, const char *text, size_t size,
		      enum belay_kind kind, uint32_t *ret_number, uint32_t *ret_resource)
{
	struct client *c = t->c;
	struct resource *resource;
	struct handle *h;
	uint32_t number;
	int r = node_elsewhere(&id->key, kind) ? -EINVAL : client_record(t->s, c);

	if (r == 0)
		r = names_add(&t->s->names, &id->key, text, size);
	if (r < 0)
		return r;
	r = handles_add(&c->handles, &id->key, &number);
	if (r < 0)
		goto fail_name;
	h = handles_find(&c->handles, number);
	h->may_read = id->may_read;
	h->may_write = id->may_write;
	h->may_flock = id->may_flock;
	r = resource_of(c, h, kind, &resource);
	if (r < 0)
		goto fail_handle;
	t->s->stats.handles++;
	*ret_number = number;
	*ret_resource = resource->number;
	return 0;

fail_handle:
	handles_remove(&c->handles, number);
fail_name:
	names_remove(&t->s->names, &id->key);
	return r;
}

static void on_open_fd(struct turn *t, const struct client_message *m)
{
	char link[64], path[PATH_MAX];
	struct identity id;
	uint32_t handle = 0, resource = 0;
	ssize_t size;
	int r = refused(t->s, t->c);

	if (t->fd < 0) {
		broken(t, "it asked to open a file and passed no descriptor");
		return;
	}
	if (r == 0)
		r = identity_of_file(&t->s->identities, t->fd, t->c->peer.pid, &id);
	if (r == 0) {
		(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", t->fd);
		size = readlink(link, path, sizeof(path));
		r = add_handle(t, &id, path, size > 0 ? (size_t)size : 0, m->kind, &handle, &resource);
	}
	t->fd = -1;
	answer(t->s, t->c, m->number, r, handle, resource);
}

static void on_open_name(struct turn *t, const struct client_message *m)
{
	struct identity id;
	uint32_t handle = 0, resource = 0;
	int r = refused(t->s, t->c);

	if (r == 0)
		r = identity_of_name(&t->s->identities, &t->c->peer, m->text, m->text_size,
				     m->text2, m->text2_size, &id);
	if (r == 0)
		r = add_handle(t, &id, m->text2, m->text2_size, m->kind, &handle, &resource);
	answer(t->s, t->c, m->number, r, handle, resource);
}

struct belay_owner request_owner(const struct client *c, uint32_t handle, enum belay_kind kind)
{
	/* No matter which process asks. */
	if (kind == BELAY_KIND_NODE)
		return (struct belay_owner){ .client = BELAY_CLIENT_NODE, .kind = kind };
	/* A POSIX owner is the process; the others are the open file, which is the handle here. */
	return (struct belay_owner){
		.client = c->id,
		.key = kind == BELAY_KIND_POSIX ? 0 : handle,
		.pid = (uint32_t)c->peer.pid,
		.kind = kind,
	};
}

static int unlock(struct server *s, struct client *c, const struct handle *h, uint32_t handle,
		  enum belay_kind kind, const struct belay_range *range)
{
	const struct resource *resource = h->resource[kind == BELAY_KIND_FLOCK];
	struct belay_event ev = {
		.type = BELAY_EVENT_UNLOCK,
		.lock = {
			.key = identity_key(&h->key, kind),
			.range = *range,
			.owner = request_owner(c, handle, kind),
		},
	};

	if (resource)
		loan_take_back(s, resource, range);
	if (kind == BELAY_KIND_NODE)
		return node_unlock(s, &ev);
	return c->dead ? -EIO : engine_unlock(s->engine, &ev, c->prompt >= PROMPT_MIN);
}

/* Release what the handle's owners may hold, forget it, and answer. */
static void finish_close(struct server *s, struct client *c, uint32_t number)
{
	static const struct belay_range all = { .start = 0, .end = BELAY_OFFSET_MAX };
	struct handle *h = handles_find(&c->handles, number);
	uint32_t close_number = h->close_number, resource = h->close_resource;

	for (unsigned kind = 0; kind < BELAY_KIND_COUNT && !c->dead; kind++)
		if ((h->kinds & 1u << kind) && kind != BELAY_KIND_NODE)
			(void)unlock(s, c, h, number, (enum belay_kind)kind, &all);
	/* A client that has written rubbish into a loan is gone, with all its handles. */
	if (c->dead)
		return;
	request_forget_handle(c, h);
	names_remove(&s->names, &h->key);
	handles_remove(&c->handles, number);
	s->stats.handles--;
	answer(s, c, close_number, 0, 0, resource);
}

/* The node has one client in the core, whoever asks for it: so the cookie tells who. */
static uint64_t cookie_of(const struct client *c, uint32_t number)
{
	return (uint64_t)c->id << 32 | number;
}

static void cancel(struct server *s, struct client *c, struct request *request)
{
	struct belay_event ev = {
		.type = BELAY_EVENT_CANCEL,
		.client = {
			.client = request->node ? BELAY_CLIENT_NODE : c->id,
			.cookie = cookie_of(c, request->number),
		},
	};

	request->cancelled = true;
	/* -ENOENT: it was answered meanwhile, which is as good. */
	(void)engine_step(s->engine, &ev);
}

/*
 * Withdraw the requests of a handle (0: of all). Answers may come at once, and
 * move the others about in the table: hence again until there is none left.
 */
static void cancel_requests(struct server *s, struct client *c, uint32_t handle)
{
	struct requests *rs = &c->requests;
	bool again;

	do {
		again = false;
		for (uint32_t i = 0; i < rs->size; i++) {
			struct request *request = &rs->slot[i];

			if (request->number == 0 || request->cancelled ||
			    (handle != 0 && request->handle != handle))
				continue;
			cancel(s, c, request);
			again = true;
		}
	} while (again);
}

/* They are not its own in the core. What is granted all the same stays the node's. */
void request_cancel_node(struct server *s, struct client *c)
{
	for (uint32_t i = 0; i < c->requests.size; i++) {
		struct request *request = &c->requests.slot[i];

		if (request->number != 0 && request->node && !request->cancelled)
			cancel(s, c, request);
	}
}

void request_cancel_all(struct server *s, struct client *c)
{
	cancel_requests(s, c, 0);
}

/* All that was lent of the handle's resources ends, for the CLOSE is about all of them. */
static void take_all_back(struct turn *t, struct handle *h)
{
	static const struct belay_range all = { .start = 0, .end = BELAY_OFFSET_MAX };

	for (unsigned i = 0; i < 2 && !t->c->dead; i++) {
		if (!h->resource[i])
			continue;
		h->resource[i]->messages++;
		loan_take_back(t->s, h->resource[i], &all);
	}
}

static void on_close(struct turn *t, const struct client_message *m)
{
	struct handle *h = handles_find(&t->c->handles, m->handle);

	if (!h || h->closing) {
		answer(t->s, t->c, m->number, -EBADF, 0, 0);
		return;
	}
	take_all_back(t, h);
	if (t->c->dead)
		return;
	h->close_resource = leave_resources(t->c, h);
	h->closing = true;
	h->close_number = m->number;
	/* A request in flight may still be granted: what it brings has to be released, too. */
	if (h->requests > 0)
		cancel_requests(t->s, t->c, m->handle);
	if (h->requests == 0)
		finish_close(t->s, t->c, m->handle);
}

void request_finish_closing(struct server *s, struct client *c)
{
	for (uint32_t n = 1; n <= c->handles.used && !c->dead; n++) {
		const struct handle *h = handles_find(&c->handles, n);

		if (h && h->closing && h->requests == 0)
			finish_close(s, c, n);
	}
}

/* ---- locking ---- */

/* Learn whether this client's next request tends to follow its unlock at once. */
static void note_request(struct turn *t)
{
	struct client *c = t->c;

	if (c->unlocked_us == 0)
		return;
	if (clock_now_us() - c->unlocked_us > t->s->config->unlock_linger_us)
		c->prompt /= 2;
	else if (c->prompt < PROMPT_MAX)
		c->prompt++;
	c->unlocked_us = 0;
}

/* flock(2) knows no ranges, and a node has no part of a volume. */
static bool part_of_whole(const struct client_message *m)
{
	return m->kind >= BELAY_KIND_FLOCK &&
	       (m->range.start != 0 || m->range.end != BELAY_OFFSET_MAX);
}

static int check(const struct turn *t, const struct handle *h, const struct client_message *m)
{
	int r = refused(t->s, t->c);

	if (r < 0)
		return r;
	if (!h || h->closing)
		return -EBADF;
	if (part_of_whole(m) || node_elsewhere(&h->key, m->kind))
		return -EINVAL;
	if (m->type != CLIENT_LOCK || (m->kind == BELAY_KIND_FLOCK && h->may_flock))
		return 0;
	return (m->mode == BELAY_MODE_EX ? h->may_write : h->may_read) ? 0 : -EBADF;
}

static void answer_request(struct server *s, struct client *c, const struct request *request,
			   const struct belay_action *a)
{
	struct client_message m = {
		.type = CLIENT_TESTED, .number = request->number, .result = a->result,
		.held = a->held && a->result == 0,
	};

	if (!request->test) {
		answer_lock(s, c, request, a->result, a->token);
		return;
	}
	if (m.held) {
		m.owner = a->holder;
		m.range = a->range;
		m.mode = a->mode;
	}
	client_reply_in(s, c, request->cell, &m);
}

static void forget(struct server *s, struct client *c, const struct request *request)
{
	struct handle *h = handles_find(&c->handles, request->handle);

	s->stats.requests--;
	if (request->lend)
		c->loans.wanted--;
	if (!h)
		return;
	h->requests--;
	if (!h->closing || h->requests > 0 || c->closing_due)
		return;
	c->closing_due = true;
	TAILQ_INSERT_TAIL(&s->closing, c, closing_link);
	engine_turn(s->engine);
}

void request_answered(struct server *s, const struct belay_action *action)
{
	struct client *c = server_find(s, (uint32_t)(action->cookie >> 32));
	struct belay_action a = *action;
	struct request request;

	if (!c || requests_take(&c->requests, (uint32_t)a.cookie, &request) < 0)
		return;
	/* Withdrawn by us, not by the client. */
	if (a.result == -EINTR && s->leaving)
		a.result = -EIO;
	answer_request(s, c, &request, &a);
	forget(s, c, &request);
}

static void refuse(struct turn *t, const struct client_message *m, int error)
{
	const struct request request = {
		.number = m->number, .handle = m->handle, .cell = m->cell,
		.test = m->type == CLIENT_TEST,
	};
	const struct belay_action a = { .result = error };

	answer_request(t->s, t->c, &request, &a);
}

static int start_request(struct turn *t, const struct client_message *m, struct handle *h)
{
	struct request request = {
		.number = m->number, .handle = m->handle, .cell = m->cell,
		.test = m->type == CLIENT_TEST, .node = m->kind == BELAY_KIND_NODE,
	};
	struct belay_event ev = {
		.type = BELAY_EVENT_LOCK,
		.lock = {
			.key = identity_key(&h->key, m->kind),
			.range = m->range,
			.owner = request_owner(t->c, m->handle, m->kind),
			.mode = m->mode,
			.wait = m->wait,
			.test = request.test,
			.cookie = cookie_of(t->c, m->number),
		},
	};
	struct request taken;
	int r;

	/* Its record may have been dropped when it held nothing. */
	r = request.test || request.node ? 0 : client_record(t->s, t->c);
	if (r < 0)
		return r;
	if (request.node && !request.test)
		node_lock_wanted(&t->s->node_unlocks, &ev.lock.key);
	request.lend = ev.lock.lend = m->lend && loan_want(t->s, t->c);
	r = requests_add(&t->c->requests, &request);
	if (r < 0) {
		t->c->loans.wanted -= request.lend;
		return r;
	}
	h->requests++;
	h->kinds |= (uint8_t)(1u << m->kind);
	t->s->stats.requests++;
	r = engine_step(t->s->engine, &ev);
	if (r < 0 && !t->c->dead && requests_take(&t->c->requests, m->number, &taken) == 0)
		forget(t->s, t->c, &taken);
	return r;
}

/*
 * A message about a resource is taken: the client's loans that it touches are
 * over, so that all they held is known. The client may be dead then.
 */
static int note_message(struct turn *t, const struct client_message *m, struct handle *h)
{
	struct resource *resource;
	int r = resource_of(t->c, h, m->kind, &resource);

	if (r < 0)
		return r;
	resource->messages++;
	loan_take_back(t->s, resource, &m->range);
	return 0;
}

/* Where the answer to a LOCK or TEST goes. */
static bool take_cell(struct turn *t, const struct client_message *m)
{
	if (m->cell == 0)
		return true;
	if (t->c->loans.share && share_cell_take(t->c->loans.share, m->cell) == 0)
		return true;
	broken(t, "it asked for an answer in a cell that is in use or that does not exist");
	return false;
}

static void on_lock(struct turn *t, const struct client_message *m)
{
	struct handle *h = handles_find(&t->c->handles, m->handle);
	int r;

	if (!take_cell(t, m))
		return;
	r = h && !h->closing ? note_message(t, m, h) : 0;
	if (t->c->dead)
		return;
	if (r == 0)
		r = check(t, h, m);
	note_request(t);
	if (r == 0)
		r = start_request(t, m, h);
	if (r == -EEXIST)
		broken(t, "it gave two requests the same number");
	else if (r < 0)
		refuse(t, m, r);
}

/* False: it cannot wait, or nobody else could have sent anything. */
static bool wait_for_others(struct turn *t, const struct client_message *m)
{
	struct server *s = t->s;

	if ((m->type == CLIENT_LOCK && m->wait) || s->stats.clients < 2 || s->later_count == LATER_MAX)
		return false;
	if (s->later_count == s->later_size) {
		uint32_t size = s->later_size ? 2 * s->later_size : 16;
		struct later *later = realloc(s->later, size * sizeof(*later));

		if (!later)
			return false;
		s->later = later;
		s->later_size = size;
	}
	s->later[s->later_count++] = (struct later){ .client = t->c->id, .m = *m };
	return true;
}

void request_run_later(struct server *s, uint32_t count)
{
	uint32_t i;

	assert(count <= s->later_count);
	for (i = 0; i < count; i++) {
		struct turn t = { .s = s, .c = server_find(s, s->later[i].client), .fd = -1 };

		if (t.c && !t.c->dead)
			on_lock(&t, &s->later[i].m);
	}
	s->later_count -= count;
	/* There is no array as long as nobody had to wait. */
	if (count > 0)
		memmove(s->later, s->later + count, s->later_count * sizeof(*s->later));
}

static void on_unlock(struct turn *t, const struct client_message *m)
{
	struct handle *h = handles_find(&t->c->handles, m->handle);
	int r = h && !h->closing ? note_message(t, m, h) : -EBADF;

	if (t->c->dead)
		return;
	if (t->c->lost)
		r = -EIO;
	if (r == 0 && (part_of_whole(m) || node_elsewhere(&h->key, m->kind)))
		r = -EINVAL;
	note_request(t);
	if (r == 0) {
		if (m->kind == BELAY_KIND_NODE)
			h->kinds &= (uint8_t)~(1u << BELAY_KIND_NODE);
		r = unlock(t->s, t->c, h, m->handle, m->kind, &m->range);
		t->c->unlocked_us = clock_now_us();
	}
	if (m->number != 0)
		answer(t->s, t->c, m->number, r, 0, 0);
}

/* ---- memory in common ---- */

static void on_share(struct turn *t, const struct client_message *m)
{
	struct client_message result = { .type = CLIENT_RESULT, .number = m->number };

	result.result = loan_share(t->s, t->c);
	if (result.result == -EEXIST) {
		broken(t, "it asked twice for memory to share");
		return;
	}
	if (result.result < 0) {
		client_reply(t->s, t->c, &result);
		return;
	}
	t->s->stats.sharing++;
	client_reply_with(t->s, t->c, &result, share_descriptor(t->c->loans.share));
}

static void on_return(struct turn *t, const struct client_message *m)
{
	if (loan_return(t->s, t->c, m->slot, m->epoch) < 0)
		broken(t, "it returned a loan that it does not have");
}

static void on_cancel(struct turn *t, const struct client_message *m)
{
	struct request *request = requests_find(&t->c->requests, m->number);

	if (request && !request->cancelled)
		cancel(t->s, t->c, request);
}

struct resource *request_resource(const struct client *c, uint32_t number, const struct belay_key *key)
{
	const struct request *request = requests_find(&c->requests, number);
	const struct handle *h;

	assert(request);
	h = handles_find(&c->handles, request->handle);
	assert(h);
	return h->resource[identity_is_flock(key)];
}

/* ---- packets ---- */

static void on_hello(struct turn *t, const struct client_message *m)
{
	struct client_message welcome = {
		.type = CLIENT_WELCOME, .version = CLIENT_VERSION,
		.node = engine_group_info(t->s->engine)->self,
	};
	char text[128];

	if (t->c->greeted) {
		broken(t, "it said hello twice");
		return;
	}
	if (m->version != CLIENT_VERSION) {
		(void)snprintf(text, sizeof(text), "its libbelay speaks version %" PRIu32 " of the "
			       "protocol, this belayd version %d: install the same release of both",
			       m->version, CLIENT_VERSION);
		t->s->stats.broken++;
		client_fail(t->s, t->c, &t->s->broken_limit, -EPROTONOSUPPORT, text);
		return;
	}
	t->c->greeted = true;
	client_reply(t->s, t->c, &welcome);
}

static void on_message(struct turn *t, const struct client_message *m)
{
	bool numbered = m->type != CLIENT_HELLO && m->type != CLIENT_UNLOCK && m->type != CLIENT_RETURN;

	if (!t->c->greeted && m->type != CLIENT_HELLO) {
		broken(t, "it did not say hello first");
		return;
	}
	if (numbered && m->number == 0) {
		broken(t, "it sent a request without a number");
		return;
	}
	switch (m->type) {
	case CLIENT_HELLO:
		on_hello(t, m);
		break;
	case CLIENT_OPEN_FD:
		on_open_fd(t, m);
		break;
	case CLIENT_OPEN_NAME:
		on_open_name(t, m);
		break;
	case CLIENT_CLOSE:
		on_close(t, m);
		break;
	case CLIENT_LOCK:
	case CLIENT_TEST:
		if (!wait_for_others(t, m))
			on_lock(t, m);
		break;
	case CLIENT_UNLOCK:
		on_unlock(t, m);
		break;
	case CLIENT_CANCEL:
		on_cancel(t, m);
		break;
	case CLIENT_COMMAND:
		admin_command(t->s, t->c, m);
		break;
	case CLIENT_SHARE:
		on_share(t, m);
		break;
	case CLIENT_RETURN:
		on_return(t, m);
		break;
	default:
		broken(t, "it sent what only belayd may send");
		break;
	}
}

void request_packet(struct server *s, struct client *c, const void *buf, size_t size,
		    const int *fds, size_t fd_count)
{
	struct turn t = { .s = s, .c = c, .fd = fd_count == 1 ? fds[0] : -1 };
	struct client_message m;
	size_t at = 0;
	int r = 1;

	if (fd_count > 1) {
		broken(&t, "it passed more than one file descriptor at once");
		return;
	}
	while (!c->dead && (r = client_get(buf, size, &at, &m)) == 1) {
		s->stats.messages++;
		on_message(&t, &m);
	}
	if (c->dead)
		return;
	if (r < 0)
		broken(&t, "it sent a message that makes no sense");
	else if (t.fd >= 0)
		broken(&t, "it passed a file descriptor that nothing it asked for needs");
}
