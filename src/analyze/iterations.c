/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Iterations of main tracks. The sequence is the names of a track's kernels in the order of their
 * starts; copies and sets are left out of it, for they come and go with the size of a batch.
 */
#include "analyze/iterations_private.h"

#include <math.h>

#include "analyze/copies.h"
#include "base/large.h"
#include "base/runs.h"
#include "base/search.h"
#include "base/words.h"
#include "model/gpu_work.h"

struct finder {
	const struct plumb_profile *profile;
	const struct plumb_iteration_limits *limits;
	struct plumb_iterations *found;
	struct plumb_gpu_work gpu;
	unsigned char *sorts; /* by context: enum sort */
	int64_t *copy_size;   /* plumb_copies_sizes */
	struct plumb_track_index tracks;
	struct copied *copied; /* by place in found->tracks, of main tracks */
	uint32_t *symbols;     /* by name: 0, or 1 more than its symbol; 0 between tracks */
};

/* From the host to a device and process. */
struct copied {
	uint64_t counted;
	int64_t sum; /* PLUMB_UNKNOWN: no number holds it */
};

enum sort { OTHER, KERNEL, COPY, COPY_FROM_HOST, MARKER };

/* ---- what contexts are ---- */

static bool
sort_contexts(struct finder *f)
{
	const struct plumb_profile *p = f->profile;

	f->sorts = calloc((size_t)p->contexts_count + 1, 1);
	f->copy_size = plumb_copies_sizes(p);
	if (!f->sorts || !f->copy_size)
		return false;
	for (uint32_t c = 0; c < p->contexts_count; c++) {
		const struct plumb_frame *frame = plumb_context_frame(p, c);

		if (frame->kind == PLUMB_FRAME_KERNEL)
			f->sorts[c] = KERNEL;
		else if (frame->kind == PLUMB_FRAME_COPY)
			f->sorts[c] = plumb_copies_from_host(p, c) ? COPY_FROM_HOST : COPY;
		else if (frame->kind == PLUMB_FRAME_SET)
			f->sorts[c] = COPY;
		else if (frame->kind == PLUMB_FRAME_RANGE)
			f->sorts[c] = MARKER;
	}
	return true;
}

/* ---- tracks and their roles ---- */

static bool
is_timed(const struct plumb_span *span)
{
	return plumb_is_time(span->start_ns, span->end_ns);
}

struct census {
	struct finder *f;
	struct plumb_iteration_track *tracks; /* by track */
	int64_t *last, *gaps;                 /* end of the last kernel, time between kernels */
};

static void
count_op(struct census *c, const struct plumb_span *op)
{
	struct plumb_iteration_track *track = &c->tracks[op->track];
	unsigned char sort = c->f->sorts[op->context];

	if (sort == COPY || sort == COPY_FROM_HOST)
		track->copies++;
	if (sort != KERNEL)
		return;
	if (track->ops++)
		plumb_iteration_add(&c->gaps[op->track], op->start_ns - c->last[op->track]);
	plumb_iteration_add(&track->kernel_ns, op->end_ns - op->start_ns);
	c->last[op->track] = op->end_ns;
}

/* By device and process, for two that share a device have a loop each; the main track first. */
static int
by_device(const void *x, const void *y)
{
	const struct plumb_iteration_track *a = x, *b = y;

	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->ops != b->ops)
		return a->ops > b->ops ? -1 : 1;
	if (a->kernel_ns != b->kernel_ns)
		return a->kernel_ns > b->kernel_ns ? -1 : 1;
	return (a->track > b->track) - (a->track < b->track);
}

static bool
find_tracks(struct finder *f)
{
	const struct plumb_profile *p = f->profile;
	struct plumb_iterations *found = f->found;
	struct census c = { .f = f };

	c.tracks = calloc((size_t)p->tracks_count + 1, sizeof *c.tracks);
	c.last = calloc((size_t)p->tracks_count + 1, sizeof *c.last);
	c.gaps = calloc((size_t)p->tracks_count + 1, sizeof *c.gaps);
	found->tracks = c.tracks;
	bool done = c.tracks && c.last && c.gaps;
	for (uint32_t t = 0; done && t < p->tracks_count; t++) {
		struct plumb_gpu_range range = plumb_gpu_work_of(&f->gpu, t);

		for (uint32_t i = range.first; i < range.end; i++)
			if (is_timed(&f->gpu.spans[i]))
				count_op(&c, &f->gpu.spans[i]);
	}
	if (done)
		for (uint32_t t = 0; t < p->tracks_count; t++) {
			struct plumb_iteration_track *track = &c.tracks[t];

			if (!track->ops && !track->copies)
				continue;
			track->track = t;
			track->device = p->tracks[t].device;
			track->process = p->tracks[t].process;
			track->op_gap_ns =
				track->ops > 1 ? (double)c.gaps[t] / (track->ops - 1) : NAN;
			track->copy_bytes = PLUMB_UNKNOWN;
			c.tracks[found->count++] = *track;
		}
	free(c.last);
	free(c.gaps);
	if (!done)
		return false;
	qsort(found->tracks, found->count, sizeof *found->tracks, by_device);
	for (uint32_t i = 0; i < found->count; i++) {
		struct plumb_iteration_track *track = &found->tracks[i];
		bool first = !i || track[-1].device != track->device ||
		             track[-1].process != track->process;

		track->role = first && track->ops          ? PLUMB_ROLE_MAIN
		              : track->copies > track->ops ? PLUMB_ROLE_COPY
		                                           : PLUMB_ROLE_ASSIST;
	}
	return true;
}

/* ---- a device's work ---- */

/* Spans that begin together have the longer first, as it may hold the others. Kernels of a stream
 * follow each other instead: where a file's times are so coarse that some begin together, the order
 * is that of their launches. */
static bool
runs_later(const void *x, const void *y, const void *spans)
{
	const struct plumb_span *a = (const struct plumb_span *)spans + *(const uint32_t *)x;
	const struct plumb_span *b = (const struct plumb_span *)spans + *(const uint32_t *)y;

	if (a->start_ns != b->start_ns)
		return a->start_ns > b->start_ns;
	return a->correlation != b->correlation ? a->correlation > b->correlation
	                                        : a->end_ns > b->end_ns;
}

/* Of STREAM the kernels, if it is the main TRACK, and the copies from the host. */
static bool
gather_stream(const struct finder *f, const struct plumb_iteration_track *track, uint32_t stream,
              struct plumb_iteration_work *work)
{
	struct plumb_gpu_range range = plumb_gpu_work_of(&f->gpu, stream);

	for (uint32_t i = range.first; i < range.end; i++) {
		const struct plumb_span *op = &f->gpu.spans[i];
		unsigned char sort = f->sorts[op->context];

		if (!is_timed(op))
			continue;
		if (sort == COPY_FROM_HOST) {
			struct plumb_iteration_copy *copy = plumb_vec_add(&work->copies);

			if (!copy)
				return false;
			*copy = (struct plumb_iteration_copy){
				op->start_ns, op->end_ns, plumb_copies_size(f->copy_size, op)
			};
		} else if (sort == KERNEL && stream == track->track) {
			uint32_t *kernel = plumb_vec_add(&work->kernels);

			if (!kernel)
				return false;
			*kernel = i;
		}
	}
	return true;
}

/* The kernels of the main TRACK, and the copies from the host to its device. */
static bool
gather_work(const struct finder *f, const struct plumb_iteration_track *track,
            struct plumb_iteration_work *work)
{
	uint32_t count;
	const uint32_t *streams = plumb_track_group(&f->tracks.streams, track->device, &count);

	if (!plumb_large_vec(&work->kernels, track->ops))
		return false;
	for (uint32_t s = 0; s < count; s++)
		if (f->profile->tracks[streams[s]].process == track->process &&
		    !gather_stream(f, track, streams[s], work))
			return false;
	return plumb_runs_sort(work->kernels.items, work->kernels.count,
	                       sizeof *work->kernels.items, runs_later, f->gpu.spans) == 0;
}

/* Adds the time of SPAN, which begins no earlier than those before it, to their union. False:
 * memory is out. */
static bool
add_time(struct plumb_iteration_times *times, const struct plumb_span *span)
{
	struct plumb_interval_ns *last = times->count ? &times->items[times->count - 1] : NULL;

	if (last && span->start_ns <= last->end) {
		last->end = span->end_ns > last->end ? span->end_ns : last->end;
		return true;
	}
	last = plumb_vec_add(times);
	if (last)
		*last = (struct plumb_interval_ns){ span->start_ns, span->end_ns };
	return last != NULL;
}

/* When the device had work, kernels on other streams, and copies from the host. */
static bool
gather_times(const struct finder *f, const struct plumb_iteration_track *main_track,
             struct plumb_iteration_work *work)
{
	uint32_t count, place;
	const uint32_t *streams = plumb_track_group(&f->tracks.streams, main_track->device, &count);
	struct plumb_gpu_merge merge;
	bool done = plumb_gpu_merge_new(&f->gpu, streams, count, &merge) == 0;

	while (done && plumb_gpu_merge_next(&merge, &place)) {
		const struct plumb_span *op = &f->gpu.spans[place];
		unsigned char sort = f->sorts[op->context];

		if (!is_timed(op) || sort == OTHER || sort == MARKER)
			continue;
		done = add_time(&work->busy, op) &&
		       (sort != KERNEL || op->track == main_track->track ||
		        add_time(&work->elsewhere, op));
	}
	plumb_gpu_merge_free(&merge);
	for (uint32_t i = 0; done && i < work->copies.count; i++) {
		struct plumb_interval_ns *copying = plumb_vec_add(&work->copying);

		done = copying != NULL;
		if (done)
			*copying = (struct plumb_interval_ns){ work->copies.items[i].start_ns,
				                               work->copies.items[i].end_ns };
	}
	if (done)
		plumb_intervals_merge(work->copying.items, &work->copying.count);
	return done;
}

static int
by_start(const void *x, const void *y)
{
	const struct plumb_iteration_copy *a = x, *b = y;

	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

/* The place of the main track of a device and process, or PLUMB_NONE. */
static uint32_t
main_of(const struct plumb_iterations *found, const struct plumb_track *track)
{
	const struct plumb_iteration_track *at = found->tracks;
	uint32_t low =
		plumb_search(i, found->count,
	                     at[i].device < track->device || (at[i].device == track->device &&
	                                                      at[i].process < track->process));

	return low < found->count && at[low].device == track->device &&
	                       at[low].process == track->process
	               ? low
	               : PLUMB_NONE;
}

static bool
sum_copies(struct finder *f)
{
	const struct plumb_profile *p = f->profile;

	f->copied = calloc((size_t)f->found->count + 1, sizeof *f->copied);
	for (uint32_t i = 0; f->copied && i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];
		uint32_t at = PLUMB_NONE;

		if (v->metric == PLUMB_METRIC_GPU_COPY_BYTES &&
		    f->sorts[v->context] == COPY_FROM_HOST && v->track < p->tracks_count)
			at = main_of(f->found, &p->tracks[v->track]);
		if (at == PLUMB_NONE)
			continue;
		f->copied[at].counted += v->count;
		if (f->copied[at].sum == PLUMB_UNKNOWN ||
		    __builtin_add_overflow(f->copied[at].sum, v->sum, &f->copied[at].sum))
			f->copied[at].sum = PLUMB_UNKNOWN;
	}
	return f->copied;
}

/* ---- the loops of a main track ---- */

/* Names become symbols, numbered in the order of their first kernels. */
static int
find_on(const struct finder *f, struct plumb_iteration_work *work,
        struct plumb_iteration_track *track)
{
	const struct plumb_profile *p = f->profile;
	uint32_t n = work->kernels.count;
	int32_t *text = plumb_large(((size_t)n + 1) * sizeof *text), alphabet = 0;
	uint32_t *symbols = f->symbols;
	uint32_t *frames = malloc(((size_t)n + 1) * sizeof *frames);
	int code = PLUMB_ESYSTEM;

	if (text && frames && n <= INT32_MAX) {
		for (uint32_t i = 0; i < n; i++) {
			uint32_t frame =
				p->contexts[plumb_iteration_kernel(work, i)->context].frame;
			uint32_t name = p->frames[frame].name + 1; /* PLUMB_NONE + 1 is 0 */

			if (!symbols[name]) {
				frames[alphabet] = frame;
				symbols[name] = (uint32_t)++alphabet;
			}
			text[i] = (int32_t)symbols[name] - 1;
		}
		for (int32_t i = 0; i < alphabet; i++)
			symbols[p->frames[frames[i]].name + 1] = 0;
		struct plumb_iteration_names names = { text, (int32_t)n, alphabet, frames };

		struct plumb_loops loops = { 0 };

		code = plumb_iterations_loops(work, &names, &loops);
		/* Not before it is needed: there may be as many intervals as kernels. */
		if (!code && loops.count && !gather_times(f, track, work))
			code = PLUMB_ESYSTEM;
		if (!code)
			code = plumb_iterations_levels(work, &names, &loops, f->limits, track);
		plumb_loops_free(&loops);
	}
	free(text);
	free(frames);
	return code;
}

static int
find_main(struct finder *f, struct plumb_iteration_track *track)
{
	const struct copied *copied = &f->copied[track - f->found->tracks];
	struct plumb_iteration_work work = { .profile = f->profile,
		                             .tracks = &f->tracks,
		                             .spans = f->gpu.spans };
	int code = PLUMB_ESYSTEM;

	if (gather_work(f, track, &work)) {
		if (work.copies.count)
			qsort(work.copies.items, work.copies.count, sizeof *work.copies.items,
			      by_start);
		/* Unknown where not every copy told its size. */
		if (copied->counted >= work.copies.count)
			track->copy_bytes = copied->sum;
		code = find_on(f, &work, track);
	}
	plumb_vec_free(&work.kernels);
	plumb_vec_free(&work.copies);
	plumb_vec_free(&work.busy);
	plumb_vec_free(&work.copying);
	plumb_vec_free(&work.elsewhere);
	return code;
}

int
plumb_iterations_find(const struct plumb_profile *profile,
                      const struct plumb_iteration_limits *limits, struct plumb_iterations *found,
                      struct plumb_error *error)
{
	struct finder f = { .profile = profile, .found = found };
	int code = plumb_gpu_work_find(profile, &f.gpu);

	*found = (struct plumb_iterations){ .newest = f.gpu.newest };
	f.limits = limits ? limits : &plumb_iteration_limits;
	f.symbols = calloc((size_t)profile->strings_count + 2, sizeof *f.symbols);
	if (plumb_track_index_new(profile, &f.tracks) || code || !f.symbols || !sort_contexts(&f) ||
	    !find_tracks(&f) || !sum_copies(&f))
		code = PLUMB_ESYSTEM;
	for (uint32_t i = 0; !code && i < found->count; i++)
		if (found->tracks[i].role == PLUMB_ROLE_MAIN)
			code = find_main(&f, &found->tracks[i]);
	free(f.sorts);
	free(f.copy_size);
	free(f.copied);
	free(f.symbols);
	plumb_track_index_free(&f.tracks);
	plumb_gpu_work_free(&f.gpu);
	return code ? plumb_fail_memory(error, NULL) : 0;
}

/* ---- kernels by their numbers ---- */

static int
take_kernels(const struct plumb_span *spans, const uint32_t *order, uint32_t count,
             struct plumb_iteration_kernels *kernels)
{
	kernels->items = plumb_large(((size_t)count + 1) * sizeof *kernels->items);
	if (!kernels->items)
		return PLUMB_ESYSTEM;
	kernels->count = count;
	for (uint32_t i = 0; i < count; i++) {
		const struct plumb_span *span = &spans[order[i]];

		kernels->items[i] = (struct plumb_iteration_kernel){ span->start_ns, span->end_ns,
			                                             span->context };
	}
	return 0;
}

int
plumb_iterations_kernels(const struct plumb_profile *profile,
                         const struct plumb_iteration_track *track,
                         struct plumb_iteration_kernels *kernels)
{
	struct finder f = { .profile = profile };
	struct plumb_iteration_work work = { .profile = profile };
	int code = PLUMB_ESYSTEM;

	*kernels = (struct plumb_iteration_kernels){ 0 };
	if (track->order)
		return take_kernels(profile->spans, track->order, track->ops, kernels);
	if (!plumb_gpu_work_find(profile, &f.gpu) && !plumb_track_index_new(profile, &f.tracks) &&
	    sort_contexts(&f) && gather_work(&f, track, &work))
		code = take_kernels(f.gpu.spans, work.kernels.items, work.kernels.count, kernels);
	plumb_vec_free(&work.kernels);
	plumb_vec_free(&work.copies);
	free(f.sorts);
	free(f.copy_size);
	plumb_track_index_free(&f.tracks);
	plumb_gpu_work_free(&f.gpu);
	return code;
}

void
plumb_iteration_track_free_loops(struct plumb_iteration_track *track)
{
	for (uint32_t o = 0; o < track->loop_count; o++)
		for (uint32_t l = 0; l < track->loops[o].level_count; l++) {
			free(track->loops[o].levels[l].items);
			free(track->loops[o].levels[l].odd);
		}
	free(track->loops);
	free(track->stretches);
	free(track->order);
}

void
plumb_iterations_free(struct plumb_iterations *found)
{
	for (uint32_t t = 0; t < found->count; t++)
		plumb_iteration_track_free_loops(&found->tracks[t]);
	free(found->tracks);
	*found = (struct plumb_iterations){ 0 };
}
