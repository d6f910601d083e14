/* SPDX-License-Identifier: Apache-2.0 */
/* A8 to A10: kernels. A row of A8 and A9 is a kernel of a layer; times and counters are those of
 * one execution. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/table_rows.h"
#include "base/sort.h"

static const char *const counter_names[8] = {
	"kernel_flops",
	"kernel_dram_read_bytes",
	"kernel_dram_write_bytes",
	"kernel_achieved_occupancy (%)",
	"kernel_arithmetic_intensity (flops/byte)",
	"kernel_arithmetic_throughput (GFlops)",
	"kernel_memory_bound",
	"kernel_theoretical_occupancy (%)",
};

static bool
any_derived(const struct plumb_layers *layers)
{
	for (uint32_t k = 0; k < layers->kernel_count; k++)
		if (layers->kernels[k].counters.derived)
			return true;
	return false;
}

static const char *
kernel_name(const struct plumb_layers *layers, const struct plumb_layer_kernel *kernel)
{
	return plumb_frame_label(layers->profile, kernel->frame);
}

void
plumb_table_kernel_information(const struct plumb_tables_input *input, struct plumb_answer *a)
{
	const struct plumb_layers *layers = input->layers;

	plumb_layer_columns(a);
	plumb_answer_column(a, "kernel_name", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "kernel_duration (us)", "us", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "kernel_count", "count", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_counter_columns(a, counter_names, any_derived(layers));
	for (uint32_t k = 0; k < layers->kernel_count; k++) {
		const struct plumb_layer_kernel *kernel = &layers->kernels[k];
		plumb_layer_cells(a, layers, kernel->layer);
		plumb_answer_text(a, kernel_name(layers, kernel));
		plumb_answer_number(a, kernel->us);
		plumb_answer_number(a, kernel->count);
		plumb_answer_counters(a, input, &kernel->counters, kernel->us);
	}
}

void
plumb_roofline_columns(struct plumb_answer *a, const char *const names[3], bool derived)
{
	static const char *const units[3] = { "flop/byte", "Gflop/s", NULL };
	enum plumb_answer_source work =
		derived ? PLUMB_SOURCE_IS_DERIVED : PLUMB_SOURCE_IS_MEASURED;

	for (int i = 0; i < 3; i++)
		plumb_answer_column(a, names[i], units[i], i < 2 ? work : PLUMB_SOURCE_IS_DERIVED);
	plumb_answer_column(a, "GPU_theoretical_flops (GFLOPS)", "Gflop/s",
	                    PLUMB_SOURCE_IS_DERIVED);
	plumb_answer_column(a, "GPU_memory_bandwidth (GB/s)", "GB/s", PLUMB_SOURCE_IS_DERIVED);
	plumb_answer_column(a, "GPU_ideal_arithmetic_intensity (flops/byte)", "flop/byte",
	                    PLUMB_SOURCE_IS_DERIVED);
}

void
plumb_roofline_cells(struct plumb_answer *a, const struct plumb_tables_input *input,
                     const struct plumb_counters *c, double us)
{
	double intensity = plumb_intensity(c->flops, c->dram_read, c->dram_write);

	plumb_answer_number(a, intensity);
	plumb_answer_number(a, us > 0 ? c->flops / us / 1e3 : NAN);
	plumb_answer_truth(a, plumb_memory_bound(intensity, input->peak_gflops, input->bandwidth));
	plumb_answer_number(a, input->peak_gflops);
	plumb_answer_number(a, input->bandwidth / 1e9);
	plumb_answer_number(a, input->peak_gflops * 1e9 / input->bandwidth);
}

void
plumb_table_kernel_roofline(const struct plumb_tables_input *input, struct plumb_answer *a)
{
	const struct plumb_layers *layers = input->layers;

	plumb_layer_columns(a);
	plumb_answer_column(a, "kernel_name", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_roofline_columns(a, counter_names + 4, any_derived(layers));
	for (uint32_t k = 0; k < layers->kernel_count; k++) {
		const struct plumb_layer_kernel *kernel = &layers->kernels[k];
		plumb_layer_cells(a, layers, kernel->layer);
		plumb_answer_text(a, kernel_name(layers, kernel));
		plumb_roofline_cells(a, input, &kernel->counters, kernel->us);
	}
}

/* ---- by name ---- */

struct named {
	uint32_t frame;
	double count, us;
	struct plumb_counters_sum tally;
};

static uint32_t
gather_names(const struct plumb_layers *layers, struct named *named, uint32_t *place)
{
	uint32_t count = 0;

	memset(place, 0xff, (layers->profile->frames_count + 1u) * sizeof *place);
	for (uint32_t k = 0; k < layers->kernel_count; k++) {
		const struct plumb_layer_kernel *kernel = &layers->kernels[k];
		if (place[kernel->frame] == PLUMB_NONE)
			place[kernel->frame] = count++;
		struct named *to = &named[place[kernel->frame]];
		to->frame = kernel->frame;
		to->count += kernel->count;
		to->us += kernel->total;
		plumb_counters_add(&to->tally, &kernel->counters, kernel->count, kernel->total);
	}
	return count;
}

void
plumb_table_kernel_name(const struct plumb_tables_input *input, struct plumb_answer *a)
{
	const struct plumb_layers *layers = input->layers;
	uint32_t count = 0, room = layers->kernel_count;
	struct named *named = calloc(room + 1u, sizeof *named);
	struct plumb_sort_item *order = malloc((2 * (size_t)room + 1) * sizeof *order);
	uint32_t *place = malloc((layers->profile->frames_count + 1u) * sizeof *place);
	double sum = 0;

	plumb_answer_column(a, "kernel_name", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "kernel_count", "count", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "kernel_duration (us)", "us", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "model_duration_percentage", "%", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "gpu_duration_percentage", "%", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_counter_columns(a, counter_names, any_derived(layers));
	if (!named || !order || !place)
		a->failed = true;
	else
		count = gather_names(layers, named, place);
	for (uint32_t i = 0; i < count; i++) {
		/* The longest time comes first. */
		order[i].key = UINT64_MAX - (uint64_t)fmin(fmax(named[i].us, 0) * 1000, 9e18);
		order[i].index = i;
		sum += named[i].us;
	}
	if (count)
		plumb_sort(order, order + count, count);
	for (uint32_t i = 0; i < count; i++) {
		const struct named *at = &named[order[i].index];
		struct plumb_counters counters = plumb_counters_end(&at->tally);
		plumb_answer_text(a, plumb_frame_label(layers->profile, at->frame));
		plumb_answer_number(a, at->count);
		plumb_answer_number(a, at->us);
		plumb_answer_number(a, plumb_model_share(layers, at->us));
		plumb_answer_number(a, sum > 0 ? at->us / sum * 100 : NAN);
		plumb_answer_counters(a, input, &counters, at->us);
	}
	free(named);
	free(order);
	free(place);
}
