/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/bench_cpg.h"

/* What an operation takes in a message, about. */
#define OPERATION_BYTES 48
#define CPG_WARMUP_MS 200

void bench_tell(const struct bench *bench, uint64_t cycles, double seconds)
{
	const struct bench_options *o = bench->o;

	if (o->json)
		return;
	/* A lock and an unlock are two: the figure compares with ping_pong's. */
	printf("%8.0f locks/sec", 2 * (double)cycles / seconds);
	if (o->reads)
		printf("   data increment = %u", bench->increment);
	printf(isatty(STDOUT_FILENO) ? "   \r" : "\n");
	fflush(stdout);
}

void bench_count(const struct bench *bench, int sign, struct bench_result *result)
{
	struct json_object *status;

	if (!bench->belay || tool_query(bench->tool, bench->belay, "status", &status) != TOOL_OK)
		return;
	result->messages += (uint64_t)sign * (json_u64(status, "messages.frames_sent") +
					      json_u64(status, "messages.empty_frames_sent"));
	result->operations += (uint64_t)sign * json_u64(status, "messages.ops_sent");
	result->counted = true;
	json_object_put(status);
}

/* The file with bytes enough for -r, -w and -m; never cut, it may be somebody's. */
static int open_file(struct bench *bench)
{
	const struct bench_options *o = bench->o;
	struct stat st;

	bench->file = open(o->file, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (bench->file < 0)
		return tool_failed(bench->tool, -errno, "%s", o->file);
	if (!o->reads && !o->writes)
		return TOOL_OK;
	if (fstat(bench->file, &st) < 0 ||
	    (st.st_size < (off_t)o->locks && ftruncate(bench->file, (off_t)o->locks) < 0))
		return tool_failed(bench->tool, -errno, "%s: cannot make it %u bytes long", o->file, o->locks);
	if (o->mmap) {
		bench->map = mmap(NULL, o->locks, PROT_READ | PROT_WRITE, MAP_SHARED, bench->file, 0);
		if (bench->map == MAP_FAILED) {
			bench->map = NULL;
			return tool_failed(bench->tool, -errno, "%s: cannot map it", o->file);
		}
	}
	return TOOL_OK;
}

static void add(struct json_object *json, const char *name, double value)
{
	char text[32];

	snprintf(text, sizeof(text), "%.3f", value);
	json_object_object_add(json, name, json_object_new_double_s(value, text));
}

static double ratio(double a, double b)
{
	return b > 0 ? a / b : 0;
}

static void print_json(const struct bench_options *o, const struct bench_result *result)
{
	struct json_object *json = json_object_new_object();
	double cycles = (double)result->cycles;

	json_object_object_add(json, "via", json_object_new_string(bench_via_names[o->via]));
	json_object_object_add(json, "cycles", json_object_new_uint64(result->cycles));
	add(json, "seconds", result->seconds);
	add(json, "locks_per_sec", ratio(2 * cycles, result->seconds));
	add(json, "cycle_us", ratio(1e6 * result->seconds * (o->clients ? o->clients : o->threads), cycles));
	add(json, "p50_us", latency_us(&result->latency, 500));
	add(json, "p99_us", latency_us(&result->latency, 990));
	add(json, "max_us", (double)result->latency.max_ns / 1000);
	if (result->counted) {
		add(json, "messages_per_lock", ratio((double)result->messages, cycles));
		add(json, "operations_per_message",
		    ratio((double)result->operations, (double)result->messages));
		add(json, "operations_per_sec", ratio((double)result->operations, result->seconds));
	}
	if (o->reads)
		json_object_object_add(json, "data_increment", json_object_new_int64(result->increment));
	printf("%s\n", json_object_to_json_string_ext(json, JSON_C_TO_STRING_SPACED));
	json_object_put(json);
}

static void print_text(const struct bench_options *o, const struct bench_result *result)
{
	double cycles = (double)result->cycles;

	printf("%8.0f locks/sec over %.1f s\n", ratio(2 * cycles, result->seconds), result->seconds);
	printf("a lock takes %.1f us (half of them no more), %.1f us (99 of 100), %.1f us (the slowest)\n",
	       latency_us(&result->latency, 500), latency_us(&result->latency, 990),
	       (double)result->latency.max_ns / 1000);
	if (result->counted)
		printf("%.2f messages of this node per lock, %.1f operations per message\n",
		       ratio((double)result->messages, cycles),
		       ratio((double)result->operations, (double)result->messages));
	if (o->reads)
		printf("data increment = %u: so many players write\n", result->increment);
}

static int run_bench(const struct tool *tool, const struct bench_options *o)
{
	struct bench bench = { .tool = tool, .o = o, .file = -1 };
	struct bench_result result;
	int status = TOOL_OK;

	if (o->via == BENCH_VIA_BELAY)
		status = tool_connect(tool, &bench.belay);
	if (status == TOOL_OK && o->file)
		status = open_file(&bench);
	if (status == TOOL_OK)
		status = o->clients > 0 ? bench_clients(&bench, &result) : bench_pingpong(&bench, &result);
	if (status == TOOL_OK && o->json)
		print_json(o, &result);
	else if (status == TOOL_OK)
		print_text(o, &result);
	if (bench.map)
		munmap(bench.map, o->locks);
	if (bench.file >= 0)
		close(bench.file);
	belay_disconnect(bench.belay);
	return status;
}

static void print_cpg_json(unsigned batch, const struct bench_cpg_result *result)
{
	struct json_object *json = json_object_new_object();

	json_object_object_add(json, "members", json_object_new_int64(result->members));
	json_object_object_add(json, "batch", json_object_new_int64(batch));
	add(json, "latency_p50_us", latency_us(&result->single.latency, 500));
	add(json, "latency_p99_us", latency_us(&result->single.latency, 990));
	add(json, "messages_per_sec", result->single.messages_per_s);
	if (batch > 0) {
		add(json, "batch_latency_p50_us", latency_us(&result->closed.latency, 500));
		add(json, "operations_per_sec_one_by_one", result->closed.ops_per_s);
		add(json, "operations_per_sec", result->flat.ops_per_s);
	}
	printf("%s\n", json_object_to_json_string_ext(json, JSON_C_TO_STRING_SPACED));
	json_object_put(json);
}

static void print_cpg_text(unsigned batch, const struct bench_cpg_result *result)
{
	printf("corosync's CPG, %u members measuring\n", result->members);
	printf("one message at a time:   back after %.1f us (p50), %.1f us (p99); %.0f a second\n",
	       latency_us(&result->single.latency, 500), latency_us(&result->single.latency, 990),
	       result->single.messages_per_s);
	if (batch == 0)
		return;
	printf("%u operations a message: %.0f operations/s one message at a time\n", batch,
	       result->closed.ops_per_s);
	printf("                         %.0f operations/s, as many as corosync takes\n",
	       result->flat.ops_per_s);
}

static int run_cpg(const struct tool *tool, const struct bench_options *o)
{
	unsigned parts = o->batch > 0 ? 3 : 1;
	const struct bench_cpg_options options = {
		.ops = o->batch,
		.op_bytes = OPERATION_BYTES,
		.warmup_ms = o->warmup_ms > 0 ? o->warmup_ms : CPG_WARMUP_MS,
		.ms = o->ms > parts ? o->ms / parts : 1,
	};
	struct bench_cpg_result *result = calloc(1, sizeof(*result));
	int r = result ? bench_cpg(&options, result) : -ENOMEM, status = TOOL_OK;

	switch (r) {
	case 0:
		if (o->json)
			print_cpg_json(options.ops, result);
		else
			print_cpg_text(options.ops, result);
		break;
	case -ENOTCONN:
		status = tool_failed(tool, 0, "corosync does not run on this node");
		break;
	case -EACCES:
		status = tool_failed(tool, 0, "corosync refuses this user: be root, or see uidgid in "
				     "corosync.conf(5)");
		break;
	case -ETIMEDOUT:
		status = tool_failed(tool, 0, "corosync delivers nothing: see corosync-quorumtool -s");
		break;
	default:
		status = tool_failed(tool, r, "measuring corosync");
	}
	free(result);
	return status;
}

static int run(const struct tool *tool, int argc, char **argv)
{
	struct bench_options o;
	int status = bench_parse(tool, argc, argv, &o);

	if (status != TOOL_OK)
		return status;
	if (o.help)
		return tool_help(tool);
	return o.cpg ? run_cpg(tool, &o) : run_bench(tool, &o);
}

const struct subcommand command_bench = {
	.name = "bench",
	.summary = "measure locks: Samba's ping_pong, through belay or the kernel",
	.usage =
	"[-r] [-w] [-m] [-c] [OPTIONS] FILE N\n"
	"       belay bench --name NAME [OPTIONS] N\n"
	"       belay bench --name NAME --clients C [OPTIONS]\n"
	"       belay bench --cpg [--batch OPERATIONS] [--seconds S] [--json]\n\n"
	"Locks byte i+1, then unlocks byte i, around N bytes of FILE. Run it on several\n"
	"nodes at once, with N larger than their number. locks/sec counts a lock and an\n"
	"unlock as two, as ping_pong does.\n\n"
	"  -r, -w              read, write the byte; the increment seen is the number\n"
	"                      of players if all is coherent\n"
	"  -m                  by mmap(2)\n"
	"  -c                  check each lock: nobody else may have it\n"
	"      --via WHAT      belay (default), fcntl, ofd or flock: the kernel's locks\n"
	"      --name NAME     bytes of a named lock, not of FILE\n"
	"      --threads T     that many players in this process\n"
	"      --clients C     C connections on C locks NAME.0 ..., driven by one loop\n"
	"      --shared        shared locks\n"
	"      --ranges K      hold K other ranges meanwhile\n"
	"      --seconds S     end after S seconds; else when interrupted\n"
	"      --warmup S      S seconds before, which do not count\n"
	"      --cpg           measure corosync's CPG alone: latency of a message to\n"
	"                      its sender\n"
	"      --batch B       and the rates of messages of B operations\n"
	"      --json          print the figures as JSON, for programs\n",
	.run = run,
};
