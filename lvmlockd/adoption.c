/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a former belay-lvmlockd had locked, and what is active, is locked again. */
#include <errno.h>
#include <qb/qblog.h>
#include <stdlib.h>
#include <string.h>

#include "lvmlockd/life.h"

void adoption_stop(struct lvmlockd *d)
{
	(void)d;
}

static void on_vol(void *context, int result)
{
	(void)context;
	(void)result;
}

void adoption_begin(struct lvmlockd *d)
{
	struct volume *volume;
	struct vg *vg;

	TAILQ_FOREACH(vg, state_vgs(d->state), link) {
		if (lock_held(vg->started) == MODE_UN)
			(void)lock_take(vg->started, MODE_SH, 0, on_vol, vg);
		TAILQ_FOREACH(volume, &vg->volumes, link)
			if (lock_held(volume->lock) == MODE_UN && volume->mode != MODE_UN)
				(void)lock_take(volume->lock, volume->mode, 0, on_vol, volume);
	}
	(void)locks_forget_rest(d->locks);
	life_serve(d);
}
