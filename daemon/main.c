/* SPDX-License-Identifier: GPL-2.0-or-later */
/* belayd: options, start, the way out. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <qb/qblog.h>
#include <qb/qbloop.h>
#include <qb/qbutil.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/clock.h"
#include "daemon/config.h"
#include "daemon/descriptor.h"
#include "daemon/engine.h"
#include "daemon/former.h"
#include "daemon/hint_port.h"
#include "daemon/listen.h"
#include "daemon/notify.h"
#include "daemon/record.h"
#include "daemon/server.h"
#include "daemon/start.h"
#include "daemon/stop.h"

/* What belayd remembers at most while it waits for its snapshot. */
#define HOLD_BYTES_MAX (256u * 1024 * 1024)

/* Of the log, the loop, corosync, the journal, the socket: some thirty, and a few while files are read. */
#define OWN_DESCRIPTORS 64u

/* Exit statuses; belayd(8) lists them. */
enum {
	STATUS_OK = 0,
	STATUS_USAGE = 2,
	STATUS_CONFIG = 3,		/* the configuration is wrong */
	STATUS_RUNNING = 4,		/* another belayd is */
	STATUS_START = 5,		/* could not start */
	STATUS_LOST = 6,		/* corosync is gone, or out of memory: may be started again */
	STATUS_UNCLEAN = 7,		/* stopped while locks were held: the node has to be fenced */
	STATUS_ISOLATED = 8,		/* a person has to look first */
};

struct options {
	const char *config_path;
	bool foreground, standalone, check;
};

struct belayd {
	struct options options;
	struct config config;
	qb_loop_t *loop;
	int claim_fd, records;
	struct former former;
	struct server *server;
	struct engine *engine;
	struct group *group;
	struct hint_port *hints;
	struct stop stop;
	bool ready;
	int status;
	const char *reason;		/* for the clients, at the end */
};

/* ---- options ---- */

static void usage(FILE *to)
{
	fputs("usage: belayd [-f] [-s] [-c FILE]\n"
	      "       belayd --check [-c FILE]\n"
	      "  -c, --config FILE   configuration, default " BELAY_CONFIG_PATH "\n"
	      "  -f, --foreground    do not fork; log to stderr\n"
	      "  -s, --standalone    one node, without corosync\n"
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
		{ "standalone", no_argument, NULL, 's' },
		{ "check", no_argument, NULL, 'k' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	struct options o = { .config_path = NULL };
	int c;

	while ((c = getopt_long(argc, argv, "c:fshV", names, NULL)) != -1) {
		switch (c) {
		case 'c':
			o.config_path = optarg;
			break;
		case 'f':
			o.foreground = true;
			break;
		case 's':
			o.standalone = true;
			break;
		case 'k':
			o.check = true;
			break;
		case 'h':
			usage(stdout);
			return STATUS_OK;
		case 'V':
			printf("belayd %s\n", PACKAGE_VERSION);
			return STATUS_OK;
		default:
			usage(stderr);
			return STATUS_USAGE;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "belayd: unexpected argument: %s\n", argv[optind]);
		usage(stderr);
		return STATUS_USAGE;
	}
	*ret_options = o;
	return -1;
}

/* What can be told without corosync, beside the file itself. */
static int check_config(const struct belayd *d)
{
	const struct config *c = &d->config;
	const char *path = d->options.config_path ? d->options.config_path : BELAY_CONFIG_PATH, *why;
	uint8_t key[HINT_KEY_SIZE];
	int r = 0;

	if (c->hints_enabled && c->hints_key_file[0] != '\0')
		r = hint_key_load(c->hints_key_file, c->group, key, &why);
	if (r < 0) {
		fprintf(stderr, "%s: [hints] key_file: \"%s\" cannot be used (%s): %s\n", path,
			c->hints_key_file, strerror(-r), why);
		return STATUS_CONFIG;
	}
	printf("%s: no errors\n", path);
	return STATUS_OK;
}

/* ---- surroundings ---- */

static bool logs_to_stderr(const struct belayd *d)
{
	return d->options.foreground || d->config.log_target == CONFIG_LOG_STDERR;
}

static void raise_descriptor_limit(const struct config *config)
{
	/* Those of a packet are taken as long as one more may get stuck; then all of them may. */
	rlim_t need = OWN_DESCRIPTORS + (rlim_t)config->clients_max * SERVER_CLIENT_DESCRIPTORS +
		      SERVER_PACKET_DESCRIPTORS + CLOSER_STUCK_MAX;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= need)
		return;
	limit.rlim_cur = need;
	if (limit.rlim_max < need)
		limit.rlim_max = need;
	if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
		return;
	qb_log(LOG_WARNING, "clients_max %" PRIu32 " needs %" PRIu64 " file descriptors: %s. Raise "
	       "LimitNOFILE", config->clients_max, (uint64_t)need, strerror(errno));
	(void)getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

/*
 * corosync runs in real time. If belayd did not, every hand-over of a lock would
 * wait for whatever else the machine does.
 */
static void run_in_real_time(void)
{
	const struct sched_param lowest = { .sched_priority = sched_get_priority_min(SCHED_RR) };

	if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &lowest) < 0)
		qb_log(LOG_NOTICE, "no real-time scheduling (%s): locks are late when this machine "
		       "is busy. Run belayd as root or with CAP_SYS_NICE, or set realtime = no",
		       strerror(errno));
}

static void arrange_process(const struct belayd *d)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };

	(void)umask(077);
	/* Nothing that belayd may ever start gains rights by it. */
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	/* Waits of microseconds must not become 50 of them more. */
	(void)prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
	/* It keeps open no directory that somebody may want to unmount. */
	if (!d->options.foreground && chdir("/") < 0)
		qb_log(LOG_WARNING, "cannot change to /: %s", strerror(errno));
	(void)sigaction(SIGPIPE, &ignore, NULL);
	(void)sigaction(SIGHUP, &ignore, NULL);
	raise_descriptor_limit(&d->config);
}

/* ---- the engine's handlers ---- */

static void on_action(void *context, const struct belay_action *action)
{
	struct belayd *d = context;

	server_on_action(d->server, action);
	if (action->type != BELAY_ACTION_SYNCED || d->ready)
		return;
	d->ready = true;
	/* Not before: to load the locks of a cluster is work that others need not wait for. */
	if (d->config.realtime)
		run_in_real_time();
	qb_log(LOG_NOTICE, "serving %s", d->config.socket);
	notify("READY=1\nSTATUS=serving");
}

static void on_stepped(void *context)
{
	struct belayd *d = context;

	server_on_stepped(d->server);
}

static void on_turn_end(void *context)
{
	struct belayd *d = context;

	server_on_turn_end(d->server);
}

static void on_pressure(void *context, bool pressed)
{
	struct belayd *d = context;

	server_on_pressure(d->server, pressed);
}

static void on_end(void *context, enum engine_end end, const char *reason)
{
	static const int statuses[] = {
		[ENGINE_LEFT] = STATUS_OK,
		[ENGINE_ISOLATED] = STATUS_ISOLATED,
		[ENGINE_GROUP_LOST] = STATUS_LOST,
		[ENGINE_FAILED] = STATUS_LOST,
	};
	struct belayd *d = context;

	d->status = statuses[end];
	d->reason = reason;
	qb_loop_stop(d->loop);
}

/* stop_timeout_s has passed and locks are still held. */
static void on_unclean(void *context)
{
	struct belayd *d = context;

	d->status = STATUS_UNCLEAN;
	d->reason = "belayd was stopped while locks were held";
	qb_loop_stop(d->loop);
}

/* ---- start and end ---- */

static void make_settings(const struct belayd *d, struct engine_settings *ret_settings)
{
	const struct config *c = &d->config;
	uint64_t now_us = clock_us(CLOCK_REALTIME);

	*ret_settings = (struct engine_settings){
		.limits = c->limits,
		.requests_max = c->requests_max,
		.loans_max = c->loans_max,
		.min_hold_us = c->min_hold_us,
		.idle_us = c->idle_s * 1000000,
		.claim_streak = c->claim_streak,
		.share_streak = c->share_streak,
		.lend_after = c->lend_after,
		.linger_us = c->unlock_linger_us,
		.fencing_none = c->fencing_none,
		/* Later lives have higher numbers, as long as the clock is not set back by more
		 * than belayd was away. */
		.incarnation = now_us,
		/* Seconds, not microseconds: each end of a node's life takes this clock 2^34 on,
		 * lest tokens of it come again. That is 4 seconds of this scale. A cluster that
		 * starts anew as a whole is above all its former tokens if no more such ends
		 * have come than one for each 4 seconds that it ran or was down. */
		.token_base = now_us / 1000000 << 32,
		.hold_bytes_max = HOLD_BYTES_MAX,
		.journal_bytes = (size_t)c->journal_kb * 1024,
		.journal_path = c->journal,
		.debug = c->log_level >= LOG_DEBUG,
	};
}

/* A way that was asked for and that cannot be had is an error: in silence it would only be slow. */
static int open_hints(struct belayd *d)
{
	const struct group_info *info = &d->group->info;
	const struct config *c = &d->config;
	const char *path = hint_key_path(c, info), *why;
	uint8_t key[HINT_KEY_SIZE];
	struct hint_handlers handlers;
	int r;

	if (!path) {
		qb_log(LOG_ERR, "cannot start: hints need a secret, and corosync has none, for it does not "
		       "encrypt. Set key_file in [hints], or enabled = no");
		return -EINVAL;
	}
	r = hint_key_load(path, c->group, key, &why);
	if (r < 0) {
		qb_log(LOG_ERR, "cannot start: the key of hints, %s, cannot be used (%s): %s", path,
		       strerror(-r), why);
		return r;
	}
	engine_hint_handlers(d->engine, &handlers);
	r = hint_port_open(d->loop, info, c->hints_address, (uint16_t)c->hints_port, key, &handlers,
			   &d->hints, &why);
	explicit_bzero(key, sizeof(key));
	if (r < 0) {
		qb_log(LOG_ERR, "cannot start: no port for hints (%s): %s", strerror(-r), why);
		return r;
	}
	engine_set_hint_port(d->engine, d->hints);
	return 0;
}

static int open_group(struct belayd *d)
{
	struct group_handlers handlers;
	const char *why = "";
	int r;

	engine_group_handlers(d->engine, &handlers);
	if (d->options.standalone)
		r = group_local_open(d->loop, d->config.node_id, &handlers, &d->group, &why);
	else
		r = group_cpg_open(d->loop, d->config.group, &handlers, &d->group, &why);
	/* Alone there is nobody to hint to. */
	if (r == 0 && d->config.hints_enabled && !d->options.standalone) {
		r = open_hints(d);
		if (r < 0)
			return r;
	}
	if (r == 0)
		r = engine_start(d->engine, d->group, &why);
	if (r < 0)
		qb_log(LOG_ERR, "cannot start: %s (%s)", why, strerror(-r));
	return r;
}

static void log_start(const struct belayd *d)
{
	const struct group_info *info = &d->group->info;

	qb_log(LOG_NOTICE, "belayd %s, node %" PRIu32 " of cluster %s (%s, %" PRIu32 " nodes)",
	       PACKAGE_VERSION, info->self, info->cluster_name, d->group->ops->name,
	       info->node_count);
	if (d->config.fencing_none)
		qb_log(LOG_WARNING, "fencing = none: a node that vanishes counts as stopped, although "
		       "it may be writing. This is for test beds; it can destroy data");
	if (!info->encrypted)
		qb_log(LOG_NOTICE, "corosync neither encrypts nor authenticates: whoever reaches its "
		       "network can take and break locks");
}

/* The socket listens already if belayd had to wait, and who connected anew is served now. */
static int listen_to_clients(struct belayd *d)
{
	struct former *f = &d->former;
	int r = f->listen_fd < 0 ? listen_open(&d->config, &f->listen_fd) : 0;

	if (r < 0)
		return r;
	r = server_listen(d->server, d->engine, f->listen_fd);
	f->listen_fd = -1;
	while (r == 0 && f->client_count > 0)
		server_adopt(d->server, f->client[--f->client_count]);
	return r;
}

static int start(struct belayd *d)
{
	const struct engine_handlers handlers = {
		.on_action = on_action,
		.on_stepped = on_stepped,
		.on_turn_end = on_turn_end,
		.on_pressure = on_pressure,
		.on_end = on_end,
		.context = d,
	};
	struct engine_settings settings;
	int r;

	d->loop = qb_loop_create();
	if (!d->loop)
		return -ENOMEM;
	r = server_new(d->loop, &d->config, d->options.standalone, d->records, &d->server);
	if (r < 0) {
		qb_log(LOG_ERR, "cannot start: %s", strerror(-r));
		return r;
	}
	make_settings(d, &settings);
	r = engine_new(d->loop, &settings, &handlers, &d->engine);
	if (r < 0) {
		qb_log(LOG_ERR, "cannot start: %s", strerror(-r));
		return r;
	}
	r = open_group(d);
	if (r < 0)
		return r;
	log_start(d);
	r = stop_init(&d->stop, d->loop, d->engine, d->server, &d->config, on_unclean, d);
	if (r < 0)
		return r;
	return listen_to_clients(d);
}

static void finish(struct belayd *d)
{
	notify("STOPPING=1");
	server_free(d->server, -EIO, d->reason, d->status == STATUS_OK);
	former_done(&d->former, &d->config, d->reason);
	stop_done(&d->stop);
	if (d->group)
		d->group->ops->close(d->group);
	hint_port_close(d->hints);
	engine_free(d->engine);
	if (d->loop)
		qb_loop_destroy(d->loop);
	if (d->records >= 0)
		close(d->records);
	if (d->claim_fd >= 0)
		close(d->claim_fd);
	qb_log_fini();
}

static int serve(struct belayd *d)
{
	int r = listen_claim(&d->config, &d->claim_fd);

	if (r < 0)
		return r == -EBUSY ? STATUS_RUNNING : STATUS_START;
	r = record_open(d->config.socket, &d->records);
	if (r == 0)
		r = former_wait(&d->config, d->records, &d->former);
	if (r < 0)
		return r == -ECANCELED ? STATUS_UNCLEAN : STATUS_START;
	return start(d) < 0 ? STATUS_START : STATUS_OK;
}

static int run(struct belayd *d)
{
	int ready_fd = -1;

	if (!d->options.foreground) {
		int r = start_in_background("belayd", STATUS_START, &ready_fd);

		if (r < 0) {
			qb_log(LOG_ERR, "cannot go to the background: %s", strerror(-r));
			return STATUS_START;
		}
	}
	arrange_process(d);
	d->reason = "belayd could not start";
	d->status = serve(d);
	start_say("belayd", ready_fd, d->status, logs_to_stderr(d));
	if (d->status == STATUS_OK)
		qb_loop_run(d->loop);
	finish(d);
	return d->status;
}

int main(int argc, char **argv)
{
	struct belayd *d = calloc(1, sizeof(*d));
	int status;

	if (!d)
		return STATUS_START;
	d->claim_fd = d->records = d->former.listen_fd = -1;
	status = parse_options(argc, argv, &d->options);
	if (status >= 0)
		goto out;
	if (start_load_config(d->options.config_path, &d->config) < 0) {
		status = STATUS_CONFIG;
		goto out;
	}
	if (d->options.check) {
		status = check_config(d);
		goto out;
	}
	start_open_log("belayd", logs_to_stderr(d), d->config.log_level);
	status = run(d);
out:
	free(d);
	return status;
}
