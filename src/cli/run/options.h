/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `plumb run` shall record: its options, read and checked, and as the variables that tell the
 * collector.
 */
#ifndef PLUMB_CLI_RUN_OPTIONS_H
#define PLUMB_CLI_RUN_OPTIONS_H

#include "base/error.h"
#include "base/words.h"
#include "cli/options.h"

#define PLUMB_RUN_LEAST_LIMIT (1ll << 20)
#define PLUMB_RUN_TOOLS_BYTES 8000    /* the collector keeps at most so many */
#define PLUMB_RUN_COUNTERS_BYTES 1024 /* likewise */

struct plumb_run_options {
	long long limit, flush_ms;
	enum plumb_gpu_mode gpu;
	bool keep_cupti, memory, shapes, replays, no_command, no_windows;
	unsigned stalls; /* the period is 2^stalls cycles; 0: no samples of stalls */
	enum plumb_stalls_mode stalls_mode;
	enum plumb_traffic_mode traffic;                 /* 0: none */
	double traffic_rate;                             /* of SAMPLED */
	char traffic_kernels[256], traffic_objects[256]; /* ""  all */
	unsigned layers;                                 /* enum plumb_layer */
	long long cpu_hz;                                /* 0: none */
	long long pairs;     /* of runs that measure what recording costs; 0: none */
	const char *events;  /* NULL: none */
	const char *trace;   /* NULL: none */
	int64_t start_after; /* ns */
	int64_t duration;    /* ns, 0: to the end */
	int toggle;          /* a signal's number, 0: none */
	char follow[256];
	char tools[PLUMB_RUN_TOOLS_BYTES]; /* libraries to preload, separated by ":" */
	const char *counters;              /* NULL: none */
	char counters_kernels[4608];       /* hashes of their names; "" all */
	const char *user_code;             /* NULL: the default rule */
};

extern const struct plumb_option plumb_run_option_table[];

/* Errors: PLUMB_EUSAGE with the option's name. Texts point into GIVEN. */
int plumb_run_options_read(const struct plumb_options *given, struct plumb_run_options *options,
                           struct plumb_error *error) PLUMB_MUST_CHECK;

/* The part of plumb_run_options_read that looks at the files of --tool; see tools.c. */
int plumb_run_tools_read(const struct plumb_options *given, struct plumb_run_options *options,
                         struct plumb_error *error) PLUMB_MUST_CHECK;

/* The part of plumb_run_options_read for --counters; see counters.c. After --gpu, --stalls and
 * --traffic. */
int plumb_run_counters_read(const struct plumb_options *given, struct plumb_run_options *options,
                            struct plumb_error *error) PLUMB_MUST_CHECK;

/* "NAME=VALUE", ends with NULL; NULL: no memory. */
char **plumb_run_options_variables(const struct plumb_run_options *options);
void plumb_run_options_variables_free(char **variables);

#endif
