/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The standard tables: the fifteen analyses of XSP, with its column names, from a profile's layers.
 *
 *	struct plumb_tables_input input = { .layers = &layers, .count = 1, .device = "H200" };
 *	struct plumb_answer answer;
 *	if (plumb_tables_answer(plumb_tables_find("A8"), &input, &answer, &error) < 0) …
 *	… plumb_answer_at(&answer, row, column) …
 *	plumb_answer_free(&answer);
 *
 * A1, compare and swapped are of all the profiles, the others of the first. Columns have the names
 * of XSP's CSV, or names of plumb's in the same manner, with the unit in brackets.
 */
#ifndef PLUMB_ANALYZE_TABLES_H
#define PLUMB_ANALYZE_TABLES_H

#include "analyze/answer.h"
#include "analyze/constraint.h"
#include "analyze/layers.h"

/* By what profiles are compared. */
enum plumb_tables_key {
	PLUMB_KEY_IS_FILE,
	PLUMB_KEY_IS_BATCH,
	PLUMB_KEY_IS_GPU,
	PLUMB_KEY_IS_FRAMEWORK,
	PLUMB_KEY_IS_VERSION, /* of the framework */
};

/* What a GPU can do at most. */
struct plumb_roof {
	double peak_gflops; /* per second; NAN unknown */
	double bandwidth;   /* bytes per second; NAN unknown */
};

struct plumb_tables_input {
	const struct plumb_layers *layers; /* one or more */
	uint32_t count;
	const int64_t *batches;           /* of each, 0 unknown; or NULL */
	double peak_gflops;               /* of the first's GPU per second; NAN unknown */
	double bandwidth;                 /* bytes per second; NAN unknown */
	double gain;                      /* A1: a doubling that gains no more is too much, 0.05 */
	const char *const *batch_sources; /* where BATCHES are from; or NULL */
	const char *const *files;         /* names of the profiles; or NULL */
	const struct plumb_roof *roofs;   /* of each; or NULL */
	enum plumb_tables_key key;
	bool against_best; /* compare: ratios to the greatest throughput, else to the first */
	struct plumb_constraints constraints; /* on the batch size that A1 chooses */
};

struct plumb_tables_kind {
	const char *id;    /* "A1" */
	const char *title; /* "model information" */
	void (*make)(const struct plumb_tables_input *input, struct plumb_answer *answer);
	bool several;        /* it uses all profiles */
	bool aside;          /* "all" does not include it */
	const char *without; /* what it means if there are no rows, or NULL */
	const char *remedy;  /* what to do if no column is known, or NULL */
};

#define PLUMB_TABLES_KINDS 18
extern const struct plumb_tables_kind plumb_tables_kinds[]; /* ends with a zeroed one */
/* By id, in any case of letters; NULL: none. */
const struct plumb_tables_kind *plumb_tables_find(const char *id);

/* PLUMB_ESYSTEM: no memory. A table may be without rows. */
int
plumb_tables_answer(const struct plumb_tables_kind *kind, const struct plumb_tables_input *input,
                    struct plumb_answer *answer, struct plumb_error *error) PLUMB_MUST_CHECK;

/* ---- for the files table_*.c ---- */

/* The eight columns of counters by the NAMES given, and their cells for what took US. DERIVED: some
 * work is. */
void
plumb_answer_counter_columns(struct plumb_answer *answer, const char *const names[8], bool derived);
void plumb_answer_counters(struct plumb_answer *answer, const struct plumb_tables_input *input,
                           const struct plumb_counters *counters, double us);

void plumb_table_model_information(const struct plumb_tables_input *, struct plumb_answer *);
void plumb_table_layer_information(const struct plumb_tables_input *, struct plumb_answer *);
void plumb_table_layer_latency(const struct plumb_tables_input *, struct plumb_answer *);
void plumb_table_layer_memory(const struct plumb_tables_input *, struct plumb_answer *);
void plumb_table_type_occurrence(const struct plumb_tables_input *, struct plumb_answer *);
void plumb_table_type_latency(const struct plumb_tables_input *, struct plumb_answer *);
void plumb_table_type_memory(const struct plumb_tables_input *, struct plumb_answer *);
void plumb_table_kernel_information(const struct plumb_tables_input *, struct plumb_answer *);
void plumb_table_kernel_roofline(const struct plumb_tables_input *, struct plumb_answer *);
void plumb_table_kernel_name(const struct plumb_tables_input *, struct plumb_answer *);
void plumb_table_layer_kernels(const struct plumb_tables_input *, struct plumb_answer *);
void plumb_table_layer_counters(const struct plumb_tables_input *, struct plumb_answer *);
void plumb_table_layer_device(const struct plumb_tables_input *, struct plumb_answer *);
void plumb_table_layer_roofline(const struct plumb_tables_input *, struct plumb_answer *);
void plumb_table_model_totals(const struct plumb_tables_input *, struct plumb_answer *);
void plumb_table_stages(const struct plumb_tables_input *, struct plumb_answer *);
void plumb_table_compare(const struct plumb_tables_input *, struct plumb_answer *);
void plumb_table_swapped(const struct plumb_tables_input *, struct plumb_answer *);

/* ---- arithmetic of the tables ---- */

/* Floating-point operations for each byte of memory traffic; NAN when one is unknown or there is
 * none. */
double plumb_intensity(double flops, double read, double written);
/* 1: memory limits work of this INTENSITY, 0: arithmetic does, -1: unknown. */
int plumb_memory_bound(double intensity, double peak_gflops, double bandwidth);

/* The index of the optimal one of COUNT ascending batch sizes with their THROUGHPUT, or PLUMB_NONE.
 * The rule is that of the XSP paper: the first size whose doubling gains at most GAIN (0.05). If a
 * step is not a doubling, its gain for each doubling counts. */
uint32_t plumb_optimal_doubling(const double *batches, const double *throughput, uint32_t count,
                                double gain);
/* The rule that the numbers of the paper follow: the size with the greatest throughput. */
uint32_t plumb_optimal_greatest(const double *throughput, uint32_t count);

#endif
