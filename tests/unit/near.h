/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of numbers that are no whole ones: near(value, 3.1824, 1e-4). After cmocka.h. */
#ifndef PLUMB_TESTS_NEAR_H
#define PLUMB_TESTS_NEAR_H

#include <math.h>

static inline void
near(double value, double expected, double by)
{
	if (!(fabs(value - expected) <= by))
		fail_msg("%.17g is not %.17g", value, expected);
}

#endif
