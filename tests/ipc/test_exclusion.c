/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Processes and threads that go from resource to resource, and meet there, so that
 * loans are lent and called back all the time, while some of them are stopped and
 * killed. Whoever has a byte must be alone there, and its fencing token larger than
 * all before.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "include/belay.h"
#include "tests/ipc/raw.h"
#include "tests/tap.h"

#define PROCESSES 4u
#define THREADS 2u
#define RESOURCES 32u
#define BYTES 2u		/* of each */
/* So long they stay with one. Nothing is lent where others were a moment ago. */
#define STAY_NS 30000000
#define MILLISECONDS 1500
/* Between two tricks of the parent. */
#define TRICK_MS 20
#define VICTIMS_MAX 16u

struct fight {
	_Atomic bool over;
	_Atomic uint64_t locks;
	_Atomic uint32_t wrong_holder, wrong_token, failed;
	struct {
		_Atomic pid_t writer, readers;
		_Atomic uint64_t token;		/* of the last writer */
	} byte[RESOURCES * BYTES];
	_Atomic pid_t victim[VICTIMS_MAX];
};

static uint64_t next(uint64_t *random)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return *random;
}

/* The one who was killed may have left its mark. */
static bool is_dead(const struct fight *f, pid_t pid)
{
	for (unsigned i = 0; i < VICTIMS_MAX; i++)
		if (atomic_load(&f->victim[i]) == pid)
			return true;
	return false;
}

static void write_byte(struct fight *f, uint32_t byte, uint64_t token)
{
	pid_t self = (pid_t)gettid(), before = atomic_exchange(&f->byte[byte].writer, self);

	if (before != 0 && !is_dead(f, before))
		f->wrong_holder++;
	if (atomic_load(&f->byte[byte].readers) != 0)
		f->wrong_holder++;
	if (token <= atomic_load(&f->byte[byte].token))
		f->wrong_token++;
	atomic_store(&f->byte[byte].token, token);
	before = self;
	if (!atomic_compare_exchange_strong(&f->byte[byte].writer, &before, 0))
		f->wrong_holder++;
}

static void read_byte(struct fight *f, uint32_t byte, uint64_t token)
{
	pid_t writer;

	f->byte[byte].readers++;
	writer = atomic_load(&f->byte[byte].writer);
	if (writer != 0 && !is_dead(f, writer))
		f->wrong_holder++;
	if (token <= atomic_load(&f->byte[byte].token))
		f->wrong_token++;
	f->byte[byte].readers--;
}

struct player {
	struct fight *fight;
	struct belay *belay;
	uint64_t random;
	bool reads;		/* the one that will be killed does not: it could leave a reader behind */
};

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static bool lock_once(struct player *p, struct belay_handle *handle, uint32_t resource)
{
	struct fight *f = p->fight;
	uint32_t byte = (uint32_t)(next(&p->random) % BYTES);
	bool read = p->reads && next(&p->random) % 4 == 0;
	uint64_t token;

	if (belay_lock(handle, read ? BELAY_SHARED : BELAY_EXCLUSIVE, byte, 1, &token) < 0)
		return false;
	if (read)
		read_byte(f, resource * BYTES + byte, token);
	else
		write_byte(f, resource * BYTES + byte, token);
	f->locks++;
	return belay_unlock(handle, byte, 1) == 0;
}

static void *play(void *arg)
{
	struct player *p = arg;
	struct fight *f = p->fight;

	while (!atomic_load(&f->over)) {
		uint32_t resource = (uint32_t)(next(&p->random) % RESOURCES);
		int64_t end = now_ns() + STAY_NS;
		struct belay_handle *handle;
		char name[16];

		snprintf(name, sizeof(name), "fight %u", resource);
		if (belay_open_name(p->belay, NULL, name, BELAY_OWNER_HANDLE, &handle) < 0) {
			f->failed++;
			break;
		}
		while (now_ns() < end && !atomic_load(&f->over))
			f->failed += !lock_once(p, handle, resource);
		belay_handle_close(handle);
	}
	return NULL;
}

static void run_process(struct fight *f, const char *socket, unsigned number)
{
	pthread_t thread[THREADS];
	struct player player[THREADS];
	/* A dead one is known by one number: it has one thread. */
	unsigned threads = number == 0 ? 1 : THREADS;
	struct belay *belay;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (belay_connect(&belay, socket) < 0) {
		f->failed++;
		_exit(1);
	}
	for (unsigned i = 0; i < threads; i++) {
		player[i] = (struct player){
			.fight = f, .belay = belay, .reads = number != 0,
			.random = 88172645463325252u + number * 1000 + i,
		};
		if (i > 0 && pthread_create(&thread[i], NULL, play, &player[i]) != 0)
			_exit(1);
	}
	(void)play(&player[0]);
	for (unsigned i = 1; i < threads; i++)
		pthread_join(thread[i], NULL);
	belay_disconnect(belay);
	_exit(0);
}

static pid_t spawn(struct fight *f, const char *socket, unsigned number)
{
	pid_t pid = fork();

	if (pid < 0)
		bail_out("cannot fork");
	if (pid == 0)
		run_process(f, socket, number);
	return pid;
}

static void sleep_ms(long ms)
{
	const struct timespec t = { .tv_nsec = ms * 1000000 };

	nanosleep(&t, NULL);
}

/* Stop one after the other for a while, and kill the first now and then. */
static void disturb(struct fight *f, const char *socket, pid_t *pid)
{
	unsigned victims = 0;

	for (int at = 0, i = 0; at < MILLISECONDS; at += 2 * TRICK_MS, i++) {
		pid_t other = pid[1 + (unsigned)i % (PROCESSES - 1)];

		kill(other, SIGSTOP);
		sleep_ms(TRICK_MS);
		kill(other, SIGCONT);
		sleep_ms(TRICK_MS);
		if (i % 4 != 3)
			continue;
		atomic_store(&f->victim[victims++ % VICTIMS_MAX], pid[0]);
		kill(pid[0], SIGKILL);
		waitpid(pid[0], NULL, 0);
		pid[0] = spawn(f, socket, 0);
	}
}

static uint64_t counter(const char *status, const char *name)
{
	const char *at = strstr(status, name);

	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

/* Without loans the test would show nothing. */
static void check_loans(const struct belayd *d)
{
	struct raw r;
	char *status;

	raw_open(&r, d->socket);
	ok_int(raw_command(&r, "status", &status), 0, "status");
	ok(counter(status, "\"lent\":") > 10, "loans were given: %" PRIu64, counter(status, "\"lent\":"));
	ok(counter(status, "\"recalled\":") > 5, "and called back: %" PRIu64,
	   counter(status, "\"recalled\":"));
	free(status);
	raw_close(&r);
}

/* Who asks nobody learns of the end of belayd all the same, at the next call. */
static void test_belayd_killed(void)
{
	struct belay *belay;
	struct belay_handle *handle;
	struct belayd d;
	struct raw r;
	char *status;
	int failed = 0;

	belayd_start(&d, NULL);
	if (belay_connect(&belay, d.socket) < 0 ||
	    belay_open_name(belay, NULL, "alone", BELAY_OWNER_PROCESS, &handle) < 0)
		bail_out("no connection");
	for (unsigned i = 0; i < 100; i++) {
		failed += belay_trylock(handle, BELAY_EXCLUSIVE, i, 1, NULL) < 0;
		failed += belay_unlock(handle, i, 1) < 0;
	}
	ok_int(failed, 0, "a client locks");
	raw_open(&r, d.socket);
	ok_int(raw_command(&r, "status", &status), 0, "status");
	ok_uint(counter(status, "\"loans\":{\"now\":"), 1, "and has a loan by now");
	free(status);
	raw_close(&r);
	kill(d.pid, SIGKILL);
	ok_int(belayd_wait(&d), 256 + SIGKILL, "belayd is killed");
	ok_int(belay_trylock(handle, BELAY_EXCLUSIVE, 1, 1, NULL), -EIO, "its next call tells");
	belay_handle_close(handle);
	belay_disconnect(belay);
	belayd_remove(&d);
}

int main(void)
{
	struct fight *f = mmap(NULL, sizeof(*f), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid[PROCESSES];
	unsigned bad = 0;
	struct belayd d;

	if (f == MAP_FAILED)
		bail_out("no memory");
	belayd_start(&d, NULL);
	for (unsigned i = 0; i < PROCESSES; i++)
		pid[i] = spawn(f, d.socket, i);
	disturb(f, d.socket, pid);
	atomic_store(&f->over, true);
	for (unsigned i = 0; i < PROCESSES; i++) {
		int status = 0;

		bad += waitpid(pid[i], &status, 0) != pid[i] || status != 0;
	}
	ok_uint(bad, 0, "all processes but the killed ones come to their end");
	ok_uint(f->failed, 0, "no call failed");
	ok(f->locks > 100, "%" PRIu64 " locks were taken", (uint64_t)f->locks);
	ok_uint(f->wrong_holder, 0, "nobody was where somebody else was");
	ok_uint(f->wrong_token, 0, "and each token was larger than those before");
	check_loans(&d);
	ok_int(belayd_stop(&d), 0, "belayd leaves with nothing held");
	belayd_remove(&d);
	munmap(f, sizeof(*f));
	test_belayd_killed();
	return done_testing();
}
