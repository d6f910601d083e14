/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels and instructions as tables. */
#include "view/why_code.h"

#include <math.h>
#include <stdlib.h>

#include "model/metric.h"

/* ---- kernels ---- */

static double
gpu_time_of(const struct plumb_profile *p)
{
	double all = 0;

	for (uint32_t i = 0; i < p->values_count; i++)
		if (p->values[i].metric == PLUMB_METRIC_GPU_TIME)
			all += (double)p->values[i].sum;
	return all;
}

static bool
add_kernel(struct plumb_answer *answer, const struct plumb_kernels *found, uint32_t number,
           const struct plumb_why_query *query, double gpu_time)
{
	const struct plumb_profile *p = found->profile;
	const struct plumb_kernel *k = &found->items[number];
	const struct plumb_code_function *function = &p->code_functions[k->function];
	char *name = plumb_why_name(p, query, k->function);

	if (!name)
		return false;
	plumb_answer_integer(answer, number);
	plumb_answer_copy(answer, name);
	free(name);
	plumb_answer_text(answer, plumb_text(p, function->name));
	plumb_answer_text(answer, plumb_text(p, function->architecture));
	plumb_answer_text(answer, k->device < p->devices_count
	                                  ? plumb_text(p, p->devices[k->device].name)
	                                  : NULL);
	plumb_answer_text(answer, plumb_sampling_names[k->sampling]);
	plumb_answer_integer(answer, (int64_t)k->samples);
	plumb_answer_integer(answer, (int64_t)k->waiting);
	plumb_answer_integer(answer, (int64_t)k->hidden);
	plumb_answer_integer(answer, k->gpu_ns);
	plumb_answer_number(answer, k->gpu_ns == PLUMB_UNKNOWN || gpu_time <= 0
	                                    ? NAN
	                                    : (double)k->gpu_ns / gpu_time);
	plumb_answer_integer(answer, function->bytes);
	return true;
}

int
plumb_view_why_kernels(const struct plumb_profile *profile, const struct plumb_why_query *query,
                       enum plumb_view_format format, FILE *out, struct plumb_error *error)
{
	static const char *const texts[] = { "name", "mangled", "architecture", "device", "mode" };
	static const char *const counts[] = { "samples", "waiting", "hidden" };
	struct plumb_answer answer = { .id = "why.kernels", .title = "kernels with GPU code" };
	struct plumb_kernels found;
	double gpu_time = gpu_time_of(profile);
	bool ok = true;
	int code = plumb_kernels_find(profile, &found, error);

	if (code)
		return code;
	plumb_answer_column(&answer, "kernel", NULL, PLUMB_SOURCE_IS_MEASURED);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		plumb_answer_column(&answer, texts[i], NULL, PLUMB_SOURCE_IS_MEASURED);
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		plumb_answer_column(&answer, counts[i], "count", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(&answer, "gpu_ns", "ns", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(&answer, "gpu_share", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(&answer, "bytes", "byte", PLUMB_SOURCE_IS_MEASURED);
	for (uint32_t i = 0; ok && i < found.count; i++)
		ok = add_kernel(&answer, &found, i, query, gpu_time);
	plumb_kernels_free(&found);
	code = plumb_answer_end(&answer, error);
	if (!code && !ok)
		code = plumb_fail_memory(error, "for the kernels");
	if (!code)
		code = plumb_view_answer(&answer, format, out, error);
	plumb_answer_free(&answer);
	return code;
}

/* ---- samples ---- */

/* By class. A warp waits in those before PLUMB_STALL_NONE, which is the last. */
static const char *const hidden_names[] = {
#define X(id, name, meaning) name "_hidden",
	PLUMB_STALL_CLASSES(X)
#undef X
};

void
plumb_why_heat_columns(struct plumb_answer *answer)
{
	static const char *const sums[] = { "samples", "waiting", "hidden" };

	for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
		plumb_answer_column(answer, sums[i], "count", PLUMB_SOURCE_IS_MEASURED);
	for (int c = 0; c < PLUMB_STALL_NONE; c++)
		plumb_answer_column(answer, plumb_stall_class_names[c], "count",
		                    PLUMB_SOURCE_IS_MEASURED);
	for (int c = 0; c < PLUMB_STALL_NONE; c++)
		plumb_answer_column(answer, hidden_names[c], "count", PLUMB_SOURCE_IS_MEASURED);
}

void
plumb_why_heat_cells(struct plumb_answer *answer, const struct plumb_why_heat *heat)
{
	plumb_answer_integer(answer, (int64_t)heat->all);
	plumb_answer_integer(answer, (int64_t)heat->waiting);
	plumb_answer_integer(answer, (int64_t)heat->hidden);
	for (int c = 0; c < PLUMB_STALL_NONE; c++)
		plumb_answer_integer(answer, (int64_t)heat->exposed[c]);
	for (int c = 0; c < PLUMB_STALL_NONE; c++)
		plumb_answer_integer(answer, (int64_t)(heat->by_class[c] - heat->exposed[c]));
}

/* ---- instructions ---- */

static void
add_insn(struct plumb_answer *answer, const struct plumb_why_kernel *k,
         struct plumb_slice_place place, uint32_t number, const struct plumb_why_heat *heat)
{
	const struct plumb_profile *p = k->code.profile;
	int64_t offset = plumb_kernel_insn(&k->code, place)->offset;
	char text[PLUMB_WHY_ASSEMBLY];
	uint32_t count;
	const struct plumb_code_line *line =
		plumb_code_lines_at(p, k->code.rows[place.function], offset, &count);

	plumb_answer_integer(answer, number);
	plumb_answer_integer(answer, place.function);
	plumb_answer_integer(answer, offset);
	plumb_answer_copy(answer, plumb_why_assembly(&k->code, place, text));
	plumb_answer_text(answer, line ? plumb_text(p, line->file) : NULL);
	plumb_answer_integer(answer, line && line->line ? line->line : PLUMB_UNKNOWN);
	plumb_why_heat_cells(answer, heat);
}

/* The first of COUNT numbers around the instruction with most waiting. */
static uint32_t
first_around(const struct plumb_why_kernel *k, uint32_t count)
{
	const struct plumb_why_stall *most = k->stall_count ? &k->stalls[0] : NULL;
	uint32_t all = 0, at = 0;

	for (uint32_t f = 0; !k->code.problem && f < k->code.function_count; f++)
		all += k->code.insns[f].count;
	if (most && most->insn != PLUMB_NONE)
		at = plumb_why_number(&k->code, most->function, most->insn);
	if (!count || at < count / 2 || all <= count)
		return 0;
	at -= count / 2;
	return at < all - count ? at : all - count;
}

static int
make_code(const struct plumb_why_kernel *k, const struct plumb_why_range *range,
          struct plumb_answer *answer, struct plumb_error *error)
{
	uint32_t first = range->around ? first_around(k, range->count) : range->first;
	uint32_t number = 0, added = 0;

	*answer = (struct plumb_answer){ .id = "why.code", .title = "instructions" };
	plumb_answer_column(answer, "number", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(answer, "function", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(answer, "offset", "byte", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(answer, "instruction", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(answer, "file", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(answer, "line", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_why_heat_columns(answer);
	for (uint32_t f = 0; !k->code.problem && f < k->code.function_count; f++)
		for (uint32_t i = 0; i < k->code.insns[f].count; i++, number++) {
			struct plumb_why_heat heat;

			if (number < first || (range->count && added == range->count))
				continue;
			heat = plumb_why_heat(k, f, i);
			if (range->hot && !heat.all)
				continue;
			add_insn(answer, k, (struct plumb_slice_place){ f, i }, number, &heat);
			added++;
		}
	return plumb_answer_end(answer, error);
}

static int
make_functions(const struct plumb_why_kernel *k, struct plumb_answer *answer,
               struct plumb_error *error)
{
	const struct plumb_profile *p = k->code.profile;
	uint32_t first = 0;

	*answer = (struct plumb_answer){ .id = "why.functions", .title = "functions" };
	plumb_answer_column(answer, "function", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(answer, "name", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(answer, "first", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(answer, "instructions", "count", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(answer, "bytes", "byte", PLUMB_SOURCE_IS_MEASURED);
	for (uint32_t f = 0; f < k->code.function_count; f++) {
		uint32_t count = k->code.problem ? 0 : k->code.insns[f].count;

		plumb_answer_integer(answer, f);
		plumb_answer_text(answer, plumb_text(p, p->code_functions[k->code.rows[f]].name));
		plumb_answer_integer(answer, first);
		plumb_answer_integer(answer, count);
		plumb_answer_integer(answer, p->code_functions[k->code.rows[f]].bytes);
		first += count;
	}
	return plumb_answer_end(answer, error);
}

int
plumb_why_code_write(const struct plumb_why_kernel *k, const struct plumb_why_range *range,
                     enum plumb_view_format format, FILE *out, struct plumb_error *error)
{
	struct plumb_answer answers[2];
	int code = make_code(k, range, &answers[0], error);

	if (code)
		return code;
	code = make_functions(k, &answers[1], error);
	if (!code)
		code = plumb_view_answers(answers, format == PLUMB_VIEW_CSV ? 1 : 2, "why", format,
		                          out, error);
	plumb_answer_free(&answers[0]);
	plumb_answer_free(&answers[1]);
	return code;
}
