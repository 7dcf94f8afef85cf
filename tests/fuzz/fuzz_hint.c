/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/law.h"

/* Hints: datagrams of other nodes, or of whoever has their key. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (law_hints(data, size) == LAW_BROKEN || law_resized(law_hints, data, size) == LAW_BROKEN)
		abort();
	return 0;
}
