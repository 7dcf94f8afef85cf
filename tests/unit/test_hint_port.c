/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hints from node to node: their key, their port, and what is not let in. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <qb/qblog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/hint_port.h"
#include "daemon/siphash.h"
#include "tests/tap.h"
#include "wire/hint.h"

#define NODES 3u
#define PORT 21066
#define PATIENCE_NS (UINT64_C(20) * QB_TIME_NS_IN_SEC)
#define SEEN_MAX 256u

/* ---- the key ---- */

struct key_test {
	char dir[64], path[128];
	uint8_t secret[HINT_KEY_FILE_MAX + 1];
};

static void write_key(const struct key_test *t, size_t size, mode_t mode)
{
	int fd;

	(void)unlink(t->path);
	fd = open(t->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, t->secret, size) != (ssize_t)size || fchmod(fd, mode) < 0)
		bail_out("no key file");
	close(fd);
}

static int load(const char *path, const char *group, uint8_t *ret_key, const char **ret_why)
{
	*ret_why = "";
	memset(ret_key, 0, HINT_KEY_SIZE);
	return hint_key_load(path, group, ret_key, ret_why);
}

static void test_key_of(struct key_test *t)
{
	static const char text[] = "belay hints\0" "ghi\0" "pool";
	uint8_t key[HINT_KEY_SIZE], want[HINT_KEY_SIZE], other[HINT_KEY_SIZE];
	const char *why;

	memcpy(t->secret, "0123456789abcdefghi", 19);
	write_key(t, 19, 0600);
	ok_int(load(t->path, "pool", key, &why), 0, "a key of 19 bytes");
	siphash128((const uint8_t *)"0123456789abcdef", text, sizeof(text) - 1, want);
	ok(memcmp(key, want, sizeof(key)) == 0, "is the one that the protocol says");
	ok_int(load(t->path, "poo", other, &why), 0, "for another group");
	ok(memcmp(key, other, sizeof(key)) != 0, "it is another");
	t->secret[18]++;
	write_key(t, 19, 0400);
	ok_int(load(t->path, "pool", other, &why), 0, "a file that nobody may write");
	ok(memcmp(key, other, sizeof(key)) != 0, "its last byte counts");
	write_key(t, 16, 0600);
	ok_int(load(t->path, "pool", key, &why), 0, "16 bytes are enough");
	write_key(t, HINT_KEY_FILE_MAX, 0600);
	ok_int(load(t->path, "a name of sixty-three bytes, which is as long as a group's can be.",
		    key, &why), 0, "as much as there can be");
}

static void test_key_refused(struct key_test *t)
{
	uint8_t key[HINT_KEY_SIZE], none[HINT_KEY_SIZE] = { 0 };
	const char *why;

	write_key(t, 15, 0600);
	ok_int(load(t->path, "pool", key, &why), -EINVAL, "15 bytes are too few");
	ok(strstr(why, "16 to 4096 bytes") != NULL, "the reason says so");
	write_key(t, HINT_KEY_FILE_MAX + 1, 0600);
	ok_int(load(t->path, "pool", key, &why), -EINVAL, "4097 are too many");
	for (unsigned bit = 1; bit <= 040; bit <<= 1) {
		write_key(t, 32, 0600 | bit);
		ok_int(load(t->path, "pool", key, &why), -EPERM, "mode %o is refused", 0600 | bit);
	}
	ok(strstr(why, "chmod 0600") != NULL, "the reason says what to do");
	if (geteuid() == 0 && chown(t->path, 1, 0) == 0 && chmod(t->path, 0600) == 0) {
		ok_int(load(t->path, "pool", key, &why), -EPERM, "another user's is refused");
		ok(strstr(why, "another user") != NULL, "the reason says so");
	}
	(void)unlink(t->path);
	ok_int(load(t->path, "pool", key, &why), -ENOENT, "no file");
	ok(strstr(why, "no such file") != NULL, "the reason says so");
	ok_int(load(t->dir, "pool", key, &why), -EINVAL, "a directory is none");
	if (mkfifo(t->path, 0600) < 0)
		bail_out("no fifo");
	ok_int(load(t->path, "pool", key, &why), -EINVAL, "nor is a fifo, and nobody waits for it");
	(void)unlink(t->path);
	ok(memcmp(key, none, sizeof(key)) == 0, "and there is no key");
}

static void test_key_path(void)
{
	struct config config = { .hints_enabled = 1 };
	struct group_info *info = calloc(1, sizeof(*info));

	if (!info)
		bail_out("no memory");
	ok(hint_key_path(&config, info) == NULL, "without encryption corosync's key is no secret");
	info->encrypted = true;
	ok_str(hint_key_path(&config, info), "/etc/corosync/authkey", "with it, it is where it usually is");
	snprintf(info->key_file, sizeof(info->key_file), "/etc/key");
	ok_str(hint_key_path(&config, info), "/etc/key", "or where corosync.conf says");
	snprintf(config.hints_key_file, sizeof(config.hints_key_file), "/etc/mine");
	ok_str(hint_key_path(&config, info), "/etc/mine", "belay.conf wins");
	free(info);
}

static void test_key(void)
{
	struct key_test *t = calloc(1, sizeof(*t));

	if (!t)
		bail_out("no memory");
	snprintf(t->dir, sizeof(t->dir), "/tmp/belay-hints.XXXXXX");
	if (!mkdtemp(t->dir))
		bail_out("no directory");
	snprintf(t->path, sizeof(t->path), "%s/key", t->dir);
	test_key_of(t);
	test_key_refused(t);
	rmdir(t->dir);
	free(t);
}

/* ---- the port ---- */

static const uint8_t secret[HINT_KEY_SIZE] = "of this cluster";

struct bed;

struct node {
	struct bed *bed;
	struct group_info info;
	struct hint_port *port;
	unsigned count, told;
	struct belay_hint hint[SEEN_MAX];
};

struct bed {
	qb_loop_t *loop;
	char net[32];
	struct node node[NODES];
	int stranger;			/* a socket of nobody's */
	struct node *awaited;
	unsigned until;
	bool timed_out;
};

static void on_hint(void *context, const struct belay_hint *hint)
{
	struct node *n = context;

	if (n->count == SEEN_MAX)
		bail_out("more hints than this test has sent");
	n->hint[n->count++] = *hint;
}

static void on_told(void *context)
{
	struct node *n = context;

	n->told++;
	if (n == n->bed->awaited && n->count >= n->bed->until)
		qb_loop_stop(n->bed->loop);
}

static void on_patience(void *data)
{
	struct bed *bed = data;

	bed->timed_out = true;
	qb_loop_stop(bed->loop);
}

/* Until the node has seen so many hints. */
static bool await(struct bed *bed, unsigned node, unsigned count)
{
	qb_loop_timer_handle timer;

	bed->awaited = &bed->node[node - 1];
	bed->until = count;
	bed->timed_out = false;
	if (bed->awaited->count >= count)
		return true;
	if (qb_loop_timer_add(bed->loop, QB_LOOP_LOW, PATIENCE_NS, bed, on_patience, &timer) < 0)
		bail_out("no timer");
	qb_loop_run(bed->loop);
	if (!bed->timed_out)
		(void)qb_loop_timer_del(bed->loop, timer);
	return !bed->timed_out;
}

static void fill_info(const struct bed *bed, uint32_t self, struct group_info *info)
{
	info->self = self;
	info->node_count = NODES + 2;
	for (unsigned i = 0; i < NODES; i++) {
		info->node[i] = i + 1;
		snprintf(info->node_address[i], sizeof(info->node_address[i]), "%s.%u", bed->net, i + 1);
	}
	/* Two that no hint can reach: one has no address, to that of the other nobody may send. */
	info->node[NODES] = NODES + 1;
	info->node[NODES + 1] = NODES + 2;
	snprintf(info->node_address[NODES + 1], sizeof(info->node_address[0]), "255.255.255.255");
}

static struct sockaddr_in address_of(const struct bed *bed, unsigned last)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	char text[64];

	snprintf(text, sizeof(text), "%s.%u", bed->net, last);
	if (inet_pton(AF_INET, text, &to.sin_addr) != 1)
		bail_out("no address");
	return to;
}

static void start(struct bed *bed)
{
	struct sockaddr_in own;
	const char *why = "";

	bed->loop = qb_loop_create();
	/* Of this process alone: all of 127 is this machine. */
	snprintf(bed->net, sizeof(bed->net), "127.%d.%d", 1 + getpid() % 250, 1 + getpid() / 250 % 250);
	for (unsigned i = 0; i < NODES; i++) {
		struct node *n = &bed->node[i];
		const struct hint_handlers handlers = {
			.on_hint = on_hint, .on_told = on_told, .context = n,
		};

		n->bed = bed;
		fill_info(bed, i + 1, &n->info);
		if (!ok_int(hint_port_open(bed->loop, &n->info, "", PORT, secret, &handlers, &n->port, &why),
			    0, "node %u has a port", i + 1))
			bail_out(why);
	}
	bed->stranger = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	own = address_of(bed, 99);
	if (bed->stranger < 0 || bind(bed->stranger, (const struct sockaddr *)&own, sizeof(own)) < 0)
		bail_out("no socket");
}

static void end(struct bed *bed)
{
	for (unsigned i = 0; i < NODES; i++)
		hint_port_close(bed->node[i].port);
	close(bed->stranger);
	qb_loop_destroy(bed->loop);
}

static struct belay_hint some_hint(uint32_t node, uint64_t seq)
{
	return (struct belay_hint){
		.node = node, .incarnation = 10 + node, .to_incarnation = 20,
		.waiter = 30, .prefix = 0x1234, .seq = seq,
		.key = { .lockspace = 7, .id = { 1, 2, 3 } }, .range = { 100, 199 },
		.owner = { .node = node, .client = 4, .key = 5, .kind = BELAY_KIND_OFD },
		.request = 6, .token = 777,
	};
}

static void test_delivery(struct bed *bed)
{
	const struct belay_hint a = some_hint(1, 1), b = some_hint(1, 2), c = some_hint(2, 9);
	struct hint_stats stats;

	hint_port_send(bed->node[0].port, 2, &a);
	hint_port_send(bed->node[0].port, 2, &b);
	hint_port_flush(bed->node[0].port);
	hint_port_flush(bed->node[0].port);
	ok(await(bed, 2, 2), "two hints come");
	ok(memcmp(&bed->node[1].hint[0], &a, sizeof(a)) == 0, "the first as it was");
	ok(memcmp(&bed->node[1].hint[1], &b, sizeof(b)) == 0, "the second as it was");
	ok_uint(bed->node[1].told, 1, "together");
	hint_port_stats(bed->node[0].port, &stats);
	ok_uint(stats.sent, 2, "both count as sent");
	ok_uint(stats.sent_datagrams, 1, "in one datagram");
	hint_port_stats(bed->node[1].port, &stats);
	ok_uint(stats.received, 2, "and as received");
	ok_uint(stats.received_datagrams, 1, "in one datagram");
	ok_uint(bed->node[2].count, 0, "node 3 hears nothing of it");

	hint_port_send(bed->node[1].port, 1, &c);
	hint_port_flush(bed->node[1].port);
	ok(await(bed, 1, 1), "and one back");
	ok(memcmp(&bed->node[0].hint[0], &c, sizeof(c)) == 0, "as it was");
}

/* What cannot share a datagram does not wait for the flush. */
static void test_batches(struct bed *bed)
{
	struct hint_port *port = bed->node[2].port;
	struct belay_hint hint = some_hint(3, 1);
	struct hint_stats stats;
	unsigned one = bed->node[0].count, two = bed->node[1].count, wrong = 0;

	hint_port_send(port, 1, &hint);
	hint_port_send(port, 2, &hint);
	ok(await(bed, 1, one + 1), "a hint to another node sends the first one off");
	hint.to_incarnation++;
	hint_port_send(port, 2, &hint);
	ok(await(bed, 2, two + 1), "so does one for another life of the same node");
	hint_port_flush(port);
	ok(await(bed, 2, two + 2), "the flush sends the last");
	ok_uint(bed->node[1].hint[two + 1].to_incarnation, 21, "each for its life");

	one = bed->node[0].count;
	for (unsigned i = 0; i < 100; i++) {
		hint = some_hint(3, i + 1);
		hint_port_send(port, 1, &hint);
	}
	hint_port_flush(port);
	ok(await(bed, 1, one + 100), "a hundred come");
	for (unsigned i = 0; i < 100; i++)
		wrong += bed->node[0].hint[one + i].seq != i + 1;
	ok_uint(wrong, 0, "in their order");
	hint_port_stats(port, &stats);
	ok_uint(stats.sent, 103, "all count as sent");
	ok(stats.sent_datagrams > 5 && stats.sent_datagrams < 13, "in %u datagrams, for they are small",
	   (unsigned)stats.sent_datagrams);
}

static void test_dropped(struct bed *bed)
{
	struct hint_port *port = bed->node[0].port;
	const struct belay_hint hint = some_hint(1, 5);
	struct hint_stats before, stats;

	hint_port_stats(port, &before);
	hint_port_send(port, NODES + 1, &hint);
	hint_port_send(port, 77, &hint);
	hint_port_send(port, 1, &hint);
	hint_port_send(port, NODES + 2, &hint);
	hint_port_send(port, NODES + 2, &hint);
	hint_port_flush(port);
	hint_port_stats(port, &stats);
	ok_uint(stats.dropped - before.dropped, 5, "what cannot be sent is counted");
	ok_uint(stats.sent, before.sent, "and is not sent");
}

/* ---- what is not let in ---- */

static size_t datagram(uint8_t *buf, const struct wire_hints *head, const struct belay_hint *hint)
{
	struct wire_writer w;
	size_t size;

	if (wire_hints_begin(&w, buf, HINT_DATAGRAM_MAX, head) < 0 || wire_put_hint(&w, head, hint) < 0)
		bail_out("no datagram");
	size = wire_size(&w);
	siphash128(secret, buf, size, buf + size);
	return size + HINT_MAC_SIZE;
}

static void throw(const struct bed *bed, const uint8_t *buf, size_t size)
{
	const struct sockaddr_in to = address_of(bed, 2);

	if (sendto(bed->stranger, buf, size, 0, (const struct sockaddr *)&to, sizeof(to)) != (ssize_t)size)
		bail_out("cannot send");
}

static const struct wire_hints of_one = { .node = 1, .incarnation = 11, .to = 2, .to_incarnation = 20 };

/* Datagrams come in order: when a good one behind them is there, they were looked at. */
static void ok_unused(struct bed *bed, size_t counter, unsigned count, const char *what)
{
	const struct node *n = &bed->node[1];
	const struct belay_hint hint = some_hint(1, 1000);
	uint8_t buf[HINT_DATAGRAM_MAX];
	struct hint_stats stats;
	unsigned seen = n->count;
	uint64_t counted;

	throw(bed, buf, datagram(buf, &of_one, &hint));
	ok(await(bed, 2, seen + 1), "%s: what follows is let in", what);
	ok_uint(n->hint[n->count - 1].seq, 1000, "%s: and it alone", what);
	hint_port_stats(n->port, &stats);
	memcpy(&counted, (const char *)&stats + counter, sizeof(counted));
	ok_uint(counted, count, "%s: it is counted", what);
}
#define COUNTER(member) offsetof(struct hint_stats, member)

static void test_strangers(struct bed *bed)
{
	const struct belay_hint hint = some_hint(1, 7);
	uint8_t buf[2 * HINT_DATAGRAM_MAX] = { 0 }, good[HINT_DATAGRAM_MAX];
	size_t size = datagram(good, &of_one, &hint);

	throw(bed, buf, 0);
	throw(bed, buf, HINT_MAC_SIZE);
	throw(bed, buf, HINT_DATAGRAM_MAX + 1);
	ok_unused(bed, COUNTER(malformed), 3, "nothing, a MAC alone, and too much");
	throw(bed, buf, HINT_DATAGRAM_MAX);
	throw(bed, (const uint8_t *)"GET / HTTP/1.0\r\n\r\n", 18);
	ok_unused(bed, COUNTER(bad_mac), 2, "what no node sends");
	memcpy(buf, good, size);
	siphash128((const uint8_t *)"of that cluster", buf, size - HINT_MAC_SIZE, buf + size - HINT_MAC_SIZE);
	throw(bed, buf, size);
	ok_unused(bed, COUNTER(bad_mac), 3, "another key");
	for (size_t at = 0; at < size; at++) {
		memcpy(buf, good, size);
		buf[at] ^= 1;
		throw(bed, buf, size);
		/* Not more at a time than a socket holds. */
		if (at % 32 == 31)
			ok_unused(bed, COUNTER(bad_mac), 3 + (unsigned)at + 1, "some damaged bytes");
	}
	ok_unused(bed, COUNTER(bad_mac), 3 + (unsigned)size, "each byte damaged");
}

static void sign_and_throw(const struct bed *bed, uint8_t *buf, size_t size)
{
	siphash128(secret, buf, size, buf + size);
	throw(bed, buf, size + HINT_MAC_SIZE);
}

static void test_insiders(struct bed *bed)
{
	struct wire_hints head = of_one;
	struct belay_hint hint = some_hint(1, 7);
	uint8_t buf[HINT_DATAGRAM_MAX];
	unsigned seen = bed->node[1].count;
	size_t size;

	head.to = 3;
	throw(bed, buf, datagram(buf, &head, &hint));
	ok_unused(bed, COUNTER(unknown_sender), 1, "for another node");
	head = (struct wire_hints){ .node = 9, .incarnation = 19, .to = 2, .to_incarnation = 20 };
	hint = some_hint(9, 7);
	throw(bed, buf, datagram(buf, &head, &hint));
	head.node = 2;
	head.incarnation = 12;
	hint = some_hint(2, 7);
	throw(bed, buf, datagram(buf, &head, &hint));
	ok_unused(bed, COUNTER(unknown_sender), 3, "of no node, and of the receiver itself");
	hint = some_hint(1, 7);
	size = datagram(buf, &of_one, &hint) - HINT_MAC_SIZE;
	buf[4]++;
	sign_and_throw(bed, buf, size);
	ok_unused(bed, COUNTER(foreign), 1, "of another version");
	buf[4]--;
	buf[5] = WIRE_FRAME;
	sign_and_throw(bed, buf, size);
	ok_unused(bed, COUNTER(malformed), 4, "a frame");
	ok_uint(bed->node[1].count, seen + 4, "nothing else has come");
}

/* The first of two is good, and is the only one. */
static void test_half(struct bed *bed)
{
	const struct belay_hint hint = some_hint(1, 7);
	uint8_t buf[HINT_DATAGRAM_MAX];
	size_t size = datagram(buf, &of_one, &hint) - HINT_MAC_SIZE;
	unsigned seen = bed->node[1].count;

	buf[size++] = 0;
	buf[6] = (uint8_t)size;
	sign_and_throw(bed, buf, size);
	ok(await(bed, 2, seen + 1), "of a hint and a half the whole one comes");
	ok_unused(bed, COUNTER(malformed), 5, "a hint and a half");
}

/* It is the core that knows what it has heard already. */
static void test_again(struct bed *bed)
{
	const struct belay_hint hint = some_hint(1, 8);
	uint8_t buf[HINT_DATAGRAM_MAX];
	size_t size = datagram(buf, &of_one, &hint);
	unsigned seen = bed->node[1].count;

	/* More than one turn takes. */
	for (unsigned i = 0; i < 100; i++)
		throw(bed, buf, size);
	ok(await(bed, 2, seen + 100), "the same datagram again and again: each comes");
	ok(memcmp(&bed->node[1].hint[seen + 99], &hint, sizeof(hint)) == 0, "as it was");
}

static int try_open(struct bed *bed, const char *address, struct group_info *info, const char **ret_why)
{
	const struct hint_handlers handlers = { .on_hint = on_hint, .on_told = on_told };
	struct hint_port *port;
	int r;

	*ret_why = "";
	r = hint_port_open(bed->loop, info, address, PORT, secret, &handlers, &port, ret_why);
	if (r == 0)
		hint_port_close(port);
	return r;
}

static void test_open(struct bed *bed)
{
	struct group_info *info = calloc(1, sizeof(*info));
	const char *why;

	if (!info)
		bail_out("no memory");
	fill_info(bed, 1, info);
	ok_int(try_open(bed, "", info, &why), -EADDRINUSE, "a port that is taken");
	ok(strstr(why, "set port") != NULL, "the reason says what to do");
	ok_int(try_open(bed, "192.0.2.1", info, &why), -EADDRNOTAVAIL, "an address of another machine");
	ok(strstr(why, "set address") != NULL, "the reason says what to do");
	info->node_address[0][0] = '\0';
	ok_int(try_open(bed, "", info, &why), -EADDRNOTAVAIL, "no address");
	ok(strstr(why, "ring0_addr") != NULL, "the reason says what to do");
	info->self = 9;
	ok_int(try_open(bed, "", info, &why), -EADDRNOTAVAIL, "a node that is not in the list");
	snprintf(info->node_address[0], sizeof(info->node_address[0]), "%s.8", bed->net);
	ok_int(try_open(bed, info->node_address[0], info, &why), 0, "an address that belay.conf gives");
	free(info);
}

int main(void)
{
	struct bed *bed = calloc(1, sizeof(*bed));

	if (!bed)
		bail_out("no memory");
	qb_log_init("test", LOG_USER, LOG_EMERG);
	(void)qb_log_ctl(QB_LOG_SYSLOG, QB_LOG_CONF_ENABLED, QB_FALSE);
	test_key();
	test_key_path();
	start(bed);
	test_delivery(bed);
	test_batches(bed);
	test_dropped(bed);
	test_strangers(bed);
	test_insiders(bed);
	test_half(bed);
	test_again(bed);
	test_open(bed);
	end(bed);
	free(bed);
	return done_testing();
}
