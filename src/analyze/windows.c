/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/windows.h"

#include <math.h>
#include <string.h>

#include "analyze/host_steps.h"
#include "analyze/iterations.h"
#include "analyze/windows_private.h"
#include "base/search.h"
#include "base/sort.h"
#include "model/framework/framework.h"
#include "model/row_merge.h"
#include "model/rows.h"

#define MOST 0.5        /* of a part: kernels of a loop */
#define LEAST_LOOPS 0.2 /* of the time that is not of a loop, after start-up */

struct finding {
	struct plumb_profile *profile;
	struct plumb_windows_finding found;
	uint32_t *part_of; /* by window; PLUMB_NONE: it is no part */
};

/* ---- reading parts ---- */

static uint64_t
part_key(const void *row, int which, const void *data)
{
	const struct plumb_windows_part *part = row;

	(void)data;
	return which ? plumb_sort_signed(part->start) : part->process;
}

/* The time of a window, which as a part has one stretch. */
static void
find_times(const struct plumb_profile *p, uint32_t count, struct plumb_windows_part *parts)
{
	for (uint32_t i = 0; i < p->window_stretches_count; i++) {
		const struct plumb_window_stretch *s = &p->window_stretches[i];
		uint32_t at = plumb_search(k, count, parts[k].window < s->window);
		if (at < count && parts[at].window == s->window) {
			parts[at].start = s->start_ns;
			parts[at].end = s->end_ns;
		}
	}
}

static bool
find_parts(struct finding *f)
{
	const struct plumb_profile *p = f->profile;
	struct plumb_windows_part *parts = calloc((size_t)p->windows_count + 1, sizeof *parts);
	uint32_t count = 0;

	f->found.parts = parts;
	f->part_of = malloc(((size_t)p->windows_count + 1) * sizeof *f->part_of);
	if (!parts || !f->part_of)
		return false;
	for (uint32_t i = 0; i < p->windows_count; i++) {
		f->part_of[i] = PLUMB_NONE;
		if (p->windows[i].kind == PLUMB_WINDOW_PART)
			parts[count++] =
				(struct plumb_windows_part){ .window = i,
				                             .process = p->windows[i].process,
				                             .extent = p->windows[i].iterations,
				                             .range = PLUMB_NONE,
				                             .gpu_loop = PLUMB_NONE,
				                             .loop = PLUMB_NONE,
				                             .around = PLUMB_NONE };
	}
	f->found.count = count;
	find_times(p, count, parts);
	if (plumb_sort_rows(parts, count, sizeof *parts, part_key, 2, NULL) < 0)
		return false;
	for (uint32_t i = 0; i < count; i++)
		f->part_of[parts[i].window] = i;
	return true;
}

/* Does a frame import, compile, try variants of kernels, capture, or make the model? */
static bool
is_setup(const struct plumb_profile *p, uint32_t frame)
{
	switch (plumb_framework_startup(p, frame)) {
	case PLUMB_STARTUP_IMPORTS:
	case PLUMB_STARTUP_COMPILING:
	case PLUMB_STARTUP_TUNING:
	case PLUMB_STARTUP_CAPTURE:
	case PLUMB_STARTUP_MODEL:
		return true;
	default:
		return false;
	}
}

/* What is done to be ready for the loop repeats, too: a tuner calls a kernel a hundred times. */
static bool
find_activities(struct finding *f)
{
	const struct plumb_profile *p = f->profile;
	bool *setup = calloc((size_t)p->contexts_count + 1, sizeof *setup), ok = setup;

	for (uint32_t c = 1; ok && c < p->contexts_count; c++)
		setup[c] = setup[p->contexts[c].parent] || is_setup(p, p->contexts[c].frame);
	for (uint32_t i = 0; ok && i < p->window_values_count; i++) {
		const struct plumb_window_value *value = &p->window_values[i];
		uint32_t at = f->part_of[value->window];
		struct plumb_windows_part *part = f->found.parts;
		if (at == PLUMB_NONE)
			continue;
		part += at;
		ok = plumb_activity_take(setup[value->context] ? &part->setup : &part->activity,
		                         value);
	}
	free(setup);
	return ok;
}

/* Steps that the framework's profiler marks, else those of the optimizer called most. */
static void
find_steps(const struct finding *f)
{
	for (uint32_t i = 0; i < f->found.count; i++) {
		struct plumb_windows_part *part = &f->found.parts[i];
		double steps = 0, optimizer = 0;
		for (uint32_t e = 0; e < part->activity.entries.count; e++) {
			const struct plumb_activity_entry *entry = &part->activity.entries.items[e];
			int marker = plumb_host_steps_marker(f->profile, entry->context);
			steps += marker == 2 ? entry->calls : 0;
			optimizer = marker == 1 ? fmax(optimizer, entry->calls) : optimizer;
		}
		part->steps = steps > 0 ? steps : optimizer;
	}
}

/* The range that takes most of each part: it may be a step that the program marks. */
static void
find_ranges(const struct finding *f)
{
	const struct plumb_profile *p = f->profile;

	for (uint32_t i = 0; i < p->window_values_count; i++) {
		const struct plumb_window_value *v = &p->window_values[i];
		uint32_t at = f->part_of[v->window];
		struct plumb_windows_part *part = &f->found.parts[at];
		double ns = (double)v->sum;
		if (at == PLUMB_NONE || v->metric != PLUMB_METRIC_OP_DURATION || !v->count ||
		    plumb_context_frame(p, v->context)->kind != PLUMB_FRAME_RANGE ||
		    !(ns > part->range_ns))
			continue;
		part->range = v->context;
		part->range_calls = (double)v->count;
		part->range_ns = ns;
		part->range_squares = v->m2 + ns * ns / (double)v->count;
	}
}

/* ---- the newest GPU work ---- */

static int64_t
time_within(const struct plumb_iteration_track *track, uint32_t loop,
            const struct plumb_windows_part *part)
{
	int64_t sum = 0;

	for (uint32_t s = 0; s < track->stretch_count; s++) {
		const struct plumb_iteration_stretch *stretch = &track->stretches[s];
		int64_t start = stretch->start_ns > part->start ? stretch->start_ns : part->start;
		int64_t end = stretch->end_ns < part->end ? stretch->end_ns : part->end;
		if (stretch->loop == loop && end > start)
			sum += end - start;
	}
	return sum;
}

static int
find_gpu_loops(const struct finding *f, struct plumb_error *error)
{
	struct plumb_iterations found;
	uint32_t number = 0;
	int code = plumb_iterations_find(f->profile, NULL, &found, error);

	for (uint32_t t = 0; !code && t < found.count; t++) {
		const struct plumb_iteration_track *track = &found.tracks[t];
		for (uint32_t l = 0; l < track->loop_count; l++, number++) {
			for (uint32_t i = 0; i < f->found.count; i++) {
				struct plumb_windows_part *part = &f->found.parts[i];
				if (part->process == track->process &&
				    part->gpu_loop == PLUMB_NONE &&
				    (double)time_within(track, l, part) >
				            MOST * (double)(part->end - part->start))
					part->gpu_loop = number;
			}
		}
	}
	plumb_iterations_free(&found);
	return code;
}

/* ---- writing windows ---- */

/* What the window is that PART becomes a part of. */
static struct plumb_window
window_of(const struct finding *f, const struct plumb_windows_part *part)
{
	struct plumb_window window = { .process = part->process,
		                       .kind = part->kind,
		                       .iterations = PLUMB_UNKNOWN };

	if (part->loop != PLUMB_NONE) {
		window.number = f->found.loops.items[part->loop].number;
		window.iterations = f->found.loops.items[part->loop].iterations;
	} else if (part->around != PLUMB_NONE) {
		window.number = f->found.loops.items[part->around].number;
	}
	return window;
}

static uint64_t
window_key(const void *row, int which, const void *data)
{
	const struct plumb_window *window = row;

	(void)data;
	return which == 0 ? window->process : (uint64_t)window->kind << 32 | window->number;
}

/* The windows that there are from now on. IDS, by the old window, becomes the new one. */
static bool
make_windows(const struct finding *f, uint32_t *ids)
{
	struct plumb_profile *p = f->profile;
	struct plumb_window *windows = malloc(((size_t)p->windows_count + 1) * sizeof *windows);
	uint32_t count = 0;

	for (uint32_t i = 0; windows && i < p->windows_count; i++) {
		uint32_t part = f->part_of[i];
		windows[i] =
			part == PLUMB_NONE ? p->windows[i] : window_of(f, &f->found.parts[part]);
		ids[i] = i;
	}
	if (!windows ||
	    plumb_sort_rows(windows, p->windows_count, sizeof *windows, window_key, 2, NULL) < 0) {
		free(windows);
		return false;
	}
	for (uint32_t i = 0; i < p->windows_count; i++)
		if (!i ||
		    window_key(&windows[i], 0, NULL) != window_key(&windows[count - 1], 0, NULL) ||
		    window_key(&windows[i], 1, NULL) != window_key(&windows[count - 1], 1, NULL))
			windows[count++] = windows[i];
	for (uint32_t i = 0; i < p->windows_count; i++) {
		uint32_t part = f->part_of[i];
		struct plumb_window is =
			part == PLUMB_NONE ? p->windows[i] : window_of(f, &f->found.parts[part]);
		uint64_t key = window_key(&is, 1, NULL);
		ids[i] = plumb_search(k, count,
		                      windows[k].process < is.process ||
		                              (windows[k].process == is.process &&
		                               window_key(&windows[k], 1, NULL) < key));
	}
	memcpy(p->windows, windows, count * sizeof *windows);
	p->windows_count = count;
	free(windows);
	return true;
}

/* Stretches that follow one another become one. */
static bool
join_stretches(struct plumb_profile *p)
{
	uint32_t kept = 0;

	if (plumb_row_order(p, &plumb_row_tables[PLUMB_TABLE_WINDOW_STRETCHES]))
		return false;
	for (uint32_t i = 0; i < p->window_stretches_count; i++) {
		struct plumb_window_stretch *s = &p->window_stretches[i];
		struct plumb_window_stretch *last = kept ? &p->window_stretches[kept - 1] : NULL;
		if (last && last->window == s->window && last->end_ns == s->start_ns)
			last->end_ns = s->end_ns;
		else
			p->window_stretches[kept++] = *s;
	}
	p->window_stretches_count = kept;
	return true;
}

static bool
write_windows(const struct finding *f)
{
	struct plumb_profile *p = f->profile;
	uint32_t *ids = malloc(((size_t)p->windows_count + 1) * sizeof *ids);
	bool ok = ids && make_windows(f, ids);

	for (uint32_t i = 0; ok && i < p->window_stretches_count; i++)
		p->window_stretches[i].window = ids[p->window_stretches[i].window];
	for (uint32_t i = 0; ok && i < p->window_values_count; i++)
		p->window_values[i].window = ids[p->window_values[i].window];
	for (uint32_t i = 0; ok && i < p->window_variants_count; i++)
		p->window_variants[i].window = ids[p->window_variants[i].window];
	for (uint32_t i = 0; ok && i < p->window_devices_count; i++)
		p->window_devices[i].window = ids[p->window_devices[i].window];
	free(ids);
	return ok && join_stretches(p) &&
	       !plumb_row_merge(p, &plumb_row_tables[PLUMB_TABLE_WINDOW_VALUES]) &&
	       !plumb_row_merge(p, &plumb_row_tables[PLUMB_TABLE_WINDOW_VARIANTS]) &&
	       !plumb_row_merge(p, &plumb_row_tables[PLUMB_TABLE_WINDOW_DEVICES]);
}

/* ---- all of it ---- */

/* Loops that are a small part of what follows start-up are not what the run is about. */
static bool
loops_matter(const struct finding *f)
{
	int64_t first = INT64_MAX;
	double inside = 0, outside = 0;

	for (uint32_t i = 0; i < f->found.count; i++)
		if (f->found.parts[i].loop != PLUMB_NONE && f->found.parts[i].start < first)
			first = f->found.parts[i].start;
	for (uint32_t i = 0; i < f->found.count; i++) {
		const struct plumb_windows_part *part = &f->found.parts[i];
		double wall = (double)(part->end - part->start);
		if (part->loop != PLUMB_NONE)
			inside += wall;
		else if (part->start >= first)
			outside += wall;
	}
	return inside >= LEAST_LOOPS * outside;
}

static void
drop_windows(struct plumb_profile *p)
{
	p->windows_count = p->window_stretches_count = p->window_values_count =
		p->window_variants_count = p->window_devices_count = 0;
}

static void
free_finding(struct finding *f)
{
	for (uint32_t i = 0; f->found.parts && i < f->found.count; i++) {
		plumb_activity_free(&f->found.parts[i].activity);
		plumb_activity_free(&f->found.parts[i].setup);
	}
	for (uint32_t i = 0; i < f->found.loops.count; i++)
		plumb_activity_free(&f->found.loops.items[i].activity);
	plumb_vec_free(&f->found.loops);
	free(f->found.parts);
	free(f->part_of);
}

static bool
find_loops(struct finding *f)
{
	bool ok = true;

	for (uint32_t first = 0, end; ok && first < f->found.count; first = end) {
		for (end = first + 1; end < f->found.count; end++)
			if (f->found.parts[end].process != f->found.parts[first].process)
				break;
		ok = plumb_windows_loops(&f->found, first, end);
	}
	return ok;
}

/* Windows of the parts that the profile has. */
static int
label_parts(struct finding *f, struct plumb_error *error)
{
	int code;

	if (!find_activities(f))
		return plumb_fail_memory(error, "for the windows");
	find_steps(f);
	find_ranges(f);
	code = find_gpu_loops(f, error);
	if (code)
		return code;
	if (!find_loops(f))
		return plumb_fail_memory(error, "for the windows");
	if (!plumb_windows_number(&f->found) || !loops_matter(f))
		drop_windows(f->profile);
	else if (!write_windows(f))
		return plumb_fail_memory(error, "for the windows");
	return PLUMB_OK;
}

/* Windows of single spans: their parts are known. */
static bool
label_cuts(struct finding *f)
{
	struct plumb_windows_finding *found = &f->found;
	int64_t start;

	f->part_of = malloc(((size_t)found->count + 1) * sizeof *f->part_of);
	if (!f->part_of)
		return false;
	for (uint32_t i = 0; i < found->count; i++)
		f->part_of[i] = i;
	if (!find_activities(f))
		return false;
	for (uint32_t i = 0; i < found->count; i++)
		if (found->parts[i].loop != PLUMB_NONE &&
		    !plumb_activity_add(&found->loops.items[found->parts[i].loop].activity,
		                        &found->parts[i].activity))
			return false;
	plumb_windows_number_loops(found, &start);
	return write_windows(f);
}

static int
label_spans(struct finding *f, struct plumb_error *error)
{
	struct plumb_windows_cuts cuts = { 0 };
	int code = plumb_windows_cut(f->profile, &f->found, &cuts, error), taken = 1;

	if (!code && f->found.count)
		taken = plumb_windows_take(f->profile, &cuts);
	if (taken < 0 || (!taken && !label_cuts(f)))
		code = plumb_fail_memory(error, "for the windows");
	else if (taken)
		drop_windows(f->profile);
	plumb_windows_cuts_free(&cuts);
	return code;
}

int
plumb_windows_label(struct plumb_profile *profile, struct plumb_error *error)
{
	struct finding f = { .profile = profile };
	int code = find_parts(&f) ? PLUMB_OK : plumb_fail_memory(error, "for the windows");

	if (!code && f.found.count)
		code = label_parts(&f, error);
	if (!code && !profile->windows_count && profile->spans_count) {
		free_finding(&f);
		f = (struct finding){ .profile = profile };
		code = label_spans(&f, error);
	}
	if (code)
		drop_windows(profile);
	free_finding(&f);
	return code;
}
