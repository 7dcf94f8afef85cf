/* SPDX-License-Identifier: GPL-2.0-or-later */
/* belay status says plainly what is wrong, what to do, and fits a terminal. */
#include "tests/tap.h"
#include "tools/status.h"

#define HEALTHY \
	"\"version\":\"1\",\"group\":\"corosync\",\"cluster\":\"c\",\"node\":1,\"node_name\":\"n1\"," \
	"\"stability\":\"majority\",\"fencing\":\"operator\",\"encrypted\":true,\"synced\":true," \
	"\"frozen\":false,\"quorate\":true,\"leaving\":false,\"locks\":3,\"requests\":2," \
	"\"nodes\":[{\"node\":1,\"name\":\"n1\",\"standing\":\"member\",\"synced\":true}]"

/* The text for HEALTHY and then @more, whose fields win. The caller's to free(). */
static char *text_of(const char *more, const struct left_behind *left, bool all)
{
	struct status_view view = { 0 };
	char json[8192], *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	snprintf(json, sizeof(json), "{" HEALTHY "%s%s}", *more ? "," : "", more);
	view.status = json_tokener_parse(json);
	if (!to || !view.status)
		bail_out("no JSON, or no memory");
	if (left)
		view.left[view.left_count++] = *left;
	if (all)
		status_print(to, &view);
	else
		(void)status_print_wrong(to, &view);
	fclose(to);
	json_object_put(view.status);
	return text;
}

/* Line ends are for terminals: compare with single blanks. */
static void unwrap(char *text)
{
	char *to = text;

	for (; *text; text++)
		if (!((*text == ' ' || *text == '\n') && to[-1] == ' '))
			*to++ = *text == '\n' ? ' ' : *text;
	*to = '\0';
}

static bool narrow(const char *text)
{
	size_t width;

	for (; *text; text += width + (text[width] == '\n')) {
		width = strcspn(text, "\n");
		if (width > 80)
			return false;
	}
	return true;
}

static const char left_node[] =
	"\"nodes\":[{\"node\":3,\"name\":\"n3\",\"standing\":\"left\",\"synced\":false}]";
static const char unseen_node[] =
	"\"synced\":false,\"nodes\":[{\"node\":3,\"name\":\"\",\"standing\":\"unseen\",\"synced\":false}]";
static const char alone[] =
	"\"quorate\":false,\"nodes\":[{\"node\":3,\"name\":\"n3\",\"standing\":\"left\",\"synced\":false}]";
static const char two_nodes[] =
	"\"stability\":\"all\",\"nodes\":[{\"node\":2,\"name\":\"n2\",\"standing\":\"left\",\"synced\":false}]";

static const char silent_node[] =
	"\"nodes\":[{\"node\":3,\"name\":\"n3\",\"standing\":\"member\",\"synced\":true,\"unanswered_ms\":5000}]";
static const char slow[] =
	"\"messages\":{\"undelivered_ms\":4999},"
	"\"nodes\":[{\"node\":3,\"name\":\"n3\",\"standing\":\"member\",\"synced\":true,\"unanswered_ms\":4999}]";

static const struct {
	const char *more, *want;
} cases[] = {
	{ "\"quorate\":false", "WRONG this node has no quorum" },
	{ "\"quorate\":false", "corosync-quorumtool -s" },
	{ "\"synced\":false", "WAITS this node has no lock table yet" },
	{ "\"synced\":false,\"quorate\":false", "WRONG this node has no lock table yet" },
	{ "\"frozen\":true", "WRONG locking is frozen" },
	{ "\"leaving\":true", "it leaves as soon as nothing is held; 3 locks are" },
	{ "\"back_pressure\":{\"now\":true},\"messages\":{\"ops_queued\":777}", "777 operations are queued" },
	{ "\"messages\":{\"foreign_version\":5}", "5 messages were of another version" },
	{ "\"messages\":{\"bad\":6}", "6 messages could not be read" },
	{ "\"fencing\":\"none\"", "NOTE fencing = none" },
	{ "\"encrypted\":false", "NOTE corosync neither authenticates nor encrypts" },
	{ "\"hints\":{\"bad_mac\":8}", "NOTE 8 datagrams to the port of hints were of somebody who has not" },
	{ left_node, "node 3 (n3) has left and is not fenced: it may still be writing" },
	{ left_node, "12 locks, and 1 request waits behind it." },
	{ left_node, "If it has certainly stopped: belay fence-ack 3" },
	{ two_nodes, "no lock goes from one node to another" },
	{ unseen_node, "WAITS for node 3, which was not seen yet" },
	{ "\"messages\":{\"undelivered_ms\":7900}", "WRONG corosync has delivered nothing of this node's for 7 s: " },
	{ "\"messages\":{\"undelivered_ms\":7900}", "corosync-quorumtool -s" },
	{ silent_node, "WRONG node 3 (n3) has not answered for 5 s: its belayd hangs or is stopped" },
	{ alone, "WRONG node 3 (n3) cannot be reached from here" },
};

static const struct {
	const char *more, *want;
} heads[] = {
	{ "", "belayd 1, node 1 (n1) of cluster c: quorate, synced\n" },
	{ "\"node_name\":\"\",\"cluster\":\"\"", "node 1 of cluster (no name): " },
	{ "\"group\":\"standalone\",\"cluster\":\"\"", "node 1 (n1) of no cluster (standalone): " },
	{ "\"synced\":false,\"quorate\":false", ": NO QUORUM, NOT SYNCED\n" },
};

static void test_heads(void)
{
	char *text;

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		text = text_of(heads[i].more, NULL, true);
		text[strcspn(text, "\n") + 1] = '\0';
		ok(strstr(text, heads[i].want) != NULL, "head: %s", *heads[i].more ? heads[i].more : "all is well") ||
			(diag("%s", text), 0);
		free(text);
	}
	text = text_of("\"group\":\"standalone\",\"encrypted\":false", NULL, false);
	ok_str(text, "", "who is alone has nothing to encrypt");
	free(text);
	text = text_of("", NULL, true);
	ok(strstr(text, "grants between nodes want a majority") != NULL, "what grants between nodes want");
	free(text);
	text = text_of("\"group\":\"standalone\"", NULL, true);
	ok(strstr(text, "between nodes") == NULL, "is nothing for who is alone");
	free(text);
}

int main(void)
{
	const struct left_behind left = { .node = 3, .locks = 12, .waiting = 1 };
	char *text;
	size_t i;

	text = text_of("", NULL, false);
	ok_str(text, "", "all is well: nothing is said");
	free(text);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		text = text_of(cases[i].more, &left, false);
		ok(narrow(text), "%s: within 80 columns", cases[i].more);
		unwrap(text);
		ok(strstr(text, cases[i].want) != NULL, "says: %s", cases[i].want) || (diag("%s", text), 0);
		free(text);
	}
	text = text_of(slow, NULL, false);
	ok_str(text, "", "what takes a while is not wrong yet");
	free(text);
	text = text_of(alone, &left, false);
	ok(strstr(text, "fence-ack") == NULL, "who has no quorum must not fence others");
	free(text);
	text = text_of("\"rates\":{\"grants_local\":1234567.8,\"frames\":10,\"ops\":25},"
		       "\"latency_us\":{\"p50\":99,\"p99\":2000000,\"count\":5},"
		       "\"hints\":{\"enabled\":true,\"sent\":1000000,\"received\":999,\"used\":0},"
		       "\"locks_replicated\":16777216,\"clients\":{\"now\":4096,\"max\":65535},"
		       "\"memory\":{\"resident_bytes\":123456789}", NULL, true);
	ok(narrow(text), "the whole fits, too");
	ok(strstr(text, "1.23 M/s on this node alone") != NULL, "large rates in three digits");
	ok(strstr(text, "3 held (16.8 M known to all nodes), 2 waiting") != NULL, "large counts, too");
	ok(strstr(text, "10/s sent with 2.5 operations each") != NULL, "operations in a message");
	ok(strstr(text, "99 us to have an own message back (p50), 2000000 us (p99)") != NULL, "latency");
	ok(strstr(text, "hints      1.00 M sent, 999 received, 0 used since start") != NULL, "hints");
	ok(strstr(text, "4096 of 65.5 k") != NULL, "clients");
	ok(strstr(text, "123.5 MB") != NULL, "memory");
	diag("%s", "as it looks:");
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		diag("%s", line);
	free(text);
	test_heads();
	return done_testing();
}
