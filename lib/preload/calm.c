/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "lib/preload/preload.h"

/* Signals whose default is the end of the process, and which people and timers send for that. */
static const int enders[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGALRM, SIGXCPU };

void calm_all(void)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
}

void calm_begin(struct calm *calm)
{
	struct sigaction action;
	sigset_t set;

	calm->error = errno;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &calm->cancel);
	sigfillset(&set);
	pthread_sigmask(SIG_BLOCK, &set, &calm->mask);
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(enders) / sizeof(enders[0]); i++)
		if (!sigismember(&calm->mask, enders[i]) &&
		    sigaction(enders[i], NULL, &action) == 0 && action.sa_handler == SIG_DFL)
			sigaddset(&set, enders[i]);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* The mask comes last: handlers run then, and may never come back here. */
void calm_end(const struct calm *calm)
{
	pthread_setcancelstate(calm->cancel, NULL);
	errno = calm->error;
	pthread_sigmask(SIG_SETMASK, &calm->mask, NULL);
}

static bool has_handler(int number, bool *ret_restart)
{
	struct sigaction action;

	if (sigaction(number, NULL, &action) < 0 || action.sa_handler == SIG_DFL ||
	    action.sa_handler == SIG_IGN)
		return false;
	*ret_restart = action.sa_flags & SA_RESTART;
	return true;
}

static bool is_due(const struct calm *calm, const sigset_t *pending, int number)
{
	return sigismember(pending, number) == 1 && sigismember(&calm->mask, number) != 1;
}

enum calm_due calm_due(const struct calm *calm)
{
	enum calm_due r = CALM_NOTHING;
	sigset_t pending;
	bool restart;

	if (sigpending(&pending) < 0)
		return CALM_NOTHING;
	for (int s = 1; s <= SIGRTMAX && r != CALM_INTERRUPT; s++) {
		if (!is_due(calm, &pending, s))
			continue;
		if (has_handler(s, &restart))
			r = restart ? CALM_RESTART : CALM_INTERRUPT;
		else if (r == CALM_NOTHING)
			r = CALM_PASSING;
	}
	return r;
}

void calm_pass(const struct calm *calm)
{
	sigset_t pending, set;
	bool restart;

	if (sigpending(&pending) < 0)
		return;
	sigemptyset(&set);
	for (int s = 1; s <= SIGRTMAX; s++)
		if (is_due(calm, &pending, s) && !has_handler(s, &restart))
			sigaddset(&set, s);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	calm_all();
}
