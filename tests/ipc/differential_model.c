/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "tests/ipc/differential.h"

uint64_t model_conflicts(const struct model *model, const struct step *step)
{
	uint64_t found = 0;
	unsigned i, self = owner_of(step);

	for (i = 0; i < OWNERS; i++)
		if (i != self && is_flock(i % WHO_COUNT) == is_flock(step->who))
			found |= model->exclusive[i] | (step->exclusive ? model->shared[i] : 0);
	return found & units(step->first, step->last);
}

static void drop(struct model *model, unsigned owner, uint64_t range)
{
	model->shared[owner] &= ~range;
	model->exclusive[owner] &= ~range;
}

static int take(struct model *model, const struct step *step)
{
	uint64_t range = units(step->first, step->last);
	unsigned self = owner_of(step);

	if (model_conflicts(model, step)) {
		/* flock() converts by giving back first, if it is a conversion. */
		if (is_flock(step->who) && (step->exclusive ? model->shared : model->exclusive)[self])
			drop(model, self, range);
		return -EAGAIN;
	}
	drop(model, self, range);
	(step->exclusive ? model->exclusive : model->shared)[self] |= range;
	return 0;
}

int model_do(struct model *model, const struct step *step)
{
	switch (step->kind) {
	case KIND_TRY:
	case KIND_LOCK:
	case KIND_JOIN:
		return take(model, step);
	case KIND_UNLOCK:
		drop(model, owner_of(step), units(step->first, step->last));
		return 0;
	case KIND_GET:
		return model_conflicts(model, step) ? 1 : 0;
	case KIND_REOPEN:
		drop(model, owner_of(step), UINT64_MAX);
		/* Whatever a process closes of a file, its own locks are gone. */
		drop(model, step->worker * WHO_COUNT + WHO_PROCESS, UINT64_MAX);
		return 0;
	default:
		return 0;
	}
}

/* The holder's lock as units; false: it is not made of units. */
static bool holder_units(const struct answer *holder, unsigned *first, unsigned *last)
{
	if (holder->start < BASE || holder->start > BASE + LAST_UNIT)
		return false;
	*first = (unsigned)(holder->start - BASE);
	if (holder->length == 0)
		*last = LAST_UNIT;
	else if (*first + holder->length <= LAST_UNIT)
		*last = (unsigned)(*first + holder->length - 1);
	else
		return false;
	return true;
}

bool model_has(const struct model *model, const struct step *step, const struct answer *holder,
	       const pid_t *pid)
{
	unsigned i, first, last, self = owner_of(step);
	uint64_t range;

	if (!holder_units(holder, &first, &last) || (!holder->exclusive && !step->exclusive) ||
	    !(units(first, last) & units(step->first, step->last)))
		return false;
	range = units(first, last);
	for (i = 0; i < OWNERS; i++) {
		bool ofd = i % WHO_COUNT != WHO_PROCESS;

		/* The kernel does not say whose an open file description is. */
		if (i != self && !is_flock(i % WHO_COUNT) &&
		    (holder->pid == pid[i / WHO_COUNT] || (ofd && holder->pid == -1)) &&
		    ((holder->exclusive ? model->exclusive : model->shared)[i] & range) == range)
			return true;
	}
	return false;
}

bool model_token(struct model *model, const struct step *step, uint64_t token)
{
	unsigned i, unit, self = owner_of(step);
	bool grown = true;

	for (i = 0; i < OWNERS; i++) {
		if (i == self || is_flock(i % WHO_COUNT) != is_flock(step->who))
			continue;
		for (unit = step->first; unit <= step->last; unit++)
			if (token <= model->token[true][i][unit] ||
			    (step->exclusive && token <= model->token[false][i][unit]))
				grown = false;
	}
	for (unit = step->first; unit <= step->last; unit++)
		model->token[step->exclusive][self][unit] = token;
	return grown;
}
