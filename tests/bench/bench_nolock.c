/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bench_nolock ROUNDS DIRECTORY COMMAND...: what it costs a program that never
 * locks to be run by COMMAND (belay run --, say) instead of by itself. The
 * program is this one: it opens, writes, reads, asks for and closes files of
 * DIRECTORY, and computes a little. A round starts it both ways, and lets the two
 * take turns of some milliseconds; its value is the median of the turns' ratios.
 *
 *	bench_nolock --work DIRECTORY	a turn for each byte of input; says its nanoseconds
 */
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/bench/bench.h"

#define TURNS 301u		/* of each kind, in a round */
#define FILES 16u
#define LOOPS 1000u		/* of a turn */
#define BYTES 512u

/* Of this thread: what others do on the CPU meanwhile is not its doing. */
static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void use_file(const char *path, char *data)
{
	struct stat st;
	unsigned sum = 0, i;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || pwrite(fd, data, BYTES, 0) != BYTES || pread(fd, data, BYTES, 0) != BYTES ||
	    fstat(fd, &st) < 0 || st.st_size != BYTES || close(fd) < 0)
		bench_die(path, -errno);
	for (i = 0; i < BYTES; i++)
		sum = sum * 31 + (unsigned char)data[i];
	memcpy(data, &sum, sizeof(sum));
}

static int work(const char *directory)
{
	char path[FILES][256], data[BYTES] = { 0 }, go;
	uint64_t ns;
	unsigned i;

	for (i = 0; i < FILES; i++)
		if ((size_t)snprintf(path[i], sizeof(path[i]), "%s/nolock.%u", directory, i) >= sizeof(path[i]))
			bench_die("the name is too long", 0);
	while (read(STDIN_FILENO, &go, 1) == 1) {
		ns = cpu_ns();
		for (i = 0; i < LOOPS; i++)
			use_file(path[i % FILES], data);
		ns = cpu_ns() - ns;
		if (write(STDOUT_FILENO, &ns, sizeof(ns)) != sizeof(ns))
			return 1;
	}
	for (i = 0; i < FILES; i++)
		unlink(path[i]);
	return 0;
}

struct worker {
	pid_t pid;
	int to, from;
};

static struct worker start(char *const *argv)
{
	int to[2], from[2];
	struct worker w;

	if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0)
		bench_die("no pipes", -errno);
	w = (struct worker){ .pid = fork(), .to = to[1], .from = from[0] };
	if (w.pid == 0) {
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		execvp(argv[0], argv);
		bench_die(argv[0], -errno);
	}
	close(to[0]);
	close(from[1]);
	return w;
}

static double turn(const struct worker *w)
{
	uint64_t ns;

	if (write(w->to, "g", 1) != 1 || read(w->from, &ns, sizeof(ns)) != sizeof(ns))
		bench_die("a worker has ended", 0);
	return (double)ns;
}

static void stop(const struct worker *w)
{
	int status;

	close(w->to);
	close(w->from);
	if (waitpid(w->pid, &status, 0) != w->pid || status != 0)
		bench_die("a worker has failed", 0);
}

static double measure(char *const *bare, char *const *with)
{
	struct worker one = start(bare), other = start(with);
	double ratio[TURNS], without;

	(void)turn(&one);
	(void)turn(&other);
	for (unsigned i = 0; i < TURNS; i++) {
		without = turn(&one);
		ratio[i] = turn(&other) / without;
	}
	stop(&one);
	stop(&other);
	return bench_permille(ratio, TURNS, 500);
}

int main(int argc, char **argv)
{
	unsigned rounds = argc >= 4 ? (unsigned)strtoul(argv[1], NULL, 10) : 0, i;
	char option[] = "--work", program[4096], *bare[] = { program, option, NULL, NULL }, *with[32];
	double value[ROUNDS_MAX];
	ssize_t size;

	if (argc == 3 && strcmp(argv[1], option) == 0)
		return work(argv[2]);
	if (rounds == 0 || rounds > ROUNDS_MAX || argc > 24)
		bench_die("usage: bench_nolock ROUNDS DIRECTORY COMMAND...", 0);
	size = readlink("/proc/self/exe", program, sizeof(program) - 1);
	if (size < 0)
		bench_die("/proc/self/exe", -errno);
	program[size] = '\0';
	bare[2] = argv[2];
	for (i = 3; i < (unsigned)argc; i++)
		with[i - 3] = argv[i];
	memcpy(&with[i - 3], bare, sizeof(bare));
	for (i = 0; i < rounds; i++)
		value[i] = measure(bare, with);
	bench_print("shim.overhead", value, rounds);
	return 0;
}
