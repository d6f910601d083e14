/* SPDX-License-Identifier: Apache-2.0 */
/* How many columns of a terminal a text takes. Independent of the locale: text is UTF-8. */
#ifndef PLUMB_CLI_COLUMNS_H
#define PLUMB_CLI_COLUMNS_H

#include <stddef.h>
#include <stdint.h>

/* Reads the code point at TEXT, which has BYTES (≥ 1) bytes. Returns the length of the code point
 * in bytes; *COLUMNS is 0 (combining), 1 or 2. A byte that is not UTF-8 takes one column, and so
 * does a control character: a replacement is printed for them. */
size_t plumb_columns_next(const char *text, size_t bytes, int *columns);

/* Columns of a terminated text. */
int plumb_columns(const char *text);

#endif
