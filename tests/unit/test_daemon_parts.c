/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Small parts of belayd, each against its contract. */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/descriptor.h"
#include "daemon/handle.h"
#include "daemon/histogram.h"
#include "daemon/hold.h"
#include "daemon/identity.h"
#include "daemon/limit.h"
#include "daemon/names.h"
#include "daemon/peer.h"
#include "daemon/replies.h"
#include "daemon/siphash.h"
#include "tests/tap.h"

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void test_histogram(void)
{
	struct histogram h = { .current = 0 };
	unsigned wrong = 0;

	ok_uint(histogram_permille(&h, 500), 0, "an empty histogram has no median");
	for (uint64_t v = 1; v < UINT64_C(1) << 32; v = v * 5 / 4 + 1) {
		struct histogram one = { .current = 0 };
		uint64_t got;

		histogram_add(&one, v);
		got = histogram_permille(&one, 500);
		wrong += got > v + v / 8 || got < v - v / 8;
	}
	ok_uint(wrong, 0, "values are off by an eighth at most");
	for (unsigned i = 1; i <= 1000; i++)
		histogram_add(&h, i);
	ok(histogram_permille(&h, 500) >= 450 && histogram_permille(&h, 500) <= 550, "the median");
	ok(histogram_permille(&h, 990) >= 900 && histogram_permille(&h, 990) <= 1100, "the 99th percentile");
	histogram_rotate(&h);
	histogram_add(&h, 5);
	ok_uint(histogram_total(&h), 1001, "one turn later the old values count");
	histogram_rotate(&h);
	ok_uint(histogram_total(&h), 1, "two turns later they do not");
	histogram_add(&h, UINT64_MAX);
	ok(histogram_permille(&h, 1000) > 1000000, "there is a bucket for everything");
}

/* From the authors' own list: key 00..0f, input 00, 00 01, ... */
static void test_siphash(void)
{
	static const struct {
		size_t size;
		uint8_t hash[16];
	} vectors[] = {
		{ 0, { 0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8, 0xe6,
		       0x6d, 0xf6, 0x72, 0x14, 0xc7, 0x55, 0x02, 0x93 } },
		{ 1, { 0xda, 0x87, 0xc1, 0xd8, 0x6b, 0x99, 0xaf, 0x44,
		       0x34, 0x76, 0x59, 0x11, 0x9b, 0x22, 0xfc, 0x45 } },
		{ 2, { 0x81, 0x77, 0x22, 0x8d, 0xa4, 0xa4, 0x5d, 0xc7,
		       0xfc, 0xa3, 0x8b, 0xde, 0xf6, 0x0a, 0xff, 0xe4 } },
	};
	uint8_t key[16], in[16], out[16];

	for (unsigned i = 0; i < 16; i++)
		key[i] = in[i] = (uint8_t)i;
	for (unsigned i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		siphash128(key, in, vectors[i].size, out);
		ok(memcmp(out, vectors[i].hash, 16) == 0, "SipHash of %zu bytes", vectors[i].size);
	}
}

static void test_hold(void)
{
	struct group_view view = { .member_count = 1, .member = { 9 } };
	struct hold_entry *e;
	struct hold h;
	unsigned kept = 0;

	hold_init(&h, 10000);
	ok_int(hold_add_message(&h, 3, 2, "abc", 3), 0, "a message is remembered");
	ok_int(hold_add_view(&h, &view), 0, "and a view");
	while (hold_add_message(&h, 4, 0, "0123456789", 10) == 0)
		kept++;
	ok(kept > 50 && h.bytes <= 10000, "until the bound is reached: %u", kept);
	e = hold_take(&h);
	ok(!e->is_view && e->node == 3 && e->skip == 2 && e->size == 3 && memcmp(e->bytes, "abc", 3) == 0,
	   "they come back in order");
	free(e);
	e = hold_take(&h);
	ok(e->is_view && hold_view(e)->member[0] == 9, "as they were");
	free(e);
	hold_clear(&h);
	ok(!hold_take(&h) && h.bytes == 0, "and are forgotten");
	ok_int(hold_add_message(&h, 3, 2, "abc", 3), 0, "then there is room again");
	hold_clear(&h);
}

static void test_requests(void)
{
	struct requests r;
	struct request request = { .number = 1 };
	bool in[400] = { false };
	uint64_t state = 1234567;
	unsigned wrong = 0, count = 0;

	requests_init(&r, 300);
	for (unsigned i = 0; i < 100000; i++) {
		uint32_t n = 1 + (uint32_t)(next_random(&state) % 399);
		int want;

		request.number = n * 16;	/* numbers that a poor hash would heap up */
		request.handle = n;
		if (next_random(&state) % 2) {
			want = count == 300 ? -ENOLCK : in[n] ? -EEXIST : 0;
			wrong += requests_add(&r, &request) != want;
			count += want == 0;
			in[n] |= want == 0;
		} else {
			want = in[n] ? 0 : -ENOENT;
			wrong += requests_take(&r, n * 16, &request) != want;
			wrong += want == 0 && request.handle != n;
			count -= want == 0;
			in[n] = false;
		}
		wrong += r.count != count;
	}
	for (uint32_t n = 1; n < 400; n++)
		wrong += (requests_find(&r, n * 16) != NULL) != in[n];
	ok_uint(wrong, 0, "requests: as a plain table would have them, 100000 times");
	requests_done(&r);
}

static void test_handles(void)
{
	const struct belay_key key = { .lockspace = 1 };
	struct handles h;
	uint32_t n[20], again;
	unsigned wrong = 0;

	handles_init(&h, 20);
	for (unsigned i = 0; i < 20; i++)
		wrong += handles_add(&h, &key, &n[i]) != 0 || n[i] == 0;
	ok_uint(wrong, 0, "handles up to the limit");
	ok_int(handles_add(&h, &key, &again), -EMFILE, "and not beyond");
	handles_remove(&h, n[7]);
	ok(!handles_find(&h, n[7]) && handles_find(&h, n[8]), "one is closed");
	ok(!handles_find(&h, 0) && !handles_find(&h, 21) && !handles_find(&h, UINT32_MAX),
	   "numbers that are none");
	ok_int(handles_add(&h, &key, &again), 0, "and its place used again");
	ok_uint(h.open, 20, "all are open");
	handles_done(&h);
}

static void test_names(void)
{
	struct names names;
	struct belay_key key = { .lockspace = 3 };
	unsigned wrong = 0;
	char text[32];

	if (names_init(&names) < 0)
		bail_out("no memory");
	for (uint32_t i = 0; i < 5000; i++) {
		memcpy(key.id, &i, sizeof(i));
		snprintf(text, sizeof(text), "name %u", i);
		wrong += names_add(&names, &key, text, strlen(text)) != 0;
		wrong += names_add(&names, &key, "another", 7) != 0;
	}
	for (uint32_t i = 0; i < 5000; i++) {
		const char *found;

		memcpy(key.id, &i, sizeof(i));
		snprintf(text, sizeof(text), "name %u", i);
		names_remove(&names, &key);
		found = names_find(&names, &key);
		wrong += !found || strcmp(found, text) != 0;
		if (i % 2 == 0) {
			names_remove(&names, &key);
			wrong += names_find(&names, &key) != NULL;
		}
	}
	ok_uint(wrong, 0, "names: counted, found, forgotten");
	ok_uint(names.count, 2500, "half of them are left");
	names_done(&names);
}

static void test_access(void)
{
	gid_t groups[] = { 7, 8 };
	struct peer peer = { .uid = 100, .gid = 5, .groups = groups, .group_count = 2 };

	ok_uint(peer_access(&peer, 100, 8, 0460), 4, "the owner's bits count for the owner, though he is in the group");
	ok_uint(peer_access(&peer, 1, 8, 0460), 6, "the group's for its members");
	ok_uint(peer_access(&peer, 1, 5, 0460), 6, "also by their first group");
	ok_uint(peer_access(&peer, 1, 9, 0464), 4, "and the others' for others");
	ok(!peer_is_admin(&peer, (gid_t)-1), "no group, no administrators but root");
	ok(peer_is_admin(&peer, 7), "the members of the group are");
	peer.uid = 0;
	ok_uint(peer_access(&peer, 1, 9, 0), 6, "root may do all");
	ok(peer_is_admin(&peer, (gid_t)-1), "and administer");
}

static void test_identity(void)
{
	struct config config;
	struct identity_map map;
	struct peer root = { .uid = 0 };
	struct identity a, b;
	struct belay_key flock_key;
	char text[IDENTITY_NAME_MAX];

	config_default(&config);
	identity_map_init(&map, &config, false);
	ok_int(identity_of_name(&map, &root, "default", 7, "printer", 7, &a), 0, "a name");
	ok(identity_describe(&a.key, text, sizeof(text)) && strcmp(text, "printer") == 0,
	   "stands in its key");
	ok_int(identity_of_name(&map, &root, "default", 7, "printer\n", 8, &b), 0, "another");
	ok(memcmp(&a.key, &b.key, sizeof(a.key)) != 0, "is another key");
	ok_int(identity_of_name(&map, &root, "default", 7, "a rather long name", 18, &b), 0, "a long name");
	ok(!identity_describe(&b.key, text, sizeof(text)), "does not");
	ok_int(identity_of_name(&map, &root, "default", 7, "", 0, &b), -EINVAL, "no name");
	flock_key = identity_key(&a.key, BELAY_KIND_FLOCK);
	ok(memcmp(&flock_key, &a.key, sizeof(a.key)) != 0, "flock has keys of its own");
	flock_key = identity_base(&flock_key);
	ok(memcmp(&flock_key, &a.key, sizeof(a.key)) == 0, "that lead back to the resource");
	ok_int(identity_of_file(&map, STDIN_FILENO + 1000, 0, &b), -EBADF, "a descriptor that is not open");
	identity_map_done(&map);
}

/* Start again with one lockspace that has that path. */
static void set_path(struct config *config, struct identity_map *map, const char *path)
{
	config->lockspace[1] = (struct config_lockspace){ .name = "data", .number = 4711 };
	snprintf(config->lockspace[1].path, sizeof(config->lockspace[1].path), "%s", path);
	config->lockspace_count = 2;
	identity_map_done(map);
	identity_map_init(map, config, false);
}

static bool is_inode(const struct belay_key *key, uint64_t inode)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < 8; i++) {
		sum |= (uint64_t)key->id[i] << (8 * i);
		inode += key->id[8 + i];
	}
	return key->lockspace == 4711 && sum == inode;
}

/* Files of a cluster: the same key on all nodes, wherever the file system is mounted. */
static void test_files(void)
{
	struct config config;
	struct identity_map map;
	struct identity id;
	char dir[] = "/tmp/belay-parts.XXXXXX", path[64], other[64];
	const struct mount_entry *mount;
	struct stat st;
	int fd, dir_fd;

	if (!mkdtemp(dir))
		bail_out("no temporary directory");
	snprintf(path, sizeof(path), "%s/file", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	dir_fd = open(dir, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || dir_fd < 0 || fstat(fd, &st) < 0)
		bail_out("no file");
	config_default(&config);
	identity_map_init(&map, &config, false);
	ok_int(identity_of_file(&map, fd, 0, &id), -ENOLCK, "a file under no lockspace's path");
	map.standalone = true;
	ok_int(identity_of_file(&map, fd, 0, &id), 0, "standalone it is known by its device");
	ok_uint(id.key.lockspace, IDENTITY_LOCAL, "in a lockspace of its own");
	set_path(&config, &map, other);
	ok_int(identity_of_file(&map, fd, 0, &id), -ENOLCK, "beside the path of one, which is no mount point");
	set_path(&config, &map, dir);
	ok_int(identity_of_file(&map, fd, 0, &id), 0, "below it");
	ok(is_inode(&id.key, st.st_ino), "the key is the inode, and nothing of this node");
	ok(id.may_read && id.may_write, "open for both");
	ok_int(identity_of_file(&map, dir_fd, 0, &id), -ENOLCK, "the path itself");
	if (symlink(dir, other) < 0)
		bail_out("no link");
	set_path(&config, &map, other);
	ok_int(identity_of_file(&map, fd, 0, &id), 0, "the path is a link to it");
	unlink(other);
	mount = mounts_of_path(&map.mounts, dir);
	if (mount) {
		snprintf(other, sizeof(other), "%s", mount->point);
		set_path(&config, &map, other);
		ok_int(identity_of_file(&map, fd, 0, &id), 0, "on the file system mounted at the path: %s",
		       other);
		ok(is_inode(&id.key, st.st_ino), "the same key");
		ok_int(identity_of_file(&map, dir_fd, 0, &id), -EINVAL, "a directory on it");
	}
	close(fd);
	close(dir_fd);
	unlink(path);
	rmdir(dir);
	identity_map_done(&map);
}

static void test_mounts(void)
{
	static const char *const paths[] = { "/", "/proc", "/proc/self/fd", "/procedure", "/dev" };
	struct mounts m;
	struct descriptor d;
	struct stat st;
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	const struct mount_entry *mount;
	uint32_t count;

	mounts_init(&m);
	ok(m.count > 0, "the list of mounts");
	for (unsigned i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (stat(paths[i], &st) < 0)
			st.st_dev = mounts_of_path(&m, "/")->device;
		mount = mounts_of_path(&m, paths[i]);
		ok(mount && mount->device == st.st_dev, "the file system of %s", paths[i]);
	}
	if (descriptor_look(fd, &d) < 0)
		bail_out("nothing is known of a descriptor");
	mount = mounts_find(&m, d.mount, 0);
	ok(mount && strcmp(mount->point, "/proc") == 0, "where it is mounted");
	ok(mount && mount->foreign, "and that this is no common file system");
	count = m.count;
	m.count = 0;
	ok(!mounts_find(&m, d.mount, 0), "a mount that is not ours");
	ok(mounts_find(&m, d.mount, getpid()) && m.other.foreign && m.other.id == d.mount,
	   "is found where the process sees it");
	m.count = count;
	mounts_done(&m);
	close(fd);
}

/* Closed by a thread, a pipe's end comes when it comes. */
static bool is_hung_up(int fd)
{
	struct pollfd end = { .fd = fd };

	return poll(&end, 1, 20000) == 1 && (end.revents & POLLHUP);
}

static void test_descriptors(void)
{
	struct mounts m;
	struct closer *closer;
	struct descriptor d;
	struct stat st;
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC), fds[2];

	mounts_init(&m);
	if (closer_new(&closer) < 0 || pipe2(fds, O_CLOEXEC) < 0)
		bail_out("no pipe");
	ok_int(descriptor_look(fd, &d), 0, "what the kernel knows of a descriptor");
	ok(fstat(fd, &st) == 0 && (!d.has_inode || d.inode == st.st_ino), "its inode");
	ok_int(d.flags & O_ACCMODE, O_RDONLY, "its mode");
	close(fd);
	ok_int(descriptor_look(fd, &d), -EBADF, "one that is not open");
	ok(!closer_crowded(closer), "nothing is stuck");
	descriptor_close(closer, &m, 0, fds[1]);
	ok(is_hung_up(fds[0]), "a descriptor of no known file system is closed aside");
	close(fds[0]);
	if (pipe2(fds, O_CLOEXEC) < 0)
		bail_out("no pipe");
	descriptor_close(closer, &m, 0, fds[1]);
	closer_free(closer);
	ok(is_hung_up(fds[0]), "even if nobody cares any more");
	close(fds[0]);
	mounts_done(&m);
}

/* A client in a container: its mounts are not belayd's. Last, for there is no way back. */
static void test_container(void)
{
	struct config config;
	struct identity_map map;
	struct identity id;
	char dir[] = "/tmp/belay-parts.XXXXXX", path[64];
	struct descriptor d;
	struct stat st;
	int fd;

	if (!mkdtemp(dir))
		bail_out("no temporary directory");
	snprintf(path, sizeof(path), "%s/file", dir);
	config_default(&config);
	identity_map_init(&map, &config, false);
	set_path(&config, &map, dir);
	if (unshare(CLONE_NEWNS) < 0) {
		diag("not root: containers are not tested");
	} else {
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0 || fstat(fd, &st) < 0 || descriptor_look(fd, &d) < 0)
			bail_out("no file");
		ok(!mounts_find(&map.mounts, d.mount, 0), "a file on a mount of another namespace");
		ok_int(identity_of_file(&map, fd, getpid(), &id), 0, "is known all the same");
		ok(is_inode(&id.key, st.st_ino), "by the same key");
		close(fd);
		unlink(path);
	}
	rmdir(dir);
	identity_map_done(&map);
}

static void test_replies(void)
{
	const struct client_message m = { .type = CLIENT_RESULT, .number = 1 };
	struct replies r = { 0 };
	unsigned put = 0;
	int error;

	while ((error = replies_put(&r, &m)) == 0)
		put++;
	ok_int(error, -ENOBUFS, "answers pile up to a bound");
	ok(replies_pending(&r) >= REPLIES_MAX && replies_pending(&r) <= 2 * REPLIES_MAX, "of a size");
	ok_int(replies_send(&r, -1), -EBADF, "an error is told");
	replies_done(&r);
	ok(put > 10000, "%u of them", put);
}

/* A descriptor goes with the packet that has its message, however many are before it. */
static void test_passing(void)
{
	char filler[30000];
	const struct client_message text = {
		.type = CLIENT_TEXT, .number = 1, .text = filler, .text_size = sizeof(filler),
	};
	const struct client_message with = { .type = CLIENT_RESULT, .number = 77 };
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
	char buf[CLIENT_PACKET_MAX];
	struct replies r = { 0 };
	unsigned packets = 0, came_with = 0, place = 0;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
		bail_out("no socket pair");
	memset(filler, 'x', sizeof(filler));
	for (unsigned i = 0; i < 5; i++)
		(void)replies_put(&r, &text);
	ok_int(replies_put_descriptor(&r, &with, STDIN_FILENO), 0, "a descriptor is put behind five long answers");
	(void)replies_put(&r, &text);
	while (replies_pending(&r) > 0 && packets < 10) {
		struct iovec iov = { .iov_base = buf, .iov_len = sizeof(buf) };
		struct msghdr msg = {
			.msg_iov = &iov, .msg_iovlen = 1,
			.msg_control = control, .msg_controllen = sizeof(control),
		};
		struct client_message m;
		ssize_t size;
		size_t at = 0;

		(void)replies_send(&r, fds[0]);
		while ((size = recvmsg(fds[1], &msg, MSG_CMSG_CLOEXEC)) > 0) {
			const struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
			int fd = -1;

			packets++;
			if (c) {
				came_with = packets;
				memcpy(&fd, CMSG_DATA(c), sizeof(fd));
				close(fd);
			}
			for (at = 0; client_get(buf, (size_t)size, &at, &m) == 1;)
				place = m.number == 77 ? packets : place;
			msg.msg_controllen = sizeof(control);
		}
	}
	ok(packets > 2 && place > 0, "all came, in %u packets", packets);
	ok_uint(came_with, place, "it comes with its own answer");
	replies_done(&r);
	close(fds[0]);
	close(fds[1]);
}

static void test_limit(void)
{
	struct limit limit = { 0 };
	uint64_t held_back = 7;
	unsigned passed = 0;

	for (uint64_t i = 0; i < 100; i++)
		passed += limit_pass(&limit, 1000 + i, &held_back);
	ok(passed == 1 && held_back == 0, "one line passes");
	ok(limit_pass(&limit, 1000 + LIMIT_INTERVAL_US, &held_back) && held_back == 99,
	   "the next one tells how many did not");
}

int main(void)
{
	test_histogram();
	test_siphash();
	test_hold();
	test_requests();
	test_handles();
	test_names();
	test_access();
	test_identity();
	test_files();
	test_mounts();
	test_descriptors();
	test_replies();
	test_passing();
	test_limit();
	test_container();
	return done_testing();
}
