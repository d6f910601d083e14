/* SPDX-License-Identifier: Apache-2.0 */
/* A1 and A15: the model as a whole. */
#include <math.h>
#include <stdlib.h>

#include "analyze/table_rows.h"
#include "base/sort.h"

double
plumb_model_share(const struct plumb_layers *layers, double us)
{
	/* A part of host time alone would say nothing. */
	bool holds = layers->model_kind == PLUMB_LATENCY_COMPLETE ||
	             layers->model_kind == PLUMB_LATENCY_SERIALISED ||
	             layers->model_kind == PLUMB_LATENCY_DEVICE;

	return holds && layers->model_us > 0 ? us / layers->model_us * 100 : NAN;
}

/* ---- A1 ---- */

uint32_t
plumb_optimal_doubling(const double *batches, const double *throughput, uint32_t count, double gain)
{
	for (uint32_t i = 0; i + 1 < count; i++) {
		double doublings = log2(batches[i + 1] / batches[i]);
		double ratio = pow(throughput[i + 1] / throughput[i], 1 / doublings);
		if (!(ratio - 1 > gain))
			return i;
	}
	return count ? count - 1 : PLUMB_NONE;
}

uint32_t
plumb_optimal_greatest(const double *throughput, uint32_t count)
{
	uint32_t best = PLUMB_NONE;

	for (uint32_t i = 0; i < count; i++)
		if (best == PLUMB_NONE || throughput[i] > throughput[best])
			best = i;
	return best;
}

/* The profiles by batch size; *COUNT are those whose throughput is known. NULL: no memory. */
static struct plumb_sort_item *
by_batch(const struct plumb_tables_input *input, uint32_t *count)
{
	struct plumb_sort_item *order = malloc((2 * (size_t)input->count + 1) * sizeof *order);

	*count = 0;
	for (uint32_t i = 0; order && i < input->count; i++) {
		uint64_t batch = input->batches ? (uint64_t)input->batches[i] : 0;
		if (batch && input->layers[i].model_us > 0)
			order[(*count)++] = (struct plumb_sort_item){ batch, i };
	}
	if (order && *count)
		plumb_sort(order, order + *count, *count);
	return order;
}

static void
find_optimal(const struct plumb_tables_input *input, struct plumb_answer *a, uint32_t optimal[2])
{
	uint32_t count;
	struct plumb_sort_item *order = by_batch(input, &count);
	double *batches = malloc((count + 1u) * sizeof *batches);
	double *throughput = malloc((count + 1u) * sizeof *throughput);

	optimal[0] = optimal[1] = PLUMB_NONE;
	if (!order || !batches || !throughput)
		a->failed = true;
	for (uint32_t i = 0; i < count && !a->failed; i++) {
		batches[i] = (double)order[i].key;
		throughput[i] = batches[i] / input->layers[order[i].index].model_us * 1e6;
	}
	if (count > 1 && !a->failed) { /* one alone is no choice */
		optimal[0] = order[plumb_optimal_doubling(batches, throughput, count, input->gain)]
		                     .index;
		optimal[1] = order[plumb_optimal_greatest(throughput, count)].index;
	}
	free(order);
	free(batches);
	free(throughput);
}

void
plumb_table_model_information(const struct plumb_tables_input *input, struct plumb_answer *a)
{
	uint32_t optimal[2];

	find_optimal(input, a, optimal);
	plumb_answer_column(a, "model_name", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "GPU_name", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "batch_size", "count", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "runs", "count", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "duration (us)", "us", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "latency (ms)", "ms", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "duration_kind", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "throughput (input/s)", "input/s", PLUMB_SOURCE_IS_DERIVED);
	plumb_answer_column(a, "optimal_by_doubling", NULL, PLUMB_SOURCE_IS_DERIVED);
	plumb_answer_column(a, "optimal_by_throughput", NULL, PLUMB_SOURCE_IS_DERIVED);
	for (uint32_t i = 0; i < input->count; i++) {
		const struct plumb_layers *layers = &input->layers[i];
		const struct plumb_profile *p = layers->profile;
		double batch = input->batches ? (double)input->batches[i] : NAN;
		double us = layers->model_us;
		plumb_answer_text(a,
		                  layers->model == PLUMB_NONE
		                          ? NULL
		                          : plumb_frame_label(p, p->contexts[layers->model].frame));
		plumb_answer_text(a, p->devices_count ? plumb_text(p, p->devices[0].name) : NULL);
		plumb_answer_number(a, batch);
		plumb_answer_number(a, (double)layers->runs);
		plumb_answer_number(a, us);
		plumb_answer_number(a, us / 1e3);
		plumb_answer_text(a, plumb_latency_kind_name(layers->model_kind));
		plumb_answer_number(a, us > 0 ? batch / us * 1e6 : NAN);
		for (int rule = 0; rule < 2; rule++)
			plumb_answer_truth(a,
			                   optimal[rule] == PLUMB_NONE ? -1 : optimal[rule] == i);
	}
}

/* ---- A15 ---- */

void
plumb_table_model_totals(const struct plumb_tables_input *input, struct plumb_answer *a)
{
	static const char *const names[8] = {
		"model_flops",
		"model_dram_read_bytes",
		"model_dram_write_bytes",
		"model_achieved_occupancy (%)",
		"model_arithmetic_intensity (flops/byte)",
		"model_arithmetic_throughput (GFlops)",
		"model_memory_bound",
		"model_theoretical_occupancy (%)",
	};
	const struct plumb_layers *layers = input->layers;
	struct plumb_counters_sum tally = { 0 };
	double derived = NAN, device = 0, backward = 0;

	for (uint32_t k = 0; k < layers->kernel_count; k++)
		plumb_counters_add(&tally, &layers->kernels[k].counters, layers->kernels[k].count,
		                   layers->kernels[k].total);
	for (uint32_t i = 0; i < layers->count; i++) {
		const struct plumb_layer_row *row = &layers->items[i];
		device += row->device_us;
		backward += row->backward_us;
		if (!isnan(row->counters.flops))
			derived = (isnan(derived) ? 0 : derived) + row->counters.flops;
	}
	struct plumb_counters counters = plumb_counters_end(&tally);
	/* Kernels without counters, in layers with work by their shapes. */
	if (isnan(counters.flops) || counters.derived) {
		counters.flops = derived;
		counters.derived = !isnan(derived);
	}
	plumb_answer_column(a, "model_duration (us)", "us", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "model_duration_kind", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "model_gpu_duration (us)", "us", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "model_backward_gpu_duration (us)", "us", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_counter_columns(a, names, counters.derived);
	plumb_answer_number(a, layers->model_us);
	plumb_answer_text(a, plumb_latency_kind_name(layers->model_kind));
	plumb_answer_number(a, device);
	plumb_answer_number(a, backward);
	plumb_answer_counters(a, input, &counters, device);
}
