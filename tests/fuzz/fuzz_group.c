/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/law.h"

/* Frames: what the other nodes multicast. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (law_frame(data, size) == LAW_BROKEN || law_resized(law_frame, data, size) == LAW_BROKEN)
		abort();
	return 0;
}
