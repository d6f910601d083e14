/* SPDX-License-Identifier: Apache-2.0 */
/* A11 to A14: what the kernels of a layer come to in a run. */
#include <math.h>

#include "analyze/table_rows.h"

static const char *const counter_names[8] = {
	"layer_flops",
	"layer_dram_read_bytes",
	"layer_dram_write_bytes",
	"layer_achieved_occupancy (%)",
	"layer_arithmetic_intensity (flops/byte)",
	"layer_arithmetic_throughput (GFlops)",
	"layer_memory_bound",
	"layer_theoretical_occupancy (%)",
};

static bool
any_derived(const struct plumb_layers *layers)
{
	for (uint32_t i = 0; i < layers->count; i++)
		if (layers->items[i].counters.derived)
			return true;
	return false;
}

void
plumb_table_layer_kernels(const struct plumb_tables_input *input, struct plumb_answer *a)
{
	plumb_layer_columns(a);
	plumb_answer_column(a, "layer_duration (us)", "us", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "layer_duration_kind", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "layer_gpu_duration (us)", "us", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_counter_columns(a, counter_names, any_derived(input->layers));
	for (uint32_t i = 0; i < input->layers->count; i++) {
		const struct plumb_layer_row *row = &input->layers->items[i];
		enum plumb_latency_kind kind;
		plumb_layer_cells(a, input->layers, i);
		plumb_answer_number(a, plumb_layer_us(row, &kind));
		plumb_answer_text(a, plumb_latency_kind_name(kind));
		plumb_answer_number(a, row->device_us);
		plumb_answer_counters(a, input, &row->counters, row->device_us);
	}
}

void
plumb_table_layer_counters(const struct plumb_tables_input *input, struct plumb_answer *a)
{
	bool derived = any_derived(input->layers);

	plumb_layer_columns(a);
	plumb_answer_column(a, counter_names[0], "flop",
	                    derived ? PLUMB_SOURCE_IS_DERIVED : PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, counter_names[1], "byte", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, counter_names[2], "byte", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, counter_names[3], "%", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, counter_names[7], "%", PLUMB_SOURCE_IS_DERIVED);
	for (uint32_t i = 0; i < input->layers->count; i++) {
		const struct plumb_counters *c = &input->layers->items[i].counters;
		plumb_layer_cells(a, input->layers, i);
		plumb_answer_number(a, c->flops);
		plumb_answer_number(a, c->dram_read);
		plumb_answer_number(a, c->dram_write);
		plumb_answer_number(a, c->achieved * 100);
		plumb_answer_number(a, c->theoretical * 100);
	}
}

/* Both parts are of the same latency: XSP subtracts kernels from a layer's host time, which goes
 * below zero where the host does not wait for them. */
void
plumb_table_layer_device(const struct plumb_tables_input *input, struct plumb_answer *a)
{
	plumb_layer_columns(a);
	plumb_answer_column(a, "layer_duration (us)", "us", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "layer_gpu_duration (us)", "us", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "layer_cpu_duration (us)", "us", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "layer_gpu_percentage", "%", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "layer_duration_kind", NULL, PLUMB_SOURCE_IS_MEASURED);
	for (uint32_t i = 0; i < input->layers->count; i++) {
		const struct plumb_layer_row *row = &input->layers->items[i];
		plumb_layer_cells(a, input->layers, i);
		plumb_answer_number(a, row->latency_us);
		plumb_answer_number(a, row->busy_us);
		plumb_answer_number(a, row->idle_us);
		plumb_answer_number(a, row->latency_us > 0 ? row->busy_us / row->latency_us * 100
		                                           : NAN);
		plumb_answer_text(a, plumb_latency_kind_name(row->latency));
	}
}

void
plumb_table_layer_roofline(const struct plumb_tables_input *input, struct plumb_answer *a)
{
	plumb_layer_columns(a);
	plumb_roofline_columns(a, counter_names + 4, any_derived(input->layers));
	for (uint32_t i = 0; i < input->layers->count; i++) {
		const struct plumb_layer_row *row = &input->layers->items[i];
		plumb_layer_cells(a, input->layers, i);
		plumb_roofline_cells(a, input, &row->counters, row->device_us);
	}
}
