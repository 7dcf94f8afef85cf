/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Everything that can block, in children: programs, and functions of ours that call
 * device-mapper. Each has a deadline. The loop never waits for a child: one
 * that cannot be ended, because it hangs in the kernel, is reported, counted and left behind,
 * and what it was for goes on without it.
 */
#ifndef BELAY_LVMLOCKD_WORKER_H
#define BELAY_LVMLOCKD_WORKER_H

#include <qb/qbloop.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Programs at a time; the rest waits its turn. */
#define WORKER_LIMIT 8u
/* Urgent tasks at a time, on top: each is one ioctl or few, and on a dead SAN all of them hang. */
#define WORKER_URGENT_LIMIT 512u
/* So many left behind, and nothing but what is urgent is begun. */
#define WORKER_HUNG_MAX 256u
/* Between asking a child to end and making it. */
#define WORKER_GRACE_MS 5000u
#define WORKER_WHAT_MAX 319u
#define WORKER_WHERE_MAX 63u
#define WORKER_OUTPUT_MAX (64u * 1024)

struct worker;
struct worker_job;

enum worker_end {
	/* status: its exit status; of a function: its errno, positive, or 0. 127: no such program, says the output. */
	WORKER_EXITED,
	WORKER_SIGNALLED,	/* status: what signal ended it, and it was not us */
	WORKER_EXPIRED,		/* the deadline passed and it was ended */
	WORKER_HUNG,		/* the deadline passed and it goes on, where: see below */
	WORKER_FAILED,		/* it could not be started, or its end not be seen; status: negative errno */
};

struct worker_result {
	enum worker_end end;
	int status;
	/* What it wrote (programs: both to stdout and stderr), NUL-terminated; the callback's only. */
	const char *output;
	size_t size;
	bool truncated;			/* there was more */
	uint64_t took_ms;		/* since it was started */
	int pid;
	const char *where;		/* HUNG: the kernel function it sleeps in, or "" */
};

/*
 * Called from the loop, once; if the end is WORKER_HUNG and the task has watch_hung,
 * once more when the child has ended after all. The job is gone after the last call.
 */
typedef void (*worker_done)(void *context, const struct worker_result *result);

/* 0: it ended with success; -EIO: with another status; -ETIMEDOUT, -EINTR (by a signal), or why it did not start. */
int worker_errno(const struct worker_result *result);

/*
 * Runs in the child, which has nothing of belay-lvmlockd open but out, where its
 * result goes. Returns 0 or a negative errno.
 */
typedef int (*worker_function)(const void *argument, size_t size, int out);

enum worker_overdue {
	/*
	 * At the deadline its process group gets SIGTERM, later SIGKILL; but no SIGKILL while it sleeps in
	 * the kernel where no signal wakes it. lvm puts off signals while it has devices suspended: when its
	 * ioctl returns, it must be able to resume them, and then it ends by the SIGTERM.
	 */
	WORKER_END,
	/* At the deadline it is only reported as hung. What it does must not be interrupted half-way. */
	WORKER_KEEP,
};

struct worker_task {
	char what[WORKER_WHAT_MAX + 1];	/* for people: "activate vg/lv" */
	const char *const *argv;	/* NULL-terminated, a program from PATH or with its path; or NULL and */
	worker_function function;
	const void *argument;		/* copied */
	size_t argument_size;
	uint32_t deadline_ms;		/* from its start, not from when it was queued */
	size_t output_max;		/* 0: WORKER_OUTPUT_MAX */
	enum worker_overdue overdue;
	bool urgent;
	bool watch_hung;
	worker_done done;
	void *context;
};

/* 0 or -ENOMEM. */
int worker_new(qb_loop_t *loop, struct worker **ret_worker);
/*
 * Not from a callback. Nothing is waited for, no callback comes. Programs that run get SIGTERM; what
 * has WORKER_KEEP goes on without us. NULL is allowed.
 */
void worker_free(struct worker *worker);

/*
 * Begin the task, or queue it. The task is copied. 0, and done follows; -EINVAL; -ENOMEM;
 * -EBUSY: too many children hang. Other errnos of pipe(2) and fork(2). *ret_job (may be NULL) is valid until the
 * last call of done.
 */
int worker_start(struct worker *worker, const struct worker_task *task, struct worker_job **ret_job);

/*
 * done is not called any more. The child, if there is one, is ended as if its deadline had
 * passed; one with WORKER_KEEP by SIGKILL: the caller knows what that does.
 */
void worker_cancel(struct worker_job *job);
/* done is not called any more, but the child goes on; its deadline counts. */
void worker_detach(struct worker_job *job);
/* SIGKILL, now; done follows, when the child has ended. */
void worker_kill(struct worker_job *job);

/* For status: how many run, wait, hang. */
struct worker_count {
	unsigned running, queued, hung;
};
struct worker_count worker_count(const struct worker *worker);

/* Children that hang, oldest first: 1, or 0 behind the last. */
struct worker_hung {
	const char *what;		/* until the loop runs on */
	char where[WORKER_WHERE_MAX + 1];
	int pid;
	uint64_t for_ms;		/* since it was started */
};
int worker_hung(const struct worker *worker, unsigned index, struct worker_hung *ret_hung);

#endif
