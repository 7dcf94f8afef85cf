/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * belay.conf from hostile hands. A file is refused with a reason or gives a
 * configuration that is within every bound; that one, written as a file,
 * reads again as the same.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "daemon/config.h"
#include "tests/fuzz/fuzz.h"

#define NAME "f"

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void on_report(void *context, const char *text)
{
	unsigned *reports = context;

	(*reports)++;
	require(strncmp(text, NAME ":", 2) == 0);
	for (; *text; text++)
		require((unsigned char)*text >= ' ' && *text != 0x7f);
}

static int parse(const void *text, size_t size, struct config *ret_config, unsigned *ret_reports)
{
	FILE *file = fmemopen((void *)(uintptr_t)text, size, "rb");
	int r;

	require(file != NULL);
	*ret_reports = 0;
	r = config_parse(file, NAME, ret_config, on_report, ret_reports);
	fclose(file);
	return r;
}

static void check_bounds(const struct config *c)
{
	require(c->socket[0] == '/' && memchr(c->socket, '\0', sizeof(c->socket)));
	require(c->journal[0] == '/' && memchr(c->journal, '\0', sizeof(c->journal)));
	require(c->socket_mode <= 0777);
	require(c->log_level >= LOG_ERR && c->log_level <= LOG_DEBUG);
	require(c->log_target <= CONFIG_LOG_STDERR && c->fencing_none <= 1);
	require(c->group[0] != '\0' && c->node_id > 0 && c->clients_max > 0);
	require(c->limits.resources_max >= 16 && c->limits.locks_max >= 16);
	require((c->claim_streak & (c->claim_streak - 1)) == 0 && c->claim_streak > 0);
	require(c->share_streak > 0 && c->lend_after > 0 && c->preload_may_fall_back <= 1);
	require(c->hints_enabled <= 1 && c->hints_port > 0 && c->hints_port <= 65535);
	require(memchr(c->hints_address, '\0', sizeof(c->hints_address)));
	require(c->hints_key_file[0] == '\0' || c->hints_key_file[0] == '/');
	require(memchr(c->hints_key_file, '\0', sizeof(c->hints_key_file)));
	require(c->lvm_socket[0] == '/' && memchr(c->lvm_socket, '\0', sizeof(c->lvm_socket)));
	require(c->lvm_pid_file[0] == '/' && memchr(c->lvm_pid_file, '\0', sizeof(c->lvm_pid_file)));
	require(c->lvm_path[0] != '\0' && memchr(c->lvm_path, '\0', sizeof(c->lvm_path)));
	require(c->lvm_wait_s <= 86400 && c->lvm_lv_wait_s <= 86400 && c->lvm_command_timeout_s > 0);
	require(c->lvm_on_quorum_loss <= CONFIG_QUORUM_LOSS_ERROR);
	require(c->lockspace_count >= 1 && c->lockspace_count <= CONFIG_LOCKSPACES_MAX);
	for (uint32_t i = 0; i < c->lockspace_count; i++) {
		const struct config_lockspace *l = &c->lockspace[i];

		require(l->number != 0 && l->mode <= 0666);
		require(l->path[0] == '\0' || l->path[0] == '/');
		require(config_lockspace_find(c, l->name, strlen(l->name)) == l);
		for (uint32_t j = 0; j < i; j++)
			require(c->lockspace[j].number != l->number);
	}
}

static void write_lvm(FILE *file, const struct config *c)
{
	static const char *const losses[] = {
		[CONFIG_QUORUM_LOSS_NONE] = "none", [CONFIG_QUORUM_LOSS_FREEZE] = "freeze",
		[CONFIG_QUORUM_LOSS_ERROR] = "error",
	};

	fprintf(file, "[lvm]\nsocket=%s\npid_file=%s\nwait_s=%u\nlv_wait_s=%u\ncommand_timeout_s=%u\n",
		c->lvm_socket, c->lvm_pid_file, c->lvm_wait_s, c->lvm_lv_wait_s, c->lvm_command_timeout_s);
	fprintf(file, "on_quorum_loss=%s\nlvm_path=%s\n", losses[c->lvm_on_quorum_loss], c->lvm_path);
}

static void write_config(FILE *file, const struct config *c)
{
	static const char *const levels[] = {
		[LOG_ERR] = "error", [LOG_WARNING] = "warning", [LOG_NOTICE] = "notice",
		[LOG_INFO] = "info", [LOG_DEBUG] = "debug",
	};

	fprintf(file, "[belayd]\nsocket=%s\nsocket_mode=%o\nlog_level=%s\nlog_target=%s\n",
		c->socket, c->socket_mode, levels[c->log_level],
		c->log_target == CONFIG_LOG_STDERR ? "stderr" : "syslog");
	if (c->socket_group != CONFIG_NO_GROUP)
		fprintf(file, "socket_group=%u\n", c->socket_group);
	fprintf(file, "journal=%s\njournal_kb=%u\nclients_max=%u\nhandles_per_client_max=%u\n",
		c->journal, c->journal_kb, c->clients_max, c->handles_per_client_max);
	fprintf(file, "requests_per_client_max=%u\nstop_timeout_s=%u\nrealtime=%s\n",
		c->requests_per_client_max, c->stop_timeout_s, c->realtime ? "yes" : "no");
	fprintf(file, "[cluster]\ngroup=%s\nfencing=%s\nnode_id=%u\n", c->group,
		c->fencing_none ? "none" : "operator", c->node_id);
	fprintf(file, "[limits]\nresources_max=%u\nlocks_max=%u\nwaiters_max=%u\n",
		c->limits.resources_max, c->limits.locks_max, c->limits.waiters_max);
	fprintf(file, "locks_per_owner_max=%u\nrequests_max=%u\nloans_max=%u\n",
		c->limits.locks_per_owner_max, c->requests_max, c->loans_max);
	fprintf(file, "[policy]\nmin_hold_us=%u\nidle_s=%u\nclaim_streak=%u\nunlock_linger_us=%u\n",
		c->min_hold_us, c->idle_s, c->claim_streak, c->unlock_linger_us);
	fprintf(file, "share_streak=%u\nlend_after=%u\n", c->share_streak, c->lend_after);
	fprintf(file, "[preload]\non_unreachable=%s\n", c->preload_may_fall_back ? "kernel" : "fail");
	if (c->preload_paths[0] != '\0')
		fprintf(file, "paths=%s\n", c->preload_paths);
	fprintf(file, "[hints]\nenabled=%s\nport=%u\n", c->hints_enabled ? "yes" : "no", c->hints_port);
	if (c->hints_address[0] != '\0')
		fprintf(file, "address=%s\n", c->hints_address);
	if (c->hints_key_file[0] != '\0')
		fprintf(file, "key_file=%s\n", c->hints_key_file);
	write_lvm(file, c);
	for (uint32_t i = 0; i < c->lockspace_count; i++) {
		const struct config_lockspace *l = &c->lockspace[i];

		/* That one is not for a file to write. */
		if (l->number == BELAY_LOCKSPACE_VOLUMES)
			continue;
		fprintf(file, "[lockspace %s]\nowner=%u\ngroup=%u\nmode=%o\n",
			l->name, l->owner, l->group, l->mode);
		if (l->path[0] != '\0')
			fprintf(file, "path=%s\n", l->path);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config first, again;
	unsigned reports;
	size_t written;
	char *text;
	FILE *file;
	int r;

	r = parse(data, size, &first, &reports);
	require((r < 0) == (reports > 0));
	if (r < 0)
		return 0;
	check_bounds(&first);
	file = open_memstream(&text, &written);
	require(file != NULL);
	write_config(file, &first);
	fclose(file);
	require(parse(text, written, &again, &reports) == 0);
	require(memcmp(&first, &again, sizeof(first)) == 0);
	free(text);
	return 0;
}
