/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lvmlockd/lv.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "lvmlockd/message.h"

/* Listing, and looking twice, beside the run of lvm; what tells progress may take longer. */
#define LOOK_MS 60000u
#define WAIT_MAX_MS (24u * 3600 * 1000)
/* UNDO: for others to give up what they have just activated, before an exclusive lock is had again. */
#define RELOCK_MS 10000u
/* So that one of several nodes which has it exclusively can come down to shared before the others ask. */
#define SHARE_MS 3000u

struct lv_node {
	uint32_t node;
	bool ended, changed;
	int result;
};

enum run_phase {
	RUN_ASKING,
	RUN_UNDOING,
};

struct lv_run {
	TAILQ_ENTRY(lv_run) link;
	struct lv *lv;
	struct lv_sink sink;
	bool abandoned;			/* nobody listens */
	struct ask_request request;
	uint32_t deadline_ms;		/* to the next answer */
	bool keep_partial;
	enum run_phase phase;
	uint64_t id;			/* of the request that is under way */
	size_t node_count, awaited;
	struct lv_node node[BELAY_NODES_MAX];
	unsigned done, failed, unverified, nodes_failed, nodes_left;
	bool undo_failed;
};
TAILQ_HEAD(runs, lv_run);

struct lv_refresh {
	TAILQ_ENTRY(lv_refresh) link;
	struct lv *lv;
	lv_refreshed done;
	void *context;
	size_t awaited;
	int result;
	char text[ASK_TEXT_MAX + 1];
};
TAILQ_HEAD(refreshes, lv_refresh);

struct lv {
	struct lvm_group *group;
	uint32_t command_timeout_ms;
	struct runs runs;
	struct refreshes refreshes;
};

/* ---- messages to who gave the command ---- */

static void begin(struct message_out *out, const char *kind)
{
	message_begin(out);
	message_put_text(out, "response", "OK");
	message_put_text(out, "kind", kind);
}

static void send_out(struct lv_run *run, struct message_out *out, bool last)
{
	/* All that is put into one is bounded, well below what fits. */
	if (message_end(out) == 0 && !run->abandoned)
		run->sink.send(run->sink.context, out->bytes, out->size, last);
}

static void put_node(struct lv_run *run, struct message_out *out, uint32_t node)
{
	char name[80] = "";

	message_put_number(out, "node", node);
	if (run->lv->group)
		message_put_text(out, "name", lvm_group_name(run->lv->group, node, name, sizeof(name)));
}

static void tell_node(struct lv_run *run, const char *kind, uint32_t node)
{
	struct message_out out;

	begin(&out, kind);
	put_node(run, &out, node);
	send_out(run, &out, false);
}

static void tell_result(struct lv_run *run, const char *kind, uint32_t node, int result, const char *text)
{
	struct message_out out;

	begin(&out, kind);
	put_node(run, &out, node);
	message_put_number(&out, "op_result", result);
	message_put_text(&out, "text", text);
	send_out(run, &out, false);
}

static void tell_progress(struct lv_run *run, uint32_t node, const struct ask_answer *answer)
{
	struct message_out out;

	begin(&out, "progress");
	put_node(run, &out, node);
	message_put_number(&out, "done", answer->done);
	message_put_number(&out, "total", answer->total);
	send_out(run, &out, false);
}

static void tell_lv(struct lv_run *run, uint32_t node, const struct ask_lv *lv)
{
	struct message_out out;

	begin(&out, "lv");
	put_node(run, &out, node);
	message_put_text(&out, "vg", lv->vg);
	message_put_text(&out, "lv", lv->name);
	message_put_text(&out, "uuid", lv->uuid);
	message_put_text(&out, "outcome", ask_outcome_name(lv->outcome));
	message_put_number(&out, "changed", lv->changed);
	message_put_text(&out, "lock", ask_mode_name(lv->lock));
	message_put_number(&out, "since", (int64_t)lv->since_s);
	message_put_text(&out, "dm", ask_dm_name(lv->dm));
	message_put_number(&out, "open", lv->open_count);
	message_put_number(&out, "size", (int64_t)lv->size_bytes);
	message_put_number(&out, "lvm_size", (int64_t)lv->lvm_size_bytes);
	message_put_text(&out, "targets", lv->targets);
	message_put_text(&out, "reason", lv->reason);
	send_out(run, &out, false);
}

/* ---- the end ---- */

static void free_run(struct lv_run *run)
{
	TAILQ_REMOVE(&run->lv->runs, run, link);
	free(run);
}

static void on_kept(void *context, uint32_t node, const struct ask_answer *answer)
{
	/* Whoever does not hear that it is kept forgets it in time. */
	(void)context;
	(void)node;
	(void)answer;
}

/* The agents need not remember any more what they have activated. */
static void keep(struct lv_run *run)
{
	const struct ask_request request = {
		.verb = ASK_KEEP, .about = run->id,
	};
	uint32_t node[BELAY_NODES_MAX];
	uint64_t id;

	for (size_t i = 0; i < run->node_count; i++)
		node[i] = run->node[i].node;
	if (run->lv->group)
		(void)lvm_group_ask(run->lv->group, &request, LOOK_MS, node, run->node_count, on_kept, NULL, &id);
}

__attribute__((format(printf, 4, 5)))
static void end(struct lv_run *run, int result, bool verified, const char *format, ...)
{
	struct message_out out;
	char text[ASK_TEXT_MAX + 1];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	begin(&out, "end");
	message_put_number(&out, "op_result", result);
	message_put_number(&out, "verified", verified);
	message_put_number(&out, "done", run->done);
	message_put_number(&out, "failed", run->failed);
	message_put_number(&out, "unverified", run->unverified);
	message_put_text(&out, "text", text);
	send_out(run, &out, true);
	free_run(run);
}

/* ---- taking back ---- */

static void on_undone(void *context, uint32_t node, const struct ask_answer *answer)
{
	struct lv_run *run = context;

	if (answer->kind == ASK_LV && answer->lv.outcome == ASK_FAILED)
		tell_lv(run, node, &answer->lv);
	if (answer->kind != ASK_END)
		return;
	run->undo_failed = run->undo_failed || answer->result < 0;
	tell_result(run, "undone", node, answer->result, answer->text);
	if (--run->awaited > 0)
		return;
	if (run->undo_failed)
		end(run, -EIO, false, "it failed, and not all that this command had activated could be deactivated "
		    "again: see belay lv status %s", run->request.vg);
	else
		end(run, -EIO, false, "it failed; what this command had activated was deactivated again");
}

static void undo(struct lv_run *run)
{
	const struct ask_request request = {
		.verb = ASK_UNDO, .about = run->id, .wait_ms = RELOCK_MS,
	};
	uint32_t node[BELAY_NODES_MAX];
	size_t count = 0;

	/* Also those that did not answer: they may have done it. */
	for (size_t i = 0; i < run->node_count; i++)
		if (run->node[i].changed || run->node[i].result == -ETIMEDOUT)
			node[count++] = run->node[i].node;
	if (count == 0) {
		end(run, -EIO, false, "it failed; nothing is changed");
		return;
	}
	run->phase = RUN_UNDOING;
	run->awaited = count;
	if (!run->lv->group ||
	    lvm_group_ask(run->lv->group, &request, run->deadline_ms + RELOCK_MS, node, count, on_undone, run,
			  &run->id) < 0)
		end(run, -EIO, false, "it failed, and what this command had activated could not be deactivated "
		    "again: see belay lv status %s", run->request.vg);
}

/* ---- answers ---- */

static void conclude(struct lv_run *run)
{
	bool failed = run->failed > 0 || run->nodes_failed > 0;

	if (run->request.verb == ASK_ACTIVATE && failed && !run->keep_partial) {
		undo(run);
		return;
	}
	if (run->request.verb == ASK_ACTIVATE)
		keep(run);
	if (run->request.verb == ASK_STATUS)
		end(run, failed ? -EIO : 0, !failed, "%s", "");
	else if (failed)
		end(run, -EIO, false, "it failed%s", run->done > 0 ? "; what succeeded was left as it is" : "");
	else if (run->unverified > 0)
		end(run, 0, false, "lvm says that it is done; that is not verified");
	else
		end(run, 0, true, "verified by device-mapper on %zu node%s", run->node_count,
		    run->node_count == 1 ? "" : "s");
}

static void count_lv(struct lv_run *run, struct lv_node *node, const struct ask_lv *lv)
{
	node->changed = node->changed || lv->changed;
	switch (lv->outcome) {
	case ASK_FAILED:
		run->failed++;
		break;
	case ASK_UNVERIFIED:
		run->unverified++;
		run->done++;
		break;
	default:
		run->done++;
	}
}

static const char *end_text(const struct ask_answer *answer)
{
	if (answer->text[0] != '\0' || answer->result == 0)
		return answer->text;
	switch (answer->result) {
	case -ENOTCONN:
		return "belay-lvmlockd does not run there, or the node has left the cluster";
	case -ETIMEDOUT:
		return "no answer: its belay-lvmlockd hangs";
	case -ENOBUFS:
		return "too much is under way between the belay-lvmlockds; try again";
	default:
		return strerror(-answer->result);
	}
}

static void on_answer(void *context, uint32_t node, const struct ask_answer *answer)
{
	struct lv_run *run = context;
	struct lv_node *at = run->node;

	while (at->node != node)
		at++;
	switch (answer->kind) {
	case ASK_PROGRESS:
		tell_progress(run, node, answer);
		return;
	case ASK_LV:
		count_lv(run, at, &answer->lv);
		tell_lv(run, node, &answer->lv);
		return;
	case ASK_END:
		at->ended = true;
		at->result = answer->result;
		run->nodes_failed += answer->result < 0;
		tell_result(run, "node", node, answer->result, end_text(answer));
		if (--run->awaited == 0)
			conclude(run);
		return;
	case ASK_ANSWER_COUNT:
		return;
	}
}

/* ---- the request ---- */

static int get_verb(const char *text, enum ask_verb *ret_verb)
{
	for (enum ask_verb verb = ASK_ACTIVATE; text && verb <= ASK_STATUS; verb++)
		if (strcmp(text, ask_verb_name(verb)) == 0) {
			*ret_verb = verb;
			return 0;
		}
	return -EINVAL;
}

static int get_name(const struct message *message, const char *key, char ret_name[ASK_NAME_MAX + 1])
{
	const char *name = message_text(message, key);

	if (!name)
		return -ENOENT;
	if (!ask_is_name(name))
		return -EINVAL;
	(void)snprintf(ret_name, ASK_NAME_MAX + 1, "%s", name);
	return 0;
}

static int get_times(struct lv_run *run, const struct message *message)
{
	struct ask_request *request = &run->request;
	int64_t wait_ms = message_number(message, "timeout_ms", 0);

	if (wait_ms < 0 || wait_ms > WAIT_MAX_MS || (wait_ms > 0 && request->verb != ASK_ACTIVATE))
		return -EINVAL;
	request->wait_ms = (uint32_t)wait_ms;
	run->deadline_ms = run->lv->command_timeout_ms + request->wait_ms + LOOK_MS;
	return 0;
}

static void add_node(struct lv_run *run, uint32_t node)
{
	for (size_t i = 0; i < run->node_count; i++)
		if (run->node[i].node == node)
			return;
	run->node[run->node_count++].node = node;
}

/* "1,n2" into run->node. */
static int get_named_nodes(struct lv_run *run, const char *list)
{
	char name[80];

	while (*list) {
		size_t size = strcspn(list, ",");
		uint32_t node;

		if (size == 0 || size >= sizeof(name))
			return -EINVAL;
		memcpy(name, list, size);
		name[size] = '\0';
		node = lvm_group_find(run->lv->group, name);
		if (node == 0)
			return -EINVAL;
		add_node(run, node);
		list += size + (list[size] == ',');
	}
	return run->node_count > 0 ? 0 : -EINVAL;
}

static void get_all_nodes(struct lv_run *run)
{
	struct lvm_member member[BELAY_NODES_MAX];
	size_t count = lvm_group_members(run->lv->group, member, BELAY_NODES_MAX);

	for (size_t i = 0; i < count; i++)
		add_node(run, member[i].node);
}

static int get_nodes(struct lv_run *run, const struct message *message, const char **ret_why)
{
	const char *list = message_text(message, "nodes");

	if (!list) {
		add_node(run, lvm_group_info(run->lv->group)->self);
	} else if (strcmp(list, "*") == 0) {
		get_all_nodes(run);
	} else if (get_named_nodes(run, list) < 0) {
		*ret_why = "no such node: belay status lists them by number and name";
		return -EINVAL;
	}
	if (run->node_count > 0)
		return 0;
	*ret_why = "the belay-lvmlockds do not know of each other yet; try again";
	return -ENOTCONN;
}

static int get_mode(struct lv_run *run, const struct message *message, const char **ret_why)
{
	const char *mode = message_text(message, "mode"), *list = message_text(message, "nodes");
	bool several = run->node_count > 1 || (list && strcmp(list, "*") == 0);

	if (run->request.verb != ASK_ACTIVATE)
		return 0;
	if (!mode)
		mode = several ? "sh" : "ex";
	if (strcmp(mode, "ex") != 0 && strcmp(mode, "sh") != 0) {
		*ret_why = "the mode is ex or sh";
		return -EINVAL;
	}
	run->request.mode = strcmp(mode, "ex") == 0 ? ASK_EX : ASK_SH;
	if (run->request.mode == ASK_EX && run->node_count > 1) {
		*ret_why = "exclusive is for one node: name one, or take --shared";
		return -EINVAL;
	}
	return 0;
}

static void await_sharing(struct lv_run *run)
{
	struct ask_request *request = &run->request;

	if (request->verb != ASK_ACTIVATE || request->mode != ASK_SH || run->node_count < 2 || request->wait_ms > 0)
		return;
	request->wait_ms = SHARE_MS;
	run->deadline_ms += SHARE_MS;
}

static int get_command(struct lv_run *run, const struct message *message, const char **ret_why)
{
	struct ask_request *request = &run->request;
	int r;

	if (get_verb(message_text(message, "verb"), &request->verb) < 0) {
		*ret_why = "there is no such command here: belay and belay-lvmlockd may be of different versions";
		return -EINVAL;
	}
	r = get_name(message, "vg", request->vg);
	if (r == -ENOENT && request->verb == ASK_STATUS)
		r = 0;
	else if (r == 0)
		r = get_name(message, "lv", request->lv);
	if (r < 0 && !(r == -ENOENT && request->vg[0] != '\0')) {
		*ret_why = "that is no name that LVM gives";
		return -EINVAL;
	}
	if (get_times(run, message) < 0) {
		*ret_why = "the timeout makes no sense";
		return -EINVAL;
	}
	run->keep_partial = message_number(message, "keep_partial", 0) != 0;
	r = get_nodes(run, message, ret_why);
	if (r == 0)
		r = get_mode(run, message, ret_why);
	if (r == 0)
		await_sharing(run);
	return r;
}

static bool asks(const struct lv_run *run, uint32_t node)
{
	for (size_t i = 0; i < run->node_count; i++)
		if (run->node[i].node == node)
			return true;
	return false;
}

static void tell_nodes(struct lv_run *run, bool all)
{
	const struct group_info *info = lvm_group_info(run->lv->group);

	for (size_t i = 0; i < run->node_count; i++)
		tell_node(run, "asked", run->node[i].node);
	for (uint32_t i = 0; all && i < info->node_count; i++)
		if (!asks(run, info->node[i]))
			tell_node(run, "absent", info->node[i]);
}

int lv_request(struct lv *lv, const struct message *message, const struct lv_sink *sink,
	       struct lv_run **ret_run, const char **ret_why)
{
	const char *list = message_text(message, "nodes");
	uint32_t node[BELAY_NODES_MAX];
	struct lv_run *run;
	int r;

	*ret_why = "the belay-lvmlockds have no connection to each other: does corosync run?";
	if (!lv->group)
		return -ENOTCONN;
	run = calloc(1, sizeof(*run));
	if (!run) {
		*ret_why = "out of memory";
		return -ENOMEM;
	}
	run->lv = lv;
	run->sink = *sink;
	r = get_command(run, message, ret_why);
	for (size_t i = 0; i < run->node_count; i++)
		node[i] = run->node[i].node;
	if (r == 0) {
		*ret_why = "too much is under way between the belay-lvmlockds; try again";
		r = lvm_group_ask(lv->group, &run->request, run->deadline_ms, node, run->node_count, on_answer, run,
				  &run->id);
	}
	if (r < 0) {
		free(run);
		return r;
	}
	run->awaited = run->node_count;
	TAILQ_INSERT_TAIL(&lv->runs, run, link);
	*ret_run = run;
	/* Answers come from the loop, so these are the first. */
	tell_nodes(run, list && strcmp(list, "*") == 0);
	return 0;
}

void lv_abandon(struct lv_run *run)
{
	run->abandoned = true;
	if (run->phase == RUN_ASKING && run->lv->group)
		lvm_group_cancel(run->lv->group, run->id);
}

/* ---- refresh_lv ---- */

static void free_refresh(struct lv_refresh *refresh)
{
	TAILQ_REMOVE(&refresh->lv->refreshes, refresh, link);
	free(refresh);
}

static void on_refreshed(void *context, uint32_t node, const struct ask_answer *answer)
{
	struct lv_refresh *refresh = context;
	const char *why = answer->kind == ASK_LV ? answer->lv.reason : end_text(answer);
	bool failed = answer->kind == ASK_LV ? answer->lv.outcome == ASK_FAILED :
		      answer->kind == ASK_END && answer->result < 0;
	char name[80] = "";

	if (failed && refresh->result == 0) {
		refresh->result = -EIO;
		(void)snprintf(refresh->text, sizeof(refresh->text), "%s: %.400s", refresh->lv->group ?
			       lvm_group_name(refresh->lv->group, node, name, sizeof(name)) : "", why);
	}
	if (answer->kind != ASK_END || --refresh->awaited > 0)
		return;
	if (refresh->done)
		refresh->done(refresh->context, refresh->result, refresh->text);
	free_refresh(refresh);
}

/* The last two names of it. */
static int split_path(const char *path, struct ask_request *request)
{
	const char *lv = strrchr(path, '/'), *vg;
	size_t size;

	if (!lv || lv == path)
		return -EINVAL;
	for (vg = lv; vg > path && vg[-1] != '/'; vg--)
		;
	size = (size_t)(lv - vg);
	if (size > ASK_NAME_MAX || strlen(lv + 1) > ASK_NAME_MAX)
		return -EINVAL;
	memcpy(request->vg, vg, size);
	(void)snprintf(request->lv, sizeof(request->lv), "%s", lv + 1);
	return ask_is_name(request->vg) && ask_is_name(request->lv) ? 0 : -EINVAL;
}

int lv_refresh_others(struct lv *lv, const char *path, lv_refreshed done, void *context,
		      struct lv_refresh **ret_refresh)
{
	struct ask_request request = {
		.verb = ASK_REFRESH, .no_vg_lock = true,
	};
	struct lvm_member member[BELAY_NODES_MAX];
	uint32_t node[BELAY_NODES_MAX];
	struct lv_refresh *refresh;
	size_t count, others = 0;
	uint64_t id;
	int r = split_path(path, &request);

	if (r < 0)
		return r;
	if (!lv->group)
		return -ENOTCONN;
	count = lvm_group_members(lv->group, member, BELAY_NODES_MAX);
	for (size_t i = 0; i < count; i++)
		if (member[i].node != lvm_group_info(lv->group)->self)
			node[others++] = member[i].node;
	if (others == 0)
		return 1;
	refresh = calloc(1, sizeof(*refresh));
	if (!refresh)
		return -ENOMEM;
	refresh->lv = lv;
	refresh->done = done;
	refresh->context = context;
	refresh->awaited = others;
	r = lvm_group_ask(lv->group, &request, lv->command_timeout_ms + LOOK_MS, node, others, on_refreshed, refresh,
			  &id);
	if (r < 0) {
		free(refresh);
		return r;
	}
	TAILQ_INSERT_TAIL(&lv->refreshes, refresh, link);
	*ret_refresh = refresh;
	return 0;
}

void lv_refresh_abandon(struct lv_refresh *refresh)
{
	refresh->done = NULL;
}

/* ---- the surface ---- */

int lv_open(uint32_t command_timeout_ms, struct lv **ret_lv)
{
	struct lv *lv = calloc(1, sizeof(*lv));

	if (!lv)
		return -ENOMEM;
	lv->command_timeout_ms = command_timeout_ms;
	TAILQ_INIT(&lv->runs);
	TAILQ_INIT(&lv->refreshes);
	*ret_lv = lv;
	return 0;
}

void lv_close(struct lv *lv)
{
	if (!lv)
		return;
	while (!TAILQ_EMPTY(&lv->runs))
		free_run(TAILQ_FIRST(&lv->runs));
	while (!TAILQ_EMPTY(&lv->refreshes))
		free_refresh(TAILQ_FIRST(&lv->refreshes));
	free(lv);
}

void lv_regroup(struct lv *lv, struct lvm_group *group)
{
	lv->group = group;
}
