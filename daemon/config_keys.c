/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The keys of belay.conf as a table: the table is the specification. */
#include <arpa/inet.h>
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stddef.h>
#include <string.h>
#include <syslog.h>

#include "daemon/config_parts.h"
#include "slot/slot.h"

enum key_type {
	KEY_NUMBER,	/* uint32_t, min..max */
	KEY_POWER,	/* the same, and a power of two */
	KEY_WORD,	/* uint32_t, one of words */
	KEY_MODE,	/* uint32_t, octal, 0..max */
	KEY_USER,	/* uint32_t, a name or a number */
	KEY_GROUP,
	KEY_PATH,	/* char[max + 1], absolute */
	KEY_PATHS,	/* the same, several with blanks between */
	KEY_NAME,	/* char[max + 1] */
	KEY_PROGRAM,	/* char[max + 1], absolute, or a name to look for in PATH */
	KEY_ADDRESS,	/* char[max + 1], of IPv4 or IPv6 */
};

struct word {
	const char *name;
	uint32_t value;
};

struct config_key {
	enum config_section section;
	const char *name;
	enum key_type type;
	size_t offset;
	uint32_t min, max;
	const struct word *words;
};

static const char *const sections[CONFIG_SECTION_COUNT] = {
	[CONFIG_BELAYD]	   = "belayd",
	[CONFIG_CLUSTER]   = "cluster",
	[CONFIG_LIMITS]	   = "limits",
	[CONFIG_POLICY]	   = "policy",
	[CONFIG_HINTS]	   = "hints",
	[CONFIG_PRELOAD]   = "preload",
	[CONFIG_LVM]	   = "lvm",
	[CONFIG_LOCKSPACE] = "lockspace",
};

static const struct word log_levels[] = {
	{ "error", LOG_ERR }, { "warning", LOG_WARNING }, { "notice", LOG_NOTICE },
	{ "info", LOG_INFO }, { "debug", LOG_DEBUG }, { NULL, 0 },
};
static const struct word log_targets[] = {
	{ "syslog", CONFIG_LOG_SYSLOG }, { "stderr", CONFIG_LOG_STDERR }, { NULL, 0 },
};
static const struct word yes_no[] = {
	{ "yes", 1 }, { "no", 0 }, { NULL, 0 },
};
static const struct word unreachables[] = {
	{ "fail", 0 }, { "kernel", 1 }, { NULL, 0 },
};
static const struct word quorum_losses[] = {
	{ "none", CONFIG_QUORUM_LOSS_NONE }, { "freeze", CONFIG_QUORUM_LOSS_FREEZE },
	{ "error", CONFIG_QUORUM_LOSS_ERROR }, { NULL, 0 },
};
static const struct word fencings[] = {
	{ "operator", 0 }, { "none", 1 }, { NULL, 0 },
};

/* clang-format off */
#define IN(member) offsetof(struct config, member)
#define OF(member) offsetof(struct config_lockspace, member)
static const struct config_key keys[] = {
	{ CONFIG_BELAYD, "socket",		    KEY_PATH,	IN(socket), 1, 107, NULL },
	{ CONFIG_BELAYD, "socket_group",	    KEY_GROUP,	IN(socket_group), 0, 0, NULL },
	{ CONFIG_BELAYD, "socket_mode",		    KEY_MODE,	IN(socket_mode), 0, 0777, NULL },
	{ CONFIG_BELAYD, "log_level",		    KEY_WORD,	IN(log_level), 0, 0, log_levels },
	{ CONFIG_BELAYD, "log_target",		    KEY_WORD,	IN(log_target), 0, 0, log_targets },
	{ CONFIG_BELAYD, "journal",		    KEY_PATH,	IN(journal), 1, CONFIG_PATH_MAX, NULL },
	{ CONFIG_BELAYD, "journal_kb",		    KEY_NUMBER, IN(journal_kb), 256, 1048576, NULL },
	{ CONFIG_BELAYD, "clients_max",		    KEY_NUMBER, IN(clients_max), 1, 65535, NULL },
	{ CONFIG_BELAYD, "handles_per_client_max",  KEY_NUMBER, IN(handles_per_client_max), 1, 1048576, NULL },
	{ CONFIG_BELAYD, "requests_per_client_max", KEY_NUMBER, IN(requests_per_client_max), 1, 1048576, NULL },
	{ CONFIG_BELAYD, "loans_per_client_max",    KEY_NUMBER, IN(loans_per_client_max), 0, SLOT_COUNT, NULL },
	{ CONFIG_BELAYD, "stop_timeout_s",	    KEY_NUMBER, IN(stop_timeout_s), 0, 3600, NULL },
	{ CONFIG_BELAYD, "realtime",		    KEY_WORD,	IN(realtime), 0, 0, yes_no },

	{ CONFIG_CLUSTER, "group",		    KEY_NAME,	IN(group), 1, CONFIG_NAME_MAX, NULL },
	{ CONFIG_CLUSTER, "fencing",		    KEY_WORD,	IN(fencing_none), 0, 0, fencings },
	{ CONFIG_CLUSTER, "node_id",		    KEY_NUMBER, IN(node_id), 1, UINT32_MAX, NULL },

	{ CONFIG_LIMITS, "resources_max",	    KEY_NUMBER, IN(limits.resources_max), 16, 16777216, NULL },
	{ CONFIG_LIMITS, "locks_max",		    KEY_NUMBER, IN(limits.locks_max), 16, 67108864, NULL },
	{ CONFIG_LIMITS, "waiters_max",		    KEY_NUMBER, IN(limits.waiters_max), 16, 4194304, NULL },
	{ CONFIG_LIMITS, "locks_per_owner_max",	    KEY_NUMBER, IN(limits.locks_per_owner_max), 16, 67108864, NULL },
	{ CONFIG_LIMITS, "requests_max",	    KEY_NUMBER, IN(requests_max), 16, 4194304, NULL },
	{ CONFIG_LIMITS, "loans_max",		    KEY_NUMBER, IN(loans_max), 0, 1048576, NULL },

	{ CONFIG_POLICY, "min_hold_us",		    KEY_NUMBER, IN(min_hold_us), 0, 1000000, NULL },
	{ CONFIG_POLICY, "idle_s",		    KEY_NUMBER, IN(idle_s), 1, 4000, NULL },
	{ CONFIG_POLICY, "claim_streak",	    KEY_POWER,	IN(claim_streak), 1, 65536, NULL },
	{ CONFIG_POLICY, "share_streak",	    KEY_NUMBER, IN(share_streak), 1, 65536, NULL },
	{ CONFIG_POLICY, "lend_after",		    KEY_NUMBER, IN(lend_after), 1, 65536, NULL },
	{ CONFIG_POLICY, "unlock_linger_us",	    KEY_NUMBER, IN(unlock_linger_us), 0, 10000, NULL },

	{ CONFIG_HINTS, "enabled",		    KEY_WORD,	IN(hints_enabled), 0, 0, yes_no },
	{ CONFIG_HINTS, "port",			    KEY_NUMBER, IN(hints_port), 1, 65535, NULL },
	{ CONFIG_HINTS, "address",		    KEY_ADDRESS, IN(hints_address), 1, CONFIG_ADDRESS_MAX, NULL },
	{ CONFIG_HINTS, "key_file",		    KEY_PATH,	IN(hints_key_file), 1, CONFIG_PATH_MAX, NULL },

	{ CONFIG_PRELOAD, "paths",		    KEY_PATHS,	IN(preload_paths), 1, CONFIG_PATH_MAX, NULL },
	{ CONFIG_PRELOAD, "on_unreachable",	    KEY_WORD,	IN(preload_may_fall_back), 0, 0, unreachables },

	{ CONFIG_LVM, "socket",			    KEY_PATH,	IN(lvm_socket), 1, 107, NULL },
	{ CONFIG_LVM, "pid_file",		    KEY_PATH,	IN(lvm_pid_file), 1, CONFIG_PATH_MAX, NULL },
	{ CONFIG_LVM, "wait_s",			    KEY_NUMBER, IN(lvm_wait_s), 0, 86400, NULL },
	{ CONFIG_LVM, "lv_wait_s",		    KEY_NUMBER, IN(lvm_lv_wait_s), 0, 86400, NULL },
	{ CONFIG_LVM, "command_timeout_s",	    KEY_NUMBER, IN(lvm_command_timeout_s), 1, 86400, NULL },
	{ CONFIG_LVM, "on_quorum_loss",		    KEY_WORD,	IN(lvm_on_quorum_loss), 0, 0, quorum_losses },
	{ CONFIG_LVM, "lvm_path",		    KEY_PROGRAM, IN(lvm_path), 1, CONFIG_PATH_MAX, NULL },

	{ CONFIG_LOCKSPACE, "path",		    KEY_PATH,	OF(path), 1, CONFIG_PATH_MAX, NULL },
	{ CONFIG_LOCKSPACE, "owner",		    KEY_USER,	OF(owner), 0, 0, NULL },
	{ CONFIG_LOCKSPACE, "group",		    KEY_GROUP,	OF(group), 0, 0, NULL },
	{ CONFIG_LOCKSPACE, "mode",		    KEY_MODE,	OF(mode), 0, 0666, NULL },
};
#undef IN
#undef OF
/* clang-format on */

#define KEY_COUNT (sizeof(keys) / sizeof(keys[0]))

static_assert(KEY_COUNT <= CONFIG_KEYS_MAX, "a line number for each key");

enum config_section config_section_find(const char *name, size_t size)
{
	for (unsigned i = 0; i < CONFIG_SECTION_COUNT; i++)
		if (strlen(sections[i]) == size && memcmp(sections[i], name, size) == 0)
			return (enum config_section)i;
	return CONFIG_SECTION_COUNT;
}

const char *config_section_name(enum config_section section)
{
	assert(section < CONFIG_SECTION_COUNT);
	return sections[section];
}

int config_key_find(enum config_section section, const char *name)
{
	for (unsigned i = 0; i < KEY_COUNT; i++)
		if (keys[i].section == section && strcmp(keys[i].name, name) == 0)
			return (int)i;
	return -1;
}

/* Digits only, no sign, no white space; max fits, so no overflow. */
static int parse_number(const char *text, unsigned base, uint32_t max, uint32_t *ret_number)
{
	uint64_t number = 0;

	if (*text == '\0')
		return -EINVAL;
	for (; *text; text++) {
		if (*text < '0' || *text >= (char)('0' + base))
			return -EINVAL;
		number = number * base + (unsigned)(*text - '0');
		if (number > max)
			return -EINVAL;
	}
	*ret_number = (uint32_t)number;
	return 0;
}

static int parse_user(const char *text, uint32_t *ret_id)
{
	const struct passwd *user;

	if (parse_number(text, 10, UINT32_MAX - 1, ret_id) == 0)
		return 0;
	user = getpwnam(text);
	if (!user)
		return -EINVAL;
	*ret_id = user->pw_uid;
	return 0;
}

static int parse_group(const char *text, uint32_t *ret_id)
{
	const struct group *group;

	if (parse_number(text, 10, UINT32_MAX - 1, ret_id) == 0)
		return 0;
	group = getgrnam(text);
	if (!group)
		return -EINVAL;
	*ret_id = group->gr_gid;
	return 0;
}

static int parse_word(const char *text, const struct word *words, uint32_t *ret_value)
{
	for (; words->name; words++) {
		if (strcmp(words->name, text) == 0) {
			*ret_value = words->value;
			return 0;
		}
	}
	return -EINVAL;
}

static int set_number(const struct config_key *key, const char *value, uint32_t *to)
{
	uint32_t number = 0;
	int r = -EINVAL;

	switch (key->type) {
	case KEY_NUMBER:
	case KEY_POWER:
		r = parse_number(value, 10, key->max, &number);
		if (r == 0 && number < key->min)
			r = -EINVAL;
		if (r == 0 && key->type == KEY_POWER && (number & (number - 1)) != 0)
			r = -EINVAL;
		break;
	case KEY_MODE:
		r = parse_number(value, 8, key->max, &number);
		break;
	case KEY_USER:
		r = parse_user(value, &number);
		break;
	case KEY_GROUP:
		r = parse_group(value, &number);
		break;
	case KEY_WORD:
		r = parse_word(value, key->words, &number);
		break;
	case KEY_PATH:
	case KEY_PATHS:
	case KEY_NAME:
	case KEY_PROGRAM:
	case KEY_ADDRESS:
		break;
	}
	if (r == 0)
		*to = number;
	return r;
}

/* Absolute; no blank at the end, which the file could not say without a slash behind it. */
static bool is_path(const char *text, size_t size)
{
	return text[0] == '/' && !isspace((unsigned char)text[size - 1]);
}

/* Each of them absolute, and one at least. */
static bool are_paths(const char *text, size_t size)
{
	bool blank = true;

	for (size_t i = 0; i < size; i++) {
		if (blank && text[i] != '/' && text[i] != ' ')
			return false;
		blank = text[i] == ' ';
		/* Where programs look for them they stand with colons between. */
		if (text[i] == ':' || text[i] == '\t')
			return false;
	}
	return size > 0 && text[0] == '/';
}

static bool is_address(const char *text)
{
	uint8_t address[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, text, address) == 1 || inet_pton(AF_INET6, text, address) == 1;
}

static bool is_text(const struct config_key *key, const char *value, size_t size)
{
	switch (key->type) {
	case KEY_NAME:
		return config_is_name(value, size);
	case KEY_ADDRESS:
		return is_address(value);
	case KEY_PATHS:
		return are_paths(value, size);
	case KEY_PROGRAM:
		return config_is_name(value, size) || is_path(value, size);
	default:
		return is_path(value, size);
	}
}

int config_key_set(int number, const char *value, void *base)
{
	const struct config_key *key;
	size_t size = strlen(value);
	char *to;

	assert(number >= 0 && (size_t)number < KEY_COUNT);
	key = &keys[number];
	to = (char *)base + key->offset;
	if (key->type != KEY_PATH && key->type != KEY_PATHS && key->type != KEY_NAME &&
	    key->type != KEY_PROGRAM && key->type != KEY_ADDRESS)
		return set_number(key, value, (uint32_t *)(void *)to);

	/* Paths are compared: "/srv/" is "/srv". */
	while (key->type == KEY_PATH && size > 1 && value[size - 1] == '/')
		size--;
	if (size > key->max || !is_text(key, value, size))
		return -EINVAL;
	memcpy(to, value, size);
	to[size] = '\0';
	return 0;
}

void config_key_allowed(int number, char *buf, size_t size)
{
	const struct config_key *key;
	size_t at = 0;

	assert(number >= 0 && (size_t)number < KEY_COUNT);
	key = &keys[number];
	switch (key->type) {
	case KEY_NUMBER:
	case KEY_POWER:
		(void)snprintf(buf, size, "a %s from %" PRIu32 " to %" PRIu32,
			       key->type == KEY_POWER ? "power of two" : "number", key->min, key->max);
		break;
	case KEY_MODE:
		(void)snprintf(buf, size, "an octal mode up to %04o", key->max);
		break;
	case KEY_USER:
		(void)snprintf(buf, size, "a user of this node, by name or number");
		break;
	case KEY_GROUP:
		(void)snprintf(buf, size, "a group of this node, by name or number");
		break;
	case KEY_PATH:
		(void)snprintf(buf, size, "an absolute path of at most %" PRIu32 " bytes", key->max);
		break;
	case KEY_NAME:
		(void)snprintf(buf, size, "a name: 1 to %" PRIu32 " of letters, digits, . _ -, "
			       "beginning with a letter or digit", key->max);
		break;
	case KEY_PROGRAM:
		(void)snprintf(buf, size, "an absolute path of at most %" PRIu32 " bytes, or the name of a "
			       "program", key->max);
		break;
	case KEY_PATHS:
		(void)snprintf(buf, size, "absolute paths with blanks between, together at most %" PRIu32
			       " bytes", key->max);
		break;
	case KEY_ADDRESS:
		(void)snprintf(buf, size, "an address of IPv4 or IPv6, in numbers");
		break;
	case KEY_WORD:
		buf[0] = '\0';
		for (const struct word *w = key->words; w->name && at < size; w++)
			at += (size_t)snprintf(buf + at, size - at, "%s%s", at == 0 ? "" :
					       w[1].name ? ", " : " or ", w->name);
		break;
	}
}

void config_section_keys(enum config_section section, char *buf, size_t size)
{
	size_t at = 0;

	assert(size > 0);
	buf[0] = '\0';
	for (unsigned i = 0; i < KEY_COUNT && at < size; i++)
		if (keys[i].section == section)
			at += (size_t)snprintf(buf + at, size - at, "%s%s", at == 0 ? "" : ", ",
					       keys[i].name);
}

static bool is_letter_or_digit(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool config_is_name(const char *text, size_t size)
{
	if (size == 0 || size > CONFIG_NAME_MAX || !is_letter_or_digit(text[0]))
		return false;
	for (size_t i = 0; i < size; i++)
		if (!is_letter_or_digit(text[i]) && (text[i] == '\0' || !strchr("._-", text[i])))
			return false;
	return true;
}

int config_key(unsigned index, struct config_key_info *ret_info)
{
	struct config_key_info info = { 0 };

	if (index >= KEY_COUNT)
		return 0;
	info.section = sections[keys[index].section];
	info.name = keys[index].name;
	config_key_allowed((int)index, info.allowed, sizeof(info.allowed));
	*ret_info = info;
	return 1;
}
