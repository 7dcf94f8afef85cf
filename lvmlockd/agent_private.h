/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What agent.c and agent_run.c share. */
#ifndef BELAY_LVMLOCKD_AGENT_PRIVATE_H
#define BELAY_LVMLOCKD_AGENT_PRIVATE_H

#include <sys/queue.h>

#include "lvmlockd/agent.h"
#include "lvmlockd/dm.h"
#include "lvmlockd/lvs.h"
#include "lvmlockd/worker.h"

/* What a request is about: one LV of job->lvs. */
struct target {
	struct job *job;
	uint64_t ticket;	/* its lock is waited for */
	bool chosen;		/* lvm is run for it */
	bool was_active, changed;
	bool new_lock;		/* it was waited for, and this request got it */
	bool was_exclusive;	/* its lock, before ACTIVATE made it shared */
	bool relock;		/* UNDO: it gets its exclusive lock again, and stays active */
	char refused[ASK_TEXT_MAX + 1];	/* why lvm is not run for it; "": it is */
};

enum job_step {
	JOB_LISTING,	/* lvm tells the LVs */
	JOB_BEFORE,	/* device-mapper tells what is active */
	JOB_WAITING,	/* for LV locks, so that they are asked for many at a time, and may wait */
	JOB_RUNNING,	/* lvm */
	JOB_AFTER,	/* device-mapper tells what has become of it */
};

struct job {
	TAILQ_ENTRY(job) link;
	struct agent *agent;
	uint32_t node;			/* who asked */
	uint64_t id;
	bool gone;			/* who asked is: nobody reads answers */
	bool cancelled;
	struct ask_request request;
	uint64_t began_ms;
	enum job_step step;
	struct lvs lvs;
	struct target *target;		/* one for each of lvs */
	struct worker_job *worker_job;
	bool ran, lvm_failed;		/* lvm */
	char *output;			/* ... and what it said; NULL: that is not known */
	size_t at;			/* WAITING: locks of the targets before this one were asked for ... */
	unsigned awaited;		/* ... and of so many there is no answer yet */
	uint32_t total, refused, failures;	/* of LVs */
	uint32_t done;			/* each is locked first, if it is, and then activated */
	bool locks_first;
	uint64_t told_ms;		/* when progress was told */
	struct record *record;		/* UNDO: what is taken back */
};
TAILQ_HEAD(jobs, job);

/* What a request has activated, until its asker says that it stays or not. */
struct record {
	TAILQ_ENTRY(record) link;
	uint32_t node;
	uint64_t id;
	char vg[ASK_NAME_MAX + 1];
	size_t count;
	struct {
		char name[ASK_NAME_MAX + 1];
		bool relock;	/* it was active before, but locked exclusively */
	} lv[];
};
TAILQ_HEAD(records, record);

struct agent {
	struct agent_setup setup;
	struct lvm_group *group;	/* NULL: there is none now */
	struct jobs jobs;
	unsigned job_count;
	struct records records;
	unsigned record_count;
};

/* agent.c */
uint64_t agent_now_ms(void);
void job_answer(struct job *job, const struct ask_answer *answer);
void job_progress(struct job *job, bool always);
/* What job->done comes to. */
uint32_t job_steps(const struct job *job);
/* Its last answer; the job is gone. */
__attribute__((format(printf, 3, 4)))
void job_end(struct job *job, int32_t result, const char *format, ...);
/* Remember what it has activated; 0 or -ENOMEM. */
int job_record(struct job *job);

/* agent_run.c: it ends by job_end(), perhaps at once. */
void job_run(struct job *job);
/* While it waits for locks: it does not any more. */
void job_withdraw(struct job *job);

#endif
