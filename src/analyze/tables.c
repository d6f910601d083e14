/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/tables.h"

#include <math.h>
#include <stdlib.h>
#include <strings.h>

#include "base/vec.h"

#define KERNELS "no layer of the model ran a GPU kernel"
#define MEMORY "record with plumb run --memory to see how much GPU memory tensors take"
#define COUNTERS                                                                                   \
	"record with plumb run --shapes for floating-point operations; memory traffic and "        \
	"occupancy need a trace with counters (plumb import)"

const struct plumb_answer_kind plumb_answer_kinds[] = {
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

const struct plumb_answer_kind *
plumb_answer_find(const char *id)
{
	for (const struct plumb_answer_kind *kind = plumb_answer_kinds; kind->id; kind++)
		if (!strcasecmp(kind->id, id))
			return kind;
	return NULL;
}

const char *
plumb_answer_source_name(enum plumb_answer_source source)
{
	return source == PLUMB_SOURCE_IS_MEASURED  ? "measured"
	       : source == PLUMB_SOURCE_IS_DERIVED ? "derived"
	                                           : NULL;
}

/* ---- building ---- */

void
plumb_answer_column(struct plumb_answer *answer, const char *name, const char *unit,
                    enum plumb_answer_source source)
{
	if (answer->column_count == answer->columns_room) {
		void *grown = plumb_vec_grow(answer->columns, &answer->columns_room,
		                             answer->column_count + 1ul, sizeof *answer->columns);
		if (!grown) {
			answer->failed = true;
			return;
		}
		answer->columns = grown;
	}
	answer->columns[answer->column_count++] =
		(struct plumb_answer_column){ name, unit, source };
}

static void
add_cell(struct plumb_answer *answer, struct plumb_cell cell)
{
	if (answer->cell_count == answer->cells_room) {
		void *grown = plumb_vec_grow(answer->cells, &answer->cells_room,
		                             answer->cell_count + 1, sizeof *answer->cells);
		if (!grown) {
			answer->failed = true;
			return;
		}
		answer->cells = grown;
	}
	answer->cells[answer->cell_count++] = cell;
}

void
plumb_answer_text(struct plumb_answer *answer, const char *text)
{
	add_cell(answer, (struct plumb_cell){ text ? PLUMB_CELL_TEXT : PLUMB_CELL_UNKNOWN,
	                                      { .text = text } });
}

void
plumb_answer_number(struct plumb_answer *answer, double number)
{
	add_cell(answer,
	         (struct plumb_cell){ isfinite(number) ? PLUMB_CELL_NUMBER : PLUMB_CELL_UNKNOWN,
	                              { .number = number } });
}

void
plumb_answer_truth(struct plumb_answer *answer, int truth)
{
	add_cell(answer, (struct plumb_cell){ truth < 0 ? PLUMB_CELL_UNKNOWN : PLUMB_CELL_TRUTH,
	                                      { .truth = truth > 0 } });
}

/* A column without a cell that is known has no source. */
static void
check_sources(struct plumb_answer *answer)
{
	for (uint32_t c = 0; c < answer->column_count; c++) {
		bool known = false;
		for (uint64_t i = c; i < answer->cell_count; i += answer->column_count)
			known |= answer->cells[i].kind != PLUMB_CELL_UNKNOWN;
		if (!known)
			answer->columns[c].source = PLUMB_SOURCE_IS_UNKNOWN;
	}
}

int
plumb_answer_make(const struct plumb_answer_kind *kind, const struct plumb_tables_input *input,
                  struct plumb_answer *answer, struct plumb_error *error)
{
	*answer = (struct plumb_answer){ .kind = kind };
	kind->make(input, answer);
	if (answer->failed) {
		plumb_answer_free(answer);
		return plumb_fail_memory(error, "for table %s", kind->id);
	}
	answer->row_count = (uint32_t)(answer->cell_count / answer->column_count);
	check_sources(answer);
	return 0;
}

void
plumb_answer_free(struct plumb_answer *answer)
{
	free(answer->columns);
	free(answer->cells);
	*answer = (struct plumb_answer){ 0 };
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
