/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What belayd's engine does around a core, without belayd: it feeds events,
 * packs ops into frames, remembers and replays, sends snapshots in parts.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/sim/sim.h"

/* One step in so many is followed by a full check of the core. */
#define CHECK_PERCENT 4

struct emitter {
	struct sim *sim;
	struct node *node;
};

bool node_info(const struct node *at, uint32_t of, struct belay_node_info *ret_info)
{
	for (uint32_t i = 0; belay_core_node(at->core, i, ret_info); i++)
		if (ret_info->node == of)
			return true;
	return false;
}

bool node_life_closed(const struct node *at, uint32_t of, uint64_t incarnation)
{
	struct belay_node_info info;

	if (!node_info(at, of, &info))
		return false;
	return info.incarnation > incarnation ||
	       (info.incarnation == incarnation && info.standing == BELAY_NODE_CLOSED);
}

bool node_life_left(const struct node *at, uint32_t of, uint64_t incarnation)
{
	struct belay_node_info info;

	return node_info(at, of, &info) && info.incarnation == incarnation && info.standing == BELAY_NODE_LEFT;
}

/* ---- life of a process ---- */

static void quorum_due(struct sim *sim, struct node *node)
{
	if (node->quorum_due)
		return;
	node->quorum_due = true;
	sim_due(sim, 1 + random_below(&sim->random, sim->temper.quorum_us), DUE_QUORUM, node->id, 0);
}

void node_forget(struct node *node)
{
	node->joined = node->stopped = node->leaving = node->quitting = node->synced = node->frozen = false;
	node->urgent = node->flush = node->ask = node->flush_due = node->outgoing_due = false;
	node->turn_due = false;
	node->holding = node->replay = false;
	node->tick_us = UINT64_MAX;
	node->busy_until_us = 0;
	node->snapshot_to = 0;
	node->incoming_part = 0;
	node->pending.count = node->held.count = node->replaying.count = 0;
	node->outgoing.count = node->outgoing_at = 0;
	node->inbox.count = node->inbox_at = 0;
	node->recalled.count = node->lend_held.count = 0;
	node->taking_back = false;
}

void node_forget_clients(struct node *node)
{
	memset(node->client, 0, sizeof(node->client));
}

void node_start(struct sim *sim, struct node *node)
{
	struct message *join = arena_alloc(&sim->arena, sizeof(*join));
	struct belay_core_config config = sim->config;
	size_t size;

	assert(node->powered && node->process == 0);
	/* Whoever was served by a former belayd of this node has lost its locks by now. */
	belief_void(sim, node, 0);
	node_forget(node);
	node_forget_clients(node);
	node->process = ++node->processes;
	node->start = 0;
	node->client_last = node->request_last = 0;
	node->seq = 1;
	node->path = mix64(++sim->incarnation);
	config.self = node->id;
	/* The time of day, in the clock's scale. */
	if (!sim->options.scenario)
		config.token_base += sim->now_us * 4295;
	config.incarnation = node->incarnation = sim->incarnation * 1000;
	size = belay_core_size(&config);
	assert(size > 0);
	/* Fresh pages: what the core does not touch costs nothing. */
	if (node->memory)
		munmap(node->memory, node->memory_size);
	node->memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert(node->memory != MAP_FAILED);
	node->memory_size = size;
	node->core = belay_core_init(node->memory, &config);
	assert(node->core);
	volume_process_begins(sim, node);
	trace(sim, "n%u starts belayd, incarnation %u", node->id, (unsigned)node->incarnation);
	belay_core_stats(node->core, &node->stats);
	join->kind = MESSAGE_JOIN;
	cpg_send(sim, node, join);
	cpg_kick(sim, node);
	/* votequorum tells where things stand, before or after the join. */
	quorum_due(sim, node);
}

/* The process is gone; its corosync, if there is one, tells the group. */
void node_kill(struct sim *sim, struct node *node)
{
	struct message *leave = arena_alloc(&sim->arena, sizeof(*leave));

	assert(node->process != 0);
	trace(sim, "n%u: belayd ends", node->id);
	leave->kind = MESSAGE_LEAVE;
	cpg_send(sim, node, leave);
	volume_process_ends(sim, node);
	node_forget(node);
	/* Where clients have loans, they go on with what they have. */
	if (sim->temper.ipc_us == 0)
		node_forget_clients(node);
	node->process = 0;
	cpg_kick(sim, node);
}

static void tick_due(struct sim *sim, struct node *node)
{
	uint64_t deadline = belay_core_deadline(node->core), in = 0;

	if (deadline == UINT64_MAX || deadline >= node->tick_us)
		return;
	if (deadline > sim->now_us)
		in = deadline - sim->now_us;
	/* Timers are late, sometimes very. */
	in += random_chance(&sim->random, 90) ? 0 : random_below(&sim->random, sim->temper.late_us + 1);
	node->tick_us = sim->now_us + in;
	sim_due(sim, in, DUE_TICK, node->id, 0);
}

void node_wake(struct sim *sim, struct node *node)
{
	node->flush_due = node->outgoing_due = false;
	node->tick_us = UINT64_MAX;
	tick_due(sim, node);
	node_end_turn(sim, node);
	cpg_kick(sim, node);
	quorum_due(sim, node);
	ipc_wake(sim, node);
}

/* ---- what the core wants done ---- */

static void restart(struct sim *sim, struct node *node, uint64_t incarnation)
{
	sim->tally.restarts++;
	if (belief_any(sim, node->id, node->incarnation))
		sim_fail(sim, "n%u begins a new life while its clients still believe in their locks", node->id);
	if (ipc_any_loan(node))
		sim_fail(sim, "n%u begins a new life, and a client still has a loan of the old one", node->id);
	if (incarnation <= node->incarnation)
		sim_fail(sim, "n%u: incarnation does not grow", node->id);
	node->incarnation = incarnation;
	node->pending.count = 0;
	node->seq = 1;
	node->urgent = node->flush = node->ask = false;
	belief_new_life(sim, node);
	volume_new_life(sim, node);
}

static void on_send(struct sim *sim, struct node *node, const struct belay_action *action)
{
	if (action->op->type == BELAY_OP_FENCED) {
		node->fenced = action->op->node;
		node->fenced_incarnation = action->op->incarnation;
	}
	judge_sent(sim, node, action->op);
	(void)vector_push(&node->pending, sizeof(*action->op), action->op);
	node->urgent |= action->urgent;
}

/* (5) FENCED is for a life that has ended, or is over for its sender already. */
static void check_fenced(struct sim *sim, struct node *node)
{
	const struct node *victim = &sim->node[node->fenced];
	uint64_t incarnation = node->fenced_incarnation;

	node->fenced = 0;
	if (node_life_closed(node, victim->id, incarnation) && !volume_any(sim, victim))
		return;
	if (belief_any(sim, victim->id, incarnation) || volume_any(sim, victim) ||
	    (victim->incarnation <= incarnation && (victim->process || ipc_may_believe(victim))))
		sim_fail(sim, "n%u sends FENCED for n%u, which has not stopped", node->id, victim->id);
}

/* What concerns this node's clients. */
static void on_client(struct sim *sim, struct node *node, const struct belay_action *action)
{
	struct recall recall = { action->client, action->loan };

	switch (action->type) {
	case BELAY_ACTION_REPLY:
		ipc_reply(sim, node, action);
		break;
	case BELAY_ACTION_LOST:
		sim->tally.lost++;
		ipc_lost(sim, node, action->client);
		break;
	case BELAY_ACTION_LEND_HELD:
		ipc_lend_held(node, action);
		break;
	case BELAY_ACTION_LEND:
		ipc_lend(sim, node, action);
		break;
	case BELAY_ACTION_RECALL:
		(void)vector_push(&node->recalled, sizeof(recall), &recall);
		break;
	default:
		assert(false && "not about a client");
	}
}

/* What concerns its standing in the cluster. */
static void on_standing(struct sim *sim, struct node *node, const struct belay_action *action)
{
	switch (action->type) {
	case BELAY_ACTION_RESTART:
		restart(sim, node, action->incarnation);
		break;
	case BELAY_ACTION_SYNCED:
		node->synced = true;
		break;
	case BELAY_ACTION_FROZEN:
		node->frozen = action->frozen;
		ipc_frozen(node);
		break;
	case BELAY_ACTION_LEFT:
		node->leaving = true;
		break;
	case BELAY_ACTION_ISOLATE:
		sim_fail(sim, "n%u isolates itself: %s", node->id, action->reason);
		break;
	case BELAY_ACTION_NODE_LEFT:
		fault_left(sim, node, action->node);
		node->heard_left = true;
		break;
	case BELAY_ACTION_NODE_CLOSED:
	case BELAY_ACTION_NODE_JOINED:
		if (action->type == BELAY_ACTION_NODE_CLOSED && action->volumes > 0)
			fault_left(sim, node, action->node);
		judge_closed(sim, node);
		break;
	default:
		assert(false && "no such action");
	}
}

static void emit(void *context, const struct belay_action *action)
{
	struct emitter *e = context;
	struct sim *sim = e->sim;
	struct node *node = e->node;

	trace_action(sim, node, action);
	sim_hash(sim, ((uint64_t)action->type << 56) ^ ((uint64_t)action->client << 40) ^ action->cookie ^
		 ((uint64_t)(uint32_t)action->result << 8) ^ (action->token << 4));
	switch (action->type) {
	case BELAY_ACTION_SEND:
		on_send(sim, node, action);
		break;
	case BELAY_ACTION_FLUSH:
		node->flush = true;
		node->ask |= action->ask;
		break;
	case BELAY_ACTION_HINT:
		hint_send(sim, node, action);
		break;
	case BELAY_ACTION_REPLY:
	case BELAY_ACTION_LOST:
	case BELAY_ACTION_LEND_HELD:
	case BELAY_ACTION_LEND:
	case BELAY_ACTION_RECALL:
		on_client(sim, node, action);
		break;
	case BELAY_ACTION_SNAPSHOT:
		node->snapshot_to |= bit(action->node);
		node->snapshot_incarnation[action->node] = action->incarnation;
		break;
	case BELAY_ACTION_HOLD:
		node->holding = true;
		node->held.count = 0;
		break;
	case BELAY_ACTION_REPLAY:
		node->replay = true;
		break;
	case BELAY_ACTION_FORGET:
		node->holding = false;
		node->held.count = 0;
		break;
	default:
		on_standing(sim, node, action);
	}
}

static void build_snapshot(struct sim *sim, struct node *node, uint32_t to)
{
	struct belay_cursor cursor = { 0 };
	struct belay_record record, *part = NULL;
	struct message *message = NULL;
	uint32_t parts = 0, delegated = 0;

	sim->tally.snapshots++;
	while (belay_core_snapshot_next(node->core, &cursor, &record) == 1) {
		if (!message || message->record_count == sim->temper.record_batch) {
			message = arena_alloc(&sim->arena, sizeof(*message));
			part = arena_alloc(&sim->arena, sizeof(*part) * sim->temper.record_batch);
			message->kind = MESSAGE_SNAPSHOT;
			message->record = part;
			message->path = node->path;
			message->start = node->start;
			message->head = (struct wire_snapshot){
				.node = node->id, .incarnation = node->incarnation, .to = to,
				.to_incarnation = node->snapshot_incarnation[to],
				.place = node->stats.place, .part = parts++,
			};
			(void)vector_push(&node->outgoing, sizeof(message), &message);
		}
		part[message->record_count++] = record;
		if (record.type == BELAY_RECORD_DELEGATION) {
			sim->tally.apart += record.resource_number == delegated;
			delegated = record.resource_number;
		}
	}
	assert(message);
	message->head.last = true;
	judge_copied(sim, node->id, to);
	trace(sim, "n%u   snapshot for n%u: %u parts", node->id, to, parts);
}

static void outgoing_due(struct sim *sim, struct node *node)
{
	if (node->outgoing_due || node->outgoing_at == node->outgoing.count)
		return;
	node->outgoing_due = true;
	sim_due(sim, 1 + random_below(&sim->random, sim->temper.outgoing_us), DUE_OUTGOING, node->id, 0);
}

void node_outgoing(struct sim *sim, struct node *node)
{
	struct message **part = node->outgoing.data;

	node->outgoing_due = false;
	if (!node_runs(node))
		return;
	if (sim->now_us >= node->busy_until_us) {
		struct message *message = part[node->outgoing_at++];

		if (sim->options.wire)
			codec_trip(sim, message);
		cpg_send(sim, node, message);
		if (node->outgoing_at == node->outgoing.count)
			node->outgoing.count = node->outgoing_at = 0;
	}
	outgoing_due(sim, node);
}

/* ---- events into the core ---- */

void node_tick(struct sim *sim, struct node *node)
{
	struct belay_event event = { .type = BELAY_EVENT_TICK };

	if (sim->now_us < node->tick_us || node->stopped)
		return;
	node->tick_us = UINT64_MAX;
	(void)node_step(sim, node, &event);
	node_end_turn(sim, node);
}

static void feed(struct sim *sim, struct node *node, const struct ordered *o);

static void replay(struct sim *sim, struct node *node)
{
	struct vector held = node->held;

	node->replay = false;
	node->holding = false;
	node->held = node->replaying;
	node->replaying = held;
	node->held.count = 0;
	trace(sim, "n%u   replays %zu events", node->id, held.count);
	for (size_t i = 0; i < held.count && !sim_failed(sim) && node->process; i++)
		feed(sim, node, &((struct ordered *)held.data)[i]);
	trace(sim, "n%u   has replayed", node->id);
}

int node_step(struct sim *sim, struct node *node, struct belay_event *event)
{
	struct emitter emitter = { sim, node };
	struct belay_actions actions = { emit, &emitter };
	int r;

	if (sim_failed(sim))
		return -ECANCELED;
	event->now_us = sim->now_us;
	trace_event(sim, node, event);
	sim->tally.steps++;
	r = belay_core_step(node->core, event, &actions);
	trace_state(sim, node, event);
	sim_hash(sim, ((uint64_t)event->type << 32) ^ (uint32_t)r);
	if (r == 0) {
		sim->tally.hints_used -= node->stats.hints_used;
		belay_core_stats(node->core, &node->stats);
		sim->tally.hints_used += node->stats.hints_used;
		sim->tally.shared += node->stats.resources[BELAY_STATE_SHARED] > 0;
		sim_hash(sim, node->stats.digest);
	}
	if (random_chance(&sim->random, CHECK_PERCENT))
		belay_core_check(node->core);
	if (node->recalled.count > 0)
		ipc_take_back(sim, node);
	for (uint32_t to = 1; node->snapshot_to; to++) {
		if (node->snapshot_to & bit(to))
			build_snapshot(sim, node, to);
		node->snapshot_to &= ~bit(to);
	}
	if (node->heard_left)
		belief_left(sim, node);
	node->heard_left = false;
	if (node->fenced)
		check_fenced(sim, node);
	tick_due(sim, node);
	return r;
}

static void feed_view(struct sim *sim, struct node *node, const struct item *item)
{
	uint32_t list[3][SIM_NODES], count[3] = { 0 };
	const node_mask mask[3] = { item->members, item->joined, item->left };
	struct belay_event event = { .type = BELAY_EVENT_VIEW };

	for (unsigned k = 0; k < 3; k++)
		for (uint32_t i = 1; i <= sim->nodes; i++)
			if (mask[k] & bit(i))
				list[k][count[k]++] = i;
	event.view.member = list[0];
	event.view.member_count = count[0];
	event.view.joined = list[1];
	event.view.joined_count = count[1];
	event.view.left = list[2];
	event.view.left_count = count[2];
	sim->tally.views++;
	(void)node_step(sim, node, &event);
}

static void feed_frame(struct sim *sim, struct node *node, const struct message *message)
{
	struct belay_frame frame = {
		.node = message->node, .incarnation = message->incarnation, .seq = message->seq,
		.ask = message->ask, .ack_count = message->ack_count,
	};
	struct belay_event event = { .type = BELAY_EVENT_FRAME, .frame = &frame };

	if (message->ack_count > 0)
		memcpy(frame.ack, message->ack, message->ack_count * sizeof(*message->ack));
	(void)node_step(sim, node, &event);
}

/* One ordered event, with the judges looking on. */
static void feed(struct sim *sim, struct node *node, const struct ordered *o)
{
	struct judge_before before;

	if (sim_failed(sim))
		return;
	judge_before(sim, node, o, &before);
	sim->delivering = o->item.message ? o->item.message->node : 0;
	if (node->holding)
		(void)vector_push(&node->held, sizeof(*o), o);
	/* Whoever has no state has no history, but what is said in this view. */
	if (!o->item.message && !node->stats.synced)
		node->path = mix64(o->item.view);
	else
		node->path = mix64(node->path ^ mix64(o->item.identity ^ ((uint64_t)o->op << 40)));
	if (!o->item.message) {
		feed_view(sim, node, &o->item);
	} else if (o->op == SIM_NONE) {
		feed_frame(sim, node, o->item.message);
	} else {
		struct belay_op op = o->item.message->op[o->op];
		struct belay_event event = { .type = BELAY_EVENT_OP, .op = &op };

		sim->tally.ops[op.type]++;
		if (node->corrupt && op.type == BELAY_OP_REQ) {
			op.range.start++;
			op.range.end++;
			node->corrupt = false;
		}
		if ((op.type == BELAY_OP_HELLO && !op.synced) || op.type == BELAY_OP_LEAVE)
			sim->ending = sim->delivering;
		else if (op.type == BELAY_OP_FENCED)
			sim->ending = op.node;
		(void)node_step(sim, node, &event);
		if (op.type == BELAY_OP_START && !before.synced && node->stats.synced)
			node->start = o->item.message->number;
		sim->ending = 0;
	}
	if (!sim_failed(sim))
		judge_after(sim, node, o, &before);
	if (node->replay)
		replay(sim, node);
}

static void read_snapshot(struct sim *sim, struct node *node, const struct message *message)
{
	const struct wire_snapshot *head = &message->head;

	if (head->to != node->id || head->to_incarnation != node->incarnation)
		return;
	if (head->part == 0)
		node->incoming = *head;
	else if (head->part != node->incoming_part || head->node != node->incoming.node ||
		 head->incarnation != node->incoming.incarnation || head->place != node->incoming.place)
		return;
	node->incoming_part = head->part + 1;
	for (uint32_t i = 0; i < message->record_count; i++) {
		struct belay_record record = message->record[i];
		struct belay_event event = { .type = BELAY_EVENT_RECORD, .record = &record };

		(void)node_step(sim, node, &event);
	}
	if (node->replay) {
		/* The state is the donor's at the cut; so is its history. */
		node->path = message->path;
		node->start = message->start;
		judge_loaded(sim, node);
		judge_volumes_loaded(sim, node);
		belief_left(sim, node);
		replay(sim, node);
	}
}

static void read_item(struct sim *sim, struct node *node, const struct item *item)
{
	struct ordered o = { .item = *item, .op = SIM_NONE };

	if (item->message && item->message->kind == MESSAGE_SNAPSHOT) {
		read_snapshot(sim, node, item->message);
		volume_stepped(sim, node);
		return;
	}
	feed(sim, node, &o);
	for (uint32_t i = 0; item->message && i < item->message->op_count; i++) {
		o.op = i;
		feed(sim, node, &o);
	}
	/* Not in the middle of a message. */
	volume_stepped(sim, node);
}

void node_read(struct sim *sim, struct node *node, uint32_t count)
{
	uint32_t process = node->process;
	struct item item;

	while (count-- > 0 && !sim_failed(sim) && node->process == process && cpg_next(sim, node, &item))
		read_item(sim, node, &item);
	if (node->process && node->process == process)
		node_end_turn(sim, node);
}

void node_turn(struct sim *sim, struct node *node)
{
	node->turn_due = false;
	if (!node->powered || node->stopped || node->lagging)
		return;
	node_read(sim, node, random_between(&sim->random, 1, sim->temper.burst));
	cpg_kick(sim, node);
}

void node_quorum(struct sim *sim, struct node *node)
{
	struct belay_event event = { .type = BELAY_EVENT_QUORUM };

	node->quorum_due = false;
	if (!node->powered)
		return;
	if (node->corosync_stopped) {
		/* It answers when it goes on. */
		node->quorum_due = true;
		sim_due(sim, 1000, DUE_QUORUM, node->id, 0);
		return;
	}
	node->quorate = cpg_quorate(sim, node);
	if (!node_runs(node))
		return;
	event.quorum.quorate = node->quorate;
	(void)node_step(sim, node, &event);
	node_end_turn(sim, node);
}

/* ---- frames ---- */

static void send_frame(struct sim *sim, struct node *node, uint32_t first, uint32_t count)
{
	struct message *message = arena_alloc(&sim->arena, sizeof(*message));
	struct belay_frame frame;

	belay_core_frame(node->core, &frame);
	if (frame.node != node->id || frame.incarnation != node->incarnation)
		sim_fail(sim, "n%u: the frame names another life", node->id);
	message->kind = MESSAGE_FRAME;
	message->node = node->id;
	message->incarnation = frame.incarnation;
	message->seq = node->seq;
	message->ask = node->ask;
	message->ack_count = frame.ack_count;
	if (frame.ack_count > 0) {
		struct belay_ack *ack = arena_alloc(&sim->arena, sizeof(*ack) * frame.ack_count);

		memcpy(ack, frame.ack, sizeof(*ack) * frame.ack_count);
		message->ack = ack;
	}
	if (count > 0) {
		message->op = arena_alloc(&sim->arena, sizeof(*message->op) * count);
		memcpy(message->op, (struct belay_op *)node->pending.data + first, sizeof(*message->op) * count);
	}
	message->op_count = count;
	node->seq += count;
	node->ask = false;
	if (sim->options.wire)
		codec_trip(sim, message);
	cpg_send(sim, node, message);
}

/* All that is pending leaves, in as few frames as this world's frames allow. */
static void send_all(struct sim *sim, struct node *node)
{
	uint32_t count = (uint32_t)node->pending.count, done = 0;

	do {
		uint32_t n = count - done < sim->temper.frame_ops ? count - done : sim->temper.frame_ops;

		send_frame(sim, node, done, n);
		done += n;
	} while (done < count);
	node->pending.count = 0;
	node->urgent = node->flush = false;
}

static void leave(struct sim *sim, struct node *node)
{
	sim->tally.leaves++;
	if (belief_any(sim, node->id, node->incarnation) || ipc_any_loan(node))
		sim_fail(sim, "n%u has left cleanly, and its clients still hold locks or loans", node->id);
	node_kill(sim, node);
}

void node_flush(struct sim *sim, struct node *node)
{
	node->flush_due = false;
	if (!node_runs(node) || sim_failed(sim))
		return;
	if (sim->now_us < node->busy_until_us) {
		/* TRY_AGAIN: what is pending grows, and leaves together. */
		node->flush_due = true;
		sim_due(sim, node->busy_until_us - sim->now_us, DUE_FLUSH, node->id, 0);
		return;
	}
	if (node->pending.count > 0 || node->flush)
		send_all(sim, node);
	if (node->leaving)
		leave(sim, node);
}

/* A loop turn ends now, or (to take more with it) a little later. */
void node_end_turn(struct sim *sim, struct node *node)
{
	uint32_t in = 0;
	bool must;

	volume_stepped(sim, node);
	must = node->urgent || node->flush || node->leaving;
	outgoing_due(sim, node);
	if (node->flush_due || (!must && node->pending.count == 0))
		return;
	if (!must)
		in = 1 + random_below(&sim->random, sim->temper.company_us);
	else if (random_chance(&sim->random, sim->temper.linger_percent))
		in = random_below(&sim->random, sim->temper.linger_us);
	node->flush_due = true;
	sim_due(sim, in, DUE_FLUSH, node->id, 0);
}
