/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sim: runs seeds, or plays a scenario. The work is done in children, so that
 * a core that asserts, or never returns, is a failure with a seed like any other.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/sim.h"

#define JOBS_MAX 64
#define SEED_SECONDS 60		/* far more than any run takes, valgrind included */
#define TWICE_EVERY 16		/* one seed in so many runs twice */
#define TAIL_LINES 80

/* What a child tells its parent, in shared memory: it may die at any moment. */
struct report {
	uint64_t seed, failed_seeds;
	struct tally tally;
	char failure[512];
};

struct arguments {
	uint64_t first, last;
	uint32_t jobs;
	bool trace, tally, hash, keep_going;
	const char *scenario;
	struct sim_options sim;
};

static const char usage[] =
	"usage: sim --seeds A[..B] [--nodes N] [--steps K] [--wire] [--jobs J] [--trace] [--tally] [--hash]\n"
	"       sim --scenario FILE [--wire]\n"
	"  --seeds A..B   run these worlds; each draws all it does from its seed\n"
	"  --nodes N      2 to 7 nodes, instead of 2 to 5 by the seed\n"
	"  --steps K      acts of the clients in a run (default 250)\n"
	"  --wire         send every message through wire/ and back\n"
	"  --jobs J       processes that share the seeds (default 1)\n"
	"  --trace        print all that happens (one seed)\n"
	"  --tally        print what the runs did, one \"name count\" a line\n"
	"  --hash         print a hash of each run\n"
	"  --keep-going   go on after a seed that fails\n"
	"  --scenario F   play the scenario in F and print its trace\n";

static int run_seed(struct sim *sim, uint64_t seed, bool twice, struct report *report)
{
	const char *why = sim_run(sim, seed);
	uint64_t hash = sim->hash;

	if (!why && twice) {
		why = sim_run(sim, seed);
		if (!why && sim->hash != hash)
			why = "the same seed ran differently";
	}
	if (!why)
		return 0;
	snprintf(report->failure, sizeof(report->failure), "%s", why);
	return -1;
}

static int work(const struct arguments *args, struct report *report, uint64_t first)
{
	struct sim *sim = sim_new(&args->sim);
	int r = 0;

	for (uint64_t seed = first; seed <= args->last && r == 0; seed += args->jobs) {
		report->seed = seed;
		alarm(SEED_SECONDS);
		r = run_seed(sim, seed, seed % TWICE_EVERY == 0, report);
		if (args->hash)
			printf("%" PRIu64 " %016" PRIx64 "\n", seed, sim->hash);
	}
	alarm(0);
	report->tally = sim->tally;
	sim_free(sim);
	return r;
}

/* Runs in a child; returns whether it went well. */
static pid_t spawn(const struct arguments *args, struct report *report, uint64_t first)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		int r = work(args, report, first);

		fflush(stdout);
		_exit(r == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
	}
	if (pid < 0) {
		perror("sim: fork");
		exit(EXIT_FAILURE);
	}
	return pid;
}

static void print_tail(FILE *file)
{
	char line[512];
	long lines = 0;

	rewind(file);
	while (fgets(line, sizeof(line), file))
		lines++;
	rewind(file);
	for (long i = 0; fgets(line, sizeof(line), file); i++)
		if (i >= lines - TAIL_LINES)
			fputs(line, stdout);
}

/* Run the seed again, with a trace, and show how it ended. */
static void explain(const struct arguments *args, struct report *report, int status)
{
	struct arguments again = *args;
	FILE *tail = tmpfile();

	if (WIFSIGNALED(status))
		snprintf(report->failure, sizeof(report->failure), "%s",
			 WTERMSIG(status) == SIGALRM ? "the run does not end" : strsignal(WTERMSIG(status)));
	again.first = again.last = report->seed;
	again.jobs = 1;
	again.hash = false;
	again.sim.trace = tail;
	if (tail) {
		setvbuf(tail, NULL, _IOLBF, 0);
		(void)waitpid(spawn(&again, report, report->seed), NULL, 0);
		print_tail(tail);
		fclose(tail);
	}
	printf("FAIL seed %" PRIu64 ": %s\n", report->seed, report->failure);
	printf("replay: sim --seeds %" PRIu64 " --steps %u%s", report->seed, args->sim.steps,
	       args->sim.wire ? " --wire" : "");
	if (args->sim.nodes)
		printf(" --nodes %u", args->sim.nodes);
	printf(" --trace\n");
}

static void add_tally(struct tally *sum, const struct tally *one)
{
	uint64_t *a = (uint64_t *)sum;
	const uint64_t *b = (const uint64_t *)one;

	for (size_t i = 0; i < sizeof(*sum) / sizeof(*a); i++)
		a[i] += b[i];
}

static void print_tally(const struct tally *t)
{
	const struct {
		const char *name;
		uint64_t count;
	} row[] = {
		{ "runs", t->runs }, { "events", t->events }, { "steps", t->steps }, { "views", t->views },
		{ "replies", t->replies }, { "grants", t->grants }, { "busy", t->busy },
		{ "deadlocks", t->deadlocks }, { "interrupted", t->interrupted }, { "refused", t->refused },
		{ "free_tests", t->free_tests }, { "held_tests", t->held_tests }, { "lost", t->lost },
		{ "snapshots", t->snapshots }, { "restarts", t->restarts }, { "fences", t->fences },
		{ "splits", t->splits }, { "kills", t->kills }, { "offs", t->offs }, { "leaves", t->leaves },
		{ "holes", t->holes }, { "privates", t->privates }, { "stale", t->stale },
		{ "lent", t->lent }, { "loans_used", t->loans_used }, { "loans_refused", t->loans_refused },
		{ "recalls", t->recalls }, { "loan_grants", t->loan_grants }, { "loan_unlocks", t->loan_unlocks },
		{ "loan_busy", t->loan_busy }, { "stops", t->stops }, { "client_kills", t->client_kills },
		{ "mad", t->mad }, { "cast_out", t->cast_out }, { "shared", t->shared }, { "apart", t->apart },
		{ "hints_sent", t->hints_sent }, { "hints_arrived", t->hints_arrived },
		{ "hints_used", t->hints_used }, { "volume_grants", t->volume_grants },
		{ "volumes_again", t->volumes_again }, { "volumes_late", t->volumes_late },
		{ "volumes_compared", t->volumes_compared },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		printf("%s %" PRIu64 "\n", row[i].name, row[i].count);
	for (size_t i = 0; i < BELAY_OP_COUNT; i++)
		printf("%s %" PRIu64 "\n", trace_op_name((enum belay_op_type)i), t->ops[i]);
}

/* Wait for one worker; explain how it failed. Returns whether it went well. */
static bool reap(const struct arguments *args, struct report *report, pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS)
		return true;
	explain(args, report, status);
	return false;
}

static int run_seeds(const struct arguments *args)
{
	struct report *report = mmap(NULL, sizeof(*report) * JOBS_MAX, PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct tally sum = { 0 };
	pid_t pid[JOBS_MAX];
	uint64_t failed = 0;

	if (report == MAP_FAILED) {
		perror("sim: mmap");
		return EXIT_FAILURE;
	}
	for (uint32_t j = 0; j < args->jobs; j++)
		pid[j] = spawn(args, &report[j], args->first + j);
	for (uint32_t j = 0; j < args->jobs; j++) {
		while (!reap(args, &report[j], pid[j])) {
			failed++;
			if (!args->keep_going || report[j].seed + args->jobs > args->last)
				break;
			pid[j] = spawn(args, &report[j], report[j].seed + args->jobs);
		}
		add_tally(&sum, &report[j].tally);
	}
	if (args->tally)
		print_tally(&sum);
	if (failed == 0 && !args->hash && !args->trace)
		printf("%" PRIu64 " seeds, all well\n", args->last - args->first + 1);
	else if (failed > 0)
		printf("%" PRIu64 " seeds failed\n", failed);
	munmap(report, sizeof(*report) * JOBS_MAX);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* In this process, so that a debugger sees it. */
static int run_traced(struct arguments *args)
{
	struct report report = { 0 };
	int r;

	setvbuf(stdout, NULL, _IOLBF, 0);
	args->sim.trace = stdout;
	r = work(args, &report, args->first);
	if (r < 0)
		printf("FAIL seed %" PRIu64 ": %s\n", report.seed, report.failure);
	return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int run_scenario(struct arguments *args)
{
	FILE *script = fopen(args->scenario, "re");
	struct sim *sim;
	bool good;

	if (!script) {
		fprintf(stderr, "sim: %s: %s\n", args->scenario, strerror(errno));
		return 2;
	}
	args->sim.scenario = true;
	args->sim.trace = stdout;
	sim = sim_new(&args->sim);
	good = script_play(sim, script, args->scenario);
	sim_free(sim);
	fclose(script);
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int wrong(const char *what)
{
	fprintf(stderr, "sim: %s\n%s", what, usage);
	return -1;
}

static int parse(int argc, char **argv, struct arguments *args)
{
	static const struct option options[] = {
		{ "seeds", required_argument, NULL, 's' }, { "nodes", required_argument, NULL, 'n' },
		{ "steps", required_argument, NULL, 'k' }, { "jobs", required_argument, NULL, 'j' },
		{ "wire", no_argument, NULL, 'w' }, { "trace", no_argument, NULL, 't' },
		{ "tally", no_argument, NULL, 'y' }, { "hash", no_argument, NULL, 'h' },
		{ "keep-going", no_argument, NULL, 'g' }, { "scenario", required_argument, NULL, 'c' }, { 0 },
	};
	int c, n;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 's':
			n = sscanf(optarg, "%" SCNu64 "..%" SCNu64, &args->first, &args->last);
			if (n < 1)
				return wrong("--seeds wants A or A..B");
			if (n == 1)
				args->last = args->first;
			break;
		case 'n':
			args->sim.nodes = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		case 'k':
			args->sim.steps = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		case 'j':
			args->jobs = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		case 'w':
			args->sim.wire = true;
			break;
		case 't':
			args->trace = true;
			break;
		case 'y':
			args->tally = true;
			break;
		case 'h':
			args->hash = true;
			break;
		case 'g':
			args->keep_going = true;
			break;
		case 'c':
			args->scenario = optarg;
			break;
		default:
			return wrong("what is that?");
		}
	}
	if (optind != argc || (!args->scenario && args->last == 0))
		return wrong("seeds or a scenario are needed");
	if (args->jobs < 1 || args->jobs > JOBS_MAX || args->sim.steps < 1)
		return wrong("that number makes no sense");
	if (args->sim.nodes && (args->sim.nodes < 2 || args->sim.nodes > SIM_NODES))
		return wrong("2 to 7 nodes");
	if (args->trace && args->first != args->last)
		return wrong("--trace wants one seed");
	return 0;
}

int main(int argc, char **argv)
{
	struct arguments args = { .jobs = 1, .sim.steps = 250 };

	if (parse(argc, argv, &args) < 0)
		return 2;
	if (args.scenario)
		return run_scenario(&args);
	return args.trace ? run_traced(&args) : run_seeds(&args);
}
