/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/fiber.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define STACK_BYTES ((size_t)256 * 1024)

/* makecontext() passes int only. */
static void enter(unsigned int high, unsigned int low)
{
	struct fiber *fiber = (struct fiber *)(((uintptr_t)high << 16 << 16) | low);

	fiber->run(fiber->context);
	fiber->done = true;
	fiber->running = false;
	(void)swapcontext(&fiber->self, &fiber->caller);
}

bool fiber_start(struct fiber *fiber, void (*run)(void *context), void *context)
{
	uintptr_t self = (uintptr_t)fiber;

	if (!fiber->stack && !(fiber->stack = malloc(STACK_BYTES))) {
		fputs("sim: out of memory\n", stderr);
		exit(EXIT_FAILURE);
	}
	fiber->run = run;
	fiber->context = context;
	(void)getcontext(&fiber->self);
	fiber->self.uc_stack.ss_sp = fiber->stack;
	fiber->self.uc_stack.ss_size = STACK_BYTES;
	fiber->self.uc_link = NULL;
	fiber->done = false;
	makecontext(&fiber->self, (void (*)(void))enter, 2, (unsigned int)(self >> 16 >> 16),
		    (unsigned int)self);
	return fiber_resume(fiber);
}

bool fiber_resume(struct fiber *fiber)
{
	assert(!fiber->running && !fiber->done);
	fiber->running = true;
	(void)swapcontext(&fiber->caller, &fiber->self);
	return fiber->done;
}

void fiber_yield(struct fiber *fiber)
{
	assert(fiber->running);
	fiber->running = false;
	(void)swapcontext(&fiber->self, &fiber->caller);
}

void fiber_done(struct fiber *fiber)
{
	free(fiber->stack);
	fiber->stack = NULL;
}
