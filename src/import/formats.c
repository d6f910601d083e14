/* SPDX-License-Identifier: Apache-2.0 */
/* The formats. A new one is a file with a `const struct plumb_format`, and two rows here. */
#include "import/import.h"

extern const struct plumb_format plumb_format_kineto;
extern const struct plumb_format plumb_format_chrome;
extern const struct plumb_format plumb_format_tf1;
extern const struct plumb_format plumb_format_jax;
extern const struct plumb_format plumb_format_rocprofv3;
extern const struct plumb_format plumb_format_nsys;
extern const struct plumb_format plumb_format_rocpd;
extern const struct plumb_format plumb_format_rpd;
extern const struct plumb_format plumb_format_nsys_csv;
extern const struct plumb_format plumb_format_nvprof;
extern const struct plumb_format plumb_format_folded;
extern const struct plumb_format plumb_format_hpctoolkit;
extern const struct plumb_format plumb_format_pprof;
extern const struct plumb_format plumb_format_xplane;
extern const struct plumb_format plumb_format_jaeger;
extern const struct plumb_format plumb_format_otlp;
extern const struct plumb_format plumb_format_perfetto;
extern const struct plumb_format plumb_format_rocprof_csv;
extern const struct plumb_format plumb_format_unitrace_csv;
extern const struct plumb_format plumb_format_unitrace;

const struct plumb_format *const plumb_formats[] = {
	&plumb_format_kineto,       &plumb_format_chrome,
	&plumb_format_tf1,          &plumb_format_jax,
	&plumb_format_rocprofv3,

	&plumb_format_nsys,         &plumb_format_rpd,
	&plumb_format_nsys_csv,     &plumb_format_nvprof,
	&plumb_format_folded,       &plumb_format_hpctoolkit,
	&plumb_format_pprof,        &plumb_format_xplane,
	&plumb_format_jaeger,       &plumb_format_otlp,
	&plumb_format_rocpd,        &plumb_format_rocprof_csv,
	&plumb_format_unitrace_csv, &plumb_format_unitrace,
	&plumb_format_perfetto,     NULL,
};
