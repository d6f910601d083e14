/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/steps/marked.h"

#include <stdio.h>

#include "base/search.h"
#include "base/sort.h"
#include "model/intervals.h"

/* ---- when iterations were launched ---- */

/* When OP was launched; PLUMB_UNKNOWN where its call is not in the profile. */
static int64_t
find_launched(const struct plumb_moments *m, uint32_t op)
{
	uint32_t call = plumb_moments_call(m, op);

	return call == PLUMB_NONE ? PLUMB_UNKNOWN : m->profile->spans[call].start_ns;
}

/* When each iteration's first kernel was launched, ascending. */
static void
find_begins(const struct plumb_moments *m, const struct plumb_iteration_level *level,
            int64_t *begins)
{
	for (uint32_t i = 0; i < level->count; i++) {
		int64_t start = level->items[i].start_ns;

		begins[i] = find_launched(m, plumb_moments_kernel(m, plumb_moments_op(m, start)));
		if (begins[i] == PLUMB_UNKNOWN)
			begins[i] = level->items[i].start_ns;
	}
	plumb_sort_numbers(begins, level->count);
}

/* When the middle one of each iteration's kernels was launched; PLUMB_UNKNOWN. */
static void
find_middles(const struct plumb_moments *m, const struct plumb_iteration_level *level,
             int64_t *middles)
{
	for (uint32_t i = 0; i < level->count; i++) {
		const struct plumb_iteration *item = &level->items[i];
		uint32_t op = plumb_moments_kernel(m, plumb_moments_op(m, item->start_ns));

		for (uint32_t k = 0; k < item->ops / 2 && op < m->ops_count; k++)
			op = plumb_moments_kernel(m, op + 1);
		middles[i] = find_launched(m, op);
	}
}

/* ---- marks ---- */

/* A step goes from a mark to the next one; where marks END steps, from the one before. */
static void
count_agreeing(const struct plumb_mark *marks, uint32_t mark_count, bool end, const int64_t *begins,
               uint32_t count, struct plumb_marked *marked)
{
	uint32_t at = 0;

	for (uint32_t k = 0; k < mark_count; k++) {
		uint32_t next = end ? k : k + 1;
		int64_t from = !end ? marks[k].start_ns : k ? marks[k - 1].start_ns : INT64_MIN;
		int64_t until = next < mark_count ? marks[next].start_ns : INT64_MAX;
		uint32_t within = 0;

		marked->before += marks[k].start_ns <= begins[0];
		if (until <= begins[0] || from > begins[count - 1])
			continue; /* before or after the loop */
		while (at < count && begins[at] < from)
			at++;
		for (; at < count && begins[at] < until; at++)
			within++;
		marked->steps++;
		marked->agree += within == 1;
	}
}

/* The last of the COUNT marks that begins by NS, or COUNT. The last one of all is as long as the
 * longest at most. */
static uint32_t
mark_at(const struct plumb_mark *marks, uint32_t count, int64_t longest, int64_t ns)
{
	uint32_t low = plumb_search(i, count, marks[i].start_ns <= ns);
	if (!low || (low == count && ns - marks[low - 1].start_ns > longest))
		return count;
	return low - 1;
}

/* Gives each iteration the number of the mark that it alone was launched in; how many have one. */
static uint32_t
number_iterations(const struct plumb_mark *marks, uint32_t count, const int64_t *middles,
                  uint32_t iterations, int64_t *numbers)
{
	uint32_t last = count, last_of = 0, numbered = 0;
	int64_t longest = 0;

	for (uint32_t k = 0; k < count; k++) {
		int64_t own = marks[k].end_ns - marks[k].start_ns;
		int64_t next = k + 1 < count ? marks[k + 1].start_ns - marks[k].start_ns : 0;

		longest = own > longest ? own : longest;
		longest = next > longest ? next : longest;
	}
	for (uint32_t i = 0; i < iterations; i++) {
		uint32_t k = middles[i] == PLUMB_UNKNOWN
		                     ? count
		                     : mark_at(marks, count, longest, middles[i]);

		numbers[i] = k == count ? PLUMB_UNKNOWN : marks[k].number;
		numbered += k < count;
		if (k < count && k == last) {
			numbered -= numbers[last_of] != PLUMB_UNKNOWN ? 2 : 1;
			numbers[i] = numbers[last_of] = PLUMB_UNKNOWN;
		}
		if (k < count) {
			last = k;
			last_of = i;
		}
	}
	return numbered;
}

/* By the group that numbers most iterations, and half of them at least; of equal ones
 * ProfilerStep. */
static int
find_numbers(const struct plumb_moments *m, const struct plumb_iteration_level *level,
             const struct plumb_marks *marks, struct plumb_marked *marked)
{
	int64_t *middles = malloc(((size_t)level->count + 1) * sizeof *middles);
	int64_t *numbers = malloc(((size_t)level->count + 1) * sizeof *numbers);
	uint32_t most = level->count / 2;

	if (middles && numbers)
		find_middles(m, level, middles);
	for (uint32_t g = 0; middles && numbers && g < marks->groups.count; g++) {
		const struct plumb_mark_group *group = &marks->groups.items[g];
		uint32_t n;

		if (!group->numbered)
			continue;
		n = number_iterations(&marks->items[group->first], group->count, middles,
		                      level->count, numbers);
		if (n < most || !n || (n == most && marked->numbers && !group->steps))
			continue;
		int64_t *old = marked->numbers;

		most = n;
		marked->numbers = numbers;
		plumb_mark_group_name(m->profile, group, marked->numbered, 120);
		numbers = old ? old : malloc(((size_t)level->count + 1) * sizeof *numbers);
	}
	bool done = middles && numbers;
	free(middles);
	free(numbers);
	return done ? 0 : PLUMB_ESYSTEM;
}

int
plumb_marked_find(const struct plumb_moments *m, const struct plumb_iteration_level *level,
                  struct plumb_marked *marked)
{
	const struct plumb_marks *marks = plumb_track_index_marks(&m->shared->tracks, m->process);
	int64_t *begins = malloc(((size_t)level->count + 1) * sizeof *begins);
	int code = begins && marks ? 0 : PLUMB_ESYSTEM;
	uint32_t chosen = PLUMB_NONE;

	*marked = (struct plumb_marked){ .frame = PLUMB_NONE };
	if (!code && level->count) {
		find_begins(m, level, begins);
		chosen = plumb_marks_choose(marks,
		                            &(struct plumb_marks_loop){ level->count, begins[0],
		                                                        begins[level->count - 1] },
		                            PLUMB_MARKS_ANY);
	}
	if (chosen != PLUMB_NONE) {
		const struct plumb_mark_group *group = &marks->groups.items[chosen];

		marked->frame = group->frame;
		plumb_mark_group_name(m->profile, group, marked->name, 120);
		count_agreeing(&marks->items[group->first], group->count, group->ends, begins,
		               level->count, marked);
	}
	if (!code && level->count)
		code = find_numbers(m, level, marks, marked);
	free(begins);
	return code;
}

void
plumb_marked_free(struct plumb_marked *marked)
{
	free(marked->numbers);
	*marked = (struct plumb_marked){ .frame = PLUMB_NONE };
}

/* ---- other processes ---- */

/* When the device had work of the process or, if OTHER, of other processes; merged. False: memory
 * is out. */
static bool
gather_intervals(const struct plumb_moments *m, bool other, struct plumb_interval_ns **items,
                 uint32_t *count)
{
	*items = malloc(((size_t)m->ops_count + 1) * sizeof **items);
	*count = 0;
	for (uint32_t i = 0; *items && i < m->ops_count; i++) {
		const struct plumb_span *span = plumb_moments_span(m, i);

		if ((m->ops[i].sort == PLUMB_STEP_OTHER) == other)
			(*items)[(*count)++] =
				(struct plumb_interval_ns){ span->start_ns, span->end_ns };
	}
	if (*items)
		plumb_intervals_merge(*items, count);
	return *items != NULL;
}

static bool
has_others(const struct plumb_moments *m)
{
	for (uint32_t i = 0; i < m->ops_count; i++)
		if (m->ops[i].sort == PLUMB_STEP_OTHER)
			return true;
	return false;
}

int64_t *
plumb_contended_find(const struct plumb_moments *m, const struct plumb_iteration_level *level,
                     bool *others)
{
	struct plumb_interval_ns *own = NULL, *other = NULL;
	int64_t *contended = calloc((size_t)level->count + 1, sizeof *contended);
	uint32_t own_count, other_count, first = 0;

	*others = has_others(m);
	if (!contended || !*others)
		return contended;
	if (!gather_intervals(m, false, &own, &own_count) ||
	    !gather_intervals(m, true, &other, &other_count)) {
		free(own);
		free(other);
		free(contended);
		return NULL;
	}
	for (uint32_t i = 0, o = 0; i < level->count; i++) {
		const struct plumb_iteration *item = &level->items[i];
		int64_t from = plumb_iteration_from(item);
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
