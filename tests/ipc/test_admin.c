/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What administrators ask belayd: answers that programs can read, errors that people can. */
#include <fcntl.h>
#include <json-c/json.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/journal.h"
#include "tests/ipc/raw.h"
#include "tests/tap.h"

#define POSIX BELAY_KIND_POSIX
#define EX BELAY_MODE_EX

/* The answer as JSON, to be put; NULL and a diagnostic if it is none. */
static struct json_object *ask(struct raw *r, const char *line)
{
	struct json_object *json;
	char *text;
	int result = raw_command(r, line, &text);

	json = result == 0 ? json_tokener_parse(text) : NULL;
	if (!json)
		diag("%s: %d %s", line, result, text);
	free(text);
	return json;
}

static bool fails(struct raw *r, const char *line, int result, const char *text)
{
	char *said;
	int got = raw_command(r, line, &said);
	bool right = got == result && strstr(said, text);

	if (!right)
		diag("%s: %d %s", line, got, said);
	free(said);
	return right;
}

/* Walk down the names, separated by dots; NULL if there is no such member. */
static struct json_object *member(struct json_object *json, const char *path)
{
	char name[64];

	while (json && *path) {
		size_t size = strcspn(path, ".");

		snprintf(name, sizeof(name), "%.*s", (int)size, path);
		json = json_object_object_get(json, name);
		path += size + (path[size] == '.');
	}
	return json;
}

static uint64_t number(struct json_object *json, const char *path)
{
	struct json_object *value = member(json, path);

	return value ? json_object_get_uint64(value) : UINT64_MAX;
}

static const char *text(struct json_object *json, const char *path)
{
	return json_object_get_string(member(json, path));
}

static void test_status(struct raw *r)
{
	static const char *const numbers[] = {
		"node", "expected_votes", "incarnation", "place", "resources.owned",
		"resources.arbitrated", "locks", "locks_replicated", "waiters_replicated", "counters.recalls",
		"counters.deadlocks", "messages.delivered", "messages.bad",
		"messages.ops_per_frame", "back_pressure.times", "back_pressure.try_again",
		"rates.grants_local", "rates.grants_ordered", "rates.recalls", "latency_us.p50",
		"latency_us.p99", "clients.now", "clients.handles", "clients.requests",
		"memory.resident_bytes",
	};
	struct json_object *status = ask(r, "status"), *node;

	if (!ok(status, "status is JSON"))
		return;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		ok(number(status, numbers[i]) != UINT64_MAX, "it has %s", numbers[i]);
	ok_str(text(status, "group"), "standalone", "it says that this node is alone");
	ok_str(text(status, "fencing"), "none", "and how nodes are fenced");
	ok(json_object_get_boolean(member(status, "synced")), "synced");
	ok(!json_object_get_boolean(member(status, "frozen")), "not frozen");
	node = json_object_array_get_idx(member(status, "nodes"), 0);
	ok_uint(number(node, "node"), 1, "the one node");
	ok_str(text(node, "standing"), "member", "is a member");
	ok(number(status, "memory.resident_bytes") > 1000000, "memory is measured");
	json_object_put(status);
}

static void test_locks(const struct belayd *d, struct raw *r)
{
	struct json_object *page, *lock;
	struct raw other;
	uint32_t h = (uint32_t)raw_open_name(r, "default", "b\xc3\xa4r \xff\"");
	int fd = open(d->conf, O_RDWR | O_CLOEXEC);
	uint32_t file = (uint32_t)raw_open_fd(r, fd), waiting;
	struct client_message m;

	close(fd);
	ok_int(raw_lock(r, h, POSIX, EX, false, 5, 9), 0, "a name is locked");
	raw_open(&other, d->socket);
	waiting = (uint32_t)raw_open_name(&other, "default", "b\xc3\xa4r \xff\"");
	(void)raw_ask_lock(&other, waiting, BELAY_KIND_OFD, BELAY_MODE_SH, true, 0,
			   BELAY_OFFSET_MAX);
	ok_int(raw_test(&other, waiting, POSIX, EX, 100, 100, &m), 0, "and waited for");
	page = ask(r, "locks");
	ok_int((int)json_object_array_length(member(page, "locks")), 2, "both are listed");
	lock = json_object_array_get_idx(member(page, "locks"), 0);
	ok_str(text(lock, "lockspace"), "default", "the lockspace");
	ok_str(text(lock, "name"), "b\xc3\xa4r \\xff\"", "the name, what is no UTF-8 made readable");
	ok_uint(number(lock, "pid"), (uint64_t)getpid(), "the process");
	ok_str(text(lock, "mode"), "EX", "the mode");
	ok_str(text(lock, "kind"), "posix", "the kind");
	ok_uint(number(lock, "start"), 5, "the start");
	ok_uint(number(lock, "end"), 9, "the end");
	ok(!json_object_get_boolean(member(lock, "waiting")), "it is held");
	lock = json_object_array_get_idx(member(page, "locks"), 1);
	ok(json_object_get_boolean(member(lock, "waiting")), "the other waits");
	ok(json_object_object_get_ex(lock, "end", NULL) && !member(lock, "end"), "for all there is");
	ok(json_object_object_get_ex(page, "next", NULL) && !member(page, "next"), "there is no more");
	json_object_put(page);
	raw_close(&other);

	ok_int(raw_try(r, file), 0, "a file is locked");
	raw_unlock(r, h, POSIX, 0, BELAY_OFFSET_MAX);
	page = ask(r, "locks");
	lock = json_object_array_get_idx(member(page, "locks"), 0);
	ok_str(text(lock, "name"), d->conf, "its path is shown");
	ok_str(text(lock, "lockspace"), "local", "and that no lockspace has it");
	json_object_put(page);
	raw_unlock(r, file, POSIX, 0, BELAY_OFFSET_MAX);
}

static void test_pages(struct raw *r)
{
	uint32_t h = (uint32_t)raw_open_name(r, "default", "pages");
	struct json_object *page;
	char line[128] = "locks";
	unsigned pages = 0, seen = 0, wrong = 0;

	for (uint64_t i = 0; i < 1200; i++)
		wrong += raw_lock(r, h, POSIX, EX, false, 2 * i, 2 * i) != 0;
	ok_uint(wrong, 0, "1200 ranges are locked");
	while (pages < 10 && (page = ask(r, line))) {
		pages++;
		seen += (unsigned)json_object_array_length(member(page, "locks"));
		snprintf(line, sizeof(line), "locks %s",
			 member(page, "next") ? text(page, "next") : "");
		json_object_put(page);
		if (line[6] == '\0')
			break;
	}
	ok_uint(seen, 1200, "all are listed, once");
	ok(pages > 1, "in pages");
	ok(fails(r, "locks rubbish", -EINVAL, "cursor"), "a cursor that is none");
	page = ask(r, "locks 4294967295:4294967295:18446744073709551615");
	ok(page && json_object_array_length(member(page, "locks")) == 0, "a cursor beyond the end");
	json_object_put(page);
	raw_unlock(r, h, POSIX, 0, BELAY_OFFSET_MAX);
}

static void ignore(void *context, const struct belay_action *action)
{
	(void)context;
	(void)action;
}

/* What was recorded must step a core of the same configuration to the same state. */
static void replay(const void *map, size_t size, struct json_object *status)
{
	static const struct belay_actions actions = { .emit = ignore };
	struct journal_reader *reader = malloc(sizeof(*reader));
	struct belay_event ev;
	struct belay_stats stats;
	struct belay_core *core;
	size_t core_size;
	void *memory;
	int n;

	ok_int(journal_read(reader, map, size), 0, "the dump can be read");
	ok_uint(reader->dropped, 0, "it has everything from the start");
	ok_uint(reader->config.self, 1, "and the node's configuration");
	core_size = belay_core_size(&reader->config);
	memory = mmap(NULL, core_size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	core = belay_core_init(memory, &reader->config);
	while ((n = journal_next(reader, &ev)) == 1)
		(void)belay_core_step(core, &ev, &actions);
	ok_int(n, 0, "to its end");
	belay_core_stats(core, &stats);
	ok_uint(stats.local_grants, number(status, "counters.grants_local"),
		"a core stepped through it has granted as many locks");
	ok_uint(stats.ordered_grants, number(status, "counters.grants_ordered"), "of both kinds");
	ok_uint(stats.place, number(status, "place"), "come to the same place");
	ok_uint(stats.locks, number(status, "locks"), "and holds as many");
	ok_uint(stats.lent, number(status, "loans.lent"), "it has lent as often");
	ok_uint(stats.loans_recalled, number(status, "loans.recalled"), "and recalled as often");
	ok_uint(stats.loans, number(status, "loans.now"), "and as many loans are out");
	ok(stats.locks == 2 && stats.local_grants > 1200, "which are those of this test");
	munmap(memory, core_size);
	free(reader);
}

/* A loan that is out, of another client's, and one that was called back. */
static void lend(const struct belayd *d, struct raw *r, struct raw *borrower)
{
	struct client_message m = { 0 };
	uint32_t h;

	raw_open(borrower, d->socket);
	if (raw_share(borrower) < 0)
		bail_out("no memory is shared");
	for (unsigned i = 0; i < 2; i++) {
		h = (uint32_t)raw_open_name(borrower, "default", i == 0 ? "recalled" : "lent");
		for (unsigned k = 0; k < 100 && m.slot != i + 1; k++) {
			raw_unlock(borrower, h, POSIX, 0, 9);
			(void)raw_borrow(borrower, h, EX, 0, 9, &m);
		}
		ok_uint(m.slot, i + 1, "something is lent");
	}
	h = (uint32_t)raw_open_name(r, "default", "recalled");
	ok_int(raw_lock(r, h, POSIX, EX, false, 0, 9), -EAGAIN, "what is held in a loan is not free");
}

static void test_dump(const struct belayd *d, struct raw *r)
{
	struct raw borrower;
	uint32_t h = (uint32_t)raw_open_name(r, "default", "dump");
	int held = raw_try(r, h);
	struct json_object *status, *answer;
	struct stat st = { 0 };
	const char *path;
	void *map;
	int fd;

	lend(d, r, &borrower);
	status = ask(r, "status");
	answer = ask(r, "dump");
	path = text(answer, "file");
	ok_int(held, 0, "one lock is held");
	ok(path && strncmp(path, d->journal, strlen(d->journal)) == 0, "dump says where it lies");
	if (!path)
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ok(fstat(fd, &st) == 0 && (st.st_mode & 0777) == 0600, "for nobody but root");
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (ok(map != MAP_FAILED, "it is there"))
		replay(map, (size_t)st.st_size, status);
	munmap(map, (size_t)st.st_size);
	raw_unlock(r, h, POSIX, 0, BELAY_OFFSET_MAX);
	raw_close(&borrower);
	json_object_put(answer);
	json_object_put(status);
}

static void test_errors(struct raw *r)
{
	char line[400];

	ok(fails(r, "nonsense", -EOPNOTSUPP, "no such command"), "a command that is none");
	ok(fails(r, "", -EOPNOTSUPP, "no such command"), "no command");
	ok(fails(r, "statusx", -EOPNOTSUPP, "no such command"), "nearly one");
	ok(fails(r, "status now", -EINVAL, "no argument"), "an argument too much");
	ok(fails(r, "fence-ack", -ENOENT, "no such node"), "no node");
	ok(fails(r, "fence-ack 17", -ENOENT, "no such node"), "a node that is not configured");
	ok(fails(r, "fence-ack 1x", -ENOENT, "no such node"), "a number that is none");
	ok(fails(r, "fence-ack 1", -EBUSY, "has not left"), "a node that is there");
	memset(line, 'x', sizeof(line));
	line[sizeof(line) - 1] = '\0';
	ok(fails(r, line, -E2BIG, "that long"), "a very long one");
}

int main(void)
{
	struct belayd d;
	struct raw r;
	char *answer;

	belayd_start(&d, "[cluster]\nfencing = none\n");
	ok(belayd_logged(&d, "fencing = none"), "fencing = none is said at each start");
	raw_open(&r, d.socket);
	test_status(&r);
	test_locks(&d, &r);
	test_pages(&r);
	test_dump(&d, &r);
	test_errors(&r);
	ok_int(raw_command(&r, "stop", &answer), 0, "stop");
	free(answer);
	ok_int(belayd_wait(&d), 0, "stops belayd");
	raw_close(&r);
	if (tap_state()->failed > 0)
		belayd_show_log(&d);
	belayd_remove(&d);
	return done_testing();
}
