/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A handle from the inside. */
#ifndef BELAY_LIB_HANDLE_H
#define BELAY_LIB_HANDLE_H

#include "lib/loan.h"

struct belay_handle {
	struct belay *belay;
	struct resource *resource;
	const volatile char *life;	/* belay's */
	uint32_t owner;			/* in loans: 0 is the process, else the handle's id */
	uint32_t id;			/* belayd's name for it */
	enum belay_kind kind;
	bool named;			/* opened by belay_open_name(): nobody waits for its end without a bound */
	/* Bit per belay_mode that belayd would grant: known from the descriptor, or since it did. */
	_Atomic uint8_t modes;
	_Atomic bool lent;		/* something was locked through it of which belayd was not told */
};

/* That is what belayd calls these; 0, -EPERM (forked), or -EINVAL. */
static inline int handle_range(const struct belay_handle *handle, enum belay_lock_mode mode,
			       uint64_t start, uint64_t length, struct belay_range *ret_range)
{
	int r;

	if (*handle->life == 0)
		return -EPERM;
	if (mode != BELAY_SHARED && mode != BELAY_EXCLUSIVE)
		return -EINVAL;
	r = range_from(start, length, ret_range);
	if (r < 0)
		return r;
	/* flock(2) knows no ranges, and a node has no part of a volume. */
	if (handle->kind >= BELAY_KIND_FLOCK && (start != 0 || ret_range->end != BELAY_OFFSET_MAX))
		return -EINVAL;
	return 0;
}

static inline enum belay_mode handle_mode(enum belay_lock_mode mode)
{
	return mode == BELAY_SHARED ? BELAY_MODE_SH : BELAY_MODE_EX;
}

/* A request about bytes of @handle, all but its number. */
struct client_message handle_message(const struct belay_handle *handle, enum client_type type,
				     enum belay_mode mode, const struct belay_range *range);

/* Lock without asking, as loan_lock(). */
static inline __attribute__((always_inline))
int handle_lock(struct belay_handle *handle, enum belay_mode mode,
		const struct belay_range *range, uint64_t *ret_token)
{
	int r;

	if (!(atomic_load_explicit(&handle->modes, memory_order_relaxed) & 1u << mode))
		return -ESTALE;
	r = loan_lock(handle->resource, handle->owner, mode, range, ret_token);
	if (r == 0 && !atomic_load_explicit(&handle->lent, memory_order_relaxed))
		atomic_store_explicit(&handle->lent, true, memory_order_relaxed);
	return r;
}

/* And its kind, as callers call it. */
enum belay_lock_owner handle_owner(enum belay_kind kind);

#endif
