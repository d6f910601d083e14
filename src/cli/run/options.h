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
#include "model/profile.h"

#define PLUMB_RUN_LEAST_LIMIT (1ll << 20)
#define PLUMB_RUN_TOOLS_BYTES 8000    /* the collector keeps at most so many */
#define PLUMB_RUN_COUNTERS_BYTES 1024 /* likewise */

/* Of `plumb run` and `plumb levels`. */
#define PLUMB_COUNTERS_LAUNCHES_OPTION                                                             \
	{ .name = "counters-launches",                                                             \
	  .kind = PLUMB_OPTION_NUMBER,                                                             \
	  .argument = "N",                                                                         \
	  .fallback = "8",                                                                         \
	  .help = "with --counters: of each kernel at each call path, count the first launch, "    \
		  "the second, the fourth, and so on up to the N-th. 1 is the fastest" }
#define PLUMB_COUNTERS_COST_OPTION(cost)                                                           \
	{ .name = "counters-cost",                                                                 \
	  .kind = PLUMB_OPTION_NUMBER,                                                             \
	  .argument = "N",                                                                         \
	  .fallback = cost,                                                                        \
	  .help = "with --counters: count only as many launches as let the program take at most "  \
		  "N times as long. 0: no limit" }

struct plumb_run_options {
	long long limit, flush_ms;
	enum plumb_gpu_mode gpu;
	bool keep_cupti, memory, shapes, replays, no_command, no_windows;
	unsigned stalls; /* the period is 2^stalls cycles; 0: no samples of stalls */
	enum plumb_stalls_mode stalls_mode;
	enum plumb_traffic_mode traffic; /* 0: none */
	double traffic_rate;             /* of SAMPLED */
	bool traffic_own;
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
	unsigned counters_launches;        /* 0: the default */
	unsigned counters_cost;            /* how many times as long the run may take; 0: any */
	const char *counters_series;       /* NULL: none */
	unsigned counters_every;           /* µs */
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

/* The same for --counters-series, after that. */
int plumb_run_series_read(const struct plumb_options *given, struct plumb_run_options *options,
                          struct plumb_error *error) PLUMB_MUST_CHECK;

/* Its parts: --counters-cost and --counters-launches; is LIST one of counters; the MOST kernels of
 * PROFILE that took most GPU time, the longest first, as strings (malloced; NULL: no memory); and
 * what `counters_kernels` says of them. */
int plumb_run_counters_cost(const struct plumb_options *given, unsigned *cost,
                            struct plumb_error *error) PLUMB_MUST_CHECK;
int plumb_run_counters_launches(const struct plumb_options *given, unsigned *launches,
                                struct plumb_error *error) PLUMB_MUST_CHECK;
int plumb_run_counters_check(const char *list, struct plumb_error *error) PLUMB_MUST_CHECK;
uint32_t *
plumb_run_counters_hot(const struct plumb_profile *profile, uint32_t most, uint32_t *count);
void plumb_run_counters_hash(const struct plumb_profile *profile, const uint32_t *kernels,
                             uint32_t count, char *text, size_t size);

/* "NAME=VALUE", ends with NULL; NULL: no memory. */
char **plumb_run_options_variables(const struct plumb_run_options *options);
void plumb_run_options_variables_free(char **variables);

#endif
