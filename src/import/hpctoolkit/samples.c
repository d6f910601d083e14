/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of program counters. hpcrun multiplies each sample by the sampling period, so metrics are
 * cycles. NVIDIA's come in two families of names:
 *
 *	until 2024   GINS: all samples.  GINS:STL_GMEM and so on: those in which no warp of the
 *	             scheduler issued, by what the sampled warp waited for
 *	since then   GCYCLES, GCYCLES:STL:GMEM; also GCYCLES:ISU, in which the sampled warp issued,
 *	             and GCYCLES:STL:HID, in which it waited and another one issued
 *
 * What is left of all samples is of a warp whose scheduler issued, for reasons that nobody kept.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "import/hpctoolkit/hpctoolkit.h"

#define PERIOD_MOST 31 /* as a power of two */

/* ---- metrics ---- */

struct family {
	const char *total, *any, *exposed, *issued, *hidden; /* NULL: it has none */
};
static const struct family families[] = {
	{ "GCYCLES", "GCYCLES:STL", "GCYCLES:STL:", "GCYCLES:ISU", "HID" },
	{ "GINS", "GINS:STL_ANY", "GINS:STL_", NULL, NULL },
};

static const struct hpct_metric *
find_metric(const struct hpct_reader *reader, const char *name)
{
	for (uint32_t i = 0; i < HPCT_METRICS; i++)
		if (reader->metrics[i].number && reader->metrics[i].name.at &&
		    plumb_slice_is(reader->metrics[i].name, name))
			return &reader->metrics[i];
	return NULL;
}

static void
add_reason(struct hpct_reader *reader, const struct hpct_metric *metric, enum hpct_role role,
           struct plumb_slice word)
{
	struct hpct_reason *added = metric ? plumb_vec_add(&reader->reasons) : NULL;
	if (added)
		*added = (struct hpct_reason){ role, metric->number, metric->scale, word };
	reader->no_memory |= metric && !added;
}

static void
add_exposed(struct hpct_reader *reader, const struct family *family,
            const struct hpct_metric *metric)
{
	size_t bytes = strlen(family->exposed);
	struct plumb_slice word = { metric->name.at + bytes, metric->name.bytes - bytes };
	bool hidden = family->hidden && plumb_slice_is(word, family->hidden);
	if (!plumb_slice_is(metric->name, family->any) && word.bytes &&
	    !memchr(word.at, ':', word.bytes))
		add_reason(reader, metric, hidden ? HPCT_HIDDEN : HPCT_EXPOSED, word);
}

void
plumb_hpct_reasons(struct hpct_reader *reader)
{
	struct plumb_slice none = { NULL, 0 };
	const struct family *family = families;
	while (family < families + 2 && !find_metric(reader, family->any))
		family++;
	if (family == families + 2)
		return;
	add_reason(reader, find_metric(reader, family->total), HPCT_TOTAL, none);
	add_reason(reader, find_metric(reader, "GSAMP:PER"), HPCT_PERIOD, none);
	if (family->issued)
		add_reason(reader, find_metric(reader, family->issued), HPCT_ISSUED,
		           (struct plumb_slice){ "ISU", 3 });
	for (uint32_t i = 0; i < HPCT_METRICS; i++)
		if (reader->metrics[i].number && reader->metrics[i].name.at &&
		    plumb_slice_begins(reader->metrics[i].name, family->exposed))
			add_exposed(reader, family, &reader->metrics[i]);
}

/* ---- values ---- */

static void
take_period(struct hpct_reader *reader, double cycles)
{
	if (!(cycles >= 1) || cycles != floor(cycles))
		return;
	reader->periods |= reader->period > 0 && reader->period != cycles;
	reader->period = cycles;
}

/* Profiles of a process follow each other. */
static void
take_line(struct hpct_reader *reader, uint32_t process, double cycles)
{
	uint32_t count = reader->by_lines.count;
	if (!count || reader->by_lines.items[count - 1].process != process) {
		struct hpct_sample *added = plumb_vec_add(&reader->by_lines);
		if (!added) {
			reader->no_memory = true;
			return;
		}
		added->process = process;
		count++;
	}
	reader->by_lines.items[count - 1].cycles += cycles;
}

void
plumb_hpct_sample(struct hpct_reader *reader, const struct hpct_context *context, uint32_t process,
                  uint32_t metric, int64_t number)
{
	uint32_t reason = 0;
	if (context->kernel == PLUMB_NONE && context->module == PLUMB_NONE)
		return;
	while (reason < reader->reasons.count && reader->reasons.items[reason].metric != metric)
		reason++;
	if (reason == reader->reasons.count)
		return;
	const struct hpct_reason *own = &reader->reasons.items[reason];
	double cycles = (double)number / own->scale;
	if (own->role == HPCT_PERIOD) {
		take_period(reader, cycles);
	} else if (context->module == PLUMB_NONE) {
		if (own->role == HPCT_TOTAL)
			take_line(reader, process, cycles);
	} else {
		struct hpct_sample *added = plumb_vec_add(&reader->samples);
		if (added)
			*added = (struct hpct_sample){ context->module, context->kernel, process,
				                       reason,          context->offset, cycles };
		reader->no_memory |= !added;
	}
}

/* The period where no file says it: it is a power of two, and all values are multiples of it. */
static double
guess_period(const struct hpct_reader *reader)
{
	uint64_t bits = UINT64_C(1) << PERIOD_MOST;
	for (uint32_t i = 0; i < reader->samples.count; i++) {
		double cycles = reader->samples.items[i].cycles;
		if (cycles >= 1 && cycles < 1e18 && cycles == floor(cycles))
			bits |= (uint64_t)cycles;
	}
	return (double)(bits & -bits);
}

/* ---- rows ---- */

static int
by_place(const void *x, const void *y)
{
	const struct hpct_sample *a = x, *b = y;
	if (a->module != b->module)
		return a->module < b->module ? -1 : 1;
	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	if (a->kernel != b->kernel)
		return a->kernel < b->kernel ? -1 : 1;
	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return (a->reason > b->reason) - (a->reason < b->reason);
}

static bool
is_same_place(const struct hpct_sample *a, const struct hpct_sample *b)
{
	return a->module == b->module && a->offset == b->offset && a->kernel == b->kernel &&
	       a->process == b->process;
}

static int64_t
samples_of(const struct hpct_reader *reader, double cycles)
{
	double count = round(cycles / reader->period);
	return count >= 1 && count < 9e18 ? (int64_t)count : 0;
}

/* The code function at SAMPLE, and where in it. False: it is not known. */
static bool
find_code(struct hpct_reader *reader, const struct hpct_sample *sample,
          struct plumb_code_sample *row)
{
	struct plumb_builder *builder = plumb_trace_builder(reader->trace);
	struct hpct_place place = plumb_hpct_place(reader, sample->module, sample->offset);
	struct hpct_module *own = &reader->modules.items[sample->module];
	if (!place.function)
		return false;
	if (!own->rows) {
		struct plumb_code_file file = {
			.bytes = own->binary->bytes,
			.size = own->binary->size,
			.process = PLUMB_NONE,
			.path = plumb_builder_string(builder, own->path.at, own->path.bytes),
		};
		own->rows = plumb_code_rows_new(builder, own->module, &file, &reader->code_left);
	}
	*row = (struct plumb_code_sample){
		.function =
			own->rows ? plumb_code_rows_function(own->rows, place.number) : PLUMB_NONE,
		.process = sample->process,
		.device = PLUMB_NONE,
		.context = sample->kernel,
		.offset = (int64_t)place.offset,
		.launch_ns = PLUMB_UNKNOWN,
	};
	reader->no_memory |= row->function == PLUMB_NONE;
	return row->function != PLUMB_NONE;
}

static void
add_row(struct hpct_reader *reader, struct plumb_code_sample row, struct plumb_slice reason,
        bool issued, int64_t count)
{
	struct plumb_builder *builder = plumb_trace_builder(reader->trace);
	row.reason = plumb_builder_string(builder, reason.at, reason.bytes);
	row.issued = issued;
	row.count = (uint64_t)count;
	if (count > 0)
		reader->no_memory |= plumb_builder_code_sample(builder, &row) < 0;
}

/* SAMPLES of PROCESS met FATE, which may be that all is known of them. */
static void
count_samples(struct hpct_reader *reader, uint32_t process, uint32_t fate, const char *detail,
              int64_t samples)
{
	struct plumb_builder *builder = plumb_trace_builder(reader->trace);
	uint32_t text = detail ? plumb_builder_text(builder, detail) : PLUMB_NONE;
	if (samples <= 0)
		return;
	plumb_builder_ledger(builder, process, PLUMB_SOURCE_STALL_SAMPLE, PLUMB_FATE_RECEIVED,
	                     PLUMB_NONE, samples);
	plumb_builder_ledger(builder, process, PLUMB_SOURCE_STALL_SAMPLE, PLUMB_FATE_ATTRIBUTED,
	                     PLUMB_NONE, samples);
	if (fate != PLUMB_FATE_ATTRIBUTED)
		plumb_builder_ledger(builder, process, PLUMB_SOURCE_STALL_SAMPLE, fate, text,
		                     samples);
}

/* COUNT values of one place, ascending by reason. */
static void
take_place(struct hpct_reader *reader, const struct hpct_sample *samples, uint32_t count)
{
	struct plumb_code_sample row = { 0 };
	struct hpct_module *own = &reader->modules.items[samples->module];
	bool known = find_code(reader, samples, &row);
	int64_t all = 0, told = 0;
	for (uint32_t i = 0, next; i < count; i = next) {
		const struct hpct_reason *reason = &reader->reasons.items[samples[i].reason];
		double cycles = 0;
		for (next = i; next < count && samples[next].reason == samples[i].reason; next++)
			cycles += samples[next].cycles;
		int64_t sum = samples_of(reader, cycles);
		if (reason->role == HPCT_TOTAL)
			all = sum;
		else if (known)
			add_row(reader, row, reason->word, reason->role != HPCT_EXPOSED, sum);
		if (reason->role != HPCT_TOTAL && __builtin_add_overflow(told, sum, &told))
			told = INT64_MAX;
	}
	if (known)
		add_row(reader, row, (struct plumb_slice){ NULL, 0 }, true, all - told);
	else if (own->function_count)
		own->outside += (double)all;
	else
		own->without += (double)all;
	count_samples(reader, samples->process,
	              known                 ? PLUMB_FATE_ATTRIBUTED
	              : own->function_count ? PLUMB_FATE_OUTSIDE_CODE
	              : own->binary         ? PLUMB_FATE_UNREADABLE_CODE
	                                    : PLUMB_FATE_UNKNOWN_MODULE,
	              NULL, all);
}

/* ---- which functions keep their code ---- */

struct heat {
	uint32_t module, number;
	uint64_t offset; /* of a sample in it */
	double cycles;
};

static int
hotter(const void *x, const void *y)
{
	const struct heat *a = x, *b = y;
	if (a->cycles != b->cycles)
		return a->cycles > b->cycles ? -1 : 1;
	return a->module != b->module ? (a->module < b->module ? -1 : 1)
	                              : (a->number > b->number) - (a->number < b->number);
}

/* Makes the rows of functions, those with most samples first: not all code may be kept. The samples
 * are ordered by place. */
static void
keep_hottest(struct hpct_reader *reader)
{
	PLUMB_VEC(struct heat) heats = { 0 };
	struct plumb_code_sample row;
	for (uint32_t i = 0; i < reader->samples.count; i++) {
		const struct hpct_sample *sample = &reader->samples.items[i];
		struct heat *last = heats.count ? &heats.items[heats.count - 1] : NULL;
		struct hpct_place place = { 0 };
		if (reader->reasons.items[sample->reason].role == HPCT_TOTAL)
			place = plumb_hpct_place(reader, sample->module, sample->offset);
		if (!place.function)
			continue;
		if (!last || last->module != sample->module || last->number != place.number) {
			last = plumb_vec_add(&heats);
			if (!last) {
				reader->no_memory = true;
				break;
			}
			last->module = sample->module;
			last->number = place.number;
			last->offset = sample->offset;
		}
		last->cycles += sample->cycles;
	}
	if (heats.count)
		qsort(heats.items, heats.count, sizeof *heats.items, hotter);
	for (uint32_t i = 0; i < heats.count && !reader->no_memory; i++) {
		struct hpct_sample one = { .module = heats.items[i].module,
			                   .kernel = PLUMB_NONE,
			                   .process = PLUMB_NONE,
			                   .offset = heats.items[i].offset };
		find_code(reader, &one, &row);
	}
	plumb_vec_free(&heats);
}

/* ---- what has no code ---- */

static int64_t
whole(double samples)
{
	return samples >= 1 && samples < 9e18 ? (int64_t)samples : 0;
}

static void
tell_samples(struct hpct_reader *reader)
{
	double without = 0, outside = 0, lines = 0;
	for (uint32_t i = 0; i < reader->modules.count; i++) {
		without += reader->modules.items[i].without;
		outside += reader->modules.items[i].outside;
	}
	for (uint32_t i = 0; i < reader->by_lines.count; i++) {
		const struct hpct_sample *one = &reader->by_lines.items[i];
		int64_t samples = samples_of(reader, one->cycles);
		count_samples(reader, one->process, PLUMB_FATE_UNUSED,
		              "have a line, but no instruction", samples);
		lines += (double)samples;
	}
	if (without >= 1 && !plumb_trace_binaries(reader->trace))
		plumb_trace_note(reader->trace,
		                 "%s has %" PRId64 " samples of GPU instructions, without the "
		                 "code; for plumb why, add --binaries and the folder gpubins of "
		                 "hpcrun's measurements",
		                 reader->folder, whole(without));
	if (outside >= 1)
		plumb_trace_note(reader->trace,
		                 "%s: %" PRId64 " samples are outside the functions of their GPU "
		                 "binaries; plumb left them out",
		                 reader->folder, whole(outside));
	if (lines >= 1)
		plumb_trace_note(reader->trace,
		                 "%s: %" PRId64 " samples of GPU code have a line, but no "
		                 "instruction; for plumb why, make the database with hpcprof "
		                 "--ignore-structs, or without the measurements' folder structs",
		                 reader->folder, whole(lines));
}

void
plumb_hpct_samples(struct hpct_reader *reader)
{
	struct hpct_sample *samples = reader->samples.items;
	uint32_t count = reader->samples.count, next;
	if (count)
		qsort(samples, count, sizeof *samples, by_place);
	if (!reader->period || reader->periods)
		reader->period = guess_period(reader);
	reader->code_left = PLUMB_CODE_KEPT;
	if (!reader->no_memory)
		keep_hottest(reader);
	for (uint32_t i = 0; i < count && !reader->no_memory; i = next) {
		for (next = i; next < count && is_same_place(&samples[i], &samples[next]);)
			next++;
		take_place(reader, &samples[i], next - i);
	}
	tell_samples(reader);
	plumb_hpct_tell_modules(reader);
}
