/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/law.h"

/* Packets: what a client sends to belayd, and belayd to a client. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (law_packet(data, size) == LAW_BROKEN)
		abort();
	return 0;
}
