/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suffix arrays over sequences of names. A sequence is `int32_t text[count]` whose symbols are
 * 0…alphabet-1 (alphabet at most count); any alphabet will do, up to one symbol for each place.
 *
 * Time and room are linear: the arrays below have 4 bytes a symbol, and building the first takes at
 * most 8 more for a while.
 */
#ifndef PLUMB_ANALYZE_PATTERN_SUFFIX_H
#define PLUMB_ANALYZE_PATTERN_SUFFIX_H

#include <stdint.h>

#include "base/error.h"

/* SUFFIXES[i] becomes the start of the i-th suffix in lexicographic order (a suffix that another
 * one begins with comes first). PLUMB_EUSAGE: a symbol is out of range; PLUMB_ESYSTEM: memory is
 * out. */
int plumb_suffix_array(const int32_t *text, int32_t count, int32_t alphabet,
                       int32_t *suffixes) PLUMB_MUST_CHECK;

/* COMMON[i] becomes the length that suffixes i-1 and i have in common; COMMON[0] is 0. SCRATCH has
 * room for COUNT, too. */
void plumb_suffix_common(const int32_t *text, const int32_t *suffixes, int32_t count,
                         int32_t *common, int32_t *scratch);

/* NUMBER[i] becomes the same for all places of the text at which the same LENGTH symbols stand,
 * counted from 0 on. Returns how many different ones there are. */
int32_t plumb_suffix_stretches(const int32_t *suffixes, const int32_t *common, int32_t count,
                               int32_t length, int32_t *number);

#endif
