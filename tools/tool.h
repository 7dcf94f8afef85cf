/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the subcommands of belay(1) share. Messages to people go to stderr and
 * begin with "belay SUBCOMMAND:"; functions that print one return the exit
 * status to end with.
 */
#ifndef BELAY_TOOLS_TOOL_H
#define BELAY_TOOLS_TOOL_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "include/belay.h"

enum tool_exit {
	TOOL_OK,
	TOOL_NO,		/* a lock is busy, a check failed */
	TOOL_USAGE,
	TOOL_UNREACHABLE,	/* belayd does not answer */
	TOOL_FAILED,		/* anything else */
	TOOL_UNDECIDED,		/* the cluster cannot say whether a lock is free */
};

struct tool {
	const char *socket;	/* NULL: the default */
	const struct subcommand *command;
};

struct subcommand {
	const char *name;
	const char *summary;
	const char *usage;	/* lines, without "belay NAME" of the first */
	/* argv[0] is the subcommand's name. Returns the exit status. */
	int (*run)(const struct tool *tool, int argc, char **argv);
};

extern const struct subcommand command_bench, command_dump, command_fence_ack, command_lock,
	command_locks, command_lv, command_replay, command_run, command_status;

/* The whole help of the subcommand, to stdout. */
int tool_help(const struct tool *tool);
/* Wrong usage: what, and where to read on. */
__attribute__((format(printf, 2, 3)))
int tool_usage(const struct tool *tool, const char *format, ...);
/* Something failed for the reason @error, a negative errno; 0: the text says it all. */
__attribute__((format(printf, 3, 4)))
int tool_failed(const struct tool *tool, int error, const char *format, ...);
/* getopt_long() returned '?' or ':'. */
int tool_bad_option(const struct tool *tool, int got, char **argv);

/* What belayd has to answer to within this, if it runs. */
#define TOOL_ANSWER_MS 10000u
#define TOOL_NO_ANSWER "belayd does not answer: it hangs or is stopped; see systemctl status belayd"

/*
 * limit.c: from here to the end, the program waits @ms at most; then it says @text and ends
 * with @status. 0, or the exit status. No other thread of the program may hold anything that
 * matters.
 */
struct tool_limit;
int tool_limit_begin(const struct tool *tool, uint64_t ms, int status, const char *text,
		     struct tool_limit **ret_limit);
/* The answer has come in time. */
void tool_limit_end(struct tool_limit *limit);

/* 0, or the exit status. */
int tool_connect(const struct tool *tool, struct belay **ret_belay);
/*
 * Run a command of belayd and read its answer. 0, or the exit status; if no answer comes,
 * the program ends.
 */
int tool_query(const struct tool *tool, struct belay *belay, const char *text,
	       struct json_object **ret_json);
/* The same, with a connection of its own. */
int tool_ask(const struct tool *tool, const char *text, struct json_object **ret_json);

/* parse.c: 0 or -EINVAL; what is left over is an error, too. */
int parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret_number);
/* "2", "0.5": seconds as milliseconds, rounded up. */
int parse_seconds(const char *text, unsigned int *ret_ms);

/* json.c: a field of an object, or of objects in it: "group.frames". Absent: 0, "" or false. */
struct json_object *json_at(struct json_object *json, const char *path);
uint64_t json_u64(struct json_object *json, const char *path);
double json_real(struct json_object *json, const char *path);
const char *json_text(struct json_object *json, const char *path);
bool json_true(struct json_object *json, const char *path);
/* Elements of the array; 0 if it is none. */
size_t json_count(struct json_object *json, const char *path);

#endif
