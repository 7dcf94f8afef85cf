/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which requests there are, and what their answers look like. */
#include "lvmlockd/request.h"

#include <assert.h>
#include <errno.h>
#include <qb/qblog.h>
#include <string.h>

#include "lvmlockd/command.h"

static void request_hello(struct lvmlockd *lvmlockd, struct connection *connection,
			  const struct message *message)
{
	struct message_out out;

	(void)lvmlockd;
	(void)message;
	message_begin(&out);
	message_put_text(&out, "response", "OK");
	message_put_number(&out, "result", 0);
	message_put_text(&out, "protocol", "lvmlockd");
	message_put_number(&out, "version", 1);
	(void)message_end(&out);
	(void)connection_send(connection, out.bytes, out.size, true);
}

static void request_ok(struct lvmlockd *lvmlockd, struct connection *connection,
		       const struct message *message)
{
	(void)lvmlockd;
	(void)message;
	(void)request_result(connection, 0);
}

/* Of sanlock, whose locks lie on the storage: enable_gl, disable_gl, find_free_lock. */
static void request_not_ours(struct lvmlockd *lvmlockd, struct connection *connection,
			     const struct message *message)
{
	(void)lvmlockd;
	(void)message;
	(void)request_result(connection, -EINVAL);
}

/* clang-format off */
static const struct request_type types[] = {
	{ "hello",		1,  request_hello },
	{ "quit",		2,  request_quit },
	{ "init_vg",		3,  request_init_vg },
	{ "init_lv",		3,  request_init_lv },
	{ "free_vg",		4,  request_free_vg },
	{ "free_lv",		4,  request_free_lv },
	{ "start_vg",		5,  request_start_vg },
	{ "stop_vg",		6,  request_stop_vg },
	{ "lock_gl",		7,  request_lock_gl },
	{ "lock_vg",		7,  request_lock_vg },
	{ "lock_lv",		7,  request_lock_lv },
	{ "vg_update",		8,  request_vg_update },
	{ "enable_gl",		10, request_not_ours },
	{ "disable_gl",		11, request_not_ours },
	{ "start_wait",		12, request_start_wait },
	{ "stop_all",		13, request_stop_all },
	{ "info",		14, request_info },
	{ "dump",		15, request_dump },
	{ "rename_vg_before",	16, request_rename_vg_before },
	{ "rename_vg_final",	17, request_ok },
	{ "running_lm",		18, request_running_lm },
	{ "find_free_lock",	19, request_not_ours },
	{ "kill_vg",		20, request_kill_vg },
	{ "drop_vg",		21, request_stop_vg },
	{ "busy_vg",		22, request_busy_vg },
	{ "query_lock_gl",	23, request_query_lock_gl },
	{ "query_lock_vg",	23, request_query_lock_vg },
	{ "query_lock_lv",	23, request_query_lock_lv },
	{ "refresh_lv",		24, request_refresh_lv },
	{ "belay_lv",		0,  request_belay_lv },
};
/* clang-format on */

static const struct request_type *find_type(const char *name)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(types[i].name, name) == 0)
			return &types[i];
	return NULL;
}

void request_handle(struct connection *connection)
{
	const struct message *message = connection_message(connection);
	const char *name = message_text(message, "request");
	const struct request_type *type = name ? find_type(name) : NULL;

	connection_set_request(connection, type);
	/* The sooner it is known, the less can come between. */
	(void)lvmlockd_may_lock(connection_lvmlockd(connection));
	if (type) {
		qb_log(LOG_DEBUG, "%s of process %d (%s)", name, (int)connection_pid(connection),
		       connection_command(connection));
		type->handle(connection_lvmlockd(connection), connection, message);
		return;
	}
	/* lvmlockd would leave the command waiting for ever. */
	qb_log(LOG_NOTICE, "request %s of process %d (%s) is unknown here, and answered by an error",
	       name ? name : "without a name", (int)connection_pid(connection),
	       connection_command(connection));
	(void)request_result(connection, -EPROTO);
}

void request_refuse(struct connection *connection, int error)
{
	connection_set_request(connection, NULL);
	qb_log(LOG_NOTICE, "process %d sent what is no request (%s): its connection is closed",
	       (int)connection_pid(connection), error == -EMSGSIZE ? "too long" : "not in lvmlockd's protocol");
	(void)request_result(connection, error == -EMSGSIZE ? -EMSGSIZE : -EPROTO);
}

void request_connection_ended(struct connection *connection)
{
	volume_release_all(connection);
	hold_release_all(connection);
}

static void put_optional(struct message_out *out, const char *key, const char *text)
{
	if (text)
		message_put_text(out, key, text);
}

bool request_answer(struct connection *connection, const struct answer *answer)
{
	const struct request_type *type = connection_request(connection);
	struct message_out out;

	message_begin(&out);
	message_put_text(&out, "response", "OK");
	message_put_number(&out, "op", type ? type->number : 0);
	message_put_text(&out, "lock_type", answer->lock_type ? answer->lock_type : "none");
	message_put_number(&out, "op_result", answer->result);
	message_put_number(&out, "lm_result", 0);
	put_optional(&out, "mode", answer->mode);
	put_optional(&out, "vg_lock_args", answer->vg_lock_args);
	put_optional(&out, "lv_lock_args", answer->lv_lock_args);
	message_put_text(&out, "result_flags", answer->flags ? answer->flags : "none");
	(void)message_end(&out);
	return connection_send(connection, out.bytes, out.size, true);
}

bool request_result(struct connection *connection, int result)
{
	const struct answer answer = { .result = result };

	return request_answer(connection, &answer);
}

bool request_lock_result(struct connection *connection, int result, const char *flags)
{
	const struct answer answer = { .result = result, .lock_type = "dlm", .flags = flags };

	return request_answer(connection, &answer);
}

/* ---- fields ---- */

const char *request_text(const struct message *message, const char *key, const char *fallback)
{
	const char *text = message_text(message, key);

	return text ? text : fallback;
}

bool request_has_opt(const struct message *message, const char *word)
{
	return strstr(request_text(message, "opts", ""), word) != NULL;
}

/* LVM never sends others. They go into names of locks, and into a file where blanks and newlines have a meaning. */
bool request_is_name(const char *text)
{
	size_t size = strlen(text);

	return size > 0 && size <= STATE_NAME_MAX && text[0] != '-' &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+_.-") == size;
}

bool request_is_uuid(const char *text)
{
	size_t size = strlen(text);

	return size > 0 && size <= STATE_UUID_MAX && text[0] != '-' &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#-") == size;
}

const char *request_vg_name(struct connection *connection, const struct message *message)
{
	const char *name = request_text(message, "vg_name", "");

	if (request_is_name(name))
		return name;
	(void)request_result(connection, -EINVAL);
	return NULL;
}

struct vg *request_vg(struct lvmlockd *lvmlockd, struct connection *connection,
		      const struct message *message)
{
	const char *name = request_vg_name(connection, message);
	struct vg *vg;

	if (!name)
		return NULL;
	vg = state_vg(lvmlockd->state, name);
	if (!vg)
		(void)request_result(connection, LD_ENOLS);
	return vg;
}

int request_lock_error(const char *what, int result)
{
	switch (result) {
	case 0:
	case -EAGAIN:
		return result;
	case -ECANCELED:
	case -EDEADLK:
		return -EAGAIN;
	case -ENOTCONN:
	case -EIO:
		qb_log(LOG_WARNING, "%s: not locked, for the connection to belayd is lost", what);
		return LD_EMANAGER;
	default:
		qb_log(LOG_ERR, "%s: not locked, belayd says: %s", what, strerror(-result));
		return LD_ELMERR;
	}
}
