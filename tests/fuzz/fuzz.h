/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A fuzz target is one function, which aborts if a law is broken. It is linked
 * either with libFuzzer or with replay.c, which feeds it its corpus.
 */
#ifndef BELAY_TESTS_FUZZ_H
#define BELAY_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
