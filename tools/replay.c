/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * belay replay: step a core of our own through the events that a flight
 * recorder holds, and print each with what the core answers to it.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/core.h"
#include "daemon/journal.h"
#include "daemon/trace.h"
#include "tools/tool.h"

struct replay_options {
	bool help;
	bool events;		/* do not step a core */
	bool check;		/* its invariants, at each step */
	bool quiet;
	const char *path;
};

struct replay {
	const struct tool *tool;
	const struct replay_options *o;
	struct journal_reader reader;
	struct belay_core *core;
	size_t core_size;
	uint64_t events, actions, refused;
	uint64_t first_us;
};

static const struct option long_options[] = {
	{ "check", no_argument, NULL, 'c' },
	{ "events", no_argument, NULL, 'e' },
	{ "help", no_argument, NULL, 'h' },
	{ "quiet", no_argument, NULL, 'q' },
	{ NULL, 0, NULL, 0 },
};

static int parse(const struct tool *tool, int argc, char **argv, struct replay_options *o)
{
	int c;

	while ((c = getopt_long(argc, argv, ":ehq", long_options, NULL)) != -1) {
		switch (c) {
		case 'c': o->check = true; break;
		case 'e': o->events = true; break;
		case 'h': o->help = true; break;
		case 'q': o->quiet = true; break;
		default: return tool_bad_option(tool, c, argv);
		}
	}
	if (o->help)
		return TOOL_OK;
	if (o->events && o->check)
		return tool_usage(tool, "--check needs a core, and --events wants none");
	if (argc - optind != 1)
		return tool_usage(tool, "one FILE is wanted, as belay dump writes it");
	o->path = argv[optind];
	return TOOL_OK;
}

static void on_action(void *context, const struct belay_action *action)
{
	struct replay *replay = context;
	char text[TRACE_TEXT_MAX];

	replay->actions++;
	if (replay->o->quiet)
		return;
	trace_action(text, sizeof(text), action);
	printf("\t\t-> %s\n", text);
}

static void on_event(struct replay *replay, const struct belay_event *event)
{
	char text[TRACE_TEXT_MAX];

	if (replay->events++ == 0)
		replay->first_us = event->now_us;
	if (replay->o->quiet)
		return;
	trace_event(text, sizeof(text), event);
	printf("%12.6f\t%s\n", (double)(event->now_us - replay->first_us) / 1e6, text);
}

static void step(struct replay *replay, const struct belay_event *event)
{
	const struct belay_actions actions = { .emit = on_action, .context = replay };
	int r = belay_core_step(replay->core, event, &actions);

	if (r < 0) {
		replay->refused++;
		if (!replay->o->quiet)
			printf("\t\t-> refused: %s\n", strerror(-r));
	}
	if (replay->o->check)
		belay_core_check(replay->core);
}

static int make_core(struct replay *replay)
{
	const struct replay_options *o = replay->o;
	void *memory;

	if (o->events)
		return TOOL_OK;
	if (replay->reader.dropped > 0)
		return tool_failed(replay->tool, 0, "%s: the oldest %" PRIu64 " records were overwritten, so a "
				   "core cannot start from there; --events shows what is left "
				   "(journal_kb in belay.conf makes room for more)",
				   o->path, replay->reader.dropped);
	replay->core_size = belay_core_size(&replay->reader.config);
	if (replay->core_size == 0)
		return tool_failed(replay->tool, 0, "%s: its configuration makes no sense", o->path);
	/* Zeroed, aligned, and untouched until used, as the core wants it. */
	memory = mmap(NULL, replay->core_size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return tool_failed(replay->tool, -errno, "memory for the core");
	replay->core = belay_core_init(memory, &replay->reader.config);
	return TOOL_OK;
}

static int run_events(struct replay *replay)
{
	struct belay_event event;
	int r;

	while ((r = journal_next(&replay->reader, &event)) == 1) {
		on_event(replay, &event);
		if (replay->core)
			step(replay, &event);
	}
	if (r < 0)
		return tool_failed(replay->tool, 0, "%s: damaged behind event %" PRIu64,
				   replay->o->path, replay->events);
	return TOOL_OK;
}

static void print_end(const struct replay *replay)
{
	struct belay_stats stats;

	printf("%" PRIu64 " events", replay->events);
	if (replay->core) {
		belay_core_stats(replay->core, &stats);
		printf(", %" PRIu64 " actions, %" PRIu64 " refused; then: place %" PRIu64 ", digest %016" PRIx64
		       ", %" PRIu32 " locks, %" PRIu32 " requests, %s", replay->actions, replay->refused,
		       stats.place, stats.digest, stats.locks, stats.requests,
		       stats.synced ? "synced" : "not synced");
	}
	printf("\n");
}

static int replay_bytes(struct replay *replay, const void *bytes, size_t size)
{
	int r = journal_read(&replay->reader, bytes, size);
	int status;

	if (r == -EPROTONOSUPPORT)
		return tool_failed(replay->tool, 0, "%s: of another version of belay", replay->o->path);
	if (r < 0)
		return tool_failed(replay->tool, 0, "%s: no flight recorder's file, or a damaged one",
				   replay->o->path);
	status = make_core(replay);
	if (status == TOOL_OK)
		status = run_events(replay);
	if (status == TOOL_OK)
		print_end(replay);
	if (replay->core)
		munmap(replay->core, replay->core_size);
	return status;
}

static int replay_file(struct replay *replay)
{
	const char *path = replay->o->path;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int status;
	struct stat st;
	void *bytes;

	if (fd < 0)
		return tool_failed(replay->tool, -errno, "%s", path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0) {
		close(fd);
		return tool_failed(replay->tool, 0, "%s: no flight recorder's file", path);
	}
	/* A copy: the file may be a running belayd's own. */
	bytes = malloc((size_t)st.st_size);
	if (!bytes || pread(fd, bytes, (size_t)st.st_size, 0) != st.st_size)
		status = tool_failed(replay->tool, bytes ? -errno : -ENOMEM, "%s: cannot read it", path);
	else
		status = replay_bytes(replay, bytes, (size_t)st.st_size);
	free(bytes);
	close(fd);
	return status;
}

static int run(const struct tool *tool, int argc, char **argv)
{
	struct replay_options o = { 0 };
	struct replay replay = { .tool = tool, .o = &o };
	int status = parse(tool, argc, argv, &o);

	if (status != TOOL_OK)
		return status;
	return o.help ? tool_help(tool) : replay_file(&replay);
}

const struct subcommand command_replay = {
	.name = "replay",
	.summary = "step the lock engine through a flight recorder's file",
	.usage =
	"[--events] [--check] [--quiet] FILE\n\n"
	"FILE is what belay dump wrote, or the journal of a belayd that has died. Each\n"
	"event is printed, and below it what the engine answers.\n\n"
	"  -e, --events   only print the events; works with a journal that has lost its\n"
	"                 beginning\n"
	"      --check    check all invariants at each step (slow)\n"
	"  -q, --quiet    print only the summary\n",
	.run = run,
};
