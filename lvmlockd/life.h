/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From start to end: how the parts are put together, and what happens when belayd comes and goes. */
#ifndef BELAY_LVMLOCKD_LIFE_H
#define BELAY_LVMLOCKD_LIFE_H

#include "lvmlockd/lvmlockd.h"

/* The configuration is loaded. 0, or a negative errno, logged; life_end() is due in any case. */
int life_begin(struct lvmlockd *lvmlockd);
void life_end(struct lvmlockd *lvmlockd);

/*
 * Adoption, adoption.c: belayd is there, and has again what this process had locked. Then
 * adoption_begin(), which ends in phase LVMLOCKD_SERVING; adoption_stop(): belayd is gone. Both
 * may come at any time.
 */
void adoption_begin(struct lvmlockd *lvmlockd);
void adoption_stop(struct lvmlockd *lvmlockd);
/* Adoption has ended: phase LVMLOCKD_SERVING, and the other nodes are told. */
void life_serve(struct lvmlockd *lvmlockd);

#endif
