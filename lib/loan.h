/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Locks within a loan: nobody is asked. A resource is what the handles of
 * one file or name share, its loans among it.
 *
 * One thread at a time is in a resource's loans: it has the resource's gate. Who
 * does not get it soon, because its thread was stopped in there, or because he is
 * a signal handler that came in the middle of it, does without: he ends the loans
 * by SLOT_RECALL, which anybody may set at any time, and asks belayd.
 *
 * The list of loans is changed only by who has both the gate and the mutex.
 */
#ifndef BELAY_LIB_LOAN_H
#define BELAY_LIB_LOAN_H

#include <errno.h>
#include <sys/single_threaded.h>

#include "lib/private.h"
#include "slot/commit_inline.h"

struct loan {
	struct slot_loan slot;
	struct resource *resource;	/* NULL: the slot is free */
	const struct slot_belayd *belayd;
	uint32_t number;		/* of the slot, from 1 on */
	_Atomic bool over;		/* ended, but not yet given back: what is held in it may be old */
	LIST_ENTRY(loan) link;
};

struct resource {
	_Atomic uintptr_t gate;		/* 0; or who is in there, perhaps with GATE_AWAITED, GATE_STUCK */
	struct loan *last;		/* used last; NULL: none. Gate. */
	LIST_HEAD(, loan) loans;
	uint32_t number;
	uint32_t messages;		/* LOCK TEST UNLOCK CLOSE, sent */
	LIST_ENTRY(resource) link;
};

#define GATE_AWAITED ((uintptr_t)1)
#define GATE_SINGLE ((uintptr_t)2)	/* while the process has but one thread */
#define GATE_STUCK ((uintptr_t)4)	/* awaited in vain: a handler may have jumped out of there for ever */

/* A number of this thread, aligned like a pointer. */
static inline uintptr_t gate_self(void)
{
#if defined(__has_builtin)
#if __has_builtin(__builtin_thread_pointer)
	return (uintptr_t)__builtin_thread_pointer();
#endif
#endif
	return (uintptr_t)pthread_self();
}

/* Wait a little; true: we have it. */
bool gate_wait(struct resource *resource);
void gate_wake(struct resource *resource);

/* True: we have it. */
static inline bool gate_enter(struct resource *resource)
{
	uintptr_t expected = 0;

	if (__libc_single_threaded) {
		if (atomic_load_explicit(&resource->gate, memory_order_relaxed) != 0)
			return false;
		atomic_store_explicit(&resource->gate, GATE_SINGLE, memory_order_relaxed);
		atomic_signal_fence(memory_order_seq_cst);
		return true;
	}
	if (slot_likely(atomic_compare_exchange_strong_explicit(&resource->gate, &expected, gate_self(),
								memory_order_acquire, memory_order_relaxed)))
		return true;
	return gate_wait(resource);
}

static inline void gate_leave(struct resource *resource)
{
	if (__libc_single_threaded) {
		atomic_signal_fence(memory_order_seq_cst);
		atomic_store_explicit(&resource->gate, 0, memory_order_relaxed);
	} else if (atomic_exchange_explicit(&resource->gate, 0, memory_order_release) & GATE_AWAITED) {
		gate_wake(resource);
	}
}

/* Make @resource->last a loan for that, with the gate. False: there is none. belayd may have ended. */
bool loan_find(struct resource *resource, enum belay_mode mode, struct belay_range range);

static inline bool loan_at_hand(struct resource *resource, enum belay_mode mode, struct belay_range range)
{
	if (!slot_likely(resource->last &&
			 slot_covers_bytes(&resource->last->slot, mode, range.start, range.end)) &&
	    !loan_find(resource, mode, range))
		return false;
	return !(atomic_load_explicit(&resource->last->belayd->thread, memory_order_relaxed) &
		 SLOT_BELAYD_DIED);
}

/*
 * As slot_lock() and its like, if there is a loan for it. -ESTALE, -ENOSPC, -ENOMEM: belayd
 * has to be asked. Neither needs the mutex nor minds it.
 */
static inline __attribute__((always_inline))
int loan_lock(struct resource *resource, uint32_t owner, enum belay_mode mode,
	      const struct belay_range *range, uint64_t *ret_token)
{
	int r = -ESTALE;

	if (!gate_enter(resource))
		return r;
	if (loan_at_hand(resource, mode, *range)) {
		struct loan *loan = resource->last;

		r = slot_lock_inline(&loan->slot, owner, mode, range->start, range->end);
		if (slot_likely(r == 0))
			*ret_token = loan->slot.token;
		else if (r == -EAGAIN && atomic_load_explicit(&loan->over, memory_order_relaxed))
			r = -ESTALE;
	}
	gate_leave(resource);
	return r;
}

static inline __attribute__((always_inline))
int loan_unlock(struct resource *resource, uint32_t owner, const struct belay_range *range)
{
	int r = -ESTALE;

	if (!gate_enter(resource))
		return r;
	if (loan_at_hand(resource, BELAY_MODE_SH, *range))
		r = slot_unlock_inline(&resource->last->slot, owner, range->start, range->end);
	gate_leave(resource);
	return r;
}

int loan_test(struct resource *resource, uint32_t owner, enum belay_mode mode,
	      const struct belay_range *range, struct slot_entry *ret_held);

/* ---- between enter() and leave() ---- */

/* For resource_get(); free() it if it is not needed. NULL: no memory. Need not be entered. */
struct resource *resource_new(void);
/* The resource of that number, else @spare becomes it. */
struct resource *resource_get(struct belay *belay, uint32_t number, struct resource *spare);
/* Its number is given up, or the connection ends: nobody uses it. */
void resource_free(struct belay *belay, struct resource *resource);

/* With the gate. */
void loan_add(struct resource *resource, struct loan *loan);
void loan_remove(struct loan *loan);

/*
 * A message about that range of the resource goes into the box next: its
 * loans there end first. 0 or -EIO.
 */
int loan_yield(struct belay *belay, struct resource *resource, const struct belay_range *range);

#endif
