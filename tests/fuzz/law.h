/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The law of the codecs: what is accepted encodes again to the very bytes it
 * came from. The fuzz targets try it on random bytes, the unit tests on
 * damaged messages.
 */
#ifndef BELAY_TESTS_LAW_H
#define BELAY_TESTS_LAW_H

#include <stddef.h>
#include <stdint.h>

#define LAW_BROKEN 1

/* 0: accepted, and the law holds; the decoder's negative errno; LAW_BROKEN. */
int law_frame(const uint8_t *bytes, size_t size);
int law_snapshot(const uint8_t *bytes, size_t size);
int law_hints(const uint8_t *bytes, size_t size);
int law_packet(const uint8_t *bytes, size_t size);

/*
 * The same for a frame, a snapshot or hints whose head is made to say its true size:
 * else nearly all random bytes would be refused for that alone.
 */
int law_resized(int (*law)(const uint8_t *bytes, size_t size), const uint8_t *bytes, size_t size);

#endif
