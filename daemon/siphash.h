/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SipHash-2-4 with a result of 128 bits (Aumasson and Bernstein). */
#ifndef BELAY_DAEMON_SIPHASH_H
#define BELAY_DAEMON_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

void siphash128(const uint8_t key[16], const void *data, size_t size, uint8_t ret_hash[16]);

#endif
