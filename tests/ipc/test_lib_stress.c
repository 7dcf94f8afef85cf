/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libbelay against a belayd that is played by the test, in hard times: full
 * sockets, threads that share them, signals, fork().
 */
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/ipc/peer.h"

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

static void answer_deadlock(struct peer *peer)
{
	struct client_message m;

	peer_get(peer, &m);
	PUT(peer, RESULT_OF(m, .result = -EDEADLK));
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
	r |= belay_cork(belay) != -EPERM || belay_uncork(belay) != -EPERM;
	belay_handle_close(handle);
	belay_disconnect(belay);
	return r;
}

static void test_fork(void)
{
	struct peer peer;
	struct script script = { &peer, answer_deadlock };
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
	test_flood();
	test_combine();
	test_signal();
	test_fork();
	return done_testing();
}
