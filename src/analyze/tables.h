/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The standard tables: the fifteen analyses of XSP, with its column names, from a profile's layers.
 *
 *	struct plumb_tables_input input = { .layers = &layers, .count = 1, .device = "NVIDIA H200", … };
 *	struct plumb_answer answer;
 *	if (plumb_answer_make(plumb_answer_find("A8"), &input, &answer, &error) < 0) …
 *	… answer.cells[row * answer.column_count + column] …
 *	plumb_answer_free(&answer);
 *
 * A1, compare and swapped use all profiles, the others only the first. Unknown cells are
 * PLUMB_CELL_UNKNOWN. A column without a known cell has no source.
 */
#ifndef PLUMB_ANALYZE_TABLES_H
#define PLUMB_ANALYZE_TABLES_H

#include "analyze/constraint.h"
#include "analyze/layers.h"

enum plumb_answer_source {
	PLUMB_SOURCE_IS_UNKNOWN,
	PLUMB_SOURCE_IS_MEASURED,
	PLUMB_SOURCE_IS_DERIVED, /* calculated from what was not measured itself: shapes, or a table of peaks */
};
/* "measured", "derived" or NULL. */
const char *plumb_answer_source_name(enum plumb_answer_source source);

struct plumb_answer_column {
	/* the name in XSP's CSV, or plumb's own in the same style; the unit is in brackets */
	const char *name;
	/* "us", "ms", "byte", "%", "flop/byte", "count", …; NULL: a text or truth */
	const char *unit;
	enum plumb_answer_source source;
};

enum plumb_cell_kind {
	PLUMB_CELL_UNKNOWN,
	PLUMB_CELL_TEXT,
	PLUMB_CELL_NUMBER,
	PLUMB_CELL_TRUTH,
};

struct plumb_cell {
	enum plumb_cell_kind kind;
	union {
		const char *text; /* of the profile or of plumb */
		double number;
		bool truth;
	};
};

struct plumb_answer {
	const struct plumb_answer_kind *kind;
	struct plumb_answer_column *columns;
	uint32_t column_count;
	struct plumb_cell *cells; /* row by row */
	uint32_t row_count;
	/* private */
	uint64_t cell_count;
	uint32_t columns_room, cells_room;
	bool failed;
};

/* The key by which `compare` tells profiles apart. */
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

struct plumb_answer_kind {
	const char *id;    /* "A1" */
	const char *title; /* "model information" */
	void (*make)(const struct plumb_tables_input *input, struct plumb_answer *answer);
	bool several;        /* it uses all profiles */
	bool aside;          /* "all" does not include it */
	const char *without; /* what it means if there are no rows, or NULL */
	const char *remedy;  /* what to do if no column is known, or NULL */
};

extern const struct plumb_answer_kind plumb_answer_kinds[]; /* ends with a zeroed one */
/* By id, in any case of letters; NULL: none. */
const struct plumb_answer_kind *plumb_answer_find(const char *id);

/* PLUMB_ESYSTEM: no memory. A table may be without rows. */
int plumb_answer_make(const struct plumb_answer_kind *kind, const struct plumb_tables_input *input,
                      struct plumb_answer *answer, struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_answer_free(struct plumb_answer *answer);

/* ---- for the files table_*.c ---- */

void plumb_answer_column(struct plumb_answer *answer, const char *name, const char *unit,
                         enum plumb_answer_source source);
void plumb_answer_text(struct plumb_answer *answer, const char *text); /* NULL unknown */
void plumb_answer_number(struct plumb_answer *answer, double number);  /* NAN unknown */
void plumb_answer_truth(struct plumb_answer *answer, int truth);       /* -1 unknown */

/* Adds the eight columns of counters with the given NAMES, and their cells for what took US.
 * DERIVED: some of the work is derived. */
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
