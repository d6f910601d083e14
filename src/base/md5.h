/* SPDX-License-Identifier: Apache-2.0 */
/* MD5 (RFC 1321) of bytes in memory, where another tool names files by it. It proves nothing about
 * who made them. */
#ifndef PLUMB_BASE_MD5_H
#define PLUMB_BASE_MD5_H

#include <stddef.h>

#define PLUMB_MD5_DIGITS 32

/* In hexadecimal, in small letters, terminated. */
void plumb_md5(const void *data, size_t bytes, char digits[PLUMB_MD5_DIGITS + 1]);

#endif
