/* SPDX-License-Identifier: Apache-2.0 */
/* Where in the model what lies: its layers in three parts, as in the XSP paper's table IX. */
#include <math.h>

#include "analyze/table_rows.h"

const char *const plumb_stage_names[PLUMB_STAGES] = { "beginning", "middle", "end" };

/* Something added up by stage. */
struct adding {
	double *sums;
	bool some, unknown;
};

/* NAN is unknown, or NOTHING where what has no such number has none of it. */
static void
add_value(struct adding *to, uint32_t stage, double value, bool nothing)
{
	if (!isnan(value)) {
		to->sums[stage] += value;
		to->some = true;
	} else if (!nothing) {
		to->unknown = true;
	}
}

void
plumb_stages_make(const struct plumb_layers *layers, struct plumb_stages *stages)
{
	struct adding adding[PLUMB_STAGE_QUANTITIES] = { 0 };
	bool derived = false;

	*stages = (struct plumb_stages){ .kind = PLUMB_LATENCY_UNKNOWN };
	for (int q = 0; q < PLUMB_STAGE_QUANTITIES; q++)
		adding[q].sums = stages->sums[q];
	for (uint32_t i = 0; i < layers->count; i++)
		derived |= layers->items[i].counters.derived;
	stages->derived = derived;
	for (uint32_t i = 0; i < layers->count; i++) {
		const struct plumb_layer_row *row = &layers->items[i];
		uint32_t stage = (uint32_t)((uint64_t)i * PLUMB_STAGES / layers->count);
		bool idle = row->device_us == 0; /* no kernels, so no work of theirs */
		enum plumb_latency_kind kind;
		double us = plumb_layer_us(row, &kind);
		stages->layers[stage]++;
		add_value(&adding[PLUMB_STAGE_LATENCY], stage, us, true);
		if (kind != PLUMB_LATENCY_UNKNOWN) {
			adding[PLUMB_STAGE_LATENCY].unknown |=
				stages->kind != PLUMB_LATENCY_UNKNOWN && stages->kind != kind;
			stages->kind = kind;
		}
		add_value(&adding[PLUMB_STAGE_DEVICE], stage, row->device_us, false);
		add_value(&adding[PLUMB_STAGE_MEMORY], stage, row->allocated, true);
		add_value(&adding[PLUMB_STAGE_FLOPS], stage, row->counters.flops,
		          !row->work_unknown && (idle || derived));
		add_value(&adding[PLUMB_STAGE_ACCESSES], stage,
		          row->counters.dram_read + row->counters.dram_write, idle);
	}
	for (int q = 0; q < PLUMB_STAGE_QUANTITIES; q++)
		for (int s = 0; s < PLUMB_STAGES; s++)
			if (!adding[q].some || adding[q].unknown)
				stages->sums[q][s] = NAN;
	if (isnan(stages->sums[PLUMB_STAGE_LATENCY][0]))
		stages->kind = PLUMB_LATENCY_UNKNOWN;
}

static double
total_of(const struct plumb_stages *stages, enum plumb_stage_quantity quantity)
{
	const double *sums = stages->sums[quantity];

	return sums[0] + sums[1] + sums[2];
}

const char *
plumb_stage_of_most(const struct plumb_stages *stages, enum plumb_stage_quantity quantity)
{
	const double *sums = stages->sums[quantity];
	int most = 0;

	if (!(total_of(stages, quantity) > 0))
		return NULL;
	for (int s = 1; s < PLUMB_STAGES; s++)
		if (sums[s] > sums[most])
			most = s;
	return plumb_stage_names[most];
}

void
plumb_table_stages(const struct plumb_tables_input *input, struct plumb_answer *a)
{
	static const struct {
		const char *name, *unit, *share;
	} columns[PLUMB_STAGE_QUANTITIES] = {
		{ "duration (us)", "us", "duration percentage (%)" },
		{ "gpu_duration (us)", "us", "gpu_duration percentage (%)" },
		{ "allocated memory (bytes)", "byte", "allocated memory percentage (%)" },
		{ "flops", "flop", "flops percentage (%)" },
		{ "dram accesses (bytes)", "byte", "dram accesses percentage (%)" },
	};
	struct plumb_stages stages;

	plumb_stages_make(input->layers, &stages);
	plumb_answer_column(a, "stage", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "layers", "count", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "first_layer_index", "count", PLUMB_SOURCE_IS_MEASURED);
	for (int q = 0; q < PLUMB_STAGE_QUANTITIES; q++) {
		enum plumb_answer_source source = q == PLUMB_STAGE_FLOPS && stages.derived
		                                          ? PLUMB_SOURCE_IS_DERIVED
		                                          : PLUMB_SOURCE_IS_MEASURED;
		plumb_answer_column(a, columns[q].name, columns[q].unit, source);
		plumb_answer_column(a, columns[q].share, "%", source);
		if (q == PLUMB_STAGE_LATENCY)
			plumb_answer_column(a, "duration_kind", NULL, PLUMB_SOURCE_IS_MEASURED);
	}
	for (uint32_t s = 0, first = 0; s < PLUMB_STAGES; first += stages.layers[s++]) {
		plumb_answer_text(a, plumb_stage_names[s]);
		plumb_answer_number(a, stages.layers[s]);
		plumb_answer_number(a, stages.layers[s] ? first : NAN);
		for (int q = 0; q < PLUMB_STAGE_QUANTITIES; q++) {
			double total = total_of(&stages, (enum plumb_stage_quantity)q);
			plumb_answer_number(a, stages.sums[q][s]);
			plumb_answer_number(a, stages.sums[q][s] / total * 100);
			if (q == PLUMB_STAGE_LATENCY)
				plumb_answer_text(a, plumb_latency_kind_name(stages.kind));
		}
	}
}
