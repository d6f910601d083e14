/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/kernel_code.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/search.h"
#include "base/vec.h"
#include "model/metric.h"
#include "model/user_native.h"

#define CALL_WITHIN 32 /* instructions from an address of a function to the call that uses it */

/* ---- lines ---- */

const struct plumb_code_line *
plumb_code_lines_at(const struct plumb_profile *p, uint32_t row, int64_t offset, uint32_t *count)
{
	/* The rows of one offset stand together; the last one that is not behind OFFSET counts. */
	uint32_t end = plumb_search(
		i, p->code_lines_count,
		p->code_lines[i].function < row ||
			(p->code_lines[i].function == row && p->code_lines[i].offset <= offset));
	uint32_t at = end;

	while (at && p->code_lines[at - 1].function == row &&
	       p->code_lines[at - 1].offset == p->code_lines[end - 1].offset)
		at--;
	*count = end - at;
	return at < end ? &p->code_lines[at] : NULL;
}

uint32_t
plumb_code_own_line(const struct plumb_profile *p, const struct plumb_code_line *lines,
                    uint32_t count)
{
	for (uint32_t i = 0; count > 1 && i < count; i++) {
		const char *file = plumb_text(p, lines[i].file);

		if (file && lines[i].line && !plumb_user_is_library_file(file))
			return i;
	}
	return 0;
}

/* Numbers for lines of source: equal places have equal ones. */
struct places {
	struct plumb_map map;
	PLUMB_VEC(struct plumb_code_line) items; /* place N is item N - 1 */
};

/* The number of LINE's place; 0: it is unknown. PLUMB_NONE: there is no memory. */
static uint32_t
number_place(struct places *places, const struct plumb_code_line *line)
{
	uint64_t hash = plumb_hash_mix(line->file, line->line);
	struct plumb_map_cursor at;
	struct plumb_code_line *place;

	if (line->file == PLUMB_NONE || !line->line)
		return 0;
	for (uint32_t id = plumb_map_first(&places->map, hash, &at); id != PLUMB_MAP_NONE;
	     id = plumb_map_next(&places->map, &at))
		if (places->items.items[id].file == line->file &&
		    places->items.items[id].line == line->line)
			return id + 1;
	place = plumb_vec_add(&places->items);
	if (!place || plumb_map_add(&places->map, hash, places->items.count - 1))
		return PLUMB_NONE;
	*place = *line;
	return places->items.count;
}

static uint32_t *
number_lines(const struct plumb_profile *p, uint32_t row, const struct plumb_insns *insns,
             struct places *places)
{
	uint32_t *lines = calloc(insns->count + 1u, sizeof *lines);

	for (uint32_t i = 0; lines && i < insns->count; i++) {
		uint32_t count;
		const struct plumb_code_line *line =
			plumb_code_lines_at(p, row, insns->items[i].offset, &count);

		lines[i] =
			line ? number_place(places, line + plumb_code_own_line(p, line, count)) : 0;
		if (lines[i] == PLUMB_NONE) {
			free(lines);
			return NULL;
		}
	}
	return lines;
}

/* ---- code ---- */

static int say_problem(struct plumb_kernel_code *code, const char *format, ...) PLUMB_PRINTF(2, 3);

static int
say_problem(struct plumb_kernel_code *code, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	free(code->problem);
	if (vasprintf(&code->problem, format, arguments) < 0)
		code->problem = NULL;
	va_end(arguments);
	return code->problem ? 0 : PLUMB_ESYSTEM;
}

/* The row with the machine code of FUNCTION: of those with the same code, any may have it. */
static uint32_t
row_with_text(const struct plumb_kernels *kernels, uint32_t function)
{
	for (uint32_t row = function; row != PLUMB_NONE; row = kernels->next[row])
		if (kernels->profile->code_functions[row].text.data)
			return row;
	return PLUMB_NONE;
}

static int
decode(struct plumb_kernel_code *code, uint32_t index, uint32_t row, struct places *places)
{
	const struct plumb_profile *p = code->profile;
	const struct plumb_code_function *function = &p->code_functions[row];
	struct plumb_insns *insns = &code->insns[index];
	struct plumb_error error;
	int result = plumb_isa_decode(code->input.isa, code->input.architecture,
	                              function->text.data, function->text.bytes, insns, &error);

	if (result == PLUMB_ESYSTEM)
		return result;
	if (result) {
		memset(insns, 0, sizeof *insns);
		return index ? 0 : say_problem(code, "%s", error.message);
	}
	code->lines[index] = number_lines(p, row, insns, places);
	code->unknown += insns->unknown;
	code->functions[index] = (struct plumb_slice_function){
		.name = plumb_text(p, function->name),
		.insns = insns,
		.lines = code->lines[index],
	};
	return code->lines[index] ? 0 : PLUMB_ESYSTEM;
}

/* The instruction of INSNS at OFFSET; PLUMB_NONE: none is there. */
static uint32_t
insn_at(const struct plumb_insns *insns, int64_t offset)
{
	uint32_t after = plumb_search(i, insns->count, insns->items[i].offset <= offset);

	if (!after ||
	    offset >= (int64_t)insns->items[after - 1].offset + insns->items[after - 1].size)
		return PLUMB_NONE;
	return after - 1;
}

static uint32_t
index_named(const struct plumb_kernel_code *code, uint32_t name)
{
	for (uint32_t i = 0; i < code->function_count; i++)
		if (code->profile->code_functions[code->rows[i]].name == name)
			return i;
	return PLUMB_NONE;
}

/* The instruction that calls what the instruction at INSN has the address of: itself, or an
 * indirect call soon behind it. */
static uint32_t
call_of(const struct plumb_insns *insns, uint32_t insn)
{
	const struct plumb_insn *at = &insns->items[insn];

	if (at->class == PLUMB_INSN_CALL || at->class == PLUMB_INSN_BRANCH)
		return insn;
	for (uint32_t i = insn + 1; i < insns->count && i <= insn + CALL_WITHIN; i++)
		if (insns->items[i].class == PLUMB_INSN_CALL)
			return insns->items[i].is_indirect ? i : PLUMB_NONE;
	return PLUMB_NONE;
}

/* The calls to other functions. */
static int
find_calls(struct plumb_kernel_code *code, uint32_t index)
{
	const struct plumb_profile *p = code->profile;
	const struct plumb_insns *insns = &code->insns[index];
	PLUMB_VEC(struct plumb_slice_call) calls = { 0 };
	uint32_t row = code->rows[index], r;

	r = plumb_search(i, p->code_references_count, p->code_references[i].function < row);
	for (; r < p->code_references_count && p->code_references[r].function == row; r++) {
		uint32_t to = index_named(code, p->code_references[r].name);
		uint32_t insn = insn_at(insns, p->code_references[r].offset);
		struct plumb_slice_call *call;

		insn = to == PLUMB_NONE || insn == PLUMB_NONE ? PLUMB_NONE : call_of(insns, insn);
		if (insn == PLUMB_NONE ||
		    (calls.count && calls.items[calls.count - 1].insn == insn))
			continue;
		call = plumb_vec_add(&calls);
		if (!call) {
			plumb_vec_free(&calls);
			return PLUMB_ESYSTEM;
		}
		*call = (struct plumb_slice_call){ insn, to };
	}
	code->functions[index].calls = calls.items;
	code->functions[index].call_count = calls.count;
	return 0;
}

/* ---- samples ---- */

static int
compare_samples(const void *a, const void *b)
{
	const struct plumb_kernel_sample *one = a, *two = b;

	if (one->function != two->function)
		return one->function < two->function ? -1 : 1;
	if (one->offset != two->offset)
		return one->offset < two->offset ? -1 : 1;
	if (one->reason != two->reason)
		return one->reason < two->reason ? -1 : 1;
	return (int)one->issued - (int)two->issued;
}

/* Puts the COUNT samples in order and together. Returns how many are left. */
static uint32_t
join_samples(struct plumb_kernel_sample *samples, uint32_t count)
{
	uint32_t kept = 0;

	if (count)
		qsort(samples, count, sizeof *samples, compare_samples);
	for (uint32_t i = 0; i < count; i++)
		if (kept && !compare_samples(&samples[kept - 1], &samples[i]))
			samples[kept - 1].count += samples[i].count;
		else
			samples[kept++] = samples[i];
	return kept;
}

static int
load_samples(const struct plumb_kernels *kernels, struct plumb_kernel_code *code)
{
	const struct plumb_profile *p = code->profile;
	PLUMB_VEC(struct plumb_kernel_sample) found = { 0 };

	for (uint32_t i = 0; i < code->kernel->part_count; i++) {
		const struct plumb_kernel_part *part = &code->kernel->parts[i];

		for (uint32_t row = part->function; row != PLUMB_NONE; row = kernels->next[row])
			for (uint32_t s = plumb_code_first_sample(p, row);
			     s < p->code_samples_count && p->code_samples[s].function == row; s++) {
				const struct plumb_code_sample *sample = &p->code_samples[s];
				const char *word = plumb_text(p, sample->reason);
				uint64_t count =
					plumb_kernel_has(kernels, code->kernel, part, sample);
				enum plumb_stall_reason reason =
					plumb_stall_reason_find(word ? word : "")->reason;
				struct plumb_kernel_sample *to =
					count ? plumb_vec_add(&found) : NULL;

				if (count && !to) {
					plumb_vec_free(&found);
					return PLUMB_ESYSTEM;
				}
				if (!count)
					continue;
				if (!code->words[reason])
					code->words[reason] = word;
				*to = (struct plumb_kernel_sample){
					i, PLUMB_NONE, sample->offset, reason, sample->issued, count
				};
			}
	}
	code->samples = found.items;
	code->sample_count = join_samples(found.items, found.count);
	return 0;
}

/* Finds the instructions of the samples, and makes the slicer's. */
static int
place_samples(struct plumb_kernel_code *code)
{
	struct plumb_slice_sample *samples = calloc(code->sample_count + 1u, sizeof *samples);
	uint32_t count = 0;

	if (!samples)
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < code->sample_count; i++) {
		struct plumb_kernel_sample *sample = &code->samples[i];

		sample->insn = insn_at(&code->insns[sample->function], sample->offset);
		if (sample->insn == PLUMB_NONE)
			code->outside += sample->count;
		else
			samples[count++] = (struct plumb_slice_sample){
				.place = { sample->function, sample->insn },
				.reason = sample->reason,
				.issued = sample->issued,
				.count = sample->count,
			};
	}
	code->input.samples = samples;
	code->input.sample_count = count;
	code->input.unplaced = code->kernel->unplaced;
	if (code->kernel->sampling == PLUMB_SAMPLING_NONE) {
		free(samples);
		code->input.samples = NULL;
	}
	return 0;
}

const struct plumb_kernel_sample *
plumb_kernel_samples_at(const struct plumb_kernel_code *code, uint32_t function, uint32_t insn,
                        uint32_t *count)
{
	const struct plumb_kernel_sample *samples = code->samples;
	const struct plumb_insn *at = &code->insns[function].items[insn];
	int64_t end = (int64_t)at->offset + at->size;
	uint32_t first = plumb_search(i, code->sample_count,
	                              samples[i].function < function ||
	                                      (samples[i].function == function &&
	                                       samples[i].offset < (int64_t)at->offset));
	uint32_t last =
		plumb_search(i, code->sample_count,
	                     samples[i].function < function ||
	                             (samples[i].function == function && samples[i].offset < end));

	*count = last - first;
	return samples + first;
}

/* ---- launches ---- */

static uint32_t
at_least_0(int64_t number)
{
	return number <= 0 ? 0 : number >= UINT32_MAX ? UINT32_MAX - 1 : (uint32_t)number;
}

static uint32_t
product(const int64_t numbers[3])
{
	uint64_t all = 1;

	for (int i = 0; i < 3; i++) {
		uint32_t one = at_least_0(numbers[i]);

		all = all * one > UINT32_MAX ? UINT32_MAX : all * one;
	}
	return (uint32_t)all;
}

/* Facts of the launches that took most of the kernel's time. */
static void
find_launch(struct plumb_kernel_code *code)
{
	const struct plumb_profile *p = code->profile;
	const struct plumb_code_function *function = &p->code_functions[code->rows[0]];
	struct plumb_slice_launch *launch = &code->input.launch;
	const struct plumb_variant *best = NULL;
	uint32_t device = code->kernel->device;

	for (uint32_t i = 0; i < p->variants_count; i++) {
		const struct plumb_variant *v = &p->variants[i];
		const struct plumb_frame *frame = plumb_context_frame(p, v->context);

		if (frame->kind == PLUMB_FRAME_KERNEL && frame->name == function->name &&
		    (!best || v->time > best->time))
			best = v;
	}
	code->launch_ns = best && best->count && best->time > 0
	                          ? (double)best->time / (double)best->count
	                          : NAN;
	launch->registers = at_least_0(function->registers);
	launch->stack_bytes = at_least_0(function->stack_bytes);
	launch->shared_bytes = at_least_0(function->shared_bytes);
	if (best) {
		launch->blocks = product(best->grid);
		launch->threads = product(best->block);
		if (best->registers > 0)
			launch->registers = at_least_0(best->registers);
		if (best->static_shared >= 0 && best->dynamic_shared >= 0)
			launch->shared_bytes = at_least_0(
				plumb_add_known(best->static_shared, best->dynamic_shared));
		launch->occupancy_ppm = at_least_0(best->occupancy);
		if (device == PLUMB_NONE && best->track < p->tracks_count)
			device = p->tracks[best->track].device;
	}
	if (device >= p->devices_count)
		return;
	launch->multiprocessors = at_least_0(p->devices[device].multiprocessors);
	launch->warps_per_multiprocessor = at_least_0(p->devices[device].warps_per_multiprocessor);
}

/* ---- all of it ---- */

static int
load_code(struct plumb_kernel_code *code, struct places *places)
{
	const struct plumb_profile *p = code->profile;
	const struct plumb_code_function *function = &p->code_functions[code->rows[0]];
	const char *architecture = plumb_text(p, function->architecture);
	int result = 0;

	code->input.architecture = architecture;
	code->input.isa = architecture ? plumb_isa_find(architecture) : NULL;
	if (!function->text.data)
		return say_problem(code, "the profile does not have its machine code (plumb report "
		                         "--ledger says why), so its samples have no causes");
	if (!code->input.isa)
		return say_problem(code,
		                   "plumb cannot decode machine code for %s, so its samples "
		                   "have no causes; a newer plumb may",
		                   architecture ? architecture : "an unknown architecture");
	for (uint32_t i = 0; !result && !code->problem && i < code->function_count; i++) {
		if (p->code_functions[code->rows[i]].text.data)
			result = decode(code, i, code->rows[i], places);
		else
			code->without_text++;
		if (!code->functions[i].insns) {
			code->functions[i].name =
				plumb_text(p, p->code_functions[code->rows[i]].name);
			code->functions[i].insns = &code->insns[i];
		}
	}
	for (uint32_t i = 0; !result && !code->problem && i < code->function_count; i++)
		result = find_calls(code, i);
	return result;
}

int
plumb_kernel_code_load(const struct plumb_kernels *kernels, uint32_t kernel,
                       struct plumb_kernel_code *code, struct plumb_error *error)
{
	const struct plumb_kernel *k = &kernels->items[kernel];
	struct places places = { 0 };
	int result = PLUMB_ESYSTEM;

	*code = (struct plumb_kernel_code){ .profile = kernels->profile, .kernel = k };
	code->function_count = k->part_count;
	code->functions = calloc(k->part_count, sizeof *code->functions);
	code->insns = calloc(k->part_count, sizeof *code->insns);
	code->lines = calloc(k->part_count, sizeof *code->lines);
	code->rows = calloc(k->part_count, sizeof *code->rows);
	if (code->functions && code->insns && code->lines && code->rows) {
		for (uint32_t i = 0; i < k->part_count; i++) {
			uint32_t row = row_with_text(kernels, k->parts[i].function);

			code->rows[i] = row == PLUMB_NONE ? k->parts[i].function : row;
		}
		result = load_samples(kernels, code);
	}
	if (!result)
		result = load_code(code, &places);
	if (!result && !code->problem) {
		code->input.functions = code->functions;
		code->input.function_count = code->function_count;
		result = place_samples(code);
	}
	plumb_map_free(&places.map);
	plumb_vec_free(&places.items);
	if (!result) {
		find_launch(code);
		return 0;
	}
	plumb_kernel_code_free(code);
	return plumb_fail_memory(error, "for the kernels' code");
}

void
plumb_kernel_code_free(struct plumb_kernel_code *code)
{
	for (uint32_t i = 0; i < code->function_count; i++) {
		if (code->functions)
			free((void *)code->functions[i].calls);
		if (code->insns)
			plumb_insns_free(&code->insns[i]);
		if (code->lines)
			free(code->lines[i]);
	}
	free(code->functions);
	free(code->insns);
	free(code->lines);
	free(code->rows);
	free(code->samples);
	free((void *)code->input.samples);
	free(code->problem);
	memset(code, 0, sizeof *code);
}

const char *
plumb_kernel_reason_word(const struct plumb_kernel_code *code, enum plumb_stall_reason reason)
{
	static const char *const words[] = {
		"selected",       "not_selected",     "long_scoreboard",  "short_scoreboard",
		"wait",           "barrier",          "membar",           "drain",
		"lg_throttle",    "mio_throttle",     "tex_throttle",     "math_pipe_throttle",
		"dispatch_stall", "no_instructions",  "branch_resolving", "imc_miss",
		"sleeping",       "warpgroup_arrive",
	};

	if (reason < PLUMB_REASON_COUNT && code->words[reason])
		return code->words[reason];
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (plumb_stall_reason_find(words[i])->reason == reason)
			return words[i];
	return "other";
}
