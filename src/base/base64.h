/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 (RFC 4648). */
#ifndef PLUMB_BASE_BASE64_H
#define PLUMB_BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Room for the text of BYTES, with the zero at its end. */
#define PLUMB_BASE64_SIZE(bytes) (((bytes) + 2) / 3 * 4 + 1)

/* Writes DATA into TEXT, which has PLUMB_BASE64_SIZE(BYTES). URL: by the alphabet for addresses,
 * without "=" at the end. Returns TEXT. */
char *plumb_base64(const void *data, size_t bytes, bool url, char *text);

/* The same, with the usual alphabet, to OUT. A failed write shows in ferror(OUT). */
void plumb_base64_write(const void *data, size_t bytes, FILE *out);

#endif
