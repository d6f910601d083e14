/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops of a main track and their levels. While one loop is looked at, the kernels of the
 * others have symbols of their own, below 0, so that its rounds are not found among them.
 */
#include "analyze/iterations_private.h"
#include "analyze/pattern/growing.h"

#define LEAST_COVERAGE 0.5         /* of a track, by its outermost loop */
#define LEAST_COVERAGE_WITHIN 0.25 /* of a round, by a loop in it */
#define COVERS_ALL 0.98

/* ---- the outermost loops ---- */

/* The outermost loop into LOOP; 0: there is none. One that grows is tried where the other leaves
 * something out: it may be within it, or a few of its rounds. */
static int
find_outermost(const struct plumb_iteration_work *work, const int32_t *text, int32_t alphabet,
               struct plumb_loop *loop)
{
	int32_t count = (int32_t)work->kernels.count;
	int code = plumb_loop_find(text, count, alphabet, LEAST_COVERAGE, loop);
	struct plumb_loop growing;
	int64_t *gaps;

	if (code < 0 || (code > 0 && loop->coverage > COVERS_ALL))
		return code;
	gaps = calloc((size_t)count + 1, sizeof *gaps);
	for (int32_t i = 1; gaps && i < count; i++)
		gaps[i] = plumb_iteration_kernel(work, (uint32_t)i)->start_ns -
		          plumb_iteration_kernel(work, (uint32_t)i - 1)->end_ns;
	int grows = gaps ? plumb_loop_find_growing(text, count, alphabet, LEAST_COVERAGE, gaps,
	                                           &growing)
	                 : PLUMB_ESYSTEM;
	free(gaps);
	if (grows < 0)
		return grows;
	if (grows > 0 && (!code || growing.coverage > loop->coverage ||
	                  (growing.rounds.count < loop->rounds.count &&
	                   growing.coverage > loop->coverage - (1 - COVERS_ALL)))) {
		plumb_loop_free(loop);
		*loop = growing;
		return 1;
	}
	plumb_loop_free(&growing);
	return code;
}

int
plumb_iterations_loops(const struct plumb_iteration_work *work,
                       const struct plumb_iteration_names *names,
                       struct plumb_iteration_found *found)
{
	struct plumb_loop *loop = plumb_vec_add(&found->loops);
	int code = loop ? find_outermost(work, names->text, names->alphabet, loop) : PLUMB_ESYSTEM;

	if (code == 0)
		found->loops.count = 0;
	return code < 0 ? code : 0;
}

void
plumb_iterations_loops_free(struct plumb_iteration_found *found)
{
	for (uint32_t l = 0; l < found->loops.count; l++)
		plumb_loop_free(&found->loops.items[l]);
	plumb_vec_free(&found->loops);
}

/* ---- what is out of place ---- */

static int
by_kind_and_count(const void *x, const void *y)
{
	const struct plumb_odd *a = x, *b = y;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return (a->frame > b->frame) - (a->frame < b->frame);
}

/* counts[kind * alphabet + symbol]; places are those of the loop. Kernels of other loops have
 * symbols below 0: what lies beyond them is not before this loop, nor after it. */
static void
count_odd(const struct plumb_loop *loop, const int32_t *text, int32_t count, int32_t alphabet,
          const int32_t *places, uint32_t *counts)
{
	int32_t from = loop->rounds.items[0].start;
	int32_t end = loop->rounds.items[loop->rounds.count - 1].end;
	uint32_t r = 0;

	while (from > 0 && text[from - 1] >= 0)
		from--;
	while (end < count && text[end] >= 0)
		end++;
	for (int32_t i = from; i < end; i++) {
		if (text[i] < 0)
			continue;
		while (r < loop->rounds.count && i >= loop->rounds.items[r].end)
			r++;
		bool in = r < loop->rounds.count && i >= loop->rounds.items[r].start;
		int kind = in                        ? PLUMB_ODD_INSERTED
		           : r == 0                  ? PLUMB_ODD_BEFORE
		           : r == loop->rounds.count ? PLUMB_ODD_AFTER
		                                     : PLUMB_ODD_BETWEEN;
		if (!in || places[i] < 0 || text[i] != loop->pattern[places[i]])
			counts[kind * alphabet + text[i]]++;
	}
	for (r = 0; r < loop->rounds.count; r++) {
		int32_t next = 0;

		if (!loop->rounds.items[r].edits)
			continue;
		for (int32_t i = loop->rounds.items[r].start; i < loop->rounds.items[r].end; i++) {
			if (places[i] < 0)
				continue;
			for (; next < places[i]; next++)
				counts[PLUMB_ODD_MISSING * alphabet + loop->pattern[next]]++;
			if (text[i] != loop->pattern[next])
				counts[PLUMB_ODD_MISSING * alphabet + loop->pattern[next]]++;
			next++;
		}
		for (; next < loop->period; next++)
			counts[PLUMB_ODD_MISSING * alphabet + loop->pattern[next]]++;
	}
}

static int
find_odd(const struct plumb_loop *loop, const struct plumb_iteration_names *names, int32_t *places,
         struct plumb_iteration_level *level)
{
	int32_t alphabet = names->alphabet;
	uint32_t *counts = calloc((size_t)alphabet * PLUMB_ODD_KINDS, sizeof *counts);
	int code =
		counts ? plumb_loop_places(loop, names->text, names->count, places) : PLUMB_ESYSTEM;

	level->odd = calloc((size_t)alphabet * PLUMB_ODD_KINDS, sizeof *level->odd);
	if (code || !level->odd) {
		free(counts);
		return PLUMB_ESYSTEM;
	}
	count_odd(loop, names->text, names->count, alphabet, places, counts);
	for (int32_t i = 0; i < alphabet * PLUMB_ODD_KINDS; i++)
		if (counts[i])
			level->odd[level->odd_count++] =
				(struct plumb_odd){ (uint32_t)(i / alphabet),
				                    names->frames[i % alphabet], counts[i] };
	free(counts);
	qsort(level->odd, level->odd_count, sizeof *level->odd, by_kind_and_count);
	return 0;
}

/* ---- levels ---- */

/* Kernels of all loops but number ONLY get symbols below 0, or get theirs back. */
static void
hide_others(const struct plumb_iteration_found *found, uint32_t only, int32_t *text)
{
	for (uint32_t l = 0; l < found->loops.count; l++)
		for (uint32_t r = 0; l != only && r < found->loops.items[l].rounds.count; r++) {
			const struct plumb_round *round = &found->loops.items[l].rounds.items[r];

			for (int32_t i = round->start; i < round->end; i++)
				text[i] = ~text[i];
		}
}

static int
add_level(const struct plumb_iteration_work *work, const struct plumb_iteration_names *names,
          const struct plumb_iteration_limits *limits, struct plumb_loop *loop, uint32_t phase,
          struct plumb_iteration_loop *own)
{
	struct plumb_iteration_level *level = &own->levels[own->level_count++];

	level->phase = phase;
	level->period_ops = (uint32_t)loop->period;
	level->first_frame = names->frames[loop->pattern[0]];
	level->match = loop->match;
	level->coverage = loop->coverage;
	level->growing = loop->growing;
	return plumb_iterations_measure(work, loop, limits, level);
}

/* A loop in the pattern of OUTER, followed from a round before the first one of OUTER to one after
 * the last. */
static int
find_within(const struct plumb_loop *outer, const struct plumb_iteration_names *names,
            struct plumb_loop *inner)
{
	int32_t from = outer->rounds.items[0].start - outer->period;
	int32_t end = outer->rounds.items[outer->rounds.count - 1].end;
	int code = plumb_loop_find(outer->pattern, outer->period, names->alphabet,
	                           LEAST_COVERAGE_WITHIN, inner);

	if (code > 0 && inner->period < 2)
		code = 0;
	if (code <= 0)
		return code;
	from = from > 0 ? from : 0;
	end = names->count - end > outer->period ? end + outer->period : names->count;
	code = plumb_loop_follow(inner, names->text + from, end - from);
	for (uint32_t r = 0; r < inner->rounds.count; r++) {
		inner->rounds.items[r].start += from;
		inner->rounds.items[r].end += from;
	}
	return code < 0 ? code : 1;
}

/* The levels within OUTER, whose own is there. */
static int
find_levels(const struct plumb_iteration_work *work, const struct plumb_iteration_names *names,
            const struct plumb_iteration_limits *limits, const struct plumb_loop *outer,
            int32_t *places, struct plumb_iteration_loop *own)
{
	struct plumb_loop loop = { 0 }, inner = { 0 };
	int code = find_within(outer, names, &loop);

	while (code > 0) {
		uint32_t phase = PLUMB_BY_GAP;

		code = loop.growing
		               ? 0
		               : plumb_iterations_turn(work, names->text, &loop, places, &phase);
		if (code < 0 || !loop.rounds.count)
			break;
		code = add_level(work, names, limits, &loop, phase, own);
		if (code < 0 || own->level_count == PLUMB_LEVELS_MOST)
			break;
		code = find_within(&loop, names, &inner);
		plumb_loop_free(&loop);
		loop = inner;
		inner = (struct plumb_loop){ 0 };
	}
	plumb_loop_free(&loop);
	return code < 0 ? code : 0;
}

static int
by_first_round(const void *x, const void *y)
{
	const struct plumb_loop *a = x, *b = y;

	return (a->rounds.items[0].start > b->rounds.items[0].start) -
	       (a->rounds.items[0].start < b->rounds.items[0].start);
}

/* Lets rounds begin where iterations do. PHASES by loop. */
static int
turn_all(const struct plumb_iteration_work *work, const struct plumb_iteration_names *names,
         struct plumb_iteration_found *found, int32_t *places)
{
	int code = 0;

	for (uint32_t l = 0; code >= 0 && l < found->loops.count;) {
		struct plumb_loop *loop = &found->loops.items[l];

		loop->phase = PLUMB_BY_GAP;
		hide_others(found, l, names->text);
		if (!loop->growing)
			code = plumb_iterations_turn(work, names->text, loop, places, &loop->phase);
		hide_others(found, l, names->text);
		if (loop->rounds.count) {
			l++;
			continue;
		}
		plumb_loop_free(loop);
		*loop = found->loops.items[--found->loops.count];
	}
	if (found->loops.count)
		qsort(found->loops.items, found->loops.count, sizeof *found->loops.items,
		      by_first_round);
	return code < 0 ? code : 0;
}

int
plumb_iterations_levels(const struct plumb_iteration_work *work,
                        const struct plumb_iteration_names *names,
                        struct plumb_iteration_found *found,
                        const struct plumb_iteration_limits *limits,
                        struct plumb_iteration_track *track)
{
	int32_t *places = malloc(((size_t)names->count + 1) * sizeof *places);
	int code = places ? turn_all(work, names, found, places) : PLUMB_ESYSTEM;

	track->loops = calloc((size_t)found->loops.count + 1, sizeof *track->loops);
	if (!track->loops)
		code = PLUMB_ESYSTEM;
	for (uint32_t l = 0; !code && l < found->loops.count; l++) {
		struct plumb_iteration_loop *own = &track->loops[track->loop_count++];
		struct plumb_loop *loop = &found->loops.items[l];

		hide_others(found, l, names->text);
		code = add_level(work, names, limits, loop, loop->phase, own);
		if (!code)
			code = find_odd(loop, names, places, &own->levels[0]);
		if (!code)
			code = find_levels(work, names, limits, loop, places, own);
		hide_others(found, l, names->text);
	}
	free(places);
	return code ? code : plumb_iterations_cut(work, names, found, track);
}
