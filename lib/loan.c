/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lib/loan.h"

#include <stdlib.h>

#include "lib/share.h"

/* Who is in there stays for less than a microsecond, unless he is stopped. */
#define GATE_SPINS 200
#define GATE_SLEEP_MS 2
#define GATE_SLEEPS 5

/* The half of the gate's word that tells who, and whether it is awaited. */
static _Atomic uint32_t *gate_futex(struct resource *resource)
{
	_Atomic uint32_t *half = (_Atomic uint32_t *)(void *)&resource->gate;

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	half += sizeof(resource->gate) / sizeof(*half) - 1;
#endif
	return half;
}

void gate_wake(struct resource *resource)
{
	futex_wake(gate_futex(resource), false);
}

static bool take(struct resource *resource, uintptr_t self, uintptr_t *ret_who)
{
	*ret_who = 0;
	return atomic_compare_exchange_strong_explicit(&resource->gate, ret_who, self,
						       memory_order_acquire, memory_order_relaxed);
}

bool gate_wait(struct resource *resource)
{
	uintptr_t who, self = gate_self();
	int i;

	for (i = 0; i < GATE_SPINS; i++) {
		if (take(resource, self, &who))
			return true;
		if ((who & GATE_STUCK) || (who & ~GATE_AWAITED) == self)
			return false;
		relax();
	}
	for (i = 0; i < GATE_SLEEPS; i++) {
		/* Whoever gets it after a sleep does not know whether others sleep still. */
		if (take(resource, self | GATE_AWAITED, &who))
			return true;
		if ((who & GATE_AWAITED) ||
		    atomic_compare_exchange_strong_explicit(&resource->gate, &who, who | GATE_AWAITED,
							    memory_order_relaxed, memory_order_relaxed))
			futex_sleep(gate_futex(resource), (uint32_t)(who | GATE_AWAITED), GATE_SLEEP_MS, false);
	}
	if (take(resource, self | GATE_AWAITED, &who))
		return true;
	/* The next one need not wait for him; should he leave after all, that ends. */
	(void)atomic_compare_exchange_strong_explicit(&resource->gate, &who, who | GATE_STUCK,
						      memory_order_relaxed, memory_order_relaxed);
	return false;
}

bool loan_find(struct resource *resource, enum belay_mode mode, struct belay_range range)
{
	struct loan *loan;

	LIST_FOREACH(loan, &resource->loans, link)
		if (slot_covers(&loan->slot, mode, &range)) {
			resource->last = loan;
			return true;
		}
	return false;
}

int loan_test(struct resource *resource, uint32_t owner, enum belay_mode mode,
	      const struct belay_range *range, struct slot_entry *ret_held)
{
	int r = -ESTALE;

	if (!gate_enter(resource))
		return r;
	if (loan_at_hand(resource, mode, *range)) {
		struct loan *loan = resource->last;

		r = slot_test(&loan->slot, owner, mode, range, ret_held);
		if (atomic_load_explicit(&loan->over, memory_order_relaxed))
			r = -ESTALE;
	}
	gate_leave(resource);
	return r;
}

/* ---- between enter() and leave() ---- */

struct resource *resource_new(void)
{
	/* Others' gates must not share its cache line. */
	struct resource *resource = aligned_alloc(64, (sizeof(*resource) + 63) / 64 * 64);

	if (resource)
		*resource = (struct resource){ 0 };
	return resource;
}

struct resource *resource_get(struct belay *belay, uint32_t number, struct resource *spare)
{
	struct resource *resource;

	LIST_FOREACH(resource, &belay->resources, link)
		if (resource->number == number) {
			free(spare);
			return resource;
		}
	spare->number = number;
	LIST_INSERT_HEAD(&belay->resources, spare, link);
	return spare;
}

void resource_free(struct belay *belay, struct resource *resource)
{
	struct loan *loan;

	while ((loan = LIST_FIRST(&resource->loans))) {
		loan_remove(loan);
		(void)share_return(belay, loan);
	}
	LIST_REMOVE(resource, link);
	free(resource);
}

void loan_add(struct resource *resource, struct loan *loan)
{
	loan->resource = resource;
	LIST_INSERT_HEAD(&resource->loans, loan, link);
	resource->last = loan;
}

void loan_remove(struct loan *loan)
{
	if (loan->resource->last == loan)
		loan->resource->last = NULL;
	LIST_REMOVE(loan, link);
}

static bool overlaps(const struct loan *loan, const struct belay_range *range)
{
	return loan->slot.terms.range.start <= range->end && range->start <= loan->slot.terms.range.end;
}

int loan_yield(struct belay *belay, struct resource *resource, const struct belay_range *range)
{
	struct loan *loan, *next;
	bool in = false;
	int r = 0;

	if (!LIST_EMPTY(&resource->loans))
		in = gate_enter(resource);
	for (loan = LIST_FIRST(&resource->loans); loan; loan = next) {
		next = LIST_NEXT(loan, link);
		if (!overlaps(loan, range))
			continue;
		slot_give_up(&loan->slot);
		if (!in) {
			atomic_store_explicit(&loan->over, true, memory_order_relaxed);
			continue;
		}
		loan_remove(loan);
		r = share_return(belay, loan);
		if (r < 0)
			break;
	}
	if (in)
		gate_leave(resource);
	resource->messages++;
	return r;
}
