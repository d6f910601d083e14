/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles side by side, a row each, as in the XSP paper's tables VIII to X and its figure 11. */
#include <math.h>

#include "analyze/table_rows.h"
#include "analyze/workload.h"

const char *
plumb_key_name(enum plumb_tables_key key)
{
	static const char *const names[] = { "file", "batch", "gpu", "framework", "version" };

	return names[key];
}

void
plumb_key_cell(struct plumb_answer *a, const struct plumb_tables_input *input, uint32_t i)
{
	const struct plumb_profile *p = input->layers[i].profile;

	switch (input->key) {
	case PLUMB_KEY_IS_FILE:
		plumb_answer_text(a, input->files ? input->files[i] : NULL);
		break;
	case PLUMB_KEY_IS_BATCH:
		plumb_answer_number(a, input->batches && input->batches[i] > 0
		                               ? (double)input->batches[i]
		                               : NAN);
		break;
	case PLUMB_KEY_IS_GPU:
		plumb_answer_text(a, plumb_model_device(&input->layers[i]));
		break;
	case PLUMB_KEY_IS_FRAMEWORK:
		plumb_answer_text(a, plumb_framework_of(p));
		break;
	case PLUMB_KEY_IS_VERSION:
		plumb_answer_text(a, plumb_framework_version_of(p));
		break;
	}
}

/* What one profile comes to. The first of them are held against each other. */
enum measure { LATENCY, THROUGHPUT, DEVICE, FLOPS, ACCESSES, MEASURES };

struct measured {
	double of[MEASURES]; /* NAN unknown */
	struct plumb_counters counters;
};

static struct measured
measure_input(const struct plumb_tables_input *input, uint32_t i)
{
	const struct plumb_layers *layers = &input->layers[i];
	struct plumb_model_totals totals = plumb_model_totals_of(layers);

	return (struct measured){
		{ layers->model_us, plumb_model_throughput(input, i), totals.device_us,
		  totals.counters.flops, totals.counters.dram_read + totals.counters.dram_write },
		totals.counters,
	};
}

/* The profile that the others are held against: the first, or the best, which is that of the
 * greatest throughput where all have one, else of the least latency. */
static uint32_t
find_base(const struct plumb_tables_input *input)
{
	bool all = true;
	uint32_t best = 0;

	for (uint32_t i = 0; i < input->count; i++)
		all &= !isnan(plumb_model_throughput(input, i));
	for (uint32_t i = 1; i < input->count && input->against_best; i++) {
		double us = input->layers[i].model_us;
		if (all ? plumb_model_throughput(input, i) > plumb_model_throughput(input, best)
		        : us < input->layers[best].model_us ||
		                    (isnan(input->layers[best].model_us) && !isnan(us)))
			best = i;
	}
	return best;
}

static void
add_columns(const struct plumb_tables_input *input, struct plumb_answer *a, bool derived)
{
	enum plumb_answer_source work =
		derived ? PLUMB_SOURCE_IS_DERIVED : PLUMB_SOURCE_IS_MEASURED;
	static const char *const normalised[MEASURES] = {
		"normalised_latency", "normalised_throughput", "normalised_gpu_latency",
		"normalised_flops", "normalised_dram_accesses"
	};
	static const char *const stages[PLUMB_STAGE_QUANTITIES] = {
		"latency_stage", "gpu_latency_stage", "allocated_memory_stage", "flops_stage",
		"dram_accesses_stage"
	};

	plumb_answer_column(a, plumb_key_name(input->key),
	                    input->key == PLUMB_KEY_IS_BATCH ? "count" : NULL,
	                    PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "profile", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "model_name", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "GPU_name", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "framework_name", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "framework_version", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "batch_size", "count", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "layers", "count", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "latency (ms)", "ms", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "duration_kind", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "throughput (input/s)", "input/s", PLUMB_SOURCE_IS_DERIVED);
	plumb_answer_column(a, "gpu_latency (ms)", "ms", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "gpu_latency_percentage", "%", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "flops", "flop", work);
	plumb_answer_column(a, "dram_read_bytes", "byte", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "dram_write_bytes", "byte", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "achieved_occupancy (%)", "%", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "arithmetic_intensity (flops/byte)", "flop/byte", work);
	plumb_answer_column(a, "arithmetic_throughput (GFlops)", "Gflop/s", work);
	plumb_answer_column(a, "memory_bound", NULL, PLUMB_SOURCE_IS_DERIVED);
	for (int m = 0; m < MEASURES; m++)
		plumb_answer_column(a, normalised[m], "ratio", PLUMB_SOURCE_IS_DERIVED);
	for (int q = 0; q < PLUMB_STAGE_QUANTITIES; q++)
		plumb_answer_column(a, stages[q], NULL, PLUMB_SOURCE_IS_DERIVED);
}

static void
add_row(const struct plumb_tables_input *input, struct plumb_answer *a, uint32_t i,
        const struct measured *base)
{
	const struct plumb_layers *layers = &input->layers[i];
	struct plumb_roof roof = input->roofs ? input->roofs[i] : (struct plumb_roof){ NAN, NAN };
	struct measured m = measure_input(input, i);
	double intensity =
		plumb_intensity(m.counters.flops, m.counters.dram_read, m.counters.dram_write);
	struct plumb_stages stages;

	plumb_key_cell(a, input, i);
	plumb_answer_text(a, input->files ? input->files[i] : NULL);
	plumb_answer_text(a, plumb_model_name(layers));
	plumb_answer_text(a, plumb_model_device(layers));
	plumb_answer_text(a, plumb_framework_of(layers->profile));
	plumb_answer_text(a, plumb_framework_version_of(layers->profile));
	plumb_answer_number(a, input->batches && input->batches[i] > 0 ? (double)input->batches[i]
	                                                               : NAN);
	plumb_answer_number(a, layers->count);
	plumb_answer_number(a, m.of[LATENCY] / 1e3);
	plumb_answer_text(a, plumb_latency_kind_name(layers->model_kind));
	plumb_answer_number(a, m.of[THROUGHPUT]);
	plumb_answer_number(a, m.of[DEVICE] / 1e3);
	plumb_answer_number(a, plumb_model_share(layers, m.of[DEVICE]));
	plumb_answer_number(a, m.of[FLOPS]);
	plumb_answer_number(a, m.counters.dram_read);
	plumb_answer_number(a, m.counters.dram_write);
	plumb_answer_number(a, m.counters.achieved * 100);
	plumb_answer_number(a, intensity);
	plumb_answer_number(a, m.of[DEVICE] > 0 ? m.of[FLOPS] / m.of[DEVICE] / 1e3 : NAN);
	plumb_answer_truth(a, plumb_memory_bound(intensity, roof.peak_gflops, roof.bandwidth));
	for (int k = 0; k < MEASURES; k++) {
		/* Latencies of two kinds are no ratio, nor what they let through. */
		bool other = (k == LATENCY || k == THROUGHPUT) &&
		             base->of[LATENCY] != m.of[LATENCY] &&
		             layers->model_kind != input->layers[find_base(input)].model_kind;
		plumb_answer_number(a, other ? NAN : m.of[k] / base->of[k]);
	}
	plumb_stages_make(layers, &stages);
	for (int q = 0; q < PLUMB_STAGE_QUANTITIES; q++)
		plumb_answer_text(a, plumb_stage_of_most(&stages, (enum plumb_stage_quantity)q));
}

void
plumb_table_compare(const struct plumb_tables_input *input, struct plumb_answer *a)
{
	struct measured base = measure_input(input, find_base(input));
	bool derived = false;

	for (uint32_t i = 0; i < input->count; i++)
		derived |= plumb_model_totals_of(&input->layers[i]).counters.derived;
	add_columns(input, a, derived);
	for (uint32_t i = 0; i < input->count; i++)
		add_row(input, a, i, &base);
}
