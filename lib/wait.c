/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/private.h"

struct timespec answer_deadline(void)
{
	struct timespec deadline;

	clock_gettime(CLOCK_MONOTONIC, &deadline);
	deadline.tv_sec += ANSWER_S;
	return deadline;
}

int time_left(const struct timespec *deadline)
{
	struct timespec now;
	int64_t ns;

	clock_gettime(CLOCK_MONOTONIC, &now);
	ns = (deadline->tv_sec - now.tv_sec) * INT64_C(1000000000) +
	     (deadline->tv_nsec - now.tv_nsec);
	if (ns <= 0)
		return 0;
	ns = (ns + 999999) / 1000000;
	return ns > INT32_MAX ? INT32_MAX : (int)ns;
}

void futex_sleep(_Atomic uint32_t *word, uint32_t value, int wait_ms, bool shared)
{
	struct timespec limit = { .tv_sec = wait_ms / 1000, .tv_nsec = wait_ms % 1000 * 1000000L };

	(void)syscall(SYS_futex, word, shared ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE, value,
		      wait_ms < 0 ? NULL : &limit, NULL, 0);
}

void futex_wake(_Atomic uint32_t *word, bool shared)
{
	(void)syscall(SYS_futex, word, shared ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
