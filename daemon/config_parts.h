/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between config.c, which reads a file, and config_keys.c, which knows the keys. */
#ifndef BELAY_DAEMON_CONFIG_PARTS_H
#define BELAY_DAEMON_CONFIG_PARTS_H

#include "daemon/config.h"

enum config_section {
	CONFIG_BELAYD,
	CONFIG_CLUSTER,
	CONFIG_LIMITS,
	CONFIG_POLICY,
	CONFIG_HINTS,
	CONFIG_PRELOAD,
	CONFIG_LVM,
	CONFIG_LOCKSPACE,
	CONFIG_SECTION_COUNT
};

/* By name; CONFIG_SECTION_COUNT: there is none. */
enum config_section config_section_find(const char *name, size_t size);
/* And back: "belayd". */
const char *config_section_name(enum config_section section);

/* Number of a key, or -1. */
int config_key_find(enum config_section section, const char *name);
#define CONFIG_KEYS_MAX 48

/*
 * Set key @key from @value. @base is the struct config, or for a key of
 * [lockspace] the struct config_lockspace. 0 or -EINVAL with nothing changed.
 */
int config_key_set(int key, const char *value, void *base);

/* What is allowed for a key, for people. */
void config_key_allowed(int key, char *buf, size_t size);

/* "socket, socket_group, ...": the keys of a section. */
void config_section_keys(enum config_section section, char *buf, size_t size);

/* 1..CONFIG_NAME_MAX of letters, digits, dot, underscore, hyphen, the first no hyphen or dot. */
bool config_is_name(const char *text, size_t size);

#endif
