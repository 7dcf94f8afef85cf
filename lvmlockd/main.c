/* SPDX-License-Identifier: GPL-2.0-or-later */
/* belay-lvmlockd: options, start, the way out. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <qb/qblog.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/notify.h"
#include "lvmlockd/life.h"

/* Exit statuses, as belayd's; belay-lvmlockd(8) lists them. */
enum {
	STATUS_OK = 0,
	STATUS_USAGE = 2,
	STATUS_CONFIG = 3,	/* the configuration is wrong */
	STATUS_RUNNING = 4,	/* an lvmlockd runs already */
	STATUS_START = 5,	/* could not start */
};

/* For connections of lvm, children, corosync and belayd. */
#define DESCRIPTORS 4096u

struct options {
	const char *config_path;
	bool foreground, check;
};

static void usage(FILE *to)
{
	fputs("usage: belay-lvmlockd [-f] [-c FILE]\n"
	      "       belay-lvmlockd --check [-c FILE]\n"
	      "  -c, --config FILE   configuration, default " BELAY_CONFIG_PATH "\n"
	      "  -f, --foreground    do not fork; log to stderr\n"
	      "      --check         check the configuration and exit\n"
	      "  -h, --help\n"
	      "  -V, --version\n", to);
}

/* Returns an exit status, or -1 to go on. */
static int parse_options(int argc, char **argv, struct options *ret_options)
{
	static const struct option names[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "foreground", no_argument, NULL, 'f' },
		{ "check", no_argument, NULL, 'k' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	struct options o = { .config_path = NULL };
	int c;

	while ((c = getopt_long(argc, argv, "c:fhV", names, NULL)) != -1) {
		switch (c) {
		case 'c':
			o.config_path = optarg;
			break;
		case 'f':
			o.foreground = true;
			break;
		case 'k':
			o.check = true;
			break;
		case 'h':
			usage(stdout);
			return STATUS_OK;
		case 'V':
			printf("belay-lvmlockd %s\n", PACKAGE_VERSION);
			return STATUS_OK;
		default:
			usage(stderr);
			return STATUS_USAGE;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "belay-lvmlockd: unexpected argument: %s\n", argv[optind]);
		usage(stderr);
		return STATUS_USAGE;
	}
	*ret_options = o;
	return -1;
}

static void report(void *context, const char *text)
{
	(void)context;
	fprintf(stderr, "%s\n", text);
}

/* A file that was named must be there; without the default one there are the defaults. */
static int load_config(const char *path, struct config *ret_config)
{
	if (!path && access(BELAY_CONFIG_PATH, F_OK) < 0 && errno == ENOENT) {
		config_default(ret_config);
		return 0;
	}
	return config_load(path ? path : BELAY_CONFIG_PATH, ret_config, report, NULL);
}

static void open_log(const struct options *options, const struct config *config)
{
	bool to_stderr = options->foreground || config->log_target == CONFIG_LOG_STDERR;
	int32_t target = to_stderr ? QB_LOG_STDERR : QB_LOG_SYSLOG;

	qb_log_init("belay-lvmlockd", LOG_DAEMON, (uint8_t)config->log_level);
	(void)qb_log_ctl(QB_LOG_SYSLOG, QB_LOG_CONF_ENABLED, !to_stderr);
	(void)qb_log_ctl(QB_LOG_STDERR, QB_LOG_CONF_ENABLED, to_stderr);
	(void)qb_log_filter_ctl(target, QB_LOG_FILTER_CLEAR_ALL, QB_LOG_FILTER_FILE, "*", LOG_DEBUG);
	(void)qb_log_filter_ctl(target, QB_LOG_FILTER_ADD, QB_LOG_FILTER_FILE, "*",
				(uint8_t)config->log_level);
	/* A foreign volume makes a line longer than libqb's default. */
	(void)qb_log_ctl(target, QB_LOG_CONF_MAX_LINE_LEN, 1024);
	if (to_stderr)
		qb_log_format_set(QB_LOG_STDERR, "belay-lvmlockd: %p: %b");
}

static void arrange_process(const struct options *options)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct rlimit limit;

	(void)umask(077);
	if (!options->foreground && chdir("/") < 0)
		qb_log(LOG_WARNING, "cannot change to /: %s", strerror(errno));
	(void)sigaction(SIGPIPE, &ignore, NULL);
	(void)sigaction(SIGHUP, &ignore, NULL);
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= DESCRIPTORS)
		return;
	limit.rlim_cur = DESCRIPTORS;
	if (limit.rlim_max < DESCRIPTORS)
		limit.rlim_max = DESCRIPTORS;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

/*
 * The process that was started waits for the one that serves to say how its start went.
 * Returns in the child, with the descriptor to say it to.
 */
static int go_to_background(int *ret_ready_fd)
{
	int fds[2], null, status = STATUS_START;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid < 0) {
		int r = -errno;

		(void)close(fds[0]);
		(void)close(fds[1]);
		return r;
	}
	if (pid > 0) {
		(void)close(fds[1]);
		if (read(fds[0], &status, sizeof(status)) < 0)
			status = STATUS_START;
		if (status != STATUS_OK)
			fputs("belay-lvmlockd: could not start; the log says more, or belay-lvmlockd "
			      "--foreground\n", stderr);
		_exit(status);
	}
	(void)close(fds[0]);
	(void)setsid();
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0) {
		(void)dup2(null, STDIN_FILENO);
		(void)dup2(null, STDOUT_FILENO);
		(void)close(null);
	}
	*ret_ready_fd = fds[1];
	return 0;
}

static void say_started(int ready_fd, int status, const struct config *config)
{
	if (ready_fd < 0)
		return;
	if (write(ready_fd, &status, sizeof(status)) < 0)
		qb_log(LOG_WARNING, "nobody waits for belay-lvmlockd to start");
	(void)close(ready_fd);
	if (config->log_target != CONFIG_LOG_STDERR)
		(void)dup2(STDIN_FILENO, STDERR_FILENO);
}

static int run(struct lvmlockd *lvmlockd, int ready_fd)
{
	int r = life_begin(lvmlockd);
	int status = r == 0 ? STATUS_OK : r == -EBUSY ? STATUS_RUNNING : STATUS_START;

	say_started(ready_fd, status, &lvmlockd->config);
	if (status == STATUS_OK) {
		qb_log(LOG_NOTICE, "belay-lvmlockd %s serves lvm at %s", PACKAGE_VERSION,
		       lvmlockd->config.lvm_socket);
		notify("READY=1\nSTATUS=waiting for belayd");
		qb_loop_run(lvmlockd->loop);
		notify("STOPPING=1");
	}
	life_end(lvmlockd);
	return status;
}

int main(int argc, char **argv)
{
	struct lvmlockd lvmlockd = { .phase = LVMLOCKD_CONNECTING };
	struct options options;
	int status = parse_options(argc, argv, &options), ready_fd = -1;

	if (status >= 0)
		return status;
	if (load_config(options.config_path, &lvmlockd.config) < 0)
		return STATUS_CONFIG;
	if (options.check) {
		printf("%s: no errors\n", options.config_path ? options.config_path : BELAY_CONFIG_PATH);
		return STATUS_OK;
	}
	if (!options.foreground && go_to_background(&ready_fd) < 0)
		return STATUS_START;
	open_log(&options, &lvmlockd.config);
	arrange_process(&options);
	status = run(&lvmlockd, ready_fd);
	qb_log_fini();
	return status;
}
