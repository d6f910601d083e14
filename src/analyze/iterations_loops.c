/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops of a main track and their levels. While one loop is looked at, the kernels of the
 * others have symbols of their own, below 0, so that its rounds are not found among them.
 */
#include "analyze/iterations_private.h"
#include "analyze/pattern/growing.h"

#define COVERS_MOST 0.5  /* of a track, by a loop of whatever kind */
#define ROUNDS_LEAST 4   /* of another loop */
#define KERNELS_LEAST 64 /* of all its rounds */
#define ROUNDS_MANY 6    /* it has so many rounds, or */
#define KERNELS_MANY 256 /* so many kernels */
#define WORTH 0.01       /* of the track's kernels or time, if there are other loops */
#define LAYERS_WORTH 0.1 /* likewise, of layers */
#define LOOPS_MOST 16
#define LEAST_COVERAGE_WITHIN 0.25 /* of a round, by a loop in it */
#define LEAST_MATCH_WITHIN 0.25    /* for it, with the place one round later */
#define COVERS_ALL 0.98

/* ---- the outermost loops ---- */

/* Time from the first kernel of each round to the last or, if the next round follows, to its first
 * one, added up: a loop that waits for the host takes that time, too. */
static double
time_of(const struct plumb_iteration_work *work, const struct plumb_loop *loop)
{
	double sum = 0;

	for (uint32_t r = 0; r < loop->rounds.count; r++) {
		const struct plumb_round *round = &loop->rounds.items[r];
		bool goes_on = r + 1 < loop->rounds.count && round[1].start == round->end;
		double end =
			goes_on ? (double)plumb_iteration_kernel(work, (uint32_t)round->end)
					  ->start_ns
				: (double)plumb_iteration_kernel(work, (uint32_t)round->end - 1)
					  ->end_ns;

		sum += end - (double)plumb_iteration_kernel(work, (uint32_t)round->start)->start_ns;
	}
	return sum;
}

/* How much a loop is worth showing. One that covers most of the track always is. Another one must
 * be more than a few kernels that come again: the layers of a start-up, kernels that are tried. */
enum worth { NOTHING, LITTLE, MUCH };

static enum worth
worth_of(const struct plumb_iteration_work *work, const struct plumb_iteration_names *names,
         const struct plumb_loop *loop)
{
	double all = (double)plumb_iteration_kernel(work, (uint32_t)names->count - 1)->end_ns -
	             (double)plumb_iteration_kernel(work, 0)->start_ns;
	double covered = (double)loop->agree / names->count, took = time_of(work, loop) / all;

	if (covered >= COVERS_MOST || (took >= COVERS_MOST && loop->rounds.count >= ROUNDS_LEAST))
		return MUCH;
	if (loop->rounds.count < ROUNDS_LEAST || loop->agree < KERNELS_LEAST ||
	    (loop->rounds.count < ROUNDS_MANY && loop->agree < KERNELS_MANY) ||
	    plumb_iterations_few_names(loop))
		return NOTHING;
	if (loop->layers && covered < LAYERS_WORTH && took < LAYERS_WORTH)
		return NOTHING;
	return covered >= WORTH || took >= WORTH ? MUCH : LITTLE;
}

static int
find_growing(const struct plumb_iteration_work *work, const struct plumb_iteration_names *names,
             struct plumb_loop *loop)
{
	int64_t *gaps = calloc((size_t)names->count + 1, sizeof *gaps);
	int code = PLUMB_ESYSTEM;

	*loop = (struct plumb_loop){ 0 };
	for (int32_t i = 1; gaps && i < names->count; i++)
		gaps[i] = plumb_iteration_kernel(work, (uint32_t)i)->start_ns -
		          plumb_iteration_kernel(work, (uint32_t)i - 1)->end_ns;
	if (gaps)
		code = plumb_loop_find_growing(names->text, names->count, names->alphabet,
		                               COVERS_MOST, gaps, loop);
	free(gaps);
	return code;
}

/* Puts a loop that grows in the place of LOOPS, if it covers more than all of them, or nearly as
 * much in fewer rounds: they may be within it, or a few of its rounds each. */
static int
try_growing(const struct plumb_iteration_work *work, const struct plumb_iteration_names *names,
            struct plumb_loops *loops)
{
	struct plumb_loop growing;
	int64_t agree = 0;
	uint32_t rounds = 0;

	for (uint32_t l = 0; l < loops->count; l++) {
		agree += loops->items[l].agree;
		rounds += loops->items[l].rounds.count;
	}
	if (loops->count && (double)loops->items[0].agree > COVERS_ALL * names->count)
		return 0;
	int code = find_growing(work, names, &growing);
	if (code > 0 &&
	    (growing.agree > agree ||
	     (growing.rounds.count < rounds &&
	      (double)growing.agree > (double)agree - (1 - COVERS_ALL) * names->count))) {
		plumb_loops_free(loops);
		struct plumb_loop *loop = plumb_vec_add(loops);
		if (loop) {
			*loop = growing;
			return 0;
		}
		code = PLUMB_ESYSTEM;
	}
	plumb_loop_free(&growing);
	return code < 0 ? code : 0;
}

/* Leaves out loops that are not worth showing. */
static void
choose_loops(const struct plumb_iteration_work *work, const struct plumb_iteration_names *names,
             struct plumb_loops *loops)
{
	enum worth most = LITTLE;
	uint32_t kept = 0;

	for (uint32_t l = 0; l < loops->count; l++)
		if (worth_of(work, names, &loops->items[l]) == MUCH)
			most = MUCH;
	for (uint32_t l = 0; l < loops->count; l++) {
		if (kept < LOOPS_MOST && worth_of(work, names, &loops->items[l]) >= most)
			loops->items[kept++] = loops->items[l];
		else
			plumb_loop_free(&loops->items[l]);
	}
	loops->count = kept;
}

static int
by_period(const void *x, const void *y)
{
	const struct plumb_loop *a = x, *b = y;

	return a->period != b->period ? (a->period < b->period ? 1 : -1)
	                              : (a->agree < b->agree) - (a->agree > b->agree);
}

static int
by_first_round(const void *x, const void *y)
{
	const struct plumb_loop *a = x, *b = y;

	return (a->rounds.items[0].start > b->rounds.items[0].start) -
	       (a->rounds.items[0].start < b->rounds.items[0].start);
}

void
plumb_iterations_order(struct plumb_loops *loops)
{
	if (loops->count)
		qsort(loops->items, loops->count, sizeof *loops->items, by_first_round);
}

/* Lets rounds begin where iterations do, the longest first. A loop may take rounds of shorter ones,
 * which were found in a part of one of its own. */
static int
turn_loops(const struct plumb_iteration_work *work, const struct plumb_iteration_names *names,
           struct plumb_loops *loops)
{
	int32_t *places = loops->count ? malloc(((size_t)names->count + 1) * sizeof *places) : NULL;
	int code = places || !loops->count ? 0 : PLUMB_ESYSTEM;

	if (loops->count)
		qsort(loops->items, loops->count, sizeof *loops->items, by_period);
	for (uint32_t l = 0; !code && l < loops->count; l++) {
		struct plumb_loop *loop = &loops->items[l];

		loop->phase = PLUMB_BY_GAP;
		if (loop->growing)
			continue;
		plumb_loops_hide(loops, 0, l, names->text);
		code = plumb_iterations_turn(work, names->text, loop, places, &loop->phase);
		plumb_loops_hide(loops, 0, l, names->text);
		if (!code)
			code = plumb_loops_cut(loops, l, names->text, names->count);
	}
	free(places);
	return code;
}

int
plumb_iterations_loops(const struct plumb_iteration_work *work,
                       const struct plumb_iteration_names *names, struct plumb_loops *loops)
{
	int code = plumb_loops_find(names->text, names->count, names->alphabet, loops);

	if (!code)
		code = try_growing(work, names, loops);
	if (!code) {
		choose_loops(work, names, loops);
		code = plumb_iterations_split(work, names, loops);
	}
	if (!code)
		code = turn_loops(work, names, loops);
	if (!code)
		code = plumb_iterations_mark_layers(names, loops);
	if (!code)
		choose_loops(work, names, loops);
	plumb_iterations_order(loops);
	return code;
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

/* Hides all loops but number ONLY, or shows them again. */
static void
hide_others(const struct plumb_loops *loops, uint32_t only, int32_t *text)
{
	plumb_loops_hide(loops, 0, only, text);
	plumb_loops_hide(loops, only + 1, loops->count, text);
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

	if (code > 0 && (inner->period < 2 || inner->match < LEAST_MATCH_WITHIN))
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

int
plumb_iterations_levels(const struct plumb_iteration_work *work,
                        const struct plumb_iteration_names *names, struct plumb_loops *loops,
                        const struct plumb_iteration_limits *limits,
                        struct plumb_iteration_track *track)
{
	int32_t *places = malloc(((size_t)names->count + 1) * sizeof *places);
	int code = places ? 0 : PLUMB_ESYSTEM;

	track->loops = calloc((size_t)loops->count + 1, sizeof *track->loops);
	if (!track->loops)
		code = PLUMB_ESYSTEM;
	for (uint32_t l = 0; !code && l < loops->count; l++) {
		struct plumb_iteration_loop *own = &track->loops[track->loop_count++];
		struct plumb_loop *loop = &loops->items[l];

		hide_others(loops, l, names->text);
		code = add_level(work, names, limits, loop, loop->phase, own);
		if (!code)
			code = find_odd(loop, names, places, &own->levels[0]);
		if (!code)
			code = find_levels(work, names, limits, loop, places, own);
		hide_others(loops, l, names->text);
	}
	free(places);
	return code ? code : plumb_iterations_cut(work, names, loops, track);
}
