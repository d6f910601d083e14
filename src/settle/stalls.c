/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of GPU program counters. The vendor's words come in pairs: the word alone, and the word
 * with "_not_issued", for samples while no warp issued. Whether the first of a pair counts those of
 * the second too is not documented; the sum that the vendor's interface told says so.
 */
#include <stdlib.h>
#include <string.h>

#include "settle/settle_private.h"

#define WORD_BEFORE "stalled_" /* the vendor's prefix ends with it */
#define MARK "_not_issued"
#define SAMPLES_MOST ((uint64_t)INT64_MAX) /* of a run, so that no sum of them is too large */

static void
damaged(struct plumb_settle_region *region, const char *what)
{
	plumb_settle_count(region, PLUMB_SOURCE_REGION, PLUMB_FATE_DAMAGED, what, 1);
}

/* The vendor's word without what all its words have; *MARKED: it had the suffix. */
static uint32_t
word_of(struct plumb_settle_region *region, plumb_id id, bool *marked)
{
	struct plumb_builder *builder = region->settler->builder;
	const char *text = plumb_builder_get_text(builder, plumb_settle_string(region, id));
	const char *word = text ? strstr(text, WORD_BEFORE) : NULL;
	size_t mark = sizeof MARK - 1, length;

	if (!text)
		return PLUMB_NONE;
	word = word ? word + sizeof WORD_BEFORE - 1 : text;
	length = strlen(word);
	*marked = length > mark && !strcmp(word + length - mark, MARK);
	if (*marked)
		length -= mark;
	return plumb_builder_string(builder, word, length);
}

void
plumb_settle_sample(struct plumb_settle_region *region, const struct plumb_record_sample *record)
{
	struct plumb_settle_sample sample = {
		.module = record->module,
		.offset = record->offset,
		.count = atomic_load_explicit(&record->count, memory_order_relaxed),
		.launch = record->launch ? plumb_settle_number(record->launch) : PLUMB_UNKNOWN,
		.function = plumb_settle_string(region, record->function),
		.process = region->process,
		.device = record->device,
		.call = record->call ? plumb_settle_node(region, record->call) : PLUMB_NONE,
	};
	struct plumb_settle_sample *added;

	sample.reason = word_of(region, record->reason, &sample.marked);
	if (!sample.count)
		return;
	if (sample.function == PLUMB_NONE || sample.reason == PLUMB_NONE ||
	    sample.offset > INT64_MAX ||
	    sample.count > SAMPLES_MOST - region->settler->stalls.count) {
		damaged(region, "samples");
		return;
	}
	region->settler->stalls.count += sample.count;
	added = plumb_vec_add(&region->settler->stalls.samples);
	if (added)
		*added = sample;
	else
		region->settler->no_memory = true;
}

void
plumb_settle_sampling(struct plumb_settle_region *region, const struct plumb_record_stalls *record)
{
	struct plumb_settle_sampling *sampling = plumb_vec_add(&region->settler->stalls.samplings);

	if (!sampling) {
		region->settler->no_memory = true;
		return;
	}
	*sampling = (struct plumb_settle_sampling){
		.process = region->process,
		.bare = atomic_load_explicit(&record->bare, memory_order_relaxed),
		.marked = atomic_load_explicit(&record->marked, memory_order_relaxed),
		.told = atomic_load_explicit(&record->told, memory_order_relaxed),
		.dropped = atomic_load_explicit(&record->dropped, memory_order_relaxed),
		.system = atomic_load_explicit(&record->system, memory_order_relaxed),
	};
}

void
plumb_settle_gpu_module(struct plumb_settle_region *region,
                        const struct plumb_record_gpu_code *record)
{
	struct plumb_settle_gpu_module *module = plumb_vec_add(&region->settler->stalls.modules);

	if (module)
		*module = (struct plumb_settle_gpu_module){
			.id = record->id,
			.hash = record->hash,
			.folder = region->folder,
			.process = region->process,
			.kept = record->fate == PLUMB_FATE_ATTRIBUTED,
		};
	else
		region->settler->no_memory = true;
}

void
plumb_settle_ordinals(struct plumb_settle_region *region, uint32_t ordinals[PLUMB_SETTLE_ORDINALS])
{
	const struct plumb_record *record;
	uint64_t cursor = 0;

	for (uint32_t i = 0; i < PLUMB_SETTLE_ORDINALS; i++)
		ordinals[i] = PLUMB_NONE;
	while ((record = plumb_region_next(region->reader, &cursor))) {
		const void *it = record;
		const struct plumb_record_device *device = it;
		if (record->type == PLUMB_RECORD_DEVICE && record->length >= sizeof *device &&
		    device->ordinal < PLUMB_SETTLE_ORDINALS)
			ordinals[device->ordinal] = plumb_settle_device(
				region, plumb_region_reader_id(region->reader, record));
	}
}

void
plumb_settle_sampled(struct plumb_settle_region *region)
{
	struct plumb_settle_sample *samples = region->settler->stalls.samples.items;
	uint32_t count = region->settler->stalls.samples.count, ordinals[PLUMB_SETTLE_ORDINALS];

	if (region->samples == count)
		return;
	plumb_settle_ordinals(region, ordinals);
	for (uint32_t i = region->samples; i < count; i++)
		samples[i].device = samples[i].device < PLUMB_SETTLE_ORDINALS
		                            ? ordinals[samples[i].device]
		                            : PLUMB_NONE;
}

/* ---- the whole run ---- */

static uint64_t
distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* Do words without the suffix count all samples of PROCESS, those with it among them? */
static bool
bare_is_all(const struct plumb_settler *settler, uint32_t process)
{
	for (uint32_t i = 0; i < settler->stalls.samplings.count; i++) {
		const struct plumb_settle_sampling *s = &settler->stalls.samplings.items[i];
		uint64_t own = s->told - s->dropped - s->system;
		if (s->process == process && s->told >= s->dropped + s->system && own)
			return distance(s->bare, own) <= distance(s->bare + s->marked, own);
	}
	return true;
}

#define ORDER(a, b, field)                                                                         \
	if ((a)->field != (b)->field)                                                              \
	return (a)->field < (b)->field ? -1 : 1

/* By function, then by all that tells rows apart; a pair of words stands together. */
static int
by_row(const void *x, const void *y)
{
	const struct plumb_settle_sample *a = x, *b = y;

	ORDER(a, b, module);
	ORDER(a, b, function);
	ORDER(a, b, process);
	ORDER(a, b, device);
	ORDER(a, b, call);
	ORDER(a, b, launch);
	ORDER(a, b, offset);
	ORDER(a, b, reason);
	ORDER(a, b, marked);
	return 0;
}

static bool
same_row(const struct plumb_settle_sample *a, const struct plumb_settle_sample *b)
{
	return a->module == b->module && a->function == b->function && a->process == b->process &&
	       a->device == b->device && a->call == b->call && a->launch == b->launch &&
	       a->offset == b->offset && a->reason == b->reason;
}

/* The rows from *AT on that are one pair: all samples, and of them those while no warp issued. */
static void
next_pair(const struct plumb_settler *settler, uint32_t *at, uint64_t *all, uint64_t *idle)
{
	const struct plumb_settle_sample *samples = settler->stalls.samples.items;
	const struct plumb_settle_sample *first = &samples[*at];
	uint64_t bare = 0;

	*idle = 0;
	for (; *at < settler->stalls.samples.count && same_row(&samples[*at], first); ++*at)
		*(samples[*at].marked ? idle : &bare) += samples[*at].count;
	if (!bare_is_all(settler, first->process))
		*all = bare + *idle;
	else
		*all = bare > *idle ? bare : *idle;
}

static const struct plumb_settle_gpu_module *
find_module(const struct plumb_settler *settler, uint64_t id)
{
	const struct plumb_settle_gpu_module *found = NULL;

	for (uint32_t i = 0; i < settler->stalls.modules.count; i++) {
		const struct plumb_settle_gpu_module *module = &settler->stalls.modules.items[i];
		if (module->id == id && (module->kept || !found))
			found = module;
		if (found && found->kept)
			break;
	}
	return found;
}

void
plumb_settle_function_of(const struct plumb_settler *settler, uint64_t id, uint32_t name,
                         uint32_t process, struct plumb_settle_function *function)
{
	const struct plumb_settle_gpu_module *module = find_module(settler, id);

	*function = (struct plumb_settle_function){
		.module = module ? module->hash : id,
		.name = name,
		.process = process,
		.folder = module ? module->folder : PLUMB_NONE,
		.fate = !module        ? PLUMB_FATE_UNKNOWN_MODULE
		        : module->kept ? PLUMB_FATE_ATTRIBUTED
		                       : PLUMB_FATE_UNREADABLE_CODE,
	};
}

typedef PLUMB_VEC(struct plumb_settle_function) function_list;
typedef PLUMB_VEC(struct plumb_settle_stall) stall_list;

/* The functions of the ordered samples. */
static bool
list_functions(const struct plumb_settler *settler, function_list *functions)
{
	uint32_t at = 0;

	while (at < settler->stalls.samples.count) {
		const struct plumb_settle_sample *sample = &settler->stalls.samples.items[at];
		struct plumb_settle_function *function;
		uint64_t all, idle;
		if (!at || sample->module != sample[-1].module ||
		    sample->function != sample[-1].function) {
			function = plumb_vec_add(functions);
			if (!function)
				return false;
			plumb_settle_function_of(settler, sample->module, sample->function,
			                         sample->process, function);
		}
		next_pair(settler, &at, &all, &idle);
		functions->items[functions->count - 1].count += all;
	}
	return true;
}

static void
add_row(struct plumb_settler *settler, const struct plumb_settle_function *function,
        const struct plumb_settle_sample *sample, uint32_t context, uint32_t issued, uint64_t count)
{
	struct plumb_code_sample row = {
		.function = function->row,
		.process = sample->process,
		.device = sample->device,
		.reason = sample->reason,
		.issued = issued,
		.context = context,
		.offset = (int64_t)sample->offset,
		.launch_ns = context == PLUMB_NONE ? PLUMB_UNKNOWN : sample->launch,
		.count = count,
	};

	if (count)
		plumb_builder_code_sample(settler->builder, &row);
}

/* Where COUNT samples ended up. */
static void
count_samples(struct plumb_settler *settler, const struct plumb_settle_function *function,
              const struct plumb_settle_sample *sample, uint64_t count)
{
	enum plumb_fate fate = function->fate;

	if (fate == PLUMB_FATE_ATTRIBUTED && function->bytes != PLUMB_UNKNOWN &&
	    (int64_t)sample->offset >= function->bytes)
		fate = PLUMB_FATE_OUTSIDE_CODE;
	plumb_builder_ledger(settler->builder, sample->process, PLUMB_SOURCE_STALL_SAMPLE,
	                     PLUMB_FATE_RECEIVED, PLUMB_NONE, (int64_t)count);
	plumb_builder_ledger(settler->builder, sample->process, PLUMB_SOURCE_STALL_SAMPLE,
	                     PLUMB_FATE_ATTRIBUTED, PLUMB_NONE, (int64_t)count);
	if (fate != PLUMB_FATE_ATTRIBUTED)
		plumb_builder_ledger(
			settler->builder, sample->process, PLUMB_SOURCE_STALL_SAMPLE, fate,
			fate == PLUMB_FATE_UNKNOWN_MODULE ? PLUMB_NONE : sample->function,
			(int64_t)count);
}

/* Rows of samples, and STALLS with what is divided among contexts. */
static bool
make_rows(struct plumb_settler *settler, const function_list *functions, stall_list *stalls)
{
	uint32_t at = 0, function = 0, context = PLUMB_NONE;

	while (at < settler->stalls.samples.count) {
		const struct plumb_settle_sample *sample = &settler->stalls.samples.items[at];
		struct plumb_settle_stall *stall = plumb_vec_add(stalls);
		uint64_t all, idle;
		bool other = at && (sample->module != sample[-1].module ||
		                    sample->function != sample[-1].function);
		function += other;
		if (!at || other || sample->call != sample[-1].call)
			context = sample->call == PLUMB_NONE
			                  ? PLUMB_NONE
			                  : plumb_settle_kernel_of(settler, sample->call,
			                                           sample->function);
		if (!stall)
			return false;
		next_pair(settler, &at, &all, &idle);
		*stall = (struct plumb_settle_stall){
			.function = &functions->items[function],
			.process = sample->process,
			.device = sample->device,
			.reason = sample->reason,
			.call = sample->call,
			.offset = (int64_t)sample->offset,
			.count = all,
		};
		add_row(settler, stall->function, sample, context, 0, idle);
		add_row(settler, stall->function, sample, context, 1, all - idle);
		count_samples(settler, stall->function, sample, all);
	}
	return true;
}

void
plumb_settle_stalls(struct plumb_settler *settler)
{
	function_list functions = { 0 };
	stall_list stalls = { 0 };

	if (!settler->stalls.samples.count)
		return;
	qsort(settler->stalls.samples.items, settler->stalls.samples.count,
	      sizeof *settler->stalls.samples.items, by_row);
	plumb_settle_kernel_times(settler);
	if (!list_functions(settler, &functions)) {
		settler->no_memory = true;
	} else {
		plumb_settle_gpu_functions(settler, functions.items, functions.count);
		if (!make_rows(settler, &functions, &stalls))
			settler->no_memory = true;
		plumb_settle_stall_values(settler, stalls.items, stalls.count);
		settler->captured++;
	}
	for (uint32_t i = 0; i < functions.count; i++)
		plumb_vec_free(&functions.items[i].lines);
	plumb_vec_free(&functions);
	plumb_vec_free(&stalls);
}

void
plumb_settle_stalls_free(struct plumb_settler *settler)
{
	plumb_vec_free(&settler->stalls.samples);
	plumb_vec_free(&settler->stalls.samplings);
	plumb_vec_free(&settler->stalls.modules);
	plumb_vec_free(&settler->stalls.times);
}
