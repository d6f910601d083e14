/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract for an export: a profile in a format that other tools read. A new format is one file
 * with a `const struct plumb_export_format`, and a row in export.c.
 *
 * A format writes as it goes and holds nothing of the size of its output. It does not look at
 * whether writing works: who calls it does, by ferror (a loop may, to end early).
 */
#ifndef PLUMB_EXPORT_EXPORT_H
#define PLUMB_EXPORT_EXPORT_H

#include <stdio.h>

#include "model/profile.h"

struct plumb_export_options {
	/* The one asked for, of sum aggregation, plumb's or the program's own (model/metric.h); 0:
	 * what suits the format. */
	uint32_t metric;
	uint32_t main; /* what reports of this profile are about when nobody says */
};

struct plumb_export_format {
	const char *name;
	bool binary; /* nothing for a terminal */
	bool metric; /* options.metric selects something */
	/* 0, or: PLUMB_EEMPTY, there is nothing to write (and nothing was), PLUMB_ESYSTEM. */
	int (*write)(const struct plumb_profile *profile,
	             const struct plumb_export_options *options, FILE *out,
	             struct plumb_error *error);
};

extern const struct plumb_export_format plumb_export_folded, plumb_export_speedscope,
	plumb_export_perfetto, plumb_export_pprof, plumb_export_chrome, plumb_export_otlp,
	plumb_export_csv, plumb_export_json;

/* All formats; ends with NULL. */
extern const struct plumb_export_format *const plumb_export_formats[];
/* The format of that name, or NULL. */
const struct plumb_export_format *plumb_export_find(const char *name);

#endif
