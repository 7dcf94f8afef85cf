/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A belayd that is played by a test: it reads packets of a client and answers
 * as the test's script says.
 */
#ifndef BELAY_TESTS_IPC_PEER_H
#define BELAY_TESTS_IPC_PEER_H

#include <assert.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "include/belay.h"
#include "tests/tap.h"
#include "wire/client.h"

#define PEER_SEEN_MAX 8

struct peer {
	char directory[32];
	char path[64];
	int listener;
	int conn;
	uint8_t in[CLIENT_PACKET_MAX];
	size_t in_size, in_at;
	unsigned packets;		/* received */
	/* The first messages since the script began, for the test to look at after it. */
	struct client_message seen[PEER_SEEN_MAX];
	unsigned seen_count;
	bool right;			/* what the script itself has to say */
};

static inline void peer_open(struct peer *peer)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	*peer = (struct peer){ .directory = "/tmp/belay-peer.XXXXXX", .conn = -1 };
	if (!mkdtemp(peer->directory))
		bail_out("no temporary directory");
	snprintf(peer->path, sizeof(peer->path), "%s/sock", peer->directory);
	memcpy(address.sun_path, peer->path, sizeof(peer->path));
	peer->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (bind(peer->listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(peer->listener, 4) < 0)
		bail_out("no socket");
}

static inline void peer_hang_up(struct peer *peer)
{
	if (peer->conn >= 0)
		close(peer->conn);
	peer->conn = -1;
	peer->in_size = peer->in_at = 0;
}

static inline void peer_close(struct peer *peer)
{
	peer_hang_up(peer);
	close(peer->listener);
	unlink(peer->path);
	rmdir(peer->directory);
}

/* As peer_get(), without its memory. */
static inline bool peer_receive(struct peer *peer, struct client_message *ret_m)
{
	ssize_t n;

	while (client_get(peer->in, peer->in_size, &peer->in_at, ret_m) == 0) {
		n = recv(peer->conn, peer->in, sizeof(peer->in), 0);
		if (n <= 0)
			return false;
		peer->in_size = (size_t)n;
		peer->in_at = 0;
		peer->packets++;
	}
	return true;
}

static inline void peer_put(struct peer *peer, const struct client_message *m);

/* The next message; false: the client has gone. This belayd shares no memory, as its scripts need not know. */
static inline bool peer_get(struct peer *peer, struct client_message *ret_m)
{
	if (!peer_receive(peer, ret_m))
		return false;
	if (ret_m->type == CLIENT_SHARE) {
		peer_put(peer, (struct client_message[]){
			{ .type = CLIENT_RESULT, .number = ret_m->number, .result = -ENOSYS },
			{ .type = CLIENT_TYPE_COUNT },
		});
		peer->packets--;
		return peer_get(peer, ret_m);
	}
	if (peer->seen_count < PEER_SEEN_MAX)
		peer->seen[peer->seen_count++] = *ret_m;
	return true;
}

/* All messages in one packet, the last has type CLIENT_TYPE_COUNT. */
static inline void peer_put(struct peer *peer, const struct client_message *m)
{
	uint8_t out[4096];
	size_t size = 0;

	for (; m->type != CLIENT_TYPE_COUNT; m++)
		assert(client_put(out, sizeof(out), &size, m) == 0);
	assert(send(peer->conn, out, size, MSG_NOSIGNAL) == (ssize_t)size);
}
#define PUT(peer, ...) \
	peer_put(peer, (struct client_message[]){ __VA_ARGS__, { .type = CLIENT_TYPE_COUNT } })
#define RESULT_OF(m, ...) \
	{ .type = CLIENT_RESULT, .number = (m).number, __VA_ARGS__ }

/* Accept a client and its HELLO, and answer with @welcome. */
static inline void peer_accept(struct peer *peer, const struct client_message *welcome)
{
	struct client_message m;

	peer->conn = accept4(peer->listener, NULL, NULL, SOCK_CLOEXEC);
	if (!peer_get(peer, &m) || m.type != CLIENT_HELLO || m.version != CLIENT_VERSION)
		diag("the client did not say HELLO");
	if (welcome)
		peer_put(peer, welcome);
}

static const struct client_message welcome[] = {
	{ .type = CLIENT_WELCOME, .version = CLIENT_VERSION, .node = 7 },
	{ .type = CLIENT_TYPE_COUNT },
};

/* Run the peer's part in a thread, the library's in this one. */
struct script {
	struct peer *peer;
	void (*run)(struct peer *peer);
};

static inline void *script_thread(void *arg)
{
	struct script *script = arg;

	script->run(script->peer);
	return NULL;
}

static inline pthread_t play(struct script *script)
{
	pthread_t thread;

	script->peer->seen_count = 0;
	if (pthread_create(&thread, NULL, script_thread, script) != 0)
		bail_out("no thread");
	return thread;
}

/* A connection with one handle, number 5 to belayd. */
static inline void open_one(struct peer *peer)
{
	struct client_message m;

	peer_accept(peer, welcome);
	peer_get(peer, &m);
	PUT(peer, RESULT_OF(m, .handle = 5));
}

static inline struct belay *with_handle(struct peer *peer, enum belay_lock_owner owner,
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
static inline void drop(struct peer *peer, struct belay *belay, struct belay_handle *handle)
{
	peer_hang_up(peer);
	belay_handle_close(handle);
	belay_disconnect(belay);
}

#endif
