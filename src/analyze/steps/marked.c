/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/steps/marked.h"

#include <string.h>

#include "base/sort.h"
#include "model/intervals.h"

/* ---- marks ---- */

/* ProfilerStep's frame, else that of ranges that come once an iteration: of several the longest. */
static uint32_t
choose_mark(const struct plumb_profile *p, const struct plumb_marks *marks, uint32_t iterations,
            uint32_t *counts)
{
	uint32_t best = PLUMB_NONE;
	int64_t longest = -1;

	for (uint32_t i = 0; i < marks->count; i++)
		counts[marks->items[i].frame]++;
	for (uint32_t f = 0; f < p->frames_count; f++) {
		const char *name = counts[f] ? plumb_text(p, p->frames[f].name) : NULL;

		if (name && !strcmp(name, "ProfilerStep") && counts[f] > 1)
			return f;
	}
	for (uint32_t i = 0; i < marks->count; i++) {
		const struct plumb_mark *mark = &marks->items[i];
		uint32_t count = counts[mark->frame];

		if (count > 1 && count + 1 >= iterations && count <= iterations + 1 &&
		    mark->end_ns - mark->start_ns > longest) {
			longest = mark->end_ns - mark->start_ns;
			best = mark->frame;
		}
	}
	return best;
}

/* When each iteration's first kernel was launched, ascending. */
static void
find_begins(const struct plumb_moments *m, const struct plumb_iteration_level *level,
            int64_t *begins)
{
	for (uint32_t i = 0; i < level->count; i++) {
		uint32_t op = plumb_moments_op(m, level->items[i].start_ns), call;

		while (op + 1 < m->ops_count && m->ops[op].sort != PLUMB_STEP_KERNEL &&
		       m->ops[op + 1].start_ns == level->items[i].start_ns)
			op++;
		call = op < m->ops_count
		               ? plumb_launch_of(m->launches, m->process, m->ops[op].correlation)
		               : PLUMB_NONE;
		begins[i] = call == PLUMB_NONE ? level->items[i].start_ns
		                               : m->profile->spans[call].start_ns;
	}
	plumb_sort_numbers(begins, level->count);
}

static void
count_agreeing(const int64_t *marks, uint32_t mark_count, const int64_t *begins, uint32_t count,
               struct plumb_marked *marked)
{
	uint32_t at = 0;

	for (uint32_t k = 0; k < mark_count; k++) {
		int64_t until = k + 1 < mark_count ? marks[k + 1] : INT64_MAX;
		uint32_t within = 0;

		marked->before += marks[k] <= begins[0];
		if (until <= begins[0])
			continue; /* before the loop */
		while (at < count && begins[at] < marks[k])
			at++;
		for (; at < count && begins[at] < until; at++)
			within++;
		marked->steps++;
		marked->agree += within == 1;
	}
}

int
plumb_marked_find(const struct plumb_moments *m, const struct plumb_iteration_level *level,
                  struct plumb_marked *marked)
{
	const struct plumb_profile *p = m->profile;
	const struct plumb_marks *marks = plumb_track_index_marks(&m->shared->tracks, m->process);
	uint32_t *counts = calloc((size_t)p->frames_count + 1, sizeof *counts), n = 0;
	int64_t *starts = NULL, *begins = malloc(((size_t)level->count + 1) * sizeof *begins);
	int code = counts && begins && marks ? 0 : PLUMB_ESYSTEM;

	*marked = (struct plumb_marked){ .frame = PLUMB_NONE };
	if (!code && level->count)
		marked->frame = choose_mark(p, marks, level->count, counts);
	if (marked->frame != PLUMB_NONE) {
		starts = malloc(((size_t)counts[marked->frame] + 1) * sizeof *starts);
		code = starts ? 0 : PLUMB_ESYSTEM;
	}
	for (uint32_t i = 0; starts && i < marks->count; i++)
		if (marks->items[i].frame == marked->frame)
			starts[n++] = marks->items[i].start_ns;
	if (starts) {
		plumb_sort_numbers(starts, n);
		find_begins(m, level, begins);
		count_agreeing(starts, n, begins, level->count, marked);
	}
	free(counts);
	free(starts);
	free(begins);
	return code;
}

/* ---- other processes ---- */

int64_t *
plumb_contended_find(const struct plumb_moments *m, const struct plumb_iteration_level *level,
                     bool *others)
{
	size_t room = (size_t)m->ops_count + 1;
	struct plumb_interval_ns *own = malloc(room * sizeof *own);
	struct plumb_interval_ns *other = malloc(room * sizeof *other);
	int64_t *contended = calloc((size_t)level->count + 1, sizeof *contended);
	uint32_t own_count = 0, other_count = 0, first = 0;

	*others = false;
	if (!own || !other || !contended) {
		free(own);
		free(other);
		free(contended);
		return NULL;
	}
	for (uint32_t i = 0; i < m->ops_count; i++) {
		struct plumb_interval_ns one = { m->ops[i].start_ns, m->ops[i].end_ns };

		if (m->ops[i].sort == PLUMB_STEP_OTHER)
			other[other_count++] = one;
		else
			own[own_count++] = one;
	}
	plumb_intervals_merge(own, &own_count);
	plumb_intervals_merge(other, &other_count);
	*others = other_count > 0;
	for (uint32_t i = 0, o = 0; i < level->count; i++) {
		const struct plumb_iteration *item = &level->items[i];
		int64_t from = item->interval_ns == PLUMB_UNKNOWN
		                       ? item->start_ns
		                       : item->start_ns - item->interval_ns;
		struct plumb_interval_ns window;
		uint32_t last, at;

		while (first < own_count && own[first].end <= from)
			first++;
		while (o < other_count && other[o].end <= from)
			o++;
		at = o;
		for (last = first; last < own_count && own[last].start < item->end_ns; last++) {
			window.start = own[last].start > from ? own[last].start : from;
			window.end = own[last].end < item->end_ns ? own[last].end : item->end_ns;
			while (at < other_count && other[at].end <= window.start)
				at++;
			for (uint32_t k = at; k < other_count && other[k].start < window.end; k++) {
				int64_t start = other[k].start > window.start ? other[k].start
				                                              : window.start;
				int64_t end = other[k].end < window.end ? other[k].end : window.end;

				contended[i] += end > start ? end - start : 0;
			}
		}
	}
	free(own);
	free(other);
	return contended;
}
