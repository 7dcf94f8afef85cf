/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Judges that see the whole cluster: who came first, who waits for whom, what
 * was delivered where. The numbers in brackets are the assertions listed in
 * README.md.
 */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "tests/sim/sim.h"

/* A node may keep what it owns for its minimum hold; timers and frames are late. */
#define KEEP_SLACK_US 30000
/* What the core's token clock jumps when a life is over, and twice that at a START. */
#define JUMP_US 4000000
/* One ordered event in so many is followed by a look at what departed nodes hold; a view is always. */
#define DEPARTED_PLACES 32
/* Long after a node has said what it has, all have heard it. */
#define CALM_AFTER_US 500000

static const char *const hold_name[] = { "not at all", "shared", "exclusively" };

static uint64_t op_order(const struct message *message, uint32_t op)
{
	return message->order * 4096 + op;
}

/* ---- which request an op is about ---- */

static bool same_request(const struct sim *sim, const struct request *q, uint32_t node, uint64_t incarnation,
			 uint32_t number)
{
	const struct owner *o = &sim->owner[q->owner];

	return q->used && q->number == number && o->id.node == node && o->incarnation == incarnation;
}

static struct request *request_numbered(struct sim *sim, uint32_t node, uint64_t incarnation, uint32_t number)
{
	for (uint32_t i = 0; i < sim->request_top; i++)
		if (same_request(sim, &sim->request[i], node, incarnation, number))
			return &sim->request[i];
	return NULL;
}

static bool asks_for(const struct sim *sim, const struct request *q, const struct belay_op *op)
{
	const struct owner *o = &sim->owner[q->owner];
	struct belay_range range = sim_range(q->first, q->last);

	return q->key == sim_key(&op->key) && o->id.node == op->owner.node && o->id.client == op->owner.client &&
	       o->id.key == op->owner.key && o->id.kind == op->owner.kind && range.start == op->range.start &&
	       range.end == op->range.end && q->mode == op->mode && q->wait == op->wait && q->test == op->test;
}

/* What a node asks for, a client has asked for. */
void judge_sent(struct sim *sim, struct node *node, const struct belay_op *op)
{
	struct request *q;

	if (sim_is_volume(sim_key(&op->key)) && op->type != BELAY_OP_REQ && op->type != BELAY_OP_REL &&
	    op->type != BELAY_OP_IDLE)
		sim_fail(sim, "n%u sends what makes no sense of a volume, which nobody owns", node->id);
	if (op->type != BELAY_OP_REQ && op->type != BELAY_OP_WAITING)
		return;
	q = request_numbered(sim, node->id, node->incarnation, op->request);
	if (!q || !asks_for(sim, q, op)) {
		sim_fail(sim, "n%u sends request %u, which no client made", node->id, op->request);
		return;
	}
	q->sent = true;
}

void judge_ordered(struct sim *sim, struct message *message)
{
	if (message->op_count > 0)
		(void)vector_push(&sim->frames, sizeof(message), &message);
	for (uint32_t i = 0; i < message->op_count; i++) {
		const struct belay_op *op = &message->op[i];
		struct request *q;

		if (op->type != BELAY_OP_REQ && op->type != BELAY_OP_WAITING)
			continue;
		q = request_numbered(sim, message->node, message->incarnation, op->request);
		if (!q)
			continue;
		q->order = op_order(message, i);
		if (q->first_order == 0)
			q->first_order = q->order;
		q->delivered = q->copied = 0;
	}
}

/* ---- around an ordered event ---- */

/* One digest for one history, whoever computes it. */
static void check_agreement(struct sim *sim, struct node *node)
{
	uint32_t i = (uint32_t)node->path & (SIM_VERDICTS - 1), probes = 0;
	struct verdict *v;

	for (;; i = (i + 1) & (SIM_VERDICTS - 1)) {
		v = &sim->verdict[i];
		if (v->run != sim->run || v->path == node->path)
			break;
		if (++probes == 64)
			return;	/* the table is full: what is in it still judges */
	}
	if (v->run != sim->run) {
		*v = (struct verdict){
			.path = node->path, .digest = node->stats.digest, .place = node->stats.place,
			.run = sim->run, .node = node->id,
		};
		return;
	}
	if (v->digest != node->stats.digest || v->place != node->stats.place)
		sim_fail(sim, "n%u and n%u took the same ordered events and disagree: place %" PRIu64 " and %" PRIu64
			 ", and the digest%s", v->node, node->id, v->place, node->stats.place,
			 v->digest != node->stats.digest ? " differs" : " is the same");
}

/* All of the message has arrived at one more core: what may its sender rest on it? */
static void note_evidence(struct sim *sim, const struct message *message)
{
	for (uint32_t i = 0; i < message->op_count; i++) {
		const struct belay_op *op = &message->op[i];
		uint32_t key = sim_key(&op->key);
		struct evidence *e;

		if (key == SIM_NONE || (op->type != BELAY_OP_REQ && op->type != BELAY_OP_CLAIM))
			continue;
		e = &sim->node[message->node].evidence[key];
		if ((message->delivered & bit(message->node)) && message->incarnation > e->alone)
			e->alone = message->incarnation;
		if (mask_count(message->delivered) >= sim_majority(sim) && message->incarnation > e->majority)
			e->majority = message->incarnation;
	}
}

static void set_bit(node_mask *mask, uint32_t node, bool on)
{
	*mask = on ? *mask | bit(node) : *mask & ~bit(node);
}

void judge_copied(struct sim *sim, uint32_t donor, uint32_t to)
{
	struct message **frame = sim->frames.data;

	for (size_t i = 0; i < sim->frames.count; i++)
		set_bit(&frame[i]->copied, to, frame[i]->delivered & bit(donor));
	for (uint32_t i = 0; i < sim->request_top; i++)
		set_bit(&sim->request[i].copied, to, sim->request[i].delivered & bit(donor));
}

void judge_loaded(struct sim *sim, struct node *node)
{
	struct message **frame = sim->frames.data;

	for (size_t i = 0; i < sim->frames.count; i++) {
		if (!(frame[i]->copied & bit(node->id)) || (frame[i]->delivered & bit(node->id)))
			continue;
		frame[i]->delivered |= bit(node->id);
		note_evidence(sim, frame[i]);
	}
	for (uint32_t i = 0; i < sim->request_top; i++) {
		struct request *q = &sim->request[i];

		if (!(q->copied & bit(node->id)) || (q->delivered & bit(node->id)))
			continue;
		q->delivered |= bit(node->id);
		q->delivered_us[node->id] = sim->now_us;
	}
}

static void note_delivery(struct sim *sim, struct node *node, const struct ordered *o)
{
	struct message *message = o->item.message;
	const struct belay_op *op = &message->op[o->op];
	struct request *q;

	if (o->op + 1 == message->op_count) {
		message->delivered |= bit(node->id);
		note_evidence(sim, message);
	}
	if (op->type != BELAY_OP_REQ && op->type != BELAY_OP_WAITING)
		return;
	q = request_numbered(sim, message->node, message->incarnation, op->request);
	if (!q || q->order != op_order(message, o->op) || (q->delivered & bit(node->id)))
		return;
	q->delivered |= bit(node->id);
	q->delivered_us[node->id] = sim->now_us;
}

/* It was not taken after all: of a life that is over, or not begun yet. */
static void note_dropped(struct sim *sim, const struct node *node, const struct ordered *o)
{
	const struct message *message = o->item.message;
	const struct belay_op *op = &message->op[o->op];
	struct request *q = NULL;

	if (op->type == BELAY_OP_REQ || op->type == BELAY_OP_WAITING)
		q = request_numbered(sim, message->node, message->incarnation, op->request);
	if (q && q->order == op_order(message, o->op))
		q->delivered &= ~bit(node->id);
}

void judge_before(struct sim *sim, struct node *node, const struct ordered *o, struct judge_before *ret_before)
{
	const struct message *message = o->item.message;
	struct belay_node_info info;

	/* It is delivered as soon as the core takes it: what it answers at once may rest on it. */
	if (message && o->op != SIM_NONE)
		note_delivery(sim, node, o);
	*ret_before = (struct judge_before){
		.digest = node->stats.digest, .dropped = node->stats.ops_dropped, .synced = node->stats.synced,
	};
	if (message && node_info(node, message->node, &info)) {
		ret_before->closed = info.incarnation > message->incarnation ||
				     (info.incarnation == message->incarnation &&
				      (info.standing == BELAY_NODE_LEFT || info.standing == BELAY_NODE_CLOSED));
		ret_before->member = info.incarnation == message->incarnation &&
				     info.standing == BELAY_NODE_MEMBER && info.synced;
	}
}

static uint32_t acknowledgements_needed(const struct sim *sim, const struct node *node)
{
	struct belay_node_info info;
	uint32_t need = 0;

	if (sim->stability == BELAY_STABLE_MAJORITY)
		return sim_majority(sim);
	for (uint32_t i = 0; belay_core_node(node->core, i, &info); i++)
		if (info.node == node->id || info.standing == BELAY_NODE_LEFT || info.standing == BELAY_NODE_UNSEEN ||
		    (info.standing == BELAY_NODE_MEMBER && info.synced))
			need++;
	return need;
}

/* Stable once is stable for good, however many have to acknowledge later. */
static void note_stable(struct sim *sim, struct node *node)
{
	if (sim->stability != BELAY_STABLE_ALL || acknowledgements_needed(sim, node) > 1)
		return;
	for (uint32_t k = 0; k < SIM_KEYS; k++)
		if (node->evidence[k].alone == node->incarnation)
			node->evidence[k].majority = node->incarnation;
	for (uint32_t i = 0; i < sim->request_top; i++)
		if (sim->request[i].used && (sim->request[i].delivered & bit(node->id)) &&
		    sim->owner[sim->request[i].owner].id.node == node->id)
			sim->request[i].stable = true;
}

/* Pieces of files that the table of @node says are held by owners of @of. */
static uint32_t held_by(const struct node *node, uint32_t of)
{
	struct belay_cursor cursor = { 0 };
	struct belay_lock_info info;
	uint32_t held = 0, first, last;

	while (belay_core_locks_next(node->core, &cursor, &info) == 1) {
		if (info.waiting || info.owner.node != of)
			continue;
		sim_atoms(&info.range, &first, &last);
		held += last - first + 1;
	}
	return held;
}

/* (4) What a departed node holds stays until its life is over. */
static void check_departed(struct sim *sim, struct node *node)
{
	struct belay_node_info info;

	for (uint32_t i = 0; belay_core_node(node->core, i, &info); i++) {
		struct departed *d = &node->departed[info.node];
		uint32_t held;

		if (info.standing != BELAY_NODE_LEFT) {
			d->incarnation = 0;
			continue;
		}
		held = held_by(node, info.node);
		if (d->incarnation == info.incarnation && d->own_incarnation == node->incarnation && held < d->held)
			sim_fail(sim, "n%u: n%u has left and is not fenced, but what it held got less",
				 node->id, info.node);
		*d = (struct departed){ info.incarnation, node->incarnation, held };
	}
}

/* ---- who has which volume ---- */

static void list_volumes(struct sim *sim, const struct node *node, uint8_t (*ret_listed)[SIM_VOLUMES])
{
	struct belay_cursor cursor = { 0 };
	struct belay_lock_info info;

	memset(ret_listed, HOLD_NONE, sizeof(node->listed));
	while (belay_core_locks_next(node->core, &cursor, &info) == 1) {
		uint32_t key = sim_key(&info.key);

		if (!sim_is_volume(key))
			continue;
		if (info.state != BELAY_STATE_ARB && info.state != BELAY_STATE_UNOWNED)
			sim_fail(sim, "n%u: volume r%u is delegated", node->id, key);
		if (!info.waiting && info.owner.kind == BELAY_KIND_NODE)
			ret_listed[info.owner.node][key - SIM_FILES] = (uint8_t)hold_of(info.mode);
	}
}

/* May what @of had of the volume have become less by this? */
static bool lessens(const struct ordered *o, uint32_t of, uint32_t key, enum hold now)
{
	const struct belay_op *op = o->item.message && o->op != SIM_NONE ? &o->item.message->op[o->op] : NULL;

	if (!op)
		return false;
	if (op->type == BELAY_OP_FENCED)
		return op->node == of;
	if (o->item.message->node != of || sim_key(&op->key) != key)
		return false;
	return op->type == BELAY_OP_REL || (op->type == BELAY_OP_REQ && !op->test && now == HOLD_SH);
}

/* What a node has of a volume only itself can end, or its fence. */
static void check_listed(struct sim *sim, struct node *node, const struct ordered *o, bool before)
{
	uint8_t listed[SIM_NODES + 1][SIM_VOLUMES];

	list_volumes(sim, node, listed);
	for (uint32_t of = 1; before && of <= sim->nodes; of++)
		for (uint32_t v = 0; v < SIM_VOLUMES; v++)
			if (listed[of][v] < node->listed[of][v] &&
			    !lessens(o, of, SIM_FILES + v, (enum hold)listed[of][v]))
				sim_fail(sim, "n%u: n%u has less of volume r%u than before, and has not said so",
					 node->id, of, SIM_FILES + v);
	memcpy(node->listed, listed, sizeof(listed));
}

static enum hold believed(const struct sim *sim, const struct node *node, uint32_t v)
{
	return node->volume[v].owner == SIM_NONE ? HOLD_NONE :
	       (enum hold)sim->owner[node->volume[v].owner].held[SIM_FILES + v][0];
}

/* The others have kept what it has: it finds that in what they send it. */
void judge_volumes_loaded(struct sim *sim, struct node *node)
{
	list_volumes(sim, node, node->listed);
	for (uint32_t v = 0; v < SIM_VOLUMES; v++)
		if (node->adopted == node->start && node->listed[node->id][v] < believed(sim, node, v))
			sim_fail(sim, "n%u has r%u active, and the table it was sent does not say so", node->id,
				 SIM_FILES + v);
}

static bool settled(const struct sim *sim, const struct node *node)
{
	return node->process && node->stats.synced && !node->stats.frozen && !node->adopting &&
	       node->adopted_us + CALM_AFTER_US < sim->now_us;
}

void judge_volumes(struct sim *sim)
{
	for (uint32_t n = 1; n <= sim->nodes; n++) {
		const struct node *node = &sim->node[n];

		for (uint32_t of = 1; settled(sim, node) && of <= sim->nodes; of++) {
			const struct node *other = &sim->node[of];

			for (uint32_t v = 0; v < SIM_VOLUMES; v++) {
				const struct volume *volume = &other->volume[v];

				if (!settled(sim, other) || other->path != node->path || volume->owner == SIM_NONE ||
				    sim->owner[volume->owner].pending > 0)
					continue;
				sim->tally.volumes_compared++;
				if (node->listed[of][v] != believed(sim, other, v))
					sim_fail(sim, "n%u's table says that n%u has volume r%u %s, and it has it %s",
						 n, of, SIM_FILES + v, hold_name[node->listed[of][v]],
						 hold_name[believed(sim, other, v)]);
			}
		}
	}
}

/* The token clock jumps. */
static void run_ahead(struct sim *sim, uint32_t jumps)
{
	if (sim->ahead_us < sim->now_us)
		sim->ahead_us = sim->now_us;
	sim->ahead_us += (uint64_t)jumps * JUMP_US;
}

void judge_after(struct sim *sim, struct node *node, const struct ordered *o, const struct judge_before *before)
{
	const struct message *message = o->item.message;

	if (message && o->op != SIM_NONE) {
		const struct belay_op *op = &message->op[o->op];

		/*
		 * All state is lost, and with it how far the clock had run ahead. Here everything
		 * happens in milliseconds; the clock is made for fences and starts that take seconds.
		 */
		if (op->type == BELAY_OP_START && !before->synced && node->stats.synced) {
			if (sim->now_us < sim->ahead_us)
				memset(sim->top, 0, sizeof(sim->top));
			run_ahead(sim, 2);
		}
		/* (6) */
		if (before->closed && before->synced && node->stats.synced && before->digest != node->stats.digest)
			sim_fail(sim, "n%u applies an op of a life of n%u that is over", node->id, message->node);
		/* (7) */
		if (before->member && before->synced && node->stats.ops_dropped != before->dropped &&
		    (op->type == BELAY_OP_REQ || op->type == BELAY_OP_REL || op->type == BELAY_OP_RELINQ))
			sim_fail(sim, "n%u drops an op of n%u, which is a member and goes on", node->id, message->node);
		if (before->closed)
			sim->tally.stale++;
		if (node->stats.ops_dropped != before->dropped)
			note_dropped(sim, node, o);
	}
	note_stable(sim, node);
	if (!node->stats.synced)
		return;
	check_listed(sim, node, o, before->synced);
	check_agreement(sim, node);
	if (!message || node->stats.place % DEPARTED_PLACES == 0)
		check_departed(sim, node);
}

/* ---- who waits for whom ---- */

struct hunt {
	struct sim *sim;
	uint64_t since_us;
	bool strict;		/* only what is held and waited for now, by POSIX owners */
	uint32_t target;
	bool seen[SIM_OWNERS];
};

/* A try that is not answered may have got its lock: it can be in the way, though it waits for nobody. */
static bool hunt_request_counts(const struct hunt *h, const struct request *q, bool waits)
{
	if (!q->used || q->test || (waits && !q->wait))
		return false;
	if (!q->orphan)
		return true;
	if (h->strict)
		return false;
	/* That a client is gone is news that travels: what it awaited stands a while longer. */
	return q->orphan_us >= h->since_us || !q->answered;
}

static bool hunt_from(struct hunt *h, uint32_t owner);

/* Does @q wait for owner @i? */
static bool hunt_edge(const struct hunt *h, const struct request *q, uint32_t i)
{
	struct sim *sim = h->sim;
	const struct owner *o = &sim->owner[i];

	if (!o->used || i == q->owner)
		return false;
	if (h->strict)
		return o->believes && o->id.kind == BELAY_KIND_POSIX && owner_holds(o, q);
	if (owner_may_block(o, q, h->since_us))
		return true;
	for (uint32_t k = 0; k < sim->request_top; k++) {
		const struct request *e = &sim->request[k];

		if (hunt_request_counts(h, e, false) && e->owner == i && request_conflicts(sim, e, q) &&
		    !(e->order && q->order && e->first_order > q->order))
			return true;
	}
	return false;
}

static bool hunt_from(struct hunt *h, uint32_t owner)
{
	struct sim *sim = h->sim;

	for (uint32_t k = 0; k < sim->request_top; k++) {
		const struct request *q = &sim->request[k];

		if (!hunt_request_counts(h, q, true) || q->owner != owner)
			continue;
		for (uint32_t i = 0; i < sim->owner_top; i++) {
			if (!hunt_edge(h, q, i))
				continue;
			if (i == h->target)
				return true;
			if (h->seen[i])
				continue;
			h->seen[i] = true;
			if (hunt_from(h, i))
				return true;
		}
	}
	return false;
}

/* Does @owner wait, perhaps through others, for @target, or did it since? */
static bool waits_for(struct sim *sim, uint32_t owner, uint32_t target, uint64_t since_us)
{
	struct hunt h = { .sim = sim, .since_us = since_us, .target = target };

	return hunt_from(&h, owner);
}

/* ---- who came first ---- */

/* A request that @node's core must not pass. */
static bool waits_at(const struct sim *sim, const struct node *node, const struct request *q)
{
	const struct owner *o = &sim->owner[q->owner];

	if (!q->used || !q->wait || q->test || q->cancelled || q->decided)
		return false;
	if (!q->orphan)
		return true;
	/* Its node left: it keeps its place until it is fenced (S6). */
	return !o->gone && o->id.node != sim->ending && !node_life_closed(node, o->id.node, o->incarnation);
}

/* Is a request of the node's own on its way? What comes behind it is not decided before. */
static bool in_flight(const struct sim *sim, const struct node *node, uint32_t key)
{
	for (uint32_t i = 0; i < sim->request_top; i++) {
		const struct request *q = &sim->request[i];

		if (q->used && q->sent && q->key == key && sim->owner[q->owner].id.node == node->id &&
		    !(q->delivered & bit(node->id)))
			return true;
	}
	return false;
}

/* Did @early stand before @late when @node's core granted @late? */
static bool came_first(const struct sim *sim, const struct node *node, const struct request *early,
		       const struct request *late)
{
	bool delivered = early->order != 0 && (early->delivered & bit(node->id));

	if (late->order != 0)
		return delivered && early->order < late->order;
	/*
	 * @late never left its node, which owns the resource. A loan ends when others of that node are
	 * decided; and with hints one may be held back for what its own owner has taken early.
	 */
	if (sim->owner[early->owner].id.node == node->id && !early->orphan)
		return early->taken && !early->sent && !(late->number == 0 && in_flight(sim, node, early->key)) &&
		       early->taken_us + (late->number == 0 || sim->config.hints ? KEEP_SLACK_US : 0) < late->taken_us;
	return delivered &&
	       early->delivered_us[node->id] + sim->config.min_hold_us + KEEP_SLACK_US < late->taken_us;
}

/*
 * Note who is passed by this grant. Whether that was unfair shows when the one
 * passed is answered: it may have been refused before, and wait only for that
 * answer to be stable.
 */
static void note_passed(struct sim *sim, const struct node *node, const struct request *granted)
{
	const struct owner *o = &sim->owner[granted->owner];
	struct request *passed[SIM_REQUESTS];
	uint32_t count = 0;

	/* Its threads unlock and ask at once: what it held at the decision is not known. */
	if (o->unlocks != granted->unlocks || o->pending > 1)
		return;
	for (uint32_t i = 0; i < sim->request_top; i++) {
		struct request *q = &sim->request[i];

		if (q == granted || !waits_at(sim, node, q) || !request_conflicts(sim, q, granted) ||
		    !came_first(sim, node, q, granted))
			continue;
		/* Its threads may have had it, and given it up again, before the news arrived. */
		if (sim->owner[q->owner].pending > 1)
			continue;
		/* A request that waits for the requester's own lock may be passed. */
		if (!owner_may_block(o, q, granted->invoked_us))
			passed[count++] = q;
	}
	for (uint32_t i = 0; i < count; i++) {
		if (passed[i]->passed_us != 0)
			continue;
		trace(sim, "  passes #%u of n%u", passed[i]->number, sim->owner[passed[i]->owner].id.node);
		trace_beliefs(sim, granted->key);
		passed[i]->passed_us = sim->now_us;
		passed[i]->passed_node = node->id;
		passed[i]->passed_client = o->id.client;
	}
}

static void check_passed(struct sim *sim, const struct node *node, const struct request *granted)
{
	const struct owner *o = &sim->owner[granted->owner];

	if (granted->passed_us != 0 && granted->unlocked == 0)
		sim_fail(sim, "n%u client %u gets r%u [%u,%u], but n%u client %u got past it at %" PRIu64 "us",
			 node->id, o->id.client, granted->key, granted->first, granted->last,
			 granted->passed_node, granted->passed_client, granted->passed_us);
}

void judge_closed(struct sim *sim, struct node *node)
{
	node->closed_us = sim->now_us;
	run_ahead(sim, 1);
}

/* ---- stability ---- */

/*
 * (3) A right rests on an op that enough nodes have: the request itself, or
 * an earlier REQ or CLAIM that gave this node the resource.
 */
static void check_stability(struct sim *sim, const struct node *node, const struct request *q)
{
	uint32_t need = acknowledgements_needed(sim, node);
	const struct evidence *e = &node->evidence[q->key];

	if (mask_count(q->delivered) >= need || q->stable)
		return;
	/* A volume is nobody's: each request stands for itself. */
	if (e->majority == node->incarnation && !sim_is_volume(q->key))
		return;
	if (need == 1 && e->alone == node->incarnation)
		return;
	sim_fail(sim, "n%u grants r%u to client %u, and no request for it is with enough nodes (%u)", node->id, q->key,
		 sim->owner[q->owner].id.client, need);
}

void judge_grant(struct sim *sim, struct node *node, const struct request *request)
{
	check_passed(sim, node, request);
	note_passed(sim, node, request);
	check_stability(sim, node, request);
}

void judge_loan_grant(struct sim *sim, const struct node *node, const struct request *what)
{
	struct request late = *what;

	if (node->process == 0)
		return;		/* its clients go on with what it has lent them */
	check_stability(sim, node, what);
	/* Who waits must have ended the loan by now. */
	late.taken_us = late.invoked_us = sim->now_us;
	late.unlocks = sim->owner[what->owner].unlocks;
	note_passed(sim, node, &late);
	if (node->frozen)
		sim_fail(sim, "n%u is frozen, and its client %u takes r%u in a loan", node->id,
			 sim->owner[what->owner].id.client, what->key);
}

/* ---- deadlocks ---- */

/*
 * What a departed node's owners gave back or withdrew since, its table entries
 * still say (S6): a circle through them is one as far as anybody can know.
 */
static bool departed_may_wait(const struct sim *sim, const struct node *node, uint64_t since_us)
{
	if (node->closed_us >= since_us)
		return true;
	for (uint32_t i = 0; i < sim->owner_top; i++) {
		const struct owner *o = &sim->owner[i];

		if (o->used && owner_left(node, o))
			return true;
	}
	return false;
}

void judge_deadlock(struct sim *sim, const struct request *request)
{
	const struct owner *o = &sim->owner[request->owner];

	if (o->id.kind != BELAY_KIND_POSIX)
		sim_fail(sim, "n%u answers EDEADLK to an owner that is not a process", o->id.node);
	if (!request->wait)
		sim_fail(sim, "n%u answers EDEADLK to a request that does not wait", o->id.node);
	if (waits_for(sim, request->owner, request->owner, request->invoked_us) ||
	    departed_may_wait(sim, &sim->node[o->id.node], request->invoked_us))
		return;
	for (uint32_t k = 0; k < SIM_KEYS; k++)
		trace_beliefs(sim, k);
	sim_fail(sim, "n%u answers EDEADLK to client %u on r%u, and nobody waits for it", o->id.node, o->id.client,
		 request->key);
}

/* All is well, nobody acts, and still a circle of processes waits: it was not found. */
void judge_missed_deadlock(struct sim *sim)
{
	for (uint32_t i = 0; i < sim->owner_top; i++) {
		struct hunt h = { .sim = sim, .strict = true, .target = i };
		const struct owner *o = &sim->owner[i];

		if (!o->used || !o->believes || o->pending == 0 || o->id.kind != BELAY_KIND_POSIX || !hunt_from(&h, i))
			continue;
		for (uint32_t k = 0; k < SIM_KEYS; k++)
			trace_beliefs(sim, k);
		sim_fail(sim, "n%u client %u waits in a circle, and nobody says EDEADLK", o->id.node, o->id.client);
		return;
	}
}

/* A try does not wait, whoever holds what it asks for, and for how long. */
void judge_tries(struct sim *sim)
{
	for (uint32_t n = 1; n <= sim->nodes; n++)
		if (!(sim->doomed & bit(n)) && !settled(sim, &sim->node[n]))
			return;
	for (uint32_t i = 0; i < sim->request_top; i++) {
		const struct request *q = &sim->request[i];

		if (q->used && !q->orphan && !q->wait && q->taken && !q->decided &&
		    q->taken_us + CALM_AFTER_US < sim->now_us)
			sim_fail(sim, "n%u client %u tries to lock r%u, and still has no answer",
				 sim->owner[q->owner].id.node, sim->owner[q->owner].id.client, q->key);
	}
}

/* ---- silence ---- */

static void check_silent(struct sim *sim, const struct node *node)
{
	const struct belay_stats *s = &node->stats;

	belay_core_check(node->core);
	if (!s->synced)
		sim_fail(sim, "n%u does not serve, long after everything is well", node->id);
	else if (s->frozen)
		sim_fail(sim, "n%u is frozen, long after everything is well", node->id);
	else if (s->locks || s->waiters_replicated || s->requests)
		sim_fail(sim, "n%u still has %u locks, %u waiters, %u requests, and no client wants any", node->id,
			 s->locks, s->waiters_replicated, s->requests);
}

/* (8) Everything is mended and given back: nothing may be left over. */
void judge_quiet(struct sim *sim)
{
	const struct node *first = NULL;

	for (uint32_t i = 0; i < sim->request_top; i++) {
		const struct request *q = &sim->request[i];
		const struct owner *o = &sim->owner[q->owner];

		if (q->used && !q->orphan)
			sim_fail(sim, "n%u client %u has no answer on r%u [%u,%u], asked at %" PRIu64 "us", o->id.node,
				 o->id.client, q->key, q->first, q->last, q->invoked_us);
	}
	for (uint32_t i = 1; i <= sim->nodes; i++) {
		const struct node *node = &sim->node[i];

		if (!node->process)
			continue;
		check_silent(sim, node);
		if (first && first->path == node->path && first->stats.digest != node->stats.digest)
			sim_fail(sim, "n%u and n%u end with different tables", first->id, i);
		first = first ? first : node;
	}
	if (!first)
		sim_fail(sim, "no node is left");
}
