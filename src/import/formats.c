/* SPDX-License-Identifier: Apache-2.0 */
/* The formats. A new one is a file with a `const struct plumb_format`, and two rows here. */
#include "import/import.h"

extern const struct plumb_format plumb_format_kineto;
extern const struct plumb_format plumb_format_nsys;
extern const struct plumb_format plumb_format_rocpd;
extern const struct plumb_format plumb_format_rpd;

const struct plumb_format *const plumb_formats[] = {
	&plumb_format_kineto, &plumb_format_nsys, &plumb_format_rocpd, &plumb_format_rpd, NULL,
};
