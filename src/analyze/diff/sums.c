/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of a metric by iteration, from single spans or the newest GPU work. What a GPU did is put
 * into the iterations of that GPU; of several GPUs the last iterations are taken to be the same.
 * What a thread did is put into those that a marker tells, else into those of the first GPU, which
 * lag behind the host by a time that is much the same from one to the next.
 */
#include <math.h>
#include <stdlib.h>

#include "analyze/diff/diff_private.h"
#include "analyze/statistic.h"
#include "base/search.h"

#define CELLS_MOST (UINT32_C(1) << 24) /* of more, the newest iterations */

struct summing {
	const struct diff_run *run;
	const uint32_t *ids;
	uint32_t metric;
	struct diff_sums *out;
};

/* The window that TIME is in, counted so that the last of all is the last of the sums. */
static int64_t
window_of(const struct diff_windows *w, int64_t time, uint32_t windows)
{
	uint32_t low = plumb_search(i, w->count, w->end[i] <= time);
	if (low == w->count || w->start[low] > time)
		return -1;
	return (int64_t)low - ((int64_t)w->count - windows);
}

static void
add_amount(const struct summing *s, const struct diff_windows *w, uint32_t context, int64_t start,
           double amount)
{
	int64_t window = window_of(w, start, s->out->windows);
	uint32_t id = s->ids[context];

	if (window >= 0 && id != PLUMB_NONE)
		s->out->sums[(size_t)id * s->out->windows + (size_t)window] += amount;
}

/* ---- GPUs ---- */

static bool
is_of_metric(uint32_t kind, uint32_t metric)
{
	if (metric == PLUMB_METRIC_GPU_TIME)
		return kind == PLUMB_FRAME_KERNEL;
	return kind == PLUMB_FRAME_COPY || kind == PLUMB_FRAME_SET;
}

static const struct diff_windows *
windows_of(const struct diff_steps *steps, uint32_t device)
{
	for (uint32_t i = 0; i < steps->gpu_count; i++)
		if (steps->gpus[i].device == device)
			return &steps->gpus[i];
	return NULL;
}

static void
sum_gpus(const struct summing *s)
{
	const struct plumb_profile *p = s->run->profile;

	for (uint32_t t = 0; t < p->tracks_count; t++) {
		struct plumb_gpu_range range = plumb_gpu_work_of(&s->run->gpu, t);
		const struct diff_windows *w = windows_of(&s->run->steps, p->tracks[t].device);

		for (uint32_t i = range.first; w && i < range.end; i++) {
			const struct plumb_span *span = &s->run->gpu.spans[i];

			if (span->end_ns >= span->start_ns &&
			    is_of_metric(plumb_context_frame(p, span->context)->kind, s->metric))
				add_amount(s, w, span->context, span->start_ns,
				           (double)span->end_ns - (double)span->start_ns);
		}
	}
}

/* ---- threads ---- */

static bool
is_host(const struct plumb_profile *p, const struct plumb_span *span)
{
	uint32_t kind = plumb_context_frame(p, span->context)->kind;

	return p->tracks[span->track].kind == PLUMB_TRACK_THREAD &&
	       (kind == PLUMB_FRAME_OPERATOR || kind == PLUMB_FRAME_RANGE);
}

/* The time of each operator without the operators in it: spans are by start, the longer first. */
static bool
sum_host(const struct summing *s, const struct diff_windows *w)
{
	const struct plumb_profile *p = s->run->profile;
	PLUMB_VEC(uint32_t) open = { 0 };
	bool ok = true;

	for (uint32_t i = 0; ok && i < p->spans_count; i++) {
		const struct plumb_span *span = &p->spans[i];
		bool time = s->metric == PLUMB_METRIC_OP_TIME;

		if (!is_host(p, span) || span->end_ns < span->start_ns)
			continue;
		while (open.count) {
			const struct plumb_span *outer = &p->spans[open.items[open.count - 1]];

			if (outer->track == span->track && outer->end_ns > span->start_ns)
				break;
			open.count--;
		}
		double length = (double)span->end_ns - (double)span->start_ns;
		if (open.count && time) {
			const struct plumb_span *outer = &p->spans[open.items[open.count - 1]];

			add_amount(s, w, outer->context, outer->start_ns, -length);
		}
		add_amount(s, w, span->context, span->start_ns, time ? length : 1);
		uint32_t *top = plumb_vec_add(&open);
		ok = top;
		if (ok)
			*top = i;
	}
	plumb_vec_free(&open);
	return ok;
}

/* ---- either ---- */

int
diff_windows_outliers(const struct diff_windows *w, uint32_t windows, unsigned char *left_out)
{
	double *times = malloc((windows + (size_t)1) * sizeof *times);
	double *sorted = malloc((windows + (size_t)1) * sizeof *sorted), middle, limit = 0;
	uint32_t count = 0, from = w->count - windows;

	for (uint32_t i = 0; times && sorted && i < windows; i++)
		times[i] = sorted[i] = (double)(w->end[from + i] - w->start[from + i]);
	if (times && sorted && windows) {
		middle = plumb_median(sorted, windows);
		limit = middle +
		        fmax(5 * plumb_median_deviation(sorted, windows, middle), middle / 20);
		for (uint32_t i = 0; i < windows; i++)
			count += times[i] > limit;
		if (count > windows / 4)
			count = 0;
		for (uint32_t i = 0; left_out && i < windows; i++)
			left_out[i] = count && times[i] > limit;
	}
	free(times);
	free(sorted);
	return times && sorted ? (int)count : PLUMB_ESYSTEM;
}

/* Initialising, compiling, trying algorithms out, and what interrupts the machine, are no part of
 * what an iteration takes. */
static int
leave_out(const struct diff_windows *w, uint32_t ids, struct diff_sums *sums)
{
	unsigned char *out = calloc(sums->windows + (size_t)1, 1);
	int count = out ? diff_windows_outliers(w, sums->windows, out) : PLUMB_ESYSTEM;
	size_t at = 0;

	for (size_t i = 0; count > 0 && i < (size_t)ids * sums->windows; i++)
		if (!out[i % sums->windows])
			sums->sums[at++] = sums->sums[i];
	if (count > 0)
		sums->windows -= (uint32_t)count;
	free(out);
	return count < 0 ? count : 0;
}

int
diff_sums_make(const struct diff_run *run, uint32_t metric, const uint32_t *ids, uint32_t count,
               struct diff_sums *sums)
{
	struct summing s = { run, ids, metric, sums };
	bool gpu = metric == PLUMB_METRIC_GPU_TIME || metric == PLUMB_METRIC_GPU_COPY_TIME;
	bool host = (metric == PLUMB_METRIC_OP_TIME || metric == PLUMB_METRIC_OP_CALLS) &&
	            run->profile->spans_count;
	const struct diff_windows *w = run->steps.host.count  ? &run->steps.host
	                               : run->steps.gpu_count ? &run->steps.gpus[0]
	                                                      : NULL;

	uint32_t least = run->steps.gpu_count ? UINT32_MAX : 0;

	for (uint32_t i = 0; i < run->steps.gpu_count; i++)
		if (run->steps.gpus[i].count < least)
			least = run->steps.gpus[i].count;
	*sums = (struct diff_sums){ 0 };
	if (gpu)
		sums->windows = least;
	else if (host && w)
		sums->windows = w->count;
	if (count && sums->windows > CELLS_MOST / count)
		sums->windows = CELLS_MOST / count;
	if (!sums->windows)
		return 0;
	sums->sums = calloc((size_t)sums->windows * count + 1, sizeof *sums->sums);
	if (!sums->sums)
		return PLUMB_ESYSTEM;
	if (gpu)
		sum_gpus(&s);
	else if (!sum_host(&s, w))
		return PLUMB_ESYSTEM;
	return leave_out(gpu ? &run->steps.gpus[0] : w, count, sums);
}
