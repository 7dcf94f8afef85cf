/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading belay.conf. libinih splits lines into keys and values; the reader
 * that feeds it counts lines, takes the sections itself (libinih shortens long
 * names in silence and does not tell of empty sections) and notices each line
 * that libinih could make nothing of (it remembers the first only).
 */
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <syslog.h>

#include "daemon/config_parts.h"
#include "slot/slot.h"

struct parser {
	FILE *file;
	const char *name;
	config_report report;
	void *context;
	unsigned errors;
	unsigned line;
	bool awaits_key;		/* libinih was handed a line that must hold a key */
	bool in_section;
	bool skip;			/* the section is wrong, which was reported */
	enum config_section section;
	struct config_lockspace *lockspace;	/* of the section, if it is one */
	/* The line on which a key was set, 0 if it was not. */
	unsigned set_at[CONFIG_KEYS_MAX];
	unsigned set_in_lockspace[CONFIG_KEYS_MAX];
	unsigned lockspace_at[CONFIG_LOCKSPACES_MAX];
	struct config config;
};

__attribute__((format(printf, 3, 4)))
static void wrong(struct parser *p, unsigned line, const char *format, ...)
{
	char text[1024];
	size_t at;
	va_list args;

	at = (size_t)snprintf(text, sizeof(text), line > 0 ? "%s:%u: " : "%s: ", p->name, line);
	if (at < sizeof(text)) {
		va_start(args, format);
		(void)vsnprintf(text + at, sizeof(text) - at, format, args);
		va_end(args);
	}
	/* What the file holds must not reach a terminal or a log as control codes. */
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	p->errors++;
	p->report(p->context, text);
}

/* ---- sections ---- */

/* FNV-1a, never 0: the same name is the same number on every node, for ever. */
static uint32_t lockspace_number(const char *name)
{
	uint32_t hash = 2166136261u;

	for (; *name; name++)
		hash = (hash ^ (uint8_t)*name) * 16777619u;
	return hash ? hash : 1;
}

static void add_lockspace(struct config *config, const char *name, size_t size)
{
	struct config_lockspace *l = &config->lockspace[config->lockspace_count++];

	memcpy(l->name, name, size);
	l->name[size] = '\0';
	l->number = lockspace_number(l->name);
	l->mode = 0660;
}

const struct config_lockspace *config_lockspace_find(const struct config *config, const char *name,
						     size_t size)
{
	for (uint32_t i = 0; i < config->lockspace_count; i++)
		if (strlen(config->lockspace[i].name) == size &&
		    memcmp(config->lockspace[i].name, name, size) == 0)
			return &config->lockspace[i];
	return NULL;
}

/* Has the newest lockspace a number of its own? */
static bool number_is_new(struct parser *p)
{
	struct config *config = &p->config;
	const struct config_lockspace *l = &config->lockspace[config->lockspace_count - 1];

	for (const struct config_lockspace *other = config->lockspace; other < l; other++) {
		if (other->number != l->number)
			continue;
		wrong(p, p->line, "[lockspace %s]: by chance it has the number of [lockspace %s]; "
		      "rename one of them", l->name, other->name);
		return false;
	}
	return true;
}

static bool begin_lockspace(struct parser *p, const char *name, size_t size)
{
	struct config *config = &p->config;
	const struct config_lockspace *known;
	uint32_t at;

	if (!config_is_name(name, size)) {
		wrong(p, p->line, "[lockspace %.*s]: not a name: 1 to %d of letters, digits, . _ -, "
		      "beginning with a letter or digit", (int)size, name, CONFIG_NAME_MAX);
		return false;
	}
	known = config_lockspace_find(config, name, size);
	at = known ? (uint32_t)(known - config->lockspace) : config->lockspace_count;
	if (known && p->lockspace_at[at] > 0) {
		wrong(p, p->line, "[lockspace %.*s]: is there already, on line %u",
		      (int)size, name, p->lockspace_at[at]);
		return false;
	}
	if (at == CONFIG_LOCKSPACES_MAX) {
		wrong(p, p->line, "[lockspace %.*s]: too many lockspaces; %d are allowed",
		      (int)size, name, CONFIG_LOCKSPACES_MAX);
		return false;
	}
	if (!known) {
		add_lockspace(config, name, size);
		if (!number_is_new(p)) {
			config->lockspace_count--;
			return false;
		}
	}
	/* What it means is not for a file to say. */
	if (at == 1) {
		wrong(p, p->line, "[lockspace " CONFIG_VOLUMES_LOCKSPACE "]: belongs to belay-lvmlockd "
		      "and cannot be changed");
		return false;
	}
	p->lockspace = &config->lockspace[at];
	p->lockspace_at[at] = p->line;
	memset(p->set_in_lockspace, 0, sizeof(p->set_in_lockspace));
	return true;
}

/* @text: a line that begins with '['. */
static bool begin_section(struct parser *p, const char *text)
{
	const char *end = strchr(text, ']');
	const char *word, *rest;
	size_t size, rest_size;

	/* Behind it: nothing (which strchr() finds as well) or a comment. */
	if (!end || !strchr(";#", end[1 + strspn(end + 1, " \t")])) {
		wrong(p, p->line, "not a section: it must be [NAME] and nothing else on the line");
		return false;
	}
	word = text + 1 + strspn(text + 1, " \t");
	size = strcspn(word, " \t]");
	rest = word + size + strspn(word + size, " \t");
	rest_size = (size_t)(end - rest);
	while (rest_size > 0 && strchr(" \t", rest[rest_size - 1]))
		rest_size--;

	p->section = config_section_find(word, size);
	if (p->section == CONFIG_LOCKSPACE)
		return begin_lockspace(p, rest, rest_size);
	if (p->section < CONFIG_SECTION_COUNT && rest_size == 0)
		return true;
	wrong(p, p->line, "%.*s: no such section; there are [belayd], [cluster], [limits], "
	      "[policy], [hints], [preload], [lvm] and [lockspace NAME]", (int)(end + 1 - text), text);
	return false;
}

/* ---- lines ---- */

static void check_last_line(struct parser *p)
{
	if (p->awaits_key)
		wrong(p, p->line, "not a line of belay.conf: neither key = value nor [section] nor comment");
	p->awaits_key = false;
}

/*
 * Read a line without its newline and without white space before it (which would
 * make it a continuation). 1; 0: end of file; -1: reported, not to be used.
 */
static int read_line(struct parser *p, char *text, size_t size)
{
	size_t at = 0;
	bool long_line = false, zero = false;
	int c = getc(p->file);

	if (c == EOF)
		return 0;
	p->line++;
	for (; c != EOF && c != '\n'; c = getc(p->file)) {
		if (at == 0 && isspace(c))
			continue;
		zero |= c == '\0';
		if (at + 1 < size)
			text[at++] = (char)c;
		else
			long_line = true;
	}
	text[at] = '\0';
	if (zero)
		wrong(p, p->line, "the line has a zero byte: is this a text file?");
	else if (long_line)
		wrong(p, p->line, "the line is longer than %zu bytes", size - 1);
	return zero || long_line ? -1 : 1;
}

/* libinih's reader, in the manner of fgets(). What it need not see it gets as an empty line. */
static char *next_line(char *buf, int size, void *data)
{
	static const char bom[] = "\xef\xbb\xbf";
	struct parser *p = data;
	char *text = buf;
	size_t end;
	int r;

	check_last_line(p);
	/* Room for the newline. */
	r = read_line(p, text, (size_t)size - 1);
	if (r == 0)
		return NULL;
	if (r < 0)
		text[0] = '\0';
	if (p->line == 1 && strncmp(text, bom, sizeof(bom) - 1) == 0)
		memmove(text, text + sizeof(bom) - 1, strlen(text + sizeof(bom) - 1) + 1);
	for (end = strlen(text); end > 0 && isspace((unsigned char)text[end - 1]); end--)
		text[end - 1] = '\0';

	if (text[0] == '[') {
		p->in_section = true;
		p->skip = !begin_section(p, text);
		text[0] = '\0';
	}
	p->awaits_key = text[0] != '\0' && text[0] != ';' && text[0] != '#';
	end = strlen(text);
	text[end] = '\n';
	text[end + 1] = '\0';
	return buf;
}

/* "[belayd]" or "[lockspace web]", for reports. */
static void name_section(const struct parser *p, char *buf, size_t size)
{
	if (p->section == CONFIG_LOCKSPACE)
		(void)snprintf(buf, size, "[lockspace %s]", p->lockspace->name);
	else
		(void)snprintf(buf, size, "[%s]", config_section_name(p->section));
}

static int on_key(void *data, const char *section, const char *name, const char *value)
{
	struct parser *p = data;
	char where[CONFIG_NAME_MAX + 20], allowed[512];
	unsigned *set_at;
	void *base;
	int key;

	(void)section;
	p->awaits_key = false;
	if (!p->in_section) {
		wrong(p, p->line, "%s: stands before any [section]", name);
		return 1;
	}
	if (p->skip)
		return 1;
	name_section(p, where, sizeof(where));
	key = config_key_find(p->section, name);
	if (key < 0) {
		config_section_keys(p->section, allowed, sizeof(allowed));
		wrong(p, p->line, "%s %s: no such key; there are %s", where, name, allowed);
		return 1;
	}
	set_at = p->section == CONFIG_LOCKSPACE ? &p->set_in_lockspace[key] : &p->set_at[key];
	if (*set_at > 0) {
		wrong(p, p->line, "%s %s: is set already, on line %u", where, name, *set_at);
		return 1;
	}
	*set_at = p->line;
	base = p->section == CONFIG_LOCKSPACE ? (void *)p->lockspace : (void *)&p->config;
	if (config_key_set(key, value, base) < 0) {
		config_key_allowed(key, allowed, sizeof(allowed));
		wrong(p, p->line, "%s %s: \"%s\" is not allowed; it must be %s", where, name, value, allowed);
	}
	return 1;
}

/* ---- the whole ---- */

static void check_paths(struct parser *p)
{
	const struct config_lockspace *l = p->config.lockspace;

	for (uint32_t i = 0; i < p->config.lockspace_count; i++)
		for (uint32_t j = 0; j < i; j++)
			if (l[i].path[0] != '\0' && strcmp(l[i].path, l[j].path) == 0)
				wrong(p, p->lockspace_at[i], "[lockspace %s] path: \"%s\" belongs to "
				      "[lockspace %s] already", l[i].name, l[i].path, l[j].name);
}

int config_parse(FILE *file, const char *name, struct config *ret_config,
		 config_report report, void *context)
{
	struct parser p = { .file = file, .name = name, .report = report, .context = context };

	config_default(&p.config);
	if (ini_parse_stream(next_line, &p, on_key, &p) == -2) {
		wrong(&p, 0, "cannot be read: out of memory");
		return -ENOMEM;
	}
	check_last_line(&p);
	if (ferror(file)) {
		int error = errno > 0 ? errno : EIO;

		wrong(&p, 0, "cannot be read: %s", strerror(error));
		return -error;
	}
	check_paths(&p);
	if (p.errors > 0)
		return -EINVAL;
	*ret_config = p.config;
	return 0;
}

int config_load(const char *path, struct config *ret_config, config_report report, void *context)
{
	FILE *file = fopen(path, "re");
	int r;

	if (!file) {
		struct parser p = { .name = path, .report = report, .context = context };

		r = -errno;
		wrong(&p, 0, "cannot be opened: %s", strerror(-r));
		return r;
	}
	r = config_parse(file, path, ret_config, report, context);
	(void)fclose(file);
	return r;
}

void config_default(struct config *ret_config)
{
	struct config *c = ret_config;

	static_assert(sizeof(BELAY_SOCKET_PATH) <= sizeof(c->socket), "the default fits");
	memset(c, 0, sizeof(*c));
	(void)snprintf(c->socket, sizeof(c->socket), "%s", BELAY_SOCKET_PATH);
	c->socket_group = CONFIG_NO_GROUP;
	c->socket_mode = 0660;
	c->log_level = LOG_NOTICE;
	c->log_target = CONFIG_LOG_SYSLOG;
	/* Beside the socket, wherever that is. */
	(void)snprintf(c->journal, sizeof(c->journal), "%.*s/journal",
		       (int)(strrchr(c->socket, '/') - c->socket), c->socket);
	c->journal_kb = 4096;
	c->clients_max = 4096;
	c->handles_per_client_max = 65536;
	c->requests_per_client_max = 4096;
	c->loans_per_client_max = SLOT_COUNT;
	c->stop_timeout_s = 30;
	c->realtime = 1;

	(void)snprintf(c->group, sizeof(c->group), "belay");
	c->node_id = 1;

	c->limits.resources_max = 1048576;
	c->limits.locks_max = 4194304;
	c->limits.waiters_max = 65536;
	c->limits.locks_per_owner_max = 1048576;
	c->requests_max = 65536;
	/* A loan costs the core some hundred bytes, and the client's files open at one
	 * time are its loans: a few for each of clients_max. */
	c->loans_max = 16384;

	c->min_hold_us = 2000;
	c->idle_s = 60;
	c->claim_streak = 32;
	c->share_streak = 64;
	c->lend_after = 4;
	c->unlock_linger_us = 100;

	c->hints_port = 21066;

	(void)snprintf(c->lvm_socket, sizeof(c->lvm_socket), "/run/lvm/lvmlockd.socket");
	(void)snprintf(c->lvm_pid_file, sizeof(c->lvm_pid_file), "/run/lvmlockd.pid");
	c->lvm_wait_s = 60;
	c->lvm_command_timeout_s = 120;
	(void)snprintf(c->lvm_path, sizeof(c->lvm_path), "lvm");

	add_lockspace(c, CONFIG_DEFAULT_LOCKSPACE, strlen(CONFIG_DEFAULT_LOCKSPACE));
	c->lockspace[0].mode = 0666;
	/* The same on all nodes whatever their configuration, for the engine knows it. */
	add_lockspace(c, CONFIG_VOLUMES_LOCKSPACE, strlen(CONFIG_VOLUMES_LOCKSPACE));
	c->lockspace[1].number = BELAY_LOCKSPACE_VOLUMES;
	c->lockspace[1].mode = 0600;
}
