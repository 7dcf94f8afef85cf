/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How long from the moment one node gives a lock back until another, which waits for it,
 * has it: both asked as lvm asks, at the lvmlockd of each, whichever that is.
 *
 *	lv_handover lv ROUNDS VG UUID SOCKET...		an LV's lock, all ask again and again
 *	lv_handover vg ROUNDS VG SOCKET SOCKET		the VG's lock, the other asks at any time
 *	lv_handover start VG ARGS SOCKET		start the VG there first, whose lock_args these are
 *
 * Prints the median and the 99th percentile in microseconds.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS_MAX 100000u
#define SIDES_MAX 8u

struct side {
	int fd;
	size_t size;
	char in[4096];
};

struct work {
	bool lv;
	const char *vg, *uuid;
	unsigned rounds;
	unsigned side_count;
	struct side side[SIDES_MAX];
	uint64_t *ns;
};

_Noreturn __attribute__((format(printf, 1, 2)))
static void fail(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "lv_handover: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n");
	exit(EXIT_FAILURE);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void nap_ms(unsigned ms)
{
	const struct timespec nap = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

	nanosleep(&nap, NULL);
}

static void connect_to(struct side *side, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(address.sun_path))
		fail("the path is too long: %s", path);
	strcpy(address.sun_path, path);
	side->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (side->fd < 0 || connect(side->fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		fail("%s: %s", path, strerror(errno));
}

__attribute__((format(printf, 2, 3)))
static void ask(struct side *side, const char *format, ...)
{
	char text[1024];
	va_list args;
	int size;

	va_start(args, format);
	size = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (write(side->fd, text, (size_t)size) != size)
		fail("an lvmlockd has ended");
}

static void ask_lock(const struct work *w, struct side *side, const char *mode)
{
	if (w->lv)
		ask(side, "request = \"lock_lv\"\npid = 1\ncmd = \"bench\"\nmode = \"%s\"\n"
		    "opts = \"persistent,wait\"\nvg_name = \"%s\"\nlv_name = \"bench\"\nlv_uuid = \"%s\"\n"
		    "vg_lock_type = \"dlm\"\nlv_lock_args = \"dlm\"\n\n##\n", mode, w->vg, w->uuid);
	else
		ask(side, "request = \"lock_vg\"\npid = 1\ncmd = \"bench\"\nmode = \"%s\"\nopts = \"none\"\n"
		    "vg_name = \"%s\"\nvg_lock_type = \"none\"\nvg_lock_args = \"none\"\n\n##\n", mode, w->vg);
}

/* One answer, if it is there: its result in *ret_result. */
static bool take_answer(struct side *side, int *ret_result)
{
	const char *result;
	char *end;

	side->in[side->size] = '\0';
	end = strstr(side->in, "\n##\n");
	if (!end)
		return false;
	*end = '\0';
	result = strstr(side->in, "op_result");
	if (!result || sscanf(result, "op_result = %d", ret_result) != 1)
		fail("an answer without a result: %s", side->in);
	end += 4;
	side->size -= (size_t)(end - side->in);
	memmove(side->in, end, side->size);
	return true;
}

static bool read_some(struct side *side)
{
	ssize_t n = read(side->fd, side->in + side->size, sizeof(side->in) - 1 - side->size);

	if (n <= 0)
		fail("an lvmlockd has ended");
	side->size += (size_t)n;
	return true;
}

static int await_answer(struct side *side)
{
	int result;

	while (!take_answer(side, &result))
		(void)read_some(side);
	return result;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* One gives it up while the other waits; then the other way round. The waits begin at all phases of a second. */
static void vg_round(struct work *w, unsigned round)
{
	struct side *from = &w->side[round % 2], *to = &w->side[1 - round % 2];
	uint64_t begin;
	int result;

	ask_lock(w, to, "ex");
	nap_ms(20 + round * 370 % 1000);
	begin = now_ns();
	ask_lock(w, from, "un");
	(void)await_answer(from);
	while ((result = await_answer(to)) == -EAGAIN)
		/* It has given up: lvm would ask again. */
		ask_lock(w, to, "ex");
	if (result < 0)
		fail("the VG's lock: %d", result);
	w->ns[round] = now_ns() - begin;
}

static void run_vg(struct work *w)
{
	ask_lock(w, &w->side[0], "ex");
	if (await_answer(&w->side[0]) < 0)
		fail("the VG's lock is refused: is it started?");
	for (unsigned round = 0; round < w->rounds; round++)
		vg_round(w, round);
}

/*
 * All ask again as soon as they have given it up. What counts is from giving up to the
 * next one's answer; of three the next one has long been waiting.
 */
static void run_lv(struct work *w)
{
	struct pollfd poll_fd[SIDES_MAX];
	bool holds[SIDES_MAX] = { false };
	uint64_t given = 0;
	unsigned round = 0, ended = 0;
	int result;

	for (unsigned i = 0; i < w->side_count; i++) {
		poll_fd[i] = (struct pollfd){ .fd = w->side[i].fd, .events = POLLIN };
		ask_lock(w, &w->side[i], "ex");
	}
	/* The lock is the node's, and would stay: all give it up at last. */
	while (ended < w->side_count) {
		if (poll(poll_fd, w->side_count, 60000) <= 0)
			fail("no answer for a minute");
		for (unsigned i = 0; i < w->side_count; i++) {
			if (!(poll_fd[i].revents & POLLIN) || !read_some(&w->side[i]))
				continue;
			while (take_answer(&w->side[i], &result)) {
				if (result < 0)
					fail("the LV's lock: %d", result);
				holds[i] = !holds[i];
				if (holds[i] && given != 0 && round < w->rounds)
					w->ns[round++] = now_ns() - given;
				if (holds[i])
					given = now_ns();
				if (holds[i] || round < w->rounds)
					ask_lock(w, &w->side[i], holds[i] ? "un" : "ex");
				else
					ended++;
			}
		}
	}
}

static int start(const char *vg, const char *args, const char *socket)
{
	struct side side = { 0 };
	int r;

	connect_to(&side, socket);
	ask(&side, "request = \"start_vg\"\npid = 1\nvg_name = \"%s\"\nvg_lock_type = \"dlm\"\n"
	    "vg_lock_args = \"%s\"\nvg_uuid = \"none\"\nversion = 1\nhost_id = 0\nopts = \"none\"\n\n##\n", vg, args);
	r = await_answer(&side);
	if (r < 0)
		fail("the VG cannot be started: %d", r);
	ask(&side, "request = \"start_wait\"\npid = 1\n\n##\n");
	r = await_answer(&side);
	if (r < 0)
		fail("the VG is not started: %d", r);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct work w = { .lv = argc >= 7 && strcmp(argv[1], "lv") == 0 };
	int first = w.lv ? 5 : 4;

	if (argc == 5 && strcmp(argv[1], "start") == 0)
		return start(argv[2], argv[3], argv[4]);
	if (!w.lv && (argc != 6 || strcmp(argv[1], "vg") != 0))
		fail("usage: lv_handover lv ROUNDS VG UUID SOCKET..., or vg ROUNDS VG SOCKET SOCKET");
	w.rounds = (unsigned)strtoul(argv[2], NULL, 10);
	if (w.rounds == 0 || w.rounds > ROUNDS_MAX)
		fail("how many rounds?");
	w.vg = argv[3];
	w.uuid = w.lv ? argv[4] : "";
	for (int i = first; i < argc && w.side_count < SIDES_MAX; i++)
		connect_to(&w.side[w.side_count++], argv[i]);
	w.ns = calloc(w.rounds, sizeof(*w.ns));
	if (!w.ns)
		fail("out of memory");
	if (w.lv)
		run_lv(&w);
	else
		run_vg(&w);
	qsort(w.ns, w.rounds, sizeof(*w.ns), by_size);
	printf("%.1f %.1f\n", (double)w.ns[w.rounds / 2] / 1000, (double)w.ns[w.rounds - 1 - w.rounds / 100] / 1000);
	free(w.ns);
	return EXIT_SUCCESS;
}
