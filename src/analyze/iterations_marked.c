/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounds of a thread where a program marks them: with the steps of a framework's profiler; or, if
 * the order of operators shows no loop, with ranges that come evenly.
 *
 * Ranges come evenly if they fill most of the time from start to start, or if that time is about
 * the same for most. An optimizer's step ends a round instead.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/iterations_private.h"
#include "analyze/statistic.h"
#include "base/search.h"
#include "model/framework/framework.h"

#define STEPS_LEAST 8  /* of ranges that come evenly */
#define FILLED 0.5     /* of the time from start to start */
#define DEVIATION 0.35 /* of the median: of times from start to start */
#define LOOPS_MOST 16
#define ROUNDS_LEAST 4
#define SEVERAL 2.5 /* of an optimizer's steps in a range: it is an epoch */
#define NEAR 16     /* places that are looked at one by one */
#define ALIKE 0.8   /* of two rounds: the names at the same places */
#define APART 1.5   /* times the median: what has more between is not of the loop */

struct marked {
	const struct plumb_iteration_work *work;
	const struct plumb_iteration_names *names;
	const struct plumb_marks *marks;
	double *room;   /* for the times of a group */
	int32_t *at;    /* for the places of its marks */
	uint32_t *near; /* the place that was found last */
};

static const struct plumb_mark *
marks_of(const struct marked *m, const struct plumb_mark_group *group)
{
	return &m->marks->items[group->first];
}

bool
plumb_iterations_hold_steps(const struct plumb_marks *marks, const struct plumb_mark_group *group)
{
	const struct plumb_mark *around = &marks->items[group->first];

	if (group->ends || group->nested)
		return false;
	for (uint32_t g = 0; g < marks->groups.count; g++) {
		const struct plumb_mark_group *other = &marks->groups.items[g];
		const struct plumb_mark *steps = &marks->items[other->first];
		uint32_t inside = 0, at = 0;
		if (!other->optimizer_step)
			continue;
		for (uint32_t i = 0; i < group->count; i++) {
			while (at < other->count && steps[at].start_ns < around[i].start_ns)
				at++;
			for (; at < other->count && steps[at].start_ns < around[i].end_ns; at++)
				inside++;
		}
		if (inside > SEVERAL * group->count)
			return true;
	}
	return false;
}

/* Does a framework mark something else with it? A loader marks its end, too. */
static bool
is_part(const struct marked *m, const struct plumb_mark_group *group)
{
	const struct plumb_profile *p = m->work->profile;
	const char *name = plumb_text(p, p->frames[group->frame].name);
	enum plumb_purpose purpose =
		name ? plumb_framework_range(name, strlen(name)) : PLUMB_PURPOSE_NONE;

	return purpose != PLUMB_PURPOSE_NONE && !group->optimizer_step;
}

static bool
is_even(const struct marked *m, const struct plumb_mark_group *group)
{
	const struct plumb_mark *marks = marks_of(m, group);
	double median;

	if (group->nested || group->count < STEPS_LEAST || is_part(m, group) ||
	    plumb_iterations_hold_steps(m->marks, group))
		return false;
	for (uint32_t i = 1; i < group->count; i++)
		m->room[i - 1] = (double)(marks[i].start_ns - marks[i - 1].start_ns);
	median = plumb_median(m->room, group->count - 1);
	return (double)group->total_ns >= FILLED * median * group->count ||
	       plumb_median_deviation(m->room, group->count - 1, median) <= DEVIATION * median;
}

/* ---- rounds ---- */

static bool
begins_before(const struct marked *m, uint32_t place, int64_t at)
{
	return plumb_iteration_kernel(m->work, place)->start_ns < at;
}

/* The first of the thread's operators and ranges that begins at AT or later. Mostly it is near the
 * one that was found last. */
static int32_t
place_of(const struct marked *m, int64_t at)
{
	uint32_t near = *m->near, count = m->work->kernels.count, steps = NEAR;

	while (steps && near < count && begins_before(m, near, at)) {
		near++;
		steps--;
	}
	while (steps && near && !begins_before(m, near - 1, at)) {
		near--;
		steps--;
	}
	if (!steps)
		near = plumb_search(i, count, begins_before(m, i, at));
	*m->near = near;
	return (int32_t)near;
}

static bool
add_round(struct plumb_loop *loop, int32_t start, int32_t end)
{
	struct plumb_round *added = start < end ? plumb_vec_add(&loop->rounds) : NULL;

	if (added)
		*added = (struct plumb_round){ .start = start, .end = end };
	return added || start >= end;
}

/* Is there anything in MARK but itself? */
static bool
holds_work(const struct marked *m, const struct plumb_mark *mark)
{
	uint32_t at = (uint32_t)place_of(m, mark->start_ns);
	const struct plumb_span *span;

	if (at == m->work->kernels.count)
		return false;
	span = plumb_iteration_kernel(m->work, at);
	return span->start_ns < mark->end_ns &&
	       (span->start_ns > mark->start_ns ||
	        m->work->profile->contexts[span->context].frame != mark->frame);
}

/* How many operators and ranges most rounds may have, which go from the START of a mark to that of
 * the next, or from end to end. */
static double
find_near(const struct marked *m, const struct plumb_mark_group *group, const int32_t *at)
{
	for (uint32_t i = 1; i < group->count; i++)
		m->room[i - 1] = at[i] - at[i - 1];
	return group->count > 1 ? APART * plumb_median(m->room, group->count - 1) + 1 : 0;
}

/* A step goes until the next one begins, if that is near. One with nothing in it does not count, if
 * others have something. */
static bool
add_steps(const struct marked *m, const struct plumb_mark_group *group, const int32_t *at,
          struct plumb_loop *loop)
{
	const struct plumb_mark *marks = marks_of(m, group);
	double near = find_near(m, group, at);
	bool ok = true, filled = false;

	for (uint32_t i = 0; !filled && i < group->count; i++)
		filled = holds_work(m, &marks[i]);
	for (uint32_t i = 0; ok && i < group->count; i++) {
		bool next = i + 1 < group->count && at[i + 1] - at[i] <= near;
		if (!filled || holds_work(m, &marks[i]))
			ok = add_round(loop, at[i],
			               next ? at[i + 1] : place_of(m, marks[i].end_ns));
	}
	return ok;
}

/* Is what lies before the COUNT places from AT on the same as these? */
static bool
is_like_before(const struct marked *m, int32_t at, int32_t count)
{
	const int32_t *text = m->names->text + at;
	int32_t same = 0;

	if (at < count)
		return false;
	for (int32_t i = 0; i < count; i++)
		same += text[i] == text[i - count];
	return same >= ALIKE * count;
}

/* From the end of one to that of the next. What is before the first may be start-up, or another
 * loop: it is a round as far as it is like the next. */
static bool
add_ends(const struct marked *m, const struct plumb_mark_group *group, const int32_t *at,
         struct plumb_loop *loop)
{
	double near = find_near(m, group, at);
	bool ok = true;

	for (uint32_t i = 1; ok && i < group->count; i++) {
		int32_t size = at[i] - at[i - 1];
		bool first = i == 1 || at[i - 1] - at[i - 2] > near;
		if (size > near)
			continue;
		if (first && is_like_before(m, at[i - 1], size))
			ok = add_round(loop, at[i - 1] - size, at[i - 1]);
		ok = ok && add_round(loop, at[i - 1], at[i]);
	}
	return ok;
}

/* Steps at the beginning that do much more than most are start-up. */
static void
drop_startup(const struct marked *m, const struct plumb_mark_group *group, struct plumb_loop *loop)
{
	double near = find_near(m, group, m->at);
	uint32_t first = 0;

	while (first + ROUNDS_LEAST < loop->rounds.count &&
	       loop->rounds.items[first].end - loop->rounds.items[first].start > near)
		first++;
	loop->rounds.count -= first;
	memmove(loop->rounds.items, loop->rounds.items + first,
	        loop->rounds.count * sizeof *loop->rounds.items);
}

/* The loop that GROUP marks; without rounds if there are less than LEAST. */
static bool
make_loop(const struct marked *m, const struct plumb_mark_group *group, uint32_t least,
          struct plumb_loop *loop)
{
	const struct plumb_mark *marks = marks_of(m, group);
	const struct plumb_round *round;

	*loop = (struct plumb_loop){ .phase = (uint32_t)(group - m->marks->groups.items),
		                     .match = NAN };
	for (uint32_t i = 0; i < group->count; i++)
		m->at[i] = place_of(m, group->ends ? marks[i].end_ns : marks[i].start_ns);
	if (!(group->ends ? add_ends : add_steps)(m, group, m->at, loop))
		return false;
	if (group->steps)
		drop_startup(m, group, loop);
	if (loop->rounds.count < least) {
		plumb_loop_free(loop);
		return true;
	}
	round = &loop->rounds.items[loop->rounds.count / 2];
	loop->period = round->end - round->start;
	loop->pattern = malloc((size_t)loop->period * sizeof *loop->pattern);
	for (int32_t i = 0; loop->pattern && i < loop->period; i++)
		loop->pattern[i] = m->names->text[round->start + i];
	for (uint32_t r = 0; r < loop->rounds.count; r++)
		loop->agree += loop->rounds.items[r].end - loop->rounds.items[r].start;
	return loop->pattern;
}

/* ---- which groups ---- */

static bool
overlaps(const struct plumb_loop *a, const struct plumb_loop *b)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < a->rounds.count; i++) {
		while (at < b->rounds.count && b->rounds.items[at].end <= a->rounds.items[i].start)
			at++;
		if (at < b->rounds.count && b->rounds.items[at].start < a->rounds.items[i].end)
			return true;
	}
	return false;
}

/* Adds what GROUP marks, unless loops that were added before have some of it. */
static int
add_loop(const struct marked *m, const struct plumb_mark_group *group, uint32_t least,
         struct plumb_loops *loops)
{
	struct plumb_loop loop, *added;
	bool ok = make_loop(m, group, least, &loop), apart = loop.rounds.count > 0;

	for (uint32_t l = 0; apart && l < loops->count; l++)
		apart = !overlaps(&loop, &loops->items[l]);
	added = ok && apart ? plumb_vec_add(loops) : NULL;
	if (added)
		*added = loop;
	else
		plumb_loop_free(&loop);
	return ok && (added || !apart) ? 0 : PLUMB_ESYSTEM;
}

/* The group that is not TAKEN with the longest time. Ends of rounds come after all others. */
static uint32_t
next_group(const struct marked *m, const bool *taken)
{
	uint32_t best = PLUMB_NONE;

	for (uint32_t g = 0; g < m->marks->groups.count; g++) {
		const struct plumb_mark_group *group = &m->marks->groups.items[g];
		const struct plumb_mark_group *other =
			best == PLUMB_NONE ? NULL : &m->marks->groups.items[best];
		if (taken[g])
			continue;
		if (!other ||
		    (group->ends != other->ends ? other->ends : group->total_ns > other->total_ns))
			best = g;
	}
	return best;
}

int
plumb_iterations_marked(const struct plumb_iteration_work *work,
                        const struct plumb_iteration_names *names, enum plumb_marked_rounds rounds,
                        struct plumb_loops *loops)
{
	struct marked m = { .work = work, .names = names, .marks = &work->tracks->marks };
	bool steps = rounds == PLUMB_ROUNDS_STEPS;
	bool *taken = calloc((size_t)m.marks->groups.count + 1, sizeof *taken);
	uint32_t g, near = 0;
	int code = 0;

	m.near = &near;
	m.room = malloc(((size_t)m.marks->count + 1) * sizeof *m.room);
	m.at = malloc(((size_t)m.marks->count + 1) * sizeof *m.at);
	if (!taken || !m.room || !m.at)
		code = PLUMB_ESYSTEM;
	for (g = 0; !code && g < m.marks->groups.count; g++) {
		const struct plumb_mark_group *group = &m.marks->groups.items[g];

		taken[g] = steps ? !group->steps : !is_even(&m, group);
	}
	while (!code && loops->count < LOOPS_MOST && (g = next_group(&m, taken)) != PLUMB_NONE) {
		taken[g] = true;
		code = add_loop(&m, &m.marks->groups.items[g], steps ? 1 : STEPS_LEAST - 1, loops);
	}
	free(taken);
	free(m.room);
	free(m.at);
	return code;
}
