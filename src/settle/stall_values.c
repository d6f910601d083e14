/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of stalls as values of contexts. Samples of a known launch belong to the kernel's context
 * below its call. Others belong to the code: they are divided among all contexts of the kernel in
 * their process and on their device, by the time that it ran there.
 *
 * If lines are known, values lie at frames below the kernel: lines, and functions that were inlined
 * there. How many such contexts there are is bounded: then the least sampled lines of a kernel
 * stay with the kernel itself.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "settle/settle_private.h"

#define CONTEXTS_MOST 65536u /* below all kernels together */
#define LINES_MOST 64u       /* places of one kernel */
#define LINES_LEAST 4u

static const struct {
	const char *word;
	uint16_t metric;
} metrics[] = {
	{ "long_scoreboard", PLUMB_METRIC_STALL_MEMORY },
	{ "short_scoreboard", PLUMB_METRIC_STALL_SHARED },
	{ "warpgroup_arrive", PLUMB_METRIC_STALL_SHARED },
	{ "gmma", PLUMB_METRIC_STALL_SHARED },
	{ "wait", PLUMB_METRIC_STALL_EXECUTION },
	{ "barrier", PLUMB_METRIC_STALL_BARRIER },
	{ "lg_throttle", PLUMB_METRIC_STALL_THROTTLE },
	{ "mio_throttle", PLUMB_METRIC_STALL_THROTTLE },
	{ "tex_throttle", PLUMB_METRIC_STALL_THROTTLE },
	{ "math_pipe_throttle", PLUMB_METRIC_STALL_THROTTLE },
	{ "no_instructions", PLUMB_METRIC_STALL_FETCH },
	{ "branch_resolving", PLUMB_METRIC_STALL_FETCH },
	{ "imc_miss", PLUMB_METRIC_STALL_FETCH },
	{ "membar", PLUMB_METRIC_STALL_FLUSH },
	{ "drain", PLUMB_METRIC_STALL_FLUSH },
	/* The warp did not wait: it issued, or another one was chosen. */
	{ "selected", 0 },
	{ "not_selected", 0 },
};
#define CLASSES (PLUMB_METRIC_STALL_OTHER - PLUMB_METRIC_STALL_MEMORY + 1)

/* The metric of a reason, counted from the first of them; -1: it is no wait. */
static int
class_of(const struct plumb_settler *settler, uint32_t reason)
{
	const char *word = plumb_builder_get_text(settler->builder, reason);

	for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++)
		if (!strcmp(metrics[i].word, word))
			return metrics[i].metric ? metrics[i].metric - PLUMB_METRIC_STALL_MEMORY
			                         : -1;
	return PLUMB_METRIC_STALL_OTHER - PLUMB_METRIC_STALL_MEMORY;
}

/* ---- contexts of kernels ---- */

static int
by_name(const void *x, const void *y)
{
	const struct plumb_settle_kernel_time *a = x, *b = y;

	if (a->name != b->name)
		return a->name < b->name ? -1 : 1;
	if (a->context != b->context)
		return a->context < b->context ? -1 : 1;
	return a->track < b->track ? -1 : a->track > b->track;
}

void
plumb_settle_kernel_times(struct plumb_settler *settler)
{
	if (settler->stalls.times.count)
		qsort(settler->stalls.times.items, settler->stalls.times.count,
		      sizeof *settler->stalls.times.items, by_name);
}

/* The first time of the kernel NAME; the others follow it. */
static uint32_t
first_time(const struct plumb_settler *settler, uint32_t name)
{
	uint32_t low = 0, high = settler->stalls.times.count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (settler->stalls.times.items[middle].name < name)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool
is_below(const struct plumb_settler *settler, uint32_t context, uint32_t above)
{
	while (context && context != above)
		context = settler->contexts.items[context].parent;
	return context == above;
}

uint32_t
plumb_settle_kernel_of(const struct plumb_settler *settler, uint32_t call, uint32_t name)
{
	uint32_t found = PLUMB_NONE;

	for (uint32_t i = first_time(settler, name); i < settler->stalls.times.count; i++) {
		uint32_t context = settler->stalls.times.items[i].context;
		if (settler->stalls.times.items[i].name != name)
			break;
		if (context == found || !is_below(settler, context, call))
			continue;
		if (found != PLUMB_NONE)
			return PLUMB_NONE;
		found = context;
	}
	return found;
}

/* Where the kernel of some stalls ran, and for how long. */
typedef PLUMB_VEC(struct plumb_settle_kernel_time) time_list;

static bool
find_times(const struct plumb_settler *settler, const struct plumb_settle_stall *stall,
           time_list *times)
{
	uint32_t name = stall->function->name;

	times->count = 0;
	for (uint32_t i = first_time(settler, name); i < settler->stalls.times.count; i++) {
		const struct plumb_settle_kernel_time *time = &settler->stalls.times.items[i];
		const struct plumb_track *track =
			plumb_builder_get_track(settler->builder, time->track);
		struct plumb_settle_kernel_time *added;
		if (time->name != name)
			break;
		if (!track || track->process != stall->process ||
		    (stall->device != PLUMB_NONE && track->device != stall->device) ||
		    (stall->call != PLUMB_NONE && !is_below(settler, time->context, stall->call)))
			continue;
		added = plumb_vec_add(times);
		if (!added)
			return false;
		*added = *time;
	}
	return true;
}

/* ---- places below a kernel ---- */

/* A chain of lines: rows FROM … of a function's lines, COUNT of them; 0: the kernel itself. */
struct place {
	uint32_t from, count;
	uint64_t classes[CLASSES], sum;
};
typedef PLUMB_VEC(struct place) place_list;

/* The chain at OFFSET. */
static struct place
chain_at(const struct plumb_settle_function *function, int64_t offset)
{
	const struct plumb_code_line *lines = function->lines.items;
	uint32_t low = 0, high = function->lines.count;
	struct place place = { 0 };

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (lines[middle].offset <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return place;
	place.from = low - 1 - lines[low - 1].depth;
	place.count = lines[low - 1].depth + 1;
	if (!lines[place.from].line)
		place.count = 0;
	return place;
}

static bool
same_chain(const struct plumb_settle_function *function, const struct place *a,
           const struct place *b)
{
	const struct plumb_code_line *lines = function->lines.items;

	if (a->count != b->count)
		return false;
	for (uint32_t i = 0; i < a->count; i++) {
		const struct plumb_code_line *x = &lines[a->from + i], *y = &lines[b->from + i];
		if (x->file != y->file || x->line != y->line || x->inlined != y->inlined)
			return false;
	}
	return true;
}

static bool
add_stall(const struct plumb_settler *settler, place_list *places,
          const struct plumb_settle_stall *stall)
{
	struct place here = chain_at(stall->function, stall->offset), *place = NULL;
	int class = class_of(settler, stall->reason);

	if (class < 0)
		return true;
	for (uint32_t i = 0; i < places->count && !place; i++)
		if (same_chain(stall->function, &places->items[i], &here))
			place = &places->items[i];
	if (!place) {
		place = plumb_vec_add(places);
		if (!place)
			return false;
		*place = here;
	}
	place->classes[class] += stall->count;
	place->sum += stall->count;
	return true;
}

static int
by_sum(const void *x, const void *y)
{
	const struct place *a = x, *b = y;

	if (a->sum != b->sum)
		return a->sum > b->sum ? -1 : 1;
	return a->from < b->from ? -1 : a->from > b->from;
}

/* Leaves MOST places, and puts the rest with the kernel itself. */
static void
bound_places(place_list *places, uint32_t most)
{
	struct place rest = { 0 };
	uint32_t kept = 0;

	qsort(places->items, places->count, sizeof *places->items, by_sum);
	for (uint32_t i = 0; i < places->count; i++) {
		const struct place *place = &places->items[i];
		if (place->count && kept < most) {
			places->items[kept++] = *place;
			continue;
		}
		for (int c = 0; c < CLASSES; c++)
			rest.classes[c] += place->classes[c];
		rest.sum += place->sum;
	}
	places->count = kept;
	if (rest.sum) /* what was read left room for it */
		places->items[places->count++] = rest;
}

static uint32_t
line_frame(struct plumb_builder *builder, const struct plumb_code_line *line)
{
	const char *file = plumb_builder_get_text(builder, line->file), *base;
	char name[512];

	base = file ? strrchr(file, '/') : NULL;
	snprintf(name, sizeof name, "%.480s:%u", base ? base + 1 : file ? file : "?", line->line);
	return plumb_builder_frame(builder, PLUMB_FRAME_LINE, plumb_builder_text(builder, name),
	                           line->file, line->line);
}

/* The context of PLACE below the kernel's CONTEXT: lines from the outermost in, each below the
 * function that it was inlined with. */
static uint32_t
context_of(struct plumb_settler *settler, const struct plumb_settle_function *function,
           const struct place *place, uint32_t context)
{
	struct plumb_builder *builder = settler->builder;

	for (uint32_t i = place->count; i-- > 0 && context != PLUMB_NONE;) {
		const struct plumb_code_line *line = &function->lines.items[place->from + i];
		if (line->inlined != PLUMB_NONE)
			context = plumb_builder_context(
				builder, context,
				plumb_builder_frame(builder, PLUMB_FRAME_INLINE, line->inlined,
			                            PLUMB_NONE, 0),
				0);
		context = plumb_builder_context(builder, context, line_frame(builder, line), 0);
	}
	return context;
}

/* ---- values ---- */

static void
add_value(struct plumb_settler *settler, uint32_t context, uint32_t track, int class,
          uint64_t count)
{
	struct plumb_value value = {
		.context = context,
		.metric = (uint32_t)(PLUMB_METRIC_STALL_MEMORY + class),
		.track = track,
		.sum = (int64_t)count,
		.count = count,
		.min = 1,
		.max = 1,
		.mean = 1,
	};

	if (count && context != PLUMB_NONE)
		plumb_builder_value(settler->builder, &value);
}

/* COUNT of a place and class, divided among TIMES: exactly, whatever is rounded. */
static uint64_t
part_of(uint64_t count, double before, double with, double all)
{
	double from = (double)count * (before / all), to = (double)count * (with / all);

	return (with >= all ? count : (uint64_t)(to + 0.5)) - (uint64_t)(from + 0.5);
}

static void
divide_place(struct plumb_settler *settler, const struct plumb_settle_function *function,
             const struct place *place, const time_list *times, double all)
{
	double before = 0;

	for (uint32_t t = 0; t < times->count; t++) {
		const struct plumb_settle_kernel_time *time = &times->items[t];
		double with = t + 1 == times->count ? all : before + (double)time->ns;
		uint32_t context = PLUMB_NONE;
		for (int c = 0; c < CLASSES; c++) {
			uint64_t part = part_of(place->classes[c], before, with, all);
			if (part && context == PLUMB_NONE)
				context = context_of(settler, function, place, time->context);
			add_value(settler, context, time->track, c, part);
		}
		before = with;
	}
}

/* Stalls of one function, process, device and call. */
static bool
divide_stalls(struct plumb_settler *settler, const struct plumb_settle_stall *stalls,
              uint32_t count, uint32_t *room, place_list *places, time_list *times)
{
	double all = 0;
	uint32_t most;

	places->count = 0;
	for (uint32_t i = 0; i < count; i++)
		if (!add_stall(settler, places, &stalls[i]))
			return false;
	if (!places->count || !find_times(settler, stalls, times))
		return !places->count;
	/* No record of the kernel came: its samples have no place in the tree. */
	if (!times->count)
		return true;
	for (uint32_t i = 0; i < times->count; i++)
		all += (double)times->items[i].ns;
	most = *room / times->count / 2; /* an inlined place takes several contexts */
	if (most > LINES_MOST)
		most = LINES_MOST;
	bound_places(places, most < LINES_LEAST ? 0 : most);
	for (uint32_t i = 0; i < places->count; i++) {
		divide_place(settler, stalls->function, &places->items[i], times, all);
		uint32_t used = places->items[i].count * times->count;
		*room -= used < *room ? used : *room;
	}
	return true;
}

void
plumb_settle_stall_values(struct plumb_settler *settler, const struct plumb_settle_stall *stalls,
                          uint32_t count)
{
	place_list places = { 0 };
	time_list times = { 0 };
	uint32_t room = CONTEXTS_MOST;

	for (uint32_t from = 0, to; from < count; from = to) {
		const struct plumb_settle_stall *first = &stalls[from];
		for (to = from + 1;
		     to < count && stalls[to].function == first->function &&
		     stalls[to].process == first->process && stalls[to].device == first->device &&
		     stalls[to].call == first->call;
		     to++)
			;
		if (!divide_stalls(settler, first, to - from, &room, &places, &times)) {
			settler->no_memory = true;
			break;
		}
	}
	plumb_vec_free(&places);
	plumb_vec_free(&times);
}
