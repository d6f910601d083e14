/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops within loops that are more than levels.
 *
 * The order of kernels alone does not tell an epoch, whose rounds are steps of training and of
 * evaluation, from a step, whose rounds are layers forward and backward. The program does: it marks
 * steps, and steps get data. Where the rounds of the outer loop are marked, it is the loop. Where
 * those of a loop within are, or where those of two or more that make up the outer loop each get a
 * copy from the host, these are the loops, and the outer one is how they take turns.
 *
 * A loop beside another one may be layers, too: those of a prefill, before the decoding, or of a
 * step in which the rest is different. Then it has the rounds of a loop within the other, or as
 * many of them.
 */
#include <math.h>

#include "analyze/iterations_private.h"

#define LONG_ENOUGH 16  /* kernels of a round that may have loops within */
#define MARKS_NEAR 0.05 /* of the rounds may have no mark */
#define GETS_DATA 0.75  /* of the rounds begin with a copy */
#define NAMES_MOST 256  /* names of a round that are looked for */
#define NAMES_LIKE 0.8  /* of them, in a round that is like it */
#define MAKES_UP 0.9    /* of the outer loop */

/* ---- epochs ---- */

static int64_t
start_of(const struct plumb_iteration_work *work, int32_t kernel)
{
	return plumb_iteration_kernel(work, (uint32_t)kernel)->start_ns;
}

/* Is there a copy from the host in most rounds of LOOP, or right before? */
static bool
gets_data(const struct plumb_iteration_work *work, const struct plumb_loop *loop)
{
	uint32_t copy = 0, with = 0;

	for (uint32_t r = 0; r < loop->rounds.count; r++) {
		const struct plumb_round *round = &loop->rounds.items[r];
		int64_t from = start_of(work, round->start ? round->start - 1 : 0);
		int64_t until = start_of(work, round->end - 1);

		while (copy < work->copies.count && work->copies.items[copy].start_ns < from)
			copy++;
		with += copy < work->copies.count && work->copies.items[copy].start_ns < until;
	}
	return with >= GETS_DATA * loop->rounds.count;
}

/* Whether marks of steps come once a round of LOOP, which may lack one of each of its PARTS. */
static bool
is_marked(const struct plumb_iteration_work *work, const struct plumb_loop *loop, uint32_t parts)
{
	double near = fmax(parts, MARKS_NEAR * loop->rounds.count);
	uint32_t process = work->profile->tracks[plumb_iteration_kernel(work, 0)->track].process;
	const struct plumb_marks *marks = plumb_track_index_marks(work->tracks, process);
	int64_t from = start_of(work, loop->rounds.items[0].start);
	int64_t until = start_of(work, loop->rounds.items[loop->rounds.count - 1].end - 1);

	for (uint32_t g = 0; marks && g < marks->groups.count; g++) {
		const struct plumb_mark_group *group = &marks->groups.items[g];
		uint32_t inside = 0;

		if (group->nested || !(group->steps || group->numbered || group->ends))
			continue;
		for (uint32_t i = group->first; i < group->first + group->count; i++)
			inside +=
				marks->items[i].start_ns <= until && marks->items[i].end_ns >= from;
		if (fabs((double)inside - loop->rounds.count) <= near)
			return true;
	}
	return false;
}

/* Finds the rounds of the loops WITHIN in those of OUTER, the longest first. */
static int
follow_within(const struct plumb_iteration_names *names, const struct plumb_loop *outer,
              struct plumb_loops *within)
{
	int32_t from = outer->rounds.items[0].start - outer->period;
	int32_t end = outer->rounds.items[outer->rounds.count - 1].end;
	int code = 0;

	from = from > 0 ? from : 0;
	end = names->count - end > outer->period ? end + outer->period : names->count;
	for (uint32_t l = 0; !code && l < within->count; l++) {
		struct plumb_loop *loop = &within->items[l];

		plumb_loops_hide(within, 0, l, names->text);
		code = plumb_loop_follow(loop, names->text + from, end - from);
		for (uint32_t r = 0; r < loop->rounds.count; r++) {
			loop->rounds.items[r].start += from;
			loop->rounds.items[r].end += from;
		}
		plumb_loops_hide(within, 0, l, names->text);
	}
	return code;
}

static bool
are_steps(const struct plumb_iteration_work *work, const struct plumb_loop *outer,
          const struct plumb_loops *within)
{
	int64_t covered = 0, all = 0;
	uint32_t with = 0;

	for (uint32_t r = 0; r < outer->rounds.count; r++)
		all += outer->rounds.items[r].end - outer->rounds.items[r].start;
	for (uint32_t l = 0; l < within->count; l++) {
		const struct plumb_loop *loop = &within->items[l];

		if (loop->rounds.count <= outer->rounds.count)
			continue;
		if (is_marked(work, loop, outer->rounds.count + 1))
			return true;
		if (gets_data(work, loop)) {
			covered += loop->agree;
			with++;
		}
	}
	return with >= 2 && (double)covered >= MAKES_UP * (double)all;
}

static int
by_period(const void *x, const void *y)
{
	const struct plumb_loop *a = x, *b = y;

	return (a->period < b->period) - (a->period > b->period);
}

/* Finds loops WITHIN a round of OUTER that are more than a few kernels. */
static int
find_within(const struct plumb_iteration_names *names, const struct plumb_loop *outer,
            struct plumb_loops *within)
{
	uint32_t kept = 0;
	int code = 0;

	*within = (struct plumb_loops){ 0 };
	if (outer->period < LONG_ENOUGH || outer->growing)
		return 0;
	code = plumb_loops_find(outer->pattern, outer->period, names->alphabet, within);
	for (uint32_t l = 0; l < within->count; l++) {
		if (plumb_iterations_few_names(&within->items[l]))
			plumb_loop_free(&within->items[l]);
		else
			within->items[kept++] = within->items[l];
	}
	within->count = kept;
	if (kept)
		qsort(within->items, kept, sizeof *within->items, by_period);
	return code;
}

/* Puts the loops within OUTER, number O, in its place if these are the steps. */
static int
split_loop(const struct plumb_iteration_work *work, const struct plumb_iteration_names *names,
           struct plumb_loops *loops, uint32_t o)
{
	struct plumb_loops within;
	int code = find_within(names, &loops->items[o], &within);

	if (!code && within.count && !is_marked(work, &loops->items[o], 1)) {
		code = follow_within(names, &loops->items[o], &within);
		if (!code && are_steps(work, &loops->items[o], &within)) {
			plumb_loop_free(&loops->items[o]);
			loops->items[o] = within.items[0];
			within.items[0] = (struct plumb_loop){ 0 };
			for (uint32_t l = 1; !code && l < within.count; l++) {
				struct plumb_loop *added = plumb_vec_add(loops);

				if (!added) {
					code = PLUMB_ESYSTEM;
					break;
				}
				*added = within.items[l];
				within.items[l] = (struct plumb_loop){ 0 };
			}
		}
	}
	plumb_loops_free(&within);
	return code;
}

int
plumb_iterations_split(const struct plumb_iteration_work *work,
                       const struct plumb_iteration_names *names, struct plumb_loops *loops)
{
	uint32_t count = loops->count;
	int code = 0;

	for (uint32_t o = 0; !code && o < count; o++)
		if (loops->items[o].rounds.count >= 2)
			code = split_loop(work, names, loops, o);
	return code;
}

/* ---- layers beside a loop ---- */

/* The most rounds of LOOP that come without a long pause. */
static uint32_t
count_rounds(const struct plumb_loop *loop)
{
	uint32_t most = 0, rounds = 0;

	for (uint32_t r = 0; r < loop->rounds.count; r++) {
		const struct plumb_round *round = &loop->rounds.items[r];

		if (r && round->start - round[-1].end > PLUMB_LOOP_APART * loop->period)
			rounds = 0;
		most = ++rounds > most ? rounds : most;
	}
	return most;
}

/* Does a round of PART have most names of a round of LOOP, or about as many? */
static bool
is_like(const struct plumb_loop *part, const struct plumb_loop *loop)
{
	int32_t found = 0;

	if (part->period <= 2 * loop->period && loop->period <= 2 * part->period)
		return true;
	for (int32_t i = 0; i < loop->period && i < NAMES_MOST; i++) {
		int32_t at = 0;

		while (at < part->period && part->pattern[at] != loop->pattern[i])
			at++;
		found += at < part->period;
	}
	return found >= NAMES_LIKE * fmin(loop->period, NAMES_MOST);
}

/* Is PART one of the loops WITHIN a round of another, or does it have as many rounds as one? */
static int
is_layers(const struct plumb_loop *part, const struct plumb_loops *within,
          const struct plumb_loop *outer)
{
	struct plumb_loop same = { .period = part->period, .pattern = part->pattern };
	uint32_t rounds = count_rounds(part);
	int code;

	for (uint32_t l = 0; l < within->count; l++)
		if (rounds <= within->items[l].rounds.count + 1 &&
		    rounds + 1 >= within->items[l].rounds.count && is_like(part, &within->items[l]))
			return 1;
	code = plumb_loop_follow(&same, outer->pattern, outer->period);
	if (!code)
		code = same.rounds.count >= 2 && rounds <= same.rounds.count + 1;
	plumb_vec_free(&same.rounds);
	return code;
}

int
plumb_iterations_mark_layers(const struct plumb_iteration_names *names, struct plumb_loops *loops)
{
	int code = 0;

	for (uint32_t o = 0; code >= 0 && o < loops->count; o++) {
		struct plumb_loops within;

		code = find_within(names, &loops->items[o], &within);
		for (uint32_t l = 0; code >= 0 && l < loops->count; l++) {
			struct plumb_loop *part = &loops->items[l];

			if (part->layers || 2 * part->period > loops->items[o].period)
				continue;
			code = is_layers(part, &within, &loops->items[o]);
			part->layers = code > 0;
		}
		plumb_loops_free(&within);
	}
	return code < 0 ? code : 0;
}
