/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options of `belay lock`. */
#ifndef BELAY_TOOLS_LOCK_H
#define BELAY_TOOLS_LOCK_H

#include "tools/tool.h"

enum lock_by {
	LOCK_BY_GUESS,		/* a file if there is one of that name */
	LOCK_BY_FILE,
	LOCK_BY_NAME,
};

/* What to do with the command when the lock is lost under it. */
enum lock_loss {
	LOCK_LOSS_TERM,
	LOCK_LOSS_KILL,
	LOCK_LOSS_WARN,
};

struct lock_options {
	bool help;
	bool shared;
	bool try;
	bool timed;
	bool fcntl;		/* as fcntl(2) locks a file, not as flock(2) does */
	unsigned int wait_ms;	/* timed */
	int busy_status;
	enum lock_by by;
	enum lock_loss loss;
	const char *resource;
	const char *shell;	/* -c */
	char **command;		/* NULL-terminated */
};

/* 0, or the exit status, the mistake having been told. */
int lock_parse(const struct tool *tool, int argc, char **argv, struct lock_options *ret_options);

#endif
