/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What can be said of the corosync port without corosync: its rules. */
#include "daemon/cpg_parts.h"
#include "tests/tap.h"

/* A process as its node times 100 and its pid; lists end with 0. */
#define MEMBERS_MAX 8

struct change {
	const char *what;
	unsigned member[MEMBERS_MAX], left[MEMBERS_MAX], joined[MEMBERS_MAX];
	const char *view;	/* "members / left / joined" */
};

static const struct change changes[] = {
	{ "the first", { 101 }, { 0 }, { 101 }, "1 / - / 1" },
	{ "joining where others are", { 101, 201, 301 }, { 0 }, { 301 }, "1 2 3 / - / 3" },
	{ "another joins", { 101, 201 }, { 0 }, { 201 }, "1 2 / - / 2" },
	{ "another leaves", { 101 }, { 201 }, { 0 }, "1 / 2 / -" },
	{ "the last one leaves", { 0 }, { 101 }, { 0 }, "- / 1 / -" },
	{ "one comes back in a new life, in one change", { 101, 202 }, { 201 }, { 202 }, "1 2 / 2 / 2" },
	{ "one was away and is back, the same process", { 101, 201 }, { 201 }, { 201 }, "1 2 / 2 / 2" },
	{ "two were away and are back", { 101, 201, 301 }, { 201, 301 }, { 301, 201 }, "1 2 3 / 2 3 / 3 2" },
	{ "a second process of a member", { 101, 201, 202 }, { 0 }, { 202 }, "1 2 / - / -" },
	{ "it goes again", { 101, 201 }, { 202 }, { 0 }, "1 2 / - / -" },
	{ "the first goes, the second stays", { 101, 202 }, { 201 }, { 0 }, "1 2 / - / -" },
	{ "the second goes as well: now the node has left", { 101 }, { 202 }, { 0 }, "1 / 2 / -" },
	{ "both go at once", { 101 }, { 201, 202 }, { 0 }, "1 / 2 / -" },
	{ "two come at once", { 101, 201, 202 }, { 0 }, { 201, 202 }, "1 2 / - / 2" },
	{ "one comes and goes unseen", { 101 }, { 201 }, { 201 }, "1 / 2 / 2" },
};

static size_t make_list(const unsigned *numbers, struct cpg_address *list)
{
	size_t count = 0;

	for (; count < MEMBERS_MAX && numbers[count] != 0; count++)
		list[count] = (struct cpg_address){ .nodeid = numbers[count] / 100,
						    .pid = numbers[count] % 100 };
	return count;
}

static void print_nodes(char *buf, size_t size, const uint32_t *nodes, uint32_t count)
{
	size_t at = strlen(buf);

	if (count == 0)
		snprintf(buf + at, size - at, "-");
	for (uint32_t i = 0; i < count; i++) {
		at = strlen(buf);
		snprintf(buf + at, size - at, "%s%" PRIu32, i > 0 ? " " : "", nodes[i]);
	}
}

static void test_views(void)
{
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct cpg_address member[MEMBERS_MAX], left[MEMBERS_MAX], joined[MEMBERS_MAX];
		size_t members = make_list(changes[i].member, member);
		size_t lefts = make_list(changes[i].left, left);
		size_t joins = make_list(changes[i].joined, joined);
		struct group_view view;
		char text[128] = "";

		cpg_view_make(member, members, left, lefts, joined, joins, &view);
		print_nodes(text, sizeof(text), view.member, view.member_count);
		strcat(text, " / ");
		print_nodes(text, sizeof(text), view.left, view.left_count);
		strcat(text, " / ");
		print_nodes(text, sizeof(text), view.joined, view.joined_count);
		ok_str(text, changes[i].view, "%s", changes[i].what);
	}
}

static void test_largest_view(void)
{
	struct cpg_address all[CPG_MEMBERS_MAX];
	struct group_view view;

	for (unsigned i = 0; i < CPG_MEMBERS_MAX; i++)
		all[i] = (struct cpg_address){ .nodeid = i + 1, .pid = 1 };
	cpg_view_make(all, CPG_MEMBERS_MAX, all, CPG_MEMBERS_MAX, all, CPG_MEMBERS_MAX, &view);
	ok_uint(view.member_count, CPG_MEMBERS_MAX, "as many members as corosync can have");
	ok_uint(view.left_count, CPG_MEMBERS_MAX, "all of them left");
	ok_uint(view.joined_count, CPG_MEMBERS_MAX, "and came back");
}

static void test_other(void)
{
	const struct cpg_address member[] = { { .nodeid = 1, .pid = 5 }, { .nodeid = 2, .pid = 6 } };

	ok(!cpg_view_has_other(member, 2, 1, 5), "we are no other");
	ok(!cpg_view_has_other(member, 2, 3, 5), "nor is one of another node with our pid");
	ok(cpg_view_has_other(member, 2, 2, 5), "one of our node with another pid is");
}

static const struct {
	const char *what;
	struct cpg_votes votes;
	enum belay_stability stability;
} rules[] = {
	{ "three nodes", { .expected_votes = 3, .node_count = 3 }, BELAY_STABLE_MAJORITY },
	{ "two nodes without two_node", { .expected_votes = 2, .node_count = 2 }, BELAY_STABLE_MAJORITY },
	{ "two_node", { .two_node = true, .expected_votes = 2, .node_count = 2 }, BELAY_STABLE_ALL },
	{ "auto_tie_breaker", { .auto_tie_breaker = true, .expected_votes = 4, .node_count = 4 }, BELAY_STABLE_ALL },
	{ "last_man_standing", { .last_man_standing = true, .expected_votes = 3, .node_count = 3 }, BELAY_STABLE_ALL },
	{ "allow_downscale", { .allow_downscale = true, .expected_votes = 3, .node_count = 3 }, BELAY_STABLE_ALL },
	{ "a quorum device", { .device = true, .expected_votes = 2, .node_count = 2 }, BELAY_STABLE_ALL },
	{ "weighted votes that sum up", { .weighted = true, .expected_votes = 3, .node_count = 3 }, BELAY_STABLE_ALL },
	{ "fewer votes expected than nodes", { .expected_votes = 3, .node_count = 4 }, BELAY_STABLE_ALL },
	{ "more votes expected than nodes", { .expected_votes = 5, .node_count = 4 }, BELAY_STABLE_ALL },
};

static void test_stability(void)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		ok_int(cpg_stability(&rules[i].votes), rules[i].stability, "%s", rules[i].what);
}

static const struct {
	const char *transport, *secauth, *cipher, *hash;
	bool encrypted;
} keys[] = {
	{ NULL, NULL, NULL, NULL, false },
	{ NULL, "on", NULL, NULL, true },
	{ "knet", "on", NULL, NULL, true },
	{ "knet", "off", NULL, NULL, false },
	{ "udpu", "on", "aes256", "sha256", false },
	{ "udp", "on", NULL, NULL, false },
	{ "knet", NULL, "aes256", "sha256", true },
	{ "knet", "off", "aes256", "sha256", true },
	{ "knet", "on", "none", "sha256", false },
	{ "knet", "on", "none", "none", false },
	{ "knet", NULL, "aes256", NULL, false },
	{ "knet", NULL, "none", "none", false },
};

static void test_encrypted(void)
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		ok_int(cpg_encrypted(keys[i].transport, keys[i].secauth, keys[i].cipher, keys[i].hash),
		       keys[i].encrypted, "transport %s, secauth %s, cipher %s, hash %s",
		       keys[i].transport ? keys[i].transport : "-", keys[i].secauth ? keys[i].secauth : "-",
		       keys[i].cipher ? keys[i].cipher : "-", keys[i].hash ? keys[i].hash : "-");
}

static void test_quorum(void)
{
	const struct cpg_ring_id ring = { .nodeid = 1, .seq = 8 }, none = { .nodeid = 0, .seq = 0 };
	struct cpg_quorum quorum = { .quorate = true, .ring = { .nodeid = 1, .seq = 8 } };

	ok(cpg_quorum_flag(&quorum, &ring, false), "quorum of this membership counts");
	quorum.quorate = false;
	ok(!cpg_quorum_flag(&quorum, &ring, true), "so does its lack");
	quorum.ring.seq = 4;
	ok(cpg_quorum_flag(&quorum, &ring, true), "what was said of an older one does not");
	quorum.ring.seq = 12;
	ok(cpg_quorum_flag(&quorum, &ring, true), "nor what is of one we have not heard of");
	quorum.ring = (struct quorum_ring_id){ .nodeid = 2, .seq = 8 };
	ok(cpg_quorum_flag(&quorum, &ring, true), "nor of another ring with this number");
	quorum.quorate = true;
	ok(!cpg_quorum_flag(&quorum, &ring, false), "neither way");
	quorum = (struct cpg_quorum){ .quorate = true };
	ok(!cpg_quorum_flag(&quorum, &none, false), "nothing counts before the first membership");
}

static void test_errors(void)
{
	ok_int(cs_errno(CS_OK), 0, "corosync's OK is 0");
	ok_int(cs_errno(CS_ERR_TRY_AGAIN), -EAGAIN, "try again");
	ok_int(cs_errno(CS_ERR_LIBRARY), -ENOTCONN, "corosync is gone");
	ok_int(cs_errno(CS_ERR_BAD_HANDLE), -ENOTCONN, "corosync is gone, told otherwise");
	for (int e = CS_OK + 1; e < 150; e++)
		if (cs_errno((cs_error_t)e) >= 0)
			ok(false, "error %d of corosync is an error", e);
}

int main(void)
{
	test_views();
	test_largest_view();
	test_other();
	test_stability();
	test_encrypted();
	test_quorum();
	test_errors();
	return done_testing();
}
