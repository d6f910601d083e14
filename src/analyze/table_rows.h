/* SPDX-License-Identifier: Apache-2.0 */
/* What the files table_*.c share. Private to them. */
#ifndef PLUMB_ANALYZE_TABLE_ROWS_H
#define PLUMB_ANALYZE_TABLE_ROWS_H

#include "analyze/tables.h"

/* What to show for a layer, and its module's class (without packages) or its operator. */
const char *plumb_layer_name(const struct plumb_layers *layers, uint32_t layer);
const char *plumb_layer_type(const struct plumb_layers *layers, uint32_t layer); /* or NULL */

/* layer_index, layer_name, layer_type. */
void plumb_layer_columns(struct plumb_answer *answer);
void
plumb_layer_cells(struct plumb_answer *answer, const struct plumb_layers *layers, uint32_t layer);

/* The latency of a layer and what it is: with its GPU work where that is known, else the host's. */
double plumb_layer_us(const struct plumb_layer_row *row, enum plumb_latency_kind *kind);

/* Intensity, throughput and memory_bound by NAMES, and the peaks that they are held against. */
void plumb_roofline_columns(struct plumb_answer *answer, const char *const names[3], bool derived);
void plumb_roofline_cells(struct plumb_answer *answer, const struct plumb_tables_input *input,
                          const struct plumb_counters *counters, double us);

/* Percent of the model's latency that US of GPU time are; NAN where that does not hold its GPU work. */
double plumb_model_share(const struct plumb_layers *layers, double us);

#endif
