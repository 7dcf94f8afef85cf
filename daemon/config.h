/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * belay.conf: an INI file in which every key has a default. A wrong file is
 * refused as a whole, with all that is wrong in it told at once; a key that
 * belayd does not know is an error, for it is a misspelt one.
 * man/belay.conf.5 has the meaning of each key.
 */
#ifndef BELAY_DAEMON_CONFIG_H
#define BELAY_DAEMON_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "core/types.h"

#define CONFIG_LOCKSPACES_MAX 64
#define CONFIG_NAME_MAX 63
#define CONFIG_PATH_MAX 255
#define CONFIG_ADDRESS_MAX 45		/* the longest of IPv6 */
/* The lockspace of named locks that is always there, first in the list. */
#define CONFIG_DEFAULT_LOCKSPACE "default"
/* And that of volumes, the second. */
#define CONFIG_VOLUMES_LOCKSPACE "volumes"
/* socket_group not set: the socket keeps belayd's own group. */
#define CONFIG_NO_GROUP ((uint32_t)-1)

enum config_log_target {
	CONFIG_LOG_SYSLOG,
	CONFIG_LOG_STDERR,
};

/* What becomes of a node's active volumes when it loses quorum. */
enum config_quorum_loss {
	CONFIG_QUORUM_LOSS_NONE,
	CONFIG_QUORUM_LOSS_FREEZE,
	CONFIG_QUORUM_LOSS_ERROR,
};

struct config_lockspace {
	char name[CONFIG_NAME_MAX + 1];
	uint32_t number;		/* in keys: hash of the name, the same on all nodes */
	char path[CONFIG_PATH_MAX + 1];	/* "": it has no files, only named locks */
	/* Who may use its named locks: r shared, w exclusive, as with files. */
	uint32_t owner, group, mode;
};

struct config {
	/* [belayd] */
	char socket[108];		/* what fits into a sockaddr_un */
	uint32_t socket_group;
	uint32_t socket_mode;
	uint32_t log_level;		/* LOG_ERR .. LOG_DEBUG */
	uint32_t log_target;		/* enum config_log_target */
	char journal[CONFIG_PATH_MAX + 1];
	uint32_t journal_kb;
	uint32_t clients_max;
	uint32_t handles_per_client_max;
	uint32_t requests_per_client_max;
	uint32_t loans_per_client_max;
	uint32_t stop_timeout_s;
	uint32_t realtime;		/* 0 or 1 */
	/* [cluster] */
	char group[CONFIG_NAME_MAX + 1];
	uint32_t fencing_none;		/* 0 or 1 */
	uint32_t node_id;		/* standalone only */
	/* [limits] */
	struct belay_limits limits;	/* the same on all nodes */
	uint32_t requests_max;
	uint32_t loans_max;
	/* [policy] */
	uint32_t min_hold_us;
	uint32_t idle_s;
	uint32_t claim_streak;
	uint32_t share_streak;
	uint32_t lend_after;
	uint32_t unlock_linger_us;
	/* [hints] */
	uint32_t hints_enabled;		/* 0 or 1 */
	uint32_t hints_port;
	char hints_address[CONFIG_ADDRESS_MAX + 1];	/* "": that of corosync */
	char hints_key_file[CONFIG_PATH_MAX + 1];	/* "": that of corosync */
	/* [preload], for programs under libbelay-preload: belayd itself has no use for it */
	char preload_paths[CONFIG_PATH_MAX + 1];	/* with blanks between; "": those of the lockspaces */
	uint32_t preload_may_fall_back;	/* 0 or 1 */
	/* [lvm], for belay-lvmlockd: belayd itself has no use for it */
	char lvm_socket[108];
	char lvm_pid_file[CONFIG_PATH_MAX + 1];
	uint32_t lvm_wait_s;
	uint32_t lvm_lv_wait_s;
	uint32_t lvm_command_timeout_s;
	uint32_t lvm_on_quorum_loss;	/* enum config_quorum_loss */
	char lvm_path[CONFIG_PATH_MAX + 1];	/* a path, or a name to look for in PATH */
	/* [lockspace NAME] */
	uint32_t lockspace_count;
	struct config_lockspace lockspace[CONFIG_LOCKSPACES_MAX];
};

/*
 * One thing that is wrong, as one line: "FILE:LINE: what is wrong and what is
 * allowed", no newline. The text is valid during the call only.
 */
typedef void (*config_report)(void *context, const char *text);

void config_default(struct config *ret_config);

/*
 * Read the file at @path over the defaults. Everything wrong is reported, in
 * order. 0; -EINVAL if anything was reported; a negative errno (reported as
 * well) if the file cannot be read: -ENOENT there is none.
 */
int config_load(const char *path, struct config *ret_config, config_report report, void *context);

/* The same from an open file; @name is what the reports call it. */
int config_parse(FILE *file, const char *name, struct config *ret_config,
		 config_report report, void *context);

/* By name, or NULL. */
const struct config_lockspace *config_lockspace_find(const struct config *config, const char *name,
						     size_t size);

/* Every key there is, for --check, the manual and its test: 1, or 0 behind the last. */
struct config_key_info {
	const char *section;	/* "belayd", or "lockspace" for [lockspace NAME] */
	const char *name;
	char allowed[160];	/* "a number from 1 to 100" */
};
int config_key(unsigned index, struct config_key_info *ret_info);

#endif
