/* SPDX-License-Identifier: Apache-2.0 */
/* How many columns of a terminal a text takes. Independent of the locale: text is UTF-8. */
#ifndef PLUMB_CLI_COLUMNS_H
#define PLUMB_CLI_COLUMNS_H

#include <stddef.h>
#include <stdint.h>

/* Takes the code point at TEXT, of which BYTES (≥ 1) bytes may be read, and returns how many bytes
 * it is long; *COLUMNS is 0 (combining), 1 or 2. A byte that is no UTF-8, and a control character,
 * take one column: they are printed as a replacement. */
size_t plumb_columns_next(const char *text, size_t bytes, int *columns);

/* Columns of a terminated text. */
int plumb_columns(const char *text);

#endif
