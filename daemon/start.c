/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/start.h"

#include <errno.h>
#include <fcntl.h>
#include <qb/qblog.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What is wrong with a volume makes a line longer than libqb's default. */
#define LINE_MAX_BYTES 1024

static void report(void *context, const char *text)
{
	(void)context;
	fprintf(stderr, "%s\n", text);
}

int start_load_config(const char *path, struct config *ret_config)
{
	if (!path && access(BELAY_CONFIG_PATH, F_OK) < 0 && errno == ENOENT) {
		config_default(ret_config);
		return 0;
	}
	return config_load(path ? path : BELAY_CONFIG_PATH, ret_config, report, NULL);
}

static void log_to(int32_t target, int level)
{
	(void)qb_log_filter_ctl(target, QB_LOG_FILTER_CLEAR_ALL, QB_LOG_FILTER_FILE, "*", LOG_DEBUG);
	(void)qb_log_filter_ctl(target, QB_LOG_FILTER_ADD, QB_LOG_FILTER_FILE, "*", (uint8_t)level);
	(void)qb_log_ctl(target, QB_LOG_CONF_MAX_LINE_LEN, LINE_MAX_BYTES);
	(void)qb_log_ctl(target, QB_LOG_CONF_ENABLED, true);
}

void start_open_log(const char *program, bool to_stderr, int level)
{
	char format[64];

	qb_log_init(program, LOG_DAEMON, (uint8_t)level);
	(void)snprintf(format, sizeof(format), "%s: %%p: %%b", program);
	qb_log_format_set(QB_LOG_STDERR, format);
	(void)qb_log_ctl(QB_LOG_SYSLOG, QB_LOG_CONF_ENABLED, false);
	if (to_stderr) {
		log_to(QB_LOG_STDERR, level);
		return;
	}
	log_to(QB_LOG_SYSLOG, level);
	log_to(QB_LOG_STDERR, level < LOG_WARNING ? level : LOG_WARNING);
}

int start_in_background(const char *program, int failed, int *ret_ready_fd)
{
	int fds[2], null, status = failed;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid < 0) {
		int r = -errno;

		close(fds[0]);
		close(fds[1]);
		return r;
	}
	if (pid > 0) {
		close(fds[1]);
		/* Nothing comes if it crashed: then the status stays as it is. */
		if (read(fds[0], &status, sizeof(status)) < 0)
			status = failed;
		if (status != 0)
			fprintf(stderr, "%s: could not start; the log may say more, or %s --foreground\n", program,
				program);
		_exit(status);
	}
	close(fds[0]);
	(void)setsid();
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0) {
		(void)dup2(null, STDIN_FILENO);
		(void)dup2(null, STDOUT_FILENO);
		close(null);
	}
	*ret_ready_fd = fds[1];
	return 0;
}

void start_say(const char *program, int ready_fd, int status, bool to_stderr)
{
	if (ready_fd < 0)
		return;
	if (write(ready_fd, &status, sizeof(status)) < 0)
		qb_log(LOG_WARNING, "nobody waits for %s to start", program);
	close(ready_fd);
	if (to_stderr)
		return;
	(void)qb_log_ctl(QB_LOG_STDERR, QB_LOG_CONF_ENABLED, false);
	(void)dup2(STDIN_FILENO, STDERR_FILENO);
}
