/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/path/part.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"

/* ---- the median iteration ---- */

struct ranked {
	int64_t ns;
	uint32_t item;
};

static int
by_length(const void *x, const void *y)
{
	const struct ranked *a = x, *b = y;

	return a->ns != b->ns ? (a->ns > b->ns ? 1 : -1)
	                      : (a->item > b->item) - (a->item < b->item);
}

uint32_t
plumb_path_median(const struct plumb_iteration_level *level, uint32_t first, uint32_t count)
{
	struct ranked *ranked = count ? malloc(count * sizeof *ranked) : NULL;
	uint32_t n = 0, median;

	if (!ranked)
		return PLUMB_NONE;
	for (int with = 1; with >= 0 && !n; with--)
		for (uint32_t i = first; i < first + count; i++) {
			const struct plumb_iteration *item = &level->items[i];

			if (!with || item->interval_ns != PLUMB_UNKNOWN)
				ranked[n++] = (struct ranked){ plumb_iteration_time(item), i };
		}
	qsort(ranked, n, sizeof *ranked, by_length);
	median = ranked[(n - 1) / 2].item;
	free(ranked);
	return median;
}

/* ---- around an iteration ---- */

struct around {
	const struct plumb_iteration_level *level;
	uint32_t *begun; /* by iteration: spans that begin in it or before */
	uint32_t *over;  /* by iteration: spans that are over before it begins */
};

/* Does iteration I begin by AT? */
static bool
begins_by(const struct plumb_iteration_level *level, uint32_t i, int64_t at)
{
	return plumb_iteration_from(&level->items[i]) <= at;
}

/* How many iterations begin by AT. Mostly it is GUESS, or one more. */
static uint32_t
begin_by(const struct plumb_iteration_level *level, int64_t at, uint32_t guess)
{
	for (uint32_t n = guess; n < guess + 2 && n <= level->count; n++)
		if ((!n || begins_by(level, n - 1, at)) &&
		    (n == level->count || !begins_by(level, n, at)))
			return n;
	return plumb_search(i, level->count, begins_by(level, i, at));
}

static void
count_around(const struct plumb_profile *p, struct around *a)
{
	uint32_t n = a->level->count;
	int64_t end = a->level->items[n - 1].end_ns;
	uint32_t guess = 0;

	for (uint32_t i = 0; i < p->spans_count; i++) {
		const struct plumb_span *span = &p->spans[i];
		uint32_t bin;

		if (!plumb_is_time(span->start_ns, span->end_ns) || span->start_ns >= end)
			continue;
		bin = guess = begin_by(a->level, span->start_ns, guess);
		a->begun[bin ? bin - 1 : 0]++;
		/* Most are over in the iteration that they begin in. */
		while (bin < n && plumb_iteration_from(&a->level->items[bin]) <= span->end_ns)
			bin = begin_by(a->level, span->end_ns, bin + 1);
		if (bin < n)
			a->over[bin]++;
	}
	for (uint32_t i = 1; i < n; i++) {
		a->begun[i] += a->begun[i - 1];
		a->over[i] += a->over[i - 1];
	}
}

/* From the median one to either side, while there is room. */
static bool
widen_part(const struct around *a, struct plumb_path_part *part)
{
	uint32_t first = plumb_path_median(a->level, 0, a->level->count), last = first;
	bool wider = true;

	if (first == PLUMB_NONE || a->begun[last] - a->over[first] > part->most)
		return false;
	while (wider) {
		wider = false;
		if (last + 1 < a->level->count &&
		    a->begun[last + 1] - a->over[first] <= part->most) {
			last++;
			wider = true;
		}
		if (first && a->begun[last] - a->over[first - 1] <= part->most) {
			first--;
			wider = true;
		}
	}
	part->first = first;
	part->last = last;
	part->start_ns = plumb_iteration_from(&a->level->items[first]);
	part->end_ns = a->level->items[last].end_ns;
	return true;
}

/* 1 with PART filled, 0 where not one iteration fits, PLUMB_ESYSTEM. */
static int
find_around(const struct plumb_profile *p, const struct plumb_iteration_track *track,
            struct plumb_path_part *part)
{
	struct around a = { .level = &track->levels[0] };
	int code = PLUMB_ESYSTEM;

	a.begun = calloc(a.level->count, sizeof *a.begun);
	a.over = calloc(a.level->count, sizeof *a.over);
	if (a.begun && a.over) {
		count_around(p, &a);
		code = widen_part(&a, part);
		part->track = code ? track->track : PLUMB_NONE;
	}
	free(a.begun);
	free(a.over);
	return code;
}

/* ---- the last stretch of time ---- */

#define BINS 4096

/* Each round finds within which bin of time the spans that are over after it become too many, and
 * looks into that one, until it is so small that little is lost. */
static int
find_last(const struct plumb_profile *p, struct plumb_path_part *part)
{
	uint32_t *bins = malloc(BINS * sizeof *bins), later = 0, within = UINT32_MAX;
	int64_t low = INT64_MAX, high = INT64_MIN;

	for (uint32_t i = 0; i < p->spans_count; i++) {
		const struct plumb_span *span = &p->spans[i];

		if (!plumb_is_time(span->start_ns, span->end_ns))
			continue;
		low = span->end_ns < low ? span->end_ns : low;
		high = span->end_ns > high ? span->end_ns : high;
	}
	part->start_ns = part->end_ns = high;
	while (bins && low <= high && within > part->most / 64) {
		int64_t width = (high - low) / BINS + 1;
		uint32_t bin = BINS;

		memset(bins, 0, BINS * sizeof *bins);
		for (uint32_t i = 0; i < p->spans_count; i++) {
			const struct plumb_span *span = &p->spans[i];

			if (plumb_is_time(span->start_ns, span->end_ns) && span->end_ns >= low &&
			    span->end_ns <= high)
				bins[(span->end_ns - low) / width]++;
		}
		while (bin && later + bins[bin - 1] <= part->most)
			later += bins[--bin];
		part->start_ns = low + (int64_t)bin * width;
		if (!bin || width == 1)
			break;
		within = bins[bin - 1];
		high = part->start_ns - 1;
		low = part->start_ns - width;
	}
	free(bins);
	return bins ? 0 : PLUMB_ESYSTEM;
}

/* ---- both ---- */

/* The track whose iterations are meant; NULL: there is no loop. */
static const struct plumb_iteration_track *
find_track(const struct plumb_iterations *found, uint32_t track)
{
	const struct plumb_iteration_track *best = NULL;

	for (uint32_t t = 0; t < found->count; t++) {
		const struct plumb_iteration_track *one = &found->tracks[t];

		if (one->role != PLUMB_ROLE_MAIN || !one->level_count || !one->levels[0].count)
			continue;
		if (one->track == track)
			return one;
		if (!best || one->ops > best->ops)
			best = one;
	}
	return best;
}

int
plumb_path_part_find(const struct plumb_profile *p, const struct plumb_iterations *found,
                     uint32_t track, uint32_t most, struct plumb_path_part *part,
                     struct plumb_error *error)
{
	const struct plumb_iteration_track *around = find_track(found, track);
	int code = 0;

	*part = (struct plumb_path_part){ .whole = p->spans_count <= most,
		                          .start_ns = INT64_MIN,
		                          .end_ns = INT64_MAX,
		                          .most = most,
		                          .track = PLUMB_NONE };
	if (part->whole)
		return 0;
	if (around)
		code = find_around(p, around, part);
	if (!code)
		code = find_last(p, part);
	if (code < 0)
		return plumb_fail_memory(error, "for the critical path");
	if (part->start_ns >= part->end_ns)
		return plumb_fail(error, PLUMB_EEMPTY, "too many spans end at the same time");
	return 0;
}

/* Cuts SPAN to PART. False: it lies outside. */
static inline bool
cut_span(const struct plumb_path_part *part, struct plumb_span *span)
{
	if (!plumb_is_time(span->start_ns, span->end_ns) || span->start_ns >= part->end_ns ||
	    (span->end_ns <= part->start_ns && span->start_ns < part->start_ns))
		return false;
	if (span->start_ns < part->start_ns)
		span->start_ns = part->start_ns;
	if (span->end_ns > part->end_ns)
		span->end_ns = part->end_ns;
	return true;
}

struct plumb_span *
plumb_path_part_spans(const struct plumb_profile *p, const struct plumb_path_part *part,
                      uint32_t *count)
{
	struct plumb_span *spans, span;
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->spans_count; i++) {
		span = p->spans[i];
		n += cut_span(part, &span);
	}
	spans = malloc(((size_t)n + 1) * sizeof *spans);
	*count = 0;
	for (uint32_t i = 0; spans && i < p->spans_count; i++) {
		span = p->spans[i];
		if (cut_span(part, &span))
			spans[(*count)++] = span;
	}
	return spans;
}

struct plumb_span *
plumb_path_part_take(struct plumb_profile *p, const struct plumb_path_part *part, uint32_t *count)
{
	struct plumb_span *spans = p->spans, *less;

	*count = 0;
	for (uint32_t i = 0; i < p->spans_count; i++) {
		struct plumb_span span = spans[i];

		if (cut_span(part, &span))
			spans[(*count)++] = span;
	}
	p->spans = NULL;
	p->spans_count = p->spans_room = 0;
	less = realloc(spans, ((size_t)*count + 1) * sizeof *spans);
	return less ? less : spans;
}
