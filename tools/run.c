/* SPDX-License-Identifier: GPL-2.0-or-later */
/* belay run: a program under libbelay-preload, with what belay.conf says in its environment. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "daemon/config.h"
#include "tools/tool.h"

#define PATHS_MAX 64
/* A script's interpreter may be a script, but not for ever. */
#define SCRIPTS_MAX 4

struct options {
	bool help, fallback;
	const char *config, *library;
	const char *path[PATHS_MAX];
	unsigned path_count;
	char **command;
};

static const struct option long_options[] = {
	{ "config", required_argument, NULL, 'c' },
	{ "fallback", no_argument, NULL, 'f' },
	{ "help", no_argument, NULL, 'h' },
	{ "library", required_argument, NULL, 'l' },
	{ "path", required_argument, NULL, 'p' },
	{ NULL, 0, NULL, 0 },
};

static int parse(const struct tool *tool, int argc, char **argv, struct options *ret_options)
{
	struct options o = { .config = BELAY_CONFIG_PATH, .library = BELAY_PRELOAD_LIBRARY };
	int c;

	while ((c = getopt_long(argc, argv, "+:c:fhl:p:", long_options, NULL)) != -1) {
		switch (c) {
		case 'c':
			o.config = optarg;
			break;
		case 'f':
			o.fallback = true;
			break;
		case 'h':
			o.help = true;
			break;
		case 'l':
			o.library = optarg;
			break;
		case 'p':
			if (o.path_count == PATHS_MAX)
				return tool_usage(tool, "more than %d directories", PATHS_MAX);
			o.path[o.path_count++] = optarg;
			break;
		default:
			return tool_bad_option(tool, c, argv);
		}
	}
	o.command = argv + optind;
	if (optind == argc && !o.help)
		return tool_usage(tool, "a COMMAND is missing");
	*ret_options = o;
	return TOOL_OK;
}

/* ---- the environment ---- */

static void report(void *context, const char *text)
{
	const struct tool *tool = context;

	(void)tool_failed(tool, 0, "%s", text);
}

/* The defaults if there is no file, as for belayd. */
static int load(const struct tool *tool, const struct options *o, struct config *ret_config)
{
	int r;

	config_default(ret_config);
	if (access(o->config, F_OK) < 0 && errno == ENOENT && strcmp(o->config, BELAY_CONFIG_PATH) == 0)
		return TOOL_OK;
	r = config_load(o->config, ret_config, report, (void *)(uintptr_t)tool);
	return r < 0 ? TOOL_FAILED : TOOL_OK;
}

struct list {
	char text[PATHS_MAX * (PATH_MAX + 1)];
	size_t size;
};

/* Where the kernel says that the files are: links followed, if it is there. */
static int add(const struct tool *tool, struct list *list, const char *path, bool must_be)
{
	char *real = realpath(path, NULL);
	const char *use = real ? real : path;
	int status = TOOL_OK;
	size_t size = strlen(use);

	if (!real && must_be)
		status = tool_failed(tool, -errno, "%s", path);
	else if (strchr(use, ':'))
		status = tool_failed(tool, 0, "%s: a directory with a colon in its path cannot be named to "
				     "a program", use);
	else if (list->size + size + 2 > sizeof(list->text))
		status = tool_failed(tool, 0, "%s: too many directories", use);
	if (status == TOOL_OK)
		list->size += (size_t)snprintf(list->text + list->size, sizeof(list->text) - list->size,
					       "%s%s", list->size > 0 ? ":" : "", use);
	free(real);
	return status;
}

/* What the command line names; else belay.conf's [preload] paths; else those of all lockspaces. */
static int list_paths(const struct tool *tool, const struct options *o, struct config *config,
		      struct list *list)
{
	char *rest = NULL, *path;
	int status = TOOL_OK;

	if (o->path_count > 0) {
		for (unsigned i = 0; i < o->path_count && status == TOOL_OK; i++)
			status = add(tool, list, o->path[i], true);
		return status;
	}
	for (path = strtok_r(config->preload_paths, " ", &rest); path && status == TOOL_OK;
	     path = strtok_r(NULL, " ", &rest))
		status = add(tool, list, path, false);
	for (uint32_t i = 0; list->size == 0 && i < config->lockspace_count && status == TOOL_OK; i++)
		if (config->lockspace[i].path[0] != '\0')
			status = add(tool, list, config->lockspace[i].path, false);
	if (status == TOOL_OK && list->size == 0)
		return tool_failed(tool, 0, "%s names no directory in which locks are belay's: neither "
				   "[preload] paths nor a lockspace's path; --path does it here", o->config);
	return status;
}

static int preload(const struct tool *tool, const struct options *o)
{
	const char *others = getenv("LD_PRELOAD");
	char *real = realpath(o->library, NULL), *text = NULL;
	int status = TOOL_OK;

	if (!real && errno == ENOENT && strcmp(o->library, BELAY_PRELOAD_LIBRARY) == 0)
		return tool_failed(tool, 0, "%s is not there: install belay, or name it with --library (in a "
				   "build tree lib/.libs/libbelay-preload.so)", o->library);
	if (!real)
		return tool_failed(tool, -errno, "%s", o->library);
	/* The dynamic linker takes both for the end of a name. */
	if (strpbrk(real, " :"))
		status = tool_failed(tool, 0, "%s: a library with a blank or a colon in its path cannot be "
				     "preloaded", real);
	else if (asprintf(&text, "%s%s%s", real, others && *others ? ":" : "", others ? others : "") < 0)
		status = tool_failed(tool, -ENOMEM, "%s", real);
	else
		setenv("LD_PRELOAD", text, 1);
	free(text);
	free(real);
	return status;
}

static int prepare(const struct tool *tool, const struct options *o)
{
	struct config config;
	struct list *list = calloc(1, sizeof(*list));
	int status = list ? load(tool, o, &config) : tool_failed(tool, -ENOMEM, "%s", o->command[0]);

	if (status == TOOL_OK)
		status = list_paths(tool, o, &config, list);
	if (status == TOOL_OK)
		status = preload(tool, o);
	if (status == TOOL_OK) {
		const char *socket = getenv("BELAY_SOCKET");

		setenv("BELAY_PRELOAD_PATHS", list->text, 1);
		setenv("BELAY_PRELOAD_ON_UNREACHABLE",
		       o->fallback || config.preload_may_fall_back ? "kernel" : "fail", 1);
		if (tool->socket)
			setenv("BELAY_SOCKET", tool->socket, 1);
		else if (strcmp(config.socket, BELAY_SOCKET_PATH) != 0)
			setenv("BELAY_SOCKET", config.socket, !socket || !*socket);
	}
	free(list);
	return status;
}

/* ---- the command ---- */

/* As execvp(3) looks for it. NULL: it is nowhere, which that will say. */
static char *find(const char *command)
{
	const char *path = getenv("PATH");

	if (strchr(command, '/'))
		return strdup(command);
	while (path && *path) {
		size_t size = strcspn(path, ":");
		char *file = NULL;

		if (asprintf(&file, "%.*s/%s", (int)size, path, command) < 0)
			return NULL;
		if (access(file, X_OK) == 0)
			return file;
		free(file);
		path += size;
		path += *path == ':';
	}
	return NULL;
}

/* Does the dynamic linker get to see it? Whatever is strange is left to the kernel. */
static bool is_static(int fd, const unsigned char *head)
{
	Elf64_Ehdr elf;
	Elf64_Phdr program;

	/* Of the other class no library of ours could be loaded, which the linker says itself. */
	if (head[EI_CLASS] != ELFCLASS64 || pread(fd, &elf, sizeof(elf), 0) != (ssize_t)sizeof(elf))
		return false;
	for (unsigned i = 0; i < elf.e_phnum; i++) {
		if (pread(fd, &program, sizeof(program), (off_t)(elf.e_phoff + i * sizeof(program))) !=
		    (ssize_t)sizeof(program))
			return false;
		if (program.p_type == PT_INTERP)
			return false;
	}
	return elf.e_phnum > 0;
}

/* By its file, for whoever runs it here. Of root's capabilities none are gained. */
static bool gains_rights(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return false;
	return ((st.st_mode & S_ISUID) && st.st_uid != geteuid()) ||
	       ((st.st_mode & S_ISGID) && st.st_gid != getegid()) ||
	       (getuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0);
}

/* The interpreter that a script's first line names, to be freed; or NULL. */
static char *interpreter(const char *line)
{
	line += strspn(line, " \t");
	return *line == '/' ? strndup(line, strcspn(line, " \t\n")) : NULL;
}

/*
 * A program that cannot be preloaded locks by the kernel, and nobody would know.
 * What it starts in its turn is not looked at.
 */
static int check_file(const struct tool *tool, const char *file, char **ret_next)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK), status = TOOL_OK;
	char head[256] = "";
	ssize_t size;

	*ret_next = NULL;
	if (fd < 0)
		return TOOL_OK;
	size = pread(fd, head, sizeof(head) - 1, 0);
	if (gains_rights(fd))
		status = tool_failed(tool, 0, "%s: a program that runs with other rights (setuid, setgid, file "
				     "capabilities) cannot be preloaded: its locks would be the kernel's alone",
				     file);
	else if (size >= SELFMAG && memcmp(head, ELFMAG, SELFMAG) == 0 &&
		 is_static(fd, (const unsigned char *)head))
		status = tool_failed(tool, 0, "%s: a program that is linked statically cannot be preloaded: its "
				     "locks would be the kernel's alone", file);
	else if (size > 2 && head[0] == '#' && head[1] == '!')
		*ret_next = interpreter(head + 2);
	close(fd);
	return status;
}

static int check(const struct tool *tool, const char *command)
{
	char *file = find(command), *next;
	int status = TOOL_OK;

	for (int i = 0; i < SCRIPTS_MAX && file && status == TOOL_OK; i++) {
		status = check_file(tool, file, &next);
		free(file);
		file = next;
	}
	free(file);
	return status;
}

static int run(const struct tool *tool, int argc, char **argv)
{
	struct options o;
	int status = parse(tool, argc, argv, &o);

	if (status != TOOL_OK)
		return status;
	if (o.help)
		return tool_help(tool);
	status = check(tool, o.command[0]);
	if (status == TOOL_OK)
		status = prepare(tool, &o);
	if (status != TOOL_OK)
		return status;
	execvp(o.command[0], o.command);
	tool_failed(tool, -errno, "%s", o.command[0]);
	return errno == ENOENT ? 127 : 126;
}

const struct subcommand command_run = {
	.name = "run",
	.summary = "run a program whose own locks are belay's",
	.usage =
	"[OPTIONS] [--] COMMAND [ARGUMENT...]\n\n"
	"The command runs unchanged, and so do those that it starts, but fcntl(2), flock(2)\n"
	"and lockf(3) on files below certain directories lock by belay, on all nodes.\n"
	"belay-preload(7) tells where they differ from the kernel's.\n\n"
	"  -p, --path DIR       such a directory; again for more. Else what belay.conf\n"
	"                       has as paths in [preload], else the paths of all lockspaces\n"
	"  -f, --fallback       if belayd cannot be reached, let the kernel lock, which\n"
	"                       excludes nobody on other nodes; else locks fail then\n"
	"  -c, --config FILE    in place of " BELAY_CONFIG_PATH "\n"
	"  -l, --library FILE   in place of " BELAY_PRELOAD_LIBRARY "\n\n"
	"Exit status: the command's; 2 wrong usage, 4 other failure, 126 the command\n"
	"cannot be run, 127 it was not found.\n",
	.run = run,
};
