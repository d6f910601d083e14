/* SPDX-License-Identifier: Apache-2.0 */
/* What the files table_*.c share. Private to them. */
#ifndef PLUMB_ANALYZE_TABLE_ROWS_H
#define PLUMB_ANALYZE_TABLE_ROWS_H

#include "analyze/tables.h"

/* What to show for a layer, and its module's class (without packages) or its operator. */
const char *plumb_layer_name(const struct plumb_layers *layers, uint32_t layer);
const char *plumb_layer_type(const struct plumb_layers *layers, uint32_t layer); /* or NULL */

/* For each layer of A the one of B that is the same, or PLUMB_NONE, into PARTNER: by name, the k-th
 * of a name is the k-th, and where TYPES is set by type what is then left, as of another framework.
 * PLUMB_ESYSTEM. */
int plumb_layers_match(const struct plumb_layers *a, const struct plumb_layers *b, bool types,
                       uint32_t *partner);

/* layer_index, layer_name, layer_type; without any for PLUMB_NONE. */
void plumb_layer_columns(struct plumb_answer *answer);
void
plumb_layer_cells(struct plumb_answer *answer, const struct plumb_layers *layers, uint32_t layer);

/* The latency of a layer and what it is: with its GPU work where that is known, else the host's. */
double plumb_layer_us(const struct plumb_layer_row *row, enum plumb_latency_kind *kind);

/* Intensity, throughput and memory_bound by NAMES, and the peaks that they are held against. */
void plumb_roofline_columns(struct plumb_answer *answer, const char *const names[3], bool derived);
void plumb_roofline_cells(struct plumb_answer *answer, const struct plumb_tables_input *input,
                          const struct plumb_counters *counters, double us);

/* Percent of the model's latency that US of GPU time are; NAN where that does not hold its GPU
 * work. */
double plumb_model_share(const struct plumb_layers *layers, double us);

/* Of a profile's model: its name and GPU, or NULL; inputs a second, NAN where batch size or latency
 * are unknown. */
const char *plumb_model_name(const struct plumb_layers *layers);
const char *plumb_model_device(const struct plumb_layers *layers);
double plumb_model_throughput(const struct plumb_tables_input *input, uint32_t profile);

/* The model's own: time of its kernels in a run, forward and backward, and their counters. */
struct plumb_model_totals {
	double device_us, backward_us;
	struct plumb_counters counters;
};
struct plumb_model_totals plumb_model_totals_of(const struct plumb_layers *layers);

/* What a profile has for the key: its batch size, its GPU, … */
void plumb_key_cell(struct plumb_answer *answer, const struct plumb_tables_input *input,
                    uint32_t profile);

/* ---- stages: layers I of N are in stage ⌊3·I/N⌋ ---- */

#define PLUMB_STAGES 3
extern const char *const plumb_stage_names[PLUMB_STAGES];

enum plumb_stage_quantity {
	PLUMB_STAGE_LATENCY, /* µs */
	PLUMB_STAGE_DEVICE,  /* µs of kernels */
	PLUMB_STAGE_MEMORY,  /* bytes allocated */
	PLUMB_STAGE_FLOPS,
	PLUMB_STAGE_ACCESSES, /* bytes of memory traffic */
	PLUMB_STAGE_QUANTITIES,
};

struct plumb_stages {
	uint32_t layers[PLUMB_STAGES];
	double sums[PLUMB_STAGE_QUANTITIES][PLUMB_STAGES]; /* NAN unknown */
	enum plumb_latency_kind kind;                      /* what the latency is */
	bool derived;                                      /* the flops */
};
void plumb_stages_make(const struct plumb_layers *layers, struct plumb_stages *stages);
/* The name of the stage that most of QUANTITY lies in; NULL unknown. */
const char *
plumb_stage_of_most(const struct plumb_stages *stages, enum plumb_stage_quantity quantity);

#endif
