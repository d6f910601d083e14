/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as people read them. An unknown (PLUMB_UNKNOWN, NaN) is "–", never 0. */
#ifndef PLUMB_BASE_FORMAT_H
#define PLUMB_BASE_FORMAT_H

#include <stdint.h>

#define PLUMB_FORMAT_SIZE 40
#define PLUMB_DASH "\xe2\x80\x93"     /* – */
#define PLUMB_ELLIPSIS "\xe2\x80\xa6" /* … */

/* All write to TEXT, which has PLUMB_FORMAT_SIZE bytes, and return it. */

/* By the unit of a metric: "ns", "byte", "count", "ppm"; any other: as a count. */
const char *plumb_format_quantity(char *text, const char *unit, int64_t value);
/* 980 ns, 1.23 µs, 45.6 ms, 789 s */
const char *plumb_format_time(char *text, int64_t ns);
/* 980 B, 1.23 KiB, 45.6 MiB (powers of 1024) */
const char *plumb_format_bytes(char *text, int64_t bytes);
/* 1,234,567 */
const char *plumb_format_count(char *text, int64_t count);
/* PART of WHOLE as "12.3 %"; unknown when either is, or WHOLE is 0. */
const char *plumb_format_share(char *text, double part, double whole);

/* The part of PATH after its last slash; all of a path that ends with one. */
const char *plumb_path_base(const char *path);

#endif
