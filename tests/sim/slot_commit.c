/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The client's side of a loan as it is shipped, but for a place to stop before
 * each access to the memory that it shares with belayd, and logs that are
 * rewritten after a few operations: a simulated client does not make many.
 */
#include "tests/sim/sim.h"

#undef SLOT_STEP
#define SLOT_STEP(loan) loan_step(loan)
#undef SLOT_COMPACT_MIN
#define SLOT_COMPACT_MIN 6u
#include "slot/commit.c"
