/* SPDX-License-Identifier: Apache-2.0 */
/* A1 and A15: the model as a whole, and the choice of a batch size. */
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
	             layers->model_kind == PLUMB_LATENCY_DEVICE ||
	             layers->model_kind == PLUMB_LATENCY_M;

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

/* Of those of one batch size the fastest; how many are left. */
static uint32_t
keep_fastest(const struct plumb_tables_input *input, struct plumb_sort_item *order, uint32_t count)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (!kept || order[kept - 1].key != order[i].key)
			order[kept++] = order[i];
		else if (input->layers[order[i].index].model_us <
		         input->layers[order[kept - 1].index].model_us)
			order[kept - 1] = order[i];
	}
	return kept;
}

/* What the constraints are about. */
static void
take_constrained(const struct plumb_tables_input *input, uint32_t i,
                 double values[PLUMB_CONSTRAINT_KINDS])
{
	const struct plumb_layers *layers = &input->layers[i];
	const struct plumb_profile *p = layers->profile;
	double memory = NAN;

	for (uint32_t m = 0; m < p->memory_count; m++)
		if (p->tracks[p->memory[m].track].device != PLUMB_NONE &&
		    p->memory[m].peak_bytes != PLUMB_UNKNOWN)
			memory = fmax(memory, (double)p->memory[m].peak_bytes);
	values[PLUMB_CONSTRAINT_IS_LATENCY] = layers->model_us;
	values[PLUMB_CONSTRAINT_IS_THROUGHPUT] = plumb_model_throughput(input, i);
	values[PLUMB_CONSTRAINT_IS_MEMORY] = memory;
}

static int
keeps_constraints(const struct plumb_tables_input *input, uint32_t i)
{
	double values[PLUMB_CONSTRAINT_KINDS];

	take_constrained(input, i, values);
	return plumb_constraints_hold(&input->constraints, values);
}

/* Of the profiles in ORDER that keep the constraints the one of the greatest throughput, which is
 * the least latency where a throughput is all that is asked for. */
static uint32_t
find_constrained(const struct plumb_tables_input *input, const struct plumb_sort_item *order,
                 uint32_t count)
{
	uint32_t best = PLUMB_NONE;
	bool fast = true;

	for (uint32_t c = 0; c < input->constraints.count; c++)
		fast &= input->constraints.items[c].kind == PLUMB_CONSTRAINT_IS_THROUGHPUT;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = order[i].index;
		if (keeps_constraints(input, at) != 1)
			continue;
		if (best == PLUMB_NONE ||
		    (fast ? input->layers[at].model_us < input->layers[best].model_us
		          : plumb_model_throughput(input, at) >
		                     plumb_model_throughput(input, best)))
			best = at;
	}
	return best;
}

enum { BY_DOUBLING, BY_THROUGHPUT, BY_CONSTRAINT, RULES };

static void
find_optimal(const struct plumb_tables_input *input, struct plumb_answer *a,
             uint32_t optimal[RULES])
{
	uint32_t count;
	struct plumb_sort_item *order = by_batch(input, &count);
	double *batches = malloc((count + 1u) * sizeof *batches);
	double *throughput = malloc((count + 1u) * sizeof *throughput);

	for (int rule = 0; rule < RULES; rule++)
		optimal[rule] = PLUMB_NONE;
	if (!order || !batches || !throughput)
		a->failed = true;
	if (!a->failed) {
		optimal[BY_CONSTRAINT] = find_constrained(input, order, count);
		count = keep_fastest(input, order, count);
	}
	for (uint32_t i = 0; i < count && !a->failed; i++) {
		batches[i] = (double)order[i].key;
		throughput[i] = plumb_model_throughput(input, order[i].index);
	}
	if (count > 1 && !a->failed) { /* one alone is no choice */
		optimal[BY_DOUBLING] =
			order[plumb_optimal_doubling(batches, throughput, count, input->gain)]
				.index;
		optimal[BY_THROUGHPUT] = order[plumb_optimal_greatest(throughput, count)].index;
	}
	free(order);
	free(batches);
	free(throughput);
}

double
plumb_model_throughput(const struct plumb_tables_input *input, uint32_t profile)
{
	double us = input->layers[profile].model_us;
	double batch = input->batches && input->batches[profile] > 0
	                       ? (double)input->batches[profile]
	                       : NAN;

	return us > 0 ? batch / us * 1e6 : NAN;
}

const char *
plumb_model_name(const struct plumb_layers *layers)
{
	const struct plumb_profile *p = layers->profile;

	return layers->model == PLUMB_NONE ? NULL
	                                   : plumb_frame_label(p, p->contexts[layers->model].frame);
}

const char *
plumb_model_device(const struct plumb_layers *layers)
{
	const struct plumb_profile *p = layers->profile;

	return p->devices_count ? plumb_text(p, p->devices[0].name) : NULL;
}

static void
information_columns(const struct plumb_tables_input *input, struct plumb_answer *a)
{
	plumb_answer_column(a, "model_name", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "GPU_name", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "batch_size", "count", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "batch_size_source", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "runs", "count", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "duration (us)", "us", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "latency (ms)", "ms", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "duration_kind", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "throughput (input/s)", "input/s", PLUMB_SOURCE_IS_DERIVED);
	plumb_answer_column(a, "optimal_by_doubling", NULL, PLUMB_SOURCE_IS_DERIVED);
	plumb_answer_column(a, "optimal_by_throughput", NULL, PLUMB_SOURCE_IS_DERIVED);
	if (!input->constraints.count)
		return;
	plumb_answer_column(a, "keeps_constraint", NULL, PLUMB_SOURCE_IS_DERIVED);
	plumb_answer_column(a, "optimal_by_constraint", NULL, PLUMB_SOURCE_IS_DERIVED);
}

void
plumb_table_model_information(const struct plumb_tables_input *input, struct plumb_answer *a)
{
	uint32_t optimal[RULES];

	find_optimal(input, a, optimal);
	information_columns(input, a);
	for (uint32_t i = 0; i < input->count; i++) {
		const struct plumb_layers *layers = &input->layers[i];
		bool batched = input->batches && input->batches[i] > 0;
		double us = layers->model_us;
		plumb_answer_text(a, plumb_model_name(layers));
		plumb_answer_text(a, plumb_model_device(layers));
		plumb_answer_number(a, batched ? (double)input->batches[i] : NAN);
		plumb_answer_text(a,
		                  batched && input->batch_sources ? input->batch_sources[i] : NULL);
		plumb_answer_number(a, (double)layers->runs);
		plumb_answer_number(a, us);
		plumb_answer_number(a, us / 1e3);
		plumb_answer_text(a, plumb_latency_kind_name(layers->model_kind));
		plumb_answer_number(a, plumb_model_throughput(input, i));
		for (int rule = 0; rule < BY_CONSTRAINT; rule++)
			plumb_answer_truth(a,
			                   optimal[rule] == PLUMB_NONE ? -1 : optimal[rule] == i);
		if (!input->constraints.count)
			continue;
		int kept = keeps_constraints(input, i);
		plumb_answer_truth(a, kept);
		plumb_answer_truth(a, optimal[BY_CONSTRAINT] == i ? 1 : kept < 0 ? -1 : 0);
	}
}

/* ---- A15 ---- */

struct plumb_model_totals
plumb_model_totals_of(const struct plumb_layers *layers)
{
	struct plumb_counters_sum tally = { 0 };
	struct plumb_model_totals totals = {
		.device_us = layers->device_us,
		.backward_us = layers->backward_us,
	};
	double derived = NAN;
	bool unknown = false, shapes = false;

	for (uint32_t i = 0; i < layers->count; i++)
		shapes |= layers->items[i].counters.derived;
	for (uint32_t k = 0; k < layers->kernel_count; k++)
		plumb_counters_add(&tally, &layers->kernels[k].counters, layers->kernels[k].count,
		                   layers->kernels[k].total);
	for (uint32_t i = 0; i < layers->count; i++) {
		const struct plumb_layer_row *row = &layers->items[i];
		if (!isnan(row->counters.flops))
			derived = (isnan(derived) ? 0 : derived) + row->counters.flops;
		/* Of operators without work there is nothing to know, of kernels without counters
		 * there is. */
		else
			unknown |= row->device_us != 0 && !shapes;
		unknown |= row->work_unknown;
	}
	totals.counters = plumb_counters_end(&tally);
	/* Kernels without counters, in layers with work by their shapes. */
	if (isnan(totals.counters.flops) || totals.counters.derived) {
		totals.counters.flops = unknown ? NAN : derived;
		totals.counters.derived = !isnan(totals.counters.flops);
	}
	return totals;
}

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
	struct plumb_model_totals totals = plumb_model_totals_of(layers);

	plumb_answer_column(a, "model_duration (us)", "us", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "model_duration_kind", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "model_gpu_duration (us)", "us", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "model_backward_gpu_duration (us)", "us", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_counter_columns(a, names, totals.counters.derived);
	plumb_answer_number(a, layers->model_us);
	plumb_answer_text(a, plumb_latency_kind_name(layers->model_kind));
	plumb_answer_number(a, totals.device_us);
	plumb_answer_number(a, totals.backward_us);
	plumb_answer_counters(a, input, &totals.counters, totals.device_us);
}
