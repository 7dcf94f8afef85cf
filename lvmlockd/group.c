/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lvmlockd/group.h"

#include <assert.h>
#include <errno.h>
#include <qb/qblog.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

/* Frames of this node that are sent and not yet delivered: few, so that belayd's need not wait for them. */
#define UNDER_WAY_MAX 4u
/* Frames that wait to be sent. What must not be lost may use those above FRAMES_MAX. */
#define FRAMES_MAX 1024u
#define FRAMES_RESERVED 256u
#define QUESTIONS_MAX 256u
#define RETRY_NS (1000u * 1000)
/* What an answer may take on its way, behind the deadline of what it answers. */
#define ANSWER_GRACE_MS 3000u
#define NS_PER_MS UINT64_C(1000000)

struct frame {
	TAILQ_ENTRY(frame) link;
	size_t size;
	uint8_t bytes[ASK_FRAME_MAX];
};
TAILQ_HEAD(frames, frame);

/* What this node has asked. */
struct question {
	TAILQ_ENTRY(question) link;
	struct lvm_group *group;
	uint64_t id;
	lvm_group_on_answer on_answer;
	void *context;
	uint32_t deadline_ms;
	qb_loop_timer_handle timer;
	size_t count, ended_count;
	struct {
		uint32_t node;
		bool ended;
		int failed;	/* to be told by tell_failed() */
	} asked[BELAY_NODES_MAX];
};
TAILQ_HEAD(questions, question);

struct lvm_group {
	qb_loop_t *loop;
	struct group *port;
	struct lvm_group_handlers handlers;
	bool seen_view, lost, told_version, told_garbage;
	size_t member_count;
	struct lvm_member member[BELAY_NODES_MAX];
	bool has_said;
	struct ask_member said;
	struct frames frames;
	unsigned frame_count, under_way;
	qb_loop_timer_handle retry_timer, failed_timer;
	bool retrying, telling;
	struct questions questions;
	unsigned question_count;
	uint64_t next_id;
};

/* ---- sending ---- */

static void pump(struct lvm_group *group);

static void on_retry(void *data)
{
	struct lvm_group *group = data;

	group->retrying = false;
	pump(group);
}

static void pump(struct lvm_group *group)
{
	struct frame *frame;
	int r;

	while (!group->lost && group->under_way < UNDER_WAY_MAX && (frame = TAILQ_FIRST(&group->frames))) {
		r = group->port->ops->send(group->port, frame->bytes, frame->size);
		if (r == -EAGAIN) {
			/* With none of ours under way nothing need ever be delivered. */
			if (group->under_way == 0 && !group->retrying)
				group->retrying = qb_loop_timer_add(group->loop, QB_LOOP_MED, RETRY_NS, group,
								    on_retry, &group->retry_timer) == 0;
			return;
		}
		/* Other errors are followed by on_lost(), after which nothing is sent any more. */
		if (r < 0)
			return;
		group->under_way++;
		TAILQ_REMOVE(&group->frames, frame, link);
		group->frame_count--;
		free(frame);
	}
}

static int send_message(struct lvm_group *group, const struct ask_message *message, bool reserved)
{
	struct frame *frame = TAILQ_LAST(&group->frames, frames);
	size_t size;

	if (group->lost)
		return -ENOTCONN;
	size = frame ? ask_add(frame->bytes, frame->size, message) : 0;
	if (size == 0) {
		if (group->frame_count >= FRAMES_MAX + (reserved ? FRAMES_RESERVED : 0))
			return -ENOBUFS;
		frame = malloc(sizeof(*frame));
		if (!frame)
			return -ENOMEM;
		size = ask_add(frame->bytes, ask_frame(frame->bytes), message);
		/* A message fits into an empty frame. */
		assert(size > 0);
		TAILQ_INSERT_TAIL(&group->frames, frame, link);
		group->frame_count++;
	}
	frame->size = size;
	pump(group);
	return 0;
}

static void say(struct lvm_group *group)
{
	const struct ask_message message = { .kind = ASK_MEMBER, .member = group->said };

	if (group->has_said && group->seen_view && send_message(group, &message, true) < 0 && !group->lost)
		qb_log(LOG_ERR, "what this node is cannot be told to the other belay-lvmlockds: out of memory");
}

/* ---- what this node has asked ---- */

static void free_question(struct question *question)
{
	struct lvm_group *group = question->group;

	if (question->timer)
		(void)qb_loop_timer_del(group->loop, question->timer);
	TAILQ_REMOVE(&group->questions, question, link);
	group->question_count--;
	free(question);
}

static struct question *find_question(struct lvm_group *group, uint64_t id)
{
	struct question *question;

	TAILQ_FOREACH(question, &group->questions, link)
		if (question->id == id)
			return question;
	return NULL;
}

/* It ends for its @i'th node. The handler may ask another question. */
static void end_for(struct question *question, size_t i, const struct ask_answer *answer)
{
	lvm_group_on_answer on_answer = question->on_answer;
	void *context = question->context;
	uint32_t node = question->asked[i].node;

	question->asked[i].ended = true;
	if (++question->ended_count == question->count)
		free_question(question);
	on_answer(context, node, answer);
}

static void fail_for(struct question *question, size_t i, int error)
{
	const struct ask_answer answer = { .kind = ASK_END, .result = error };

	end_for(question, i, &answer);
}

/* The first question of which a node has failed so, or has yet to be told. */
static struct question *next_failed(struct lvm_group *group, size_t *ret_i)
{
	struct question *question;

	TAILQ_FOREACH(question, &group->questions, link)
		for (size_t i = 0; i < question->count; i++)
			if (question->asked[i].failed < 0 && !question->asked[i].ended) {
				*ret_i = i;
				return question;
			}
	return NULL;
}

/* One after the other, and looked for anew: the handlers may do what they like with questions. */
static void tell_failed(struct lvm_group *group)
{
	struct question *question;
	size_t i;

	while ((question = next_failed(group, &i)))
		fail_for(question, i, question->asked[i].failed);
}

static void on_failed(void *data)
{
	struct lvm_group *group = data;

	group->telling = false;
	tell_failed(group);
}

static void tell_failed_later(struct lvm_group *group)
{
	if (!group->telling)
		group->telling = qb_loop_timer_add(group->loop, QB_LOOP_MED, 1, group, on_failed,
						   &group->failed_timer) == 0;
}

static void mark_failed(struct lvm_group *group, uint32_t node, int error)
{
	struct question *question;

	TAILQ_FOREACH(question, &group->questions, link)
		for (size_t i = 0; i < question->count; i++)
			if ((node == 0 || question->asked[i].node == node) && question->asked[i].failed == 0)
				question->asked[i].failed = error;
}

static void on_deadline(void *data)
{
	struct question *question = data;

	question->timer = 0;
	for (size_t i = 0; i < question->count; i++)
		if (question->asked[i].failed == 0)
			question->asked[i].failed = -ETIMEDOUT;
	tell_failed(question->group);
}

/* From now on. False: there is no memory, and what timer there was goes on. */
static bool start_timer(struct question *question)
{
	struct lvm_group *group = question->group;
	qb_loop_timer_handle timer;

	if (qb_loop_timer_add(group->loop, QB_LOOP_MED,
			      ((uint64_t)question->deadline_ms + ANSWER_GRACE_MS) * NS_PER_MS, question,
			      on_deadline, &timer) < 0)
		return false;
	if (question->timer)
		(void)qb_loop_timer_del(group->loop, question->timer);
	question->timer = timer;
	return true;
}

static void deliver_answer(struct lvm_group *group, uint32_t node, const struct ask_message *message)
{
	struct question *question = find_question(group, message->id);

	if (!question || message->to != group->port->info.self)
		return;
	for (size_t i = 0; i < question->count; i++) {
		if (question->asked[i].node != node || question->asked[i].ended)
			continue;
		if (message->answer.kind == ASK_END) {
			end_for(question, i, &message->answer);
			return;
		}
		(void)start_timer(question);
		question->on_answer(question->context, node, &message->answer);
		return;
	}
}

/* ---- members ---- */

static struct lvm_member *find_member(struct lvm_group *group, uint32_t node)
{
	for (size_t i = 0; i < group->member_count; i++)
		if (group->member[i].node == node)
			return &group->member[i];
	return NULL;
}

static void remove_member(struct lvm_group *group, uint32_t node)
{
	struct lvm_member *member = find_member(group, node);

	if (!member)
		return;
	group->member_count--;
	memmove(member, member + 1, (size_t)(group->member + group->member_count - member) * sizeof(*member));
}

static void add_member(struct lvm_group *group, uint32_t node)
{
	size_t i = group->member_count;

	if (find_member(group, node) || group->member_count == BELAY_NODES_MAX)
		return;
	for (; i > 0 && group->member[i - 1].node > node; i--)
		group->member[i] = group->member[i - 1];
	group->member[i] = (struct lvm_member){ .node = node };
	group->member_count++;
}

static void tell_members(struct lvm_group *group)
{
	if (group->handlers.on_members)
		group->handlers.on_members(group->handlers.context);
}

/* ---- the port's handlers ---- */

static void on_view(void *context, const struct group_view *view)
{
	struct lvm_group *group = context;

	for (uint32_t i = 0; i < view->left_count; i++) {
		remove_member(group, view->left[i]);
		mark_failed(group, view->left[i], -ENOTCONN);
	}
	for (uint32_t i = 0; i < view->member_count; i++)
		add_member(group, view->member[i]);
	group->seen_view = true;
	if (view->joined_count > 0)
		say(group);
	tell_failed(group);
	for (uint32_t i = 0; i < view->left_count; i++)
		if (group->handlers.on_left)
			group->handlers.on_left(group->handlers.context, view->left[i]);
	tell_members(group);
}

static void on_quorum(void *context, bool quorate)
{
	/* quorum.c tells it to those whom it concerns. */
	(void)context;
	(void)quorate;
}

static void on_member(struct lvm_group *group, uint32_t node, const struct ask_member *said)
{
	struct lvm_member *member = find_member(group, node);

	if (!member)
		return;
	member->told = true;
	member->said = *said;
	tell_members(group);
}

static void on_one(struct lvm_group *group, uint32_t node, const struct ask_message *m)
{
	const struct lvm_group_handlers *h = &group->handlers;
	bool to_me = m->to == group->port->info.self;

	switch (m->kind) {
	case ASK_MEMBER:
		on_member(group, node, &m->member);
		break;
	case ASK_NOTICE:
		if (h->on_notice)
			h->on_notice(h->context, node, m->notice.what, m->notice.vg, m->notice.vg_uuid);
		break;
	case ASK_REQUEST:
		if (to_me && h->on_request)
			h->on_request(h->context, node, m->id, &m->request);
		break;
	case ASK_ANSWER:
		deliver_answer(group, node, m);
		break;
	case ASK_CANCEL:
		if (to_me && h->on_cancel)
			h->on_cancel(h->context, node, m->id);
		break;
	case ASK_KIND_COUNT:
		break;
	}
}

static void warn_garbage(struct lvm_group *group, uint32_t node, int error)
{
	if (error == -EPROTONOSUPPORT && !group->told_version) {
		group->told_version = true;
		qb_log(LOG_ERR, "belay-lvmlockd of node %u is of another version and not understood: "
		       "install the same version of belay on all nodes", node);
	} else if (error == -EBADMSG && !group->told_garbage) {
		group->told_garbage = true;
		qb_log(LOG_ERR, "node %u sends what is no message of belay-lvmlockd; it is passed over", node);
	}
}

static void on_message(void *context, uint32_t node, const void *buf, size_t size)
{
	struct lvm_group *group = context;
	struct ask_message message;
	size_t at = 0;
	int n;

	if (node == group->port->info.self && group->under_way > 0)
		group->under_way--;
	while (!group->lost && (n = ask_next(buf, size, &at, &message)) != 0) {
		if (n < 0) {
			warn_garbage(group, node, n);
			break;
		}
		on_one(group, node, &message);
	}
	pump(group);
}

static void on_lost(void *context, int error)
{
	struct lvm_group *group = context;

	group->lost = true;
	group->member_count = 0;
	group->seen_view = false;
	mark_failed(group, 0, -ENOTCONN);
	tell_failed(group);
	if (group->handlers.on_lost)
		group->handlers.on_lost(group->handlers.context, error);
}

/* ---- the surface ---- */

int lvm_group_open(qb_loop_t *loop, bool standalone, uint32_t self,
		   const struct lvm_group_handlers *handlers,
		   struct lvm_group **ret_group, const char **ret_why)
{
	struct lvm_group *group = calloc(1, sizeof(*group));
	const struct group_handlers port_handlers = {
		.on_view = on_view, .on_message = on_message, .on_quorum = on_quorum, .on_lost = on_lost,
		.context = group,
	};
	struct timespec now;
	int r;

	if (!group) {
		*ret_why = "out of memory";
		return -ENOMEM;
	}
	group->loop = loop;
	group->handlers = *handlers;
	TAILQ_INIT(&group->frames);
	TAILQ_INIT(&group->questions);
	/* Larger than those of an earlier life, which agents may still know. */
	(void)clock_gettime(CLOCK_REALTIME, &now);
	group->next_id = ((uint64_t)now.tv_sec << 24) + ((uint64_t)now.tv_nsec >> 10);
	r = standalone ? group_local_open(loop, self, &port_handlers, &group->port, ret_why)
		       : group_cpg_open(loop, LVM_GROUP_NAME, &port_handlers, &group->port, ret_why);
	if (r < 0) {
		free(group);
		return r;
	}
	*ret_group = group;
	return 0;
}

void lvm_group_close(struct lvm_group *group)
{
	struct question *question;
	struct frame *frame;

	if (!group)
		return;
	while ((question = TAILQ_FIRST(&group->questions)))
		free_question(question);
	while ((frame = TAILQ_FIRST(&group->frames))) {
		TAILQ_REMOVE(&group->frames, frame, link);
		free(frame);
	}
	if (group->retrying)
		(void)qb_loop_timer_del(group->loop, group->retry_timer);
	if (group->telling)
		(void)qb_loop_timer_del(group->loop, group->failed_timer);
	group->port->ops->close(group->port);
	free(group);
}

const struct group_info *lvm_group_info(const struct lvm_group *group)
{
	return &group->port->info;
}

uint32_t lvm_group_find(const struct lvm_group *group, const char *node)
{
	const struct group_info *info = &group->port->info;
	char id[16];

	for (uint32_t i = 0; i < info->node_count; i++) {
		(void)snprintf(id, sizeof(id), "%u", info->node[i]);
		if (strcmp(node, id) == 0 || (*node && strcmp(node, info->node_name[i]) == 0))
			return info->node[i];
	}
	return 0;
}

const char *lvm_group_name(const struct lvm_group *group, uint32_t node, char *buf, size_t size)
{
	const struct group_info *info = &group->port->info;

	for (uint32_t i = 0; i < info->node_count; i++)
		if (info->node[i] == node && info->node_name[i][0] != '\0') {
			(void)snprintf(buf, size, "%s", info->node_name[i]);
			return buf;
		}
	(void)snprintf(buf, size, "node %u", node);
	return buf;
}

size_t lvm_group_members(const struct lvm_group *group, struct lvm_member *ret_member, size_t max)
{
	size_t count = group->member_count < max ? group->member_count : max;

	memcpy(ret_member, group->member, count * sizeof(*ret_member));
	return group->member_count;
}

bool lvm_group_has(const struct lvm_group *group, uint32_t node)
{
	for (size_t i = 0; i < group->member_count; i++)
		if (group->member[i].node == node)
			return true;
	return false;
}

bool lvm_group_all_adopted(const struct lvm_group *group)
{
	for (size_t i = 0; i < group->member_count; i++)
		if (!group->member[i].told || !group->member[i].said.adopted)
			return false;
	return group->member_count > 0;
}

void lvm_group_say(struct lvm_group *group, const struct ask_member *self)
{
	group->has_said = true;
	group->said = *self;
	say(group);
}

int lvm_group_notify(struct lvm_group *group, enum ask_notice what, const char *vg,
		     const char *vg_uuid)
{
	struct ask_message message = { .kind = ASK_NOTICE, .notice = { .what = what } };

	(void)snprintf(message.notice.vg, sizeof(message.notice.vg), "%s", vg);
	(void)snprintf(message.notice.vg_uuid, sizeof(message.notice.vg_uuid), "%s", vg_uuid);
	return send_message(group, &message, false);
}

static void ask_one(struct lvm_group *group, struct question *question, size_t i,
		    const struct ask_request *request)
{
	const struct ask_message message = {
		.kind = ASK_REQUEST, .id = question->id, .to = question->asked[i].node, .request = *request,
	};

	if (!lvm_group_has(group, question->asked[i].node))
		question->asked[i].failed = -ENOTCONN;
	else if (send_message(group, &message, false) < 0)
		question->asked[i].failed = -ENOBUFS;
	else
		return;
	tell_failed_later(group);
}

int lvm_group_ask(struct lvm_group *group, const struct ask_request *request, uint32_t deadline_ms,
		  const uint32_t *node, size_t count, lvm_group_on_answer on_answer, void *context,
		  uint64_t *ret_id)
{
	struct question *question;

	assert(count > 0 && count <= BELAY_NODES_MAX);
	if (group->lost)
		return -ENOTCONN;
	if (group->question_count >= QUESTIONS_MAX)
		return -ENOBUFS;
	question = calloc(1, sizeof(*question));
	if (!question)
		return -ENOMEM;
	question->group = group;
	question->id = group->next_id++;
	question->on_answer = on_answer;
	question->context = context;
	question->count = count;
	/* Without its timer it would wait for ever for who hangs. */
	question->deadline_ms = deadline_ms;
	if (!start_timer(question)) {
		free(question);
		return -ENOMEM;
	}
	TAILQ_INSERT_TAIL(&group->questions, question, link);
	group->question_count++;
	for (size_t i = 0; i < count; i++) {
		question->asked[i].node = node[i];
		ask_one(group, question, i, request);
	}
	*ret_id = question->id;
	return 0;
}

void lvm_group_cancel(struct lvm_group *group, uint64_t id)
{
	struct question *question = find_question(group, id);

	for (size_t i = 0; question && i < question->count; i++) {
		const struct ask_message message = {
			.kind = ASK_CANCEL, .id = id, .to = question->asked[i].node,
		};

		/* If it cannot be told, it does it in vain. */
		if (!question->asked[i].ended)
			(void)send_message(group, &message, true);
	}
}

int lvm_group_answer(struct lvm_group *group, uint32_t node, uint64_t id, const struct ask_answer *answer)
{
	const struct ask_message message = { .kind = ASK_ANSWER, .id = id, .to = node, .answer = *answer };

	if (!lvm_group_has(group, node))
		return -ENOTCONN;
	return send_message(group, &message, answer->kind == ASK_END);
}
