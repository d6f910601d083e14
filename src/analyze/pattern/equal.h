/* SPDX-License-Identifier: Apache-2.0 */
/* How far two sequences of names are the same: eight names a step where they are long. */
#ifndef PLUMB_ANALYZE_PATTERN_EQUAL_H
#define PLUMB_ANALYZE_PATTERN_EQUAL_H

#include <stdint.h>
#include <string.h>

/* The number of names, at most MOST, that A and B have in common from their beginnings on. */
static inline int32_t
plumb_equal(const int32_t *a, const int32_t *b, int32_t most)
{
	int32_t same = 0;

	for (; most - same >= 8; same += 8) {
		uint64_t x[4], y[4];

		memcpy(x, a + same, sizeof x);
		memcpy(y, b + same, sizeof y);
		if ((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3]))
			break;
	}
	while (same < most && a[same] == b[same])
		same++;
	return same;
}

#endif
