/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lvmlockd/command.h"

#include <errno.h>
#include <qb/qblog.h>
#include <stdlib.h>
#include <string.h>

#include "lvmlockd/agent.h"
#include "lvmlockd/group.h"
#include "lvmlockd/holders.h"
#include "lvmlockd/lv.h"
#include "lvmlockd/policy.h"
#include "lvmlockd/request.h"
#include "lvmlockd/volume.h"

#define RETRY_NS UINT64_C(1000000000)

struct command {
	struct lvmlockd *lvmlockd;
	qb_loop_timer_handle timer;
	bool waiting;			/* for the timer */
	bool has_said, told_why;
	struct ask_member said;
};

/* ---- the group ---- */

static void open_group(struct command *command);

static void on_retry(void *data)
{
	struct command *command = data;
	struct lvmlockd *lvmlockd = command->lvmlockd;

	command->waiting = false;
	/* One that was lost: not to be closed from its own handler. */
	lv_regroup(lvmlockd->lv, NULL);
	agent_regroup(lvmlockd->agent, NULL);
	lvm_group_close(lvmlockd->group);
	lvmlockd->group = NULL;
	open_group(command);
}

static void retry(struct command *command, uint64_t ns)
{
	if (!command->waiting)
		command->waiting = qb_loop_timer_add(command->lvmlockd->loop, QB_LOOP_MED, ns, command, on_retry,
						     &command->timer) == 0;
}

static void on_lost(void *context, int error)
{
	struct command *command = context;

	qb_log(LOG_ERR, "the connection to the other nodes' belay-lvmlockds is lost (%s): commands for several "
	       "nodes fail until corosync is back", strerror(-error));
	retry(command, 1);
}

static void on_notice(void *context, uint32_t node, enum ask_notice what, const char *vg, const char *vg_uuid)
{
	struct command *command = context;

	if (node == lvm_group_info(command->lvmlockd->group)->self)
		return;
	if (what == ASK_VG_REMOVED)
		vg_note_removed(command->lvmlockd, vg, vg_uuid);
}

static void on_request(void *context, uint32_t node, uint64_t id, const struct ask_request *request)
{
	agent_request(((struct command *)context)->lvmlockd->agent, node, id, request);
}

static void on_cancel(void *context, uint32_t node, uint64_t id)
{
	agent_cancel(((struct command *)context)->lvmlockd->agent, node, id);
}

static void on_left(void *context, uint32_t node)
{
	agent_left(((struct command *)context)->lvmlockd->agent, node);
}

static void open_group(struct command *command)
{
	const struct lvm_group_handlers handlers = {
		.on_notice = on_notice, .on_request = on_request, .on_cancel = on_cancel, .on_left = on_left,
		.on_lost = on_lost, .context = command,
	};
	struct lvmlockd *lvmlockd = command->lvmlockd;
	const char *why;
	int r = lvm_group_open(lvmlockd->loop, lvmlockd->standalone, locks_node(lvmlockd->locks), &handlers,
			       &lvmlockd->group, &why);

	if (r < 0) {
		if (!command->told_why)
			qb_log(LOG_ERR, "no connection to the other nodes' belay-lvmlockds: %s. It is tried again "
			       "every second", why);
		command->told_why = true;
		lvmlockd->group = NULL;
		retry(command, RETRY_NS);
		return;
	}
	command->told_why = false;
	lv_regroup(lvmlockd->lv, lvmlockd->group);
	agent_regroup(lvmlockd->agent, lvmlockd->group);
	if (command->has_said)
		lvm_group_say(lvmlockd->group, &command->said);
}

void command_say(struct command *command, const struct ask_member *self)
{
	command->has_said = true;
	command->said = *self;
	if (command->lvmlockd->group)
		lvm_group_say(command->lvmlockd->group, self);
}

/* ---- locks of this node, for the agent ---- */

static const char *policy(void *context, const char *dm_uuid)
{
	const struct lvmlockd *lvmlockd = context;

	return lvmlockd->policy ? policy_says(lvmlockd->policy, dm_uuid) : "";
}

static enum ask_mode held(void *context, const char *uuid, uint64_t *ret_since_s)
{
	struct lvmlockd *lvmlockd = context;
	const struct volume *volume = state_volume(lvmlockd->state, uuid);

	*ret_since_s = volume ? (uint64_t)volume->since : 0;
	if (!volume || volume->lost)
		return ASK_UN;
	return volume->mode == MODE_EX ? ASK_EX : volume->mode == MODE_SH ? ASK_SH : ASK_UN;
}

static bool lost(void *context, const char *uuid)
{
	const struct lvmlockd *lvmlockd = context;
	const struct volume *volume = state_volume(lvmlockd->state, uuid);

	return volume && volume->lost;
}

static int lock(void *context, const char *vg, const char *lv, const char *uuid, enum ask_mode mode,
		uint32_t timeout_ms, void (*done)(void *done_context, int result, bool is_new),
		void *done_context, uint64_t *ret_ticket)
{
	return volume_lock(context, vg, lv, uuid, mode == ASK_EX ? MODE_EX : MODE_SH, timeout_ms, done,
			   done_context, ret_ticket);
}

static void withdraw(void *context, uint64_t ticket)
{
	volume_withdraw(context, ticket);
}

static void unlock(void *context, const char *uuid)
{
	volume_unlock(context, uuid);
}

/* ---- requests ---- */

struct session {
	struct connection *connection;
	struct lv_run *run;
};

static void on_closed(void *context)
{
	struct session *session = context;

	lv_abandon(session->run);
	free(session);
}

static void on_message(void *context, const char *text, size_t size, bool last)
{
	struct session *session = context;

	/* If it is broken, on_closed() follows; but for the last one, behind which nothing matters. */
	(void)connection_send(session->connection, text, size, last);
	if (last)
		free(session);
}

static void refuse(struct connection *connection, int result, const char *why)
{
	struct message_out out;

	message_begin(&out);
	message_put_text(&out, "response", "OK");
	message_put_text(&out, "kind", "end");
	message_put_number(&out, "op_result", result);
	message_put_number(&out, "verified", 0);
	message_put_text(&out, "text", why);
	(void)message_end(&out);
	(void)connection_send(connection, out.bytes, out.size, true);
}

void request_belay_lv(struct lvmlockd *lvmlockd, struct connection *connection, const struct message *message)
{
	struct session *session = calloc(1, sizeof(*session));
	const struct lv_sink sink = { .send = on_message, .context = session };
	const char *why = "out of memory";
	int r = -ENOMEM;

	if (session && lvmlockd->lv) {
		session->connection = connection;
		connection_on_close(connection, on_closed, session);
		r = lv_request(lvmlockd->lv, message, &sink, &session->run, &why);
		if (r == 0)
			return;
		connection_on_close(connection, NULL, NULL);
	} else if (session) {
		r = -ENOTCONN;
		why = "belayd does not run on this node: systemctl start belayd";
	}
	free(session);
	refuse(connection, r, why);
}

/* A node that has the LV locked, so most likely active, and cannot be asked to refresh it. */
struct unasked {
	const struct lvm_group *group;
	uint32_t node;
};

static void on_holder(void *context, uint32_t node)
{
	struct unasked *unasked = context;

	if (!lvm_group_has(unasked->group, node))
		unasked->node = node;
}

static bool all_can_be_asked(struct lvmlockd *lvmlockd, const char *path, const char *uuid)
{
	struct unasked unasked = { .group = lvmlockd->group };
	struct belay *belay = locks_belay(lvmlockd->locks);
	char name[80];

	if (!lvmlockd->group || !belay || holders_each(belay, uuid, on_holder, &unasked) < 0) {
		qb_log(LOG_ERR, "%s was changed here, and it is not known which nodes have it active: lvchange "
		       "--refresh where it is", path);
		return false;
	}
	if (unasked.node == 0)
		return true;
	qb_log(LOG_ERR, "%s was changed here, but %s, which has it locked, has no belay-lvmlockd to refresh it: "
	       "lvchange --refresh there", path, lvm_group_name(lvmlockd->group, unasked.node, name, sizeof(name)));
	return false;
}

struct refreshing {
	struct connection *connection;
	struct lv_refresh *refresh;
	bool incomplete;		/* of the nodes that have it not all are asked */
};

static void on_refreshed(void *context, int result, const char *text)
{
	struct refreshing *refreshing = context;

	if (result < 0)
		qb_log(LOG_ERR, "an LV was changed by process %d, but could not be refreshed everywhere: %s",
		       (int)connection_pid(refreshing->connection), text);
	(void)request_result(refreshing->connection, refreshing->incomplete ? -EIO : result);
	free(refreshing);
}

static void on_refresh_closed(void *context)
{
	struct refreshing *refreshing = context;

	lv_refresh_abandon(refreshing->refresh);
	free(refreshing);
}

void request_refresh_lv(struct lvmlockd *lvmlockd, struct connection *connection, const struct message *message)
{
	struct refreshing *refreshing = lvmlockd->lv ? calloc(1, sizeof(*refreshing)) : NULL;
	const char *path = request_text(message, "path", "");
	int r;

	if (!refreshing) {
		(void)request_result(connection, lvmlockd->lv ? -ENOMEM : -ENOTCONN);
		return;
	}
	refreshing->connection = connection;
	refreshing->incomplete = !all_can_be_asked(lvmlockd, path, request_text(message, "lv_uuid", ""));
	r = lv_refresh_others(lvmlockd->lv, path, on_refreshed, refreshing, &refreshing->refresh);
	if (r == 0) {
		connection_on_close(connection, on_refresh_closed, refreshing);
		return;
	}
	(void)request_result(connection, r < 0 ? r : refreshing->incomplete ? -EIO : 0);
	free(refreshing);
}

/* ---- the surface ---- */

int command_open(struct lvmlockd *lvmlockd, const struct dm_port *dm, struct command **ret_command)
{
	struct command *command = calloc(1, sizeof(*command));
	const uint32_t timeout_ms = lvmlockd->config.lvm_command_timeout_s * 1000;
	const struct agent_setup setup = {
		.worker = lvmlockd->worker, .dm = dm, .lvm_path = lvmlockd->config.lvm_path,
		.command_timeout_ms = timeout_ms,
		.locks = {
			.held = held, .lost = lost, .lock = lock, .withdraw = withdraw, .unlock = unlock,
			.policy = policy, .context = lvmlockd,
		},
	};
	int r;

	if (!command)
		return -ENOMEM;
	command->lvmlockd = lvmlockd;
	r = agent_open(&setup, &lvmlockd->agent);
	if (r < 0)
		goto fail_free;
	r = lv_open(timeout_ms, &lvmlockd->lv);
	if (r < 0)
		goto fail_agent;
	open_group(command);
	*ret_command = command;
	return 0;

fail_agent:
	agent_close(lvmlockd->agent);
	lvmlockd->agent = NULL;
fail_free:
	free(command);
	return r;
}

void command_close(struct command *command)
{
	struct lvmlockd *lvmlockd;

	if (!command)
		return;
	lvmlockd = command->lvmlockd;
	if (command->waiting)
		(void)qb_loop_timer_del(lvmlockd->loop, command->timer);
	lvm_group_close(lvmlockd->group);
	lv_close(lvmlockd->lv);
	agent_close(lvmlockd->agent);
	lvmlockd->group = NULL;
	lvmlockd->lv = NULL;
	lvmlockd->agent = NULL;
	free(command);
}
