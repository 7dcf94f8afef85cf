/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Locks of several processes by the kernel's fcntl and flock, and the same
 * through libbelay and belayd: every answer has to be the same, while another
 * client disturbs. See differential.h.
 *
 *	DIFFERENTIAL_STEPS=N	so many steps (50000)
 *	DIFFERENTIAL_SEED=N	that plan, instead of a new one each time
 */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "include/belay.h"
#include "tests/ipc/belayd.h"
#include "tests/ipc/differential.h"
#include "tests/tap.h"

#define STEPS 50000u
#define LIE_STEPS 5000u		/* within which lies have to be found */
#define SHOWN 40u		/* steps there before a difference that are told */

#define OTHER_HOLDER "belay names a lock that is not in the way"
#define TOO_EARLY "belay grants while others are in the way"
#define OLD_TOKEN "the token is not larger than that of a grant before"

struct race {
	struct board *board;
	struct plan plan;
	struct model seen[FILES];	/* as the steps compared so far have left them */
	const char *directory;
	pid_t intruder;
	uint64_t steps, busy, waited, found;	/* what has been compared */
	bool quiet;
	const char *how;	/* the first difference */
};

static void start(struct race *race, const struct belayd *daemon)
{
	uint64_t random = race->plan.random;
	char path[PATH_MAX];
	int fd;

	if (mkdir(race->directory, 0700) < 0)
		bail_out("no directory");
	for (unsigned i = 0; i < FILES; i++) {
		file_path(path, race->directory, i);
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0)
			bail_out("no file");
		close(fd);
	}
	race->board = mmap(NULL, sizeof(*race->board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (race->board == MAP_FAILED)
		bail_out("no memory");
	for (unsigned i = 0; i < WORKERS; i++) {
		pid_t pid = fork();

		if (pid == 0)
			work(race->board, i, daemon->socket, race->directory);
		if (pid < 0)
			bail_out("cannot fork");
		race->board->pid[i] = pid;
	}
	race->intruder = fork();
	if (race->intruder == 0)
		intrude(race->board, daemon->socket, race->directory, random);
}

static bool reap(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* True: all have ended in peace. */
static bool end(struct race *race, bool by_force)
{
	bool peace = true;
	char path[PATH_MAX];

	atomic_store(&race->board->ended, true);
	for (unsigned i = 0; i < WORKERS; i++) {
		if (by_force)
			kill(race->board->pid[i], SIGKILL);
		race->board->step[0].worker = (uint8_t)i;
		board_pass(race->board, 0);
		peace &= reap(race->board->pid[i]);
	}
	peace &= reap(race->intruder);
	munmap(race->board, sizeof(*race->board));
	for (unsigned i = 0; i < FILES; i++) {
		file_path(path, race->directory, i);
		unlink(path);
	}
	rmdir(race->directory);
	return peace;
}

static void say(const struct race *race, uint32_t at)
{
	const struct step *s = &race->board->step[at];
	const struct outcome *o = &race->board->outcome[at];
	static const char *const who[WHO_COUNT] = { "process", "ofd", "ofd 2", "flock", "flock 2" };

	diag("%8" PRIu64 " file %u, worker %u (pid %d), %s: %s %s units %u to %u%s: kernel %d, belay %d",
	     race->steps + at, s->file, s->worker, (int)race->board->pid[s->worker], who[s->who],
	     plan_kind((enum kind)s->kind), s->exclusive ? "exclusive" : "shared", s->first, s->last,
	     s->lie ? " (a lie)" : "", o->kernel.result, o->belay.result);
	if (s->kind == KIND_GET && (o->kernel.result == 1 || o->belay.result == 1))
		diag("         kernel: %s pid %d %" PRIu64 "+%" PRIu64 ", belay: %s pid %d %" PRIu64 "+%" PRIu64,
		     o->kernel.exclusive ? "exclusive" : "shared", (int)o->kernel.pid, o->kernel.start,
		     o->kernel.length, o->belay.exclusive ? "exclusive" : "shared", (int)o->belay.pid,
		     o->belay.start, o->belay.length);
}

/* Did it have to do with what went wrong? */
static bool concerns(const struct step *s, const struct step *wrong)
{
	return s->file == wrong->file &&
	       (s->kind == KIND_REOPEN || (s->first <= wrong->last && wrong->first <= s->last));
}

static bool differs(struct race *race, uint32_t at, const char *how)
{
	const struct step *step = race->board->step;
	uint32_t i = at, shown = 0;

	race->how = how;
	if (race->quiet)
		return true;
	diag("step %" PRIu64 ": %s", race->steps + at, how);
	while (i > 0 && shown < SHOWN)
		shown += concerns(&step[--i], &step[at]);
	for (; i <= at; i++)
		if (concerns(&step[i], &step[at]))
			say(race, i);
	return true;
}

/* The wait that began at @at must not have ended before the last who was in the way unlocked. */
static bool waited_too_short(struct race *race, uint32_t at)
{
	struct model later = race->seen[race->board->step[at].file];
	uint32_t i = at, last = at;

	while (race->board->step[i].kind != KIND_JOIN) {
		bool before = model_conflicts(&later, &race->board->step[at]) != 0;

		(void)model_do(&later, &race->board->step[i]);
		if (before && !model_conflicts(&later, &race->board->step[at]))
			last = i;
		i++;
	}
	race->waited += last > at;
	return race->board->outcome[at].granted_at < last;
}

static bool step_differs(struct race *race, uint32_t at)
{
	const struct step *step = &race->board->step[at];
	const struct outcome *o = &race->board->outcome[at];
	bool grant = step->kind == KIND_TRY || step->kind == KIND_LOCK || step->kind == KIND_WAIT;
	struct model *seen = &race->seen[step->file];
	int want;

	if (step->kind == KIND_GET && o->kernel.result == 1 &&
	    !model_has(seen, step, &o->kernel, race->board->pid))
		return differs(race, at, "the kernel names a lock that is not there: the test is wrong");
	if (step->kind == KIND_GET && o->belay.result == 1 &&
	    !model_has(seen, step, &o->belay, race->board->pid))
		return differs(race, at, OTHER_HOLDER);
	if (step->kind == KIND_WAIT && o->belay.result == 0 && waited_too_short(race, at))
		return differs(race, at, TOO_EARLY);
	if (grant && o->belay.result == 0 && !model_token(seen, step, o->token))
		return differs(race, at, OLD_TOKEN);
	want = model_do(seen, step);
	if (o->kernel.result != want)
		return differs(race, at, "the kernel does not as expected: the test is wrong");
	if (step->kind != KIND_JOIN && o->belay.result != want)
		return differs(race, at, "belay answers otherwise than the kernel");
	race->busy += want == -EAGAIN;
	race->found += want == 1;
	return false;
}

/* Run the plan's next steps. 0: all answers were the same; 1: not; -1: somebody hangs. */
static int run_some(struct race *race, uint32_t most)
{
	uint32_t steps = plan_make(&race->plan, race->board, most), at, before;

	board_pass(race->board, 0);
	do {
		before = atomic_load(&race->board->at);
		if (board_wait(race->board, WORKERS, PATIENCE_MS))
			break;
		if (atomic_load(&race->board->at) == before) {
			differs(race, before, "this, or a wait before it, does not end");
			return -1;
		}
	} while (true);
	for (at = 0; at < steps; at++)
		if (step_differs(race, at))
			return 1;
	race->steps += steps;
	return 0;
}

static int run(struct race *race, const struct belayd *daemon, uint64_t steps)
{
	int r = 0;

	start(race, daemon);
	while (r == 0 && race->steps < steps)
		r = run_some(race, steps - race->steps < CHUNK ? (uint32_t)(steps - race->steps) : CHUNK);
	if (!end(race, r < 0) && r == 0)
		r = -1;
	return r;
}

/* ---- what is asserted ---- */

/* A counter in an object of belayd's status. */
static uint64_t counter(struct belay *belay, const char *object, const char *name)
{
	char *text = NULL, key[64];
	const char *at = NULL;
	uint64_t value;

	snprintf(key, sizeof(key), "\"%s\":", object);
	if (belay_command(belay, "status", &text) == 0)
		at = strstr(text, key);
	snprintf(key, sizeof(key), "\"%s\":", name);
	if (at)
		at = strstr(at, key);
	if (!at)
		bail_out("belayd's status does not count what is asked for");
	value = strtoull(at + strlen(key), NULL, 10);
	free(text);
	return value;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

static struct race *prepare(const char *directory, uint64_t seed, enum lie lie)
{
	struct race *race = calloc(1, sizeof(*race));

	if (!race)
		bail_out("no memory");
	race->plan.random = seed;
	race->plan.lie = lie;
	race->quiet = lie != LIE_NONE;
	race->directory = directory;
	return race;
}

static void test_lie(const struct belayd *daemon, const char *directory, uint64_t seed, enum lie lie,
		     const char *how)
{
	struct race *race = prepare(directory, seed, lie);

	ok_int(run(race, daemon, LIE_STEPS), 1, "something wrong now and then is seen");
	if (how)
		ok_str(race->how, how, "as what it is");
	free(race);
}

static void test_same(const struct belayd *daemon, struct belay *belay, const char *directory,
		      uint64_t seed, uint64_t steps)
{
	struct race *race = prepare(directory, seed, LIE_NONE);
	uint64_t messages = counter(belay, "clients", "messages");
	uint64_t recalled = counter(belay, "loans", "recalled");
	double begin = now();

	ok_int(run(race, daemon, steps), 0, "%" PRIu64 " steps of %u processes: the answers are the same",
	       steps, WORKERS);
	diag("seed %" PRIu64 ": %" PRIu64 " steps in %.1f s, %" PRIu64 " locks refused, %" PRIu64
	     " awaited, %" PRIu64 " found in the way", seed, race->steps, now() - begin, race->busy,
	     race->waited, race->found);
	ok(race->busy > steps / 20 && race->waited > 0 && race->found > steps / 100,
	   "many locks were refused, awaited, found in the way");
	messages = counter(belay, "clients", "messages") - messages;
	recalled = counter(belay, "loans", "recalled") - recalled;
	diag("%" PRIu64 " messages to belayd, %" PRIu64 " loans called back", messages, recalled);
	ok(messages < steps * 9 / 10 && recalled > steps / 2000,
	   "many steps were the clients' own, in loans that were called back");
	free(race);
}

int main(void)
{
	struct belayd daemon;
	struct belay *belay = NULL;
	uint64_t seed = from_environment("DIFFERENTIAL_SEED", (uint64_t)time(NULL)) | 1;
	uint64_t steps = from_environment("DIFFERENTIAL_STEPS", STEPS);
	char directory[128];

	belayd_start(&daemon, NULL);
	diag("DIFFERENTIAL_SEED=%" PRIu64, seed);
	/* On tmpfs, if there is one. */
	snprintf(directory, sizeof(directory), "%s/%s", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : daemon.dir,
		 strrchr(daemon.dir, '/') + 1);
	if (belay_connect(&belay, daemon.socket) < 0)
		bail_out("no connection to belayd");
	/* After that an answer, a token or a holder is wrong, whichever comes first. */
	test_lie(&daemon, directory, seed, LIE_RANGE, NULL);
	test_lie(&daemon, directory, seed, LIE_TOKEN, OLD_TOKEN);
	test_lie(&daemon, directory, seed, LIE_HOLDER, OTHER_HOLDER);
	test_lie(&daemon, directory, seed, LIE_EARLY, TOO_EARLY);
	test_same(&daemon, belay, directory, seed, steps);
	belay_disconnect(belay);
	ok_int(belayd_stop(&daemon), 0, "belayd stops cleanly");
	if (tap_state()->failed > 0)
		belayd_show_log(&daemon);
	belayd_remove(&daemon);
	return done_testing();
}
