/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/tables.h"

#include <math.h>
#include <strings.h>

#define KERNELS "no layer of the model ran a GPU kernel"
#define MEMORY "record with plumb run --memory to see how much GPU memory tensors take"
#define COUNTERS                                                                                   \
	"record with plumb run --counters to count operations, memory traffic and occupancy; "     \
	"floating-point operations also come with plumb run --shapes"

const struct plumb_tables_kind plumb_tables_kinds[PLUMB_TABLES_KINDS + 1] = {
	{ "A1", "model information", plumb_table_model_information, .several = true },
	{ "A2", "layer information", plumb_table_layer_information },
	{ "A3", "layer latency", plumb_table_layer_latency },
	{ "A4", "layer memory allocation", plumb_table_layer_memory, .remedy = MEMORY },
	{ "A5", "layer types by occurrence", plumb_table_type_occurrence },
	{ "A6", "layer types by latency", plumb_table_type_latency },
	{ "A7", "layer types by memory allocation", plumb_table_type_memory, .remedy = MEMORY },
	{ "A8", "GPU kernel information", plumb_table_kernel_information, .without = KERNELS },
	{ "A9", "GPU kernel roofline", plumb_table_kernel_roofline, .without = KERNELS,
	  .remedy = COUNTERS },
	{ "A10", "GPU kernels by name", plumb_table_kernel_name, .without = KERNELS },
	{ "A11", "GPU kernels by layer", plumb_table_layer_kernels },
	{ "A12", "GPU metrics by layer", plumb_table_layer_counters, .remedy = COUNTERS },
	{ "A13", "GPU and non-GPU latency by layer", plumb_table_layer_device },
	{ "A14", "layer roofline", plumb_table_layer_roofline, .remedy = COUNTERS },
	{ "A15", "GPU kernels of the model", plumb_table_model_totals },
	{ "stages", "the model's beginning, middle and end", plumb_table_stages },
	{ "compare", "profiles side by side", plumb_table_compare, .several = true, .aside = true },
	{ "swapped", "kernels that changed between profiles", plumb_table_swapped, .several = true,
	  .aside = true, .without = "all profiles have the same kernels" },
	{ 0 },
};

const struct plumb_tables_kind *
plumb_tables_find(const char *id)
{
	for (const struct plumb_tables_kind *kind = plumb_tables_kinds; kind->id; kind++)
		if (!strcasecmp(kind->id, id))
			return kind;
	return NULL;
}

int
plumb_tables_answer(const struct plumb_tables_kind *kind, const struct plumb_tables_input *input,
                    struct plumb_answer *answer, struct plumb_error *error)
{
	*answer = (struct plumb_answer){ .id = kind->id,
		                         .title = kind->title,
		                         .without = kind->without,
		                         .remedy = kind->remedy };
	kind->make(input, answer);
	return plumb_answer_end(answer, error);
}

/* ---- counters and roofline ---- */

double
plumb_intensity(double flops, double read, double written)
{
	double bytes = read + written;

	return bytes > 0 ? flops / bytes : NAN;
}

int
plumb_memory_bound(double intensity, double peak_gflops, double bandwidth)
{
	if (isnan(intensity) || isnan(peak_gflops) || !(bandwidth > 0))
		return -1;
	return intensity < peak_gflops * 1e9 / bandwidth;
}

void
plumb_answer_counter_columns(struct plumb_answer *answer, const char *const names[8], bool derived)
{
	static const char *const units[8] = { "flop",      "byte",    "byte", "%",
		                              "flop/byte", "Gflop/s", NULL,   "%" };
	enum plumb_answer_source work =
		derived ? PLUMB_SOURCE_IS_DERIVED : PLUMB_SOURCE_IS_MEASURED;

	for (int i = 0; i < 8; i++) {
		enum plumb_answer_source source = i == 0 || i == 4 || i == 5 ? work
		                                  : i >= 6 ? PLUMB_SOURCE_IS_DERIVED
		                                           : PLUMB_SOURCE_IS_MEASURED;
		plumb_answer_column(answer, names[i], units[i], source);
	}
}

void
plumb_answer_counters(struct plumb_answer *answer, const struct plumb_tables_input *input,
                      const struct plumb_counters *c, double us)
{
	double intensity = plumb_intensity(c->flops, c->dram_read, c->dram_write);

	plumb_answer_number(answer, c->flops);
	plumb_answer_number(answer, c->dram_read);
	plumb_answer_number(answer, c->dram_write);
	plumb_answer_number(answer, c->achieved * 100);
	plumb_answer_number(answer, intensity);
	plumb_answer_number(answer, us > 0 ? c->flops / us / 1e3 : NAN);
	plumb_answer_truth(answer,
	                   plumb_memory_bound(intensity, input->peak_gflops, input->bandwidth));
	plumb_answer_number(answer, c->theoretical * 100);
}
