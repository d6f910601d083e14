/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4) of bytes in memory, for checksums such as those of a page's policy. */
#ifndef PLUMB_BASE_SHA256_H
#define PLUMB_BASE_SHA256_H

#include <stddef.h>

#define PLUMB_SHA256_BYTES 32

void plumb_sha256(const void *data, size_t bytes, unsigned char digest[PLUMB_SHA256_BYTES]);

#endif
