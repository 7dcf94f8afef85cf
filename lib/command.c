/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/private.h"

int belay_command(struct belay *belay, const char *command, char **ret_text)
{
	struct client_message m = { .type = CLIENT_COMMAND };
	struct call call = { 0 };
	size_t size = strlen(command);
	int r;

	if (forked(belay))
		return -EPERM;
	if (size > CLIENT_TEXT_MAX)
		return -E2BIG;
	m.text = command;
	m.text_size = (uint16_t)size;
	r = call_run(belay, &call, CLIENT_TEXT, &m, -1);
	if (call.text_error < 0) {
		free(call.text);
		call.text = NULL;
		r = call.text_error;
	}
	if (ret_text)
		*ret_text = call.text;
	else
		free(call.text);
	return r;
}
