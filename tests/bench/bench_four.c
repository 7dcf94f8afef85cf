/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bench_four ROUNDS FILE [SECONDS]: four processes, each of which locks and
 * unlocks bytes of a part of FILE of its own, by the kernel's fcntl(2) and
 * through libbelay in turns; the sum of what they do. With SECONDS: only
 * through libbelay, for so long, to be looked at meanwhile.
 */
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "tests/bench/bench.h"

#define PROCESSES 4u
#define TURNS 8u		/* of each kind, in a round */
#define TURN_NS 100000000u
#define PART 1000000u		/* bytes of each process */

enum via { VIA_NOTHING, VIA_KERNEL, VIA_BELAY, VIA_END, VIA_COUNT };

struct shared {
	_Alignas(64) _Atomic int via;
	struct {
		_Alignas(64) _Atomic uint64_t pairs[VIA_COUNT];
		_Atomic int ready;
	} process[PROCESSES];
};

static void pair(enum via via, int fd, struct belay_handle *handle, uint64_t at)
{
	if (via == VIA_KERNEL) {
		bench_check("F_SETLK", bench_fcntl(fd, F_SETLK, F_WRLCK, at, 1));
		bench_check("F_SETLK", bench_fcntl(fd, F_SETLK, F_UNLCK, at, 1));
	} else if (via == VIA_BELAY) {
		bench_check("belay_trylock", belay_trylock(handle, BELAY_EXCLUSIVE, at, 1, NULL));
		bench_check("belay_unlock", belay_unlock(handle, at, 1));
	} else {
		usleep(1000);
	}
}

_Noreturn static void work(struct shared *s, unsigned self, const char *file)
{
	int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct belay *belay;
	struct belay_handle *handle;
	uint64_t random = 88172645463325252u + self;
	enum via via;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	bench_check("belay_connect", belay_connect(&belay, NULL));
	bench_check("belay_open_fd", belay_open_fd(belay, fd, BELAY_OWNER_PROCESS, &handle));
	atomic_store(&s->process[self].ready, 1);
	while ((via = (enum via)atomic_load_explicit(&s->via, memory_order_relaxed)) != VIA_END) {
		pair(via, fd, handle, self * PART + bench_random(&random) % 1000);
		atomic_store_explicit(&s->process[self].pairs[via],
				      atomic_load_explicit(&s->process[self].pairs[via],
							   memory_order_relaxed) + 1,
				      memory_order_relaxed);
	}
	belay_handle_close(handle);
	belay_disconnect(belay);
	exit(0);
}

static void run_for(struct shared *s, enum via via, uint64_t ns)
{
	struct timespec t = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

	atomic_store(&s->via, via);
	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
	atomic_store(&s->via, VIA_NOTHING);
}

static uint64_t total(struct shared *s, enum via via)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < PROCESSES; i++)
		sum += atomic_load(&s->process[i].pairs[via]);
	return sum;
}

/* Pairs a second of all, in one turn. */
static double turn(struct shared *s, enum via via)
{
	uint64_t pairs = total(s, via), begin = bench_now();

	run_for(s, via, TURN_NS);
	return (double)(total(s, via) - pairs) * 1e9 / (double)(bench_now() - begin);
}

static void measure(struct shared *s, unsigned rounds)
{
	double ratio[ROUNDS_MAX], kernel[ROUNDS_MAX], belay[ROUNDS_MAX];

	run_for(s, VIA_BELAY, 2 * TURN_NS);
	for (unsigned round = 0; round < rounds; round++) {
		double k[TURNS], b[TURNS], r[TURNS];

		for (unsigned i = 0; i < TURNS; i++) {
			k[i] = turn(s, VIA_KERNEL);
			b[i] = turn(s, VIA_BELAY);
			r[i] = b[i] / k[i];
		}
		ratio[round] = bench_permille(r, TURNS, 500);
		kernel[round] = bench_permille(k, TURNS, 500);
		belay[round] = bench_permille(b, TURNS, 500);
	}
	bench_print("node.four_processes_vs_kernel", ratio, rounds);
	bench_print("node.four_processes.kernel_pairs_per_sec", kernel, rounds);
	bench_print("node.four_processes.belay_pairs_per_sec", belay, rounds);
}

/* What the processes did with their time, for those who have no profiler. */
static void tell(struct shared *s, double seconds)
{
	uint64_t pairs = total(s, VIA_BELAY);
	struct rusage u;

	getrusage(RUSAGE_CHILDREN, &u);
	printf("%.0f pairs/s of %u processes; for each pair %.3f us in their own code and %.3f us in the kernel,\n"
	       "%.4f voluntary and %.4f involuntary context switches\n",
	       (double)pairs / seconds, PROCESSES,
	       ((double)u.ru_utime.tv_sec * 1e6 + (double)u.ru_utime.tv_usec) / (double)pairs,
	       ((double)u.ru_stime.tv_sec * 1e6 + (double)u.ru_stime.tv_usec) / (double)pairs,
	       (double)u.ru_nvcsw / (double)pairs, (double)u.ru_nivcsw / (double)pairs);
}

int main(int argc, char **argv)
{
	unsigned rounds = argc >= 3 ? (unsigned)strtoul(argv[1], NULL, 10) : 0, i;
	double seconds = argc == 4 ? strtod(argv[3], NULL) : 0;
	struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status, failed = 0;

	if (rounds == 0 || rounds > ROUNDS_MAX)
		bench_die("usage: bench_four ROUNDS FILE [SECONDS]", 0);
	if (s == MAP_FAILED)
		bench_die("no memory", -errno);
	for (i = 0; i < PROCESSES; i++)
		if (fork() == 0)
			work(s, i, argv[2]);
	/* One that fails ends; the others are told so by their death signal. */
	for (i = 0; i < PROCESSES; i++)
		while (!atomic_load(&s->process[i].ready))
			if (waitpid(-1, NULL, WNOHANG) != 0)
				bench_die("a process has ended", 0);
			else
				usleep(1000);
	if (seconds > 0)
		run_for(s, VIA_BELAY, (uint64_t)(seconds * 1e9));
	else
		measure(s, rounds);
	atomic_store(&s->via, VIA_END);
	while (wait(&status) > 0)
		failed |= status;
	if (seconds > 0)
		tell(s, seconds);
	return failed ? 1 : 0;
}
