/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Membership: who is here, who has state, what became of those who left.
 *
 * Left is not fenced: what a node that left has in the table stays, blocks and
 * keeps its place until FENCED, or until the node itself, in a new life, says by an
 * unsynced HELLO that it has discarded everything (S6 to S9). A node
 * that sees itself outside the majority discards before it takes part again (S10).
 */
#include "core/internal.h"

uint32_t member_majority(const struct belay_core *c)
{
	return c->node_count / 2 + 1;
}

static uint32_t in_view(const struct belay_core *c)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < c->node_count; i++)
		count += c->node[i].in_view;
	return count;
}

bool member_quorate(const struct belay_core *c)
{
	if (c->config.stability == BELAY_STABLE_ALL)
		return c->quorate_flag;
	return in_view(c) >= member_majority(c);
}

static uint32_t lowest(const struct belay_core *c, bool synced)
{
	for (uint32_t i = 0; i < c->node_count; i++)
		if (c->node[i].in_view && (!synced || c->node[i].synced))
			return i;
	return c->node_count;
}

bool member_lowest_synced(const struct belay_core *c)
{
	return lowest(c, true) == c->self;
}

static void tell(struct belay_core *c, enum belay_action_type type, uint32_t node)
{
	struct belay_action a = {
		.type = type,
		.node = c->node[node].id,
		.incarnation = c->node[node].incarnation,
		.volumes = client_volumes(c, node),
	};

	core_emit(c, &a);
}

static void tell_self(struct belay_core *c, enum belay_action_type type)
{
	tell(c, type, c->self);
}

void member_serve_check(struct belay_core *c)
{
	struct belay_action a = { .type = BELAY_ACTION_FROZEN };
	bool serves = core_serves(c);

	if (c->frozen == !serves)
		return;
	c->frozen = a.frozen = !serves;
	core_emit(c, &a);
	if (serves)
		request_resume(c);
}

/*
 * The least that a cluster which starts now may begin to count with: nobody
 * knows how far a dead one had come, but its clock, too, went with the time.
 */
static uint64_t token_now(const struct belay_core *c)
{
	uint64_t base = c->config.token_base + (c->now_us - c->first_us) * TOKENS_PER_US;

	return c->token > base ? c->token : base;
}

/* What all members must have in common, for it decides what is replicated. */
static struct belay_limits shared_rules(const struct belay_core *c)
{
	struct belay_limits rules = c->config.limits;

	rules.requests_max = c->config.requests_max;
	rules.claim_streak = c->config.claim_streak;
	rules.nodelist = index_mix(c->node_count, c->config.stability);
	for (uint32_t i = 0; i < c->node_count; i++)
		rules.nodelist = index_mix(rules.nodelist, c->node[i].id);
	return rules;
}

static void hello(struct belay_core *c)
{
	struct belay_op op = {
		.type = BELAY_OP_HELLO,
		.synced = c->synced,
		.limits = shared_rules(c),
		.token = token_now(c),
	};

	c->hello_sent = true;
	core_send(c, &op, true, 0, 0, 0);
}

static void maybe_start(struct belay_core *c)
{
	/* Above what a node that died a moment ago had begun to count with after a close. */
	struct belay_op op = { .type = BELAY_OP_START, .token = token_now(c) + 2 * TOKEN_UNSEEN };

	if (c->synced || c->stale || c->start_sent || !member_quorate(c) || lowest(c, false) != c->self)
		return;
	for (uint32_t i = 0; i < c->node_count; i++) {
		const struct node *n = &c->node[i];

		if (n->in_view ? !n->hello : n->standing != BELAY_NODE_CLOSED &&
						     !c->config.fencing_none)
			return;
		if (n->synced)
			return;
	}
	op.members = in_view(c);
	/* Whoever began to send its state has discarded it since. */
	if (c->loading)
		snapshot_clear(c);
	c->loading = false;
	c->start_sent = true;
	core_send(c, &op, true, 0, 0, 0);
}

/* A new life: nothing of the former one is on its way any more, or counts. */
static void restart(struct belay_core *c)
{
	struct node *self = &c->node[c->self];

	c->incarnation++;
	c->sent_seq = c->stable = c->flushed_seq = 0;
	c->last_send_place = 0;
	c->loading = false;
	self->seq = self->acked = 0;
	self->synced = false;
	self->incarnation = c->incarnation;
	self->standing = BELAY_NODE_MEMBER;
	self->hello = false;
	for (uint32_t i = 0; i < c->node_count; i++) {
		c->node[i].acked = 0;
		/* What has been said in this view still holds. */
		if (i == c->self || c->node[i].heard)
			continue;
		c->node[i].standing = BELAY_NODE_UNSEEN;
		c->node[i].synced = false;
	}
	c->start_sent = false;
	c->claim_seq = 0;
	c->hello_sent = false;
	c->leave_sent = false;
	tell_self(c, BELAY_ACTION_FORGET);
	tell_self(c, BELAY_ACTION_RESTART);
}

static void rejoin(struct belay_core *c)
{
	/* A snapshot under way is void, and the former HELLO with it. */
	if (c->loading)
		snapshot_clear(c);
	restart(c);
	if (member_quorate(c))
		hello(c);
}

/* S9, S10: others may have gone on without this node. */
static void discard(struct belay_core *c)
{
	c->synced = false;
	c->stale = true;
	member_serve_check(c);
	snapshot_clear(c);
	c->stale = false;
	rejoin(c);
}

static void lose_quorum(struct belay_core *c)
{
	c->synced = false;
	c->stale = true;
	c->node[c->self].synced = false;
	member_serve_check(c);
}

static void about_send(struct belay_core *c, enum belay_op_type type, uint32_t i,
		       uint64_t incarnation)
{
	struct belay_op op = {
		.type = type,
		.node = c->node[i].id,
		.incarnation = incarnation,
	};

	core_send(c, &op, true, 0, 0, 0);
}

static void on_left(struct belay_core *c, uint32_t i)
{
	struct node *n = &c->node[i];

	if (i == c->self || n->standing != BELAY_NODE_MEMBER)
		return;
	if (!c->synced) {
		n->standing = BELAY_NODE_UNSEEN;
	} else if (!n->synced) {
		/* It never served in this life; what it has from a former one stays. */
		n->standing = BELAY_NODE_CLOSED;
		tell(c, BELAY_ACTION_NODE_CLOSED, i);
	} else {
		n->standing = BELAY_NODE_LEFT;
		tell(c, BELAY_ACTION_NODE_LEFT, i);
	}
	n->synced = false;
}

static void set_view(struct belay_core *c, const struct belay_event *ev, bool *ret_goes_on)
{
	uint32_t going_on = 0;

	for (uint32_t k = 0; k < ev->view.left_count; k++) {
		uint32_t i = index_node(c, ev->view.left[k]);

		if (i < c->node_count)
			on_left(c, i);
	}
	for (uint32_t i = 0; i < c->node_count; i++)
		c->node[i].in_view = c->node[i].hello = c->node[i].heard = false;
	for (uint32_t k = 0; k < ev->view.member_count; k++) {
		uint32_t i = index_node(c, ev->view.member[k]);

		if (i == c->node_count)
			continue;
		c->node[i].in_view = true;
		going_on++;
	}
	for (uint32_t k = 0; k < ev->view.joined_count; k++)
		if (index_node(c, ev->view.joined[k]) < c->node_count)
			going_on--;
	/* Those who were here before and still are: did they have the majority? */
	*ret_goes_on = c->config.stability == BELAY_STABLE_ALL || going_on >= member_majority(c);
}

void member_view(struct belay_core *c, const struct belay_event *ev)
{
	struct belay_action flush = { .type = BELAY_ACTION_FLUSH };
	bool goes_on;

	c->place++;
	c->from = c->node_count;
	c->start_sent = false;
	set_view(c, ev, &goes_on);
	if (c->synced && !goes_on)
		lose_quorum(c);
	if (c->stale) {
		if (member_quorate(c))
			discard(c);
		return;
	}
	if (!c->synced) {
		rejoin(c);
		return;
	}
	if (ev->view.joined_count != 0)
		hello(c);
	else
		core_emit(c, &flush);
	if (c->config.fencing_none && member_lowest_synced(c))
		for (uint32_t i = 0; i < c->node_count; i++)
			if (c->node[i].standing == BELAY_NODE_LEFT)
				about_send(c, BELAY_OP_FENCED, i, c->node[i].incarnation);
	queue_confirm_all(c);
	stable_update(c);
}

void member_quorum(struct belay_core *c, bool flag)
{
	bool before = member_quorate(c);

	c->quorate_flag = flag;
	if (c->config.stability != BELAY_STABLE_ALL || before == flag)
		return;
	if (!flag && c->synced)
		lose_quorum(c);
	else if (flag && c->stale)
		discard(c);
	else if (flag && !c->synced && c->node[c->self].in_view && !c->hello_sent)
		hello(c);
	else if (flag && !c->synced)
		maybe_start(c);
	member_serve_check(c);
}

/* Everything a node had in the table goes, but what outlives its belayd if it is not @fenced.
 * What it may have granted unseen, as owner or by a release that only it delivered, had smaller
 * tokens than what others get of it now. */
static void close_life(struct belay_core *c, uint32_t i, bool fenced)
{
	c->token += TOKEN_UNSEEN;
	/* Grants that this alone makes believed come behind those, too. */
	for (uint32_t q = c->done.head; q != 0; q = request_at(c, q)->list_next)
		request_at(c, q)->token += TOKEN_UNSEEN;
	delegation_tokens_jump(c, TOKEN_UNSEEN);
	client_release_node(c, i, fenced);
}

static const char *limits_differ(const struct belay_limits *a, const struct belay_limits *b)
{
	if (a->resources_max != b->resources_max)
		return "resources_max in [limits] of belay.conf is not the same as on the other nodes";
	if (a->locks_max != b->locks_max)
		return "locks_max in [limits] of belay.conf is not the same as on the other nodes";
	if (a->waiters_max != b->waiters_max)
		return "waiters_max in [limits] of belay.conf is not the same as on the other nodes";
	if (a->locks_per_owner_max != b->locks_per_owner_max)
		return "locks_per_owner_max in [limits] of belay.conf is not the same as on the other nodes";
	if (a->requests_max != b->requests_max)
		return "requests_max in [limits] of belay.conf is not the same as on the other nodes";
	if (a->claim_streak != b->claim_streak)
		return "claim_streak in [policy] of belay.conf is not the same as on the other nodes";
	if (a->nodelist != b->nodelist)
		return "the nodelist or the quorum options in corosync.conf are not the same as on the other nodes";
	return NULL;
}

/* HELLO from a node that has state. */
static void on_hello_synced(struct belay_core *c, uint32_t i)
{
	struct node *n = &c->node[i];

	if (!c->synced) {
		n->standing = BELAY_NODE_MEMBER;
		n->incarnation = c->from_incarnation;
		n->synced = true;
		return;
	}
	if (n->standing == BELAY_NODE_MEMBER && n->incarnation == c->from_incarnation)
		return;
	/* Two sides with state meet. After a fence the fenced one must go. Where each side waited
	 * for the other's fence, the one without the lowest id; with a majority there is no
	 * such pair, and what was said before the leave counts for nothing. */
	if (n->standing == BELAY_NODE_LEFT && n->incarnation == c->from_incarnation) {
		if (c->config.stability == BELAY_STABLE_ALL && lowest(c, true) > i)
			discard(c);
	} else if (member_lowest_synced(c) || c->config.stability == BELAY_STABLE_ALL) {
		about_send(c, BELAY_OP_FENCED, i, c->from_incarnation);
	}
}

/* HELLO from a node without state: all its former lives are over (RESET). */
static void on_hello_fresh(struct belay_core *c, uint32_t i, uint64_t token)
{
	struct node *n = &c->node[i];

	n->hello = true;
	if (c->synced && i != c->self && (n->clients != 0 || n->standing != BELAY_NODE_CLOSED))
		close_life(c, i, false);
	n->standing = BELAY_NODE_MEMBER;
	n->incarnation = c->from_incarnation;
	n->synced = false;
	if (!c->synced) {
		if (token > c->token)
			c->token = token;
		if (i == c->self)
			tell_self(c, BELAY_ACTION_HOLD);
		maybe_start(c);
		return;
	}
	n->acked = 0;
	n->no_donor = lowest(c, true) == c->node_count;
	tell(c, BELAY_ACTION_NODE_JOINED, i);
	if (member_lowest_synced(c))
		tell(c, BELAY_ACTION_SNAPSHOT, i);
}

static void on_hello(struct belay_core *c, uint32_t i, const struct belay_op *op)
{
	struct belay_limits rules = shared_rules(c);
	const char *why = limits_differ(&op->limits, &rules);

	if (why != NULL && i != c->self) {
		/* Whoever has no state yields; of two such, the higher id. */
		if (!c->synced && (op->synced || i < c->self))
			core_isolate(c, why);
		return;
	}
	c->node[i].heard = true;
	if (op->synced)
		on_hello_synced(c, i);
	else
		on_hello_fresh(c, i, op->token);
}

/* Is this START, by the order up to here, everybody's start? */
static bool start_valid(const struct belay_core *c, uint32_t from, const struct belay_op *op)
{
	if (from != lowest(c, false) || op->members != in_view(c))
		return false;
	for (uint32_t i = 0; i < c->node_count; i++) {
		const struct node *n = &c->node[i];

		if (!n->in_view)
			continue;
		/* What this node has said in a life that is over, it no longer counts as said. */
		if (n->synced || !(i == c->self && i == from ? n->heard : n->hello))
			return false;
	}
	return true;
}

static void on_start(struct belay_core *c, uint32_t from, const struct belay_op *op)
{
	bool former = from == c->self && c->from_incarnation != c->incarnation;

	if (c->node[c->self].synced)
		return;
	if (!start_valid(c, from, op)) {
		/* A node with state has shown up: it is there to answer a HELLO now. */
		if (from == c->self && !former)
			rejoin(c);
		return;
	}
	for (uint32_t i = 0; i < c->node_count; i++) {
		c->node[i].synced = c->node[i].in_view && i != c->self;
		if (!c->node[i].in_view)
			c->node[i].standing = BELAY_NODE_CLOSED;
	}
	/* Sent in a former life: the others have started, this node has said HELLO anew. */
	if (former)
		return;
	/* The state this node has just loaded came too late to be known. */
	if (c->synced) {
		discard(c);
		return;
	}
	if (c->loading)
		snapshot_clear(c);
	c->loading = false;
	c->node[c->self].synced = true;
	c->place = 1;
	c->last_send_place = 0;
	c->token = op->token;
	c->synced = true;
	tell_self(c, BELAY_ACTION_FORGET);
	tell_self(c, BELAY_ACTION_SYNCED);
	member_serve_check(c);
}

static void on_fenced(struct belay_core *c, const struct belay_op *op)
{
	uint32_t i = index_node(c, op->node);
	struct node *n;

	if (i == c->node_count)
		return;
	n = &c->node[i];
	if (i == c->self) {
		/* The others were told that this node is dead, and went on. */
		if (op->incarnation == c->incarnation && c->synced)
			discard(c);
		return;
	}
	if (c->synced) {
		/* S7: of that life and no other. */
		if ((n->standing != BELAY_NODE_LEFT &&
		     !(n->standing == BELAY_NODE_CLOSED && n->clients != 0)) ||
		    n->incarnation != op->incarnation)
			return;
		close_life(c, i, true);
	} else if (n->in_view || op->incarnation != 0) {
		return;
	}
	n->standing = BELAY_NODE_CLOSED;
	tell(c, BELAY_ACTION_NODE_CLOSED, i);
	maybe_start(c);
	stable_update(c);
}

/*
 * A HELLO that came while the only node with state was not known to have it
 * found no donor. That node, now known, makes its sender say it again.
 */
static void on_synced(struct belay_core *c, uint32_t from)
{
	c->node[from].synced = true;
	if (from != c->self)
		return;
	for (uint32_t i = 0; i < c->node_count; i++)
		if (c->node[i].no_donor && c->node[i].in_view && !c->node[i].synced)
			about_send(c, BELAY_OP_AGAIN, i, c->node[i].incarnation);
}

static void on_again(struct belay_core *c, const struct belay_op *op)
{
	if (op->node == c->config.self && op->incarnation == c->incarnation && !c->synced)
		rejoin(c);
}

static void on_leave(struct belay_core *c, uint32_t from)
{
	/* Its volumes may be active still: until it comes back, or is fenced, they are its own. But
	 * of this life nothing more comes, and nobody waits for it. */
	client_release_node(c, from, false);
	c->node[from].standing = BELAY_NODE_CLOSED;
	c->node[from].synced = false;
	if (from != c->self) {
		tell(c, BELAY_ACTION_NODE_CLOSED, from);
		stable_update(c);
		return;
	}
	c->left = true;
	member_serve_check(c);
	tell_self(c, BELAY_ACTION_LEFT);
}

/* Ops that concern nodes. Returns whether it was one. */
bool member_op(struct belay_core *c, const struct belay_op *op)
{
	uint32_t from = c->from;

	switch (op->type) {
	case BELAY_OP_HELLO:
		on_hello(c, from, op);
		return true;
	case BELAY_OP_SYNCED:
		on_synced(c, from);
		return true;
	case BELAY_OP_START:
		on_start(c, from, op);
		return true;
	case BELAY_OP_FENCED:
		on_fenced(c, op);
		return true;
	case BELAY_OP_AGAIN:
		on_again(c, op);
		return true;
	case BELAY_OP_LEAVE:
		if (c->synced)
			on_leave(c, from);
		return true;
	default:
		return false;
	}
}

int member_fence(struct belay_core *c, uint32_t id)
{
	uint32_t i = index_node(c, id);
	const struct node *n;

	if (i == c->node_count)
		return -EINVAL;
	n = &c->node[i];
	if (n->in_view)
		return -EBUSY;
	if (n->standing == BELAY_NODE_CLOSED && n->clients == 0)
		return -ENOENT;
	if (c->stale || !member_quorate(c))
		return -EAGAIN;
	/* S7: a synced node knows which life has ended; before anybody is synced
	 * the operator vouches for whatever life there was. */
	if (c->synced && n->standing == BELAY_NODE_UNSEEN)
		return -ENOENT;
	about_send(c, BELAY_OP_FENCED, i, c->synced ? n->incarnation : 0);
	return 0;
}

int member_leave(struct belay_core *c)
{
	if (c->leaving)
		return -EBUSY;
	c->leaving = true;
	loan_recall_all(c);
	return 0;
}

/* Leave as soon as no client of this node holds or awaits anything. */
void member_leave_check(struct belay_core *c)
{
	struct belay_op op = { .type = BELAY_OP_LEAVE };

	if (!c->leaving || c->leave_sent || c->left || client_others(c, c->self))
		return;
	if (!core_serves(c)) {
		c->left = true;
		tell_self(c, BELAY_ACTION_LEFT);
		return;
	}
	/* With the tokens given under them: nobody could ask for those later. */
	recall_all_idle(c);
	c->leave_sent = true;
	core_send(c, &op, true, 0, 0, 0);
}
