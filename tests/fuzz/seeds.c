/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The first seeds of the wire corpora are the sample messages of the unit
 * tests. With a directory as its argument this program writes them there
 * ("make seeds"); without one it is a test that they are what is in the corpus.
 */
#include <sys/stat.h>

#include "tests/tap.h"
#include "tests/unit/wire_samples.h"

struct seed {
	const char *target;
	unsigned number;
	uint8_t bytes[4096];
	size_t size;
};

static FILE *open_seed(const char *corpus, const struct seed *seed, const char *mode)
{
	FILE *file;
	char *path;

	if (asprintf(&path, "%s/%s", corpus, seed->target) < 0)
		bail_out("no memory");
	/* It is there already, or fopen() says what is wrong. */
	if (mode[0] == 'w')
		(void)mkdir(path, 0777);
	free(path);
	if (asprintf(&path, "%s/%s/sample-%02u", corpus, seed->target, seed->number) < 0)
		bail_out("no memory");
	file = fopen(path, mode);
	if (!file)
		diag("%s: %s", path, strerror(errno));
	free(path);
	return file;
}

static bool write_seed(const char *corpus, const struct seed *seed)
{
	FILE *file = open_seed(corpus, seed, "wb");
	size_t written;

	if (!file)
		return false;
	written = fwrite(seed->bytes, 1, seed->size, file);
	return fclose(file) == 0 && written == seed->size;
}

static bool same_seed(const char *corpus, const struct seed *seed)
{
	FILE *file = open_seed(corpus, seed, "rb");
	uint8_t bytes[sizeof(seed->bytes)];
	size_t size;

	if (!file)
		return false;
	size = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	return size == seed->size && memcmp(bytes, seed->bytes, size) == 0;
}

static void each_seed(const char *corpus, const char *target, unsigned number, const char *hex,
		      bool write)
{
	struct seed seed = { .target = target, .number = number };

	seed.size = sample_bytes(hex, seed.bytes, sizeof(seed.bytes));
	ok(write ? write_seed(corpus, &seed) : same_seed(corpus, &seed),
	   "%s/sample-%02u", target, number);
}

int main(int argc, char **argv)
{
	const char *source = getenv("srcdir");
	bool write = argc > 1;
	char *corpus;

	if (asprintf(&corpus, write ? "%s" : "%s/tests/fuzz/corpus",
		     write ? argv[1] : source ? source : ".") < 0)
		bail_out("no memory");
	for (unsigned i = 0; i < frame_sample_count; i++)
		each_seed(corpus, "group", i, frame_samples[i].hex, write);
	for (unsigned i = 0; i < snapshot_sample_count; i++)
		each_seed(corpus, "snapshot", i, snapshot_samples[i].hex, write);
	for (unsigned i = 0; i < hint_sample_count; i++)
		each_seed(corpus, "hint", i, hint_samples[i].hex, write);
	for (unsigned i = 0; i < client_sample_count; i++)
		each_seed(corpus, "client", i, client_samples[i].hex, write);
	free(corpus);
	return done_testing();
}
