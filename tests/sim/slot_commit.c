/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The client's side of a loan as it is shipped, but for a place to stop before
 * each access to the memory that it shares with belayd.
 */
#include "tests/sim/sim.h"

#undef SLOT_STEP
#define SLOT_STEP(loan) loan_step(loan)
#include "slot/commit.c"
