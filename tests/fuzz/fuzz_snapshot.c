/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/law.h"

/* Chunks of snapshots: what a synced node sends to one that joins. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (law_snapshot(data, size) == LAW_BROKEN || law_resized(law_snapshot, data, size) == LAW_BROKEN)
		abort();
	return 0;
}
