/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/tool.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "wire/client.h"

/* As long as a belayd that refuses may take to say why. */
#define REFUSAL_MS 1000

int tool_help(const struct tool *tool)
{
	printf("Usage: belay %s %s", tool->command->name, tool->command->usage);
	return TOOL_OK;
}

int tool_usage(const struct tool *tool, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "belay %s: ", tool->command->name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\nbelay %s --help says how it is used.\n", tool->command->name);
	return TOOL_USAGE;
}

/* Reason of a failure, in the words of this project. */
static const char *reason(int error)
{
	switch (error) {
	case -EIO:
		return "the locks are lost, because belayd or the quorum is gone";
	case -ENOLCK:
		return "a limit on locks is reached, or no lockspace holds that file; see belay.conf(5)";
	case -EDEADLK:
		return "waiting would never end: a deadlock";
	default:
		return strerror(-error);
	}
}

int tool_failed(const struct tool *tool, int error, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "belay %s: ", tool->command->name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	if (error < 0)
		fprintf(stderr, ": %s", reason(error));
	fprintf(stderr, "\n");
	return TOOL_FAILED;
}

int tool_bad_option(const struct tool *tool, int got, char **argv)
{
	/* A short option's letter stands in optopt, a long one was the last word read. */
	char letter[3] = { '-', (char)optopt, '\0' };
	const char *name = optopt > 0 && optopt < 128 ? letter : argv[optind - 1];

	if (got == ':')
		return tool_usage(tool, "option %s wants a value", name);
	return tool_usage(tool, "unknown option %s", name);
}

/* What belayd says to a connection that it refuses, which libbelay has only a number for. */
static void read_refusal(const char *path, char *buf, size_t size)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	uint8_t packet[1024];
	struct client_message m;
	size_t at = 0;
	ssize_t n = -1;

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	/* It may serve by now, and then says nothing: better no reason than to wait for one. */
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0) {
		struct pollfd in = { .fd = fd, .events = POLLIN };

		if (poll(&in, 1, REFUSAL_MS) == 1)
			n = recv(fd, packet, sizeof(packet), MSG_DONTWAIT);
	}
	if (fd >= 0)
		close(fd);
	if (n > 0 && client_get(packet, (size_t)n, &at, &m) == 1 && m.type == CLIENT_ERROR)
		(void)snprintf(buf, size, "%.*s", (int)m.text_size, m.text);
	else
		(void)snprintf(buf, size, "belayd does not serve yet; try again");
}

int tool_connect(const struct tool *tool, struct belay **ret_belay)
{
	const char *path = tool->socket ? tool->socket : getenv("BELAY_SOCKET");
	char refusal[512];
	const char *what;
	int r = belay_connect(ret_belay, tool->socket);

	if (r == 0)
		return TOOL_OK;
	if (!path || !*path)
		path = BELAY_SOCKET_PATH;
	switch (r) {
	case -ENOENT:
	case -ECONNREFUSED:
		what = "belayd does not run; start it (systemctl start belayd, or belayd --standalone "
		       "without a cluster), or name its socket with --socket";
		break;
	case -EACCES:
		what = "this user may not use it; ask for the group that socket_group in belay.conf names";
		break;
	case -EPROTONOSUPPORT:
		what = "belayd is of another version; restart it after an upgrade";
		break;
	case -EAGAIN:
		read_refusal(path, refusal, sizeof(refusal));
		what = refusal;
		break;
	case -ETIMEDOUT:
		what = TOOL_NO_ANSWER;
		break;
	case -EUSERS:
		what = "belayd has as many clients as clients_max in belay.conf allows";
		break;
	default:
		what = strerror(-r);
	}
	fprintf(stderr, "belay %s: no connection to belayd at %s: %s\n", tool->command->name,
		path, what);
	return TOOL_UNREACHABLE;
}

int tool_query(const struct tool *tool, struct belay *belay, const char *text,
	       struct json_object **ret_json)
{
	struct tool_limit *limit;
	struct json_object *json;
	char *answer = NULL;
	int r = tool_limit_begin(tool, TOOL_ANSWER_MS, TOOL_UNREACHABLE, TOOL_NO_ANSWER, &limit);

	if (r != TOOL_OK)
		return r;
	r = belay_command(belay, text, &answer);
	tool_limit_end(limit);
	if (r < 0) {
		if (answer && *answer)
			tool_failed(tool, 0, "%s", answer);
		else
			tool_failed(tool, r, "%s", text);
		free(answer);
		return r == -EIO ? TOOL_UNREACHABLE : TOOL_FAILED;
	}
	json = answer ? json_tokener_parse(answer) : NULL;
	free(answer);
	if (!json)
		return tool_failed(tool, 0, "belayd's answer to \"%s\" is not JSON; "
				   "belay and belayd may be of different versions", text);
	*ret_json = json;
	return TOOL_OK;
}

int tool_ask(const struct tool *tool, const char *text, struct json_object **ret_json)
{
	struct belay *belay;
	int status = tool_connect(tool, &belay);

	if (status != TOOL_OK)
		return status;
	status = tool_query(tool, belay, text, ret_json);
	belay_disconnect(belay);
	return status;
}
