/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libbelay against a belayd that is played by the test: what goes over the
 * socket, packet by packet, and what the library makes of answers that come
 * late, in another order, in pieces, wrong, or not at all.
 */
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/wait.h>

#include "include/belay.h"
#include "tests/ipc/peer.h"

/* A connection with one handle, number 5 to belayd. */
static void open_one(struct peer *peer)
{
	struct client_message m;

	peer_accept(peer, welcome);
	peer_get(peer, &m);
	PUT(peer, RESULT_OF(m, .handle = 5));
}

static struct belay *with_handle(struct peer *peer, enum belay_lock_owner owner,
				 struct belay_handle **ret_handle)
{
	struct script script = { peer, open_one };
	pthread_t thread = play(&script);
	struct belay *belay = NULL;

	if (belay_connect(&belay, peer->path) < 0 ||
	    belay_open_name(belay, NULL, "x", owner, ret_handle) < 0)
		bail_out("no connection to the peer");
	pthread_join(thread, NULL);
	return belay;
}

/* Ends a connection whose belayd answers nothing any more. */
static void drop(struct peer *peer, struct belay *belay, struct belay_handle *handle)
{
	peer_hang_up(peer);
	belay_handle_close(handle);
	belay_disconnect(belay);
}

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
	ok(lock->key != 0, "by its own key");
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

/* ---- belayd does not read before it is read ---- */

#define FLOOD 50000u

static void answer_flood(struct peer *peer)
{
	struct client_message m;
	unsigned i;

	/* Answers block in a full socket until the client reads, and only then do we read on. */
	for (i = 0; i < FLOOD && peer_get(peer, &m); i++)
		PUT(peer, RESULT_OF(m, .token = m.range.start));
}

static void test_flood(void)
{
	struct peer peer;
	struct script script = { &peer, answer_flood };
	struct belay_handle *handle = NULL;
	struct belay_event_info event;
	struct belay *belay;
	struct pollfd p = { .events = POLLIN };
	uint32_t request;
	pthread_t thread;
	unsigned i, started = 0, answered = 0;

	peer_open(&peer);
	belay = with_handle(&peer, BELAY_OWNER_PROCESS, &handle);
	thread = play(&script);
	for (i = 0; i < FLOOD; i++)
		started += belay_lock_start(handle, BELAY_EXCLUSIVE, i, 1, &request) == 0;
	ok_uint(started, FLOOD, "locks started, none of their answers asked for");
	p.fd = belay_fd(belay);
	while (answered < FLOOD && poll(&p, 1, -1) == 1)
		while (belay_next(belay, &event) == 1)
			answered += event.result == 0 && event.token == answered;
	ok_uint(answered, FLOOD, "answers, in order");
	pthread_join(thread, NULL);
	drop(&peer, belay, handle);
	peer_close(&peer);
}

/* ---- several threads share packets when the socket is full ---- */

#define UNLOCKS 400u

struct unlocker {
	struct belay_handle *handle;
	uint64_t start;
	int result;
	sem_t *finished;
};

static void *unlocker_thread(void *arg)
{
	struct unlocker *unlocker = arg;
	unsigned i;

	for (i = 0; i < UNLOCKS && unlocker->result == 0; i++)
		unlocker->result = belay_unlock(unlocker->handle, unlocker->start + i, 1);
	sem_post(unlocker->finished);
	return NULL;
}

/* How many small packets a socket of this system takes before it is full. */
static unsigned socket_capacity(void)
{
	char packet[32] = { 0 };
	unsigned count = 0;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		bail_out("no socket pair");
	while (send(pair[0], packet, sizeof(packet), MSG_DONTWAIT) > 0)
		count++;
	close(pair[0]);
	close(pair[1]);
	return count;
}

static void test_combine(void)
{
	struct peer peer;
	struct unlocker unlocker[4];
	struct belay_handle *handle = NULL;
	struct client_message m;
	struct belay *belay;
	pthread_t thread[4];
	sem_t finished;
	uint64_t next[4] = { 0 };
	unsigned i;
	bool right = true;

	peer_open(&peer);
	belay = with_handle(&peer, BELAY_OWNER_PROCESS, &handle);
	peer.packets = 0;
	sem_init(&finished, 0, 0);
	for (i = 0; i < 4; i++) {
		unlocker[i] = (struct unlocker){ handle, (uint64_t)i << 32, 0, &finished };
		pthread_create(&thread[i], NULL, unlocker_thread, &unlocker[i]);
	}
	/* One thread stands before a full socket; the three others leave it their words. */
	for (i = 0; i < 3; i++)
		sem_wait(&finished);
	for (i = 0; i < 4 * UNLOCKS && peer_get(&peer, &m); i++) {
		uint64_t t = m.range.start >> 32;

		right = right && m.type == CLIENT_UNLOCK && t < 4 &&
			(m.range.start & UINT32_MAX) == next[t]++;
	}
	for (i = 0; i < 4; i++) {
		pthread_join(thread[i], NULL);
		right = right && unlocker[i].result == 0;
	}
	ok(right, "%u unlocks of 4 threads arrive, each thread's in order", 4 * UNLOCKS);
	if (socket_capacity() < UNLOCKS)
		ok(peer.packets < 2 * UNLOCKS, "in few packets: %u", peer.packets);
	sem_destroy(&finished);
	drop(&peer, belay, handle);
	peer_close(&peer);
}

/* ---- signals, fork ---- */

static void on_signal(int number)
{
	(void)number;
}

static void answer_after_signals(struct peer *peer)
{
	struct client_message m;
	int i;

	peer_get(peer, &m);
	for (i = 0; i < 20; i++)
		kill(getpid(), SIGUSR1);
	PUT(peer, RESULT_OF(m, .token = 4));
}

static void test_signal(void)
{
	struct sigaction action = { .sa_handler = on_signal };	/* no SA_RESTART */
	struct peer peer;
	struct script script = { &peer, answer_after_signals };
	struct belay_handle *handle = NULL;
	struct belay *belay;
	sigset_t set;
	pthread_t thread;

	sigaction(SIGUSR1, &action, NULL);
	peer_open(&peer);
	belay = with_handle(&peer, BELAY_OWNER_PROCESS, &handle);
	/* The peer's thread does not take the signals. */
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	thread = play(&script);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	ok_int(belay_lock(handle, BELAY_EXCLUSIVE, 0, 0, NULL), 0, "signals do not end a wait");
	pthread_join(thread, NULL);
	drop(&peer, belay, handle);
	peer_close(&peer);
}

static int in_child(struct belay *belay, struct belay_handle *handle)
{
	struct belay_lock_holder holder;
	struct belay_event_info event;
	uint32_t request;
	struct belay_handle *other;
	int r = 0;

	r |= belay_lock(handle, BELAY_SHARED, 0, 0, NULL) != -EPERM;
	r |= belay_trylock(handle, BELAY_SHARED, 0, 0, NULL) != -EPERM;
	r |= belay_lock_timed(handle, BELAY_SHARED, 0, 0, 1, NULL) != -EPERM;
	r |= belay_unlock(handle, 0, 0) != -EPERM;
	r |= belay_get(handle, BELAY_SHARED, 0, 0, &holder) != -EPERM;
	r |= belay_lock_start(handle, BELAY_SHARED, 0, 0, &request) != -EPERM;
	r |= belay_lock_cancel(belay, 1) != -EPERM;
	r |= belay_next(belay, &event) != -EPERM;
	r |= belay_open_fd(belay, 0, BELAY_OWNER_HANDLE, &other) != -EPERM;
	r |= belay_open_name(belay, NULL, "n", BELAY_OWNER_HANDLE, &other) != -EPERM;
	r |= belay_command(belay, "status", NULL) != -EPERM;
	belay_handle_close(handle);
	belay_disconnect(belay);
	return r;
}

static void test_fork(void)
{
	struct peer peer;
	struct script script = { &peer, answer_early };
	struct belay_handle *handle = NULL;
	struct belay *belay;
	pthread_t thread;
	pid_t pid;
	int status = -1;

	peer_open(&peer);
	belay = with_handle(&peer, BELAY_OWNER_PROCESS, &handle);
	pid = fork();
	if (pid == 0)
		_exit(in_child(belay, handle));
	waitpid(pid, &status, 0);
	ok_int(status, 0, "a child is refused everything, and may clean up");
	thread = play(&script);
	ok_int(belay_lock(handle, BELAY_EXCLUSIVE, 0, 0, NULL), -EDEADLK, "the parent goes on undisturbed");
	pthread_join(thread, NULL);
	drop(&peer, belay, handle);
	peer_close(&peer);
}

int main(void)
{
	test_connect();
	test_call();
	test_order();
	test_command();
	test_lost("LOST", say_lost);
	test_lost("unknown number", answer_wrongly);
	test_lost("wrong answer", answer_otherwise);
	test_lost("garbage", answer_garbage);
	test_lost("closed", hang_up);
	test_timed();
	test_started();
	test_leader_reads_event();
	test_flood();
	test_combine();
	test_signal();
	test_fork();
	return done_testing();
}
