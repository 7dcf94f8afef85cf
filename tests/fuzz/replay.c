/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * main() of a fuzz target without libFuzzer: feeds it every file of its
 * corpus, and what lies next to it: each truncation, each byte changed.
 *
 * The corpus of fuzz_NAME is $srcdir/tests/fuzz/corpus/NAME; arguments, if
 * there are any, are files to feed instead: a crash to look into.
 */
#include <dirent.h>

#include "tests/fuzz/fuzz.h"
#include "tests/tap.h"

#define INPUT_MAX 65536u

/* In memory of its own, so that a sanitizer sees one byte too many. */
static void feed(const uint8_t *bytes, size_t size)
{
	uint8_t *copy = malloc(size > 0 ? size : 1);

	if (!copy)
		bail_out("no memory");
	memcpy(copy, bytes, size);
	(void)LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static void feed_near(uint8_t *bytes, size_t size)
{
	static const uint8_t damage[] = { 0x01, 0x80, 0xff };

	feed(bytes, size);
	for (size_t cut = 0; cut < size; cut++) {
		uint8_t saved = bytes[cut];

		feed(bytes, cut);
		for (size_t i = 0; i < sizeof(damage); i++) {
			bytes[cut] = saved ^ damage[i];
			feed(bytes, size);
		}
		bytes[cut] = saved;
	}
}

static bool feed_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *bytes = malloc(INPUT_MAX);
	size_t size;

	if (!file || !bytes) {
		diag("%s: %s", path, strerror(errno));
		free(bytes);
		if (file)
			fclose(file);
		return false;
	}
	size = fread(bytes, 1, INPUT_MAX, file);
	fclose(file);
	feed_near(bytes, size);
	free(bytes);
	return true;
}

static unsigned feed_directory(const char *path)
{
	struct dirent **entry;
	int count = scandir(path, &entry, NULL, alphasort);
	unsigned fed = 0;

	for (int i = 0; i < count; i++) {
		char *file;

		if (entry[i]->d_name[0] != '.') {
			if (asprintf(&file, "%s/%s", path, entry[i]->d_name) < 0)
				bail_out("no memory");
			/* A crash leaves the name of its input behind. */
			diag("%s", entry[i]->d_name);
			fed += feed_file(file);
			free(file);
		}
		free(entry[i]);
	}
	if (count >= 0)
		free(entry);
	return fed;
}

int main(int argc, char **argv)
{
	const char *source = getenv("srcdir");
	const char *name = strstr(program_invocation_short_name, "fuzz_");
	char *path;
	unsigned fed;

	if (argc > 1) {
		for (int i = 1; i < argc; i++)
			ok(feed_file(argv[i]), "%s", argv[i]);
		return done_testing();
	}
	if (!name || asprintf(&path, "%s/tests/fuzz/corpus/%s", source ? source : ".",
			      name + strlen("fuzz_")) < 0)
		bail_out("this program is not called fuzz_NAME, so its corpus is not known");
	fed = feed_directory(path);
	ok(fed > 0, "%u inputs of %s, and their neighbours, break no law", fed, path);
	free(path);
	return done_testing();
}
