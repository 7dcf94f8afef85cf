/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lvmlockd's text protocol: what reads as what, what does not read, and what is written. */
#include "lvmlockd/message.h"
#include "tests/tap.h"

#define END "\n##\n"

/* "key=text key=#number", or "-ERRNO". */
static void describe(const char *text, size_t size, char *to, size_t to_size)
{
	struct message m;
	int r = message_parse(text, size, &m);
	size_t at = 0;

	to[0] = '\0';
	if (r < 0)
		(void)snprintf(to, to_size, "%s", r == -EBADMSG ? "-EBADMSG" : r == -EMSGSIZE ? "-EMSGSIZE" : "?");
	for (unsigned i = 0; i < m.count && at < to_size; i++) {
		const struct message_field *f = &m.field[i];

		if (f->text)
			at += (size_t)snprintf(to + at, to_size - at, "%s%s=%s", i ? " " : "", f->key, f->text);
		else
			at += (size_t)snprintf(to + at, to_size - at, "%s%s=#%" PRId64, i ? " " : "", f->key,
					       f->number);
	}
}

static void test_parse(void)
{
	static const struct {
		const char *what, *text, *want;
	} table[] = {
		{ "nothing", "", "" },
		{ "a text", "request = \"hello\"\n", "request=hello" },
		{ "its end", "request = \"hello\"\n" END "more = 1", "request=hello" },
		{ "without blanks", "a=\"b\"", "a=b" },
		{ "several on a line", "a = 1 b = \"c\"  d = 2", "a=#1 b=c d=#2" },
		{ "commas between them", "a = 1, b = 2", "a=#1 b=#2" },
		{ "numbers", "a = -5\nb = 9223372036854775807\nc = -9223372036854775808\nd = +3", "a=#-5 "
		  "b=#9223372036854775807 c=#-9223372036854775808 d=#3" },
		{ "what is too large for one", "a = 9223372036854775808\nb = -9223372036854775809",
		  "a=9223372036854775808 b=-9223372036854775809" },
		{ "what only begins as one", "a = 12ab\nb = -\n", "a=12ab b=-" },
		{ "a bare word", "a = vg0/lv-0.x\n", "a=vg0/lv-0.x" },
		{ "what is escaped", "a = \"b \\\"c\\\" \\\\ d\"\n", "a=b \"c\" \\ d" },
		{ "other quotes", "a = 'b \"c\" \\ d'\n", "a=b \"c\" \\ d" },
		{ "an empty text", "a = \"\"\nb = 1", "a= b=#1" },
		{ "comments", "# x = 1\na = 1 # b = 2\nc = 3# d\n", "a=#1 c=#3" },
		{ "a comment's sign in a text", "a = \"b # c\"", "a=b # c" },
		{ "a list", "a = [ 1, \"]\", [ 2 ] ]\nb = 1", "b=#1" },
		{ "a section", "a { b = \"}\" c { d = 1 } }\ne = 1", "e=#1" },
		{ "a section without a blank", "a{b=1}c=2", "c=#2" },
		{ "no value", "a =", "-EBADMSG" },
		{ "no value but a newline", "a =\n", "-EBADMSG" },
		{ "no equals sign", "a \"b\"", "-EBADMSG" },
		{ "no key", "= 1", "-EBADMSG" },
		{ "a key alone", "a", "-EBADMSG" },
		{ "a text without an end", "a = \"b", "-EBADMSG" },
		{ "a text that ends by an escape", "a = \"b\\", "-EBADMSG" },
		{ "a text behind a word", "a = b\"c\"", "-EBADMSG" },
		{ "a list without an end", "a = [ 1", "-EBADMSG" },
		{ "the wrong end", "a = [ 1 }", "-EBADMSG" },
		{ "an end alone", "}", "-EBADMSG" },
		{ "eight brackets", "a = [[[[[[[[1]]]]]]]] b = 1", "b=#1" },
		{ "nine", "a = [[[[[[[[[1]]]]]]]]] b = 1", "-EBADMSG" },
		{ "another byte", "a = 1\n\x01", "-EBADMSG" },
		{ "another byte in a section", "a { \x01 }", "-EBADMSG" },
	};
	char got[512];

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		describe(table[i].text, strlen(table[i].text), got, sizeof(got));
		ok_str(got, table[i].want, "%s", table[i].what);
	}
	describe("a = b\0c = d", 11, got, sizeof(got));
	ok_str(got, "-EBADMSG", "a zero byte behind a word");
	describe("a = \"b\0c\"", 9, got, sizeof(got));
	ok_str(got, "-EBADMSG", "a zero byte in a text");
}

static void test_look(void)
{
	static const char text[] = "a = \"x\"\nb = 7\na = \"y\"\n";
	struct message m;

	ok_int(message_parse(text, sizeof(text) - 1, &m), 0, "a message");
	ok_str(message_text(&m, "a"), "x", "the first of a name counts");
	ok(!message_text(&m, "b"), "a number is no text");
	ok(!message_text(&m, "c"), "nor is what is not there");
	ok_int(message_number(&m, "b", -1), 7, "a number");
	ok_int(message_number(&m, "a", -1), -1, "a text is none");
	ok_int(message_number(&m, "c", -2), -2, "nor is what is not there");
}

static void test_length(void)
{
	ok_uint(message_length("a = 1\n" END, 10), 10, "a message and its end");
	ok_uint(message_length("a = 1\n" END, 9), 0, "not all of it");
	ok_uint(message_length(END END, 8), 4, "the first of two");
	ok_uint(message_length("", 0), 0, "nothing");
	ok_uint(message_length("##\n", 3), 0, "the end begins with a newline");
}

static void test_limits(void)
{
	static char text[MESSAGE_BYTES_MAX + 64];
	struct message m;
	size_t at = 0;

	for (unsigned i = 0; i < MESSAGE_FIELDS_MAX; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "k%u = %u\n", i, i);
	ok_int(message_parse(text, at, &m), 0, "as many fields as there may be");
	ok_uint(m.count, MESSAGE_FIELDS_MAX, "are there");
	at += (size_t)snprintf(text + at, sizeof(text) - at, "one = 1\n");
	ok_int(message_parse(text, at, &m), -EMSGSIZE, "not one more");
	ok_uint(m.count, 0, "and nothing is left");
	memset(text, ' ', sizeof(text));
	ok_int(message_parse(text, MESSAGE_BYTES_MAX - 1, &m), 0, "the longest text");
	ok_int(message_parse(text, MESSAGE_BYTES_MAX, &m), -EMSGSIZE, "not one byte more");
}

static void test_write(void)
{
	struct message_out out;
	char got[512];

	message_begin(&out);
	message_put_text(&out, "response", "OK");
	message_put_number(&out, "op_result", -210);
	message_put_text(&out, "text", "a \"b\" \\ c\nd\x7f" "\xc3\xa4");
	ok_int(message_end(&out), 0, "an answer");
	ok(out.size > 4 && memcmp(out.bytes + out.size - 4, END, 4) == 0, "has an end");
	describe(out.bytes, out.size, got, sizeof(got));
	ok_str(got, "response=OK op_result=#-210 text=a \"b\" \\ c?d?\xc3\xa4",
	       "and reads again, but for control bytes");
	message_begin(&out);
	for (unsigned i = 0; i < 2000; i++)
		message_put_text(&out, "key", "0123456789");
	ok_int(message_end(&out), -EMSGSIZE, "one that is too long is told");
	message_begin(&out);
	ok_int(message_end(&out), 0, "and the next is a new one");
}

int main(void)
{
	test_parse();
	test_look();
	test_length();
	test_limits();
	test_write();
	return done_testing();
}
