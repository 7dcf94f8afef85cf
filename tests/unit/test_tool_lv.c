/* SPDX-License-Identifier: GPL-2.0-or-later */
/* belay lv: its options, and what it calls wrong. */
#include <unistd.h>

#include "tests/tap.h"
#include "tools/lv.h"

/* @text: where the words are, and stay. */
static int parse(const char *line, char text[256], struct lv_options *o)
{
	static const struct subcommand command = { .name = "lv", .usage = "" };
	const struct tool tool = { .command = &command };
	char *argv[16] = { NULL }, *save = NULL;
	int argc = 0;

	strcpy(text, line);
	for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	optind = 0;
	return lv_parse(&tool, argc, argv, o);
}

static void test_options(void)
{
	static const char *const wrong[] = {
		"lv", "lv destroy vg", "lv activate", "lv activate vg/a/b", "lv activate /a", "lv activate vg/",
		"lv activate vg --all --on 1", "lv activate vg --shared --exclusive",
		"lv activate vg --exclusive --all",
		"lv activate vg --exclusive --on 1,2", "lv deactivate vg --shared", "lv refresh vg --timeout 3",
		"lv deactivate vg --keep-partial", "lv status --all", "lv activate vg --timeout soon",
		"lv activate vg b",
		"lv activate vg --what",
	};
	struct lv_options o;
	char text[256];

	ok_int(parse("lv activate vg/data --on n1,2 --shared --timeout 2.5 --keep-partial --json", text, &o), TOOL_OK,
	       "all of it at once");
	ok(strcmp(o.verb, "activate") == 0 && strcmp(o.vg, "vg") == 0 && strcmp(o.lv, "data") == 0 &&
	   strcmp(o.on, "n1,2") == 0 && o.shared && o.timeout_ms == 2500 && o.keep_partial && o.json, "is understood");
	ok_int(parse("lv deactivate /dev/vg/data --all", text, &o), TOOL_OK, "a path of /dev is as good");
	ok(strcmp(o.vg, "vg") == 0 && strcmp(o.lv, "data") == 0 && o.all, "as a name");
	ok_int(parse("lv refresh vg", text, &o), TOOL_OK, "a VG");
	ok(o.lv[0] == '\0', "is all of it");
	ok_int(parse("lv status", text, &o), TOOL_OK, "status is of all");
	ok_int(parse("lv --help", text, &o), TOOL_OK, "help needs nothing else");
	/* What is said about each of these is of no interest here. */
	if (!freopen("/dev/null", "w", stderr))
		bail_out("no /dev/null");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ok_int(parse(wrong[i], text, &o), TOOL_USAGE, "wrong: %s", wrong[i]);
}

/* One LV on nodes n1 and n2. */
static bool judged(const char *n1, const char *n2, const char *more, unsigned want, const char *part)
{
	struct json_object *answer;
	const char *judgement;
	char text[2048];
	unsigned got;
	bool good;

	snprintf(text, sizeof(text), "{ \"lvs\": [ { \"lv\": \"vg/data\", \"nodes\": [ "
		 "{ \"node\": 1, \"name\": \"n1\", %s }, "
		 "{ \"node\": 2, \"name\": \"n2\", %s } ]%s } ] }", n1, n2, more);
	answer = json_tokener_parse(text);
	if (!answer)
		bail_out("the test's own JSON is none");
	got = lv_judge(answer);
	judgement = json_object_to_json_string_ext(answer, JSON_C_TO_STRING_NOSLASHESCAPE);
	good = got == want && (!part || strstr(judgement, part));
	if (!good)
		diag("%u wrong: %s", got, judgement);
	json_object_put(answer);
	return good;
}

#define NOTHING "\"lock\": \"un\", \"dm\": \"inactive\""
#define ACTIVE(lock) "\"lock\": \"" lock "\", \"dm\": \"active\", \"size\": 4096, \"lvm_size\": 4096"

static void test_judge(void)
{
	ok(judged(NOTHING, NOTHING, "", 0, NULL), "active nowhere");
	ok(judged(ACTIVE("ex"), NOTHING, "", 0, NULL), "exclusive on one");
	ok(judged(ACTIVE("sh"), ACTIVE("sh"), "", 0, NULL), "shared on two");
	ok(judged("\"lock\": \"ex\", \"dm\": \"unknown\"", "\"lock\": \"un\", \"dm\": \"unknown\"", "", 0, NULL),
	   "without device-mapper");
	ok(judged(ACTIVE("sh") ", \"reason\": \"it is odd\"", ACTIVE("sh"), "", 1, "on n1 it is odd"),
	   "what a node says is wrong there");
	ok(judged(ACTIVE("ex"), ACTIVE("sh"), "", 1, "this must not be"), "exclusive, and on another");
	ok(judged(ACTIVE("ex"), ACTIVE("un"), "", 1, "active on 2 nodes"), "exclusive, and active on another");
	ok(judged(NOTHING, NOTHING, ", \"elsewhere\": [ { \"node\": 3, \"mode\": \"exclusive\" } ]", 1,
		  "belay fence-ack 3"),
	   "locked by a node that left");
}

int main(void)
{
	test_options();
	test_judge();
	return done_testing();
}
