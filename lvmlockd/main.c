/* SPDX-License-Identifier: GPL-2.0-or-later */
/* belay-lvmlockd: options, start, the way out. */
#include <errno.h>
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
#include "daemon/start.h"
#include "lvmlockd/life.h"

#define PROGRAM "belay-lvmlockd"

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

static int run(struct lvmlockd *lvmlockd, int ready_fd, bool to_stderr)
{
	int r = life_begin(lvmlockd);
	int status = r == 0 ? STATUS_OK : r == -EBUSY ? STATUS_RUNNING : STATUS_START;

	start_say(PROGRAM, ready_fd, status, to_stderr);
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
	int status = parse_options(argc, argv, &options), ready_fd = -1, r;
	bool to_stderr;

	if (status >= 0)
		return status;
	if (start_load_config(options.config_path, &lvmlockd.config) < 0)
		return STATUS_CONFIG;
	if (options.check) {
		printf("%s: no errors\n", options.config_path ? options.config_path : BELAY_CONFIG_PATH);
		return STATUS_OK;
	}
	to_stderr = options.foreground || lvmlockd.config.log_target == CONFIG_LOG_STDERR;
	start_open_log(PROGRAM, to_stderr, lvmlockd.config.log_level);
	r = options.foreground ? 0 : start_in_background(PROGRAM, STATUS_START, &ready_fd);
	if (r < 0) {
		qb_log(LOG_ERR, "cannot go to the background: %s", strerror(-r));
		return STATUS_START;
	}
	arrange_process(&options);
	status = run(&lvmlockd, ready_fd, to_stderr);
	qb_log_fini();
	return status;
}
