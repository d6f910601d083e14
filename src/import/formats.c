/* SPDX-License-Identifier: Apache-2.0 */
/* The formats. A new one is a file with a `const struct plumb_format`, and two rows here. */
#include "import/import.h"

extern const struct plumb_format plumb_format_kineto;
extern const struct plumb_format plumb_format_nsys_csv;
extern const struct plumb_format plumb_format_nvprof;
extern const struct plumb_format plumb_format_rocprof_csv;
extern const struct plumb_format plumb_format_unitrace_csv;

const struct plumb_format *const plumb_formats[] = {
	&plumb_format_kineto,      &plumb_format_nsys_csv,     &plumb_format_nvprof,
	&plumb_format_rocprof_csv, &plumb_format_unitrace_csv, NULL,
};
