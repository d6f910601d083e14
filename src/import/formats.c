/* SPDX-License-Identifier: Apache-2.0 */
/* The formats. A new one is a file with a `const struct plumb_format`, and two rows here. */
#include "import/import.h"

extern const struct plumb_format plumb_format_kineto;
extern const struct plumb_format plumb_format_chrome;
extern const struct plumb_format plumb_format_tf1;
extern const struct plumb_format plumb_format_jax;
extern const struct plumb_format plumb_format_rocprofv3;
extern const struct plumb_format plumb_format_unitrace;

const struct plumb_format *const plumb_formats[] = {
	&plumb_format_kineto,
	&plumb_format_chrome,
	&plumb_format_tf1,
	&plumb_format_jax,
	&plumb_format_rocprofv3,
	&plumb_format_unitrace,
	NULL,
};
