/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the clients believe, from the answers they got and the calls they made.
 * No table of any core is looked at: two clients that both believe in a lock
 * write over each other's data, whatever the tables say.
 *
 * Belief begins at the answer 0 and ends when the client calls unlock, dies,
 * is told LOST, or its machine is switched off. An owner that no longer
 * believes may stay as a ghost: the cluster cannot know yet that it stopped.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "tests/sim/sim.h"

static bool overlap(const struct request *a, const struct request *b)
{
	return a->key == b->key && a->first <= b->last && b->first <= a->last;
}

bool request_conflicts(const struct sim *sim, const struct request *a, const struct request *b)
{
	(void)sim;
	return a->owner != b->owner && overlap(a, b) && holds_conflict(hold_of(a->mode), hold_of(b->mode));
}

bool owner_holds(const struct owner *owner, const struct request *request)
{
	for (uint32_t a = request->first; a <= request->last; a++)
		if (holds_conflict(owner->held[request->key][a], hold_of(request->mode)))
			return true;
	return false;
}

/* Does a table say that it holds, as far as anybody outside can know? */
static bool owner_may_hold(const struct owner *owner, const struct request *request)
{
	for (uint32_t a = request->first; a <= request->last; a++)
		if (holds_conflict(owner->maybe[request->key][a], hold_of(request->mode)))
			return true;
	return owner_holds(owner, request);
}

bool owner_may_block(const struct owner *owner, const struct request *request, uint64_t since_us)
{
	for (uint32_t a = request->first; a <= request->last; a++)
		if (owner->ended_us[request->key][a] >= since_us &&
		    holds_conflict(owner->ended[request->key][a], hold_of(request->mode)))
			return true;
	return owner_may_hold(owner, request);
}

/* Is there, at this moment, a reason to answer busy? */
static bool busy_now(const struct sim *sim, const struct request *request)
{
	for (uint32_t i = 0; i < sim->owner_top; i++) {
		const struct owner *o = &sim->owner[i];

		if (o->used && !o->gone && i != request->owner && owner_may_hold(o, request))
			return true;
	}
	for (uint32_t i = 0; i < sim->request_top; i++) {
		const struct request *q = &sim->request[i];

		if (!q->used || q->test)
			continue;
		/*
		 * Who waits may have it by a hint: a test takes it for held, even if its client is gone by now,
		 * or had it indeed, and has given it back.
		 */
		if (q->answered && !(request->test && q->wait && q->orphan_us + SIM_GONE_US > sim->now_us))
			continue;
		if (q->orphan && !q->answered && sim->owner[q->owner].gone && !request->test)
			continue;
		/* It was refused, and its client will hear of it. */
		if (q->decided && q->result != 0 && q->lowered == 0)
			continue;
		if (request_conflicts(sim, q, request))
			return true;
		/* A lock that is being lowered may still be whole. */
		for (uint32_t a = request->first; a <= request->last; a++)
			if (q->key == request->key && q->owner != request->owner && (q->lowered & (1u << a)))
				return true;
	}
	return false;
}

/*
 * A node that left may have given back, withdrawn or taken what the others
 * cannot know of: for them all that it ever asked for stands (S6).
 */
static bool departed_now(const struct sim *sim, const struct request *request)
{
	const struct node *node = &sim->node[sim->owner[request->owner].id.node];

	for (uint32_t i = 0; i < sim->owner_top; i++) {
		const struct owner *o = &sim->owner[i];

		if (o->used && i != request->owner && o->touched[request->key] && owner_left(node, o))
			return true;
	}
	return false;
}

void belief_left(struct sim *sim, const struct node *node)
{
	for (uint32_t i = 0; i < sim->request_top; i++) {
		struct request *q = &sim->request[i];

		if (q->used && !q->orphan && !q->saw_busy && sim->owner[q->owner].id.node == node->id)
			q->saw_busy = departed_now(sim, q);
	}
}

/* Is there, at this moment, a reason to answer free? */
static bool free_now(const struct sim *sim, const struct request *request)
{
	for (uint32_t i = 0; i < sim->owner_top; i++) {
		const struct owner *o = &sim->owner[i];

		if (o->used && o->believes && i != request->owner && owner_holds(o, request))
			return false;
	}
	return true;
}

/* Something began: it may be what a try or a test sees. */
static void note_busy(struct sim *sim, const struct request *cause)
{
	for (uint32_t i = 0; i < sim->request_top; i++) {
		struct request *q = &sim->request[i];

		if (q->used && !q->orphan && request_conflicts(sim, q, cause))
			q->saw_busy = true;
	}
}

/* Something ended: a test may have seen nothing. */
static void note_free(struct sim *sim)
{
	for (uint32_t i = 0; i < sim->request_top; i++) {
		struct request *q = &sim->request[i];

		if (q->used && q->test && !q->orphan && !q->saw_free)
			q->saw_free = free_now(sim, q);
	}
}

static void set_hold(struct sim *sim, struct owner *o, uint32_t key, uint32_t atom, enum hold hold)
{
	if (o->held[key][atom] > hold) {
		o->ended[key][atom] = o->held[key][atom];
		o->ended_us[key][atom] = sim->now_us;
	}
	o->held[key][atom] = (uint8_t)hold;
}

/* ---- exclusion and tokens ---- */

static void check_exclusion(struct sim *sim, uint32_t owner, uint32_t key, uint32_t atom)
{
	const struct owner *me = &sim->owner[owner];

	for (uint32_t i = 0; i < sim->owner_top; i++) {
		const struct owner *o = &sim->owner[i];

		if (!o->used || !o->believes || i == owner)
			continue;
		if (holds_conflict(o->held[key][atom], me->held[key][atom]))
			sim_fail(sim, "two owners: n%u client %u key %u and n%u client %u key %u "
				 "both hold r%u atom %u, %s and %s",
				 me->id.node, me->id.client, (unsigned)me->id.key,
				 o->id.node, o->id.client, (unsigned)o->id.key, key, atom,
				 me->held[key][atom] == HOLD_EX ? "exclusive" : "shared",
				 o->held[key][atom] == HOLD_EX ? "exclusive" : "shared");
	}
}

static uint64_t top_of_others(const struct token_top *top, uint32_t serial)
{
	if (top->owner[0] != serial)
		return top->token[0];
	return top->token[1];
}

static void note_token(struct token_top *top, uint32_t serial, uint64_t token)
{
	if (top->owner[0] == serial) {
		if (token > top->token[0])
			top->token[0] = token;
	} else if (token > top->token[0]) {
		top->token[1] = top->token[0];
		top->owner[1] = top->owner[0];
		top->token[0] = token;
		top->owner[0] = serial;
	} else if (token > top->token[1]) {
		top->token[1] = token;
		top->owner[1] = serial;
	}
}

static void check_token(struct sim *sim, const struct request *request, uint32_t atom, enum hold hold,
			uint64_t token)
{
	struct token_top *top = sim->top[request->key][atom];
	uint32_t serial = sim->owner[request->owner].serial;
	uint64_t before = top_of_others(&top[BELAY_MODE_EX], serial);

	if (hold == HOLD_EX && top_of_others(&top[BELAY_MODE_SH], serial) > before)
		before = top_of_others(&top[BELAY_MODE_SH], serial);
	if (token <= before)
		sim_fail(sim, "token %" PRIu64 " of a grant on r%u atom %u does not exceed %" PRIu64
			 " of an earlier conflicting one", token, request->key, atom, before);
	note_token(&top[request->mode], serial, token);
}

/* Another thread of the same process asks for SH there: that may have been granted after this. */
static bool lowered_meanwhile(struct sim *sim, const struct request *request, uint32_t atom)
{
	bool lowered = false;

	for (uint32_t i = 0; i < sim->request_top; i++) {
		struct request *q = &sim->request[i];

		if (!q->used || q->orphan || q == request || q->test || q->owner != request->owner ||
		    q->key != request->key ||
		    q->mode != BELAY_MODE_SH || q->first > atom || q->last < atom)
			continue;
		q->lowered |= (uint8_t)(1u << atom);
		lowered = true;
	}
	return lowered;
}

/* What @owner holds of these atoms is settled: no request that fails brings EX back. */
static void settle_lowered(struct sim *sim, uint32_t owner, uint32_t key, uint32_t first, uint32_t last)
{
	for (uint32_t i = 0; i < sim->request_top; i++) {
		struct request *q = &sim->request[i];

		if (!q->used || q->owner != owner || q->key != key)
			continue;
		for (uint32_t a = first; a <= last; a++)
			q->lowered &= (uint8_t)~(1u << a);
	}
}

/* The table has it from now on; its client hears of it soon. */
static void grant_decided(struct sim *sim, struct node *node, const struct request *request, uint64_t token)
{
	struct owner *o = &sim->owner[request->owner];

	sim->tally.grants++;
	if (!o->believes) {
		sim_fail(sim, "n%u grants a lock to client %u, which is gone", node->id, o->id.client);
		return;
	}
	judge_grant(sim, node, request);
	for (uint32_t a = request->first; a <= request->last; a++) {
		/* With other calls under way, what stands in the table is between them. */
		if ((o->pending == 1 && token >= o->token[request->key][a]) ||
		    o->maybe[request->key][a] < hold_of(request->mode))
			o->maybe[request->key][a] = (uint8_t)hold_of(request->mode);
	}
	note_busy(sim, request);
}

/* The answers to two threads may come in either order; the later grant is what counts. */
static bool newest(struct owner *o, const struct request *request, uint32_t atom)
{
	uint64_t *token = &o->token[request->key][atom], *decision = &o->decision[request->key][atom];

	if (request->granted_token < *token ||
	    (request->granted_token == *token && request->decision < *decision))
		return false;
	*token = request->granted_token;
	*decision = request->decision;
	return true;
}

static void grant_told(struct sim *sim, const struct request *request)
{
	struct owner *o = &sim->owner[request->owner];
	uint8_t lowered = request->lowered;
	enum hold hold;

	if (request->mode == BELAY_MODE_SH)
		settle_lowered(sim, request->owner, request->key, request->first, request->last);
	for (uint32_t a = request->first; a <= request->last; a++) {
		bool given_back = request->unlocked & (1u << a);

		if (!newest(o, request, a)) {
			/* It came before what it seemed to lower. */
			if (!given_back && (lowered & (1u << a)) && o->held[request->key][a] == HOLD_SH &&
			    !lowered_meanwhile(sim, request, a))
				o->held[request->key][a] = HOLD_EX;
			check_exclusion(sim, request->owner, request->key, a);
			continue;
		}
		if (given_back)
			continue;
		hold = hold_of(request->mode);
		/* What was asked for later may have been told before. */
		if (hold == HOLD_SH && request->number > o->lowered_by[request->key][a])
			o->lowered_by[request->key][a] = request->number;
		if (hold == HOLD_EX && (lowered_meanwhile(sim, request, a) ||
					request->number < o->lowered_by[request->key][a]))
			hold = HOLD_SH;
		set_hold(sim, o, request->key, a, hold);
		check_exclusion(sim, request->owner, request->key, a);
		check_token(sim, request, a, hold, request->granted_token);
	}
}

/* ---- requests ---- */

struct request *request_find(struct sim *sim, uint32_t node, uint32_t process, uint32_t client, uint64_t cookie)
{
	for (uint32_t i = 0; i < sim->request_top; i++) {
		struct request *q = &sim->request[i];
		const struct owner *o = &sim->owner[q->owner];

		/* Clients are numbered anew by each belayd. */
		if (q->used && !q->told && q->cookie == cookie && o->id.node == node && o->id.client == client &&
		    o->process == process)
			return q;
	}
	return NULL;
}

void request_drop(struct sim *sim, struct request *request)
{
	request->used = false;
	while (sim->request_top > 0 && !sim->request[sim->request_top - 1].used)
		sim->request_top--;
}

static void orphan(struct sim *sim, struct request *request)
{
	request->orphan = true;
	request->orphan_us = sim->now_us;
	sim->owner[request->owner].pending--;
}

struct request *belief_invoke(struct sim *sim, const struct request *what)
{
	struct owner *o = &sim->owner[what->owner];
	struct request *q = NULL;

	for (uint32_t i = 0; i < SIM_REQUESTS && !q; i++) {
		const struct request *old = &sim->request[i];

		if (!old->used || (old->answered && old->orphan_us + SIM_GONE_US < sim->now_us))
			q = &sim->request[i];
	}
	if (!q)
		return NULL;
	*q = *what;
	q->used = true;
	q->invoked_us = sim->now_us;
	q->life = sim->node[o->id.node].incarnation;
	q->unlocks = o->unlocks;
	q->saw_busy = busy_now(sim, q) || departed_now(sim, q);
	q->saw_free = free_now(sim, q);
	if (q + 1 > sim->request + sim->request_top)
		sim->request_top = (uint32_t)(q - sim->request) + 1;
	o->pending++;
	if (q->test)
		return q;
	o->dirty[q->key] = o->touched[q->key] = true;
	/* Asking for SH gives EX up, from now on. */
	for (uint32_t a = q->first; a <= q->last; a++) {
		if (q->mode == BELAY_MODE_SH && o->held[q->key][a] == HOLD_EX) {
			q->lowered |= (uint8_t)(1u << a);
			set_hold(sim, o, q->key, a, HOLD_SH);
		}
	}
	note_busy(sim, q);
	note_free(sim);
	return q;
}

/* The request changed nothing: what it would have lowered is whole again. */
static void restore_lowered(struct sim *sim, const struct request *request)
{
	struct owner *o = &sim->owner[request->owner];

	for (uint32_t a = request->first; a <= request->last; a++) {
		if (!(request->lowered & (1u << a)) || o->held[request->key][a] != HOLD_SH ||
		    lowered_meanwhile(sim, request, a))
			continue;
		o->held[request->key][a] = HOLD_EX;
		check_exclusion(sim, request->owner, request->key, a);
	}
}

static void check_test(struct sim *sim, struct node *node, const struct request *request,
		       const struct belay_action *reply)
{
	const struct owner *o = &sim->owner[request->owner];
	uint32_t first, last;

	if (!reply->held) {
		sim->tally.free_tests++;
		if (!request->saw_free) {
			trace_beliefs(sim, request->key);
			sim_fail(sim, "n%u: a test of r%u says free, but it never was", node->id, request->key);
		}
		return;
	}
	sim->tally.held_tests++;
	sim_atoms(&reply->range, &first, &last);
	if (first > request->last || last < request->first ||
	    !holds_conflict(hold_of(reply->mode), hold_of(request->mode)))
		sim_fail(sim, "n%u: a test of r%u names a lock that does not conflict", node->id, request->key);
	if (reply->holder.node == o->id.node && reply->holder.client == o->id.client &&
	    reply->holder.key == o->id.key && reply->holder.kind == o->id.kind)
		sim_fail(sim, "n%u: a test of r%u names its own owner", node->id, request->key);
	if (!request->saw_busy) {
		trace_beliefs(sim, request->key);
		sim_fail(sim, "n%u: a test of r%u says held, but nothing was", node->id, request->key);
	}
}

static void check_refusal(struct sim *sim, struct node *node, const struct request *request, int result)
{
	switch (result) {
	case -EAGAIN:
		sim->tally.busy++;
		if (request->wait)
			sim_fail(sim, "n%u answers EAGAIN to a request that waits", node->id);
		if (!request->saw_busy) {
			trace_beliefs(sim, request->key);
			sim_fail(sim, "n%u answers EAGAIN on r%u, but since the call nothing was held or queued there",
				 node->id, request->key);
		}
		break;
	case -EDEADLK:
		sim->tally.deadlocks++;
		judge_deadlock(sim, request);
		break;
	case -EINTR:
		sim->tally.interrupted++;
		if (!request->cancelled)
			sim_fail(sim, "n%u answers EINTR, and nobody cancelled", node->id);
		break;
	case -ENOLCK:
		sim->tally.refused++;
		if (!sim->temper.small_limits)
			sim_fail(sim, "n%u answers ENOLCK far below the limits", node->id);
		break;
	case -EIO:
		break;
	default:
		sim_fail(sim, "n%u answers %d, which is no documented result", node->id, result);
	}
}

void belief_decided(struct sim *sim, struct node *node, const struct belay_action *reply)
{
	struct request *q = request_find(sim, node->id, node->process, reply->client, reply->cookie);

	sim->tally.replies++;
	if (!q || q->decided) {
		sim_fail(sim, "n%u answers client %u, which asked nothing", node->id, reply->client);
		return;
	}
	q->decided = true;
	q->decision = ++sim->decisions;
	q->result = reply->result;
	q->granted_token = reply->token;
	if (q->orphan)
		return;		/* nobody listens any more */
	if (reply->result == -EIO) {
		/* Others may have it in their queue until this life is over for them. */
		orphan(sim, q);
		q->told = true;
		return;
	}
	if (reply->result != 0)
		check_refusal(sim, node, q, reply->result);
	else if (q->test)
		check_test(sim, node, q, reply);
	else
		grant_decided(sim, node, q, reply->token);
}

void belief_told(struct sim *sim, struct request *q)
{
	assert(q->decided && !q->orphan);
	q->told = true;
	if (q->result != 0)
		restore_lowered(sim, q);
	else if (!q->test)
		grant_told(sim, q);
	orphan(sim, q);
	q->answered = true;
	if (!q->wait)
		request_drop(sim, q);
	note_free(sim);
}

void belief_refused(struct sim *sim, struct request *q)
{
	if (!q->orphan) {
		restore_lowered(sim, q);
		sim->owner[q->owner].pending--;
	}
	request_drop(sim, q);
}

/* ---- in a loan ---- */

void belief_loan_lock(struct sim *sim, struct node *node, const struct request *what, uint64_t token)
{
	struct owner *o = &sim->owner[what->owner];
	enum hold hold = hold_of(what->mode);

	sim->tally.loan_grants++;
	if (!o->believes) {
		sim_fail(sim, "n%u client %u, which is gone or has lost its locks, takes one in a loan", node->id,
			 o->id.client);
		return;
	}
	judge_loan_grant(sim, node, what);
	settle_lowered(sim, what->owner, what->key, what->first, what->last);
	o->dirty[what->key] = o->touched[what->key] = true;
	sim->decisions++;
	for (uint32_t a = what->first; a <= what->last; a++) {
		if (token <= o->token[what->key][a])
			sim_fail(sim, "token %" PRIu64 " of a grant in a loan on r%u atom %u does not exceed %" PRIu64
				 " of this owner's last", token, what->key, a, o->token[what->key][a]);
		o->token[what->key][a] = token;
		o->decision[what->key][a] = sim->decisions;
		o->maybe[what->key][a] = (uint8_t)hold;
		set_hold(sim, o, what->key, a, hold);
		check_exclusion(sim, what->owner, what->key, a);
		check_token(sim, what, a, hold, token);
	}
	note_busy(sim, what);
	note_free(sim);
}

void belief_loan_unlock(struct sim *sim, uint32_t owner, uint32_t key, uint32_t first, uint32_t last)
{
	struct owner *o = &sim->owner[owner];

	sim->tally.loan_unlocks++;
	belief_unlock(sim, owner, key, first, last);
	for (uint32_t a = first; a <= last; a++)
		o->maybe[key][a] = HOLD_NONE;
}

void belief_loan_busy(struct sim *sim, struct node *node, const struct request *what)
{
	sim->tally.loan_busy++;
	if (!busy_now(sim, what))
		sim_fail(sim, "n%u client %u finds r%u busy in a loan, but nothing is held there", node->id,
			 sim->owner[what->owner].id.client, what->key);
}

void belief_loan_free(struct sim *sim, struct node *node, const struct request *what)
{
	sim->tally.free_tests++;
	if (!free_now(sim, what))
		sim_fail(sim, "n%u client %u finds r%u free in a loan, and it is not", node->id,
			 sim->owner[what->owner].id.client, what->key);
}

/* ---- volumes ---- */

void belief_unsettled(struct sim *sim, struct node *node)
{
	for (uint32_t v = 0; v < SIM_VOLUMES; v++) {
		const struct request cause = {
			.owner = node->volume[v].owner, .key = SIM_FILES + v, .last = SIM_ATOMS - 1,
			.mode = BELAY_MODE_EX,
		};

		if (cause.owner == SIM_NONE)
			continue;
		memset(sim->owner[cause.owner].maybe[cause.key], HOLD_EX, SIM_ATOMS);
		/* Another belayd counts its requests anew, another START the tokens. */
		memset(sim->owner[cause.owner].lowered_by[cause.key], 0,
		       sizeof(sim->owner[0].lowered_by[0]));
		memset(sim->owner[cause.owner].token[cause.key], 0, sizeof(sim->owner[0].token[0]));
		note_busy(sim, &cause);
	}
}

void belief_host_ends(struct sim *sim, struct node *node)
{
	for (uint32_t v = 0; v < SIM_VOLUMES; v++)
		for (uint32_t a = 0; node->volume[v].owner != SIM_NONE && a < SIM_ATOMS; a++)
			set_hold(sim, &sim->owner[node->volume[v].owner], SIM_FILES + v, a, HOLD_NONE);
	note_free(sim);
}

void belief_forget_requests(struct sim *sim, uint32_t owner)
{
	for (uint32_t i = 0; i < sim->request_top; i++)
		sim->request[i].used &= sim->request[i].owner != owner;
	sim->owner[owner].pending = 0;
	while (sim->request_top > 0 && !sim->request[sim->request_top - 1].used)
		sim->request_top--;
}

void belief_given_up(struct request *q)
{
	q->cancelled = true;
	q->lowered = 0;
}

/* ---- ends of belief ---- */

void belief_unlock(struct sim *sim, uint32_t owner, uint32_t key, uint32_t first, uint32_t last)
{
	struct owner *o = &sim->owner[owner];

	o->unlocks++;
	settle_lowered(sim, owner, key, first, last);
	for (uint32_t a = first; a <= last; a++)
		set_hold(sim, o, key, a, HOLD_NONE);
	for (uint32_t i = 0; i < sim->request_top; i++) {
		struct request *q = &sim->request[i];

		if (!q->used || q->owner != owner || q->key != key)
			continue;
		for (uint32_t a = first; a <= last; a++)
			q->unlocked |= (uint8_t)(1u << a);
	}
	note_free(sim);
}

/* Is a request of this owner with its node, and not answered? */
static bool any_taken(const struct sim *sim, uint32_t owner)
{
	for (uint32_t i = 0; i < sim->request_top; i++) {
		const struct request *q = &sim->request[i];

		if (q->used && !q->orphan && q->owner == owner && q->taken)
			return true;
	}
	return false;
}

void belief_unlock_taken(struct sim *sim, uint32_t owner, uint32_t key, uint32_t first, uint32_t last)
{
	struct owner *o = &sim->owner[owner];
	/* At a limit a hole cannot be cut: what was given back in the middle stays locked. */
	bool whole = !sim->temper.small_limits || (first == 0 && last == SIM_ATOMS - 1);

	if (!whole || any_taken(sim, owner))
		return;
	for (uint32_t a = first; a <= last; a++) {
		if (o->held[key][a] != HOLD_NONE || o->maybe[key][a] == HOLD_NONE)
			continue;
		/* Until this moment its node did not know that it had ended. */
		if (sim->temper.ipc_us > 0) {
			o->ended[key][a] = o->maybe[key][a];
			o->ended_us[key][a] = sim->now_us;
		}
		o->maybe[key][a] = HOLD_NONE;
	}
}

static void owner_void(struct sim *sim, uint32_t owner, bool gone)
{
	struct owner *o = &sim->owner[owner];

	o->believes = false;
	o->gone = gone;
	o->void_us = sim->now_us;
	for (uint32_t i = 0; i < sim->request_top; i++)
		if (sim->request[i].used && sim->request[i].owner == owner && !sim->request[i].orphan)
			orphan(sim, &sim->request[i]);
}

static void void_owners(struct sim *sim, struct node *node, uint32_t client, bool gone)
{
	for (uint32_t i = 0; i < sim->owner_top; i++) {
		struct owner *o = &sim->owner[i];

		/* What the node itself has does not end with belayd. */
		if (o->used && o->believes && o->id.node == node->id && o->id.kind != BELAY_KIND_NODE &&
		    (client == 0 || o->id.client == client))
			owner_void(sim, i, gone);
	}
	note_free(sim);
}

void belief_client_gone(struct sim *sim, struct node *node, uint32_t client)
{
	void_owners(sim, node, client, true);
	/* Those that died before their belayd knew it. */
	for (uint32_t i = 0; i < sim->owner_top; i++) {
		struct owner *o = &sim->owner[i];

		if (!o->used || !o->dead || o->gone || o->id.node != node->id || o->id.client != client ||
		    o->process != node->process)
			continue;
		o->gone = true;
		o->void_us = sim->now_us;
	}
}

void belief_void(struct sim *sim, struct node *node, uint32_t client)
{
	void_owners(sim, node, client, false);
}

void belief_client_mad(struct sim *sim, const struct client *client)
{
	for (uint32_t i = 0; i < SIM_CLIENT_OWNERS; i++)
		if (client->owner[i] != SIM_NONE)
			memset(sim->owner[client->owner[i]].maybe, HOLD_EX, sizeof(sim->owner[0].maybe));
	for (uint32_t i = 0; i < sim->request_top; i++)
		sim->request[i].saw_busy = true;
}

void belief_client_dies(struct sim *sim, struct node *node, uint32_t client)
{
	for (uint32_t i = 0; i < sim->owner_top; i++) {
		struct owner *o = &sim->owner[i];

		if (o->used && o->believes && o->id.node == node->id && o->id.client == client)
			o->dead = true;
	}
	void_owners(sim, node, client, false);
}

/* One whose client is dead, and its belayd does not know it, does as well. */
static bool goes_on(const struct owner *o, const struct node *node)
{
	return o->used && (o->believes || (o->dead && !o->gone)) && o->id.node == node->id &&
	       o->process == node->process;
}

void belief_new_life(struct sim *sim, struct node *node)
{
	for (uint32_t i = 0; i < sim->owner_top; i++)
		if (goes_on(&sim->owner[i], node)) {
			sim->owner[i].former = sim->owner[i].incarnation;
			sim->owner[i].incarnation = node->incarnation;
		}
	for (uint32_t i = 0; i < sim->request_top; i++) {
		struct request *q = &sim->request[i];

		if (!q->used || q->decided || !goes_on(&sim->owner[q->owner], node))
			continue;
		q->order = 0;
		q->sent = q->stable = false;
		/* It was passed because it had been refused, perhaps, and nobody could say so any more. */
		q->passed_us = 0;
		q->delivered = 0;
	}
}

bool belief_any(const struct sim *sim, uint32_t node, uint64_t incarnation)
{
	for (uint32_t i = 0; i < sim->owner_top; i++) {
		const struct owner *o = &sim->owner[i];

		if (!o->used || !o->believes || o->id.node != node || o->incarnation > incarnation ||
		    o->id.kind == BELAY_KIND_NODE)
			continue;
		for (uint32_t k = 0; k < SIM_KEYS; k++)
			for (uint32_t a = 0; a < SIM_ATOMS; a++)
				if (o->held[k][a] != HOLD_NONE)
					return true;
	}
	return false;
}

bool sim_quiet(const struct sim *sim)
{
	for (uint32_t i = 0; i < sim->request_top; i++)
		if (sim->request[i].used && !sim->request[i].orphan)
			return false;
	for (uint32_t n = 1; n <= sim->nodes; n++)
		if (belief_any(sim, n, UINT64_MAX) || volume_any(sim, &sim->node[n]))
			return false;
	return true;
}
