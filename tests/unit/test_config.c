/* SPDX-License-Identifier: GPL-2.0-or-later */
/* belay.conf: what is read from good files, and the exact words about bad ones. */
#include <syslog.h>
#include <unistd.h>

#include "daemon/config.h"
#include "tests/tap.h"

struct reports {
	char text[8192];
	size_t size;
};

static void collect(void *context, const char *text)
{
	struct reports *r = context;

	r->size += (size_t)snprintf(r->text + r->size, sizeof(r->text) - r->size, "%s%s",
				    r->size > 0 ? "\n" : "", text);
}

static int parse_bytes(const char *text, size_t size, struct config *ret_config, struct reports *r)
{
	FILE *file = tmpfile();
	int result;

	if (!file || fwrite(text, 1, size, file) != size)
		bail_out("no temporary file");
	rewind(file);
	*r = (struct reports){ .size = 0 };
	result = config_parse(file, "f", ret_config, collect, r);
	fclose(file);
	return result;
}

static int parse(const char *text, struct config *ret_config, struct reports *r)
{
	return parse_bytes(text, strlen(text), ret_config, r);
}

#define LONG_40 "aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd"
#define SECTIONS "there are [belayd], [cluster], [limits], [policy], [hints], [preload], [lvm] and [lockspace NAME]"
#define NAMES "1 to 63 of letters, digits, . _ -, beginning with a letter or digit"

static const struct {
	const char *what, *text, *reports;
} bad[] = {
	{ "an unknown key", "[cluster]\ngruop = x\n",
	  "f:2: [cluster] gruop: no such key; there are group, fencing, node_id" },
	{ "a key of another section", "[policy]\nfencing = none\n",
	  "f:2: [policy] fencing: no such key; there are min_hold_us, idle_s, claim_streak, share_streak, lend_after, "
	  "unlock_linger_us" },
	{ "an unknown section, whose keys are not told again", "[belyad]\nsocket = /x\n",
	  "f:1: [belyad]: no such section; " SECTIONS },
	{ "an unknown section without keys", "[x]\n", "f:1: [x]: no such section; " SECTIONS },
	{ "a section without a name", "[]\n", "f:1: []: no such section; " SECTIONS },
	{ "words behind a section's name", "[belayd x]\n", "f:1: [belayd x]: no such section; " SECTIONS },
	{ "a section that does not end", "[belayd\n",
	  "f:1: not a section: it must be [NAME] and nothing else on the line" },
	{ "something behind a section", "[belayd] socket = /x\n",
	  "f:1: not a section: it must be [NAME] and nothing else on the line" },
	{ "a key outside", "socket = /x\n[belayd]\n", "f:1: socket: stands before any [section]" },
	{ "a key without =", "[belayd]\nsocket /x\n",
	  "f:2: not a line of belay.conf: neither key = value nor [section] nor comment" },
	{ "the same on the last line, without newline", "[belayd]\nsocket",
	  "f:2: not a line of belay.conf: neither key = value nor [section] nor comment" },
	{ "two such lines: both are told", "[belayd]\na\nb\n",
	  "f:2: not a line of belay.conf: neither key = value nor [section] nor comment\n"
	  "f:3: not a line of belay.conf: neither key = value nor [section] nor comment" },
	{ "a key twice", "[belayd]\nsocket = /a\nsocket = /b\n",
	  "f:3: [belayd] socket: is set already, on line 2" },
	{ "a key twice, in two parts of one section", "[policy]\nidle_s = 1\n[cluster]\n[policy]\nidle_s = 2\n",
	  "f:5: [policy] idle_s: is set already, on line 2" },
	{ "a word for a number", "[limits]\nlocks_max = many\n",
	  "f:2: [limits] locks_max: \"many\" is not allowed; it must be a number from 16 to 67108864" },
	{ "no number", "[limits]\nlocks_max =\n",
	  "f:2: [limits] locks_max: \"\" is not allowed; it must be a number from 16 to 67108864" },
	{ "a path that is not absolute among others", "[preload]\npaths = /srv/a srv/b\n",
	  "f:2: [preload] paths: \"/srv/a srv/b\" is not allowed; it must be absolute paths with blanks "
	  "between, together at most 255 bytes" },
	{ "paths as the shell has them", "[preload]\npaths = /srv/a:/srv/b\n",
	  "f:2: [preload] paths: \"/srv/a:/srv/b\" is not allowed; it must be absolute paths with blanks "
	  "between, together at most 255 bytes" },
	{ "a program by neither name nor path", "[lvm]\nlvm_path = sbin/lvm\n",
	  "f:2: [lvm] lvm_path: \"sbin/lvm\" is not allowed; it must be an absolute path of at most 255 bytes, or "
	  "the name of a program" },
	{ "another word for quorum", "[lvm]\non_quorum_loss = panic\n",
	  "f:2: [lvm] on_quorum_loss: \"panic\" is not allowed; it must be none, freeze or error" },
	{ "another word for what to do", "[preload]\non_unreachable = ignore\n",
	  "f:2: [preload] on_unreachable: \"ignore\" is not allowed; it must be fail or kernel" },
	{ "a name for an address", "[hints]\naddress = n1.example\n",
	  "f:2: [hints] address: \"n1.example\" is not allowed; it must be an address of IPv4 or IPv6, in numbers" },
	{ "something behind an address", "[hints]\naddress = 192.0.2.1:5\n",
	  "f:2: [hints] address: \"192.0.2.1:5\" is not allowed; it must be an address of IPv4 or IPv6, in numbers" },
	{ "a number too small", "[belayd]\nclients_max = 0\n",
	  "f:2: [belayd] clients_max: \"0\" is not allowed; it must be a number from 1 to 65535" },
	{ "a number too large by one", "[belayd]\nclients_max = 65536\n",
	  "f:2: [belayd] clients_max: \"65536\" is not allowed; it must be a number from 1 to 65535" },
	{ "a number beyond 64 bits", "[cluster]\nnode_id = 99999999999999999999999999\n",
	  "f:2: [cluster] node_id: \"99999999999999999999999999\" is not allowed; "
	  "it must be a number from 1 to 4294967295" },
	{ "a negative number", "[policy]\nidle_s = -1\n",
	  "f:2: [policy] idle_s: \"-1\" is not allowed; it must be a number from 1 to 4000" },
	{ "a hexadecimal number", "[policy]\nidle_s = 0x10\n",
	  "f:2: [policy] idle_s: \"0x10\" is not allowed; it must be a number from 1 to 4000" },
	{ "a number with a unit", "[policy]\nidle_s = 60s\n",
	  "f:2: [policy] idle_s: \"60s\" is not allowed; it must be a number from 1 to 4000" },
	{ "a streak of none", "[policy]\nshare_streak = 0\n",
	  "f:2: [policy] share_streak: \"0\" is not allowed; it must be a number from 1 to 65536" },
	{ "a loan before anything was asked for", "[policy]\nlend_after = 0\n",
	  "f:2: [policy] lend_after: \"0\" is not allowed; it must be a number from 1 to 65536" },
	{ "no power of two", "[policy]\nclaim_streak = 33\n",
	  "f:2: [policy] claim_streak: \"33\" is not allowed; it must be a power of two from 1 to 65536" },
	{ "a word that is none of them", "[cluster]\nfencing = maybe\n",
	  "f:2: [cluster] fencing: \"maybe\" is not allowed; it must be operator or none" },
	{ "the same of many", "[belayd]\nlog_level = loud\n",
	  "f:2: [belayd] log_level: \"loud\" is not allowed; it must be error, warning, notice, info or debug" },
	{ "a mode that is not octal", "[belayd]\nsocket_mode = 0680\n",
	  "f:2: [belayd] socket_mode: \"0680\" is not allowed; it must be an octal mode up to 0777" },
	{ "a mode too large", "[belayd]\nsocket_mode = 1777\n",
	  "f:2: [belayd] socket_mode: \"1777\" is not allowed; it must be an octal mode up to 0777" },
	{ "a relative path", "[belayd]\nsocket = run/belayd.sock\n",
	  "f:2: [belayd] socket: \"run/belayd.sock\" is not allowed; "
	  "it must be an absolute path of at most 107 bytes" },
	{ "a path too long for a socket", "[belayd]\nsocket = /" LONG_40 LONG_40 LONG_40 "\n",
	  "f:2: [belayd] socket: \"/" LONG_40 LONG_40 LONG_40
	  "\" is not allowed; it must be an absolute path of at most 107 bytes" },
	{ "a path with a blank at its end", "[belayd]\njournal = /a /\n",
	  "f:2: [belayd] journal: \"/a /\" is not allowed; it must be an absolute path of at most 255 bytes" },
	{ "a user that does not exist", "[lockspace a]\nowner = no-such-user\n",
	  "f:2: [lockspace a] owner: \"no-such-user\" is not allowed; "
	  "it must be a user of this node, by name or number" },
	{ "a group that does not exist", "[belayd]\nsocket_group = no-such-group\n",
	  "f:2: [belayd] socket_group: \"no-such-group\" is not allowed; "
	  "it must be a group of this node, by name or number" },
	{ "a group's name that is none", "[cluster]\ngroup = a/b\n",
	  "f:2: [cluster] group: \"a/b\" is not allowed; it must be a name: " NAMES },
	{ "a lockspace without a name", "[lockspace]\npath = /srv\n", "f:1: [lockspace ]: not a name: " NAMES },
	{ "a lockspace with a wrong name", "[lockspace a b]\n", "f:1: [lockspace a b]: not a name: " NAMES },
	{ "a lockspace with a name of 64", "[lockspace " LONG_40 "aaaaaaaaaabbbbbbbbbbcccc]\n",
	  "f:1: [lockspace " LONG_40 "aaaaaaaaaabbbbbbbbbbcccc]: not a name: " NAMES },
	{ "a lockspace twice", "[lockspace a]\n\n[lockspace a]\npath = /srv\n",
	  "f:3: [lockspace a]: is there already, on line 1" },
	{ "the default lockspace twice", "[lockspace default]\n[lockspace default]\n",
	  "f:2: [lockspace default]: is there already, on line 1" },
	{ "two names with one number", "[lockspace costarring]\n[lockspace liquid]\npath = /srv\n",
	  "f:2: [lockspace liquid]: by chance it has the number of [lockspace costarring]; rename one of them" },
	{ "a directory for two lockspaces", "[lockspace a]\npath = /srv\n[lockspace b]\npath = /srv/\n",
	  "f:3: [lockspace b] path: \"/srv\" belongs to [lockspace a] already" },
	{ "a key of a lockspace twice", "[lockspace a]\nmode = 0600\n[lockspace b]\nmode = 0600\nmode = 0640\n",
	  "f:5: [lockspace b] mode: is set already, on line 4" },
	{ "control codes are not passed on", "[belayd]\nlog_level = \033[2J\n",
	  "f:2: [belayd] log_level: \"?[2J\" is not allowed; it must be error, warning, notice, info or debug" },
	{ "all at once", "x\n[belayd]\nsockt = /x\nclients_max = 0\n[nosuch]\nfoo = 1\n[lockspace -]\n",
	  "f:1: not a line of belay.conf: neither key = value nor [section] nor comment\n"
	  "f:3: [belayd] sockt: no such key; there are socket, socket_group, socket_mode, log_level, log_target, "
	  "journal, journal_kb, clients_max, handles_per_client_max, requests_per_client_max, "
	  "loans_per_client_max, stop_timeout_s, "
	  "realtime\n"
	  "f:4: [belayd] clients_max: \"0\" is not allowed; it must be a number from 1 to 65535\n"
	  "f:5: [nosuch]: no such section; " SECTIONS "\n"
	  "f:7: [lockspace -]: not a name: " NAMES },
};

static void test_bad(void)
{
	struct config before, config;
	struct reports r;

	memset(&before, 0x5a, sizeof(before));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		config = before;
		ok_int(parse(bad[i].text, &config, &r), -EINVAL, "%s: refused", bad[i].what);
		ok_str(r.text, bad[i].reports, "%s: and this is said", bad[i].what);
		ok(memcmp(&before, &config, sizeof(config)) == 0, "%s: nothing has changed", bad[i].what);
	}
}

static void test_bad_bytes(void)
{
	static const char zero[] = "[belayd]\nlog_level = debug\0debug\n";
	char line[4096];
	struct config config;
	struct reports r;

	ok_int(parse_bytes(zero, sizeof(zero) - 1, &config, &r), -EINVAL, "a zero byte: refused");
	ok_str(r.text, "f:2: the line has a zero byte: is this a text file?", "a zero byte: said");

	memset(line, 'x', sizeof(line));
	memcpy(line, "[belayd]\nsocket = /", 19);
	memcpy(line + sizeof(line) - 13, "\nno_such = 1\n", 13);
	ok_int(parse_bytes(line, sizeof(line), &config, &r), -EINVAL, "a long line: refused");
	ok(strstr(r.text, "f:2: the line is longer than ") == r.text, "a long line: said");
	ok(strstr(r.text, "\nf:3: [belayd] no_such: no such key") != NULL,
	   "and the next line has its own number");
}

static void test_too_many(void)
{
	char text[8192];
	size_t at = 0;
	struct config config;
	struct reports r;

	for (int i = 2; i < CONFIG_LOCKSPACES_MAX; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "[lockspace l%d]\n", i);
	ok_int(parse(text, &config, &r), 0, "as many lockspaces as there may be, with the two that are always there");
	ok_uint(config.lockspace_count, CONFIG_LOCKSPACES_MAX, "all are there");
	snprintf(text + at, sizeof(text) - at, "[lockspace last]\n");
	ok_int(parse(text, &config, &r), -EINVAL, "one more: refused");
	ok_str(r.text, "f:63: [lockspace last]: too many lockspaces; 64 are allowed", "and said");
}

static void test_good(void)
{
	static const char text[] =
		"\xef\xbb\xbf; a comment, and the mark that some editors put first\r\n"
		"# another\n"
		"\n"
		"[ belayd ] ; this is one, too\n"
		"  socket=/run/x/y/\n"
		"\v\tlog_level : debug ; and this\r\n"
		"log_target = stderr\n"
		"socket_group = 7\n"
		"socket_mode = 666\n"
		"[limits]\n"
		"locks_max = 0000000016\n"
		"[lockspace web-1.x]\n"
		"path = /\n"
		"owner = root\n"
		"group = root\n"
		"mode = 0640\n"
		"[belayd]\n"
		"clients_max = 65535\n"
		"[lockspace default]\n"
		"mode = 0600\n"
		"[cluster]\n"
		"fencing = none";
	const struct config_lockspace *web;
	struct config config;
	struct reports r;

	if (!ok_int(parse(text, &config, &r), 0, "a file with everything"))
		diag("%s", r.text);
	ok_str(r.text, "", "nothing is said");
	ok_str(config.socket, "/run/x/y", "a path, without the slash at its end");
	ok_uint(config.log_level, LOG_DEBUG, "a word");
	ok_uint(config.log_target, CONFIG_LOG_STDERR, "another");
	ok_uint(config.socket_group, 7, "a group by number");
	ok_uint(config.socket_mode, 0666, "a mode without a zero before it");
	ok_uint(config.limits.locks_max, 16, "a number with many");
	ok_uint(config.clients_max, 65535, "a section may come in two parts");
	ok_uint(config.fencing_none, 1, "the last line needs no newline");
	ok_uint(config.lockspace_count, 3, "one lockspace more");
	ok_uint(config.lockspace[0].mode, 0600, "the default one, changed");
	web = config_lockspace_find(&config, "web-1.x", 7);
	ok(web == &config.lockspace[2], "found by name");
	ok_str(web->path, "/", "its path");
	ok_uint(web->mode, 0640, "its mode");
	ok(config_lockspace_find(&config, "web-1.", 6) == NULL, "not by half of its name");
	/* For ever: a number that changes makes nodes of two versions lock different things. */
	ok_uint(config.lockspace[0].number, 2470140894u, "the number of \"default\"");
	ok_uint(config.lockspace[1].number, BELAY_LOCKSPACE_VOLUMES, "the number of \"volumes\"");
	ok_uint(web->number, 722064705u, "the number of \"web-1.x\"");
}

static void test_empty(void)
{
	struct config config, defaults;
	struct reports r;

	config_default(&defaults);
	ok_int(parse("", &config, &r), 0, "an empty file");
	ok(memcmp(&config, &defaults, sizeof(config)) == 0, "gives the defaults");
	ok_uint(defaults.lockspace_count, 2, "there are two lockspaces");
	ok_str(defaults.lockspace[0].name, "default", "of this name");
	ok_str(defaults.lockspace[0].path, "", "it has no files");
	ok_str(defaults.lockspace[1].name, "volumes", "and of this");
	ok_uint(defaults.lockspace[1].mode, 0600, "which is root's");
	ok_uint(defaults.fencing_none, 0, "a node that left is not taken for fenced");
}

static void test_files(void)
{
	struct reports r = { .size = 0 };
	struct config config;

	ok_int(config_load("/nonexistent/belay.conf", &config, collect, &r), -ENOENT, "no file");
	ok_str(r.text, "/nonexistent/belay.conf: cannot be opened: No such file or directory", "said so");
	r = (struct reports){ .size = 0 };
	ok_int(config_load("/", &config, collect, &r), -EISDIR, "a directory");
	ok_str(r.text, "/: cannot be read: Is a directory", "said so");
}

/* The file's text, or the end of the test. The caller frees it. */
static char *read_file(const char *name)
{
	const char *top = getenv("top_srcdir");
	char path[4096];
	char *text;
	size_t size;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", top ? top : ".", name);
	file = fopen(path, "r");
	text = calloc(1, 65536);
	if (!file || !text)
		bail_out(path);
	size = fread(text, 1, 65535, file);
	text[size] = '\0';
	fclose(file);
	return text;
}

/* Every key stands in the manual, with what is allowed, and in the example. */
static void test_documents(void)
{
	char *manual = read_file("man/belay.conf.5"), *example = read_file("doc/belay.conf.example");
	struct config_key_info info;
	char text[128];

	for (unsigned i = 0; config_key(i, &info); i++) {
		snprintf(text, sizeof(text), "\n.It Ic %s\n", info.name);
		ok(strstr(manual, text) != NULL, "belay.conf(5) has %s of [%s]", info.name, info.section);
		snprintf(text, sizeof(text), "\n#%s = ", info.name);
		ok(strstr(example, text) != NULL, "the example has it, too");
		if (strncmp(info.allowed, "a number", 8) != 0 && strncmp(info.allowed, "a power", 7) != 0)
			continue;
		snprintf(text, sizeof(text), "%s.", strstr(info.allowed, "from"));
		ok(strstr(manual, text) != NULL, "and its bounds, \"%s\"", text);
	}
	free(manual);
	free(example);
}

/* The example, as it stands and with each "#key" as "key", means the defaults. */
static void test_example(void)
{
	char *text = read_file("doc/belay.conf.example"), *at;
	struct config config, defaults;
	struct reports r;

	config_default(&defaults);
	ok_int(parse(text, &config, &r), 0, "the example can be used");
	ok(memcmp(&config, &defaults, sizeof(config)) == 0, "and changes nothing");

	while ((at = strstr(text, "\n#")) != NULL && at[2] != '\0') {
		if (at[2] == '[' || (at[2] >= 'a' && at[2] <= 'z'))
			memmove(at + 1, at + 2, strlen(at + 2) + 1);
		else
			at[1] = ';';
	}
	if (!ok_int(parse(text, &config, &r), 0, "with all that is commented out taken in"))
		diag("%s", r.text);
	ok_uint(config.lockspace_count, 3, "it shows a lockspace");
	memset(&config.lockspace[2], 0, sizeof(config.lockspace[2]));
	config.lockspace_count = 2;
	config.socket_group = defaults.socket_group;
	/* It shows where things are on Debian, wherever this build has them. */
	ok_str(config.socket, "/run/belay/belayd.sock", "it shows the usual socket");
	ok_str(config.journal, "/run/belay/journal", "and the usual journal");
	memcpy(config.socket, defaults.socket, sizeof(config.socket));
	memcpy(config.journal, defaults.journal, sizeof(config.journal));
	/* Without them belayd asks corosync: no value says so. */
	ok(config.hints_address[0] != '\0' && config.hints_key_file[0] != '\0',
	   "it shows an address and a key for hints");
	memset(config.hints_address, 0, sizeof(config.hints_address));
	memset(config.hints_key_file, 0, sizeof(config.hints_key_file));
	ok_str(config.preload_paths, "/srv/web /srv/db", "and paths for the preload library");
	memset(config.preload_paths, 0, sizeof(config.preload_paths));
	ok(memcmp(&config, &defaults, sizeof(config)) == 0,
	   "but for these, every value it shows is the default");
	free(text);
}

int main(void)
{
	test_bad();
	test_bad_bytes();
	test_too_many();
	test_good();
	test_empty();
	test_files();
	test_documents();
	test_example();
	return done_testing();
}
