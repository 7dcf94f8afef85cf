/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The pure parts of belay(1): numbers, options of lock and bench, percentiles, JSON paths. */
#include <errno.h>
#include <getopt.h>
#include <unistd.h>

#include "tests/tap.h"
#include "tools/bench.h"
#include "tools/lock.h"

static void test_numbers(void)
{
	static const struct {
		const char *text;
		int result;
		uint64_t number;
	} cases[] = {
		{ "1", 0, 1 }, { "128", 0, 128 }, { "0", -EINVAL, 0 }, { "129", -EINVAL, 0 },
		{ "", -EINVAL, 0 }, { "-1", -EINVAL, 0 }, { "+1", -EINVAL, 0 }, { " 1", -EINVAL, 0 },
		{ "1x", -EINVAL, 0 }, { "0x10", -EINVAL, 0 }, { "18446744073709551617", -EINVAL, 0 },
		{ "99999999999999999999999", -EINVAL, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t number = 7;

		ok_int(parse_number(cases[i].text, 1, 128, &number), cases[i].result, "number \"%s\"",
		       cases[i].text);
		ok_uint(number, cases[i].result == 0 ? cases[i].number : 7, "its value");
	}
}

static void test_seconds(void)
{
	static const struct {
		const char *text;
		int result;
		unsigned ms;
	} cases[] = {
		{ "0", 0, 0 }, { "2", 0, 2000 }, { "0.5", 0, 500 }, { ".25", 0, 250 }, { "1.", 0, 1000 },
		{ "0.001", 0, 1 }, { "0.0001", 0, 1 }, { "1.0000", 0, 1000 }, { "2000000", 0, 2000000000 },
		{ "", -EINVAL, 0 }, { ".", -EINVAL, 0 }, { "-1", -EINVAL, 0 }, { "1.2.3", -EINVAL, 0 },
		{ "1s", -EINVAL, 0 }, { "99999999", -EINVAL, 0 }, { "inf", -EINVAL, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned ms = 7;

		ok_int(parse_seconds(cases[i].text, &ms), cases[i].result, "seconds \"%s\"",
		       cases[i].text);
		ok_uint(ms, cases[i].result == 0 ? cases[i].ms : 7, "in milliseconds");
	}
}

/* ---- options: the words of a command line, split at blanks ---- */

struct words {
	char text[256];
	char *argv[32];
	int argc;
};

static void split(struct words *words, const char *line)
{
	char *save = NULL, *word;

	snprintf(words->text, sizeof(words->text), "%s", line);
	words->argc = 0;
	for (word = strtok_r(words->text, " ", &save); word; word = strtok_r(NULL, " ", &save))
		words->argv[words->argc++] = word;
	words->argv[words->argc] = NULL;
	optind = 0;
	opterr = 0;
}

/* What is said about mistakes is for people; here only the status counts. */
static int hush(void)
{
	int kept = dup(STDERR_FILENO);

	fflush(stderr);
	if (!freopen("/dev/null", "w", stderr))
		bail_out("no /dev/null");
	return kept;
}

static void unhush(int kept)
{
	fflush(stderr);
	dup2(kept, STDERR_FILENO);
	close(kept);
}

static int parse_lock(struct words *words, const char *line, struct lock_options *o)
{
	static const struct subcommand command = { .name = "lock" };
	const struct tool tool = { .command = &command };
	int kept = hush(), status;

	split(words, line);
	status = lock_parse(&tool, words->argc, words->argv, o);
	unhush(kept);
	return status;
}

static void test_lock_right(void)
{
	struct words words;
	struct lock_options o;

	ok_int(parse_lock(&words, "lock res cmd -x arg", &o), 0, "resource and command");
	ok_str(o.resource, "res", "the resource");
	ok_str(o.command[0], "cmd", "the command");
	ok_str(o.command[1], "-x", "the command's option is its own");
	ok(!o.shared && !o.try && !o.timed && o.by == LOCK_BY_GUESS, "the defaults");
	ok_int(o.busy_status, 1, "status of busy");

	ok_int(parse_lock(&words, "lock -s -w 1.5 -E 75 --name res -- cmd", &o), 0, "options before");
	ok(o.shared && o.timed && o.wait_ms == 1500, "shared, for a while");
	ok_int(o.busy_status, 75, "status of busy");
	ok_int(o.by, LOCK_BY_NAME, "by name");
	ok_str(o.command[0], "cmd", "the command");

	ok_int(parse_lock(&words, "lock res -n --file -- cmd -s", &o), 0, "options behind");
	ok(o.try && o.by == LOCK_BY_FILE && !o.shared, "they count, the command's do not");
	ok_str(o.command[1], "-s", "which stay there");

	ok_int(parse_lock(&words, "lock -- res cmd", &o), 0, "-- before the resource");
	ok_str(o.resource, "res", "the resource");
	ok_int(parse_lock(&words, "lock -n -- -res -cmd", &o), 0, "for one that begins with a dash");
	ok_str(o.resource, "-res", "the resource");
	ok_str(o.command[0], "-cmd", "the command");

	ok_int(parse_lock(&words, "lock res -c true --on-loss kill", &o), 0, "a shell's command");
	ok_str(o.shell, "true", "the line");
	ok_int(o.loss, LOCK_LOSS_KILL, "what to do at the loss");
	ok_int(parse_lock(&words, "lock -s res -x cmd", &o), 0, "both modes");
	ok(!o.shared, "the last one counts");
	ok_int(parse_lock(&words, "lock --help", &o), 0, "help alone");
	ok(o.help, "is help");
}

static void test_lock_wrong(void)
{
	static const char *const lines[] = {
		"lock", "lock res", "lock res --", "lock -x", "lock -n -w 1 res cmd", "lock -w x res cmd",
		"lock -E 256 res cmd", "lock -E -1 res cmd", "lock -q res cmd", "lock res -q cmd",
		"lock --nonsense res cmd", "lock res -c true cmd", "lock res -w", "lock --wait",
		"lock --on-loss cry res cmd", "lock --name --fcntl res cmd",
	};
	struct words words;
	struct lock_options o;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		ok_int(parse_lock(&words, lines[i], &o), TOOL_USAGE, "wrong: %s", lines[i]);
}

static int parse_bench(struct words *words, const char *line, struct bench_options *o)
{
	static const struct subcommand command = { .name = "bench" };
	const struct tool tool = { .command = &command };
	int kept = hush(), status;

	split(words, line);
	status = bench_parse(&tool, words->argc, words->argv, o);
	unhush(kept);
	return status;
}

static void test_bench_right(void)
{
	struct words words;
	struct bench_options o;

	ok_int(parse_bench(&words, "bench -rw file 3", &o), 0, "as ping_pong");
	ok(o.reads && o.writes && !o.mmap && !o.check, "its options");
	ok_str(o.file, "file", "its file");
	ok_uint(o.locks, 3, "its number");
	ok_uint(o.threads, 1, "one player");
	ok_uint(o.ms, 0, "for ever");

	ok_int(parse_bench(&words, "bench file 5 -c --json --via ofd --threads 4", &o), 0, "more");
	ok(o.check && o.json && o.via == BENCH_VIA_OFD && o.threads == 4, "options");
	ok_uint(o.ms, 10000, "a program wants an end");
	ok_int(parse_bench(&words, "bench --name n --ranges 10 --seconds 2 3", &o), 0, "a name");
	ok(!o.file && o.locks == 3 && o.ranges == 10 && o.ms == 2000, "bytes of it");
	ok_int(parse_bench(&words, "bench --name n --clients 64 --warmup 0.5", &o), 0, "clients");
	ok(o.clients == 64 && o.warmup_ms == 500, "so many");
	ok_int(parse_bench(&words, "bench --cpg --batch 20", &o), 0, "corosync alone");
	ok(o.cpg && o.batch == 20 && o.ms == 10000, "batches");
	ok_int(parse_bench(&words, "bench --help", &o), 0, "help alone");
	ok(o.help, "is help");
}

static void test_bench_wrong(void)
{
	static const char *const lines[] = {
		"bench", "bench file", "bench file 0", "bench file x", "bench file 3 4", "bench --name n",
		"bench --name n file 3", "bench -q file 3", "bench --via dlm file 3",
		"bench --via fcntl --threads 2 file 3", "bench --via ofd --name n 3", "bench -r --name n 3",
		"bench -m file 3", "bench -w --shared file 3", "bench --clients 4 file",
		"bench --clients 4 --name n 3", "bench --clients 4 --threads 2 --name n",
		"bench --clients 0 --name n", "bench --cpg file 3", "bench --cpg --name n",
		"bench --batch 3 file 3", "bench --seconds x file 3", "bench --seconds", "bench --json=1 f 3",
		"bench --via flock --ranges 3 file 3", "bench --threads 100000 file 3",
		"bench --threads 3 file 3", "bench file 2 --threads 3",
	};
	struct words words;
	struct bench_options o;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		ok_int(parse_bench(&words, lines[i], &o), TOOL_USAGE, "wrong: %s", lines[i]);
}

static bool about(double got, double want)
{
	return got >= want && got <= want * 1.033;
}

static void test_latency(void)
{
	struct latency l = { 0 }, sum = { 0 };
	uint64_t i;

	ok(latency_us(&l, 500) == 0, "nothing yet");
	for (i = 1; i <= 100000; i++)
		latency_add(&l, i * 1000);
	ok(about(latency_us(&l, 500), 50000), "half: %.1f", latency_us(&l, 500));
	ok(about(latency_us(&l, 990), 99000), "99 of 100: %.1f", latency_us(&l, 990));
	ok(latency_us(&l, 1000) == 100000, "the slowest: %.1f", latency_us(&l, 1000));
	ok_uint(l.max_ns, 100000000, "exactly");
	latency_add(&sum, 5);
	ok(latency_us(&sum, 500) == 0.005, "small ones are exact");
	latency_add(&sum, UINT64_MAX);
	ok(latency_us(&sum, 1000) > 1e6, "huge ones do no harm");
	latency_merge(&sum, &l);
	ok_uint(sum.count, 100002, "merged");
	ok(about(latency_us(&sum, 500), 50000), "half of the sum: %.1f", latency_us(&sum, 500));
	/* Above, all is in the last bucket. */
	for (i = 0; i < 44; i++) {
		struct latency one = { 0 };
		uint64_t ns = UINT64_C(1) << i;

		latency_add(&one, ns);
		latency_add(&one, ns);
		ok(about(latency_us(&one, 500) * 1000, (double)ns), "2^%u ns", (unsigned)i);
	}
}

static void test_json(void)
{
	struct json_object *json = json_tokener_parse(
		"{\"a\":{\"b\":{\"c\":5,\"t\":true,\"s\":\"x\",\"r\":1.5}},\"n\":null,\"l\":[1,2]}");

	ok_uint(json_u64(json, "a.b.c"), 5, "a number");
	ok(json_true(json, "a.b.t"), "a truth");
	ok_str(json_text(json, "a.b.s"), "x", "a text");
	ok(json_real(json, "a.b.r") == 1.5, "a real");
	ok_uint(json_count(json, "l"), 2, "an array");
	ok_uint(json_u64(json, "a.x.c") + json_u64(json, "a.b.c.d") + json_u64(json, "n.x"), 0, "absent");
	ok_str(json_text(json, "n"), "", "null");
	ok_uint(json_count(json, "a") + json_count(json, "z"), 0, "no array");
	ok(!json_true(json, "z") && json_at(NULL, "a") == NULL, "nothing");
	json_object_put(json);
}

int main(void)
{
	test_numbers();
	test_seconds();
	test_lock_right();
	test_lock_wrong();
	test_bench_right();
	test_bench_wrong();
	test_latency();
	test_json();
	return done_testing();
}
