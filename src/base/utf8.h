/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UTF-8: checking text, and making any bytes into text.
 */
#ifndef PLUMB_BASE_UTF8_H
#define PLUMB_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* The length of the valid character at TEXT, of at most BYTES bytes; 0 when there is none. */
size_t plumb_utf8_character(const char *text, size_t bytes);

bool plumb_utf8_valid(const char *text, size_t bytes);

/* Copies BYTES bytes of TEXT to OUT (room for 3 * BYTES) with every byte that is not part of a
 * valid character replaced by U+FFFD. Returns the length. Nothing is terminated. */
size_t plumb_utf8_repair(char *out, const char *text, size_t bytes);

#endif
