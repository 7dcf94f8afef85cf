/* SPDX-License-Identifier: GPL-2.0-or-later */
/* belay dump: have belayd copy its flight recorder to a file, and fetch that. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <unistd.h>

#include "tools/tool.h"

static const struct option long_options[] = {
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static int copy(int from, int to)
{
	char buf[65536];
	ssize_t n, done, m;

	while ((n = read(from, buf, sizeof(buf))) > 0)
		for (done = 0; done < n; done += m) {
			m = write(to, buf + done, (size_t)(n - done));
			if (m < 0)
				return -errno;
		}
	return n < 0 ? -errno : 0;
}

/* belayd has written @path; move it to @file, which must be new. */
static int fetch(const struct tool *tool, const char *path, const char *file)
{
	int from, to, r;

	from = open(path, O_RDONLY | O_CLOEXEC);
	if (from < 0)
		return tool_failed(tool, -errno, "belayd wrote %s, which cannot be read here", path);
	to = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	r = to < 0 ? -errno : copy(from, to);
	close(from);
	if (to >= 0 && close(to) < 0 && r == 0)
		r = -errno;
	if (r < 0) {
		if (to >= 0)
			(void)unlink(file);
		return tool_failed(tool, r, "%s: cannot write it (belayd's copy is %s)", file, path);
	}
	if (unlink(path) < 0)
		return tool_failed(tool, -errno, "%s: cannot remove belayd's copy", path);
	return TOOL_OK;
}

static int run(const struct tool *tool, int argc, char **argv)
{
	struct json_object *answer;
	const char *file;
	int c, status;

	while ((c = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
		if (c == 'h')
			return tool_help(tool);
		return tool_bad_option(tool, c, argv);
	}
	if (argc - optind > 1)
		return tool_usage(tool, "one FILE at most");
	file = argv[optind];
	/* Before belayd writes a copy that nobody takes. */
	if (file && access(file, F_OK) == 0)
		return tool_failed(tool, -EEXIST, "%s", file);
	status = tool_ask(tool, "dump", &answer);
	if (status != TOOL_OK)
		return status;
	if (file)
		status = fetch(tool, json_text(answer, "file"), file);
	else
		printf("%s\n", json_text(answer, "file"));
	json_object_put(answer);
	return status;
}

const struct subcommand command_dump = {
	.name = "dump",
	.summary = "save belayd's flight recorder: its last events",
	.usage =
	"[FILE]\n\n"
	"belayd copies its last events beside its journal (see belay.conf(5)); they are then\n"
	"moved to FILE, which must not exist yet. Without FILE the copy's name is printed.\n"
	"belay replay reads it. It holds keys of locks and process ids, but no data.\n",
	.run = run,
};
