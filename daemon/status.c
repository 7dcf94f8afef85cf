/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/status.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/clock.h"
#include "daemon/trace.h"

#define SAMPLE_US 1000000u

/* ---- rates ---- */

static void take_sample(struct engine *engine, const struct server_stats *server,
			uint64_t now_us, struct status_sample *ret_sample)
{
	struct belay_stats core;
	struct engine_stats e;

	belay_core_stats(engine_core(engine), &core);
	engine_stats(engine, &e);
	*ret_sample = (struct status_sample){
		.at_us = now_us,
		.local_grants = core.local_grants,
		.ordered_grants = core.ordered_grants,
		.recalls = core.recalls,
		.frames = e.outbox.frames,
		.ops = e.outbox.ops,
		.messages = e.messages,
		.packets = server->packets,
	};
}

void status_sample(struct status_rates *rates, struct engine *engine,
		   const struct server_stats *server)
{
	uint64_t now_us = clock_now_us();

	if (now_us - rates->newer.at_us < SAMPLE_US)
		return;
	rates->older = rates->newer;
	take_sample(engine, server, now_us, &rates->newer);
	if (rates->older.at_us == 0)
		rates->older = rates->newer;
}

/* ---- JSON ---- */

static void put_u64(struct json_object *to, const char *name, uint64_t value)
{
	json_object_object_add(to, name, json_object_new_uint64(value));
}

static void put_bool(struct json_object *to, const char *name, bool value)
{
	json_object_object_add(to, name, json_object_new_boolean(value));
}

static void put_text(struct json_object *to, const char *name, const char *text)
{
	json_object_object_add(to, name, json_object_new_string(text));
}

static struct json_object *put_object(struct json_object *to, const char *name)
{
	struct json_object *object = json_object_new_object();

	json_object_object_add(to, name, object);
	return object;
}

static void put_quotient(struct json_object *to, const char *name, double a, double b)
{
	double value = b > 0 ? a / b : 0;
	char text[32];

	/* Digits beyond the tenths would pretend a precision that is not there. */
	(void)snprintf(text, sizeof(text), "%.1f", value);
	json_object_object_add(to, name, json_object_new_double_s(value, text));
}

static void put_rate(struct json_object *to, const char *name, uint64_t now, uint64_t then,
		     uint64_t us)
{
	put_quotient(to, name, (double)(now - then) * 1e6, (double)us);
}

static const char *name_of(const struct group_info *info, uint32_t node)
{
	for (uint32_t i = 0; i < info->node_count; i++)
		if (info->node[i] == node)
			return info->node_name[i];
	return "";
}

static void put_cluster(struct json_object *to, const struct group_info *info,
			const struct config *config, bool standalone)
{
	put_text(to, "version", PACKAGE_VERSION);
	put_text(to, "group", standalone ? "standalone" : "corosync");
	put_text(to, "cluster", info->cluster_name);
	put_u64(to, "node", info->self);
	put_text(to, "node_name", name_of(info, info->self));
	put_u64(to, "expected_votes", info->expected_votes);
	put_text(to, "stability", info->stability == BELAY_STABLE_ALL ? "all" : "majority");
	put_text(to, "fencing", config->fencing_none ? "none" : "operator");
	put_bool(to, "encrypted", info->encrypted);
}

/* Only who serves has to answer; who left cannot. */
static uint64_t unanswered_us(const struct engine *engine, const struct belay_node_info *node)
{
	if (node->standing != BELAY_NODE_MEMBER || !node->synced)
		return 0;
	return engine_unanswered_us(engine, node->node);
}

static void put_nodes(struct json_object *to, const struct engine *engine,
		      const struct group_info *info)
{
	const struct belay_core *core = engine_core(engine);
	struct json_object *nodes = json_object_new_array();
	struct belay_node_info node;

	for (uint32_t i = 0; belay_core_node(core, i, &node); i++) {
		struct json_object *one = json_object_new_object();

		put_u64(one, "node", node.node);
		put_text(one, "name", name_of(info, node.node));
		put_text(one, "standing", trace_standing(node.standing));
		put_bool(one, "synced", node.synced);
		put_u64(one, "incarnation", node.incarnation);
		put_u64(one, "delivered", node.seq);
		put_u64(one, "acknowledged", node.acked);
		put_u64(one, "volumes", node.volumes);
		put_u64(one, "unanswered_ms", unanswered_us(engine, &node) / 1000);
		json_object_array_add(nodes, one);
	}
	json_object_object_add(to, "nodes", nodes);
}

static void put_core(struct json_object *to, const struct belay_stats *s)
{
	struct json_object *resources, *counters;

	put_bool(to, "synced", s->synced);
	put_bool(to, "frozen", s->frozen);
	put_bool(to, "quorate", s->quorate);
	put_bool(to, "leaving", s->leaving);
	put_u64(to, "incarnation", s->incarnation);
	put_u64(to, "place", s->place);
	put_u64(to, "stable", s->stable);
	resources = put_object(to, "resources");
	for (unsigned i = 0; i < BELAY_STATE_COUNT; i++)
		put_u64(resources, trace_state((enum belay_state)i), s->resources[i]);
	put_u64(resources, "owned_here", s->owned_here);
	put_u64(to, "locks", s->locks);
	put_u64(to, "locks_replicated", s->locks_replicated);
	put_u64(to, "waiters_replicated", s->waiters_replicated);
	put_u64(to, "requests", s->requests);
	put_u64(to, "owners", s->owners);
	counters = put_object(to, "counters");
	put_u64(counters, "grants_local", s->local_grants);
	put_u64(counters, "grants_ordered", s->ordered_grants);
	put_u64(counters, "busy", s->busy);
	put_u64(counters, "deadlocks", s->deadlocks);
	put_u64(counters, "refused", s->refused);
	put_u64(counters, "cancelled", s->cancelled);
	put_u64(counters, "recalls", s->recalls);
	put_u64(counters, "relinquished", s->relinquished);
	put_u64(counters, "claims", s->claims);
	put_u64(counters, "idles", s->idles);
	put_u64(counters, "ops_delivered", s->ops_delivered);
	put_u64(counters, "ops_dropped", s->ops_dropped);
	put_u64(counters, "digests_compared", s->digests_compared);
}

static void put_messages(struct json_object *to, const struct engine_stats *s)
{
	struct json_object *messages = put_object(to, "messages"), *pressure, *other;

	put_u64(messages, "delivered", s->messages);
	put_u64(messages, "delivered_bytes", s->message_bytes);
	put_u64(messages, "bad", s->bad_messages);
	put_u64(messages, "foreign_version", s->foreign_messages);
	put_u64(messages, "frames_sent", s->outbox.frames);
	put_u64(messages, "empty_frames_sent", s->outbox.empty_frames);
	put_u64(messages, "ops_sent", s->outbox.ops);
	put_u64(messages, "bytes_sent", s->outbox.bytes);
	put_quotient(messages, "ops_per_frame", (double)s->outbox.ops, (double)s->outbox.frames);
	put_u64(messages, "frames_in_flight", s->outbox.in_flight);
	put_u64(messages, "ops_queued", s->outbox.queued);
	put_u64(messages, "undelivered_ms", s->outbox.undelivered_us / 1000);
	put_u64(messages, "unlocks_lingered", s->lingered);
	pressure = put_object(to, "back_pressure");
	put_bool(pressure, "now", s->outbox.pressed);
	put_u64(pressure, "times", s->outbox.pressures);
	put_u64(pressure, "total_ms", s->outbox.pressure_us / 1000);
	put_u64(pressure, "try_again", s->outbox.again);
	other = put_object(to, "snapshots");
	put_u64(other, "sent", s->snapshots_sent);
	put_u64(other, "sent_bytes", s->snapshot_bytes);
	put_u64(other, "pending_bytes", s->snapshot_pending);
	put_u64(other, "build_us_max", s->snapshot_build_us_max);
	put_u64(other, "held_bytes", s->hold_bytes);
	put_u64(other, "held_bytes_peak", s->hold_bytes_peak);
	other = put_object(to, "journal");
	put_u64(other, "written", s->journal_written);
	put_u64(other, "dropped", s->journal_dropped);
}

static void put_hints(struct json_object *to, const struct belay_stats *core,
		      const struct engine_stats *s)
{
	struct json_object *hints = put_object(to, "hints");

	put_bool(hints, "enabled", s->hints);
	/* Given by the lock engine, and grants that did not wait for the order. */
	put_u64(hints, "given", core->hints_sent);
	put_u64(hints, "used", core->hints_used);
	put_u64(hints, "sent", s->hint.sent);
	put_u64(hints, "sent_datagrams", s->hint.sent_datagrams);
	put_u64(hints, "dropped", s->hint.dropped);
	put_u64(hints, "received", s->hint.received);
	put_u64(hints, "received_datagrams", s->hint.received_datagrams);
	put_u64(hints, "bad_mac", s->hint.bad_mac);
	put_u64(hints, "unknown_sender", s->hint.unknown_sender);
	put_u64(hints, "foreign_version", s->hint.foreign);
	put_u64(hints, "malformed", s->hint.malformed);
}

static void put_clients(struct json_object *to, const struct server_stats *s,
			const struct config *config)
{
	struct json_object *clients = put_object(to, "clients");

	put_u64(clients, "now", s->clients);
	put_u64(clients, "max", config->clients_max);
	put_u64(clients, "handles", s->handles);
	put_u64(clients, "requests", s->requests);
	put_u64(clients, "accepted", s->accepted);
	put_u64(clients, "refused", s->refused);
	put_u64(clients, "broken", s->broken);
	put_u64(clients, "slow", s->slow);
	put_u64(clients, "gone", s->gone);
	put_u64(clients, "packets", s->packets);
	put_u64(clients, "messages", s->messages);
}

static void put_loans(struct json_object *to, const struct server_stats *s, const struct config *config)
{
	struct json_object *loans = put_object(to, "loans"), *recall;

	put_u64(loans, "now", s->loans);
	put_u64(loans, "max", config->loans_max);
	put_u64(loans, "clients", s->sharing);
	put_u64(loans, "lent", s->loans_lent);
	put_u64(loans, "recalled", s->loans_recalled);
	put_u64(loans, "returned", s->loans_returned);
	recall = put_object(loans, "recall_us");
	put_u64(recall, "p50", histogram_permille(&s->recall_us, 500));
	put_u64(recall, "p99", histogram_permille(&s->recall_us, 990));
	put_u64(recall, "count", histogram_total(&s->recall_us));
}

static void put_rates(struct json_object *to, struct engine *engine,
		      const struct server_stats *server, const struct status_rates *rates)
{
	struct json_object *r = put_object(to, "rates"), *latency;
	const struct histogram *h = engine_latency(engine);
	const struct status_sample *then = &rates->older;
	struct status_sample now;
	uint64_t us;

	take_sample(engine, server, clock_now_us(), &now);
	us = now.at_us - then->at_us;
	put_quotient(r, "interval_s", (double)us, 1e6);
	put_rate(r, "grants_local", now.local_grants, then->local_grants, us);
	put_rate(r, "grants_ordered", now.ordered_grants, then->ordered_grants, us);
	put_rate(r, "recalls", now.recalls, then->recalls, us);
	put_rate(r, "frames", now.frames, then->frames, us);
	put_rate(r, "ops", now.ops, then->ops, us);
	put_rate(r, "messages", now.messages, then->messages, us);
	put_rate(r, "packets", now.packets, then->packets, us);
	latency = put_object(to, "latency_us");
	put_u64(latency, "p50", histogram_permille(h, 500));
	put_u64(latency, "p99", histogram_permille(h, 990));
	put_u64(latency, "count", histogram_total(h));
}

static void put_memory(struct json_object *to)
{
	struct json_object *memory = put_object(to, "memory");
	unsigned long total = 0, resident = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	if (file) {
		if (fscanf(file, "%lu %lu", &total, &resident) != 2)
			resident = 0;
		(void)fclose(file);
	}
	put_u64(memory, "resident_bytes", (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE));
}

char *status_text(struct engine *engine, const struct config *config, bool standalone,
		  const struct server_stats *server, const struct status_rates *rates)
{
	const struct group_info *info = engine_group_info(engine);
	struct json_object *to = json_object_new_object();
	struct belay_stats core;
	struct engine_stats e;
	const char *text;
	char *copy;

	belay_core_stats(engine_core(engine), &core);
	engine_stats(engine, &e);
	put_cluster(to, info, config, standalone);
	put_core(to, &core);
	put_nodes(to, engine, info);
	put_messages(to, &e);
	put_hints(to, &core, &e);
	put_rates(to, engine, server, rates);
	put_clients(to, server, config);
	put_loans(to, server, config);
	put_memory(to);
	text = json_object_to_json_string_ext(to, JSON_C_TO_STRING_PLAIN);
	copy = text ? strdup(text) : NULL;
	json_object_put(to);
	return copy;
}
