/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/status.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#define COLUMNS 79
#define INDENT 7

/* ---- what is wrong ---- */

/* Print a text in lines that fit, behind a word; the next lines are indented. */
static void print_wrapped(FILE *to, const char *word, const char *text)
{
	int column = fprintf(to, "%-*s", INDENT, word);
	size_t size;

	while (*text) {
		size = strcspn(text, " ");
		if (column > INDENT && column + 1 + (int)size > COLUMNS)
			column = fprintf(to, "\n%*s", INDENT, "") - 1;
		if (column > INDENT)
			column += fprintf(to, " ");
		column += fprintf(to, "%.*s", (int)size, text);
		text += size;
		text += strspn(text, " ");
	}
	fprintf(to, "\n");
}

struct wrong {
	FILE *to;
	unsigned count;
};

__attribute__((format(printf, 3, 4)))
static void say(struct wrong *wrong, const char *word, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	print_wrapped(wrong->to, word, text);
	wrong->count++;
}

static bool standalone(struct json_object *s)
{
	return strcmp(json_text(s, "group"), "standalone") == 0;
}

/* "3 (n3)", or "3" if it has no name. */
static const char *node_label(struct json_object *node, const char *name_key, char *buf, size_t size)
{
	const char *name = json_text(node, name_key);

	snprintf(buf, size, *name ? "%" PRIu64 " (%s)" : "%" PRIu64, json_u64(node, "node"), name);
	return buf;
}

/* So long is no answer still patience: a ring that forms anew takes seconds, too. */
#define STANDSTILL_MS 5000u

static void wrong_silent(struct wrong *wrong, struct json_object *node)
{
	uint64_t ms = json_u64(node, "unanswered_ms");
	char label[96];

	if (ms >= STANDSTILL_MS)
		say(wrong, "WRONG", "node %s has not answered for %" PRIu64 " s: its belayd hangs or is "
		    "stopped (systemctl status belayd there); nothing that needs its agreement is "
		    "granted", node_label(node, "name", label, sizeof(label)), ms / 1000);
}

static void wrong_left(struct wrong *wrong, const struct status_view *view, struct json_object *node)
{
	bool all = strcmp(json_text(view->status, "stability"), "all") == 0;
	uint64_t id = json_u64(node, "node");
	struct left_behind left = { 0 };
	char label[96];
	unsigned i;

	for (i = 0; i < view->left_count; i++)
		if (view->left[i].node == id)
			left = view->left[i];
	node_label(node, "name", label, sizeof(label));
	/* Who is alone may be the one that is gone. */
	if (!json_true(view->status, "quorate")) {
		say(wrong, "WRONG", "node %s cannot be reached from here", label);
		return;
	}
	say(wrong, "WRONG",
	    "node %s has left and is not fenced: it may still be writing. What it has locked stays "
	    "locked: %s%" PRIu64 " lock%s, and %" PRIu64 " request%s wait%s behind it%s. If it has "
	    "certainly stopped: belay fence-ack %" PRIu64, label,
	    view->partly ? "at least " : "", left.locks, left.locks == 1 ? "" : "s",
	    left.waiting, left.waiting == 1 ? "" : "s", left.waiting == 1 ? "s" : "",
	    all ? ", and no lock goes from one node to another" : "", id);
}

static void wrong_nodes(struct wrong *wrong, const struct status_view *view)
{
	struct json_object *nodes = json_at(view->status, "nodes"), *node;
	bool synced = json_true(view->status, "synced");
	size_t i, count = json_count(view->status, "nodes");
	const char *standing;
	char label[96];

	for (i = 0; i < count; i++) {
		node = json_object_array_get_idx(nodes, i);
		standing = json_text(node, "standing");
		if (strcmp(standing, "left") == 0)
			wrong_left(wrong, view, node);
		else if (strcmp(standing, "unseen") == 0 && !synced)
			say(wrong, "WAITS", "for node %s, which was not seen yet and may hold locks: start "
			    "belayd there; or, if it has certainly stopped: belay fence-ack %" PRIu64,
			    node_label(node, "name", label, sizeof(label)), json_u64(node, "node"));
		else if (strcmp(standing, "member") == 0 && !json_true(node, "synced") && synced)
			say(wrong, "NOTE", "node %s is still fetching the lock table",
			    node_label(node, "name", label, sizeof(label)));
		else if (strcmp(standing, "closed") == 0 && json_u64(node, "volumes") > 0)
			say(wrong, "NOTE", "node %s has left in order, and keeps %" PRIu64 " locks of "
			    "volumes until belayd is back there; or, if it has certainly stopped: "
			    "belay fence-ack %" PRIu64, node_label(node, "name", label, sizeof(label)),
			    json_u64(node, "volumes"), json_u64(node, "node"));
		wrong_silent(wrong, node);
	}
}

static void wrong_here(struct wrong *wrong, struct json_object *s)
{
	bool quorate = json_true(s, "quorate");

	if (!quorate)
		say(wrong, "WRONG", "this node has no quorum: it grants nothing that other nodes must "
		    "know of. corosync-quorumtool -s shows who is missing");
	if (!json_true(s, "synced"))
		say(wrong, quorate ? "WAITS" : "WRONG", "this node has no lock table yet, and serves no "
		    "locks: it gets one from a member that has it%s",
		    quorate ? "" : ", once there is quorum");
	else if (json_true(s, "frozen"))
		say(wrong, "WRONG", "locking is frozen on this node");
	if (json_u64(s, "messages.undelivered_ms") >= STANDSTILL_MS)
		say(wrong, "WRONG", "corosync has delivered nothing of this node's for %" PRIu64 " s: "
		    "nothing that other nodes must know of is granted here. Look at corosync "
		    "(corosync-quorumtool -s, its log)", json_u64(s, "messages.undelivered_ms") / 1000);
	if (json_true(s, "back_pressure.now"))
		say(wrong, "WRONG", "corosync takes messages more slowly than clients ask, so clients "
		    "wait: %" PRIu64 " operations are queued", json_u64(s, "messages.ops_queued"));
	if (json_u64(s, "messages.foreign_version") > 0)
		say(wrong, "WRONG", "%" PRIu64 " messages were of another version of belay: run the same "
		    "on all nodes", json_u64(s, "messages.foreign_version"));
	if (json_u64(s, "messages.bad") > 0)
		say(wrong, "WRONG", "%" PRIu64 " messages could not be read: something else speaks in "
		    "belay's group, or the network damages messages",
		    json_u64(s, "messages.bad"));
}

static void note(struct wrong *wrong, struct json_object *s)
{
	if (json_true(s, "leaving"))
		say(wrong, "NOTE", "belayd is stopping here: it leaves as soon as nothing is held; "
		    "%" PRIu64 " locks are", json_u64(s, "locks"));
	if (strcmp(json_text(s, "fencing"), "none") == 0)
		say(wrong, "NOTE", "fencing = none: a node that leaves counts as stopped. For test beds only: "
		    "on shared data this corrupts it");
	if (json_u64(s, "hints.bad_mac") > 0)
		say(wrong, "NOTE", "%" PRIu64 " datagrams to the port of hints were of somebody who has not "
		    "this cluster's key: key_file in [hints] must be the same on all nodes",
		    json_u64(s, "hints.bad_mac"));
	if (!json_true(s, "encrypted") && !standalone(s))
		say(wrong, "NOTE", "corosync neither authenticates nor encrypts (crypto_hash and "
		    "crypto_cipher in corosync.conf): whoever reaches its port can take part");
}

unsigned status_print_wrong(FILE *to, const struct status_view *view)
{
	struct wrong wrong = { .to = to };

	wrong_here(&wrong, view->status);
	wrong_nodes(&wrong, view);
	note(&wrong, view->status);
	return wrong.count;
}

/* ---- how things are ---- */

/* 1234567 as "1.23 M": three digits say enough. */
static const char *large(double value, char *buf, size_t size)
{
	static const char units[] = " kMGT";
	unsigned unit = 0;

	while (value >= 999.5 && units[unit + 1]) {
		value /= 1000;
		unit++;
	}
	snprintf(buf, size, "%.*f %c", value < 10 ? 2 : value < 100 ? 1 : 0, value, units[unit]);
	return buf;
}

static const char *rate_text(double value, char *buf, size_t size)
{
	if (value >= 999.5)
		return large(value, buf, size);
	snprintf(buf, size, value > 0 && value < 10 ? "%.1f" : "%.0f", value);
	return buf;
}

static const char *count_text(uint64_t value, char *buf, size_t size)
{
	if (value >= 10000)
		return large((double)value, buf, size);
	snprintf(buf, size, "%" PRIu64, value);
	return buf;
}
#define RATE(path) rate_text(json_real(s, path), (char[24]){ 0 }, 24)
#define COUNT(path) count_text(json_u64(s, path), (char[24]){ 0 }, 24)

static void print_head(FILE *to, struct json_object *s)
{
	char label[96];
	const char *kind = "cluster ", *cluster = json_text(s, "cluster");

	if (standalone(s)) {
		kind = "no cluster (standalone)";
		cluster = "";
	} else if (!*cluster) {
		cluster = "(no name)";
	}
	fprintf(to, "belayd %s, node %s of %s%s: %s, %s\n", json_text(s, "version"),
		node_label(s, "node_name", label, sizeof(label)), kind, cluster,
		json_true(s, "quorate") ? "quorate" : "NO QUORUM",
		json_true(s, "synced") ? "synced" : "NOT SYNCED");
}

static void print_nodes(FILE *to, struct json_object *s)
{
	struct json_object *nodes = json_at(s, "nodes"), *node;
	uint64_t self = json_u64(s, "node");
	size_t i, count = json_count(s, "nodes");
	const char *standing;

	fprintf(to, "\n  %10s  %-24s %-9s %-6s %s\n", "node", "name", "standing", "synced", "volumes");
	for (i = 0; i < count; i++) {
		node = json_object_array_get_idx(nodes, i);
		standing = json_text(node, "standing");
		fprintf(to, "%c %10" PRIu64 "  %-24.24s %-9s %-6s %" PRIu64 "\n",
			json_u64(node, "node") == self ? '*' : ' ', json_u64(node, "node"),
			json_text(node, "name"), strcmp(standing, "left") == 0 ? "LEFT" : standing,
			strcmp(standing, "member") != 0 ? "-" : json_true(node, "synced") ? "yes" : "no",
			json_u64(node, "volumes"));
	}
	if (!standalone(s))
		fprintf(to, "  grants between nodes want %s\n",
			strcmp(json_text(s, "stability"), "all") == 0 ?
			"every node that is not fenced or cleanly gone" : "a majority of the votes");
	fprintf(to, "\n");
}

static void print_locks(FILE *to, struct json_object *s)
{
	fprintf(to, "resources  %s owned by a node (%s here), %s arbitrated, %s in recall\n",
		COUNT("resources.owned"), COUNT("resources.owned_here"),
		COUNT("resources.arbitrated"), COUNT("resources.recall"));
	fprintf(to, "locks      %s held (%s known to all nodes), %s waiting\n",
		COUNT("locks"), COUNT("locks_replicated"), COUNT("requests"));
	fprintf(to, "granted    %s/s on this node alone, %s/s among nodes, %s/s recalls\n",
		RATE("rates.grants_local"), RATE("rates.grants_ordered"),
		RATE("rates.recalls"));
	fprintf(to, "refused    %s busy, %s deadlocks, %s over a limit, %s withdrawn, since start\n",
		COUNT("counters.busy"), COUNT("counters.deadlocks"),
		COUNT("counters.refused"), COUNT("counters.cancelled"));
}

static void print_traffic(FILE *to, struct json_object *s)
{
	double frames = json_real(s, "rates.frames"), ops = json_real(s, "rates.ops");

	fprintf(to, "messages   %s/s sent with %.1f operations each, %s/s delivered\n",
		RATE("rates.frames"), frames > 0 ? ops / frames : 0, RATE("rates.messages"));
	if (json_u64(s, "latency_us.count") > 0)
		fprintf(to, "latency    %" PRIu64 " us to have an own message back (p50), %" PRIu64
			" us (p99)\n", json_u64(s, "latency_us.p50"), json_u64(s, "latency_us.p99"));
	if (json_true(s, "hints.enabled"))
		fprintf(to, "hints      %s sent, %s received, %s used since start\n", COUNT("hints.sent"),
			COUNT("hints.received"), COUNT("hints.used"));
	fprintf(to, "pressure   %s now, %s times since start, %s ms in all; %s tries again\n",
		json_true(s, "back_pressure.now") ? "YES" : "none",
		COUNT("back_pressure.times"), COUNT("back_pressure.total_ms"),
		COUNT("back_pressure.try_again"));
	fprintf(to, "clients    %s of %s, %s handles, %s requests under way\n",
		COUNT("clients.now"), COUNT("clients.max"),
		COUNT("clients.handles"), COUNT("clients.requests"));
	fprintf(to, "loans      %s to %s clients, %s lent and %s taken back since start",
		COUNT("loans.now"), COUNT("loans.clients"), COUNT("loans.lent"), COUNT("loans.recalled"));
	if (json_u64(s, "loans.recall_us.count") > 0)
		fprintf(to, ", in %" PRIu64 " us (p50), %" PRIu64 " us (p99)",
			json_u64(s, "loans.recall_us.p50"), json_u64(s, "loans.recall_us.p99"));
	fprintf(to, "\n");
	fprintf(to, "memory     %.1f MB\n", (double)json_u64(s, "memory.resident_bytes") / 1e6);
}

void status_print(FILE *to, const struct status_view *view)
{
	print_head(to, view->status);
	print_nodes(to, view->status);
	if (status_print_wrong(to, view) > 0)
		fprintf(to, "\n");
	print_locks(to, view->status);
	print_traffic(to, view->status);
}
