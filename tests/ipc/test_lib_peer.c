/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libbelay against a belayd that is played by the test: what goes over the
 * socket, packet by packet, and what the library makes of answers that come
 * late, in another order, in pieces, wrong, or not at all.
 */
#include <poll.h>

#include "tests/ipc/peer.h"

/* ---- connecting ---- */

static void refuse_users(struct peer *peer)
{
	static const struct client_message error[] = {
		{ .type = CLIENT_ERROR, .result = -EUSERS, .text = "full", .text_size = 4 },
		{ .type = CLIENT_TYPE_COUNT },
	};
	peer_accept(peer, error);
	peer_hang_up(peer);
}

static void refuse_version(struct peer *peer)
{
	static const struct client_message other[] = {
		{ .type = CLIENT_WELCOME, .version = CLIENT_VERSION + 1, .node = 7 },
		{ .type = CLIENT_TYPE_COUNT },
	};
	peer_accept(peer, other);
	peer_hang_up(peer);
}

static void refuse_garbage(struct peer *peer)
{
	peer_accept(peer, NULL);
	if (send(peer->conn, "garbage", 7, MSG_NOSIGNAL) != 7)
		diag("not sent");
	peer_hang_up(peer);
}

static void refuse_silently(struct peer *peer)
{
	peer_accept(peer, NULL);
	peer_hang_up(peer);
}

static void accept_one(struct peer *peer)
{
	peer_accept(peer, welcome);
}

static int try_connect(struct peer *peer, void (*run)(struct peer *))
{
	struct script script = { peer, run };
	pthread_t thread = play(&script);
	struct belay *belay = NULL;
	int r = belay_connect(&belay, peer->path);

	pthread_join(thread, NULL);
	ok((r == 0) == (belay != NULL), "a connection only if it succeeds");
	belay_disconnect(belay);
	peer_hang_up(peer);
	return r;
}

/* Connections that nobody accepts, as many as there is room for; the caller's to close. */
static unsigned crowd(const struct peer *peer, int *fds, unsigned max)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	unsigned n;

	memcpy(address.sun_path, peer->path, sizeof(peer->path));
	for (n = 0; n < max; n++) {
		fds[n] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (connect(fds[n], (struct sockaddr *)&address, sizeof(address)) < 0) {
			close(fds[n]);
			break;
		}
	}
	return n;
}

/* belayd is stopped, as by SIGSTOP: its socket is there, and it does nothing. */
static void test_connect_in_vain(void)
{
	struct peer peer;
	struct belay *belay = NULL;
	int fds[64];
	unsigned n;

	peer_open(&peer);
	ok_int(belay_connect(&belay, peer.path), -ETIMEDOUT, "a belayd that never greets");
	n = crowd(&peer, fds, 64);
	ok(n > 0 && n < 64, "no room for more who wait to be accepted");
	ok_int(belay_connect(&belay, peer.path), -ETIMEDOUT, "nor is that waited for without end");
	ok(!belay, "and no connection");
	while (n > 0)
		close(fds[--n]);
	peer_close(&peer);
}

static void never_open(struct peer *peer)
{
	peer_accept(peer, welcome);
}

static void test_open_in_vain(void)
{
	struct peer peer;
	struct script script = { &peer, never_open };
	struct belay_handle *handle = NULL;
	struct belay *belay = NULL;
	pthread_t thread;

	peer_open(&peer);
	thread = play(&script);
	ok_int(belay_connect(&belay, peer.path), 0, "a belayd that greets, and then hangs");
	pthread_join(thread, NULL);
	ok_int(belay_open_name(belay, NULL, "x", BELAY_OWNER_HANDLE, &handle), -ETIMEDOUT, "opens nothing");
	ok(!handle, "no handle");
	ok_int(belay_open_name(belay, NULL, "x", BELAY_OWNER_HANDLE, &handle), -EIO, "the connection is lost");
	belay_disconnect(belay);
	peer_close(&peer);

	peer_open(&peer);
	belay = with_handle(&peer, BELAY_OWNER_HANDLE, &handle);
	ok_int(belay_open_name(belay, NULL, "y", BELAY_OWNER_HANDLE, &handle), -ETIMEDOUT, "nor does it later");
	belay_handle_close(handle);
	belay_disconnect(belay);
	peer_close(&peer);
}

static void test_connect(void)
{
	struct peer peer;
	struct belay *belay = NULL;
	char longer[200];

	memset(longer, 'a', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	peer_open(&peer);
	ok_int(belay_connect(&belay, "/nonexistent/sock"), -ENOENT, "no socket");
	ok_int(belay_connect(&belay, longer), -ENAMETOOLONG, "a path that no socket can have");
	ok_int(belay_connect(&belay, ""), -ENOENT, "an empty path");
	ok_int(try_connect(&peer, refuse_users), -EUSERS, "belayd's own reason comes through");
	ok_int(try_connect(&peer, refuse_version), -EPROTONOSUPPORT, "another version");
	ok_int(try_connect(&peer, refuse_garbage), -EPROTONOSUPPORT, "no belayd at all");
	ok_int(try_connect(&peer, refuse_silently), -ECONNREFUSED, "closed without a word");
	ok_int(try_connect(&peer, accept_one), 0, "welcome");
	setenv("BELAY_SOCKET", "/nonexistent/sock", 1);
	ok_int(belay_connect(&belay, NULL), -ENOENT, "$BELAY_SOCKET names the socket");
	unsetenv("BELAY_SOCKET");
	close(peer.listener);
	peer.listener = -1;
	ok_int(belay_connect(&belay, peer.path), -ECONNREFUSED, "nobody listens");
	ok(belay == NULL, "nothing was returned");
	belay_disconnect(NULL);
	belay_handle_close(NULL);
	peer_close(&peer);
}

/* ---- one call, one packet each way ---- */

static void answer_lock(struct peer *peer)
{
	struct client_message m;

	peer->packets = 0;
	peer_get(peer, &m);
	PUT(peer, RESULT_OF(m, .token = 99));
	peer_get(peer, &m);
}

static void check_lock(const struct peer *peer)
{
	const struct client_message *lock = &peer->seen[0], *unlock = &peer->seen[1];

	ok_int(lock->type, CLIENT_LOCK, "LOCK");
	ok_int(lock->handle, 5, "of that handle");
	ok_int(lock->kind, BELAY_KIND_OFD, "for the handle");
	ok_int(lock->mode, BELAY_MODE_EX, "exclusive");
	ok(lock->wait, "waiting");
	ok_uint(lock->range.start, 10, "from");
	ok_uint(lock->range.end, 29, "to, included");
	ok_int(unlock->type, CLIENT_UNLOCK, "UNLOCK");
	ok_uint(unlock->number, 0, "that wants no answer");
	ok_uint(unlock->range.end, BELAY_OFFSET_MAX, "length 0 is all");
	ok_uint(peer->packets, 2, "a packet each");
}

static void test_call(void)
{
	struct peer peer;
	struct script script = { &peer, answer_lock };
	struct belay_handle *handle = NULL;
	struct belay *belay;
	uint64_t token = 0;
	pthread_t thread;
	int locked, unlocked;

	peer_open(&peer);
	belay = with_handle(&peer, BELAY_OWNER_HANDLE, &handle);
	ok_uint(belay_node(belay), 7, "the node's id");
	thread = play(&script);
	locked = belay_lock(handle, BELAY_EXCLUSIVE, 10, 20, &token);
	unlocked = belay_unlock(handle, 0, 0);
	pthread_join(thread, NULL);
	ok_int(locked, 0, "lock");
	ok_uint(token, 99, "its token");
	ok_int(unlocked, 0, "unlock waits for nothing");
	check_lock(&peer);
	ok_int(belay_lock(handle, BELAY_EXCLUSIVE, 1, UINT64_MAX, NULL), -EINVAL, "no such bytes");
	ok_int(belay_unlock(handle, UINT64_MAX, 1), -EINVAL, "nor these");
	ok_int(belay_lock(handle, (enum belay_lock_mode)5, 0, 0, NULL), -EINVAL, "no such mode");
	drop(&peer, belay, handle);
	peer_close(&peer);
}

/* ---- answers in another order, by whichever thread reads ---- */

static void answer_backwards(struct peer *peer)
{
	struct client_message m[4];
	unsigned i;

	for (i = 0; i < 4; i++)
		peer_get(peer, &m[i]);
	for (i = 4; i-- > 0;)
		PUT(peer, RESULT_OF(m[i], .token = m[i].range.start));
}

struct locker {
	struct belay_handle *handle;
	uint64_t start, token;
	int result;
};

static void *locker_thread(void *arg)
{
	struct locker *locker = arg;

	locker->result = belay_lock(locker->handle, BELAY_SHARED, locker->start, 1, &locker->token);
	return NULL;
}

static void test_order(void)
{
	struct peer peer;
	struct script script = { &peer, answer_backwards };
	struct locker locker[4];
	struct belay_handle *handle = NULL;
	struct belay *belay;
	pthread_t thread, lockers[4];
	unsigned i, round;

	peer_open(&peer);
	belay = with_handle(&peer, BELAY_OWNER_PROCESS, &handle);
	for (round = 0; round < 20; round++) {
		bool right = true;

		thread = play(&script);
		for (i = 0; i < 4; i++) {
			locker[i] = (struct locker){ handle, 1000 + i, 0, -1 };
			pthread_create(&lockers[i], NULL, locker_thread, &locker[i]);
		}
		for (i = 0; i < 4; i++) {
			pthread_join(lockers[i], NULL);
			right = right && locker[i].result == 0 && locker[i].token == 1000 + i;
		}
		pthread_join(thread, NULL);
		ok(right, "round %u: each thread got its own answer", round);
	}
	drop(&peer, belay, handle);
	peer_close(&peer);
}

/* ---- commands ---- */

static void answer_commands(struct peer *peer)
{
	struct client_message m;

	peer_get(peer, &m);
	peer->right = m.type == CLIENT_COMMAND && m.text_size == 6 &&
		      memcmp(m.text, "status", 6) == 0;
	PUT(peer, { .type = CLIENT_TEXT, .number = m.number, .more = true, .text = "{\"a\":", .text_size = 5 },
	    { .type = CLIENT_TEXT, .number = m.number, .more = true, .text = "1", .text_size = 1 });
	PUT(peer, { .type = CLIENT_TEXT, .number = m.number, .text = "}", .text_size = 1 });
	peer_get(peer, &m);
	PUT(peer, { .type = CLIENT_TEXT, .number = m.number, .result = -EBUSY, .text = "why", .text_size = 3 });
	peer_get(peer, &m);
	PUT(peer, { .type = CLIENT_TEXT, .number = m.number, .result = -EBUSY, .text = "why", .text_size = 3 });
}

static void test_command(void)
{
	struct peer peer;
	struct script script = { &peer, answer_commands };
	struct belay_handle *handle = NULL;
	struct belay *belay;
	char *text = NULL;
	char *big;
	pthread_t thread;

	peer_open(&peer);
	belay = with_handle(&peer, BELAY_OWNER_FLOCK, &handle);
	thread = play(&script);
	ok_int(belay_command(belay, "status", &text), 0, "a command");
	ok_str(text, "{\"a\":1}", "its answer, put together");
	free(text);
	text = NULL;
	ok_int(belay_command(belay, "fence-ack 3", &text), -EBUSY, "one that fails");
	ok_str(text, "why", "the reason");
	free(text);
	ok_int(belay_command(belay, "fence-ack 3", NULL), -EBUSY, "and one whose reason nobody wants");
	pthread_join(thread, NULL);
	ok(peer.right, "COMMAND status");
	big = calloc(1, CLIENT_TEXT_MAX + 2);
	memset(big, 'x', CLIENT_TEXT_MAX + 1);
	ok_int(belay_command(belay, big, NULL), -E2BIG, "too long a command");
	free(big);
	ok_int(belay_lock(handle, BELAY_SHARED, 0, 10, NULL), -EINVAL, "flock knows no ranges");
	drop(&peer, belay, handle);
	peer_close(&peer);
}

/* ---- the end of a connection ---- */

static void say_lost(struct peer *peer)
{
	struct client_message m;

	peer_get(peer, &m);
	PUT(peer, { .type = CLIENT_LOST });
}

static void grant_and_lose(struct peer *peer)
{
	struct client_message m;

	peer_get(peer, &m);
	PUT(peer, RESULT_OF(m, .token = 99));
	PUT(peer, { .type = CLIENT_LOST });
}

/* belayd says so while nobody reads, and leaves the connection open. */
static void test_lost_unread(void)
{
	struct peer peer;
	struct script script = { &peer, grant_and_lose };
	struct belay_handle *handle = NULL;
	struct belay *belay;
	pthread_t thread;

	peer_open(&peer);
	belay = with_handle(&peer, BELAY_OWNER_HANDLE, &handle);
	thread = play(&script);
	ok_int(belay_lock(handle, BELAY_EXCLUSIVE, 10, 20, NULL), 0, "a lock that is lost soon");
	pthread_join(thread, NULL);
	ok_int(belay_unlock(handle, 10, 20), -EIO, "its unlock says so");
	drop(&peer, belay, handle);
	peer_close(&peer);
}

static void answer_wrongly(struct peer *peer)
{
	struct client_message m;

	peer_get(peer, &m);
	m.number += 1;
	PUT(peer, RESULT_OF(m));
}

static void answer_otherwise(struct peer *peer)
{
	struct client_message m;

	peer_get(peer, &m);
	PUT(peer, { .type = CLIENT_TEXT, .number = m.number, .text = "no", .text_size = 2 });
}

static void answer_garbage(struct peer *peer)
{
	struct client_message m;

	peer_get(peer, &m);
	if (send(peer->conn, "\4\0garbage", 9, MSG_NOSIGNAL) != 9)
		diag("not sent");
}

static void hang_up(struct peer *peer)
{
	struct client_message m;

	peer_get(peer, &m);
	peer_hang_up(peer);
}

static void test_lost(const char *what, void (*run)(struct peer *))
{
	struct peer peer;
	struct script script = { &peer, run };
	struct belay_handle *handle = NULL, *other = NULL;
	struct belay_lock_holder holder;
	struct belay_event_info event;
	struct belay *belay;
	struct pollfd p = { .events = POLLIN };
	uint32_t request;
	pthread_t thread;

	peer_open(&peer);
	belay = with_handle(&peer, BELAY_OWNER_PROCESS, &handle);
	thread = play(&script);
	ok_int(belay_lock(handle, BELAY_EXCLUSIVE, 0, 0, NULL), -EIO, "%s: lock", what);
	pthread_join(thread, NULL);
	p.fd = belay_fd(belay);
	ok_int(poll(&p, 1, 0), 1, "%s: a poll loop hears of it", what);
	ok_int(belay_next(belay, &event), -EIO, "%s: next", what);
	ok_int(belay_trylock(handle, BELAY_EXCLUSIVE, 0, 0, NULL), -EIO, "%s: trylock", what);
	ok_int(belay_lock_timed(handle, BELAY_EXCLUSIVE, 0, 0, 1000, NULL), -EIO, "%s: timed", what);
	ok_int(belay_unlock(handle, 0, 0), -EIO, "%s: unlock", what);
	ok_int(belay_get(handle, BELAY_SHARED, 0, 0, &holder), -EIO, "%s: get", what);
	ok_int(belay_lock_start(handle, BELAY_SHARED, 0, 0, &request), -EIO, "%s: start", what);
	ok_int(belay_lock_cancel(belay, 1), -EIO, "%s: cancel", what);
	ok_int(belay_open_name(belay, NULL, "y", BELAY_OWNER_HANDLE, &other), -EIO, "%s: open", what);
	ok_int(belay_open_fd(belay, 0, BELAY_OWNER_HANDLE, &other), -EIO, "%s: open_fd", what);
	ok_int(belay_command(belay, "status", NULL), -EIO, "%s: command", what);
	drop(&peer, belay, handle);
	peer_close(&peer);
}

/* ---- timed ---- */

static void grant_late(struct peer *peer)
{
	struct client_message lock, m;

	peer_get(peer, &lock);
	peer_get(peer, &m);
	peer->right = m.type == CLIENT_CANCEL && m.number == lock.number;
	PUT(peer, RESULT_OF(lock, .token = 3));
}

static void cancel_late(struct peer *peer)
{
	struct client_message lock, m;

	peer_get(peer, &lock);
	peer_get(peer, &m);
	peer->right = m.type == CLIENT_CANCEL && m.number == lock.number;
	PUT(peer, RESULT_OF(lock, .result = -EINTR));
}

static void answer_busy(struct peer *peer)
{
	struct client_message lock;

	peer_get(peer, &lock);
	peer->right = !lock.wait;
	PUT(peer, RESULT_OF(lock, .result = -EAGAIN));
}

static void answer_early(struct peer *peer)
{
	struct client_message m;

	peer_get(peer, &m);
	PUT(peer, RESULT_OF(m, .result = -EDEADLK));
}

static int run_timed(void (*run)(struct peer *), unsigned timeout_ms, uint64_t *ret_token)
{
	struct peer peer;
	struct script script = { &peer, run };
	struct belay_handle *handle = NULL;
	struct belay *belay;
	pthread_t thread;
	int r;

	peer_open(&peer);
	belay = with_handle(&peer, BELAY_OWNER_PROCESS, &handle);
	thread = play(&script);
	r = belay_lock_timed(handle, BELAY_EXCLUSIVE, 0, 0, timeout_ms, ret_token);
	pthread_join(thread, NULL);
	ok(run == answer_early || peer.right, "what was asked is right");
	drop(&peer, belay, handle);
	peer_close(&peer);
	return r;
}

static void test_timed(void)
{
	uint64_t token = 0;

	ok_int(run_timed(grant_late, 20, &token), 0, "a grant that crosses the CANCEL counts");
	ok_uint(token, 3, "its token");
	ok_int(run_timed(cancel_late, 20, NULL), -ETIMEDOUT, "else it is a timeout");
	ok_int(run_timed(answer_busy, 0, NULL), -ETIMEDOUT, "no time at all is to try");
	ok_int(run_timed(answer_early, 100000, NULL), -EDEADLK, "other results come through");
}

/* ---- without waiting ---- */

static void answer_started(struct peer *peer)
{
	struct client_message m[3], cancel;
	unsigned i;

	for (i = 0; i < 3; i++)
		peer_get(peer, &m[i]);
	peer_get(peer, &cancel);
	peer->right = cancel.type == CLIENT_CANCEL && cancel.number == m[1].number;
	PUT(peer, RESULT_OF(m[0], .token = 1), RESULT_OF(m[1], .result = -EINTR),
	    RESULT_OF(m[2], .token = 3));
}

static void test_started(void)
{
	struct peer peer;
	struct script script = { &peer, answer_started };
	struct belay_handle *handle = NULL;
	struct belay_event_info event;
	struct belay *belay;
	struct pollfd p = { .events = POLLIN };
	uint32_t request[3] = { 0 };
	pthread_t thread;
	unsigned i;

	peer_open(&peer);
	belay = with_handle(&peer, BELAY_OWNER_PROCESS, &handle);
	p.fd = belay_fd(belay);
	ok_int(belay_next(belay, &event), 0, "nothing yet");
	ok_int(poll(&p, 1, 0), 0, "and nothing to wake for");
	thread = play(&script);
	for (i = 0; i < 3; i++)
		ok_int(belay_lock_start(handle, BELAY_EXCLUSIVE, i, 1, &request[i]), 0, "start %u", i);
	ok_int(belay_lock_cancel(belay, request[1]), 0, "withdraw");
	ok_int(belay_lock_cancel(belay, request[0] + 1000), -ENOENT, "no such request");
	pthread_join(thread, NULL);
	ok(peer.right, "CANCEL of the second");
	for (i = 0; i < 3; i++) {
		ok_int(poll(&p, 1, -1), 1, "readable while events are left");
		ok_int(belay_next(belay, &event), 1, "event %u", i);
		ok_uint(event.request, request[i], "of that request");
		ok_int(event.result, i == 1 ? -EINTR : 0, "its result");
		ok_uint(event.token, i == 1 ? 0 : i + 1, "its token");
	}
	ok_int(belay_next(belay, &event), 0, "no more");
	ok_int(poll(&p, 1, 0), 0, "not readable any more");
	ok_int(belay_lock_cancel(belay, request[0]), -ENOENT, "it was answered");
	drop(&peer, belay, handle);
	peer_close(&peer);
}

/* The answer to the started lock comes while another thread reads: the poll loop must wake. */
static void answer_to_leader(struct peer *peer)
{
	struct client_message started, lock;

	peer_get(peer, &started);
	peer_get(peer, &lock);
	PUT(peer, RESULT_OF(started, .token = 1), RESULT_OF(lock, .token = 2));
}

static void test_leader_reads_event(void)
{
	struct peer peer;
	struct script script = { &peer, answer_to_leader };
	struct belay_handle *handle = NULL;
	struct belay_event_info event;
	struct belay *belay;
	struct pollfd p = { .events = POLLIN };
	uint32_t request;
	uint64_t token = 0;
	pthread_t thread;

	peer_open(&peer);
	belay = with_handle(&peer, BELAY_OWNER_PROCESS, &handle);
	thread = play(&script);
	ok_int(belay_lock_start(handle, BELAY_EXCLUSIVE, 0, 1, &request), 0, "start");
	ok_int(belay_lock(handle, BELAY_EXCLUSIVE, 1, 1, &token), 0, "a blocking call reads both answers");
	ok_uint(token, 2, "its own token");
	p.fd = belay_fd(belay);
	ok_int(poll(&p, 1, 0), 1, "the poll loop wakes");
	ok_int(belay_next(belay, &event), 1, "for the event");
	ok_uint(event.token, 1, "with its token");
	ok_int(poll(&p, 1, 0), 0, "once");
	pthread_join(thread, NULL);
	drop(&peer, belay, handle);
	peer_close(&peer);
}

/* ---- a cork ---- */

static void take_corked(struct peer *peer)
{
	struct client_message m;
	unsigned i;

	peer->packets = 0;
	for (i = 0; i < 4; i++)
		peer_get(peer, &m);
	peer->right = peer->packets == 1;
	PUT(peer, RESULT_OF(m, .token = 9));
	peer_get(peer, &m);
	peer->right = peer->right && m.type == CLIENT_UNLOCK && peer->packets == 2;
}

static void test_cork(void)
{
	struct peer peer;
	struct script script = { &peer, take_corked };
	struct belay_handle *handle = NULL;
	struct belay *belay;
	uint32_t request;
	uint64_t token = 0;
	pthread_t thread;
	unsigned i;
	int r = 0;

	peer_open(&peer);
	belay = with_handle(&peer, BELAY_OWNER_PROCESS, &handle);
	ok_int(belay_cork(belay), 0, "a cork");
	r |= belay_unlock(handle, 0, 0);
	r |= belay_lock_start(handle, BELAY_EXCLUSIVE, 5, 1, &request);
	r |= belay_lock_cancel(belay, request);
	ok_int(r, 0, "an unlock, a started lock, its withdrawal");
	thread = play(&script);
	r = belay_lock(handle, BELAY_EXCLUSIVE, 0, 0, &token);
	r |= belay_unlock(handle, 0, 0);
	r |= belay_uncork(belay);
	pthread_join(thread, NULL);
	ok_int(r, 0, "then a lock that waits");
	ok(peer.right, "all in one packet; what follows leaves when the cork is drawn");
	for (i = 0; i < 4; i++)
		ok_int(peer.seen[i].type, ((int[]){ CLIENT_UNLOCK, CLIENT_LOCK, CLIENT_CANCEL, CLIENT_LOCK })[i],
		       "in order");
	r = belay_cork(belay);
	for (i = 0; i < 5000; i++)
		r |= belay_unlock(handle, i, 1);
	ok_int(r, 0, "more than a packet holds leaves before");
	ok_int(belay_uncork(belay), 0, "the rest after");
	for (i = 0; i < 5000 && peer_get(&peer, &(struct client_message){ 0 }); i++)
		;
	ok_uint(i, 5000, "all of it");
	drop(&peer, belay, handle);
	peer_close(&peer);
}

int main(void)
{
	test_connect();
	test_connect_in_vain();
	test_open_in_vain();
	test_call();
	test_order();
	test_command();
	test_lost("LOST", say_lost);
	test_lost_unread();
	test_lost("unknown number", answer_wrongly);
	test_lost("wrong answer", answer_otherwise);
	test_lost("garbage", answer_garbage);
	test_lost("closed", hang_up);
	test_timed();
	test_started();
	test_leader_reads_event();
	test_cork();
	return done_testing();
}
