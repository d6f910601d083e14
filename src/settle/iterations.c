/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the iterations of a program lie, for `--trace=N` only. Two rules, the first that finds any:
 *
 *  1. A framework puts a range around each step of an optimizer. An iteration ends where the last
 *     optimizer's step ends. (A program with several optimizers steps each once an iteration.)
 *  2. Take two outermost spans of the main thread, one after the other (called from Python, inside
 *     no other span). Their paths part below some frame. If the path of the second one was taken
 *     before, that frame runs a loop. Among the loops with at least half as many outermost spans as
 *     the largest loop, the outermost one is the program's. An iteration begins whenever the path
 *     that the loop took first is entered. The rule counts spans and ignores durations: on a busy
 *     machine any round may be long, and the first round initialises or compiles.
 */
#include "settle/settle_private.h"

#include <string.h>

#include "base/sort.h"
#include "model/framework/framework.h"

struct iterations {
	struct plumb_settle_region *region;
	PLUMB_VEC(struct plumb_settle_span) spans;
	PLUMB_VEC(int64_t) ends; /* of iterations, or of what lies before them */
	uint32_t main;           /* track */
	uint32_t last;           /* context of the last step, PLUMB_NONE none */
	int64_t last_end;
};

static int
by_start(const void *x, const void *y)
{
	const struct plumb_settle_span *a = x, *b = y;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return (a->end < b->end) - (a->end > b->end); /* the longer first */
}

static bool
add_end(struct iterations *it, int64_t end)
{
	int64_t *added = plumb_vec_add(&it->ends);

	if (added)
		*added = end;
	else
		it->region->settler->no_memory = true;
	return added;
}

/* ---- steps of an optimizer ---- */

static bool
is_step(const struct plumb_settle_region *region, plumb_id id)
{
	const struct plumb_record_node *node =
		plumb_region_get(region->reader, id, PLUMB_RECORD_NODE, sizeof *node);
	size_t bytes = 0;
	const char *name = node ? plumb_region_string(region->reader, node->name, &bytes) : NULL;

	return name && node->kind == PLUMB_FRAME_RANGE &&
	       plumb_framework_range(name, bytes) == PLUMB_PURPOSE_OPTIMIZER_STEP;
}

static bool
find_last(void *data, const struct plumb_settle_span *span)
{
	struct iterations *it = data;

	if (span->end > it->last_end && is_step(it->region, span->node)) {
		it->last = span->context;
		it->last_end = span->end;
	}
	return true;
}

static bool
take_step(void *data, const struct plumb_settle_span *span)
{
	struct iterations *it = data;

	return span->context != it->last || add_end(it, span->end);
}

/* ---- loops ---- */

static bool
take_main(void *data, const struct plumb_settle_span *span)
{
	struct iterations *it = data;

	if (span->track != it->main || span->started)
		return true;
	struct plumb_settle_span *added = plumb_vec_add(&it->spans);
	if (added)
		*added = *span;
	else
		it->region->settler->no_memory = true;
	return added;
}

/* Keeps only the outermost spans. */
static void
keep_outermost(struct iterations *it)
{
	struct plumb_settle_span *spans = it->spans.items;
	uint32_t kept = 0;
	int64_t reach = INT64_MIN;

	if (it->spans.count)
		qsort(spans, it->spans.count, sizeof *spans, by_start);
	for (uint32_t i = 0; i < it->spans.count; i++) {
		if (spans[i].start < reach)
			continue;
		reach = spans[i].end;
		spans[kept++] = spans[i];
	}
	it->spans.count = kept;
}

/* The child of the frame where the paths to A and B part, on the way to B. When they are the same
 * it is B itself. */
static uint32_t
way_to(const struct plumb_settle_context *contexts, uint32_t a, uint32_t b)
{
	uint32_t way = b;

	while (contexts[a].depth > contexts[b].depth)
		a = contexts[a].parent;
	for (; contexts[b].depth > contexts[a].depth; b = contexts[b].parent)
		way = b;
	for (; a != b; a = contexts[a].parent, b = contexts[b].parent)
		way = b;
	return way;
}

/* The span with which a context was entered first, and the last that entered it after it had been
 * left: between them lie the whole rounds of a loop. */
struct visits {
	uint32_t first, last;
	bool taken, again;
};

static void
visit_all(const struct iterations *it, struct visits *visits)
{
	const struct plumb_settle_context *contexts = it->region->settler->contexts.items;
	const struct plumb_settle_span *spans = it->spans.items;

	for (uint32_t i = 0; i < it->spans.count; i++) {
		uint32_t way = way_to(contexts, i ? spans[i - 1].context : 0, spans[i].context);
		if (visits[way].taken) {
			visits[way].again = true;
			visits[way].last = i;
		}
		for (uint32_t c = spans[i].context; c && !visits[c].taken; c = contexts[c].parent)
			visits[c] = (struct visits){ .first = i, .last = i, .taken = true };
	}
}

/* The path that the program's loop takes first. PLUMB_NONE: there is no loop. */
static uint32_t
find_loop(const struct iterations *it, const struct visits *visits)
{
	const struct plumb_settle_context *contexts = it->region->settler->contexts.items;
	uint32_t found = PLUMB_NONE;
	uint32_t largest = 0;

	for (uint32_t c = 1; c < it->region->settler->contexts.count; c++)
		if (visits[c].last - visits[c].first > largest)
			largest = visits[c].last - visits[c].first;
	for (uint32_t c = 1; c < it->region->settler->contexts.count; c++) {
		if (!visits[c].again || visits[c].last - visits[c].first < largest / 2)
			continue;
		if (found == PLUMB_NONE || contexts[c].depth < contexts[found].depth ||
		    (contexts[c].depth == contexts[found].depth &&
		     visits[c].first < visits[found].first))
			found = c;
	}
	return found;
}

static void
find_entries(struct iterations *it, uint32_t loop)
{
	const struct plumb_settle_context *contexts = it->region->settler->contexts.items;
	const struct plumb_settle_span *spans = it->spans.items;
	bool inside = false;

	for (uint32_t i = 0; i < it->spans.count; i++) {
		uint32_t at = spans[i].context;
		while (contexts[at].depth > contexts[loop].depth)
			at = contexts[at].parent;
		/* A loop of one line is entered with each span. */
		if (at == loop && (!inside || spans[i].context == loop) &&
		    !add_end(it, spans[i].start))
			return;
		inside = at == loop;
	}
}

static bool
count_main(void *data, const struct plumb_settle_span *span)
{
	struct iterations *it = data;
	const struct plumb_track *track =
		plumb_builder_get_track(it->region->settler->builder, span->track);

	if (track && track->kind == PLUMB_TRACK_THREAD &&
	    track->tid == (int64_t)it->region->reader->header.pid)
		it->main = span->track;
	return it->main == PLUMB_NONE;
}

static void
find_loops(struct iterations *it, const struct plumb_settle_trace *trace)
{
	struct visits *visits =
		calloc((size_t)it->region->settler->contexts.count + 1, sizeof *visits);
	uint32_t loop;

	plumb_settle_each_span(it->region, trace, count_main, it);
	if (!visits ||
	    (it->main != PLUMB_NONE && !plumb_settle_each_span(it->region, trace, take_main, it))) {
		it->region->settler->no_memory = true;
	} else {
		keep_outermost(it);
		visit_all(it, visits);
		loop = find_loop(it, visits);
		if (loop != PLUMB_NONE)
			find_entries(it, loop);
	}
	free(visits);
}

int64_t
plumb_settle_iterations(struct plumb_settle_region *region, const struct plumb_settle_trace *trace,
                        uint32_t count)
{
	struct iterations it = {
		.region = region,
		.main = PLUMB_NONE,
		.last = PLUMB_NONE,
		.last_end = INT64_MIN,
	};
	int64_t result = PLUMB_SETTLE_NO_ITERATIONS;
	uint32_t before;

	plumb_settle_each_span(region, trace, find_last, &it);
	if (it.last != PLUMB_NONE)
		plumb_settle_each_span(region, trace, take_step, &it);
	else
		find_loops(&it, trace);
	/* Where the part before the last COUNT iterations ends. If ends of iterations are known, it
	 * is the end of the iteration before them. If beginnings are known (loops), it is where the
	 * first of them begins. */
	before = it.last != PLUMB_NONE ? count + 1 : count;
	if (it.ends.count) {
		plumb_sort_numbers(it.ends.items, it.ends.count);
		result =
			it.ends.count >= before ? it.ends.items[it.ends.count - before] : INT64_MIN;
	}
	plumb_vec_free(&it.spans);
	plumb_vec_free(&it.ends);
	return result;
}
