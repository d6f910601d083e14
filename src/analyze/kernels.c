/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernels have code or samples, which functions they execute, and how much of the samples of
 * these functions is theirs. */
#include <stdlib.h>
#include <string.h>

#include "analyze/kernel_code.h"
#include "base/hash.h"
#include "base/search.h"
#include "base/vec.h"
#include "model/metric.h"

#define PARTS_MOST 4096u /* functions of a kernel */

const char *const plumb_sampling_names[3] = { "static", "continuous", "serialised" };

struct finder {
	const struct plumb_profile *p;
	struct plumb_kernels *kernels;
	struct plumb_map in_object; /* (code object, name) → code function */
	unsigned char *called;      /* by code function: another one refers to it */
	uint64_t *own;              /* by code function: samples, of all with its code */
	uint32_t *seen;             /* by code function: the kernel that reached it last, and 1 */
	uint64_t *sums;             /* by code function: samples of the kernels that reach it */
	uint32_t *reachers;         /* by code function: how many kernels do */
	uint32_t *on_device;        /* by device: the last kernel with samples there, and 1 */
	PLUMB_VEC(struct plumb_kernel) found;
};

static uint64_t
count_of(const struct plumb_code_sample *sample)
{
	return sample->count < PLUMB_KERNEL_COUNT_MOST ? sample->count : PLUMB_KERNEL_COUNT_MOST;
}

uint32_t
plumb_code_first_sample(const struct plumb_profile *p, uint32_t row)
{
	return plumb_search(i, p->code_samples_count, p->code_samples[i].function < row);
}

uint64_t
plumb_kernel_part_of(const struct plumb_kernel_part *part, uint64_t count)
{
	unsigned __int128 to = (unsigned __int128)count * (part->before + part->own);
	unsigned __int128 from = (unsigned __int128)count * part->before;

	return (uint64_t)(to / part->all - from / part->all);
}

/* The name of the kernel that CONTEXT is a launch of; PLUMB_NONE: it is none. */
static uint32_t
launched_at(const struct plumb_profile *p, uint32_t context)
{
	for (; context && context < p->contexts_count; context = p->contexts[context].parent) {
		const struct plumb_frame *frame = plumb_context_frame(p, context);

		if (frame->kind == PLUMB_FRAME_KERNEL)
			return frame->name;
	}
	return PLUMB_NONE;
}

static bool
is_kernel_name(const struct plumb_kernels *kernels, uint32_t name)
{
	struct plumb_map_cursor at;

	for (uint32_t id = plumb_map_first(&kernels->by_name, name, &at); id != PLUMB_MAP_NONE;
	     id = plumb_map_next(&kernels->by_name, &at))
		if (kernels->profile->code_functions[id].name == name)
			return true;
	return false;
}

uint64_t
plumb_kernel_has(const struct plumb_kernels *kernels, const struct plumb_kernel *kernel,
                 const struct plumb_kernel_part *part, const struct plumb_code_sample *sample)
{
	const struct plumb_profile *p = kernels->profile;
	uint32_t name = PLUMB_NONE;

	if (part->all == 1)
		return count_of(sample);
	if (sample->context != PLUMB_NONE)
		name = launched_at(p, sample->context);
	if (name != PLUMB_NONE && is_kernel_name(kernels, name))
		return name == p->code_functions[kernel->function].name ? count_of(sample) : 0;
	return plumb_kernel_part_of(part, count_of(sample));
}

/* ---- functions ---- */

static uint64_t
hash_of(uint64_t a, uint64_t b, uint64_t c)
{
	return plumb_hash_mix(plumb_hash_mix(plumb_hash_mix(1, a), b), c);
}

static bool
is_same_code(const struct plumb_profile *p, uint32_t a, uint32_t b)
{
	const struct plumb_code_function *one = &p->code_functions[a], *two = &p->code_functions[b];
	uint32_t hash = p->code_objects[one->object].hash;

	return one->name == two->name && one->architecture == two->architecture &&
	       hash != PLUMB_NONE && hash == p->code_objects[two->object].hash;
}

/* Joins the functions of modules that several processes loaded. */
static int
join_same(struct finder *f)
{
	const struct plumb_profile *p = f->p;
	struct plumb_map map = { 0 };
	int code = 0;

	for (uint32_t i = 0; !code && i < p->code_functions_count; i++) {
		const struct plumb_code_function *function = &p->code_functions[i];
		uint64_t hash = hash_of(function->name, function->architecture,
		                        p->code_objects[function->object].hash);
		struct plumb_map_cursor at;
		uint32_t first = plumb_map_first(&map, hash, &at);

		while (first != PLUMB_MAP_NONE && !is_same_code(p, first, i))
			first = plumb_map_next(&map, &at);
		f->kernels->first[i] = first == PLUMB_MAP_NONE ? i : first;
		f->kernels->next[i] = PLUMB_NONE;
		if (first == PLUMB_MAP_NONE) {
			code = plumb_map_add(&map, hash, i);
			continue;
		}
		f->kernels->next[i] = f->kernels->next[first];
		f->kernels->next[first] = i;
	}
	plumb_map_free(&map);
	for (uint32_t i = 0; !code && i < p->code_functions_count; i++)
		code = plumb_map_add(
			&f->in_object,
			hash_of(p->code_functions[i].object, p->code_functions[i].name, 0), i);
	return code;
}

/* The function NAME of the module of code function FROM, the first with its code; PLUMB_NONE. */
static uint32_t
function_named(const struct finder *f, uint32_t from, uint32_t name)
{
	uint32_t object = f->p->code_functions[from].object;
	struct plumb_map_cursor at;

	if (name == PLUMB_NONE)
		return PLUMB_NONE;
	for (uint32_t id = plumb_map_first(&f->in_object, hash_of(object, name, 0), &at);
	     id != PLUMB_MAP_NONE; id = plumb_map_next(&f->in_object, &at))
		if (f->p->code_functions[id].object == object &&
		    f->p->code_functions[id].name == name)
			return f->kernels->first[id];
	return PLUMB_NONE;
}

static uint32_t
first_reference(const struct plumb_profile *p, uint32_t row)
{
	return plumb_search(i, p->code_references_count, p->code_references[i].function < row);
}

/* The samples of each function, and which functions others refer to. */
static void
look_at_functions(struct finder *f)
{
	const struct plumb_profile *p = f->p;

	for (uint32_t i = 0; i < p->code_samples_count; i++)
		f->own[f->kernels->first[p->code_samples[i].function]] +=
			count_of(&p->code_samples[i]);
	for (uint32_t i = 0; i < p->code_references_count; i++) {
		const struct plumb_code_reference *row = &p->code_references[i];
		uint32_t to = function_named(f, row->function, row->name);

		if (to != PLUMB_NONE && to != f->kernels->first[row->function])
			f->called[to] = 1;
	}
}

/* ---- kernels ---- */

/* The functions that the kernel at NUMBER may execute, outwards. */
static int
reach(struct finder *f, struct plumb_kernel *kernel, uint32_t number)
{
	const struct plumb_profile *p = f->p;
	PLUMB_VEC(struct plumb_kernel_part) parts = { 0 };
	struct plumb_kernel_part *part = plumb_vec_add(&parts);

	if (!part)
		return PLUMB_ESYSTEM;
	*part = (struct plumb_kernel_part){ kernel->function, 0, 1, 1 };
	f->seen[kernel->function] = number + 1;
	for (uint32_t i = 0; i < parts.count && parts.count < PARTS_MOST; i++) {
		uint32_t from = parts.items[i].function;

		for (uint32_t r = first_reference(p, from);
		     r < p->code_references_count && p->code_references[r].function == from; r++) {
			uint32_t to = function_named(f, from, p->code_references[r].name);

			if (to == PLUMB_NONE || f->seen[to] == number + 1 ||
			    parts.count == PARTS_MOST)
				continue;
			f->seen[to] = number + 1;
			part = plumb_vec_add(&parts);
			if (!part) {
				plumb_vec_free(&parts);
				return PLUMB_ESYSTEM;
			}
			part->function = to;
			part->before = f->sums[to];
			part->own = kernel->own;
			f->sums[to] += kernel->own;
			f->reachers[to]++;
		}
	}
	kernel->parts = parts.items;
	kernel->part_count = parts.count;
	return 0;
}

static int
add_root(struct finder *f, uint32_t function)
{
	struct plumb_kernel *kernel = plumb_vec_add(&f->found);

	if (!kernel ||
	    plumb_map_add(&f->kernels->by_name, f->p->code_functions[function].name, function))
		return PLUMB_ESYSTEM;
	*kernel = (struct plumb_kernel){ .function = function,
		                         .own = f->own[function],
		                         .device = PLUMB_NONE,
		                         .context = PLUMB_NONE,
		                         .gpu_ns = PLUMB_UNKNOWN };
	return reach(f, kernel, f->found.count - 1);
}

/* Kernels, and sampled functions of which no kernel is known that reaches them: these stand for
 * themselves. */
static int
find_roots(struct finder *f)
{
	const struct plumb_profile *p = f->p;
	int code = 0;

	for (uint32_t i = 0; !code && i < p->code_functions_count; i++)
		if (f->kernels->first[i] == i &&
		    (p->code_functions[i].is_kernel || (f->own[i] && !f->called[i])))
			code = add_root(f, i);
	/* Functions that call each other, and nobody else calls them. */
	for (uint32_t i = 0; !code && i < p->code_functions_count; i++)
		if (f->kernels->first[i] == i && f->own[i] && f->called[i] &&
		    !p->code_functions[i].is_kernel && !f->reachers[i])
			code = add_root(f, i);
	return code;
}

/* Of functions that no sampled kernel reaches, each kernel gets an equal part. */
static void
finish_parts(struct finder *f)
{
	memset(f->seen, 0, f->p->code_functions_count * sizeof *f->seen);
	for (uint32_t k = 0; k < f->found.count; k++) {
		struct plumb_kernel *kernel = &f->found.items[k];

		for (uint32_t i = 1; i < kernel->part_count; i++) {
			struct plumb_kernel_part *part = &kernel->parts[i];
			uint32_t to = part->function;

			part->all = f->sums[to];
			if (!part->all) {
				part->before = f->seen[to]++;
				part->own = 1;
				part->all = f->reachers[to];
			}
			if (part->own == part->all)
				*part = (struct plumb_kernel_part){ to, 0, 1, 1 };
			kernel->is_estimate |= part->all > 1 && f->own[to];
		}
	}
}

static void
add_sample(const struct finder *f, struct plumb_kernel *kernel,
           const struct plumb_code_sample *sample, uint64_t count, enum plumb_stall_class class)
{
	uint32_t mark = kernel->function + 1;

	if (!count)
		return;
	kernel->samples += count;
	if (class != PLUMB_STALL_NONE)
		*(sample->issued ? &kernel->hidden : &kernel->waiting) += count;
	if (sample->context == PLUMB_NONE)
		kernel->sampling = PLUMB_SAMPLING_CONTINUOUS;
	if (sample->device >= f->p->devices_count || f->on_device[sample->device] == mark)
		return;
	f->on_device[sample->device] = mark;
	kernel->device = kernel->devices++ ? PLUMB_NONE : sample->device;
}

static void
add_samples(const struct finder *f, struct plumb_kernel *kernel)
{
	const struct plumb_profile *p = f->p;

	kernel->sampling = PLUMB_SAMPLING_SERIALISED;
	for (uint32_t i = 0; i < kernel->part_count; i++) {
		const struct plumb_kernel_part *part = &kernel->parts[i];

		for (uint32_t row = part->function; row != PLUMB_NONE; row = f->kernels->next[row])
			for (uint32_t s = plumb_code_first_sample(p, row);
			     s < p->code_samples_count && p->code_samples[s].function == row; s++) {
				const struct plumb_code_sample *sample = &p->code_samples[s];
				const char *word = plumb_text(p, sample->reason);
				uint64_t count = plumb_kernel_has(f->kernels, kernel, part, sample);

				add_sample(f, kernel, sample, count,
				           plumb_stall_reason_find(word ? word : "")->class);
			}
	}
	if (!kernel->samples)
		kernel->sampling = PLUMB_SAMPLING_NONE;
}

/* ---- GPU time ---- */

struct named {
	uint32_t name, kernel; /* its place in FOUND */
	int64_t most;          /* of one context */
};

static int
compare_names(const void *a, const void *b)
{
	const struct named *one = a, *two = b;

	if (one->name != two->name)
		return one->name < two->name ? -1 : 1;
	return one->kernel < two->kernel ? -1 : one->kernel > two->kernel;
}

/* V is of kernels of one name: COUNT of them, that share its time by their samples. */
static void
add_time(struct finder *f, const struct plumb_value *v, struct named *named, uint32_t count)
{
	uint64_t samples = 0;

	for (uint32_t i = 0; i < count; i++)
		samples += f->found.items[named[i].kernel].samples + 1;
	for (uint32_t i = 0; i < count; i++) {
		struct plumb_kernel *kernel = &f->found.items[named[i].kernel];
		double part = (double)(kernel->samples + 1) / (double)samples;
		int64_t ns = part < 1 ? (int64_t)((double)v->sum * part) : v->sum;

		if (kernel->gpu_ns == PLUMB_UNKNOWN)
			kernel->gpu_ns = 0;
		if (__builtin_add_overflow(kernel->gpu_ns, ns, &kernel->gpu_ns))
			kernel->gpu_ns = INT64_MAX;
		if (v->sum > named[i].most || kernel->context == PLUMB_NONE) {
			named[i].most = v->sum;
			kernel->context = v->context;
		}
	}
}

static int
add_times(struct finder *f)
{
	const struct plumb_profile *p = f->p;
	struct named *named = calloc(f->found.count + 1u, sizeof *named);

	if (!named)
		return PLUMB_ESYSTEM;
	for (uint32_t k = 0; k < f->found.count; k++)
		named[k] =
			(struct named){ p->code_functions[f->found.items[k].function].name, k, 0 };
	if (f->found.count)
		qsort(named, f->found.count, sizeof *named, compare_names);
	for (uint32_t i = 0; i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];
		uint32_t name, first, end;

		if (v->metric != PLUMB_METRIC_GPU_TIME || v->sum < 0)
			continue;
		name = launched_at(p, v->context);
		first = plumb_search(n, f->found.count, named[n].name < name);
		for (end = first; end < f->found.count && named[end].name == name; end++) {
		}
		if (name != PLUMB_NONE && end > first)
			add_time(f, v, named + first, end - first);
	}
	free(named);
	return 0;
}

static int
compare_kernels(const void *a, const void *b)
{
	const struct plumb_kernel *one = a, *two = b;

	if (one->gpu_ns != two->gpu_ns)
		return one->gpu_ns > two->gpu_ns ? -1 : 1; /* PLUMB_UNKNOWN comes last */
	if (one->samples != two->samples)
		return one->samples > two->samples ? -1 : 1;
	return one->function < two->function ? -1 : one->function > two->function;
}

/* ---- samples without a place ---- */

/* CUPTI gives no place for samples in functions that kernels call: it counts them with those of
 * kernels that are not the program's. A kernel that calls functions without samples, and has less
 * than half of the samples that its time stands for, gets them. */
#define FEW 0.5

static double
count_unplaced(const struct finder *f)
{
	double count = 0;

	for (uint32_t i = 0; i < f->p->ledger_count; i++)
		if (f->p->ledger[i].source == PLUMB_SOURCE_STALL_SAMPLE &&
		    f->p->ledger[i].fate == PLUMB_FATE_SYSTEM_KERNEL && f->p->ledger[i].count > 0)
			count += (double)f->p->ledger[i].count;
	return count;
}

static bool
calls_silent(const struct finder *f, const struct plumb_kernel *kernel)
{
	for (uint32_t i = 1; i < kernel->part_count; i++)
		if (!f->own[kernel->parts[i].function] &&
		    f->p->code_functions[kernel->parts[i].function].text.data)
			return true;
	return false;
}

/* The part of the multiprocessors that the longest launches have blocks for; 0: unknown. */
static double
part_in_use(const struct finder *f, const struct plumb_kernel *kernel)
{
	const struct plumb_profile *p = f->p;
	uint32_t name = p->code_functions[kernel->function].name;
	const struct plumb_variant *best = NULL;
	double blocks, all;

	for (uint32_t i = 0; i < p->variants_count; i++)
		if ((!best || p->variants[i].time > best->time) &&
		    launched_at(p, p->variants[i].context) == name)
			best = &p->variants[i];
	if (!best || kernel->device >= p->devices_count)
		return 0;
	blocks = (double)best->grid[0] * (double)best->grid[1] * (double)best->grid[2];
	all = (double)p->devices[kernel->device].multiprocessors;
	return !(blocks > 0) || !(all > 0) ? 0 : blocks < all ? blocks / all : 1;
}

/* After the kernels have their times. */
static void
add_unplaced(struct finder *f)
{
	double unplaced = count_unplaced(f), samples = unplaced, ns = 0;

	if (!(unplaced > 0))
		return;
	for (uint32_t i = 0; i < f->p->values_count; i++)
		if (f->p->values[i].metric == PLUMB_METRIC_GPU_TIME && f->p->values[i].sum > 0)
			ns += (double)f->p->values[i].sum;
	for (uint32_t k = 0; k < f->found.count; k++)
		samples += (double)f->found.items[k].samples;
	for (uint32_t k = 0; k < f->found.count && ns > 0; k++) {
		struct plumb_kernel *kernel = &f->found.items[k];
		double expected =
			kernel->gpu_ns == PLUMB_UNKNOWN ? 0 : (double)kernel->gpu_ns * samples / ns;
		double missing;

		if ((double)kernel->samples >= expected * FEW || !calls_silent(f, kernel))
			continue;
		expected *= part_in_use(f, kernel);
		missing = expected - (double)kernel->samples;
		/* If there are too few to explain it, samples were lost. */
		if ((double)kernel->samples >= expected * FEW || unplaced < missing * FEW)
			continue;
		missing = missing < unplaced ? missing : unplaced;
		unplaced -= missing;
		kernel->unplaced = missing < (double)PLUMB_KERNEL_COUNT_MOST
		                           ? (uint64_t)missing
		                           : PLUMB_KERNEL_COUNT_MOST;
		kernel->samples += kernel->unplaced;
		kernel->waiting += kernel->unplaced;
	}
}

/* If there are samples, what has none is left out. */
static void
keep_sampled(struct finder *f)
{
	uint32_t kept = 0;

	for (uint32_t k = 0; k < f->found.count; k++) {
		struct plumb_kernel *kernel = &f->found.items[k];

		if (f->p->code_samples_count && !kernel->samples)
			free(kernel->parts);
		else
			f->found.items[kept++] = *kernel;
	}
	f->found.count = kept;
}

static int
find_all(struct finder *f)
{
	uint32_t functions = f->p->code_functions_count;

	f->kernels->first = calloc(functions + 1u, sizeof *f->kernels->first);
	f->kernels->next = calloc(functions + 1u, sizeof *f->kernels->next);
	f->called = calloc(functions + 1u, sizeof *f->called);
	f->own = calloc(functions + 1u, sizeof *f->own);
	f->seen = calloc(functions + 1u, sizeof *f->seen);
	f->sums = calloc(functions + 1u, sizeof *f->sums);
	f->reachers = calloc(functions + 1u, sizeof *f->reachers);
	f->on_device = calloc(f->p->devices_count + 1u, sizeof *f->on_device);
	if (!f->kernels->first || !f->kernels->next || !f->called || !f->own || !f->seen ||
	    !f->sums || !f->reachers || !f->on_device || join_same(f))
		return PLUMB_ESYSTEM;
	look_at_functions(f);
	if (find_roots(f))
		return PLUMB_ESYSTEM;
	finish_parts(f);
	for (uint32_t k = 0; k < f->found.count; k++)
		add_samples(f, &f->found.items[k]);
	keep_sampled(f);
	if (add_times(f))
		return PLUMB_ESYSTEM;
	add_unplaced(f);
	if (f->found.count)
		qsort(f->found.items, f->found.count, sizeof *f->found.items, compare_kernels);
	return 0;
}

int
plumb_kernels_find(const struct plumb_profile *profile, struct plumb_kernels *kernels,
                   struct plumb_error *error)
{
	struct finder f = { .p = profile, .kernels = kernels };
	int code;

	*kernels = (struct plumb_kernels){ .profile = profile };
	code = find_all(&f);
	free(f.called);
	free(f.own);
	free(f.seen);
	free(f.sums);
	free(f.reachers);
	free(f.on_device);
	plumb_map_free(&f.in_object);
	kernels->items = f.found.items;
	kernels->count = f.found.count;
	if (!code)
		return 0;
	plumb_kernels_free(kernels);
	return plumb_fail_memory(error, "for the kernels' code");
}

void
plumb_kernels_free(struct plumb_kernels *kernels)
{
	for (uint32_t k = 0; k < kernels->count; k++)
		free(kernels->items[k].parts);
	free(kernels->items);
	free(kernels->first);
	free(kernels->next);
	plumb_map_free(&kernels->by_name);
	memset(kernels, 0, sizeof *kernels);
}
