/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A thread of a simulated client: it runs until it is done or yields in the
 * middle of whatever it does, and may then go on, or never.
 */
#ifndef BELAY_SIM_FIBER_H
#define BELAY_SIM_FIBER_H

#include <stdbool.h>
#include <ucontext.h>

struct fiber {
	ucontext_t self, caller;
	void *stack;		/* made when it is first needed */
	void (*run)(void *context);
	void *context;
	bool running, done;
};

/* Run @run from its beginning, until it yields or returns; returns whether it has returned. */
bool fiber_start(struct fiber *fiber, void (*run)(void *context), void *context);
/* Let it go on. A fiber that is never resumed is simply forgotten. */
bool fiber_resume(struct fiber *fiber);
/* Within it: let the caller go on. */
void fiber_yield(struct fiber *fiber);
void fiber_done(struct fiber *fiber);	/* gives the stack back */

#endif
