/* SPDX-License-Identifier: Apache-2.0 */
/* The formats. A new one is a file with a `const struct plumb_format`, and two rows here. */
#include "import/import.h"

extern const struct plumb_format plumb_format_kineto;
extern const struct plumb_format plumb_format_folded;
extern const struct plumb_format plumb_format_hpctoolkit;
extern const struct plumb_format plumb_format_pprof;
extern const struct plumb_format plumb_format_xplane;

const struct plumb_format *const plumb_formats[] = {
	&plumb_format_kineto,
	&plumb_format_folded,
	&plumb_format_hpctoolkit,
	&plumb_format_pprof,
	&plumb_format_xplane,
	NULL,
};
