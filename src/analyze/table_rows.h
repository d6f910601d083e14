/* SPDX-License-Identifier: Apache-2.0 */
/* What the files table_*.c share. Private to them. */
#ifndef PLUMB_ANALYZE_TABLE_ROWS_H
#define PLUMB_ANALYZE_TABLE_ROWS_H

#include "analyze/tables.h"

/* What to show for a layer, and its module's class (without packages) or its operator. */
const char *plumb_layer_name(const struct plumb_layers *layers, uint32_t layer);
const char *plumb_layer_type(const struct plumb_layers *layers, uint32_t layer); /* or NULL */

/* PARTNER gets for each layer of A the same layer of B, or PLUMB_NONE. The k-th layer with a name
 * matches the k-th with that name. If TYPES is set, the layers that are left match by type in the
 * same way, as those of another framework do. PLUMB_ESYSTEM. */
int plumb_layers_match(const struct plumb_layers *a, const struct plumb_layers *b, bool types,
                       uint32_t *partner);

/* layer_index, layer_name, layer_type; without any for PLUMB_NONE. */
void plumb_layer_columns(struct plumb_answer *answer);
void
plumb_layer_cells(struct plumb_answer *answer, const struct plumb_layers *layers, uint32_t layer);

/* The latency of a layer, and its kind: with its GPU work if that is known, else on the host. */
double plumb_layer_us(const struct plumb_layer_row *row, enum plumb_latency_kind *kind);

/* Intensity, throughput and memory_bound under NAMES, and the peaks that they are compared with. */
void plumb_roofline_columns(struct plumb_answer *answer, const char *const names[3], bool derived);
void plumb_roofline_cells(struct plumb_answer *answer, const struct plumb_tables_input *input,
                          const struct plumb_counters *counters, double us);

/* US of GPU time as a percentage of the model's latency; NAN if that latency does not include its
 * GPU work. */
double plumb_model_share(const struct plumb_layers *layers, double us);

/* The name and the GPU of a profile's model, or NULL. Its throughput is in inputs per second, NAN
 * if batch size or latency is unknown. */
const char *plumb_model_name(const struct plumb_layers *layers);
const char *plumb_model_device(const struct plumb_layers *layers);
double plumb_model_throughput(const struct plumb_tables_input *input, uint32_t profile);

/* The model's own: time of its kernels in a run, forward and backward, and their counters. */
struct plumb_model_totals {
	double device_us, backward_us;
	struct plumb_counters counters;
};
struct plumb_model_totals plumb_model_totals_of(const struct plumb_layers *layers);

/* "batch", "gpu", …, and a profile's cell for it. */
const char *plumb_key_name(enum plumb_tables_key key);
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
/* The name of the stage with the most of QUANTITY; NULL unknown. */
const char *
plumb_stage_of_most(const struct plumb_stages *stages, enum plumb_stage_quantity quantity);

#endif
